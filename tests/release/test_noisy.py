"""Noisy counts with their codes: every workload's cells are those that the codes say."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers import questions as noisy_module
from hedgerow.release.execution import in_memory
from hedgerow.spec.other_file import read_measurements
from tests.made import plain_plan

NEXT_TO_NO_NOISE = hr.Rho(10**6)
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
    "named": {"workload": hr.Cuboids(["place.town × work.field", "work.job"])},
    "named, survivors": {
        "workload": hr.Cuboids(["place.county × work.field", "place.town × work.job"]),
        "measure": hr.Survivors(),
    },
    "spine": {"workload": hr.Cuboids(["place.county × work.job", "place.town × work.field"])},
}


def planned(kind, budget):
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    work = hr.Axis.from_frame("work", JOBS, ["field", "job"], attribute=kind == "spine")
    tree = hr.Tree([place, work])
    plan = plain_plan(tree, budget=budget, **WORKLOADS[kind])
    return plan, hr.Counts.from_frame(tree, RECORDS, count="people")


def released(kind):
    plan, counts = planned(kind, NEXT_TO_NO_NOISE)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))


@pytest.mark.parametrize("kind", WORKLOADS)
def test_every_measured_cell_has_the_codes_of_the_records_that_it_counts(kind, tmp_path):
    made = released(kind)
    made.write(tmp_path / "out")
    labelled = RECORDS.join(PLACES, on="town").join(JOBS, on="job")
    for release in (made, hr.read_release(tmp_path / "out")):
        for levels, what in release.plan.by_levels.items():
            if not isinstance(what, hr.Measured):
                continue
            noisy = release.measurements(release.plan.tree.name_of(levels))
            columns = release.plan.tree.columns_of(levels)
            assert noisy.columns == [*columns, "noisy_count", "variance"]
            assert len(noisy) == len(release.content.measured[levels])
            assert (noisy["variance"] == what.mechanism.noise_variance).all()
            assert noisy.select(pl.struct(columns or "noisy_count").n_unique()).item() == len(noisy)
            if not columns:
                assert noisy["noisy_count"].to_list() == [235]
                continue
            true = labelled.group_by(columns).agg(pl.col("people").sum())
            assert not len(true.join(noisy, on=columns, how="anti"))
            beside = noisy.join(true, on=columns, how="left", maintain_order="left").fill_null(0)
            assert beside["noisy_count"].equals(beside["people"], check_names=False)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_noisy_counts_are_unbiased_with_the_variance_that_they_state(kind):
    """Of all cells of 60 releases; α = 1e-6 each for the mean and the variance, both sides.

    Also below survivors, whose own noise has no part in whether they are measured.
    """
    plan, counts = planned(kind, hr.Rho("1/40"))
    labelled = RECORDS.join(PLACES, on="town").join(JOBS, on="job")
    total, squares, many = 0.0, 0.0, 0
    for seed in range(60):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        for levels, what in plan.by_levels.items():
            columns = plan.tree.columns_of(levels)
            if not isinstance(what, hr.Measured) or not columns:
                continue
            noisy = release.measurements(plan.tree.name_of(levels))
            true = labelled.group_by(columns).agg(pl.col("people").sum())
            beside = noisy.join(true, on=columns, how="left", maintain_order="left")
            gap = (beside["noisy_count"] - beside["people"].fill_null(0)).to_numpy()
            scaled = gap / np.sqrt(noisy["variance"].to_numpy())
            total, squares = total + scaled.sum(), squares + (scaled**2).sum()
            many += len(scaled)
    assert many > 500
    assert abs(total) < 4.9 * many**0.5
    assert abs(squares / many - 1) < 4.9 * (2 / many) ** 0.5


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
    monkeypatch.setattr(noisy_module, "MOST_ROWS_LISTED", 17)
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


def test_a_measurement_file_reads_what_table_writes(run, tmp_path):
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    plan = plain_plan(hr.Tree([place]), budget=hr.Rho(1), measure=hr.All())
    counts = hr.Counts.from_frame(plan.tree, RECORDS, count="people")
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    release.write(tmp_path / "out")
    PLACES.write_csv(tmp_path / "list.csv")
    for level in ("total", "county", "town"):
        file = tmp_path / f"{level}.csv"
        assert run("table", tmp_path / "out", "--noisy", "--level", level, "--output", file)[0] == 0
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
