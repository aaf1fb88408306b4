"""What areas of a cuboid of a cube or of a named one are due, and the joint errors behind that."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.evaluate import joint_errors
from hedgerow.evaluate.funds import Above, Proportional, Quadratic, Seats
from hedgerow.evaluate.joint_errors import errors_of, raw_errors
from hedgerow.evaluate.share_intervals import share_intervals
from tests.made import random_tree
from tests.release.dense import Dense
from tests.release.pairs import (
    MEASURES,
    PAIRS,
    WORKLOADS,
    cube,
    named,
    released,
    table_of,
    tables,
    true_table,
)

DRAWS = 4_000
LAPLACE: dict[str, Any] = {"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon(6)}
RANDOM = random_tree(np.random.default_rng(3), axes=2, depth=2, widest=3)
OPTIONS: dict[str, dict[str, object]] = {
    "public total": {},
    "measured total": {"neighbours": hr.AddRemove()},
    "laplace": {"neighbours": hr.AddRemove(), **LAPLACE},
}
PLANS = {
    "public total": cube(RANDOM),
    "measured total": cube(RANDOM, neighbours=hr.AddRemove()),
    "laplace": cube(RANDOM, neighbours=hr.AddRemove(), **LAPLACE),
    "public level": cube(RANDOM, invariants=[hr.Invariant("a0", "level1")]),
    **{
        f"{name}, {words}": named(WORKLOADS[name], **options)
        for name in ("margins that overlap", "a chain with margins")
        for words, options in OPTIONS.items()
    },
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.sweep(3)
def test_joint_errors_have_the_covariance_of_a_dense_solver(plan):
    """Each entry within 6 standard errors of 4,000 independent draws (α below 1e-6)."""
    dense = Dense(released(table_of(tree=plan.tree, filled=2.0), plan))

    def sums_of(levels):
        cells = dense.leaves.select(plan.tree.columns_of(levels) or pl.lit(0))
        return dense.sums(cells.unique(maintain_order=True))

    of_all = isinstance(plan.workload, hr.Cube)  # large solutions of named ones take their time
    for levels in plan.levels if of_all else [(1, 0), plan.tables[-1]]:
        if plan.is_public(levels) or levels in plan.repeats:
            continue
        drawn, sums = errors_of(plan, levels)(DRAWS, seed=1), sums_of(levels)
        if plan.public is not None:  # what is known exactly has no error
            known = sums_of(plan.public)
            shares = np.linalg.pinv(sums.T) @ known.T  # the sums that are public, of these cells
            within = np.abs(sums.T @ shares - known.T).max(axis=0) < 1e-9
            assert np.abs(drawn @ shares[:, within]).max(initial=0) < 1e-6
        exact = sums @ dense.covariance @ sums.T
        own = np.diag(exact)
        error = np.sqrt(2.5 * (np.outer(own, own) + exact**2) / DRAWS)  # 2.5: of Laplace noise
        found = drawn.T @ drawn / DRAWS
        assert (np.abs(found - exact) <= 6 * error + 1e-9).all(), levels
        assert np.abs(drawn.mean(axis=0)).max() <= 6 * np.sqrt(own.max() / DRAWS)


def test_errors_of_survivors_are_those_of_their_noisy_counts():
    noise = hr.DiscreteGaussian("30")
    drawn = raw_errors((2, 2), noise, 7)(DRAWS, seed=2)
    found = drawn.T @ drawn / DRAWS
    assert np.abs(found - 30 * np.eye(7)).max() <= 6 * np.sqrt(2 * 30**2 / DRAWS)


DUE = [
    *((hr.Cube(), measure, levels) for measure in MEASURES for levels in [(2, 0), (1, 2), (1, 1)]),
    (WORKLOADS["margins alone"], hr.All(), (2, 0)),
]


@pytest.mark.parametrize(("workload", "measure", "levels"), DUE)
@pytest.mark.parametrize("rule", [Proportional(), Quadratic(), Seats()], ids=lambda r: r.name)
def test_intervals_cover_what_is_due_as_often_as_they_say(workload, measure, levels, rule):
    """20 releases of 6 to 30 areas each: below 86 % is a fault."""
    counts, covered = table_of(filled=0.9), []
    plan = named(workload, measure=measure, neighbours=hr.AddRemove(), budget=hr.Rho("1/20"))
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


@pytest.mark.parametrize("workload", [hr.Cube(), WORKLOADS["margins and leaves"]], ids=repr)
def test_survivors_share_by_their_noisy_counts(workload):
    release = released(table_of(filled=0.1), named(workload, measure=hr.Survivors()))
    found = share_intervals(release, PAIRS.name_of((2, 2)), Proportional(), 5.0, draws=100)
    again = hr.reestimate(release, hr.LeastSquares()).frames[2, 2]
    assert found["estimate"].equals(again["estimate"])
    assert len(found) < PAIRS.leaves
    equal = share_intervals(release, "o.level2", Above(5, equally=True), 3.0)
    assert (equal["low"] <= equal["high"]).all()


def test_a_name_that_is_no_cuboid_is_refused():
    release = released(table_of(), cube())
    with pytest.raises(ReleaseError, match=r"no level is called 'o.level7'; there are total, d.le"):
        share_intervals(release, "o.level7", Proportional(), 1.0)


def test_areas_of_no_cuboid_of_the_workload_are_refused():
    release = released(table_of(), named(WORKLOADS["margins alone"]))
    with pytest.raises(ReleaseError, match=r"the plan has no cuboid 'o\.level1' .*by cuboids of"):
        share_intervals(release, "o.level1", Proportional(), 1.0)


def test_so_many_draws_that_they_take_minutes_are_refused(monkeypatch):
    release = released(table_of(), named(WORKLOADS["margins alone"]))
    monkeypatch.setattr(joint_errors, "MOST_DRAWN", 1000)
    with pytest.raises(ReleaseError, match=r"22 noisy counts of this release 50 times, and 1,000"):
        share_intervals(release, "o.level2", Proportional(), 1.0, draws=100)
