"""The fit of a family against quadratic programs solved by other means."""

from itertools import pairwise

import cvxpy
import numpy as np
import pytest

from hedgerow.estimate.spine.marginals.fit import fit_family
from hedgerow.estimate.spine.marginals.steps import project_row
from tests.estimate.spine.random_families import random_family


def fitted(family, tolerance=1e-9, most=200_000):
    here, y = family.residuals, np.zeros_like(family.z)
    rounds = fit_family(
        (here.extents, here.runs),
        (family.row_start, family.slot),
        (here.turned(family.z), family.covariance),
        (
            family.above.astype(float),
            family.low.astype(float),
            family.high.astype(float),
            (True, 0.0),
        ),
        (tolerance, most),
        y,
    )
    return y, rounds


def optimum(family):
    """The same program, solved by an interior point method: cells (rows, W)."""
    x, above = cvxpy.Variable(family.z.shape, nonneg=True), family.above
    roots = [np.linalg.cholesky(family.precision(c)).T for c in range(len(family.blocks))]
    apart = [
        root @ cvxpy.vec(x[first:last] - family.z[first:last], order="C")
        for root, (first, last) in zip(roots, pairwise(family.row_start), strict=True)
    ]
    sums = [cvxpy.sum(x[family.slot == s], axis=0) == above[s] for s in range(len(family.above))]
    rows = cvxpy.sum(x, axis=1)
    limits = [rows >= family.low, rows <= np.minimum(family.high, above.sum())]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(cvxpy.hstack(apart))), sums + limits)
    problem.solve(cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return x.value


@pytest.mark.parametrize("seed", range(60))
def test_the_fit_is_the_optimum(seed):
    family = random_family(np.random.default_rng(seed))
    y, _ = fitted(family)
    expected = optimum(family)
    assert family.objective(y) <= family.objective(expected) * (1 + 1e-7) + 1e-7
    np.testing.assert_allclose(y, expected, atol=1e-4)
    sums = np.zeros(family.above.shape)
    np.add.at(sums, family.slot, y)
    np.testing.assert_allclose(sums, family.above, atol=1e-7)
    assert (y >= 0).all()
    assert (y.sum(axis=1) >= family.low - 1e-7).all()
    assert (y.sum(axis=1) <= family.high + 1e-7).all()


@pytest.mark.parametrize("seed", range(200))
def test_a_row_is_projected_to_the_nearest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    point, above = rng.normal(size=n) * 3, (rng.random(n) < 0.7).astype(float)
    above[rng.integers(n)] = 1
    low, high = np.sort(rng.integers(0, 8, size=2)).astype(float)
    out = np.empty(n)
    project_row(point, above, low, high, out)
    assert (out >= 0).all()
    assert (out[above == 0] == 0).all()
    assert low - 1e-9 <= out.sum() <= high + 1e-9
    free = above > 0
    apart = (out - point)[free]
    on = out[free] > 0
    total = np.maximum(point, 0)[free].sum()
    if low <= total <= high:
        np.testing.assert_array_equal(out[free], np.maximum(point[free], 0))
    elif on.any():  # an equal shift of what is positive, and no smaller one of the rest
        np.testing.assert_allclose(apart[on], apart[on][0], atol=1e-9)
        assert (-point[free][~on] >= apart[on][0] - 1e-9).all()
