import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.estimate.workload.observed import Observed
from hedgerow.plan.allocation.cube_means import CubeMeans
from hedgerow.plan.allocation.means import Along
from hedgerow.plan.allocation.objectives import Largest, Total
from hedgerow.plan.allocation.optimum import least
from tests.estimate.cube.dense_cubes import random_axis
from tests.estimate.workload.workloads import DenseWorkload

PUBLIC = [None, (0, 0), (1, 0)]


def measured_part(shares, public):
    """What the shares of cuboids that are not public sum to."""
    if public is None:
        return 1.0
    return 1 - np.prod([s[: e + 1].sum() for s, e in zip(shares, public, strict=True)])


def cuboid_shares(shape, shares, public=None):
    """The share of each cuboid that is not public."""
    exact, cost = shape.within(public), measured_part(shares, public)
    products = {c: np.prod([s[k] for s, k in zip(shares, c, strict=True)]) for c in shape.cuboids()}
    return {c: each / cost for c, each in products.items() if c not in exact and each}


def squares_of(shape, shares):
    """Least squares under the variances that shares buy, noise being priced in ρ."""
    with np.errstate(divide="ignore"):
        return [AxisSquares.of(axis, 1 / s) for axis, s in zip(shape.axes, shares, strict=True)]


def mean_variances(shape, shares, public=None, *, power=1):
    """The mean variance of each cuboid."""
    cuboids = list(shape.cuboids())
    means = CubeMeans.over(shape, cuboids, public, power).variances(np.concatenate(shares))[0]
    return dict(zip(cuboids, means, strict=True))


def axis_shares(axis, importance, power=1):
    """The shares of one axis's levels at which the sum of its mean variances is least."""
    means = Along.axis(Shapes.along(axis.child_start), power)
    return least_total(means, np.array(importance) / axis.sizes)


def least_total(means, importance):
    """The shares at which the weighted sum of squared errors is least."""
    return least(means, Total(means.costs(importance)), means.starts(importance)).shares


def measured_means(shape, public):
    exact = shape.within(public)
    cuboids = [cuboid for cuboid in shape.cuboids() if cuboid not in exact]
    return CubeMeans.over(shape, cuboids, public, 1)


def two_axes(seed):
    rng = np.random.default_rng(seed)
    return rng, CubeShape.of([random_axis(rng, 3, 4), random_axis(rng, 2, 3)])


def random_shares(rng, shape):
    return [rng.dirichlet(np.ones(axis.depth + 1)) for axis in shape.axes]


@pytest.mark.parametrize("public", PUBLIC)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_mean_variances_are_those_of_a_dense_solver_that_spends_all_of_the_budget(
    public, power, seed
):
    rng, shape = two_axes(seed)
    shares = random_shares(rng, shape)
    each = cuboid_shares(shape, shares, public)
    assert sum(each.values()) == pytest.approx(1, rel=1e-12)
    variances = {cuboid: share**-power for cuboid, share in each.items()}
    dense = DenseWorkload(Observed(shape, variances, public))
    for cuboid, found in mean_variances(shape, shares, public, power=power).items():
        wanted = dense.variances(cuboid).mean()
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_axis_shares_are_as_good_as_a_general_optimiser_finds(power, seed):
    rng = np.random.default_rng(seed)
    axis = AxisShape.of(random_axis(rng, 3, 5))
    importance = rng.exponential(size=axis.depth + 1)
    cube = CubeShape((axis,))

    def error(logs):
        found = mean_variances(cube, [softmax(logs)], power=power)
        return sum(w * found[k,] for k, w in enumerate(importance))

    best = min(
        minimize(error, rng.normal(size=axis.depth + 1), method="Nelder-Mead", tol=1e-10).fun
        for _ in range(4)
    )
    shares = axis_shares(axis, importance, power=power)
    assert shares.sum() == pytest.approx(1)
    floor = np.log(np.maximum(shares, 1e-300))
    assert error(floor) <= best * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_product_of_the_axes_optima_is_optimal_among_all_shares_of_cuboids(seed):
    """Kiefer: at the optimum of a convex problem its directional derivatives are even."""
    rng, shape = two_axes(seed)
    importance = [rng.exponential(size=axis.depth + 1) + 0.1 for axis in shape.axes]
    shares = [axis_shares(a, w) for a, w in zip(shape.axes, importance, strict=True)]
    squares = squares_of(shape, shares)
    each = cuboid_shares(shape, shares)
    slope = 0
    for c in shape.cuboids():
        means = [own.coefficients(k, k)[0].mean(axis=0) for own, k in zip(squares, c, strict=True)]
        slope += importance[0][c[0]] * importance[1][c[1]] * np.multiply.outer(*means)
    by_share = {c: slope[c] / share**2 for c, share in each.items()}  # -d error / d share
    assert min(by_share.values()) == pytest.approx(max(by_share.values()), rel=1e-4)


@pytest.mark.parametrize("public", PUBLIC[1:])
def test_product_shares_with_a_public_cuboid_are_no_worse_than_nearby_ones(public):
    rng, shape = two_axes(3)
    importance = {c: float(rng.exponential()) for c in shape.cuboids()}

    def error(shares):
        found = mean_variances(shape, shares, public)
        return sum(w * found[c] for c, w in importance.items())

    means = measured_means(shape, public)
    wanted = np.array([importance[c] / shape.cells(c) for c in means.cuboids])
    shares = np.split(least_total(means, wanted), means.ends)
    least = error(shares)
    for _ in range(60):
        moved = [s * np.exp(rng.normal(0, 0.05, len(s))) for s in shares]
        assert error([s / s.sum() for s in moved]) >= least * (1 - 1e-6)


@pytest.mark.parametrize("public", PUBLIC[:2])
def test_level_shares_make_the_cuboids_alike(public):
    children = [np.array([0, 12]), np.arange(0, 61, 5), np.arange(0, 361, 6)]
    shape = CubeShape.of([children, children])
    means = measured_means(shape, public)
    ones = np.ones(len(means.cuboids))
    shares = np.split(least(means, Largest(ones), means.starts(ones)).shares, means.ends)
    found = mean_variances(shape, shares, public)
    errors = np.sqrt([v for c, v in found.items() if c != public])
    assert errors.max() / errors.min() <= 1.05


def test_what_is_public_costs_nothing():
    shares = [np.array([0.25, 0.75]), np.array([0.5, 0.5])]
    assert measured_part(shares, None) == 1
    assert measured_part(shares, (0, 0)) == 1 - 0.125
    assert measured_part(shares, (1, 0)) == 1 - 0.5


def test_a_level_of_no_use_gets_nothing():
    axis = AxisShape.of([np.array([0, 2]), np.array([0, 1, 3])])
    shares = axis_shares(axis, [0, 0, 1])
    assert shares[2] > 0
    weights = squares_of(CubeShape((axis,)), [shares])[0].coefficients(2, 2)[0].mean(axis=0)
    assert (weights[shares == 0] <= 1e-8).all()
