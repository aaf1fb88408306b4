from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from hedgerow.noise.inversion import Law, _taylor, exp_bounds, tails
from tests.noise.reference import Reference, gaussian_weight, laplace_weight


@settings(deadline=None)
@given(
    st.fractions(min_value=0, max_value=300, max_denominator=10**12),
    st.sampled_from([64, 130, 256, 900]),
)
def test_exp_bounds_enclose_the_exponential_within_a_few_units(exponent, bits):
    lower, upper = exp_bounds(exponent, bits)
    with mp.workprec(bits + 600):
        true = mp.exp(-mpf(exponent.numerator) / exponent.denominator) * mpf(2) ** bits
        assert lower <= true <= upper
    assert 0 <= upper - lower <= 3


def test_the_series_encloses_the_exponential_without_help_from_guard_digits():
    work = 40
    for y in range(0, 1 << (work - 4), (1 << (work - 4)) // 3001):
        lower, upper = _taylor(y, y, work)
        with mp.workprec(200):
            assert lower + 1 <= mp.exp(-mpf(y) / 2**work) * 2**work + 1e-3
            assert upper - 1 >= mp.exp(-mpf(y) / 2**work) * 2**work - 1e-3
        assert upper - lower < 30


@pytest.mark.parametrize("exponent", [Fraction(10) ** 30, Fraction(128)])
def test_the_exponential_of_a_huge_number_is_below_one_unit(exponent):
    assert exp_bounds(exponent, 128) == (0, 1)


def test_a_law_has_the_exponents_of_the_mechanisms():
    sigma2, scale = Fraction(7, 3), Fraction(5, 2)
    gaussian, laplace = Law(1 / (2 * sigma2), 1 / sigma2), Law(1 / scale, Fraction(0))
    for j in range(20):
        assert gaussian.exponent(j) == Fraction(j * j) / (2 * sigma2)
        assert laplace.exponent(j) == j / scale


@pytest.mark.parametrize("step", [Fraction(0), Fraction(1, 7)])
def test_blocks_carry_the_exponent_of_their_first_place(step):
    law = Law(Fraction(1, 3), step)
    for b in range(10):
        assert law.blocks(8).exponent(b) == law.exponent(8 * b)
    assert not law.blocks(8).two_sided


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(1), Fraction(40)])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_tails_enclose_the_true_tails_to_the_stated_accuracy(kind, parameter, two_sided):
    if kind == "gaussian":
        law = Law(1 / (2 * parameter), 1 / parameter, two_sided)
        weight = gaussian_weight(parameter)
    else:
        law = Law(1 / parameter, Fraction(0), two_sided)
        weight = laplace_weight(parameter)
    bits = 160
    found = tails(law, bits)
    with mp.workprec(400):
        # what is beyond twice as far is far below a unit
        reference = Reference(weight, 2 * len(found.upper) + 9, two_sided=two_sided)
        unit = mpf(2) ** found.bits
        for k, (lower, upper) in enumerate(zip(found.lower, found.upper, strict=True)):
            assert lower <= reference.tails[k] * unit <= upper
            assert upper - lower <= 2 ** (found.bits - bits + 6)
    assert found.upper[-1] < 2 ** (found.bits - bits + 6)
    assert found.lower == sorted(found.lower, reverse=True)
    assert found.upper == sorted(found.upper, reverse=True)
