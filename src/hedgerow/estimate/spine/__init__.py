"""Estimates and whole counts of a census: a spine that is cut into jobs, and groups beside it."""
