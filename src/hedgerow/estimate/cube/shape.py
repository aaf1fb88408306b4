"""The cuboids of a cube: a level of each axis, the cells they have, and how levels nest.

A *cuboid* is a vector of levels, one an axis, coarsest 0: ``(1, 0)`` is the regions of the first
axis over everything of the second. Its cells are a dense array with one dimension an axis. A level
whose families are all single children says nothing that the level above does not; it is the same
level under another number, and is left out here (`AxisShape.given`).

All tables are summed and spread here. Along one axis the nodes below a node stand together, so a
run of cells is summed, and to spread is to repeat. Tables may have further dimensions behind those
of the cells: many vectors at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import prod

import numpy as np

from hedgerow.arrays import Array, CuboidList, Float64, Int64, IntArrays, Levels, Sizes, run_numbers
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError


@dataclass(frozen=True, eq=False)
class AxisShape:
    """How the levels of one axis nest, without those of single children.

    Attributes:
        child_start: for each level k but the last int64 (nodes + 1): the children of node j are
            the nodes ``child_start[k][j] .. child_start[k][j + 1]`` of level k + 1.
        given: for each level of the axis as it was given, the level here that has its nodes.
    """

    child_start: IntArrays
    given: Sizes

    @classmethod
    def of(cls, child_start: Sequence[Int64]) -> "AxisShape":
        """Return the shape of an axis from the child ranges of all its levels.

        Args:
            child_start: for each level 0..L-1, as `hedgerow.tables.axis.Axis` has them.

        Raises:
            EstimateError: ranges that do not nest, or a node without children.
        """
        kept = []
        given = [0]
        nodes = 1
        for level, start in enumerate(child_start):
            if len(start) != nodes + 1 or start[0] != 0 or (np.diff(start) < 1).any():
                raise EstimateError(
                    f"child_start of level {level} must give each of {nodes} nodes a child or more"
                )
            nodes = int(start[-1])
            if nodes > len(start) - 1:
                kept.append(np.ascontiguousarray(start, dtype=np.int64))
            given.append(len(kept))
        return cls(tuple(kept), tuple(given))

    @property
    def depth(self) -> int:
        """The deepest level, L."""
        return len(self.child_start)

    @cached_property
    def sizes(self) -> Sizes:
        """The number of nodes of each level 0..L."""
        return (1, *(int(start[-1]) for start in self.child_start))

    def down_to(self, level: int) -> "AxisShape":
        """Return the axis without what is below a level."""
        given = tuple(k for k in self.given if k <= level)
        return AxisShape(self.child_start[:level], given)

    def first(self, level: int) -> int:
        """Return the number, as given, of the coarsest level that has these nodes."""
        return self.given.index(level)

    def parents(self, level: int) -> Int64:
        """Return the parent of each node of a level from 1 on: int64 (nodes)."""
        return run_numbers(self.child_start[level - 1])

    def ancestors(self, level: int, coarser: int) -> Int64:
        """Return the ancestor of each node at a coarser level or the same: int64 (nodes)."""
        ancestors = np.arange(self.sizes[level])
        for k in range(level, coarser, -1):
            ancestors = self.parents(k)[ancestors]
        return ancestors

    def descendant_start(self, level: int, deeper: int) -> Int64:
        """Return where the descendants at ``deeper`` begin: int64 (nodes of ``level`` + 1)."""
        start = np.arange(self.sizes[level] + 1)
        for k in range(level, deeper):
            start = self.child_start[k][start]
        return start


@frozen(eq=False)
class CubeShape:
    """All combinations of the levels of several axes.

    Attributes:
        axes: one shape an axis, at least one.
    """

    axes: tuple[AxisShape, ...]

    @classmethod
    def of(cls, axes: Sequence[Sequence[Int64]]) -> "CubeShape":
        """Return the cube over axes, each given by the child ranges of its levels.

        Raises:
            EstimateError: see `AxisShape.of`; or no axis.
        """
        if not axes:
            raise EstimateError("a cube needs at least one axis")
        return cls(tuple(map(AxisShape.of, axes)))

    @property
    def finest(self) -> Levels:
        """The cuboid of the leaves."""
        return tuple(axis.depth for axis in self.axes)

    @property
    def total(self) -> Levels:
        """The cuboid of one cell."""
        return (0,) * len(self.axes)

    def cuboids(self) -> Iterator[Levels]:
        """Return every cuboid, each after all that are coarser."""
        every = product(*(range(axis.depth + 1) for axis in self.axes))
        return iter(sorted(every, key=fineness))

    def within(self, cuboid: Levels | None) -> frozenset[Levels]:
        """Return a cuboid and all its coarsenings; of none there are none."""
        return frozenset(c for c in self.cuboids() if is_within(c, cuboid))

    def down_to(self, cuboid: Levels) -> "CubeShape":
        """Return the cube without the levels that are finer than a cuboid's."""
        each = zip(self.axes, cuboid, strict=True)
        return CubeShape(tuple(axis.down_to(level) for axis, level in each))

    def shape(self, cuboid: Levels) -> Sizes:
        """Return the number of cells along each axis."""
        return tuple(axis.sizes[k] for axis, k in zip(self.axes, cuboid, strict=True))

    def cells(self, cuboid: Levels) -> int:
        """Return the number of cells (a Python integer: it may exceed 2⁶³)."""
        return prod(self.shape(cuboid))

    def given(self, levels: Sequence[int]) -> Levels:
        """Return the cuboid that has the cells of these levels, numbered as the axes were given."""
        return tuple(axis.given[k] for axis, k in zip(self.axes, levels, strict=True))

    def first(self, cuboid: Levels) -> Levels:
        """Return the levels of a cuboid, numbered as the axes were given: the coarsest of equal."""
        return tuple(axis.first(k) for axis, k in zip(self.axes, cuboid, strict=True))

    def checked(self, cuboid: Levels, table: Float64 | None) -> Float64:
        """Return a cuboid's table.

        Raises:
            EstimateError: it is missing, of another shape, not of float64, or not finite.
        """
        shape = self.shape(cuboid)
        if table is None or table.shape != shape or table.dtype != np.float64:
            raise EstimateError(
                f"cuboid {cuboid} needs a float64 table of the shape {shape}, got "
                f"{'none' if table is None else f'{table.dtype} of the shape {table.shape}'}"
            )
        if not np.isfinite(table).all():
            raise EstimateError(f"the numbers of cuboid {cuboid} must be finite")
        return table


def at_level(cuboid: Levels, axis: int, level: int) -> Levels:
    """Return a cuboid with another level along one axis."""
    return (*cuboid[:axis], level, *cuboid[axis + 1 :])


def coarser(cuboid: Levels, axis: int) -> Levels:
    """Return the cuboid one level coarser along an axis."""
    return at_level(cuboid, axis, cuboid[axis] - 1)


def is_within(cuboid: Levels, other: Levels | None) -> bool:
    """Return whether a cuboid is another or one of its coarsenings; within None there is none.

    What is public is so: a cuboid, or None, and what is within it.
    """
    return other is not None and all(a <= b for a, b in zip(cuboid, other, strict=True))


def is_within_any(cuboid: Levels, others: Iterable[Levels]) -> bool:
    """Return whether a cuboid is one of others, or a coarsening of one."""
    return any(is_within(cuboid, other) for other in others)


def maximal(cuboids: Iterable[Levels]) -> CuboidList:
    """Return the cuboids that no other one refines, sorted."""
    every = set(cuboids)
    finest = tuple(map(max, zip(*every, strict=True)))
    if finest in every:
        return (finest,)
    return tuple(sorted(c for c in every if not is_within_any(c, every - {c})))


def meet(cuboid: Levels, other: Levels) -> Levels:
    """Return the common coarsening of two cuboids: their componentwise minimum."""
    return tuple(map(min, cuboid, other))


def join(cuboid: Levels, other: Levels) -> Levels:
    """Return the common refinement of two cuboids: their componentwise maximum."""
    return tuple(map(max, cuboid, other))


def fineness(cuboid: Levels) -> tuple[int, Levels]:
    """Return the key by which cuboids are sorted: each after all that are coarser."""
    return sum(cuboid), cuboid


def refined_axes(cuboid: Levels, coarser: Levels) -> Sizes:
    """Return the axes on which a cuboid is finer than one of its coarsenings."""
    return tuple(a for a, (k, c) in enumerate(zip(cuboid, coarser, strict=True)) if k > c)


STRIP_CELLS = 1 << 20
"""Cells of a strip of a table that is worked on at a time: it stays in the caches."""


def sum_along(table: Array, axis: int, start: Int64) -> Array:
    """Return the sums of runs of cells along an axis, from each ``start`` to the next."""
    if len(start) - 1 == table.shape[axis]:
        return table
    return np.add.reduceat(table, start[:-1], axis=axis)


def summed(shape: CubeShape, table: Array, fine: Levels, coarse: Levels) -> Array:
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


def spread(shape: CubeShape, table: Array, coarse: Levels, fine: Levels) -> Array:
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


def cells_below(shape: CubeShape, coarse: Levels, fine: Levels) -> Float64:
    """Return how many cells of a finer cuboid lie in each cell: float64 (cells along each axis)."""
    each = zip(shape.axes, coarse, fine, strict=True)
    counts = (np.diff(axis.descendant_start(k, end)).astype(float) for axis, k, end in each)
    return reduce(np.multiply.outer, counts, np.ones(()))


def strips(shape: Sizes, cells: int = STRIP_CELLS) -> Iterator[slice]:
    """Yield ranges of the first axis's nodes, of about so many cells each."""
    step = max(1, cells // prod(shape[1:]))
    return (slice(begin, begin + step) for begin in range(0, shape[0], step))


def _factor(shape: CubeShape, fine: Levels, coarse: Levels, axis: int) -> float:
    """Return by what a sum along an axis shrinks a table: sums begin with the smallest."""
    sizes = shape.axes[axis].sizes
    return sizes[coarse[axis]] / sizes[fine[axis]]
