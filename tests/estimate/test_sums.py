"""Sums of leaves off the tree: against the dense covariance of generalised least squares."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares
from hedgerow.estimate.tree.sums import sums_of_leaves, variance_of_sums

INF = float("inf")


def random_layers(rng, *, depth=3, widest=4, public=False):
    """A tree with unequal families and variances; inner nodes may be unmeasured."""
    layers = []
    nodes = 1
    for t in range(depth + 1):
        start = None
        if t:
            start = np.append(0, np.cumsum(rng.integers(1, widest + 1, nodes)))
            nodes = int(start[-1])
        variance = rng.uniform(0.1, 1, nodes) * 10.0 ** rng.uniform(-2, 2, nodes)
        if t < depth:
            variance[rng.random(nodes) < 0.3] = INF
        noisy = rng.normal(0, 30, nodes)
        if t == 0 and public:
            noisy, variance = np.array([70]), 0.0
        layers.append(Layer(noisy, variance, start))
    return layers


def indicators(layers):
    """For each depth the 0/1 matrix (nodes, leaves)."""
    found = [np.eye(layers[-1].nodes)]
    for layer in layers[:0:-1]:
        found.insert(0, np.add.reduceat(found[0], layer.family_start[:-1], axis=0))
    return found


def dense(layers):
    """The least-squares leaves and their covariance, by linear algebra."""
    rows, values, weights = [], [], []
    exact = None
    for layer, matrix in zip(layers, indicators(layers), strict=True):
        variance = np.broadcast_to(layer.variance, layer.nodes)
        for row, value, v in zip(matrix, layer.noisy, variance, strict=True):
            if v == 0:
                exact = row, value
            elif v < INF:
                rows.append(row)
                values.append(value)
                weights.append(1 / v)
    a, w = np.array(rows), np.array(weights)
    covariance = np.linalg.inv(a.T @ (w[:, None] * a))
    leaves = covariance @ a.T @ (w * np.array(values))
    if exact is not None:
        row, value = exact
        gain = covariance @ row / (row @ covariance @ row)
        leaves = leaves + gain * (value - row @ leaves)
        covariance = covariance - np.outer(gain, row @ covariance)
    return leaves, covariance


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_sums_are_those_of_the_dense_solve(seed, public):
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, depth=int(rng.integers(0, 4)), public=public)
    assume(len(layers) > 1 or not public)
    groups = rng.integers(0, 5, layers[-1].nodes)
    found = sums_of_leaves(layers, [groups], int(groups.max()) + 1)
    leaves, covariance = dense(layers)
    member = (groups == np.arange(groups.max() + 1)[:, None]).astype(float)
    assert found.estimate == pytest.approx(member @ leaves, rel=1e-9, abs=1e-7)
    exact = np.diag(member @ covariance @ member.T)
    assert found.variance == pytest.approx(exact, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("public", [False, True], ids=["measured", "public"])
@pytest.mark.parametrize("seed", range(5))
def test_groups_that_are_nodes_have_the_variances_of_the_tree(seed, public):
    layers = random_layers(np.random.default_rng(seed), depth=4, public=public)
    final = least_squares(layers)
    for made, matrix in zip(final, indicators(layers), strict=True):
        found = sums_of_leaves(layers, [matrix.argmax(axis=0)], len(matrix))
        assert found.variance == pytest.approx(made.variance, rel=1e-12, abs=1e-12)
        assert found.estimate == pytest.approx(made.estimate, rel=1e-9, abs=1e-7)


def test_everything_has_exactly_the_variance_of_a_public_total():
    layers = random_layers(np.random.default_rng(3), depth=4, public=True)
    assert variance_of_sums(layers, np.zeros(layers[-1].nodes, dtype=np.int64)) == [0.0]


def test_only_sums_that_measurements_identify_have_a_variance():
    # Two families: in the first, two leaves are unmeasured; in the second, one is.
    leaf = np.array([INF, INF, 2.0, INF, 3.0])
    middle, top = np.array([1.0, 5.0]), Layer(np.array([9.0]), 4.0)
    layers = [
        top,
        Layer(np.array([4.0, 6.0]), middle, np.array([0, 2])),
        Layer(np.array([0.0, 0.0, 1.0, 0.0, 2.0]), leaf, np.array([0, 3, 5])),
    ]
    apart = variance_of_sums(layers, np.array([0, 1, 1, 2, 2]))
    assert apart[0] == apart[1] == INF
    assert apart[2] == pytest.approx(1 / (1 / 5 + 1 / (1 + 4)))
    together = variance_of_sums(layers, np.array([0, 0, 1, 2, 1]))
    large = leaf.copy()
    large[leaf == INF] = 1e9
    near = [*layers[:2], Layer(layers[2].noisy, large, layers[2].family_start)]
    _, covariance = dense(near)
    assert together[0] == pytest.approx(covariance[:2, :2].sum(), rel=1e-5)
    assert together[1] == pytest.approx(2 + 3)
    assert together[2] == pytest.approx(covariance[3, 3], rel=1e-5)


def test_exact_families_add_nothing_and_take_nothing_from_above():
    layers = [
        Layer(np.array([9.0]), 4.0),
        Layer(np.array([4.0, 6.0]), 0.0, np.array([0, 2])),
        Layer(np.array([1.0, 3.0, 6.0]), np.array([1.0, 3.0, 2.0]), np.array([0, 2, 3])),
    ]
    found = sums_of_leaves(layers, [np.array([0, 1, 1])], 2)
    assert found.estimate == pytest.approx([1.0, 9.0])
    assert found.variance == pytest.approx([0.75, 0.75])


def test_groups_may_have_no_leaf_and_must_be_numbers_from_0():
    layers = [Layer(None), Layer(np.array([1.0, 2.0]), 3.0, np.array([0, 2]))]
    assert variance_of_sums(layers, np.array([2, 0])).tolist() == [3.0, 0.0, 3.0]
    with pytest.raises(EstimateError, match="numbered from 0"):
        variance_of_sums(layers, np.array([-1, 0]))
    with pytest.raises(EstimateError, match="groups must have 2 entries"):
        variance_of_sums(layers, np.array([0]))
