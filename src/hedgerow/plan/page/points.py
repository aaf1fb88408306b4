"""What a page knows for certain: budgets, and ways to divide them, computed beforehand.

Each step of its slider is one of these budgets, and each button one of these ways: every pair of
them is a plan. For somebody's own division the page computes what a budget buys and promises
(`points.js`).
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from hedgerow.declared import frozen
from hedgerow.errors import BudgetError, HedgerowError
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.allocation.allocation import Allocation, Uniform
from hedgerow.plan.allocation.fair import Fair
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.chain import PlannedSums
from hedgerow.plan.defaults import USUAL_DELTA
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import make_plan
from hedgerow.plan.page.accepted import told
from hedgerow.plan.page.judged import judged_at
from hedgerow.plan.page.solver import shares_for
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho, value_of, with_value
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.profile import Profile
from hedgerow.text import Json, Texts, format_percent

MANTISSAS, FEW_MANTISSAS = ("1", "1.5", "2", "3", "5", "7"), ("1", "2", "5")
"""Of the budgets, in each power of ten; few where the exact accountant takes long for each."""
MOST_NOISES = 24
"""Of how many different variances a plan has all steps."""
WIDTH = 20
"""Budgets go from the plan's own over this to as many times it, within the usual ones; where the
plan's own is not one of these, from half or to twice it."""
USUAL = {EpsilonDelta: ("0.1", "10"), Epsilon: ("0.1", "10"), Rho: ("0.001", "5")}

APART = 4
"""By what factor the budgets of trials of a prior are apart."""
RATIO = 2
"""Of variances within a level, in a fair division."""

CHOSEN_BY_BUDGET = {"distribution"}
"""Allocations whose shares may be others at another budget; so are those that rest on a prior."""


def _is_budget(budget: Budget, value: Fraction) -> bool:
    """Return whether there is such a budget: some protect nothing."""
    try:
        with_value(budget, value)
    except BudgetError:
        return False
    return True


@frozen
class Budgets:
    """The budgets of a page: the steps of its slider, ascending.

    Attributes:
        values: ε, or ρ.
        own: the place of the plan's own.
        least: the place of the least one that keeps all criteria, if it is among them.
    """

    values: tuple[Fraction, ...]
    own: int
    least: int | None = None

    @classmethod
    def of(cls, plan: Plan) -> "Budgets":
        """Return the budgets around a plan's own."""
        noises = {use.noise for use in plan.guarantee.uses}
        return cls.around(plan.budget, MANTISSAS if len(noises) <= MOST_NOISES else FEW_MANTISSAS)

    def including(self, least: Fraction) -> "Budgets":
        """Return these and the least one that keeps all criteria, if it is between them."""
        if not self.values[0] <= least <= self.values[-1]:
            return self
        values = tuple(sorted({*self.values, least}))
        return Budgets(values, values.index(self.values[self.own]), values.index(least))

    @classmethod
    def around(cls, budget: Budget, mantissas: Texts) -> "Budgets":
        """Return those around a budget that begin with some figures, and that budget itself."""
        own = value_of(budget)
        usual = [Fraction(text) for text in USUAL[type(budget)]]
        low = min(own / 2, usual[0])
        high = max(own * 2, usual[1])
        if usual[0] <= own <= usual[1]:
            low = max(own / WIDTH, usual[0])
            high = min(own * WIDTH, usual[1])
        nice = (Fraction(m) * Fraction(10) ** k for m in mantissas for k in range(-30, 30))
        within = (value for value in nice if low <= value <= high)
        values = sorted({own, *(value for value in within if _is_budget(budget, value))})
        return cls(tuple(values), values.index(own))


@frozen(eq=False)
class Division:
    """One way to divide the budget, at every budget.

    Attributes:
        key: ``own``, ``equal``, ``optimal``, ``fair``.
        plan: at the file's own budget.
        lines: of the release file's ``[allocation]``; None where its own lines stay.
        keeps: whether the same lines give the same shares at another budget.
        also: keys of other ways that come to the same shares.
    """

    key: str
    plan: Plan
    lines: str | None
    keeps: bool
    also: Texts = ()

    def profile(self, value: Fraction) -> Profile:
        """Return the promise at another budget, without a plan."""
        plan = self.plan
        own = self.plan.guarantee
        budget = with_value(plan.budget, value)
        if budget == plan.budget:
            return own
        shares = [share for share in plan.shares if share is not None]
        changes = [use.changes for use in own.uses]
        return calibrate(plan.mechanism, budget, shares, changes, is_worst=own.is_worst)

    def at(self, value: Fraction, promise: Profile | None = None) -> Plan:
        """Return the plan at another budget, with the same shares.

        Args:
            value: ε, or ρ.
            promise: of that plan, where it is known: it need not be searched again then.
        """
        budget = with_value(self.plan.budget, value)
        if budget == self.plan.budget:
            return self.plan
        rho = promise.rho if promise is not None and isinstance(budget, EpsilonDelta) else None
        inverse_two_rho = None if rho is None else 1 / (2 * rho)
        return replace(self.plan, budget=budget, inverse_two_rho=inverse_two_rho)


def divisions(plan: Plan) -> list[Division]:
    """Return the file's own division of the budget, and others that its plan could have."""
    keeps = plan.prior is None and plan.allocation not in CHOSEN_BY_BUDGET
    ways = [Division("own", plan, None, keeps)]
    if isinstance(plan.design, PlannedSums | PlannedSpine):
        return ways
    for key, lines, allocation in _others():
        try:
            made = make_plan(
                plan.tree,
                budget=plan.budget,
                neighbours=plan.neighbours,
                mechanism=plan.mechanism,
                allocation=allocation,
                workload=plan.workload,
                measure=plan.measure,
                invariants=plan.invariants,
                accept=plan.accept,
            ).described(plan.description)
            made = made.choosing(*plan.chosen_measure)  # what is measured is that of the file
        except HedgerowError:  # it has no such division
            continue
        same = [i for i, other in enumerate(ways) if other.plan.shares == made.shares]
        if same:
            ways[same[0]] = replace(ways[same[0]], also=(*ways[same[0]].also, key))
        else:
            ways.append(Division(key, made, lines, keeps=True))
    return ways


def plans_for_trials(plan: Plan) -> list[Plan]:
    """Return the plan at its own budget and at two others, ascending, for trials of the prior."""
    budgets = Budgets.of(plan)
    own = budgets.values[budgets.own]
    wanted = [own / APART, own, own * APART]
    places = [
        min(range(len(budgets.values)), key=lambda i: abs(math.log(budgets.values[i] / want)))
        for want in wanted
    ]
    way = Division("own", plan, None, keeps=False)
    return [way.at(budgets.values[i]) for i in sorted(set(places))]


def _others() -> Iterator[tuple[str, str, Allocation]]:
    yield "equal", 'method = "uniform"', Uniform()
    yield "optimal", 'method = "optimal"', Optimal()
    yield "fair", f'method = "fair"\nratio = "{RATIO}"', Fair(RATIO)


def points_of(
    plan: Plan,
    budgets: Budgets | None = None,
    estimator: Estimator | None = None,
    *,
    is_fixed: bool,
) -> Json:
    """Return budgets, divisions, and what is known of each pair of them, as JSON.

    Args:
        plan: of the release file.
        budgets: the steps; those around its own unless given.
        estimator: what makes counts whole; the plan's usual one unless given.
        is_fixed: whether variances are carried (`hedgerow.plan.page.solver`).

    Returns:
        ``delta``: exact, and ``delta_value``; ``values``: budgets, ascending; ``texts``: the same,
        exact; ``own``: the place of the file's; ``divisions``; ``chosen``: keys of what is said of
        any other division.
    """
    budgets = budgets or Budgets.of(plan)
    delta = plan.budget.delta if isinstance(plan.budget, EpsilonDelta) else Fraction(USUAL_DELTA)
    return {
        "kind": type(plan.budget).__name__,
        "delta": _exact(delta),
        "delta_value": float(delta),
        "values": [float(value) for value in budgets.values],
        "texts": [_exact(value) for value in budgets.values],
        "own": budgets.own,
        "chosen": list(plan.chosen_measure),
        "divisions": [
            _division(way, budgets, delta, estimator, is_fixed=is_fixed) for way in divisions(plan)
        ],
    }


def _division(
    way: Division,
    budgets: Budgets,
    delta: Fraction,
    estimator: Estimator | None,
    *,
    is_fixed: bool,
) -> Json:
    """Return one way to divide the budget: what is carried of it, and of its plan at each budget.

    Returns:
        Of each budget: ``wholes``, what it buys (ρ, or pure ε); ``hashes``; ``found``, how many of
        100 differences are noticed at most; ``epsilons``, at δ, of a budget in ρ; ``errors``, the
        RMSE of each cuboid where they are carried, null where nothing tells of it; and of each of
        the ``criteria`` what is said there (`hedgerow.plan.page.accepted.told`).
    """
    promises = [way.profile(value) for value in budgets.values]
    plans = [
        way.at(value, promise) for value, promise in zip(budgets.values, promises, strict=True)
    ]
    judged = judged_at(plans, budgets.own, budgets.least, estimator)
    if not way.keeps:  # its shares are written out
        plans = [
            made if i == budgets.own else replace(made, allocation=Shares.name, prior=None)
            for i, made in enumerate(plans)
        ]
    kind = type(way.plan.budget)
    return {
        "key": way.key,
        "also": list(way.also),
        "lines": way.lines,
        "keeps": way.keeps,
        "chosen": list(way.plan.chosen),
        "named": [str(share) for share in way.plan.shares if share is not None],
        "shares": shares_for(way.plan),
        "wholes": [
            float(promise.rho or 0) if kind is EpsilonDelta else float(value)
            for value, promise in zip(budgets.values, promises, strict=True)
        ],
        "hashes": [made.hash for made in plans],
        "found": [float(format_percent(promise.power())) for promise in promises],
        "epsilons": [promise.epsilon(delta) if kind is Rho else None for promise in promises],
        "errors": [forecast(made)["rmse"].to_list() for made in plans] if is_fixed else None,
        "criteria": [[told(way.plan, verdict) for verdict in each] for each in judged],
    }


def _exact(value: Fraction) -> str:
    """Return a number as a release file takes it: decimal where it is one, else a fraction."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(decimal) != value:
        return str(value)
    return f"{decimal:f}" if value >= Fraction(1, 1000) else f"{decimal.normalize():e}"
