"""One block of a cuboid: whole counts with settled row and column sums, nearest to estimates.

The cells below a pair of parents form a block, z (rows, columns), whose row sums R and column sums
C are settled, whole, and of one total. The problem is one of transport,

    minimise Σ (y - z)² / (u_i v_j)  over whole y >= 0 with row sums R and column sums C.

1. *Fill.* Without the whole numbers y = max(0, t), t = z + u_i v_j (a_i + b_j). The multipliers
   a, b begin where nothing is cut off at 0, in closed form; then rows and columns by turns are
   filled up to their sums, by Newton's method (a convex, piecewise linear equation each), until
   every column is within `NEAR` of its sum, rows being exact; or after `SWEEPS` turns.
2. *Round.* With the multipliers in it, t stands for z: for all y with these margins the objectives
   differ by a constant. Each row is rounded, and moved by units of least marginal cost to its sum.
3. *Move.* While column j holds too much, some row i has y_ij > 0 and some column k holds too
   little, as totals are equal. Of all such i and k the unit moves that costs least,

       dec(i, j) + inc(i, k),  dec = (t - y + 1/2) / (u v),  inc = (y - t + 1/2) / (u v).

   Rows stay exact, y stays non-negative, and the columns' distance from their sums falls with each
   move. So the margins are exact whatever floats do. Shortest augmenting paths would find the
   integer optimum here; moves of two hops come within 0.02 records² a cell of it.

Of units that cost the same, the one of the smallest hash of the noisy counts moves
(`hedgerow.estimate.families.units`).
"""

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int64, IntPair
from hedgerow.estimate.families.units import (
    FIRST_MIX,
    NEWTON,
    SECOND_MIX,
    cheapest_units,
    family_hash,
    fill,
)
from hedgerow.kernels import inner_kernel, kernel

NEAR = 0.3
"""Records by which a column may miss its sum before rounding, which costs as much."""

SWEEPS = 60
"""Turns of rows and columns at most; what is left by then, the moves settle."""

EXACT = 1e-9
"""By how much of its sum a row that is filled may miss it."""

FEW = 8
"""Units that a rounded row is off, up to which they are moved one by one."""

FARTHEST = 2.0**40
"""Records; `cheapest_units` takes no more, and beyond it does not end where sums cancel out."""

Matrix = Float64
Weights = FloatPair
Margins = IntPair
Scratch = tuple[Float64, Float64, Float64, Float64, Int64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def scratch_of(rows: int, columns: int) -> Scratch:
    """Return room for the vectors of blocks of at most so many rows and columns."""
    # Once for all blocks of a range: of small ones it would take longer than settling them.
    a = np.empty(rows)
    b = np.empty(columns)
    filled = np.empty(columns)
    slope = np.empty(columns)
    return a, b, filled, slope, np.empty(rows, dtype=np.int64)


@kernel
def settle_block(t: Matrix, weights: Weights, margins: Margins, scratch: Scratch, y: Int64) -> None:
    """Write the counts of a block.

    Args:
        t: float64 (rows, columns): z, which is overwritten by t.
        weights: u, float64 (rows), and v, float64 (columns), above 0.
        margins: R, int64 (rows), and C, int64 (columns), above 0 and of one total.
        scratch: of `scratch_of`.
        y: int64 (rows, columns): the counts.
    """
    rows, columns = margins
    m = len(rows)
    n = len(columns)
    # One row or column is what the other margin says.
    if m == 1 or n == 1:
        for i in range(m):
            for j in range(n):
                y[i, j] = columns[j] if m == 1 else rows[i]
        return
    # Steps 1 to 3: whatever floats do in the first, the last makes margins exact.
    hashed = family_hash(t[0], rows.sum())
    _fill(t, weights, margins, scratch)
    _round_rows(t, weights[1], rows, hashed, scratch[2], y)
    _move(t, weights, columns, hashed, scratch, y)


@inner_kernel
def _fill(t: Matrix, weights: Weights, margins: Margins, scratch: Scratch) -> None:
    """Do step 1; a stands for u_i a_i and b for v_j b_j."""
    u, v = weights
    a, b, filled, slope = scratch[:4]
    m, n = t.shape
    # The closed form is the optimum unless it is below 0 somewhere.
    if _without_clipping(t, weights, margins, a, b) < 0.0:
        for _ in range(SWEEPS):
            _fill_rows(t, weights, margins[0], a, b)
            # Columns that were near before they were filled are left, and rows are exact.
            if _fill_columns(t, weights, margins[1], a, b, filled[:n], slope[:n]) <= NEAR:
                break
        else:
            _fill_rows(t, weights, margins[0], a, b)
    # t = z + u v (a + b): v_j times what stands for u a, u_i times what stands for v b.
    for i in range(m):
        for j in range(n):
            t[i, j] += v[j] * a[i] + u[i] * b[j]
            if np.isnan(t[i, j]):  # weights so uneven that multipliers overflowed
                t[i, j] = 0.0
            t[i, j] = min(max(t[i, j], -FARTHEST), FARTHEST)


@inner_kernel
def _without_clipping(
    z: Matrix, weights: Weights, margins: Margins, a: Float64, b: Float64
) -> float:
    """Write the multipliers of the problem without y >= 0; return its smallest cell."""
    u, v = weights
    rows, columns = margins
    m, n = z.shape
    # What rows and columns lack: R - Σ z and C - Σ z.
    for j in range(n):
        b[j] = columns[j]
    for i in range(m):
        a[i] = rows[i]
        for j in range(n):
            a[i] -= z[i, j]
            b[j] -= z[i, j]
    whole_u = 0.0
    whole_v = 0.0
    gap = 0.0
    for i in range(m):
        whole_u += u[i]
        gap += a[i]
    for j in range(n):
        whole_v += v[j]
    # u a is what a row lacks over Σ v, and v b what a column lacks, less its part v / Σ v of
    # what all rows lack, over Σ u: then rows and columns have their sums.
    for i in range(m):
        a[i] /= whole_v
    for j in range(n):
        b[j] = (b[j] - gap * (v[j] / whole_v)) / whole_u
    # The smallest cell: from 0 on, nothing is cut off.
    least = np.inf
    for i in range(m):
        for j in range(n):
            least = min(least, z[i, j] + v[j] * a[i] + u[i] * b[j])
    return least


@inner_kernel
def _fill_rows(z: Matrix, weights: Weights, rows: Int64, a: Float64, b: Float64) -> None:
    """Fill each row up to its sum."""
    u, v = weights
    for i in range(len(z)):
        # From the level of the last sweep on, which later sweeps hardly move.
        a[i] = fill(z[i], (u[i], b), v, float(rows[i]), EXACT * rows[i], a[i])


@inner_kernel
def _fill_columns(
    z: Matrix,
    weights: Weights,
    columns: Int64,
    a: Float64,
    b: Float64,
    filled: Float64,
    slope: Float64,
) -> float:
    """Fill all columns together; return how far the farthest one was off before.

    This is `hedgerow.estimate.families.units.fill` of every column, but step by step of all of
    them: a column by itself lies across memory, and would take several times as long.
    """
    before = np.inf
    for step in range(NEWTON):
        worst = _survey_columns(z, weights, columns, (a, b), filled, slope)
        if step == 0:
            before = worst
        if worst <= NEAR * (1.0 if step == 0 else 0.01):
            break
        # A step of Newton in each column; one with nothing above 0 goes to where one cell alone
        # holds its sum.
        for j in range(z.shape[1]):
            if slope[j] > 0.0:
                b[j] -= (filled[j] - columns[j]) / slope[j]
                continue
            b[j] = np.inf
            for i in range(z.shape[0]):
                least = (columns[j] - z[i, j] - weights[1][j] * a[i]) / weights[0][i]
                b[j] = min(b[j], least)
    return before


@inner_kernel
def _survey_columns(
    z: Matrix,
    weights: Weights,
    columns: Int64,
    multipliers: Weights,
    filled: Float64,
    slope: Float64,
) -> float:
    """Write each column's sum and its slope in b; return how far the farthest one is off."""
    u, v = weights
    a, b = multipliers
    m, n = z.shape
    for j in range(n):
        filled[j] = 0.0
        slope[j] = 0.0
    for i in range(m):
        left, part = a[i], u[i]
        for j in range(n):  # element by element, so that the compiler makes vectors of it
            x = z[i, j] + v[j] * left + part * b[j]
            filled[j] += max(x, 0.0)
            slope[j] += part if x > 0.0 else 0.0
    worst = 0.0
    for j in range(n):
        worst = max(worst, abs(filled[j] - columns[j]))
    return worst


@kernel
def _round_rows(t: Matrix, v: Float64, rows: Int64, hashed: int, keys: Float64, y: Int64) -> None:
    """Do step 2: round each row to whole counts of its sum."""
    m, n = t.shape
    for i in range(m):
        wanted = rows[i]
        missing = wanted
        # The nearest whole counts, from 0 to the sum.
        for j in range(n):
            whole = np.floor(t[i, j] + 0.5)
            y[i, j] = int(min(max(whole, 0.0), float(wanted)))
            missing -= y[i, j]
        if abs(missing) > FEW:
            problem = (0.5, wanted, family_hash(t[i], wanted))
            cheapest_units(t[i], v, None, problem, keys, y[i])
            continue
        # Unit by unit: one more costs (y - t + 1/2) / v, one less (t - y + 1/2) / v; u is the
        # row's, and the same for all.
        step = 1 if missing > 0 else -1
        for _ in range(abs(missing)):
            at = -1
            least = np.inf
            first = np.uint64(0)
            for j in range(n):
                if step < 0 and y[i, j] == 0:
                    continue
                cost = (step * (y[i, j] - t[i, j]) + 0.5) / v[j]
                if cost <= least:
                    mixed = _mixed(hashed, i, j)
                    if cost < least or mixed < first:
                        at = j
                        least = cost
                        first = mixed
            y[i, at] += step


@kernel
def _move(
    t: Matrix,
    weights: Weights,
    columns: Int64,
    hashed: int,
    scratch: Scratch,
    y: Int64,
) -> None:
    """Do step 3: move units along rows, from columns over their sums to those under them."""
    u, v = weights
    m, n = t.shape
    cheapest = scratch[0]
    over = scratch[1]
    best = scratch[4]
    # Totals are equal: if no column is over its sum, none is under it.
    if not _write_excess(columns, y, over):
        return
    # Of each row the column under its sum that takes a unit at the least cost.
    for i in range(m):
        best[i], cheapest[i] = _cheapest_place(t[i], u[i], v, over, (hashed, i), y[i])
    for j in range(n):
        while over[j] > 0.0:
            # dec(i, j) + inc(i, k), over all rows. Of many units a quarter goes at once: they cost
            # more from one to the next.
            at = _cheapest_row(t, weights, j, cheapest, hashed, y)
            k = best[at]
            units = int(max(1.0, min(over[j], -over[k], float(y[at, j])) // 4))
            y[at, j] -= units
            y[at, k] += units
            over[j] -= units
            over[k] += units
            # Rows that this changed, or that were to give to a column that is full, look again.
            for i in range(m):
                if i == at or (over[k] == 0.0 and best[i] == k):
                    place = _cheapest_place(t[i], u[i], v, over, (hashed, i), y[i])
                    best[i], cheapest[i] = place


@inner_kernel
def _write_excess(columns: Int64, y: Int64, over: Float64) -> bool:
    """Write how much each column holds beyond its sum; return whether any does."""
    worst = 0.0
    for j in range(len(columns)):
        over[j] = -float(columns[j])
    # Row by row, as counts lie in memory.
    for i in range(len(y)):
        for j in range(len(columns)):
            over[j] += y[i, j]
    for j in range(len(columns)):
        worst = max(worst, over[j])
    return worst > 0.0


@inner_kernel
def _cheapest_row(
    t: Matrix,
    weights: Weights,
    j: int,
    cheapest: Float64,
    hashed: int,
    y: Int64,
) -> int:
    """Return the row that gives a unit of column j away at the least cost."""
    at = -1
    least = np.inf
    first = np.uint64(0)
    for i in range(len(t)):
        if y[i, j] == 0:
            continue
        # Half of what one unit less adds to (y - t)² / (u v), and what its taker then costs.
        cost = (t[i, j] - y[i, j] + 0.5) / (weights[0][i] * weights[1][j]) + cheapest[i]
        # A row must be named even where weights are so far apart that every cost overflows. Equal
        # costs go by hash, so that no row is favoured.
        if cost <= least or at < 0:
            mixed = _mixed(hashed, i, len(y[i]) + j)
            if cost < least or at < 0 or mixed < first:
                at = i
                least = cost
                first = mixed
    return at


@inner_kernel
def _cheapest_place(
    t: Float64, u: float, v: Float64, over: Float64, place: tuple[int, int], y: Int64
) -> tuple[int, float]:
    """Return the column that takes a unit of a row at the least cost, of those that lack one."""
    at = 0
    least = np.inf
    first = np.uint64(0)
    for k in range(len(t)):
        if over[k] < 0.0:
            # Half of what one unit more adds to (y - t)² / (u v); equal costs go by hash.
            cost = (y[k] - t[k] + 0.5) / (u * v[k])
            if cost <= least:
                mixed = _mixed(place[0], place[1], k)
                if cost < least or mixed < first:
                    at = k
                    least = cost
                    first = mixed
    return at, least


@kernel
def _mixed(hashed: int, i: int, j: int) -> np.uint64:
    """Return a number that is as good as random for each cell of each block."""
    # SplitMix64, which takes i at first and j half-way: neighbours get unlike numbers.
    state = np.uint64(hashed) + GOLDEN * np.uint64(i + 1)
    state = (state ^ (state >> np.uint64(30))) * FIRST_MIX + GOLDEN * np.uint64(j + 1)
    state = (state ^ (state >> np.uint64(27))) * SECOND_MIX
    return np.uint64(state ^ (state >> np.uint64(31)))
