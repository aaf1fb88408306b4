"""What Gaussian noise promises whatever the changes are, if their ℓ2 norms are bounded.

Theorem. Let M measure vectors of whole numbers, each chosen in the light of what came before, the
t-th with independent noise N_Z(0, σ_t²), neighbours being at most Δ_t apart. For any
0 < s² < min σ_t² let q = e^(-2π²s²), η = 2q/(1 - q), C = Σ Δ_t² ln((1 + η)/(1 - η)) and
μ² = Σ Δ_t²/(σ_t² - s²). Then M satisfies (ε, δ) for δ = e^C δ_μ(ε - 2C), with

    δ_μ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)    (Balle & Wang 2018, Theorem 8).

Proof, the cases of `Neighbours.changes`, and other guarantees in the composition:
`docs/proofs/privacy.md`, "Gaussian noise and bounded norms".
"""

import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import erfcx, gammaln, ndtr

from hedgerow.arrays import Float64
from hedgerow.declared import frozen
from hedgerow.noise.loss import PairLoss
from hedgerow.privacy.budget import FINITE_EPSILON, float_above

SMOOTHINGS = tuple(Fraction(quarters, 4) for quarters in (1, 2, 3, 4, 6, 8, 12, 16))
"""Values of s², records²: C is 0.03 a changed count at the first, 2e-34 at the last."""

MOST_LOSSES = 1 << 16
ROUND_OFF = 1e-12  # relative, of elementary functions and erfcx; tests/privacy measure it
SMALL_MU = 1e-3
FARTHEST, SMALLEST = 100.0, 1e-300  # δ_μ is less than the second from a = 38 on


@frozen
class Gaussians:
    """Noise N_Z(0, σ²) on whole numbers of which one unit changes vectors of bounded norm.

    Attributes:
        sigma2: σ², in squared units of the measurements.
        squared: Δ² >= 1, in the same: of the change of any one of them.
        times: how many.
    """

    sigma2: Fraction
    squared: Fraction
    times: int


@dataclass(frozen=True)
class Domination:
    """A composition by what dominates it; see the top of this file.

    Attributes:
        cases: measurements with discrete Gaussian noise, in each case of what one unit changes.
        pairs: other guarantees, with how often each is used.
    """

    cases: tuple[tuple[Gaussians, ...], ...]
    pairs: tuple[tuple[PairLoss, int], ...] = ()

    def delta(self, epsilon: float) -> float:
        """Return δ such that the composition is (ε, δ)-DP, rounded up; at most 1."""
        FINITE_EPSILON(epsilon)
        losses, chances, sound = self.others
        deltas = [
            float(np.minimum(chances @ _above(epsilon - losses, mu, doubt), 1.0))
            for mu, doubt in self.bounds
        ]
        never = -math.expm1(sound)
        finite = math.exp(sound) * min(deltas, default=1.0)
        return min(1.0, (never + finite) * (1 + 1e-9))

    @cached_property
    def bounds(self) -> list[tuple[float, float]]:
        """Return the largest μ and C for each s² that is small enough, rounded up."""
        cases = [case for case in self.cases if case]
        if not cases:
            return [(0.0, 0.0)]
        bounds = []
        for smoothing in SMOOTHINGS:
            if all(smoothing < g.sigma2 for case in cases for g in case):
                with suppress(OverflowError):
                    mu = max(_mu(case, smoothing) for case in cases)
                    bounds.append((mu, max(_doubt(case, smoothing) for case in cases)))
        return bounds

    @cached_property
    def others(self) -> tuple[Float64, Float64, float]:
        """Return the finite losses of the other guarantees, their chances, and ln P[L < ∞].

        More than MOST_LOSSES are not told apart: all count as their largest.
        """
        times: Counter[Fraction] = Counter()
        sound = extent = 0.0
        for pair, uses in self.pairs:
            times[pair.epsilon] += uses
            delta = float_above(pair.delta)
            sound += uses * math.log1p(-delta) if delta < 1 else -math.inf
        losses = np.zeros(1)
        chances = np.ones(1)
        for epsilon, uses in times.items():
            most = float_above(epsilon) * (1 + ROUND_OFF)
            extent += most * uses
            if len(losses) * (uses + 1) > MOST_LOSSES:
                losses = losses + most * uses
                continue
            losses = np.add.outer(losses, most * (2.0 * np.arange(uses + 1) - uses)).ravel()
            chances = np.multiply.outer(chances, _binomial(uses, most)).ravel()
        return losses + 2.0**-52 * (len(times) + 2) * extent, chances, sound


def _binomial(uses: int, epsilon: float) -> Float64:
    """Return the chances of 0, …, n losses +ε of n, each of chance 1/(1 + e^-ε), rounded up."""
    k = np.arange(uses + 1)
    ways = gammaln(uses + 1) - gammaln(k + 1) - gammaln(uses - k + 1)
    exponents = ways - epsilon * (uses - k) - uses * math.log1p(math.exp(-epsilon))
    round_off = 4e-15 * (float(gammaln(uses + 1)) + epsilon * uses + 1)
    chances: Float64 = np.exp(exponents + round_off)
    return chances


def _mu(gaussians: tuple[Gaussians, ...], smoothing: Fraction) -> float:
    exact = sum((g.times * g.squared / (g.sigma2 - smoothing) for g in gaussians), Fraction(0))
    return math.sqrt(float_above(exact)) * (1 + ROUND_OFF)


def _doubt(gaussians: tuple[Gaussians, ...], smoothing: Fraction) -> float:
    q = math.exp(-2 * math.pi**2 * float(smoothing))
    eta = 2 * q / (1 - q)
    coordinates = sum((g.times * g.squared for g in gaussians), Fraction(0))
    return float(coordinates) * math.log1p(2 * eta / (1 - eta)) * (1 + ROUND_OFF)


def _above(epsilon: Float64, mu: float, doubt: float) -> Float64:
    """Return e^C δ_μ(ε - 2C), rounded up: float64 in the shape of ε."""
    moved = epsilon - 2 * doubt
    moved -= 4e-16 * (np.abs(epsilon) + doubt)
    delta = gaussian_delta_above(moved, mu) if mu else -np.expm1(np.minimum(moved, 0.0))
    return np.minimum(math.exp(min(doubt, 700.0)) * (1 + ROUND_OFF) * delta, 1.0)


def gaussian_delta_above(epsilon: Float64, mu: float) -> Float64:
    """Return δ_μ(ε), rounded up, of μ-Gaussian differential privacy: float64 in the shape of ε.

    For ε >= 0, with a = ε/μ - μ/2, b = a + μ and Mills' ratio R, δ_μ(ε) = φ(a) (R(a) - R(b)), and
    δ_μ(-ε) = 1 - e^-ε + e^-ε δ_μ(ε).

    Round-off is bounded in `docs/proofs/privacy.md`, "Gaussian noise and bounded norms".
    """
    size = np.minimum(np.abs(epsilon), mu * (mu / 2 + FARTHEST))  # beyond, φ(a) is 0
    a = size / mu - mu / 2
    b = size / mu + mu / 2
    density = np.exp(-np.square(a) / 2) / math.sqrt(2 * math.pi)
    margin = 2.0**-50 * (b + 1) * (np.abs(a) + 1) + ROUND_OFF
    if mu < SMALL_MU:
        ends = (_mills_slope(a) + _mills_slope(b)) / 2 + ROUND_OFF
        above = density * mu * ends * (1 + margin)
    else:
        first = np.where(a > 0, density * _mills(np.maximum(a, 0.0)), ndtr(-a))
        second = density * _mills(b)
        above = first - second + margin * (first + second)
    above = above + SMALLEST
    below = np.minimum(epsilon, 0.0)
    turned = (np.exp(below) * above - np.expm1(below)) * (1 + ROUND_OFF)
    return np.asarray(np.minimum(np.where(epsilon < 0, turned, above), 1.0))


def _mills(x: Float64) -> Float64:
    """Return (1 - Φ(x))/φ(x)."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2)))


def _mills_slope(x: Float64) -> Float64:
    """Return how fast Mills' ratio falls."""
    return 1 - x * _mills(x)
