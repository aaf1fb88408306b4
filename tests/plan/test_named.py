"""Named cuboids in a plan: which are measured, what they share, what they cost, what is refused."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

import hedgerow as hr
from hedgerow.estimate.workload.even import EvenMeans
from hedgerow.plan import cuboids
from hedgerow.plan.allocation.means import NamedMeans
from hedgerow.plan.forecast import forecast_legend, forecast_matrix
from hedgerow.plan.make import read_plan
from hedgerow.plan.workload import tables_of
from tests.made import named_axis, named_tree, problem_of

PAIRS = named_tree(o=(2, 3, 2), d=(2, 2, 3))
CENSUS = named_tree(place=(3, 4), race=(5,), age=(2,), sex=(2,))
BUDGET = hr.EpsilonDelta("1", "1e-8")


def planned(*names, tree=PAIRS, chain=False, **options):
    options = {"budget": BUDGET, "neighbours": hr.Replace(), **options}
    return hr.make_plan(tree, workload=hr.Cuboids(list(names), chain=chain), **options)


def test_common_coarsenings_are_released_and_the_named_ones_alone_are_measured():
    plan = planned("place.place2 × race.race1", "place.place1 × age.age1 × sex.sex1", tree=CENSUS)
    kinds = {name: what.kind for name, what in plan.cuboids.items()}
    assert kinds == {
        "total": "public",
        "place.place1": "unmeasured",
        "place.place2 × race.race1": "measured",
        "place.place1 × age.age1 × sex.sex1": "measured",
    }
    assert plan.tables == ((1, 0, 1, 1), (2, 1, 0, 0))
    assert plan.table_of((1, 1, 0, 0)) == (2, 1, 0, 0)
    assert plan.table_of((1, 0, 1, 0)) == (1, 0, 1, 1)
    assert plan.table_of((1, 1, 1, 0)) is None


def test_equal_workloads_have_one_hash_however_they_are_spelled():
    one = planned("o.o3", "d.d3", chain=True)
    names = [PAIRS.name_of(levels) for levels in PAIRS.chain]
    other = planned("d.d3", *reversed(names), "o.o3")
    x = planned("o.o3 x d.d3", "o.o1 * d.d1")
    times = planned("d.d1 × o.o1", "o.o3 × d.d3")
    assert one.hash == other.hash
    assert x.hash == times.hash
    assert one.hash != x.hash


def test_names_that_make_up_the_chain_or_the_cube_are_the_chain_or_the_cube():
    names = [PAIRS.name_of(levels) for levels in PAIRS.chain]
    cube = list(hr.make_plan(PAIRS, budget=BUDGET, workload=hr.Cube()).cuboids)
    assert planned(*names).hash == hr.make_plan(PAIRS, budget=BUDGET, neighbours=hr.Replace()).hash
    assert planned(*cube).workload == hr.Cube()


def test_a_plan_of_named_cuboids_reads_back():
    for plan in (planned("o.o3", "d.d3", chain=True), planned("o.o2", "d.d2", "o.o3 × d.d1")):
        assert read_plan(plan.tree, plan.to_dict()).hash == plan.hash


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["o.o9"], "no cuboid is called 'o.o9'"),
        (["o.o1 × o.o2"], "no cuboid is called"),
        (["o.o1", "o.o1"], "'o.o1' is named twice"),
        ([], "name at least one cuboid"),
        ("o.o1", "cuboids must be a list of names"),
        ([3], "the name of a cuboid must be text"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, words):
    with pytest.raises(hr.PlanError, match=words):
        hr.make_plan(PAIRS, budget=BUDGET, workload=hr.Cuboids(names))


def test_every_table_has_to_be_measured():
    with pytest.raises(hr.PlanError, match=r"'d\.d3' needs a share above 0"):
        planned("o.o3", "d.d3", "o.o1", allocation=hr.Shares({"o.o3": "1/2", "o.o1": "1/2"}))


def test_shares_are_given_by_name():
    plan = planned("o.o3", "d.d3", "o.o1", allocation=hr.Shares({"o.o3": "2/3", "d.d3": "1/3"}))
    given = {name: getattr(what, "share", None) for name, what in plan.cuboids.items()}
    assert given == {
        "total": None, "o.o1": None, "o.o3": Fraction(2, 3), "d.d3": Fraction(1, 3)
    }  # fmt: skip
    with pytest.raises(hr.PlanError, match="shares by name"):
        planned("o.o3", "d.d3", allocation=hr.Shares(["1/2", "1/2"]))
    with pytest.raises(hr.PlanError, match=r"share of 'o\.o2'"):
        planned("o.o3", "d.d3", allocation=hr.Shares({"o.o2": 1}))


def test_a_public_level_is_named_and_then_exact():
    plan = planned("o.o1", "o.o3 × d.d3", "d.d3", invariants=[hr.Invariant("o", "o1")])
    assert plan.cuboids["o.o1"] == hr.Public()
    errors = dict(zip(plan.levels, hr.forecast(plan)["rmse"], strict=True))
    assert errors[1, 0] == 0
    with pytest.raises(hr.PlanError, match="no cuboid of the workload; name it, too"):
        planned("o.o3 × d.d3", invariants=[hr.Invariant("o", "o1")])


def test_a_public_table_of_its_own_costs_nothing():
    plan = planned("o.o2", "d.d3", invariants=[hr.Invariant("o", "o2")])
    assert [what.kind for what in plan.cuboids.values()] == ["public", "public", "measured"]
    assert plan.shares[-1] == 1


def test_a_public_table_is_whole_where_survivors_are_measured():
    exact = {"invariants": [hr.Invariant("o", "o2")], "measure": hr.Survivors()}
    plan = planned("o.o1", "o.o2", "d.d3", "d.d1", **exact)
    assert [plan.tree.name_of(k) for k in plan.levels if not plan.is_whole(k)] == ["d.d3"]
    below = planned("o.o2", "o.o2 × d.d3", "d.d3", **exact)  # below public counts, too
    assert below.design.margins == {(2, 3): ((0, 3), (2, 0))}


def test_three_margins_that_need_not_admit_a_table_are_refused():
    tree = named_tree(a=(2,), b=(3,), c=(2,), e=(2,))
    triples = [f"{x} × {y} × e.e1" for x, y in (("a.a1", "b.b1"), ("b.b1", "c.c1"))]
    fine = planned(*triples, "a.a1 × b.b1 × c.c1", tree=tree)  # three tables, margins in a row
    assert len(fine.tables) == 3
    with pytest.raises(hr.PlanError, match=r"cannot all be kept: three margins of a table"):
        planned(*triples, "a.a1 × c.c1 × e.e1", "a.a1 × b.b1 × c.c1", tree=tree)


def test_survivors_are_measured_below_margins_of_the_tables_alone():
    plan = planned("o.o3", "d.d3", "o.o3 × d.d3", measure=hr.Survivors())
    assert not plan.is_whole((3, 3))
    assert plan.is_whole((3, 0))
    assert plan.is_whole((0, 0))
    assert plan.design.margins == {(3, 3): ((0, 3), (3, 0))}
    alone = planned("o.o3", "d.d3", measure=hr.Survivors())
    assert all(alone.is_whole(levels) for levels in alone.levels)
    assert isinstance(planned("o.o3", "d.d3", "o.o3 × d.d3").measure, hr.All)


def test_survivors_need_margins_that_hold_all_levels_between_them(monkeypatch):
    rule = r"below 'd\.d1' and 'o\.o3': that takes one cuboid, or two that have all its levels"
    with pytest.raises(hr.PlanError, match=rule):
        planned("o.o3", "d.d1", "o.o3 × d.d3", measure=hr.Survivors())
    one = planned("o.o3", "o.o3 × d.d3", measure=hr.Survivors())
    assert one.design.margins == {(3, 3): ((3, 0),)}
    monkeypatch.setattr(cuboids, "MOST_WHOLE", 5)
    with pytest.raises(hr.PlanError, match="none is named: name a coarser one"):
        planned("o.o3", "o.o3 × d.d3", measure=hr.Survivors())
    with pytest.raises(hr.PlanError, match="below the total alone"):
        planned("d.d1", "o.o3", measure=hr.Survivors())


def test_two_tables_of_survivors_must_have_their_common_cuboid_named():
    tables = "place.place2 × race.race1", "place.place2 × age.age1"
    margins = "race.race1", "age.age1"
    with pytest.raises(hr.PlanError, match=r"'place\.place2' belongs to several tables"):
        planned(*tables, *margins, tree=CENSUS, measure=hr.Survivors())
    plan = planned(*tables, *margins, "place.place2", tree=CENSUS, measure=hr.Survivors())
    assert set(map(plan.tree.name_of, plan.tables)) == {*tables}
    assert not any(map(plan.is_whole, plan.tables))


def test_a_plan_warns_of_unmeasured_sums_that_survivors_would_tell_better():
    tables = "place.place2 × race.race1", "place.place2 × age.age1"
    options = {"tree": CENSUS, "measure": hr.Survivors()}
    plan = planned(*tables, "age.age1", **options)
    assert [plan.tree.name_of(plan.design.levels(c)) for c in plan.design.vague] == ["place.place2"]
    legend = forecast_legend(plan, hr.forecast(plan))
    assert "place.place2: not measured, and known worse than by the survivors" in legend
    named = planned(*tables, "age.age1", "place.place2", **options)
    assert named.design.vague == ()
    assert "not measured" not in forecast_legend(named, hr.forecast(named))


def means_of(plan):
    """The mean variances of any shares, and the cuboids that have them."""
    problem = problem_of(
        plan.tree, plan.budget, neighbours=plan.neighbours, measure=plan.measure,
        workload=plan.workload, mechanism=plan.mechanism,
    )  # fmt: skip
    return NamedMeans.of(problem), problem.cuboids


def test_the_even_forecast_is_the_forecast_where_axes_are_even():
    plan = planned("o.o3", "d.d3", "o.o1 × d.d2", chain=True, budget=hr.Rho("1/1000"))
    facts, _ = means_of(plan)
    shares = np.array([float(share) for share in plan.shares if share])
    found, _ = facts.variances(shares)
    each = [plan.design.shape.given(levels) for levels in plan.measured]
    wide = [plan.design.wide_mean(cuboid) for cuboid in each]
    np.testing.assert_allclose(found / found[0], np.array(wide) / wide[0], rtol=1e-6)


def test_the_matrix_of_levels_shows_the_errors_of_sums_in_brackets():
    plan = planned("o.o3", "d.d3", "o.o2 × d.d2")
    rows = forecast_matrix(plan, hr.forecast(plan)).split("\n")
    assert rows[0].endswith("in records, of sums that are no cuboid of the plan in brackets:")
    error = plan.design.error_of((1, 1))
    cuboid = plan.design.shape.given((1, 1))
    spread = plan.design.variances_of(cuboid).of_cells(cuboid)
    assert error == pytest.approx(float(spread.mean()) ** 0.5)
    assert f"({error:,.4g})" in "\n".join(rows)
    assert plan.design.error_of((3, 1)) is None
    assert plan.design.error_of((0, 0)) == 0


@pytest.mark.parametrize("mechanism", [hr.DiscreteGaussian, hr.DiscreteLaplace])
def test_derivatives_of_the_even_forecast_are_those_of_differences(mechanism):
    budget = BUDGET if mechanism is hr.DiscreteGaussian else hr.Epsilon(1)
    names = ["o.o3", "d.d3", "o.o1 × d.d2", "o.o3 × d.d3"]
    facts, _ = means_of(planned(*names, mechanism=mechanism, budget=budget))
    shares = np.array([0.1, 0.3, 0.2, 0.4])
    _, back = facts.variances(shares)
    slope = np.array([back(unit) for unit in np.eye(len(shares))])
    for i, step in enumerate(np.eye(4) * 1e-6):
        up, down = facts.variances(shares + step)[0], facts.variances(shares - step)[0]
        np.testing.assert_allclose(slope[:, i], (up - down) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("mechanism", [hr.DiscreteGaussian, hr.DiscreteLaplace])
def test_optimal_shares_beat_every_other_that_a_search_finds(mechanism):
    budget = BUDGET if mechanism is hr.DiscreteGaussian else hr.Epsilon(1)
    options = {"mechanism": mechanism, "budget": budget}
    names = ["o.o3", "d.d3", "o.o1 × d.d2", "o.o3 × d.d3"]
    plan = planned(*names, allocation=hr.Optimal(importance=hr.PerLevel()), **options)
    facts, cuboids = means_of(plan)

    def cost(logs):
        return float(facts.variances(softmax(logs))[0].sum())

    best = min(
        minimize(cost, start, method="Nelder-Mead", options={"maxiter": 1000}).fun
        for start in np.random.default_rng(5).normal(size=(3, 4))
    )
    given = dict(zip(plan.levels, plan.shares, strict=True))
    shares = np.array([float(given[k] or 1e-9) for k in cuboids])
    assert float(facts.variances(shares)[0].sum()) <= best * (1 + 1e-4)


def test_the_largest_error_is_made_least():
    names = ["o.o3", "d.d3", "o.o1 × d.d2", "o.o3 × d.d3"]
    plan = planned(*names, allocation=hr.Optimal(objective="largest"))
    errors = dict(zip(plan.levels, hr.forecast(plan)["rmse"], strict=True))
    measured = [errors[levels] for levels in plan.measured]
    assert max(measured) / min(measured) < 1.02


def test_the_largest_error_times_its_importance_is_made_least():
    """By importance 1 / V the others' mean variances V: better at every cuboid that matters."""
    names = ["o.o3", "d.d3", "o.o1 × d.d2", "o.o3 × d.d3"]
    shares = dict(zip(names, ["0.05", "0.2", "0.7", "0.05"], strict=True))
    given = planned(*names, allocation=hr.Shares(shares))
    errors = dict(zip(given.cuboids, hr.forecast(given)["rmse"], strict=True))
    importance = {name: errors[name] ** -2 if name in names[:2] else 0 for name in names}
    plan = planned(*names, allocation=hr.Optimal(objective="largest", importance=importance))
    found = dict(zip(plan.cuboids, hr.forecast(plan)["rmse"], strict=True))
    ratios = [found[name] / errors[name] for name in names[:2]]
    assert max(ratios) < 0.9
    assert max(ratios) / min(ratios) < 1.02


def test_importance_moves_the_budget():
    names = ["o.o3", "d.d3", "o.o3 × d.d3"]
    plain = planned(*names, allocation=hr.Optimal())
    moved = planned(*names, allocation=hr.Optimal(importance={"o.o3": 100}))
    error = {
        name: dict(zip(each.cuboids, hr.forecast(each)["rmse"], strict=True))["o.o3"]
        for name, each in (("plain", plain), ("moved", moved))
    }
    assert error["moved"] < 0.8 * error["plain"]
    with pytest.raises(hr.PlanError, match="must not all be 0"):
        planned(*names, allocation=hr.Optimal(importance=dict.fromkeys(names, 0.0)))


def test_cells_share_by_importance_and_cells_alone():
    names = ["o.o3", "d.d3", "o.o3 × d.d3"]
    plan = planned(*names, allocation=hr.Optimal(objective="cells"))
    shares = np.array([float(share) for share in plan.shares if share])
    roots = np.sqrt([PAIRS.cells(levels) for levels in plan.measured])
    np.testing.assert_allclose(shares, roots / roots.sum(), atol=1e-4)


def test_the_cheapest_plan_meets_its_targets_and_no_cheaper_one_does():
    names = ["o.o3", "d.d3", "o.o3 × d.d3"]
    targets = {"o.o3": 5.0, "d.d3": 8.0, "o.d3": 0}
    del targets["o.d3"]
    plan = hr.cheapest(
        PAIRS, per_level=targets, neighbours=hr.Replace(), workload=hr.Cuboids(names)
    )
    errors = dict(zip(plan.cuboids, hr.forecast(plan)["rmse"], strict=True))
    assert all(errors[name] <= target * (1 + 1e-6) for name, target in targets.items())
    assert any(errors[name] > 0.98 * target for name, target in targets.items())
    total = hr.cheapest(PAIRS, target=1e5, neighbours=hr.Replace(), workload=hr.Cuboids(names))
    frame = hr.forecast(total).filter(pl.col("kind") == "measured")
    assert 0.99e5 <= float((frame["cells"].cast(float) * frame["rmse"] ** 2).sum()) <= 1e5


def test_fair_shares_are_those_of_least_error_where_cells_of_a_cuboid_are_alike():
    names = "o.o3", "d.d3", "o.o2 × d.d2", "o.o3 × d.d3"
    fair = planned(*names, allocation=hr.Fair(1))
    level = planned(*names, allocation=hr.Optimal(importance=hr.PerLevel()))
    either = [[float(share or 0) for share in plan.shares] for plan in (fair, level)]
    assert either[0] == pytest.approx(either[1], abs=1e-4)  # rounded to finer parts and coarser
    table = {"o3": [f"o3-{i:03d}" for i in range(12)], "d3": [f"d3-{i:03d}" for i in range(12)]}
    release = hr.release(hr.Counts.from_frame(PAIRS, table), fair)
    for cuboid in fair.cuboids:
        errors = release.level(cuboid, all=True)["standard_error"].to_numpy()
        assert np.ptp(errors) <= 1e-9 * errors.max()


def test_fair_shares_are_refused_where_cells_of_named_cuboids_differ():
    columns = {"p1": ["a", "a", "b"], "p2": ["a1", "a2", "b1"]}
    uneven = hr.Tree([hr.Axis.from_frame("p", columns, levels=["p1", "p2"]), named_axis("d", 2)])
    with pytest.raises(hr.PlanError, match="families of a level are all as large"):
        planned("p.p2", "d.d1", tree=uneven, allocation=hr.Fair(1.5))


def test_what_is_for_chains_alone_is_refused():
    ages = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
    with pytest.raises(hr.PlanError, match="goes with cuboids"):
        planned("bin", tree=ages, allocation=hr.ForDistribution())
    with pytest.raises(hr.PlanError, match="goes with cuboids"):
        planned("bin", tree=ages, measure=hr.RunningSums())


def test_tables_of_only_children_are_the_coarsest_with_their_cells():
    only = hr.Axis.from_frame(
        "g", pl.DataFrame({"a": ["x", "y"], "b": ["x1", "y1"]}), levels=["a", "b"]
    )
    tree = hr.Tree([only, named_axis("d", 3)])
    plan = hr.make_plan(tree, budget=BUDGET, workload=hr.Cuboids(["g.b", "d.d1"]))
    assert plan.tables == ((0, 1), (2, 0))
    both = hr.make_plan(tree, budget=BUDGET, workload=hr.Cuboids(["g.a", "g.b", "d.d1"]))
    assert both.tables == ((0, 1), (1, 0))
    assert both.cuboids["g.b"] == hr.Unmeasured()
    assert tables_of(tree, both.levels) == both.tables


def test_even_means_know_a_public_cuboid():
    sizes = [[1, 2, 6], [1, 4]]
    cuboids = [(2, 0), (2, 1)]
    free = EvenMeans(sizes, cuboids).of(np.array([1.0, 2.0]))[0]
    known = EvenMeans(sizes, cuboids, (1, 0)).of(np.array([1.0, 2.0]))[0]
    assert (known < free).all()
    residual = 4 / 6 / (1 + 2 / 4)  # of 6 dimensions 2 are known; d's cells add up to 1/4 as much
    assert known[0] == pytest.approx(residual)
