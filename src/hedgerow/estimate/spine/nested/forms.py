"""The variances of sums of detail cells at every node, from the factors of `Nested`.

A sum a of detail cells weighs the rest of each group k by the 0/1 vector a_k of its leaves, and the
group's count by γ_k = Σ g over them. So at a node n with the groups K, with the variance r of each
row's rest and the covariance F of its groups' counts from everything,

    Var = Σ_{k in K} r_k Q_k + γ_Kᵀ F γ_K,   Q_k = a_kᵀ E_k a_k

Q goes up the group's tree: children are ``x = q x_parent + e`` with Cov(e) = diag(u) - u uᵀ/S in
each family by itself, so a sum over children weighs their parent by Σ q a, and what is left adds
Σ u a² - (Σ u a)²/S.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.coupled import Coupled
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.over_nodes import covariance_over, variances_over
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.kernels import inner_kernel, kernel

Sums = tuple[Int64, Int32, Float64, Float64]
"""Where the entries of each sum begin, int64 (sums + 1); and of each entry its group, Q and γ."""

Covariances = tuple[Int64, Int32, Float64, Int64, Float64]
"""Where rows begin, int64 (nodes + 1), their groups and r; where matrices begin, and F."""


@dataclass(frozen=True, eq=False)
class NestedForms:
    """The variances of the estimates of sums of detail cells.

    Attributes:
        coupled: the vectors of groups along the spine.
        rests: the rest of each row along the spine.
        sums: Q and γ of each sum.
        excess: what all variances are multiplied with.
    """

    coupled: Coupled
    rests: RowSquares
    sums: Sums
    excess: float
    _surveys: dict[int, tuple[float, float]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, coupled: Coupled, rests: RowSquares, trees: GroupTrees, labels: Int32, excess: float
    ) -> "NestedForms":
        """Return the variances of the sums that labels make.

        Args:
            coupled: the vectors of groups along the spine.
            rests: the rest of each row along the spine.
            trees: below the groups.
            labels: int32 (detail cells of all groups): the number of the sum that each belongs to,
                -1 for none.
            excess: what all variances are multiplied with.

        Raises:
            EstimateError: another number of labels, or none.
        """
        if len(labels) != len(trees.leaf) or not (labels >= 0).any():
            raise EstimateError(f"each of {len(trees.leaf)} detail cells needs a label, one from 0")
        return cls(coupled, rests, _forms(trees, labels), excess)

    def at(self, level: int, nodes: Int64, sums: Int64) -> Float64:
        """Return the variance of each pair of a node and a sum: float64 (pairs), records².

        A pair whose sum has no cell at the node has the variance 0.

        Args:
            level: of the spine.
            nodes: int64 (pairs).
            sums: int64 (pairs).
        """
        found = np.empty(len(nodes))
        _write_variances(self._covariances(level), self.sums, nodes, sums, found)
        return found * self.excess

    def over(self, level: int, nodes: Int64) -> Float64:
        """Return the variance of each sum over some nodes together: float64 (sums), records²."""
        start, group, square, gain = self.sums
        many = len(start) - 1
        sum_of = np.repeat(np.arange(many), np.diff(start))
        rests = variances_over(self.rests, level, nodes)
        gains = np.zeros((many, self.coupled.support.groups))
        gains[sum_of, group] = gain
        found = np.bincount(sum_of, rests[group] * square, minlength=many)
        found += ((gains @ covariance_over(self.coupled, level, nodes)) * gains).sum(axis=1)
        return np.asarray(np.maximum(found, 0.0) * self.excess)

    def mean(self, level: int) -> float:
        """Return the mean over all pairs of a node and a sum that has a cell there, records²."""
        return self._survey(level)[0]

    def largest(self, level: int) -> float:
        """Return the largest over all pairs of a node and a sum that has a cell there, records²."""
        return self._survey(level)[1]

    def _survey(self, level: int) -> tuple[float, float]:
        """Return the mean and the largest variance of a level."""
        if level not in self._surveys:
            total, pairs, most = _survey(self._covariances(level), *self._kinds)
            self._surveys[level] = self.excess * total / pairs, self.excess * most
        return self._surveys[level]

    @cached_property
    def _kinds(self) -> tuple[Sums, Sums, Int64, Int64]:
        """The distinct sums, and how many there are of each: cells of like families are alike.

        Returns:
            Those within one group, as entries by group in place of sums; those of several groups;
            and int64 (sums), the numbers of both.
        """
        start, group, square, gain = self.sums
        number, first, many = dict[bytes, int](), list[int](), list[int]()
        for s in np.flatnonzero(np.diff(start)):
            here = slice(start[s], start[s + 1])
            key = group[here].tobytes() + square[here].tobytes() + gain[here].tobytes()
            kind = number.setdefault(key, len(number))
            if kind == len(first):
                first.append(int(s))
                many.append(0)
            many[kind] += 1
        sums, counts = np.array(first, dtype=np.int64), np.array(many, dtype=np.int64)
        is_within = np.diff(start)[sums] == 1
        order = np.argsort(group[start[sums[is_within]]], kind="stable")
        within = start[sums[is_within]][order]
        runs = np.searchsorted(group[within], np.arange(self.coupled.support.groups + 1))
        across, sizes = sums[~is_within], np.diff(start)[sums[~is_within]]
        begin = np.concatenate(([0], np.cumsum(sizes)))
        every = np.repeat(start[across] - begin[:-1], sizes) + np.arange(begin[-1])
        return (
            (runs, group[within], square[within], gain[within]),
            (begin, group[every], square[every], gain[every]),
            counts[is_within][order],
            counts[~is_within],
        )

    def _covariances(self, level: int) -> Covariances:
        """Return the rows of a level with the variances of their rests and counts."""
        support = self.coupled.support
        rests = self.rests.final[level]
        return support.start[level], support.group[level], rests, *self.coupled.final(level)


def _forms(trees: GroupTrees, labels: Int32) -> Sums:
    """Return Q and γ of every group and sum."""
    sums = int(labels.max()) + 1
    node = np.flatnonzero(labels >= 0)
    label = labels[node].astype(np.int64)
    weight: Float64 = np.ones(len(node))
    square: Float64 = np.zeros(len(node))
    for level in range(trees.depth, 0, -1):
        up, u = trees.parents(level)[node], trees.combined[level][node]
        keys, each = np.unique(up * sums + label, return_inverse=True)
        lost = np.bincount(each, u * weight) ** 2 / trees.family[level - 1][keys // sums]
        square = np.asarray(np.bincount(each, square + u * weight**2) - lost)
        weight = np.bincount(each, trees.share[level][node] * weight).astype(np.float64)
        node, label = keys // sums, keys % sums
    group = np.repeat(np.arange(len(trees.start[0]) - 1), trees.widths(0))[node]
    order = np.lexsort((group, label))
    start = np.searchsorted(label[order], np.arange(sums + 1))
    square = np.maximum(square[order], 0.0)
    return start, group[order].astype(np.int32), square, weight[order]


@inner_kernel
def _write_variances(
    nodes: Covariances, sums: Sums, which: Int64, given: Int64, found: Float64
) -> None:
    """Write the variance of each pair of a node and a sum."""
    for i in range(len(which)):
        found[i] = max(_variance(nodes, sums, which[i], given[i]), 0.0)


@inner_kernel
def _variance(nodes: Covariances, sums: Sums, n: int, s: int) -> float:
    """Return the variance of a sum at a node; below 0 where it has no cell there."""
    row_start, group, rests, start, final = nodes
    sum_start, sum_group, square, gain = sums
    first, k = row_start[n], row_start[n + 1] - row_start[n]
    total, is_there, p = 0.0, False, 0
    for e in range(sum_start[s], sum_start[s + 1]):
        while p < k and group[first + p] < sum_group[e]:
            p += 1
        if p == k:
            break
        if group[first + p] != sum_group[e]:
            continue
        is_there = True
        total += rests[first + p] * square[e] + gain[e] ** 2 * final[start[n] + p * k + p]
        q = 0
        for d in range(sum_start[s], e):
            while group[first + q] < sum_group[d]:
                q += 1
            if group[first + q] == sum_group[d]:
                total += 2 * gain[e] * gain[d] * final[start[n] + p * k + q]
    return max(total, 0.0) if is_there else -1.0


@kernel
def _survey(
    nodes: Covariances, within: Sums, across: Sums, many_within: Int64, many_across: Int64
) -> tuple[float, float, float]:
    """Return the total variance of all pairs of a node and a sum, their number, the largest."""
    row_start, group, rests, start, final = nodes
    total, pairs, most = 0.0, 0.0, 0.0
    here, there = 0.0, 0.0
    for n in range(len(row_start) - 1):
        if n > 0 and _are_alike(nodes, n):
            total += here
            pairs += there
            continue
        here, there = 0.0, 0.0
        k = row_start[n + 1] - row_start[n]
        for p in range(k):
            g, rest = group[row_start[n] + p], rests[row_start[n] + p]
            for e in range(within[0][g], within[0][g + 1]):
                variance = rest * within[2][e] + within[3][e] ** 2 * final[start[n] + p * k + p]
                here += many_within[e] * variance
                there += many_within[e]
                most = max(most, variance)
        for s in range(len(many_across)):
            variance = _variance(nodes, across, n, s)
            if variance >= 0.0:
                here += many_across[s] * variance
                there += many_across[s]
                most = max(most, variance)
        total += here
        pairs += there
    return total, pairs, most


@inner_kernel
def _are_alike(nodes: Covariances, n: int) -> bool:
    """Return whether a node has the same groups and covariances as the one before it."""
    row_start, group, rests, start, final = nodes
    k, back = row_start[n + 1] - row_start[n], row_start[n] - row_start[n - 1]
    if back != k:
        return False
    for row in range(row_start[n], row_start[n + 1]):
        if group[row] != group[row - k] or rests[row] != rests[row - k]:
            return False
    unlike = 0
    for i in range(start[n], start[n + 1]):
        unlike += final[i] != final[i - k * k]
    return unlike == 0
