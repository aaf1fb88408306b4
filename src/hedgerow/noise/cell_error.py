"""The error of one released cell, max(0, N + noise), in closed form.

Each kind of noise has a *precision* that a budget buys (`hedgerow.noise.price`) and in which its
mean squared error is convex: ε = 1/scale for Laplace noise, ρ = 1/(2 sigma2) for the discrete
Gaussian. Divide by the sensitivity (l1) or its square (l2²) before, where it is not 1.

Convexity of the mean squared error in the precision: proved for Laplace and discrete Laplace noise
(beside the formulas); for the discrete Gaussian proved in the limit of large sigma2, where
ρ² sigma2⁻¹ d²/dρ² is 2Φ(z) - 2zφ(z) - z³φ(z)/2, which is 1 at z = 0 and rises by
z²(1 + z²)φ(z)/2; verified on a grid of all sizes for the rest.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, expm1, isfinite, tanh

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import NoiseError
from hedgerow.noise.gaussian_sums import clipped_mse, clipping_bias

Floats = NDArray[np.float64]

_VANISHES = 750.0  # exp(-750) is 0 in doubles

_STEP = 2.0**-10
"""Of differences, relative to the precision: about 1e-11 of a derivative is lost."""


class CellError(ABC):
    """Moments of max(0, N + noise) - N, for one precision and many true counts N.

    Every method takes the precision (a number above 0) and the counts (float64, any shape; at
    least 0, and whole for integer noise), and gives an array of the shape of the counts.

    The squared error must be strictly convex in the precision, and where N is beyond
    max(45/precision, 10/√(2 precision)) it must be the variance of the noise, to 1e-15.

    Raises:
        NoiseError: a precision that is not a positive number, or such counts.
    """

    @abstractmethod
    def bias(self, parameter: float, counts: Floats) -> Floats:
        """The mean, in records: what clipping at 0 adds."""

    @abstractmethod
    def mse(self, parameter: float, counts: Floats) -> Floats:
        """The mean squared error, in records²: bias² + variance."""

    def variance(self, parameter: float, counts: Floats) -> Floats:
        """The variance, in records²."""
        return self.mse(parameter, counts) - self.bias(parameter, counts) ** 2

    def mse_slope(self, parameter: float, counts: Floats) -> Floats:
        """The derivative of `mse` in the precision: below 0. By differences unless overridden."""
        step = parameter * _STEP
        f = [self.mse(parameter + k * step, counts) for k in (-2, -1, 1, 2)]
        slope: Floats = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)
        return slope

    def mse_curvature(self, parameter: float, counts: Floats) -> Floats:
        """The second derivative of `mse` in the precision: above 0. Likewise by differences."""
        step = parameter * _STEP
        f = [self.mse(parameter + k * step, counts) for k in (-2, -1, 0, 1, 2)]
        bent: Floats = (16 * (f[1] + f[3]) - f[0] - f[4] - 30 * f[2]) / (12 * step**2)
        return bent


@dataclass(frozen=True, slots=True)
class LaplaceError(CellError):
    """Laplace noise of scale 1/ε (Ko et al., Propositions 1 and 2), with x = Nε:

    bias = e⁻ˣ / (2ε),  mse = (2 - (1 + x) e⁻ˣ) / ε², between 1/ε² and 2/ε²,
    slope = ((2 + 2x + x²) e⁻ˣ - 4) / ε³,
    curvature = (12 - (6 + 6x + 3x² + x³) e⁻ˣ) / ε⁴ >= 6 / ε⁴, as Σ_{k<=3} xᵏ/k! <= eˣ.
    """  # noqa: D415

    def bias(self, parameter: float, counts: Floats) -> Floats:
        """The mean, in records."""
        epsilon, x = _reach(parameter, counts)
        return np.exp(-x) / (2 * epsilon)

    def mse(self, parameter: float, counts: Floats) -> Floats:
        """The mean squared error, in records²."""
        epsilon, x = _reach(parameter, counts)
        return (2 - (1 + x) * np.exp(-x)) / epsilon**2

    def mse_slope(self, parameter: float, counts: Floats) -> Floats:
        """The derivative of `mse` in ε."""
        epsilon, x = _reach(parameter, counts)
        return ((2 + 2 * x + x**2) * np.exp(-x) - 4) / epsilon**3

    def mse_curvature(self, parameter: float, counts: Floats) -> Floats:
        """The second derivative of `mse` in ε."""
        epsilon, x = _reach(parameter, counts)
        return (12 - (6 + 6 * x + 3 * x**2 + x**3) * np.exp(-x)) / epsilon**4


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceError(CellError):
    """P(X = x) ∝ q^|x| on the integers, q = e^-ε; geometric sums, with t = tanh(ε/2):

        bias = q^(N+1) / (1 - q²),
        mse = A q/(1-q)²,                A = 2 - qᴺ (1 + 2Nt),
        slope = -B q/(1-q)² / t,         B = A - qᴺ N t² (2N + t),
        curvature = C q/(1-q)² / t²,     C = B (3-t²)/2 - qᴺ N t³ (2N² - 1/2 + 3Nt + 3t²/2).

    A and B lie in [1, 2]. C > 0, so mse is strictly convex: with y = 2Nt, q⁻ᴺ > eʸ and
    (3-t²)(1 + y + y²/2) / 2 is common to both sides, so that C > 0 follows from y³/4 + Nt³ + Nt⁵ +
    3N²t⁴ < 1 + y + y²/2 + y³/3 + y⁴/12; there Nt³ + Nt⁵ <= y, 3N²t⁴ <= 3y²/4 and
    y²/4 < 1 + y³/12 + y⁴/12.
    """  # noqa: D415

    def bias(self, parameter: float, counts: Floats) -> Floats:
        """The mean, in records."""
        epsilon, x = _reach(parameter, whole_counts(counts))
        return np.exp(-x - min(epsilon, _VANISHES)) / -expm1(-2 * epsilon)

    def mse(self, parameter: float, counts: Floats) -> Floats:
        """The mean squared error, in records²."""
        epsilon, x = _reach(parameter, whole_counts(counts))
        return self._a(counts, tanh(epsilon / 2), np.exp(-x)) * _half_variance(epsilon)

    def mse_slope(self, parameter: float, counts: Floats) -> Floats:
        """The derivative of `mse` in ε."""
        epsilon, x = _reach(parameter, whole_counts(counts))
        t = tanh(epsilon / 2)
        return self._b(counts, t, np.exp(-x)) * (-_half_variance(epsilon) / t)

    def mse_curvature(self, parameter: float, counts: Floats) -> Floats:
        """The second derivative of `mse` in ε."""
        epsilon, x = _reach(parameter, whole_counts(counts))
        t, reached = tanh(epsilon / 2), np.exp(-x)
        last = counts * t * (2 * (counts * t) ** 2 - t**2 / 2 + 3 * counts * t**3 + 1.5 * t**4)
        c = self._b(counts, t, reached) * ((3 - t**2) / 2) - reached * last
        return c * (_half_variance(epsilon) / t**2)

    @staticmethod
    def _a(counts: Floats, t: float, reached: Floats) -> Floats:
        return 2 - reached * (1 + 2 * counts * t)

    @staticmethod
    def _b(counts: Floats, t: float, reached: Floats) -> Floats:
        nt = counts * t
        return 2 - reached * (1 + 2 * nt + 2 * nt**2 + nt * t**2)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianError(CellError):
    """P(X = x) ∝ exp(-ρ x²) on the integers; see `hedgerow.noise.gaussian_sums`.

    Right to about 1e-12, relatively, in every moment and derivative; time and memory do not grow
    with sigma2 beyond a table of 9,900 places.
    """

    def bias(self, parameter: float, counts: Floats) -> Floats:
        """The mean, in records."""
        return clipping_bias(positive_precision(parameter), whole_counts(counts))

    def mse(self, parameter: float, counts: Floats) -> Floats:
        """The mean squared error, in records²."""
        return clipped_mse(positive_precision(parameter), whole_counts(counts), 0)

    def mse_slope(self, parameter: float, counts: Floats) -> Floats:
        """The derivative of `mse` in ρ."""
        return clipped_mse(positive_precision(parameter), whole_counts(counts), 1)

    def mse_curvature(self, parameter: float, counts: Floats) -> Floats:
        """The second derivative of `mse` in ρ."""
        return clipped_mse(positive_precision(parameter), whole_counts(counts), 2)


def _half_variance(epsilon: float) -> float:
    """q/(1-q)², half the variance of discrete Laplace noise (records²)."""
    return exp(-epsilon) / expm1(-epsilon) ** 2


def _reach(parameter: float, counts: Floats) -> tuple[float, Floats]:
    """The precision ε and Nε, no further than where exp(-Nε) is 0."""
    _not_negative(counts)
    return positive_precision(parameter), np.minimum(counts * parameter, _VANISHES)


def positive_precision(parameter: float) -> float:
    """Return the precision; refuse one that is not a positive number."""
    if not (isfinite(parameter) and parameter > 0):
        raise NoiseError(f"the precision of noise must be above 0 and finite, got {parameter}")
    return parameter


def _not_negative(counts: Floats) -> None:
    if not bool((counts >= 0).all()):
        raise NoiseError("the error of a cell needs true counts of at least 0")


def whole_counts(counts: Floats) -> Floats:
    """Return the counts; refuse those that no integer noise is added to."""
    _not_negative(counts)
    if not bool((counts == np.floor(counts)).all()):
        raise NoiseError(
            "the error of a cell under integer noise needs whole counts; round them first"
        )
    return counts
