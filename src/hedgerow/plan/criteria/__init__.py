"""Criteria of an office, and whether a plan keeps them."""
