"""Chi-square tests at α = 1e-6 under a pinned key, with 5 % too little and too much rejected."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from hedgerow.noise.inversion import Inversion, inversion
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.noise.rejection import Rejection, rejection, sampler
from tests.noise.reference import KEY, draw_in_chunks, fits

N = 2_000_000
ENOUGH = 500_000
"""A variance that is 5 % off moves the statistic of 60 bins by 300 to 600 there; it is about 70."""


def binned(law, bins=60):
    """About equally likely bins of a law, from its certified thresholds."""
    table = inversion(law)
    cumulative = table.thresholds / 2.0**64
    places = np.unique(np.searchsorted(cumulative, np.arange(1, bins) / bins))
    probabilities = np.diff(cumulative[places], prepend=0, append=1)
    return table.lowest + places, probabilities


def scaled(mechanism, factor):
    """The same kind of mechanism with about that much more variance."""
    if isinstance(mechanism, DiscreteGaussian):
        return DiscreteGaussian(mechanism.sigma2 * factor)
    return DiscreteLaplace(mechanism.parameter * (1 + (factor - 1) / 2))


@pytest.mark.parametrize(
    ("mechanism", "method"),
    [
        *((DiscreteGaussian(s), inversion) for s in ["1/3", "1", "5", "456.62", "1e4", "1e6"]),
        *((DiscreteLaplace(s), inversion) for s in ["1/2", "1", "20"]),
        (DiscreteGaussian(10**6), rejection),
        (DiscreteGaussian(4 * 10**7), rejection),
        (DiscreteLaplace(1000), rejection),
    ],
    ids=lambda given: getattr(given, "__name__", None) or repr(given),
)
def test_draws_follow_the_law_and_five_per_cent_off_is_noticed(mechanism, method):
    edges, probabilities = binned(mechanism.law)

    def accepted(factor):
        law = scaled(mechanism, factor).law
        return fits(draw_in_chunks(method(law), KEY.stream(2026), ENOUGH), edges, probabilities)

    assert accepted(Fraction(1))
    assert not accepted(Fraction(95, 100))
    assert not accepted(Fraction(105, 100))


@pytest.mark.parametrize("sigma2", [10**12, 2**100])
def test_a_very_wide_gaussian_follows_the_normal_law(sigma2):
    """Between the discrete law and the continuous one with half a unit added: below 1/sigma2."""
    edges_of_law = norm.ppf(np.arange(1, 60) / 60)
    edges = np.round(edges_of_law * sigma2**0.5).astype(np.int64)
    probabilities = np.diff(norm.cdf((edges + 0.5) / sigma2**0.5), prepend=0, append=1)
    for factor, expected in [
        (Fraction(1), True),
        (Fraction(95, 100), False),
        (Fraction(105, 100), False),
    ]:
        chosen = sampler(DiscreteGaussian(sigma2 * factor).law)
        assert isinstance(chosen, Rejection)
        assert fits(draw_in_chunks(chosen, KEY.stream(7), ENOUGH), edges, probabilities) is expected


@pytest.mark.parametrize("mechanism", [DiscreteGaussian(10**12), DiscreteLaplace(10**6)], ids=repr)
def test_the_low_digits_of_a_wide_law_are_uniform(mechanism):
    draws = draw_in_chunks(sampler(mechanism.law), KEY.stream(8), N)
    for modulus in (2, 3, 64):
        assert fits(draws % modulus, np.arange(modulus - 1), np.full(modulus, 1 / modulus))


def test_a_wide_laplace_follows_its_closed_form():
    scale = 10**6
    edges = np.arange(-4 * scale, 4 * scale, scale // 5)
    q = np.exp(-1 / scale)
    cumulative = np.where(edges < 0, q ** (-edges) / (1 + q), 1 - q ** (edges + 1.0) / (1 + q))
    probabilities = np.diff(cumulative, prepend=0, append=1)
    for factor, expected in [("1", True), ("0.975", False), ("1.025", False)]:
        law = DiscreteLaplace(scale * Fraction(factor)).law
        draws = draw_in_chunks(rejection(law), KEY.stream(9), ENOUGH)
        assert fits(draws, edges, probabilities) is expected


def test_neighbouring_cells_are_uncorrelated():
    for law in (DiscreteGaussian(5).law, DiscreteGaussian(10**12).law):
        draws = draw_in_chunks(sampler(law), KEY.stream(10), N).astype(float)
        draws /= draws.std()
        for lag in (1, 2, 3):
            assert abs(np.mean(draws[lag:] * draws[:-lag])) < 5 / N**0.5
        assert abs(draws.mean()) < 5 / N**0.5


def test_narrow_laws_are_inverted_and_wide_ones_rejected():
    assert isinstance(sampler(DiscreteGaussian(4 * 10**7).law), Inversion)
    assert isinstance(sampler(DiscreteGaussian(10**8).law), Rejection)
    assert isinstance(sampler(DiscreteLaplace(1400).law), Inversion)
    assert isinstance(sampler(DiscreteLaplace(1500).law), Rejection)
