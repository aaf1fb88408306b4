"""The release of cuboids that are estimated together: those of a cube, or those that are named."""
