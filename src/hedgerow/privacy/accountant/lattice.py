"""The lattice accountant: δ(ε) of a composition by exact convolution, with certified bounds.

All losses lie on offset + step·Z. Where the steps are whole multiples of one unit u, their sum lies
on offset + u·Z, and its law is a discrete convolution (`lattice_convolution`). With it tilted by c,

    δ(ε) = P[L = ∞] + e^(A - cε) Σ_{l > ε} p̃(l) w(l - ε),   w(t) = e^(-ct) (1 - e^(-t)).

All terms are positive, and c near the minimum of K(c) - cε - ln c - ln(c+1) puts the bulk of p̃
where w lives, so the sum loses nothing to cancellation, however small δ is.

The bounds: with p̂ what is computed of p̃, |Σ(p̂ - p̃)w| ≤ ‖p̂ - p̃‖₂ ‖w‖₂ (Cauchy-Schwarz), plus the
mass outside the window, which is missing at one place and folded in at another: at most once each
times max w. Sums are made of blocks of 256 terms in any order, then exactly (math.fsum).
"""

import math
from fractions import Fraction

import numpy as np

from hedgerow.noise.loss import Losses
from hedgerow.privacy.accountant.lattice_convolution import (
    STRIP,
    Composed,
    cells_at,
    common_unit,
    composed,
    lowest,
    twelve_bits,
)
from hedgerow.privacy.accountant.lattice_masses import ROUND, Floats, cumulant, infinite, largest

__all__ = ["cells", "common_unit", "delta", "delta_bounds"]

BLOCK = 256
DOUBT = (BLOCK + 40) * ROUND
"""Of a sum of positive terms in blocks, each term the product of a few elementary functions."""


def cells(losses: Losses, epsilon: float) -> int:
    """How many lattice points δ(ε) needs; it is refused above `LARGEST_CELLS`."""
    return cells_at(losses, saddle(losses, epsilon))


def delta(losses: Losses, epsilon: float) -> float:
    """δ(ε), to about 1e-12 of itself; nearest to the truth, on neither side for sure.

    Less is certain, and the bounds say so, with very many folds (20,000: 2e-9 wide), and where the
    law is a comb on a far finer lattice: noise of σ² below about 1/100, which hides nothing, mixed
    with wide noise. Then only a tooth far above ε may count, and the rounding near ε drowns it.

    Args:
        losses: the composition.
        epsilon: any finite number, taken as the exact binary fraction that it is.

    Raises:
        BudgetError: more lattice points than LARGEST_CELLS.
    """
    return _delta(losses, epsilon)[1]


def delta_bounds(losses: Losses, epsilon: float) -> tuple[float, float]:
    """Proved lower and upper bounds of δ(ε): see the top of this file. Arguments as in `delta`."""
    lower, _, upper = _delta(losses, epsilon)
    return lower, upper


def saddle(losses: Losses, epsilon: float) -> Fraction:
    """The c > 0 near the minimum of K(c) - cε - ln c - ln(c+1), in twelve bits.

    Any c is valid; twelve bits keep later exact arithmetic short.
    """

    def height(tilts: Floats) -> Floats:
        rises: Floats = cumulant(losses, tilts) - tilts * epsilon - np.log(tilts) - np.log1p(tilts)
        return rises

    return twelve_bits(lowest(height))


def _delta(losses: Losses, epsilon: float) -> tuple[float, float, float]:
    """Lower bound, value and upper bound of δ(ε)."""
    never = infinite(losses)
    top = largest(losses)
    if top is not None and epsilon >= top:
        return never * (1 - 16 * ROUND), never, min(1.0, never * (1 + 16 * ROUND))
    law = composed(losses, saddle(losses, epsilon))
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


def _hockey_stick(law: Composed, epsilon: Fraction) -> tuple[float, float]:
    """Σ_{l > ε} p̂(l) w(l - ε), and how far it is from the sum over p̃ at most.

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
    tilt, reach = float(law.tilt), 0.0
    totals, squares = [0.0], [0.0]
    for start in range(0, len(masses), STRIP):
        strip = masses[start : start + STRIP]
        above = float(gap + law.unit * start) + float(law.unit) * np.arange(len(strip))
        if tilt * above[0] > 700:
            break
        weights = np.exp(-tilt * above) * -np.expm1(-above)
        totals += block_sums(strip * weights)
        squares += block_sums(weights * weights)
        reach = tilt * float(above[-1])
    total = math.fsum(totals)
    wild = law.error * math.sqrt(math.fsum(squares)) + law.stray * highest
    # weights beyond the break are below e^-700
    return total, 1.001 * wild + (DOUBT + 6 * ROUND * min(reach, 750)) * total + 1e-300


def block_sums(terms: Floats) -> list[float]:
    """Sums of up to BLOCK terms each, for math.fsum to add exactly."""
    sums: list[float] = np.add.reduceat(terms, np.arange(0, len(terms), BLOCK)).tolist()
    return sums


def exp_of_fraction(exponent: Fraction) -> float:
    """e^exponent, to a relative error below 4u; an error below 1e-300 where that is all."""
    near = float(exponent)
    return math.exp(near) * (1 + float(exponent - Fraction(near)))
