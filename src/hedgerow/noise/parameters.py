"""What may stand for a noise parameter, a sensitivity, a probability."""

from fractions import Fraction

from hedgerow.errors import NoiseError, shortened
from hedgerow.numerals import Exact, exact


def positive_number(name: str, value: Exact, largest: Fraction) -> Fraction:
    """The value as a fraction, above 0 and at most ``largest``; NoiseError where it is not."""
    exact_value = exact(value, name)
    if exact_value <= 0:
        raise NoiseError(f"{name} must be above 0, got {shortened(str(value), 40)}")
    if exact_value > largest:
        raise NoiseError(
            f"{name} must be at most {largest}, so that noise fits 64-bit integers, got "
            f"{shortened(str(value), 40)}"
        )
    return exact_value


def sensitivity(name: str, value: Exact) -> Fraction:
    """The value as a fraction, 0 or more; NoiseError where it is not."""
    exact_value = exact(value, name)
    if exact_value < 0:
        raise NoiseError(
            f"{name} is the size of a change and cannot be below 0, got {shortened(str(value), 40)}"
        )
    return exact_value


def tail_probability(value: float) -> float:
    """The value, in (0, 1]; NoiseError where it is not."""
    if not 0 < value <= 1:
        raise NoiseError(f"a tail's probability must be in (0, 1], got {value}")
    return float(value)


def raised(value: float) -> float:
    """A little above the value: far more than the rounding of a few float operations."""
    return value * (1 + 1e-12) + 1e-12
