"""The least budget at which estimates keep all criteria of a plan."""

from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache
from math import inf, isinf, log, sqrt

from hedgerow.errors import BudgetError, NoiseError, PlanError
from hedgerow.plan.criteria.verdict import verdicts
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import LARGEST, Budget, Rho, value_of, with_value

DIGITS = 4
_UP = Context(prec=DIGITS, rounding=ROUND_CEILING)
MOST_TRIED = 20
NEAR = 1.002
"""The largest reach of a budget that is taken for the least."""
FARTHEST = 500.0
"""Of a step, in natural logarithms of budgets."""
ALIKE, WIDE = 1e-4, 100
"""How alike the ratios of two plans' variances must be, from which variance on, for one law."""
LESS = Decimal("0.98")
"""A budget that is so much less must keep less."""


def least_budget(plan: Plan) -> Budget:
    """Return the least budget at which the estimates of a plan keep all its criteria.

    It is rounded up to four digits, and verified: at 2 % less some criterion is not kept, or not
    shown to be. Shares are found anew where the plan's allocation is known (`Plan.rule`); those of
    a plan that was read back stay.

    Args:
        plan: with criteria.

    Returns:
        A budget of the kind of the plan's: its ρ, its ε, or ε beside the same δ.

    Raises:
        PlanError: no criteria; one that no budget keeps, and why; or a budget so large that nothing
            is protected.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1), accept=[hr.Criterion("total", 20)])
        >>> hr.least_budget(plan).rho < 1
        True
    """
    if not plan.accept:
        raise PlanError("there is no criterion to keep: give [[accept]]")
    reach = _reaches(plan)
    amount = _UP.divide(*map(Decimal, value_of(plan.budget).as_integer_ratio()))
    slope = 0.5 if isinstance(plan.budget, Rho) else 1.0  # of log reach by log amount
    for _ in range(MOST_TRIED):
        own = reach(amount)
        if 1 <= own <= NEAR and reach(_UP.multiply(amount, LESS)) < 1:
            own = reach(amount, by_its_own=True)
            if own >= 1:
                return with_value(plan.budget, Fraction(amount))
        step = min(-log(own) / slope, FARTHEST)
        following = _UP.create_decimal(float(amount) * 2.718281828459045**step)
        if following > LARGEST:
            raise PlanError(
                f"the criteria need a budget of {float(following):,.6g}, more than {LARGEST:,}, "
                "where nothing is protected; ask for less"
            )
        if following == amount:
            following = amount.next_plus(_UP) if own < 1 else _UP.multiply(amount, LESS)
        other = reach(following)
        if other != own:
            slope = max(0.1, log(other / own) / float((following / amount).ln()))
        amount = following
    raise PlanError("no least budget was found that keeps the criteria; give another one to start")


def _reaches(plan: Plan) -> Callable[..., float]:
    """Return what gives the least reach at a budget, by the law of its own plan or nearly.

    Where all errors are nearly those of a plan that was judged, times one number, its law tells.
    """
    judged = list[tuple[Plan, float]]()

    @cache
    def reach(amount: Decimal, *, by_its_own: bool = False) -> float:
        try:
            at = planned_at(plan, with_value(plan.budget, Fraction(amount)))
        except (BudgetError, NoiseError) as fault:
            raise PlanError(f"at {amount:g}, which they ask for, is no plan: {fault}") from None
        for other, own in () if by_its_own else judged:
            if (scale := _scale(other, at)) is not None:
                return own / scale
        judged.append((at, _least_reach(at)))
        return judged[-1][1]

    return reach


def _scale(plan: Plan, other: Plan) -> float | None:
    """Return by what all errors of another plan are larger, and so T; None where shapes differ.

    Both the variances of the noise and those of the laws that bound it must be alike.
    """
    if other.noise.keys() != plan.noise.keys():
        return None
    each = [(other.noise[k], own) for k, own in plan.noise.items()]
    pairs = [(new.noise_variance, old.noise_variance) for new, old in each]
    if min(map(min, pairs), default=0.0) < WIDE:
        return None
    pairs += [(new.envelope.variance, old.envelope.variance) for new, old in each]
    ratios = [new / old for new, old in pairs]
    return sqrt(max(ratios)) if max(ratios) <= min(ratios) * (1 + ALIKE) else None


def _least_reach(plan: Plan) -> float:
    """Return the least reach of a plan's criteria; raise for one that no budget keeps."""
    judged = verdicts(plan, whole=False)
    for each in judged:
        if each.reach is None:
            raise PlanError(f"{each.criterion!r}: {each.why}")
    least = min(each.reach or inf for each in judged)
    if isinf(least):
        raise PlanError(
            "every criterion is of public counts or cannot be missed, and any budget keeps it"
        )
    return least


def planned_at(plan: Plan, budget: Budget) -> Plan:
    """Return the same plan at another budget, with shares found anew where the rule is known."""
    if plan.rule is None:
        return replace(plan, budget=budget, inverse_two_rho=None)
    made = make_plan(
        plan.tree,
        budget=budget,
        neighbours=plan.neighbours,
        mechanism=plan.mechanism,
        allocation=plan.rule,
        workload=plan.workload,
        measure=plan.measure,
        invariants=plan.invariants,
        public=plan.facts,
        accept=plan.accept,
    )
    return replace(made, description=plan.description, chosen=plan.chosen)
