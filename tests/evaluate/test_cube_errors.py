"""Errors of releases by cuboid, on a cube and on a chain beside it."""

import math

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.baselines import IndependentNoise, LeafNoise, StabilityHistogram
from hedgerow.evaluate.error_picture import picture_of_errors
from hedgerow.evaluate.forecast import HEADINGS, simulated_releases, simulated_rows
from hedgerow.evaluate.method import CuboidCounts, Setting
from hedgerow.evaluate.metrics import (
    HEADINGS_BESIDE_FORECAST,
    error_by_cuboid,
    headings_of,
    rows_beside_forecast,
)
from hedgerow.evaluate.simulate import run_bits, simulate
from hedgerow.evaluate.simulation_output import (
    legend,
    metric_rows,
    picture_of_simulation,
)
from hedgerow.plan.forecast import forecast
from tests.made import plain_plan, random_tree
from tests.release.pairs import (
    BUDGET,
    MEASURES,
    PAIRS,
    WORKLOADS,
    cube,
    dense,
    named,
    named_axis,
    released,
    summed,
    table_of,
    tables,
    true_table,
)


def rmse(given, true):
    return math.sqrt(((given - true).astype(float) ** 2).mean())


PLANS = [*(cube(measure=measure) for measure in MEASURES), *map(named, WORKLOADS.values())]


@pytest.mark.parametrize("plan", PLANS, ids=["all", "survivors", *WORKLOADS])
def test_errors_of_every_cuboid_are_those_of_dense_tables(plan):
    counts = table_of(filled=0.3)
    release = released(counts, plan)
    errors = error_by_cuboid(counts, release)
    assert "depth" not in errors.columns
    assert errors["cuboid"].to_list() == list(release.plan.cuboids)
    for row, (levels, given) in zip(
        errors.iter_rows(named=True), tables(release).items(), strict=True
    ):
        true = true_table(counts, levels)
        error = np.abs(given - true)
        assert row["cells"] == given.size
        assert row["max_error"] == error.max()
        assert row["rmse"] == pytest.approx(rmse(given, true))
        assert row["mae"] == pytest.approx(error.mean())
        positive, there = max((given > 0).sum(), 1), max((true > 0).sum(), 1)
        wrong = ((given > 0) & (true == 0)).sum() / positive
        assert row["false_discovery_rate"] == pytest.approx(wrong)
        lost = ((given == 0) & (true > 0)).sum() / there
        assert row["false_negative_rate"] == pytest.approx(lost)


@pytest.mark.parametrize("levels", [(0, 0), (2, 0), (0, 2), (1, 2), (2, 2)])
def test_true_counts_of_any_cuboid_are_sums_of_the_leaves_row_by_row(levels):
    counts = table_of(filled=0.3)
    codes, values = counts.cuboid(levels)
    true = true_table(counts, levels)
    assert np.array_equal(np.stack(codes, axis=1), np.argwhere(true))
    assert np.array_equal(values, true[true > 0])


@pytest.mark.parametrize("sparse", [True, False])
def test_sums_of_simulated_leaves_are_those_of_dense_tables(sparse):
    rng = np.random.default_rng(4)
    tree = random_tree(rng, axes=3, depth=2, widest=3)
    shape = [axis.size(2) for axis in tree.axes]
    table = rng.integers(-3, 9, shape) * (rng.random(shape) < 0.3)
    every = CuboidCounts(None, table.ravel())
    few = CuboidCounts(np.flatnonzero(table), table.ravel()[np.flatnonzero(table)])
    for levels in hr.Cube().cuboids(tree):
        found = (few if sparse else every).summed(tree, levels, tree.finest)
        wanted = summed(tree, table, (2, 2, 2), levels).ravel()
        assert np.array_equal(found.dense(len(wanted)), wanted), levels


def test_a_cube_stands_beside_its_forecast_without_depths(tmp_path):
    counts = table_of()
    release = released(counts, cube())
    errors, expected = error_by_cuboid(counts, release), forecast(release.plan)
    rows = rows_beside_forecast(errors, expected.reverse(), {})
    assert headings_of(errors, HEADINGS_BESIDE_FORECAST)[:2] == ("", "cuboid")
    for row, levels in zip(rows, release.plan.levels, strict=True):
        predicted = expected.filter(pl.col("cuboid") == PAIRS.name_of(levels))["rmse"].item()
        assert row[:2] == ("", PAIRS.name_of(levels))
        assert row[3] == f"{predicted:,.3g}"
    picture_of_errors(release.plan, errors, tmp_path / "e.svg", expected=expected, covered={})
    assert "o.level1" in (tmp_path / "e.svg").read_text()


def compared(measure):
    chain = plain_plan(PAIRS, budget=BUDGET, neighbours=hr.Replace(), measure=measure)
    return [
        Setting("cube", cube(measure=measure), hr.Euclidean()),
        Setting("chain", chain, hr.Euclidean()),
        LeafNoise(PAIRS, BUDGET, hr.Replace(), hr.DiscreteGaussian),
        IndependentNoise(chain),
        StabilityHistogram(BUDGET, hr.Replace()),
    ]


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_a_simulation_compares_the_cuboids_of_a_cube_for_all_settings(measure):
    counts = table_of(filled=0.4)
    settings = compared(measure)
    errors = simulate(counts, settings, public=True, runs=3, seed=5, workers=2)
    assert "depth" not in errors.columns
    for setting in settings:
        part = errors.filter(pl.col("setting") == setting.name)
        assert part["cuboid"].to_list() == [PAIRS.name_of(c) for c in hr.Cube().cuboids(PAIRS)]
        squares = dict.fromkeys(hr.Cube().cuboids(PAIRS), 0.0)
        for run in range(3):
            found = dict(setting.released(counts, run_bits(5, run)))
            leaves = found[2, 2].dense(PAIRS.leaves).reshape(12, 10)
            for levels in squares:
                own = found.get(levels)
                table = summed(PAIRS, leaves, (2, 2), levels)
                if own is not None:
                    table = own.dense(table.size).reshape(table.shape)
                squares[levels] += rmse(table, true_table(counts, levels)) ** 2 / 3
        assert np.allclose(part["rmse"] ** 2, list(squares.values()))


def test_a_simulation_of_chains_alone_keeps_their_depths():
    counts = table_of()
    errors = simulate(counts, compared(hr.All())[1:], public=True, runs=3)
    assert errors["depth"].unique().to_list() == [0, 1, 2, 3, 4]


def test_tables_of_a_simulated_cube_number_all_its_cuboids(tmp_path):
    counts = table_of()
    errors = simulate(counts, compared(hr.All())[:2], public=True, runs=3)
    head, *rows = metric_rows(errors, "rmse")
    assert head[2:] == tuple(str(n) for n in range(9))
    assert [row[1] for row in rows] == ["cube", "chain"]
    assert [row[0] for row in legend(errors)[1:]] == [*head[2:]]
    assert len(metric_rows(errors, "seconds")[0]) == 3
    picture_of_simulation(errors, tmp_path / "e.svg")
    assert (tmp_path / "e.svg").exists()


def test_simulated_releases_of_a_prior_have_a_row_for_each_cuboid_of_a_cube():
    counts = table_of()
    errors, sums = simulated_releases(
        cube(), hr.Prior(counts, public=True), hr.Euclidean(), runs=4, seed=1
    )
    assert errors["cuboid"].to_list() == list(cube().cuboids)
    assert sums.is_empty(), "no cuboid is off a cube"
    assert headings_of(errors, HEADINGS)[0] == ""
    assert all(row[0] == "" for row in simulated_rows(errors))
    expected = forecast(cube())
    large = true_table(counts, (1, 0)).min()
    assert large > 100
    of = pl.col("cuboid") == "o.level1"
    row, known = (frame.filter(of)["rmse"].item() for frame in (errors, expected))
    assert 0.3 * known < row < 2 * known


def test_noisy_counts_of_a_cube_as_they_are_cover_every_cuboid():
    tree = hr.Tree([named_axis("o", 3, 1, 2), named_axis("d", 2)])
    counts = table_of(3, tree)
    plan = cube(tree)
    assert plan.repeats
    found = dict(IndependentNoise(plan).released(counts, run_bits(1, 0)))
    assert list(found) == list(plan.levels)
    for levels, cells in found.items():
        true = dense(tree, levels, *counts.cuboid(levels)).ravel()
        given = cells.dense(true.size)
        if plan.is_public(levels):
            assert np.array_equal(given, true)
        source = plan.repeats.get(levels, levels)
        if source != levels:
            assert np.array_equal(given, found[source].dense(true.size))
