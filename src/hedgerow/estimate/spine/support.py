"""Which nodes of a spine have which groups, and within what bounds: public facts alone; its parts.

A *group* is a node of the deepest attribute level for which public facts differ from place to place
(the kinds of quarters of a census). A node has some of the groups, which are its *rows*; a node
above has those that some node below it has. Below a group stand its *cells*, the finest attribute
cells of it, of which there are as many wherever the group is. A *part* is the levels below some
nodes, which one job works on, or the top above all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import (
    Bool,
    Int32,
    Int64,
    IntArrays,
    IntPair,
    distinct,
    int32,
    int64_zeros,
    run_starts,
    runs,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.kernels import kernel, run_range
from hedgerow.limits import MOST_ROWS_OF_A_SPINE

TOP_ROOT = -1
"""The root level of the top part: above the spine's level 0."""


@frozen
class Part:
    """Some levels of a spine below some of its nodes.

    Attributes:
        root: the level of the nodes that the part hangs from, which belong to the part above; -1
            for the top, which begins with the spine's own root.
        nodes: which nodes of level ``root``; for the top ``range(1)``.
        last: the deepest level of the part.

    Example:
        >>> from hedgerow.estimate.spine.support import Part
        >>> Part.top(2).levels, Part(2, range(3, 5), 4).levels
        (range(0, 3), range(3, 5))
    """

    root: int
    nodes: range
    last: int

    @classmethod
    def top(cls, cut: int) -> "Part":
        """Return the part of the levels 0..cut of all nodes."""
        return cls(TOP_ROOT, range(1), cut)

    @property
    def is_top(self) -> bool:
        """Whether the part begins with the spine's root."""
        return self.root == TOP_ROOT

    @property
    def levels(self) -> range:
        """The levels of the part, coarsest first."""
        return range(self.root + 1, self.last + 1)


UNBOUNDED = 1 << 53
"""Records: an upper bound that bounds nothing."""


Bounds = tuple[int, Int64, Int64, Int64, Int64]
"""A spine level; and int64 (bounds): nodes of it, groups, least and largest counts (records)."""


class ContradictionError(EstimateError):
    """Bounds of a row that no count meets.

    Attributes:
        row: the spine level, the node and the group.
        low: the least count (records).
        high: the largest; -1 where the node does not have the group.
    """

    def __init__(self, level: int, node: int, group: int, low: int, high: int) -> None:
        self.row = (level, node, group)
        self.low = low
        self.high = high
        super().__init__(
            f"public bounds contradict each other: group {group} of node {node} of spine level "
            f"{level} must have at least {low} and at most {max(high, 0)}"
        )


@dataclass(frozen=True, eq=False)
class Support:
    """The rows of every node of a spine, their cells and bounds.

    The *detail layout* of some nodes of a level is a flat array: node by node, row by row (group),
    then the group's cells in the order of the attribute's leaves.

    Attributes:
        spine: the axis that is cut into jobs; its deepest level is L.
        tree: the attribute levels 0..G, the nodes of level G being the groups.
        widths: int64 (groups): cells of a group; 0 where no node has the group.
        start: for each spine level int64 (nodes + 1): where the rows of a node begin.
        group: for each spine level int32 (rows): the groups of a node, ascending.
        parent: for each spine level int64 (rows): the row of the same group at the node's parent,
            counted over the whole level above; for level 0 zeros.
        low: for each spine level int64 (rows): the least count of a row, records.
        high: for each spine level int64 (rows): the largest count of a row, `UNBOUNDED` for none.
        cell: for each spine level int64 (rows + 1): where the cells of a row begin in the detail
            layout of the whole level.
    """

    spine: AxisShape
    tree: AxisShape
    widths: Int64
    start: IntArrays
    group: tuple[Int32, ...]
    parent: IntArrays
    low: IntArrays
    high: IntArrays
    cell: IntArrays

    @classmethod
    def of(
        cls,
        spine: AxisShape,
        tree: AxisShape,
        widths: Int64,
        has: IntPair | None,
        bounds: Iterable[Bounds] = (),
    ) -> "Support":
        """Return the support of a spine from what is known of its deepest level, and bounds.

        Args:
            spine: the shape of the axis that is cut into jobs.
            tree: the shape of the attribute levels 0..G.
            widths: int64 (groups): cells of each group; 0 removes a group everywhere.
            has: nodes of the deepest spine level and groups that these may have, int64 (pairs)
                both, in any order; None for all groups at all nodes.
            bounds: at any levels and several of a row if need be. What the children's bounds imply
                is added: a row has at least the sum of its children's least counts, and at most
                that of their largest.

        Raises:
            EstimateError: no node has a group, numbers of nodes or groups that do not exist, or
                bounds that contradict each other or the absence of a group.
        """
        groups = tree.sizes[-1]
        widths = np.ascontiguousarray(widths, dtype=np.int64)
        if len(widths) != groups or (widths < 0).any():
            raise EstimateError(f"each of {groups} groups needs a number of cells from 0 on")
        keys = [_deepest_keys(spine.sizes[-1], widths, has)]
        parent = [int64_zeros(len(keys[0]))]
        for level in range(spine.depth, 0, -1):
            above = spine.parents(level)[keys[0] // groups] * groups + keys[0] % groups
            own, parent[0] = _distinct(above)
            keys.insert(0, own)
            parent.insert(0, int64_zeros(len(own)))
        each = zip(keys, spine.sizes, strict=True)
        counts = [np.bincount(k // groups, minlength=nodes) for k, nodes in each]
        group = tuple(int32(k % groups) for k in keys)
        low, high = _tightened(keys, parent, groups, bounds)
        return cls(
            spine, tree, widths, tuple(map(run_starts, counts)), group, tuple(parent),
            low, high, tuple(run_starts(widths[g]) for g in group),
        )  # fmt: skip

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.widths)

    @property
    def offset(self) -> Int64:
        """Where the cells of each group begin among those of all groups: int64 (groups + 1)."""
        return run_starts(self.widths)

    def rows(self, level: int, nodes: range) -> slice:
        """Return which rows of a level belong to a range of its nodes."""
        start = self.start[level]
        return slice(int(start[nodes.start]), int(start[nodes.stop]))

    def listed_rows(self, level: int, nodes: Int64) -> Int64:
        """Return the rows of listed nodes, one behind the other: int64 (rows)."""
        first = self.start[level]
        return runs(first[nodes], first[nodes + 1] - first[nodes])

    def cells(self, level: int, nodes: range) -> int:
        """Return the length of the detail layout of a range of nodes."""
        rows = self.rows(level, nodes)
        return int(self.cell[level][rows.stop] - self.cell[level][rows.start])

    def nodes(self, part: Part, level: int) -> range:
        """Return the nodes of a part at one of its levels, or at the level of its roots."""
        first = part.nodes.start
        last = part.nodes.stop
        for child_start in self.spine.child_start[max(part.root, 0) : level]:
            first, last = int(child_start[first]), int(child_start[last])
        return range(first, last)

    def part_rows(self, part: Part, level: int) -> slice:
        """Return which rows of a level belong to a part, or to its roots."""
        return self.rows(level, self.nodes(part, level))

    def together(self, level: int) -> Bool:
        """Return which groups lie in one cell of a level of their tree: bool (groups, groups)."""
        cell = self.tree.ancestors(self.tree.depth, level)
        return np.asarray(cell[:, None] == cell)

    def count_pairs(self, level: int, kinds: Bool, times: Int64) -> int:
        """Return how many pairs of a node of a level and a sum have a cell.

        Args:
            level: of the spine.
            kinds: bool (kinds, groups): whether a sum has a cell in a group.
            times: int64 (kinds): how many sums are of a kind.
        """
        is_single = kinds.sum(axis=1) == 1  # most sums: as many pairs as rows of the group
        rows = np.bincount(self.group[level], minlength=self.groups)
        single = int((kinds[is_single] @ rows) @ times[is_single])
        layout = (self.start[level], self.group[level])
        others = ~is_single
        return single + int(_count_pairs(*layout, kinds[others], times[others]))

    @property
    def pairs(self) -> int:
        """Pairs of groups that a node has, of all nodes: the size of a matrix for each."""
        return sum(int((np.diff(start) ** 2).sum()) for start in self.start)

    def check_held(self, numbers: int) -> None:
        """Raise unless so many numbers, of matrices over groups or cells, can be held.

        Raises:
            EstimateError: they are too many.
        """
        if numbers > MOST_ROWS_OF_A_SPINE:
            raise EstimateError(
                f"least squares of {int(self.widths.sum()):,} attribute cells in {self.groups:,} "
                f"groups take matrices of {numbers:,} numbers, more than {MOST_ROWS_OF_A_SPINE:,}: "
                f"tell fewer groups apart, or leave out attributes or levels of them"
            )


def _deepest_keys(nodes: int, widths: Int64, has: IntPair | None) -> Int64:
    """Return the pairs of nodes and groups, as node · groups + group, ascending."""
    groups = len(widths)
    if has is None:
        every = np.flatnonzero(widths > 0)
        if nodes * len(every) > MOST_ROWS_OF_A_SPINE:
            raise EstimateError(
                f"{len(every):,} groups of attribute cells at each of {nodes:,} nodes are more "
                f"than {MOST_ROWS_OF_A_SPINE:,} together: tell fewer groups apart"
            )
        keys = (np.arange(nodes)[:, None] * groups + every).ravel()
    else:
        node, group = (np.asarray(each, dtype=np.int64) for each in has)
        _check_numbers("node", node, nodes)
        _check_numbers("group", group, groups)
        keep = widths[group] > 0
        keys = distinct(node[keep] * groups + group[keep])
    if len(keys) == 0:
        raise EstimateError("public facts leave no cell at all: no node has a group with cells")
    return keys


def _distinct(keys: Int64) -> IntPair:
    """Return the distinct keys, ascending, and which one each key is (np.unique is slower)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_first = np.diff(ordered, prepend=-1) > 0
    which = np.empty(len(keys), dtype=np.int64)
    which[order] = np.cumsum(is_first) - 1
    return ordered[is_first], which


def _check_numbers(what: str, given: Int64, size: int) -> None:
    """Raise unless all numbers are below a size."""
    wrong = given[(given < 0) | (given >= size)]
    if len(wrong) > 0:
        raise EstimateError(f"there is no {what} {wrong[0]}; the numbers are 0 to {size - 1}")


def _tightened(
    keys: Sequence[Int64], parent: Sequence[Int64], groups: int, bounds: Iterable[Bounds]
) -> tuple[IntArrays, IntArrays]:
    """Return the bounds of all rows, those of the rows below included.

    Raises:
        EstimateError: they contradict each other.
    """
    low = [int64_zeros(len(each)) for each in keys]
    high = [np.full(len(each), UNBOUNDED, dtype=np.int64) for each in keys]
    for level, nodes, group, least, most in bounds:
        wanted = nodes * groups + group
        row = np.minimum(np.searchsorted(keys[level], wanted), len(keys[level]) - 1)
        there = keys[level][row] == wanted
        for at in np.flatnonzero(~there & (least > 0))[:1]:
            raise ContradictionError(level, int(nodes[at]), int(group[at]), int(least[at]), -1)
        np.maximum.at(low[level], row[there], np.minimum(least[there], UNBOUNDED))
        np.minimum.at(high[level], row[there], most[there])
    for level in range(len(keys) - 1, -1, -1):
        if level < len(keys) - 1:
            least = np.zeros_like(low[level])
            most = np.zeros_like(high[level])
            _sum_up(parent[level + 1], low[level + 1], least)
            _sum_up(parent[level + 1], high[level + 1], most)
            np.maximum(low[level], least, out=low[level])
            np.minimum(high[level], most, out=high[level])
        for at in np.flatnonzero(low[level] > high[level])[:1]:
            node, of = divmod(int(keys[level][at]), groups)
            raise ContradictionError(level, node, of, int(low[level][at]), int(high[level][at]))
    return tuple(low), tuple(high)


@kernel
def _sum_up(parent: Int64, below: Int64, above: Int64) -> None:
    """Add what is below to the rows above; sums stop at `UNBOUNDED`."""
    for row in range(len(parent)):
        # Cut off at each step, so that sums of unbounded rows cannot wrap around.
        above[parent[row]] = min(above[parent[row]] + below[row], UNBOUNDED)


@kernel
def _count_pairs(start: Int64, group: Int32, kinds: Bool, times: Int64) -> int:
    """Return how many pairs of a node and a sum have a cell, from the kinds of sums."""
    pairs = np.int64(0)
    for n in range(len(start) - 1):
        for s in range(len(kinds)):
            for row in run_range(start, n):
                # One cell makes a pair: the other rows of the node are not looked at.
                if kinds[s, group[row]]:
                    pairs += times[s]
                    break
    return int(pairs)
