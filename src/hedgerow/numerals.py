"""Exact numbers: what a user typed, as a `Fraction`, with no binary rounding in between."""

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral

from hedgerow.errors import HedgerowError, NoiseError

Exact = int | str | Fraction | Decimal

# At most this many decimal places either way: "1e-999999999" would fill the memory with zeros.
PLACES = 1000
_TEXT = re.compile(
    r"[+-]?([0-9]+(/[0-9]+)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,4})?)", re.IGNORECASE
)


def exact(value: Exact, what: str, error: type[HedgerowError] = NoiseError) -> Fraction:
    """The rational number that ``value`` writes down.

    Args:
        value: an integer, a `Fraction`, a `Decimal`, or text: ``"1/2"``, ``"0.25"``, ``"1e-10"``.
        what: the name of the quantity, for the error's sentence.
        error: the kind of error to raise: that of the room that asks.

    Raises:
        NoiseError: or the given kind: for a binary float (0.1 is not one tenth there), a truth
            value, infinity, NaN, text that is no number, or more than a thousand decimal places.
    """
    if isinstance(value, float):
        # An amount that was rounded before we saw it would be sold as the one that was typed.
        raise error(f'{what} must be exact, and binary floats are not; write it as text: "{value}"')
    if isinstance(value, bool) or not isinstance(value, Integral | Fraction | Decimal | str):
        raise error(
            f"{what} must be a whole number, a Fraction, a Decimal or text such as "
            f'"1/2" or "1e-10", got {value!r}'
        )
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral):
        return Fraction(int(value))
    return _from_text(str(value).strip(), what, error)


def _from_text(text: str, what: str, error: type[HedgerowError]) -> Fraction:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    if not _TEXT.fullmatch(text):
        raise error(f'{what} must be a number such as "1/2", "0.25" or "1e-10", got "{shown}"')
    exponent = int(text.lower().partition("e")[2] or 0)
    if len(text) > PLACES or abs(exponent) > PLACES:
        raise error(f'{what} has more than {PLACES} decimal places: "{shown}"; round it')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise error(f'{what} must be a number, got "{shown}", a division by zero') from None
