"""Marginals of several attributes over a spine, which need not nest: estimates and whole counts."""
