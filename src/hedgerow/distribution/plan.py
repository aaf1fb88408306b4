"""`plan_distribution`: the plan for one numeric column, its strategy designed from public facts."""

from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import ClassVar

import numpy as np

from hedgerow.arrays import float64
from hedgerow.declared import frozen
from hedgerow.distribution.bins import coded_axis, ranges_of
from hedgerow.distribution.branching import (
    AllRanges,
    Cdf,
    Design,
    Objective,
    Quantiles,
    best_branching,
    numeric_axis,
)
from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import HedgerowError, PlanError, check_type
from hedgerow.estimate.running_sums import Decoded
from hedgerow.limits import MOST_SUMMED_BINS
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from hedgerow.plan.allocation.allocation import ByDepth, Problem
from hedgerow.plan.chain import PlannedSums
from hedgerow.plan.cuboids import All, Measure, RunningSums, Survivors
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget, Epsilon, check_budget
from hedgerow.privacy.calibrate import norm_of, worst_part
from hedgerow.privacy.neighbours import Neighbours, Replace
from hedgerow.tables.codes.ranges import is_numeric
from hedgerow.tables.tree import Tree

HUNDREDTHS = 100


@frozen
class ForDistribution:
    """The shares of `best_branching`, for the tree that it designed.

    Where the total is measured too it gets the share, in hundredths, that minimises the mean
    variance of the K cumulative counts (docs/proofs/distributions.md, "The share of the total").
    Running sums tell the total too, and get everything.

    Attributes:
        objective: what the tree is designed for.

    Raises:
        PlanError: the objective is of another kind.

    Example:
        >>> ranges = hr.Ranges.equal_width("income", 0, 1000, 100)
        >>> plan = hr.plan_distribution(ranges, budget=hr.Epsilon(1))
        >>> plan.allocation == hr.ForDistribution().name
        True
    """

    name = "distribution"
    prior: ClassVar[Prior | None] = None
    objective: Objective = field(default_factory=Cdf)

    def __post_init__(self) -> None:
        fitting = "Cdf(), AllRanges() or Quantiles([…])"
        kinds = (Cdf, AllRanges, Quantiles)
        check_type("an objective", self.objective, kinds, fitting, PlanError)

    def design(self, bins: int, mechanism: type[Mechanism]) -> Design:
        """Return the tree and shares for a number of bins; see `best_branching`."""
        return _design(bins, mechanism=mechanism, objective=self.objective)

    def shares(self, problem: Problem) -> ByDepth:
        """Return one share a depth, summing to exactly 1.

        Raises:
            PlanError: the tree is not the designed one, or survivors alone are measured.
        """
        tree = problem.tree
        if problem.is_named:
            raise PlanError('the allocation "distribution" goes with cuboids = "chain"')
        if isinstance(problem.measure, Survivors):
            raise PlanError(
                'the allocation "distribution" combines all levels; it needs measure = "all" or '
                '"running-sums"'
            )
        if not isinstance(problem.measure, All):
            return (*(None for _ in problem.depths[1:]), Fraction(1))
        if len(tree.axes) > 1:
            raise PlanError(
                'the allocation "distribution" is for one numeric axis, and this tree has '
                f"{len(tree.axes)} axes; choose another"
            )
        axis = tree.axes[0]
        design = self.design(axis.leaves, problem.mechanism)
        sizes = axis.sizes[1:]
        below_root = tuple(range(1, tree.depth + 1))
        if sizes != design.sizes or problem.depths[-axis.depth :] != below_root:
            raise PlanError(
                f'the allocation "distribution" designs levels of {design.sizes} nodes, and axis '
                f"{axis.name!r} has {sizes} to measure; choose another allocation"
            )
        if problem.depths[0] > 0:
            return design.shares
        # the share of the total that minimises the mean variance of the cumulative counts
        power = problem.mechanism.price.power
        norm = norm_of(problem.mechanism.price)
        changes = [problem.neighbours.changes(t) for t in (0, 1)]
        total, below_level = (max(map(norm, each)) for each in changes)
        own = float(total / below_level) ** power
        variances = [float(share) ** -power for share in design.shares]
        error = CutError.of_tree(axis.child_start, variances, np.inf)
        given_total = float(error.cuts()[1:].mean())
        carried = float((error.fraction[1:] ** 2).mean())
        below = error.total_variance
        roots = [Fraction(n, HUNDREDTHS) for n in range(HUNDREDTHS)]
        parts = [float(worst_part([root, 1 - root], changes, norm)) for root in roots]
        r = float64(roots)
        rest = (1 - r) ** power
        mean = given_total / rest + carried / (r**power / own + rest / below)
        root = roots[int(np.argmin(mean * np.array(parts) ** power))]
        return (root or None, *((1 - root) * share for share in design.shares))


_design = lru_cache(maxsize=8)(best_branching)

SMALLEST_VARIANCE = 2.0**-1022
"""Records²: stands for variances too small for a double, which must stay above 0."""

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
    """Return the plan of a distribution: its tree or running sums, from public facts alone.

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
        BudgetError, PlanError: a budget that the design cannot spend.

    Example:
        >>> ranges = hr.Ranges.equal_width("income", 0, 1000, 100)
        >>> plan = hr.plan_distribution(ranges, budget=hr.EpsilonDelta(1, "1e-6"))
        >>> plan.measure.name
        'running-sums'
    """
    check_type("the bins", ranges, Ranges, "Ranges.equal_width(…) or Ranges(…)", PlanError)
    check_budget(budget)
    mechanism: type[Mechanism] = (
        DiscreteLaplace if isinstance(budget, Epsilon) else DiscreteGaussian
    )
    allocation = ForDistribution(Cdf() if objective is None else objective)
    who = Replace() if neighbours is None else neighbours

    def plan_of(measure: Measure) -> Plan:
        is_tree = isinstance(measure, All)
        factors = allocation.design(ranges.bins, mechanism).branching if is_tree else (ranges.bins,)
        return make_plan(
            Tree([coded_axis(ranges, factors)]),
            budget=budget,
            neighbours=who,
            mechanism=mechanism,
            allocation=allocation,
            measure=measure,
        )

    if measure is not None:
        return plan_of(measure)
    tree = plan_of(All())
    possible = mechanism.price.norm == 2 and ranges.bins <= MOST_SUMMED_BINS
    if not possible or not isinstance(allocation.objective, Cdf):
        return tree.choosing("measure_tree")
    sums = plan_of(RunningSums())
    if mean_cut_variance(sums) * WORTH <= mean_cut_variance(tree):
        return sums.choosing("measure_sums")
    return tree.choosing("measure_tree")


def mean_cut_variance(plan: Plan) -> float:
    """Return the mean variance of the estimated counts below the upper edges of the bins.

    Where bins end a chain, of those of one place: a node of the depth above them; infinite where
    the error of its total is unknown.
    """
    with np.errstate(invalid="ignore"):  # of the cut before all bins, which no total moves
        return float(cumulative_error(plan).excess(0.0)[1:].mean())


def cumulative_error(plan: Plan) -> CutError | Decoded:
    """Return the errors of the estimated cumulative counts of the numeric axis that ends a chain.

    Below an axis of places it is the mean over these: the variance of a count before a cut is its
    variance given the place's total, plus f² times the variance of that total.
    """
    if isinstance(plan.design, PlannedSums):
        return plan.design.decoded
    variances = [
        max(plan.noise[k].noise_variance, SMALLEST_VARIANCE) if k in plan.noise else inf
        for k in plan.levels
    ]
    axis = plan.tree.axes[plan.tree.steps[-1][0]]
    if above := places_of(plan.tree):
        error = CutError.of_tree(axis.child_start, variances[above + 1 :], inf)
        return replace(error, total_variance=plan.design.mean_variance(plan.levels[above]))
    root = 0.0 if plan.public_depth == 0 else variances[0]
    return CutError.of_tree(axis.child_start, variances[1:], root)


def places_of(tree: Tree) -> int | None:
    """Return the depth of the places whose bins end a chain; None where no numeric axis ends it."""
    last = tree.steps[-1][0]
    bins = tree.axes[last]
    is_end = all(axis == last for axis, _ in tree.steps[-bins.depth :])
    return tree.depth - bins.depth if is_end and is_numeric(bins) else None


def alternative_plan(plan: Plan) -> Plan | None:
    """Return the plan of the same chain with `All` in place of running sums, or these for `All`.

    Its bins are refined, and its budget is shared, as they are by default.

    Returns:
        None where no numeric axis ends the chain below places, or there is no such plan.
    """
    tree = plan.tree
    last = tree.steps[-1][0]
    if not (plan.is_chain and places_of(tree)) or isinstance(plan.measure, Survivors):
        return None
    sums = isinstance(plan.measure, RunningSums)
    axes = list(tree.axes)
    bins = axes[last]
    axes[last] = numeric_axis(
        ranges_of(bins),
        None if sums else [bins.leaves],
        mechanism=plan.mechanism,
        attribute=bins.attribute,
    )
    steps = [(a, level) for a, level in tree.steps if a != last]
    steps += ((last, level) for level in range(1, axes[last].depth + 1))
    refine = [f"{axes[a].name}.{axes[a].levels[level - 1]}" for a, level in steps]
    with suppress(HedgerowError):
        return make_plan(
            Tree(axes, refine),
            budget=plan.budget,
            neighbours=plan.neighbours,
            mechanism=plan.mechanism,
            measure=All() if sums else RunningSums(),
            invariants=plan.invariants,
        )
    return None
