"""By how much errors would have to grow for a criterion to be just kept: the law of T.

With errors e_i and bounds w_i, let T be the k-th smallest of |e_i| / w_i, k being how many of the
cells must keep their bound. The criterion is kept if P(T ≤ 1) ≥ p. Where all errors are multiplied
with f, as by another budget, T is, too: so *one* law of T tells all budgets, and 1 over its
quantile at p is the factor at which the criterion is just kept, its *reach*.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import ceil, exp, inf, sqrt
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

from hedgerow.arrays import Float64, Integers
from hedgerow.declared import frozen
from hedgerow.noise.envelope import Envelope

ENOUGH = 0.0015
"""The standard error of a quantile, relative to it, at which no more is drawn."""
MOST_NUMBERS = 1 << 26
"""Errors that are drawn at most for a criterion."""
AT_ONCE = 1 << 18
"""Of a block of draws."""
FEWEST = 8
"""Draws beyond the quantile that tell it."""
GROWING = 1.2
"""By what number of draws more they are looked at again."""
SURE = 2.0
"""Standard errors that a drawn quantile is taken to be larger than it seems."""


class Law(ABC):
    """The law of T, or a bound of it."""

    is_bound: ClassVar[bool] = False

    @abstractmethod
    def probability(self, factor: float = 1.0) -> float:
        """Return P(T ≤ 1) where all errors are multiplied with a factor, or less."""

    def quantile(self, probability: float) -> float:
        """Return the t with P(T ≤ t) = ``probability``, or more."""

        def excess(log: float) -> float:
            return self.probability(exp(-log)) - probability

        return exp(brentq(excess, -600, 600, xtol=1e-7))


@frozen
class Alike(Law):
    """Of independent errors with one law and one bound: the number that keep it is binomial.

    Attributes:
        cells: n.
        least: k.
        envelope: the law of one error.
        ratio: its bound over its standard deviation.
    """

    cells: int
    least: int
    envelope: Envelope
    ratio: float

    def probability(self, factor: float = 1.0) -> float:
        """Return P(Bin(n, q) ≤ n - k), q being the chance that one misses its bound."""
        miss = self.envelope.miss(np.array(self.ratio / factor))
        return float(1 - betainc(self.cells - self.least + 1, self.least, miss))


@frozen(eq=False)
class Bounded(Law):
    """From each error's own law, whatever they have in common.

    With q_i the chance that cell i misses its bound, and F how many do, E F = Σ q_i, and P(F ≤ n -
    k) ≥ 1 - Σ q_i / (n - k + 1) by Markov's inequality: where k = n, the union bound.

    Attributes:
        least: k.
        envelope: the law of one draw of the noise, of which errors are sums.
        ratios: float64 (values): bounds over standard deviations.
        times: int64 (values): how many cells have each.
    """

    least: int
    envelope: Envelope
    ratios: Float64
    times: Integers
    is_bound: ClassVar[bool] = True

    def probability(self, factor: float = 1.0) -> float:
        """Return the bound from below."""
        misses = self.times @ self.envelope.miss_of_sums(self.ratios / factor)
        return max(0.0, 1 - float(misses) / float(self.times.sum() - self.least + 1))


@frozen(eq=False)
class Drawn(Law):
    """From draws, with the quantile's own error added to it (`SURE`).

    Attributes:
        values: float64 (runs): T of each, ascending.
    """

    values: Float64

    def probability(self, factor: float = 1.0) -> float:
        """Return the share of the runs."""
        return float(np.searchsorted(self.values, 1 / factor, side="right") / len(self.values))

    def quantile(self, probability: float) -> float:
        """Return the quantile and two standard errors of its place."""
        return self.at(probability, SURE)

    def at(self, probability: float, sure: float) -> float:
        """Return the value so many standard errors beyond the place of a quantile."""
        many = len(self.values)
        place = many * probability + sure * sqrt(many * probability * (1 - probability))
        return float(self.values[ceil(place) - 1]) if place <= many else inf


def drawn_law(
    ratios: Callable[[int, int], Float64], cells: int, probability: float, enough: float = ENOUGH
) -> Drawn | None:
    """Return the law of T from as many draws as tell its quantile; None where these are too many.

    Args:
        ratios: of a number of runs and a block T of each: float64 (runs).
        cells: that are drawn of each run, in all.
        probability: of the quantile.
        enough: its standard error, relative to it, at which no more is drawn.
    """
    most = MOST_NUMBERS // cells
    least = FEWEST / max(1 - probability, 1 / MOST_NUMBERS)
    if most < least:
        return None
    size = max(1, AT_ONCE // cells)
    drawn = list[Float64]()
    many, following = 0, least
    while True:
        drawn.append(ratios(size, len(drawn)))
        many += size
        if many >= min(following, most):
            law = Drawn(np.sort(np.concatenate(drawn)))
            low = law.at(probability, -1)
            high = law.at(probability, 1)
            if many >= most or high - low <= 2 * enough * low:
                return law
            following = GROWING * many
