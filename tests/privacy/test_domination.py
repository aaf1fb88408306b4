"""Gaussian noise dominated by continuous noise: proved bounds of changes told by their norms."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError
from hedgerow.privacy.accountant import domination
from hedgerow.privacy.accountant.domination import Domination, Gaussians, gaussian_delta_above
from tests.privacy.losses import pair
from tests.privacy.oracles_domination import dominated_delta, gaussian_delta

EPSILONS = (-1.0, 0.0, 0.3, 1.0, 3.0, 8.0)


def alone(sigma2, squared, times=1):
    return Domination(((Gaussians(Fraction(sigma2), Fraction(squared), times),),))


def of_shifts(sigma2, shifts):
    """The exact profile of independent noise on counts that move so."""
    return hr.compose([(hr.DiscreteGaussian(sigma2), 1, abs(shift)) for shift in shifts])


EXTREMES = [1e-12, 1e-6, math.nextafter(1e-3, 0), 1e-3, 0.1, 1.0, 300.0, 1e4]


@pytest.mark.parametrize("seed", range(8))
def test_the_gaussian_profile_is_bounded_from_above_and_closely(seed):
    """At 5,000 points: μ from 1e-12 to 10,000, ε below 0, at 0, and to where δ is 1e-300."""
    random = np.random.default_rng(seed)
    for mu in [EXTREMES[seed], *10 ** random.uniform(-12, 4, 7)]:
        places = [*random.uniform(-8, 37, 60), 0.0, 36.9, -mu / 2]
        near = [mu * mu / 2 + mu * place for place in places]
        epsilons = np.array([*near, *(-abs(e) / 3 for e in near[::4]), 0.0, 1e-300, -1e-300])
        for epsilon, found in zip(epsilons, gaussian_delta_above(epsilons, mu), strict=True):
            true = gaussian_delta(epsilon, mu)
            assert found >= min(true, 1)
            assert found <= true * (1 + mp.mpf("2e-7")) + mp.mpf("1.1e-300")


THEOREM = [("2/5", 1, 1), ("2/5", 9, 1), ("1/2", 4, 3), (1, 4, 2), ("7/2", 9, 1), (20, 1, 12)]


@pytest.mark.parametrize(("sigma2", "squared", "times"), THEOREM)
def test_the_bound_is_the_theorem_of_the_docstring(sigma2, squared, times):
    """The least over s² of e^C δ_μ(ε - 2C), each part as it is written there."""
    bound = alone(sigma2, squared, times)
    for epsilon in (0.0, 0.7, 2.0, 6.0):
        true = float(dominated_delta([(Fraction(sigma2), squared)] * times, epsilon))
        assert true <= bound.delta(epsilon) * (1 + 1e-15)
        assert bound.delta(epsilon) == pytest.approx(true, rel=1e-6)


def test_the_theorem_is_asked_where_its_doubt_matters():
    """Without C the first of `THEOREM` would be 2 % less."""
    variance, epsilon = 0.4 - 0.25, 0.7
    assert alone("2/5", 1).delta(epsilon) > 1.02 * gaussian_delta(epsilon, variance**-0.5)


@pytest.mark.parametrize(("uses", "epsilon"), [(3, 1e-9), (500, 0.3), (20_000, 50.0)])
def test_the_chances_of_many_pairs_are_rounded_up(uses, epsilon):
    found = domination._binomial(uses, epsilon)
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        for k in {0, 1, uses // 2, uses - 1, uses}:
            true = mp.binomial(uses, k) * p**k * (1 - p) ** (uses - k)
            if true > 1e-290:
                assert true <= found[k] <= true * (1 + mp.mpf("3e-8"))


@pytest.mark.parametrize("spread", [Fraction(1, 4), Fraction(1, 2), Fraction(1)])
def test_a_rounded_gaussian_has_the_discrete_law_within_the_stated_factor(spread):
    """The one coordinate of the proof, by the trapezoidal rule (exact to 1e-14 for such y)."""
    sigma2, s2 = 3.0, float(spread)
    q = math.exp(-2 * math.pi**2 * s2)
    factor = (1 + 2 * q / (1 - q)) / (1 - 2 * q / (1 - q))
    y, z = np.arange(-30, 30, 0.01), np.arange(-6.0, 7.0)
    whole = np.arange(-40.0, 41.0)
    near = np.exp(-np.square(whole[:, None] - y) / (2 * s2)).sum(axis=0)
    drawn = np.exp(-np.square(y) / (2 * (sigma2 - s2))) / near
    rounded = (drawn * np.exp(-np.square(z[:, None] - y) / (2 * s2))).sum(axis=1) * 0.01
    rounded /= math.sqrt(2 * math.pi * (sigma2 - s2))
    ratios = np.exp(-np.square(z) / (2 * sigma2)) / rounded
    ratios /= np.exp(-np.square(whole) / (2 * sigma2)).sum()
    assert ratios.min() >= 1 / factor - 1e-13
    assert ratios.max() <= factor + 1e-13
    if spread == Fraction(1, 4):  # the factor is not idle
        assert ratios.max() / ratios.min() > 1 + (factor - 1) / 200


@pytest.mark.parametrize("sigma2", ["3/4", 2, 7, 50])
@pytest.mark.parametrize("squared", [1, 2, 5, 9])
def test_no_change_within_the_norm_costs_more(sigma2, squared):
    """All vectors of whole numbers with that norm or less, up to order and signs."""
    bound = alone(sigma2, squared)
    entries = range(math.isqrt(squared) + 1)
    vectors = {
        tuple(v for v in vector if v)
        for vector in itertools.combinations_with_replacement(entries, squared)
        if 0 < sum(v * v for v in vector) <= squared
    }
    assert len(vectors) >= min(squared, 5)
    for shifts in vectors:
        exact = of_shifts(sigma2, shifts)
        for epsilon in EPSILONS:
            assert exact.delta_bounds(epsilon)[0] <= bound.delta(epsilon)


@pytest.mark.parametrize(("sigma2", "times"), [(400, 1), (400, 12), (10_000, 3)])
def test_the_bound_costs_half_a_percent_of_the_noise_at_most(sigma2, times):
    """What is proved for a norm at σ² is exact for one count at 0.995 σ²."""
    less = hr.compose([(hr.DiscreteGaussian(Fraction(sigma2) * 995 / 1000), times)])
    for delta in ("1e-3", "1e-6", "1e-10"):
        epsilon = less.epsilon(delta)
        assert alone(sigma2, 1, times).delta(epsilon) <= float(delta)


def test_composed_noise_is_as_one_with_all_squares():
    parts = Domination((tuple(Gaussians(Fraction(200), Fraction(k), k) for k in (1, 2, 3)),))
    whole = alone(200, 1, 14)
    for epsilon in EPSILONS:
        assert parts.delta(epsilon) == pytest.approx(whole.delta(epsilon), rel=1e-9)


PAIRS = ((pair("1/2", "1e-6"), 3), (pair(1), 2))


def test_other_guarantees_take_part_by_their_pairs():
    """Beside noise on one count, whose exact profile is known."""
    for sigma2 in (60, 3_000):
        both = Domination(alone(sigma2, 1).cases, PAIRS)
        uses = [(hr.EpsilonDelta("1/2", "1e-6"), 3), (hr.Epsilon(1), 2)]
        exact = hr.compose([(hr.DiscreteGaussian(sigma2), 1), *uses])
        for epsilon in EPSILONS:
            true = exact.delta(epsilon)
            assert true * (1 - 1e-6) <= both.delta(epsilon) <= true * 1.1 + 1e-12


def test_guarantees_alone_compose_exactly():
    exact = hr.compose([(hr.EpsilonDelta("1/2", "1e-6"), 3), (hr.Epsilon(1), 2)])
    for epsilon in EPSILONS:
        lower, upper = exact.delta_bounds(epsilon)
        assert lower <= Domination((), PAIRS).delta(epsilon) <= upper * (1 + 1e-8) + 1e-12


def test_losses_that_are_too_many_count_as_their_largest(monkeypatch):
    fine = [Domination((), PAIRS).delta(epsilon) for epsilon in EPSILONS]
    monkeypatch.setattr(domination, "MOST_LOSSES", 4)
    coarse = [Domination((), PAIRS).delta(epsilon) for epsilon in EPSILONS]
    assert all(one <= other for one, other in zip(fine, coarse, strict=True))
    assert coarse != fine
    assert coarse[-1] == pytest.approx(3e-6, rel=1e-5)  # beyond the sum of all ε


def test_noise_that_is_too_small_to_be_bounded_promises_nothing():
    assert alone("1/5", 1).delta(3.0) == 1


def test_more_noise_or_more_epsilon_promises_more():
    table = [[alone(s, 4).delta(e) for e in EPSILONS] for s in (5, 10, 20, 40)]
    for row in table:
        assert row == sorted(row, reverse=True)
    for column in zip(*table, strict=True):
        assert list(column) == sorted(column, reverse=True)


@pytest.mark.parametrize("sigma2", [None, "1/1000", "13/50", 5, 10**6, 10**30])
@pytest.mark.parametrize("squared", [1, 10**12])
@pytest.mark.parametrize("guarantee", [None, "1/10000000", 1, 1_000])
def test_nothing_overflows(sigma2, squared, guarantee):
    """Warnings are errors here."""
    cases = ((),) if sigma2 is None else alone(sigma2, squared, 3).cases
    pairs = () if guarantee is None else ((pair(guarantee), 3),)
    found = [
        Domination(cases, pairs).delta(epsilon)
        for epsilon in (-1e5, -800.0, -1.0, 0.0, 1e-9, 1.0, 800.0, 1e5, 1e9)
    ]
    assert all(0 <= delta <= 1 for delta in found)
    assert found == sorted(found, reverse=True)


def test_what_no_float_holds_promises_nothing_or_rounds_up():
    assert alone(Fraction(1, 4) + Fraction(1, 10**400), 10**400).delta(1.0) == 1
    certain = (pair(1, 1 - Fraction(1, 10**20)), 1)
    assert Domination(alone(5, 1).cases, (certain,)).delta(5.0) == 1
    small = (pair(0, "1e-400"), 1)
    assert 0 < Domination((), (small,)).delta(1.0) < 1e-300
    many = (pair("1/1000"), 10**12)  # told at once
    assert Domination((), (many,)).delta(10.0) == pytest.approx(1)


@pytest.mark.parametrize("epsilon", [math.inf, -math.inf, math.nan])
def test_epsilon_must_be_finite(epsilon):
    with pytest.raises(BudgetError, match="epsilon must be a finite number, got"):
        alone(5, 1).delta(epsilon)
