"""Measure, estimate, descend; write, check."""
