"""Public lists: areas, names, products, lookups, facts; what headers and values say of them."""
