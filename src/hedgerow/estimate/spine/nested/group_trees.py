"""The attribute trees below groups, without cells that are 0 by rule, and least squares in each.

Below every group stands a tree: the attribute axis's nodes of the levels G..B below it that have a
leaf which is not 0 by rule. Its measurements have the variances s_b a level (times a number a node
of the spine). So it is least squares along the axis that is left
(`hedgerow.estimate.cube.axis_squares`, which has the letters), of which nothing is measured above
the groups. The group's own estimate from its tree is z at its root. A leaf's is ``e + g x_group``
with g the product of q on the way; the *rest* e, which goes down from 0, is independent of x_group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hedgerow.arrays import (
    Array,
    Bool,
    Float64,
    FloatPair,
    Int32,
    Int64,
    IntArrays,
    IntPair,
    Numbers,
    float64,
    int32,
    int64,
    run_starts,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.tree.sums import climb
from hedgerow.kernels import kernel, run_ends, run_range

Rows = tuple[Int32, Int64, Int64]
"""The group of each row; where its nodes begin at a level, and at the next one, both from 0."""

Family = IntPair
"""Where the nodes of each group begin at a level, and where the children of each node begin."""


@dataclass(frozen=True, eq=False)
class GroupTrees:
    """The trees below all groups, level by level from the groups (0) to the leaves (depth).

    A group all of whose leaves are 0 has no node.

    Attributes:
        squares: along the attribute without those leaves, of the variances from the groups on.
        group_level: G, the level of the groups there.
        start: for each level int64 (groups + 1): where the nodes of a group begin.
        leaf: int32 (leaves): which leaf of the attribute axis each one is.
    """

    squares: AxisSquares
    group_level: int
    start: IntArrays
    leaf: Int32

    @classmethod
    def of(
        cls,
        attribute: AxisShape,
        group_level: int,
        zero_leaves: Bool,
        own: Numbers,
    ) -> "GroupTrees":
        """Return the trees below the nodes of a level of an attribute axis.

        Args:
            attribute: the shape of the axis, levels 0..B.
            group_level: G.
            zero_leaves: bool (leaves): which ones are 0 by rule.
            own: s of each level G..B, above 0, infinite where it is not measured.

        Raises:
            EstimateError: no leaf that is left.
        """
        if zero_leaves.all():
            raise EstimateError("a rule makes every attribute cell 0")
        kept = _kept(attribute, zero_leaves)
        child_start = (
            np.append(np.searchsorted(lower, start[upper]), len(lower))
            for start, (upper, lower) in zip(attribute.child_start, pairwise(kept), strict=True)
        )
        shape = AxisShape(tuple(child_start), tuple(range(len(kept))))
        squares = AxisSquares.of(shape, [*np.full(group_level, np.inf), *own])
        start = tuple(
            np.searchsorted(kept[level], attribute.descendant_start(group_level, level))
            for level in range(group_level, len(kept))
        )
        return cls(squares, group_level, start, int32(kept[-1]))

    @property
    def depth(self) -> int:
        """The level of the leaves."""
        return len(self.start) - 1

    def combined(self, level: int) -> Float64:
        """Return u of the nodes of a level: float64 (nodes)."""
        return self.squares.combined[self.group_level + level]

    @cached_property
    def gain(self) -> Float64:
        """The factor g of each leaf: float64 (leaves)."""
        return self.squares.gain(self.squares.depth, self.group_level)

    def level(self, level: int) -> tuple[Int64, Int64, Int64, Float64]:
        """Return where groups' nodes begin at a level and the next; children; u of the next."""
        below = level + 1
        return self.start[level], self.start[below], self._family(level)[1], self.combined(below)

    def widths(self, level: int) -> Int64:
        """Return the number of nodes of each group at a level: int64 (groups)."""
        return np.diff(self.start[level])

    def places(self, level: int) -> Int32:
        """Return which of its group's nodes of a level each leaf lies below: int32 (leaves)."""
        ancestors = self.squares.shape.ancestors(self.squares.depth, self.group_level + level)
        return int32(ancestors - np.repeat(self.start[level][:-1], self.widths(self.depth)))

    def row_start(self, level: int, group: Int32) -> Int64:
        """Return where the nodes of each row begin in a flat table: int64 (rows + 1), from 0."""
        return run_starts(self.widths(level)[group])

    def split(self, group: Int32, above: Sequence[Float64 | None], leaves: Float64) -> FloatPair:
        """Return what each row's tree says of the row, and the rest at its leaves.

        Args:
            group: int32 (rows): the group of each row.
            above: for each level but the last the noisy counts, float64 (nodes of the rows, row by
                row); None where the level is not measured.
            leaves: float64 (leaves of the rows): the noisy counts of the last level.

        Returns:
            float64 (rows), z; and float64 (leaves of the rows), e; records.
        """
        said = [leaves]
        for level in range(self.depth - 1, -1, -1):
            rows = self._rows(level, group)
            own = above[level]
            b = self.group_level + level
            subtree_sums = np.empty(int(rows[1][-1]))
            weights = self.squares.own_weight(b), self.squares.child_weight(b)
            given = subtree_sums if own is None else own
            _pass_up(rows, self._family(level), weights, given, said[0], subtree_sums)
            said.insert(0, subtree_sums)
        whole = said[0]
        rest = np.zeros(len(said[0]))
        for level in range(self.depth):
            below = said[level + 1]
            upper = rest
            rest = np.empty_like(below)
            share = self.squares.share[self.group_level + level + 1]
            _pass_down(self._rows(level, group), self._family(level), share, upper, below, rest)
        return whole, rest

    def sums(self, group: Int32, leaves: Array) -> list[Array]:
        """Return the sums of a table of leaves at every level: of its type (nodes of the rows)."""
        by_level = [leaves]
        for level in range(self.depth - 1, -1, -1):
            rows = self._rows(level, group)
            above = np.empty(int(rows[1][-1]), dtype=leaves.dtype)
            weights = np.zeros(self.start[level][-1]), np.ones(self.start[level][-1])
            _pass_up(rows, self._family(level), weights, above, by_level[0], above)
            by_level.insert(0, above)
        return by_level

    def with_gains(self, group: Int32, x: Float64, rest: Float64) -> Float64:
        """Return the leaves of rows, e + g x, in the place of their rests."""
        _add_gains(group, self.start[-1], self.gain, x, rest)
        return rest

    def weights(self, labels: Int32) -> tuple[Int64, Float64, Float64]:
        """Return what sums of leaves weigh of each group: of its rest, and of the group itself.

        A sum a of leaves weighs the group by γ = Σ g over them, and of the rest it has the variance
        Q = aᵀE a (times the rest's own), the residuals of all families on the way
        (`hedgerow.estimate.tree.sums`).

        Args:
            labels: int32 (leaves): the number of the sum that each belongs to, -1 for none.

        Returns:
            int64 (entries), ascending: sum · groups + group, where a sum has leaves in a group; and
            float64 (entries, 1) both: √Q and γ.
        """
        node = np.flatnonzero(labels >= 0)
        groups = len(self.start[0]) - 1
        group = np.repeat(np.arange(groups), self.widths(self.depth))[node]
        keys, entry = np.unique(int64(labels[node]) * groups + group, return_inverse=True)
        pairs = (node, entry, np.ones(len(node)))
        rest = np.zeros(len(keys))
        for k in range(self.depth - 1, -1, -1):
            pairs = climb(pairs, self.combined(k + 1), self._family(k)[1], rest)
        _, entry, weight = pairs
        whole = float64(np.bincount(entry, weight, minlength=len(keys)))
        return keys, np.sqrt(rest)[:, None], whole[:, None]

    def _rows(self, level: int, group: Int32) -> Rows:
        """Return the groups of rows, and where their nodes begin at a level and at the next."""
        return group, self.row_start(level, group), self.row_start(level + 1, group)

    def _family(self, level: int) -> Family:
        """Return where nodes and children of a level begin."""
        return self.start[level], self.squares.shape.child_start[self.group_level + level]


def _kept(attribute: AxisShape, zero: Bool) -> list[Int64]:
    """Return the nodes that have a leaf, for each level."""
    if zero.shape != (attribute.sizes[-1],):
        raise EstimateError(f"the attribute has {attribute.sizes[-1]} leaves, got {zero.shape}")
    there = [~zero]
    for start in reversed(attribute.child_start):
        there.insert(0, np.logical_or.reduceat(there[0], start[:-1]))
    return list(map(np.flatnonzero, there))


@kernel
def _pass_up(
    rows: Rows,
    family: Family,
    weights: FloatPair,
    own: Array,
    below: Array,
    out: Array,
) -> None:
    """Write ``own weight · own + child weight · Σ below`` for every node of a level."""
    group, upper, lower = rows
    start, child_start = family
    own_weight, child_weight = weights
    for row in range(len(group)):
        g = group[row]
        at = lower[row]
        for node in run_range(start, g):
            # Σ of the children, which stand in order: at runs through them.
            total = 0.0
            for _ in run_range(child_start, node):
                total += below[at]
                at += 1
            # (u/S) Σ z + (u/v) x, where x is measured.
            here = upper[row] + node - start[g]
            total *= child_weight[node]
            if own_weight[node] > 0.0:
                total += own_weight[node] * own[here]
            out[here] = total


@kernel
def _pass_down(
    rows: Rows, family: Family, share: Float64, above: Float64, said: Float64, out: Float64
) -> None:
    """Write ``said + share · (above - Σ said)`` for every node of the next level."""
    group, upper, lower = rows
    start, child_start = family
    for row in range(len(group)):
        g = group[row]
        at = lower[row]
        for node in run_range(start, g):
            first, last = run_ends(child_start, node)
            # y_parent - Σ z of the family, of which each child takes its share q.
            gap = above[upper[row] + node - start[g]]
            for c in range(last - first):
                gap -= said[at + c]
            for c in range(last - first):
                out[at + c] = said[at + c] + share[first + c] * gap
            at += last - first


@kernel
def _add_gains(group: Int32, offset: Int64, gain: Float64, x: Float64, table: Float64) -> None:
    """Add to each leaf of rows its gain times the number of its row, in place."""
    at = 0
    # Leaves stand row by row, so `at` runs through them once.
    for row in range(len(group)):
        for i in range(offset[group[row]], offset[group[row] + 1]):
            table[at] += gain[i] * x[row]
            at += 1
