"""The planning page: what a release would show, at any budget, from public facts alone."""
