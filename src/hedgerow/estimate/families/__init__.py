"""Estimators that go up and down the tree family by family: whole counts that add up."""
