"""Whole counts of every cuboid of a cube, settled from coarse to fine.

Estimates are unbiased, but negative and fractional; to cut them off at 0 and sum them up loses what
the margins know. So cuboids are settled in the order of refinement, each below its settled parents
(the cuboids one level coarser along one axis):

- the total is rounded; a cuboid that refines one axis alone is a family below each parent,
  projected as families of a tree are;
- below the parents of two axes, block by block (`hedgerow.estimate.cube.blocks`): the two margins
  of a block were settled below the same coarser cell, so they have one total and the block is
  feasible. Blocks are independent of each other, and a margin of 0 leaves its cells out;
- below those of more axes two of them keep their sums, and the others are targets
  (`hedgerow.estimate.cube.targets`).

Only what each cell's own subtree says is needed for it (`hedgerow.estimate.cube.estimates.upward`):
inside a block the covariance given the margins is (diag u - uuᵀ/U) ⊗ (diag v - vvᵀ/V), so that
conditioning on the margins is the projection with weights 1/(u_i v_j).
"""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.blocks import Counts, settle_cuboid
from hedgerow.estimate.cube.estimates import shape_of
from hedgerow.estimate.cube.shape import Cuboid, Floats, coarser
from hedgerow.estimate.cube.targets import settle_with_targets
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.real_projection import LARGEST_REAL_COUNT


def settle(
    squares: Sequence[AxisSquares],
    upward: Mapping[Cuboid, Floats],
    exact: Mapping[Cuboid, Counts] | None = None,
) -> dict[Cuboid, Counts]:
    """Return the settled counts of every cuboid.

    With one or two axes each is the sum of the finest one's. With more, sums over all axes but the
    first two refined ones are targets: what is released of a cuboid is the sum of the leaves.

    Args:
        squares: one an axis.
        upward: of `hedgerow.estimate.cube.estimates.upward`: what each cell's own subtree says of
            it; cuboids that are missing are not settled.
        exact: the true counts of the public cuboid and of all its coarsenings, if any.

    Returns:
        For every cuboid int64 (cells along each axis), records.
    """
    found: dict[Cuboid, Counts] = dict(exact or {})
    for cuboid in shape_of(squares).cuboids():
        if cuboid in upward and cuboid not in found:
            found[cuboid] = _settled(squares, cuboid, upward, found)
    return found


def _settled(
    squares: Sequence[AxisSquares],
    cuboid: Cuboid,
    tables: Mapping[Cuboid, Floats],
    coarse: Mapping[Cuboid, Counts],
) -> Counts:
    """Return the counts of a cuboid, by how many axes it refines."""
    upward, refined = tables[cuboid], [axis for axis, level in enumerate(cuboid) if level]
    if not refined:
        value = min(max(0, round(float(upward.item()))), LARGEST_REAL_COUNT)
        return np.full(upward.shape, value, dtype=np.int64)
    weights = [weight_of(squares, cuboid, axis, tables) for axis in range(len(squares))]
    margins = {axis: coarse[coarser(cuboid, axis)] for axis in refined}
    starts = {axis: squares[axis].shape.child_start[cuboid[axis] - 1] for axis in refined}
    if len(refined) > 2:
        return settle_with_targets(upward, weights, margins, starts)
    first, last = refined[0], refined[-1]
    if first == last:
        totals = margins[first].ravel()
        found = Euclidean().project(upward.ravel(), starts[first], totals, weights[first])
        return found.reshape(upward.shape)
    rows, columns = len(weights[first]), len(weights[last])
    sums = margins[last].reshape(rows, -1), margins[first].reshape(-1, columns)
    pair = weights[first], weights[last]
    table = upward.reshape(rows, columns)
    return settle_cuboid(table, pair, sums, (starts[first], starts[last])).reshape(upward.shape)


def weight_of(
    squares: Sequence[AxisSquares], cuboid: Cuboid, axis: int, tables: Container[Cuboid]
) -> Floats:
    """Return the factor of an axis in the variances of what is settled: float64 (nodes).

    Args:
        squares: one an axis.
        cuboid: that is settled.
        axis: of the factor.
        tables: the cuboids that are measured whole, so that all above has them in it.
    """
    own = squares[axis]
    while own.depth > cuboid[axis] and _at(cuboid, axis, own.depth) not in tables:
        own = own.without_leaves()
    return own.combined[cuboid[axis]]


def _at(cuboid: Cuboid, axis: int, level: int) -> Cuboid:
    return (*cuboid[:axis], level, *cuboid[axis + 1 :])
