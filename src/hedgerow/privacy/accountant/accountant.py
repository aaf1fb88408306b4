"""The exact price of a composition: the fastest of three accountants answers, with proved bounds.

`lattice` convolves where the losses share a unit that is not too fine, `enumeration` lists the
outcomes of a few losses of ±ε, and `contour` integrates whatever the variances. Each is another's
judge in the tests.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from scipy.optimize import brentq, minimize_scalar

from hedgerow.declared import Real
from hedgerow.errors import BudgetError
from hedgerow.noise.loss import Bounds, Losses
from hedgerow.privacy.accountant import contour, enumeration, lattice
from hedgerow.privacy.accountant.lattice import tradeoff_bounds as lattice_tradeoff_bounds
from hedgerow.privacy.accountant.lattice_convolution import LARGEST_CELLS, TooFineError
from hedgerow.privacy.budget import FINITE_EPSILON, float_above

FAST_CELLS = 1 << 14
"""Up to so many lattice points a convolution is faster than an integral, however many losses."""
FAST_CURVE_CELLS = 1 << 18
"""Up to so many it is faster than the integrals of a search for the best line."""
SEARCH = 10
"""What such a search takes for each term of an integral, beside a lattice point."""

SMALLEST_DELTA = 1e-250
"""Below this δ is answered from ρ: doubles end near there."""

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-300, 1e6

NEAR, MOST_BOUNDS = 1e-6, 40
"""Of a search for the best of many bounds: how near it comes, beside the width searched, and how
many it looks at. Where they are best they are flat."""
LEAST_BOUND = -1e9
"""What a bound that says nothing counts as."""
LARGEST_EXPONENT = 709.0
"""e to more than this is beyond doubles, and a line so steep is below 0 but for a false alarm
rate of 0."""
FARTHEST = 60.0
"""An ε at which a promise is none, in a trade-off curve: e^-60 is 1e-26."""

Curve = Callable[[float], float]
"""A figure of one number, such as δ of ε."""

ALPHA = Real("alpha", 0, 1, BudgetError, "it is the type I error of a test", ends="[]")
_FLOOR = 1e-320
_NARROW = 1e-10


@lru_cache(maxsize=1 << 14)
def delta_bounds(losses: Losses, epsilon: float) -> Bounds:
    """Return proved lower and upper bounds of δ(ε), at most 1e-6 apart relatively.

    Kept: a plan, its manifest, its page and the terminal state the same figures of one composition.
    """
    FINITE_EPSILON(epsilon)
    cells = lattice.cells(losses, epsilon)
    if cells <= FAST_CELLS:
        return lattice.delta_bounds(losses, epsilon)
    certified = enumeration.delta_bounds(losses, epsilon) or contour.delta_bounds(losses, epsilon)
    if certified is not None:
        return certified
    if cells > LARGEST_CELLS:
        raise TooFineError(
            "the losses have no common unit that is coarse enough, and are too few for an "
            "integral: round the variances to a few digits, or ask for the zCDP figures"
        )
    return lattice.delta_bounds(losses, epsilon)


def epsilon_above(delta_above: Curve, delta: Fraction, sufficient: float) -> float:
    """Return the smallest ε ≥ 0 with δ(ε) ≤ δ, to 1e-9 of itself and never below.

    Args:
        delta_above: proved upper bounds of δ(ε).
        delta: in (0, 1).
        sufficient: an ε that is certainly enough, or infinity: the search begins there.

    Returns:
        ε; infinity where no ε is enough (P[L = ∞] > δ).
    """
    if delta < SMALLEST_DELTA:
        return sufficient
    target = -float_above(-delta)
    high = sufficient if math.isfinite(sufficient) else 1.0
    while delta_above(high) > target:
        if math.isfinite(sufficient):
            return sufficient
        high *= 2
        if high > LARGEST_EPSILON:
            return math.inf
    low = high / 2
    if delta_above(low) <= target and delta_above(0.0) <= target:
        return 0.0
    while delta_above(low) <= target:
        if low < SMALLEST_EPSILON:
            return low
        low, high = low / 2, low

    def excess(doublings: float) -> float:
        return math.log(max(delta_above(low * 2**doublings), _FLOOR) / target)

    # Between low and 2 low, on a logarithmic scale: a tiny ε has as many right digits as a large.
    solution = low * 2 ** float(brentq(excess, 0.0, 1.0, xtol=_NARROW))
    step = _NARROW
    while (
        delta_above(solution) > target
    ):  # the bound, not only the root, must be on the private side
        solution, step = solution * (1 + step), 2 * step
    return next_above(min(solution, high))


def loss_above(delta_above: Curve, delta: Fraction, sufficient: float) -> float:
    """Return about the least x with P[L > x] <= δ that a profile proves (`Profile.loss_bound`).

    Every ε proves one, so the search need only come close. Arguments as of `epsilon_above`.
    """
    target = -float_above(-delta)

    def proved(epsilon: float) -> float:
        part = delta_above(epsilon) / target
        return -math.inf if part >= 1 else math.log1p(-part) - epsilon

    low = epsilon_above(delta_above, delta, sufficient)
    if math.isinf(low):
        return math.inf
    high = sufficient if math.isfinite(sufficient) else 2 * low + 1
    return -_highest(proved, low, high) * (1 + 1e-12) + 1e-300


def next_above(epsilon: float) -> float:
    """Return ε, or a little more: of which the decimal that it prints as is no less than ε.

    A float in a question stands for both (`hedgerow.text.exact_or_smaller`), and δ at this ε is to
    be what it was.
    """
    return math.nextafter(epsilon, math.inf) if epsilon else epsilon


@lru_cache(maxsize=1024)
def tradeoff_below(losses: Losses, alpha: float) -> float:
    """Return a proved lower bound of T(α), the least type II error at type I error α.

    From a lattice, by one convolution, where it fits and is not far larger than the integrals of a
    search, which needs δ(ε) again and again.
    """
    cells = lattice.cells(losses, 0.0)
    if cells <= LARGEST_CELLS and (
        cells <= FAST_CURVE_CELLS or cells <= SEARCH * contour.terms(losses, 0.0)
    ):
        return lattice_tradeoff_bounds(losses, ALPHA(alpha))[0]
    return highest_line(lambda epsilon: delta_bounds(losses, epsilon)[1], alpha)


def highest_line(delta_above: Curve, alpha: float) -> float:
    """Return max over ε of 1 - δ(ε) - e^ε α, T(α) from below (Dong, Roth & Su 2022, Prop. 2.12).

    What holds of one table beside its neighbour holds the other way round: for ε >= 0 a line of
    slope -e^-ε is e^-ε (1 - δ(ε) - α), and no δ is asked that hardly differs from 1. Every ε gives
    a lower bound, and of one bound (not of the least of several) the height is concave in the
    slope, so that one search over both sides, flat lines as negative ε, comes close to the best.
    Arguments as of `epsilon_above` and `tradeoff_below`.
    """
    steepest = -math.log(max(ALPHA(alpha), 1e-290))

    def line(epsilon: float) -> float:
        if epsilon >= 0:
            return height(epsilon, delta_above(epsilon), alpha)
        return math.exp(epsilon) * (1 - delta_above(-epsilon) - alpha - 4e-15)

    middle = line(0.0)
    farthest = math.log((1 - alpha) / middle) if middle > 0 else FARTHEST  # flatter ones are lower
    return max(0.0, middle, _highest(line, -max(farthest, 0.0), steepest))


def pure_line(epsilon: float, alpha: float) -> float:
    """Return T(α) that a pure ε alone promises, from below (Wasserman & Zhou 2010)."""
    return max(0.0, height(epsilon, 0.0, alpha), math.exp(-epsilon) * (1 - alpha) * (1 - 1e-15))


def _highest(value: Curve, left: float, right: float) -> float:
    """Return about the highest value between two places, one that is taken, by parabolas.

    Source: Brent (1973), Algorithms for minimization without derivatives, chapter 5.
    """
    if right <= left:
        return value(left)
    options = {"xatol": NEAR * (right - left), "maxiter": MOST_BOUNDS}
    least = minimize_scalar(
        lambda place: -max(value(place), LEAST_BOUND), bounds=(left, right), options=options
    )
    return -float(least.fun)


def height(epsilon: float, delta: float, alpha: float) -> float:
    """Return 1 - δ - e^ε α, rounded down: a line that the trade-off curve never goes below."""
    growth = math.exp(epsilon) if epsilon < LARGEST_EXPONENT else math.inf
    slope = growth * alpha if alpha else 0.0
    return 1 - delta - slope - 1e-15 * (1 + slope)
