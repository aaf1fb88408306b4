"""How far sums off the chain leave their truth: foreseen from a plan, and simulated on a prior."""

import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.forecast import SUMS_HEADINGS, simulated_releases, sums_rows
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.limits import MOST_CUBOIDS
from hedgerow.plan.cost import off_the_chain, sums_off_the_chain, sums_text
from hedgerow.plan.forecast import forecast
from hedgerow.plan.page.page import planning_page
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, fixed_tree

GEOGRAPHY_FIRST = ["geo.level1", "geo.level2", "group.level1"]
BETWEEN = ["geo.level1", "group.level1", "geo.level2"]


def tree_of(areas, groups, refine=GEOGRAPHY_FIRST):
    return fixed_tree(refine, geo=(areas // 20, 20), group=(groups,))


def plan_of(tree, measure=None, **options):
    options = {"budget": hr.Rho("1/20"), "neighbours": hr.Replace()} | options
    return hr.make_plan(tree, measure=measure or hr.All(), **options)


def counts_of(tree, values):
    codes = np.indices(values.shape).reshape(2, -1).astype(np.int32)
    return hr.Counts.from_leaves(tree, tuple(codes), values.ravel())


def mean_error(plan, values, runs):
    """The mean error of each group's sum over all areas, and its standard error: by releasing."""
    counts, groups = counts_of(plan.tree, values), values.shape[1]
    errors = np.empty((runs, groups))
    for run in range(runs):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(run))
        found = dict(release.cuboid(None, group="level1").rows())
        labels = plan.tree.axes[1].labels[0].to_list()
        errors[run] = [found.get(label, 0) for label in labels] - values.sum(axis=0)
    return errors.mean(axis=0), errors.std(axis=0) / math.sqrt(runs)


each_measure = pytest.mark.parametrize(
    "measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"]
)


@each_measure
@pytest.mark.parametrize("groups", [2, 8])
def test_the_excess_is_reached_where_an_empty_group_has_large_siblings(measure, groups):
    """4 standard errors either way of the mean over 30 releases, and a tenth less is told apart."""
    tree = tree_of(400, groups)
    values = np.full((400, groups), 2000)
    values[:, 0] = 0
    plan = plan_of(tree, measure)
    (told,) = [r for r in sums_off_the_chain(plan).to_dicts() if r["cuboid"] == "group.level1"]
    assert (told["cells"], told["summands"]) == (groups, 400)
    assert told["of"] == "geo.level2 × group.level1"
    mean, error = mean_error(plan, values, 30)
    assert abs(mean[0] - told["excess"]) < 4 * error[0]
    assert abs(mean[0] - 0.9 * told["excess"]) > 4 * error[0]
    assert mean[1:].sum() == pytest.approx(-mean[0]), "others lose what it gains"


def sparse(areas, groups):
    values = np.zeros((areas, groups), dtype=np.int64)
    values[:, 1] = 60
    return values


def clustered(areas, groups):
    values = np.zeros((areas, groups), dtype=np.int64)
    values[::25, 1:] = 3000
    return values


def full(areas, groups):
    return np.full((areas, groups), 40)


@pytest.mark.parametrize("table", [sparse, clustered, full])
@each_measure
def test_no_other_table_exceeds_it(measure, table):
    tree = tree_of(400, 8)
    plan = plan_of(tree, measure)
    excess = sums_off_the_chain(plan).filter(cuboid="group.level1")["excess"].item()
    mean, error = mean_error(plan, table(400, 8), 15)
    assert mean.max() < excess + 4 * error.max()


def test_the_excess_is_that_of_the_first_depth_that_refines_the_cuboid():
    """By hand: districts × groups are 20 counts a group, of the noise of that depth."""
    plan = plan_of(tree_of(400, 8, BETWEEN))
    rmse = forecast(plan)["rmse"]
    told = {row["cuboid"]: row for row in sums_off_the_chain(plan).to_dicts()}
    assert list(told) == ["group.level1", "geo.level2"]
    for name, summands, depth in (("group.level1", 20, 2), ("geo.level2", 8, 3)):
        assert told[name]["summands"] == summands
        assert told[name]["of"] == plan.tree.cuboid_name(depth)
        wanted = summands * rmse[depth] * 0.3989422804014327
        assert told[name]["excess"] == pytest.approx(wanted, rel=1e-12)


def test_uneven_families_count_as_their_largest():
    areas = {"region": [0, 0, 0, 1], "town": [0, 1, 2, 3]}
    axes = [
        hr.Axis.from_frame("geo", {k: list(map(str, v)) for k, v in areas.items()}, [*areas]),
        fixed_axis("group", 2, columns=["group"]),
    ]
    tree = hr.Tree(axes, refine=["geo.region", "geo.town", "group.level1"])
    told = {r["cuboid"]: r["summands"] for r in sums_off_the_chain(plan_of(tree)).to_dicts()}
    assert told == {"group.level1": 4, "geo.region × group.level1": 3}


def test_a_tree_of_one_axis_and_a_public_depth_have_no_such_sums():
    one = plan_of(hr.Tree([fixed_axis("geo", 4, 5)]))
    assert sums_off_the_chain(one).is_empty()
    assert sums_text(sums_off_the_chain(one), everything=True) == ""
    tree = tree_of(40, 3, BETWEEN)
    held = plan_of(tree, hr.Survivors(), invariants=[hr.Invariant("geo", "level1")])
    assert "geo.level1" not in sums_off_the_chain(held)["cuboid"].to_list()


def test_sums_of_public_counts_are_exact_and_left_out():
    """Two axes of one code each come first: the total is public, and so is either's."""
    first = [hr.Axis.from_frame(n, {n: ["all"]}, [n]) for n in "ab"]
    tree = hr.Tree([*first, fixed_axis("geo", 5, columns=["geo"])], ["a", "b", "geo"])
    assert (0, 1, 0) in set(off_the_chain(tree))
    named = sums_off_the_chain(plan_of(tree))["cuboid"].to_list()
    assert "b.b" not in named
    assert "geo.level1" in named


def test_cuboids_off_the_chain_are_all_others_and_of_wide_trees_the_margins():
    tree = tree_of(40, 3)
    chain = {tree.cuboid(t) for t in range(tree.depth + 1)}
    found = set(off_the_chain(tree))
    assert found == {(a, b) for a in range(3) for b in range(2)} - chain
    many = fixed_tree(**{f"a{i}": (2,) for i in range(14)})
    assert MOST_CUBOIDS < 2**14
    margins = list(off_the_chain(many))
    assert len(margins) == 13, "that of the first axis is on the chain"
    assert all(sum(levels) == 1 for levels in margins)


def test_what_is_not_known_is_said():
    plan = plan_of(tree_of(40, 3))
    blank = forecast(plan).with_columns(rmse=None)
    told = sums_off_the_chain(plan, blank)
    assert told["excess"].null_count() == len(told)
    assert "unknown" in sums_text(told, everything=True)


def test_a_simulation_of_a_prior_finds_the_sums_that_leave_their_truth():
    """Against releases of the same seeds, cell by cell."""
    tree, runs = tree_of(400, 8), 6
    values = np.random.default_rng(1).integers(900, 2000, (400, 8))
    values[:, 0] = 0
    plan = plan_of(tree)
    prior = hr.Prior(counts_of(tree, values), public=True)
    errors, sums = simulated_releases(plan, prior, hr.Euclidean(), runs=runs)
    assert errors["depth"].to_list() == [0, 1, 2, 3]
    assert sums["cuboid"][0] == "group.level1"
    mean, _ = mean_error(plan, values, runs)
    row = sums.row(0, named=True)
    assert row["cells"] == 8
    assert row["highest"] == pytest.approx(mean.max()) == pytest.approx(mean[0])
    assert row["lowest"] == pytest.approx(mean.min())
    assert row["rmse"] >= np.sqrt((mean**2).mean())
    words = sums_rows(sums)[0]
    assert len(words) == len(SUMS_HEADINGS)
    assert words[4] == f"{mean[0]:+,.0f}"


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
@each_measure
def test_a_plan_says_beforehand_that_survivors_may_leave_sums_without_an_interval(measure):
    plan = plan_of(tree_of(40, 3), measure)
    text = sums_text(sums_off_the_chain(plan), everything=measure == hr.All())
    words, page = "or neither where too much of the sum may be", planning_page(plan, "1")
    is_told = measure == hr.Survivors()
    assert (words in text) == is_told
    assert ("or name these cuboids in [workload]" in text) == is_told
    assert ("except where too much of a sum may lie below counts released as 0" in page) == is_told
    one = planning_page(plan_of(hr.Tree([fixed_axis("geo", 4, 5)]), measure), "1")
    assert "below counts released as 0" not in one, "a tree of one axis has no such sums"
