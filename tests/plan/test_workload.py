"""Workloads: which cuboids are measured, which are public, and how a plan names them."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.estimate.cube.shape import is_within
from hedgerow.limits import MOST_CUBOIDS
from hedgerow.plan import cuboids, workload
from hedgerow.plan.cuboids import measurable, public_cuboid
from hedgerow.plan.defaults import measure_for
from hedgerow.plan.make import read_plan
from hedgerow.plan.workload import repeated
from hedgerow.privacy.neighbours import l1, l2_squared
from tests.made import named_axis, named_tree

PAIRS = named_tree(o=(2, 3), d=(2, 2))
BUDGET = hr.EpsilonDelta("1", "1e-8")


def cube(tree=PAIRS, **options):
    options = {"budget": BUDGET, "neighbours": hr.Replace(), **options}
    return hr.make_plan(tree, workload=hr.Cube(), **options)


def test_a_cube_has_every_combination_of_levels_each_after_all_that_are_coarser():
    every = hr.Cube().cuboids(PAIRS)
    assert sorted(every) == [(a, b) for a in range(3) for b in range(3)]
    for i, levels in enumerate(every):
        assert not any(
            all(x <= y for x, y in zip(later, levels, strict=True)) for later in every[i + 1 :]
        )


def test_a_chain_has_the_cuboids_of_the_depths_in_their_order():
    plan = hr.make_plan(PAIRS, budget=BUDGET)
    assert list(plan.by_levels) == [PAIRS.cuboid(t) for t in range(PAIRS.depth + 1)]
    assert plan.depths == tuple(plan.cuboids.values())


def test_the_cube_over_one_axis_is_the_chain():
    tree = named_tree(o=(3, 4))
    chain = hr.make_plan(tree, budget=BUDGET)
    assert hr.make_plan(tree, budget=BUDGET, workload=hr.Cube()).hash == chain.hash


def test_a_cube_and_a_chain_are_different_plans_with_different_hashes():
    assert cube().hash != hr.make_plan(PAIRS, budget=BUDGET, neighbours=hr.Replace()).hash


def test_a_cube_that_is_read_back_is_the_same_plan():
    for options in ({}, {"measure": hr.Survivors()}, {"neighbours": hr.AddRemove()}):
        plan = cube(**options)
        again = read_plan(PAIRS, json.loads(json.dumps(plan.to_dict())))
        assert again.to_dict() == plan.to_dict()
        assert again.hash == plan.hash


def test_a_plan_that_lists_other_cuboids_than_its_workload_is_refused():
    described = json.loads(json.dumps(cube().to_dict()))
    described["cuboids"][1], described["cuboids"][2] = described["cuboids"][1:3][::-1]
    with pytest.raises(hr.PlanError, match="other cuboids than those of its workload"):
        read_plan(PAIRS, described)


def test_a_cube_has_no_depths():
    with pytest.raises(hr.PlanError, match="this plan has no depths"):
        _ = cube().depths
    with pytest.raises(hr.PlanError, match="this plan has no depths"):
        _ = cube().public_depth


def test_a_level_of_only_children_repeats_the_coarser_cuboid_and_is_not_measured():
    tree = named_tree(o=(2, 1, 3), d=(2,))
    plan = cube(tree)
    assert plan.repeats == {(2, 0): (1, 0), (2, 1): (1, 1)}
    assert isinstance(plan.by_levels[2, 1], hr.Unmeasured)
    assert isinstance(plan.by_levels[1, 1], hr.Measured)


def test_cells_alike_in_number_alone_repeat_nothing():
    every = hr.Cube().cuboids(named_tree(o=(3,), d=(3,)))
    assert repeated(named_tree(o=(3,), d=(3,)), every) == {}


@pytest.mark.parametrize("sizes", [[(1, 2, 1), (2, 1, 1)], [(2, 2), (2, 1), (1, 1, 3)], [(1, 1)]])
def test_a_cuboid_repeats_the_coarsest_one_that_has_its_cells(sizes):
    tree, wanted = hr.Tree([named_axis(f"a{i}", *each) for i, each in enumerate(sizes)]), {}
    every = hr.Cube().cuboids(tree)
    for levels in every:
        alike = (k for k in every if tree.cells(k) == tree.cells(levels) and is_within(k, levels))
        coarsest = next(alike)
        wanted |= {levels: coarsest} if coarsest != levels else {}
    assert repeated(tree, every) == wanted != {}


def test_what_is_measured_of_4096_cuboids_is_decided_without_comparing_them_pair_by_pair(
    monkeypatch,
):
    """As many of them have equally many cells: 1.3 million pairs, which take seconds."""
    compared = []
    monkeypatch.setattr(workload, "is_within", lambda *two: compared.append(two) or is_within(*two))
    tree = hr.Tree([named_axis(f"a{i}", 2) for i in range(12)])
    assert len(hr.Cube().cuboids(tree)) == MOST_CUBOIDS == 4096
    assert measure_for(tree, hr.Cube(), None) == (hr.All(), ("measure_few",))
    assert len(compared) <= 4096


def test_an_invariant_level_and_all_its_coarsenings_are_public():
    plan = cube(invariants=[hr.Invariant("o", "o1")])
    public = {levels for levels, what in plan.by_levels.items() if isinstance(what, hr.Public)}
    assert public == {(0, 0), (1, 0)}
    nested = [hr.Invariant("o", "o1"), hr.Invariant("o", "o2")]
    assert public_cuboid(PAIRS, hr.Cube(), hr.Replace(), nested) == (2, 0)


def test_invariants_that_are_not_nested_are_refused():
    both = [hr.Invariant("o", "o1"), hr.Invariant("d", "d1")]
    with pytest.raises(hr.PlanError, match="invariants must be nested"):
        cube(invariants=both)


def test_what_add_remove_neighbours_disagree_on_is_not_public():
    assert public_cuboid(PAIRS, hr.Cube(), hr.AddRemove(), []) is None
    assert measurable(PAIRS, hr.Cube(), hr.AddRemove(), [])[0] == (0, 0)


def test_the_composition_has_one_use_for_each_measured_cuboid():
    plan = cube(neighbours=hr.AddRemove())
    assert len(plan.guarantee.uses) == len(plan.measured) == 9


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("who", [hr.AddRemove, hr.Replace, partial(hr.Replace, exactly=False)])
def test_each_cuboid_is_charged_for_the_most_that_one_unit_changes_of_it(who, m):
    """By enumeration of all units, on a cube with a level of one cell that is not the total."""
    tree = named_tree(o=(1, 2, 2), d=(3,))
    plan = cube(tree, neighbours=who(m))
    few = range(m if plan.neighbours.total_is_public else 0, m + 1)
    leaves = list(product(range(4), range(3)))
    units = [unit for size in few for unit in combinations_with_replacement(leaves, size)]
    others = [()] if isinstance(plan.neighbours, hr.AddRemove) else units
    assert len(plan.measured) == len(plan.guarantee.uses)
    assert (1, 0) not in plan.measured, "it is the total"
    for levels, use in zip(plan.measured, plan.guarantee.uses, strict=True):
        shape = [a.size(k) for a, k in zip(tree.axes, levels, strict=True)]
        up = [a.ancestors(k) for a, k in zip(tree.axes, levels, strict=True)]
        tables = []
        for each in (units, others):
            table = np.zeros((len(each), *shape))
            for number, unit in enumerate(each):
                for o, d in unit:
                    table[number, up[0][o], up[1][d]] += 1
            tables.append(table.reshape(len(each), -1))
        change = tables[0][:, None] - tables[1]
        assert max(map(l1, use.changes)) == abs(change).sum(axis=-1).max(), levels
        assert max(map(l2_squared, use.changes)) == (change**2).sum(axis=-1).max(), levels


def test_shares_that_are_no_product_over_the_axes_are_planned():
    plan = cube(neighbours=hr.AddRemove())
    first, second, *others = plan.shares
    moved = replace(plan, shares=(first / 2, second + first / 2, *others))
    rmse, before = hr.forecast(moved)["rmse"], hr.forecast(plan)["rmse"]
    assert rmse[1] < before[1]


def test_a_cuboid_without_a_share_among_others_that_have_one_is_estimated_from_these():
    plan = cube(neighbours=hr.AddRemove())
    eighth = Fraction(1, 8)
    shares = tuple(None if levels == (1, 1) else eighth for levels in plan.levels)
    left_out = replace(plan, shares=shares)
    assert left_out.by_levels[1, 1] == hr.Unmeasured()
    assert 0 < hr.forecast(left_out)["rmse"][left_out.levels.index((1, 1))] < np.inf


def test_survivors_measure_all_but_the_leaves_whole():
    plan = cube(measure=hr.Survivors())
    assert [levels for levels in plan.levels if not plan.is_whole(levels)] == [(2, 2)]
    described = plan.to_dict()["cuboids"]
    assert [each.get("whole") for each in described] == [None] + [True] * 7 + [False]


@pytest.mark.parametrize("sizes", [((3, 4), (1,)), ((1, 1), (2, 5))])
def test_survivors_beside_an_axis_of_one_area_are_refused(sizes):
    """They are the cells below two margins, and there is one: found before any noise is drawn."""
    tree = hr.Tree([named_axis(name, *each) for name, each in zip("od", sizes, strict=True)])
    cube(tree, neighbours=hr.AddRemove(), measure=hr.All())
    with pytest.raises(hr.PlanError, match="both axes must have several areas"):
        cube(tree, neighbours=hr.AddRemove(), measure=hr.Survivors())


def test_a_cube_of_one_cell_is_measured_whole():
    tree = named_tree(o=(1,), d=(1,))
    plan = cube(tree, neighbours=hr.AddRemove(), measure=hr.Survivors())
    assert plan.is_whole((0, 0))
    table = pl.DataFrame({"o1": ["o1-000"], "d1": ["d1-000"], "n": [1000]})
    release = hr.release(hr.Counts.from_frame(tree, table, count="n"), plan)
    assert 700 < release.level("o.o1 × d.d1")["count"].item() < 1300


def test_survivors_below_a_level_that_is_too_long_to_be_measured_whole_are_refused(monkeypatch):
    monkeypatch.setattr(cuboids, "MOST_WHOLE", 5)
    with pytest.raises(hr.PlanError, match="few enough to be measured whole"):
        cube(measure=hr.Survivors())


def test_a_cube_over_one_axis_is_not_read_back_as_one():
    """`make_plan` makes a chain of it; a manifest that says otherwise contradicts itself."""
    alone = named_tree(o=(3, 4))
    described = json.loads(json.dumps(hr.make_plan(alone, budget=BUDGET).to_dict()))
    described["workload"] = "cube"
    assert read_plan(alone, described).to_dict() != described


def test_a_cube_of_few_leaves_measures_all_unless_told_otherwise():
    assert isinstance(cube().measure, hr.All)
    wide = named_tree(o=(64, 80), d=(64, 80))
    assert isinstance(cube(wide).measure, hr.Survivors)


def test_running_sums_go_with_a_chain():
    with pytest.raises(hr.PlanError, match='goes with cuboids = "chain"'):
        cube(measure=hr.RunningSums())


def test_a_workload_is_an_object():
    for wrong in ("cube", hr.Cube):
        with pytest.raises(hr.PlanError, match="a workload must be"):
            hr.make_plan(PAIRS, budget=BUDGET, workload=wrong)


def test_more_cuboids_than_can_be_measured_at_once_are_refused():
    tree = hr.Tree([named_axis(f"x{i}", 2) for i in range(13)])
    with pytest.raises(hr.PlanError, match=f"more than {MOST_CUBOIDS:,}"):
        cube(tree)


def test_fairness_of_a_cube_is_the_ratio_of_variances_within_a_cuboid():
    uneven = {"o1": ["a", "a", "a", "b"], "o2": ["a1", "a2", "a3", "b1"]}
    tree = hr.Tree([hr.Axis.from_frame("o", uneven, levels=["o1", "o2"]), named_axis("d", 2, 2)])
    plan = cube(tree)
    frame = hr.fairness(plan)
    assert frame["cuboid"].to_list() == [tree.name_of(levels) for levels in plan.measured]
    for levels, row in zip(plan.measured, frame.iter_rows(named=True), strict=True):
        codes = np.indices([a.size(k) for a, k in zip(tree.axes, levels, strict=True)])
        cells = tuple(each.ravel() for each in codes)
        variances = plan.design.variances_at(plan.design.shape.given(levels), cells)
        assert row["ratio"] == pytest.approx(variances.max() / variances.min())
        assert row["variance"] == pytest.approx(variances.mean())
    assert frame["ratio"].max() > 1.05


class Pairs:
    """The finest cuboid of each two of three axes of one level."""

    def named(self, _):
        return [(1, 0, 1), (1, 1, 0), (0, 1, 1)]


PAIRS_BY_NAME = hr.Cuboids(["b.b1 × c.c1", "a.a1 × b.b1", "a.a1 × c.c1"])


@pytest.mark.parametrize("is_registered", [False, True])
def test_another_workload_is_kept_as_the_cuboids_that_it_names(is_registered, monkeypatch):
    given = Pairs()
    if is_registered:
        monkeypatch.setitem(workload.WORKLOADS, "pairs", given)
    tree = named_tree(a=(3,), b=(4,), c=(5,))
    found, expected = (
        hr.make_plan(tree, budget=hr.Rho(1), workload=each) for each in (given, PAIRS_BY_NAME)
    )
    assert found.workload == expected.workload
    assert found.hash == expected.hash
    assert read_plan(tree, json.loads(json.dumps(found.to_dict()))).hash == found.hash
    cheapest = [
        hr.cheapest(tree, target=1000, workload=each).hash for each in (given, PAIRS_BY_NAME)
    ]
    assert cheapest[0] == cheapest[1]


class Wrong:
    """A workload of one's own that names what the tree lacks."""

    def __init__(self, *cuboids):
        self.cuboids = cuboids

    def named(self, tree):
        del tree
        return self.cuboids


@pytest.mark.parametrize(
    "cuboids", [[(-1,)], [(0,), (1,), (7,)], [(9,)], ["town"], [[1]], [(1, 1)]]
)
def test_a_workload_that_names_what_the_tree_lacks_is_refused(cuboids):
    place = {"county": ["a", "a"], "town": ["a1", "a2"]}
    tree = hr.Tree([hr.Axis.from_frame("place", place, ["county", "town"])])
    with pytest.raises(hr.PlanError, match="which is no cuboid here"):
        hr.make_plan(tree, budget=hr.Rho(1), workload=Wrong(*cuboids))
