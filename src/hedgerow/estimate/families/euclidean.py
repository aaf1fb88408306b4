"""The estimator of least squares: the smallest sum of squared changes, over the integers."""

from functools import partial

from hedgerow.arrays import Int64
from hedgerow.declared import frozen
from hedgerow.estimate.families.real_projection import FamilyEstimator
from hedgerow.estimate.families.sparse import project_penalised
from hedgerow.estimate.families.units import family_hash, hand_out_evenly
from hedgerow.kernels import inner_kernel, kernel, run_ends

# `Chebyshev` and `Euclidean` share two steps for the integer noisy counts x of a family with total
# c: the water level, and y = max(x + raised, 0), lowered in ascending order of x (ties by index)
# towards max(x - water, 0) until the family sums to c. All cells below a pivot are lowered the
# whole way, all above it not at all; the pivot is found by bisection over values, one pass a step,
# without a sort. Sums of 2^29 cells of size 2^63 are kept in two words, high * 2^32 + low, which
# never wrap.

LOW_BITS = 32
LOW_WORD = (1 << LOW_BITS) - 1
TOO_MUCH = (1 << 63) - 1


@kernel
def floor_quotient(high: int, low: int, divisor: int) -> int:
    """Return ``floor((high * 2^32 + low) / divisor)``, low < 2^62 + 2^33, divisor <= 2^29."""
    quotient = high // divisor
    remainder = high - quotient * divisor
    # The remainder is below 2^29: shifted, and with low added, it stays below 2^63.
    return (quotient << LOW_BITS) + ((remainder << LOW_BITS) + low) // divisor


@kernel
def saturated(high: int, low: int) -> int:
    """Return the two-word sum, not negative, as one int64; `TOO_MUCH` stands for 2^62 and more."""
    high += low >> LOW_BITS
    # Totals are below 2^62, so one number stands for all sums that are not.
    if high >= 1 << (62 - LOW_BITS):
        return TOO_MUCH
    return (high << LOW_BITS) + (low & LOW_WORD)


@kernel
def survey(x: Int64, total: int) -> tuple[int, int, int, int]:
    """Return ``min x``, ``max x`` and the two words of ``c - Σ x``."""
    least = TOO_MUCH
    greatest = -TOO_MUCH
    high = total >> LOW_BITS
    low = total & LOW_WORD
    for i in range(len(x)):
        # c - Σ x in two words, each added up by itself.
        value = x[i]
        least = min(least, value)
        greatest = max(greatest, value)
        high += -value >> LOW_BITS
        low += -value & LOW_WORD
    return least, greatest, high, low


@kernel
def water_level(x: Int64, total: int, at_least: int) -> tuple[int, int]:
    """Return the least integer ``s >= at_least`` with ``g(s) = Σ max(x - s, 0) <= c``, and g(s).

    Newton's method from the left: g is convex and falls by n = #{x > s} a unit after s, so no
    level short of ``s + ceil((g(s) - c) / n)`` will do. By convexity one step leaves fractions p of
    g - c and q of n with p + q <= 1, so their product falls to a quarter or less: at most
    33 + log2(cells) passes, and three to six on real families.
    """
    water = at_least
    while True:
        high = 0
        low = 0
        above = 0
        # The sum may pass 2^63: its words of 32 bits are added up apart, and carry at the end.
        for i in range(len(x)):
            part = max(x[i] - water, 0)
            high += part >> LOW_BITS
            low += part & LOW_WORD
            above += part > 0
        held = saturated(high, low)
        if held <= total:
            return water, held
        # ceil(v / n) = floor((v + n - 1) / n); one is borrowed from high, lest low be negative.
        high -= (total >> LOW_BITS) + 1
        low += (1 << LOW_BITS) - (total & LOW_WORD) + above - 1
        water += floor_quotient(high, low, above)


@kernel
def lower_in_ascending_order(
    x: Int64, total: int, bounds: tuple[int, int], shifts: tuple[int, int], held: int, y: Int64
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
    raised, water = shifts
    # K(v) = Σ_{x > v} max(x + raised, 0) + Σ_{x <= v} max(x - level, 0) falls in v; K(reach) >= c
    # and K(pivot) <= c all along. K is constant from one value of x to the next: both jump there.
    bottom = max(bounds[0] - 1, -raised)
    pivot = bounds[1]
    while pivot - bottom > 1:
        middle = bottom + (pivot - bottom) // 2
        kept, below, above = _kept(x, raised, water, middle)
        if kept <= total:
            pivot = below
            held = kept
        else:
            bottom = above - 1
    # At the pivot cells keep what is spare, the last ones first.
    spare = total - held
    for i in range(len(x) - 1, -1, -1):
        least = max(x[i] - water, 0)
        most = max(x[i] + raised, 0)
        given = min(spare, most - least) if x[i] == pivot else 0
        spare -= given
        y[i] = most if x[i] > pivot else least + given


@kernel
def _kept(x: Int64, raised: int, water: int, pivot: int) -> tuple[int, int, int]:
    """Return ``K(pivot)`` saturated, the largest x up to the pivot, the smallest x above it."""
    high = 0
    low = 0
    below = -TOO_MUCH
    above = TOO_MUCH
    for i in range(len(x)):
        # Above the pivot x + raised, up to it x - level; none below 0.
        over = x[i] > pivot
        part = max(x[i] + raised if over else x[i] - water, 0)
        high += part >> LOW_BITS
        low += part & LOW_WORD
        below = max(below, -TOO_MUCH if over else x[i])
        above = min(above, x[i] if over else TOO_MUCH)
    return saturated(high, low), below, above


@kernel
def _project(
    noisy: Int64, family_start: Int64, totals: Int64, first: int, last: int, result: Int64
) -> None:
    for family in range(first, last):
        begin, end = run_ends(family_start, family)
        if end == begin:
            continue
        x = noisy[begin:end]
        total = totals[family]
        _, greatest, high, low = survey(x, total)
        # s >= (Σx - c) / b, as max(x - s, 0) >= x - s; s >= max x - c, as one cell holds at most c.
        at_least = max(-floor_quotient(high, low, len(x)), greatest - total)
        water, held = water_level(x, total, at_least)
        hashed = family_hash(x, total) if total > held else 0
        _write_above(x, water, total - held, hashed, result[begin:end])


@inner_kernel
def _write_above(x: Int64, water: int, spare: int, hashed: int, y: Int64) -> None:
    """Write ``max(x - level, 0)``, and of the spare units one each to cells from the level on."""
    filled = 0
    empty = 0
    for i in range(len(x)):
        y[i] = max(x[i] - water, 0)
        filled += x[i] > water
        empty += x[i] == water
    # From the level on one more unit costs the same everywhere: who gets it is up to fairness.
    if spare > 0:
        hand_out_evenly(x, water, (spare, filled, empty), hashed, y)


@frozen
class Euclidean(FamilyEstimator):
    """Minimise ``Σ (y_i - x_i)² / v_i`` over integers ``y >= 0`` with ``Σ y = c``, in each family.

    x (cells) are the family's noisy counts or combined estimates, v their variances (records²), c
    is the family's total, y its estimate, both in records. The optimum is over the integers: it is
    not a rounded real solution. The ℓ2 projection of TopDown (Abowd et al.; TDA_ℓ2 in Boninsegna &
    Silvestri, Section 5) solves the real problem and then rounds.

    Units of equal cost go to cells that hold something anyway, and only then to empty ones; among
    those evenly, so that no cell gains from its size or place (`hedgerow.estimate.families.units`).
    The result is exact.

    Why greedy is optimal. The cost is a sum of convex functions of one cell each. Raising y_i from
    k to k + 1 costs ``(2 (k - x_i) + 1) / v_i``, which grows with k; so the c cheapest units of all
    cells form a valid y, and no other y is cheaper.

    For real x or unequal v see `hedgerow.estimate.families.units`.

    Example:
        >>> import numpy as np
        >>> noisy, families, totals = np.array([7, -2, 4, 1]), np.array([0, 2, 4]), np.array([6, 5])
        >>> hr.Euclidean().project(noisy, families, totals)
        array([6, 0, 4, 1])
    """

    name = "euclidean"
    kernels = partial(project_penalised, 0.0), _project
