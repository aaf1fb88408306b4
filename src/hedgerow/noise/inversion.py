"""Exact inversion: one 64-bit word a draw, one table look-up, and a proof.

With F the distribution function of an integer law and U uniform on [0, 1), ``X = min{k : U <
F(k)}`` has exactly that law. The table holds t(k) = floor(2⁶⁴ F(k)). If the first threshold that is
not below the first 64 digits u of U is above u, its k is X; if it equals u, further digits decide
(`settle`). No floating point takes part. Proof: `docs/proofs/noise.md`, "Exact inversion".
"""

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Int64, UInt64
from hedgerow.declared import frozen
from hedgerow.kernels import kernel
from hedgerow.noise.bits import Stream

# Certified masses of log-quadratic laws on the integers, by interval arithmetic on Python ints.
#
# A real number r is carried as two integers ``lower <= 2**bits * r <= upper``; every operation
# rounds the lower one down and the upper one up, so the enclosure is a theorem whatever the
# precision. No floating point takes part.

GUARD_BITS = 64


@frozen
class Law:
    """P(X = x) ∝ exp(-exponent(|x|)) on the integers, or on 0, 1, 2, … where not two-sided.

    ``exponent(j) = first * j + step * j * (j - 1) / 2``: the discrete Gaussian has first = 1/(2σ²)
    and step = 1/σ², the discrete Laplace first = 1/scale and step = 0.
    """

    first: Fraction
    step: Fraction
    two_sided: bool = True

    def exponent(self, magnitude: int) -> Fraction:
        """Return the exponent at |x| = magnitude."""
        return self.first * magnitude + self.step * (magnitude * (magnitude - 1) // 2)

    def blocks(self, width: int) -> "Law":
        """Return the one-sided law on block numbers b with exponent ``self.exponent(b * width)``.

        With w = width: exponent(bw) = (first·w + step·w(w-1)/2)·b + step·w²·b(b-1)/2, which is
        log-quadratic in b again.
        """
        return Law(self.exponent(width), self.step * width**2, two_sided=False)


@frozen
class Tails:
    """Bounds of P(X > k) for k = 0, 1, …: ``lower[k] <= 2**bits * P(X > k) <= upper[k]``.

    Both lists fall; the last tail is below about 2**(GUARD_BITS - bits).
    """

    lower: list[int]
    upper: list[int]
    bits: int


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers ``lower <= 2**bits * exp(-exponent) <= upper``, a few units apart.

    With h halvings so that y = exponent / 2**h < 1/16, exp(-y) is enclosed by its alternating
    Taylor series, whose remainder is at most the next term, and squared h times. Each squaring
    doubles the relative width, which h of the extra bits pay for.
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
    """Return bounds of exp(-y) for 0 <= y < 1/16, of which y itself has bounds."""
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
    """Return the tails of a law to an absolute accuracy of about 2**-bits, in order from P(X > 0).

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
    total_lower = one + sides * lower[0]
    total_upper = one + sides * upper[0]
    return Tails(
        [(weight << work) // total_upper for weight in lower],
        [min(one, -(-(weight << work) // total_lower)) for weight in upper],
        work,
    )


@lru_cache(maxsize=1 << 10)
def certified_tail_bound(law: Law, probability: float) -> int:
    """Return the smallest k with a certified 2 P(X > k) <= probability."""
    tail = tails(law, GUARD_BITS + max(0, -math.frexp(probability)[1]))
    allowed = Fraction(probability) * (1 << tail.bits) / 2
    return next(k for k, upper in enumerate(tail.upper) if upper <= allowed)


WORD_BITS = 64
FIRST_ACCURACY = 128
GUIDE_BITS = (10, 16)  # fewest and most


@kernel
def locate(
    word: np.uint64, thresholds: UInt64, guide: NDArray[np.uint32], shift: np.uint64
) -> np.uint64:
    """Return the place of the first threshold that is not below the word.

    The guide knows the place for the least word with the same top bits. One comparison without a
    branch settles most of the rest; the loop is for crowded tails.
    """
    place = np.uint64(guide[word >> shift])
    # Added without a branch, which random words would send either way half of the time.
    place += np.uint64(thresholds[place] < word)
    while thresholds[place] < word:
        place += np.uint64(1)
    return place


@kernel
def invert(
    words: UInt64,
    thresholds: UInt64,
    guide: NDArray[np.uint32],
    shift: np.uint64,
    lowest: int,
    out: Int64,
) -> int:
    """Write the draw of each word to ``out``; how many are undecided (and not yet right)."""
    # A word equal to its threshold needs further digits: the caller settles it.
    undecided = 0
    for i in range(len(words)):
        place = locate(words[i], thresholds, guide, shift)
        undecided += thresholds[place] == words[i]
        out[i] = lowest + np.int64(place)
    return undecided


@frozen(eq=False)
class Inversion:
    """The exact inversion sampler of a law: its thresholds, and a guide into them.

    Attributes:
        law: the law of the draws.
        lowest: the k of the first threshold.
        thresholds: uint64 (k), rising: floor(2⁶⁴ F(k)), k = lowest, lowest + 1, …
        guide: uint32 (2**bits): for each value of a word's top bits, how many thresholds are below
            all words that have it.
        shift: 64 less the guide's bits.
    """

    law: Law
    lowest: int
    thresholds: UInt64
    guide: NDArray[np.uint32]
    shift: np.uint64

    def fill(self, stream: Stream, start: int, out: Int64) -> None:
        """Write the draws of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        words = stream.words(start, len(out))
        undecided = invert(words, self.thresholds, self.guide, self.shift, self.lowest, out)
        if undecided:
            for i in np.flatnonzero(self.thresholds[out - self.lowest] == words).tolist():
                out[i] = settle(self.law, int(words[i]), stream.branch(start + i))

    def value(self, word: int, rest: Stream) -> int:
        """Return the draw of one word, whose further digits are the words of ``rest``."""
        place = int(np.searchsorted(self.thresholds, np.uint64(word)))
        if int(self.thresholds[place]) == word:
            return settle(self.law, word, rest)
        return self.lowest + place


@lru_cache(maxsize=64)
def inversion(law: Law) -> Inversion:
    """Return the sampler of a law; its thresholds are computed once and kept."""
    lowest, exact = certified_thresholds(law)
    thresholds = np.array(exact, dtype=np.uint64)
    fewest, most = GUIDE_BITS
    bits = min(max(len(exact).bit_length() + 1, fewest), most)
    shift = np.uint64(WORD_BITS - bits)
    least_words = np.arange(1 << bits, dtype=np.uint64) << shift
    guide = np.searchsorted(thresholds, least_words).astype(np.uint32)
    return Inversion(law, lowest, thresholds, guide, shift)


def certified_thresholds(law: Law) -> tuple[int, list[int]]:
    """Return the first k of the table and floor(2⁶⁴ F(k)) from there on.

    With G(k) = P(X > k): F(k) = 1 - G(k) for k >= 0, and F(-1-k) = G(k) by symmetry. A floor or
    ceiling counts only if both ends of the enclosure agree on it; else the accuracy is doubled.
    That ends unless some 2⁶⁴ F(k) is a whole number, which Lindemann's theorem excludes for the
    discrete Laplace (F is a non-constant rational function of a transcendental number); should it
    ever happen for a discrete Gaussian, this loop, which knows no data, would not end.
    """
    accuracy = FIRST_ACCURACY
    while (bounds := _floors_and_ceilings(tails(law, accuracy))) is None:
        accuracy *= 2
    floors, ceilings = bounds
    upper_half = [(1 << WORD_BITS) - ceiling for ceiling in ceilings]
    return (-len(floors), floors[::-1] + upper_half) if law.two_sided else (0, upper_half)


def _floors_and_ceilings(tail: Tails) -> tuple[list[int], list[int]] | None:
    """Return floors and ceilings of 2⁶⁴ G(k) up to the first floor of 0, or None."""
    shift = tail.bits - WORD_BITS
    floors = []
    ceilings = []
    for lower, upper in zip(tail.lower, tail.upper, strict=True):
        floor = lower >> shift
        ceiling = -(-upper >> shift)
        # G(k) > 0, so a ceiling is at least 1 even where the lower bound is 0.
        if floor != upper >> shift or ceiling != max(1, -(-lower >> shift)):
            return None
        floors.append(floor)
        ceilings.append(ceiling)
        if floor == 0:
            return floors, ceilings
    return None


@lru_cache(maxsize=4)
def _kept_tails(law: Law, accuracy: int) -> Tails:
    return tails(law, accuracy)


def settle(law: Law, word: int, rest: Stream) -> int:
    """Return X = min{k : U < F(k)}, given a word, U's first 64 digits, and a stream of the others.

    After d digits, U lies in [v, v + 1) / 2**d. Every k with F(k) certainly <= v / 2**d is below X;
    the first k with F(k) certainly >= (v + 1) / 2**d is not. Where the two meet, X is found.
    """
    digits = word
    count = WORD_BITS
    more = 0
    while True:
        digits = digits << WORD_BITS | int(rest.words(more, 1)[0])
        count, more = count + WORD_BITS, more + 1
        tail = _kept_tails(law, count + WORD_BITS)
        shift = tail.bits - count
        one = 1 << tail.bits
        lower = [one - g for g in tail.upper]
        upper = [one - g for g in tail.lower]
        if law.two_sided:
            lower, upper = tail.lower[::-1] + lower, tail.upper[::-1] + upper
        below = bisect_right(upper, digits << shift)
        reached = bisect_left(lower, (digits + 1) << shift)
        # Below the list's first k, a two-sided law has further values.
        if below == reached < len(lower) and (below > 0 or not law.two_sided):
            return below - (len(tail.lower) if law.two_sided else 0)
