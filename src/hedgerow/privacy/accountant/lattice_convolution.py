"""The exact law of a composition on its lattice: an FFT convolution with a proved error.

The law is tilted by c: P(l) e^(cl) = e^A p̃(l), with A exact and p̃ summing to about 1. The bound
of ‖p̂ - p̃‖₂ for the computed p̂ is charged κ = 16u a level of the FFT, u = 2^-53, plus the errors
of the masses and powers; the window leaves at most e^-TAIL on either side. Where each charge comes
from: `docs/proofs/accounting.md`, "Convolution on a lattice".
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from hedgerow.arrays import Complex128, Float64
from hedgerow.declared import frozen
from hedgerow.errors import BudgetError
from hedgerow.noise.loss import LaplaceLoss, Losses
from hedgerow.privacy.accountant.lattice_masses import (
    ROUND,
    TiltedMasses,
    cumulant,
    largest,
    tilt_masses,
)

Number = TypeVar("Number", np.float64, np.complex128)

LARGEST_CELLS = 1 << 23  # about 45 bytes each while at work: 380 MB
LEVEL = 16 * ROUND
TAIL = 55.0
STRIP = 1 << 14  # frequencies handled together: a few arrays of this length stay in the cache
COARSE, FINE = np.geomspace(2.0**-50, 2.0**50, 401), np.geomspace(0.8, 1.25, 33)
"""Where a lowest place is looked for, and around the best of these."""


@frozen(eq=False)
class ComposedLaw:
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
    masses: Float64
    error: float
    stray: float


class TooFineError(BudgetError):
    """A composition that no accountant can hold; its ρ is still exact."""


def common_unit(losses: Losses) -> Fraction | None:
    """Return the largest u that divides every step, exactly; None if no loss has two atoms."""
    unit = Fraction(0)
    for loss, _ in losses:
        step = loss.step
        unit = Fraction(
            math.gcd(unit.numerator * step.denominator, step.numerator * unit.denominator),
            unit.denominator * step.denominator,
        )
    return unit or None


def cells_at(losses: Losses, tilt: Fraction) -> int:
    """Return how many lattice points the law tilted by c needs."""
    return _cells(losses, _window(losses, tilt))


def compose_law(losses: Losses, tilt: Fraction) -> ComposedLaw:
    """Return the law of the sum of all finite losses, tilted by c."""
    start, size = window = _window(losses, tilt)
    needed = _cells(losses, window)
    if needed > LARGEST_CELLS:
        raise TooFineError(
            f"the common unit of these losses needs {needed} lattice points, more than "
            f"{LARGEST_CELLS}; use noise parameters with small denominators"
        )
    unit = common_unit(losses) or Fraction(1)
    parts = [(tilt_masses(loss, tilt), int(loss.step / unit), times) for loss, times in losses]
    spectrum, doubts = _spectrum(parts, size)
    # half a spectrum stands for the whole: each frequency but two has a mirror image
    error = math.sqrt(2 * float(doubts @ doubts) / size)
    masses = scipy.fft.irfft(spectrum, size, overwrite_x=True)
    error += _levels(size) * math.sqrt(float(masses @ masses))
    masses = np.roll(np.maximum(masses, 0, out=masses), -(start % size))
    exponent = sum((part.exponent * times for part, _, times in parts), Fraction(0))
    first = total_offset(losses) + unit * start
    return ComposedLaw(tilt, exponent, first, unit, masses, 1.001 * error, 2 * math.exp(-TAIL))


def twelve_bits(value: float) -> Fraction:
    """Return a number near ``value`` whose numerator is short."""
    mantissa, power = math.frexp(value)
    return Fraction(round(mantissa * 4096)) * Fraction(2) ** (power - 12)


@lru_cache(maxsize=64)
def _window(losses: Losses, tilt: Fraction) -> tuple[int, int]:
    """Return the first lattice point, in units above the offset, and their number, a power of two.

    Outside, the tilted mass is at most e^-TAIL on either side.
    """
    centre = float(tilt)
    (here,) = cumulant(losses, np.array([centre]))

    def reach(side: int) -> float:
        def bound(steps: Float64) -> Float64:
            there = cumulant(losses, centre + side * steps)
            # one more, and 1e-11, for the rounding of K and of the exponent A
            slack = TAIL + 1 + 1e-11 * (np.abs(there) + abs(here))
            return np.asarray((there - here + slack) / steps)

        return float(bound(np.array([lowest(bound)]))[0])

    unit = common_unit(losses) or Fraction(1)
    offset = total_offset(losses)
    top = largest(losses)
    first = math.floor((Fraction(-reach(-1)) - offset) / unit)
    last = math.ceil((Fraction(reach(1)) - offset) / unit)
    if top is not None:
        first, last = max(first, 0), min(last, int((top - offset) / unit))
    return first, 1 << max(0, last - first).bit_length()


def lowest(height: Callable[[Float64], Float64]) -> float:
    """Return about where a function of t > 0 without a second valley is lowest."""
    fine = COARSE[np.argmin(height(COARSE))] * FINE
    return float(fine[np.argmin(height(fine))])


def _cells(losses: Losses, window: tuple[int, int]) -> int:
    rungs = (loss.shift + 1 for loss, _ in losses if isinstance(loss, LaplaceLoss))
    return max(window[1], *rungs, 1)


def total_offset(losses: Losses) -> Fraction:
    """Return o such that every finite value of the sum of the losses is in o + u·Z."""
    return sum((times * loss.offset for loss, times in losses), Fraction(0))


def _levels(size: int) -> float:
    """Return the charge for one FFT: κ a level, and two levels for entering and leaving."""
    return LEVEL * (size.bit_length() + 1)


def _spectrum(parts: list[tuple[TiltedMasses, int, int]], size: int) -> tuple[Complex128, Float64]:
    """Return the first half of the composition's spectrum, and a bound of each entry's error."""
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    doubts = np.zeros(size // 2 + 1)
    for part, stride, times in parts:
        factor = scipy.fft.rfft(_folded(part, stride, size), overwrite_x=True)
        whole = float(part.masses.sum())
        # of `_folded`: as many additions as atoms share a place
        crowd = ROUND * (len(part.masses) * math.gcd(stride, size) // size)
        doubt = 1.001 * (part.error + whole * (crowd + _levels(size)))
        for start in range(0, len(spectrum), STRIP):
            strip = slice(start, start + STRIP)
            _multiply(spectrum[strip], doubts[strip], factor[strip], times, doubt)
    return spectrum, doubts


def _multiply(
    spectrum: Complex128, doubts: Float64, factor: Complex128, times: int, doubt: float
) -> None:
    """Multiply by F^times in place and carry the error: (S+D)(|F|+d)^n covers all of it.

    4(n+1)u pays for the powers (√5 u a product), 8u for |F|.
    """
    size = np.abs(factor) * (1 + 8 * ROUND) + doubt
    below = _power(size, times - 1)
    doubts *= below * size
    doubts += np.abs(spectrum) * below * (times * doubt + 4 * (times + 1) * ROUND * size)
    doubts *= 1 + 1e-9 + 4 * times * ROUND
    spectrum *= _power(factor, times)


def _power(factor: NDArray[Number], times: int) -> NDArray[Number]:
    """Return base^times by repeated squaring; times ≥ 0."""
    result = np.ones_like(factor)
    while times:
        if times & 1:
            result = result * factor
        factor = factor * factor if times > 1 else factor
        times >>= 1
    return result


def _folded(part: TiltedMasses, stride: int, size: int) -> Float64:
    """Return the masses at their places modulo the size."""
    steps = np.arange(len(part.masses), dtype=np.int64)
    places = (part.start * stride % size + stride % size * steps) % size
    return np.bincount(places, part.masses, minlength=size).astype(np.float64, copy=False)
