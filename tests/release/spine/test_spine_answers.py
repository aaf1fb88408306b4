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
from tests.release.spine.made_spines import dense_estimates

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


def facts_of(rng, tree):
    """A public table of the kinds that each block has, and which leaves can hold records."""
    blocks = tree.axes[0].labels[-1].to_list()
    rows = [(b, kind) for b in blocks for kind in KINDS if kind == "home" or rng.random() < 0.4]
    kinds = pl.DataFrame(rows, schema=[PLACE[-1], "kind"], orient="row")
    kind = leaves_of(tree)["kind"].to_list()
    allowed = {(b, k) for b, k in rows}
    block = leaves_of(tree)[PLACE[-1]].to_list()
    shape = [axis.size(axis.depth) for axis in tree.axes]
    return kinds, np.array([pair in allowed for pair in zip(block, kind, strict=True)]).reshape(
        shape
    )


def leaves_of(tree):
    """All columns of every leaf of the tree, one row each, all axes row by row."""
    place, *attributes = tree.axes
    nodes = np.arange(place.size(place.depth), dtype=np.int32)
    found = pl.DataFrame(place.path(place.depth, nodes))
    for axis in attributes:
        found = found.join(axis.leaf_frame(), how="cross", maintain_order="left_right")
    return found


def released(made, seed, **options):
    """A release along a spine, and for each leaf what can be there and what is."""
    rng = np.random.default_rng(seed)
    make_tree, workload = MADE[made]
    tree = make_tree(rng)
    kinds, allowed = facts_of(rng, tree)
    plan = plain_plan(
        tree, budget=hr.Rho(2), neighbours=hr.Replace(), workload=workload,
        public=[hr.PublicTable(kinds, zeros="unlisted")], **options,
    )  # fmt: skip
    codes = np.nonzero(allowed)
    values = rng.poisson(8 * rng.random(len(codes[0])) ** 3)
    counts = hr.Counts.from_leaves(tree, tuple(c.astype(np.int32) for c in codes), values)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
    return release, allowed


def dense_answers(release, allowed):
    """Every leaf's columns, released count, place in the dense estimates; these, covariance."""
    plan, tree = release.plan, release.plan.tree
    finest = release.content.nodes[plan.tables[0]]
    table = np.zeros(allowed.shape, dtype=np.int64)
    table[finest.codes] = finest.counts
    total = int(table.sum())
    x, covariance = dense_estimates(plan, allowed, release.content.stored.measured, total)
    number = np.full(allowed.shape, -1)
    number[allowed] = np.arange(len(x))
    frame = leaves_of(tree).with_columns(
        pl.Series("count", table.ravel()), pl.Series("number", number.ravel())
    )
    return frame, x, covariance


def check_answer(found, columns, dense):
    """Counts, estimates and standard errors of an answer are those of dense matrices."""
    frame, x, covariance = dense
    groups = frame.group_by(columns).agg(pl.col("count").sum(), pl.col("number"))
    groups = groups.filter(pl.col("count") > 0).sort(columns)
    assert found.columns[: len(columns)] == columns
    assert found.select(*columns, "count").equals(groups.select(*columns, "count"))
    assert len(found) > 0
    for numbers, row in zip(groups["number"], found.iter_rows(named=True), strict=True):
        weights = np.zeros(len(x))
        weights[[n for n in numbers if n >= 0]] = 1
        assert row["estimate"] == pytest.approx(weights @ x, rel=1e-7, abs=1e-6)
        variance = weights @ covariance @ weights
        assert row["standard_error"] ** 2 == pytest.approx(variance, rel=1e-6, abs=1e-8)
        assert row["low"] <= max(round(row["estimate"]), 0)
        assert row["high"] >= round(row["estimate"])


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
    release, allowed = released(made, seed)
    joint = release.plan.design
    assert (joint.cut < joint.shape.axes[0].depth) is cut
    assert not cut or len(joint.jobs) > 1
    dense = dense_answers(release, allowed)
    for levels, columns in ASKED[made]:
        found = release.cuboid(**levels)
        check_answer(found, columns, dense)
        alone = release.cuboid(None, **levels)
        assert alone.equals(found.select(*columns, "count"))


@pytest.mark.parametrize("made", MADE)
def test_all_attributes_and_no_place_sum_to_the_public_total(made):
    release, _ = released(made, 5)
    levels = ASKED[made][0][0]
    found = release.cuboid(**levels)
    total = release.level("total")["count"].sum()
    assert found["count"].sum() == total
    assert found["estimate"].sum() == pytest.approx(total)


def test_intervals_widen_with_the_confidence_and_flag_counts_that_are_moved():
    release, _ = released("product", 1)
    levels = {"place": "level3", "person": "race"}
    narrow, usual = release.cuboid(hr.Confidence(0.5), **levels), release.cuboid(**levels)
    sure = release.cuboid(hr.Confidence(0.95, simultaneous=True), **levels)
    width = [(frame["high"] - frame["low"]).sum() for frame in (narrow, usual, sure)]
    assert width[0] < width[1] < width[2]
    flagged = (sure["count"] < sure["low"]) | (sure["count"] > sure["high"])
    assert usual["contradicted"].to_list() == flagged.to_list()
    assert narrow["contradicted"].sum() >= usual["contradicted"].sum()


def test_estimates_of_listed_sums_are_those_among_all():
    release, _ = released("product", 2)
    told, stored = answers.SpineAnswers(release.plan), release.content.stored
    sums = Sums(release.plan, {"place": "level2", "person": "age × race"})
    every, few = np.arange(sums.many), np.array([0, 4, 5])
    both = told.estimates(stored, [(sums, every), (sums, few)])
    np.testing.assert_array_equal(both[1], both[0][few])
    assert np.abs(both[0]).min() > 0


def test_too_many_noisy_counts_leave_counts_alone(monkeypatch):
    release, _ = released("product", 3)
    monkeypatch.setattr(answers.SpineAnswers, "most_noisy", 100)
    with pytest.raises(hr.ReleaseError, match=r"need all [\d,]+ noisy counts.*up to 100; ask for"):
        release.cuboid(place="level1", person="race")
    with pytest.raises(hr.ReleaseError, match="ask for counts alone"):
        released("crossed", 3)[0].cuboid(place="level2", age="age")
    assert len(release.cuboid(None, place="level1", person="race"))


def test_names_that_are_none_are_refused_in_a_sentence():
    release, _ = released("product", 3)
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
