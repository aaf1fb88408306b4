"""Nodes of a depth: codes, counts, estimates, and their slices of the confidential leaves."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import ReleaseError
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Codes, Tree


@dataclass(frozen=True, slots=True, repr=False)
class Nodes:
    """Nodes of a depth in tree order, with what was estimated of them so far.

    Attributes:
        codes: one int32 array (nodes) an axis.
        counts: int64 (nodes): released counts.
        estimate: float64 (nodes), records: unbiased estimates of the true counts.
        variance: float64 (nodes), records²: their variances.
        start, stop: int64 (nodes): the slice of the confidential leaves below each node.
    """

    codes: Codes
    counts: Int64
    estimate: Float64
    variance: Float64
    start: Int64
    stop: Int64

    def __len__(self) -> int:
        return len(self.counts)

    def part(self, first: int, last: int) -> "Nodes":
        """The nodes ``first <= i < last``."""
        cut = slice(first, last)
        codes = tuple(code[cut] for code in self.codes)
        return Nodes(codes, *(values[cut] for values in self.arrays()))

    def taken(self, kept: Int64) -> "Nodes":
        """Some of the nodes, in ascending order."""
        return Nodes(
            tuple(code[kept] for code in self.codes), *(values[kept] for values in self.arrays())
        )

    def without_slices(self) -> "Nodes":
        """The nodes with empty slices: nothing of a table is left in them."""
        nothing = np.zeros(len(self), dtype=np.int64)
        return replace(self, start=nothing, stop=nothing)

    @staticmethod
    def bare(codes: Codes, counts: Int64, estimate: Float64, variance: Float64) -> "Nodes":
        """Nodes without a table below: their slices are empty."""
        nothing = np.zeros(len(counts), dtype=np.int64)
        return Nodes(codes, counts, estimate, variance, nothing, nothing)

    @staticmethod
    def none(axes: int) -> "Nodes":
        """No nodes at all."""
        whole, real = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
        return Nodes.bare((np.empty(0, dtype=np.int32),) * axes, whole, real, real)

    @staticmethod
    def joined(parts: list["Nodes"]) -> "Nodes":
        """The nodes of several parts, in their order."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        codes = zip(*(part.codes for part in parts), strict=True)
        values = zip(*(part.arrays() for part in parts), strict=True)
        return Nodes(tuple(map(np.concatenate, codes)), *map(np.concatenate, values))

    def arrays(self) -> list[NDArray[Any]]:
        """All attributes but the codes, in their order."""
        return [getattr(self, field.name) for field in fields(self)[1:]]


def unknown_root(counts: Counts) -> Nodes:
    """The root of a table, of which nothing is known yet."""
    codes = tuple(np.zeros(1, dtype=np.int32) for _ in counts.tree.axes)
    nothing, unknown = np.zeros(1, dtype=np.int64), np.full(1, np.inf)
    stop = np.array([len(counts.values)])
    return Nodes(codes, nothing, np.zeros(1), unknown, nothing, stop)


def true_nodes(counts: Counts, depth: int) -> Nodes:
    """All non-zero nodes of a depth with their true counts: for public depths alone."""
    codes, values = counts.roll_up(depth)
    node = counts.node_codes(depth)
    changed = np.zeros(len(counts.values), dtype=bool)
    for code in node:
        changed[1:] |= code[1:] != code[:-1]
    start = np.append(np.zeros(min(1, len(values)), dtype=np.int64), np.flatnonzero(changed))
    stop = np.append(start[1:], len(counts.values))[: len(values)]
    exact = values.astype(np.float64)
    return Nodes(codes, values, exact, np.zeros(len(values)), start, stop)


def listed_nodes(codes: Codes, counts: Int64) -> Nodes:
    """Nodes as a release lists them: exact where they are public, and without a table below."""
    return Nodes.bare(codes, counts, counts.astype(float), np.zeros(len(counts)))


def placed(survivors: Nodes, every: Nodes) -> Nodes:
    """All nodes, with what is known of the survivors among them; the others are released as 0."""
    order = {codes: i for i, codes in enumerate(zip(*every.codes, strict=True))}
    kept = np.array([order[codes] for codes in zip(*survivors.codes, strict=True)], dtype=np.int64)
    counts, estimate, variance = every.counts.copy(), every.estimate.copy(), every.variance.copy()
    counts[kept] = survivors.counts
    estimate[kept], variance[kept] = survivors.estimate, survivors.variance
    return replace(every, counts=counts, estimate=estimate, variance=variance)


# How the nodes of one depth group into families below those of the depth above.


def family_starts(tree: Tree, depth: int, upper: Nodes, lower: Nodes) -> Int64:
    """Where each parent's listed children begin: int64 (parents + 1), and that they add up.

    Args:
        tree: the tree.
        depth: of the children.
        upper: the listed parents.
        lower: the listed children.

    Raises:
        ReleaseError: they are not in tree order, or some family does not add up to its parent.
    """
    axis, level = tree.steps[depth - 1]
    codes, counts = lower.codes, lower.counts
    child_start = tree.axes[axis].child_start[level - 1]
    parents = list(codes)
    parents[axis] = np.searchsorted(child_start, codes[axis], side="right").astype(np.int32) - 1
    new_family = np.zeros(len(counts), dtype=bool)
    for code in parents:
        new_family[1:] |= code[1:] != code[:-1]
    if not (new_family[1:] | (codes[axis][1:] > codes[axis][:-1])).all():
        raise ReleaseError("the nodes are not in tree order")
    new_family[:1] = True
    start = np.flatnonzero(new_family)
    sums = np.add.reduceat(counts, start) if len(start) else counts
    same = [np.array_equal(a[start], b) for a, b in zip(parents, upper.codes, strict=True)]
    if not all(same) or not np.array_equal(sums, upper.counts):
        raise ReleaseError("some families do not add up to their parents' counts")
    return np.append(start, len(counts))
