"""A cube's noisy counts estimated again: every measured cell, beside the released counts."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release.answers.questions import answers_of
from tests.estimate.cube.dense_cubes import cuboid_sums, dense_gain
from tests.made import random_tree
from tests.release.cube.test_cube_release import (
    MEASURES,
    PAIRS,
    cube,
    dense,
    released,
    table_of,
    tables,
    true_table,
)


def uneven(seed, axes=2):
    """A random cube, with levels of only children where chance makes them."""
    return random_tree(np.random.default_rng(seed), axes=axes, depth=2, widest=3)


def dense_solution(release):
    """For each cuboid the estimates and covariance of all cells, by dense matrices."""
    plan, stored = release.plan, release.content.stored
    shape = plan.design.shape
    variances = {c: v for c, v in plan.design.noise.items() if c in plan.design.whole}
    gains, inside = dense_gain(shape, variances, plan.design.public)
    leaves = sum(
        gains[c] @ stored.measured[plan.design.levels(c)].astype(float)
        for c in variances
        if c in gains
    )
    if plan.design.public is not None:
        levels = plan.design.levels(plan.design.public)
        leaves = leaves + gains["public"] @ stored.exact(levels).astype(float)
    return leaves, inside


@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()], ids=["public", "measured"])
@pytest.mark.parametrize("seed", range(3))
def test_least_squares_of_every_cuboid_are_those_of_a_dense_solver(who, seed):
    tree = uneven(seed, axes=2 + seed % 2)
    release = released(table_of(seed, tree), cube(tree, neighbours=who), seed=seed)
    again = hr.reestimate(release, hr.LeastSquares())
    leaves, covariance = dense_solution(release)
    assert list(again.frames) == list(release.plan.levels)
    for levels, frame in again.frames.items():
        sums = cuboid_sums(release.plan.design.shape, release.plan.design.shape.given(levels))
        assert len(frame) == tree.cells(levels)
        assert np.allclose(frame["estimate"], sums @ leaves, rtol=1e-9, atol=1e-7)
        variance = np.diag(sums @ covariance @ sums.T)
        assert np.allclose(frame["standard_error"] ** 2, variance, rtol=1e-9, atol=1e-7)
        assert (frame["low"] <= frame["high"]).all()


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_released_counts_stand_beside_the_estimates_of_their_own_cells(measure):
    release = released(table_of(), cube(measure=measure))
    again = hr.reestimate(release, hr.LeastSquares())
    for levels, table in tables(release).items():
        frame, name = again.frames[levels], PAIRS.name_of(levels)
        listed = release.level(name)
        columns = PAIRS.columns_of(levels)
        positive = frame.filter(pl.col("released") > 0)
        assert positive["released"].to_list() == listed["count"].to_list()
        assert positive.select(columns).equals(listed.select(columns))
        assert np.allclose(positive["estimate"], listed["estimate"])
        assert np.allclose(positive["standard_error"], listed["standard_error"])
        assert positive.select("low", "high").equals(listed.select("low", "high"))
        assert frame["released"].sum() == table.sum()


def test_of_survivors_those_cells_have_estimates_that_lie_below_positive_margins():
    release = released(table_of(filled=0.1), cube(measure=hr.Survivors()))
    plan, found = release.plan, tables(release)
    nodes = answers_of(plan).cells(release.content.stored, [(2, 2)])[2, 2]
    by_row, by_column = found[2, 1], found[1, 2]
    parents = [axis.ancestors(2, 1) for axis in plan.design.shape.axes]
    below = (by_row[:, parents[1]] > 0) & (by_column[parents[0]] > 0)
    assert 0 < below.sum() < below.size
    assert np.array_equal(np.stack(nodes.codes, axis=1), np.argwhere(below))
    assert (nodes.variance == plan.by_levels[2, 2].mechanism.noise_variance).all()
    noisy = release.content.stored.measured[2, 2]
    assert np.array_equal(np.sort(nodes.estimate), np.sort(noisy))
    truth = true_table(release_table(), (2, 2))[nodes.codes]
    sd = np.sqrt(nodes.variance[0])
    assert np.abs(nodes.estimate - truth).max() < 6 * sd, "each noisy count at its own cell"


def release_table():
    return table_of(filled=0.1)


def test_the_releases_own_method_makes_it_again():
    for measure in MEASURES:
        release = released(table_of(), cube(measure=measure))
        again = hr.reestimate(release, hr.Euclidean())
        for levels, table in tables(release).items():
            frame = again.frames[levels]
            assert (frame["count"] == frame["released"]).all()
            assert frame["count"].sum() == table.sum()


@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()], ids=["public", "measured"])
def test_covariances_of_cells_are_those_of_a_dense_solver(who):
    tree = uneven(7)
    release = released(table_of(7, tree), cube(tree, neighbours=who))
    again = hr.reestimate(release, hr.LeastSquares())
    shape, (_, covariance) = release.plan.design.shape, dense_solution(release)
    rng = np.random.default_rng(1)
    chosen = [(levels, int(rng.integers(tree.cells(levels)))) for levels in release.plan.levels]
    rows = np.array([cuboid_sums(shape, shape.given(levels))[row] for levels, row in chosen])
    found = again.covariance([(tree.name_of(levels), row) for levels, row in chosen])
    assert np.allclose(found, rows @ covariance @ rows.T, rtol=1e-9, atol=1e-9)


def test_estimates_of_a_cube_are_named_by_their_cuboids_and_written_so(tmp_path):
    again = hr.reestimate(released(table_of(), cube()), hr.LeastSquares())
    assert again.level("d.level1 x o.level2").equals(again.frames[2, 1])
    again.write(tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"cuboid=0-0.parquet", "cuboid=2-1.parquet", "estimate.json"} <= names
    assert pl.read_parquet(tmp_path / "out" / "cuboid=2-1.parquet").equals(again.frames[2, 1])
    with pytest.raises(
        hr.TableError, match=r"these estimates have no depths; name a cuboid, such as 'o"
    ):
        again.level(depth=1)
    with pytest.raises(hr.TableError, match=r"no cuboid is called 'o.level9'; there are total, "):
        again.level("o.level9")


def test_what_cannot_be_on_a_cube_is_refused_in_one_sentence():
    release = released(table_of(), cube(measure=hr.Survivors()))
    with pytest.raises(hr.EstimateError, match='a cube is settled by method = "euclidean"'):
        hr.reestimate(release, hr.Sparse())
    again = hr.reestimate(release, hr.LeastSquares())
    assert "of others the noisy counts" in again.described["claim"]
    name = PAIRS.name_of((2, 2))
    with pytest.raises(hr.EstimateError, match="were not all measured whole"):
        again.covariance([(name, 0), (name, 1)])
    told = release.plan.design.solver.variances_of
    assert told((2, 1)) is not told((1, 2)), "the two margins rest on different measurements"
    with pytest.raises(hr.EstimateError, match="estimated from the same noisy counts"):
        again.covariance([(PAIRS.name_of((2, 1)), 0), (PAIRS.name_of((1, 2)), 0)])
    with pytest.raises(hr.EstimateError, match="has 3 cells, none is 3"):
        again.covariance([("o.level1", 3)])


def test_cells_that_were_not_measured_cannot_be_listed():
    release = released(table_of(filled=0.1), cube(measure=hr.Survivors()))
    stored, nodes = release.content.stored, dict(release.content.nodes)
    below = dense(PAIRS, (2, 2), nodes[2, 2].codes, nodes[2, 2].counts)
    measured = answers_of(release.plan).cells(stored, [(2, 2)])[2, 2]
    never = np.argwhere(dense(PAIRS, (2, 2), measured.codes, 1) == 0)[0]
    assert below[tuple(never)] == 0
    stray = tuple(np.array([code], dtype=np.int32) for code in never)
    nodes[2, 2] = type(nodes[2, 2]).exact(stray, np.array([1]))
    with pytest.raises(hr.ReleaseError, match="lists cells that were not measured"):
        answers_of(release.plan).cells(replace(stored, nodes=nodes), release.plan.levels)
