"""Whole counts of every cuboid of a cube, settled from coarse to fine.

Estimates are unbiased, but negative and fractional; to cut them off at 0 and sum them up loses what
the margins know. So cuboids are settled in the order of refinement, each below its settled parents
(the cuboids one level coarser along one axis):

- the total is rounded; a cuboid that refines one axis alone is a family below each parent, projected
  as families of a tree are;
- below the parents of two axes, block by block (`hedgerow.estimate.cube.block`): the two margins of
  a block were settled below the same coarser cell, so they have one total and the block is feasible.
  Blocks are independent of each other, and a margin of 0 leaves its cells out.

Only what each cell's own subtree says is needed for it (`hedgerow.estimate.cube.estimates.upward`):
inside a block the covariance given the margins is (diag u - uuᵀ/U) ⊗ (diag v - vvᵀ/V), so that
conditioning on the margins is the projection with weights 1/(u_i v_j).
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.estimate.cube.estimates import shape_of
from hedgerow.estimate.cube.shape import Cuboid, Floats, Ints, coarser
from hedgerow.estimate.euclidean import Euclidean
from hedgerow.estimate.known import LARGEST_REAL_COUNT
from hedgerow.kernels import kernel, over_families

Counts = NDArray[np.int64]

LIMIT = float(LARGEST_REAL_COUNT)
"""Estimates beyond it count as it, as in families (`hedgerow.estimate.known`)."""


def settle(
    squares: Sequence[AxisSquares],
    upward: Mapping[Cuboid, Floats],
    total: int | None = None,
) -> dict[Cuboid, Counts]:
    """The whole counts of every cuboid, each the sum of the finest one's.

    Args:
        squares: one an axis: two axes, or one.
        upward: of `hedgerow.estimate.cube.estimates.upward`: what each cell's own subtree says of
            it; without the finest cuboid, that one is not settled.
        total: the true total where it is public; else the total is settled too.

    Returns:
        For every cuboid int64 (cells along each axis), records.
    """
    shape = shape_of(squares)
    found: dict[Cuboid, Counts] = {}
    for cuboid in shape.cuboids():
        if cuboid not in upward:
            continue
        whole = cuboid not in upward or shape.finest in upward
        weights = [weight_of(squares, cuboid, axis, whole=whole) for axis in range(len(squares))]
        refined = [axis for axis, level in enumerate(cuboid) if level]
        if not refined:
            value = float(upward[cuboid].item()) if total is None else total
            found[cuboid] = np.full(upward[cuboid].shape, max(0, round(value)), dtype=np.int64)
        elif len(refined) == 1:
            axis = refined[0]
            start = squares[axis].shape.child_start[cuboid[axis] - 1]
            above = found[coarser(cuboid, axis)].ravel()
            counts = Euclidean().project(upward[cuboid].ravel(), start, above, weights[axis])
            found[cuboid] = counts.reshape(upward[cuboid].shape)
        else:
            margins = found[coarser(cuboid, 1)], found[coarser(cuboid, 0)]
            starts = tuple(
                own.shape.child_start[k - 1] for own, k in zip(squares, cuboid, strict=True)
            )
            found[cuboid] = settle_cuboid(upward[cuboid], weights, margins, starts)
    return found


def weight_of(
    squares: Sequence[AxisSquares], cuboid: Cuboid, axis: int, *, whole: bool
) -> Floats:
    """The factor of an axis in the variances of what is settled: float64 (nodes).

    Args:
        squares: one an axis.
        cuboid: that is settled.
        axis: of the factor.
        whole: whether the leaves are measured whole, so that all above has them in it.
    """
    own = squares[axis]
    others = (c == s.depth for a, (c, s) in enumerate(zip(cuboid, squares, strict=True)) if a != axis)
    if not whole and all(others) and cuboid[axis] < own.depth:
        own = own.without_leaves()
    return own.combined[cuboid[axis]]


def settle_cuboid(
    upward: Floats,
    weights: Sequence[Floats],
    margins: tuple[Counts, Counts],
    starts: tuple[Ints, ...],
) -> Counts:
    """The whole counts of a cuboid of two axes, or of a strip of whole row families, by blocks.

    Args:
        upward: float64 (rows, columns), records.
        weights: float64 (rows) and float64 (columns).
        margins: int64 (rows, column parents) and int64 (row parents, columns): sums over the
            children along the second axis and along the first.
        starts: int64 (row parents + 1) and int64 (column parents + 1): where children begin.

    Returns:
        int64 (rows, columns).

    Raises:
        EstimateError: estimates that are not finite.
    """
    if not np.isfinite(upward).all():
        raise EstimateError("a cuboid's estimates must be finite; leave out what is not measured")
    counts = np.empty(upward.shape, dtype=np.int64)
    task = partial(_settle_blocks, upward, tuple(weights), margins, starts, counts)
    rows, columns = starts
    if len(rows) >= len(columns) or len(rows) > 16:
        over_families(lambda a, b: task((a, b, 0, len(columns) - 1)), rows * upward.shape[1])
    else:
        over_families(lambda a, b: task((0, len(rows) - 1, a, b)), columns * upward.shape[0])
    return counts


@kernel
def _settle_blocks(
    z: Floats,
    weights: tuple[Floats, Floats],
    margins: tuple[Counts, Counts],
    starts: tuple[Ints, Ints],
    counts: Counts,
    part: tuple[int, int, int, int],
) -> None:
    """The blocks of a range of row parents and of column parents."""
    row_start, column_start = starts
    tall, wide = 0, 0
    for p in range(part[0], part[1]):
        tall = max(tall, row_start[p + 1] - row_start[p])
    for q in range(part[2], part[3]):
        wide = max(wide, column_start[q + 1] - column_start[q])
    scratch = scratch_of(tall, wide)
    t, y = np.empty(tall * wide), np.empty(tall * wide, dtype=np.int64)
    u, v = np.empty(tall), np.empty(wide)
    sums = np.empty(tall, dtype=np.int64), np.empty(wide, dtype=np.int64)
    rows, columns = np.empty(tall, dtype=np.int64), np.empty(wide, dtype=np.int64)
    for p in range(part[0], part[1]):
        for q in range(part[2], part[3]):
            m, n = 0, 0
            for i in range(row_start[p], row_start[p + 1]):
                counts[i, column_start[q] : column_start[q + 1]] = 0
                if margins[0][i, q] > 0:
                    rows[m], u[m], sums[0][m] = i, weights[0][i], margins[0][i, q]
                    m += 1
            for j in range(column_start[q], column_start[q + 1] if m > 0 else column_start[q]):
                if margins[1][p, j] > 0:
                    columns[n], v[n], sums[1][n] = j, weights[1][j], margins[1][p, j]
                    n += 1
            target, whole = t[: m * n].reshape(m, n), y[: m * n].reshape(m, n)
            for i in range(m):
                for j in range(n):
                    target[i, j] = min(max(z[rows[i], columns[j]], -LIMIT), LIMIT)
            if m > 0:
                settle_block(
                    target, (u[:m], v[:n]), (sums[0][:m], sums[1][:n]), scratch, whole
                )
            for i in range(m):
                for j in range(n):
                    counts[rows[i], columns[j]] = whole[i, j]
