"""Which of equally good cells get the units that are left over: evenly, and none is favoured.

Least squares over the integers leaves open which r of m cells get one more record, and every family
of every level leaves some. Were it the largest or the last ones, they would gain up to half a
record in each family: next to nothing in one block, but summed over a nation's blocks the same
group would gain millions. So the j-th of the m cells (j = 0, 1, …) gets one if

    (start + j r) mod m >= m - r,

which spreads r units evenly over the family. For ``start`` uniform on 0, …, m - 1 so is
``(start + j r) mod m``: each cell gets one with probability r/m, whatever its size and place, and
the estimates have the mean of the real solution. ``start`` comes from a hash of the family's noisy
counts: as good as random, as these hold the noise, but the same whenever the estimate is made
again, and it costs no privacy (post-processing).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import kernel

FACTOR = np.uint64(0x100000001B3)
FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MIX = np.uint64(0x94D049BB133111EB)
"""Multipliers of the hash FNV-1a and of the finalizer of SplitMix64 (Steele et al. 2014)."""

ENOUGH = 64
"""So many noisy counts are random enough, and quick."""


@kernel
def hash_of(x: NDArray[Any], total: int) -> int:
    """A hash of a family's first noisy counts, rounded down, and its total: 0 to 2^63 - 1."""
    state = np.uint64(total)
    for i in range(min(len(x), ENOUGH)):
        state = (state ^ np.uint64(np.int64(np.floor(x[i])))) * FACTOR
    state = (state ^ (state >> np.uint64(30))) * FIRST_MIX
    state = (state ^ (state >> np.uint64(27))) * SECOND_MIX
    return int(np.int64((state ^ (state >> np.uint64(31))) >> np.uint64(1)))


@kernel
def gets_one(place: int, hashed: int, units: int, cells: int) -> bool:
    """Whether the cell of this place among ``cells`` gets one of ``units``, as above."""
    return bool((hashed % cells + place * units) % cells >= cells - units)
