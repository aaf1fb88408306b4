"""What a table is: axes, trees, and sparse leaf counts in tree order."""
