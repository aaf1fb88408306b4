"""Whole counts of every cuboid of a cube: the workload of all of them.

They are settled as those of any workload are (`hedgerow.estimate.workload.settle`). Only what each
cell's own subtree says is needed for it (`hedgerow.estimate.cube.estimates.upward`): inside a block
the covariance given the margins is (diag u - uuᵀ/U) ⊗ (diag v - vvᵀ/V), so that conditioning on the
margins is the projection with weights 1/(u_i v_j).
"""

from collections.abc import Container, Mapping, Sequence
from functools import partial

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import shape_of
from hedgerow.estimate.cube.shape import at_level, fineness
from hedgerow.estimate.workload import settle as workload
from hedgerow.estimate.workload.lattice import Lattice


def settle(
    squares: Sequence[AxisSquares],
    upward: Mapping[Levels, Float64],
    exact: Mapping[Levels, Int64] | None = None,
) -> dict[Levels, Int64]:
    """Return the settled counts of every cuboid: each is the sum of all that are finer.

    Args:
        squares: one an axis.
        upward: of `hedgerow.estimate.cube.estimates.upward`: what each cell's own subtree says of
            it; cuboids that are missing are not settled.
        exact: the true counts of the public cuboid and of all its coarsenings, if any.

    Returns:
        For every cuboid int64 (cells along each axis), records.
    """
    public = max(exact, key=fineness) if exact else None
    lattice = Lattice.of([*upward, *(exact or ())], upward, public=public)
    weights = partial(weight_of, squares, tables=upward)
    return workload.settle(shape_of(squares), lattice, upward, exact, weights)


def weight_of(
    squares: Sequence[AxisSquares], cuboid: Levels, axis: int, tables: Container[Levels]
) -> Float64:
    """Return the factor of an axis in the variances of what is settled: float64 (nodes).

    Args:
        squares: one an axis.
        cuboid: that is settled.
        axis: of the factor.
        tables: the cuboids that are measured whole, so that all above has them in it.
    """
    own = squares[axis]
    while own.depth > cuboid[axis] and at_level(cuboid, axis, own.depth) not in tables:
        own = own.without_leaves()
    return own.combined[cuboid[axis]]
