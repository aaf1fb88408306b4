"""Isotonic regression over the integers, for the paper's problem (O^c), in ℓ2 and ℓ1."""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_vector
from hedgerow.estimate.families.isotonic import pool
from hedgerow.kernels import kernel
from hedgerow.limits import LARGEST_DOUBLE

LARGEST_SUM = 1 << 61
"""Integer cumulative counts have sums (records) that stay within this."""

Cumulative = Int64 | Float64


def isotonic_squared(cumulative: Cumulative, total: int, weights: Float64 | None = None) -> Int64:
    """Return the integers ``0 ≤ y_1 ≤ … ≤ y_K = N`` that minimise ``Σ w_i (y_i - x_i)²``.

    Problem (O^c) of Rameshwar, Section VI, for squared error; w are weights (inverse variances,
    records⁻²), 1 unless given.

    Pooling adjacent violators solves the real problem in O(K); rounded half up it is optimal over
    the integers (`docs/proofs.md`, "Nearest cumulative counts"). Block means are doubles, so y is
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
    if weights is None and cumulative.dtype == np.int64:
        largest = max(-int(cumulative.min()), int(cumulative.max()))
        if largest * len(cumulative) > LARGEST_SUM:
            raise EstimateError(
                "cumulative counts must have sums within 2^61; these may have more: is the noise "
                "far larger than the table?"
            )
        _pool_integers(cumulative.astype(np.int64, copy=False)[:-1], total, result[:-1])
        return result
    if weights is None:
        weights = np.ones(len(cumulative))
    check_vector("weights", weights, np.float64)
    if len(weights) != len(cumulative):
        raise EstimateError(f"weights must have {len(cumulative)} entries, got {len(weights)}")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise EstimateError("weights must be positive and finite; at least one is not")
    least = weights / weights.max()  # no sum of weights overflows
    pool(cumulative.astype(np.float64)[:-1], least[:-1], total, result[:-1])
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
def _pool_integers(x: Int64, total: int, y: Int64) -> None:
    sums = np.empty(len(x), dtype=np.int64)
    sizes = np.empty(len(x), dtype=np.int64)
    blocks = 0
    for value in x:
        sums[blocks] = value
        sizes[blocks] = 1
        while blocks > 0 and _not_below(
            sums[blocks - 1], sizes[blocks - 1], sums[blocks], sizes[blocks]
        ):
            blocks -= 1
            sums[blocks] += sums[blocks + 1]
            sizes[blocks] += sizes[blocks + 1]
        blocks += 1
    cell = 0
    for block in range(blocks):
        rounded = (2 * sums[block] + sizes[block]) // (2 * sizes[block])
        y[cell : cell + sizes[block]] = min(max(rounded, 0), total)
        cell += sizes[block]


@kernel
def _not_below(first: int, first_size: int, second: int, second_size: int) -> bool:
    """Return whether the first mean is at least the second, without a product that could wrap."""
    whole = first // first_size
    other = second // second_size
    if whole != other:
        return whole > other
    rest = (first - whole * first_size) * second_size
    return rest >= (second - other * second_size) * first_size


@kernel
def _slope_trick(x: Float64, total: int, y: Int64) -> None:
    places = np.empty(2 * len(x) + 2, dtype=np.int64)
    masses = np.empty(2 * len(x) + 2)
    size = 0
    for i in range(len(x)):
        floor = np.floor(x[i])
        part = x[i] - floor
        size = _push(places, masses, size, int(floor), 2.0 - 2.0 * part)
        if part > 0.0:
            size = _push(places, masses, size, int(floor) + 1, 2.0 * part)
        missing = 1.0
        while masses[0] < missing:
            missing -= masses[0]
            size = _pop(places, masses, size)
        y[i] = places[0]
        masses[0] -= missing
        if masses[0] <= 0.0:
            size = _pop(places, masses, size)
    least = total
    for i in range(len(x) - 1, -1, -1):
        least = min(least, y[i])
        y[i] = least


@kernel
def _push(places: Int64, masses: Float64, size: int, place: int, mass: float) -> int:
    """Put a bend into the heap, the largest place on top; its new size."""
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if places[parent] >= place:
            break
        places[child] = places[parent]
        masses[child] = masses[parent]
        child = parent
    places[child] = place
    masses[child] = mass
    return size + 1


@kernel
def _pop(places: Int64, masses: Float64, size: int) -> int:
    """Take the top bend out of the heap; its new size."""
    size -= 1
    place = places[size]
    mass = masses[size]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and places[child + 1] > places[child]:
            child += 1
        if places[child] <= place:
            break
        places[parent] = places[child]
        masses[parent] = masses[child]
        parent = child
    places[parent] = place
    masses[parent] = mass
    return size
