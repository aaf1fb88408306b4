"""Estimates from published noisy counts, at no privacy cost."""
