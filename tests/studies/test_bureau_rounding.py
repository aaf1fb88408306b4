"""Rounding by stages against integer programs, and what every stage keeps."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from hedgerow.errors import EstimateError
from studies.bureau.rounding import nearest_whole, rounded, rounded_root, whole_totals


def least_l1(target, low, high, rows, columns, weight):
    """The least Σ w |y − z| over whole tables with these sums and bounds, by a solver."""
    n, k = target.shape
    sums = np.vstack([np.kron(np.eye(n), np.ones((1, k))), np.kron(np.ones((1, n)), np.eye(k))])
    return least_distance(np.eye(n * k), target, low, high, sums, [*rows, *columns], weight)


def least_distance(added, target, low, high, sums, equal, weight):
    """The least Σ w |A y − z| over whole y within bounds with given sums, by a solver."""
    z, cells = target.ravel(), low.size
    own = np.eye(len(z))
    above = np.vstack([np.hstack([added, -own]), np.hstack([-added, -own])])
    kept = np.hstack([sums, np.zeros((len(sums), len(z)))])
    found = milp(
        np.concatenate([np.zeros(cells), np.resize(weight, len(z))]),
        constraints=[
            LinearConstraint(above, -np.inf, np.concatenate([z, -z])),
            LinearConstraint(kept, equal, equal),
        ],
        integrality=np.repeat([1, 0], [cells, len(z)]),
        bounds=Bounds(
            np.append(low.ravel(), np.zeros(len(z))), np.append(high.ravel(), np.full(len(z), 1e6))
        ),
    )  # fmt: skip
    assert found.success, found.message
    return found.fun


def random_block(rng, n, k):
    """A block with a table inside its bounds, and a target that is not near it."""
    whole = rng.poisson(2.0 * rng.random((n, k)))
    low = np.maximum(whole - rng.integers(0, 4, (n, k)), 0)
    high = whole + rng.integers(0, 4, (n, k))
    target = whole + rng.normal(0, 2, (n, k))
    weight = rng.choice([0.0, 0.5, 1.0], k)
    return target, low, high, whole.sum(axis=1), whole.sum(axis=0), weight


@pytest.mark.parametrize("seed", range(60))
def test_a_block_has_the_least_distance_of_all_whole_tables(seed):
    rng = np.random.default_rng(seed)
    target, low, high, rows, columns, weight = random_block(rng, *rng.integers(1, 8, 2))
    whole = nearest_whole(target, low, high, rows, columns, weight)
    assert (whole.sum(axis=1) == rows).all()
    assert (whole.sum(axis=0) == columns).all()
    assert ((low <= whole) & (whole <= high)).all()
    best = least_l1(target, low, high, rows, columns, weight)
    assert np.sum(weight * np.abs(whole - target)) == pytest.approx(best, abs=1e-6)


def test_bounds_that_leave_no_table_are_refused():
    free = np.zeros((2, 2), dtype=np.int64)
    ones = np.array([1, 1])
    with pytest.raises(EstimateError, match="no counts that add up"):
        nearest_whole(np.zeros((2, 2)), free, free, ones, ones)
    with pytest.raises(EstimateError, match="no counts that add up"):
        nearest_whole(np.zeros((2, 2)), free, free + 9, ones, np.array([1, 2]))


@pytest.mark.parametrize("seed", range(20))
def test_totals_are_the_nearest_that_bounded_groups_can_have(seed):
    rng = np.random.default_rng(seed)
    wanted, low, high, _, columns, _ = random_block(rng, 4, 3)
    totals = whole_totals(wanted, columns, low, high)
    n, k = wanted.shape
    kept, add = np.kron(np.ones((1, n)), np.eye(k)), np.kron(np.eye(n), np.ones((1, k)))
    aim = wanted.sum(axis=1)
    best = least_distance(add, aim, low, high, kept, columns, 1.0)
    assert np.abs(totals - aim).sum() == pytest.approx(best, abs=1e-6)


def chain_of(rng, cells):
    """Stages of random cells: 3 groups, then finer and finer."""
    group = rng.integers(0, 3, cells).astype(np.int32)
    middle = group * 2 + rng.integers(0, 2, cells).astype(np.int32)
    middle = np.unique(middle, return_inverse=True)[1].astype(np.int32)
    return [group, middle, np.arange(cells, dtype=np.int32)]


def sums_by(label, table):
    out = np.zeros((len(table), int(label.max()) + 1), dtype=table.dtype)
    np.add.at(out.T, label, table.T)
    return out


@pytest.mark.parametrize("seed", range(16))
def test_a_chain_keeps_the_parents_sums_bounds_zeros_and_each_stage(seed):
    rng = np.random.default_rng(seed)
    stages = chain_of(rng, 14)
    whole = rng.poisson(1.5, (6, 14))
    there = rng.random((6, 3)) < 0.7
    whole[~there[:, stages[0]]] = 0
    by_group = np.zeros((6, 3), dtype=np.int64)
    np.add.at(by_group.T, stages[0], whole.T)
    low, high = by_group // 2, np.where(there, by_group + 2, 0)
    parent = whole.sum(axis=0)
    fitted = np.abs(whole + rng.normal(0, 1, whole.shape)) * there[:, stages[0]]
    found = rounded(fitted, parent, stages, low, high)
    assert found.min() >= 0
    assert (found.sum(axis=0) == parent).all()
    groups = np.zeros((6, 3), dtype=np.int64)
    np.add.at(groups.T, stages[0], found.T)
    assert ((low <= groups) & (groups <= high)).all()
    wanted = np.zeros((6, 3))
    np.add.at(wanted.T, stages[0], fitted.T)
    given = np.bincount(stages[0], weights=parent, minlength=3).astype(np.int64)
    totals = whole_totals(wanted, given, low, high)
    assert (found.sum(axis=1) == totals).all(), "the totals come first"
    assert (groups == nearest_whole(wanted, low, high, totals, given)).all(), "then the groups"


def test_a_root_keeps_its_total_and_bounds():
    rng = np.random.default_rng(3)
    stages = chain_of(rng, 14)
    fitted = rng.exponential(5, 14)
    low, high = np.array([0, 30, 0]), np.array([1 << 53, 1 << 53, 4])
    found = rounded_root(fitted, 91, stages, low, high)
    groups = np.bincount(stages[0], weights=found, minlength=3)
    assert found.min() >= 0
    assert found.sum() == 91
    assert ((low <= groups) & (groups <= high)).all()
    assert np.abs(found - fitted).max() < 91


def test_a_root_without_bounds_is_rounded_to_the_nearest():
    fitted = np.array([0.4, 1.6, 2.5, 0.6])
    stages = [np.zeros(4, dtype=np.int32), np.arange(4, dtype=np.int32)]
    free = np.zeros(1, dtype=np.int64)
    assert rounded_root(fitted, 5, stages, free, free + 99).tolist() in ([0, 2, 2, 1], [0, 1, 3, 1])
