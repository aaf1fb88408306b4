"""`plan_distribution`: the plan for one numeric column, its strategy designed from public facts."""

from typing import cast

from hedgerow.distribution.bin_codes import coded_axis
from hedgerow.distribution.branching import Cdf, Objective
from hedgerow.distribution.cumulative_error import CumulativeError
from hedgerow.distribution.for_distribution import ForDistribution
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import PlanError, check_kind
from hedgerow.estimate.running_sums import MOST_BINS, Decoded
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from hedgerow.plan.depths import All, Measure, Measured, RunningSums, Summed
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.privacy.budget import Budget, Epsilon, check_budget
from hedgerow.privacy.neighbours import Neighbours, Replace
from hedgerow.tables.tree import Tree

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
    """The plan of a distribution, from public facts alone: its strategy is designed.

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
    check_kind("the bins", ranges, Ranges, "Ranges.equal_width(…) or Ranges(…)", PlanError)
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
    """The errors of the estimated cumulative counts of a plan over one numeric axis.

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
