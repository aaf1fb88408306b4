"""Which of equally good cells get the units that are left over: evenly, and none is favoured.

The j-th of m cells gets one of r units if ``(start + j r) mod m >= m - r``, with ``start`` from a
hash of the family's noisy counts. Each cell gets one with probability r/m, whatever its size and
place, so that no group of cells gains over many families: `docs/proofs.md`, "Leftover units".
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64
from hedgerow.kernels import kernel

# The search for a cutoff λ at which about c units of a family cost no more: N(λ) = Σ max(floor(x +
# offset + s λ), 0). `real_cutoff` solves the problem without the floor by Newton's method; then
# `cutoff_below` finds a λ where N falls short of c by a few units, or by units of about one cost.

FEW = 6.0
"""A level short of the total by this many units is near enough."""

PATIENCE = 16
"""Steps after which every other one is a bisection, so that the search ends on any family."""


@kernel
def real_cutoff(x: Float64, s: Float64, offset: float, total: float) -> float:
    """Return a level where the real solution is a little short of the total."""
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
    """Return a level that few units, or units of about one cost, keep from the total."""
    # N(low) < total <= N(high) all along.
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
    """Return the middle of the bracket, or further out where it has no end yet."""
    if low == -np.inf:
        return cutoff - (abs(cutoff) + 2.0**-20) * 2.0 ** (step - 8)
    if high == np.inf:
        return cutoff + (abs(cutoff) + 2.0**-20) * 2.0 ** (step - 8)
    return low + (high - low) / 2.0


@kernel
def _count(
    x: Float64, s: Float64, offset: float, total: float, cutoff: float
) -> tuple[float, float]:
    """Return ``N(level)``, exact below 2^53, and by how much it grows a unit of level."""
    units = 0.0
    slope = 0.0
    for i in range(len(x)):
        part = np.floor(x[i] + offset + cutoff * s[i])
        units += min(max(part, 0.0), total)
        slope += s[i] if part > 0.0 else 0.0
    return units, slope


@kernel
def _past_next_cost(x: Float64, s: Float64, offset: float, cutoff: float) -> float:
    """Return a few roundings beyond the smallest cost above the level."""
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
    """Return a hash of a family's total and first noisy counts, rounded down: 0 to 2^63 - 1."""
    state = np.uint64(total)
    for i in range(min(len(x), ENOUGH)):
        state = (state ^ np.uint64(np.int64(np.floor(x[i])))) * FACTOR
    state = (state ^ (state >> np.uint64(30))) * FIRST_MIX
    state = (state ^ (state >> np.uint64(27))) * SECOND_MIX
    return int(np.int64((state ^ (state >> np.uint64(31))) >> np.uint64(1)))


@kernel
def receives_leftover_unit(place: int, hashed: int, units: int, cells: int) -> bool:
    """Return whether the cell of this place among ``cells`` gets one of ``units``, as above."""
    return bool((hashed % cells + place * units) % cells >= cells - units)
