"""Errors against the truth, and the baselines they are compared with."""

from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate import error_picture
from hedgerow.evaluate.baselines import LeafNoise
from hedgerow.evaluate.error_picture import picture_of_errors
from hedgerow.evaluate.method import CuboidCounts, sum_to_cuboid
from hedgerow.evaluate.metrics import (
    HEADINGS_BESIDE_FORECAST,
    coverage,
    error_by_cuboid,
    error_rows,
    errors_by_size,
    rows_beside_forecast,
)
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.picture import figure_for, row_names
from hedgerow.plan.forecast import forecast
from hedgerow.release.execution import in_memory
from studies.methods import error_of_released, picture_of_methods
from tests.made import fixed_axis, plain_plan, random_counts, random_tree


@pytest.fixture
def made():
    rng = np.random.default_rng(3)
    counts = random_counts(rng, random_tree(rng, axes=2, depth=3))
    plan = plain_plan(counts.tree, budget=hr.Rho("1/20"))
    return counts, in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(0))


def dense(tree, frame, depth):
    """Counts of a depth as a dense array over all possible nodes."""
    sizes = [axis.size(k) for axis, k in zip(tree.axes, tree.cuboid(depth), strict=True)]
    table = np.zeros(sizes, dtype=np.int64)
    for row in frame.iter_rows(named=True):
        place = tuple(
            axis.labels[k - 1].to_list().index(row[axis.columns[k - 1]]) if k else 0
            for axis, k in zip(tree.axes, tree.cuboid(depth), strict=True)
        )
        table[place] = row["count"]
    return table


def test_errors_are_those_of_the_dense_tables(made):
    counts, release = made
    tree = counts.tree
    errors = error_by_cuboid(counts, release)
    for depth, row in enumerate(errors.iter_rows(named=True)):
        truth = dense(tree, counts.level(depth), depth)
        found = dense(tree, release.level(depth=depth), depth)
        error = found - truth
        assert row["cells"] == error.size
        assert row["max_error"] == np.abs(error).max()
        assert row["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
        assert row["mae"] == pytest.approx(np.abs(error).mean())
        positive = max((found > 0).sum(), 1)
        assert row["false_discovery_rate"] == ((found > 0) & (truth == 0)).sum() / positive
        there = max((truth > 0).sum(), 1)
        assert row["false_negative_rate"] == ((found == 0) & (truth > 0)).sum() / there
    assert errors["rmse"].max() > 0
    assert len(error_rows(errors)) == tree.depth + 1


def test_leaf_noise_is_the_truth_plus_noise_for_the_whole_budget(made):
    counts, _ = made
    tree = counts.tree
    method = LeafNoise(tree, hr.Rho("1/2"), hr.Replace(), hr.DiscreteGaussian)
    released = {levels: found.values for levels, found in method.released(counts, seeded_bits(1))}
    noisy = released[tree.chain[-1]].reshape([axis.size(axis.depth) for axis in tree.axes])
    truth = dense(tree, counts.level(tree.depth), tree.depth)
    noise = (noisy - truth).ravel()
    n, sigma2 = noise.size, 2
    assert abs((noise**2).mean() - sigma2) < 4.9 * sigma2 * np.sqrt(2 / n)
    upper = sum_to_cuboid(tree, noisy, tree.cuboid(2), tree.finest)
    assert upper.shape == tuple(axis.size(1) for axis in tree.axes)
    assert (upper.ravel() == released[tree.cuboid(2)]).all()
    assert upper.sum() == noisy.sum()
    first = tree.axes[0].descendant_start(1, 3)[1], tree.axes[1].descendant_start(1, 3)[1]
    assert upper[0, 0] == noisy[: first[0], : first[1]].sum()


def test_errors_of_dense_leaves_are_those_of_the_same_release(made):
    counts, release = made
    depth = counts.tree.depth
    leaves = dense(counts.tree, release.level(depth=depth), depth)
    tree = counts.tree
    sums = (
        (levels, CuboidCounts(None, sum_to_cuboid(tree, leaves, levels, tree.finest).ravel()))
        for levels in tree.chain
    )
    assert error_of_released(counts, sums).equals(error_by_cuboid(counts, release))


def test_leaf_noise_on_more_cells_than_memory_holds_is_refused():
    axes = [fixed_axis(n, 60_000, columns=[n]) for n in ("a", "b")]
    nothing = np.empty(0, dtype=np.int64)
    codes = (nothing.astype(np.int32),) * 2
    counts = hr.Counts.from_leaves(hr.Tree(axes), codes, nothing)
    with pytest.raises(hr.TableError, match="3,600,000,000 cells"):
        LeafNoise(counts.tree, hr.Rho(1), hr.AddRemove(), hr.DiscreteGaussian)


def test_a_picture_of_methods_is_drawn(made, tmp_path):
    errors = error_by_cuboid(*made)
    said = {"title": "A table", "about": "Errors of two releases."}
    picture_of_methods({"one": errors, "two": errors}, tmp_path / "errors.png", **said)
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(hr.ReleaseError, match="cannot write the picture"):
        picture_of_methods({"one": errors}, tmp_path / "no" / "errors.png", **said)
    with pytest.raises(hr.ReleaseError, match="cannot write the picture"):
        picture_of_methods({"one": errors}, tmp_path / "errors.docx", **said)


def test_errors_stand_beside_what_the_plan_forecast(made):
    counts, release = made
    errors = error_by_cuboid(counts, release)
    expected = forecast(plain_plan(counts.tree, budget=hr.Rho("1/20")))
    covered = dict.fromkeys(errors["cuboid"], 0.9)
    rows = rows_beside_forecast(errors, expected, covered)
    places = {name: HEADINGS_BESIDE_FORECAST.index(name) for name in ("95 % max", "RMSE", "MAE")}
    for row, found, wanted in zip(rows, errors.to_dicts(), expected.to_dicts(), strict=True):
        assert len(row) == len(HEADINGS_BESIDE_FORECAST)
        assert row[:2] == (str(found["depth"]), found["cuboid"])
        assert row[places["95 % max"] - 1] == f"{found['max_error']:,}"
        assert row[places["95 % max"]] == f"±{int(np.ceil(wanted['max_95'])):,}"
        for name in ("RMSE", "MAE"):
            measured, foreseen, ratio = row[places[name] : places[name] + 3]
            key = name.lower()
            assert float(measured.replace(",", "")) == pytest.approx(found[key], rel=0.01)
            assert float(foreseen.replace(",", "")) == pytest.approx(wanted[key], rel=0.01)
            assert float(ratio) == pytest.approx(found[key] / wanted[key], abs=0.006)
        assert [f"{found[name]:.1%}" for name in RATES] == list(row[-2:])
        assert row[-3] == "90.0%"


RATES = ("false_discovery_rate", "false_negative_rate")


def test_what_was_not_forecast_or_is_exact_has_no_ratio(made):
    errors = error_by_cuboid(*made)
    unknown = pl.lit(None, pl.Float64)
    expected = forecast(plain_plan(made[0].tree, budget=hr.Rho("1/20")))
    blank = expected.with_columns(rmse=unknown, mae=unknown, max_95=unknown)
    first = rows_beside_forecast(errors, blank, {})[0]
    assert [first[i] for i in (3, 4, 6, 7, 9, 10)] == [""] * 6
    exact = rows_beside_forecast(errors, expected.with_columns(rmse=0.0, mae=0.0), {})[0]
    assert (exact[3:5], exact[6:8]) == (("0", ""), ("0", ""))


def test_a_picture_of_errors_draws_the_forecast_beside_them(made, tmp_path, monkeypatch):
    figures = []

    @contextmanager
    def seen(*arguments, **options):
        with figure_for(*arguments, **options) as figure:
            yield figure
            figures.append(figure)

    monkeypatch.setattr(error_picture, "figure_for", seen)
    counts, release = made
    said = hr.Description(title="Trips to work", unit="workers", period="2011")
    plan = release.plan.described(said)
    errors, by_size = error_by_cuboid(counts, release), errors_by_size(counts, release)
    expected, covered = forecast(plan), coverage(by_size) | {list(plan.cuboids)[1]: None}
    given = {"expected": expected.reverse(), "covered": covered}
    picture_of_errors(plan, errors, tmp_path / "e.png", **given)
    (figure,) = figures
    words = [text.get_text() for text in figure.texts]
    assert words[:2] == ["Trips to work, 2011", "CONFIDENTIAL: exact errors reveal true counts."]
    assert "released counts of workers" in words[2]
    for axes, mine, theirs in zip(
        figure.axes, ("rmse", "max_error"), ("rmse", "max_95"), strict=False
    ):
        foreseen, measured = axes.lines[:2]
        assert list(measured.get_xdata()) == errors[mine].to_list()
        assert list(foreseen.get_xdata()) == expected[theirs].to_list()
        assert list(measured.get_ydata()) == list(foreseen.get_ydata()) == [*range(len(errors))]
        assert axes.get_xlabel() == "workers"
        drawn = [*errors[mine], *expected[theirs]]
        assert sum(min(drawn) <= tick <= max(drawn) for tick in axes.get_xticks()) >= 1
        assert axes.get_xlim()[0] <= min(drawn) <= max(drawn) <= axes.get_xlim()[1]
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == row_names(errors["cuboid"])
    nominal, held = figure.axes[2].lines[:2]
    assert list(nominal.get_xdata()) == [0.95, 0.95]
    shares = [np.nan if share is None else share for share in covered.values()]
    np.testing.assert_array_equal(held.get_xdata(), shares)
    few = [(c, n) for c, n in errors.select("cuboid", "cells").rows() if covered[c] is not None]
    beside = [text.get_text() for text in figure.axes[2].texts]
    assert beside == [f"of {n:.0f}" for _, n in few if n <= 40] != []
    lost, discovered = figure.axes[3].lines[:2]
    assert list(lost.get_xdata()) == errors["false_negative_rate"].to_list()
    assert list(discovered.get_xdata()) == errors["false_discovery_rate"].to_list()


def test_a_picture_of_many_cuboids_shows_some_of_them_and_says_so(made, tmp_path, monkeypatch):
    counts, release = made
    monkeypatch.setattr("hedgerow.plan.picture.MOST_ROWS", 2)
    errors, expected = error_by_cuboid(counts, release), forecast(release.plan)
    picture_of_errors(release.plan, errors, tmp_path / "e.svg", expected=expected, covered={})
    drawn = (tmp_path / "e.svg").read_text(encoding="utf-8")
    assert "Largest error" in drawn
    assert "coverage" not in drawn, "nor a panel without a mark"
    assert "Intervals that hold" not in drawn
    drawn = (tmp_path / "e.svg").read_text()
    assert f"2 of {len(errors)} cuboids are drawn." in drawn
    shown = [name for name in errors["cuboid"] if f"<!-- {row_names([name])[0]} -->" in drawn]
    assert shown == [errors["cuboid"][0], errors["cuboid"][-1]]


def test_errors_of_a_perfect_release_are_zero():
    counts = random_counts(np.random.default_rng(4), hr.Tree([fixed_axis("geo", 3, 4)]))
    plan = plain_plan(counts.tree, budget=hr.Rho(10**6))
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(0))
    errors = error_by_cuboid(counts, release)
    assert errors.select(pl.col("max_error", "rmse", "mae").sum()).row(0) == (0, 0.0, 0.0)
