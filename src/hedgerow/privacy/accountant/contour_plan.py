"""Which weights and which nodes compute δ(ε): all of the contour but the values on it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hedgerow.noise.loss import Losses
from hedgerow.privacy.accountant.contour_kernel import Folded, Smoothed, plain_log_weight
from hedgerow.privacy.accountant.contour_line import Line, aliases, line_through_saddle
from hedgerow.privacy.accountant.contour_sieve import Nodes, node_blocks, surviving_nodes
from hedgerow.privacy.accountant.contour_sum import Product
from hedgerow.privacy.accountant.cumulant import tilted

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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    nodes: Nodes
    left_out: float


def contours(losses: Losses, epsilon: float) -> Iterator[Contour]:
    """Ways to compute δ(ε), the cheapest first; none if all need too many nodes."""
    for grid, most in _grids(losses, epsilon):
        contour = _surveyed(grid, most // max(len(losses), 2))
        if contour is not None:
            yield contour


def _grids(losses: Losses, epsilon: float) -> Iterator[tuple[Grid, int]]:
    """Grids with the most visits that they may take."""
    line = line_through_saddle(losses, epsilon, plain_log_weight)
    offset, unit = lattice(losses)
    close = _smoothed(line, _CLOSE)
    is_coarse = float(unit) * _FOLDED_REACH * close.last * close.spacing >= math.pi
    folded = [_folded(losses, Fraction(epsilon), offset, unit)] if is_coarse else []
    yield from ((grid, _FEW) for grid in [*folded, close])
    yield from ((grid, _MANY) for grid in [_smoothed(line, _LOOSE), *folded])
    yield from ((_smoothed(line, tolerance), _MANY) for tolerance in _CLOSER)


def lattice(losses: Losses) -> tuple[Fraction, Fraction]:
    """(o, u) such that every finite value of the sum of the losses is in o + u·Z."""
    offset, unit = Fraction(0), Fraction(0)
    for loss, times in losses:
        offset += times * loss.offset
        step = loss.step
        above = math.gcd(unit.numerator * step.denominator, step.numerator * unit.denominator)
        unit = Fraction(above, unit.denominator * step.denominator)
    return offset, unit


def _folded(losses: Losses, epsilon: Fraction, offset: Fraction, unit: Fraction) -> Grid:
    """Over one period of a lattice, cut into an odd number of equal parts: no node at its end."""
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
    """On the whole line, as far as the smoothed weights are of any size."""
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
    """The grid with the nodes to visit: all but some whose terms add up to a known little."""
    line = grid.line
    factors = tuple((tilted(loss, line.tilt), times) for loss, times in line.losses)
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
