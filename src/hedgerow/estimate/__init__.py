"""From noisy counts and structure to consistent counts: pure functions, one file an estimator."""
