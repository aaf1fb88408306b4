"""The variances of sums of detail cells at every node, and over several nodes together.

Least squares along a spine fall into *components* that are independent of each other: vectors over
groups, with the covariance F at a node from everything (`hedgerow.estimate.spine.component`). A sum
of detail cells weighs the vector of each coordinate of a component by some a, so that

    Var = Σ over components tr(F Q),   Q = Σ over the component's coordinates a aᵀ.

Q depends on the sum alone, F on the node alone. A sum has *entries*, the groups in which it has
cells; only these stand in Q, and of it the diagonal where a component's groups do not meet.

Where the number of all records is known, a sum of all of them has no error: its tr(F Q) is 0, but
for rounding errors that differ from processor to processor, and is set to 0. No other sum is known:
at the deepest level every group is measured with noise.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from hedgerow.arrays import (
    Array,
    Bool,
    Float64,
    Int32,
    Int64,
    IntPair,
    float64,
    int32,
    int64_zeros,
    run_starts,
)
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import inner_kernel, kernel, run_range, run_size

DIGITS = 12
"""Sums whose forms are alike to so many digits of the largest have one variance; rounding leaves
1e-14."""
CHUNK = 1 << 18
"""Pairs of a node and a sum that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class Forms:
    """The variances of the estimates of sums of detail cells (records²).

    Attributes:
        support: which nodes have which groups.
        start: int64 (sums + 1): where the entries of each sum begin.
        group: int32 (entries): the group of each, ascending within a sum.
        parts: the components, each with Q: float64 (entries) where groups do not
            meet; else a matrix over its entries for each sum, row-major, one behind the other.
        excess: what all variances are multiplied with.
        whole: the number of the sum of all cells there are, where the number of all records is
            known; -1 for none.
    """

    support: Support
    start: Int64
    group: Int32
    parts: tuple[tuple[Component, Float64], ...]
    excess: float = 1.0
    whole: int = -1
    _surveys: dict[int, tuple[float, float]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        support: Support,
        keys: Int64,
        components: Sequence[tuple[Component, Float64]],
        excess: float = 1.0,
        whole: int = -1,
    ) -> "Forms":
        """Return the variances of sums.

        Args:
            support: which nodes have which groups.
            keys: int64 (entries), ascending, some: sum · groups + group.
            components: each with float64 (entries, coordinates): a.
            excess: what all variances are multiplied with.
            whole: the number of a sum of all records, if that is known.
        """
        sums = np.arange(keys[-1] // support.groups + 2)
        start = np.searchsorted(keys, sums * support.groups)
        parts = []
        for squares, weights in components:
            forms = (weights**2).sum(axis=1)
            if squares.dimensions == 2:
                forms = np.zeros(int((np.diff(start) ** 2).sum()))
                _add_products(start, weights, forms)
            parts.append((squares, forms))
        group = int32(keys % support.groups)
        return cls(support, start, group, tuple(parts), excess, whole)

    def at(self, level: int, nodes: Int64, sums: Int64) -> Float64:
        """Return the variance of each pair of a node and a sum: float64 (pairs), records².

        A sum none of whose cells the node has is 0 exactly, as is that of all known records.

        Args:
            level: of the spine.
            nodes: int64 (pairs).
            sums: int64 (pairs).
        """
        rows = self.support.start[level], self.support.group[level]
        entries = (self.start, self.group, self._begin)
        variances = np.zeros(len(nodes))
        for squares, forms in self.parts:
            _add_traces(
                (nodes, sums), rows, squares.final_matrices(level), entries, forms, variances
            )
        if self.whole >= 0:
            start, group = rows
            has_all = start[nodes + 1] - start[nodes] == len(group)
            variances[has_all & (sums == self.whole)] = 0.0
        return np.maximum(variances, 0.0) * self.excess

    def over(self, level: int, nodes: Int64) -> Float64:
        """Return the variance of each sum over some nodes together: float64 (sums), records².

        Args:
            level: of the spine.
            nodes: int64 (nodes), ascending, each once.
        """
        many = len(self.start) - 1
        groups = np.arange(self.support.groups, dtype=np.int32)
        pairs = (int64_zeros(many), np.arange(many))
        variances = np.zeros(many)
        rows = (np.array([0, len(groups)]), groups)
        entries = (self.start, self.group, self._begin)
        for component, forms in self.parts:
            covariance = component.over(level, nodes)
            begin = int64_zeros(covariance.ndim - 1)
            _add_traces(pairs, rows, (begin, covariance.ravel()), entries, forms, variances)
        here = self.support
        if self.whole >= 0 and len(here.listed_rows(level, nodes)) == len(here.group[level]):
            variances[self.whole] = 0.0
        return np.maximum(variances, 0.0) * self.excess

    def mean(self, level: int) -> float:
        """Return the mean over all pairs of a node and a sum that has a cell there, records²."""
        return self._survey(level)[0]

    def largest(self, level: int) -> float:
        """Return the largest over all pairs of a node and a sum that has a cell there, records²."""
        return self._survey(level)[1]

    def _survey(self, level: int) -> tuple[float, float]:
        """Return the mean and the largest variance of a level."""
        if level not in self._surveys:
            sums, many = self._unlike_sums
            total, most = self._survey_within(level)
            across = np.diff(self.start)[sums] > 1
            sums, many = sums[across], many[across]
            at_once = max(1, CHUNK // max(1, len(sums)))
            for nodes, times in self._unlike_nodes(level, at_once) if len(sums) else ():
                both = np.repeat(nodes, len(sums)), np.tile(sums, len(nodes))
                variances = self.at(level, *both).reshape(len(nodes), len(sums))
                total += float(times @ (variances @ many))
                most = float(variances.max(initial=most))
            pairs = self.support.count_pairs(level, *self._reaches)
            self._surveys[level] = total / max(pairs, 1), most
        return self._surveys[level]

    def _survey_within(self, level: int) -> tuple[float, float]:
        """Return the total and the largest variance of sums of one group each, row by row."""
        sums, many = self._unlike_sums
        group = self.support.group[level]
        sums, many = (each[np.diff(self.start)[sums] == 1] for each in (sums, many))
        own = self.group[self.start[sums]]
        forms = [form[(self.start, self._begin)[s.dimensions - 1][sums]] for s, form in self.parts]
        diagonals = [squares.row_variances(level) for squares, _ in self.parts]
        total = most = 0.0
        for g in np.unique(own):
            rows = np.flatnonzero(group == g)
            of_rows = [diagonal[rows] for diagonal in diagonals]
            for s in np.flatnonzero(own == g):
                both = zip(forms, of_rows, strict=True)
                variances = np.maximum(sum(form[s] * row for form, row in both), 0.0) * self.excess
                total += float(many[s] * variances.sum())
                most = max(most, float(variances.max(initial=0.0)))
        return total, most

    @cached_property
    def _begin(self) -> Int64:
        """Where the matrix of each sum begins: int64 (sums + 1)."""
        return run_starts(np.diff(self.start) ** 2)

    @cached_property
    def _reaches(self) -> tuple[Bool, Int64]:
        """The groups of kinds of sums, bool (kinds, groups), and how many sums are of each."""
        kinds = Counter(self.group[a:b].tobytes() for a, b in pairwise(self.start))
        reaches = np.zeros((len(kinds), self.support.groups), dtype=np.bool_)
        for has, kind in zip(reaches, kinds, strict=True):
            has[np.frombuffer(kind, dtype=np.int32)] = True
        return reaches, np.array(list(kinds.values()))

    @cached_property
    def _unlike_sums(self) -> tuple[Int64, Float64]:
        """Sums of unlike forms, and how many are like each: cells of like families are alike."""
        starts = {1: self.start, 2: self._begin}
        every = range(len(self.start) - 1)
        tables: list[tuple[Int64, Array]] = [(self.start, self.group)]
        for squares, forms in self.parts:
            rounded = np.round(forms / np.abs(forms).max(initial=1e-300), DIGITS) + 0.0  # no -0.0
            tables.append((starts[squares.dimensions], rounded))
        keys = [
            b"".join(t[start[s] : start[s + 1]].tobytes() for start, t in tables) for s in every
        ]
        many = Counter(keys)
        first = dict(zip(reversed(keys), reversed(every), strict=True))
        return np.array([first[key] for key in many]), float64([*many.values()])

    def _unlike_nodes(self, level: int, most: int) -> Iterator[IntPair]:
        """Yield nodes of which others that follow are like them, and how many these are."""
        rows = self.support.start[level], self.support.group[level]
        is_unlike = np.zeros(len(rows[0]) - 1, dtype=np.bool_)
        for squares, _ in self.parts:
            _mark_unlike(rows, squares.final_matrices(level), is_unlike)
        every = np.flatnonzero(is_unlike)
        times = np.diff(every, append=len(is_unlike))
        for begin in range(0, len(every), most):
            yield every[begin : begin + most], times[begin : begin + most]


@kernel
def _add_products(start: Int64, weights: Float64, forms: Float64) -> None:
    """Add a aᵀ over all coordinates, for each sum a matrix over its entries."""
    at = 0
    for s in range(len(start) - 1):
        for e in run_range(start, s):
            for d in run_range(start, s):
                # Added up over coordinates once, so that a node reads a number for each pair of
                # entries.
                for k in range(weights.shape[1]):
                    forms[at] += weights[e, k] * weights[d, k]
                at += 1


@inner_kernel
def _add_traces(
    pairs: IntPair,
    rows: tuple[Int64, Int32],
    final: tuple[Int64, Float64],
    entries: tuple[Int64, Int32, Int64],
    forms: Float64,
    traces: Float64,
) -> None:
    """Add tr(F Q) of each pair of a node and a sum."""
    nodes, sums = pairs
    row_start, group = rows
    begin, covariance = final
    start, entry_group, form_begin = entries
    for i in range(len(nodes)):
        n, s = nodes[i], sums[i]
        first = row_start[n]
        k = run_size(row_start, n)
        base = start[s]
        m = run_size(start, s)
        p = 0
        for e in range(m):
            # Entries and rows ascend by group: p is the entry's row, if the node has one.
            while p < k and group[first + p] < entry_group[base + e]:
                p += 1
            if p == k:
                break
            if group[first + p] != entry_group[base + e]:
                continue
            if len(begin) == 0:  # groups do not meet: a number a row
                traces[i] += forms[base + e] * covariance[first + p]
                continue
            own = begin[n] + p * k
            form = form_begin[s] + e * m
            q = 0
            traces[i] += forms[form + e] * covariance[own + p]
            for d in range(e):
                while group[first + q] < entry_group[base + d]:
                    q += 1
                if group[first + q] == entry_group[base + d]:
                    traces[i] += 2.0 * forms[form + d] * covariance[own + q]


@inner_kernel
def _mark_unlike(rows: tuple[Int64, Int32], final: tuple[Int64, Float64], is_unlike: Bool) -> None:
    """Mark nodes that have other groups or covariances than the one before, and the first one."""
    row_start, group = rows
    begin, covariance = final
    is_unlike[0] = True
    for n in range(1, len(is_unlike)):
        k = run_size(row_start, n)
        unlike = 0
        if row_start[n] - row_start[n - 1] != k:
            is_unlike[n] = True
            continue
        # As many rows: group by group and number by number, those of the node before.
        for row in run_range(row_start, n):
            unlike += group[row] != group[row - k]
        many = k * k if len(begin) > 0 else k
        at = begin[n] if len(begin) > 0 else row_start[n]
        for i in range(at, at + many):
            unlike += covariance[i] != covariance[i - many]
        if unlike > 0:
            is_unlike[n] = True
