"""Additive noise mechanisms on the integers: parameters, exact draws, and the loss of one use.

A mechanism adds independent noise to each of a vector of integer counts. Its parameter is a
`Fraction`; composition and repetition are priced elsewhere, for all mechanisms at once.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from hedgerow.noise import draws
from hedgerow.noise.bits import Stream
from hedgerow.noise.exact import GUARD_BITS, Law, tails
from hedgerow.noise.numerals import Exact
from hedgerow.noise.parameters import positive_number, sensitivity, tail_probability

LARGEST_SIGMA2 = Fraction(1 << 112)
LARGEST_SCALE = Fraction(1 << 52)


class Mechanism(Protocol):
    """Integer noise with a public parameter and a price."""

    name: ClassVar[str]

    @property
    def parameter(self) -> Fraction:
        """The exact parameter: sigma2 (records²) or scale (records)."""
        ...

    @property
    def noise_variance(self) -> float:
        """The true variance of one draw, in records²."""
        ...

    def sample(self, n: int) -> NDArray[np.int64]:
        """Draws under a fresh key of the operating system: int64 (n)."""
        ...

    def draw(self, stream: Stream, start: int, out: NDArray[np.int64]) -> None:
        """Write the noise of cells ``start .. start + len(out) - 1`` of a stream to ``out``.

        The noise of a cell is a function of (stream, cell), however the range is cut. The draw owns
        the stream's words and branches: a second mechanism or depth needs a stream of its own.
        """
        ...

    def tail_bound(self, probability: float) -> int:
        """The smallest k with P(|X| > k) <= probability, or a little more; never less."""
        ...

    def rho(self, l2_squared: Fraction) -> Fraction:
        """The zCDP parameter of one use whose l2 sensitivity has this square."""
        ...


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DiscreteGaussian:
    """P(X = x) ∝ exp(-x² / (2 sigma2)) on the integers (Canonne, Kamath, Steinke 2020, Def. 1).

    Args:
        sigma2: exact: an int, a string ("1/2", "0.25"), a Fraction or a Decimal. At most 2¹¹², so
            that P(|X| >= 2⁶²) < 2 exp(-2¹¹) and every draw fits an int64 with room to be added to.

    Raises:
        NoiseError: sigma2 is a float, not a number, not positive or too large.
    """

    name: ClassVar[str] = "discrete-gaussian"
    sigma2: Fraction

    def __init__(self, sigma2: Exact) -> None:
        object.__setattr__(self, "sigma2", positive_number("sigma2", sigma2, LARGEST_SIGMA2))

    def __repr__(self) -> str:
        return f'DiscreteGaussian(sigma2="{self.sigma2}")'

    @property
    def parameter(self) -> Fraction:
        """The sigma2."""
        return self.sigma2

    @property
    def law(self) -> Law:
        """The law of the noise: x²/2sigma2 = |x|/2sigma2 + |x|(|x|-1)/2sigma2."""
        return Law(1 / (2 * self.sigma2), 1 / self.sigma2)

    @property
    def noise_variance(self) -> float:
        """The true variance in records², to about 1e-13 relative; less than sigma2.

        From sigma2 = 5 on it is sigma2 to the last bit: by Poisson summation, the relative
        difference is below 8π²sigma2 exp(-2π²sigma2) < 1e-39.
        """
        if self.sigma2 >= 5:
            return float(self.sigma2)
        if self.sigma2 < Fraction(1, 1600):  # exp(-800) is 0 in floating point
            return 0.0
        halved = float(1 / (2 * self.sigma2))
        weights = [math.exp(-x * x * halved) for x in range(1, 100)]
        second = math.fsum(x * x * weight for x, weight in enumerate(weights, start=1))
        return 2 * second / (1 + 2 * math.fsum(weights))

    def sample(self, n: int) -> NDArray[np.int64]:
        """Draws under a fresh key of the operating system: int64 (n)."""
        return draws.sample(self.law, n)

    def draw(self, stream: Stream, start: int, out: NDArray[np.int64]) -> None:
        """Write the noise of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        draws.draw(self.law, stream, start, out)

    def tail_bound(self, probability: float) -> int:
        """The smallest k with P(|X| > k) <= probability; for sigma2 > 4096 perhaps a little more.

        Small parameters: certified tails. Large ones: the sum over x > k of exp(-x²/2sigma2) is at
        most the integral from k, and the sum over all x is at least sqrt(2π sigma2) (Poisson), so
        P(|X| > k) <= 2 Φ(-k/σ).
        """
        probability = tail_probability(probability)
        if self.sigma2 <= 4096:
            return _certified_tail_bound(self.law, probability)
        deviations = -float(ndtri_exp(math.log(probability) - math.log(2)))
        return math.ceil(math.sqrt(self.sigma2) * _raised(deviations))

    def rho(self, l2_squared: Fraction) -> Fraction:
        """The zCDP parameter of one use: l2² / (2 sigma2).

        Canonne, Kamath, Steinke (2020), Theorem 4, for one integer query; the coordinates' noise is
        independent, so their Rényi divergences add (Bun and Steinke 2016, Lemma 1.7).

        Args:
            l2_squared: the squared l2 norm (records²) of an integer vector: what one unit changes.
        """
        return sensitivity("l2_squared", l2_squared) / (2 * self.sigma2)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DiscreteLaplace:
    """P(X = x) ∝ exp(-|x| / scale) on the integers (Ghosh, Roughgarden, Sundararajan 2009).

    Args:
        scale: exact: an int, a string ("1/2", "0.25"), a Fraction or a Decimal. At most 2⁵², so
            that P(|X| >= 2⁶²) < 2 exp(-2¹⁰) and every draw fits an int64 with room to be added to.

    Raises:
        NoiseError: scale is a float, not a number, not positive or too large.
    """

    name: ClassVar[str] = "discrete-laplace"
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        object.__setattr__(self, "scale", positive_number("scale", scale, LARGEST_SCALE))

    def __repr__(self) -> str:
        return f'DiscreteLaplace(scale="{self.scale}")'

    @property
    def parameter(self) -> Fraction:
        """The scale."""
        return self.scale

    @property
    def law(self) -> Law:
        """The law of the noise."""
        return Law(1 / self.scale, Fraction(0))

    @property
    def noise_variance(self) -> float:
        """The true variance in records², 2q/(1-q)² with q = exp(-1/scale), to 1e-13 relative."""
        if self.scale < Fraction(1, 800):  # exp(-800) is 0 in floating point
            return 0.0
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    def sample(self, n: int) -> NDArray[np.int64]:
        """Draws under a fresh key of the operating system: int64 (n)."""
        return draws.sample(self.law, n)

    def draw(self, stream: Stream, start: int, out: NDArray[np.int64]) -> None:
        """Write the noise of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        draws.draw(self.law, stream, start, out)

    def tail_bound(self, probability: float) -> int:
        """The smallest k with P(|X| > k) <= probability; for scale > 64 perhaps a little more.

        Large scales: P(|X| > k) = 2 q**(k+1) / (1+q), q = exp(-1/scale).
        """
        probability = tail_probability(probability)
        if self.scale <= 64:
            return _certified_tail_bound(self.law, probability)
        scale = float(self.scale)
        needed = math.log(2 / (1 + math.exp(-1 / scale))) - math.log(probability)
        return max(0, math.ceil(scale * _raised(needed)) - 1)

    def epsilon(self, l1: Fraction) -> Fraction:
        """The pure privacy loss of one use: l1 / scale (Ghosh et al. 2009, Section 2).

        Args:
            l1: the l1 norm (records) of an integer vector: what one unit changes.
        """
        return sensitivity("l1", l1) / self.scale

    def rho(self, l2_squared: Fraction) -> Fraction:
        """A zCDP parameter of one use: l2² / (2 scale²).

        A coordinate that moves by m is (m/scale)-DP, hence (m/scale)²/2-zCDP (Bun and Steinke 2016,
        Proposition 1.4); the coordinates' noise is independent, so these add (Lemma 1.7).

        Args:
            l2_squared: the squared l2 norm (records²) of an integer vector: what one unit changes.
        """
        return sensitivity("l2_squared", l2_squared) / (2 * self.scale**2)


def _raised(value: float) -> float:
    """A little above the value: far more than the rounding of a few float operations."""
    return value * (1 + 1e-12) + 1e-12


def _certified_tail_bound(law: Law, probability: float) -> int:
    """The smallest k with a certified 2 P(X > k) <= probability."""
    accuracy = GUARD_BITS + max(0, -math.frexp(probability)[1])
    tail = tails(law, accuracy)
    allowed = Fraction(probability) * (1 << tail.bits) / 2
    return next(k for k, upper in enumerate(tail.upper) if upper <= allowed)


MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (DiscreteGaussian, DiscreteLaplace)
}
