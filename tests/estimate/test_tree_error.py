"""The exact error of a whole tree, against dense covariance matrices."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.tree import shapes as tree_shapes
from hedgerow.estimate.tree.error import (
    largest_variances,
    mean_variances,
    weighted_variance_and_gradient,
)
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.tables.tree import Tree
from tests.estimate.dense_trees import dense_combined, dense_gradient, dense_projected
from tests.made import fixed_axis, random_axis, random_tree

INF = float("inf")
SEEDS = st.integers(0, 10_000)


def small_tree(rng):
    axes = int(rng.integers(1, 3))
    return random_tree(rng, axes, depth=4 - axes, widest=3 if axes > 1 else 4)


def some_variances(rng, tree, *, public=True):
    own = rng.uniform(0.1, 20, tree.depth + 1)
    own[:-1][rng.random(tree.depth) < 0.3] = INF
    if public and rng.random() < 0.4:
        own[: rng.integers(0, tree.depth) + 1] = 0
    return own


@given(SEEDS)
def test_combined_variances_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = small_tree(rng)
    own = some_variances(rng, tree)
    dense = dense_combined(tree, own)
    shapes = Shapes.of(tree)
    assert mean_variances(shapes, own, combine=True) == pytest.approx(
        [v.mean() for v in dense], rel=1e-9, abs=1e-9
    )
    assert largest_variances(shapes, own, combine=True) == pytest.approx(
        [v.max() for v in dense], rel=1e-9, abs=1e-9
    )


@given(SEEDS, st.booleans())
def test_projected_variances_are_those_of_the_dense_projection(seed, unmeasured):
    rng = np.random.default_rng(seed)
    tree = small_tree(rng)
    own = rng.uniform(0.1, 20, tree.depth + 1)
    if unmeasured:
        own[1:-1][rng.random(tree.depth - 1) < 0.4] = INF
    if seed % 2:
        own[: seed % tree.depth + 1] = 0
    dense = dense_projected(tree, own)
    shapes = Shapes.of(tree)
    means = mean_variances(shapes, own, combine=False)
    assert means == pytest.approx([v.mean() for v in dense], rel=1e-9, abs=1e-12)
    largest = largest_variances(shapes, own, combine=False)
    assert largest == pytest.approx([v.max() for v in dense], rel=1e-9, abs=1e-12)


@given(SEEDS)
def test_the_largest_projected_variance_is_bounded_where_subtrees_do_not_fit(seed):
    rng = np.random.default_rng(seed)
    tree = small_tree(rng)
    own = rng.uniform(0.1, 20, tree.depth + 1)
    exact = largest_variances(Shapes.of(tree), own, combine=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_shapes, "MOST_SHAPES", 0)
        bound = largest_variances(Shapes.of(tree), own, combine=False)
    assert all(bound >= exact * (1 - 1e-12))
    assert all(bound <= np.maximum.accumulate(own) + 1e-12)


@given(SEEDS)
def test_the_gradient_of_a_projection_knows_that_some_depths_are_not_measured(seed):
    rng = np.random.default_rng(seed)
    tree = small_tree(rng)
    shapes = Shapes.of(tree)
    own, weights = rng.uniform(0.1, 5, tree.depth + 1), rng.uniform(0, 1, tree.depth + 1)
    own[seed % (tree.depth - 1) + 1] = INF
    gradient = weighted_variance_and_gradient(shapes, own, weights, combine=False)[1]
    assert gradient[np.isinf(own)] == 0
    for t in np.flatnonzero(own < INF):
        step = 1e-4 / own[t]
        values = []
        for k in (-2, -1, 1, 2):
            moved = own.copy()
            moved[t] = 1 / (1 / own[t] + k * step)
            values.append(
                float(weights @ (mean_variances(shapes, moved, combine=False) * shapes.sizes))
            )
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
        assert gradient[t] == pytest.approx(slope, rel=1e-8, abs=1e-8)


@given(SEEDS, st.booleans())
def test_the_gradient_is_the_slope_of_the_weighted_variance(seed, combine):
    rng = np.random.default_rng(seed)
    tree = small_tree(rng)
    shapes = Shapes.of(tree)
    precision = rng.uniform(0.1, 5, tree.depth + 1)
    weights = rng.uniform(0, 1, tree.depth + 1) * (rng.random(tree.depth + 1) < 0.8)

    def value(p):
        return weighted_variance_and_gradient(shapes, 1 / p, weights, combine=combine)[0]

    found, gradient = weighted_variance_and_gradient(
        shapes, 1 / precision, weights, combine=combine
    )
    means = mean_variances(shapes, 1 / precision, combine=combine)
    assert found == pytest.approx(float(weights @ (means * shapes.sizes)), rel=1e-12)
    for t in range(tree.depth + 1):
        step = 1e-4 * precision[t] * (np.arange(tree.depth + 1) == t)
        values = [value(precision + k * step) for k in (-2, -1, 1, 2)]
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step[t])
        assert gradient[t] == pytest.approx(slope, rel=1e-8, abs=1e-9 * (found + 1))


@given(SEEDS)
def test_the_gradient_of_a_combination_is_exact_where_depths_are_unmeasured_too(seed):
    rng = np.random.default_rng(seed)
    tree = small_tree(rng)
    own, weights = some_variances(rng, tree, public=False), rng.uniform(0, 1, tree.depth + 1)
    found = weighted_variance_and_gradient(Shapes.of(tree), own, weights, combine=True)[1]
    assert found == pytest.approx(dense_gradient(tree, own, weights), rel=1e-10)


def test_the_gradient_under_a_public_depth_is_the_slope_and_that_depth_has_none():
    rng = np.random.default_rng(5)
    shapes = Shapes.of(random_tree(rng, 2, 2, 4))
    weights, own = np.arange(5.0), np.array([0, 0, 3.0, 4.0, 2.0])

    def value(t, factor):
        moved = own.copy()
        moved[t] = 1 / (1 / own[t] + factor)
        return weighted_variance_and_gradient(shapes, moved, weights, combine=True)[0]

    gradient = weighted_variance_and_gradient(shapes, own, weights, combine=True)[1]
    assert list(gradient[:2]) == [0, 0]
    for t in (2, 3, 4):
        slope = (value(t, 1e-5) - value(t, -1e-5)) / 2e-5
        assert gradient[t] == pytest.approx(slope, rel=1e-7)


def test_only_children_that_are_not_measured_are_as_good_as_their_parents():
    shapes = Shapes.of(Tree([fixed_axis("geo", 3, 4, 1, 1)]))
    own = [5.0, 2.0, 3.0, INF, INF]
    for combine in (True, False):
        means = mean_variances(shapes, own, combine=combine)
        assert means[2] == means[3] == means[4] < 3
        largest = largest_variances(shapes, own, combine=combine)
        assert largest[2] == largest[4]
    value, gradient = weighted_variance_and_gradient(shapes, own, [0, 0, 0, 1, 1], combine=True)
    assert value == pytest.approx(2 * 12 * mean_variances(shapes, own, combine=True)[2])
    assert gradient[2] == gradient[3] == gradient[4] < 0


def test_counts_that_nothing_tells_have_an_infinite_variance():
    shapes = Shapes.of(Tree([fixed_axis("geo", 3, 1, 4)]))
    own = [5.0, 2.0, INF, INF]
    for combine in (True, False):
        means = mean_variances(shapes, own, combine=combine)
        assert np.isfinite(means[:3]).all()
        assert means[3] == INF
        value, gradient = weighted_variance_and_gradient(shapes, own, [1] * 4, combine=combine)
        assert value == INF
        assert gradient[3] == -INF
        assert weighted_variance_and_gradient(shapes, own, [1, 1, 1, 0], combine=combine)[0] < INF


def test_a_tree_that_is_public_throughout_has_no_error():
    shapes = Shapes.of(Tree([fixed_axis("geo", 3, 4)]))
    assert list(mean_variances(shapes, [0, 0, 0], combine=True)) == [0, 0, 0]
    value, gradient = weighted_variance_and_gradient(shapes, [0, 0, 0], [1, 1, 1], combine=True)
    assert value == 0
    assert list(gradient) == [0, 0, 0]


def test_a_tree_of_one_measured_total_has_its_variance():
    shapes = Shapes.of(Tree([fixed_axis("geo", 1)]))
    assert list(mean_variances(shapes, [4, INF], combine=True)) == [4, 4]
    value, gradient = weighted_variance_and_gradient(shapes, [4, INF], [1, 0], combine=True)
    assert (value, list(gradient)) == (4, [-16, -16])


def test_equal_subtrees_are_one_shape_whatever_the_order_of_their_children():
    sizes = [[1, 2], [2, 1], [3], [1, 2]]
    level1 = np.append(0, np.cumsum([len(s) for s in sizes]))
    level2 = np.append(0, np.cumsum([n for s in sizes for n in s]))
    axis = SimpleNamespace(
        child_start=(np.array([0, 4]), level1, level2), depth=3, size=lambda _: int(level2[-1])
    )
    levels = Shapes.of(SimpleNamespace(axes=[axis], steps=((0, 1), (0, 2), (0, 3)))).levels[0]
    assert [len(level.nodes) for level in levels] == [1, 2, 3, 1]
    assert sorted(levels[1].nodes) == [1, 3]
    assert sorted(levels[2].nodes) == [1, 3, 3]
    assert levels[3].nodes == [12]


@given(SEEDS)
def test_fingerprints_that_collide_cost_speed_and_not_exactness(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 1, 3, 4)
    own = rng.uniform(0.1, 20, 4)
    told = mean_variances(Shapes.of(tree), own, combine=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_shapes, "_mixed", lambda child, _: np.zeros(len(child), np.uint64))
        collided = Shapes.of(tree)
    assert mean_variances(collided, own, combine=True) == pytest.approx(told, rel=1e-12)


def test_sizes_are_the_numbers_of_nodes():
    tree = random_tree(np.random.default_rng(3), 2, 3, 4)
    shapes = Shapes.of(tree)
    assert list(shapes.sizes) == [tree.nodes(t) for t in range(tree.depth + 1)]
    singles = [t for t in range(1, 7) if tree.nodes(t) == tree.nodes(t - 1)]
    assert [t for t in range(1, 7) if shapes.is_single(t)] == singles


def test_more_distinct_subtrees_than_fit_are_refused_for_combinations_alone(monkeypatch):
    rng = np.random.default_rng(1)
    shapes = Shapes.of(Tree([random_axis(rng, "a", 3, 4), random_axis(rng, "b", 3, 4)]))
    monkeypatch.setattr(tree_shapes, "MOST_SHAPES", 5)
    with pytest.raises(EstimateError, match="distinct subtrees"):
        mean_variances(shapes, [1] * 7, combine=True)
    assert (mean_variances(shapes, [1] * 7, combine=False) > 0).all()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ([1, 1], "one number for each of 3 depths, got 2"),
        ([1, -1, 1], "below 0 or NaN"),
        ([1, float("nan"), 1], "below 0 or NaN"),
        ([INF, INF, INF], "none is measured"),
    ],
    ids=["short", "negative", "nan", "unmeasured"],
)
def test_numbers_that_are_no_variances_are_refused(own, message):
    shapes = Shapes.of(Tree([fixed_axis("geo", 3, 4)]))
    for combine in (True, False):
        with pytest.raises(EstimateError, match=message):
            mean_variances(shapes, own, combine=combine)


@pytest.mark.parametrize("weights", [[1, 1], [1, 1, -1], [1, 1, INF]], ids=str)
def test_numbers_that_are_no_weights_are_refused(weights):
    shapes = Shapes.of(Tree([fixed_axis("geo", 3, 4)]))
    with pytest.raises(EstimateError, match="weights"):
        weighted_variance_and_gradient(shapes, [1, 1, 1], weights, combine=True)
