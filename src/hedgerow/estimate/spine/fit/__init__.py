"""Whole counts along a spine that have bounds, zeros of their own or a matrix for a metric."""
