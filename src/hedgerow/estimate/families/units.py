"""The cheapest units of a family, and which of equally good cells get those that are left over.

A *unit* raises the estimate of cell i from k - 1 to k and costs (k - offset - x_i) / s_i, x in
records, s positive. The c cheapest units of a family are an estimate. With offset 1/2 and s =
variances this is least squares over the integers: `docs/proofs/families.md`, "Least squares over
the integers".

Of units of equal cost those of cells that hold something come first, and then they are spread
evenly, so that none is favoured: the j-th of m cells gets one of r units if ``(start + j r) mod m
>= m - r``, with ``start`` from a hash of the family's noisy counts. Each cell gets one with
probability r/m, whatever its size and place, so that no group of cells gains over many families:
`docs/proofs/families.md`, "Leftover units".
"""

import numpy as np

from hedgerow.arrays import Array, Float64, Int64
from hedgerow.estimate.estimator import Families
from hedgerow.kernels import inner_kernel, kernel, run_size

# `fill` is the one water-filling over real numbers. There the search for a cutoff λ begins at which
# about c units of a family cost no more: at N(λ) = Σ max(floor(x + offset + s λ), 0) without the
# floor. Then `cutoff_below` finds a λ where N falls short of c by a few units, or by units of about
# one cost. Where counts have upper bounds, N is cut off at them; lower bounds are the caller's, who
# takes them from x and c. Two water-fillings stay apart: that of whole numbers up to 2^61, in words
# of 32 bits (`hedgerow.estimate.families.euclidean`), and that of all columns of a block at once,
# which runs along its rows (`hedgerow.estimate.cube.block`).

FEW = 6.0
"""A level short of the total by this many units is near enough."""

ROUNDING = 2.0**-48
"""What rounding makes of a sum, of the size of all that is added up."""

PATIENCE = 16
"""Steps after which every other one is a bisection, so that the search ends on any family."""

NEWTON = 40
"""Steps of Newton's method at most; it ends after as many as there are changes of the active set,
mostly three."""


@inner_kernel
def fill(
    t: Float64, raised: tuple[float, Float64], s: Float64, total: float, near: float, level: float
) -> float:
    """Return the level λ at which ``Σ max(t + u b + λ s, 0)`` is the total, by Newton's method.

    The sum is convex and piecewise linear in λ: from the right of the solution no step goes past
    it, and one from the left ends to the right of it.

    Args:
        t: float64 (cells), of at least one cell.
        raised: u, and b, float64 (cells); (0, s) where nothing is added.
        s: float64 (cells), above 0.
        total: above 0.
        near: how far from the total the sum may be.
        level: a first guess.
    """
    for _ in range(NEWTON):
        filled, slope = 0.0, 0.0
        for i in range(len(t)):
            x = t[i] + raised[0] * raised[1][i] + s[i] * level
            filled += max(x, 0.0)
            slope += s[i] if x > 0.0 else 0.0
        gap = filled - total
        # Rounding may keep the sum from ever being the total itself.
        if abs(gap) <= near:
            break
        if slope == 0.0:  # to where the first cell alone holds all that is wanted
            level = np.inf
            for i in range(len(t)):
                level = min(level, (total - t[i] - raised[0] * raised[1][i]) / s[i])
            continue
        level -= gap / slope
    return level


@inner_kernel
def level_of(t: Float64, s: Float64, total: float, near: float = 0.0) -> float:
    """Return the level of `fill` as near as rounding lets it, or nearer than ``near``.

    It begins to the right of the solution, where all cells would be active, as if none were cut.
    """
    # Rounding errors are of the size of all that is added up; its sum may be near 0.
    whole = 0.0
    size = total
    slope = 0.0
    for i in range(len(t)):
        whole += t[i]
        size += abs(t[i])
        slope += s[i]
    return fill(t, (0.0, s), s, total, near + ROUNDING * size, (total - whole) / slope)


@kernel
def cutoff_below(
    x: Float64, s: Float64, most: Int64 | None, offset: float, total: float, cutoff: float
) -> float:
    """Return a level that few units, or units of about one cost, keep from the total."""
    # N(low) < total <= N(high) all along.
    low = -np.inf
    high = np.inf
    step = 0
    while True:
        units, slope = _count(x, s, most, offset, total, cutoff)
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
            after = _past_next_cost(x, s, most, offset, low)
            if after < high and _count(x, s, most, offset, total, after)[0] >= total:
                return low
            low = min(after, high)
            after = low + (high - low) / 2.0 if high < np.inf else after + abs(after - cutoff)
        if not low < after < high or (step > PATIENCE and step % 2 == 0):
            # Steps that leave the bracket, or take long: bisection.
            after = _between(low, high, max(cutoff, low), step)
        if after <= low or after >= high:
            return low
        cutoff = after
        step += 1


@kernel
def _between(low: float, high: float, cutoff: float, step: int) -> float:
    """Return the middle of the bracket, or further out where it has no end yet."""
    # Beyond an end that is open steps double, so levels of any size are soon reached.
    reach = (abs(cutoff) + 2.0**-20) * 2.0 ** (step - 8)
    if low == -np.inf:
        return cutoff - reach
    return cutoff + reach if high == np.inf else low + (high - low) / 2.0


@kernel
def _count(
    x: Float64, s: Float64, most: Int64 | None, offset: float, total: float, cutoff: float
) -> tuple[float, float]:
    """Return ``N(level)``, exact below 2^53, and by how much it grows a unit of level."""
    units = 0.0
    slope = 0.0
    for i in range(len(x)):
        # No cell holds more than the total: of levels far too high the sum stays bounded.
        part = np.floor(x[i] + offset + cutoff * s[i])
        if most is None:
            units += min(max(part, 0.0), total)
            slope += s[i] if part > 0.0 else 0.0
        else:
            units += min(max(part, 0.0), float(most[i]))
            slope += s[i] if 0.0 < part < most[i] else 0.0
    return units, slope


@kernel
def _past_next_cost(
    x: Float64, s: Float64, most: Int64 | None, offset: float, cutoff: float
) -> float:
    """Return a few roundings beyond the smallest cost above the level."""
    least = np.inf
    margin = 0.0
    for i in range(len(x)):
        unit = max(np.floor(x[i] + offset + cutoff * s[i]), 0.0) + 1.0
        # A full cell takes no further unit, whatever the level.
        if most is not None and unit > most[i]:
            continue
        cost = (unit - offset - x[i]) / s[i]
        if cost < least:
            least = cost
            # Rounding errors of a cost are of the size of its terms, which may nearly cancel.
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
def family_hash(x: Array, total: int) -> int:
    """Return a hash of a family's total and first noisy counts, rounded down: 0 to 2^63 - 1."""
    state = np.uint64(total)
    for i in range(min(len(x), ENOUGH)):
        state = (state ^ np.uint64(np.int64(np.floor(x[i])))) * FACTOR
    state = (state ^ (state >> np.uint64(30))) * FIRST_MIX
    state = (state ^ (state >> np.uint64(27))) * SECOND_MIX
    # Without the highest bit, so that it is an int64 from 0 on.
    return int(np.int64((state ^ (state >> np.uint64(31))) >> np.uint64(1)))


@kernel
def receives_leftover_unit(place: int, hashed: int, units: int, cells: int) -> bool:
    """Return whether the cell of this place among ``cells`` gets one of ``units``, as above."""
    # Steps of r modulo m: r of m consecutive places get a unit, wherever they start.
    return bool((hashed % cells + place * units) % cells >= cells - units)


@kernel
def widest_family(family_start: Int64, families: Families) -> int:
    """Return the cells of the largest of these families, at least 1: how long scratch must be."""
    # Looked for once, so that scratch is not allocated family by family.
    widest = 1
    for family in range(families[0], families[1]):
        widest = max(widest, run_size(family_start, family))
    return widest


@kernel
def write_variances(variance: Float64, begin: int, cells: int, s: Float64) -> bool:
    """Write a family's variances to s, ones where all are equal; whether they are."""
    equal = True
    for i in range(cells if len(variance) > 1 else 0):
        s[i] = variance[begin + i]
        equal &= s[i] == s[0]
    # Equal variances change no optimum, and with ones fewer digits are lost.
    for i in range(cells if equal else 0):
        s[i] = 1.0
    return equal


@kernel
def cheapest_units(
    x: Float64, s: Float64, most: Int64 | None, problem: Problem, keys: Float64, y: Int64
) -> tuple[float, bool]:
    """Write the cheapest units to y; the cost of the last one, and whether an equal one is left.

    Args:
        x: float64 (cells), records; all other arrays may be longer than this one.
        s: float64 (cells), positive.
        most: int64 (cells), records: how many units of each cell there are, together at least the
            total; None where there is no bound.
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
    cutoff = level_of(x, s, float(total), 0.25)
    cutoff = cutoff_below(x, s, most, offset, float(total), cutoff)
    missing = _units_at(x, s, most, problem, cutoff, keys, y)
    nudge = np.inf  # a rounding of the level, or of the costs near 0 if these are larger
    for i in range(len(x)):
        nudge = min(nudge, 2.0**-51 * (abs(cutoff) + (abs(x[i]) + 1.0) / s[i]))
    while missing < 0:  # the floor of a sum and the cost itself may differ by a rounding
        cutoff -= nudge
        nudge *= 4.0
        missing = _units_at(x, s, most, problem, cutoff, keys, y)
    if missing > 0:
        return _add_missing(x, s, most, (offset, missing, hashed), keys, y)
    return cutoff, False


@kernel
def _add_missing(
    x: Float64, s: Float64, most: Int64 | None, problem: Problem, keys: Float64, y: Int64
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
                if most is not None and y[i] == most[i]:
                    keys[i] = -np.inf
        missing -= filled + empty
    return -highest, False


@kernel
def _units_at(
    x: Float64,
    s: Float64,
    most: Int64 | None,
    problem: Problem,
    cutoff: float,
    keys: Float64,
    y: Int64,
) -> int:
    """Write the units that cost at most the level, minus the next ones' costs; how many lack."""
    offset, total, _ = problem
    missing = total
    for i in range(len(x)):
        # Clipped before the cast: doubles beyond int64 have no defined integer.
        whole = np.floor(x[i] + offset + cutoff * s[i])
        room = total if most is None else most[i]
        units = int(min(max(whole, 0.0), float(room)))
        # The floor and the cost (k - offset - x) / s may differ by a rounding: costs decide.
        while units > 0 and (units - offset - x[i]) / s[i] > cutoff:
            units -= 1
        following = (units + 1 - offset - x[i]) / s[i]
        while units < room and following <= cutoff:
            units += 1
            following = (units + 1 - offset - x[i]) / s[i]
        keys[i] = -following if most is None or units < room else -np.inf
        y[i] = units
        missing -= units
    return missing


@inner_kernel
def hand_out_evenly(
    keys: Array, least: float, units: tuple[int, int, int], hashed: int, y: Int64
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
