from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import inf

from hedgerow.errors import EstimateError
from hedgerow.estimate.tree.layers import Layer, start_of
from hedgerow.estimate.tree.least_squares import (
    LeastSquares,
    combine,
    distribute_down,
    least_squares,
    upward,
)
from hedgerow.estimate.tree.sums import covariance, sums_of_leaves, variance_of_sums
from tests.estimate import rationals
from tests.estimate.dense import Dense, indicators, node_sums

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=60)


def starts(rng, depth, widest, smallest=1):
    """The family_start of each depth 0..T; families of 0 end a branch early."""
    found = [np.array([0, 1])]
    for _ in range(depth):
        sizes = rng.integers(smallest, widest + 1, found[-1][-1])
        if sizes.sum() == 0:
            break
        found.append(np.append(0, np.cumsum(sizes)))
    return found


def stacked(layers):
    """The sums of leaves to all nodes, their variances and noisy counts."""
    sums = np.vstack(node_sums([start_of(layer) for layer in layers[1:]]))
    zeros = [np.zeros(layer.nodes) for layer in layers]
    v = [layer.variance + none for layer, none in zip(layers, zeros, strict=True)]
    x = [
        none if layer.noisy is None else layer.noisy
        for layer, none in zip(layers, zeros, strict=True)
    ]
    return sums, np.concatenate(v), np.concatenate(x)


def dense(layers):
    """Estimate and covariance of all nodes: weighted least squares over the leaves."""
    sums, v, x = stacked(layers)
    found = Dense(sums, v)
    return sums @ found.gain @ x, sums @ found.covariance @ sums.T


def exact(layers):
    """The same in rational arithmetic."""
    sums, *given = stacked(layers)
    v, x = (np.array([Fraction(float(each)) for each in own]) for own in given)
    whole = sums.astype(int).astype(object)
    found = whole @ np.array(rationals.covariance(sums, v)) @ whole.T
    return (found @ (x / v)).astype(float), found.astype(float)


def flat(estimates):
    return (
        np.concatenate([made.estimate for made in estimates]),
        np.concatenate([made.variance for made in estimates]),
    )


def every_node(layers):
    return [(t, i) for t, layer in enumerate(layers) for i in range(layer.nodes)]


def some_variances(rng, kind, family_starts):
    """Variances of each depth; the deepest is measured, so that all is identified."""
    sizes = [int(start[-1]) for start in family_starts]
    own = [rng.uniform(0.1, 20, size) for size in sizes]
    depths = rng.uniform(0.1, 20, len(sizes)).tolist()
    if kind == "wild":
        own = [10 ** rng.uniform(-3, 3, size) for size in sizes]
    elif kind == "invariants":
        own = [rng.choice([0.0, 1.0, 3.0, inf], size, p=[0.2, 0.4, 0.2, 0.2]) for size in sizes]
        own[-1] = np.where(own[-1] == inf, 2.0, own[-1])
    elif kind in {"unmeasured nodes", "public root"}:
        own = [np.where(rng.random(len(v)) < 0.3, inf, v) for v in own[:-1]] + own[-1:]
        if kind == "public root":
            own[0] = np.zeros(1)
    elif kind == "per depth":
        return depths
    elif kind == "unmeasured depths":
        return [v if rng.random() < 0.5 else inf for v in depths[:-1]] + depths[-1:]
    elif kind == "unmeasured root":
        return [inf, *depths[1:]]
    elif kind == "public top":
        public = rng.integers(1, len(sizes) + 1)
        return [0.0] * public + depths[public:]
    return own


KINDS = ["per depth", "per node", "wild", "unmeasured depths", "unmeasured nodes",
         "unmeasured root", "public root", "public top", "invariants"]  # fmt: skip


def contract(test):
    """On random trees of every kind."""
    return pytest.mark.parametrize("kind", KINDS)(few(given(seed=SEEDS)(test)))


def true_counts(rng, family_starts):
    found = [rng.integers(0, 50, family_starts[-1][-1])]
    for start in family_starts[:0:-1]:
        sums = np.append(0, np.cumsum(found[-1]))
        found.append(np.diff(sums[start]))
    return found[::-1]


def layers_of(rng, kind, errors, smallest=1):
    """A tree, and true counts with errors, of variance 1, times their standard deviations."""
    family_starts = starts(rng, 3, 4, smallest)
    counts, layers = true_counts(rng, family_starts), []
    own = some_variances(rng, kind, family_starts)
    for true, v, start in zip(counts, own, family_starts, strict=True):
        noisy = true + errors(len(true)) * np.sqrt(np.where(np.isinf(v), 1e3, v))
        unmeasured = isinstance(v, float) and v == inf
        layers.append(Layer(None if unmeasured else noisy, v, start))
    return counts, layers


def random_layers(rng, kind="per node", smallest=1):
    """A tree, with noise that has the variances; exact counts agree as they are the true ones."""
    return layers_of(rng, kind, lambda size: rng.normal(0, 1, size), smallest)[1]


def assert_dense(layers, rng):
    """Estimates, variances and some covariances are those of dense least squares."""
    estimate, matrix = dense(layers)
    ours, variance = flat(least_squares(layers))
    np.testing.assert_allclose(ours, estimate, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(variance, np.diag(matrix), rtol=1e-8, atol=1e-12)
    every = every_node(layers)
    chosen = rng.choice(len(every), min(len(every), 12), replace=False)
    nodes = [every[i] for i in chosen]
    found = covariance(layers, nodes)
    np.testing.assert_allclose(found, matrix[np.ix_(chosen, chosen)], rtol=1e-8, atol=1e-10)
    assert np.array_equal(covariance(layers, nodes, upward(layers)), found)


@contract
def test_estimates_and_covariances_are_those_of_dense_least_squares(kind, seed):
    rng = np.random.default_rng(seed)
    assert_dense(random_layers(rng, kind), rng)


@few
@given(seed=SEEDS)
def test_a_node_without_children_is_a_leaf_at_any_depth(seed):
    rng = np.random.default_rng(seed)
    assert_dense(random_layers(rng, smallest=0), rng)


@contract
def test_sums_of_any_leaves_are_those_of_dense_least_squares(kind, seed):
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, kind)
    groups = rng.integers(0, 5, layers[-1].nodes)
    found = sums_of_leaves(layers, [groups], int(groups.max()) + 1)
    estimate, matrix = (each[..., -len(groups) :] for each in dense(layers))
    member = indicators(groups)
    np.testing.assert_allclose(found.estimate, member @ estimate, rtol=1e-9, atol=1e-7)
    exact = np.diag(member @ matrix[-len(groups) :] @ member.T)
    np.testing.assert_allclose(found.variance, exact, rtol=1e-8, atol=1e-9)


@given(seed=SEEDS)
@settings(max_examples=15)
def test_variances_a_trillion_apart_and_counts_of_2_to_the_40_lose_no_digits(seed):
    rng = np.random.default_rng(seed)
    layers = [
        Layer(rng.integers(0, 2**40, start[-1]), 10 ** rng.uniform(-6, 6, start[-1]), start)
        for start in starts(rng, 2, 3)
    ]
    expected, matrix = exact(layers)
    estimate, variance = flat(least_squares(layers))
    np.testing.assert_allclose(estimate, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())
    np.testing.assert_allclose(variance, np.diag(matrix), rtol=1e-9)
    scale = np.sqrt(np.outer(variance, variance))
    assert (abs(covariance(layers, every_node(layers)) - matrix) <= 1e-9 * scale).all()


@pytest.mark.parametrize(("branching", "depth"), [(2, 5), (3, 3), (10, 2), (7, 1)])
def test_equal_trees_agree_with_opendp(branching, depth):
    """OpenDP takes a b-ary tree of equal variances breadth first, and returns its leaves."""
    dp.enable_features("contrib")
    theirs = dp.t.make_consistent_b_ary_tree(branching)
    rng = np.random.default_rng(branching)
    layers = [Layer(rng.integers(-50, 1000, 1), 2.5)]
    for t in range(1, depth + 1):
        start = np.arange(branching ** (t - 1) + 1) * branching
        layers.append(Layer(rng.integers(-50, 1000, branching**t), 2.5, start))
    breadth_first = [int(x) for layer in layers for x in layer.noisy]
    found = least_squares(layers)[-1].estimate
    np.testing.assert_allclose(found, theirs(breadth_first), rtol=1e-12, atol=1e-9)


@contract
def test_children_sum_to_their_parents(kind, seed):
    layers = random_layers(np.random.default_rng(seed), kind)
    found = least_squares(layers)
    for above, below, layer in zip(found, found[1:], layers[1:], strict=False):
        sums = np.append(0, np.cumsum(below.estimate))
        np.testing.assert_allclose(np.diff(sums[layer.family_start]), above.estimate, atol=1e-8)


def changed(layers, noisy):
    return [
        Layer(None if layer.noisy is None else x, layer.variance, layer.family_start)
        for layer, x in zip(layers, noisy, strict=True)
    ]


@contract
def test_consistent_counts_come_back(kind, seed):
    layers = random_layers(np.random.default_rng(seed), kind)
    once = least_squares(layers)
    twice = least_squares(changed(layers, [made.estimate for made in once]))
    np.testing.assert_allclose(flat(twice)[0], flat(once)[0], rtol=1e-12, atol=1e-9)


@few
@given(seed=SEEDS, factor=st.floats(-3, 3))
def test_estimates_are_linear_in_the_noisy_counts(seed, factor):
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, "unmeasured depths")
    one, other = ([rng.normal(0, 20, layer.nodes) for layer in layers] for _ in range(2))
    mixed = [x + factor * y for x, y in zip(one, other, strict=True)]
    found = [flat(least_squares(changed(layers, each)))[0] for each in (one, other, mixed)]
    np.testing.assert_allclose(found[2], found[0] + factor * found[1], atol=1e-9)


@contract
def test_noise_that_averages_to_zero_leaves_the_truth(kind, seed):
    found = []
    for sign in (1, -1):
        rng, noise = np.random.default_rng(seed), np.random.default_rng(seed + 1)
        true, layers = layers_of(rng, kind, lambda n, s=sign, own=noise: s * own.normal(0, 1, n))
        found.append(flat(least_squares(layers))[0])
    np.testing.assert_allclose(np.mean(found, axis=0), np.concatenate(true), atol=1e-8)


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3) | st.just(inf)), min_size=1, max_size=6
    )
)
def test_a_chain_of_single_children_is_one_weighted_mean(measured):
    """All nodes are one quantity: each of them gets every measurement of it."""
    one_child = np.array([0, 1])
    found = least_squares([Layer(np.array([x]), v, one_child) for x, v in measured])
    weights = np.array([1 / v for _, v in measured])
    if not weights.any():
        assert all(made.variance == inf for made in found)
        return
    mean = sum(w * x for w, (x, _) in zip(weights, measured, strict=True)) / weights.sum()
    for made in found:
        assert made.estimate[0] == pytest.approx(mean, rel=1e-12, abs=1e-6)
        assert made.variance[0] == pytest.approx(1 / weights.sum(), rel=1e-12)
    nodes = [(t, 0) for t in range(len(measured))]
    layers = [Layer(np.array([x]), v, one_child) for x, v in measured]
    assert covariance(layers, nodes) == pytest.approx(1 / weights.sum(), rel=1e-12)


def family(parent, children, variances):
    """A parent (count, variance) and its children."""
    start = np.array([0, len(children)])
    return [
        Layer(np.array([float(parent[0])]), parent[1]),
        Layer(np.array(children, dtype=float), np.array(variances, dtype=float), start),
    ]


def test_one_unmeasured_child_is_what_the_others_leave():
    layers = family((10, 2.0), [3, np.nan, 4], [1, inf, 0.5])
    root, below = least_squares(layers)
    assert (root.estimate, root.variance) == (10, 2)
    assert below.estimate.tolist() == [3, 3, 4]
    assert below.variance.tolist() == [1, 3.5, 0.5]
    expected = [[2, 0, 2, 0], [0, 1, -1, 0], [2, -1, 3.5, -0.5], [0, 0, -0.5, 0.5]]
    nodes = [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert covariance(layers, nodes).tolist() == expected


def test_an_unmeasured_child_is_the_limit_of_a_barely_measured_one():
    limit = flat(least_squares(family((10, 2.0), [3, 0, 4], [1, inf, 0.5])))
    near = flat(least_squares(family((10, 2.0), [3, 1e7, 4], [1, 1e25, 0.5])))
    np.testing.assert_allclose(near, limit, rtol=1e-12)


def test_several_unmeasured_children_are_not_identified():
    layers = family((10, 2.0), [3, 99, 99], [1, inf, inf])
    root, below = least_squares(layers)
    assert (root.estimate, root.variance) == (10, 2)
    assert below.estimate.tolist() == [3, 3.5, 3.5]
    assert below.variance.tolist() == [1, inf, inf]
    assert covariance(layers, [(0, 0), (1, 0)]).tolist() == [[2, 0], [0, 1]]
    with pytest.raises(EstimateError, match="do not identify node 1 of depth 1"):
        covariance(layers, [(1, 1)])


def test_what_is_measured_below_an_unidentified_node_stands_for_itself():
    layers = [
        Layer(np.array([10.0]), 2.0),
        Layer(None, family_start=np.array([0, 2])),
        Layer(np.array([3.0, 0, 4, 0]), np.array([1, inf, 2, inf]), np.array([0, 2, 4])),
    ]
    root, middle, leaves = least_squares(layers)
    assert (root.estimate, root.variance) == (10, 2)
    assert middle.variance.tolist() == [inf, inf]
    assert leaves.variance.tolist() == [1, inf, 2, inf]
    assert leaves.estimate[[0, 2]].tolist() == [3, 4]
    assert leaves.estimate.sum() == pytest.approx(10)
    found = covariance(layers, [(2, 0), (0, 0), (2, 2)])
    assert found.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_a_tree_without_measurements_is_not_identified():
    found = least_squares([Layer(None), Layer(None, family_start=np.array([0, 2]))])
    assert [made.variance.tolist() for made in found] == [[inf], [inf, inf]]
    assert all(np.isfinite(made.estimate).all() for made in found)


def test_exact_children_decide_their_parent():
    root, below = least_squares(family((10, 2.0), [3, 4], [0, 0]))
    assert (root.estimate, root.variance) == (7, 0)
    assert below.estimate.tolist() == [3, 4]


def test_exact_counts_that_contradict_each_other_are_refused():
    with pytest.raises(EstimateError, match="depth 1: exact counts") as caught:
        least_squares(family((10, 0.0), [3, 4], [0, 0]))
    assert "10" not in str(caught.value)
    least_squares(family((7, 0.0), [3, 4], [0, 0]))
    least_squares(family((0.3, 0.0), [0.1, 0.2], [0, 0]))


def test_an_exact_child_does_not_move():
    root, below = least_squares(family((10, 1.0), [3, 4, 5], [0, 1, 1]))
    assert below.estimate[0] == 3
    assert below.variance[0] == 0
    assert below.estimate.sum() == pytest.approx(root.estimate[0])


def test_a_wild_measurement_leaves_no_rounding_behind():
    layers = family((1e17, 1e36), [3.25, 4.5], [1, 1])
    root, below = least_squares(layers)
    assert root.estimate[0] == pytest.approx(7.75, rel=1e-15)
    assert below.estimate.tolist() == pytest.approx([3.25, 4.5], rel=1e-15)


def test_variances_that_vanish_to_the_smallest_double_stay_finite():
    tiny = 5e-324
    for variances in ([tiny, tiny], [tiny, 1.0], [0, tiny]):
        found = flat(least_squares(family((10, tiny), [3, 4], variances)))
        assert np.isfinite(found).all()
        assert found[0][1:].sum() == pytest.approx(found[0][0])


@pytest.mark.parametrize("widest", [1, 5, 3000])
def test_many_families_on_all_cores_are_estimated_one_by_one(widest):
    rng = np.random.default_rng(widest)
    start = np.append(0, np.cumsum(rng.integers(0, widest + 1, 400_000 // widest)))
    nodes, cells = len(start) - 1, int(start[-1])
    x, v = rng.integers(-9, 99, nodes), rng.uniform(1, 2, nodes)
    z, below = rng.normal(0, 9, cells), rng.uniform(1, 2, cells)
    sums = np.diff(np.append(0, np.cumsum(z))[start])
    variances = np.diff(np.append(0, np.cumsum(below))[start])
    full = np.diff(start) > 0
    weight = np.where(full, v / (v + variances), 0)
    estimate, variance = combine(x, v, z, below, start)
    np.testing.assert_allclose(estimate, x + (sums - x) * weight, atol=1e-7)
    np.testing.assert_allclose(variance, np.where(full, variances * weight, v), atol=1e-7)
    share = below / np.repeat(variances, np.diff(start))
    final, known = distribute_down(estimate, variance, z, below, start)
    gap = np.repeat(estimate - sums, np.diff(start))
    np.testing.assert_allclose(final, z + gap * share, atol=1e-7)
    inherited = share**2 * np.repeat(variance, np.diff(start))
    np.testing.assert_allclose(known, inherited + below * (1 - share), atol=1e-7)


def test_one_variance_for_all_is_that_variance_in_every_cell():
    rng = np.random.default_rng(3)
    start = np.array([0, 2, 2, 5])
    x, z = rng.integers(0, 9, 3), rng.normal(0, 9, 5)
    one = combine(x, 2.0, z, 3.0, start)
    assert np.array_equal(one, combine(x, np.full(3, 2.0), z, np.full(5, 3.0), start))
    assert np.array_equal(one, combine(x.astype(float), 2, z, np.float64(3), start))
    down = distribute_down(one[0], 0.5, z, 3.0, start)
    assert np.array_equal(down, distribute_down(one[0], np.full(3, 0.5), z, np.full(5, 3.0), start))


def test_an_unmeasured_depth_is_the_sum_of_what_lies_below():
    start = np.array([0, 2, 2])
    for noisy, variance in ((None, inf), (None, 1.0), (np.array([np.nan, 7]), inf)):
        estimate, known = combine(noisy, variance, np.array([1.5, 2]), 3.0, start)
        assert estimate[0] == 3.5
        assert known.tolist() == [6, inf]


def test_inputs_are_left_as_they_are():
    layers = random_layers(np.random.default_rng(4), "invariants")
    before = [np.copy(layer.noisy) for layer in layers]
    least_squares(layers)
    assert all(np.array_equal(a, b.noisy) for a, b in zip(before, layers, strict=True))


def test_the_class_gives_the_estimates_of_the_function():
    layers = random_layers(np.random.default_rng(5))
    assert LeastSquares().name == "least-squares"
    found, expected = LeastSquares().estimate(layers), least_squares(layers)
    assert np.array_equal(flat(found), flat(expected))


def test_everything_has_exactly_the_variance_of_a_public_total():
    layers = random_layers(np.random.default_rng(3), "public root")
    assert variance_of_sums(layers, np.zeros(layers[-1].nodes, dtype=np.int64)) == [0.0]


def test_only_sums_that_measurements_identify_have_a_variance():
    # Two families: in the first, two leaves are unmeasured; in the second, one is.
    leaf = np.array([inf, inf, 2.0, inf, 3.0])
    middle, top = np.array([1.0, 5.0]), Layer(np.array([9.0]), 4.0)
    layers = [
        top,
        Layer(np.array([4.0, 6.0]), middle, np.array([0, 2])),
        Layer(np.array([0.0, 0.0, 1.0, 0.0, 2.0]), leaf, np.array([0, 3, 5])),
    ]
    apart = variance_of_sums(layers, np.array([0, 1, 1, 2, 2]))
    assert apart[0] == apart[1] == inf
    assert apart[2] == pytest.approx(1 / (1 / 5 + 1 / (1 + 4)))
    together = variance_of_sums(layers, np.array([0, 0, 1, 2, 1]))
    large = leaf.copy()
    large[leaf == inf] = 1e9
    near = [*layers[:2], Layer(layers[2].noisy, large, layers[2].family_start)]
    matrix = dense(near)[1][3:, 3:]
    assert together[0] == pytest.approx(matrix[:2, :2].sum(), rel=1e-5)
    assert together[1] == pytest.approx(2 + 3)
    assert together[2] == pytest.approx(matrix[3, 3], rel=1e-5)


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


START = np.array([0, 2])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Layer(np.zeros(3), 1.0, START), "noisy must have 2 entries"),
        (lambda: Layer(np.zeros(2, "int32"), 1.0, START), "noisy must be a NumPy array"),
        (lambda: Layer(np.zeros(2), np.ones(3), START), "variance must have 2 entries"),
        (lambda: Layer(np.zeros(2), np.ones(2, int), START), "variance must be a NumPy array"),
        (lambda: Layer(np.zeros(2), -1.0, START), "must not be negative"),
        (lambda: Layer(np.zeros(2), np.array([1, np.nan]), START), "must not be negative"),
        (lambda: Layer(np.array([1, np.nan]), 1.0, START), "noisy counts must be finite"),
        (lambda: Layer(np.array([1, np.inf]), 0.0, START), "noisy counts must be finite"),
        (lambda: Layer(None, 1.0, START), "needs its noisy counts"),
        (lambda: Layer(np.zeros(2), 1.0, np.array([1, 2])), "begin with 0"),
        (lambda: Layer(np.zeros(2), 1.0, np.array([0, 3, 2])), "not decrease"),
        (lambda: Layer(np.zeros(2), 1.0, np.array([], int)), "begin with 0"),
        (lambda: Layer(np.zeros(2), 1.0, np.array([0.0, 2])), "family_start must be a NumPy"),
        (lambda: least_squares([]), "begin with the root"),
        (lambda: least_squares([Layer(np.zeros(2), 1.0, START)]), "begin with the root"),
        (
            lambda: least_squares([Layer(None), Layer(np.zeros(2), 1.0, np.array([0, 1, 2]))]),
            "depth 1 must have one family for each node above",
        ),
        (lambda: covariance([Layer(np.zeros(1), 1.0)], [(1, 0)]), "no node 0 at depth 1"),
        (lambda: covariance([Layer(np.zeros(1), 1.0)], [(0, -1)]), "no node -1 at depth 0"),
        (lambda: combine(np.zeros(2), 1.0, np.zeros(2), 1.0, START), "noisy must have 1 entries"),
        (lambda: combine(None, 1.0, np.zeros(3), 1.0, START), "end with the number of children, 3"),
        (lambda: combine(None, 1.0, np.zeros(2), np.ones(1), START), "child_variance must have 2"),
        (
            lambda: distribute_down(np.zeros(2), 1.0, np.zeros(2), 1.0, START),
            "parent_estimate must have 1",
        ),
        (
            lambda: distribute_down(np.zeros(1), np.ones(2), np.zeros(2), 1.0, START),
            "parent_variance must",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_together_is_refused(make, words):
    with pytest.raises(EstimateError, match=words):
        make()
