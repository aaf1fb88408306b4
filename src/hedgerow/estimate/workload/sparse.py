"""The cells of a cuboid that are measured below settled counts: those below positive cells alone.

Where cells are many, coarser cuboids are measured and settled first. Which cells lie below their
positive counts is released already, so to measure no others costs nothing (adaptive composition).
Below two covers they are blocks (`hedgerow.estimate.cube.survivors.SparseBlocks`, of folded rows
and columns); below one cover all children of its positive cells. Below more nothing is measured so:
three margins need not admit a table.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Protocol

import numpy as np

from hedgerow.arrays import (
    Array,
    Codes,
    Float64,
    Int32,
    Int64,
    Integers,
    Levels,
    among,
    int32,
    int64_zeros,
    run_of,
    run_starts,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within, join, refined_axes
from hedgerow.estimate.cube.survivors import SparseBlocks
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.workload.fold import Fold
from hedgerow.limits import MOST_ROWS_OF_A_BLOCK

Listed = tuple[Sequence[Array], Int64]
"""Positive cells of a cuboid, in any order: for each axis their nodes, and their counts."""


class Survivors(Protocol):
    """The cells of a cuboid that are measured, laid end to end."""

    @property
    def cells(self) -> int:
        """How many they are."""

    def places(self, codes: Sequence[Integers]) -> Int64:
        """Return where listed cells of the cuboid stand, -1 for those that are not measured.

        Args:
            codes: for each axis int (cells): the cell's node.
        """

    def nodes(self, cells: Int64) -> Codes:
        """Return for each axis int32 (cells): the nodes of the cells at some places."""

    def settle(self, noisy: Float64) -> Int64:
        """Return whole counts with the settled sums: int64 (cells), records.

        Args:
            noisy: float64 (cells), records, of equal variance.
        """


def survivors_below(
    shape: CubeShape,
    cuboid: Levels,
    covers: Sequence[Levels],
    counts: Mapping[Levels, Int64 | Listed],
) -> Survivors:
    """Return the cells of a cuboid that lie below positive counts of all its covers.

    Args:
        shape: how the levels nest.
        cuboid: whose cells.
        covers: one or two, that refine no more together than the cuboid does.
        counts: the settled counts of each: int64 (cells along each axis), or the positive ones.

    Raises:
        EstimateError: other covers, counts that contradict each other, or more than
            `MOST_ROWS_OF_A_BLOCK` rows or columns.
    """
    check_covers(cuboid, covers)
    if len(covers) == 1:
        return SparseFamilies.below(shape, cuboid, covers[0], counts[covers[0]])
    fold = Fold(shape, cuboid, tuple(sorted(covers)))
    return SparseFold.below(fold, counts)


def check_covers(cuboid: Levels, covers: Sequence[Levels]) -> None:
    """Raise unless cells of a cuboid can be measured below positive counts of its covers.

    Raises:
        EstimateError: they are none or more than two, or the cuboid is finer than both together.
    """
    proper = all(cover != cuboid and is_within(cover, cuboid) for cover in covers)
    names = " and ".join(map(str, covers)) or "nothing"
    if not 1 <= len(covers) <= 2 or not proper:
        raise EstimateError(
            f"cells of cuboid {cuboid} cannot be measured below positive counts of {names}: it "
            "takes one or two cuboids that are coarser; measure all its cells"
        )
    finest = reduce(join, covers)
    if len(covers) == 2 and finest != cuboid:
        raise EstimateError(
            f"cuboid {cuboid} is finer than {names} are together: name {finest} too, or measure "
            "all its cells"
        )


def folded_sizes(fold: Fold) -> tuple[int, int]:
    """Return how many rows and columns the cells below two covers have."""
    cuboid = fold.cuboid
    one, other = fold.groups
    rows = _only(cuboid, (*fold.batch, *one))
    return fold.shape.cells(rows), fold.shape.cells(_only(cuboid, other))


@frozen(eq=False)
class SparseFold:
    """The cells below positive counts of two covers: blocks of rows and columns.

    Rows are nodes of the batch and of the first cover's group, columns of the second's, numbered
    row by row (`hedgerow.estimate.workload.fold`).

    Attributes:
        fold: of the cuboid.
        blocks: its blocks.
    """

    fold: Fold
    blocks: SparseBlocks

    @classmethod
    def below(cls, fold: Fold, counts: Mapping[Levels, Int64 | Listed]) -> "SparseFold":
        """Return the blocks below the settled counts of the fold's two covers."""
        batch = fold.batch
        one, other = fold.groups
        first, second = fold.covers
        row_axes = (*batch, *one)
        cuboid = fold.cuboid
        if (most := max(folded_sizes(fold))) > MOST_ROWS_OF_A_BLOCK:
            raise EstimateError(
                f"cuboid {cuboid} has {most:,} rows or columns below {first} and {second}; "
                f"at most {MOST_ROWS_OF_A_BLOCK:,} can be measured below "
                "positive counts: measure all cells"
            )
        cells = []
        for cover in (second, first):
            codes, values = listed(counts[cover])
            row = _numbered(fold.shape, cover, row_axes, codes)
            cells.append((row, _numbered(fold.shape, cover, other, codes), values))
        rows, columns = fold.parents
        return cls(fold, SparseBlocks.of_cells(cells[0], cells[1], (rows, columns)))

    @property
    def cells(self) -> int:
        """How many cells are measured."""
        return self.blocks.cells

    def places(self, codes: Sequence[Integers]) -> Int64:
        """Return where listed cells stand, -1 for those that are not measured: int64 (cells)."""
        fold = self.fold
        row_axes = (*fold.batch, *fold.groups[0])
        rows, columns = fold.parents
        row = _numbered(fold.shape, fold.cuboid, row_axes, codes)
        column = _numbered(fold.shape, fold.cuboid, fold.groups[1], codes)
        return self.blocks.places(row, column, (rows, columns))

    def nodes(self, cells: Int64) -> Codes:
        """Return for each axis int32 (cells): the nodes of the cells at some places."""
        fold = self.fold
        nodes = dict[int, Int32]()
        sizes = fold.shape.shape(fold.cuboid)
        folded = (*fold.batch, *fold.groups[0]), fold.groups[1]
        for axes, node in zip(folded, self.blocks.nodes(cells), strict=True):
            codes = np.unravel_index(node, [sizes[axis] for axis in axes])
            nodes |= {a: int32(code) for a, code in zip(axes, codes, strict=True)}
        return tuple(nodes[axis] for axis in range(len(sizes)))

    def settle(self, noisy: Float64) -> Int64:
        """Return the whole counts of the cells, with all margins: int64 (cells), records."""
        _check_noisy(noisy, self.cells)
        rows, columns = self.fold.parents
        return self.blocks.settle(noisy, (np.ones(len(rows)), np.ones(len(columns))))


@frozen(eq=False)
class SparseFamilies:
    """All children of the positive cells of one cover, family by family.

    Families stand in the order of their parents, row by row, and so do the children of each.

    Attributes:
        shape: how the levels nest.
        cuboid: of the children.
        cover: of the parents.
        parents: for each axis int32 (families): the parent's node.
        numbers: int64 (families): the parents' numbers, ascending.
        totals: int64 (families): their settled counts, above 0.
        start: int64 (families + 1): where each family begins, and the end.
    """

    shape: CubeShape
    cuboid: Levels
    cover: Levels
    parents: Codes
    numbers: Int64
    totals: Int64
    start: Int64

    @classmethod
    def below(
        cls, shape: CubeShape, cuboid: Levels, cover: Levels, counts: Int64 | Listed
    ) -> "SparseFamilies":
        """Return the families below positive counts of a cover."""
        codes, values = listed(counts)
        number = np.ravel_multi_index(tuple(codes), shape.shape(cover))
        order = np.argsort(number)
        parents = tuple(int32(code[order]) for code in codes)
        many = np.ones(len(order), dtype=np.int64)
        for axis in refined_axes(cuboid, cover):
            start = shape.axes[axis].descendant_start(cover[axis], cuboid[axis])
            many *= np.diff(start)[parents[axis]]
        return cls(shape, cuboid, cover, parents, number[order], values[order], run_starts(many))

    @property
    def cells(self) -> int:
        """How many cells are measured."""
        return int(self.start[-1])

    def places(self, codes: Sequence[Integers]) -> Int64:
        """Return where listed cells stand, -1 for those that are not measured: int64 (cells)."""
        up = list(codes)
        inside = int64_zeros(len(codes[0]))
        for axis in refined_axes(self.cuboid, self.cover):
            own = self.shape.axes[axis]
            levels = (self.cuboid[axis], self.cover[axis])
            up[axis] = own.ancestors(*levels)[codes[axis]]
            begin = own.descendant_start(*reversed(levels))
            inside = inside * np.diff(begin)[up[axis]] + codes[axis] - begin[up[axis]]
        number = np.ravel_multi_index(tuple(up), self.shape.shape(self.cover))
        family, measured = among(self.numbers, number)
        return np.where(measured, self.start[family] + inside, -1)

    def nodes(self, cells: Int64) -> Codes:
        """Return for each axis int32 (cells): the nodes of the cells at some places."""
        family = run_of(self.start, cells)
        inside = cells - self.start[family]
        nodes = [code[family] for code in self.parents]
        for axis in reversed(refined_axes(self.cuboid, self.cover)):
            begin = self.shape.axes[axis].descendant_start(self.cover[axis], self.cuboid[axis])
            wide = np.diff(begin)[nodes[axis]]
            nodes[axis] = int32(begin[nodes[axis]] + inside % wide)
            inside //= wide
        return tuple(nodes)

    def settle(self, noisy: Float64) -> Int64:
        """Return the whole counts of the cells, with all parents' counts: int64 (cells), records.

        Raises:
            EstimateError: noisy counts that are not finite, or too few or too many.
        """
        _check_noisy(noisy, self.cells)
        return Euclidean().project(noisy, self.start, self.totals)


def _check_noisy(noisy: Float64, cells: int) -> None:
    """Raise unless there is a finite noisy count of each cell."""
    if noisy.shape != (cells,) or not np.isfinite(noisy).all():
        raise EstimateError(f"{cells} noisy counts are needed, each finite")


def listed(counts: Int64 | Listed) -> Listed:
    """Return the positive cells of a whole table, or a list of them as it is."""
    if not isinstance(counts, np.ndarray):
        return counts
    codes = np.nonzero(counts > 0)
    return codes, counts[codes]


def _only(cuboid: Levels, axes: Sequence[int]) -> Levels:
    """Return the coarsening of a cuboid that is refined along some axes alone."""
    return tuple(level if axis in axes else 0 for axis, level in enumerate(cuboid))


def _numbered(
    shape: CubeShape, cuboid: Levels, axes: Sequence[int], codes: Sequence[Array]
) -> Int32:
    """Return the numbers of cells' nodes of some axes of a cuboid, row by row: int32 (cells)."""
    sizes = shape.shape(cuboid)
    nodes = tuple(codes[axis] for axis in axes)
    return int32(np.ravel_multi_index(nodes, [sizes[axis] for axis in axes]))
