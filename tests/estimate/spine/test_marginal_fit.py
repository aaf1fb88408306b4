"""The fit of a family against quadratic programs solved by other means."""

from itertools import pairwise

import cvxpy
import numpy as np
import pytest

from hedgerow.estimate.spine.fit.steps import project_row
from tests.estimate.spine.random_families import fit, random_family


def solved(family, constraints):
    """The program with some constraints, by an interior point method: cells (rows, W)."""
    x = cvxpy.Variable(family.z.shape, nonneg=True)
    roots = [np.linalg.cholesky(family.precision(c)).T for c in range(len(family.blocks))]
    apart = [
        root @ cvxpy.vec(x[first:last] - family.z[first:last], order="C")
        for root, (first, last) in zip(roots, pairwise(family.row_start), strict=True)
    ]
    rows = cvxpy.sum(x, axis=1)
    limits = [rows >= family.low, rows <= np.minimum(family.high, 1000 + family.low.sum())]
    square = cvxpy.Minimize(cvxpy.sum_squares(cvxpy.hstack(apart)))
    problem = cvxpy.Problem(square, [*constraints(x), *limits])
    problem.solve(cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return x.value


def optimum(family):
    """The solution with the sums of the node above."""
    slots = range(len(family.above))
    return solved(
        family, lambda x: [cvxpy.sum(x[family.slot == s], axis=0) == family.above[s] for s in slots]
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_fit_is_the_optimum(seed):
    family = random_family(np.random.default_rng(seed))
    y = fit(family)
    expected = optimum(family)
    assert family.objective(y) <= family.objective(expected) * (1 + 1e-7) + 1e-7
    np.testing.assert_allclose(y, expected, atol=1e-4)
    sums = np.zeros(family.above.shape)
    np.add.at(sums, family.slot, y)
    np.testing.assert_allclose(sums, family.above, atol=1e-7)
    assert (y >= 0).all()
    assert (y.sum(axis=1) >= family.low - 1e-7).all()
    assert (y.sum(axis=1) <= family.high + 1e-7).all()


def test_a_fit_that_stops_early_has_sums_as_near_as_the_tolerance_says():
    """The sum of all cells of a child is measured far better than a cell; tolerance 0.02."""
    farthest = []
    for seed in range(10):
        family = random_family(
            np.random.default_rng(seed), sizes=(2, 2, 40), groups=3, children=4, scale=4.0,
            bounded=False,
        )  # fmt: skip
        for block in family.blocks:
            groups = block.shape[1]
            block[:] = 20 * np.eye(groups)
            block[0] = np.linalg.inv(np.eye(groups) / 20 + 40)
        y = fit(family, 0.02)
        exact = fit(family, 1e-5)
        children = np.repeat(np.arange(4), np.diff(family.row_start))
        sums = np.bincount(children, (y - exact).sum(axis=1))
        farthest.append(np.abs(sums).max())
    assert max(farthest) < 0.08


@pytest.mark.parametrize("seed", range(200))
def test_a_row_is_projected_to_the_nearest(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    point, above = rng.normal(size=n) * 3, (rng.random(n) < 0.7).astype(float)
    above[rng.integers(n)] = 1
    low, high = np.sort(rng.integers(0, 8, size=2)).astype(float)
    out = np.empty(n)
    project_row(0, (above[None], 0), (low, high), point[None], out[None])
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


@pytest.mark.parametrize("seed", range(30))
def test_the_fit_of_a_root_is_the_optimum_with_its_total_or_without(seed):
    rng = np.random.default_rng(seed)
    family = random_family(rng, children=1)
    free = (family.above > 0).astype(float)
    total = float(family.above.sum()) if seed % 2 else np.nan
    y = fit(family, root=total)
    zeros = lambda x: [cvxpy.multiply(1 - free, x) == 0]  # noqa: E731
    with_total = lambda x: [*zeros(x), cvxpy.sum(x) == total]  # noqa: E731
    expected = solved(family, zeros if np.isnan(total) else with_total)
    np.testing.assert_allclose(y, expected, atol=1e-4)
    assert np.isnan(total) or y.sum() == pytest.approx(total, abs=1e-7)
