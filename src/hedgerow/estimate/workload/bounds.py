"""Upper bounds of variances where exact ones are too much work.

By Gauss and Markov the best linear unbiased estimate of a cell has no larger variance than any
other linear unbiased one, from the same measurements or from fewer. Two of these have variances
that are cheap to know, and each cell takes the smaller:

1. what one chain of nested cuboids says of it, those of the most cells that refine the cell's
   cuboid or are refined by it (`Chain.variances_of`): least squares from some measurements;
2. the mean of the sums of all measured cuboids d that refine its cuboid, weighted by their inverse
   variances: 1 / Σ_d 1 / (v_d r_d), r_d being the number of d's cells in the cell. It is unbiased,
   and its terms are independent.
"""

import numpy as np

from hedgerow.estimate.cube.shape import Cuboid, Floats, is_within
from hedgerow.estimate.workload.chains import heaviest
from hedgerow.estimate.workload.dual import combined_sums
from hedgerow.estimate.workload.observed import Observed


def bounds(observed: Observed, cuboid: Cuboid) -> tuple[Cuboid, Floats]:
    """Return bounds of the variances of a cuboid's cells, alike below the cells of a coarser one.

    Returns:
        That coarser cuboid, or the cuboid itself; and float64 (its cells along each axis).
    """
    nested = [c for c in observed.variances if is_within(c, cuboid) or is_within(cuboid, c)]
    if cuboid in observed.tables:  # no other measurement refines it
        return heaviest(observed, nested, cuboid).variances_of(cuboid)
    found = combined_sums(observed.shape, observed.variances, cuboid)
    for table in observed.tables:
        if is_within(cuboid, table):
            np.minimum(found, heaviest(observed, nested, table).own_variances(cuboid), out=found)
    return cuboid, found
