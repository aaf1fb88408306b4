"""Conversions of ρ against 80-digit arithmetic, and their sides."""

import math
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hedgerow.privacy import budget as zcdp
from hedgerow.privacy.budget import (
    bun_steinke_epsilon,
    float_above,
    optimal_delta,
    optimal_epsilon,
    rho_within,
)

EPSILONS = st.fractions(min_value=Fraction(1, 10**6), max_value=1000).filter(bool)
RHOS = st.fractions(min_value=Fraction(1, 10**9), max_value=1000)
DELTAS = st.one_of(
    st.integers(1, 300).map(lambda places: Fraction(1, 10**places)),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(999, 1000)),
)


@pytest.fixture(autouse=True)
def eighty_digits():
    with mpmath.workdps(80):
        yield


def real(value):
    if isinstance(value, Decimal):
        return mpmath.mpf(str(value))
    return mpmath.mpf(value.numerator) / value.denominator


def bun_steinke(rho, delta):
    """Proposition 1.3, word for word."""
    return real(rho) + 2 * mpmath.sqrt(real(rho) * mpmath.log(1 / real(delta)))


def least_delta(rho, epsilon):
    """Canonne, Kamath & Steinke, Corollary 13, the infimum taken over a fine grid of α."""
    rho, epsilon = real(rho), real(epsilon)

    def log_delta(t):
        a = mpmath.exp(t)
        alpha = 1 + a
        return a * (alpha * rho - epsilon) - mpmath.log(a) + alpha * mpmath.log(a / alpha)

    coarse = min((mpmath.mpf(k) / 2 for k in range(-1500, 200)), key=log_delta)
    fine = min((coarse + mpmath.mpf(k) / 1000 for k in range(-500, 501)), key=log_delta)
    return mpmath.exp(log_delta(fine))


@given(RHOS, DELTAS)
def test_bun_steinke_is_rounded_up_and_hardly(rho, delta):
    stated, true = real(bun_steinke_epsilon(rho, delta)), bun_steinke(rho, delta)
    assert true <= stated <= true * (1 + mpmath.mpf(10) ** -55)


@given(EPSILONS, DELTAS)
@example(Fraction(1), Fraction(1, 10**8))
def test_rho_within_a_budget_is_the_largest_of_its_digits(epsilon, delta):
    rho = rho_within(epsilon, delta)
    assert bun_steinke(rho, delta) <= real(epsilon)
    assert bun_steinke(rho * (1 + Fraction(2, 10**11)), delta) > real(epsilon)
    assert (10**400 * rho).denominator == 1
    assert len(str(int(10**400 * rho)).rstrip("0")) <= 12


def test_a_budget_that_is_met_exactly_is_kept():
    """A ρ of few digits whose ε is the whole budget: no rounding may tip it over."""
    delta = Fraction(1, 1000)
    epsilon = Fraction(bun_steinke_epsilon(Fraction(1, 4), delta))
    assert rho_within(epsilon, delta) == Fraction(1, 4)
    just_less = epsilon - Fraction(1, 10**50)
    assert rho_within(just_less, delta) == Fraction("0.249999999999")


def test_a_candidate_that_came_out_too_large_is_brought_within_the_budget(monkeypatch):
    """The proof is the comparison at the end, not the rounding on the way there."""
    monkeypatch.setattr(zcdp, "_FEW_DOWN", Context(prec=12, rounding=ROUND_UP))
    delta = Fraction(1, 10**8)
    for epsilon in (Fraction(1), Fraction(1, 10), Fraction(10), Fraction(1, 7)):
        assert bun_steinke(rho_within(epsilon, delta), delta) <= real(epsilon)


@given(st.decimals(min_value="1e-300", max_value="1e300").filter(lambda value: value != 1))
@example(Decimal(2))
@example(Decimal(3))
def test_logarithms_and_roots_lie_on_their_sides(value):
    """Python rounds these to the nearest digit; without the step half would be off."""
    log, root = mpmath.log(real(value)), mpmath.sqrt(real(value))
    assert real(zcdp._log_below(value)) < log < real(zcdp._log_above(value))
    assert root < real(zcdp._root_above(value)) < root * (1 + mpmath.mpf(10) ** -58)


def test_six_equal_depths_of_the_commuting_table():
    """Boninsegna et al., Lemma 2 at ε = 1, δ = 1e-8, T = 6: σ² = T · 2 / (2ρ) = 454.02."""
    for epsilon, sigma2, digits in (("1", 454.02, 2), ("0.1", 44_330, 0), ("10", 5.56, 2)):
        rho = rho_within(Fraction(epsilon), Fraction(1, 10**8))
        assert round(float(6 * 2 / (2 * rho)), digits) == sigma2


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [
        (Fraction("3.65") * Fraction("0.274"), Fraction(1, 10**11), 11.07),  # the states
        (Fraction("3.65") * Fraction("0.274"), Fraction(1, 10**5), 7.79),
        (Fraction("3.65"), Fraction(1, 10**10), 21.9851),  # all eighty queries
    ],
)
def test_the_bureaus_epsilon(rho, delta, epsilon):
    """Su et al.: what the Bureau reports for its release of 2020."""
    digits = 4 if epsilon > 20 else 2
    assert round(float(bun_steinke_epsilon(rho, delta)), digits) == epsilon


@settings(max_examples=15, deadline=None)
@given(RHOS, DELTAS)
@example(Fraction(1, 10**9), Fraction(999, 1000))
@example(Fraction(1000), Fraction(1, 10**300))
def test_the_optimal_conversion_holds_and_is_the_least(rho, delta):
    epsilon = optimal_epsilon(rho, delta)
    assert epsilon <= bun_steinke_epsilon(rho, delta)
    assume(epsilon > 0)
    assert least_delta(rho, epsilon) == pytest.approx(real(delta), rel=1e-4)


@given(RHOS, DELTAS)
def test_the_optimal_conversion_is_on_the_private_side(rho, delta):
    """δ at the stated ε and at the α of the best order, which alone is a proof."""
    epsilon = real(optimal_epsilon(rho, delta))
    log_inverse = mpmath.log(1 / real(delta))
    low, high = mpmath.mpf(0), mpmath.sqrt(log_inverse / real(rho))
    for _ in range(260):
        a = (low + high) / 2
        below = real(rho) * a * a + mpmath.log1p(a) < log_inverse
        low, high = (a, high) if below else (low, a)
    alpha = 1 + high
    log_delta = (
        high * (alpha * real(rho) - epsilon) - mpmath.log(high) + alpha * mpmath.log(high / alpha)
    )
    assert log_delta <= -log_inverse


def test_the_most_extreme_amounts_have_an_answer():
    tiny, huge = Fraction(1, 10**1000), Fraction(10**1000)
    for rho in (tiny, Fraction(1), huge):
        for delta in (tiny, 1 - tiny):
            bound = Fraction(bun_steinke_epsilon(rho, delta)) * (1 + Fraction(1, 10**57))
            assert 0 <= Fraction(optimal_epsilon(rho, delta)) <= bound
            assert 0 < rho_within(rho, delta) < rho


def test_a_loss_that_is_surely_within_delta_is_zero():
    assert optimal_epsilon(Fraction(1, 10**9), Fraction(1, 2)) == 0


@given(st.fractions(min_value=Fraction(1, 10**300), max_value=10**300))
@example(Fraction(1, 10**900))
@example(Fraction(1, 10))
@example(Fraction(1, 2))
@example(Fraction(1, 2**300))
@example(Fraction(1, 2**300) + Fraction(1, 10**300))
def test_floats_are_the_next_ones_up(value):
    rounded = float_above(value)
    assert Fraction(math.nextafter(rounded, 0)) < value <= Fraction(rounded)


def test_a_loss_beyond_the_floats_is_infinite():
    assert float_above(Fraction(10**400)) == float("inf")
    assert float_above(Decimal("0.1")) == 0.1
    assert Decimal(float_above(Decimal("0.3"))) >= Decimal("0.3")


@given(RHOS, DELTAS)
def test_the_delta_of_the_optimal_epsilon_is_the_one_asked_for(rho, delta):
    """The two conversions are each other's inverse, each rounded up."""
    epsilon = Fraction(optimal_epsilon(rho, delta))
    assume(epsilon > 0)
    assert 1 <= Fraction(optimal_delta(rho, epsilon)) / delta < 1 + Fraction(1, 10**9)


@given(RHOS, EPSILONS)
def test_no_order_gives_a_smaller_delta(rho, epsilon):
    found = real(optimal_delta(rho, epsilon))
    for order in (mpmath.mpf(10) ** k for k in range(-6, 7)):
        power = order * ((1 + order) * real(rho) - real(epsilon))
        power += (1 + order) * mpmath.log(order / (1 + order)) - mpmath.log(order)
        assert found <= min(mpmath.exp(power), 1) * (1 + mpmath.mpf("1e-9"))
