"""Sums over areas of a user's own: what is summed."""
