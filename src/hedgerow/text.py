"""Text that anyone may have written, and what of it can be seen.

A control character moves the cursor of a terminal or ends a line; others turn the direction of what
follows, or show nothing at all. So a *name* must hold none of them, wherever it comes from; a
*code* of a list or table may hold anything, and is shown with escapes in their place, which keep
codes apart that would look alike.
"""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import inf, isfinite, isinf, nan
from numbers import Integral, Real
from typing import Any

from hedgerow.errors import BudgetError, HedgerowError, NoiseError, kind_of

UNSEEN = (
    ("\0", "\x1f"), ("\x7f", "\x9f"), ("\xad", "\xad"), ("\u061c", "\u061c"), ("\u180e", "\u180e"),
    ("\u200b", "\u200f"), ("\u2028", "\u202e"), ("\u2060", "\u206f"), ("\ud800", "\udfff"),
    ("\ufeff", "\ufeff"), ("\ufff9", "\ufffb"), ("\ufffe", "\uffff"), ("\U00013430", "\U0001343f"),
    ("\U0001bca0", "\U0001bca3"), ("\U0001d173", "\U0001d17a"), ("\U000e0000", "\U000e007f"),
)  # fmt: skip
"""First and last of each range: controls, surrogates, separators of lines and paragraphs, and
formats that show nothing (Unicode's Cc, Cs, Zl, Zp and Cf, but for the few signs of Cf that are
seen), and the two that are no characters of XML."""

_UNSEEN = re.compile(f"[{''.join(f'{first}-{last}' for first, last in UNSEEN)}]")
_UNSEEN_IN_LINES = re.compile(_UNSEEN.pattern.replace("\0-\x1f", "\0-\x09\x0b-\x1f"))
LONGEST_LINE = 1500

Texts = tuple[str, ...]
"""Texts in their order: names of levels or columns, codes, the cells of a row."""
Json = dict[str, Any]
"""What JSON calls an object."""
TextByName = Mapping[str, str]
"""One text for each of some names: labels, columns, values of options."""
Rows = list[Texts]
"""A table for people, row by row."""


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text with escapes such as ``\x1b`` in place of what cannot be seen."""
    unseen = _UNSEEN_IN_LINES if lines else _UNSEEN
    return unseen.sub(lambda match: repr(match[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return text as one visible line of at most `LONGEST_LINE` characters."""
    shown = visible(text[: LONGEST_LINE + 1])
    return shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]}…"


def is_visible(text: str) -> bool:
    """Return whether nothing in a text is unseen."""
    return _UNSEEN.search(text) is None


def check_name(name: object, subject: str, longest: int, error: type[HedgerowError]) -> None:
    """Raise unless a value can be a name."""
    if not isinstance(name, str) or not name:
        raise error(f"{subject} must be a name, got {str(name)[:100]!r}")
    if not is_visible(name):
        raise error(
            f"{subject} must have no control characters and nothing else that is not seen, got "
            f"{name[:100]!r}; rename it"
        )
    if len(name.encode()) > longest:
        raise error(
            f"{subject} has at most {longest} bytes, got {len(name):,} letters ({name[:40]!r}…)"
        )


def check_utf8(path: object, subject: str, error: type[HedgerowError]) -> None:
    """Raise unless a path is UTF-8, as files, libraries and databases that hold one need it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise error(
            f"{subject} has a name that is not UTF-8 text: {visible(str(path))!r}; rename it"
        ) from None


# Exact numbers: what a user typed, as a `Fraction`, with no binary rounding in between.

Exact = int | float | str | Fraction | Decimal

# At most this many decimal places either way: "1e-999999999" would fill the memory with zeros.
PLACES = 1000
_TEXT = re.compile(
    r"[+-]?([0-9]+(/[0-9]+)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,4})?)", re.IGNORECASE
)


def exact(value: Exact, subject: str, error: type[HedgerowError] = NoiseError) -> Fraction:
    """Return the rational number that ``value`` writes down.

    Args:
        value: an integer, a `Fraction`, a `Decimal`, or text: ``"1/2"``, ``"0.25"``, ``"1e-10"``; a
            float that equals the decimal it prints as, such as 0.5 and not 0.1.
        subject: the name of the quantity, for the error's sentence.
        error: the kind of error to raise: that of the room that asks.
    """
    if isinstance(value, float):
        # An amount that was rounded before we saw it would be sold as the one that was typed.
        printed = repr(float(value))
        if isfinite(value) and Fraction(value) == Fraction(printed):
            return Fraction(value)
        raise error(
            f"{subject} must be exact, and the float {printed} is only near {printed}; write it as "
            f'text: "{printed}"'
        )
    if isinstance(value, bool) or not isinstance(value, Integral | Fraction | Decimal | str):
        raise error(
            f"{subject} must be a whole number, a Fraction, a Decimal or text such as "
            f'"1/2" or "1e-10", got {value!r}'
        )
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral):
        return Fraction(int(value))
    text = str(value).strip()
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    if not _TEXT.fullmatch(text):
        raise error(f'{subject} must be a number such as "1/2", "0.25" or "1e-10", got "{shown}"')
    exponent = int(text.lower().partition("e")[2] or 0)
    if len(text) > PLACES or abs(exponent) > PLACES:
        raise error(f'{subject} has more than {PLACES} decimal places: "{shown}"; round it')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise error(f'{subject} must be a number, got "{shown}", a division by zero') from None


def as_double(value: object, subject: str, error: type[HedgerowError]) -> float:
    """Return a number as a float, which may be infinite or none (nan) only where it is so itself.

    Args:
        value: any number that is real, exact or not.
        subject: the name of the quantity, for the error's sentence.
        error: the kind of error to raise for what is no such number, and for one whose size 53 bits
            cannot hold.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise error(f"{subject} must be a number, got {kind_of(value)}")
    if isinstance(value, Decimal) and value.is_nan():  # a signalling one is refused by `float`
        return nan
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if isinf(number) and value not in {inf, -inf}:
        raise error(f"{subject} is too large for a number with 53 bits; give a smaller one")
    if value and not number:
        raise error(f"{subject} is too near 0 for a number with 53 bits; give 0 or a larger one")
    return number


# Figures of a promise, as people ask for them and read them: rounded towards more loss.

_SHOWN = Context(prec=6, rounding=ROUND_CEILING)
_PERCENT = Context(prec=3, rounding=ROUND_CEILING)


def exact_or_smaller(value: Exact, subject: str) -> Fraction:
    """Return an exact value; for a float, the smaller of its value and its decimal form."""
    if isinstance(value, float):
        printed = exact(str(float(value)), subject, BudgetError)
        return min(Fraction(value), printed)
    return exact(value, subject, BudgetError)


def format_rounded_up(value: Fraction | float) -> str:
    """Return six significant digits, rounded up; ``none`` for an infinite ε."""
    if isinstance(value, float) and not isfinite(value):
        return "none"
    cost = Fraction(value)
    shown = _SHOWN.divide(Decimal(cost.numerator), Decimal(cost.denominator))
    # A float prints the same six digits, unless it is 0 or infinity for what is neither.
    return f"{float(shown):g}" if abs(shown.adjusted()) < 300 else f"{shown.normalize():g}"


def format_percent(part: Fraction | float) -> str:
    """Return three significant digits of a part of a whole in per cent, rounded up."""
    percent = 100 * Fraction(part)
    shown = _PERCENT.divide(Decimal(percent.numerator), Decimal(percent.denominator))
    return f"{float(shown):.3g}"


def format_delta(delta: Exact) -> str:
    """Return δ as people write it, 1e-10 and not 1/10000000000; a float as it prints."""
    if isinstance(delta, float):
        return str(float(delta))
    value = exact_or_smaller(delta, "delta")
    short = f"{float(value):.6g}"
    return short if exact(short, "delta") == value else str(value)


def raised(number: str) -> str:
    """Return a number with its power of ten as people write it: ``1e-08`` as ``10⁻⁸``."""
    digits, _, power = number.partition("e-")
    if not power:
        return number
    small = "⁻" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in power.lstrip("0"))
    return f"10{small}" if digits == "1" else f"{digits} · 10{small}"
