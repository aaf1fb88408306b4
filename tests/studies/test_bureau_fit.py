"""The fit of one family against general solvers, and its constraints."""

import cvxpy
import numpy as np
import pytest
from scipy.optimize import nnls

from studies.bureau.fit import UNBOUNDED, UNKNOWN, Family

FREE = UNBOUNDED
GROUPS, RACES, AGES = 3, 3, 2


def family_of(rng, children, *, absent=0.3, low=0, spread=6.0, parent=None):
    """A random family of 3 groups × 3 races × 2 ages, in which some cells of the parent are 0."""
    detail = rng.poisson(spread * rng.random((GROUPS, RACES, AGES))).ravel()
    detail[0] += 1
    cells = np.flatnonzero(detail)
    group, race, age = np.unravel_index(cells, (GROUPS, RACES, AGES))
    columns = [np.zeros_like(cells), group, race, age, race * AGES + age, np.arange(len(cells))]
    at, column = 0, []
    for each in columns:
        column.append(at + each)
        at += int(each.max()) + 1
    column = np.array(column, dtype=np.int32)
    weight = np.concatenate(
        [
            np.full(int(each.max()) + 1, w)
            for each, w in zip(columns, rng.uniform(0.1, 1, 6), strict=True)
        ]
    )
    high = np.where(rng.random((children, GROUPS)) < absent, 0, FREE)
    high[0] = FREE
    lows = np.where((high > 0) & (rng.random(high.shape) < 0.3), low, 0)
    sums = np.bincount(group, weights=detail[cells], minlength=GROUPS)
    lows[:, lows.sum(axis=0) > sums] = 0
    true = rng.poisson(3, (children, at)).astype(float)
    return Family(
        parent=detail[cells].astype(float) if parent is None else np.full(len(cells), parent),
        group=group.astype(np.int32), low=lows, high=high, column=column, weight=weight,
        measured=true + rng.normal(0, 3, true.shape),
        total_low=np.full(children, -np.inf), total_high=np.full(children, np.inf),
    )  # fmt: skip


def matrix_of(family):
    """The measurements of one child as a dense matrix, scaled by its weights' roots."""
    cells = len(family.parent)
    q = np.zeros((len(family.weight), cells))
    for row in family.column:
        q[row, np.arange(cells)] = 1
    return np.sqrt(family.weight)[:, None] * q


def objective(family, x):
    q = matrix_of(family)
    return float(((x @ q.T - family.measured * np.sqrt(family.weight)) ** 2).sum())


def by_cones(family, apart=None):
    """The counts of least distance, by an interior point method that proves its duality gap.

    The distance of `objective`, or of what else is made of the cells: (children, cells).
    """
    q, groups = matrix_of(family), family.low.shape[1]
    x = cvxpy.Variable((len(family.low), len(family.parent)), nonneg=True)
    sums = x @ (family.group[:, None] == np.arange(groups)).astype(float)
    limits = [cvxpy.multiply(family.high == 0, sums) == 0, sums >= family.low]
    if family.parent.min() >= 0:
        limits.append(cvxpy.sum(x, axis=0) == family.parent)
    totals, low, high = cvxpy.sum(x, axis=1), family.total_low, family.total_high
    same = low == high
    limits += [totals[c] == low[c] for c in np.flatnonzero(same)]
    limits += [totals[c] >= low[c] for c in np.flatnonzero(np.isfinite(low) & ~same)]
    limits += [totals[c] <= high[c] for c in np.flatnonzero(np.isfinite(high) & ~same)]
    far = x @ q.T - family.measured * np.sqrt(family.weight) if apart is None else apart(x)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(far)), limits)
    problem.solve(cvxpy.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cvxpy.OPTIMAL, "the gap is not closed"
    return x.value


@pytest.mark.parametrize("seed", range(12))
def test_a_family_is_fitted_as_by_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    family = family_of(rng, 3 + seed % 3, low=seed % 2)
    if seed % 3 == 0:
        family = family.with_totals(family.measured[:, 0], 0.1)
    fitted, best = family.nearest(), by_cones(family)
    assert np.abs(fitted - best).max() < 0.02
    assert objective(family, fitted) < objective(family, best) + 1e-2


@pytest.mark.parametrize("seed", range(4))
def test_a_node_without_parent_is_fitted_as_by_non_negative_least_squares(seed):
    family = family_of(np.random.default_rng(seed), 1, absent=0, parent=UNKNOWN)
    q = matrix_of(family)
    best, _ = nnls(q, family.measured[0] * np.sqrt(family.weight))
    assert np.abs(family.nearest()[0] - best).max() < 0.01
    total = np.array([best.sum() + 5.0])
    known = family.between(total, total)
    assert abs(known.nearest().sum() - total[0]) < 0.01
    assert np.abs(known.nearest() - by_cones(known)).max() < 0.02


@pytest.mark.parametrize("seed", range(6))
def test_first_pass_totals_are_nearest_to_the_noisy_ones_that_zeros_and_bounds_allow(seed):
    rng = np.random.default_rng(100 + seed)
    family = family_of(rng, 4, low=1, absent=0.5)
    noisy = family.measured[:, 0]
    middle = family.with_totals(noisy, 0.0).total_low
    best = by_cones(family, lambda x: cvxpy.sum(x, axis=1) - noisy)
    assert np.abs(middle - best.sum(axis=1)).max() < 0.01


@pytest.mark.parametrize("seed", range(20))
def test_a_fit_adds_up_and_keeps_zeros_bounds_and_totals(seed):
    rng = np.random.default_rng(200 + seed)
    family = family_of(rng, 9, low=2, spread=20.0).with_totals(rng.normal(20, 20, 9), 0.1)
    fitted = family.nearest()
    assert fitted.min() >= 0
    assert np.allclose(fitted.sum(axis=0), family.parent, atol=1e-9)
    assert not fitted[family.high[:, family.group] == 0].any()
    member = family.group == np.arange(GROUPS)[:, None]
    assert (fitted @ member.T >= family.low - 0.01).all()
    assert (fitted.sum(axis=1) >= family.total_low - 0.01).all()
    assert (fitted.sum(axis=1) <= family.total_high + 0.01).all()
