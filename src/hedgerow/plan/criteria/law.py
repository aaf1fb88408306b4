"""By how much errors would have to grow for a criterion to be just kept: the law of T.

With errors e_i and bounds w_i, let T be the k-th smallest of |e_i| / w_i, k being how many of the
cells must keep their bound. The criterion is kept if P(T ≤ 1) ≥ p. Where all errors are multiplied
with f, as by another budget, T is, too: so *one* law of T tells all budgets, and 1 over its
quantile at p is the factor at which the criterion is just kept, its *reach*.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv

from hedgerow.arrays import Float64
from hedgerow.noise.envelope import Envelope

ENOUGH = 0.0015
"""The standard error of a quantile, relative to it, at which no more is drawn."""
MOST_NUMBERS = 1 << 26
"""Errors that are drawn at most for a criterion."""
AT_ONCE = 1 << 18
"""Of a block of draws."""
FEWEST = 8
"""Draws beyond the quantile that tell it."""
FAR = 1e3
"""Standard deviations beyond which no error is, and one over those within which all are."""
SURE = 2.0
"""Standard errors that a drawn quantile is taken to be larger than it seems."""


class Law(ABC):
    """The law of T; its figures may be bounds that are proved."""

    is_bound: bool = False

    @abstractmethod
    def probability(self, factor: float = 1.0) -> float:
        """Return P(T ≤ 1) where all errors are multiplied with a factor, or less."""

    @abstractmethod
    def quantile(self, probability: float) -> float:
        """Return the t with P(T ≤ t) = ``probability``, or more."""

    def at_most(self, factor: float = 1.0) -> float:
        """Return a bound of the same from above: itself where the law is exact."""
        return self.probability(factor)


@dataclass(frozen=True, slots=True)
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

    def quantile(self, probability: float) -> float:
        """Return the exact quantile."""
        miss = betaincinv(self.cells - self.least + 1, self.least, 1 - probability)
        return self.envelope.quantile(float(miss)) / self.ratio


@dataclass(frozen=True, slots=True, eq=False)
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
        place = _place(len(self.values), probability, SURE)
        return float(self.values[place]) if place < len(self.values) else inf

    def error(self, probability: float) -> float:
        """Return the standard error of the quantile, relative to it."""
        first, last = (_place(len(self.values), probability, sure) for sure in (-1.0, 1.0))
        if last >= len(self.values):
            return inf
        return float((self.values[last] / self.values[first] - 1) / 2)


def _place(many: int, probability: float, sure: float) -> int:
    spread = sqrt(many * probability * (1 - probability))
    return max(0, ceil(many * probability + sure * spread) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Bounded(Law):
    """From each error's own law, whatever they have in common.

    With q_i the chance that cell i misses its bound, and F how many do, E F = Σ q_i, and so

        1 - Σ q_i / (n - k + 1)  ≤  P(F ≤ n - k)  ≤  min(Σ (1 - q_i) / k, 1 - max q_i if k = n)

    by Markov's inequality for F, and for n - F. Where k = n the first is the union bound.

    Attributes:
        least: k.
        envelope: the law of one draw of the noise, of which errors are sums.
        ratios: float64 (values): bounds over standard deviations.
        times: float64 (values): how many cells have each.
        is_exact: whether standard deviations are those of the errors, and q_i no bounds.
    """

    least: int
    envelope: Envelope
    ratios: Float64
    times: Float64
    is_exact: bool
    is_bound = True

    def _misses(self, factor: float) -> Float64:
        return self.envelope.miss_of_sums(self.ratios / factor)

    def probability(self, factor: float = 1.0) -> float:
        """Return the bound from below."""
        return max(0.0, 1 - self._expected(factor) / self._allowed)

    @property
    def _allowed(self) -> float:
        return float(self.times.sum() - self.least + 1)

    def _expected(self, factor: float) -> float:
        return float(self.times @ self._misses(factor))

    def quantile(self, probability: float) -> float:
        """Return the t at which the bound is the probability."""
        goal = (1 - probability) * self._allowed

        def excess(log: float) -> float:
            return self._expected(float(np.exp(log))) - goal

        low, high = np.log(self.ratios.min() / FAR), np.log(self.ratios.max() * FAR)
        return float(np.exp(-brentq(excess, low, high, xtol=1e-6)))

    def at_most(self, factor: float = 1.0) -> float:
        """Return the bound from above; 1 where there is none."""
        if not self.is_exact:
            return 1.0
        misses = self._misses(factor)
        most = float(self.times @ (1 - misses)) / self.least
        return min(most, 1.0, float(1 - misses.max()) if self._allowed == 1 else 1.0)


def drawn_law(
    ratios: Callable[[int, int], Float64],
    cells: int,
    probability: float,
    enough: float = ENOUGH,
) -> Drawn | None:
    """Return the law of T from as many draws as tell its quantile; None where these are too many.

    Args:
        ratios: of a number of runs and a block T of each: float64 (runs).
        cells: that are drawn of each run, in all.
        probability: of the quantile.
        enough: its standard error, relative to it, at which no more is drawn.
    """
    most, least = MOST_NUMBERS // cells, ceil(FEWEST / (1 - probability))
    if most < least:
        return None
    values, block, size = np.empty(0), 0, max(1, AT_ONCE // cells)
    while len(values) < most:
        values = np.sort(np.append(values, ratios(min(size, most), block)))
        block += 1
        law = Drawn(values)
        if len(values) >= least and law.error(probability) <= enough:
            break
    return law
