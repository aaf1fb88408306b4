"""A cuboid's axes folded to few: rows, columns and so on, one for each lower cover that it keeps.

The cells of a cuboid c are seen as an array with one dimension for each cover given: dimension i
has the nodes of group i, the axes on which cover i is coarser than c
(`hedgerow.estimate.workload.lattice`). The axes of no group, the batch, stand before those of the
first group in the rows. So whatever a workload's cuboids are, they are settled as families, or as
blocks of rows and columns (`hedgerow.estimate.cube.blocks`).

Nodes of a group of several axes are numbered row by row. In tables they are put in order by their
parents, the nodes at the cover's levels, so that the children of one parent stand together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np

from hedgerow.arrays import (
    Array,
    CuboidList,
    Float64,
    Int64,
    IntArrays,
    Levels,
    Sizes,
    int64_zeros,
    run_starts,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within, refined_axes

AxisWeights = Callable[[Levels, int], Float64]
"""Of a cuboid and an axis, float64 (nodes): the axis's factor of the variances of cells."""


@dataclass(frozen=True, eq=False)
class Fold:
    """How the cells of a cuboid stand below those of some of its lower covers.

    Attributes:
        shape: how the levels nest.
        cuboid: whose cells.
        covers: the covers, no two of which are coarser than the cuboid on one axis; at least one.
    """

    shape: CubeShape
    cuboid: Levels
    covers: CuboidList

    def __post_init__(self) -> None:
        refined = [axis for group in self.groups for axis in group]
        proper = all(c != self.cuboid and is_within(c, self.cuboid) for c in self.covers)
        if not self.covers or not proper or len(set(refined)) < len(refined):
            raise EstimateError(
                f"cuboid {self.cuboid} cannot be settled below "
                f"{' and '.join(map(str, self.covers)) or 'nothing'}: it must be what they have "
                "in common at the finest"
            )

    @cached_property
    def groups(self) -> tuple[Sizes, ...]:
        """The axes on which each cover is coarser."""
        return tuple(refined_axes(self.cuboid, cover) for cover in self.covers)

    @cached_property
    def batch(self) -> Sizes:
        """The axes on which no cover is coarser."""
        grouped = {axis for group in self.groups for axis in group}
        return tuple(axis for axis in range(len(self.cuboid)) if axis not in grouped)

    @property
    def batches(self) -> int:
        """The number of combinations of the batch's nodes."""
        return self._nodes(self.batch)

    @cached_property
    def starts(self) -> IntArrays:
        """For each dimension int64 (parents + 1): where the children of each parent begin."""
        starts = [run_starts(np.bincount(up)) for up in self._parents]
        inner = int(starts[0][-1])
        offsets = np.arange(self.batches)[:, None] * inner
        starts[0] = np.append((starts[0][:-1] + offsets).ravel(), self.batches * inner)
        return tuple(starts)

    @cached_property
    def parents(self) -> IntArrays:
        """For each dimension int64 (nodes, row by row): the number of each node's parent."""
        first, *others = self._parents
        above = self._nodes(self.groups[0], self.covers[0])
        rows = (np.arange(self.batches)[:, None] * above + first).ravel()
        return rows, *others

    def unfold(self, folded: Array) -> Array:
        """Return the table of the cuboid that `fold` makes this of."""
        inner = (self.batches, *map(self._nodes, self.groups))
        table = folded.reshape(inner)
        for axis, order in enumerate(self._orders, start=1):
            if order is not None:
                table = table.take(np.argsort(order), axis=axis)
        sizes = self.shape.shape(self.cuboid)
        table = table.reshape([sizes[axis] for axis in self._axes])
        return np.ascontiguousarray(table.transpose(np.argsort(self._axes)))

    def weights(self, of_axis: AxisWeights | None) -> list[Float64]:
        """Return for each dimension float64 (nodes), in the order of `fold`: a cell's variance.

        What a batch's nodes have in common is left out: within a block it is one number.
        """
        weights = []
        for group, order in zip(self.groups, self._orders, strict=True):
            each = [np.ones(1)] if of_axis is None else [of_axis(self.cuboid, a) for a in group]
            whole = np.asarray(reduce(np.multiply.outer, each)).ravel()
            whole = np.ones(self._nodes(group)) if of_axis is None else whole
            weights.append(whole if order is None else whole[order])
        weights[0] = np.tile(weights[0], self.batches)
        return weights

    @cached_property
    def _axes(self) -> list[int]:
        """The axes, in the order of the dimensions."""
        return [*self.batch, *(axis for group in self.groups for axis in group)]

    @cached_property
    def _parents(self) -> list[Int64]:
        """For each group int64 (nodes): the number of each node's parent."""
        parents = []
        for group, cover in zip(self.groups, self.covers, strict=True):
            up = int64_zeros(1)
            for axis in group:
                own = self.shape.axes[axis]
                above = own.ancestors(self.cuboid[axis], cover[axis])
                up = (up[:, None] * own.sizes[cover[axis]] + above).ravel()
            parents.append(up)
        return parents

    @cached_property
    def _orders(self) -> list[Int64 | None]:
        """For each group the nodes by their parents; None where that is their own order."""
        return [
            None if (np.diff(up) >= 0).all() else np.argsort(up, kind="stable")
            for up in self._parents
        ]

    def _nodes(self, axes: Sequence[int], cuboid: Levels | None = None) -> int:
        """Return the number of combinations of nodes of some axes."""
        levels = self.cuboid if cuboid is None else cuboid
        return prod(self.shape.axes[axis].sizes[levels[axis]] for axis in axes)

    def fold(self, table: Array, coarse: int | None = None) -> Array:
        """Return a table of the cuboid as (rows, columns, …), children of a parent together.

        Args:
            table: of the cuboid, or of a cover, which has parents in its own dimension.
            coarse: the number of this cover.
        """
        levels = [None if i != coarse else self.covers[i] for i in range(len(self.groups))]
        inner = [self._nodes(g, k) for g, k in zip(self.groups, levels, strict=True)]
        folded = table.transpose(self._axes).reshape(self.batches, *inner)
        for i, order in enumerate(self._orders):
            if order is not None and i != coarse:
                folded = folded.take(order, axis=i + 1)
        return np.ascontiguousarray(folded.reshape(self.batches * inner[0], *inner[1:]))
