"""How good a plan is, beside whatever else could be measured at its price."""
