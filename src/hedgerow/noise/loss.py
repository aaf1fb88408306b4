"""The privacy loss of one use: a random variable on a lattice; compositions add independent ones.

With P and Q the laws of a noisy count on neighbouring tables, the loss is L = ln P(X)/Q(X) for X
drawn from P, and the composition satisfies (ε, δ) for δ(ε) = P[L = ∞] + E[(1 - e^(ε - L))₊]
(Su, Su & Wang; Dong, Roth & Su 2022). The noises here are symmetric, so exchanging P and Q changes
nothing. Every atom of a loss is ``offset + step · k`` for an integer k, exactly.
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import inf
from typing import ClassVar, Protocol

from hedgerow.declared import Rational, Real, frozen
from hedgerow.errors import NoiseError


@frozen
class GaussianLoss:
    """Of discrete Gaussian noise on a count that moves by s > 0: L = s(X + s/2)/σ², X ~ N_Z(0, σ²).

    Attributes:
        sigma2: σ² (records²).
        shift: s (records), at least 1: shifts s and -s have the same loss by symmetry.
    """

    sigma2: Fraction
    shift: int

    @property
    def step(self) -> Fraction:
        """s/σ²."""
        return self.shift / self.sigma2

    @property
    def offset(self) -> Fraction:
        """s²/(2σ²): the loss at X = 0."""
        return Fraction(self.shift * self.shift) / (2 * self.sigma2)


@frozen
class LaplaceLoss:
    """Of discrete Laplace noise on a count that moves by s > 0: L = (|X - s| - |X|)/scale.

    Attributes:
        scale: of the noise (records): P(X = x) ∝ exp(-|x|/scale).
        shift: s (records), at least 1.
    """

    scale: Fraction
    shift: int

    @property
    def step(self) -> Fraction:
        """2/scale: the loss is (s - 2 min(max(X, 0), s))/scale."""
        return 2 / self.scale

    @property
    def offset(self) -> Fraction:
        """-s/scale: the smallest loss."""
        return -self.shift / self.scale


@frozen
class PairLoss:
    """Of any (ε, δ) guarantee, by the pair that dominates all of them (Kairouz, Oh & Viswanath).

    L = ∞ with probability δ; else ε with probability (1 - δ) e^ε/(1 + e^ε), and -ε.

    Attributes:
        epsilon: ε ≥ 0.
        delta: δ in [0, 1).
    """

    epsilon: Fraction
    delta: Fraction

    @property
    def step(self) -> Fraction:
        """2ε."""
        return 2 * self.epsilon

    @property
    def offset(self) -> Fraction:
        """-ε."""
        return -self.epsilon


Loss = GaussianLoss | LaplaceLoss | PairLoss

Losses = tuple[tuple[Loss, int], ...]
"""A composition: each distinct loss with how often it is incurred."""


Bounds = tuple[float, float]
"""Proved lower and upper bounds of a figure."""


def gather_losses(losses: Iterable[tuple[Loss, int]]) -> Losses:
    """Return equal losses once, with their times added."""
    counted: Counter[Loss] = Counter()
    for loss, times in losses:
        counted[loss] += times
    return tuple(counted.items())


# What buys noise: ρ against the l2 norm of a change, or pure ε against its l1 norm.
#
# The *precision* of noise is what one use of it costs if a unit changes one count by one record. A
# budget b spent on a change of sensitivity Δ (squared, where the norm is the second) buys the
# precision b/Δ, and the variance of wide noise is V over a power of its precision.


class Priced(Protocol):
    """Noise with the costs of one use of it."""

    def rho(self, l2_squared: Fraction) -> Fraction:
        """Return the zCDP parameter of one use whose l2 sensitivity has this square."""

    def epsilon(self, l1: Fraction) -> Fraction | None:
        """Return the pure ε of one use of this l1 sensitivity; None where there is none."""


@frozen
class InRho:
    """Noise that is bought with ρ, or with the ρ that an (ε, δ) budget allows.

    Attributes:
        variance: V, the variance of wide noise of precision 1: that of precision p is V/p.
    """

    norm: ClassVar[int] = 2
    power: ClassVar[int] = 1
    variance: Fraction

    def cost(self, noise: Priced, sensitivity: Fraction) -> Fraction:
        """Return the ρ of one use, of this squared l2 norm (records²)."""
        return noise.rho(sensitivity)


@frozen
class InEpsilon:
    """Noise that is bought with pure ε.

    Attributes:
        variance: V, the variance of wide noise of precision 1: that of precision p is V/p².
    """

    norm: ClassVar[int] = 1
    power: ClassVar[int] = 2
    variance: Fraction

    def cost(self, noise: Priced, sensitivity: Fraction) -> Fraction:
        """Return the pure ε of one use, of this l1 norm (records)."""
        loss = noise.epsilon(sensitivity)
        if loss is None:
            raise NoiseError(
                f"{type(noise).__name__} is priced in epsilon, but its epsilon(l1) is None: "
                f"return the proved pure epsilon, or price it InRho"
            )
        return loss


Price = InRho | InEpsilon
"""By which budget noise is bought, and how its variance falls with what it gets of it."""


class PricedNoise(Priced, Protocol):
    """Noise that knows what it is bought with."""

    price: ClassVar[Price]


def precision_of(noise: PricedNoise) -> Fraction:
    """Return the precision of noise: ρ = 1/(2 sigma2), or ε = 1/scale."""
    return noise.price.cost(noise, Fraction(1))


# What may stand for a noise parameter, a sensitivity, a probability.


def scale_of_noise(name: str, largest: Fraction) -> Rational:
    """Return which numbers may be the parameter of a noise."""
    why = "so that noise fits 64-bit integers"
    return Rational(name, 0, largest, NoiseError, ends="(]", why=why)


SENSITIVITY = Rational("a sensitivity", 0, inf, NoiseError, "it is the size of a change")
TAIL = Real("a tail's probability", 0, 1, NoiseError, ends="(]")


def round_up(value: float) -> float:
    """Return a little more than the value: far more than a few roundings."""
    return value * (1 + 1e-12) + 1e-12
