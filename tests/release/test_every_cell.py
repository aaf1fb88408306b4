"""Every measured cell of a cuboid, also those released as 0: `level(all=True)`."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers import questions as module
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, plain_plan
from tests.release.spine.made_spines import dense_estimates, incidence
from tests.release.test_areas import made, noisy_row_by_row
from tests.release.test_noisy import WORKLOADS, released

ERRORS = ["estimate", "standard_error", "low", "high", "contradicted"]


@pytest.mark.parametrize("kind", WORKLOADS)
def test_all_cells_are_the_listed_ones_and_those_of_count_0(kind, tmp_path):
    first = released(kind)
    first.write(tmp_path / "out")
    for release in (first, hr.read_release(tmp_path / "out")):
        for levels, what in release.plan.by_levels.items():
            name, tree = release.plan.tree.name_of(levels), release.plan.tree
            if kind == "chain, unmeasured above" and what.kind == "unmeasured":
                with pytest.raises(hr.ReleaseError, match="have no estimates of their own"):
                    release.level(name, all=True)
                continue
            found, listed = release.level(name, all=True), release.level(name)
            assert found.columns == listed.columns
            assert (found["count"] >= 0).all()
            positive = found.filter(pl.col("count") > 0)
            columns = tree.columns_of(levels)
            assert positive.select(*columns, "count").equals(listed.select(*columns, "count"))
            for column in ERRORS:
                assert np.allclose(positive[column], listed[column], atol=1e-9), column
            if what.kind == "measured":
                cells = len(release.measurements(name))
                assert len(found) == cells
            elif "survivors" not in kind and kind != "chain":
                assert len(found) == tree.cells(levels)


def test_all_cells_are_listed_above_a_level_that_is_public_by_declaration():
    """Where survivors are measured: the total and the level itself are exact."""
    tree = hr.Tree([fixed_axis("geo", 2, 3)])
    leaves = np.arange(6, dtype=np.int32)
    counts = hr.Counts.from_leaves(tree, (leaves,), np.array([0, 0, 0, 5, 50, 500]))
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


@pytest.mark.parametrize("kind", ["chain, fixed", "cube", "named", "spine, zeros", "spine cube"])
def test_cells_of_count_0_have_the_estimates_of_dense_least_squares(kind):
    release, allowed = made(kind)
    total = release.level("total")["count"].item() if "fixed" in kind else None
    x, covariance = dense_estimates(release.plan, allowed, noisy_row_by_row(release), total)
    for levels in release.plan.levels:
        weights, _ = incidence(release.plan.tree, levels, allowed)
        found = release.level(release.plan.tree.name_of(levels), all=True)
        estimates = np.sort(weights @ x)
        assert np.allclose(np.sort(found["estimate"]), estimates, atol=1e-6)
        exact = np.einsum("ij,jk,ik->i", weights, covariance, weights)
        errors = np.sort(found["standard_error"].to_numpy() ** 2)
        assert np.allclose(errors, np.sort(np.maximum(exact, 0)), atol=1e-6, rtol=1e-6)
    assert (found["count"] == 0).any(), "some are not listed"


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
    bins = np.arange(90, dtype=np.int32)
    counts = hr.Counts.from_leaves(plan.tree, (bins,), np.where(bins % 3, 0, bins).astype(np.int64))
    release = in_memory(counts, plan, estimator=hr.Isotonic(), bits=seeded_bits(1))
    found, listed = release.level("bin", all=True), release.level("bin")
    assert len(listed) < len(found) == 90
    assert found.filter(pl.col("count") > 0).equals(listed)
    total = release.level("total", all=True)
    assert total.equals(release.level("total"))
    assert total["estimate"].item() == pytest.approx(found["estimate"].sum())


def test_more_cells_than_can_be_listed_are_refused(monkeypatch):
    release = released("cube")
    monkeypatch.setattr(module, "MOST_ROWS_LISTED", 17)
    assert len(release.level("place.town", all=True)) == 6
    with pytest.raises(hr.ReleaseError, match="has 18 cells, and all are listed up to 17; ask for"):
        release.level("place.town × work.job", all=True)
    monkeypatch.setattr(module, "MOST_NOISY_READ", 17)
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
