"""Cells of a depth by number, and two lists of them side by side.

The possible cells of a depth are numbered in row-major order over its axes. A list of cells is
sparse (ascending numbers with their values, all others being 0) or holds all of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.kernels import kernel
from hedgerow.tables.counts import Counts
from hedgerow.tables.order import Codes
from hedgerow.tables.tree import Tree

Int64 = NDArray[np.int64]

MOST_NUMBERED = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Counts of a depth.

    Attributes:
        number: int64 (cells), ascending: which cells; None for all possible ones.
        values: int64 (cells), records.
    """

    number: Int64 | None
    values: Int64

    @classmethod
    def of(cls, tree: Tree, depth: int, codes: Codes, values: Int64) -> "Cells":
        """The cells of some nodes of a depth, in whatever order."""
        shape = shape_of(tree, depth)
        number = np.zeros(len(values), dtype=np.int64)
        for code, size in zip(codes, shape, strict=True):
            number = number * size + code
        if (number[1:] > number[:-1]).all():
            return cls(number, values)
        order = np.argsort(number)
        return cls(number[order], values[order])

    @classmethod
    def true(cls, counts: Counts, depth: int) -> "Cells":
        """The true counts of a depth that are not 0."""
        return cls.of(counts.tree, depth, *counts.roll_up(depth))

    def laid_out(self, cells: int) -> Int64:
        """The counts of all possible cells: int64 (cells)."""
        if self.number is None:
            return self.values
        every = np.zeros(cells, dtype=np.int64)
        every[self.number] = self.values
        return every


def shape_of(tree: Tree, depth: int) -> tuple[int, ...]:
    """How many nodes each axis has at a depth."""
    return tuple(
        axis.size(level) for axis, level in zip(tree.axes, tree.cuboid(depth), strict=True)
    )


def check_numbered(tree: Tree) -> None:
    """Refuse a tree whose cells 64-bit numbers do not count.

    Raises:
        TableError: more than 2⁶² leaves.
    """
    if tree.leaves > MOST_NUMBERED:
        raise TableError(
            f"a simulation numbers all possible cells, and the tree has {tree.leaves:,} leaves, "
            f"more than 2**62; leave out a level"
        )


def side_by_side(one: Cells, other: Cells, cells: int) -> tuple[Int64 | None, Int64, Int64]:
    """Numbers and both values of the cells that either list holds.

    Args:
        one: a list.
        other: a list.
        cells: how many are possible.

    Returns:
        int64 (cells) each; the numbers are None where the values are those of all possible cells.
    """
    if one.number is None or other.number is None:
        return None, one.laid_out(cells), other.laid_out(cells)
    number = np.empty(len(one.number) + len(other.number), dtype=np.int64)
    values = np.zeros((2, len(number)), dtype=np.int64)
    found = _merge(one.number, one.values, other.number, other.values, number, values)
    return number[:found], values[0, :found], values[1, :found]


@kernel
def _merge(
    a: Int64, a_values: Int64, b: Int64, b_values: Int64, number: Int64, values: Int64
) -> int:
    """Write both ascending lists side by side; how many cells there are."""
    i = 0
    j = 0
    found = 0
    while i < len(a) or j < len(b):
        first = i < len(a) and (j >= len(b) or a[i] <= b[j])
        second = j < len(b) and (i >= len(a) or b[j] <= a[i])
        if first:
            number[found] = a[i]
            values[0, found] = a_values[i]
            i += 1
        if second:
            number[found] = b[j]
            values[1, found] = b_values[j]
            j += 1
        found += 1
    return found
