"""Least squares on the whole tree: estimates, variances, covariances, in two passes."""
