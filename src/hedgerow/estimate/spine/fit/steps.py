"""The two steps of a family's fit: sums kept in coordinates, bounds kept in cells.

The letters are those of `hedgerow.estimate.spine.fit.fit`. Matrices over the rows of a child
stand one behind the other, child by child, (residuals, rows, rows).
"""

from math import sqrt

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int32, Int64, IntPair
from hedgerow.estimate.families.units import level_of
from hedgerow.estimate.spine.matrices import invert
from hedgerow.kernels import kernel, run_ends, run_range, run_size

Runs = tuple[Int64, Int32]
"""Where runs of coordinates of one residual begin, int64 (runs + 1), and the residual of each."""
ChildRows = IntPair
"""Where the rows of each child begin; and the row of the node above that each row is a part of."""


@kernel
def keep_sums(
    runs: Runs,
    rows: ChildRows,
    z: Float64,
    matrices: FloatPair,
    counts: Float64,
    q: Float64,
    x: Float64,
) -> None:
    """Write x_c = z_c + D_c (q_c + λ) with λ = (Σ D)⁻¹ (n - Σ (z + D q)), in coordinates.

    Args:
        runs: of coordinates.
        rows: where the rows of a child begin; the row of the node above of each.
        z: float64 (rows, W).
        matrices: D; and (Σ D)⁻¹, float64 (residuals, rows of the node, rows of the node).
        counts: float64 (rows of the node, W): n.
        q: float64 (rows, W): y - u - z.
        x: float64 (rows, W): out.
    """
    row_start, slot = rows
    damped, joint = matrices
    every = np.arange(len(x))
    missing = counts.copy()
    share = np.zeros_like(counts)
    residuals = len(joint)
    begin = 0
    # z + D q of each child.
    x[:] = z
    for c in range(len(row_start) - 1):
        first, last = run_ends(row_start, c)
        own, begin = _matrix(damped, begin, residuals, last - first)
        _add_product(runs, own, (q, every[first:last]), (x, every[first:last]))
    # n less the sums of these, and λ = (Σ D)⁻¹ of it.
    for row in range(len(x)):
        for k in range(x.shape[1]):
            missing[slot[row], k] -= x[row, k]
    _add_product(runs, joint, (missing, every[: len(counts)]), (share, every[: len(counts)]))
    # And D λ of each child.
    begin = 0
    for c in range(len(row_start) - 1):
        first, last = run_ends(row_start, c)
        own, begin = _matrix(damped, begin, residuals, last - first)
        _add_product(runs, own, (share, slot[first:last]), (x, every[first:last]))


@kernel
def _matrix(matrices: Float64, begin: int, residuals: int, m: int) -> tuple[Float64, int]:
    """Return a child's matrices, and where the next one's begin."""
    end = begin + residuals * m * m
    # A view: matrices of children differ in size, and stand one behind the other.
    return matrices[begin:end].reshape(residuals, m, m), end


@kernel
def _add_product(
    runs: Runs, matrix: Float64, source: tuple[Float64, Int64], target: tuple[Float64, Int64]
) -> None:
    """Add a child's matrices times some rows of a table to rows of another one."""
    start, residual = runs
    given, at = source
    result, to = target
    for i in range(matrix.shape[1]):
        # One coordinate alone would pay more for views of rows than for the product.
        if given.shape[1] == 1:
            for j in range(matrix.shape[1]):
                result[to[i], 0] += matrix[0, i, j] * given[at[j], 0]
            continue
        out = result[to[i]]
        for j in range(matrix.shape[1]):
            row = given[at[j]]
            for r in range(len(residual)):
                factor = matrix[residual[r], i, j]
                for k in run_range(start, r):
                    out[k] += factor * row[k]


@kernel
def keep_total(
    runs: Runs, z: Float64, damped: Float64, total: float, q: Float64, x: Float64
) -> None:
    """Write x = z + D (q + λw), wᵀx the total (any if nan): w is √W at each group's first."""
    groups, width = x.shape
    own = damped.reshape(len(damped) // groups**2, groups, groups)
    every = np.arange(groups)
    x[:] = z
    _add_product(runs, own, (q, every), (x, every))
    if np.isnan(total):
        return
    # wᵀx is √W times the sum of the first coordinates; λ wᵀD w is what it lacks.
    root = sqrt(width)
    share = (total - root * x[:, 0].sum()) / (width * own[0].sum())
    for i in range(groups):
        x[i, 0] += root * share * own[0, i].sum()


@kernel
def dampen(
    covariance: Float64, row_start: Int64, residuals: int, rho: float, damped: Float64
) -> None:
    """Write D = ρC (I + ρC)⁻¹ = I - (I + ρC)⁻¹ of each child and residual."""
    begin = 0
    for c in range(len(row_start) - 1):
        m = run_size(row_start, c)
        for _ in range(residuals):
            own = damped[begin : begin + m * m].reshape(m, m)
            # I + ρC.
            own[:] = rho * covariance[begin : begin + m * m].reshape(m, m)
            for i in range(m):
                own[i, i] += 1.0
            invert(own)
            # D = I - (I + ρC)⁻¹, of one inverse.
            for i in range(m):
                for j in range(m):
                    own[i, j] = (1.0 if i == j else 0.0) - own[i, j]
            begin += m * m


@kernel
def invert_sums(damped: Float64, rows: ChildRows, joint: Float64) -> None:
    """Write (Σ_c D_c)⁻¹ of each residual over the groups of the node above."""
    row_start, slot = rows
    joint[:] = 0.0
    begin = 0
    for c in range(len(row_start) - 1):
        own, begin = _matrix(damped, begin, len(joint), run_size(row_start, c))
        here = slot[row_start[c] : row_start[c + 1]]
        # Each child's D where its groups stand among the node's.
        for r in range(len(joint)):
            for i in range(len(here)):
                for j in range(len(here)):
                    joint[r, here[i], here[j]] += own[r, i, j]
    for r in range(len(joint)):
        invert(joint[r])


@kernel
def variances_of(covariance: Float64, row_start: Int64, residuals: int) -> Float64:
    """Return the variance of each row's coordinates of each residual: float64 (rows, residuals)."""
    variances = np.empty((row_start[-1], residuals))
    begin = 0
    for c in range(len(row_start) - 1):
        first, last = run_ends(row_start, c)
        own, begin = _matrix(covariance, begin, residuals, last - first)
        # Gathered once, as the diagonals lie apart from each other in memory.
        for i in range(last - first):
            variances[first + i] = own[:, i, i]
    return variances


@kernel
def project_row(
    row: int, above: tuple[Float64, int], within: tuple[float, float], point: Float64, out: Float64
) -> None:
    """Write the nearest row to a point: not negative, 0 where ``above`` is, its sum within bounds.

    Outside its bounds the sum is brought to the nearer one by an equal shift of all that stays
    positive.

    Args:
        row: which row of the tables.
        above: float64 (rows of the node, W), and the row of it above this one.
        within: the least and the largest sum.
        point: float64 (rows, W).
        out: float64 (rows, W).
    """
    # Tables and numbers of rows: views of short rows would take longer than the work on them.
    upper_counts, upper = above
    low, high = within
    total = 0.0
    for k in range(point.shape[1]):
        out[row, k] = max(point[row, k], 0.0) if upper_counts[upper, k] > 0 else 0.0
        total += out[row, k]
    if total < low or total > high:
        wanted = low if total < low else high
        free = point[row][upper_counts[upper] > 0]
        shift = -np.inf
        if wanted > 0 and len(free) > 0:
            shift = level_of(free, np.ones(len(free)), wanted)
        for k in range(point.shape[1]):
            out[row, k] = max(point[row, k] + shift, 0.0) if upper_counts[upper, k] > 0 else 0.0
