"""The trade-off curve: Su's theorems, direct Neyman-Pearson tests, and the profile."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from hedgerow.privacy.accountant import lattice
from hedgerow.privacy.accountant.lattice import tradeoff, tradeoff_bounds
from hedgerow.privacy.accountant.lattice_masses import infinite
from studies.su.census import halfway
from tests.privacy import oracles_loss
from tests.privacy.losses import SMALL, gaussian, laplace, pair

ALPHAS = [1e-30, 1e-12, 1e-3, 0.05, 0.25, 0.5]
MIXTURE = (gaussian(3), 1), (laplace(4, 2), 2), (pair("1/3", "1/1000"), 2)
CASES = {
    "gaussian": SMALL["two"],
    "narrow gaussian": ((gaussian("1/4", 2), 2),),
    "laplace": ((laplace(2, 3), 3),),
    "pair": SMALL["pair"],
    "mixture": MIXTURE,
}


each_losses = pytest.mark.parametrize("losses", CASES.values(), ids=CASES)


@each_losses
@pytest.mark.parametrize("alpha", ALPHAS)
def test_no_test_is_better_and_the_best_one_is_as_good(losses, alpha):
    truth = oracles_loss.tradeoff(losses, Fraction(alpha))
    assert abs(tradeoff(losses, alpha) - truth) <= 1e-12 * truth


@each_losses
def test_the_bounds_hold_the_truth_and_are_narrow(losses):
    rng = random.Random(7)
    for alpha in [*ALPHAS, 0.75, 1 - 1e-9, *(rng.random() for _ in range(10))]:
        truth = oracles_loss.tradeoff(losses, Fraction(alpha))
        lower, upper = tradeoff_bounds(losses, alpha)
        assert lower <= truth <= upper
        assert upper - lower < 1e-11


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("sigma2", [Fraction(1, 2), Fraction(4), Fraction(25, 2)])
def test_one_draw_follows_theorem_a7(sigma2, shift):
    """Su, Su & Wang, Theorem A.7: Φ(t - μ) - φ(t - μ)/φ(t) (α + Φ(t) - 1), t = Φ⁻¹(1 - α)."""
    span = range(-80, 81)
    weights = {x: math.exp(-x * x / (2 * float(sigma2))) for x in span}
    total = math.fsum(weights.values())

    def cdf(t):
        return math.fsum(weights[x] for x in span if x <= t) / total

    for alpha in (0.001, 0.05, 0.3, 0.8):
        t = next(x for x in span if cdf(x) >= 1 - alpha)
        slope = math.exp((t * t - (t - shift) ** 2) / (2 * float(sigma2)))
        expected = cdf(t - shift) - slope * (alpha + cdf(t) - 1)
        found = tradeoff(((gaussian(sigma2, shift), 1),), alpha)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("sigma2", [Fraction(1, 2), Fraction(4), Fraction(9)])
def test_two_draws_follow_theorem_a8(sigma2, shift):
    """Su, Su & Wang, Theorem A.8: knots from the even and the odd values of X₁ + X₂."""
    variance = float(sigma2)
    span = range(-120, 121)

    def constant(mean, spread):
        return math.fsum(math.exp(-((i - mean) ** 2) / (2 * spread)) for i in span)

    even = constant(0, variance / 2) / constant(0, variance) ** 2
    odd = constant(-0.5, variance / 2) / constant(0, variance) ** 2

    def mass(y):
        return (odd if y % 2 else even) * math.exp(-((y / 2) ** 2) / variance)

    for t in (-2, 0, 1, 4, 7):
        alpha = math.fsum(mass(y) for y in span if y > t)
        beta = math.fsum(mass(y) for y in span if y <= t - 2 * shift)
        found = tradeoff(((gaussian(sigma2, shift), 2),), alpha)
        assert found == pytest.approx(beta, rel=1e-9, abs=1e-13)


@each_losses
def test_the_curve_is_convex_falling_and_below_the_blind_test(losses):
    alphas = np.linspace(0, 1, 41)
    heights = np.array([tradeoff(losses, float(alpha)) for alpha in alphas])
    assert np.all(np.diff(heights, 2) >= -1e-13)
    assert np.all(np.diff(heights) <= 1e-13)
    assert np.all(heights <= 1 - alphas + 1e-13)


@each_losses
@pytest.mark.parametrize("alpha", [0.01, 0.2, 0.45])
def test_the_curve_is_its_own_inverse(losses, alpha):
    """The noises are symmetric, so P and Q may change places."""
    beta = tradeoff(losses, alpha)
    assert tradeoff(losses, beta) == pytest.approx(alpha, rel=1e-9)


@each_losses
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.1, 2.3])
def test_delta_is_the_largest_gap_above_a_line_of_slope_minus_e_to_the_epsilon(losses, epsilon):
    """δ(ε) = 1 - min_α (T(α) + e^ε α), attained at the knot of the first atom above ε."""
    places, _, other_masses = halfway(losses)
    at_knot = float(other_masses[places > epsilon].sum())
    delta = lattice.delta(losses, epsilon)
    for alpha in (at_knot, at_knot * 0.9, at_knot * 1.1, 0.001, 0.5):
        gap = 1 - tradeoff(losses, alpha) - math.exp(epsilon) * alpha
        assert gap <= delta + 1e-13
    gap = 1 - tradeoff(losses, at_knot) - math.exp(epsilon) * at_knot
    assert gap == pytest.approx(delta, abs=1e-13)


def test_the_atoms_are_two_laws():
    places, masses, other_masses = halfway(MIXTURE)
    beyond = infinite(MIXTURE)
    assert beyond == pytest.approx(1 - 0.999**2, rel=1e-12)
    assert masses.sum() + beyond == pytest.approx(1, abs=1e-12)
    assert other_masses.sum() + beyond == pytest.approx(1, abs=1e-12)
    assert masses[places > 0.5].sum() > other_masses[places > 0.5].sum()


def test_the_ends_of_the_curve():
    assert tradeoff(MIXTURE, 0.0) == pytest.approx(0.999**2, rel=1e-12)
    assert tradeoff(MIXTURE, 5e-324) == pytest.approx(0.999**2, rel=1e-12)
    assert tradeoff_bounds(MIXTURE, 1.0) == (0, 0)
    assert tradeoff((), 0.25) == pytest.approx(0.75, rel=1e-13)
