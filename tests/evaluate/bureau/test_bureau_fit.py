"""The fit of one family against scipy's solvers, and its constraints."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, nnls

from hedgerow.evaluate.bureau.fit import UNBOUNDED, UNKNOWN, Family

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


def by_slsqp(family):
    """The optimum by sequential quadratic programming over the cells that may be positive."""
    n, cells = len(family.low), len(family.parent)
    q = matrix_of(family)
    open_ = np.flatnonzero((family.high[:, family.group] > 0).ravel())
    h = np.kron(np.eye(n), q.T @ q)[np.ix_(open_, open_)]
    g = ((family.measured * np.sqrt(family.weight)) @ q).ravel()[open_]
    member = (family.group == np.arange(family.low.shape[1])[:, None]).astype(float)
    rows = np.vstack([np.kron(np.eye(n), member), np.kron(np.eye(n), np.ones((1, cells)))])[
        :, open_
    ]
    low = np.concatenate([family.low.ravel(), family.total_low])
    high = np.concatenate([np.full(family.low.size, np.inf), family.total_high])
    same = low == high
    upper, lower = np.isfinite(high) & ~same, (np.maximum(low, 0) > 0) & ~same
    inside = np.vstack([-rows[upper], rows[lower]])
    edge = np.concatenate([-high[upper], low[lower]])
    equal, given = rows[same], low[same]
    if family.parent.min() >= 0:
        equal = np.vstack([equal, np.kron(np.ones((1, n)), np.eye(cells))[:, open_]])
        given = np.concatenate([given, family.parent])
    found = minimize(
        lambda x: 0.5 * x @ h @ x - g @ x, np.ones(len(open_)), jac=lambda x: h @ x - g,
        method="SLSQP", bounds=[(0, None)] * len(open_), options={"maxiter": 2000, "ftol": 1e-11},
        constraints=[
            {"type": "ineq", "fun": lambda x: inside @ x - edge, "jac": lambda _: inside},
            {"type": "eq", "fun": lambda x: equal @ x - given, "jac": lambda _: equal},
        ],
    )  # fmt: skip
    assert found.success, found.message
    out = np.zeros(n * cells)
    out[open_] = found.x
    return out.reshape(n, cells)


@pytest.mark.parametrize("seed", range(12))
def test_a_family_is_fitted_as_by_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    family = family_of(rng, 3 + seed % 3, low=seed % 2)
    if seed % 3 == 0:
        family = family.with_totals(family.measured[:, 0], 0.1)
    fitted, best = family.nearest(), by_slsqp(family)
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
    assert np.abs(known.nearest() - by_slsqp(known)).max() < 0.02


@pytest.mark.parametrize("seed", range(6))
def test_first_pass_totals_are_nearest_to_the_noisy_ones_that_zeros_and_bounds_allow(seed):
    rng = np.random.default_rng(100 + seed)
    family = family_of(rng, 4, low=1, absent=0.5)
    noisy = family.measured[:, 0]
    middle = family.with_totals(noisy, 0.0).total_low
    n, groups = family.low.shape
    sums = np.bincount(family.group, weights=family.parent, minlength=groups)
    kept = np.kron(np.ones((1, n)), np.eye(groups))
    add = np.kron(np.eye(n), np.ones((1, groups)))
    top = np.where(family.high > 0, np.inf, 1e-9).ravel()
    found = lsq_linear(
        np.vstack([add, 1e4 * kept]), np.concatenate([noisy, 1e4 * sums]),
        bounds=(family.low.ravel(), np.maximum(top, family.low.ravel() + 1e-9)), tol=1e-14,
    )  # fmt: skip
    assert np.abs(middle - add @ found.x).max() < 0.01


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
