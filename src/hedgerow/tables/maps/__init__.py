"""Shapes of areas, for maps: read from a public file, with every border kept once."""
