"""The exact price of a composition: the faster of two accountants answers, with proved bounds.

`lattice` convolves where the losses share a unit that is not too fine; `contour` integrates
whatever the variances. Each is the other's judge in the tests.
"""

import math
from fractions import Fraction

from scipy.optimize import brentq

from hedgerow.errors import BudgetError
from hedgerow.privacy import contour, lattice
from hedgerow.privacy.lattice_curve import tradeoff_bounds as lattice_tradeoff_bounds
from hedgerow.privacy.loss import Losses

FAST_CELLS = 1 << 16
"""Up to so many lattice points a convolution takes a few milliseconds."""

_FLOOR = 1e-320
_NARROW = 1e-10


def delta_bounds(losses: Losses, epsilon: float) -> tuple[float, float]:
    """Proved lower and upper bounds of δ(ε), at most 1e-6 apart relatively.

    Raises:
        BudgetError: ε is no finite number, or neither accountant can hold the composition.
    """
    if not math.isfinite(epsilon):
        raise BudgetError(f"epsilon must be a finite number, got {epsilon}")
    if lattice.cells(losses, epsilon) <= FAST_CELLS:
        return lattice.delta_bounds(losses, epsilon)
    found = contour.delta_bounds(losses, epsilon)
    return lattice.delta_bounds(losses, epsilon) if found is None else found


def epsilon_above(losses: Losses, delta: Fraction, known: float) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ δ, to 1e-9 of itself and never below.

    Args:
        losses: the composition.
        delta: in (0, 1).
        known: an ε that is certainly enough, or infinity: the search begins there.

    Returns:
        ε; infinity where no ε is enough (P[L = ∞] > δ).
    """
    target = math.nextafter(float(delta), 0.0)

    def excess(epsilon: float) -> float:
        return math.log(max(delta_bounds(losses, epsilon)[1], _FLOOR) / target)

    if excess(0.0) <= 0:
        return 0.0
    high = known if math.isfinite(known) else 1.0
    while excess(high) > 0:
        high *= 2
        if high > 1e6:
            return math.inf
    found = float(brentq(excess, 0.0, high, xtol=1e-14, rtol=_NARROW))
    step = _NARROW * found + 1e-14
    while excess(found) > 0:  # the bound, not only the root, must be on the private side
        found, step = found + step, 2 * step
    return found


def tradeoff_bounds(losses: Losses, alpha: float) -> tuple[float, float]:
    """Proved lower and upper bounds of T(α), the least type II error at type I error α.

    From the lattice where it fits. Otherwise from T(α) = max over ε of 1 - δ(ε) - e^ε α (Dong,
    Roth & Su 2022, Proposition 2.12), which is concave in e^ε: any ε gives a lower bound, and the
    upper bound is the value found by ternary search plus the width of the bounds of δ there.
    """
    if not 0 <= alpha <= 1:
        raise BudgetError(f"alpha must be in [0, 1], got {alpha}; it is the type I error of a test")
    if lattice.cells(losses, 0.0) <= FAST_CELLS:
        return lattice_tradeoff_bounds(losses, alpha)
    return _by_duality(losses, alpha)


def _by_duality(losses: Losses, alpha: float) -> tuple[float, float]:
    def lines(epsilon: float) -> tuple[float, float]:
        low, high = delta_bounds(losses, epsilon)
        slope = math.exp(epsilon) * alpha
        return 1 - high - slope, 1 - low - slope

    left, right = -60.0, 60.0
    for _ in range(90):
        a, b = left + (right - left) / 3, right - (right - left) / 3
        left, right = (left, b) if lines(a)[0] >= lines(b)[0] else (a, right)
    low, high = lines((left + right) / 2)
    return max(0.0, low), max(0.0, min(high, 1 - alpha))
