"""Isotonic regression over the integers, for the paper's problem (O^c), in ℓ2 and ℓ1."""

import heapq

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_vector
from hedgerow.estimate.families.isotonic import pool
from hedgerow.kernels import kernel
from hedgerow.limits import LARGEST_DOUBLE

Cumulative = Int64 | Float64


def isotonic_squared(cumulative: Cumulative, total: int, weights: Float64 | None = None) -> Int64:
    """Return the integers ``0 ≤ y_1 ≤ … ≤ y_K = N`` that minimise ``Σ w_i (y_i - x_i)²``.

    Problem (O^c) of Rameshwar, Section VI, for squared error; w are weights (inverse variances,
    records⁻²), 1 unless given.

    Pooling adjacent violators solves the real problem in O(K); rounded half up it is optimal over
    the integers (`docs/proofs`, "Nearest cumulative counts"). Block means are doubles, so y is
    optimal up to the rounding of the objective.

    Args:
        cumulative: int64 or float64 (K), records: noisy counts of all bins up to each bin. The last
            one is not used, as N is known.
        total: N, records, 0 to 2^53.
        weights: float64 (K), positive; only their ratios matter.
    """
    _check(cumulative, total)
    result = np.empty(len(cumulative), dtype=np.int64)
    result[-1] = total
    if weights is None:
        weights = np.ones(len(cumulative))
    check_vector("weights", weights, np.float64)
    if len(weights) != len(cumulative):
        raise EstimateError(f"weights must have {len(cumulative)} entries, got {len(weights)}")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise EstimateError("weights must be positive and finite; at least one is not")
    pool(cumulative.astype(np.float64)[:-1], (weights / weights.max())[:-1], total, result[:-1])
    return result


def isotonic_absolute(cumulative: Cumulative, total: int) -> Int64:
    """Return the integers ``0 ≤ y_1 ≤ … ≤ y_K = N`` that minimise ``Σ |y_i - x_i|``; int64 (K).

    Problem (O^c) of Rameshwar, Section VI, for absolute error. Let h_i(y) be the least cost of the
    first i bins with y_i ≤ y: convex, and flat from its minimum m_i on. Adding ``|y - x|``, taken
    at integers and straight between them, bends it at ⌊x⌋ and ⌈x⌉ and lifts the right side to slope
    1; going on to ``y_{i+1} ≥ y_i`` flattens that again. So a heap of bends, of which each step
    takes a mass of 1 from the top, gives m_i, and backwards ``y_i = min(m_i, y_{i+1})`` (the slope
    trick): O(K log K). As every bend is an integer, so is y, for real x too. Moving x into 0 … N
    first changes all costs within the bounds by the same constant. Of several optima, the largest.

    Args:
        cumulative: int64 or float64 (K), records; the last one is not used.
        total: N, records, 0 to 2^53.
    """
    _check(cumulative, total)
    clipped = np.clip(cumulative, 0, total).astype(np.float64)
    result = np.empty(len(cumulative), dtype=np.int64)
    result[-1] = total
    _slope_trick(clipped[:-1], total, result[:-1])
    return result


def _check(cumulative: Cumulative, total: int) -> None:
    check_vector("cumulative", cumulative, np.int64, np.float64)
    if not len(cumulative):
        raise EstimateError("cumulative must have at least one bin, got none")
    if not isinstance(total, int | np.integer) or not 0 <= total <= LARGEST_DOUBLE:
        raise EstimateError("the total must be a whole number from 0 to 2^53; estimate it first")
    if not np.isfinite(cumulative).all():
        raise EstimateError("cumulative counts must be finite; at least one is not")


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
