"""The cube: every combination of levels of several axes, estimated and settled together."""
