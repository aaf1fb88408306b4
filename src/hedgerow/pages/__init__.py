"""What the pages of Hedgerow share: one document, one look, one catalogue of texts."""
