"""Budgets of the planning page that lie between those computed beforehand."""

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
from hedgerow.plan.page.points import Budgets, divisions, points_of, value_of, with_value
from hedgerow.plan.page.solver import solver_of
from hedgerow.plan.workload import Chain, Cube
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.text import format_percent
from tests.plan.page.javascript import run
from tests.plan.page.test_solver import CHAIN, PAIR, random_shares

ASK = """
const { solver, points, asked } = given;
return asked.map(([shares, value]) => {
  const division = solver.kind === "fixed" ? points.divisions[0] : null;
  const { whole, most } = boughtBy(solver, points, division, shares, value);
  return { whole, most, errors: variancesOf(solver, division ?? { shares }, whole).map(Math.sqrt),
    found: foundOf(solver, points, division, shares, value, most),
    epsilon: epsilonAt(solver, points, division, shares, value).epsilon };
});
"""


def lopsided(drawn, number):
    """Shares in thousandths of which one level has nearly all, where noise is narrow."""
    own = [Fraction(1, 1000)] * number
    own[int(drawn.integers(number))] += 1 - sum(own)
    return own


SCRIPTS = ["solver.js", "accountant.js", "points.js"]


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("tree", "neighbours"),
    [(CHAIN, AddRemove()), (PAIR, Replace()), (CHAIN, AddRemove(contributions=3))],
)
def test_between_budgets_the_page_errs_by_little_and_on_the_safe_side(tree, neighbours):
    budget, drawn = EpsilonDelta("1", "1e-8"), np.random.default_rng(4)
    plan = make_plan(tree, budget=budget, neighbours=neighbours, measure=All())
    solver = solver_of(plan)
    points = points_of(plan, is_fixed=solver["kind"] == "fixed")
    assert solver["kind"] == "combined"
    number, asked, plans = len(solver["measurable"]), [], []
    for _ in range(12):
        shares = random_shares(drawn, number)
        value = Fraction(str(float(f"{np.exp(drawn.uniform(np.log(0.06), np.log(9))):.2g}")))
        asked.append(([float(s) for s in shares], float(value)))
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
@pytest.mark.parametrize("kind", ["chain", "cube"])
def test_what_a_budget_buys_is_computed_for_any_division_to_a_ten_thousandth(kind):
    """Against certified plans at 40 random budgets, δ and divisions, lopsided ones included."""
    drawn, tree = np.random.default_rng(21), CHAIN if kind == "chain" else PAIR
    workload, neighbours = (Chain(), AddRemove()) if kind == "chain" else (Cube(), Replace())
    options = {"workload": workload, "neighbours": neighbours, "measure": All()}
    told = 0
    for delta in ("1e-6", "1e-11"):
        plan = make_plan(tree, budget=EpsilonDelta("1", delta), **options)
        solver, points = solver_of(plan), points_of(plan, is_fixed=False)
        asked, plans = [], []
        for k in range(10):
            value = Fraction(f"{np.exp(drawn.uniform(np.log(0.06), np.log(9.9))):.2g}")
            own = points["divisions"][0]["shares"]
            each = [lopsided(drawn, len(s)) for s in own] if kind == "cube" else [
                lopsided(drawn, len(own)) if k % 2 else random_shares(drawn, len(own))
            ]  # fmt: skip
            names = [axis.name for axis in tree.axes]
            given = dict(zip(names, each, strict=True)) if kind == "cube" else each[0]
            carried = [[float(s) for s in levels] for levels in each]
            asked.append((carried if kind == "cube" else carried[0], float(value)))
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
    assert told >= 10


def test_a_budget_in_rho_is_spent_as_it_is_and_its_epsilon_is_no_less_than_certified():
    plan = make_plan(CHAIN, budget=Rho("1/20"))
    points, solver = points_of(plan, is_fixed=False), solver_of(plan)
    shares = points["divisions"][0]["shares"]
    values = np.exp(np.random.default_rng(5).uniform(np.log(0.002), np.log(3), 12))
    asked = [(shares, float(f"{value:.2g}")) for value in values]
    found = run(SCRIPTS, ASK, {"solver": solver, "points": points, "asked": asked})
    for (_, value), one in zip(asked, found, strict=True):
        made = replace(plan, budget=Rho(Fraction(str(value))))
        assert one["whole"] == value
        epsilon = made.guarantee.epsilon("1e-8")
        assert epsilon <= one["epsilon"] <= 1.001 * epsilon


@pytest.mark.parametrize("budget", [Rho("1/20"), Epsilon("1")])
@pytest.mark.parametrize("contributions", [1, 3])
def test_what_an_attacker_finds_is_never_below_what_the_plan_says(budget, contributions):
    """At budgets computed beforehand and between them, for the page's divisions and one's own."""
    mechanism = DiscreteLaplace if isinstance(budget, Epsilon) else DiscreteGaussian
    options = {"mechanism": mechanism, "neighbours": AddRemove(contributions=contributions)}
    plan = make_plan(CHAIN, budget=budget, **options, allocation=Uniform(), measure=Survivors())
    points, solver = points_of(plan, is_fixed=False), solver_of(plan)
    drawn, asked, plans = np.random.default_rng(8), [], []
    own = points["divisions"][0]
    for value in (*points["values"][::4], 0.0371, 0.777):
        for shares in (plan.shares, random_shares(drawn, len(plan.shares))):
            asked.append((0 if shares is plan.shares else -1, [float(s) for s in shares], value))
            made = with_value(budget, Fraction(str(value)))
            plans.append(
                make_plan(
                    CHAIN, budget=made, allocation=Shares(shares), **options, measure=Survivors()
                )
            )
    ask = """return given.asked.map(([place, shares, value]) => {
      const { solver, points } = given, division = points.divisions[place] ?? null;
      const { most } = boughtBy(solver, points, division, shares, value);
      return foundOf(solver, points, division, shares, value, most); });"""
    found = run(SCRIPTS, ask, {"solver": solver, "points": points, "asked": asked})
    for (place, _, value), one, made in zip(asked, found, plans, strict=True):
        power = 100 * made.guarantee.power()
        assert power <= one <= 100
        if place == 0 and value in points["values"]:
            known = own["found"][points["values"].index(value)]
            assert known in {None, float(format_percent(made.guarantee.power()))}
            assert one <= 1.01 * power


def test_hashes_are_those_of_plans_made_anew():
    plan = make_plan(
        CHAIN, budget=EpsilonDelta("0.77", "1e-8"), measure=Survivors(), allocation=Uniform()
    )
    points, ways = points_of(plan, is_fixed=False), divisions(plan)
    assert {way.key for way in ways} >= {"own", "optimal", "fair"}
    kinds = {"own": None, "equal": None}
    for way, told in zip(ways, points["divisions"], strict=True):
        places = (points["certified"][1], points["own"]) if way.key == "own" else (points["own"],)
        for place in places:
            budget = EpsilonDelta(points["texts"][place], points["delta"])
            if way.key in kinds:
                made = make_plan(CHAIN, budget=budget, allocation=Uniform(), measure=Survivors())
                assert told["hashes"][place] == made.hash
            again = replace(way.plan, budget=budget, inverse_two_rho=None)
            assert told["hashes"][place] == again.hash


def test_a_delta_that_is_a_fraction_is_reckoned_with_as_any_other():
    plan = make_plan(CHAIN, budget=EpsilonDelta("1", "1/300000000"), measure=All())
    points, solver = points_of(plan, is_fixed=False), solver_of(plan)
    assert points["delta"] == "1/300000000"
    asked = [(points["divisions"][0]["shares"], value) for value in (1.0, 0.71)]
    found = run(SCRIPTS, ASK, {"solver": solver, "points": points, "asked": asked})
    for (_, value), one in zip(asked, found, strict=True):
        budget = EpsilonDelta(Fraction(str(value)), "1/300000000")
        made = replace(plan, budget=budget, inverse_two_rho=None)
        rho = float(made.guarantee.rho)
        assert one["whole"] <= rho * (1 + 1e-9) <= one["most"] * (1 + 2e-9)
        assert one["whole"] == pytest.approx(rho, rel=3e-4)
        assert 100 * made.guarantee.power() <= one["found"] <= 101 * made.guarantee.power()


@pytest.mark.parametrize(
    ("budget", "least", "most"),
    [
        (Rho("1000000"), "0.001", "1000000"),  # no budget is larger
        (Rho("1/1000000"), "1/2000000", "4"),
        (EpsilonDelta("17", "1e-10"), "0.1", "30"),
        (Epsilon("1"), "0.05", "10"),
    ],
)
def test_the_slider_goes_to_usual_budgets_and_never_beyond_what_there_is(budget, least, most):
    found = Budgets.around(budget)
    assert found.values[found.own] == value_of(budget)
    assert all(with_value(budget, value) for value in found.values)
    assert found.values[0] == Fraction(least)
    assert found.values[-1] == Fraction(most)
    assert {0, found.own, len(found.values) - 1} <= set(found.certified)
