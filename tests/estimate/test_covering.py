import numpy as np
import pytest

from studies.rameshwar.covering import (
    covering_error,
    covering_sums,
    equal_factors_error,
    range_queries_error,
    refined_covering_sums,
    refined_error,
    refined_from_below,
    refined_variance,
    right_covering_sums,
)

TREES = [(24, (2, 3, 4)), (7, (7,)), (17, (3, 2, 3)), (29, (3, 2, 5)), (11, (5, 3)), (2, (2, 2))]


def counts_of(leaves, branching):
    """The counts of each level, summed from the leaves that exist."""
    width = int(np.prod(branching))
    levels = []
    for n in branching:
        width //= n
        levels.append(np.add.reduceat(leaves, np.arange(0, len(leaves), width)))
    return levels


def unit_noise(branching, bins):
    """Trees with one noisy node each, so that results show the weight of each node."""
    sizes = [len(level) for level in counts_of(np.zeros(bins), branching)]
    for level, size in enumerate(sizes):
        for node in range(size):
            levels = [np.zeros(s) for s in sizes]
            levels[level][node] = 1.0
            yield level, levels


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_without_noise_every_estimate_is_the_truth(tree):
    bins, branching = tree
    leaves = np.random.default_rng(1).integers(0, 50, bins)
    levels, total = counts_of(leaves, branching), int(leaves.sum())
    truth = np.cumsum(leaves)
    variances = [1.0 + i for i in range(len(branching))]
    assert (covering_sums(levels, branching, bins, total) == truth).all()
    assert (right_covering_sums(levels, branching, bins) == total - truth).all()
    found = refined_covering_sums(levels, branching, bins, total, variances)
    assert found == pytest.approx(truth)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_covering_holds_each_bin_once_in_the_widest_nodes(tree):
    bins, branching = tree
    left = [np.zeros(bins) for _ in branching]
    right = [np.zeros(bins) for _ in branching]
    for level, levels in unit_noise(branching, bins):
        left[level] += covering_sums(levels, branching, bins, 0)
        right[level] += right_covering_sums(levels, branching, bins)
    width = int(np.prod(branching))
    for level, n in enumerate(branching):
        width //= n
        cuts = np.arange(1, bins)
        assert (left[level][:-1] == cuts // width % n).all()
        behind = np.minimum(-(-cuts // (width * n)) * n, -(-bins // width)) - -(-cuts // width)
        assert (right[level][:-1] == behind).all()


def squared_errors(branching, epsilons, estimate, times, seed):
    """Mean over the cumulative counts' summed squared error, and its standard error.

    Estimates are linear in the noise, so its weights give those of all times at once.
    """
    rng = np.random.default_rng(seed)
    bins = int(np.prod(branching))
    sizes = zip(epsilons, np.cumprod(branching), strict=True)
    noise = [rng.laplace(0, 2 / epsilon, (times, size)) for epsilon, size in sizes]
    weights = [estimate(levels, branching, bins) for _, levels in unit_noise(branching, bins)]
    errors = np.concatenate(noise, axis=1) @ np.array(weights)
    for run in range(20):
        alone = estimate([level[run] for level in noise], branching, bins)
        np.testing.assert_allclose(errors[run], alone, rtol=1e-9, atol=1e-9)
    found = (errors**2).sum(axis=1)
    return found.mean(), found.std() / np.sqrt(times)


def assert_same(found, expected):
    """Within 5 standard errors (alpha 6e-7); formulas that are 5 % off fail the exact tests."""
    mean, deviation = found
    assert deviation < 0.025 * expected
    assert abs(mean - expected) < 5 * deviation


def exact_error(branching, epsilons, estimate):
    """The summed variance of the cumulative counts, from the weight of each node."""
    bins = int(np.prod(branching))
    return sum(
        8 / epsilons[level] ** 2 * (estimate(levels, branching, bins) ** 2).sum()
        for level, levels in unit_noise(branching, bins)
    )


def plain(noise, branching, bins):
    return covering_sums(noise, branching, bins, 0)


@pytest.mark.parametrize("branching", [(4, 4, 4), (16, 4), (2,) * 6], ids=str)
def test_theorem_iv_1_exactly_and_in_simulation(branching):
    epsilons = np.arange(1, len(branching) + 1) / 4
    expected = covering_error(branching, list(epsilons))
    assert exact_error(branching, epsilons, plain) == pytest.approx(expected)
    assert_same(squared_errors(branching, epsilons, plain, 4000, 7), expected)


def test_lemma_iii_1_and_iii_2_in_simulation():
    found = squared_errors((32,), [0.5], plain, 12_000, 8)
    assert_same(found, covering_error((32,), [0.5]))
    noise = np.random.default_rng(9).laplace(0, 31 / 0.5, (4000, 31))
    errors = (noise**2).sum(axis=1)
    found = errors.mean(), errors.std() / np.sqrt(len(errors))
    assert_same(found, range_queries_error(32, 0.5))


def test_theorem_iv_3_is_theorem_iv_1_with_equal_factors_and_budgets():
    equal = covering_error((5, 5, 5), [0.2] * 3)
    assert equal_factors_error(125, 5, 0.6) == pytest.approx(equal)


each_factor_and_height = pytest.mark.parametrize(("factor", "height"), [(4, 3), (2, 6), (16, 2)])


@each_factor_and_height
def test_lemma_iv_4_exactly_and_in_simulation(factor, height):
    branching, epsilon = (factor,) * height, 0.9
    variances = [8 * (height / epsilon) ** 2] * height

    def refined(noise, branching, bins):
        return refined_covering_sums(noise, branching, bins, 0, variances)

    expected = refined_error(factor, height, epsilon)
    epsilons = [epsilon / height] * height
    assert exact_error(branching, epsilons, refined) == pytest.approx(expected)
    assert_same(squared_errors(branching, epsilons, refined, 4000, 10), expected)


@each_factor_and_height
def test_proposition_b_1_from_the_weights_of_all_nodes(factor, height):
    branching, bins = (factor,) * height, factor**height
    variances = [8.0 * height**2] * height
    spread = [np.zeros(factor**i) for i in range(1, height + 1)]
    for level, levels in unit_noise(branching, bins):
        refined = refined_from_below(levels, branching, bins, variances)
        for i, part in enumerate(refined):
            spread[i] += variances[level] * part**2
    for level, found in enumerate(spread, start=1):
        assert found == pytest.approx(refined_variance(level, height, factor, 1.0))


def test_refinement_weighs_a_narrow_family_by_its_own_children():
    """Two bins of a family of three: their sum has twice a bin's variance, not three times."""
    levels = [np.array([9.0, 9.0]), np.array([0.0, 0, 0, 0, 0])]
    refined = refined_from_below(levels, (2, 3), 5, [1.0, 1.0])
    assert refined[0] == pytest.approx([9 * 3 / 4, 9 * 2 / 3])
