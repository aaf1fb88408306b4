"""The Census Bureau's way down a spine, as a baseline: one parent's children at a time."""
