"""A released distribution function: cumulative counts, quantiles, intervals."""
