"""The error of one released cell, max(0, N + noise), in closed form.

Each kind of noise has a *precision* that a budget buys (`hedgerow.noise.loss`): ε = 1/scale for
Laplace noise, ρ = 1/(2 sigma2) for the discrete Gaussian. Divide by the sensitivity (l1) or its
square (l2²) first, where it is not 1. The mean squared error is convex in the precision: see
`docs/proofs/noise.md`, "The error of a clipped cell", for that and for the discrete Gaussian's
formulas.
"""

from abc import ABC, abstractmethod
from functools import lru_cache
from math import exp, expm1, inf, pi, sqrt, tanh

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import erfcx

from hedgerow.arrays import Float64, FloatTriple, float64, int64
from hedgerow.declared import Real, frozen
from hedgerow.errors import NoiseError

# Moments of a discrete Gaussian clipped at 0: from a table of tail sums for sigma2 < 2¹⁶ (relative
# error about 1e-13), by Euler and Maclaurin's formula above (below 2e-16).


FORMULA_FROM = 65536.0
"""The sigma2 (records²) from which Euler and Maclaurin replace the table."""

_VANISHES = 750.0  # exp(-750) is 0 in doubles
_FAR = 40.0  # φ(40) is 0 in doubles


def clipping_bias(rho: float, counts: Float64) -> Float64:
    """Return E max(0, N + X) - N (records) for each whole count N >= 0."""
    rho, counts = PRECISION(rho), whole_counts(counts)
    if 1 / (2 * rho) >= FORMULA_FROM:
        return _formula_bias(rho, counts)
    table = _suffix_sums(rho)[4]
    bias: Float64 = table[int64(np.minimum(counts, len(table) - 1))]
    return bias


def clipped_mse(rho: float, counts: Float64, order: int) -> Float64:
    """Return the derivative in ρ of order 0, 1 or 2 of E (max(0, N + X) - N)² for each N."""
    rho, counts = PRECISION(rho), whole_counts(counts)
    if 1 / (2 * rho) >= FORMULA_FROM:
        return _formula_mse(rho, counts, order)
    return _table_mse(rho, counts, order)


def _table_mse(rho: float, counts: Float64, order: int) -> Float64:
    """Return cumulants of (g, Y, Y) with g = Y - r, r = (x² - N²) for x > N."""
    tails = _suffix_sums(rho)
    places = int64(np.minimum(counts, tails.shape[1] - 1))
    square = float64(places) ** 2
    m2, m4, m6 = (float(2 * moment) for moment in tails[1:4, 0])
    r: Float64 = tails[1, places] - square * tails[0, places]
    if order == 0:
        return m2 - r
    ry: Float64 = tails[2, places] - square * tails[1, places]
    if order == 1:
        return ry - r * m2 - (m4 - m2**2)
    ryy: Float64 = tails[3, places] - square * tails[2, places]
    return m6 - 3 * m4 * m2 + 2 * m2**3 - (ryy - 2 * ry * m2 - r * (m4 - 2 * m2**2))


@lru_cache(maxsize=16)
def _suffix_sums(rho: float) -> Float64:
    """Return ``Σ_{x>N} x^k p(x)`` for k = 0, 2, 4, 6, and the bias, for N = 0, 1, …."""
    x = np.arange(1.0, np.ceil(sqrt(_VANISHES / rho)) + 2)
    powers = np.stack([np.ones_like(x), x**2, x**4, x**6]) * np.exp(-rho * x * x)
    tails = np.zeros((5, len(x) + 1))
    tails[:4, :-1] = np.cumsum(powers[:, ::-1], axis=1)[:, ::-1]
    tails[:4] /= 1 + 2 * tails[0, 0]
    # Σ_{x>N} (x - N) p(x) = Σ_{y>N} P(X >= y): no difference of large sums.
    tails[4] = np.cumsum(tails[0, ::-1])[::-1]
    tails.flags.writeable = False
    return tails


def _formula_bias(rho: float, counts: Float64) -> Float64:
    z, phi, mills = _scaled(rho, counts)
    a = 2 * rho
    ends = -a / 12 + a**2 * (z**2 - 1) / 240 - a**3 * (z**4 - 6 * z**2 + 3) / 6048
    return phi * (1 - z * mills + ends) / sqrt(a)


def _formula_mse(rho: float, counts: Float64, order: int) -> Float64:
    """Return sigma2 F(z, a) or a derivative; ρ d/dρ takes z to z/2, a to a, sigma2 to -sigma2."""
    z, phi, mills = _scaled(rho, counts)
    tail = phi * mills
    body = (
        1 - z * phi - (1 - z**2) * tail,
        z * phi + tail - 1,
        2 - 2 * z * phi - 2 * tail - z**3 * phi / 2,
    )[order]
    a = 2 * rho
    ends = sum(a**i * term(z) for i, term in enumerate(_end_terms(order), start=1))
    return (body + phi * ends) / (a * rho**order)


@lru_cache(maxsize=3)
def _end_terms(order: int) -> tuple[Polynomial, ...]:
    """Return the polynomials in z beside φ(z) aⁱ, i = 1, 2, 3, of the derivative of this order."""
    z = Polynomial([0.0, 1.0])
    terms = (z / 6, (2 * z - z**3) / 120, (z**5 - 8 * z**3 + 9 * z) / 3024)

    def scaled_slope(i: int, term: Polynomial) -> Polynomial:
        return (i - 1) * term + z * (term.deriv() - z * term) / 2

    if order == 0:
        return terms
    first = tuple(scaled_slope(i, term) for i, term in enumerate(terms, start=1))
    if order == 1:
        return first
    return tuple(scaled_slope(i, term) - term for i, term in enumerate(first, start=1))


def _scaled(rho: float, counts: Float64) -> FloatTriple:
    """Return counts in standard deviations z, φ(z), and Mills' ratio Φ(-z)/φ(z)."""
    z = np.minimum(counts * sqrt(2 * rho), _FAR)
    return z, np.exp(-z * z / 2) / sqrt(2 * pi), sqrt(pi / 2) * erfcx(z / sqrt(2))


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
    def bias(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean, in records: what clipping at 0 adds."""

    @abstractmethod
    def mse(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean squared error, in records²: bias² + variance."""

    def variance(self, parameter: float, counts: Float64) -> Float64:
        """Return the variance, in records²."""
        return self.mse(parameter, counts) - self.bias(parameter, counts) ** 2

    def mse_slope(self, parameter: float, counts: Float64) -> Float64:
        """Return the derivative of `mse` in the precision, below 0; by differences here."""
        step = parameter * _STEP
        f = [self.mse(parameter + k * step, counts) for k in (-2, -1, 1, 2)]
        return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step)

    def mse_curvature(self, parameter: float, counts: Float64) -> Float64:
        """Return the second derivative of `mse` in the precision, above 0; likewise."""
        step = parameter * _STEP
        f = [self.mse(parameter + k * step, counts) for k in (-2, -1, 0, 1, 2)]
        return (16 * (f[1] + f[3]) - f[0] - f[4] - 30 * f[2]) / (12 * step**2)


@frozen
class LaplaceError(CellError):
    """Laplace noise of scale 1/ε (Ko et al., Propositions 1 and 2), with x = Nε:

    bias = e⁻ˣ / (2ε),  mse = (2 - (1 + x) e⁻ˣ) / ε², between 1/ε² and 2/ε²,
    slope = ((2 + 2x + x²) e⁻ˣ - 4) / ε³,
    curvature = (12 - (6 + 6x + 3x² + x³) e⁻ˣ) / ε⁴ >= 6 / ε⁴, as Σ_{k<=3} xᵏ/k! <= eˣ.
    """  # noqa: D415

    def bias(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean, in records."""
        epsilon, x = _scaled_counts(parameter, counts)
        return np.exp(-x) / (2 * epsilon)

    def mse(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean squared error, in records²."""
        epsilon, x = _scaled_counts(parameter, counts)
        return (2 - (1 + x) * np.exp(-x)) / epsilon**2

    def mse_slope(self, parameter: float, counts: Float64) -> Float64:
        """Return the derivative of `mse` in ε."""
        epsilon, x = _scaled_counts(parameter, counts)
        return ((2 + 2 * x + x**2) * np.exp(-x) - 4) / epsilon**3

    def mse_curvature(self, parameter: float, counts: Float64) -> Float64:
        """Return the second derivative of `mse` in ε."""
        epsilon, x = _scaled_counts(parameter, counts)
        return (12 - (6 + 6 * x + 3 * x**2 + x**3) * np.exp(-x)) / epsilon**4


@frozen
class DiscreteLaplaceError(CellError):
    """P(X = x) ∝ q^|x| on the integers, q = e^-ε; by geometric sums.

    With t = tanh(ε/2):

    bias = q^(N+1) / (1 - q²),
    mse = A q/(1-q)²,                A = 2 - qᴺ (1 + 2Nt),
    slope = -B q/(1-q)² / t,         B = A - qᴺ N t² (2N + t),
    curvature = C q/(1-q)² / t²,     C = B (3-t²)/2 - qᴺ N t³ (2N² - 1/2 + 3Nt + 3t²/2).
    """

    def bias(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean, in records."""
        epsilon, x = _scaled_counts(parameter, whole_counts(counts))
        return np.exp(-x - min(epsilon, _VANISHES)) / -expm1(-2 * epsilon)

    def mse(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean squared error, in records²."""
        t, reached, half = self._parts(parameter, counts)
        return (2 - reached * (1 + 2 * counts * t)) * half

    def mse_slope(self, parameter: float, counts: Float64) -> Float64:
        """Return the derivative of `mse` in ε."""
        t, reached, half = self._parts(parameter, counts)
        return self._b(counts, t, reached) * (-half / t)

    def mse_curvature(self, parameter: float, counts: Float64) -> Float64:
        """Return the second derivative of `mse` in ε."""
        t, reached, half = self._parts(parameter, counts)
        last = counts * t * (2 * (counts * t) ** 2 - t**2 / 2 + 3 * counts * t**3 + 1.5 * t**4)
        c = self._b(counts, t, reached) * ((3 - t**2) / 2) - reached * last
        return c * (half / t**2)

    @staticmethod
    def _parts(parameter: float, counts: Float64) -> tuple[float, Float64, float]:
        """Return t, qᴺ and q/(1-q)², half the variance of the noise (records²)."""
        epsilon, x = _scaled_counts(parameter, whole_counts(counts))
        return tanh(epsilon / 2), np.exp(-x), exp(-epsilon) / expm1(-epsilon) ** 2

    @staticmethod
    def _b(counts: Float64, t: float, reached: Float64) -> Float64:
        nt = counts * t
        return 2 - reached * (1 + 2 * nt + 2 * nt**2 + nt * t**2)


@frozen
class DiscreteGaussianError(CellError):
    """P(X = x) ∝ exp(-ρ x²) on the integers; see `hedgerow.noise.cell_error`.

    Right to about 1e-12, relatively, in every moment and derivative; time and memory do not grow
    with sigma2 beyond a table of 9,900 places.
    """

    def bias(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean, in records."""
        return clipping_bias(parameter, counts)

    def mse(self, parameter: float, counts: Float64) -> Float64:
        """Return the mean squared error, in records²."""
        return clipped_mse(parameter, counts, 0)

    def mse_slope(self, parameter: float, counts: Float64) -> Float64:
        """Return the derivative of `mse` in ρ."""
        return clipped_mse(parameter, counts, 1)

    def mse_curvature(self, parameter: float, counts: Float64) -> Float64:
        """Return the second derivative of `mse` in ρ."""
        return clipped_mse(parameter, counts, 2)


def _scaled_counts(parameter: float, counts: Float64) -> tuple[float, Float64]:
    """Return the precision ε and Nε, no further than where exp(-Nε) is 0."""
    _not_negative(counts)
    return PRECISION(parameter), np.minimum(counts * parameter, _VANISHES)


PRECISION = Real("the precision of noise", 0, inf, NoiseError, ends="()")


def _not_negative(counts: Float64) -> None:
    if not bool((counts >= 0).all()):
        raise NoiseError("the error of a cell needs true counts of at least 0")


def whole_counts(counts: Float64) -> Float64:
    """Return the counts; refuse those that no integer noise is added to."""
    _not_negative(counts)
    if not bool((counts == np.floor(counts)).all()):
        raise NoiseError(
            "the error of a cell under integer noise needs whole counts; round them first"
        )
    return counts
