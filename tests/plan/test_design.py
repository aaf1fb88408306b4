"""A design says how counts are estimated, in how many jobs, and claims no more than is so."""

import re

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.estimate.workload.observed import Observed
from hedgerow.pages.catalogue import catalogue, languages
from hedgerow.plan import spine as plan_spine
from hedgerow.plan.cuboids import Measured, Public
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.tables import PlannedTables
from tests.estimate.workload.workloads import DenseWorkload
from tests.oracle import plans
from tests.oracle.draws import open_door
from tests.oracle.made import axis, table
from tests.oracle.recording import fixed_key

FIRST = [hr.Invariant("place", "level1")]


def tree_of(*, attribute):
    return hr.Tree([axis("place", (4,), (6, 3, 9)), axis("kind", (5,), attribute=attribute)])


def plan_of(tree, **options):
    shares = hr.Shares({"place": ["1/4", "1/4", "1/2"], "kind": ["1/3", "2/3"]})
    given = {"workload": hr.Cube(), "measure": hr.All(), "neighbours": hr.Replace(), **options}
    return hr.make_plan(tree, budget=hr.Rho("0.2"), **{"allocation": shares, **given})


def test_the_workload_decides_whether_cuboids_go_along_a_spine_and_the_plan_says_why_not():
    tree = tree_of(attribute=True)
    along = plan_of(tree).design
    assert isinstance(along, PlannedSpine)
    assert "along the spine, and their errors are exact" in along.words
    for options, why in (
        ({"measure": hr.Survivors()}, "all cells are measured there, not survivors"),
        ({"invariants": FIRST}, "only the total can be held exactly there"),
    ):
        held = plan_of(tree, **options).design
        assert isinstance(held, PlannedTables)
        assert held.words.endswith(
            f" are held in memory at once, as one job, and not in jobs along the spine: {why}."
        )
    assert plan_of(tree_of(attribute=False)).design.words.endswith("at once, as one job.")


def test_a_spine_that_is_cut_at_its_root_is_one_job_below_the_total(monkeypatch):
    for limit, small in (("UNCUT", 0), ("MOST_ABOVE_THE_CUT", 1), ("WORTH_A_JOB", 1 << 20)):
        monkeypatch.setattr(plan_spine, limit, small)
    design = plan_of(tree_of(attribute=True)).design
    assert (design.cut, len(design.jobs)) == (0, 1)
    assert " in 1 job below the total; " in design.words


@pytest.mark.parametrize("name", plans.CASES)
def test_pages_have_a_text_of_which_counts_have_noise(name):
    key = f"release.made.{plans.CASES[name]().plan.design.noised}"
    for language in languages():
        assert key in catalogue(language).texts


def test_attributes_need_not_stand_behind_the_spine_where_cuboids_are_tables():
    place, kind = axis("place", (4,), (6, 3, 9)), axis("kind", (5,), attribute=True)
    tree = hr.Tree([kind, place])
    assert isinstance(plan_of(tree, measure=hr.Survivors()).design, PlannedTables)
    with pytest.raises(hr.PlanError, match="takes the axis 'place' first"):
        plan_of(tree).design  # noqa: B018


def test_what_neither_goes_along_the_spine_nor_fits_as_tables_is_refused_with_both_reasons():
    beside = [axis(name, (1 << 11,), attribute=True) for name in "kl"]
    tree = hr.Tree([axis("place", (1 << 11,)), *beside])
    with pytest.raises(hr.PlanError, match=r"2\*\*32.*\(nor along the spine: only the total"):
        plan_of(tree, invariants=FIRST, allocation=hr.Uniform()).design  # noqa: B018


def test_attributes_of_several_levels_each_are_held_as_tables_and_the_plan_says_why():
    axes = [axis("place", (4,))]
    axes += [axis(name, (3,), (2,), attribute=True) for name in ("age", "kind")]
    tree = hr.Tree(axes)
    names = [
        "place.level1 × age.level1 × kind.level1",
        "place.level1 × age.level2",
        "place.level1 × age.level2 × kind.level2",
    ]
    plan = hr.make_plan(
        tree, budget=hr.Rho(1), neighbours=hr.Replace(), measure=hr.All(),
        workload=hr.Cuboids(names), allocation=hr.Shares(dict.fromkeys(names, "1/3")),
    )  # fmt: skip
    assert isinstance(plan.design, PlannedTables)
    assert (
        "not in jobs along the spine: marginals on a spine need attributes that"
        in plan.design.words
    )


def test_beside_attributes_survivors_are_released_as_without_them(tmp_path):
    released = []
    for attribute in (False, True):
        tree = tree_of(attribute=attribute)
        plan = plan_of(tree, measure=hr.Survivors())
        with fixed_key("survivors beside attributes"):
            counts = table(tree, "survivors", filled=30)
            released.append(hr.release(counts, plan, directory=tmp_path / str(attribute)))
    plain, beside = released
    for levels in plain.plan.levels:
        name = plain.plan.tree.name_of(levels)
        assert plain.level(name).equals(beside.level(name)), name


@pytest.mark.parametrize("name", [name for name in plans.CASES if "in jobs" in name])
def test_noise_is_drawn_in_as_many_jobs_as_the_plan_says(name):
    """Below the cut; of survivors those jobs draw none whose root is 0."""
    case = plans.CASES[name]()
    axes = len(case.plan.tree.axes)
    with case.limits(), open_door() as door:
        hr.release(case.counts, case.plan, estimator=case.estimator)
        said = int(re.search(r" in (\d+) jobs? below ", case.plan.design.words)[1])
    drawn = {draw.place[axes:] for draw in door.draws} - {()}
    if isinstance(case.plan.design, PlannedTables):  # jobs share the stream of a cuboid
        finest = case.plan.tree.chain[-1]
        drawn = {draw.start for draw in door.draws if draw.place == finest}
    if isinstance(case.plan.measure, hr.All):
        assert len(drawn) == said
    assert 1 < len(drawn) <= said


TOGETHER = [
    name
    for name, make in plans.CASES.items()
    if name.startswith(("cube", "named", "three", "nested", "marginals"))
    and "public facts" not in name
]


@pytest.mark.parametrize("name", TOGETHER)
def test_estimates_are_called_the_best_only_where_none_have_less_variance(name):
    """Against dense least squares with the variances of the noise itself."""
    plan = plans.CASES[name]().plan
    design, shape = plan.design, plan.design.shape
    noise = {
        shape.given(levels): what.mechanism.noise_variance
        for levels, what in plan.by_levels.items()
        if isinstance(what, Measured) and plan.is_whole(levels)
    }
    public = None if plan.public is None else shape.given(plan.public)
    dense = DenseWorkload(Observed(shape, noise, public))
    whole = [levels for levels in plan.levels if plan.is_whole(levels)]
    best = [dense.variances(shape.given(levels)).mean() for levels in whole]
    stated = [design.mean_variance(levels) for levels in whole]
    assert np.all(stated >= np.multiply(best, 1 - 1e-6) - 1e-9)
    is_best = np.allclose(stated, best, rtol=1e-8, atol=1e-9)
    claimed = design.claim.startswith("best linear unbiased")
    assert claimed == is_best


LOOSE = hr.Replace(exactly=False)
"""What changes the total by half as much as it changes anything else."""


@pytest.mark.parametrize("who", [hr.AddRemove(), LOOSE])
def test_a_cube_is_called_best_only_if_the_total_costs_what_the_others_do(who):
    plan = plan_of(tree_of(attribute=False), neighbours=who)
    assert plan.design.claim.startswith("best linear unbiased") == (who != LOOSE)
    assert plan.design.is_best == (who != LOOSE)


@pytest.mark.parametrize("who", [hr.AddRemove(), LOOSE])
def test_named_cuboids_have_the_best_estimates_where_shares_are_a_product_and_noise_is_none(who):
    tree = hr.Tree([axis("place", (4,), (2, 3)), axis("kind", (3,), (2, 1), (1, 2))])
    names = [tree.name_of(levels) for levels in hr.Cube().cuboids(tree) if levels[1] != 2]
    plan = hr.make_plan(
        tree,
        budget=hr.Rho("1/50"),
        neighbours=who,
        allocation=hr.Uniform(),
        measure=hr.All(),
        workload=hr.Cuboids(names, chain=False),
    )
    design = plan.design
    assert (design.squares is None) == (who == LOOSE)
    dense = DenseWorkload(Observed(design.shape, design.noise))
    for levels in plan.levels:
        best = dense.variances(design.shape.given(levels)).mean()
        assert design.mean_variance(levels) == pytest.approx(best, rel=1e-9)


SETTLERS = {
    "chain, all": "Whole counts: families.",
    "marginals": "Whole counts: fit.",
    "named, a product": "Whole counts: families for total, place.level1 × kind.level1, "
    "place.level1 × kind.level2 and 1 more; blocks for place.level2 × kind.level2.",
    "nested, public facts": "Whole counts: fit for person.level1, place.level1, place.level1 × "
    "person.level1 and 4 more; families for person.level2, person.level3; blocks for "
    "place.level1 × person.level2, place.level1 × person.level3, place.level2 × person.level2 and "
    "3 more.",
}


@pytest.mark.parametrize("name", SETTLERS)
def test_a_plan_says_which_way_makes_which_counts_whole(name):
    design = plans.CASES[name]().plan.design
    assert design.settlers == SETTLERS[name]
    named = [name for names in design.by_settler.values() for name in names]
    open_levels = [k for k, what in design.plan.by_levels.items() if not isinstance(what, Public)]
    assert sorted(named) == sorted(map(design.tree.name_of, open_levels))
