"""The cheapest units of a family: what integer least squares and integer least distance share.

A *unit* raises the estimate of cell i from k - 1 to k and costs (k - offset - x_i) / s_i, x in
records, s positive. The c cheapest units of a family are an estimate. Of equal costs those of the
largest (rank, index) come first, where a rank is given; else those of cells that hold something
already, evenly (`hedgerow.estimate.families.units`). With offset 1/2 and s = variances this is
least squares over the integers: `docs/proofs.md`, "Least squares over the integers".
"""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.families.units import cutoff_below, real_cutoff, receives_leftover_unit
from hedgerow.kernels import kernel


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
    x: Float64, s: Float64, rank: Float64, problem: tuple[float, int, int], keys: Float64, y: Int64
) -> tuple[float, bool]:
    """Write the cheapest units to y; the cost of the last one, and whether an equal one is left.

    Args:
        x: float64 (cells), records; all other arrays may be longer than this one.
        s: float64 (cells), positive.
        rank: float64 (cells): which of equal costs comes first; or float64 (0).
        problem: the offset; how many units there are, c; and, where no rank is given, a hash of
            the family.
        keys: float64 (cells): scratch.
        y: int64 (cells), records.
    """
    offset, total, hashed = problem
    if total == 0 or len(x) == 1:
        for i in range(len(x)):
            y[i] = total
        return (total - offset - x[0]) / s[0], False
    if len(x) == 2:
        return _share_between_two(x, s, rank, problem, y)
    cutoff = real_cutoff(x, s, offset, float(total))
    cutoff = cutoff_below(x, s, offset, float(total), cutoff)
    missing = _units_at(x, s, problem, cutoff, keys, y)
    nudge = 2.0**-51 * (abs(cutoff) + 1.0)
    while missing < 0:  # the floor of a sum and the cost itself may differ by a rounding
        cutoff -= nudge
        nudge *= 4.0
        missing = _units_at(x, s, problem, cutoff, keys, y)
    if missing > 0:
        return _add_missing(x, s, rank, (offset, missing, hashed), keys, y)
    return cutoff, False


@kernel
def _add_missing(
    x: Float64, s: Float64, rank: Float64, problem: tuple[float, int, int], keys: Float64, y: Int64
) -> tuple[float, bool]:
    """Add the cheapest missing units, all of one cost at a time; returns as `cheapest_units`."""
    # keys[i] is the cost of cell i's next unit; each round adds all units of the least cost.
    offset, missing, hashed = problem
    cutoff = 0.0
    while missing > 0:
        cutoff = np.inf
        for i in range(len(x)):
            cutoff = min(cutoff, keys[i])
        ties = 0
        for i in range(len(x)):
            ties += keys[i] == cutoff
        if ties > missing:
            if len(rank) > 0:
                _hand_out(keys[: len(x)], rank, cutoff, missing, y)
            else:
                _hand_out_evenly(keys[: len(x)], hashed, cutoff, missing, y)
            return cutoff, True
        for i in range(len(x)):
            if keys[i] == cutoff:
                y[i] += 1
                keys[i] = (y[i] + 1 - offset - x[i]) / s[i]
        missing -= ties
    return cutoff, False


@kernel
def _units_at(
    x: Float64, s: Float64, problem: tuple[float, int, int], cutoff: float, keys: Float64, y: Int64
) -> int:
    """Write the units that cost at most the level, and the next ones' costs; how many are short."""
    offset, total, _ = problem
    missing = total
    for i in range(len(x)):
        # Clipped before the cast: doubles beyond int64 have no defined integer.
        whole = np.floor(x[i] + offset + cutoff * s[i])
        units = int(min(max(whole, 0.0), float(total)))
        while units > 0 and (units - offset - x[i]) / s[i] > cutoff:
            units -= 1
        following = (units + 1 - offset - x[i]) / s[i]
        while units < total and following <= cutoff:
            units += 1
            following = (units + 1 - offset - x[i]) / s[i]
        keys[i] = following
        y[i] = units
        missing -= units
    return missing


@kernel
def _hand_out(keys: Float64, rank: Float64, cutoff: float, missing: int, y: Int64) -> None:
    """Give a unit each to the largest cells by (rank, index) whose next cost is the cutoff."""
    # Ascending by (rank, index): mergesort is stable.
    order = np.argsort(rank[: len(keys)], kind="mergesort")
    for i in order[::-1]:
        if missing > 0 and keys[i] == cutoff:
            y[i] += 1
            missing -= 1


@kernel
def _hand_out_evenly(keys: Float64, hashed: int, cutoff: float, missing: int, y: Int64) -> None:
    """Give a unit each, evenly, to cells whose next cost is the cutoff; to empty ones last."""
    # Cells that hold something come before empty ones; within each group units are spread evenly.
    filled = 0
    empty = 0
    for i in range(len(keys)):
        tied = keys[i] == cutoff
        filled += tied and y[i] > 0
        empty += tied and y[i] == 0
    kept = min(missing, filled)
    rest = missing - kept
    filled_place = 0
    empty_place = 0
    for i in range(len(keys)):
        if keys[i] != cutoff:
            continue
        if y[i] > 0:
            y[i] += rest > 0 or receives_leftover_unit(filled_place, hashed, kept, filled)
            filled_place += 1
        else:
            y[i] += rest > 0 and receives_leftover_unit(empty_place, hashed, rest, empty)
            empty_place += 1


@kernel
def _share_between_two(
    x: Float64, s: Float64, rank: Float64, problem: tuple[float, int, int], y: Int64
) -> tuple[float, bool]:
    """Solve `cheapest_units` for two cells: from the rounded real solution, a unit at a time."""
    # Start from the rounded real solution and move one unit while that is cheaper: a step or two.
    offset, total, hashed = problem
    cutoff = (total - x[0] - x[1] + 1.0 - 2.0 * offset) / (s[0] + s[1])
    ideal = np.floor(x[0] + offset + cutoff * s[0])
    first = int(min(max(ideal, 0.0), float(total)))
    second = total - first
    while True:
        take = (first + 1 - offset - x[0]) / s[0]
        last = (second - offset - x[1]) / s[1]
        if second == 0 or take > last:
            break
        if take == last and not _is_first(rank, hashed, first, second - 1):
            break
        first += 1
        second -= 1
    while True:
        last_first = (first - offset - x[0]) / s[0]
        take_second = (second + 1 - offset - x[1]) / s[1]
        if first == 0 or take_second > last_first:
            break
        if take_second == last_first and _is_first(rank, hashed, first - 1, second):
            break
        first -= 1
        second += 1
    y[0] = first
    y[1] = second
    take = (first + 1 - offset - x[0]) / s[0]
    last = (second - offset - x[1]) / s[1]
    highest = -np.inf
    if first > 0:
        highest = last_first
    if second > 0:
        highest = max(highest, last)
    return highest, highest in (take, take_second)


@kernel
def _is_first(rank: Float64, hashed: int, first: int, second: int) -> bool:
    """Return whether, of two cells with these counts, an equally cheap unit goes to the first."""
    if len(rank) > 0:
        return bool(rank[0] > rank[1])
    if (first > 0) != (second > 0):
        return first > 0
    return receives_leftover_unit(0, hashed, 1, 2)
