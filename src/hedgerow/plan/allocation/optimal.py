"""The optimal allocation: the shares of the budget of least error, before or after estimation.

Along a chain ``cells`` is program (6) of Ko et al.: the error of every noisy count on its own,
clipped at 0, before depths are combined: for depths that are used separately, and for priors whose
counts are mostly near 0, because clipping at zero dominates the error there. ``released`` is the
error after depths are combined (`hedgerow.plan.allocation.optimum`): for counts that are large
against the noise. Over a cube see `hedgerow.plan.allocation.cube_means`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from hedgerow.arrays import Float64, float64
from hedgerow.declared import either, frozen
from hedgerow.errors import PlanError, kind_of
from hedgerow.plan.allocation.allocation import (
    ByDepth,
    Importance,
    Problem,
    Relative,
    checked_importance,
    importances,
    rounded_shares,
)
from hedgerow.plan.allocation.cube_means import CubeMeans
from hedgerow.plan.allocation.means import Along, Means, NamedMeans
from hedgerow.plan.allocation.objectives import Largest, Objective, Total
from hedgerow.plan.allocation.optimum import Optimum, least_in_cases, shares_of_least
from hedgerow.plan.allocation.programs import LargeCounts, LevelCost, PriorCells, least_error
from hedgerow.plan.prior import Prior, check_prior
from hedgerow.plan.workload import Chain
from hedgerow.privacy.budget import Epsilon, EpsilonDelta
from hedgerow.privacy.calibrate import calibrate, check_spendable

ObjectiveName = Literal["cells", "released", "largest"]
OBJECTIVES: tuple[ObjectiveName, ...] = get_args(ObjectiveName)

EXACT_BEYOND = 50.0
"""The precision at which all noise is 0 but for a chance of 1e-21."""


@frozen(kw_only=True, eq=False)
class Optimal:
    """The shares that make the importance-weighted squared error of all counts least.

    With ``objective="cells"`` (Ko et al., program (6)):

        minimise Σ_ℓ Σ_{j in ℓ} w_ℓj f(b_ℓ/Δ_ℓ, N_j) subject to Σ_ℓ b_ℓ = budget

    with w the importance and f the mean squared error of max(0, N + noise). N is taken from a
    public prior; without one all counts count as large, which gives ε_ℓ ∝ (w_ℓ n_ℓ Δ₁²)^(1/3) and
    ρ_ℓ ∝ (w_ℓ n_ℓ Δ₂²)^(1/2) for n_ℓ nodes. A depth of importance 0 stays unmeasured, so the last
    one's must be above 0. With ``objective="released"`` see `hedgerow.plan.allocation.optimum`:
    the mean of w over a depth stands for w, the prior matters for `Relative` alone, and a depth may
    stay unmeasured because others tell its counts well enough; of survivors one of importance 0
    alone, as cells that are not listed have nothing but their own noisy counts.

    Without importance every single count has the same weight, so mostly the finest level: coarse
    levels may be less precise than with equal shares. `PerLevel` is what a plan has that names no
    allocation.

    An (ε, δ) budget is spent as the ρ that its exact profile allows, which depends on the shares a
    little; ρ and shares are found in turn.

    Of a cube both objectives are for counts that are large against the noise, and shares are
    products of shares of levels. ``released`` is exact where importances are a product and the
    total is measured, and near the least where it is public or importances are by cuboid.
    Of named cuboids it is optimal for axes of even families, and near it elsewhere
    (`hedgerow.plan.allocation.means`). ``largest`` makes the largest mean squared error of a
    cuboid, times its importance, least, which makes all alike where shares can: with an importance
    of one over another plan's mean squared errors, it is better at every cuboid if shares can be.

    Args:
        importance: see `Importance`; at least 0 and not all 0. Common factors do not matter.
        prior: a public table with the levels of the release (along a chain).
        objective: ``cells``, ``released``, or of a cube ``largest``; ``released`` unless given,
            and ``cells`` with a prior, which tells which noisy counts are clipped.

    Raises:
        PlanError: an importance below 0 or not finite, or all 0, or an unknown objective.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> allocation = hr.Optimal(objective="cells")
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1), allocation=allocation)
        >>> [float(share) for share in plan.shares]  # ∝ √n for n nodes
        [0.1907, 0.2698, 0.5395]
    """

    name = "optimal"
    importance: Importance = None
    prior: Prior | None = None
    objective: ObjectiveName | None = None

    def __post_init__(self) -> None:
        is_known = isinstance(self.objective, str) and self.objective in OBJECTIVES
        if self.objective is not None and not is_known:
            raise PlanError(
                f"objective must be {either(OBJECTIVES)}, got {kind_of(self.objective)}"
            )
        check_prior(self.prior)
        object.__setattr__(self, "importance", checked_importance(self.importance))

    def shares(self, problem: Problem) -> ByDepth:
        """Return the optimum in multiples of 1/10,000, or of finer parts (`Objective.parts`).

        Raises:
            PlanError: importances that do not fit the depths, a prior with other levels, no
                importance for the last depth (``cells``), or no optimum found.
            BudgetError: a budget that the mechanism cannot spend.
        """
        check_spendable(problem.mechanism, problem.budget)
        is_chain = isinstance(problem.workload, Chain)
        if self.prior is not None and not is_chain:
            raise PlanError("shares of a cube or of named cuboids rest on no prior: leave it out")
        if self.objective == "largest" and is_chain:
            raise PlanError(
                'objective = "largest" goes with a cube (cuboids = "cube") or named cuboids'
            )
        estimated = self.objective == "released" or (self.objective is None and self.prior is None)
        if is_chain and not estimated:
            return self._before_estimation(problem)
        if len(importances(problem, self.importance, self.prior)) == 1:
            return (Fraction(1),)
        means, objective, importance = self._program(problem)
        if self.objective == "cells":
            check_measured(problem, importance)
            return means.exact(problem, means.rounded(means.apart(importance)))
        return shares_of_least(problem, means, objective, importance)

    def _program(self, problem: Problem) -> tuple[Means, Objective, Float64]:
        """Return what is made least, a function of which variances, and the importances."""
        importance = importances(problem, self.importance, self.prior)
        means = means_of(problem, importance)
        if self.objective == "largest":
            return means, Largest(importance / importance.max()), importance
        return means, Total(means.costs(importance)), importance

    def optimum(self, problem: Problem) -> Optimum | None:
        """Return how near its shares are to the least; None where it is about noisy counts."""
        if self.objective == "cells" or (self.objective is None and self.prior is not None):
            return None
        return least_in_cases(*self._program(problem), problem.cases)

    def _before_estimation(self, problem: Problem) -> ByDepth:
        """Return the shares of the least error of noisy counts along a chain."""
        measured, levels = levels_of(problem, self.importance, self.prior)
        depths = [problem.depths[i] for i in measured]
        if self.prior is None:  # the shares do not depend on the budget
            budgets = _optimum(levels, 1.0)
        elif isinstance(problem.budget, EpsilonDelta):
            budgets = _alternating(problem, levels, depths)
        elif isinstance(problem.budget, Epsilon):
            budgets = _optimum(levels, float(problem.budget.epsilon))
        else:
            budgets = _optimum(levels, float(problem.budget.rho))
        shares = dict(zip(measured, rounded_shares(budgets), strict=True))
        return tuple(map(shares.get, range(len(problem.depths))))


def means_of(problem: Problem, importance: Float64) -> Means:
    """Return the mean variances of a problem's cuboids of some importance, by shares."""
    if problem.is_cube:
        return CubeMeans.of(problem)
    if problem.is_named:
        return NamedMeans.of(problem)
    return Along.of(problem, importance=importance)


def check_measured(problem: Problem, importance: Float64) -> None:
    """Raise a PlanError if a table has no importance, whose noisy counts are to be precise."""
    given = dict(zip(problem.cuboids, importance, strict=True))
    for levels in problem.tables:
        if not given[levels]:
            raise PlanError(
                f"the importance of {problem.tree.name_of(levels)!r} must be above 0: the leaves "
                f'have to be measured; objective = "released" may give them a small share'
            )


def levels_of(
    problem: Problem, importance: Importance, prior: Prior | None
) -> tuple[list[int], list[LevelCost]]:
    """Return the positions in `Problem.depths` of positive importance, and their costs.

    Nothing here looks at the problem's budget.
    """
    relative = isinstance(importance, Relative)
    weights = importances(problem, None if isinstance(importance, Relative) else importance, prior)
    check_measured(problem, weights)
    measured = [i for i, weight in enumerate(weights) if weight]
    levels = [
        _level(problem, problem.depths[i], float(weights[i]), prior, relative=relative)
        for i in measured
    ]
    return measured, levels


def _level(
    problem: Problem, depth: int, weight: float, prior: Prior | None, *, relative: bool
) -> LevelCost:
    sensitivity = problem.sensitivity(depth)
    nodes = problem.tree.nodes(depth)
    if prior is None:
        each = float(nodes) ** 2 if relative else weight
        price = problem.mechanism.price
        return LargeCounts(each * nodes * float(price.variance), price.power, sensitivity)
    counts, times = prior.values(depth, nodes)
    values = float64(counts)
    costs = 1 / np.maximum(values, 1) ** 2 if relative else np.full(len(values), weight)
    weights = np.asarray(times * costs, dtype=np.float64)
    return PriorCells(problem.mechanism.cell_error, values, weights, sensitivity)


def _optimum(levels: Sequence[LevelCost], budget: float) -> Float64:
    """Return the optimum of program (6), of at most the least budget without any error."""
    enough = EXACT_BEYOND * sum(level.sensitivity for level in levels)
    return least_error(levels, min(budget, enough)).budgets


def _alternating(problem: Problem, levels: Sequence[LevelCost], depths: Sequence[int]) -> Float64:
    """Return the optimum of program (6) at nearly the ρ that an (ε, δ) budget allows with it."""
    shares = [Fraction(1, len(levels))] * len(levels)
    changes = [problem.neighbours.changes(t) for t in depths]
    worst = problem.neighbours.is_worst
    for _ in range(3):
        profile = calibrate(problem.mechanism, problem.budget, shares, changes, is_worst=worst)
        budgets = _optimum(levels, float(profile.rho or 0))
        new = [share or Fraction(0) for share in rounded_shares(budgets)]
        if new == shares:
            break
        shares = new
    return budgets
