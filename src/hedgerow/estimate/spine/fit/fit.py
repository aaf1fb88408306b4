"""The counts of a family that fit all its marginals best, before they are made whole.

The children c of a node have estimates z_c (groups × cells) from their own subtrees, of covariance
C_c: in the coordinates of `Residuals` a small matrix over the child's groups for each residual.
Given the node's counts n, find

    min Σ_c (x_c - z_c)ᵀ C_c⁻¹ (x_c - z_c),   x ≥ 0, 0 where n is 0,   Σ_c x_c = n cell by cell,
                                              low_cg ≤ Σ_k x_cgk ≤ high_cg.

*Method.* Alternating directions of multipliers: x keeps the sums, its copy y the rest, u is what
their difference has summed up to. With D_c = ρC_c (I + ρC_c)⁻¹,

    x_c = z_c + D_c (y_c - u_c - z_c + λ),   Σ_c x_c = n,   λ = (Σ_c D_c)⁻¹ (n - Σ_c …),
    y_c = the nearest point to x_c + u_c that is not negative and within bounds,
    u_c ← u_c + x_c - y_c.

The first is done residual by residual, without a matrix larger than the groups; the second is a
water-filling, row by row (`hedgerow.estimate.spine.fit.steps`). Steps are over-relaxed, and ρ
is balanced after 8 rounds, then after twice as many each time.

*Where it begins.* At the conditional estimate (x in the limit ρ → 0), which is the solution if it
is within all bounds. Else projected cell by cell as if
cells were independent with the variance of the finest residual, and at the multipliers of that
projection; where only the detail is measured well, that is the solution.

*When it stops.* When |x - y| and what a round moves y are both below the tolerance, the latter
times max(1, ρ · the largest variance): a small step along what is measured badly may have a long
way to go. And when the sums of rows and of children are near: these may be measured far better.

Source: Boyd et al. (2011), Distributed optimization and statistical learning via the alternating
direction method of multipliers, sections 3.3, 3.4 and 5.2.
"""

from math import sqrt

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int64
from hedgerow.estimate.cube.residuals import turn_rows
from hedgerow.estimate.families.units import level_of
from hedgerow.estimate.spine.fit.steps import (
    ChildRows,
    Runs,
    dampen,
    invert_sums,
    keep_sums,
    keep_total,
    project_row,
    variances_of,
)
from hedgerow.kernels import kernel, run_range

RELAXED = 1.6
"""Over-relaxation of x, between 1 (none) and 2."""
CHECK = 4
"""Rounds from one look at whether it may stop to the next."""
FIRST_BALANCE = 8
"""Rounds before ρ is balanced first, a multiple of `CHECK`; then after twice as many each time."""
WITHIN = 1e-9
"""Records by which rounding may put an estimate outside its bounds."""
SUM_TOLERANCE = 4.0
"""How near the sums of a row and of a child must come, in tolerances of a cell."""

Bounds = tuple[Float64, Float64, Float64, tuple[bool, float]]
"""See `fit_family`."""


@kernel
def fit_family(
    cells: tuple[Int64, Runs],
    rows: ChildRows,
    given: FloatPair,
    bounds: Bounds,
    stop: tuple[float, int],
    y: Float64,
) -> int:
    """Write the fitted counts of a family, and return the number of rounds.

    Args:
        cells: the sizes of the attributes; and the runs of coordinates of one residual.
        rows: int64 (children + 1): where the rows of a child begin; and int64 (rows): the row of
            the node above of which a row is a part.
        given: float64 (rows, W): estimates in coordinates, records; and for each child float64
            (residuals, its rows, its rows), one behind the other: their covariance, records².
        bounds: float64 (rows of the node, W): its counts; float64 (rows) each: the least and
            largest sums of a row's cells; and (True, 0.0). Or, for a root, as one child of a node
            whose counts are not known but for being 0: (False, the sum of all, nan if unknown).
        stop: the tolerance, records, and the largest number of rounds.
        y: float64 (rows, W): out, cells; not negative and within bounds to rounding error, sums
            kept to the tolerance.
    """
    # In coordinates the sums Σ_c x_c = n are residual by residual.
    extents = cells[0]
    counts = bounds[0].copy()
    turn_rows(counts, extents)
    residuals = 1 << len(extents)
    joint = np.empty((residuals, len(counts), len(counts)))
    variances = variances_of(given[1], rows[0], residuals)
    largest = variances.max()
    damped = given[1].copy()
    # Between the best and the worst variance, so that neither step is idle.
    rho = 1 / sqrt(variances.min() * largest)
    # Where it begins: D is C, the limit of small ρ, and q is 0.
    x = np.zeros_like(y)
    q = np.zeros_like(y)
    u = np.zeros_like(y)
    invert_sums(damped, rows, joint)
    _keep(cells, rows, given[0], (damped, joint), (counts, bounds[3]), q, x)
    if _is_within(rows[1], bounds, x, y):
        return 0
    _begin(rows, variances[:, -1], bounds, rho, x, y, u)

    balance = FIRST_BALANCE
    # From here on D = ρC (I + ρC)⁻¹.
    dampen(given[1], rows[0], residuals, rho, damped)
    invert_sums(damped, rows, joint)
    for number in range(1, stop[1] + 1):
        # x keeps the sums, nearest to z and to y - u; y and u follow from it.
        np.subtract(y, u, q)
        turn_rows(q, extents)
        np.subtract(q, given[0], q)
        _keep(cells, rows, given[0], (damped, joint), (counts, bounds[3]), q, x)
        if number % CHECK:
            _project(rows[1], bounds, x, q, y, u)
            continue
        before = y.copy()
        _project(rows[1], bounds, x, q, y, u)
        # Near, and at rest: a step along what is measured worst counts for more.
        apart, moved, factor = _progress(rows[0], x, y, before, u)
        if apart <= stop[0] and moved * max(1.0, rho * largest) <= stop[0]:
            return number
        if number == balance:
            balance, rho = 2 * balance, rho * factor
            # u is a multiplier over ρ.
            u /= factor
            dampen(given[1], rows[0], residuals, rho, damped)
            invert_sums(damped, rows, joint)
    return stop[1]


@kernel
def _keep(
    cells: tuple[Int64, Runs],
    rows: ChildRows,
    z: Float64,
    matrices: FloatPair,
    targets: tuple[Float64, tuple[bool, float]],
    q: Float64,
    x: Float64,
) -> None:
    """Write the x nearest to the estimates and to y - u that keeps the sums, as cells."""
    if targets[1][0]:
        keep_sums(cells[1], rows, z, matrices, targets[0], q, x)
    else:
        keep_total(cells[1], z, matrices[0], targets[1][1], q, x)
    # Residuals do not mix in coordinates, where sums are kept; bounds are those of cells.
    turn_rows(x, cells[0])


@kernel
def _project(slot: Int64, bounds: Bounds, x: Float64, q: Float64, y: Float64, u: Float64) -> None:
    """Write y and u of the next round; q is used up."""
    above, low, high, _ = bounds
    for row in range(len(x)):
        for k in range(x.shape[1]):
            # Over-relaxed, which saves rounds; u is what the projection then takes off.
            q[row, k] = RELAXED * x[row, k] + (1 - RELAXED) * y[row, k] + u[row, k]
        project_row(row, (above, slot[row]), (low[row], high[row]), q, y)
        for k in range(x.shape[1]):
            u[row, k] = q[row, k] - y[row, k]


@kernel
def _is_within(slot: Int64, bounds: Bounds, x: Float64, y: Float64) -> bool:
    """Write y; return whether the conditional estimate is within all bounds, so that it is it."""
    above, low, high, _ = bounds
    for row in range(len(x)):
        project_row(row, (above, slot[row]), (low[row], high[row]), x, y)
        for k in range(x.shape[1]):
            # One cell beyond its bounds is enough: rounds are needed.
            if abs(x[row, k] - y[row, k]) > WITHIN:
                return False
    return True


@kernel
def _begin(
    rows: ChildRows,
    variance: Float64,
    bounds: Bounds,
    rho: float,
    x: Float64,
    y: Float64,
    u: Float64,
) -> None:
    """Write y and u from the conditional estimate x, as if cells were independent.

    With v the variances of the finest residual, each cell's counts become max(0, x + va), a such
    that they sum to the node's; ρu is then min(0, x + va)/v, and x/v where n is 0.
    """
    slot = rows[1]
    above, low, high, (is_family, _) = bounds
    for s in range(len(above)):
        here = np.flatnonzero(slot == s)
        for k in range(x.shape[1]):
            if is_family and above[s, k] > 0:
                # a of the cell: max(0, x + va) sums to n.
                shift = level_of(x[here, k], variance[here], above[s, k])
                for child in here:
                    x[child, k] += variance[child] * shift
    for row in range(len(x)):
        project_row(row, (above, slot[row]), (low[row], high[row]), x, y)
        for k in range(x.shape[1]):
            # ρu is the multiplier of x >= 0 there, in units of the finest residual.
            pull = min(0.0, x[row, k]) if above[slot[row], k] > 0 else x[row, k]
            u[row, k] = pull / (rho * variance[row])


@kernel
def _progress(
    row_start: Int64, x: Float64, y: Float64, before: Float64, u: Float64
) -> tuple[float, float, float]:
    """Return |x - y|, how far y has moved, and by what to multiply ρ to bring them into balance."""
    apart, moved = 0.0, 0.0
    gaps = 0.0
    steps = 0.0
    sizes = 1e-300
    pulls = 1e-300
    for c in range(len(row_start) - 1):
        whole = 0.0
        for row in run_range(row_start, c):
            total = 0.0
            for k in range(x.shape[1]):
                # Of cells, and of the sums of rows and of children, which must be nearer.
                gap = x[row, k] - y[row, k]
                step = y[row, k] - before[row, k]
                apart, moved, total = max(apart, abs(gap)), max(moved, abs(step)), total + gap
                gaps, steps = gaps + gap * gap, steps + step * step
                sizes, pulls = sizes + y[row, k] ** 2, pulls + u[row, k] ** 2
            apart, whole = max(apart, abs(total) / SUM_TOLERANCE), whole + total
        apart = max(apart, abs(whole) / SUM_TOLERANCE)
    if gaps == 0 or steps == 0:
        return apart, moved, 1.0
    # The root of one residual over the other, each relative to what it is of.
    factor = sqrt(sqrt((gaps / sizes) / (steps / pulls)))
    return apart, moved, min(max(factor, 0.2), 5.0)
