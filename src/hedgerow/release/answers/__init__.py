"""What the noisy counts of a release say of any cells: estimates and errors, by design."""
