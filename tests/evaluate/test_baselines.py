"""The stability histogram: what it keeps, what it costs."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.baselines import stability_cut, stability_histogram
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.mechanisms import DiscreteLaplace
from tests.made import all_leaves, fixed_axis, random_counts, random_tree

BUDGET = hr.EpsilonDelta("1", "1e-8")


def table(values, leaves=None):
    """One axis whose first leaves hold these counts."""
    values = np.asarray(values, dtype=np.int64)
    tree = hr.Tree([fixed_axis("a", leaves or len(values), columns=["a"])])
    return all_leaves(tree, values)


@pytest.mark.parametrize(
    ("epsilon", "cut"), [("0.1", 384), ("1", 40), ("10", 5)], ids=["tenth", "one", "ten"]
)
def test_the_cut_is_that_of_the_paper(epsilon, cut):
    budget = hr.EpsilonDelta(epsilon, "1e-8")
    assert stability_cut(budget) == cut
    assert cut - 1 < 1 + 2 * math.log(2e8) / float(epsilon) <= cut


def test_only_positive_leaves_can_show_and_none_below_the_cut():
    rng = np.random.default_rng(5)
    counts = random_counts(rng, random_tree(rng, axes=2, depth=3))
    made = stability_histogram(counts, seeded_bits(0), budget=hr.EpsilonDelta("10", "1e-2"))
    true = set(zip(*counts.codes, strict=True))
    shown = set(zip(*made.codes, strict=True))
    assert shown
    assert shown <= true
    assert made.values.min() >= stability_cut(hr.EpsilonDelta("10", "1e-2"))
    assert made.roll_up(0)[1].sum() == made.total


def test_large_counts_get_discrete_laplace_noise_of_scale_two_over_epsilon():
    size, truth = 200_000, 1000
    made = stability_histogram(table(np.full(size, truth)), seeded_bits(1), budget=BUDGET)
    noise = made.values - truth
    assert len(noise) == size  # the cut is 480 scales away
    variance = DiscreteLaplace(Fraction(2)).noise_variance
    spread = np.sqrt(5 / size)  # kurtosis 6: sd of the squares is √5 variances
    assert abs(np.mean(noise**2) / variance - 1) < 4.9 * spread  # alpha = 1e-6
    assert abs(np.mean(noise)) < 4.9 * np.sqrt(variance / size)


def test_a_count_of_one_shows_as_often_as_delta_allows():
    budget, size = hr.EpsilonDelta("1", "1/50"), 400_000
    made = stability_histogram(table(np.ones(size)), seeded_bits(2), budget=budget)
    q, beyond = math.exp(-0.5), stability_cut(budget) - 1
    chance = q**beyond / (1 + q)
    assert chance < 0.02 / 2
    found = len(made.values) / size
    assert abs(found - chance) < 4.9 * math.sqrt(chance / size)  # alpha = 1e-6


def test_the_noise_follows_the_bits():
    counts = table(np.full(50, 100))
    first, again, other = (
        stability_histogram(counts, seeded_bits(seed), budget=BUDGET).values for seed in (3, 3, 4)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_table_of_small_counts_leaves_nothing():
    made = stability_histogram(table([1, 2, 1]), seeded_bits(5), budget=BUDGET)
    assert made.total == 0
    assert len(made.values) == 0
