"""Fieller's sets: every ratio of a fine grid, one by one, is in them or is not."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hedgerow.estimate.ratios import Ratios

Z = 1.959963984540054


def drawn(seed, pairs=4000):
    """Estimates and reaches of all sizes: also 0, also far below what is estimated."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0.0, 1.0, 30.0], (2, pairs))
    numerator, denominator = sizes * rng.normal(0.5, 1, (2, pairs))
    reach, other = rng.choice([0.0, 0.5, 2.0], (2, pairs)) * rng.uniform(0.5, 1, (2, pairs))
    return Ratios(numerator, reach, denominator, other, rng.uniform(-1, 1, pairs))


@pytest.mark.parametrize("most", [1.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_a_set_is_what_brute_force_finds(seed, most):
    given = drawn(seed)
    low, high, bounded = given.sets(most)
    assert (low <= high).all()
    assert 0.1 < bounded.mean() < 0.9
    for ratio in np.linspace(0, 1, 101) if most == 1 else np.geomspace(1e-3, 1e3, 301):
        held = given.holds(np.full(len(low), ratio))
        near = np.abs(ratio - low) + np.abs(ratio - high) < 1e-9 * (1 + ratio)
        inside = (low - 1e-9 <= ratio) & (ratio <= high * (1 + 1e-9) + 1e-9)
        assert (inside | ~held | near).all(), "a set leaves out what it should hold"
        between = (low + 1e-6 < ratio) & (ratio < high * (1 - 1e-6) - 1e-6)
        assert (held | ~between | ~bounded).all(), "an interval holds what it should not"


def test_a_set_in_one_part_is_no_larger_than_it_need_be():
    given = Ratios(*np.array([[50.0], [5.0], [1.0], [2.0], [0.0]]))
    low, high, bounded = given.sets()
    assert not bounded.any()
    assert high == np.inf
    grid = np.linspace(0, 100, 100_001)
    held = grid[np.concatenate([given.holds(np.array([ratio])) for ratio in grid])]
    assert low == pytest.approx(held.min(), abs=2e-3)


def test_no_ratio_is_told_where_both_counts_may_be_0():
    one = np.ones(1)
    for numerator, anything in ((1.0, True), (30.0, False)):
        given = Ratios(numerator * one, 2 * one, 1 * one, 2 * one, 0 * one)
        assert given.may_be_anything == anything
        assert all(given.holds(one * ratio) for ratio in np.geomspace(1e-6, 1e6, 61)) == anything


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.8])
@pytest.mark.parametrize("denominator", [0.5, 4.0, 40.0])
def test_sets_hold_the_true_ratio_as_often_as_they_say(correlation, denominator):
    """95 % of 20,000 normal pairs; α = 1e-6 for nine cases: within 0.0084."""
    rng, many = np.random.default_rng(7), 20_000
    deviations = np.array([2.0, 1.0])
    covariance = np.outer(deviations, deviations) * [[1, correlation], [correlation, 1]]
    errors = multivariate_normal(cov=covariance).rvs(many, random_state=rng)
    numerator = 0.7 * denominator
    estimates = errors + np.array([numerator, denominator])
    reach = np.broadcast_to(Z * deviations[:, None], (2, many))
    given = Ratios(estimates[:, 0], reach[0], estimates[:, 1], reach[1], np.full(many, correlation))
    assert abs(given.holds(np.full(many, 0.7)).mean() - 0.95) < 0.0084
    low, high, _ = given.sets(1.0)
    assert ((low <= 0.7) & (high >= 0.7)).mean() > 0.9416


def test_an_unbounded_share_ends_at_1():
    given = Ratios(*np.array([[0.0], [1.25**0.5], [-0.9], [1.0], [0.5 / 1.25**0.5]]))
    low, high, bounded = given.sets(1.0)
    assert (low[0], high[0], bounded[0]) == (0.0, 1.0, False)
