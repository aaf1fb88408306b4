"""The allocation for the distribution of one numeric column: the shares of its tree's design."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hedgerow.distribution.branching import (
    AllRanges,
    Cdf,
    Design,
    Objective,
    Quantiles,
    best_branching,
)
from hedgerow.distribution.cumulative_error import CumulativeError
from hedgerow.errors import PlanError, check_kind
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.depths import All, RunningSums
from hedgerow.plan.prior import Prior
from hedgerow.privacy.calibrate import norm_of, worst_part
from hedgerow.tables.axis import Axis

HUNDREDTHS = 100
CDF = Cdf()


@dataclass(frozen=True, slots=True)
class ForDistribution:
    """The shares of `best_branching`, for the tree that it designed.

    Where the total is measured too it gets the share r, in hundredths, that minimises the mean
    variance of the K cumulative counts. The levels keep their design with 1 - r of the budget, so
    with the power p of `best_branching` (2 for discrete Laplace, 1 for discrete Gaussian), E the
    mean variance with the total known, f as in `hedgerow.distribution.cumulative_error`, S the
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
        check_kind("an objective", self.objective, kinds, fitting, PlanError)

    @property
    def name(self) -> str:
        """``distribution``."""
        return "distribution"

    def design(self, bins: int, mechanism: type[Mechanism]) -> Design:
        """The tree and shares for a number of bins.

        Raises:
            PlanError: see `best_branching`.
        """
        return _design(bins, mechanism, self.objective)

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """One share a depth, summing to exactly 1.

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
    """The r of `ForDistribution`."""
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
