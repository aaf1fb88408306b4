"""Hedgerow: hierarchical count tables under differential privacy."""

__version__ = "0.1.0"
