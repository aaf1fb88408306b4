"""Budgets of the planning page, and what it computes for somebody's own division of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation.allocation import Uniform
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Survivors
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import make_plan
from hedgerow.plan.page.points import (
    MANTISSAS,
    Budgets,
    divisions,
    points_of,
)
from hedgerow.plan.page.solver import solver_of
from hedgerow.plan.workload import Chain, Cube
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho, value_of, with_value
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.text import format_percent
from tests.plan.page.javascript import run
from tests.plan.page.test_solver import CHAIN, PAIR, random_shares

ASK = """
const { solver, points, asked } = given;
return asked.map(([shares, place]) => {
  const division = solver.kind === "fixed" ? points.divisions[0] : null;
  const { whole, most } = boughtBy(solver, points, division, shares, place);
  const variances = variancesOf(solver, division ?? { shares }, whole, place);
  return { whole, most, errors: variances.map(Math.sqrt),
    found: foundOf(solver, points, division, shares, place, most),
    epsilon: epsilonAt(solver, points, division, shares, place).epsilon };
});
"""


def lopsided(drawn, number):
    """Shares in thousandths of which one level has nearly all, where noise is narrow."""
    own = [Fraction(1, 1000)] * number
    own[int(drawn.integers(number))] += 1 - sum(own)
    return own


SCRIPTS = ["solver.js", "accountant.js", "points.js"]


def with_budgets(monkeypatch, texts):
    """Give the next pages these budgets beside 1, and return all, ascending."""
    values = sorted({Fraction(1), *map(Fraction, texts)})
    monkeypatch.setattr(Budgets, "of", lambda _: Budgets(tuple(values), values.index(1)))
    return values


def random_budgets(drawn, number, low, high, digits=2):
    """Budgets of a few digits, as texts."""
    logs = drawn.uniform(np.log(low), np.log(high), number)
    return [f"{value:.{digits}g}" for value in np.exp(logs)]


@pytest.mark.sweep(2)
@pytest.mark.usefixtures("own_division_alone")
@pytest.mark.parametrize(
    ("tree", "neighbours"),
    [(CHAIN, AddRemove()), (PAIR, Replace()), (CHAIN, AddRemove(contributions=3))],
)
def test_of_any_division_the_page_errs_by_little_and_on_the_safe_side(
    tree, neighbours, monkeypatch
):
    budget, drawn = EpsilonDelta("1", "1e-8"), np.random.default_rng(4)
    plan = make_plan(tree, budget=budget, neighbours=neighbours, measure=All())
    values = with_budgets(monkeypatch, random_budgets(drawn, 5, 0.06, 9))
    solver, points = solver_of(plan), points_of(plan, is_fixed=False)
    assert solver["kind"] == "combined"
    number, asked, plans = len(solver["measurable"]), [], []
    for place, value in enumerate(values):
        shares = random_shares(drawn, number)
        asked.append(([float(s) for s in shares], place))
        own = make_plan(
            tree, budget=EpsilonDelta(value, "1e-8"), neighbours=neighbours, measure=All(),
            allocation=Shares(shares),
        )  # fmt: skip
        plans.append(own)
    found = run(SCRIPTS, ASK, {"solver": solver, "points": points, "asked": asked})
    for one, made in zip(found, plans, strict=True):
        assert one["errors"] == pytest.approx(forecast(made)["rmse"].to_list(), rel=0.005)
        assert one["whole"] <= float(made.guarantee.rho) * (1 + 1e-9) <= one["most"]
        power = 100 * made.guarantee.power()
        assert power <= one["found"] <= 1.01 * power * (1 if solver["moves"] else 1.03)


@pytest.mark.sweep(2)
@pytest.mark.usefixtures("own_division_alone")
@pytest.mark.parametrize("kind", ["chain", "cube"])
def test_what_a_budget_buys_is_computed_for_any_division_to_a_ten_thousandth(kind, monkeypatch):
    """Against certified plans at random budgets, δ and divisions, lopsided ones included."""
    drawn, tree = np.random.default_rng(21), CHAIN if kind == "chain" else PAIR
    workload, neighbours = (Chain(), AddRemove()) if kind == "chain" else (Cube(), Replace())
    options = {"workload": workload, "neighbours": neighbours, "measure": All()}
    told = 0
    for delta in ("1e-6", "1e-11"):
        plan = make_plan(tree, budget=EpsilonDelta("1", delta), **options)
        values = with_budgets(monkeypatch, random_budgets(drawn, 5, 0.06, 9.9))
        solver, points = solver_of(plan), points_of(plan, is_fixed=False)
        asked, plans = [], []
        for k, value in enumerate(values):
            own = points["divisions"][0]["shares"]
            each = [lopsided(drawn, len(s)) for s in own] if kind == "cube" else [
                lopsided(drawn, len(own)) if k % 2 else random_shares(drawn, len(own))
            ]  # fmt: skip
            names = [axis.name for axis in tree.axes]
            given = dict(zip(names, each, strict=True)) if kind == "cube" else each[0]
            carried = [[float(s) for s in levels] for levels in each]
            asked.append((carried if kind == "cube" else carried[0], k))
            budget = EpsilonDelta(value, delta)
            plans.append(make_plan(tree, budget=budget, allocation=Shares(given), **options))
        found = run(SCRIPTS, ASK, {"solver": solver, "points": points, "asked": asked})
        for one, made in zip(found, plans, strict=True):
            rho = float(made.guarantee.rho)
            assert one["whole"] <= rho <= one["most"]
            power = 100 * made.guarantee.power()
            assert power <= one["found"]
            if one["most"] < 1.001 * one["whole"]:  # else nearly all is spent on narrow noise
                told += 1
                assert one["whole"] == pytest.approx(rho, rel=3e-4)
                assert one["found"] <= 1.01 * power
                assert one["errors"] == pytest.approx(
                    forecast(made)["rmse"].to_list(), rel=0.005, abs=1e-6
                )
    assert told >= 5


@pytest.mark.usefixtures("own_division_alone")
def test_a_budget_in_rho_is_spent_as_it_is_and_its_epsilon_is_no_less_than_certified(monkeypatch):
    plan = make_plan(CHAIN, budget=Rho(1))
    values = with_budgets(monkeypatch, random_budgets(np.random.default_rng(5), 6, 0.002, 3))
    points, solver = points_of(plan, is_fixed=False), solver_of(plan)
    shares = points["divisions"][0]["shares"]
    asked = [(shares, place) for place in range(len(values))]
    found = run(SCRIPTS, ASK, {"solver": solver, "points": points, "asked": asked})
    for value, one in zip(values, found, strict=True):
        made = replace(plan, budget=Rho(value))
        assert one["whole"] == float(value)
        epsilon = made.guarantee.epsilon("1e-8")
        assert epsilon <= one["epsilon"] <= 1.001 * epsilon


@pytest.mark.parametrize("budget", [Rho("1"), Epsilon("1")])
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.usefixtures("own_division_alone")
def test_what_an_attacker_finds_is_never_below_what_the_plan_says(
    budget, contributions, monkeypatch
):
    """At budgets computed beforehand and between them, for the page's divisions and one's own."""
    mechanism = DiscreteLaplace if isinstance(budget, Epsilon) else DiscreteGaussian
    options = {"mechanism": mechanism, "neighbours": AddRemove(contributions=contributions)}
    plan = make_plan(CHAIN, budget=budget, **options, allocation=Uniform(), measure=Survivors())
    values = with_budgets(monkeypatch, ["0.05", "0.1", "0.777", "2", "5"])
    points, solver = points_of(plan, is_fixed=False), solver_of(plan)
    drawn, asked, plans = np.random.default_rng(8), [], []
    own = points["divisions"][0]
    for at, value in enumerate(values):
        for shares in (plan.shares, random_shares(drawn, len(plan.shares))):
            asked.append((0 if shares is plan.shares else -1, [float(s) for s in shares], at))
            made = with_value(budget, value)
            plans.append(
                make_plan(
                    CHAIN, budget=made, allocation=Shares(shares), **options, measure=Survivors()
                )
            )
    ask = """return given.asked.map(([k, shares, place]) => {
      const { solver, points } = given, division = points.divisions[k] ?? null;
      const { most } = boughtBy(solver, points, division, shares, place);
      return foundOf(solver, points, division, shares, place, most); });"""
    found = run(SCRIPTS, ask, {"solver": solver, "points": points, "asked": asked})
    for (k, _, place), one, made in zip(asked, found, plans, strict=True):
        power = made.guarantee.power()
        assert 100 * power <= one <= 100
        if k == 0:
            assert one == own["found"][place] == float(format_percent(power))


@pytest.mark.usefixtures("few_budgets")
def test_hashes_are_those_of_plans_made_anew():
    plan = make_plan(
        CHAIN, budget=EpsilonDelta("0.77", "1e-8"), measure=Survivors(), allocation=Uniform()
    )
    points, ways = points_of(plan, is_fixed=False), divisions(plan)
    assert {way.key for way in ways} >= {"own", "optimal", "fair"}
    kinds = {"own": None, "equal": None}
    for way, told in zip(ways, points["divisions"], strict=True):
        for place in (0, points["own"]):
            budget = EpsilonDelta(points["texts"][place], points["delta"])
            if way.key in kinds:
                made = make_plan(CHAIN, budget=budget, allocation=Uniform(), measure=Survivors())
                assert told["hashes"][place] == made.hash
            again = replace(way.plan, budget=budget, inverse_two_rho=None)
            assert told["hashes"][place] == again.hash


@pytest.mark.usefixtures("own_division_alone")
def test_a_delta_that_is_a_fraction_is_reckoned_with_as_any_other(monkeypatch):
    values = with_budgets(monkeypatch, ["0.71"])
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1/300000000"), measure=All())
    points, solver = points_of(plan, is_fixed=False), solver_of(plan)
    assert points["delta"] == "1/300000000"
    asked = [(points["divisions"][0]["shares"], place) for place in range(len(values))]
    found = run(SCRIPTS, ASK, {"solver": solver, "points": points, "asked": asked})
    for value, one in zip(values, found, strict=True):
        budget = EpsilonDelta(value, "1/300000000")
        made = replace(plan, budget=budget, inverse_two_rho=None)
        rho = float(made.guarantee.rho)
        assert one["whole"] <= rho * (1 + 1e-9) <= one["most"] * (1 + 2e-9)
        assert one["whole"] == pytest.approx(rho, rel=3e-4)
        assert 100 * made.guarantee.power() <= one["found"] <= 101 * made.guarantee.power()


@pytest.mark.parametrize(
    ("budget", "least", "most"),
    [
        (Rho("1000000"), "0.001", "1000000"),  # no budget is larger
        (Rho("1/1000000"), "1/2000000", "5"),
        (EpsilonDelta("17", "1e-10"), "0.1", "30"),
        (Epsilon("1"), "0.1", "10"),
    ],
)
def test_the_slider_goes_to_usual_budgets_and_never_beyond_what_there_is(budget, least, most):
    found = Budgets.around(budget, MANTISSAS)
    assert found.values[found.own] == value_of(budget)
    assert all(with_value(budget, value) for value in found.values)
    assert found.values[0] == Fraction(least)
    assert found.values[-1] == Fraction(most)
