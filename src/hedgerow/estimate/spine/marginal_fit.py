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
water-filling, row by row. λ in the limit ρ → 0, y = u = 0 gives the conditional estimate, from
which it begins. Steps are over-relaxed, and ρ is balanced now and then.

*When it stops.* When |x - y| and what a round moves y are both below the tolerance, the latter
times max(1, ρ · the largest variance): a small step along what is measured badly may have a long
way to go.

Source: Boyd et al. (2011), Distributed optimization and statistical learning via the alternating
direction method of multipliers, sections 3.3, 3.4 and 5.2.
"""

from math import sqrt

import numpy as np

from hedgerow.arrays import Int32
from hedgerow.estimate.cube.shape import Floats, Ints
from hedgerow.estimate.spine.residuals import turn_row
from hedgerow.kernels import kernel

RELAXED = 1.6
"""Over-relaxation of x, between 1 (none) and 2."""
FIRST_BALANCE = 8
"""Rounds before ρ is balanced first; then after twice as many each time."""


@kernel
def fit_family(
    cells: tuple[Ints, Int32],
    rows: tuple[Ints, Ints],
    given: tuple[Floats, Floats],
    bounds: tuple[Floats, Floats, Floats, tuple[bool, float]],
    stop: tuple[float, int],
    y: Floats,
) -> int:
    """Write the fitted counts of a family, and return the number of rounds.

    Args:
        cells: the sizes of the attributes, and int32 (W): the residual of each coordinate.
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
    extents, residual = cells
    row_start, slot = rows
    z, covariance = given
    above, low, high, (is_family, total) = bounds
    tolerance, most = stop
    residuals = 1
    for _ in extents:
        residuals *= 2
    damped = covariance.copy()
    known = above.copy()
    for row in range(len(known)):
        turn_row(known[row], extents)
    joint = np.empty((residuals, len(above), len(above)))
    share = np.empty_like(above)
    x, q, u = np.zeros_like(z), np.zeros_like(z), np.zeros_like(z)

    _invert_sums(damped, row_start, slot, joint)
    if is_family:
        _keep_sums(residual, row_start, slot, z, damped, joint, known, share, q, x)
    else:
        _keep_total(residual, z, damped, total, q, x)
    for row in range(len(x)):
        turn_row(x[row], extents)
        project_row(x[row], above[slot[row]], low[row], high[row], y[row])

    smallest, largest = _variance_range(covariance, row_start, residuals)
    rho = 1 / sqrt(smallest * largest)
    balance = FIRST_BALANCE
    for number in range(1, most + 1):
        if number == 1 or number == balance + 1:
            _dampen(covariance, row_start, residuals, rho, damped)
            _invert_sums(damped, row_start, slot, joint)
        for row in range(len(x)):
            for k in range(x.shape[1]):
                q[row, k] = y[row, k] - u[row, k]
            turn_row(q[row], extents)
            for k in range(x.shape[1]):
                q[row, k] -= z[row, k]
        if is_family:
            _keep_sums(residual, row_start, slot, z, damped, joint, known, share, q, x)
        else:
            _keep_total(residual, z, damped, total, q, x)
        apart, moved = 0.0, 0.0
        squares = np.zeros(4)
        for row in range(len(x)):
            turn_row(x[row], extents)
            for k in range(x.shape[1]):  # q becomes the point to project
                q[row, k] = RELAXED * x[row, k] + (1 - RELAXED) * y[row, k] + u[row, k]
                u[row, k] = y[row, k]
            project_row(q[row], above[slot[row]], low[row], high[row], y[row])
            for k in range(x.shape[1]):
                gap, step = x[row, k] - y[row, k], y[row, k] - u[row, k]
                apart, moved = max(apart, abs(gap)), max(moved, abs(step))
                u[row, k] = q[row, k] - y[row, k]
                squares[0] += gap * gap
                squares[1] += step * step
                squares[2] += y[row, k] * y[row, k]
                squares[3] += u[row, k] * u[row, k]
        if apart <= tolerance and moved * max(1.0, rho * largest) <= tolerance:
            return number
        if number == balance:
            balance *= 2
            factor = _balance(squares)
            rho *= factor
            u /= factor
    return most


@kernel
def _balance(squares: Floats) -> float:
    """Return by what to multiply ρ, from the squares of x - y, of y's step, of y and of u."""
    gap = sqrt(squares[0] / max(squares[2], 1e-300))
    step = sqrt(squares[1] / max(squares[3], 1e-300))
    if gap == 0 or step == 0:
        return 1.0
    return min(max(sqrt(gap / step), 0.2), 5.0)


@kernel
def project_row(point: Floats, above: Floats, low: float, high: float, out: Floats) -> None:
    """Write the nearest row to a point: not negative, 0 where ``above`` is, its sum within bounds.

    Outside its bounds the sum is brought to the nearer one by an equal shift of all that stays
    positive: Newton's method from above, where it cannot overshoot (the sum is convex in the shift).
    """
    total = 0.0
    for k in range(len(point)):
        out[k] = max(point[k], 0.0) if above[k] > 0 else 0.0
        total += out[k]
    if low <= total <= high:
        return
    wanted = low if total < low else high
    if wanted <= 0:
        out[:] = 0.0
        return
    first, count = 0.0, 0
    for k in range(len(point)):
        if above[k] > 0:
            first += point[k]
            count += 1
    if count == 0:
        return
    shift = (wanted - first) / count  # with all of them positive: not below the solution
    for _ in range(count + 1):
        first, positive = 0.0, 0
        for k in range(len(point)):
            if above[k] > 0 and point[k] + shift > 0:
                first += point[k]
                positive += 1
        better = (wanted - first) / positive
        if better >= shift:
            break
        shift = better
    for k in range(len(point)):
        out[k] = max(point[k] + shift, 0.0) if above[k] > 0 else 0.0


@kernel
def _keep_sums(
    residual: Int32,
    row_start: Ints,
    slot: Ints,
    z: Floats,
    damped: Floats,
    joint: Floats,
    known: Floats,
    share: Floats,
    q: Floats,
    x: Floats,
) -> None:
    """Write x_c = z_c + D_c (q_c + λ) with λ = (Σ D)⁻¹ (n - Σ (z + D q)), in coordinates."""
    width, residuals = x.shape[1], len(joint)
    missing = known.copy()
    begin = 0
    for c in range(len(row_start) - 1):
        first, last = row_start[c], row_start[c + 1]
        m = last - first
        own = damped[begin : begin + residuals * m * m].reshape(residuals, m, m)
        begin += residuals * m * m
        for i in range(m):
            for k in range(width):
                x[first + i, k] = z[first + i, k]
            for j in range(m):
                for k in range(width):
                    x[first + i, k] += own[residual[k], i, j] * q[first + j, k]
            for k in range(width):
                missing[slot[first + i], k] -= x[first + i, k]
    share[:] = 0.0
    for i in range(len(share)):
        for j in range(len(share)):
            for k in range(width):
                share[i, k] += joint[residual[k], i, j] * missing[j, k]
    begin = 0
    for c in range(len(row_start) - 1):
        first, last = row_start[c], row_start[c + 1]
        m = last - first
        own = damped[begin : begin + residuals * m * m].reshape(residuals, m, m)
        begin += residuals * m * m
        for i in range(m):
            for j in range(m):
                for k in range(width):
                    x[first + i, k] += own[residual[k], i, j] * share[slot[first + j], k]


@kernel
def _keep_total(
    residual: Int32, z: Floats, damped: Floats, total: float, q: Floats, x: Floats
) -> None:
    """Write x = z + D (q + λw), wᵀx the total: w is √W at each group's first coordinate."""
    groups, width = x.shape
    own = damped.reshape(len(damped) // groups**2, groups, groups)
    for i in range(groups):
        for k in range(width):
            x[i, k] = z[i, k]
            for j in range(groups):
                x[i, k] += own[residual[k], i, j] * q[j, k]
    if np.isnan(total):
        return
    root, missing, whole = sqrt(width), total, 0.0
    for i in range(groups):
        missing -= root * x[i, 0]
        for j in range(groups):
            whole += width * own[0, i, j]
    for i in range(groups):
        for j in range(groups):
            x[i, 0] += own[0, i, j] * root * missing / whole


@kernel
def _dampen(
    covariance: Floats, row_start: Ints, residuals: int, rho: float, damped: Floats
) -> None:
    """Write D = ρC (I + ρC)⁻¹ = I - (I + ρC)⁻¹ of each child and residual."""
    begin = 0
    for c in range(len(row_start) - 1):
        m = row_start[c + 1] - row_start[c]
        for _ in range(residuals):
            own = damped[begin : begin + m * m].reshape(m, m)
            for i in range(m):
                for j in range(m):
                    own[i, j] = rho * covariance[begin + i * m + j] + (1.0 if i == j else 0.0)
            invert(own)
            for i in range(m):
                for j in range(m):
                    own[i, j] = (1.0 if i == j else 0.0) - own[i, j]
            begin += m * m


@kernel
def _invert_sums(damped: Floats, row_start: Ints, slot: Ints, joint: Floats) -> None:
    """Write (Σ_c D_c)⁻¹ of each residual over the groups of the node above."""
    joint[:] = 0.0
    begin = 0
    for c in range(len(row_start) - 1):
        first = row_start[c]
        m = row_start[c + 1] - first
        for r in range(len(joint)):
            for i in range(m):
                for j in range(m):
                    joint[r, slot[first + i], slot[first + j]] += damped[begin + i * m + j]
            begin += m * m
    for r in range(len(joint)):
        invert(joint[r])


@kernel
def _variance_range(covariance: Floats, row_start: Ints, residuals: int) -> tuple[float, float]:
    """Return the smallest and largest variance of a coordinate."""
    smallest, largest, begin = np.inf, 0.0, 0
    for c in range(len(row_start) - 1):
        m = row_start[c + 1] - row_start[c]
        for _ in range(residuals):
            for i in range(m):
                variance = covariance[begin + i * m + i]
                smallest, largest = min(smallest, variance), max(largest, variance)
            begin += m * m
    return smallest, largest


@kernel
def invert(matrix: Floats) -> None:
    """Invert a positive definite matrix in place, by Gauss and Jordan without pivots."""
    size = len(matrix)
    for p in range(size):
        pivot = 1 / matrix[p, p]
        matrix[p, p] = 1.0
        for j in range(size):
            matrix[p, j] *= pivot
        for i in range(size):
            if i != p:
                factor = matrix[i, p]
                matrix[i, p] = 0.0
                for j in range(size):
                    matrix[i, j] -= factor * matrix[p, j]
