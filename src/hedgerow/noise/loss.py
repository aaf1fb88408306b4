"""The privacy loss of one use: a random variable on a lattice; compositions add independent ones.

With P and Q the laws of a noisy count on neighbouring tables, the loss is L = ln P(X)/Q(X) for X
drawn from P, and the composition satisfies (ε, δ) for δ(ε) = P[L = ∞] + E[(1 - e^(ε - L))₊]
(Su, Su & Wang; Dong, Roth & Su 2022). The noises here are symmetric, so exchanging P and Q changes
nothing. Every atom of a loss is ``offset + step · k`` for an integer k, exactly.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


def gathered(losses: Iterable[tuple[Loss, int]]) -> Losses:
    """Equal losses once, with their times added."""
    counted: Counter[Loss] = Counter()
    for loss, times in losses:
        counted[loss] += times
    return tuple(counted.items())
