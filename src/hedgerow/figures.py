"""Figures of a promise, as people ask for them and read them: rounded towards more loss."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import isfinite

from hedgerow.errors import BudgetError
from hedgerow.numerals import Exact, exact

_SHOWN = Context(prec=6, rounding=ROUND_CEILING)


def asked(value: Exact | float, what: str) -> Fraction:
    """The exact value of a question: of a float, the smaller of what it is and what it prints.

    Raises:
        BudgetError: it is no number; ``what`` names it.
    """
    if isinstance(value, float):
        printed = exact(str(float(value)), what, BudgetError)
        return min(Fraction(value), printed)
    return exact(value, what, BudgetError)


def figure_above(value: Fraction | float) -> str:
    """Six significant digits, rounded up; ``none`` for an ε that is infinite."""
    if isinstance(value, float) and not isfinite(value):
        return "none"
    cost = Fraction(value)
    shown = _SHOWN.divide(Decimal(cost.numerator), Decimal(cost.denominator))
    # A float prints the same six digits, unless it is 0 or infinity for what is neither.
    return f"{float(shown):g}" if abs(shown.adjusted()) < 300 else f"{shown.normalize():g}"


def delta_text(delta: Exact | float) -> str:
    """δ as people write it: 1e-10, not 1/10000000000; a float as it prints, never below `asked`."""
    if isinstance(delta, float):
        return str(float(delta))
    value = asked(delta, "delta")
    short = f"{float(value):.6g}"
    return short if exact(short, "delta") == value else str(value)
