"""From one coarsening of a table to another, without the table: S_c S_dᵀ.

S_c sums the cells of a table to cuboid c. Entry (i, j) of S_c S_dᵀ is the number of the table's
cells that lie in cell i of c and in cell j of d: a product over axes. Along one axis levels nest,
so a run of cells is summed where c is coarser than d and repeated where it is finer, each time
with the number of the table's nodes below the finer node. All arrays here may have further
dimensions behind those of the cells: many vectors at a time.
"""

from collections.abc import Mapping

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.estimate.cube.shape import CubeShape, join, meet, nodes_below, spread, strips, summed

Parts = Mapping[Levels, Float64]
"""A vector over a table's cells as Σ_d S_dᵀ w_d: for each d float64 (cells along each axis, …)."""


def overlap(
    shape: CubeShape, table: Levels, weights: Float64, origin: Levels, wanted: Levels
) -> Float64:
    """Return S_c S_dᵀ w: float64 (cells of ``wanted`` along each axis, …).

    Args:
        shape: how the levels nest.
        table: whose cells are summed; both cuboids are within it.
        weights: w, float64 (cells of ``origin`` along each axis, …).
        origin: d.
        wanted: c.
    """
    common = meet(origin, wanted)
    counted, found = nodes_below(shape, join(origin, wanted), table), weights
    for a in range(len(table)):
        if origin[a] > wanted[a]:
            found = found * _along(counted[a], a, found.ndim)
    found = spread(shape, summed(shape, found, origin, common), common, wanted)
    for a in range(len(table)):
        if origin[a] <= wanted[a] < table[a]:
            found = found * _along(counted[a], a, found.ndim)
    return found


def sums_of(shape: CubeShape, table: Levels, parts: Parts, wanted: Levels) -> Float64:
    """Return S_c Σ_d S_dᵀ w_d: float64 (cells of ``wanted`` along each axis, …)."""
    first, *others = (overlap(shape, table, w, d, wanted) for d, w in parts.items())
    found = np.array(first) if others else first
    for other in others:
        found += other
    return found


def add_spread(shape: CubeShape, target: Float64, parts: Parts, table: Levels) -> None:
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


def _along(counts: Float64, axis: int, dimensions: int) -> Float64:
    """Return counts along one axis, to be multiplied with an array of so many dimensions."""
    return counts.reshape([-1 if a == axis else 1 for a in range(dimensions)])
