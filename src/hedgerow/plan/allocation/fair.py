"""An allocation under which no cell of a cuboid is much less precise than another.

What a cell's variance is depends on how many siblings, cousins and ancestors' siblings its nodes
have: on their classes (`hedgerow.plan.allocation.fairness`). The models of errors tell the variance
of one node a class in place of means (`hedgerow.plan.allocation.means`), and the one optimiser
keeps the bound (`hedgerow.plan.allocation.objectives.Within`). From survivors along a chain
variances are linear in those of the measurements, so the least is proved: docs/proofs/shares.md,
"Fair shares". Where estimates are combined no optimum is proved: what is returned keeps the bound,
which is verified after shares are rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, prod
from typing import Annotated, ClassVar

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.declared import Real, check_fields, frozen
from hedgerow.errors import PlanError
from hedgerow.limits import MOST_KINDS
from hedgerow.plan.allocation.allocation import (
    FINE_PARTS,
    ByDepth,
    Problem,
    checked_importance,
    importances,
)
from hedgerow.plan.allocation.cube_means import CubeMeans
from hedgerow.plan.allocation.fairness import Classes
from hedgerow.plan.allocation.means import Along, NamedMeans
from hedgerow.plan.allocation.objectives import SHARP, Total, Within
from hedgerow.plan.allocation.optimum import Optimum, least, least_in_cases
from hedgerow.plan.cuboids import All, Survivors
from hedgerow.plan.joint import shape_of_tree
from hedgerow.plan.prior import Prior
from hedgerow.plan.workload import Chain

RATIO = Real("a ratio of variances", 1, inf, PlanError)
FINEST = 10**9
"""The parts of shares along a chain, of which few are priced."""

SLACK_OF_PARTS = 1000
"""The parts by which the logarithm of the ratio stays below the bound before they are rounded."""


@frozen
class Fair:
    """The least mean variance at which no node is ``ratio`` times less precise than another.

    In each cuboid the largest variance of a cell is at most ``ratio`` times the least above 0,
    under wide noise. From survivors along a chain variances are those of large counts, and the
    least mean variance is proved where every level matters; where all cells are measured, along a
    chain or of a cube, they are those of the estimates, and it is not proved. Of named cuboids over
    axes of even families all cells of a cuboid have one variance, so that only the error is left to
    be made least.

    Attributes:
        ratio: at least 1.
        importance: the weight of each measurable depth's mean variance; equal unless given. A
            cube's cuboids have equal ones.

    Raises:
        PlanError: a ratio below 1, or importance that is negative or nowhere above 0.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 50, 5).axis([2, 3])])
        >>> plan = hr.make_plan(
        ...     tree, budget=hr.Rho(1), allocation=hr.Fair(1.25), measure=hr.Survivors()
        ... )
        >>> bool(hr.fairness(plan)["ratio"].max() <= 1.25)
        True
    """

    name = "fair"
    prior: ClassVar[Prior | None] = None
    ratio: Annotated[float, RATIO]
    importance: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "importance", checked_importance(self.importance))

    def shares(self, problem: Problem) -> ByDepth:
        """Return shares as `fair_shares`."""
        is_chain = isinstance(problem.workload, Chain)
        if not is_chain and self.importance is not None:
            raise PlanError("fair shares count the cuboids of a workload alike: no importance")
        return fair_shares(problem, self.ratio, self.importance)

    def optimum(self, problem: Problem) -> Optimum:
        """Return how near its shares are to the least within the ratio."""
        weights = importances(problem, self.importance)
        optimum = Kinds.of(problem, weights).within(log(self.ratio))
        # With another choice of levels to measure, nodes of other levels are alike.
        is_open = isinstance(problem.measure, Survivors) and weights.min() == 0
        return replace(optimum, unproved=optimum.unproved or ("survivors" if is_open else ""))


def fair_shares(
    problem: Problem, ratio: float, importance: Sequence[float] | None = None
) -> ByDepth:
    """Return the shares of `Fair`, one a cuboid that can be measured.

    Raises:
        PlanError: cells are measured for which the variances are not known, too many of them are
            different, or no shares were found that keep the ratio.
    """
    kinds = Kinds.of(problem, importances(problem, importance))
    groups = kinds.means.rounded(kinds.within(log(ratio)).shares, kinds.parts)
    each = np.array([float(share or 0) for group in groups for share in group])
    if kinds.log_ratio(each) <= log(ratio):
        return kinds.means.exact(problem, groups)
    reached = kinds.log_ratio(kinds.narrowest.shares)
    if reached > log(ratio):
        raise PlanError(
            f"no shares were found that keep the cells of every cuboid within {ratio:.9g} times "
            f"the variance of each other; the smallest ratio found is {np.exp(reached):.9g}"
        )
    raise PlanError(
        f"shares in steps of 1/{kinds.parts:,} do not keep a ratio of {ratio:.9g}, so near "
        f"the smallest one found, {np.exp(reached):.9g}; allow a little more"
    )


@dataclass(frozen=True, eq=False)
class Kinds:
    """The cells of cuboids that may differ in variance: one of each kind.

    Attributes:
        means: their variances by shares.
        importance: of a squared error of one count of each cuboid.
        cases: `Problem.cases`.
        apart: what is made least, with the ratio as its bound.
    """

    means: Along | CubeMeans | NamedMeans
    importance: Float64
    cases: Float64
    apart: Within

    @classmethod
    def of(cls, problem: Problem, weights: Float64) -> "Kinds":
        """Return those of a problem, with the weights of its cuboids' mean variances.

        Raises:
            PlanError: variances of what is measured are not known, or too many are different.
        """
        means = _variances(problem)
        nodes = means.nodes
        costs = np.concatenate(
            [w * n.ravel() / n.sum() for w, n in zip(weights, nodes, strict=True)]
        )
        equal = np.concatenate(
            [np.full(n, 1 / n) for n in np.diff(means.ends, prepend=0, append=len(means.needed))]
        )
        variances = means.variances(equal)[0]
        first = []
        chosen = list[Int64]()
        ends = np.cumsum([n.size for n in nodes])
        for part in np.split(np.arange(len(variances)), ends[:-1]):
            above = part[variances[part] > 1e-9 * max(variances[part].max(), 1e-300)]
            if len(above) > 1:
                first.append(sum(map(len, chosen)))
                chosen.append(above)
        kinds = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
        cells = np.array([n.sum() for n in nodes])
        apart = Within(costs, 0.0, kinds, np.array(first, np.int64))
        return cls(means, weights / cells, problem.cases, apart)

    def log_ratio(self, shares: Float64) -> float:
        """Return the largest ln(largest / least above 0) of a cuboid."""
        return self.apart.log_ratio(self.means.variances(shares)[0])

    def within(self, bound: float) -> Optimum:
        """Return the shares of least weighted mean variances within a bound, or the narrowest."""
        slack = SLACK_OF_PARTS / self.parts
        objective = replace(self.apart, bound=bound - slack, slack=slack)
        optimum = self._least(objective) if len(self.apart.chosen) else self._least(self.total)
        if optimum.value == inf and self.log_ratio(self.narrowest.shares) < objective.bound:
            # Near the narrowest ones, and not first away from them.
            optimum = least(self.means, replace(objective, sharp=SHARP), [self.narrowest.shares])
        return replace(self.narrowest, unproved="narrowest") if optimum.value == inf else optimum

    @property
    def parts(self) -> int:
        """Of what number of parts shares are made."""
        return FINEST if isinstance(self.means, Along) else FINE_PARTS

    @cached_property
    def narrowest(self) -> Optimum:
        """The shares of the smallest largest ratio that were found."""
        is_open = len(self.apart.chosen) > 0
        return self._least(replace(self.apart, costs=None) if is_open else self.total)

    @property
    def total(self) -> Total:
        """The weighted mean variances."""
        assert self.apart.costs is not None  # noqa: S101 - as it was made
        return Total(self.apart.costs)

    def _least(self, objective: Total | Within) -> Optimum:
        cases = self.cases if objective.costs is not None else self.cases[:1]  # of ratios alike
        return least_in_cases(self.means, objective, self.importance, cases)


def _variances(problem: Problem) -> Along | CubeMeans | NamedMeans:
    """Return the variances of kinds of cells, by shares."""
    if problem.is_named:
        named = NamedMeans.of(problem)
        if not named.is_even:
            raise PlanError(
                "fair shares of named cuboids are for axes whose families of a level are all as "
                "large, where the cells of a cuboid have one variance; elsewhere "
                'method = "optimal" with objective = "largest" makes the errors of cuboids alike'
            )
        return named  # one cell of a cuboid can be moved to any other, and all else stays
    if not problem.is_cube:
        combine = isinstance(problem.measure, All)
        return Along.of(problem, Classes.of(problem.tree, subtrees=combine))
    if len(problem.cases) > 1:
        raise PlanError(
            "fair shares of a cube are for units that only come and go, or of which each has its "
            "number of records: with exactly = false the total has noise of its own kind"
        )
    if isinstance(problem.measure, Survivors):
        raise PlanError(
            'fair shares of a cube need measure = "all": what survivors add depends on the counts'
        )
    classes = [Classes.along(axis.child_start) for axis in shape_of_tree(problem.tree).axes]
    if prod(max(len(level.nodes) for level in own.levels[0]) for own in classes) > MOST_KINDS:
        raise PlanError(
            "fair shares of a cube are for trees whose families are alike enough: here more "
            f"than {MOST_KINDS:,} cells of a cuboid may differ in variance"
        )
    return CubeMeans.of(problem, classes)
