"""What a page knows for certain: budgets, and ways to divide them, computed beforehand.

Between these budgets, and for other divisions, the page computes what a budget buys and promises
(`points.js`), beginning from a line in logarithms. ρ as a function of ε at one δ bends so that the
line lies below it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from hedgerow.arrays import Float64
from hedgerow.errors import BudgetError, HedgerowError
from hedgerow.plan.allocation.allocation import Allocation, Uniform
from hedgerow.plan.allocation.fair import Fair
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.chain import PlannedSums
from hedgerow.plan.defaults import USUAL_DELTA
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import make_plan
from hedgerow.plan.page.solver import is_priced, shares_for
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.profile import Profile
from hedgerow.text import Json, Texts, format_percent

MANTISSAS = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
CERTIFIED = {"1", "2", "5"}
"""Of these the exact accountant is asked, which takes a while; also at both ends."""
WIDTH = 40
"""Budgets go from the plan's own over this to as many times it, within the usual ones; where the
plan's own is not one of these, from half or to twice it."""
USUAL = {EpsilonDelta: ("0.1", "10"), Epsilon: ("0.1", "10"), Rho: ("0.001", "4")}
SAFE = 1 - 2e-4
"""What a ρ that is not certified is multiplied by."""
MOST_FORECASTS, NEAR = 60, 0.0005
"""Of a division whose variances are carried: at how many budgets, and what a line may miss of a
standard error half-way between two of them before there is another."""

APART = 4
"""By what factor the budgets of trials of a prior are apart."""
RATIO = 2
"""Of variances within a level, in a fair division."""

CHOSEN_BY_BUDGET = {"distribution"}
"""Allocations whose shares may be others at another budget; so are those that rest on a prior."""


def value_of(budget: Budget) -> Fraction:
    """Return the number that a slider sets: ε, or ρ."""
    return budget.rho if isinstance(budget, Rho) else budget.epsilon


def with_value(budget: Budget, value: Fraction) -> Budget:
    """Return a budget of the same kind, and at the same δ."""
    if isinstance(budget, EpsilonDelta):
        return EpsilonDelta(value, budget.delta)
    return type(budget)(value)


def _is_budget(budget: Budget, value: Fraction) -> bool:
    """Return whether there is such a budget: some protect nothing."""
    try:
        with_value(budget, value)
    except BudgetError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a page: what a slider snaps to, ascending.

    Attributes:
        values: ε, or ρ.
        certified: places of those that the exact accountant is asked of.
        own: the place of the plan's own.
    """

    values: tuple[Fraction, ...]
    certified: tuple[int, ...]
    own: int

    @classmethod
    def around(cls, budget: Budget) -> "Budgets":
        """Return the budgets around a plan's own."""
        own, usual = value_of(budget), [Fraction(text) for text in USUAL[type(budget)]]
        low, high = min(own / 2, usual[0]), max(own * 2, usual[1])
        if usual[0] <= own <= usual[1]:
            low, high = max(own / WIDTH, usual[0] / 2), min(own * WIDTH, usual[1])
        tens = [Fraction(10) ** k for k in range(-30, 30)]
        nice = {Fraction(m) * ten: m in CERTIFIED for m in MANTISSAS for ten in tens}
        within = (value for value in nice if low <= value <= high)
        values = sorted({own, *(value for value in within if _is_budget(budget, value))})
        ends = {own, values[0], values[-1]}
        certified = [i for i, v in enumerate(values) if v in ends or nice[v]]
        return cls(tuple(values), tuple(certified), values.index(own))


@dataclass(frozen=True, slots=True, eq=False)
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
        plan, own = self.plan, self.plan.guarantee
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
    budgets = Budgets.around(plan.budget)
    own = budgets.values[budgets.own]
    wanted = [own / APART, own, own * APART]
    places = [min(budgets.certified, key=lambda i: abs(math.log(budgets.values[i] / want)))
              for want in wanted]  # fmt: skip
    way = Division("own", plan, None, keeps=False)
    return [way.at(budgets.values[i]) for i in sorted(set(places))]


def _others() -> Iterator[tuple[str, str, Allocation]]:
    yield "equal", 'method = "uniform"', Uniform()
    yield "optimal", 'method = "optimal"', Optimal()
    yield "fair", f'method = "fair"\nratio = "{RATIO}"', Fair(RATIO)


def points_of(plan: Plan, *, is_fixed: bool) -> Json:
    """Return budgets, divisions, and what is known of each pair of them, as JSON.

    Args:
        plan: of the release file.
        is_fixed: whether variances are carried (`hedgerow.plan.page.solver`).

    Returns:
        ``delta``: exact, and ``delta_value``; ``values``: budgets, ascending; ``texts``: the same,
        exact; ``certified``: places of those that are computed exactly; ``divisions``; ``chosen``:
        keys of what is said of any other division.
    """
    budgets, ways = Budgets.around(plan.budget), divisions(plan)
    everywhere = range(len(budgets.values)) if not is_priced(plan) else ()
    delta = plan.budget.delta if isinstance(plan.budget, EpsilonDelta) else Fraction(USUAL_DELTA)
    values, own = budgets.values, [way.profile for way in ways]
    sure = [
        {
            i: profile(values[i])
            for i in everywhere or (budgets.certified if first else (budgets.own,))
        }
        for first, profile in zip((True, *(False for _ in own[1:])), own, strict=True)
    ]
    each = [_wholes(plan, budgets, certified, sure[0]) for certified in sure]
    return {
        "kind": type(plan.budget).__name__,
        "delta": _exact(delta),
        "delta_value": float(delta),
        "values": [float(value) for value in values],
        "texts": [_exact(value) for value in values],
        "certified": list(budgets.certified),
        "own": budgets.own,
        "chosen": list(plan.chosen_measure),
        "divisions": [
            _division(way, budgets, wholes, certified, is_fixed=is_fixed)
            | {"epsilons": _epsilons(plan, budgets, delta, certified)}
            for way, wholes, certified in zip(ways, each, sure, strict=True)
        ],
    }


def _wholes(
    plan: Plan, budgets: Budgets, certified: dict[int, Profile], first: dict[int, Profile]
) -> list[float]:
    """Return what each budget buys: certified, or near it and a little less.

    Beside the ρ of one continuous Gaussian count the ρ of a composition hardly differs, so their
    ratio is a straight line between certified ones of the first division; that of another is as
    much higher or lower as at the plan's own budget.
    """
    budget = plan.budget
    if not isinstance(budget, EpsilonDelta):
        return [float(value) for value in budgets.values]
    near = [gaussian_rho(float(value), float(budget.delta)) for value in budgets.values]
    places = list(first)
    relative = float(certified[budgets.own].rho or 0) / float(first[budgets.own].rho or 1)
    ratios = [min(relative, 1.0) * float(first[i].rho or 0) / near[i] for i in places]
    line = np.interp(
        [math.log(value) for value in budgets.values],
        [math.log(budgets.values[i]) for i in places],
        ratios,
    )
    return [
        float(certified[i].rho or 0) if i in certified else near[i] * float(ratio) * SAFE
        for i, ratio in enumerate(line)
    ]


def _epsilons(
    plan: Plan, budgets: Budgets, delta: Fraction, certified: dict[int, Profile]
) -> list[float | None]:
    """Return ε at δ of budgets in ρ, where it is certified."""
    each = [certified.get(i) for i in range(len(budgets.values))]
    is_asked = isinstance(plan.budget, Rho)
    return [p.epsilon(delta) if p is not None and is_asked else None for p in each]


def gaussian_rho(epsilon: float, delta: float) -> float:
    """Return the ρ of Gaussian noise that is (ε, δ)-DP (Balle & Wang 2018, Theorem 8)."""

    def excess(log_rho: float) -> float:
        mu = math.sqrt(2 * math.exp(log_rho))
        first = float(ndtr(mu / 2 - epsilon / mu))
        second = math.exp(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)))
        return first - second - delta

    return math.exp(brentq(excess, -60.0, math.log(epsilon + 50), xtol=1e-13))


def _division(
    way: Division,
    budgets: Budgets,
    wholes: list[float],
    sure: dict[int, Profile],
    *,
    is_fixed: bool,
) -> Json:
    values, own = budgets.values, budgets.own
    signed = {}
    for i, promise in sure.items():
        made = way.at(values[i], promise)
        if i != own and not way.keeps:  # its shares are written out
            made = replace(made, allocation=Shares.name, prior=None)
        signed[i] = made.hash
    division: Json = {
        "key": way.key,
        "also": list(way.also),
        "lines": way.lines,
        "keeps": way.keeps,
        "chosen": list(way.plan.chosen),
        "named": [str(share) for share in way.plan.shares if share is not None],
        "shares": shares_for(way.plan),
        "wholes": wholes,
        "sure": sorted(sure),
        "hashes": [signed.get(i) for i in range(len(values))],
        "found": [
            float(format_percent(sure[i].power())) if i in sure else None
            for i in range(len(values))
        ],
    }
    if is_fixed:
        division["table"] = _carried(way.plan, wholes[0], wholes[-1])
    return division


def _carried(plan: Plan, low: float, high: float) -> Json:
    """Return variances at some budgets, times ρ (or ε²), so many that lines between them are near.

    Halves each stretch of budgets until a line is seen to miss the forecast in the middle by little
    enough, or there are `MOST_FORECASTS`.
    """
    power = plan.mechanism.price.power
    kind = Rho if plan.mechanism.price.norm == 2 else Epsilon

    def at(whole: float) -> Float64:
        budget = kind(Fraction(whole).limit_denominator(10**12))
        made = replace(plan, budget=budget, inverse_two_rho=None)
        errors = forecast(made)["rmse"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return np.asarray(errors**2 * float(value_of(budget)) ** power)

    variances = {whole: at(whole) for whole in (low, high)}
    open_stretches = [(low, high)]
    while open_stretches and len(variances) < MOST_FORECASTS:
        first, last = open_stretches.pop(0)
        middle = (first + last) / 2
        variances[middle] = at(middle)
        line = (variances[first] + variances[last]) / 2
        misses = np.abs(np.sqrt(line / np.maximum(variances[middle], 1e-300)) - 1)
        if np.nanmax(np.where(variances[middle] > 0, misses, 0.0)) > NEAR:
            open_stretches += [(first, middle), (middle, last)]
    return {
        "wholes": sorted(variances),
        "variances": [
            [None if math.isnan(v) else float(f"{v:.7g}") for v in variances[whole]]
            for whole in sorted(variances)
        ],
    }


def _exact(value: Fraction) -> str:
    """Return a number as a release file takes it: decimal where it is one, else a fraction."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(decimal) != value:
        return str(value)
    return f"{decimal:f}" if value >= Fraction(1, 1000) else f"{decimal.normalize():e}"
