"""A cube over a spine and one attribute: estimates in closed form, whole counts by blocks."""
