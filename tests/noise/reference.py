"""What the tests compare with: mpmath at high precision, streams of chosen words, chi-square."""

from dataclasses import dataclass, field

import numpy as np
from mpmath import mp, mpf
from scipy.stats import chi2

from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.rejection import CHUNK

KEY = ReleaseKey(bytes(range(32)))
ALPHA = 1e-6


def gaussian_weight(sigma2):
    return lambda j: mp.exp(-mpf(j * j) * sigma2.denominator / (2 * sigma2.numerator))


def laplace_weight(scale):
    return lambda j: mp.exp(-mpf(j) * scale.denominator / scale.numerator)


class Reference:
    """The distribution function of a law, by plain summation of its weights."""

    def __init__(self, weight, reach, *, two_sided=True):
        weights = [weight(j) for j in range(reach)]
        total = mp.fsum(weights) + (mp.fsum(weights[1:]) if two_sided else 0)
        tail, tails = mpf(0), []
        for value in reversed(weights[1:]):
            tail += value
            tails.append(tail / total)
        self.tails = [*reversed(tails), mpf(0)]  # P(X > k), k = 0, 1, …
        self.two_sided = two_sided

    def cdf(self, k):
        if k >= 0:
            return 1 - self.tails[k]
        return self.tails[-1 - k] if self.two_sided else mpf(0)

    def value(self, digits, count):
        """min{k : U < F(k)}, the same for the least and the greatest U with these digits."""
        least, greatest = mpf(digits) / 2**count, mpf(digits + 1) / 2**count
        lowest = -len(self.tails) if self.two_sided else 0
        low, high = lowest, len(self.tails) - 1
        while low < high:
            middle = (low + high) // 2
            if least < self.cdf(middle):
                high = middle
            else:
                low = middle + 1
        assert greatest <= self.cdf(low), "the chosen digits do not decide the value"
        assert low > lowest or not self.two_sided, "the reference does not reach this far"
        return low


@dataclass
class ChosenWords:
    """A stream that says what the test wants, and fails where another word is read."""

    own: dict[int, int] = field(default_factory=dict)
    branches: dict[tuple[int, ...], "ChosenWords"] = field(default_factory=dict)

    def words(self, start, count):
        return np.array([self.own[i] for i in range(start, start + count)], dtype=np.uint64)

    def branch(self, *place):
        return self.branches.get(place, ChosenWords())


def spoken(words):
    return ChosenWords(dict(enumerate(words)))


def draw_in_chunks(sampler, stream, n):
    out = np.empty(n, dtype=np.int64)
    for a in range(0, n, CHUNK):
        sampler.fill(stream, a, out[a : a + CHUNK])
    return out


def fits(draws, edges, probabilities):
    """Chi-square at ALPHA: whether the counts between edges look like their probabilities.

    Args:
        draws: int64 (n).
        edges: rising integers e; bin i holds e[i-1] < x <= e[i], the outer bins are open.
        probabilities: float (len(edges) + 1).
    """
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    expected = len(draws) * np.asarray(probabilities, dtype=float)
    assert expected.min() > 20
    assert abs(expected.sum() / len(draws) - 1) < 1e-9
    statistic = ((observed - expected) ** 2 / expected).sum()
    return bool(chi2.sf(statistic, len(edges)) >= ALPHA)
