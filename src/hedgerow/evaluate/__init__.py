"""All that compares a release with the truth; no other room imports it."""
