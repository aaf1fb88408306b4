"""Where the contour for δ(ε) runs, and how far apart its nodes may be."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hedgerow.arrays import Complex128, Float64, FloatPair
from hedgerow.declared import frozen
from hedgerow.noise.loss import Losses
from hedgerow.privacy.accountant.cumulant import cumulant

# Weights w(s) of the trapezoidal sum over s = c + imh. The plain 1/(s(s+1)) decays like 1/m² only;
# `Folded` (all of L on one lattice: exact) and `Smoothed` (any L: sums that enclose δ) need
# finitely many nodes.

POINT, LOW, HIGH = range(3)


@frozen
class Folded:
    """The weight for a loss on the lattice y + u·Z, y = ε + r and 0 < r ≤ u, over one period.

    A loss ℓ = y + uj contributes (1 - e^(ε-ℓ))₊, and Σ_j e^(-suj) (1 - e^(-(r+uj))) over j ≥ 0 is a
    difference of two geometric series, on one denominator

        w(s) = u [(1 - e^-r) + e^(-su) (e^-r - e^-u)] / ((1 - e^(-su)) (1 - e^(-(s+1)u))).

    By inversion of Fourier series δ(ε) is 1/2π times the integral of E[e^(s(L-y))] w(s) over one
    period 2π/u of Im s.

    Attributes:
        unit: u.
        gap: r.
        near: 1 - e^-r.
        far: e^-r - e^-u.
    """

    unit: float
    gap: float
    near: float
    far: float

    @classmethod
    def of(cls, unit: Fraction, gap: Fraction) -> "Folded":
        """Return the weight for exact u and r."""
        far = -math.exp(-float(gap)) * math.expm1(-float(unit - gap))
        return cls(float(unit), float(gap), -math.expm1(-float(gap)), far)

    def weights(self, tilt: float, height: Float64) -> Complex128:
        """Return the weights at s = tilt + i·height: complex (3, n), three equal rows."""
        point = (tilt + 1j * height) * self.unit
        above = self.near + self.far * np.exp(-point)
        below = np.expm1(-point) * np.expm1(-point - self.unit)
        return np.broadcast_to(self.unit * above / below, (3, height.size))

    def envelope(self, tilt: float, height: Float64) -> Float64:
        """Return a bound of the modulus at each height in [0, π/u], which does not increase.

        |1 - e^(-(a+ib))|² = (1 - e^-a)² + 4e^-a sin²(b/2).
        """
        first, second = (self._below(tilt + shift, height) for shift in (0.0, 1.0))
        above = self.near + self.far * math.exp(-tilt * self.unit)
        return self.unit * above / np.sqrt(first * second)

    def log_weight(self, tilts: Float64) -> Float64:
        """Return log w(c) at real c > 0."""
        real = tilts * self.unit
        below = np.log(-np.expm1(-real)) + np.log(-np.expm1(-real - self.unit))
        return np.asarray(np.log(self.unit * (self.near + self.far * np.exp(-real))) - below)

    def log_chernoff(self, tilts: Float64) -> Float64:
        """Return a log C with (1 - e^(ε-ℓ))₊ ≤ C e^(z(ℓ-y)) on the lattice, for each z ≥ 0.

        The one of `log_chernoff`, or the larger of 1 - e^-r, at j = 0, and e^(-zu).
        """
        on_lattice = np.maximum(math.log(self.near), -tilts * self.unit)
        return np.minimum(log_chernoff(tilts) + tilts * self.gap, on_lattice)

    def _below(self, tilt: float, height: Float64) -> Float64:
        real = tilt * self.unit
        wave = np.sin(np.minimum(height * self.unit, math.pi) / 2) ** 2
        return math.expm1(-real) ** 2 + 4 * math.exp(-real) * wave


@frozen
class Smoothed:
    """Weights whose sums lie above and below δ(ε), for a loss with any law.

    Let b be the density of V, the sum of four independent uniforms on [-w, w], b̂(s) = E e^(sV),
    and A the average Af(ε) = ∫ f(ε+v) e^(-v/2) b(v) dv / b̂(1/2): under the integral it multiplies
    by k̂(s) = b̂(s+1/2)/b̂(1/2) with b̂(s) = (sinh(ws)/(ws))⁴. Then, with λ = 5/2 and w ≤ 1/40,

    Proof: `docs/proofs/accounting.md`, "δ(ε) as a contour integral".

        (1+λ)Aδ - λA²δ  ≤  δ  ≤  Aδ.

    Attributes:
        width: w.
    """

    width: float

    EXCESS = 2.5
    FACTORS = 4
    LARGEST_WIDTH = 1 / 40

    @classmethod
    def within(cls, tilt: float, tolerance: float) -> "Smoothed":
        """Return the weights of about the width at which both averages agree within ``tolerance``.

        Aδ - δ is about half the variance 4w²/3 of V times δ'' - δ', which is about c(c+1)δ.
        """
        scale = (1 + cls.EXCESS) * cls.FACTORS / 6 * tilt * (tilt + 1)
        return cls(min(math.sqrt(tolerance / scale), cls.LARGEST_WIDTH))

    def weights(self, tilt: float, height: Float64) -> Complex128:
        """Return the weights at s = tilt + i·height: complex (3, n): plain, below and above δ."""
        point = tilt + 1j * height
        plain = 1 / (point * (point + 1))
        bent = self.width * (point + 0.5)
        half = self.width / 2
        average = (np.sinh(bent) / bent * (half / math.sinh(half))) ** self.FACTORS
        below = average * (1 + self.EXCESS - self.EXCESS * average)
        return np.stack([plain, plain * below, plain * average])

    def envelope(self, tilt: float, height: Float64) -> Float64:
        """Return a bound of the modulus of all but the plain weights; it does not increase."""
        plain = np.hypot(tilt, height) * np.hypot(tilt + 1, height)
        falling = self._cosh(tilt) / np.maximum(self.width * height, 1e-9)
        bound = np.minimum(np.exp(self._log_growth(np.array(tilt))), falling**self.FACTORS)
        return np.asarray((1 + 2 * self.EXCESS) * bound * np.maximum(bound, 1) / plain)

    def beyond(self, tilt: float, height: float) -> float:
        """Return a bound of (1/π) ∫ of the envelope from ``height`` on; |sinh(x+iy)| ≤ cosh x."""
        falling = (self._cosh(tilt) / (self.width * height)) ** self.FACTORS
        rest = (1 + 2 * self.EXCESS) * falling * max(falling, 1) / (self.FACTORS + 1)
        return rest / (math.pi * height)

    def height_for(self, tilt: float, rest: float) -> float:
        """Return about the height beyond which no more than ``rest`` is left."""
        scale = (1 + 2 * self.EXCESS) / ((self.FACTORS + 1) * math.pi)
        falling = (self._cosh(tilt) / self.width) ** self.FACTORS
        return float((scale * falling / rest) ** (1 / (self.FACTORS + 1)))

    def log_weight(self, tilts: Float64) -> Float64:
        """Return log w(c) at real c > 0, before smoothing."""
        return plain_log_weight(tilts)

    def log_chernoff(self, tilts: Float64) -> Float64:
        """Return log C for both averages: that of δ, times (1+λ)k̂(z)² at most."""
        return log_chernoff(tilts) + 2 * self._log_growth(tilts) + math.log(1 + self.EXCESS)

    def _log_growth(self, tilts: Float64) -> Float64:
        """Return a bound of log k̂ at real s ≥ 0: sinh(y)/y ≤ e^(y²/6)."""
        return self.FACTORS * (self.width * (tilts + 0.5)) ** 2 / 6

    def _cosh(self, tilt: float) -> float:
        return math.cosh(self.width * (tilt + 0.5))


def plain_log_weight(tilts: Float64) -> Float64:
    """Return log of 1/(c(c+1))."""
    return -np.log(tilts) - np.log1p(tilts)


def log_chernoff(tilts: Float64) -> Float64:
    """Return log of C(z) = z^z/(1+z)^(1+z), the maximum of (1 - e^-u) e^(-zu) over u ≥ 0."""
    positive = np.maximum(tilts, 1e-300)
    return -positive * np.log1p(1 / positive) - np.log1p(positive)


OfTilts = Callable[[Float64], Float64]

# Logarithms of the smallest and largest c that are tried: δ near 1, and ε just below the largest
# possible loss.
_LOG_TILTS = (-20.0, 35.0)
_GRID = 33
# Keep c from running away where nothing is gained, and from where only round-off is.
_RESTRAINT = 1e-3
_ROUNDING = 1e-12


@frozen
class Line:
    """The line Re s = c through the saddle point of e^(K(s) - sy) w(s).

    Attributes:
        losses: the composition.
        target: y.
        tilt: c.
        scale: about δ(ε)/e^(K(c) - cy), by Laplace's method. Tolerances are relative to it, and
            nothing that is proved hangs on it.
    """

    losses: Losses
    target: float
    tilt: float
    scale: float


@frozen
class Aliases:
    """Bounds of what the trapezoidal rule adds: on each side of ε the least e^head/(e^(gap·T) - 1).

    Attributes:
        sides: of each side the heads, relative to e^(K(c) - cy), and the gaps.
    """

    sides: tuple[FloatPair, ...]

    def bound(self, period: float) -> float:
        """Return of the sum of all aliases for T = ``period``."""
        return sum(
            math.exp(float(np.min(heads - gaps * period - np.log(-np.expm1(-gaps * period)))))
            for heads, gaps in self.sides
        )

    def period_for(self, bound: float) -> float:
        """Return a period T whose aliases are about ``bound`` or less."""
        log_bound = math.log(bound)
        return max(float(np.min(np.maximum(h - log_bound, 1) / gaps)) for h, gaps in self.sides)


def line_through_saddle(
    losses: Losses, target: float, log_weight: OfTilts, unit: float = 0.0
) -> Line:
    """Return the line of the c at which K(c) - cy + log w(c), a convex function, is about least.

    Where only the largest loss exceeds ε it falls for ever, and c stays where it hardly falls.
    """

    def height(tilts: Float64) -> Float64:
        exponents = cumulant(losses, tilts) - tilts * target + log_weight(tilts)
        return exponents + _RESTRAINT * np.log(tilts) + _ROUNDING * tilts * abs(target)

    low, high = _LOG_TILTS
    for _ in range(3):
        grid = np.linspace(low, high, _GRID)
        best = int(np.argmin(height(np.exp(grid))))
        low = grid[max(best - 1, 0)]
        high = grid[min(best + 1, _GRID - 1)]
    tilt = math.exp(float(grid[best]))
    below, at, above = height(tilt * np.array([0.98, 1.0, 1.02]))
    curvature = max(float(below - 2 * at + above), 0.0) / (0.02 * tilt) ** 2
    # The integral is over 2π/unit at most.
    width = max(math.sqrt(2 * math.pi * curvature), unit)
    return Line(losses, target, tilt, math.exp(float(log_weight(np.array([tilt]))[0])) / width)


def aliases(line: Line, log_chernoff: OfTilts) -> Aliases:
    """Bound the aliases by Chernoff bounds at a few dozen z on either side of c (see `contour`)."""
    tilt = line.tilt
    at_tilt = float(cumulant(line.losses, np.array([tilt]))[0])

    def heads(tilts: Float64) -> Float64:
        moments = cumulant(line.losses, tilts)
        slack = 1e-12 * (np.abs(moments) + abs(at_tilt) + (tilts + tilt) * abs(line.target))
        across = (tilts - tilt) * line.target
        return moments - at_tilt - across + log_chernoff(tilts) + slack

    right = tilt * (1 + np.geomspace(0.01, 100, 40))
    left = tilt * np.linspace(0, 0.98, 40)
    return Aliases(((heads(right), right - tilt), (heads(left), tilt - left)))
