"""Plans: which depth is measured with which noise, from public facts alone."""

import base64
import html
import re
import sys
from fractions import Fraction

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.plan.forecast import HEADINGS
from tests.made import fixed_axis, fixed_tree, plain_plan

GEOGRAPHY = fixed_axis("geo", 3, 4)
TRIPS = fixed_tree(["destination", "origin"], origin=(2, 3), destination=(2, 3))


def kinds(plan):
    return [what.kind for what in plan.depths]


def test_add_remove_measures_the_total_and_replace_publishes_it():
    tree = hr.Tree([GEOGRAPHY])
    added = hr.make_plan(tree, budget=hr.Rho("1/2"), neighbours=hr.AddRemove())
    replaced = hr.make_plan(tree, budget=hr.Rho("1/2"), neighbours=hr.Replace())
    assert kinds(added) == ["measured"] * 3
    assert kinds(replaced) == ["public", "measured", "measured"]


def test_replacing_units_with_at_most_m_records_measures_the_total():
    neighbours = hr.Replace(3, exactly=False)
    plan = plain_plan(hr.Tree([GEOGRAPHY]), budget=hr.Rho(1), neighbours=neighbours)
    assert kinds(plan) == ["measured"] * 3
    assert plan.depths[0].mechanism.sigma2 == 9  # come or go: 1/2 + 1/4 + 1/4 of the budget
    assert plan.depths[1].mechanism.sigma2 == 18  # move: 1/2 + 1/2
    assert plan.guarantee.rho == 1


@pytest.mark.parametrize("mechanism", [hr.DiscreteGaussian, hr.DiscreteLaplace])
@pytest.mark.parametrize(
    ("neighbours", "price"),
    [
        (hr.AddRemove(3), 1),
        (hr.Replace(), 1),
        (hr.Replace(exactly=False), Fraction(3, 2)),  # come or go, or move: 2/3 of all three
        (hr.Replace(4, exactly=False), Fraction(3, 2)),
    ],
    ids=str,
)
def test_a_depth_alone_costs_its_share_of_the_budget_or_more(neighbours, price, mechanism):
    budget = hr.Rho(1) if mechanism is hr.DiscreteGaussian else hr.Epsilon(1)
    plan = plain_plan(
        hr.Tree([GEOGRAPHY]), budget=budget, neighbours=neighbours, mechanism=mechanism
    )
    assert plan.price_of_a_share == price
    for use, share in zip(plan.guarantee.uses, filter(None, plan.shares), strict=True):
        assert (use.pure_epsilon or use.rho) == share * price


def test_the_measurements_cost_exactly_the_budget():
    shares = hr.Shares(["1/2", "0.3", "1/5"])
    plan = hr.make_plan(hr.Tree([GEOGRAPHY]), budget=hr.Rho("2/7"), allocation=shares)
    assert plan.guarantee.rho == Fraction(2, 7)
    assert [what.share for what in plan.depths] == [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    assert plan.depths[1].mechanism.sigma2 == 1 / (2 * Fraction(3, 10) * Fraction(2, 7))


def test_six_equal_depths_under_replace_get_the_exact_variance():
    budget = hr.EpsilonDelta("1", "1e-8")
    plan = plain_plan(fixed_tree(o=(2, 2, 2), d=(2, 2, 2)), budget=budget, neighbours=hr.Replace())
    assert float(plan.depths[6].mechanism.sigma2) == pytest.approx(312.15, abs=0.01)


def test_discrete_laplace_spends_a_pure_epsilon():
    plan = plain_plan(
        TRIPS, budget=hr.Epsilon(1), neighbours=hr.Replace(), mechanism=hr.DiscreteLaplace
    )
    assert {what.mechanism for what in plan.depths[1:]} == {hr.DiscreteLaplace(8)}
    assert plan.guarantee.pure_epsilon == 1


@pytest.mark.parametrize("budget", [1.0, "1", None], ids=["float", "text", "none"])
@pytest.mark.parametrize("prior", [False, True], ids=["uniform", "prior"])
def test_a_bare_number_is_no_budget(budget, prior):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    public = hr.Counts.from_leaves(tree, (np.arange(12, dtype=np.int32),), np.arange(12))
    allocation = hr.Optimal(prior=hr.Prior(public, public=True)) if prior else hr.Uniform()
    with pytest.raises(hr.BudgetError, match=r'a budget says of what it is: Rho\("1"\)'):
        hr.make_plan(tree, budget=budget, allocation=allocation)


def test_a_plan_that_measures_nothing_is_refused():
    tree = hr.Tree([fixed_axis("geo", 1)])
    with pytest.raises(hr.PlanError, match="measures nothing"):
        hr.make_plan(tree, budget=hr.Rho(1), neighbours=hr.Replace())


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (["1/2", "1/3"], "sum to exactly 1, got 5/6"),
        (["0.333", "0.333", "0.333"], "write thirds as 1/3"),
        (["3/2", "-1/2"], "must not be negative, got -1/2 in place 2"),
        (["1", "0"], "the last share must be above 0"),
        ([0.1, 0.9], "the float 0.1 is only near 0.1"),
    ],
)
def test_shares_that_are_no_shares_are_refused(shares, message):
    with pytest.raises(hr.HedgerowError, match=message):
        hr.Shares(shares)


def test_the_number_of_shares_must_be_that_of_the_measured_depths():
    with pytest.raises(hr.PlanError, match=r"can measure 3 depths \(total; level1; level2\)"):
        hr.make_plan(hr.Tree([GEOGRAPHY]), budget=hr.Rho(1), allocation=hr.Shares(["1/2", "1/2"]))


def test_the_hash_signs_everything_public_and_nothing_else():
    def plan(tree=TRIPS, rho="1/2", m=1, shares=None):
        allocation = hr.Uniform() if shares is None else hr.Shares(shares)
        return hr.make_plan(
            tree, budget=hr.Rho(rho), neighbours=hr.Replace(m), allocation=allocation
        )

    other_areas = fixed_tree(origin=(2, 3), destination=(2, 4))
    plans = [
        plan(),
        plan(rho="1/3"),
        plan(m=2),
        plan(shares=["1/2", "1/6", "1/6", "1/6"]),
        plan(other_areas),
        plan(hr.Tree(TRIPS.axes, ["origin", "destination"])),
    ]
    assert len({p.hash for p in plans}) == len(plans)
    assert plan().hash == plans[0].hash


def test_a_plan_prints_as_the_table_of_its_forecast():
    plan = plain_plan(TRIPS, budget=hr.Rho("1/2"), neighbours=hr.Replace())
    *lines, _, efficiency, empty, promise = str(plan).splitlines()
    assert lines[0].split() == " ".join(HEADINGS).split()
    assert (len(lines), empty, promise) == (6, "", str(plan.promise))
    assert efficiency == str(plan.efficiency)
    for word in ("σ² 8", "25.0%", f"{hr.forecast(plan)['rmse'][4]:.4g}"):
        assert word in lines[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axes", "areas"),
    [(64, 1000), (60, 200_000), (65, 1), (65, 2)],
    ids=["more cells than 128 bits", "than a float", "65 axes of one area", "65 axes"],
)
def test_a_plan_for_more_cells_or_axes_than_can_be_reckoned_with_prints(axes, areas):
    wide = fixed_tree(**{f"a{i}": (areas,) for i in range(axes)})
    plan = hr.make_plan(wide, budget=hr.Rho(1))
    assert len(str(plan).splitlines()) == axes + 8 + 2 * (plan.optimum is not None)
    assert hr.forecast(plan)["rmse"].null_count() == axes + 1
    assert ("> 1.7e+38" in str(plan)) == (wide.leaves >= 2**127)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"measure": "all"}, "'all'"),
        ({"measure": hr.All}, "the class All"),
        ({"neighbours": "replace"}, "'replace'"),
        ({"neighbours": hr.Replace}, "the class Replace"),
        ({"mechanism": "discrete-gaussian"}, "'discrete-gaussian'"),
        ({"allocation": "optimal"}, "'optimal'"),
        ({"allocation": hr.Optimal}, "the class Optimal"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_name_or_a_class_in_place_of_an_object_is_refused(given, named):
    with pytest.raises(hr.PlanError, match=f"must be .*, got {named}$"):
        hr.make_plan(TRIPS, budget=hr.Rho(1), **given)
    if "allocation" not in given:
        with pytest.raises(hr.PlanError, match=f"must be .*, got {named}$"):
            hr.cheapest(TRIPS, target=100, **given)


def test_an_axis_in_place_of_a_tree_is_refused():
    with pytest.raises(hr.PlanError, match=r"must be Tree\(\[axis, …\]\), got Axis$"):
        hr.make_plan(GEOGRAPHY, budget=hr.Rho(1))


def test_a_notebook_shows_the_table_and_the_promise_and_no_name_as_markup():
    axis = hr.Axis.from_frame("<b>", {"<i>&": ["a", "b"]}, levels=["<i>&"])
    plan = hr.make_plan(hr.Tree([axis]), budget=hr.EpsilonDelta("1", "1e-6"))
    shown = plan._repr_html_()
    assert re.match("<div><p[^>]*><strong>A plan</strong>", shown)
    assert plan.hash in shown
    assert "&lt;i&gt;&amp;" in shown
    assert "<i>" not in shown
    assert "<b>" not in shown
    assert "with or without any one record. The release satisfies ρ" in shown
    assert "at δ = 1e-06.</p>" in shown
    words = re.sub(r"<[^>]*>", " ", shown.replace("</tr>", "\n"))
    for row in str(plan).split("\n\n")[0].splitlines():
        assert " ".join(row.split()) in " ".join(html.unescape(words).split())


def test_a_notebook_shows_the_picture_of_a_plan_where_one_can_be_drawn(monkeypatch):
    plan = hr.make_plan(hr.Tree([GEOGRAPHY]), budget=hr.Rho(1))
    drawn = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', plan._repr_html_())
    assert b"Expected error of a count" in base64.b64decode(drawn[1])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<table" in plan._repr_html_()
    assert "<img" not in plan._repr_html_()


def test_what_a_notebook_shows_of_a_plan_needs_no_script_and_no_network():
    shown = hr.make_plan(hr.Tree([GEOGRAPHY]), budget=hr.Rho(1))._repr_html_()
    assert not re.search(r"<script|<style|<link|https?://|\son\w+=", shown)


def test_axes_and_trees_show_their_sizes_and_not_their_codes():
    assert repr(GEOGRAPHY).endswith(")")
    assert repr(GEOGRAPHY) == "Axis(geo: 3 level1, 12 level2)"
    named = "total, destination.level1, origin.level1 × destination.level1"
    assert repr(TRIPS).startswith(f"Tree({named}, ")
    assert repr(TRIPS).endswith("; 36 leaves)")
