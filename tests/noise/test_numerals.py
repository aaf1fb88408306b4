"""What a user types is what is spent."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import NoiseError
from hedgerow.text import exact


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (3, Fraction(3)),
        (np.int64(3), Fraction(3)),
        ("1/2", Fraction(1, 2)),
        (" 0.25 ", Fraction(1, 4)),
        (".5", Fraction(1, 2)),
        ("1e-10", Fraction(1, 10**10)),
        ("2.5E3", Fraction(2500)),
        ("-7", Fraction(-7)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1E-8"), Fraction(1, 10**8)),
        (Fraction(22, 7), Fraction(22, 7)),
    ],
)
def test_numbers_are_read_as_they_are_written(written, value):
    assert exact(written, "epsilon") == value
    assert type(exact(written, "epsilon").numerator) is int


@given(st.fractions())
def test_the_text_of_a_fraction_is_read_back(number):
    assert exact(str(number), "rho") == number


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_decimals_keep_every_digit(number):
    assert exact(number, "rho") == Fraction(number)


@pytest.mark.parametrize("value", [0.1, 1e-8, 1 / 3, float("nan"), float("inf"), np.float64(0.3)])
def test_floats_that_are_not_what_they_print_are_refused_with_the_way_out(value):
    said = (
        f'delta must be exact, and the float .* is only near .*; write it as text: "{float(value)}"'
    )
    with pytest.raises(NoiseError, match=said):
        exact(value, "delta")


@pytest.mark.parametrize("value", [1.0, 0.5, -0.375, 1e22, 0.0, np.float64(2)])
def test_floats_that_are_the_decimal_they_print_are_taken_as_it(value):
    assert exact(value, "epsilon") == Fraction(repr(float(value)))


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=1e-6, max_value=1e6))
def test_no_float_is_taken_for_another_number_than_it_prints(value):
    try:
        assert exact(value, "epsilon") == Fraction(repr(value)) == Fraction(value)
    except NoiseError:
        assert Fraction(repr(value)) != Fraction(value)


@pytest.mark.parametrize("value", [0.1, np.float64(0.1)])
def test_the_way_out_quotes_the_float_as_text(value):
    with pytest.raises(NoiseError, match=r'write it as text: "0\.1"$'):
        exact(value, "delta")


@pytest.mark.parametrize("value", [True, np.True_, None, b"1", [1], 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(NoiseError, match="epsilon must be a whole number"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    "text",
    ["", "nan", "Infinity", "one", "1/2/3", "1_000", "1 2", "1e", "0x10", "1.5/2", "¾", "1e12345"],
)
def test_text_that_is_no_number_is_refused(text):
    with pytest.raises(NoiseError, match="rho must be a number such as"):
        exact(text, "rho")


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")])
def test_decimals_that_are_no_numbers_are_refused(value):
    with pytest.raises(NoiseError, match="rho must be a number such as"):
        exact(value, "rho")


@pytest.mark.parametrize("value", ["1e-1001", "1e9999", "9" * 1001, Decimal("1e1001")])
def test_numbers_that_would_fill_the_memory_are_refused(value):
    with pytest.raises(NoiseError, match="more than 1000 decimal places"):
        exact(value, "rho")


def test_a_division_by_zero_is_refused():
    with pytest.raises(NoiseError, match="a division by zero"):
        exact("1/0", "rho")
