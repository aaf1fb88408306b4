"""Sums of a table's cells to cuboids, and back, without the table: S_c S_dᵀ.

S_c sums the cells of a table to cuboid c. Entry (i, j) of S_c S_dᵀ is the number of the table's
cells that lie in cell i of c and in cell j of d: a product over axes. Along one axis levels nest,
so a run of cells is summed where c is coarser than d and repeated where it is finer, each time
with the number of the table's nodes below the finer node. All arrays here may have further
dimensions behind those of the cells: many vectors at a time.
"""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from hedgerow.estimate.cube.passes import sum_along
from hedgerow.estimate.cube.shape import CubeShape, Cuboid, Floats, meet

STRIP_CELLS = 1 << 20
"""Cells of a strip of a table that is added to at a time."""

Parts = Mapping[Cuboid, Floats]
"""A vector over a table's cells as Σ_d S_dᵀ w_d: for each d float64 (cells along each axis, …)."""


def join(one: Cuboid, other: Cuboid) -> Cuboid:
    """Return the coarsest common refinement of two cuboids."""
    return tuple(map(max, one, other))


def summed(shape: CubeShape, table: Floats, fine: Cuboid, coarse: Cuboid) -> Floats:
    """Return the sums of a cuboid's cells to a coarser one; the table itself where it is the same.

    Args:
        shape: how the levels nest.
        table: float64 (cells of ``fine`` along each axis, …).
        fine: whose cells are summed.
        coarse: to which cuboid, within ``fine``.
    """
    for a in sorted(range(len(fine)), key=lambda a: _factor(shape, fine, coarse, a)):
        table = sum_along(table, a, shape.axes[a].descendant_start(coarse[a], fine[a]))
    return table


def spread(shape: CubeShape, table: Floats, coarse: Cuboid, fine: Cuboid) -> Floats:
    """Return for each cell of a cuboid the value of the coarser cell that it lies in.

    Args:
        shape: how the levels nest.
        table: float64 (cells of ``coarse`` along each axis, …).
        coarse: whose values they are.
        fine: whose cells are wanted; ``coarse`` is within it.
    """
    for a in sorted(range(len(fine)), key=lambda a: -_factor(shape, fine, coarse, a)):
        if coarse[a] < fine[a]:
            table = table.take(shape.axes[a].ancestors(fine[a], coarse[a]), axis=a)
    return table


def below(shape: CubeShape, cuboid: Cuboid, table: Cuboid) -> list[Floats]:
    """Return along each axis how many nodes of a finer cuboid lie below a node: float64 (nodes)."""
    each = zip(shape.axes, cuboid, table, strict=True)
    return [np.diff(axis.descendant_start(k, end)).astype(np.float64) for axis, k, end in each]


def cells_below(shape: CubeShape, cuboid: Cuboid, table: Cuboid) -> Floats:
    """Return how many cells of a finer cuboid lie in each cell: float64 (cells along each axis)."""
    found = np.ones(())
    for counts in below(shape, cuboid, table):
        found = np.multiply.outer(found, counts)
    return found


def overlap(
    shape: CubeShape, table: Cuboid, weights: Floats, origin: Cuboid, wanted: Cuboid
) -> Floats:
    """Return S_c S_dᵀ w: float64 (cells of ``wanted`` along each axis, …).

    Args:
        shape: how the levels nest.
        table: whose cells are summed; both cuboids are within it.
        weights: w, float64 (cells of ``origin`` along each axis, …).
        origin: d.
        wanted: c.
    """
    common = meet(origin, wanted)
    counted, found = below(shape, join(origin, wanted), table), weights
    for a in range(len(table)):
        if origin[a] > wanted[a]:
            found = found * _along(counted[a], a, found.ndim)
    found = spread(shape, summed(shape, found, origin, common), common, wanted)
    for a in range(len(table)):
        if origin[a] <= wanted[a] < table[a]:
            found = found * _along(counted[a], a, found.ndim)
    return found


def sums_of(shape: CubeShape, table: Cuboid, parts: Parts, wanted: Cuboid) -> Floats:
    """Return S_c Σ_d S_dᵀ w_d: float64 (cells of ``wanted`` along each axis, …)."""
    first, *others = (overlap(shape, table, w, d, wanted) for d, w in parts.items())
    found = np.array(first) if others else first
    for other in others:
        found += other
    return found


def add_spread(shape: CubeShape, target: Floats, parts: Parts, table: Cuboid) -> None:
    """Add Σ_d S_dᵀ w_d to a table, in place, strip by strip.

    Args:
        shape: how the levels nest.
        target: float64 (cells of ``table`` along each axis).
        parts: the w_d, without further dimensions.
        table: whose cells they are.
    """
    above = {d: shape.axes[0].ancestors(table[0], d[0]) for d in parts}
    for rows in strips(target.shape):
        for d, weights in parts.items():
            strip = weights[above[d][rows]]
            for a in range(1, len(table)):  # a total is left to numpy to repeat
                if 0 < d[a] < table[a]:
                    strip = strip.take(shape.axes[a].ancestors(table[a], d[a]), axis=a)
            target[rows] += strip


def strips(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield ranges of the first axis's nodes, of about `STRIP_CELLS` cells each."""
    step = max(1, STRIP_CELLS // prod(shape[1:]))
    return (slice(begin, begin + step) for begin in range(0, shape[0], step))


def _along(counts: Floats, axis: int, dimensions: int) -> Floats:
    """Return counts along one axis, to be multiplied with an array of so many dimensions."""
    return counts.reshape([-1 if a == axis else 1 for a in range(dimensions)])


def _factor(shape: CubeShape, fine: Cuboid, coarse: Cuboid, axis: int) -> float:
    """Return by what a sum along an axis shrinks a table: sums begin with the smallest."""
    sizes = shape.axes[axis].sizes
    return sizes[coarse[axis]] / sizes[fine[axis]]
