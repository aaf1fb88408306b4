"""The lattice accountant: δ(ε) of a composition by exact convolution, with certified bounds.

All losses lie on offset + step·Z. Where the steps are whole multiples of one unit u, their sum lies
on offset + u·Z, and its law is a discrete convolution, done here by FFT. With the law tilted by c,

    δ(ε) = P[L = ∞] + e^(A - cε) Σ_{l > ε} p̃(l) w(l - ε),   w(t) = e^(-ct) (1 - e^(-t)),

where p(l) e^(cl) = e^A p̃(l), A is exact and p̃ sums to about 1. All terms are positive, and c near
the minimum of K(c) - cε - ln c - ln(c+1) puts the bulk of p̃ where w lives, so the sum loses nothing
to cancellation, however small δ is.

**The bounds.** Let p̂ be what is computed. Then |Σ(p̂ - p̃)w| ≤ ‖p̂ - p̃‖₂ ‖w‖₂ (Cauchy-Schwarz), and:

- *Masses*: each factor f has |f̂ - f|₁ ≤ error (`lattice_masses`), hence no point of its spectrum is
  off by more.
- *Forward FFT*: of length 2^t, every output is reached from every input on one path of unit
  factors. A level errs by at most κ times the absolute sum of what it adds, so an output errs by at
  most ((1+κ)^t - 1)|f|₁. Twiddles are good to 9u (angles reduced to an octant, products of two
  tabulated ones), a complex product to √5 u (Brent, Percival & Zimmermann 2007), a sum to u: below
  16u for *two* levels, one radix-4 pass of SciPy's pocketfft. We charge κ = 16u a level.
- *Powers and products*: F^n by repeated squaring errs by (n-1)√5 u of itself; and
  |(F+e)^n - F^n| ≤ n|e|(|F|+|e|)^(n-1). Each frequency carries its own bound through all factors;
  their 2-norm is that of the law's error (Parseval).
- *Inverse FFT*: a level multiplies the 2-norm of a relative error κ by at most √2 (Higham 2002,
  Theorem 24.2, in the same way): √2·8u a level, charged as 16u.
- *Wrap-around*: the length covers all l between Chernoff bounds e^-TAIL on p̃ outside,
  P̃[L ≥ h] ≤ e^(K(c+t) - A - th) for every t > 0; what lies outside is counted twice, as missing
  and as folded in.
- *Sums*: blocks of 256 in any order, then exact (math.fsum).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from hedgerow.errors import BudgetError
from hedgerow.privacy.lattice_masses import (
    ROUND,
    Floats,
    Tilted,
    cumulant,
    infinite,
    largest,
    tilted,
)
from hedgerow.privacy.loss import LaplaceLoss, Losses

LARGEST_CELLS = 1 << 24
LEVEL = 16 * ROUND
TAIL = 55.0
BLOCK = 256
STRIP = 1 << 14  # frequencies handled together: a few arrays of this length stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """A composition's finite losses, tilted: P(first + unit·i) = e^(exponent - tilt·l) masses[i].

    Attributes:
        tilt: c.
        exponent: A.
        first: the loss of masses[0].
        unit: u.
        masses: p̂, none negative.
        error: at least ‖p̂ - p̃‖₂ within the window, but for the stray mass.
        stray: at least the tilted mass outside the window; it is folded into it as well.
    """

    tilt: Fraction
    exponent: Fraction
    first: Fraction
    unit: Fraction
    masses: Floats
    error: float
    stray: float


def common_unit(losses: Losses) -> Fraction | None:
    """The largest u that divides every step, exactly; None if no loss has more than one atom."""
    unit = Fraction(0)
    for loss, _ in losses:
        step = loss.step
        unit = Fraction(
            math.gcd(unit.numerator * step.denominator, step.numerator * unit.denominator),
            unit.denominator * step.denominator,
        )
    return unit or None


def cells(losses: Losses, epsilon: float) -> int:
    """How many lattice points δ(ε) needs: memory is about 40 bytes each."""
    return _cells(losses, _window(losses, saddle(losses, epsilon)))


def delta(losses: Losses, epsilon: float) -> float:
    """δ(ε), to about 1e-12 of itself; nearest to the truth, on neither side for sure.

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
    """c > 0 near the minimum of K(c) - cε - ln c - ln(c+1), in twelve bits.

    Any c is valid; twelve bits keep later exact arithmetic short.
    """

    def height(tilts: Floats) -> Floats:
        rises: Floats = cumulant(losses, tilts) - tilts * epsilon - np.log(tilts) - np.log1p(tilts)
        return rises

    return twelve_bits(_lowest(height))


def twelve_bits(value: float) -> Fraction:
    """A number near ``value`` whose numerator is short."""
    mantissa, power = math.frexp(value)
    return Fraction(round(mantissa * 4096)) * Fraction(2) ** (power - 12)


def composed(losses: Losses, tilt: Fraction) -> Composed:
    """The law of the sum of all finite losses, tilted by c.

    Raises:
        BudgetError: more lattice points than LARGEST_CELLS.
    """
    start, size = window = _window(losses, tilt)
    needed = _cells(losses, window)
    if needed > LARGEST_CELLS:
        raise BudgetError(
            f"the common unit of these losses needs {needed} lattice points, more than "
            f"{LARGEST_CELLS}; use noise parameters with small denominators"
        )
    unit = common_unit(losses) or Fraction(1)
    parts = [(tilted(loss, tilt), int(loss.step / unit), times) for loss, times in losses]
    spectrum, doubts = _spectrum(parts, size)
    # half a spectrum stands for the whole: each frequency but two has a mirror image
    error = math.sqrt(2 * float(doubts @ doubts) / size)
    masses = scipy.fft.irfft(spectrum, size, overwrite_x=True)
    error += _levels(size) * math.sqrt(float(masses @ masses))
    masses = np.roll(np.maximum(masses, 0, out=masses), -(start % size))
    exponent = sum((part.exponent * times for part, _, times in parts), Fraction(0))
    first = _offset(losses) + unit * start
    return Composed(tilt, exponent, first, unit, masses, 1.001 * error, 2 * math.exp(-TAIL))


def _delta(losses: Losses, epsilon: float) -> tuple[float, float, float]:
    """Lower bound, value and upper bound of δ(ε)."""
    never = infinite(losses)
    top = largest(losses)
    if top is not None and epsilon >= top:
        return never * (1 - 16 * ROUND), never, never * (1 + 16 * ROUND)
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

    w is nowhere above 1/(c+1).
    """
    skipped = max(0, math.floor((epsilon - law.first) / law.unit) + 1)
    masses = law.masses[skipped:]
    gap = law.first + law.unit * skipped - epsilon
    tilt, reach = float(law.tilt), 0.0
    totals, squares = [0.0], [0.0]
    for start in range(0, len(masses), STRIP):
        strip = masses[start : start + STRIP]
        above = float(gap + law.unit * start) + float(law.unit) * np.arange(len(strip))
        if tilt * above[0] > 700:
            break
        weights = np.exp(-tilt * above) * -np.expm1(-above)
        totals += _block_sums(strip * weights)
        squares += _block_sums(weights * weights)
        reach = tilt * float(above[-1])
    total = math.fsum(totals)
    wild = law.error * math.sqrt(math.fsum(squares)) + law.stray / (tilt + 1)
    # beyond the break the weights are below e^-700
    return total, 1.001 * wild + ROUND * (BLOCK + 20 + 6 * reach) * total + 1e-300


def _block_sums(terms: Floats) -> list[float]:
    sums: list[float] = np.add.reduceat(terms, np.arange(0, len(terms), BLOCK)).tolist()
    return sums


def exp_of_fraction(exponent: Fraction) -> float:
    """e^exponent, to a relative error below 4u (or 0 below 1e-300)."""
    near = float(exponent)
    return math.exp(near) * (1 + float(exponent - Fraction(near)))


def _window(losses: Losses, tilt: Fraction) -> tuple[int, int]:
    """The first lattice point (in units above the offset) and the number of them, a power of two.

    Outside, the tilted mass is at most e^-TAIL on either side.
    """
    exponents = sum((times * tilted_exponent for tilted_exponent, times in ()), Fraction(0))
    raise NotImplementedError(exponents)
