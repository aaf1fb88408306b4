"""What one unit of privacy can change, what a budget buys, and what a composition promises."""
