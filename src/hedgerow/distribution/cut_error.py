"""Variances of the counts between cuts after least squares over a tree.

With u the children's variances from below and S = Σ u, a sum that weighs the children of x with g
is ``(g'u/S) x`` plus an uncorrelated residual of variance ``Σ g² u - (g'u)²/S``. Weights are
carried up from the leaves to the root for all cuts at once: docs/proofs/distributions.md, "Counts
between cuts".

The total may be measured, too. The count before cut b is ``y_b = r_b + f_b T``: what it would be if
the total were known, uncorrelated with the total's estimate T of variance V, and the part f_b of T
that least squares hands down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, Self

import numpy as np

from hedgerow.arrays import (
    Float64,
    FloatArrays,
    FloatPair,
    Int64,
    IntArrays,
    float64,
    run_numbers,
    run_sums,
    sums_before,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.tree.least_squares import distribute_down


class CutErrors(Protocol):
    """The variances of estimated counts between edges, by place where there are several."""

    def between(self, first: Int64, last: Int64) -> Float64:
        """Return the variances of counts of bins ``first <= bin < last``: (…, ranges), records²."""

    def excess(self, share: float) -> Float64:
        """Return the variances of ``y_b - share · T`` for the cuts 0 … K: (…, K + 1), records²."""


@dataclass(frozen=True, eq=False, slots=True)
class CutError:
    """The errors of all cuts of one tree; made by `of_tree`.

    Attributes:
        family_start: for each level 1 … m int64 (families + 1): where each family begins.
        before: for each level float64 (nodes + 1): sums of u over the nodes before each.
        fraction: float64 (K + 1): f, the part of an error of the total that is before each cut.
        total_variance: V, records²; 0 where the total is public. Float64 (places, 1) if each place
            has such a tree.
    """

    family_start: IntArrays
    before: FloatArrays
    fraction: Float64
    total_variance: float | Float64

    @classmethod
    def of_tree(
        cls, family_start: Sequence[Int64], variances: Sequence[float], total: float = 0.0
    ) -> Self:
        """Make it from the families of an axis (`Axis.child_start`) and the noise variances.

        Args:
            family_start: for each level 1 … m int64 (families + 1), the root's own family first.
            variances: records², one a level; infinite where a level is unmeasured, but the last.
            total: records²: of the total; 0 where it is public, infinite where it is not measured.
        """
        fits = len(variances) == len(family_start) and min(variances) > 0
        if not fits or not np.isfinite(variances[-1]):
            raise EstimateError(
                f"{len(family_start)} levels need as many noise variances, all above 0 and the "
                "last one finite"
            )
        leaves = int(family_start[-1][-1])
        below = np.full(leaves, float(variances[-1]))
        before = []
        for level in range(len(family_start) - 1, -1, -1):
            sums = sums_before(below)
            before.append(sums)
            if level > 0:
                children = run_sums(below, family_start[level])
                below = 1 / (1 / children + 1 / variances[level - 1])
        before, part = before[::-1], np.ones(1)
        for start, sums in zip(family_start, before, strict=True):
            part, _ = distribute_down(part, 0.0, np.zeros(int(start[-1])), np.diff(sums), start)
        fraction = sums_before(part)
        whole = float(before[0][-1])
        own = whole if total == inf else total * whole / (total + whole)
        return cls(tuple(family_start), tuple(before), fraction, own)

    @property
    def leaves(self) -> int:
        """K."""
        return len(self.before[-1]) - 1

    def cuts(self) -> Float64:
        """Return the variances before leaf b = 0 … K if the total were known: float64 (K + 1)."""
        ends = np.arange(self.leaves + 1)
        return self._given_total(np.zeros_like(ends), ends)

    def between(self, first: Int64, last: Int64) -> Float64:
        """Return the variances of the counts of leaves ``first <= leaf < last``: float64, records².

        Args:
            first: int64 (ranges), 0 … K.
            last: int64 (ranges), first … K.
        """
        part = self.fraction[last] - self.fraction[first]
        return self._given_total(first, last) + part**2 * self.total_variance

    def excess(self, share: float) -> Float64:
        """Return the variances of ``y_b - share · T`` for all cuts: float64 (K + 1), records²."""
        return self.cuts() + (self.fraction - share) ** 2 * self.total_variance

    def _given_total(self, first: Int64, last: Int64) -> Float64:
        """Return what `between` is if the total is known."""
        end = self.leaves - 1
        low = np.minimum(first, end)
        high = np.minimum(last, end)
        low_weight = float64(first == self.leaves)
        high_weight = float64(last == self.leaves)
        result = np.zeros(first.shape)
        for start, before in zip(self.family_start[::-1], self.before[::-1], strict=True):
            parent = run_numbers(start)
            family = parent[low]
            other = parent[high]
            sums = np.diff(before[start])
            low_sum, low_square = _weighed(before, start[family], low, low_weight)
            high_sum, high_square = _weighed(before, start[other], high, high_weight)
            # One family: a child before both cuts has the weight 0, and Σ g_low g_high u is needed.
            shared = np.where(
                low == high,
                before[low]
                - before[start[family]]
                + low_weight * high_weight * _width(before, low),
                low_sum,
            )
            together = family == other
            result += low_square + high_square - np.where(together, 2 * shared, 0.0)
            low_part = low_sum / sums[family]
            high_part = high_sum / sums[other]
            apart = low_part * low_sum + high_part * high_sum
            result -= np.where(together, (high_sum - low_sum) ** 2 / sums[family], apart)
            low = family
            high = other
            low_weight = low_part
            high_weight = high_part
        return np.maximum(result, 0.0)


def _width(before: Float64, node: Int64) -> Float64:
    """Return the u of each node."""
    return before[node + 1] - before[node]


def _weighed(before: Float64, family: Int64, node: Int64, weight: Float64) -> FloatPair:
    """Return Σ g u and Σ g² u: g is 1 for siblings before the node, the weight for itself."""
    whole = before[node] - before[family]
    own = _width(before, node)
    return whole + weight * own, whole + weight**2 * own
