"""How a budget is divided among the cuboids: fixed shares, optimal, fair, cheapest."""
