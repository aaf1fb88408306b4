"""The cheapest units of a family, and which of equally good cells get those that are left over.

A *unit* raises the estimate of cell i from k - 1 to k and costs (k - offset - x_i) / s_i, x in
records, s positive. The c cheapest units of a family are an estimate. With offset 1/2 and s =
variances this is least squares over the integers: `docs/proofs.md`, "Least squares over the
integers".

Of units of equal cost those of cells that hold something come first, and then they are spread
evenly, so that none is favoured: the j-th of m cells gets one of r units if ``(start + j r) mod m
>= m - r``, with ``start`` from a hash of the family's noisy counts. Each cell gets one with
probability r/m, whatever its size and place, so that no group of cells gains over many families:
`docs/proofs.md`, "Leftover units".
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Families
from hedgerow.kernels import inner_kernel, kernel

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
        # A step of Newton to where half of the few lack.
        after = cutoff + (missing - 0.5 * FEW) / slope
        if step % 4 == 2 and low > -np.inf:
            # Units of about one cost that span the total: no level is nearer than the one below.
            after = _past_next_cost(x, s, offset, low)
            if after < high and _count(x, s, offset, total, after)[0] >= total:
                return low
            low = min(after, high)
            after = low + (high - low) / 2.0 if high < np.inf else after + abs(after - cutoff)
        if not low < after < high or (step > PATIENCE and step % 2 == 0):
            # Steps that leave the bracket, or take long: bisection.
            after = _between(low, high, cutoff, step)
        if after <= low or after >= high:
            return low
        cutoff = after
        step += 1


@kernel
def _between(low: float, high: float, cutoff: float, step: int) -> float:
    """Return the middle of the bracket, or further out where it has no end yet."""
    reach = (abs(cutoff) + 2.0**-20) * 2.0 ** (step - 8)
    if low == -np.inf:
        return cutoff - reach
    return cutoff + reach if high == np.inf else low + (high - low) / 2.0


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


Problem = tuple[float, int, int]
"""The offset; how many units there are, c; and a hash of the family."""

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


@kernel
def widest_family(family_start: Int64, families: Families) -> int:
    """Return the cells of the largest of these families, at least 1: how long scratch must be."""
    widest = 1
    for family in range(families[0], families[1]):
        widest = max(widest, family_start[family + 1] - family_start[family])
    return widest


@kernel
def write_variances(variance: Float64, begin: int, cells: int, s: Float64) -> bool:
    """Write a family's variances to s, ones where all are equal; whether they are."""
    equal = True
    for i in range(cells if len(variance) > 1 else 0):
        s[i] = variance[begin + i]
        equal &= s[i] == s[0]
    for i in range(cells if equal else 0):
        s[i] = 1.0
    return equal


@kernel
def cheapest_units(
    x: Float64, s: Float64, problem: Problem, keys: Float64, y: Int64
) -> tuple[float, bool]:
    """Write the cheapest units to y; the cost of the last one, and whether an equal one is left.

    Args:
        x: float64 (cells), records; all other arrays may be longer than this one.
        s: float64 (cells), positive.
        problem: of the family.
        keys: float64 (cells): scratch.
        y: int64 (cells), records.
    """
    offset, total, hashed = problem
    if total == 0 or len(x) == 1:
        for i in range(len(x)):
            y[i] = total
        return (total - offset - x[0]) / s[0], False
    # The level of the real solution, then one that few units keep from the total.
    cutoff = real_cutoff(x, s, offset, float(total))
    cutoff = cutoff_below(x, s, offset, float(total), cutoff)
    missing = _units_at(x, s, problem, cutoff, keys, y)
    nudge = 2.0**-51 * (abs(cutoff) + 1.0)
    while missing < 0:  # the floor of a sum and the cost itself may differ by a rounding
        cutoff -= nudge
        nudge *= 4.0
        missing = _units_at(x, s, problem, cutoff, keys, y)
    if missing > 0:
        return _add_missing(x, s, (offset, missing, hashed), keys, y)
    return cutoff, False


@kernel
def _add_missing(
    x: Float64, s: Float64, problem: Problem, keys: Float64, y: Int64
) -> tuple[float, bool]:
    """Add the cheapest missing units, all of one cost at a time; returns as `cheapest_units`."""
    # keys[i] is minus the cost of cell i's next unit; each round adds all units of the least cost.
    offset, missing, hashed = problem
    highest = 0.0
    while missing > 0:
        highest = -np.inf
        for i in range(len(x)):
            highest = max(highest, keys[i])
        # Who has a unit of this cost next, and whether the cell holds something.
        filled = 0
        empty = 0
        for i in range(len(x)):
            filled += keys[i] == highest and y[i] > 0
            empty += keys[i] == highest and y[i] == 0
        if filled + empty > missing:
            hand_out_evenly(keys[: len(x)], highest, (missing, filled, empty), hashed, y)
            return -highest, True
        # All of them, and what each costs next.
        for i in range(len(x)):
            if keys[i] == highest:
                y[i] += 1
                keys[i] = (x[i] - (y[i] + 1 - offset)) / s[i]
        missing -= filled + empty
    return -highest, False


@kernel
def _units_at(
    x: Float64, s: Float64, problem: Problem, cutoff: float, keys: Float64, y: Int64
) -> int:
    """Write the units that cost at most the level, minus the next ones' costs; how many lack."""
    offset, total, _ = problem
    missing = total
    for i in range(len(x)):
        # Clipped before the cast: doubles beyond int64 have no defined integer.
        whole = np.floor(x[i] + offset + cutoff * s[i])
        units = int(min(max(whole, 0.0), float(total)))
        # The floor and the cost (k - offset - x) / s may differ by a rounding: costs decide.
        while units > 0 and (units - offset - x[i]) / s[i] > cutoff:
            units -= 1
        following = (units + 1 - offset - x[i]) / s[i]
        while units < total and following <= cutoff:
            units += 1
            following = (units + 1 - offset - x[i]) / s[i]
        keys[i] = -following
        y[i] = units
        missing -= units
    return missing


@inner_kernel
def hand_out_evenly(
    keys: NDArray[Any], least: float, units: tuple[int, int, int], hashed: int, y: Int64
) -> None:
    """Give a unit each, evenly, to cells whose key is at least this; to empty ones last.

    The units: how many there are, fewer than such cells, and of these how many hold something and
    how many are empty.
    """
    missing, filled, empty = units
    kept = min(missing, filled)
    rest = missing - kept
    filled_place = 0
    empty_place = 0
    # Cells that hold something first; what they leave goes to empty ones, both evenly.
    for i in range(len(keys)):
        if keys[i] < least:
            continue
        if y[i] > 0:
            y[i] += rest > 0 or receives_leftover_unit(filled_place, hashed, kept, filled)
            filled_place += 1
        else:
            y[i] += rest > 0 and receives_leftover_unit(empty_place, hashed, rest, empty)
            empty_place += 1
