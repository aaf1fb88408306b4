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

from hedgerow.arrays import Float64
from hedgerow.kernels import kernel

# The level at which about c units of a family cost no more: the search behind `cheapest_units`.
#
# Unit k of cell i costs ``(k - offset - x_i) / s_i``, so ``N(λ) = Σ max(floor(x + offset + s λ),
# 0)`` counts the units that cost at most λ. Each step below is one pass over the family.
#
# 1. `real_cutoff`: Newton's method solves ``Σ max(x + offset - 1/2 + s λ, 0) = c`` up to a record.
# It starts to the right of the root, where this convex function takes it down step by step. 2.
# `cutoff_below`: secant steps, jumps to the next cost (past which whole groups of equal costs lie)
# and at worst bisection find a λ where N falls short of c by a few units, or by units whose costs
# are all the same up to their rounding.

FEW = 6.0
"""A level short of the total by this many units is near enough."""

PATIENCE = 16
"""Steps after which every other one is a bisection, so that the search ends on any family."""


@kernel
def real_cutoff(x: Float64, s: Float64, offset: float, total: float) -> float:
    """A level where the real solution is a little short of the total."""
    shift = offset - 0.5
    sum_x = 0.0
    size = total
    slope = 0.0
    for i in range(len(x)):
        sum_x += x[i] + shift
        size += abs(x[i])
        slope += s[i]
    # All cells active gives a level to the right of the root; the margin covers the sums' rounding.
    resolution = (len(x) + 8) * 2.0**-52
    cutoff = (total - sum_x + resolution * size) / slope
    while True:
        excess = -total
        slope = 0.0
        active = 0
        for i in range(len(x)):
            part = x[i] + shift + cutoff * s[i]
            if part > 0.0:
                excess += part
                slope += s[i]
                active += 1
        # Integers decide the rest. N differs from the real sum by some 0.3 sqrt(active).
        if excess <= 0.25 + resolution * total or cutoff - excess / slope >= cutoff:
            return float(cutoff - min(0.5 * active, 1.0 + 0.4 * np.sqrt(active)) / slope)
        cutoff -= excess / slope


@kernel
def cutoff_below(x: Float64, s: Float64, offset: float, total: float, cutoff: float) -> float:
    """A level that few units, or units of about one cost, keep from the total."""
    low = -np.inf
    high = np.inf
    step = 0
    while True:
        units, slope = _count(x, s, offset, total, cutoff)
        missing = total - units
        if 0.0 < missing <= FEW:
            return cutoff
        if missing > 0.0:
            low = cutoff
        else:
            high = cutoff
        after = cutoff + (missing - 0.5 * FEW) / slope
        if step % 4 == 2 and low > -np.inf:
            after = _past_next_cost(x, s, offset, low)
            if after < high and _count(x, s, offset, total, after)[0] >= total:
                return low
            low = min(after, high)
            after = low + (high - low) / 2.0 if high < np.inf else after + abs(after - cutoff)
        if not low < after < high or (step > PATIENCE and step % 2 == 0):
            after = _between(low, high, cutoff, step)
        if after <= low or after >= high:
            return low
        cutoff = after
        step += 1


@kernel
def _between(low: float, high: float, cutoff: float, step: int) -> float:
    """The middle of the bracket, or further out where it has no end yet."""
    if low == -np.inf:
        return cutoff - (abs(cutoff) + 2.0**-20) * 2.0 ** (step - 8)
    if high == np.inf:
        return cutoff + (abs(cutoff) + 2.0**-20) * 2.0 ** (step - 8)
    return low + (high - low) / 2.0


@kernel
def _count(
    x: Float64, s: Float64, offset: float, total: float, cutoff: float
) -> tuple[float, float]:
    """``N(level)``, exact below 2^53, and by how much it grows a unit of level."""
    units = 0.0
    slope = 0.0
    for i in range(len(x)):
        part = np.floor(x[i] + offset + cutoff * s[i])
        units += min(max(part, 0.0), total)
        slope += s[i] if part > 0.0 else 0.0
    return units, slope


@kernel
def _past_next_cost(x: Float64, s: Float64, offset: float, cutoff: float) -> float:
    """A few roundings beyond the smallest cost above the level."""
    least = np.inf
    margin = 0.0
    for i in range(len(x)):
        unit = max(np.floor(x[i] + offset + cutoff * s[i]), 0.0) + 1.0
        cost = (unit - offset - x[i]) / s[i]
        if cost < least:
            least = cost
            margin = (abs(x[i]) + unit) / s[i]
    return float(least + (abs(least) + margin) * 2.0**-50)


FACTOR = np.uint64(0x100000001B3)
FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MIX = np.uint64(0x94D049BB133111EB)
"""Multipliers of the hash FNV-1a and of the finalizer of SplitMix64 (Steele et al. 2014)."""

ENOUGH = 64
"""So many noisy counts are random enough, and quick."""


@kernel
def family_hash(x: NDArray[Any], total: int) -> int:
    """A hash of a family's first noisy counts, rounded down, and its total: 0 to 2^63 - 1."""
    state = np.uint64(total)
    for i in range(min(len(x), ENOUGH)):
        state = (state ^ np.uint64(np.int64(np.floor(x[i])))) * FACTOR
    state = (state ^ (state >> np.uint64(30))) * FIRST_MIX
    state = (state ^ (state >> np.uint64(27))) * SECOND_MIX
    return int(np.int64((state ^ (state >> np.uint64(31))) >> np.uint64(1)))


@kernel
def receives_leftover_unit(place: int, hashed: int, units: int, cells: int) -> bool:
    """Whether the cell of this place among ``cells`` gets one of ``units``, as above."""
    return bool((hashed % cells + place * units) % cells >= cells - units)
