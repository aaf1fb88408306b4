"""The lattice accountant: δ(ε) of a composition by exact convolution, with certified bounds.

All losses lie on offset + step·Z. Where the steps are whole multiples of one unit u, their sum lies
on offset + u·Z, and its law is a discrete convolution (`lattice_convolution`). With it tilted by c,

    δ(ε) = P[L = ∞] + e^(A - cε) Σ_{l > ε} p̃(l) w(l - ε),   w(t) = e^(-ct) (1 - e^(-t)).

All terms are positive, and c near the minimum of K(c) - cε - ln c - ln(c+1) puts the bulk of p̃
where w lives, so the sum loses nothing to cancellation, however small δ is.

The bounds: with p̂ what is computed of p̃, |Σ(p̂ - p̃)w| ≤ ‖p̂ - p̃‖₂ ‖w‖₂ (Cauchy-Schwarz), plus
the mass outside the window, which is missing at one place and folded in at another: at most once
each times max w. Sums are made of blocks of 256 terms in any order, then exactly (math.fsum).
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.noise.loss import Bounds, Losses
from hedgerow.privacy.accountant.lattice_convolution import (
    STRIP,
    ComposedLaw,
    cells_at,
    common_unit,
    compose_law,
    lowest,
    twelve_bits,
)
from hedgerow.privacy.accountant.lattice_masses import ROUND, cumulant, infinite, largest

__all__ = ["cells", "common_unit", "delta", "delta_bounds"]

BLOCK = 256
Figure = tuple[float, float]
"""A figure, and a bound of its error."""
Enclosed = tuple[float, float, float]
"""A lower bound, the value nearest to the truth, and an upper bound."""

DOUBT = (BLOCK + 40) * ROUND
"""Of a sum of positive terms in blocks, each term the product of a few elementary functions."""


def cells(losses: Losses, epsilon: float) -> int:
    """Return how many lattice points δ(ε) needs; it is refused above `LARGEST_CELLS`."""
    return cells_at(losses, saddle(losses, epsilon))


def delta(losses: Losses, epsilon: float) -> float:
    """Return δ(ε), to about 1e-12 of itself; nearest to the truth, on neither side for sure.

    Less is certain, and the bounds say so, with very many folds (20,000: 2e-9 wide), and where the
    law is a comb on a far finer lattice: noise of σ² below about 1/100, which hides nothing, mixed
    with wide noise. Then only a tooth far above ε may count, and the rounding near ε drowns it.
    """
    return _delta(losses, epsilon)[1]


def delta_bounds(losses: Losses, epsilon: float) -> Bounds:
    """Return proved lower and upper bounds of δ(ε); arguments as in `delta`."""
    lower, _, upper = _delta(losses, epsilon)
    return lower, upper


@lru_cache(maxsize=64)
def saddle(losses: Losses, epsilon: float) -> Fraction:
    """Return the c > 0 near the minimum of K(c) - cε - ln c - ln(c+1), in twelve bits.

    Any c is valid; twelve bits keep later exact arithmetic short.
    """

    def height(tilts: Float64) -> Float64:
        return cumulant(losses, tilts) - tilts * epsilon - np.log(tilts) - np.log1p(tilts)

    return twelve_bits(lowest(height))


def _delta(losses: Losses, epsilon: float) -> Enclosed:
    """Lower bound, value and upper bound of δ(ε)."""
    never = infinite(losses)
    top = largest(losses)
    if top is not None and epsilon >= top:
        return never * (1 - 16 * ROUND), never, min(1.0, never * (1 + 16 * ROUND))
    law = compose_law(losses, saddle(losses, epsilon))
    total, error = _hockey_stick(law, Fraction(epsilon))
    scale = exp_of_fraction(law.exponent - law.tilt * Fraction(epsilon))
    lower = never + scale * max(0.0, total - error)
    upper = never + scale * (total + error)
    # the factor errs by 8u, P[L = ∞] by 16u, and what underflows by less than 1e-300
    return (
        max(0.0, lower * (1 - 20 * ROUND) - 1e-300),
        min(1.0, never + scale * total),
        min(1.0, upper * (1 + 20 * ROUND) + 1e-300),
    )


def _hockey_stick(law: ComposedLaw, epsilon: Fraction) -> Figure:
    """Return Σ_{l > ε} p̂(l) w(l - ε), and how far it is from the sum over p̃ at most.

    w(t) is nowhere above 1/(c+1), nor above e^(-ct), and t is at least the way to the first lattice
    point above ε: where atoms are far apart, that is what keeps the stray mass small.
    """
    above_epsilon = math.floor((epsilon - law.first) / law.unit) + 1
    skipped = max(0, above_epsilon)
    masses = law.masses[skipped:]
    highest = min(
        1 / (1 + float(law.tilt)),
        exp_of_fraction(law.tilt * (epsilon - law.first - law.unit * above_epsilon)),
    )
    gap = law.first + law.unit * skipped - epsilon
    tilt = float(law.tilt)
    farthest = 0.0
    totals = [0.0]
    squares = [0.0]
    for start in range(0, len(masses), STRIP):
        strip = masses[start : start + STRIP]
        above = float(gap + law.unit * start) + float(law.unit) * np.arange(len(strip))
        if tilt * above[0] > 700:
            break
        weights = np.exp(-tilt * above) * -np.expm1(-above)
        totals += block_sums(strip * weights)
        squares += block_sums(weights * weights)
        farthest = tilt * float(above[-1])
    total = math.fsum(totals)
    wild = law.error * math.sqrt(math.fsum(squares)) + law.stray * highest
    # weights beyond the break are below e^-700
    return total, 1.001 * wild + (DOUBT + 6 * ROUND * min(farthest, 750)) * total + 1e-300


def block_sums(terms: Float64) -> list[float]:
    """Return sums of up to BLOCK terms each, for math.fsum to add exactly."""
    sums: list[float] = np.add.reduceat(terms, np.arange(0, len(terms), BLOCK)).tolist()
    return sums


def exp_of_fraction(exponent: Fraction) -> float:
    """Return e^exponent to a relative error below 4u, or an absolute one below 1e-300."""
    near = float(exponent)
    return math.exp(near) * (1 + float(exponent - Fraction(near)))


# The trade-off curve on the lattice: T(α) is the least type II error of a test, at type I error α,
# of Q against P. The best test rejects where L = ln P/Q is large (Neyman & Pearson), so T is
# piecewise linear with the knots (Q[L > l], P[L ≤ l]), Q(l) = P(l) e^(-l), and slope -e^l on the
# segment of l.


TINY = 1e-300


def tradeoff(losses: Losses, alpha: float) -> float:
    """Return T(α), to about 1e-12 of itself for α up to a half, and to 1e-15 absolutely beyond."""
    return _tradeoff(losses, alpha)[1]


def tradeoff_bounds(losses: Losses, alpha: float) -> Bounds:
    """Return proved lower and upper bounds of T(α); arguments as in `tradeoff`.

    A segment's line supports the whole convex curve, so it is a lower bound even if α were in the
    next one; it is an upper bound if α is proved to be within the segment, and else the height of
    the next knot to the left is, because T decreases.
    """
    lower, _, upper = _tradeoff(losses, alpha)
    return lower, upper


def _tradeoff(losses: Losses, alpha: float) -> Enclosed:
    """Lower bound, value and upper bound of T(α)."""
    never = infinite(losses)
    start = _bracket(1 - never, 20 * ROUND)
    if alpha <= 0:
        return start
    if alpha >= start[2]:  # enough to reject wherever P has any mass
        return 0.0, 0.0, 0.0
    if alpha < TINY:  # T falls, and here e^l might overflow
        return _tradeoff(losses, TINY)[0], start[1], start[2]
    law = compose_law(losses, _tilt(losses, alpha))
    place = _threshold(law, alpha)
    over, over_error = _null_above(law, place, place + 1)
    reached, reached_error = _null_above(law, place, place)
    missed, missed_error = _missed(law, place, never)
    # l ≤ ln(1/α) by Markov's inequality, so this is finite
    slope = exp_of_fraction(law.first + law.unit * place)
    value = missed - slope * (alpha - over)
    rounding = 20 * ROUND * (missed + slope * max(alpha, over))
    low, value, high = _bracket(value, 1.001 * (missed_error + slope * over_error) + rounding)
    if not over + over_error <= alpha <= reached - reached_error:
        high = sum(_missed(law, min(place + 1, len(law.masses) - 1), never))
    return low, value, min(1.0, high)


def _bracket(value: float, error: float) -> Enclosed:
    return max(0.0, value - error), min(1.0, max(0.0, value)), min(1.0, value + error)


def _tilt(losses: Losses, alpha: float) -> Fraction:
    """Return about the c at which Chernoff's bound of Q[L > K'(c)], e^(K(c) - (c+1)K'(c)), is α."""
    above = np.geomspace(2.0**-20, 2.0**30, 1500)  # c + 1
    heights = cumulant(losses, above - 1)
    reached = heights - above * np.gradient(heights, above)
    return twelve_bits(float(above[np.argmin(np.abs(reached - math.log(alpha)))])) - 1


def _threshold(law: ComposedLaw, alpha: float) -> int:
    """Return the highest atom l with Q[L ≥ l] ≥ α, or the lowest of all."""
    power = law.tilt + 1
    peak = int(np.argmax(law.masses))
    falls = float(power * law.unit) * (np.arange(len(law.masses)) - peak)
    reached = np.cumsum((law.masses * np.exp(-np.clip(falls, -600, 600)))[::-1])
    scale = exp_of_fraction(power * (law.first + law.unit * peak) - law.exponent)
    return len(reached) - 1 - min(int(np.searchsorted(reached, alpha * scale)), len(reached) - 1)


def _null_above(law: ComposedLaw, place: int, first: int) -> Figure:
    """Return Q of all atoms from ``first`` on, and a bound of its error."""
    return _sum(law, law.tilt + 1, place, np.arange(first, len(law.masses)))


def _missed(law: ComposedLaw, place: int, never: float) -> Figure:
    """Return P[L ≤ l] and a bound of its error, from below or above, where there is less."""
    if law.tilt < 0:
        return _sum(law, law.tilt, place, np.arange(place + 1))
    above, error = _sum(law, law.tilt, place, np.arange(place + 1, len(law.masses)))
    return 1 - never - above, error + 20 * ROUND


def _sum(law: ComposedLaw, power: Fraction, place: int, which: Int64) -> Figure:
    """Return Σ p(l) e^((tilt - power) l) over some atoms, all on the side where e^(-power·l) falls.

    Weights relative to the atom ``place`` are at most 1, so the stray mass counts once.
    """
    falls = float(power * law.unit) * (which - place)
    weights = np.exp(-falls)
    terms = law.masses[which] * weights
    total = math.fsum(block_sums(terms))
    squares = math.fsum(block_sums(weights * weights))
    rounding = DOUBT * total + 6 * ROUND * float(terms @ falls)
    error = 1.001 * (law.error * math.sqrt(squares) + law.stray + rounding)
    scale = exp_of_fraction(law.exponent - power * (law.first + law.unit * place))
    return scale * total, 1.001 * scale * error + 8 * ROUND * scale * total
