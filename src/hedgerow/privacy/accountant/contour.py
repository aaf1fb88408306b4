"""δ(ε) of any composition as a contour integral, with certified error.

For c > 0 and K(s) = log E[e^(sL); L < ∞] (Mellin's inversion of (1 - e^(ε-ℓ))₊ in s),

    δ(ε) = P[L = ∞] + (1/2πi) ∫ over Re s = c of e^(K(s) - sε) / (s(s+1)) ds,

by the trapezoidal rule on the line through the saddle point, where nothing cancels. The rule errs
upwards only, by aliases that Chernoff bounds cover (`docs/proofs/accounting.md`, "δ(ε) as a contour
integral"). All is relative to e^(K(c) - c·target) until the end, so δ may be as small as a float
can be. Round-off is bounded assuming that exp, log, sin, … are right to 4 units in the last place.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from hedgerow.arrays import Int64
from hedgerow.declared import frozen
from hedgerow.noise.loss import Bounds, GaussianLoss, Losses
from hedgerow.privacy.accountant.contour_nodes import (
    HIGH,
    LOW,
    POINT,
    Folded,
    Line,
    Smoothed,
    aliases,
    line_through_saddle,
    plain_log_weight,
)
from hedgerow.privacy.accountant.contour_sum import (
    Product,
    node_blocks,
    surviving_nodes,
    weighted_sums,
)
from hedgerow.privacy.accountant.cumulant import (
    UNIT_ROUNDOFF,
    cumulant,
    cumulant_error,
    log_finite,
    tilt_loss,
)
from hedgerow.privacy.accountant.lattice_convolution import common_unit, total_offset
from hedgerow.privacy.budget import FINITE_EPSILON

# Which weights and which nodes compute δ(ε): all of the contour but the values on it.

# Parts of δ, by the estimate of it: what aliases may add, and what all nodes left out may hold.
_ALIASED = 1e-13
_LEFT_OUT = 1e-13
# How far apart the two averages of a smoothed δ may be: as a rule; where revivals are many; and
# where δ has kinks near ε, or the law of L has narrow peaks.
_CLOSE, _LOOSE, _CLOSER = 1e-8, 3e-7, (1e-9, 1e-11, 1e-13)
# What smoothing leaves beyond its last node, as part of that.
_BEYOND = 0.1
# Visits of a node for a loss that a first attempt may take (tenths of a second), and a last.
_FEW, _MANY = 1 << 20, 1 << 23
# A lattice is folded if its period is not much longer than the stretch that smoothing would need.
_FOLDED_REACH = 8.0


@frozen
class Grid:
    """A line with weights and evenly spaced nodes c + imh for |m| ≤ last.

    Attributes:
        line: the line.
        kernel: the weights.
        target: the line's y, exact.
        spacing: h.
        last: the last m.
        aliased: a bound of the aliases, relative to e^(K(c) - cy).
        beyond: of the nodes after the last, likewise.
    """

    line: Line
    kernel: Folded | Smoothed
    target: Fraction
    spacing: float
    last: int
    aliased: float
    beyond: float


@frozen
class Contour:
    """A grid with the nodes to visit.

    Attributes:
        grid: the grid.
        product: the transform on its line.
        nodes: the m ≥ 0 to visit; -m mirrors m.
        left_out: a bound of all other nodes, relative to e^(K(c) - cy).
    """

    grid: Grid
    product: Product
    nodes: Int64
    left_out: float


def contours(losses: Losses, epsilon: float) -> Iterator[Contour]:
    """Yield ways to compute δ(ε), the cheapest first; none if all need too many nodes."""
    for grid, most in _grids(losses, epsilon):
        contour = _surveyed(grid, most // max(len(losses), 2))
        if contour is not None:
            yield contour


def terms(losses: Losses, epsilon: float) -> float:
    """Return how many factors the cheapest way has at its nodes together; inf where there is none.

    Args:
        losses: as `contours` takes them.
        epsilon: likewise.
    """
    first = next(contours(losses, epsilon), None)
    return math.inf if first is None else first.nodes.size * len(losses)


def _grids(losses: Losses, epsilon: float) -> Iterator[tuple[Grid, int]]:
    """Yield grids with the most visits that they may take."""
    line = line_through_saddle(losses, epsilon, plain_log_weight)
    offset = total_offset(losses)
    unit = common_unit(losses) or Fraction(0)
    close = _smoothed(line, _CLOSE)
    is_coarse = float(unit) * _FOLDED_REACH * close.last * close.spacing >= math.pi
    folded = [_folded(losses, Fraction(epsilon), offset, unit)] if is_coarse else []
    yield from ((grid, _FEW) for grid in [*folded, close])
    yield from ((grid, _MANY) for grid in [_smoothed(line, _LOOSE), *folded])
    yield from ((_smoothed(line, tolerance), _MANY) for tolerance in _CLOSER)


def _folded(losses: Losses, epsilon: Fraction, offset: Fraction, unit: Fraction) -> Grid:
    """Return a grid over one period of a lattice, cut into an odd number of equal parts."""
    gap = (offset - epsilon) % unit or unit  # a loss of ε itself contributes nothing
    kernel = Folded.of(unit, gap)
    line = line_through_saddle(losses, float(epsilon + gap), kernel.log_weight, kernel.unit)
    bounds = aliases(line, kernel.log_chernoff)
    parts = max(math.ceil(bounds.period_for(_ALIASED * line.scale) / kernel.unit), 3) | 1
    period = parts * kernel.unit
    return Grid(
        line=line,
        kernel=kernel,
        target=epsilon + gap,
        spacing=math.tau / period,
        last=(parts - 1) // 2,
        aliased=bounds.bound(period * (1 - 1e-12)),
        beyond=0.0,
    )


def _smoothed(line: Line, tolerance: float) -> Grid:
    """Return a grid on the whole line, as far as the smoothed weights matter."""
    kernel = Smoothed.within(line.tilt, tolerance)
    bounds = aliases(line, kernel.log_chernoff)
    period = bounds.period_for(_ALIASED * line.scale)
    height = kernel.height_for(line.tilt, _BEYOND * tolerance * line.scale)
    last = math.ceil(height * period / math.tau)
    return Grid(
        line=line,
        kernel=kernel,
        target=Fraction(line.target),
        spacing=math.tau / period,
        last=last,
        aliased=bounds.bound(period * (1 - 1e-12)),
        beyond=kernel.beyond(line.tilt, last * math.tau / period),
    )


def _surveyed(grid: Grid, most: int) -> Contour | None:
    """Return the grid with the nodes to visit: all but some whose terms are known to be small."""
    line = grid.line
    factors = tuple((tilt_loss(loss, line.tilt), times) for loss, times in line.losses)
    product = Product(factors, sum((times * f.origin for f, times in factors), -grid.target))
    share = _LEFT_OUT * line.scale / len(node_blocks(grid.last))

    def room(start: int, stop: int) -> float:
        envelope = float(grid.kernel.envelope(line.tilt, np.array([start * grid.spacing]))[0])
        terms = (stop - start) * grid.spacing / math.pi * envelope
        return math.log(terms / share) + 1e-9  # more than the round-off of this line

    waves = [(abs(factor.step), times * factor.sharpness) for factor, times in factors]
    nodes = surviving_nodes(waves, grid.spacing, grid.last, room, most)
    left_out = _LEFT_OUT * line.scale + grid.beyond
    return None if nodes is None else Contour(grid, product, nodes, left_out)


WIDEST = 1e-6
"""Of certified bounds, relative: wider ones are not reported."""

# Where no more than this is missing from P[L < ∞] there is no need to know how much.
_MISSING = 1e-13
SMALLEST = 1e-280
"""What is left of δ without P[L = ∞] is not told from 0 below this."""


@frozen
class _Figures:
    low: float
    point: float
    high: float

    @property
    def is_narrow(self) -> bool:
        return self.high - self.low <= max(WIDEST * self.low, 3 * SMALLEST)


def delta(losses: Losses, epsilon: float) -> float | None:
    """Return δ(ε), within `delta_bounds` and mostly far closer to the truth than they are apart.

    Returns:
        None where `delta_bounds` returns None.
    """
    figures = _figures(losses, epsilon)
    return None if figures is None else figures.point


def delta_bounds(losses: Losses, epsilon: float) -> Bounds | None:
    """Return certified bounds of δ(ε), round-off included, at most 1e-6 apart relatively.

    Below `SMALLEST` they are 0 and twice that.

    Returns:
        None where the integrand has too many revivals to follow (few uses with wide steps on a
        very fine common lattice): enumerate or convolve there.
    """
    figures = _figures(losses, epsilon)
    return None if figures is None else (figures.low, figures.high)


def _figures(losses: Losses, epsilon: float) -> _Figures | None:
    FINITE_EPSILON(epsilon)
    simple = _without_integral(losses, epsilon)
    if simple is not None:
        return _with_infinite(losses, simple)
    for contour in contours(losses, epsilon):
        figures = _with_infinite(losses, _evaluated(contour))
        if figures.is_narrow:
            return figures
    return None


def _without_integral(losses: Losses, epsilon: float) -> _Figures | None:
    """Return the finite part of δ in simple cases: no loss above ε, all 0, or all far above."""
    finite = math.exp(_log_finite(losses))
    if not any(isinstance(loss, GaussianLoss) for loss, _ in losses):
        # Laplace losses and pairs lie between their offset and its negative.
        largest = sum((-times * loss.offset for loss, times in losses), Fraction(0))
        if Fraction(epsilon) >= largest:
            return _Figures(0.0, 0.0, 0.0)
        if largest == 0:
            return _about(-math.expm1(epsilon) * finite)
    # 1 - δ(ε)/P[L < ∞] is at most E e^(z(ε-L)), here at a few 0 < z < 1/2: of a finite loss
    # 1 - (1 - e^(ε-ℓ))₊ = min(1, e^(ε-ℓ)) ≤ e^(z(ε-ℓ)) for 0 ≤ z ≤ 1.
    powers = np.array([0.01, 0.03, 0.1, 0.2, 0.3, 0.45])
    exponents = cumulant(losses, -powers) + powers * epsilon - _log_finite(losses)
    missing = math.exp(min(float(np.min(exponents)), 0.0)) * (1 + 1e-6)
    return None if missing > _MISSING else _about(finite)


def _about(value: float) -> _Figures:
    return _Figures(value * (1 - 1e-12), value, value * (1 + 1e-12))


def _evaluated(contour: Contour) -> _Figures:
    """Return the sums with all that may be wrong with them, in the end times e^(K(c) - cy)."""
    grid = contour.grid
    line = contour.grid.line
    sums, error = weighted_sums(
        contour.product, grid.kernel, line.tilt, grid.spacing, contour.nodes
    )
    rest = error + contour.left_out
    low = max(float(sums[LOW]) - rest - grid.aliased, 0.0)
    high = max(float(sums[HIGH]) + rest, 0.0)
    moment = float(cumulant(line.losses, np.array([line.tilt]))[0])
    factor = math.exp(moment - line.tilt * line.target)
    doubt = 8 * UNIT_ROUNDOFF * (line.tilt * abs(line.target) + abs(moment) + 3)
    doubt += cumulant_error(line.losses, line.tilt)
    low, high = low * factor * (1 - doubt), high * factor * (1 + doubt)
    if high < SMALLEST:  # close to where floats lose digits
        low = 0.0
        high = 2 * SMALLEST
    return _Figures(low, min(max(float(sums[POINT]) * factor, low), high), high)


def _with_infinite(losses: Losses, finite: _Figures) -> _Figures:
    """Add P[L = ∞] = 1 - Π (1-δ)^times; its exponent is a sum of terms of one sign."""
    infinite = -math.expm1(_log_finite(losses))
    doubt = infinite * (len(losses) + 20) * UNIT_ROUNDOFF
    low = max(infinite - doubt + finite.low * (1 - 4 * UNIT_ROUNDOFF), 0.0)
    high = min(infinite + doubt + finite.high * (1 + 4 * UNIT_ROUNDOFF), 1.0)
    return _Figures(low, min(max(infinite + finite.point, low), high), high)


def _log_finite(losses: Losses) -> float:
    return sum(times * log_finite(loss) for loss, times in losses)
