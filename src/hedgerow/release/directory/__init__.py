"""A release on disk: keys, staging, measurements, manifest, output, and its check."""
