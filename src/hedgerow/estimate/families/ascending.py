"""The two steps that the integer estimators share: the water level, and one ascending pass.

Write x for the noisy counts of one family (int64, cells), c for its total and y for its estimate,
all in records. Both `Chebyshev` and `Euclidean` end as

    y = max(x + raised, 0), lowered in ascending order of x (ties by index) towards
        max(x - level, 0) until the family sums to c,

and differ in ``raised`` and ``level`` alone. The order needs no sort: every cell below some value
``pivot`` is lowered the whole way, every cell above it not at all, and among the cells equal to the
pivot the last ones by index keep most. The pivot is found by bisection over values, each step one
pass over the family. Nothing is allocated and no cell moves.

Sums of 2^29 cells of size 2^63 do not fit one int64, so they are kept in two words,
``high * 2^32 + low``, which add up without a branch and never wrap.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import kernel

LOW_BITS = 32
LOW_WORD = (1 << LOW_BITS) - 1
TOO_MUCH = (1 << 63) - 1


@kernel
def floor_quotient(high: int, low: int, divisor: int) -> int:
    """The floor of ``(high * 2^32 + low) / divisor``; 0 <= low < 2^62 + 2^33, divisor <= 2^29."""
    quotient = high // divisor
    remainder = high - quotient * divisor
    return (quotient << LOW_BITS) + ((remainder << LOW_BITS) + low) // divisor


@kernel
def saturated(high: int, low: int) -> int:
    """The two-word sum, not negative, as one int64; `TOO_MUCH` stands for 2^62 and more."""
    high += low >> LOW_BITS
    if high >= 1 << (62 - LOW_BITS):
        return TOO_MUCH
    return (high << LOW_BITS) + (low & LOW_WORD)


@kernel
def survey(x: NDArray[np.int64], total: int) -> tuple[int, int, int, int]:
    """``min x``, ``max x`` and the two words of ``c - Σ x``."""
    least = TOO_MUCH
    greatest = -TOO_MUCH
    high = total >> LOW_BITS
    low = total & LOW_WORD
    for i in range(len(x)):
        value = x[i]
        least = min(least, value)
        greatest = max(greatest, value)
        high += -value >> LOW_BITS
        low += -value & LOW_WORD
    return least, greatest, high, low


@kernel
def water_level(x: NDArray[np.int64], total: int, at_least: int) -> tuple[int, int]:
    """The smallest integer ``s >= at_least`` with ``g(s) = Σ max(x - s, 0) <= c``, and ``g(s)``.

    Newton's method from the left: g is convex and falls by n = #{x > s} a unit after s, so no
    level short of ``s + ceil((g(s) - c) / n)`` will do. By convexity one step leaves fractions p of
    g - c and q of n with p + q <= 1, so their product falls to a quarter or less: at most
    33 + log2(cells) passes, and three to six on real families.
    """
    level = at_least
    while True:
        high = 0
        low = 0
        above = 0
        for i in range(len(x)):
            part = max(x[i] - level, 0)
            high += part >> LOW_BITS
            low += part & LOW_WORD
            above += part > 0
        held = saturated(high, low)
        if held <= total:
            return level, held
        # ceil(v / n) = floor((v + n - 1) / n); one is borrowed from high, lest low be negative.
        high -= (total >> LOW_BITS) + 1
        low += (1 << LOW_BITS) - (total & LOW_WORD) + above - 1
        level += floor_quotient(high, low, above)


@kernel
def lower_in_ascending_order(
    x: NDArray[np.int64],
    total: int,
    bounds: tuple[int, int],
    shifts: tuple[int, int],
    held: int,
    y: NDArray[np.int64],
) -> None:
    """Write the estimate of one family to y, as the head of this module defines it.

    Args:
        x: int64 (cells), records.
        total: c.
        bounds: min x and max x.
        shifts: ``raised``, with ``Σ max(x + raised, 0) >= c``; and ``level >= -raised``, with
            ``Σ max(x - level, 0) <= c``.
        held: ``Σ max(x - level, 0)``.
        y: int64 (cells), records.
    """
    raised, level = shifts
    # K(v) = Σ_{x > v} max(x + raised, 0) + Σ_{x <= v} max(x - level, 0) falls in v; K(reach) >= c
    # and K(pivot) <= c all along. K is constant from one value of x to the next: both jump there.
    reach = max(bounds[0] - 1, -raised)
    pivot = bounds[1]
    while pivot - reach > 1:
        middle = reach + (pivot - reach) // 2
        kept, below, above = _kept(x, raised, level, middle)
        if kept <= total:
            pivot = below
            held = kept
        else:
            reach = above - 1
    spare = total - held
    for i in range(len(x) - 1, -1, -1):
        least = max(x[i] - level, 0)
        most = max(x[i] + raised, 0)
        given = min(spare, most - least) if x[i] == pivot else 0
        spare -= given
        y[i] = most if x[i] > pivot else least + given


@kernel
def _kept(x: NDArray[np.int64], raised: int, level: int, pivot: int) -> tuple[int, int, int]:
    """``K(pivot)`` saturated, the largest x up to the pivot, the smallest x above it."""
    high = 0
    low = 0
    below = -TOO_MUCH
    above = TOO_MUCH
    for i in range(len(x)):
        over = x[i] > pivot
        part = max(x[i] + raised if over else x[i] - level, 0)
        high += part >> LOW_BITS
        low += part & LOW_WORD
        below = max(below, -TOO_MUCH if over else x[i])
        above = min(above, x[i] if over else TOO_MUCH)
    return saturated(high, low), below, above
