"""Errors against the truth, and the baselines they are compared with."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.baselines import leaf_noise, sum_to_depth
from hedgerow.evaluate.error_picture import picture_of_errors
from hedgerow.evaluate.metrics import error_by_depth, error_of_leaves, error_rows
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, random_counts, random_tree


@pytest.fixture
def made():
    rng = np.random.default_rng(3)
    counts = random_counts(rng, random_tree(rng, axes=2, depth=3))
    plan = hr.make_plan(counts.tree, budget=hr.Rho("1/20"))
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
    errors = error_by_depth(counts, release)
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
    noisy = leaf_noise(counts, seeded_bits(1), budget=hr.Rho("1/2"), neighbours=hr.Replace())
    truth = dense(tree, counts.level(tree.depth), tree.depth)
    noise = (noisy - truth).ravel()
    n, sigma2 = noise.size, 2
    assert abs((noise**2).mean() - sigma2) < 4.9 * sigma2 * np.sqrt(2 / n)
    upper = sum_to_depth(tree, noisy, 2)
    assert upper.shape == tuple(axis.size(1) for axis in tree.axes)
    assert upper.sum() == noisy.sum()
    first = tree.axes[0].descendant_start(1, 3)[1], tree.axes[1].descendant_start(1, 3)[1]
    assert upper[0, 0] == noisy[: first[0], : first[1]].sum()


def test_errors_of_dense_leaves_are_those_of_the_same_release(made):
    counts, release = made
    depth = counts.tree.depth
    leaves = dense(counts.tree, release.level(depth=depth), depth)
    assert error_of_leaves(counts, leaves).equals(error_by_depth(counts, release))


def test_leaf_noise_on_more_cells_than_memory_holds_is_refused():
    axes = [fixed_axis(n, 60_000, columns=[n]) for n in ("a", "b")]
    nothing = np.empty(0, dtype=np.int64)
    codes = (nothing.astype(np.int32),) * 2
    counts = hr.Counts.from_leaves(hr.Tree(axes), codes, nothing)
    with pytest.raises(hr.TableError, match="3,600,000,000 cells"):
        leaf_noise(counts, seeded_bits(0), budget=hr.Rho(1), neighbours=hr.AddRemove())


def test_a_picture_of_errors_is_drawn(made, tmp_path):
    errors = error_by_depth(*made)
    picture_of_errors({"one": errors, "two": errors}, tmp_path / "errors.png")
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(hr.ReleaseError, match="cannot write the picture"):
        picture_of_errors({"one": errors}, tmp_path / "no" / "errors.png")
    with pytest.raises(hr.ReleaseError, match="cannot write the picture"):
        picture_of_errors({"one": errors}, tmp_path / "errors.docx")


def test_errors_of_a_perfect_release_are_zero():
    counts = random_counts(np.random.default_rng(4), hr.Tree([fixed_axis("geo", 3, 4)]))
    plan = hr.make_plan(counts.tree, budget=hr.Rho(10**6))
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(0))
    errors = error_by_depth(counts, release)
    assert errors.select(pl.col("max_error", "rmse", "mae").sum()).row(0) == (0, 0.0, 0.0)
