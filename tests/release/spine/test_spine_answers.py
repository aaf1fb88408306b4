"""Sums over attributes at nodes of a spine: counts, estimates and errors against dense matrices."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import spine as plan_spine
from hedgerow.release.answers import spine as answers
from hedgerow.release.answers.sums import Sums
from hedgerow.release.execution import in_memory
from tests.made import plain_plan, random_axis
from tests.release.dense import Dense, leaves_of

KINDS = ["home", "nursing", "prison"]
AGES = ["adult", "minor"]
RACES = pl.DataFrame({
    "origin": ["h", "h", "n", "n", "n"], "race": ["01", "02", "01", "02", "03"],
    "group": ["hispanic", "hispanic", "white", "black", "other"],
})  # fmt: skip
PLACE = ["place_level1", "place_level2", "place_level3"]


def product_tree(rng):
    """A spine and one product axis: every list but the first is off its tree."""
    lists = [{"kind": KINDS}, {"age": AGES}, RACES]
    order = ["kind", "age", "group", "detail"]
    person = hr.Axis.from_product("person", lists, order, attribute=True)
    return hr.Tree([random_axis(rng, "place", 3, 3), person])


def crossed_tree(rng):
    """A spine and three attribute axes, one of them of two columns."""
    kind = pl.DataFrame({"kind": KINDS})
    age = pl.DataFrame({"age": AGES})
    return hr.Tree([
        random_axis(rng, "place", 3, 3),
        hr.Axis.from_frame("kind", kind, ["kind"], attribute=True),
        hr.Axis.from_frame("age", age, ["age"], attribute=True),
        hr.Axis.from_product("ethnicity", [RACES], ["detail"], attribute=True),
    ])  # fmt: skip


DETAIL = "kind.kind × age.age × ethnicity.detail"
CROSSED = hr.Cuboids([
    "place.level1 × age.age", "place.level2", "place.level2 × ethnicity.detail",
    "place.level2 × kind.kind × age.age", "place.level3 × kind.kind", f"place.level1 × {DETAIL}",
    f"place.level3 × {DETAIL}",
])  # fmt: skip
MADE = {"product": (product_tree, hr.Cube()), "crossed": (crossed_tree, CROSSED)}


def released(made, seed):
    """A release along a spine, of which each block has some kinds."""
    rng = np.random.default_rng(seed)
    make_tree, workload = MADE[made]
    tree = make_tree(rng)
    blocks = tree.axes[0].labels[-1].to_list()
    rows = [(b, kind) for b in blocks for kind in KINDS if kind == "home" or rng.random() < 0.4]
    kinds = pl.DataFrame(rows, schema=[PLACE[-1], "kind"], orient="row")
    plan = plain_plan(
        tree, budget=hr.Rho(2), neighbours=hr.Replace(), workload=workload,
        public=[hr.PublicTable(kinds, zeros="unlisted")],
    )  # fmt: skip
    leaves = leaves_of(plan)
    people = leaves.with_columns(n=pl.Series(rng.poisson(8 * rng.random(len(leaves)) ** 3)))
    counts = hr.Counts.from_frame(tree, people, count="n")
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))


ASKED = {
    "product": [
        ({"person": "origin"}, ["origin"]),
        ({"place": "level1", "person": "person.age"}, ["place_level1", "age"]),
        ({"place": "level2", "person": "age × race"}, [*PLACE[:2], "age", "race"]),
        ({"person": "race x kind", "place": "level3"}, ["race", "kind", *PLACE]),
        ({"place": "level3", "person": "person.group*age"}, [*PLACE, "group", "age"]),
        ({"place": "level2", "person": "age"}, [*PLACE[:2], "kind", "age"]),
    ],
    "crossed": [
        ({"ethnicity": "origin"}, ["origin"]),
        ({"place": "level2", "ethnicity": "race"}, [*PLACE[:2], "race"]),
        ({"place": "level1", "ethnicity": "group", "age": "age"}, [PLACE[0], "group", "age"]),
        ({"age": "age", "ethnicity": "race × origin", "kind": "kind", "place": "level3"},
         ["age", "race", "origin", "kind", *PLACE]),
        ({"place": "level2", "age": "age"}, [*PLACE[:2], "age"]),
        ({"kind": "kind"}, ["kind"]),
    ],
}  # fmt: skip
"""What is asked for, and the columns that answer it: the last two of `crossed` are cuboids that
the workload does not name, the last of `product` a level of the axis, all that it tells."""


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("made", MADE)
def test_sums_over_any_columns_have_the_errors_of_dense_least_squares(made, seed, cut, monkeypatch):
    if cut:
        monkeypatch.setattr(plan_spine, "UNCUT", 0)
        monkeypatch.setattr(plan_spine, "MOST_ABOVE_THE_CUT", 100)
        monkeypatch.setattr(plan_spine, "WORTH_A_JOB", 1)
    release = released(made, seed)
    joint = release.plan.design
    assert (joint.cut < joint.shape.axes[0].depth) is cut
    assert not cut or len(joint.jobs) > 1
    dense = Dense(release)
    finest = release.level(release.plan.tree.name_of(release.plan.levels[-1]))
    for levels, columns in ASKED[made]:
        found, alone = release.cuboid(**levels), release.cuboid(None, **levels)
        assert alone.equals(finest.group_by(columns).agg(pl.col("count").sum()).sort(columns))
        assert alone.equals(found.select(*columns, "count"))
        assert found.columns[: len(columns)] == columns
        dense.agrees(found)
        assert (found["low"] <= found["estimate"].round().clip(0)).all()
        assert (found["high"] >= found["estimate"].round()).all()


@pytest.mark.parametrize("made", MADE)
def test_all_attributes_and_no_place_sum_to_the_public_total(made):
    release = released(made, 5)
    levels = ASKED[made][0][0]
    found = release.cuboid(**levels)
    total = release.level("total")["count"].sum()
    assert found["count"].sum() == total
    assert found["estimate"].sum() == pytest.approx(total)


def test_intervals_widen_with_the_confidence_and_flag_counts_that_are_moved():
    release = released("product", 1)
    levels = {"place": "level3", "person": "race"}
    narrow, usual = release.cuboid(hr.Confidence(0.5), **levels), release.cuboid(**levels)
    sure = release.cuboid(hr.Confidence(0.95, simultaneous=True), **levels)
    width = [(frame["high"] - frame["low"]).sum() for frame in (narrow, usual, sure)]
    assert width[0] < width[1] < width[2]
    flagged = (sure["count"] < sure["low"]) | (sure["count"] > sure["high"])
    assert usual["contradicted"].to_list() == flagged.to_list()
    assert narrow["contradicted"].sum() >= usual["contradicted"].sum()


def test_estimates_of_listed_sums_are_those_among_all():
    release = released("product", 2)
    told, stored = answers.SpineAnswers(release.plan), release.content.stored
    sums = Sums(release.plan, {"place": "level2", "person": "age × race"})
    every, few = np.arange(sums.many), np.array([0, 4, 5])
    both = told.estimates(stored, [(sums, every), (sums, few)])
    np.testing.assert_array_equal(both[1], both[0][few])
    assert np.abs(both[0]).min() > 0


def test_too_many_noisy_counts_leave_counts_alone(monkeypatch):
    release = released("product", 3)
    monkeypatch.setattr(answers.SpineAnswers, "most_noisy", 100)
    with pytest.raises(hr.ReleaseError, match=r"need all [\d,]+ noisy counts.*up to 100; ask for"):
        release.cuboid(place="level1", person="race")
    with pytest.raises(hr.ReleaseError, match="ask for counts alone"):
        released("crossed", 3).cuboid(place="level2", age="age")
    assert len(release.cuboid(None, place="level1", person="race"))


def test_names_that_are_none_are_refused_in_a_sentence():
    release = released("product", 3)
    with pytest.raises(hr.TableError, match=r"'person' has no column 'orgin'; it has .*origin"):
        release.cuboid(person="orgin")
    with pytest.raises(hr.TableError, match=r"has no column 'sex'"):
        release.cuboid(person="age × sex")
    with pytest.raises(hr.ReleaseError, match="no axis is called 'persn'"):
        release.cuboid(persn="origin", person="origin")
    with pytest.raises(hr.ReleaseError, match="no level of axis 'place' is called 'origin'"):
        release.cuboid(place="origin", person="origin")


@pytest.mark.parametrize("made", MADE)
def test_other_releases_answer_by_levels_alone(made):
    rng = np.random.default_rng(4)
    tree = MADE[made][0](rng)
    plan = plain_plan(tree, budget=hr.Rho(1))
    codes = tuple(np.zeros(1, dtype=np.int32) for _ in tree.axes)
    counts = hr.Counts.from_leaves(tree, codes, np.array([5]))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    levels = {"place": "level2", tree.axes[-1].name: "race"}
    with pytest.raises(hr.ReleaseError, match="need a release along a spine"):
        release.cuboid(**levels)
    with pytest.raises(hr.ReleaseError, match="need a release along a spine"):
        release.cuboid(None, **levels)
