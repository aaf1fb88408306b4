"""The release of a cube: every cuboid measured, estimated together, and settled to whole counts."""
