"""The constrained optimum against SciPy's non-negative least squares on stacked matrices."""

import numpy as np
import pytest
from scipy.optimize import nnls

from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import CubeShape
from studies.constrained import Constrained
from tests.estimate.cube.dense_cubes import cuboid_sums

EXACT = 1e5


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_that_of_stacked_least_squares(seed):
    rng = np.random.default_rng(seed)
    axes = [[np.array([0, 2]), np.array([0, 3, 5])], [np.array([0, 2]), np.array([0, 1, 4])]]
    shape = CubeShape.of(axes)
    squares = [
        AxisSquares.of(axis, np.exp(rng.normal(1, 1, axis.depth + 1))) for axis in shape.axes
    ]
    leaves = rng.poisson(3, shape.shape(shape.finest)).ravel()
    noisy, rows, targets = {}, [], []
    for cuboid in shape.cuboids():
        sums = cuboid_sums(shape, cuboid)
        variance = np.prod([axis.own[k] for axis, k in zip(squares, cuboid, strict=True)])
        exact = cuboid == shape.total
        noise = 0 if exact else rng.normal(0, np.sqrt(variance), len(sums))
        table = sums @ leaves + noise
        noisy[cuboid] = table.reshape(shape.shape(cuboid))
        weight = EXACT if exact else 1 / np.sqrt(variance)
        rows.append(weight * sums)
        targets.append(weight * table)
    wanted, _ = nnls(np.vstack(rows), np.concatenate(targets), maxiter=10_000)
    assert (wanted == 0).any()
    found = Constrained.of(squares).nearest(noisy, shape)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.ravel(), wanted, atol=0.02)
