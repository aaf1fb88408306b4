"""Named cuboids estimated again from a release, and covariances of their cells."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import EstimateError, TableError
from hedgerow.estimate.workload import general
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.release.cube.test_cube_release import released, table_of, tables
from tests.release.joint.test_named_answers import MARGINS, WORKLOADS, dense_estimates, named


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
def test_a_release_is_estimated_again_from_its_directory(name, measure, tmp_path):
    release = released(table_of(filled=0.6), named(WORKLOADS[name], measure=measure))
    release.write(tmp_path / "out")
    again = hr.reestimate(tmp_path / "out", hr.Euclidean())
    best = hr.reestimate(tmp_path / "out", hr.LeastSquares())
    for levels, table in tables(release).items():
        frame = again.frames[levels]
        assert frame["count"].equals(frame["released"].rename("count"))
        every = best.frames[levels]
        assert every["released"].sum() == table.sum()
        if levels in release.plan.whole:
            assert every["released"].to_list() == table.ravel().tolist(), "every cell, row by row"
    with pytest.raises(EstimateError, match="a workload of named cuboids is settled by method"):
        hr.reestimate(tmp_path / "out", hr.Chebyshev())
    with pytest.raises(TableError, match="these estimates have no depths; name a cuboid, such as"):
        best.level(depth=0)


@pytest.mark.parametrize("name", WORKLOADS)
def test_covariances_of_cells_are_those_of_dense_least_squares(name):
    release = released(table_of(filled=0.6), named(WORKLOADS[name]))
    best, plan = hr.reestimate(release, hr.LeastSquares()), release.plan
    shape, _, covariance = dense_estimates(release)
    asked = [(levels, cell) for levels in plan.levels for cell in {0, plan.tree.cells(levels) - 1}]
    rows = np.array([cuboid_sums(shape, levels)[cell] for levels, cell in asked])
    found = best.covariance([(plan.tree.name_of(levels), cell) for levels, cell in asked])
    assert np.allclose(found, rows @ covariance @ rows.T, rtol=1e-7, atol=1e-6)


def test_covariances_that_nobody_knows_are_refused_in_a_sentence(monkeypatch):
    survivors = named(WORKLOADS["margins and leaves"], measure=hr.Survivors())
    best = hr.reestimate(released(table_of(), survivors), hr.LeastSquares())
    with pytest.raises(EstimateError, match="were not all measured whole and estimated from the"):
        best.covariance([("o.level2", 0), ("o.level2 × d.level2", 0)])
    monkeypatch.setattr(general, "MOST_DENSE", 0)
    large = hr.reestimate(
        released(table_of(), named(WORKLOADS["a chain with margins"])), hr.LeastSquares()
    )
    with pytest.raises(EstimateError, match="covariances of so large a workload are unknown"):
        large.covariance([("o.level2", 0)])


def test_noisy_counts_from_elsewhere_are_those_of_depths():
    tree = released(table_of(), named(hr.Cuboids(MARGINS))).plan.tree
    noisy = pl.DataFrame({"noisy_count": [3.0], "variance": [1.0]})
    for key in ("o.level2", True, 1.0, 7):
        with pytest.raises(
            TableError, match=r"those of a tree's depths, 0 to 4, got .*; other cub"
        ):
            hr.Measurements.from_frames(tree, {0: noisy, key: noisy} if key != 7 else {7: noisy})
