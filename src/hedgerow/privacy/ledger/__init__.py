"""The ledger file: datasets, the budget of each promise, and every charge."""
