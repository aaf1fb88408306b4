"""A cube whose shares are no product over its axes: estimated as named cuboids are, and released.

Against least squares by dense matrices, under the true variances of the noise.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.estimate.workload import general
from hedgerow.estimate.workload.observed import Observed
from hedgerow.evaluate.funds import Proportional
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.plan.make import read_plan
from hedgerow.spec.allocation import release_file_lines
from tests.estimate.workload.workloads import DenseWorkload
from tests.made import random_tree
from tests.release.cube.test_cube_release import (
    MEASURES,
    PAIRS,
    cube,
    released,
    summed,
    table_of,
    tables,
    true_table,
)

WHO = {"total public": hr.Replace(), "total measured": hr.AddRemove()}


def any_shares(rng, plan, *, some=False):
    """The plan with random shares, of some of the cuboids alone if that is wanted."""
    *others, finest = plan.measured
    kept = {finest, *(levels for levels in others if not some or rng.random() < 0.6)}
    drawn = {levels: int(rng.integers(1, 20)) for levels in plan.levels if levels in kept}
    total = sum(drawn.values())
    shares = [Fraction(drawn[k], total) if k in drawn else None for k in plan.levels]
    return replace(plan, shares=tuple(shares))


def dense(release, cuboids):
    """The oracle, and the estimates of every cuboid from what is measured of some cuboids."""
    joint, stored = release.plan.design, release.content.stored
    noise = {c: v for c, v in joint.noise.items() if c in cuboids}
    measured = {c: np.asarray(stored.measured[joint.levels(c)], dtype=float) for c in noise}
    if joint.public is not None:
        measured[joint.public] = stored.exact(joint.levels(joint.public)).astype(float)
    oracle = DenseWorkload(Observed(joint.shape, noise, joint.public))
    return oracle, oracle.estimates(measured)


def assert_dense(release, cuboids):
    """The estimates of some cuboids and their standard errors are those of dense matrices."""
    joint, (oracle, estimates) = release.plan.design, dense(release, cuboids)
    frames = hr.reestimate(release, hr.LeastSquares()).frames
    assert list(frames) == list(release.plan.levels)
    for levels, frame in frames.items():
        cuboid = joint.shape.given(levels)
        if cuboid in joint.whole:
            wanted, variance = estimates[cuboid].ravel(), oracle.variances(cuboid).ravel()
            assert np.allclose(frame["estimate"], wanted, rtol=1e-8, atol=1e-7)
            assert np.allclose(frame["standard_error"] ** 2, variance, rtol=1e-6, atol=1e-7)
            mean = joint.mean(cuboid)
            assert mean == pytest.approx(variance.mean(), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(("seed", "axes", "some"), [(1, 2, False), (2, 2, True), (3, 3, True)])
def test_estimates_and_standard_errors_are_those_of_dense_least_squares(who, seed, axes, some):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, axes=axes, depth=2, widest=3)
    plan = any_shares(rng, cube(tree, neighbours=WHO[who]), some=some)
    assert plan.design.squares is None
    counts = table_of(seed, tree)
    release = released(counts, plan, seed)
    assert_dense(release, plan.design.noise)
    found, finest = tables(release), plan.levels[-1]
    for levels, table in found.items():
        assert (table >= 0).all()
        assert np.array_equal(summed(tree, found[finest], finest, levels), table), levels
        if plan.is_public(levels):
            assert np.array_equal(table, true_table(counts, levels))


@pytest.mark.parametrize("who", WHO)
def test_survivors_are_measured_below_margins_that_are_estimated_together(who):
    plan = any_shares(np.random.default_rng(4), cube(neighbours=WHO[who], measure=hr.Survivors()))
    assert plan.design.squares is None
    release = released(table_of(), plan)
    found = tables(release)
    for levels, table in found.items():
        assert np.array_equal(summed(PAIRS, found[2, 2], (2, 2), levels), table), levels
    assert_dense(release, plan.design.whole)


def test_survivors_below_a_cuboid_without_a_share_are_refused():
    plan = cube(measure=hr.Survivors())
    first, *others = plan.measured
    left = [None if k in (first, (0, 0)) else Fraction(1, len(others)) for k in plan.levels]
    with pytest.raises(hr.PlanError, match="every level of every axis needs a share, and so does"):
        replace(plan, shares=tuple(left))


def test_survivors_over_three_axes_are_refused_whatever_the_shares():
    rng = np.random.default_rng(5)
    plan = any_shares(rng, cube(random_tree(rng, axes=3, depth=1, widest=3)))
    with pytest.raises(hr.PlanError, match="over two axes alone"):
        replace(plan, measure=hr.Survivors())


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_the_plan_reads_back_and_its_lines_give_its_shares_by_name(measure):
    plan = any_shares(np.random.default_rng(6), cube(measure=measure))
    assert read_plan(plan.tree, plan.to_dict()).hash == plan.hash
    assert '"o.level1" = "' in release_file_lines(plan)
    named = {PAIRS.name_of(k): share for k, share in zip(plan.levels, plan.shares, strict=True)}
    given = hr.Shares({name: share for name, share in named.items() if share})
    again = cube(measure=measure, allocation=given)
    assert again.hash == replace(plan, allocation="shares").hash


def test_shares_that_are_a_product_stay_with_the_closed_form():
    assert cube().design.squares is not None
    assert '"o" = [' in release_file_lines(cube())


def test_a_cube_that_is_too_large_for_it_is_told_to_give_shares_by_axis(monkeypatch):
    plan = cube()
    monkeypatch.setattr(general, "MOST_CELLS_OF_TABLES", 100)
    assert replace(plan).design.shape.cells((2, 2)) == 120
    with pytest.raises(hr.PlanError, match=r"up to 100 measured .*; or give the shares .* by axis"):
        any_shares(np.random.default_rng(7), plan)


def test_it_is_verified_and_funds_by_it_have_intervals(tmp_path):
    plan = any_shares(np.random.default_rng(8), cube())
    release = released(table_of(), plan)
    release.write(tmp_path / "out")
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))
    found = share_intervals(release, "o.level1", Proportional(), 60, draws=40)
    assert (found["low"] < found["high"]).all()
