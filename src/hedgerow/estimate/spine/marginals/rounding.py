"""Whole counts of a family near its fit: sums and bounds exact, all marginals nearly kept.

Of whole counts x with the node's sums cell by cell those are sought that are nearest to the fit y
in all marginals at once,

    min Σ_b Σ_B Σ_c |S_b S_B (x_c - y_c)|²,

over all sets B of attributes and all levels b of the groups, each alike. The objective of the fit
itself would not do: what is measured badly may then drift by a good part of its own standard error,
as every cell's rounding adds to it. In this one no marginal does, be it measured or not.

With d = x - y, half the gradient at a cell is the sum of 2ᵏ numbers, one of each marginal, and one
more record in a cell changes one number in each marginal and group. So what every unit costs is
known at any time:

1. floors of the fit, and for each cell what is left of the node's count, unit by unit, to the
   child where it costs least;
2. units from child to child within a cell until every group is within its bounds: at least cost;
3. likewise while it lowers the objective, cell by cell.

As every unit's cost holds the errors of all marginals so far, these do not add up.
"""

from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.kernels import kernel

Slopes: TypeAlias = tuple[Int32, Float64, Float64, Int64, Int64, Int64]
"""Where each cell's sums are (marginals, W); half the objective's gradient with respect to each sum
(rows, sums of all marginals); how many levels b have two groups of the node above in one (groups,
groups); the group of each row; where a child's rows begin; a row's child."""
Limits: TypeAlias = tuple[Int64, Int64, Int64]
"""The least and largest sums of a row's cells, and the sums: int64 (rows)."""

MOST_SWEEPS = 50
"""Rounds over all cells in search of better units; a few are usual."""
GAIN = 1e-9
"""What a move must gain, of its own costs: floats cannot send it back and forth."""


@kernel
def round_family(
    cells: tuple[Int32, Float64],
    rows: tuple[Int64, Int64],
    bounds: tuple[Int64, Int64, Int64],
    fit: Float64,
    out: Int64,
) -> None:
    """Write whole counts of a family near its fit.

    Args:
        cells: int32 (marginals, W): where the marginals' sums of each cell are among the sums of
            all marginals; and float64 (rows of the node, rows of the node): how many levels of the
            groups' tree have both in one cell.
        rows: int64 (children + 1): where the rows of a child begin; and int64 (rows): the row of
            the node above of which a row is a part.
        bounds: int64 (rows of the node, W): its counts; and int64 (rows) each: the least and the
            largest sums of a row's cells, feasible together.
        fit: float64 (rows, W): of `fit_family`; not negative, 0 where ``above`` is.
        out: int64 (rows, W): the counts.
    """
    slot, (above, low, high) = rows[1], bounds
    # Step 1: floors, and each cell of the node handed out; step 2: rows within bounds.
    limits = low, high, _floors(fit, out)
    slopes = slopes_at(cells, rows, fit, out)
    members = np.argsort(slot, kind="mergesort")
    member_start = np.searchsorted(slot[members], np.arange(len(above) + 1))
    for s in range(len(above)):
        here = members[member_start[s] : member_start[s + 1]]
        for k in range(out.shape[1]):
            if above[s, k] > 0:
                _share_out(slopes, here, k, above[s, k], limits, out)
        _keep_bounds(slopes, here, above[s], limits, out)
    # Step 3: single units, until no cell gains.
    for _ in range(MOST_SWEEPS):
        moved = False
        for s in range(len(above)):
            here = members[member_start[s] : member_start[s + 1]]
            for k in range(out.shape[1]):
                while above[s, k] > 0 and _improve(slopes, here, k, limits, out):
                    moved = True
        if not moved:
            break


@kernel
def _share_out(
    slopes: Slopes, here: Int64, k: int, wanted: int, limits: Limits, out: Int64
) -> None:
    """Bring a cell's sum over the children to what is wanted, unit by unit at least cost."""
    _, high, total = limits
    left = wanted
    for row in here:
        left -= out[row, k]
    while left != 0:
        # Records lack, or are too many: the row where one costs least, of those with room.
        best, cheapest = -1, np.inf
        unit = 1 if left > 0 else -1
        for row in here:
            if (unit > 0 and total[row] < high[row]) or (unit < 0 and out[row, k] > 0):
                cost = unit_cost(slopes, row, k, unit)
                if cost < cheapest:
                    best, cheapest = row, cost
        if best < 0:  # all at their bounds: put right afterwards
            best = here[0]
        move(slopes, best, k, unit, total, out)
        left -= unit


@kernel
def _keep_bounds(slopes: Slopes, here: Int64, above: Int64, limits: Limits, out: Int64) -> None:
    """Move units from child to child until the sums of all rows are within their bounds.

    A row below its least count takes from one above its own; one above its largest gives to one
    below its own. As bounds are feasible there always is one, and any cell will do.
    """
    low, high, total = limits
    for row in here:
        while total[row] < low[row] or total[row] > high[row]:
            # A row below its bounds takes a unit, one above them gives one.
            takes = total[row] < low[row]
            best, cell, cheapest = -1, -1, np.inf
            for other in here:
                free = total[other] > low[other] if takes else total[other] < high[other]
                if other == row or not free:
                    continue
                # The cell in which the unit costs least, of those that the giver holds.
                to, back = (row, other) if takes else (other, row)
                for k in range(len(above)):
                    if out[back, k] > 0:
                        cost = unit_cost(slopes, to, k, 1) + unit_cost(slopes, back, k, -1)
                        if cost < cheapest:
                            best, cell, cheapest = other, k, cost
            if best < 0:
                break
            move(slopes, row, cell, 1 if takes else -1, total, out)
            move(slopes, best, cell, -1 if takes else 1, total, out)


@kernel
def _improve(slopes: Slopes, here: Int64, k: int, limits: Limits, out: Int64) -> bool:
    """Move the unit of a cell between two children that gains most; return whether one gains."""
    low, high, total = limits
    to, back, adding, removing = -1, -1, np.inf, np.inf
    # The cheapest unit to put and the cheapest to take, of rows whose bounds have room.
    for row in here:
        if total[row] < high[row]:
            cost = unit_cost(slopes, row, k, 1)
            if cost < adding:
                to, adding = row, cost
        if out[row, k] > 0 and total[row] > low[row]:
            cost = unit_cost(slopes, row, k, -1)
            if cost < removing:
                back, removing = row, cost
    if to < 0 or back < 0 or to == back:
        return False
    # Not for a rounding error: it would come back.
    if adding + removing >= -GAIN * (abs(adding) + abs(removing)):
        return False
    move(slopes, to, k, 1, total, out)
    move(slopes, back, k, -1, total, out)
    return True


@kernel
def round_root(
    cells: tuple[Int32, Float64],
    bounds: tuple[Int64, Int64, Int64],
    wanted: int,
    fit: Float64,
    out: Int64,
) -> None:
    """Write whole counts of the root near its fit; as `round_family`, but for the sums.

    Args:
        cells: as `round_family` has them.
        bounds: int64 (rows, W): above 0 where counts may be; the least and largest sums of rows.
        wanted: the sum of all, feasible; -1 where it may be any.
        fit: float64 (rows, W): not negative, 0 where counts must be.
        out: int64 (rows, W): the counts.
    """
    free, low, high = bounds
    rows = np.array([0, len(out)]), np.arange(len(out))
    total = _floors(fit, out)
    limits, slopes = (low, high, total), slopes_at(cells, rows, fit, out)
    # Rows within bounds, then all together to their sum, at least cost.
    for row in range(len(out)):
        while total[row] < low[row]:
            _, k, _ = _cheapest(slopes, free, limits, out, 1, row)
            move(slopes, row, k, 1, total, out)
        while total[row] > high[row]:
            _, k, _ = _cheapest(slopes, free, limits, out, -1, row)
            move(slopes, row, k, -1, total, out)
    while wanted >= 0 and total.sum() != wanted:
        unit = 1 if total.sum() < wanted else -1
        row, k, _ = _cheapest(slopes, free, limits, out, unit, -1)
        move(slopes, row, k, unit, total, out)
    # Then the unit that gains most, again and again.
    for _ in range(MOST_SWEEPS * out.size):
        if not _improve_root(slopes, free, limits, wanted, out):
            break


@kernel
def _improve_root(slopes: Slopes, free: Int64, limits: Limits, wanted: int, out: Int64) -> bool:
    """Put, take or, where the sum is kept, move the unit that gains most, if one gains."""
    row, k, adding = _cheapest(slopes, free, limits, out, 1, -1)
    back, other, removing = _cheapest(slopes, free, limits, out, -1, -1)
    total = limits[2]
    # Any sum will do: whichever of the two gains more.
    if wanted < 0:
        if min(adding, removing) >= -GAIN:
            return False
        if adding < removing:
            move(slopes, row, k, 1, total, out)
        else:
            move(slopes, back, other, -1, total, out)
        return True
    if row < 0 or back < 0:
        return False
    # The sum is kept: the unit that is put changes what the other one costs.
    move(slopes, row, k, 1, total, out)
    after = unit_cost(slopes, back, other, -1)
    if adding + after >= -GAIN * (abs(adding) + abs(after)):
        move(slopes, row, k, -1, total, out)
        return False
    move(slopes, back, other, -1, total, out)
    return True


@kernel
def _floors(fit: Float64, out: Int64) -> Int64:
    """Write the floors of a fit, and return the sums of rows: int64 (rows)."""
    total = np.zeros(len(out), dtype=np.int64)
    for row in range(len(out)):
        for k in range(out.shape[1]):
            out[row, k] = np.int64(np.floor(fit[row, k] + GAIN))
            total[row] += out[row, k]
    return total


@kernel
def _cheapest(
    slopes: Slopes, free: Int64, limits: Limits, out: Int64, unit: int, only: int
) -> tuple[int, int, float]:
    """Return the row, the cell and the cost of the cheapest unit of all rows, or of one."""
    low, high, total = limits
    best, cell, cheapest = -1, -1, np.inf
    for row in range(len(out)):
        if only >= 0 and row != only:
            continue
        # Of all rows, those whose bounds leave room.
        if only < 0 and (total[row] >= high[row] if unit > 0 else total[row] <= low[row]):
            continue
        for k in range(out.shape[1]):
            if free[row, k] > 0 and (unit > 0 or out[row, k] > 0):
                cost = unit_cost(slopes, row, k, unit)
                if cost < cheapest:
                    best, cell, cheapest = row, k, cost
    return best, cell, cheapest


@kernel
def unit_cost(slopes: Slopes, row: int, k: int, unit: int) -> float:
    """Return what one record more (``unit`` 1) or less (-1) in a cell adds to the objective."""
    place, slope, near, slot, _, _ = slopes
    half = 0.0
    for marginal in range(len(place)):
        half += slope[row, place[marginal, k]]
    return float(2 * unit * half + len(place) * near[slot[row], slot[row]])


@kernel
def move(slopes: Slopes, row: int, k: int, unit: int, total: Int64, out: Int64) -> None:
    """Put a unit into a cell, or take one out, and keep slopes and sums true."""
    place, slope, near, slot, row_start, child = slopes
    c = child[row]
    for other in range(row_start[c], row_start[c + 1]):
        change = unit * near[slot[row], slot[other]]
        for marginal in range(len(place)):
            slope[other, place[marginal, k]] += change
    out[row, k] += unit
    total[row] += unit


@kernel
def slopes_at(
    cells: tuple[Int32, Float64], rows: tuple[Int64, Int64], fit: Float64, out: Int64
) -> Slopes:
    """Return the slopes of the objective at some counts."""
    (place, near), (row_start, slot) = cells, rows
    slope = np.zeros((len(out), place[-1, -1] + 1))
    sums = np.zeros_like(slope)
    child = np.zeros(len(out), dtype=np.int64)
    for c in range(len(row_start) - 1):
        first, last = row_start[c], row_start[c + 1]
        # S_B (x - y) of each row, for all marginals.
        for row in range(first, last):
            child[row] = c
            for marginal in range(len(place)):
                for k in range(out.shape[1]):
                    sums[row, place[marginal, k]] += out[row, k] - fit[row, k]
        # S_bᵀ S_b of these, summed over levels b: half the gradient.
        for row in range(first, last):
            for other in range(first, last):
                weight = near[slot[row], slot[other]]
                for at in range(slope.shape[1]):
                    slope[row, at] += weight * sums[other, at]
    return place, slope, near, slot, row_start, child
