"""Figures as people ask for them and read them, rounded towards more loss."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import BudgetError
from hedgerow.text import exact_or_smaller, format_delta, format_rounded_up


@given(st.fractions(min_value="1e-9", max_value=10**6, max_denominator=10**12))
def test_a_figure_is_never_below_the_value_and_has_six_digits(value):
    shown = Fraction(format_rounded_up(value))
    assert value <= shown <= value * (1 + Fraction(1, 10**5))


def test_a_figure_that_no_float_holds_is_not_shown_as_0_or_infinite():
    assert format_rounded_up(Fraction(1, 3 * 10**400)) == "3.33334e-401"
    assert format_rounded_up(Fraction(10**400, 3)) == "3.33334e+399"
    assert format_rounded_up(Fraction(0)) == "0"


def test_a_fraction_and_a_float_of_one_value_are_shown_alike():
    assert format_rounded_up(Fraction(1, 3)) == "0.333334"
    assert format_rounded_up(1.25) == format_rounded_up(Fraction(5, 4)) == "1.25"
    assert format_rounded_up(0.1) == "0.100001", "the float is a little more than one tenth"
    assert format_rounded_up(math.inf) == "none"


def test_a_float_is_asked_as_the_smaller_of_its_two_readings():
    assert exact_or_smaller(0.1, "delta") == Fraction(1, 10) < Fraction(0.1)
    assert exact_or_smaller(0.3, "delta") == Fraction(0.3) < Fraction(3, 10)
    with pytest.raises(BudgetError, match="delta"):
        exact_or_smaller(math.nan, "delta")


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        ("1e-10", "1e-10"),
        (Fraction(1, 10**10), "1e-10"),
        ("0.05", "0.05"),
        ("1/3", "1/3"),
        (1e-6, "1e-06"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_a_delta_is_written_short_where_that_is_exact(delta, text):
    assert format_delta(delta) == text
