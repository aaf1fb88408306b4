"""Shares over cuboids that are named: exact shares of each, by importance.

The error after estimation has a closed form where each family of a level is as large as the others
(`hedgerow.estimate.workload.even`): the importance-weighted sum of mean variances is then a convex
function of the cuboids' precisions. Shares are optimal for axes whose levels have so many nodes in
even families, and near it elsewhere. They depend on public facts alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from hedgerow.arrays import Bool, Float64
from hedgerow.estimate.workload.even import EvenMeans
from hedgerow.plan.allocation.allocation import PARTS, Problem
from hedgerow.plan.allocation.descent import FINE, Means, least, weighted
from hedgerow.plan.cuboids import whole_cuboids
from hedgerow.plan.joint import shape_of_tree

MOST_TRIED = 6
"""Cuboids that may stay unmeasured, up to which every choice of them is tried in pure ε."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedMeans(Means):
    """The mean variances of named cuboids by their shares; make them with `NamedMeans.of`.

    Attributes:
        cells: float64 (cuboids): the cells of each that can be measured.
        power: how the variance falls with the share: 1 for noise priced in ρ, 2 in pure ε.
        means: the mean variances of estimates, of the cuboids that are measured whole.
        whole: bool (cuboids): which ones these are; the others' estimates are their noisy counts.
        needed: bool (cuboids): which have to be measured: the tables.
    """

    cells: Float64
    power: int
    means: EvenMeans
    whole: Bool
    needed: Bool

    @classmethod
    def of(cls, problem: Problem) -> "NamedMeans":
        """Return those of a problem whose workload names its cuboids."""
        tree, tables = problem.tree, problem.tables
        shape = shape_of_tree(tree, problem.workload.cuboids(tree))
        whole = whole_cuboids(tree, problem.workload, problem.measure, problem.public)
        kept = [shape.given(levels) for levels in problem.cuboids if levels in whole]
        public = None if problem.public is None else shape.given(problem.public)
        return cls(
            np.array([float(tree.cells(levels)) for levels in problem.cuboids]),
            problem.mechanism.price.power,
            EvenMeans([axis.sizes for axis in shape.axes], kept, public),
            np.array([levels in whole for levels in problem.cuboids]),
            np.array([levels in tables or levels not in whole for levels in problem.cuboids]),
        )

    def variances(self, shares: Float64) -> tuple[Float64, Float64]:
        """Return mean variances, a share of 1 buying 1, and their derivatives by shares.

        Args:
            shares: float64 (cuboids), above 0.

        Returns:
            float64 (cuboids) and float64 (cuboids, cuboids).
        """
        precision = shares**self.power
        found, slope = 1 / precision, np.diag(-1 / precision**2)
        inner = np.flatnonzero(self.whole)
        if len(inner):
            means, by_precision = self.means.of(precision[inner])
            found[inner] = means
            slope[np.ix_(inner, inner)] = by_precision
        return found, slope * (self.power * shares ** (self.power - 1))

    def least_total(self, importance: Float64) -> Float64:
        """Return the shares of least importance-weighted error: float64 (cuboids)."""
        weights = importance / importance.max() * self.cells
        weights = weights / weights.max()
        return least(self, weighted(weights), weights ** (1 / (1 + self.power)), **FINE)

    def apart(self, importance: Float64) -> Float64:
        """Return the shares of least error of noisy counts, each by itself: float64 (cuboids)."""
        wanted = (importance / importance.max() * self.cells) ** (1 / (1 + self.power))
        return np.where(wanted > 0, np.maximum(wanted / wanted.sum(), 1 / PARTS), 0.0)

    def starts(self, shares: Float64) -> Iterator[Float64]:
        """Yield shares to begin with: as given; in pure ε, without some cuboids, too.

        For noise priced in ρ there is one optimum. In pure ε, where a share buys with its square,
        it may pay to leave some cuboids out, and the search begins without each choice of them.
        """
        yield shares
        free = np.flatnonzero(~self.needed)
        if self.power > 1:
            most = len(free) if len(free) <= MOST_TRIED else 1
            for left_out in chain(*(combinations(free, n) for n in range(1, most + 1))):
                start = shares.copy()
                start[[*left_out]] = 0.0
                yield start
