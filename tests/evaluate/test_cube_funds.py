"""What areas of a cuboid of a cube are due, and the joint errors that their intervals rest on."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.evaluate.funds import Above, Proportional, Quadratic, Seats
from hedgerow.evaluate.joint_errors import errors_of, raw_errors
from hedgerow.evaluate.share_intervals import share_intervals
from tests.estimate.cube.dense_cubes import cuboid_sums, dense_gain
from tests.made import random_tree
from tests.release.cube.test_cube_release import (
    MEASURES,
    PAIRS,
    cube,
    released,
    table_of,
    tables,
    true_table,
)

DRAWS = 5_000


def dense_covariance(plan, cuboid):
    """The covariance of a cuboid's estimates under the true noise, by dense matrices."""
    box, shape = plan.design.solver.variances_of(cuboid), plan.design.shape
    inside = [c for c in shape.cuboids() if all(a <= b for a, b in zip(c, box.finest, strict=True))]
    assert box.finest == shape.finest, "of a cube that is measured whole"
    nominal = {
        c: np.prod([s.own[k] for s, k in zip(box.squares, c, strict=True)])
        for c in inside
        if c in plan.design.noise
    }
    gains, _ = dense_gain(shape, nominal, box.public)
    sums = cuboid_sums(shape, cuboid)
    return sum(plan.design.noise[c] * (sums @ gains[c]) @ (sums @ gains[c]).T for c in nominal)


@pytest.mark.parametrize(
    ("who", "options"),
    [
        (hr.Replace(), {}),
        (hr.AddRemove(), {}),
        (hr.AddRemove(), {"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon(6)}),
        (hr.Replace(), {"invariants": [hr.Invariant("a0", "level1")]}),
    ],
    ids=["public total", "measured total", "laplace", "public level"],
)
def test_joint_errors_have_the_covariance_of_a_dense_solver(who, options):
    """Each entry within 6 standard errors of 5,000 independent draws (α below 1e-6)."""
    tree = random_tree(np.random.default_rng(3), axes=2, depth=2, widest=3)
    plan = cube(tree, neighbours=who, **options)
    for levels in plan.levels:
        if plan.is_public(levels) or levels in plan.repeats:
            continue
        cuboid = plan.design.shape.given(levels)
        drawn = errors_of(plan, levels)(DRAWS, seed=1)
        for public in filter(plan.is_public, plan.levels):  # what is known exactly has no error
            at = tuple(
                min(a, b) for a, b in zip(plan.design.shape.given(public), cuboid, strict=True)
            )
            sizes = plan.design.shape.shape(cuboid)
            sums = drawn.reshape(-1, *sizes)
            for axis, (own, k, j) in enumerate(
                zip(plan.design.shape.axes, cuboid, at, strict=True)
            ):
                start = own.descendant_start(j, k)[:-1]
                sums = np.add.reduceat(sums, start, axis=axis + 1)
            assert np.abs(sums).max() < 1e-9, (levels, public)
        exact = dense_covariance(plan, cuboid)
        own = np.diag(exact)
        error = np.sqrt((np.outer(own, own) + exact**2) / DRAWS)
        kurtosis = 2.5  # of Laplace noise, the variance of a product is up to 5/2 times a normal's
        found = drawn.T @ drawn / DRAWS
        assert (np.abs(found - exact) <= 6 * np.sqrt(kurtosis) * error + 1e-9).all(), levels
        assert np.abs(drawn.mean(axis=0)).max() <= 6 * np.sqrt(own.max() / DRAWS)


def test_errors_of_survivors_are_those_of_their_noisy_counts():
    noise = hr.DiscreteGaussian("30")
    drawn = raw_errors((2, 2), noise, 7)(DRAWS, seed=2)
    found = drawn.T @ drawn / DRAWS
    assert np.abs(found - 30 * np.eye(7)).max() <= 6 * np.sqrt(2 * 30**2 / DRAWS)


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
@pytest.mark.parametrize("levels", [(2, 0), (1, 2), (1, 1)])
@pytest.mark.parametrize("rule", [Proportional(), Quadratic(), Seats()], ids=lambda r: r.name)
def test_intervals_cover_what_is_due_as_often_as_they_say(measure, levels, rule):
    """20 releases of 6 to 30 areas each: below 86 % is a fault."""
    counts, covered = table_of(filled=0.9), []
    plan = cube(measure=measure, neighbours=hr.AddRemove(), budget=hr.Rho("1/20"))
    truth = true_table(counts, levels).ravel()
    for seed in range(20):
        found = share_intervals(
            released(counts, plan, seed), PAIRS.name_of(levels), rule, 60, draws=400, seed=seed
        )
        assert len(found) == len(truth), "row by row, listed or not"
        due = rule.allocate(truth, 60)
        low, high = found["low"].to_numpy(), found["high"].to_numpy()
        covered.append(((low <= due + 1e-9) & (due <= high + 1e-9)).mean())
    assert np.mean(covered) >= 0.86
    if not isinstance(rule, Seats):
        assert np.mean(covered) <= 0.995


def test_amounts_follow_the_released_counts_and_estimates_stand_beside_them():
    release = released(table_of(), cube())
    found = share_intervals(release, "d.level2", Proportional(), 1000.0, draws=100)
    table = tables(release)[0, 2].ravel()
    assert found["count"].to_list() == table.tolist()
    assert np.allclose(found["amount"], 1000 * table / table.sum())
    again = hr.reestimate(release, hr.LeastSquares()).level("d.level2")
    assert np.allclose(found["estimate"], again["estimate"])


def test_public_counts_are_shared_without_a_doubt():
    plan = cube(neighbours=hr.Replace(), invariants=[hr.Invariant("o", "level1")])
    found = share_intervals(released(table_of(), plan), "o.level1", Proportional(), 90.0)
    assert found["low"].equals(found["amount"].rename("low"))
    assert found["high"].equals(found["amount"].rename("high"))


def test_survivors_below_margins_share_by_their_noisy_counts():
    release = released(table_of(filled=0.1), cube(measure=hr.Survivors()))
    found = share_intervals(release, PAIRS.name_of((2, 2)), Proportional(), 5.0, draws=100)
    again = hr.reestimate(release, hr.LeastSquares()).frames[2, 2]
    assert found["estimate"].equals(again["estimate"])
    assert len(found) < PAIRS.leaves
    equal = share_intervals(release, "o.level1", Above(5, equally=True), 3.0)
    assert (equal["low"] <= equal["high"]).all()


def test_a_name_that_is_no_cuboid_is_refused():
    release = released(table_of(), cube())
    with pytest.raises(ReleaseError, match=r"no level is called 'o.level7'; there are total, d.le"):
        share_intervals(release, "o.level7", Proportional(), 1.0)
