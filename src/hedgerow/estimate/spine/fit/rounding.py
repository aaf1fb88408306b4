"""Whole counts of a family near its fit: sums and bounds exact, all marginals nearly kept.

Of whole counts x with the node's sums cell by cell those are sought that are nearest to the fit y
in all marginals at once,

    min Σ_B Σ_c (S_B (x_c - y_c))ᵀ N_c (S_B (x_c - y_c)),

over all sets B of attributes, each alike. Where there are attributes N_c is Σ_b S_bᵀ S_b, over all
levels b of the groups, each alike too. The objective of the fit itself would not do: what is
measured badly may then drift by a good part of its own standard error, as every cell's rounding
adds to it. In this one no marginal does, be it measured or not. Where there are groups alone, it is
that objective: N_c is the inverse of their covariance, and z, from which the fit is made, stands
for y.

Half the gradient at a cell is the sum of 2ᵏ numbers, one of each marginal, and one more record in a
cell changes one number in each marginal and group. So what every unit costs is known at any time:

1. from the fit on, cell by cell the best whole counts of the node's count, all other cells held: of
   one cell the objective is a sum of squares, each of one child, so that this is a water-filling;
2. units from child to child within a cell until every group is within its bounds: at least cost;
3. cell by cell again, within bounds, while a unit that moves between two children gains.

As every unit's cost holds the errors of all marginals so far, these do not add up.
"""

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int32, Int64, IntTriple
from hedgerow.estimate.families.units import cheapest_units, family_hash
from hedgerow.estimate.spine.fit.steps import ChildRows
from hedgerow.estimate.spine.matrices import invert
from hedgerow.kernels import kernel, run_range, run_size
from hedgerow.limits import LARGEST_REAL_COUNT

Metric = tuple[Int32, Float64, Float64]
"""Where each cell's sums are (marginals, W); N, child by child; and half the objective's gradient
with respect to each sum (rows, sums of all marginals), at the fit."""
Slopes = tuple[Int32, Float64, Float64, Int64, Int64, Int64]
"""Where each cell's sums are (marginals, W); half the objective's gradient with respect to each sum
(rows, sums of all marginals); N, child by child, and where each row's line of it begins; where a
child's rows begin; a row's child."""
Limits = tuple[Int64, Int64, Float64]
"""The least and largest sums of a row's cells, int64 (rows), and the sums, float64 (rows)."""

MOST_SWEEPS = 50
"""Rounds over all cells in search of better units; a few are usual."""
FARTHEST = float(LARGEST_REAL_COUNT)
"""Records: what targets are cut off at."""
GAIN = 1e-9
"""What a move must gain, of its own costs: floats cannot send it back and forth."""
NEAR = 1e-6
"""Records by which rounding may put a fit beside a whole number."""


@kernel
def round_family(
    cells: Metric,
    rows: ChildRows,
    bounds: IntTriple,
    fit: Float64,
    out: Int64,
) -> None:
    """Write whole counts of a family near its fit.

    Args:
        cells: int32 (marginals, W): where the marginals' sums of each cell are among the sums of
            all marginals; and what `metric_of` returns.
        rows: int64 (children + 1): where the rows of a child begin; and int64 (rows): the row of
            the node above of which a row is a part.
        bounds: int64 (rows of the node, W): its counts; and int64 (rows) each: the least and the
            largest sums of a row's cells, feasible together.
        fit: float64 (rows, W): of `fit_family`; not negative, 0 where ``above`` is.
        out: int64 (rows, W): the counts.
    """
    slot = rows[1]
    above, low, high = bounds
    x = fit.copy()
    limits = (low, high, x.sum(axis=1))
    slopes = _slopes_at_fit(cells, rows[0])
    members = np.argsort(slot, kind="mergesort")
    member_start = np.searchsorted(slot[members], np.arange(len(above) + 1))
    for sweep in range(MOST_SWEEPS):
        moved = sweep == 0
        for s in range(len(above)):
            here = members[member_start[s] : member_start[s + 1]]
            # Step 1, and step 3 where it gains.
            for k in range(x.shape[1]):
                if above[s, k] > 0 and (sweep == 0 or _gains(slopes, here, k, limits, x)):
                    _share_out(slopes, here, k, above[s, k], limits, x)
                    moved = True
            # Step 2: what were sums of fractions are whole now.
            if sweep == 0:
                for row in here:
                    limits[2][row] = x[row].sum()
                _keep_bounds(slopes, here, limits, x)
        if not moved:
            break
    out[:] = x


@kernel
def _share_out(
    slopes: Slopes, here: Int64, k: int, wanted: int, limits: Limits, x: Float64
) -> None:
    """Bring a cell's counts at the children to the best whole ones of their sum, all else held.

    No row gets further out of its bounds, but for what makes its counts whole, unless the sum
    leaves no choice.
    """
    low, high, total = limits
    n = len(here)
    target, spread, keys = np.empty((3, n))
    least, most, units = np.empty((3, n), dtype=np.int64)
    # What a row has beyond its least sum it may give, what it lacks to its largest it may take.
    missing, room = wanted, 0
    for i in range(n):
        row = here[i]
        given = max(total[row] - low[row], 0.0)
        taken = max(high[row] - total[row], 0.0)
        least[i] = max(np.floor(x[row, k] - given + NEAR), 0.0)
        most[i] = min(np.ceil(x[row, k] + taken - NEAR), float(wanted)) - least[i]
        missing -= least[i]
        room += min(most[i], wanted - room)
    if not 0 <= missing <= room:
        least[:] = 0
        most[:] = wanted
        missing = wanted
    # Where the objective of each child is least, counted from the least; and units nearest to it.
    for i in range(n):
        spread[i] = 1 / _curvature(slopes, here[i])
        best = x[here[i], k] - _half(slopes, here[i], k) * spread[i] - least[i]
        target[i] = min(max(best, -FARTHEST), FARTHEST)
    problem = 0.5, missing, family_hash(target, missing)
    cheapest_units(target, spread, most, problem, keys, units)
    for i in range(n):
        if least[i] + units[i] != x[here[i], k]:
            _move(slopes, here[i], k, least[i] + units[i] - x[here[i], k], total, x)
            x[here[i], k] = least[i] + units[i]


@kernel
def _keep_bounds(slopes: Slopes, here: Int64, limits: Limits, x: Float64) -> None:
    """Move units from child to child until the sums of all rows are within their bounds.

    A row below its least count takes from one above its own; one above its largest gives to one
    below its own. As bounds are feasible there always is one, and any cell will do. Of many units a
    quarter goes at once: they cost more from one to the next.
    """
    low, high, total = limits
    for row in here:
        while total[row] < low[row] or total[row] > high[row]:
            # A row below its bounds takes a unit, one above them gives one.
            takes = total[row] < low[row]
            lacking = low[row] - total[row] if takes else total[row] - high[row]
            best = -1
            cell = -1
            cheapest = np.inf
            most = 0.0
            for other in here:
                free = total[other] - low[other] if takes else high[other] - total[other]
                if other == row or free <= 0:
                    continue
                # The cell in which the unit costs least, of those that the giver holds.
                to, back = (row, other) if takes else (other, row)
                for k in range(x.shape[1]):
                    if x[back, k] > 0:
                        cost = unit_cost(slopes, to, k, 1) + unit_cost(slopes, back, k, -1)
                        if cost < cheapest:
                            best = other
                            cell = k
                            cheapest = cost
                            most = min(lacking, free, x[back, k])
            if best < 0:
                break
            units = max(most // 4, 1.0) if takes else -max(most // 4, 1.0)
            _move(slopes, row, cell, units, total, x)
            _move(slopes, best, cell, -units, total, x)


@kernel
def _gains(slopes: Slopes, here: Int64, k: int, limits: Limits, x: Float64) -> bool:
    """Return whether a unit of a cell that moves between two children lowers the objective."""
    low, high, total = limits
    adding = np.inf
    removing = np.inf
    # The cheapest unit to put and the cheapest to take, of rows whose bounds have room.
    for row in here:
        if total[row] < high[row]:
            adding = min(adding, unit_cost(slopes, row, k, 1))
        if x[row, k] > 0 and total[row] > low[row]:
            removing = min(removing, unit_cost(slopes, row, k, -1))
    # Not for a rounding error: it would come back. Of one row both together cost something.
    return adding + removing < -GAIN * (abs(adding) + abs(removing))


@kernel
def round_root(
    cells: Metric,
    bounds: IntTriple,
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
    x = fit.copy()
    total = np.zeros(len(fit))
    slopes = _slopes_at_fit(cells, np.array([0, len(out)]))
    limits = low, high, total
    for row in range(len(x)):
        # The best whole count of each cell, all others held.
        for k in range(x.shape[1]):
            best = x[row, k] - _half(slopes, row, k) / _curvature(slopes, row)
            whole = max(np.floor(best + 0.5), 0.0) if free[row, k] > 0 else 0.0
            _move(slopes, row, k, whole - x[row, k], total, x)
            x[row, k] = whole
        # Rows within bounds, then all together to their sum: of many units a quarter at once.
        total[row] = x[row].sum()
        while not low[row] <= total[row] <= high[row]:
            _put(slopes, free, limits, x, min(max(total[row], low[row]), high[row]), row)
    while wanted >= 0 and total.sum() != wanted:
        _put(slopes, free, limits, x, wanted, -1)
    # Then the unit that gains most, again and again.
    for _ in range(MOST_SWEEPS * x.size):
        if not _improve_root(slopes, free, limits, wanted, x):
            break
    out[:] = x


@kernel
def _put(slopes: Slopes, free: Int64, limits: Limits, x: Float64, wanted: float, only: int) -> None:
    """Put units, or take them away, where one costs least, towards the sum of a row or of all."""
    low, high, total = limits
    gap = wanted - (total.sum() if only < 0 else total[only])
    unit = 1 if gap > 0 else -1
    row, k, _ = _cheapest(slopes, free, limits, x, unit, only)
    most = abs(gap) if unit > 0 else min(-gap, x[row, k])
    if only < 0:
        most = min(most, high[row] - total[row] if unit > 0 else total[row] - low[row])
    # A quarter of the gap at once: each unit changes the cost of the next, and far from the sum
    # single units would take too long.
    _move(slopes, row, k, unit * max(most // 4, 1.0), total, x)


@kernel
def _improve_root(slopes: Slopes, free: Int64, limits: Limits, wanted: int, x: Float64) -> bool:
    """Put, take or, where the sum is kept, move the unit that gains most, if one gains."""
    row, k, adding = _cheapest(slopes, free, limits, x, 1, -1)
    back, other, removing = _cheapest(slopes, free, limits, x, -1, -1)
    total = limits[2]
    # Any sum will do: whichever of the two gains more.
    if wanted < 0:
        # Not for a rounding error of what one unit changes.
        if min(adding, removing) >= -GAIN * _curvature(slopes, row if adding < removing else back):
            return False
        if adding < removing:
            _move(slopes, row, k, 1, total, x)
        else:
            _move(slopes, back, other, -1, total, x)
        return True
    if row < 0 or back < 0:
        return False
    # The sum is kept: the unit that is put changes what the other one costs.
    _move(slopes, row, k, 1, total, x)
    after = unit_cost(slopes, back, other, -1)
    if adding + after >= -GAIN * (abs(adding) + abs(after)):
        _move(slopes, row, k, -1, total, x)
        return False
    _move(slopes, back, other, -1, total, x)
    return True


@kernel
def _cheapest(
    slopes: Slopes, free: Int64, limits: Limits, x: Float64, unit: int, only: int
) -> tuple[int, int, float]:
    """Return the row, the cell and the cost of the cheapest unit of all rows, or of one."""
    low, high, total = limits
    best = -1
    cell = -1
    cheapest = np.inf
    for row in range(len(x)):
        if only >= 0 and row != only:
            continue
        # Of all rows, those whose bounds leave room.
        if only < 0 and (total[row] >= high[row] if unit > 0 else total[row] <= low[row]):
            continue
        for k in range(x.shape[1]):
            if free[row, k] > 0 and (unit > 0 or x[row, k] > 0):
                cost = unit_cost(slopes, row, k, unit)
                if cost < cheapest:
                    best = row
                    cell = k
                    cheapest = cost
    return best, cell, cheapest


@kernel
def _half(slopes: Slopes, row: int, k: int) -> float:
    """Return half the gradient of the objective at a cell."""
    half = 0.0
    # Kept sums of each marginal: a gradient takes 2ᵏ numbers, and no pass over cells.
    for marginal in range(len(slopes[0])):
        half += slopes[1][row, slopes[0][marginal, k]]
    return half


@kernel
def unit_cost(slopes: Slopes, row: int, k: int, unit: int) -> float:
    """Return what one record more (``unit`` 1) or less (-1) in a cell adds to the objective."""
    # Exact, as the objective is quadratic.
    return float(2 * unit * _half(slopes, row, k) + _curvature(slopes, row))


@kernel
def _curvature(slopes: Slopes, row: int) -> float:
    """Return half the second derivative of the objective in a cell of a row."""
    place, _, near, line, row_start, child = slopes
    # A cell is in one sum of each marginal, so the diagonal of N counts once for each.
    return float(len(place) * near[line[row] + row - row_start[child[row]]])


@kernel
def _move(slopes: Slopes, row: int, k: int, units: float, total: Float64, x: Float64) -> None:
    """Put units into a cell, or take some out, and keep slopes and sums true."""
    place, slope, near, line, row_start, child = slopes
    first = row_start[child[row]]
    last = row_start[child[row] + 1]
    # N couples the rows of one child alone: other slopes stay as they are.
    for other in range(first, last):
        change = units * near[line[row] + other - first]
        for marginal in range(len(place)):
            slope[other, place[marginal, k]] += change
    x[row, k] += units
    total[row] += units


@kernel
def _slopes_at_fit(cells: Metric, row_start: Int64) -> Slopes:
    """Return the slopes of the objective at the fit."""
    place, near, slope = cells
    begin = 0
    line, child = np.empty((2, row_start[-1]), dtype=np.int64)
    for c in range(len(row_start) - 1):
        for row in run_range(row_start, c):
            child[row] = c
            line[row] = begin
            begin += run_size(row_start, c)
    # The slopes of the metric serve each call, so moves go into a copy.
    return place, slope.copy(), near, line, row_start, child


@kernel
def metric_of(
    near: tuple[Float64, Int32],
    rows: ChildRows,
    given: FloatPair,
    fit: Float64,
    sums: int,
) -> FloatPair:
    """Return N of each child, one behind the other, and half the objective's gradient at the fit.

    Args:
        near: float64 (groups, groups): N of all groups; or nothing, where it is C⁻¹ and the
            objective that of the fit. And int32 (rows of the node): their groups.
        rows: as `round_family` has them.
        given: as `fit_family` has it, of one cell where ``near`` is nothing.
        fit: float64 (rows, W).
        sums: of all marginals.
    """
    row_start, slot = rows
    weights, group = near
    begin = 0
    metric = np.empty((np.diff(row_start) ** 2).sum())
    slope = np.zeros((len(fit), sums))
    for c in range(len(row_start) - 1):
        first = row_start[c]
        m = run_size(row_start, c)
        own = metric[begin : begin + m * m].reshape(m, m)
        # Groups alone: the metric of the fit itself, inverted once a child.
        if len(weights) == 0:
            own[:] = given[1][begin : begin + m * m].reshape(m, m)
            invert(own)
        for i in range(m):
            for j in range(m):
                if len(weights) == 0:
                    # Bounds hold the fit off its own optimum, so the gradient there is not 0.
                    gap = fit[first + j, 0] - given[0][first + j, 0]
                    slope[first + i, 0] += own[i, j] * gap
                else:
                    own[i, j] = weights[group[slot[first + i]], group[slot[first + j]]]
        begin += m * m
    return metric, slope
