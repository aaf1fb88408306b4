"""The continuous law behind integer noise: how far sums of many draws reach.

An estimate's error is a sum Σ aᵢXᵢ of independent draws. Its tails are bounded through those of the
moment generating function of one draw, E e^{λX}, which the mechanism proves to be no larger than
that of a normal law, or of a Laplace law, of some variance s²: its envelope.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.special import ndtr, ndtri

from hedgerow.arrays import Float64
from hedgerow.declared import frozen


@frozen
class Envelope(ABC):
    """A continuous law about 0 whose moment generating function is nowhere below the noise's.

    Attributes:
        variance: s² (records²); at least that of the noise.
    """

    variance: float

    @abstractmethod
    def quantile(self, miss: float) -> float:
        """Return the q with P(|Z| > q s) = ``miss`` for one draw Z of this law."""

    @abstractmethod
    def miss(self, quantile: Float64) -> Float64:
        """Return P(|Z| > q s) for one draw Z of this law."""

    @abstractmethod
    def farthest(self, chance: float) -> float:
        """Return a k with P(|Σ aᵢXᵢ| ≥ k √(Σ aᵢ²s²)) ≤ ``chance`` for any aᵢ: a Chernoff bound."""

    def miss_of_sums(self, k: Float64) -> Float64:
        """Return a bound of P(|Σ aᵢZᵢ| ≥ k √(Σ aᵢ²s²)) for draws Zᵢ of this law and any aᵢ.

        Of a law whose sums have the same law it is that of one draw.
        """
        return self.miss(k)


@frozen
class NormalEnvelope(Envelope):
    """A normal law: E e^{λX} ≤ e^{λ²s²/2} for all λ.

    Discrete Gaussian noise has one with s² = σ²: E e^{λX} is e^{λ²σ²/2} Σ exp(-(x - λσ²)²/2σ²) /
    Σ exp(-x²/2σ²), whose ratio is at most 1 (by Poisson summation a shift makes the sum no larger).
    """

    def quantile(self, miss: float) -> float:
        """Return the two-sided normal quantile."""
        return -float(ndtri(miss / 2))

    def miss(self, quantile: Float64) -> Float64:
        """Return the two tails of the normal law."""
        return np.asarray(2 * ndtr(-quantile))

    def farthest(self, chance: float) -> float:
        """Return P(|Σ aᵢXᵢ| ≥ k √(Σ aᵢ²s²)) ≤ 2 e^{-k²/2}."""
        return math.sqrt(2 * math.log(2 / chance))


@frozen
class LaplaceEnvelope(Envelope):
    """A Laplace law: E e^{λX} ≤ 1/(1 - λ²s²/2) for λ² < 2/s².

    Discrete Laplace noise of scale b has one with s² = 2b²: E e^{λX} = 1/(1 - (cosh λ - 1)/
    (cosh(1/b) - 1)) ≤ 1/(1 - λ²b²) for λ < 1/b, because (cosh x - 1)/x² rises.
    """

    def quantile(self, miss: float) -> float:
        """Return the two-sided quantile of a Laplace law of variance 1: ln(1/miss)/√2."""
        return float(-np.log(miss) / np.sqrt(2))

    def miss(self, quantile: Float64) -> Float64:
        """Return the two tails of a Laplace law of variance 1."""
        return np.asarray(np.exp(-np.sqrt(2) * quantile))

    def miss_of_sums(self, k: Float64) -> Float64:
        """Return the Chernoff bound that `farthest` inverts."""
        x = np.clip(np.sqrt(2) * k, 1e-9, 1e6)
        mu = (np.hypot(1.0, x) - 1) / x
        return np.asarray(np.minimum(1.0, 2 * np.exp(-mu * x) / (1 - mu * mu)))

    def farthest(self, chance: float) -> float:
        """Return a Chernoff bound for sums of Laplace draws.

        For a given Σ aᵢ²s² the product of the bounds is largest where one term has it all, as
        -log(1 - x) is convex and 0 at 0; with x = k √2, P ≤ 2 inf_{0<μ<1} e^{-μx}/(1 - μ²). The
        best μ for an x has x = 2μ/(1 - μ²); x by bisection, rounded up.
        """
        needed = math.log(2 / chance)
        low = 0.0
        high = needed + math.log1p(needed) + 5.0
        for _ in range(100):
            x = (low + high) / 2
            mu = (math.hypot(1.0, x) - 1) / x
            if mu * x + math.log1p(-mu * mu) < needed:
                low = x
            else:
                high = x
        return high / math.sqrt(2)
