"""What `hedgerow new` proposes, from a header and public lists."""
