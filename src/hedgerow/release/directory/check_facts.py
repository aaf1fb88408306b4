"""`check`: does a released table keep what public files say?

A cell may have records if some of its finest cells may: an attribute cell that no rule empties, of
a group that the place has. This is told here from the facts in numbers and the released counts
alone, in another way than a release finds its cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Int32, Int64, Levels, distinct, int64, int64_zeros
from hedgerow.errors import ReleaseError
from hedgerow.plan.facts.constraints import Constraints
from hedgerow.plan.facts.public_rows import attribute_axes, shown
from hedgerow.release.descent.nodes import Nodes
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, eq=False)
class TableFacts:
    """What public facts say of the cells of one table.

    Attributes:
        tree: the public domain, with a spine.
        constraints: the facts.
        levels: the table.
    """

    tree: Tree
    constraints: Constraints
    levels: Levels

    def check(self, nodes: Nodes) -> None:
        """Raise unless every count above 0 is of a cell that may hold records, and bounds are kept.

        Args:
            nodes: the released cells of the table with a count above 0.

        Raises:
            ReleaseError: a cell should be empty, or a sum of counts is outside its bounds.
        """
        node = int64(nodes.codes[self._spine])
        cell = self._attribute_cells([nodes.codes[a] for a in self._beside])
        wrong = np.flatnonzero(~self._may_hold(node, cell))
        if len(wrong):
            raise ReleaseError(
                f"{self._name(nodes, int(wrong[0]))} has a count above 0, where public facts leave "
                f"nobody"
            )
        if self._group is not None:
            self._check_bounds(node, self._group[cell], nodes.counts)

    @property
    def _spine(self) -> int:
        return self.tree.spine or 0

    @property
    def _beside(self) -> list[int]:
        return attribute_axes(self.tree)

    @property
    def _level(self) -> int:
        """The table's level of the spine, without those of single children."""
        return self.constraints.spine.given[self.levels[self._spine]]

    def _attribute_cells(self, codes: Sequence[Int32]) -> Int64:
        """Return the number of each attribute cell, row by row in the tree's order of axes."""
        sizes = [self.tree.axes[a].size(self.levels[a]) for a in self._beside]
        return int64(np.ravel_multi_index(tuple(codes), sizes))

    @cached_property
    def _of_leaf(self) -> Int64:
        """The attribute cell of the table that every attribute leaf falls into."""
        axes = [(self.tree.axes[a], self.levels[a]) for a in self._beside]
        sizes = [axis.leaves for axis, _ in axes]
        leaves = np.indices(sizes, dtype=np.int32).reshape(len(axes), -1)
        each = zip(axes, leaves, strict=True)
        return self._attribute_cells([a.nodes_above(k, a.depth, leaf) for (a, k), leaf in each])

    @cached_property
    def _group(self) -> Int64 | None:
        """The group of every attribute cell; None where some have leaves of several groups."""
        pairs = distinct(self._of_leaf * self.constraints.groups + self.constraints.group_of)
        cells, groups = np.divmod(pairs, self.constraints.groups)
        return None if len(distinct(cells)) < len(cells) else groups

    def _may_hold(self, node: Int64, cell: Int64) -> NDArray[np.bool_]:
        """Return whether each cell may hold records: bool (cells)."""
        constraints = self.constraints
        groups = self.constraints.groups
        place = np.ones(constraints.spine.sizes[self._level] * groups, dtype=np.bool_)
        if constraints.has is not None:
            place[:] = False
            above = constraints.spine.ancestors(constraints.spine.depth, self._level)
            place[above[constraints.has[0]] * groups + constraints.has[1]] = True
        possible = ~constraints.zeros
        pairs = distinct(self._of_leaf[possible] * groups + constraints.group_of[possible])
        start = np.searchsorted(pairs, np.arange(int(self._of_leaf.max()) + 2) * groups)
        may = np.zeros(len(node), dtype=np.bool_)
        for k in range(int(np.diff(start).max())):  # the k-th group that has a part in each cell
            there = np.flatnonzero(start[cell] + k < start[cell + 1])
            group = pairs[start[cell[there]] + k] % groups
            may[there] |= place[node[there] * groups + group]
        return may

    def _check_bounds(self, node: Int64, group: Int64, counts: Int64) -> None:
        """Raise unless the counts of groups lie within all bounds that the table tells."""
        constraints = self.constraints
        for level, nodes, groups, low, high in constraints.bounds:
            if level > self._level:
                continue
            above = constraints.spine.ancestors(self._level, level)[node]
            sums = int64_zeros(constraints.spine.sizes[level] * constraints.groups)
            np.add.at(sums, above * constraints.groups + group, counts)
            bounded = sums[nodes * constraints.groups + groups]
            wrong = np.flatnonzero((bounded < low) | (bounded > high))
            if len(wrong):
                at = int(wrong[0])
                label = ""
                if level:
                    own = self.tree.axes[self._spine]
                    given = constraints.spine.first(level)
                    label = f" of {shown(own.labels[given - 1][int(nodes[at])])}"
                raise ReleaseError(
                    f"the released count {bounded[at]:,}{label} is outside its public bounds "
                    f"{low[at]:,} to {high[at]:,}"
                )

    def _name(self, nodes: Nodes, row: int) -> str:
        """Return a cell in words."""
        words = []
        for axis, level, codes in zip(self.tree.axes, self.levels, nodes.codes, strict=True):
            path = axis.path(level, codes[row : row + 1]) if level else []
            labels = path if axis.product is not None else path[-2:]
            words += [f"{label.name} {shown(label[0])}" for label in labels]
        return " × ".join(words) or "the total"
