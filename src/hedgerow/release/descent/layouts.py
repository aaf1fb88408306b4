"""Which cells of a cuboid are measured at once, and in which order their noisy counts stand.

A layout follows from the plan and from released counts alone. It is the same wherever noise is
drawn and wherever noisy counts are read back, so no cell has two noisy counts and none the noise
of another. Of a layout only ``add`` reads counts of the confidential table; `Families` and flows
also find which of its rows lie below a node.
"""

from collections.abc import Callable

import numpy as np

from hedgerow.arrays import Codes, Int32, Int64, IntArrays, Levels, int32, int64, int64_zeros
from hedgerow.declared import frozen
from hedgerow.estimate.running_sums import Strategy
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.workload.sparse import Survivors
from hedgerow.kernels import kernel
from hedgerow.release.descent.nodes import places
from hedgerow.release.descent.steps import Families
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cells_above

LEAVES_AT_ONCE = 1 << 22


@frozen
class EveryCell:
    """All cells of a cuboid, row by row.

    Attributes:
        tree: the tree.
        levels: of the cuboid.
    """

    first = 0
    is_all = True
    tree: Tree
    levels: Levels

    @property
    def cells(self) -> int:
        """How many."""
        return self.tree.cells(self.levels)

    def add(self, noisy: Int64, counts: Counts) -> None:
        """Add the true counts to the noise of their cells."""
        steps, below = [], 1  # what each leaf of an axis adds to the number of its cell
        for axis, level in zip(reversed(self.tree.axes), reversed(self.levels), strict=True):
            steps.append(int64(axis.ancestors(level)) * below)
            below *= axis.size(level)
        _add_leaves(noisy, tuple(reversed(steps)), counts.codes, counts.values)


@frozen
class Below:
    """The cells of a cuboid below released counts.

    Attributes:
        levels: of the cuboid.
        survivors: which cells.
    """

    first = 0
    is_all = True
    levels: Levels
    survivors: Survivors

    @property
    def cells(self) -> int:
        """How many."""
        return self.survivors.cells

    def add(self, noisy: Int64, counts: Counts) -> None:
        """Add the true counts to the noise of their cells."""
        ancestors = [a.ancestors(k) for a, k in zip(counts.tree.axes, self.levels, strict=True)]
        for begin in range(0, len(counts.values), LEAVES_AT_ONCE):
            few = slice(begin, begin + LEAVES_AT_ONCE)
            codes = tuple(up[code[few]] for up, code in zip(ancestors, counts.codes, strict=True))
            place = self.survivors.places(codes)
            there = place >= 0
            np.add.at(noisy, place[there], counts.values[few][there])


@frozen(repr=False)
class SpineLeaves:
    """The non-zero leaves below a stretch of the spine. Confidential.

    Attributes:
        nodes: int32 (leaves): of the spine's finest level.
        cells: int32 (leaves): which detail cell, -1 for none.
        values: int64 (leaves), records.
    """

    nodes: Int32
    cells: Int32
    values: Int64


@frozen
class Stretch:
    """The cells of a cuboid beside consecutive nodes of the spine.

    Attributes:
        layout: of all cells of the cuboid.
        nodes: of the cuboid's spine level.
        first: how many cells of the cuboid lie beside the nodes before them.
        ancestors: int32 (finest nodes of the spine): the node of the cuboid's level above each.
        leaves: returns the leaves below the nodes, of a table in the order of the spine.
    """

    is_all = False
    layout: Cells
    nodes: range
    first: int
    ancestors: Int32
    leaves: Callable[[Counts], SpineLeaves]

    @property
    def cells(self) -> int:
        """How many."""
        return self.layout.count(self.nodes)

    def add(self, noisy: Int64, counts: Counts) -> None:
        """Add the true counts to the noise of their cells."""
        here = self.leaves(counts)
        node = self.ancestors[here.nodes]
        self.layout.add(noisy, self.nodes, node, here.cells, here.values)


@frozen
class Sums:
    """The weighted running sums of the bins that end a chain, row by row.

    Attributes:
        tree: the tree.
        rows: one int32 array (rows) an axis: the nodes above the bins.
        strategy: the weights.
    """

    first = 0
    is_all = True
    tree: Tree
    rows: Codes
    strategy: Strategy

    @property
    def cells(self) -> int:
        """How many."""
        return len(self.rows[0]) * self.strategy.bins

    def add(self, noisy: Int64, counts: Counts) -> None:
        """Add the true sums to their noise."""
        tree, (last, _) = self.tree, self.tree.steps[-1]
        row = places(cells_above(tree, tree.chain[-2], tree.finest, counts.codes), self.rows)
        leaves = int64_zeros(self.cells).reshape(-1, self.strategy.bins)
        leaves[row, counts.codes[last]] = counts.values
        noisy += self.strategy.sums(leaves).ravel()


Layout = EveryCell | Below | Families | Stretch | Sums
"""Cells of one cuboid, laid end to end.

``cells``: how many; ``first``: how many cells of the cuboid stand before them where all are written
down; ``is_all``: whether they are all that are measured of the cuboid; ``add`` adds the true counts
of a confidential table to the noise of their cells, modulo 2⁶⁴.
"""


def leaves_between(counts: Counts, detail_of: Int32, first: int, stop: int) -> SpineLeaves:
    """Return the leaves below nodes first..stop of the finest level of the spine, the first axis.

    Args:
        counts: the confidential table, in an order that takes the spine first.
        detail_of: int32 (attribute leaves, row by row): the detail cell of each, -1 for none.
        first: the first of the nodes.
        stop: the node behind the last one.
    """
    ends = int32([first, stop])  # another type would be a copy of all the codes
    here = slice(*np.searchsorted(counts.codes[0], ends).tolist())
    sizes = [axis.leaves for axis in counts.tree.axes[1:]]
    number = int64_zeros(here.stop - here.start)
    for code, size in zip(counts.codes[1:], sizes, strict=True):
        number = number * size + code[here]
    return SpineLeaves(counts.codes[0][here], detail_of[number], counts.values[here])


@kernel
def _add_leaves(table: Int64, steps: IntArrays, codes: Codes, values: Int64) -> None:
    """Add each leaf's count to its cell, modulo 2⁶⁴."""
    for leaf in range(len(values)):
        cell = 0
        for a in range(len(codes)):
            cell += steps[a][codes[a][leaf]]
        # Added to the noise itself: there is no table of true counts at any time.
        table[cell] += values[leaf]
