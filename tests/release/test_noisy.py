"""Noisy counts with their codes, and every measured cell: what is refused, what files say."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers import questions
from hedgerow.release.execution import in_memory
from hedgerow.spec.other_file import read_measurements
from tests.made import all_leaves, fixed_axis, plain_plan

PLACES = pl.DataFrame({
    "county": ["A", "A", "A", "B", "B", "C"],
    "town": ["A1", "A2", "A3", "B1", "B2", "C1"],
})  # fmt: skip
JOBS = pl.DataFrame({"field": ["x", "x", "y"], "job": ["x1", "x2", "y1"]})
RECORDS = pl.DataFrame({
    "town": ["A1", "A1", "A3", "B2", "C1"],
    "job": ["x1", "y1", "x2", "y1", "y1"],
    "people": [40, 7, 120, 3, 65],
})  # fmt: skip
WORKLOADS = {
    "chain": {},
    "chain, all": {"measure": hr.All()},
    "chain, unmeasured above": {"allocation": hr.Shares(["1/4", 0, "1/4", "1/4", "1/4"])},
    "cube": {"workload": hr.Cube()},
    "cube, survivors": {"workload": hr.Cube(), "measure": hr.Survivors()},
    "named, survivors": {
        "workload": hr.Cuboids(["place.county × work.field", "place.town × work.job"]),
        "measure": hr.Survivors(),
    },
    "spine": {"workload": hr.Cuboids(["place.county × work.job", "place.town × work.field"])},
}


def released(kind):
    """A release with next to no noise."""
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    work = hr.Axis.from_frame("work", JOBS, ["field", "job"], attribute=kind == "spine")
    tree = hr.Tree([place, work])
    plan = plain_plan(tree, budget=hr.Rho(10**6), **WORKLOADS[kind])
    counts = hr.Counts.from_frame(tree, RECORDS, count="people")
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))


def test_survivors_are_fewer_than_the_cells_and_all_are_not():
    finest = "place.town × work.job"
    for kind in ("chain", "cube, survivors", "named, survivors"):
        assert 5 <= len(released(kind).measurements(finest)) < 18, kind
    for kind in ("chain, all", "cube"):
        assert len(released(kind).measurements(finest)) == 18, kind


def test_what_has_no_noisy_counts_is_refused_with_what_has_some():
    release = released("chain, unmeasured above")
    levels = release.plan.levels[1]
    name = release.plan.tree.name_of(levels)
    with pytest.raises(hr.ReleaseError, match=rf"'{name}' is unmeasured; it has no noisy counts"):
        release.measurements(name)
    with pytest.raises(hr.ReleaseError, match="those measured are 'total', "):
        release.measurements(depth=1)
    with pytest.raises(hr.ReleaseError, match="have no estimates of their own"):
        release.level(name, all=True)
    ranges = hr.Ranges.equal_width("age", 0, 4, 4)
    made = hr.release_distribution([1, 2, 3], low=0, high=300, bins=300, budget=hr.Rho(1))
    assert ranges.bins == 4
    with pytest.raises(hr.ReleaseError, match="running sums were measured"):
        made.release.measurements(depth=1)


def test_a_level_is_a_name_and_a_depth_a_number():
    release = released("chain")
    with pytest.raises(hr.ReleaseError, match='such as "county"; depths are depth=2, got 2'):
        release.measurements(2)
    with pytest.raises(hr.ReleaseError, match="a depth must be a number, got 'county'"):
        release.level(depth="county")


def test_a_table_of_too_many_rows_is_refused(monkeypatch):
    release = released("cube")
    monkeypatch.setattr(questions, "MOST_ROWS_LISTED", 17)
    assert len(release.measurements("place.town")) == 6
    with pytest.raises(hr.ReleaseError, match="has 18 noisy counts, and tables have up to 17 rows"):
        release.measurements("place.town × work.job")


def test_files_with_too_few_noisy_counts_are_refused():
    for kind in ("chain, all", "cube", "cube, survivors", "spine"):
        release = released(kind)
        levels = release.plan.tables[0]
        release.content.measured[levels] = release.content.measured[levels][:-1]
        with pytest.raises(hr.ReleaseError, match="more or fewer than the nodes"):
            release.measurements(release.plan.tree.name_of(levels))


def test_a_measurement_file_reads_what_table_writes(run, tmp_path, out):
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    plan = plain_plan(hr.Tree([place]), budget=hr.Rho(1), measure=hr.All())
    counts = hr.Counts.from_frame(plan.tree, RECORDS, count="people")
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    release.write(out)
    PLACES.write_csv(tmp_path / "list.csv")
    for level in ("total", "county", "town"):
        file = tmp_path / f"{level}.csv"
        assert run("table", out, "--noisy", "--level", level, "--output", file)[0] == 0
        assert pl.read_csv(file).equals(release.measurements(level))
    measurements = "\n".join(
        f'[[measurement]]\nlevel = "{level}"\nsource = "{level}.csv"'
        for level in ("total", "county", "town")
    )
    text = 'areas = "list.csv"\nlevels = ["county", "town"]'
    (tmp_path / "m.toml").write_text(f'[[axis]]\nname = "place"\n{text}\n{measurements}\n')
    again = read_measurements(tmp_path / "m.toml").least_squares()[0]
    own = release.level("town").join(
        pl.DataFrame({"town": PLACES["town"], "again": again[-1].estimate}), on="town"
    )
    assert np.allclose(own["estimate"], own["again"])


# --- every measured cell, also those released as 0 -----------------------------------------------


def test_all_cells_are_listed_above_a_level_that_is_public_by_declaration():
    """Where survivors are measured: the total and the level itself are exact."""
    tree = hr.Tree([fixed_axis("geo", 2, 3)])
    counts = all_leaves(tree, np.array([0, 0, 0, 5, 50, 500]))
    plan = plain_plan(
        tree,
        budget=hr.Rho("1"),
        neighbours=hr.Replace(),
        invariants=[hr.Invariant("geo", "level1")],
    )
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(0))
    assert release.level("total", all=True).select("count", "low", "high").rows() == [(555,) * 3]
    exact = release.level("level1", all=True).select("count", "low", "high").rows()
    assert exact == [(0, 0, 0), (555, 555, 555)]


@pytest.mark.parametrize(
    ("names", "held"),
    [
        (["place.level1", "place.level2", "kind.level1"], [hr.Invariant("place", "level1")]),
        (["place.level1", "kind.level1", "place.level1 × kind.level1",
          "place.level2 × kind.level1"], []),
    ],
    ids=["public", "survivors"],
)  # fmt: skip
def test_cells_of_only_children_are_those_above_them(names, held):
    """They repeat a public cuboid, or survivors: they have no noisy counts of their own."""
    place = fixed_axis("place", 12, 1, columns=["town", "hall"])
    tree = hr.Tree([place, fixed_axis("kind", 3, columns=["sort"])])
    rows, columns = np.indices((12, 3)).reshape(2, -1).astype(np.int32)
    counts = hr.Counts.from_leaves(tree, (rows, columns), np.arange(36) % 7 * 20)
    plan = plain_plan(
        tree,
        budget=hr.Rho("1/8"),
        neighbours=hr.Replace(),
        workload=hr.Cuboids(names, chain=False),
        measure=hr.All() if held else hr.Survivors(),
        invariants=held,
    )
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))
    (name,) = (each for each in names if "level2" in each)
    found = release.level(name, all=True)
    above = release.level(name.replace("level2", "level1"), all=True)
    assert found.select(above.columns).equals(above)
    if held:
        assert len(found) == 12
        assert (found["standard_error"] == 0).all()


@pytest.mark.parametrize("who", [hr.AddRemove(), hr.Replace()])
def test_running_sums_tell_of_every_bin(who):
    ranges = hr.Ranges.equal_width("income", 0, 900, 90)
    plan = hr.plan_distribution(
        ranges, budget=hr.Rho("1/50"), neighbours=who, measure=hr.RunningSums()
    )
    counts = all_leaves(plan.tree, [0 if number % 3 else number for number in range(90)])
    release = in_memory(counts, plan, estimator=hr.Isotonic(), bits=seeded_bits(1))
    found, listed = release.level("bin", all=True), release.level("bin")
    assert len(listed) < len(found) == 90
    assert found.filter(pl.col("count") > 0).equals(listed)
    total = release.level("total", all=True)
    assert total.equals(release.level("total"))
    assert total["estimate"].item() == pytest.approx(found["estimate"].sum())


def test_more_cells_than_can_be_listed_are_refused(monkeypatch):
    release = released("cube")
    monkeypatch.setattr(questions, "MOST_ROWS_LISTED", 17)
    assert len(release.level("place.town", all=True)) == 6
    with pytest.raises(hr.ReleaseError, match="has 18 cells, and all are listed up to 17; ask for"):
        release.level("place.town × work.job", all=True)
    monkeypatch.setattr(questions, "MOST_NOISY_READ", 17)
    with pytest.raises(hr.ReleaseError, match="noisy counts, and can be had up to 17"):
        release.level("place.town", all=True)


def test_an_interval_of_a_count_of_0_holds_an_empty_cell():
    place = hr.Axis.from_frame("place", {"town": [f"t{i:03}" for i in range(400)]}, ["town"])
    plan = plain_plan(hr.Tree([place]), budget=hr.Rho("1/8"), measure=hr.All())
    counts = hr.Counts.from_frame(plan.tree, {"town": ["t000"], "n": [900]}, count="n")
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(5))
    found = release.level("town", all=True)
    assert len(found) == 400
    empty = found.filter(pl.col("town") != "t000")
    held = int((empty["low"] == 0).sum())
    assert held >= 350, "95 % of 399, and fewer than 350 with a chance below 1e-6 (binomial)"
    assert (empty["high"] > 0).any()
