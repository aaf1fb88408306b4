"""Whole counts of a family near its fit: sums and bounds exact, marginals nearly kept.

What is minimised is the fit's own objective, Σ_c (x_c - z_c)ᵀ P_c (x_c - z_c), P_c = C_c⁻¹, over
whole counts. With P_c = Σ_B c_B ⊗ S_BᵀS_B (`Residuals.weights`; c_B a matrix over the groups), its
half gradient at a cell is the sum of 2ᵏ numbers, one of each marginal, and one more record in a
cell changes one number in each marginal and group. So the cost of every unit is known at any time:

1. floors of the fit, and for each cell what is left of the node's count, unit by unit, to the
   child where it costs least;
2. units from child to child within a cell until every group is within its bounds: at least cost;
3. likewise while it lowers the objective, cell by cell.

As every unit's cost holds the errors of all marginals so far, these do not add up: those measured
well weigh most.
"""

from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Int32, Int64
from hedgerow.estimate.cube.shape import Floats, Ints
from hedgerow.estimate.spine.marginal_fit import invert
from hedgerow.kernels import kernel

Slopes: TypeAlias = tuple[Int32, Floats, Floats, Floats, Ints, Ints, Ints]
"""Where each cell's sums are (marginals, W); half the objective's gradient with respect to each sum
(rows, sums of all marginals); c_B, child by child, (marginals, its rows, its rows); what one record
in a cell costs by itself (rows); where a child's rows begin; where its c_B begin; a row's child."""
Limits: TypeAlias = tuple[Int64, Int64, Int64]
"""The least and largest sums of a row's cells, and the sums: int64 (rows)."""

MOST_SWEEPS = 50
"""Rounds over all cells in search of better units; a few are usual."""
GAIN = 1e-9
"""What a move must gain, of the scale of its own cost: floats cannot send it back and forth."""


@kernel
def round_family(
    cells: tuple[Int32, Floats],
    rows: tuple[Ints, Ints],
    given: tuple[Floats, Floats],
    bounds: tuple[Int64, Int64, Int64],
    fit: Floats,
    out: Int64,
) -> None:
    """Write whole counts of a family near its fit.

    Args:
        cells: int32 (marginals, W): where the marginals' sums of each cell are among the sums of
            all marginals; and float64 (marginals, residuals): `Residuals.weights`.
        rows: int64 (children + 1): where the rows of a child begin; and int64 (rows): the row of
            the node above of which a row is a part.
        given: float64 (rows, W): estimates of cells, records; and their covariance as `fit_family`
            has it.
        bounds: int64 (rows of the node, W): its counts; and int64 (rows) each: the least and the
            largest sums of a row's cells, feasible together.
        fit: float64 (rows, W): of `fit_family`.
        out: int64 (rows, W): the counts.
    """
    place, weights = cells
    row_start, slot = rows
    above, low, high = bounds
    limits = low, high, np.zeros(len(out), dtype=np.int64)
    for row in range(len(out)):
        for k in range(out.shape[1]):
            floor = np.int64(np.floor(fit[row, k] + 1e-9)) if above[slot[row], k] > 0 else 0
            out[row, k] = max(floor, 0)
            limits[2][row] += out[row, k]
    slopes = slopes_at(place, weights, row_start, given, out)
    members, member_start = _rows_of_slots(slot, len(above))
    for s in range(len(above)):
        here = members[member_start[s] : member_start[s + 1]]
        for k in range(out.shape[1]):
            if above[s, k] > 0:
                _share_out(slopes, here, k, above[s, k], limits, out)
        _keep_bounds(slopes, here, above[s], limits, out)
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
    slopes: Slopes, here: Ints, k: int, wanted: int, limits: Limits, out: Int64
) -> None:
    """Bring a cell's sum over the children to what is wanted, unit by unit at least cost."""
    _, high, total = limits
    left = wanted
    for row in here:
        left -= out[row, k]
    while left != 0:
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
def _keep_bounds(slopes: Slopes, here: Ints, above: Int64, limits: Limits, out: Int64) -> None:
    """Move units from child to child until the sums of all rows are within their bounds.

    A row below its least count takes from one above its own; one above its largest gives to one
    below its own. As bounds are feasible there always is one, and any cell will do.
    """
    low, high, total = limits
    for row in here:
        while total[row] < low[row] or total[row] > high[row]:
            takes = total[row] < low[row]
            best, cell, cheapest = -1, -1, np.inf
            for other in here:
                free = total[other] > low[other] if takes else total[other] < high[other]
                if other == row or not free:
                    continue
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
def _improve(slopes: Slopes, here: Ints, k: int, limits: Limits, out: Int64) -> bool:
    """Move the unit of a cell between two children that gains most; return whether one gains."""
    low, high, total = limits
    to, back, adding, removing = -1, -1, np.inf, np.inf
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
    if adding + removing >= -GAIN * (abs(adding) + abs(removing)):
        return False
    move(slopes, to, k, 1, total, out)
    move(slopes, back, k, -1, total, out)
    return True


@kernel
def round_root(
    cells: tuple[Int32, Floats],
    row_start: Ints,
    given: tuple[Floats, Floats],
    bounds: tuple[Int64, Int64, Int64],
    wanted: int,
    fit: Floats,
    out: Int64,
) -> None:
    """Write whole counts of the root near its fit; as `round_family`, but for the sums.

    Args:
        cells: as `round_family` has them.
        row_start: int64 (2): 0 and the number of rows.
        given: as `round_family` has them.
        bounds: int64 (rows, W): above 0 where counts may be; the least and largest sums of rows.
        wanted: the sum of all, feasible; -1 where it may be any.
        fit: float64 (rows, W).
        out: int64 (rows, W): the counts.
    """
    free, low, high = bounds
    limits = low, high, np.zeros(len(out), dtype=np.int64)
    total = limits[2]
    for row in range(len(out)):
        for k in range(out.shape[1]):
            out[row, k] = max(np.int64(np.floor(fit[row, k] + 1e-9)), 0) if free[row, k] > 0 else 0
            total[row] += out[row, k]
    slopes = slopes_at(cells[0], cells[1], row_start, given, out)
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
    for _ in range(MOST_SWEEPS * out.size):
        row, k, adding = _cheapest(slopes, free, limits, out, 1, -1)
        back, other, removing = _cheapest(slopes, free, limits, out, -1, -1)
        if wanted < 0 and min(adding, removing) < 0:
            if adding < removing:
                move(slopes, row, k, 1, total, out)
            else:
                move(slopes, back, other, -1, total, out)
            continue
        if wanted < 0 or row < 0 or back < 0:
            break
        before = adding
        move(slopes, row, k, 1, total, out)
        after = unit_cost(slopes, back, other, -1)
        if before + after >= -GAIN * (abs(before) + abs(after)):
            move(slopes, row, k, -1, total, out)
            break
        move(slopes, back, other, -1, total, out)


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
    place, slope, _, own, _, _, _ = slopes
    half = 0.0
    for marginal in range(len(place)):
        half += slope[row, place[marginal, k]]
    return 2 * unit * half + own[row]


@kernel
def move(slopes: Slopes, row: int, k: int, unit: int, total: Int64, out: Int64) -> None:
    """Put a unit into a cell, or take one out, and keep slopes and sums true."""
    place, slope, mixed, _, row_start, begin, child = slopes
    c = child[row]
    first, m = row_start[c], row_start[c + 1] - row_start[c]
    for marginal in range(len(place)):
        at = begin[c] + marginal * m * m + row - first
        for i in range(m):
            slope[first + i, place[marginal, k]] += unit * mixed[at + i * m]
    out[row, k] += unit
    total[row] += unit


@kernel
def slopes_at(
    place: Int32, weights: Floats, row_start: Ints, given: tuple[Floats, Floats], out: Int64
) -> Slopes:
    """Return the slopes of the objective at some counts."""
    z, covariance = given
    children, marginals = len(row_start) - 1, len(place)
    mixed = np.empty_like(covariance)
    slope = np.zeros((len(z), place.max() + 1))
    own, child = np.zeros(len(z)), np.zeros(len(z), dtype=np.int64)
    begin = np.zeros(children + 1, dtype=np.int64)
    sums = np.zeros_like(slope)
    for c in range(children):
        first, last = row_start[c], row_start[c + 1]
        m = last - first
        begin[c + 1] = begin[c] + marginals * m * m
        block = mixed[begin[c] : begin[c + 1]].reshape(marginals, m, m)
        _mix(weights, covariance[begin[c] : begin[c + 1]].reshape(marginals, m, m), block)
        for row in range(first, last):
            child[row] = c
            for marginal in range(marginals):
                own[row] += block[marginal, row - first, row - first]
                for k in range(out.shape[1]):
                    sums[row, place[marginal, k]] += out[row, k] - z[row, k]
        for i in range(m):
            for j in range(m):
                for marginal in range(marginals):
                    end = place[marginal, -1] + 1
                    for at in range(place[marginal, 0], end):
                        slope[first + i, at] += block[marginal, i, j] * sums[first + j, at]
    return place, slope, mixed, own, row_start, begin, child


@kernel
def _mix(weights: Floats, covariance: Floats, mixed: Floats) -> None:
    """Write c_B = Σ_R weight(B, R) C_R⁻¹ of one child: (marginals, m, m)."""
    mixed[:] = 0.0
    for r in range(len(covariance)):
        inverse = covariance[r].copy()
        invert(inverse)
        for marginal in range(len(mixed)):
            mixed[marginal] += weights[marginal, r] * inverse


@kernel
def _rows_of_slots(slot: Ints, slots: int) -> tuple[Ints, Ints]:
    """Return the rows of each row above, one behind the other, and where these runs begin."""
    start = np.zeros(slots + 1, dtype=np.int64)
    for s in slot:
        start[s + 1] += 1
    start = np.cumsum(start)
    at, members = start.copy(), np.empty(len(slot), dtype=np.int64)
    for row in range(len(slot)):
        members[at[slot[row]]] = row
        at[slot[row]] += 1
    return members, start
