"""Numeric columns: ranges, bins, the tree over them, and the plan of a distribution function."""
