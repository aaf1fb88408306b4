import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.estimate.cube.nominal import NominalVariances
from hedgerow.estimate.cube.variances import CubeVariances
from tests.estimate.cube.dense_cubes import axis_sums, cuboid_sums, dense_gain
from tests.estimate.cube.test_estimates import KINDS, random_cube

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_variances_under_other_noise_are_those_of_the_dense_estimator(kind, seed):
    rng = np.random.default_rng(seed)
    shape, squares, public, _, nominal = random_cube(rng, kind, unmeasured=seed % 2 == 1)
    true = {c: v * np.exp(rng.normal()) for c, v in nominal.items()}
    gains, _ = dense_gain(shape, nominal, public)
    covariance = sum((gains[c] @ gains[c].T * v for c, v in true.items()),
                     np.zeros((shape.cells(shape.finest),) * 2))  # fmt: skip
    found = NominalVariances(squares, true, public)
    scale = 1e-9 * (max(true.values(), default=1) + covariance.max() * len(covariance))
    for cuboid in shape.cuboids():
        sums = cuboid_sums(shape, cuboid)
        wanted = np.diag(sums @ covariance @ sums.T)
        cells = found.of_cells(cuboid)
        assert cells.shape == shape.shape(cuboid)
        np.testing.assert_allclose(cells.ravel(), wanted, rtol=1e-9, atol=scale)
        assert found.mean(cuboid) == pytest.approx(wanted.mean(), rel=1e-9, abs=scale)
        by_variance = (found.weights(cuboid) * found.true).sum()
        assert by_variance == pytest.approx(wanted.mean(), rel=1e-9, abs=scale)
        product = [
            (k, rng.normal(size=a.sizes[k])) for a, k in zip(shape.axes, cuboid, strict=True)
        ]
        whole = np.ones(1)
        for axis, (k, w) in zip(shape.axes, product, strict=True):
            whole = np.kron(whole, axis_sums(axis)[k].T @ w)
        size = scale * (np.abs(whole).sum() ** 2 + 1)
        wanted = whole @ covariance @ whole
        assert found.of_sum(product) == pytest.approx(wanted, rel=1e-9, abs=size)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_true_variances_that_are_the_nominal_ones_change_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    shape, squares, public, _, nominal = random_cube(rng, kind)
    found, exact = NominalVariances(squares, nominal, public), CubeVariances(squares, public)
    for cuboid in shape.cuboids():
        size = 1e-9 * max(own.final[k].max() for own, k in zip(squares, cuboid, strict=True))
        size = 1e-10 * np.prod([own.own.max() for own in squares]) + size
        np.testing.assert_allclose(found.of_cells(cuboid), exact.of_cells(cuboid), 1e-9, size)
