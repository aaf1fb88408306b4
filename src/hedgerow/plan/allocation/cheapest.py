"""The cheapest plan: the smallest budget that meets a target of precision."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import inf
from types import NoneType

import numpy as np

from hedgerow.arrays import Float64, OfCuboids
from hedgerow.declared import Real, frozen
from hedgerow.errors import PlanError, check_type, kind_of
from hedgerow.noise.mechanisms import DiscreteGaussian, Mechanism
from hedgerow.plan.allocation.allocation import (
    ByDepth,
    Importance,
    Problem,
    Relative,
    checked_importance,
    importances,
)
from hedgerow.plan.allocation.means import NamedMeans
from hedgerow.plan.allocation.objectives import Largest, Total
from hedgerow.plan.allocation.optimal import levels_of, means_of
from hedgerow.plan.allocation.optimum import shares_of_least
from hedgerow.plan.allocation.programs import LevelCost, least_budgets, total_error
from hedgerow.plan.cuboids import (
    Invariant,
    Measure,
    RunningSums,
    check_parts,
    check_tree,
)
from hedgerow.plan.defaults import measure_for
from hedgerow.plan.facts.facts import Fact, PublicTable, read_facts
from hedgerow.plan.joint import Joint
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior, check_prior
from hedgerow.plan.workload import AnyWorkload, workload_for
from hedgerow.privacy.budget import LARGEST, budget_in
from hedgerow.privacy.calibrate import norm_of, worst_part
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.tables.tree import Tree

Target = int | float | Fraction | Decimal

LARGEST_TARGET = 1e100
"""Records²: a total squared error beyond which, or below its inverse, nothing is worth a plan."""

BUDGET_DIGITS = 6
MOST_DIGITS_MORE = 20
MOST_SET_RIGHT = 3
ABOVE_0 = Real("a target", 0, inf, PlanError, "no budget makes the noise 0", ends="()")
_UP = Context(prec=BUDGET_DIGITS, rounding=ROUND_CEILING)


@frozen
class _GivenShares:
    """The shares that `cheapest` computed, as an allocation."""

    given: ByDepth
    prior: Prior | None
    importance: Importance
    name = "cheapest"

    def shares(self, problem: Problem) -> ByDepth:
        """Return the shares, which were computed for this problem."""
        del problem
        return self.given


def cheapest(  # noqa: PLR0913 - as `make_plan`
    tree: Tree,
    *,
    target: Target | None = None,
    per_level: Mapping[str, Target] | None = None,
    importance: Importance = None,
    prior: Prior | None = None,
    neighbours: Neighbours | None = None,
    mechanism: type[Mechanism] = DiscreteGaussian,
    workload: AnyWorkload | None = None,
    measure: Measure | None = None,
    invariants: Sequence[Invariant] = (),
    public: Sequence[Fact | PublicTable] = (),
) -> Plan:
    """Return the plan with the least budget that meets a target of error (Ko et al., program (7)).

        minimise Σ_ℓ b_ℓ subject to Σ_ℓ Σ_{j in ℓ} w_ℓj f(b_ℓ/Δ_ℓ, N_j) ≤ τ,
        and the root of the mean of f over level ℓ ≤ the level's own target,

    for the error f of max(0, N + noise), N from the prior or, without one, large. The inverse of
    `Optimal`: its error at this budget is τ. Parts are rounded up to six digits. Where one unit
    cannot change all depths by their worst at once, the plan costs less than Σ_ℓ b_ℓ.

    Of other workloads the targets are for estimates, after cuboids are combined: τ bounds the sum
    of their variances, each times its importance, and the root of the mean variance of a cuboid is
    at most its own target. Of a cube the least budget among products of shares of levels is found
    to about 1 %; of named cuboids the shares are near the best (`hedgerow.plan.allocation.means`).

    Args:
        tree: the public domain.
        target: τ, in records²: the sum over all counts of all measured depths of squared errors,
            each times its importance (not a mean). With `Relative` a pure number.
        per_level: cuboid name → the root mean squared error of its counts, in records. Without
            ``target`` the depths that are not named stay unmeasured (along a chain).
        importance: as for `Optimal`, but a common factor matters: it scales τ.
        prior: a public table with the levels of the release.
        neighbours: as for `make_plan`.
        mechanism: as there.
        workload: as there.
        measure: as there, but no running sums.
        invariants: as there.
        public: as there.

    Raises:
        PlanError: no target, an unreachable one, an unknown level; and as `Optimal`.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> hr.cheapest(tree, per_level={"bin": 2}).budget
        Rho(rho=Fraction(1, 8))
    """
    neighbours = AddRemove() if neighbours is None else neighbours
    check_tree(tree)
    workload = workload_for(tree, workload)
    used, _ = measure_for(tree, workload, measure)
    check_parts(neighbours, mechanism, used, workload)
    if isinstance(used, RunningSums):
        raise PlanError("a target is of single noisy counts, and running sums have none")
    importance = checked_importance(importance)
    facts = read_facts(tree, public)  # once, and not for every budget that is tried
    unit = budget_in(mechanism.price, Fraction(1))
    problem = Problem.of(tree, workload, neighbours, mechanism, unit, used, invariants)

    def planned(budget: Fraction, shares: ByDepth) -> Plan:
        return make_plan(
            tree,
            budget=budget_in(mechanism.price, budget),
            neighbours=neighbours,
            mechanism=mechanism,
            allocation=_GivenShares(shares, prior, importance),
            workload=workload,
            measure=measure,
            invariants=invariants,
            public=facts,
        )

    check_prior(prior)
    wanted = "a mapping of cuboids to root mean squared errors"
    check_type("targets of single levels", per_level, (Mapping, NoneType), wanted, PlanError)
    if target is None and not per_level:
        raise PlanError("give a target: of the total squared error, or of single levels")
    if target is not None and isinstance(importance, Relative) and prior is None:
        raise PlanError("a target of relative error needs a prior: errors relative to what?")
    goal = None if target is None else _positive(target, "the target", LARGEST_TARGET)
    given = {
        k: _positive(each, f"the target of {kind_of(k)}", LARGEST_TARGET**0.5)
        for k, each in (per_level or {}).items()
    }
    goals = {levels: rmse**2 for levels, rmse in problem.by_name("target", given).items()}
    importances(problem, importance, prior)  # where no target needs them, a plan has them yet
    if problem.is_cube or problem.is_named:
        if prior is not None:
            raise PlanError("shares of a cube or of named cuboids rest on no prior: leave it out")
        return _least_of_joint(problem, goal, goals, importance, planned)
    return planned(*_least(problem, goal, goals, importance, prior))


def _least(
    problem: Problem,
    goal: float | None,
    goals: OfCuboids,
    importance: Importance,
    prior: Prior | None,
) -> tuple[Fraction, ByDepth]:
    """Return the least budget of a chain, and its shares."""
    if goal is None and problem.cuboids[-1] not in goals:
        raise PlanError(
            f"give a target for {problem.names[-1]!r} too: the leaves have to be measured"
        )
    _, plain = levels_of(problem, None, prior)
    own = {
        i: float(least_budgets([plain[i]], goals[k] * problem.tree.cells(k), LARGEST)[0])
        for i, k in enumerate(problem.cuboids)
        if k in goals
    }
    budgets = {i: Fraction(_round_up(budget)) for i, budget in own.items()}
    if goal is not None:
        measured, levels = levels_of(problem, importance, prior)
        floors = np.array([own.get(i, 0.0) for i in measured])
        least = least_budgets(levels, goal, LARGEST, floors)
        budgets |= zip(measured, _rounded(levels, least, goal), strict=True)
    total = sum(budgets.values(), Fraction(0))
    shares = tuple(budgets[i] / total if i in budgets else None for i in range(len(problem.depths)))
    measured_at = [(t, share) for t, share in zip(problem.depths, shares, strict=True) if share]
    changes = [problem.neighbours.changes(t) for t, _ in measured_at]
    norm = norm_of(problem.mechanism.price)
    needed = total * worst_part([share for _, share in measured_at], changes, norm)
    _check_size(needed)
    return needed, shares


def _least_of_joint(
    problem: Problem,
    goal: float | None,
    goals: OfCuboids,
    importance: Importance,
    planned: Callable[[Fraction, ByDepth], Plan],
) -> Plan:
    """Return the plan of a cube or of named cuboids at the least budget.

    For given shares the variances of wide noise scale with 1/ρ, or 1/ε²; discrete noise has no more
    (Canonne, Kamath & Steinke 2020, Corollary 9, of the Gaussian), so it meets the targets too.
    Where families are uneven the model's variances are set right by those of what it finds, so that
    the next shares balance the real ones; the cheapest are kept.
    """
    weights = importances(problem, importance)
    means = means_of(problem, weights)
    costs = np.array([1 / goals[k] if k in goals else 0.0 for k in problem.cuboids])
    objective = Largest(costs) if goal is None else Total(means.costs(weights))
    shares_of: dict[Decimal, ByDepth] = {}
    now = objective
    for _ in range(MOST_SET_RIGHT):
        shares = shares_of_least(problem, means, now, costs if goal is None else weights)
        unit = planned(Fraction(1), shares).design
        assert isinstance(unit, Joint)  # noqa: S101 - of the workloads that come here
        nominal = np.array([unit.nominal_variance(k) for k in problem.cuboids])
        excess = [(nominal * costs).max()]
        if goal is not None:
            cells = np.array([float(unit.possible_cells(k)) for k in problem.cuboids])
            excess.append(weights * cells @ nominal / goal)
        needed = _round_up(max(excess) ** (1 / problem.mechanism.price.power))
        _check_size(needed)
        shares_of.setdefault(needed, shares)
        if not isinstance(means, NamedMeans) or means.is_even:
            break
        model = means.variances(np.array([float(share or 0) for share in shares]))[0]
        now = replace(objective, costs=objective.costs * nominal / model)
    return planned(Fraction(min(shares_of)), shares_of[min(shares_of)])


def _check_size(needed: Fraction | Decimal) -> None:
    """Raise a PlanError for a budget at which nothing is protected, infinite ones too."""
    if needed > LARGEST:
        raise PlanError(
            f"the target needs a budget of {float(needed):,.6g}, more than {LARGEST:,}, where "
            f"nothing is protected; ask for less precision"
        )


def _rounded(levels: Sequence[LevelCost], least: Float64, target: float) -> list[Fraction]:
    """Return the budgets rounded up, and by last digits more until the target is met.

    The least budgets meet it to 1e-12 or so: rounded up they do, or one digit later.
    """
    rounded = [_round_up(budget) for budget in least]
    for _ in range(MOST_DIGITS_MORE):
        if total_error(levels, np.array([float(budget) for budget in rounded])) <= target:
            return [Fraction(budget) for budget in rounded]
        rounded = [budget.next_plus(_UP) for budget in rounded]
    raise PlanError(
        f"no budget was found that meets the target of {target:.6g}; give a slightly larger one"
    )


def _positive(target: Target, name: str, largest: float) -> float:
    """Return a target as a float that is above 0, and so far from the ends of floats."""
    number = ABOVE_0(target, name)
    if not 1 / largest <= number <= largest:
        raise PlanError(f"{name} must be from {1 / largest:g} to {largest:g}, got {number:g}")
    return number


def _round_up(budget: float) -> Decimal:
    """Return the least number of six digits that is no smaller."""
    return _UP.create_decimal(budget)
