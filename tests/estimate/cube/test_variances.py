"""Variances under noise whose true variances are no product, against dense matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.estimate.cube import variances as module
from hedgerow.estimate.cube.variances import CubeVariances, nominal_of
from tests.estimate.cube.dense_cubes import axis_sums, cuboid_sums, dense_gain
from tests.estimate.cube.test_estimates import KINDS, random_cube

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40)


def under_other_noise(rng, kind, *, unmeasured):
    """A cube, its true variances, its variances and the dense covariance of its leaves."""
    shape, squares, public, _, nominal = random_cube(rng, kind, unmeasured=unmeasured)
    true = {c: v * np.exp(rng.normal()) for c, v in nominal.items()}
    gains, _ = dense_gain(shape, nominal, public)
    covariance = sum((gains[c] @ gains[c].T * v for c, v in true.items()),
                     np.zeros((shape.cells(shape.finest),) * 2))  # fmt: skip
    return shape, true, CubeVariances(squares, public, true), covariance


def random_product(rng, shape, levels):
    """Weights that are a product, and the same for each leaf."""
    found, leaves = [], np.ones(1)
    for axis, level in zip(shape.axes, levels, strict=True):
        weights = rng.normal(size=axis.sizes[level])
        found.append((level, weights))
        leaves = np.kron(leaves, axis_sums(axis)[level].T @ weights)
    return found, leaves


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_variances_under_other_noise_are_those_of_the_dense_estimator(kind, seed):
    rng = np.random.default_rng(seed)
    shape, true, found, covariance = under_other_noise(rng, kind, unmeasured=seed % 2 == 1)
    scale = 1e-9 * (max(true.values(), default=1) + covariance.max() * len(covariance))
    for cuboid in shape.cuboids():
        sums = cuboid_sums(shape, cuboid)
        wanted = np.diag(sums @ covariance @ sums.T)
        cells = found.of_cells(cuboid)
        assert cells.shape == shape.shape(cuboid)
        np.testing.assert_allclose(cells.ravel(), wanted, rtol=1e-9, atol=scale)
        assert found.mean(cuboid) == pytest.approx(wanted.mean(), rel=1e-9, abs=scale)
        assert found.largest(cuboid) == pytest.approx(wanted.max(), rel=1e-9, abs=scale)
        product, leaves = random_product(rng, shape, cuboid)
        other, other_leaves = random_product(rng, shape, cuboid)
        size = scale * ((np.abs(leaves).sum() + np.abs(other_leaves).sum()) ** 2 + 1)
        wanted = leaves @ covariance @ leaves
        assert found.covariance(product, product) == pytest.approx(wanted, rel=1e-9, abs=size)
        wanted = leaves @ covariance @ other_leaves
        assert found.covariance(product, other) == pytest.approx(wanted, rel=1e-9, abs=size)


@pytest.mark.parametrize("noise", ["nominal", "other"])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_listed_cells_have_the_variances_of_the_whole_table(noise, kind, seed):
    rng = np.random.default_rng(seed)
    shape, _, found, covariance = under_other_noise(rng, kind, unmeasured=seed % 2 == 1)
    if noise == "nominal":
        found = CubeVariances(found.squares, found.public)
    before, module.CHUNK = module.CHUNK, 3
    try:
        for cuboid in shape.cuboids():
            codes = [rng.integers(0, n, 11) for n in shape.shape(cuboid)]
            listed, cells = found.at(cuboid, codes), found.of_cells(cuboid)
            assert (listed.dtype, listed.shape) == (np.float64, (11,))
            scale = 1e-12 * max(cells.max(), covariance.max() * len(covariance))
            np.testing.assert_allclose(listed, cells[tuple(codes)], rtol=1e-12, atol=scale)
            if noise == "other":
                sums = cuboid_sums(shape, cuboid)
                wanted = np.diag(sums @ covariance @ sums.T).reshape(shape.shape(cuboid))
                scale *= 1e4
                np.testing.assert_allclose(listed, wanted[tuple(codes)], rtol=1e-9, atol=scale)
            assert found.at(cuboid, [code[:0] for code in codes]).shape == (0,)
    finally:
        module.CHUNK = before


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_the_sum_over_cuboids_says_what_the_closed_form_says(kind, seed):
    """One true variance that is off by more than 1e-9 is enough to leave the closed form."""
    rng = np.random.default_rng(seed)
    shape, squares, public, _, nominal = random_cube(rng, kind)
    exact, same = CubeVariances(squares, public), CubeVariances(squares, public, nominal)
    assert same.true is None
    for cuboid, variance in nominal.items():
        assert nominal_of(squares, cuboid) == pytest.approx(variance)
    if not nominal:
        return
    off = max(nominal)
    other = CubeVariances(squares, public, nominal | {off: nominal[off] * (1 + 2e-9)})
    assert other.true is not None
    for cuboid in shape.cuboids():
        size = 1e-8 * (1 + exact.of_cells(cuboid).max()) + 1e-9 * max(nominal.values())
        np.testing.assert_allclose(other.of_cells(cuboid), exact.of_cells(cuboid), 1e-7, size)


@pytest.mark.parametrize("other", [False, True])
@given(seed=SEEDS)
@few
def test_a_bound_of_the_largest_variance_is_no_less_than_it(other, seed):
    rng = np.random.default_rng(seed)
    shape, true, found, _ = under_other_noise(rng, KINDS[seed % len(KINDS)], unmeasured=False)
    if not other:
        found = CubeVariances(found.squares, found.public)
    before, module.MOST_PAIRS = module.MOST_PAIRS, 0
    try:
        for cuboid in shape.cuboids():
            most = found.of_cells(cuboid).max()
            size = 1e-9 * max(true.values(), default=1)
            assert found.largest(cuboid) >= most * (1 - 1e-9) - size
    finally:
        module.MOST_PAIRS = before
