"""The estimator of least squares: the smallest sum of squared changes, over the integers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.ascending import (
    floor_quotient,
    lower_in_ascending_order,
    survey,
    water_level,
)
from hedgerow.estimate.estimator import check_families, check_structure, check_vector
from hedgerow.estimate.marginal_cost import project_weighted
from hedgerow.kernels import kernel, over_families

LARGEST_WEIGHTED_COUNT = 1 << 40
"""Weighted counts and totals (records) stay where doubles resolve a 4096th of a record."""

LARGEST_WEIGHT = 2.0**300
"""Weights lie in 2^-300..2^300, where products with counts neither overflow nor vanish."""


@dataclass(frozen=True, slots=True)
class Euclidean:
    """Minimise ``Σ w_i (y_i - x_i)²`` over integers ``y >= 0`` with ``Σ y = c``, in each family.

    x (cells) are the family's noisy counts, c is its total, y its estimate, all in records; w are
    weights (inverse variances, records⁻²), 1 unless given. The optimum is over the integers: it is
    not a rounded real solution. The ℓ2 projection of TopDown (Abowd et al.; TDA_ℓ2 in Boninsegna &
    Silvestri, Section 5) solves the real problem and then rounds.

    Why greedy is optimal. The cost is a sum of convex functions of one cell each. Raising y_i from
    k to k + 1 costs ``w_i (2 (k - x_i) + 1)``, which grows with k; so the c cheapest units of all
    cells form a valid y, and no other y is cheaper.

    Without weights the cost of a unit depends on ``k - x_i`` alone. Let s be the smallest integer
    with ``Σ max(x - s, 0) <= c``. The units with ``k - x_i < -s`` give ``y = max(x - s, 0)``; the
    rest of c goes to units with ``k - x_i = -s``, one for each cell with x >= s, and as s is the
    smallest there are more of those than needed. Which of them, the cost leaves open: here the
    cells largest in (x, index) get one. Seen from ``max(x - s + 1, 0)``, cells lose one in
    ascending order of x, ties by index, so small cells go to zero first. The result is exact.

    With weights see `hedgerow.estimate.marginal_cost`.
    """

    name: ClassVar[str] = "euclidean"

    def project(
        self,
        noisy: NDArray[np.int64] | NDArray[np.float64],
        family_start: NDArray[np.int64],
        totals: NDArray[np.int64],
        weights: NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """The consistent counts, int64 (cells), in records.

        Args:
            noisy: int64 (cells), records, within ±2^61; with weights int64 or float64 within ±2^40.
            family_start: int64 (families + 1): where each family's cells begin, and the end; a
                family has at most 2^29 cells.
            totals: int64 (families), records, 0 to 2^61 (2^40 with weights).
            weights: float64 (cells), records⁻², 2^-300 to 2^300; only their ratios matter.

        Raises:
            EstimateError: for arrays that break these rules; within them no sum wraps.
        """
        if weights is not None:
            return _with_weights(noisy, family_start, totals, weights)
        check_vector("noisy (without weights)", noisy, np.int64)
        counts = noisy.astype(np.int64, copy=False)
        check_families(counts, family_start, totals)
        result = np.empty(len(counts), dtype=np.int64)
        over_families(
            lambda first, last: _project(counts, family_start, totals, first, last, result),
            family_start,
        )
        return result


def _with_weights(
    noisy: NDArray[np.int64] | NDArray[np.float64],
    family_start: NDArray[np.int64],
    totals: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.int64]:
    check_vector("noisy", noisy, np.int64, np.float64)
    check_structure(len(noisy), family_start, totals, LARGEST_WEIGHTED_COUNT)
    check_vector("weights", weights, np.float64)
    if len(weights) != len(noisy):
        raise EstimateError(
            f"weights must have one entry a cell ({len(noisy)} cells), got {len(weights)}"
        )
    counts = noisy.astype(np.float64)
    if not _within(counts, -LARGEST_WEIGHTED_COUNT, LARGEST_WEIGHTED_COUNT):
        raise EstimateError(
            "noisy counts with weights must be finite and lie between -2^40 and 2^40; "
            "at least one does not: is the noise far larger than the table?"
        )
    if not _within(weights, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT):
        raise EstimateError(
            "weights must be positive, finite and between 2^-300 and 2^300; at least one is not: "
            "leave out cells that were not measured"
        )
    result = np.empty(len(noisy), dtype=np.int64)
    over_families(
        lambda first, last: project_weighted(
            counts, weights, family_start, totals, (first, last), result
        ),
        family_start,
    )
    return result


@kernel
def _project(
    noisy: NDArray[np.int64],
    family_start: NDArray[np.int64],
    totals: NDArray[np.int64],
    first: int,
    last: int,
    result: NDArray[np.int64],
) -> None:
    for family in range(first, last):
        begin = family_start[family]
        end = family_start[family + 1]
        if end == begin:
            continue
        x = noisy[begin:end]
        total = totals[family]
        least, greatest, high, low = survey(x, total)
        # s >= (Σx - c) / b, as max(x - s, 0) >= x - s; s >= max x - c, as one cell holds at most c.
        at_least = max(-floor_quotient(high, low, len(x)), greatest - total)
        level, held = water_level(x, total, at_least)
        bounds = (least, greatest)
        shifts = (1 - level, level)
        lower_in_ascending_order(x, total, bounds, shifts, held, result[begin:end])


@kernel
def _within(values: NDArray[np.float64], least: float, greatest: float) -> bool:
    # A comparison with NaN is false, so NaN is counted as outside.
    outside = 0
    for value in values:
        outside += not (least <= value <= greatest)
    return outside == 0
