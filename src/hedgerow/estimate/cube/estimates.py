"""Best linear unbiased estimates of every cuboid of a cube, and what is summed up for counts.

Every combination of levels is measured, cuboid c with the noise variance v_c = Π_a v_a(c_a). With
T_a the least squares of axis a alone, the estimates of the leaves are (T_1 ⊗ … ⊗ T_k) M: the two
passes of `hedgerow.estimate.cube.axis_squares` along one axis after the other, in O(cells).

*A public cuboid.* The cells of one cuboid e, and so of all that are coarser, may be known exactly:
the total (replace neighbours), or a level of one axis. The true counts then stand in the place of
measurements of e and all coarser cuboids, and conditioning on them is one more Kronecker term: with
gap = the true counts of e less their estimates, every cell moves by Π_a g_a times its ancestor's
gap (`AxisSquares.gain`), and cells coarser than e by the sums of what lies below.

A level that is not measured has an infinite variance, and its tables hold zeros.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from hedgerow.arrays import ByCuboid, Float64, Levels
from hedgerow.estimate.cube.axis_squares import AxisSquares, combine_levels, spread_levels
from hedgerow.estimate.cube.shape import CubeShape, at_level, is_within_any, strips, sum_along


def shape_of(squares: Sequence[AxisSquares]) -> CubeShape:
    """Return the cube over the axes."""
    return CubeShape(tuple(axis.shape for axis in squares))


def least_squares(
    squares: Sequence[AxisSquares],
    tables: ByCuboid,
    public: Levels | None = None,
) -> None:
    """Turn the noisy counts of every cuboid into its best linear unbiased estimates, in place.

    Minimises Σ_c ‖M_c - S_c x‖² / v_c over tables x of leaves, S_c summing them to cuboid c.

    Args:
        squares: one an axis.
        tables: for every cuboid float64 (cells along each axis), records.
        public: a cuboid whose table, and those of all its coarsenings, hold true counts.

    Raises:
        EstimateError: a cuboid that is missing or of another shape.
    """
    check_tables(squares, tables)
    solve(squares, tables, public)


def solve(squares: Sequence[AxisSquares], tables: ByCuboid, public: Levels | None = None) -> None:
    """Do the same with tables that were checked: float64 (cells along each axis, …).

    Further dimensions are further sets of counts, each estimated by itself.
    """
    exact = None if public is None else tables[public].copy()
    for axis in range(len(squares)):
        for own, levels in _along(squares, tables, axis):
            combine_levels(own, levels, axis)
            spread_levels(own, levels, axis)
    if exact is not None and public is not None:
        _condition(squares, tables, public, exact - tables[public])


def upward(squares: Sequence[AxisSquares], tables: ByCuboid) -> None:
    """Turn noisy counts into what each cell's own subtree says of it, in place.

    This suffices for whole counts that are settled from coarse to fine: the passes down only add
    what the settled margins' multipliers absorb. The estimate of cell (i, j, …) then has the
    variance u_i u_j … (`AxisSquares.combined`).

    Where the finest cuboids are missing (they are measured for survivors alone) each other one is
    combined with what lies below it along one axis after the other, without the levels that are
    missing beside it; all other weights are those of the whole cube: unbiased, and nearly the best,
    as leaves say little of margins.

    Args:
        squares: one an axis.
        tables: for every cuboid, or all but some finest ones, float64 (cells along each axis).

    Raises:
        EstimateError: a cuboid that is missing or of another shape.
    """
    check_tables(squares, tables, but_finest=True)
    for axis in range(len(squares)):
        for own, levels in _along(squares, tables, axis):
            combine_levels(own, levels, axis)


def check_tables(
    squares: Sequence[AxisSquares],
    tables: ByCuboid,
    *,
    but_finest: bool = False,
) -> None:
    """Raise unless the tables are those of a cube.

    Raises:
        EstimateError: they are not.
    """
    shape = shape_of(squares)
    for cuboid in shape.cuboids():
        if but_finest and not is_within_any(cuboid, tables):
            continue
        shape.checked(cuboid, tables.get(cuboid))


def _along(
    squares: Sequence[AxisSquares], tables: ByCuboid, axis: int
) -> Iterator[tuple[AxisSquares, list[Float64]]]:
    """Yield an axis, as deep as tables go, and those of its levels, beside all levels of others."""
    each = [range(1 if a == axis else own.depth + 1) for a, own in enumerate(squares)]
    for rest in product(*each):
        own = reaching(squares[axis], axis, rest, tables)
        levels = [at_level(rest, axis, k) for k in range(own.depth + 1)]
        if levels[0] in tables:
            yield own, [tables[cuboid] for cuboid in levels]


def reaching(own: AxisSquares, axis: int, cuboid: Levels, tables: ByCuboid) -> AxisSquares:
    """Return an axis down to the deepest level with a table beside a cuboid's other levels.

    Where there is none below the cuboid's own level, that is the deepest.
    """
    levels = range(own.depth, cuboid[axis], -1)
    deepest = (k for k in levels if at_level(cuboid, axis, k) in tables)
    return own.down_to(next(deepest, cuboid[axis]))


def _condition(
    squares: Sequence[AxisSquares],
    tables: ByCuboid,
    public: Levels,
    gap: Float64,
) -> None:
    """Move every cell by what the gap of the public cuboid says of it."""
    for cuboid, table in tables.items():
        moved = gap
        for axis in range(1, len(squares)):
            moved = _regressed(squares[axis], moved, axis, cuboid[axis], public[axis])
        own = squares[0]
        level = cuboid[0]
        exact = public[0]
        if level <= exact:
            np.add(table, _regressed(own, moved, 0, level, exact), out=table)
            continue
        above = own.shape.ancestors(level, exact)
        gain = own.gain(level, exact)
        shape = (-1, *(1,) * (table.ndim - 1))
        for rows in strips(table.shape):
            table[rows] += gain[rows].reshape(shape) * moved[above[rows]]


def _regressed(own: AxisSquares, table: Float64, axis: int, level: int, exact: int) -> Float64:
    """Return the table along one axis: from the nodes of level ``exact`` to those of another."""
    if level <= exact:
        return sum_along(table, axis, own.shape.descendant_start(level, exact))
    shape = [1] * table.ndim
    shape[axis] = own.shape.sizes[level]
    spread = table.take(own.shape.ancestors(level, exact), axis=axis)
    return spread * own.gain(level, exact).reshape(shape)
