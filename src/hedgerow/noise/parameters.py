"""Exact numbers: what may stand for a noise parameter, a sensitivity, a probability."""

from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational

from hedgerow.errors import NoiseError

Number = int | str | Fraction | Decimal


def exact_number(name: str, value: Number) -> Fraction:
    """The value as a fraction of Python ints.

    Raises:
        NoiseError: the value is a binary float (which is not what its writer wrote), a truth value,
            not finite or not a number.
    """
    if isinstance(value, Rational) and not isinstance(value, bool):
        if isinstance(value, Integral):  # NumPy's too
            return Fraction(int(value))
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str | Decimal):
        try:
            return Fraction(value)
        except (ValueError, OverflowError, ZeroDivisionError):
            raise NoiseError(
                f'{name} must be a finite number like "1/2" or "0.25", got {value!r}'
            ) from None
    raise NoiseError(
        f"{name} must be exact, got the {type(value).__name__} {value!r}; "
        'write it as a string, "1/2" or "0.25"'
    )


def positive_number(name: str, value: Number, largest: Fraction) -> Fraction:
    """The value as a fraction, above 0 and at most ``largest``; NoiseError where it is not."""
    exact = exact_number(name, value)
    if exact <= 0:
        raise NoiseError(f"{name} must be above 0, got {value}")
    if exact > largest:
        raise NoiseError(
            f"{name} must be at most {largest}, so that noise fits 64-bit integers, got {value}"
        )
    return exact


def sensitivity(name: str, value: Number) -> Fraction:
    """The value as a fraction, 0 or more; NoiseError where it is not."""
    exact = exact_number(name, value)
    if exact < 0:
        raise NoiseError(f"{name} is the size of a change and cannot be below 0, got {value}")
    return exact


def tail_probability(value: float) -> float:
    """The value, in (0, 1]; NoiseError where it is not."""
    if not 0 < value <= 1:
        raise NoiseError(f"a tail's probability must be in (0, 1], got {value}")
    return float(value)
