from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.workload.even import EvenMeans
from hedgerow.estimate.workload.general import GeneralSolver
from hedgerow.estimate.workload.observed import Observed
from tests.estimate.workload.workloads import (
    KINDS,
    DenseWorkload,
    answerable,
    random_workload,
)

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def even_shape(rng):
    """Up to three axes, all families of a level of one size."""
    axes = []
    for _ in range(int(rng.integers(1, 4))):
        starts, nodes = [], 1
        for _ in range(int(rng.integers(1, 3))):
            size = int(rng.integers(2, 4))
            starts.append(np.arange(nodes + 1) * size)
            nodes *= size
        axes.append(starts)
    return CubeShape.of(axes)


def drawn(seed, kind):
    rng = np.random.default_rng(seed)
    while True:
        if (observed := random_workload(rng, kind, even_shape(rng))) is not None:
            return rng, observed


def even_means(sizes, variances, public, wanted):
    """The mean variance of each wanted cuboid."""
    even = EvenMeans(sizes, tuple(variances), public, tuple(wanted))
    means, _ = even.of(np.array([1 / variance for variance in variances.values()]))
    return dict(zip(even.wanted, means.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_mean_variances_of_even_axes_are_exact(kind, seed):
    _, observed = drawn(seed, kind)
    sizes, every = [axis.sizes for axis in observed.shape.axes], answerable(observed)
    found = even_means(sizes, observed.variances, observed.public, every)
    solver = GeneralSolver.of(observed)
    assert list(found) == every
    oracle = DenseWorkload(observed) if seed % 8 == 0 else None
    for cuboid in every:
        scale = 1e-10 * max(observed.variances.values())
        assert solver.mean(cuboid) == pytest.approx(found[cuboid], rel=1e-6, abs=scale)
        if oracle is not None:
            wanted = oracle.variances(cuboid).mean()
            assert found[cuboid] == pytest.approx(wanted, rel=1e-6, abs=scale)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_the_gradient_is_that_of_differences(kind, seed):
    _, observed = drawn(seed, kind)
    sizes, every = [axis.sizes for axis in observed.shape.axes], answerable(observed)
    even = EvenMeans(sizes, tuple(observed.variances), observed.public, every)
    precisions = 1 / np.array(list(observed.variances.values()))
    means, by_precision = even.of(precisions)
    found = by_precision(np.eye(len(even.wanted)))
    assert found.shape == (len(even.wanted), len(even.cuboids))
    for j, own in enumerate(precisions):
        step = np.zeros(len(precisions))
        step[j] = 1e-5 * own
        wanted = (even.of(precisions + step)[0] - even.of(precisions - step)[0]) / (2e-5 * own)
        scale = 1e-8 * means.max(initial=0) / own
        np.testing.assert_allclose(found[:, j], wanted, rtol=1e-4, atol=scale)


def test_measured_cuboids_are_wanted_unless_others_are():
    even = EvenMeans([(1, 2), (1, 3)], [(1, 0), (1, 1)])
    assert even.wanted == even.cuboids == ((1, 0), (1, 1))
    means, by_precision = even.of(np.array([0.0, 2.0]))
    np.testing.assert_allclose(means, [1.5, 0.5])
    np.testing.assert_allclose(by_precision(np.eye(2)), [[-2.25, -0.75], [-0.25, -0.25]])


def test_too_many_combinations_of_levels_are_refused():
    sizes = [[2**k for k in range(16)]] * 3
    EvenMeans(sizes, [(15, 15, 15)])
    with pytest.raises(EstimateError, match="more than 4,096 combinations"):
        EvenMeans([*sizes, (1, 2)], [(15, 15, 15, 1)])


def test_only_combinations_within_measured_cuboids_count():
    pairs = [tuple(int(a in pair) for a in range(13)) for pair in combinations(range(13), 2)]
    means, _ = EvenMeans([(1, 2)] * 13, pairs).of(np.ones(len(pairs)))
    # One pair tells its own residual, 12 that of each of its attributes, all 78 the total.
    np.testing.assert_allclose(means, 1 / 4 + 2 / (4 * 12) + 1 / (4 * 78))


def test_axes_that_are_nearly_even_are_nearly_right():
    rng = np.random.default_rng(4)
    starts = [np.array([0, 4]), np.append(0, np.cumsum(rng.integers(4, 7, 4)))]
    shape = CubeShape.of([starts, starts])
    measured = dict.fromkeys([(1, 0), (1, 1), (2, 1), (2, 2), (2, 0), (0, 2)], 1.0)
    observed = Observed(shape, measured, (0, 0))
    solver, every = GeneralSolver.of(observed), list(shape.cuboids())
    found = even_means([axis.sizes for axis in shape.axes], measured, (0, 0), every)
    for cuboid in every:
        assert found[cuboid] == pytest.approx(solver.mean(cuboid), rel=0.05)
    assert found[0, 0] == 0


def test_a_cuboid_that_nothing_measured_refines_is_refused():
    with pytest.raises(EstimateError, match=r"cuboid \(1, 1\) is no sum of measured cells"):
        even_means([(1, 2), (1, 2)], {(1, 0): 1.0, (0, 1): 1.0}, None, [(0, 0), (1, 1)])
    assert even_means([(1, 2), (1, 2)], {(1, 0): 1.0}, (0, 1), [(0, 1)]) == {(0, 1): 0.0}
