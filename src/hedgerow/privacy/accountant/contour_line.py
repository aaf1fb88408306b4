"""Where the contour for δ(ε) runs, and how far apart its nodes may be."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hedgerow.noise.loss import Losses
from hedgerow.privacy.accountant.cumulant import Array, cumulant

OfTilts = Callable[[Array], Array]

# Logarithms of the smallest and largest c that are tried: δ near 1, and ε just below the largest
# possible loss.
_LOG_TILTS = (-20.0, 35.0)
_GRID = 33
# Keep c from running away where nothing is gained, and from where only round-off is.
_RESTRAINT = 1e-3
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Aliases:
    """Bounds of what the trapezoidal rule adds: on each side of ε the least e^head/(e^(gap·T) - 1).

    Attributes:
        sides: of each side the heads, relative to e^(K(c) - cy), and the gaps.
    """

    sides: tuple[tuple[Array, Array], ...]

    def bound(self, period: float) -> float:
        """Of the sum of all aliases for T = ``period``."""
        return sum(
            math.exp(float(np.min(heads - gaps * period - np.log(-np.expm1(-gaps * period)))))
            for heads, gaps in self.sides
        )

    def period_for(self, bound: float) -> float:
        """A period T whose aliases are about ``bound`` or less."""
        log_bound = math.log(bound)
        return max(float(np.min(np.maximum(h - log_bound, 1) / gaps)) for h, gaps in self.sides)


def line_through_saddle(
    losses: Losses, target: float, log_weight: OfTilts, unit: float = 0.0
) -> Line:
    """The line of the c at which K(c) - cy + log w(c), a convex function, is about least.

    Where only the largest loss exceeds ε it falls for ever, and c stays where it hardly falls.

    Args:
        losses: the composition.
        target: y.
        log_weight: log w at real c.
        unit: of the lattice, for weights that are folded over it.
    """

    def height(tilts: Array) -> Array:
        exponents = cumulant(losses, tilts) - tilts * target + log_weight(tilts)
        return np.asarray(exponents + _RESTRAINT * np.log(tilts) + _ROUNDING * tilts * abs(target))

    low, high = _LOG_TILTS
    for _ in range(3):
        grid = np.linspace(low, high, _GRID)
        best = int(np.argmin(height(np.exp(grid))))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    tilt = math.exp(float(grid[best]))
    below, at, above = height(tilt * np.array([0.98, 1.0, 1.02]))
    curvature = max(float(below - 2 * at + above), 0.0) / (0.02 * tilt) ** 2
    # The integral is over 2π/unit at most.
    width = max(math.sqrt(2 * math.pi * curvature), unit)
    return Line(losses, target, tilt, math.exp(float(log_weight(np.array([tilt]))[0])) / width)


def aliases(line: Line, log_chernoff: OfTilts) -> Aliases:
    """Bound the aliases by Chernoff bounds at a few dozen z on either side of c (see `contour`).

    Args:
        line: the line.
        log_chernoff: log C at z ≥ 0, where C e^(z(ℓ-y)) bounds what a loss ℓ contributes.
    """
    tilt = line.tilt
    at_tilt = float(cumulant(line.losses, np.array([tilt]))[0])

    def heads(tilts: Array) -> Array:
        moments = cumulant(line.losses, tilts)
        slack = 1e-12 * (np.abs(moments) + abs(at_tilt) + (tilts + tilt) * abs(line.target))
        across = (tilts - tilt) * line.target
        return np.asarray(moments - at_tilt - across + log_chernoff(tilts) + slack)

    right, left = tilt * (1 + np.geomspace(0.01, 100, 40)), tilt * np.linspace(0, 0.98, 40)
    return Aliases(((heads(right), right - tilt), (heads(left), tilt - left)))
