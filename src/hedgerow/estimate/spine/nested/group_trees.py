"""The attribute trees below groups, without cells that are 0 by rule, and least squares in each.

Below every group stands a tree: the attribute axis's nodes of the levels G..B below it that have a
leaf which is not 0 by rule. Its measurements have the variances s_b a level (times a number a node
of the spine). As in `hedgerow.estimate.cube.axis_squares`, with z and u what a node's own subtree
says and its variance, S = Σ u over its children, q = u / S:

    up:    u = 1 / (1/s + 1/S),  z = (u/s) y + (u/S) Σ z_child      (at the leaves u = s, z = y)
    down:  x_child = z_child + q (x - Σ z)

The group's own estimate from its tree is z at its root. A leaf's is ``e + g x_group`` with g the
product of q on the way; the *rest* e, which goes down from 0, is independent of x_group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.support import run_starts
from hedgerow.kernels import kernel

Rows: TypeAlias = tuple[Int32, Int64, Int64]
"""The group of each row; where its nodes begin at a level, and at the next one, both from 0."""

Family: TypeAlias = tuple[Int64, Int64]
"""Where the nodes of each group begin at a level, and where the children of each node begin."""


@dataclass(frozen=True, eq=False)
class GroupTrees:
    """The trees below all groups, level by level from the groups (0) to the leaves (depth).

    A group all of whose leaves are 0 has no node.

    Attributes:
        start: for each level int64 (groups + 1): where the nodes of a group begin.
        child_start: for each level but the last int64 (nodes + 1).
        own: float64 (levels): s of each level, infinite where it is not measured.
        combined: for each level float64 (nodes): u.
        family: for each level but the last float64 (nodes): S.
        share: for each level float64 (nodes): q; for level 0 ones.
        gain: float64 (leaves): g.
        leaf: int32 (leaves): which leaf of the attribute axis each one is.
    """

    start: tuple[Int64, ...]
    child_start: tuple[Int64, ...]
    own: Float64
    combined: tuple[Float64, ...]
    family: tuple[Float64, ...]
    share: tuple[Float64, ...]
    gain: Float64
    leaf: Int32

    @classmethod
    def of(
        cls,
        attribute: AxisShape,
        group_level: int,
        zero_leaves: NDArray[np.bool_],
        own: Sequence[float] | Float64,
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
        own = np.array(own, dtype=np.float64)
        if zero_leaves.all():
            raise EstimateError("a rule makes every attribute cell 0")
        kept = _kept(attribute, group_level, zero_leaves)
        start, child_start = _nested(attribute, group_level, kept)
        combined, family = [np.full(len(kept[-1]), own[-1])], list[Float64]()
        for level in range(len(own) - 2, -1, -1):
            family.insert(0, np.add.reduceat(combined[0], child_start[level][:-1]))
            u = 1 / (1 / own[level] + 1 / family[0])
            combined.insert(0, u if np.isfinite(own[level]) else family[0])
        share, gain = [np.ones(len(kept[0]))], np.ones(len(kept[0]))
        for level in range(1, len(own)):
            up = np.repeat(np.arange(len(kept[level - 1])), np.diff(child_start[level - 1]))
            share.append(combined[level] / family[level - 1][up])
            gain = gain[up] * share[-1]
        leaf = kept[-1].astype(np.int32)
        return cls(
            start, child_start, own, tuple(combined), tuple(family), tuple(share), gain, leaf
        )

    @property
    def depth(self) -> int:
        """The level of the leaves."""
        return len(self.child_start)

    def level(self, level: int) -> tuple[Int64, Int64, Int64, Float64]:
        """Return where groups' nodes begin at a level and the next; children; u of the next."""
        below = level + 1
        return self.start[level], self.start[below], self.child_start[level], self.combined[below]

    def widths(self, level: int) -> Int64:
        """Return the number of nodes of each group at a level: int64 (groups)."""
        return np.diff(self.start[level])

    def parents(self, level: int) -> Int64:
        """Return the parent of each node of a level from 1 on: int64 (nodes)."""
        start = self.child_start[level - 1]
        return np.repeat(np.arange(len(start) - 1), np.diff(start))

    def places(self, level: int) -> Int32:
        """Return which of its group's nodes of a level each leaf lies below: int32 (leaves)."""
        found = np.arange(len(self.leaf))
        for k in range(self.depth, level, -1):
            found = self.parents(k)[found]
        group = np.repeat(np.arange(len(self.start[0]) - 1), self.widths(self.depth))
        return (found - self.start[level][group]).astype(np.int32)

    def row_start(self, level: int, group: Int32) -> Int64:
        """Return where the nodes of each row begin in a flat table: int64 (rows + 1), from 0."""
        return run_starts(self.widths(level)[group])

    def split(
        self, group: Int32, above: Sequence[Float64 | None], leaves: Float64
    ) -> tuple[Float64, Float64]:
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
            rows, u, own = self._rows(level, group), self.combined[level], above[level]
            found = np.empty(int(rows[1][-1]))
            if own is None:
                weights, given = (np.zeros(len(u)), np.ones(len(u))), found
            else:
                weights, given = (u / self.own[level], u / self.family[level]), own
            _pass_up(rows, self._family(level), weights, given, said[0], found)
            said.insert(0, found)
        whole, rest = said[0], np.zeros(len(said[0]))
        for level in range(self.depth):
            below, upper = said[level + 1], rest
            rest = np.empty_like(below)
            share = self.share[level + 1]
            _pass_down(self._rows(level, group), self._family(level), share, upper, below, rest)
        return whole, rest

    def sums(self, group: Int32, leaves: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the sums of a table of leaves at every level: of its type (nodes of the rows)."""
        found = [leaves]
        for level in range(self.depth - 1, -1, -1):
            rows = self._rows(level, group)
            above = np.empty(int(rows[1][-1]), dtype=leaves.dtype)
            weights = np.zeros(len(self.combined[level])), np.ones(len(self.combined[level]))
            _pass_up(rows, self._family(level), weights, above, found[0], above)
            found.insert(0, above)
        return found

    def with_gains(self, group: Int32, x: Float64, rest: Float64) -> Float64:
        """Return the leaves of rows, e + g x, in the place of their rests."""
        _add_gains(group, self.start[-1], self.gain, x, rest)
        return rest

    def weights(self, labels: Int32) -> tuple[Int64, Float64, Float64]:
        """Return what sums of leaves weigh of each group: of its rest, and of the group itself.

        A sum a of leaves weighs the group by γ = Σ g over them, and of the rest it has the variance
        Q = aᵀE a (times the rest's own). Q goes up the tree: children are ``x = q x_parent + e``
        with Cov(e) = diag(u) - u uᵀ/S in each family by itself, so a sum over children weighs their
        parent by Σ q a, and what is left adds Σ u a² - (Σ u a)²/S.

        Args:
            labels: int32 (leaves): the number of the sum that each belongs to, -1 for none.

        Returns:
            int64 (entries), ascending: sum · groups + group, where a sum has leaves in a group; and
            float64 (entries, 1) both: √Q and γ.
        """
        sums, groups = int(labels.max()) + 1, len(self.start[0]) - 1
        node = np.flatnonzero(labels >= 0)
        label = labels[node].astype(np.int64)
        weight: Float64 = np.ones(len(node))
        square: Float64 = np.zeros(len(node))
        for level in range(self.depth, 0, -1):
            up, u = self.parents(level)[node], self.combined[level][node]
            keys, each = np.unique(up * sums + label, return_inverse=True)
            lost = np.bincount(each, u * weight) ** 2 / self.family[level - 1][keys // sums]
            square = np.asarray(np.bincount(each, square + u * weight**2) - lost)
            weight = np.bincount(each, self.share[level][node] * weight).astype(np.float64)
            node, label = keys // sums, keys % sums
        keys = label * groups + np.repeat(np.arange(groups), self.widths(0))[node]
        order = np.argsort(keys)
        rests = np.sqrt(np.maximum(square, 0.0))
        return keys[order], rests[order, None], weight[order, None]

    def _rows(self, level: int, group: Int32) -> Rows:
        """Return the groups of rows, and where their nodes begin at a level and at the next."""
        return group, self.row_start(level, group), self.row_start(level + 1, group)

    def _family(self, level: int) -> Family:
        """Return where nodes and children of a level begin."""
        return self.start[level], self.child_start[level]


def _kept(attribute: AxisShape, group_level: int, zero: NDArray[np.bool_]) -> list[Int64]:
    """Return the nodes that have a leaf, for each level G..B."""
    if zero.shape != (attribute.sizes[-1],):
        raise EstimateError(f"the attribute has {attribute.sizes[-1]} leaves, got {zero.shape}")
    there, kept = ~zero, list[Int64]()
    for level in range(attribute.depth, group_level - 1, -1):
        kept.insert(0, np.flatnonzero(there))
        if level > 0:
            there = np.logical_or.reduceat(there, attribute.child_start[level - 1][:-1])
    return kept


def _nested(
    attribute: AxisShape, group_level: int, kept: Sequence[Int64]
) -> tuple[tuple[Int64, ...], tuple[Int64, ...]]:
    """Return where the kept nodes of each group begin, and where kept children begin."""
    start, child_start = list[Int64](), list[Int64]()
    for k, nodes in enumerate(kept):
        level = group_level + k
        begin = attribute.descendant_start(group_level, level)
        start.append(np.searchsorted(nodes, begin))
        if k > 0:
            first = np.searchsorted(nodes, attribute.child_start[level - 1][kept[k - 1]])
            child_start.append(np.concatenate((first, [len(nodes)])))
    return tuple(start), tuple(child_start)


@kernel
def _pass_up(
    rows: Rows,
    family: Family,
    weights: tuple[Float64, Float64],
    own: NDArray[Any],
    below: NDArray[Any],
    found: NDArray[Any],
) -> None:
    """Write ``own weight · own + child weight · Σ below`` for every node of a level."""
    (group, upper, lower), (start, child_start) = rows, family
    own_weight, child_weight = weights
    for row in range(len(group)):
        g = group[row]
        at = lower[row]
        for node in range(start[g], start[g + 1]):
            total = 0.0
            for _ in range(child_start[node], child_start[node + 1]):
                total += below[at]
                at += 1
            here = upper[row] + node - start[g]
            total *= child_weight[node]
            if own_weight[node] > 0.0:
                total += own_weight[node] * own[here]
            found[here] = total


@kernel
def _pass_down(
    rows: Rows, family: Family, share: Float64, above: Float64, said: Float64, found: Float64
) -> None:
    """Write ``said + share · (above - Σ said)`` for every node of the next level."""
    (group, upper, lower), (start, child_start) = rows, family
    for row in range(len(group)):
        g = group[row]
        at = lower[row]
        for node in range(start[g], start[g + 1]):
            first, last = child_start[node], child_start[node + 1]
            gap = above[upper[row] + node - start[g]]
            for c in range(last - first):
                gap -= said[at + c]
            for c in range(last - first):
                found[at + c] = said[at + c] + share[first + c] * gap
            at += last - first


@kernel
def _add_gains(group: Int32, offset: Int64, gain: Float64, x: Float64, table: Float64) -> None:
    """Add to each leaf of rows its gain times the number of its row, in place."""
    at = 0
    for row in range(len(group)):
        for i in range(offset[group[row]], offset[group[row] + 1]):
            table[at] += gain[i] * x[row]
            at += 1
