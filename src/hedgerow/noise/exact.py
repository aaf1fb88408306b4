"""Certified masses of log-quadratic laws on the integers, by interval arithmetic on Python ints.

A real number r is carried as two integers ``lower <= 2**bits * r <= upper``; every operation rounds
the lower one down and the upper one up, so the enclosure is a theorem whatever the precision. No
floating point takes part.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

GUARD_BITS = 64


@dataclass(frozen=True, slots=True)
class Law:
    """P(X = x) ∝ exp(-exponent(|x|)) on the integers, or on 0, 1, 2, … where not two-sided.

    ``exponent(j) = first * j + step * j * (j - 1) / 2``: the discrete Gaussian has first = 1/(2σ²)
    and step = 1/σ², the discrete Laplace first = 1/scale and step = 0.
    """

    first: Fraction
    step: Fraction
    two_sided: bool = True

    def exponent(self, magnitude: int) -> Fraction:
        """The exponent at |x| = magnitude."""
        return self.first * magnitude + self.step * (magnitude * (magnitude - 1) // 2)

    def blocks(self, width: int) -> "Law":
        """The one-sided law on block numbers b with exponent ``self.exponent(b * width)``.

        With w = width: exponent(bw) = (first·w + step·w(w-1)/2)·b + step·w²·b(b-1)/2, which is
        log-quadratic in b again.
        """
        return Law(self.exponent(width), self.step * width**2, two_sided=False)


@dataclass(frozen=True, slots=True)
class Tails:
    """Bounds of P(X > k) for k = 0, 1, …: ``lower[k] <= 2**bits * P(X > k) <= upper[k]``.

    Both lists fall; the last tail is below about 2**(GUARD_BITS - bits).
    """

    lower: list[int]
    upper: list[int]
    bits: int


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers ``lower <= 2**bits * exp(-exponent) <= upper``, a few units apart.

    With h halvings so that y = exponent / 2**h < 1/16, exp(-y) is enclosed by its alternating
    Taylor series, whose remainder is at most the next term, and squared h times. Each squaring
    doubles the relative width, which h of the extra bits pay for.

    Args:
        exponent: zero or positive.
        bits: binary digits after the point.
    """
    if exponent >= bits:
        return 0, 1  # exp(-bits) < 2**-bits
    halvings = int(exponent).bit_length() + 4
    work = bits + halvings + 16
    y_lower = (exponent.numerator << work) // (exponent.denominator << halvings)
    lower, upper = _taylor(y_lower, y_lower + 1, work)
    for _ in range(halvings):
        lower, upper = lower * lower >> work, _ceil_shift(upper * upper, work)
    return lower >> (work - bits), _ceil_shift(upper, work - bits)


def _taylor(y_lower: int, y_upper: int, work: int) -> tuple[int, int]:
    """Bounds of exp(-y) for 0 <= y < 1/16, of which y itself has bounds."""
    lower = upper = term_lower = term_upper = 1 << work
    n = 0
    while term_upper > 1:
        n += 1
        term_lower = term_lower * y_lower // (n << work)
        term_upper = -(-term_upper * y_upper // (n << work))
        if n % 2:
            lower, upper = lower - term_upper, upper - term_lower
        else:
            lower, upper = lower + term_lower, upper + term_upper
    return lower - 1, upper + 1  # the remainder is at most the last term, one unit


def _ceil_shift(value: int, shift: int) -> int:
    return -(-value >> shift)


def tails(law: Law, bits: int) -> Tails:
    """The tails of a law to an absolute accuracy of about 2**-bits, in order from P(X > 0).

    The weights obey w(j+1) = w(j) r(j), r(j+1) = r(j) exp(-step), r(0) = exp(-first). Their ratios
    never rise, so what follows the last weight w(N) is at most w(N) r(N) / (1 - r(N)).
    """
    work = bits + GUARD_BITS
    one = 1 << work
    ratio_lower, ratio_upper = exp_bounds(law.first, work)
    shrink_lower, shrink_upper = exp_bounds(law.step, work)
    lower, upper = [one], [one]
    while upper[-1] >> GUARD_BITS:
        lower.append(lower[-1] * ratio_lower >> work)
        upper.append(_ceil_shift(upper[-1] * ratio_upper, work))
        ratio_lower = ratio_lower * shrink_lower >> work
        ratio_upper = _ceil_shift(ratio_upper * shrink_upper, work)
    rest = -(-upper[-1] * ratio_upper // (one - ratio_upper))
    # Sums from the far end: entry k of the reversed sums is the weight beyond k.
    lower = list(accumulate(reversed(lower[1:]), initial=0))[::-1]
    upper = list(accumulate(reversed(upper[1:]), initial=rest))[::-1]
    sides = 2 if law.two_sided else 1
    total_lower, total_upper = one + sides * lower[0], one + sides * upper[0]
    return Tails(
        [(weight << work) // total_upper for weight in lower],
        [min(one, -(-(weight << work) // total_lower)) for weight in upper],
        work,
    )


def certified_tail_bound(law: Law, probability: float) -> int:
    """The smallest k with a certified 2 P(X > k) <= probability."""
    accuracy = GUARD_BITS + max(0, -math.frexp(probability)[1])
    tail = tails(law, accuracy)
    allowed = Fraction(probability) * (1 << tail.bits) / 2
    return next(k for k, upper in enumerate(tail.upper) if upper <= allowed)
