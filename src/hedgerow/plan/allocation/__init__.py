"""How a budget is divided among the depths: fixed shares, optimal, fair, cheapest."""
