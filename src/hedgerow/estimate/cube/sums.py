"""Sums of a cuboid's cells to a coarser one, and back: all tables are summed and spread here.

Along one axis the nodes below a node stand together, so a run of cells is summed, and to spread is
to repeat. Tables may have further dimensions behind those of the cells: many vectors at a time.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.estimate.cube.shape import CubeShape

STRIP_CELLS = 1 << 20
"""Cells of a strip of a table that is worked on at a time: it stays in the caches."""


def sum_along(table: NDArray[Any], axis: int, start: Int64) -> NDArray[Any]:
    """Return the sums of runs of cells along an axis, from each ``start`` to the next."""
    if len(start) - 1 == table.shape[axis]:
        return table
    return np.add.reduceat(table, start[:-1], axis=axis)


def summed(shape: CubeShape, table: NDArray[Any], fine: Levels, coarse: Levels) -> NDArray[Any]:
    """Return the sums of a cuboid's cells to a coarser one; the table itself where it is the same.

    Args:
        shape: how the levels nest.
        table: numbers (cells of ``fine`` along each axis, …).
        fine: whose cells are summed.
        coarse: to which cuboid, within ``fine``.
    """
    for a in sorted(range(len(fine)), key=lambda a: _factor(shape, fine, coarse, a)):
        table = sum_along(table, a, shape.axes[a].descendant_start(coarse[a], fine[a]))
    return table


def spread(shape: CubeShape, table: NDArray[Any], coarse: Levels, fine: Levels) -> NDArray[Any]:
    """Return for each cell of a cuboid the value of the coarser cell that it lies in.

    Args:
        shape: how the levels nest.
        table: numbers (cells of ``coarse`` along each axis, …).
        coarse: whose values they are.
        fine: whose cells are wanted; ``coarse`` is within it.
    """
    for a in sorted(range(len(fine)), key=lambda a: -_factor(shape, fine, coarse, a)):
        if coarse[a] < fine[a]:
            table = table.take(shape.axes[a].ancestors(fine[a], coarse[a]), axis=a)
    return table


def nodes_below(shape: CubeShape, coarse: Levels, fine: Levels) -> list[Float64]:
    """Return along each axis how many nodes of a finer cuboid lie below a node: float64 (nodes)."""
    each = zip(shape.axes, coarse, fine, strict=True)
    return [np.diff(axis.descendant_start(k, end)).astype(np.float64) for axis, k, end in each]


def cells_below(shape: CubeShape, coarse: Levels, fine: Levels) -> Float64:
    """Return how many cells of a finer cuboid lie in each cell: float64 (cells along each axis)."""
    found = np.ones(())
    for counts in nodes_below(shape, coarse, fine):
        found = np.multiply.outer(found, counts)
    return found


def strips(shape: tuple[int, ...], cells: int = STRIP_CELLS) -> Iterator[slice]:
    """Yield ranges of the first axis's nodes, of about so many cells each."""
    step = max(1, cells // prod(shape[1:]))
    return (slice(begin, begin + step) for begin in range(0, shape[0], step))


def _factor(shape: CubeShape, fine: Levels, coarse: Levels, axis: int) -> float:
    """Return by what a sum along an axis shrinks a table: sums begin with the smallest."""
    sizes = shape.axes[axis].sizes
    return sizes[coarse[axis]] / sizes[fine[axis]]
