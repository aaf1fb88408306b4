"""The privacy loss of a composition: exact loss distributions, certified bounds of δ(ε)."""
