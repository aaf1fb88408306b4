"""Estimating again: stored noisy counts, and those of others."""

import json

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.directory.measurements import cuboid_slug
from hedgerow.release.execution import in_memory
from hedgerow.release.reestimate.external import Measurements
from hedgerow.release.reestimate.reestimate import estimate_measurements, reestimate
from hedgerow.tables.counts import label_nodes
from tests.made import fixed_axis, plain_plan, random_counts, random_tree
from tests.release.test_all import nodes_by_depth


@pytest.fixture(params=["all", "survivors"])
def written(request, out):
    """A release directory, its plan and its table."""
    rng = np.random.default_rng(11)
    tree = random_tree(rng, axes=2, depth=2)
    counts = random_counts(rng, tree, filled=0.7)
    measure = hr.All() if request.param == "all" else hr.Survivors()
    plan = plain_plan(tree, budget=hr.Rho("1/5"), measure=measure)
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(5))
    release.write(out)
    return out, plan, counts, release


def test_another_method_stands_side_by_side_with_the_release(written, tmp_path):
    folder, plan, counts, release = written
    made = reestimate(folder, hr.Euclidean())
    made.write(tmp_path / "again")
    assert hr.check(folder), "the release is as it was"
    last = plan.tree.depth
    direct = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(5))
    frame = pl.read_parquet(tmp_path / "again" / f"{cuboid_slug(plan.tree.chain[-1])}.parquet")
    columns = plan.tree.columns(last)
    new = frame.filter(pl.col("count") > 0).sort(columns)
    old = frame.filter(pl.col("released") > 0).sort(columns)
    assert new.select(*columns, "count").equals(
        direct.level(depth=last).select(*columns, "count").sort(columns)
    )
    assert old.select(*columns, pl.col("released").alias("count")).equals(
        release.level(depth=last).select(*columns, "count").sort(columns)
    )
    facts = json.loads((tmp_path / "again" / "estimate.json").read_text())
    assert facts["method"]["method"] == "euclidean"


def test_least_squares_say_whether_they_are_unbiased_or_so_under_a_condition(written):
    folder, plan, _, _ = written
    claim = hr.reestimate(folder, hr.LeastSquares()).described["claim"]
    assert "unbiased" in claim
    assert ("conditional" in claim) is not isinstance(plan.measure, hr.All)


def foreign(tree, rng, missing=()):
    """Noisy counts of all nodes but some, with variances that differ from node to node."""
    leaves = rng.integers(0, 50, tree.leaves)
    frames, truth = {}, {}
    for depth, nodes in enumerate(nodes_by_depth(tree)):
        codes = tuple(np.array(c, dtype=np.int32) for c in zip(*nodes, strict=True))
        start = tree.axes[0].descendant_start(depth, tree.depth)
        truth[depth] = np.add.reduceat(leaves, start[:-1]) if depth else [leaves.sum()]
        variance = rng.uniform(1, 9, len(nodes))
        noisy = truth[depth] + rng.normal(0, np.sqrt(variance))
        frame = label_nodes(tree, tree.cuboid(depth), codes, noisy_count=noisy, variance=variance)
        if depth not in missing:
            frames[depth] = frame.sample(fraction=1, shuffle=True, seed=1)
    return frames, truth


@pytest.mark.parametrize("missing", [(), (0,), (1,), (0, 1)], ids=str)
def test_measurements_of_others_are_estimated_by_weighted_least_squares(missing):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    frames, _ = foreign(tree, np.random.default_rng(2), missing)
    made = estimate_measurements(Measurements.from_frames(tree, frames), hr.LeastSquares())
    rows, values, weights = [], [], []
    for depth, frame in frames.items():
        for row in frame.iter_rows(named=True):
            code = int(row[f"level{depth}"]) if depth else 0
            covered = np.zeros(12)
            width = [12, 4, 1][depth]
            covered[code * width : (code + 1) * width] = 1
            rows.append(covered)
            values.append(row["noisy_count"])
            weights.append(row["variance"] ** -0.5)
    matrix = np.array(rows) * np.array(weights)[:, None]
    solved = np.linalg.lstsq(matrix, np.array(values) * np.array(weights), rcond=None)[0]
    errors = np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))
    leaves = made.level(depth=2)
    assert np.allclose(leaves["estimate"], solved, rtol=1e-9, atol=1e-9)
    assert np.allclose(leaves["standard_error"], errors, rtol=1e-9)
    full = np.linalg.inv(matrix.T @ matrix)
    chosen = [(2, 0), (2, 1), (2, 11), (1, 2)]
    picked = np.zeros((4, 12))
    picked[[0, 1, 2], [0, 1, 11]] = 1
    picked[3, 8:] = 1
    assert np.allclose(made.covariance(chosen), picked @ full @ picked.T, rtol=1e-8)


@pytest.mark.parametrize("estimator", [hr.Chebyshev(), hr.Euclidean()], ids=["c", "e"])
def test_measurements_of_others_become_whole_counts_that_add_up(estimator):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    frames, truth = foreign(tree, np.random.default_rng(3), missing=(0,))
    made = estimate_measurements(
        Measurements.from_frames(tree, frames, total=int(truth[0][0])), estimator
    )
    assert [frame["count"].sum() for frame in made.frames.values()] == [int(truth[0][0])] * 3
    assert made.level(depth=2)["count"].dtype == pl.Int64


def spoil(frames, change):
    return {**frames, 2: change(frames[2])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("variance"), "no column 'variance'"),
        (lambda f: f.with_columns(variance=pl.lit(0.0)), "variances above 0"),
        (lambda f: f.with_columns(noisy_count=pl.lit(float("nan"))), "must be finite"),
        (lambda f: f.with_columns(noisy_count=pl.lit("many")), "empty or no number"),
        (lambda f: pl.concat([f, f.head(1)]), "name a node twice"),
        (lambda f: f.with_columns(level2=pl.lit("x") + pl.col("level2")), "not in the tree"),
        (lambda f: f.head(3), "does not determine every node"),
        (lambda f: f.lazy().select("nowhere"), "cannot be computed"),
    ],
    ids=range(8),
)
def test_measurements_that_are_none_are_refused(change, message):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    frames, _ = foreign(tree, np.random.default_rng(4), missing=(0,))
    with pytest.raises(hr.TableError, match=message):
        estimate_measurements(
            Measurements.from_frames(tree, spoil(frames, change)), hr.LeastSquares()
        )
