"""Shares over cuboids that are named: exact shares of each, by importance.

The error after estimation has a closed form where each family of a level is as large as the others
(`hedgerow.estimate.workload.even`): the importance-weighted sum of mean variances is then a convex
function of the cuboids' precisions. Shares are optimal for axes whose levels have so many nodes in
even families, and near it elsewhere. They depend on public facts alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import PlanError
from hedgerow.estimate.workload.even import EvenMeans
from hedgerow.plan.allocation.allocation import (
    PARTS,
    Importance,
    Problem,
    Relative,
    importances,
    rounded_shares,
)
from hedgerow.plan.allocation.descent import SHARPNESS, Cost, least, norm_of, weighted
from hedgerow.plan.cuboids import whole_cuboids
from hedgerow.plan.joint import shape_of_tree
from hedgerow.plan.workload import tables_of

FARTHEST = 25.0
"""Logarithm of the largest ratio of two shares that is tried."""

LITTLE = 1e-4
"""A share beside another one of 1, to begin with, of what may end without one."""

MOST_TRIED = 6
"""Cuboids that may stay unmeasured, up to which every choice of them is tried in pure ε."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedFacts:
    """The public facts that the shares of named cuboids depend on; make them with `NamedFacts.of`.

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
    whole: np.ndarray
    needed: np.ndarray

    @classmethod
    def of(cls, problem: Problem) -> "NamedFacts":
        """Return the facts of a problem whose workload names its cuboids."""
        tree, every = problem.tree, problem.workload.cuboids(problem.tree)
        shape = shape_of_tree(tree, every)
        whole = whole_cuboids(tree, problem.workload, problem.measure, problem.public)
        tables = {*tables_of(tree, every)}
        kept = [shape.given(levels) for levels in problem.cuboids if levels in whole]
        public = None if problem.public is None else shape.given(problem.public)
        return cls(
            np.array([float(tree.cells(levels)) for levels in problem.cuboids]),
            problem.mechanism.price.power,
            EvenMeans([axis.sizes for axis in shape.axes], kept, public),
            np.array([levels in whole for levels in problem.cuboids]),
            np.array([levels in tables or levels not in whole for levels in problem.cuboids]),
        )

    @property
    def ends(self) -> Int64:
        """All shares sum to 1: there is one group."""
        return np.zeros(0, dtype=np.int64)

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


def optimal_named(
    problem: Problem, importance: Importance, objective: str | None
) -> tuple[Fraction | None, ...]:
    """Return the shares of least importance-weighted error, as `Optimal` says.

    Raises:
        PlanError: importances that do not fit the cuboids, or are all 0.
    """
    facts = NamedFacts.of(problem)
    if objective == "largest":
        return _rounded(facts, least_largest(facts, np.ones(len(facts.cells))))
    weights = importances_of_cuboids(problem, importance) * facts.cells
    if objective == "cells":
        if not weights[facts.needed].all():
            raise PlanError("the importance of a table must be above 0: it has to be measured")
        return rounded_shares(weights ** (1 / (1 + facts.power)))
    weights = weights / weights.max()

    begin = weights ** (1 / (1 + facts.power))
    return _rounded(facts, _least(facts, weighted(weights), begin))


def least_largest(facts: NamedFacts, costs: Float64) -> Float64:
    """Return the shares that make the largest mean variance, each times its cost, least.

    Args:
        facts: of the cuboids.
        costs: float64 (cuboids), 0 for those that do not matter.
    """
    shares = np.ones(len(costs))
    for sharp in SHARPNESS:
        shares = _least(facts, norm_of(costs, sharp), shares)
    return shares


def importances_of_cuboids(problem: Problem, importance: Importance) -> Float64:
    """Return one importance for each cuboid that can be measured."""
    if isinstance(importance, Relative):
        return np.array([float(problem.tree.cells(levels)) ** 2 for levels in problem.cuboids])
    found = importances(problem, importance)
    if not found.any():
        raise PlanError("importances must not all be 0; give 1 to each cuboid that matters")
    return found


def _least(facts: NamedFacts, cost: Cost, begin: Float64) -> Float64:
    """Return the shares at which a cost of mean variances is least: float64 (cuboids).

    For noise priced in ρ there is one optimum. In pure ε, where a share buys with its square, it
    may pay to leave some cuboids out, and the search begins without each choice of them.

    Args:
        facts: of the cuboids.
        cost: of mean variances.
        begin: shares to begin with, 0 allowed.
    """
    starts = (np.log(np.maximum(s / s.max(), LITTLE)) for s in _starts(facts, begin))
    return least(facts, cost, starts, (-FARTHEST, 1.0))


def _starts(facts: NamedFacts, begin: Float64) -> Iterator[Float64]:
    """Yield shares to begin with: as given, and in pure ε without some cuboids, if they are few."""
    yield begin
    free = np.flatnonzero(~facts.needed)
    if facts.power > 1:
        most = len(free) if len(free) <= MOST_TRIED else 1
        for left_out in chain(*(combinations(free, n) for n in range(1, most + 1))):
            start = np.maximum(begin, begin.max() * LITTLE)
            start[[*left_out]] = 0.0
            yield start


def _rounded(facts: NamedFacts, shares: Float64) -> tuple[Fraction | None, ...]:
    """Return shares in multiples of 1/10,000; a small one is none, where that may be."""
    kept = np.where((shares < 0.5 / PARTS) & ~facts.needed, 0.0, np.maximum(shares, 1 / PARTS))
    return rounded_shares(kept)


def optimal_for_targets(problem: Problem, costs: Float64) -> tuple[Fraction | None, ...]:
    """Return the shares that need the least budget to meet targets of mean variances.

    Args:
        problem: whose workload names its cuboids.
        costs: float64 (cuboids): one over the target, 0 for cuboids without one.
    """
    facts = NamedFacts.of(problem)
    return _rounded(facts, least_largest(facts, costs))


def given_by_name(problem: Problem, given: Mapping[str, Fraction]) -> tuple[Fraction | None, ...]:
    """Return the shares that are given by cuboid; those that are not named have none.

    Raises:
        PlanError: a cuboid that is unknown or cannot be measured, or none for a table.
    """
    cuboids: dict[str, Levels] = dict(zip(problem.names, problem.cuboids, strict=True))
    found: dict[Levels, Fraction] = {}
    for name, share in given.items():
        levels = problem.tree.named(name)
        if levels not in problem.cuboids:
            raise PlanError(
                f"share of {name[:100]!r}: the cuboids that can be measured are "
                f"{', '.join(cuboids)}; to measure another, name it in [workload]"
            )
        if levels in found:
            raise PlanError(f"cuboid {problem.tree.name_of(levels)!r} has two shares")
        if share:
            found[levels] = share
    tables = tables_of(problem.tree, problem.workload.cuboids(problem.tree))
    for name, levels in cuboids.items():
        if levels in tables and levels not in found:
            raise PlanError(
                f"{name!r} needs a share above 0: it is a table, and no other cuboid tells its "
                "counts"
            )
    return problem.in_order(found)
