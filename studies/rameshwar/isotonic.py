"""Isotonic regression over the integers, for the paper's problem (O^c), in ℓ2 and ℓ1."""

import heapq

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.kernels import kernel


def isotonic_squared(cumulative: Float64, total: int, variances: Float64 | None = None) -> Int64:
    """Return the integers ``0 ≤ y_1 ≤ … ≤ y_K = N`` that minimise ``Σ (y_i - x_i)² / v_i``.

    Problem (O^c) of Rameshwar, Section VI, for squared error; v are variances, all alike unless
    given. The last of x is not used, as N is known.
    """
    if variances is None:
        variances = np.ones(len(cumulative))
    return np.cumsum(Isotonic.nearest(cumulative[None], np.array([total]), variances))


def isotonic_absolute(cumulative: Float64, total: int) -> Int64:
    """Return the integers ``0 ≤ y_1 ≤ … ≤ y_K = N`` that minimise ``Σ |y_i - x_i|``; int64 (K).

    Problem (O^c) of Rameshwar, Section VI, for absolute error. Let h_i(y) be the least cost of the
    first i bins with y_i ≤ y: convex, and flat from its minimum m_i on. Adding ``|y - x|``, taken
    at integers and straight between them, bends it at ⌊x⌋ and ⌈x⌉ and lifts the right side to slope
    1; going on to ``y_{i+1} ≥ y_i`` flattens that again. So a heap of bends, of which each step
    takes a mass of 1 from the top, gives m_i, and backwards ``y_i = min(m_i, y_{i+1})`` (the slope
    trick): O(K log K). As every bend is an integer, so is y, for real x too. Moving x into 0 … N
    first changes all costs within the bounds by the same constant. Of several optima, the largest.

    Args:
        cumulative: float64 (K), records; the last one is not used.
        total: N, records, 0 to 2^53.
    """
    clipped = np.clip(cumulative, 0.0, total)
    result = np.full(len(cumulative), total)
    _slope_trick(clipped[:-1], total, result[:-1])
    return result


@kernel
def _slope_trick(x: Float64, total: int, y: Int64) -> None:
    bends = [(0, 0.0) for _ in range(0)]  # minus their places and their masses, the last on top
    for i in range(len(x)):
        floor = np.floor(x[i])
        part = x[i] - floor
        heapq.heappush(bends, (-int(floor), 2.0 - 2.0 * part))
        if part > 0.0:
            heapq.heappush(bends, (-int(floor) - 1, 2.0 * part))
        missing = 1.0
        while bends[0][1] < missing:
            missing -= heapq.heappop(bends)[1]
        place, mass = heapq.heappop(bends)
        y[i] = -place
        if mass > missing:
            heapq.heappush(bends, (place, mass - missing))
    least = total
    for i in range(len(x) - 1, -1, -1):
        least = min(least, y[i])
        y[i] = least
