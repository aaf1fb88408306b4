"""`plan_distribution`: the plan for one numeric column, its strategy designed from public facts."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, cast

import numpy as np

from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.branching import (
    AllRanges,
    Cdf,
    Design,
    Objective,
    Quantiles,
    best_branching,
)
from hedgerow.distribution.cut_error import CumulativeError
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import PlanError, check_type
from hedgerow.estimate.running_sums import MOST_BINS, Decoded
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.depths import All, Measure, Measured, RunningSums, Summed
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget, Epsilon, check_budget
from hedgerow.privacy.calibrate import norm_of, worst_part
from hedgerow.privacy.neighbours import Neighbours, Replace
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

# The allocation for the distribution of one numeric column: the shares of its tree's design.

HUNDREDTHS = 100
CDF = Cdf()


@dataclass(frozen=True, slots=True)
class ForDistribution:
    """The shares of `best_branching`, for the tree that it designed.

    Where the total is measured too it gets the share r, in hundredths, that minimises the mean
    variance of the K cumulative counts. The levels keep their design with 1 - r of the budget, so
    with the power p of `best_branching` (2 for discrete Laplace, 1 for discrete Gaussian), E the
    mean variance with the total known, f as in `hedgerow.distribution.cut_error`, S the
    variance of the sum of the first level, and v that of a total with the whole budget:

        E (1 - r)^-p  +  mean(f²) / (r^p / v + (1 - r)^p / S).

    At r = 0 the total is not measured. Where records may come, go or move, all of this is times the
    `worst_part` of the budget to the power p: up to r = 1/3 the total costs the levels nothing.
    Running sums tell the total too, and get everything.

    Attributes:
        objective: what the tree is designed for.

    Raises:
        PlanError: it is none.
    """

    prior: ClassVar[Prior | None] = None
    objective: Objective = CDF

    def __post_init__(self) -> None:
        fitting, kinds = "Cdf(), AllRanges() or Quantiles([…])", (Cdf, AllRanges, Quantiles)
        check_type("an objective", self.objective, kinds, fitting, PlanError)

    @property
    def name(self) -> str:
        """``distribution``."""
        return "distribution"

    def design(self, bins: int, mechanism: type[Mechanism]) -> Design:
        """Return the tree and shares for a number of bins.

        Raises:
            PlanError: see `best_branching`.
        """
        return _design(bins, mechanism, self.objective)

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return one share a depth, summing to exactly 1.

        Raises:
            PlanError: the tree is not the designed one, or survivors alone are measured.
        """
        tree = problem.tree
        if isinstance(problem.measure, RunningSums):
            return (*(None for _ in problem.depths[1:]), Fraction(1))
        if not isinstance(problem.measure, All):
            raise PlanError(
                'the allocation "distribution" combines all levels; it needs measure = "all" or '
                '"running-sums"'
            )
        if len(tree.axes) > 1:
            raise PlanError(
                'the allocation "distribution" is for one numeric axis, and this tree has '
                f"{len(tree.axes)} axes; choose another"
            )
        axis = tree.axes[0]
        design = self.design(axis.size(axis.depth), problem.mechanism)
        sizes = tuple(axis.size(level) for level in range(1, axis.depth + 1))
        if sizes != design.sizes or problem.depths[-axis.depth :] != tuple(
            range(1, tree.depth + 1)
        ):
            raise PlanError(
                f'the allocation "distribution" designs levels of {design.sizes} nodes, and axis '
                f"{axis.name!r} has {sizes} to measure; choose another allocation"
            )
        if problem.depths[0] > 0:
            return design.shares
        root = _root_share(problem, axis, design)
        return (root or None, *((1 - root) * share for share in design.shares))


@lru_cache(maxsize=8)
def _design(bins: int, mechanism: type[Mechanism], objective: Objective) -> Design:
    return best_branching(bins, mechanism=mechanism, objective=objective)


def _root_share(problem: Problem, axis: Axis, design: Design) -> Fraction:
    """Return the r of `ForDistribution`."""
    power, norm = problem.mechanism.price.power, norm_of(problem.mechanism.price)
    changes = [problem.neighbours.changes(t) for t in (0, 1)]
    total, level = (max(map(norm, each)) for each in changes)
    own = float(total / level) ** power
    variances = [float(share) ** -power for share in design.shares]
    error = CumulativeError.of_tree(axis.child_start, variances, np.inf)
    known = float(error.given_total.cuts()[1:].mean())
    carried, below = float((error.fraction[1:] ** 2).mean()), error.total_variance
    roots = [Fraction(n, HUNDREDTHS) for n in range(HUNDREDTHS)]
    parts = [float(worst_part([root, 1 - root], changes, norm)) for root in roots]
    r = np.array(roots, dtype=np.float64)
    rest = (1 - r) ** power
    mean = known / rest + carried / (r**power / own + rest / below)
    return roots[int(np.argmin(mean * np.array(parts) ** power))]


SMALLEST_VARIANCE = 2.0**-1022
"""Records²: the noise of a huge budget varies less than doubles can say, and is noise still."""

WORTH = 1.1
"""How many times the tree's squared error must exceed that of running sums for these to be used:
they serve cumulative counts alone, and say less of groups of bins."""


def plan_distribution(
    ranges: Ranges,
    *,
    budget: Budget,
    neighbours: Neighbours | None = None,
    objective: Objective | None = None,
    measure: Measure | None = None,
) -> Plan:
    """Return the plan of a distribution, from public facts alone: its strategy is designed.

    A tree over the bins (`hedgerow.distribution.branching`) serves every budget and objective. For
    the CDF under discrete Gaussian noise weighted running sums (`hedgerow.estimate.running_sums`)
    are used where the mean variance of the cumulative counts is less by a tenth: from some forty
    bins on, or twenty where the total is measured too.

    Args:
        ranges: the bins.
        budget: as in `hedgerow.release_distribution`.
        neighbours: as there.
        objective: what the tree is designed for; the CDF unless given.
        measure: `All` for a tree, `RunningSums`, or the better of them unless given.

    Raises:
        BudgetError, PlanError: a budget that cannot be spent so.
    """
    check_type("the bins", ranges, Ranges, "Ranges.equal_width(…) or Ranges(…)", PlanError)
    check_budget(budget)
    mechanism: type[Mechanism] = (
        DiscreteLaplace if isinstance(budget, Epsilon) else DiscreteGaussian
    )
    allocation = ForDistribution(Cdf() if objective is None else objective)
    who = Replace() if neighbours is None else neighbours

    def made(how: Measure) -> Plan:
        flat = isinstance(how, RunningSums)
        factors = (ranges.bins,) if flat else allocation.design(ranges.bins, mechanism).branching
        return make_plan(
            Tree([coded_axis(ranges, factors)]),
            budget=budget,
            neighbours=who,
            mechanism=mechanism,
            allocation=allocation,
            measure=how,
        )

    if measure is not None:
        return made(measure)
    tree = made(All())
    possible = mechanism.price.norm == 2 and ranges.bins <= MOST_BINS
    if not possible or not isinstance(allocation.objective, Cdf):
        return tree
    sums = made(RunningSums())
    return sums if mean_cut_variance(sums) * WORTH <= mean_cut_variance(tree) else tree


def mean_cut_variance(plan: Plan) -> float:
    """The mean variance of the estimated counts before the upper edges of the bins (records²)."""
    error = cumulative_error(plan)
    if isinstance(error, Decoded):
        return float(error.cuts[1:].mean())
    known, share = error.given_total.cuts()[1:], error.fraction[1:]
    return float((known + share**2 * error.total_variance).mean())


def cumulative_error(plan: Plan) -> CumulativeError | Decoded:
    """Return the errors of the estimated cumulative counts of a plan over one numeric axis.

    Raises:
        EstimateError: the leaves are not measured.
    """
    public = plan.public_depth == 0
    if isinstance(plan.measure, RunningSums):
        noise = cast("Summed", plan.depths[-1]).mechanism
        return Decoded(plan.strategy, noise.noise_variance, total_known=public)
    variances = [
        max(what.mechanism.noise_variance, SMALLEST_VARIANCE)
        if isinstance(what, Measured)
        else float("inf")
        for what in plan.depths
    ]
    root = 0.0 if public else variances[0]
    return CumulativeError.of_tree(plan.tree.axes[0].child_start, variances[1:], root)
