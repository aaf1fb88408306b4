"""Vectors over a table's cells that are sums of coarser tables: Σ_d S_dᵀ w_d, never written out.

S_c sums the cells of a table to cuboid c. Along one axis levels nest, so below a cell of c the
vector S_dᵀ w_d has the mean of w_d over what d and c have in common around it, weighted by the
table's cells, and S_c S_dᵀ w_d is that mean times the table's cells in a cell of c.
"""

import numpy as np

from hedgerow.arrays import ByCuboid, Float64, Levels, Tables
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import (
    CubeShape,
    at_level,
    cells_below,
    meet,
    spread,
    strips,
    summed,
)


@frozen(eq=False)
class Layers:
    """Vectors over a table's cells, each a sum of tables of coarser cuboids that are spread.

    Attributes:
        shape: how the levels nest.
        table: whose cells.
        parts: w_d for each cuboid d within the table: float64 (cells along each axis, vectors).
    """

    shape: CubeShape
    table: Levels
    parts: ByCuboid

    def plus(self, parts: ByCuboid) -> "Layers":
        """Return the sum of these vectors and of other parts."""
        total = dict(self.parts)
        for cuboid, weights in parts.items():
            total[cuboid] = total[cuboid] + weights if cuboid in total else weights
        return Layers(self.shape, self.table, total)

    def means(self, cuboid: Levels) -> Tables:
        """Return the vectors' means below a cuboid's cells, as parts within it that add up."""
        means = Layers(self.shape, cuboid, {})
        for part, weights in self.parts.items():
            common = meet(part, cuboid)
            mean = weights
            if common != part:
                mean = mean if part == self.table else mean * self._cells(part)
                mean = summed(self.shape, mean, part, common)
                mean = mean / self._cells(common)
            means = means.plus({common: mean})
        return dict(means.parts)

    def sums(self, cuboid: Levels) -> Float64:
        """Return the vectors' sums to a cuboid: float64 (cells along each axis, vectors)."""
        vectors = max((weights.shape[-1] for weights in self.parts.values()), default=1)
        sums = np.zeros((*self.shape.shape(cuboid), vectors))
        means = self.means(cuboid)
        above = {k: self.shape.axes[0].ancestors(cuboid[0], k) for k in {d[0] for d in means}}
        for rows in strips(sums.shape):  # which stay in the caches
            for part, mean in means.items():
                strip = mean.take(above[part[0]][rows], axis=0)
                sums[rows] += spread(self.shape, strip, at_level(part, 0, cuboid[0]), cuboid)
        return sums if cuboid == self.table else sums * self._cells(cuboid)

    def products(self, other: "Layers") -> Float64:
        """Return the inner products of these vectors and of one other: float64 (vectors)."""
        each = (
            weights.reshape(-1, weights.shape[-1]).T @ other.sums(part).ravel()
            for part, weights in self.parts.items()
        )
        return sum(each, start=np.zeros(()))

    def _cells(self, cuboid: Levels) -> Float64:
        """Return how many of the table's cells lie in each cell, for any number of vectors."""
        return cells_below(self.shape, cuboid, self.table)[..., None]
