"""Errors by the size of the true count, and what intervals hold."""

from itertools import product

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate import metrics as module
from hedgerow.evaluate.metrics import (
    band_name,
    coverage,
    error_by_cuboid,
    errors_by_size,
    size_rows,
)
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, plain_plan, random_counts, random_tree


def released(counts, budget="1/20", **options):
    plan = plain_plan(counts.tree, budget=hr.Rho(budget), **options)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(0))


@pytest.fixture
def made():
    rng = np.random.default_rng(3)
    counts = random_counts(rng, random_tree(rng, axes=2, depth=3))
    return counts, released(counts, measure=hr.All())


def cells(tree, depth):
    """The codes of every cell of a depth, under the columns that tell them."""
    axes = [(axis, k) for axis, k in zip(tree.axes, tree.cuboid(depth), strict=True) if k]
    rows = []
    for place in product(*(range(axis.size(k)) for axis, k in axes)):
        row = {}
        for (axis, k), code in zip(axes, place, strict=True):
            for level in range(1, k + 1):
                up = axis.ancestors(level)
                leaf = int(axis.descendant_start(k, axis.depth)[code])
                row[axis.columns[level - 1]] = axis.labels[level - 1][int(up[leaf])]
        rows.append(row)
    return rows


def test_bands_are_those_of_all_cells_one_by_one(made):
    """Each cell on its own, by its codes, in plain Python."""
    counts, release = made
    found = errors_by_size(counts, release)
    for depth, name in enumerate(release.plan.cuboids):
        truth, given = counts.level(depth), release.level(name, all=True)
        codes = [column for column in truth.columns if column != "count"]
        true = {tuple(r[c] for c in codes): r["count"] for r in truth.to_dicts()}
        mine = {tuple(r[c] for c in codes): r for r in given.to_dicts()}
        wanted = {}
        for cell in cells(counts.tree, depth) if codes else [{}]:
            key = tuple(cell[c] for c in codes)
            count = true.get(key, 0)
            band = 0 if count == 0 else 10 ** (len(str(count)) - 1)
            row = mine[key]
            held = row["low"] <= count <= row["high"]
            wanted.setdefault(band, []).append((row["count"] - count, held))
        part = found.filter(pl.col("cuboid") == name)
        assert part["least"].to_list() == sorted(wanted)
        for row in part.to_dicts():
            errors = np.array([error for error, _ in wanted[row["least"]]])
            assert row["cells"] == row["intervals"] == len(errors)
            assert row["held"] == sum(held for _, held in wanted[row["least"]])
            assert row["mae"] == pytest.approx(np.abs(errors).mean())
            assert row["rmse"] == pytest.approx(np.sqrt((errors**2).mean()))
            assert row["max_error"] == np.abs(errors).max()
            assert row["most"] == (0 if row["least"] == 0 else 10 * row["least"] - 1)


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
def test_bands_of_a_cuboid_add_up_to_its_errors(measure):
    rng = np.random.default_rng(5)
    counts = random_counts(rng, random_tree(rng, axes=2, depth=3))
    release = released(counts, measure=measure)
    whole = {row["cuboid"]: row for row in error_by_cuboid(counts, release).to_dicts()}
    for (name,), part in errors_by_size(counts, release).group_by("cuboid"):
        weight = part["cells"]
        assert weight.sum() == whole[name]["cells"]
        assert (part["mae"] * weight).sum() / weight.sum() == pytest.approx(whole[name]["mae"])
        squared = (part["rmse"] ** 2 * weight).sum() / weight.sum()
        assert squared == pytest.approx(whole[name]["rmse"] ** 2)
        assert part["max_error"].max() == whole[name]["max_error"]


def test_intervals_of_a_release_hold_the_truth_as_often_as_they_say():
    """20,000 cells, most of them small: α = 1e-6 under independent misses of 5 %.

    Whole numbers make the coverage of noisy counts a little more than 95 %, never less.
    """
    axis = fixed_axis("geo", 20_000)
    rng = np.random.default_rng(1)
    values = np.floor(np.exp(rng.normal(2, 2.5, 20_000))).astype(np.int64)
    listed = np.flatnonzero(values)
    counts = hr.Counts.from_leaves(hr.Tree([axis]), (listed.astype(np.int32),), values[listed])
    release = released(counts, budget="1/200", measure=hr.All())
    by_size = errors_by_size(counts, release)
    margin = 4.9 * np.sqrt(0.05 * 0.95 / 20_000)
    held = list(coverage(by_size).values())[-1]
    assert 0.95 - margin < held < 0.97 + margin
    leaves = by_size.filter(pl.col("cuboid") == list(release.plan.cuboids)[-1])
    for row in leaves.filter(pl.col("cells") > 500).to_dicts():
        narrow = 4.9 * np.sqrt(0.05 * 0.95 / row["cells"])
        assert row["held"] / row["intervals"] > 0.95 - narrow, row


@pytest.mark.parametrize("limit", ["MOST_CELLS", "MOST_NOISY"])
def test_where_only_some_cells_have_intervals_coverage_is_left_blank(made, monkeypatch, limit):
    counts, release = made
    usual = coverage(errors_by_size(counts, release))
    monkeypatch.setattr(module, limit, 0)
    by_size = errors_by_size(counts, release)
    listed = {name: len(release.level(name)) for name in release.plan.cuboids}
    sizes = dict(
        zip(release.plan.cuboids, map(counts.tree.cells, release.plan.levels), strict=True)
    )
    whole = {name for name in listed if listed[name] == sizes[name]}
    assert set() < whole < set(sizes), "all cells of some cuboids are listed"
    blank = by_size.filter(~pl.col("cuboid").is_in(whole))
    assert blank["intervals"].null_count() == blank["held"].null_count() == len(blank)
    assert coverage(by_size) == {name: usual[name] if name in whole else None for name in sizes}
    (heading, *rows) = size_rows(by_size, "held")
    assert all(set(row[2:]) == {""} for row in rows if row[1] not in whole)
    assert len({len(row) for row in (heading, *rows)}) == 1


def test_bands_are_named_as_people_write_them(made):
    named = [band_name(0, 0), band_name(1, 9), band_name(1000, 9999), band_name(10**18, None)]
    assert named == ["0", "1–9", "1,000–9,999", "1,000,000,000,000,000,000 and more"]
    counts, release = made
    by_size = errors_by_size(counts, release)
    (heading, *rows) = size_rows(by_size, "cells")
    assert heading[1] == "true count"
    assert [row[1] for row in rows] == list(release.plan.cuboids)
    assert sum(float(word.replace(",", "")) for row in rows for word in row[2:] if word) == sum(
        by_size["cells"]
    )


def test_the_last_band_holds_the_largest_counts_there_can_be():
    true = np.array([10**18 - 1, 10**18, 2**63 - 1])
    rows = list(module._bands(true, true - 2, None, 3))
    bands = [(row["least"], row["most"], row["cells"]) for row in rows]
    assert bands == [(10**17, 10**18 - 1, 1), (10**18, None, 2)]
    assert [row["rmse"] for row in rows] == [2, 2]


def test_an_empty_table_has_only_cells_of_0():
    nothing = np.empty(0, dtype=np.int64)
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    counts = hr.Counts.from_leaves(tree, (nothing.astype(np.int32),), nothing)
    by_size = errors_by_size(counts, released(counts, measure=hr.All()))
    assert by_size["least"].to_list() == by_size["most"].to_list() == [0, 0, 0]
    assert by_size["cells"].to_list() == [1, 3, 12]


def test_coverage_is_that_of_intervals_by_dense_least_squares():
    """From the published measurements alone: NumPy's least squares, and a normal quantile."""
    counties, towns = 6, 20
    tree = hr.Tree([fixed_axis("geo", counties, towns)])
    rng = np.random.default_rng(11)
    truth = np.floor(np.exp(rng.normal(3, 2, counties * towns))).astype(np.int64)
    listed = np.flatnonzero(truth)
    counts = hr.Counts.from_leaves(tree, (listed.astype(np.int32),), truth[listed])
    release = released(counts, budget="1/2000", measure=hr.All(), neighbours=hr.AddRemove())
    groups = np.kron(np.eye(counties), np.ones(towns))
    design = np.vstack([np.ones(len(truth)), groups, np.eye(len(truth))])
    noisy = pl.concat(
        release.measurements(name).select("noisy_count", "variance")
        for name in release.plan.cuboids
    )
    weight = 1 / noisy["variance"].to_numpy()
    spread = np.linalg.inv(design.T * weight @ design)
    estimate = design @ spread @ (design.T @ (weight * noisy["noisy_count"].to_numpy()))
    half = 1.959964 * np.sqrt(np.diag(design @ spread @ design.T))
    true = design @ truth
    assert np.abs(np.abs(estimate - true) - half).min() > 1, "no count at the end of an interval"
    low, high = (
        np.maximum(estimate + sign * half, 0) for sign in (-1, 1)
    )  # counts are not below 0
    held = (low <= true) & (true <= high)
    by_size = errors_by_size(counts, release)
    ends = np.cumsum([0, 1, counties, len(truth)])
    assert (~held).sum() > 0
    for name, first, last in zip(release.plan.cuboids, ends, ends[1:], strict=False):
        mine, exact = held[first:last], true[first:last]
        assert coverage(by_size)[name] == pytest.approx(mine.mean())
        for row in by_size.filter(pl.col("cuboid") == name).to_dicts():
            within = (exact >= row["least"]) & (exact <= row["most"])
            assert (row["intervals"], row["held"]) == (within.sum(), mine[within].sum())
