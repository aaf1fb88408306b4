"""The estimator of least squares: the smallest sum of squared changes, over the integers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimate.estimator import check_combine, over_integers
from hedgerow.estimate.families.ascending import floor_quotient, survey, water_level
from hedgerow.estimate.families.marginal_cost import cheapest_units, write_variances
from hedgerow.estimate.families.real_projection import is_real, project_real
from hedgerow.estimate.families.spread import gets_one, hash_of
from hedgerow.kernels import kernel


@dataclass(frozen=True, slots=True)
class Euclidean:
    """Minimise ``Σ (y_i - x_i)² / v_i`` over integers ``y >= 0`` with ``Σ y = c``, in each family.

    x (cells) are the family's noisy counts or combined estimates, v their variances (records²), c
    is the family's total, y its estimate, both in records. The optimum is over the integers: it is
    not a rounded real solution. The ℓ2 projection of TopDown (Abowd et al.; TDA_ℓ2 in Boninsegna &
    Silvestri, Section 5) solves the real problem and then rounds.

    Why greedy is optimal. The cost is a sum of convex functions of one cell each. Raising y_i from
    k to k + 1 costs ``(2 (k - x_i) + 1) / v_i``, which grows with k; so the c cheapest units of all
    cells form a valid y, and no other y is cheaper.

    For integer x and equal v the cost of a unit depends on ``k - x_i`` alone. Let s be the smallest
    integer with ``Σ max(x - s, 0) <= c``. The units with ``k - x_i < -s`` give
    ``y = max(x - s, 0)``; the rest of c goes to units with ``k - x_i = -s``, one for each cell with
    x >= s, and as s is the smallest there are more of those than needed. Which of them, the cost
    leaves open: here cells that hold something anyway (x > s), and only then empty ones, so that
    empty cells stay empty; among them evenly, so that no cell gains from its size or place
    (`hedgerow.estimate.families.spread`). The result is exact.

    For real x or unequal v see `hedgerow.estimate.families.marginal_cost`.
    """

    name: ClassVar[str] = "euclidean"
    combine: bool | None = None

    def __post_init__(self) -> None:
        check_combine(self.combine)

    def to_dict(self) -> dict[str, Any]:
        """Method and parameters for the manifest."""
        return {"method": self.name, "combine": self.combine}

    def project(
        self,
        noisy: NDArray[np.int64] | NDArray[np.float64],
        family_start: NDArray[np.int64],
        totals: NDArray[np.int64],
        variance: float | NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """The consistent counts, int64 (cells), in records.

        Args:
            noisy: int64 (cells), records, within ±2^61; or float64 within ±2^40.
            family_start: int64 (families + 1): where each family's cells begin, and the end; a
                family has at most 2^29 cells.
            totals: int64 (families), records, 0 to 2^61 (2^40 for real noisy counts or an array of
                variances): what each family must sum to.
            variance: records²; only ratios matter, so None and any one positive number are the
                same. An array, float64 (cells), makes int64 noisy counts real ones.

        Raises:
            EstimateError: for arrays that break these rules; within them no sum wraps.
        """
        if is_real(noisy, variance):
            return project_real(project_least_squares, noisy, family_start, totals, variance)
        return over_integers(_project, noisy, family_start, totals)


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
        _, greatest, high, low = survey(x, total)
        # s >= (Σx - c) / b, as max(x - s, 0) >= x - s; s >= max x - c, as one cell holds at most c.
        at_least = max(-floor_quotient(high, low, len(x)), greatest - total)
        level, held = water_level(x, total, at_least)
        _write_above(x, level, total, total - held, result[begin:end])


@kernel
def _write_above(
    x: NDArray[np.int64], level: int, total: int, spare: int, y: NDArray[np.int64]
) -> None:
    """Write ``max(x - level, 0)``, and of the spare units one each to cells from the level on."""
    filled = 0
    empty = 0
    for i in range(len(x)):
        filled += x[i] > level
        empty += x[i] == level
    kept = min(spare, filled)
    rest = spare - kept
    hashed = hash_of(x, total) if spare > 0 else 0
    filled_place = 0
    empty_place = 0
    for i in range(len(x)):
        y[i] = max(x[i] - level, 0)
        if x[i] > level:
            y[i] += rest > 0 or (kept > 0 and gets_one(filled_place, hashed, kept, filled))
            filled_place += 1
        elif x[i] == level:
            y[i] += rest > 0 and gets_one(empty_place, hashed, rest, empty)
            empty_place += 1


@kernel
def project_least_squares(
    noisy: NDArray[np.float64],
    variance: NDArray[np.float64],
    family_start: NDArray[np.int64],
    totals: NDArray[np.int64],
    families: tuple[int, int],
    result: NDArray[np.int64],
) -> None:
    """Write the families from the first up to the last, exclusive; see `known.Kernel`."""
    first, last = families
    widest = 1
    for family in range(first, last):
        widest = max(widest, family_start[family + 1] - family_start[family])
    s = np.empty(widest, dtype=np.float64)
    keys = np.empty(widest, dtype=np.float64)
    for family in range(first, last):
        begin = family_start[family]
        end = family_start[family + 1]
        if end == begin:
            continue
        x = noisy[begin:end]
        write_variances(variance, begin, len(x), s)
        problem = (0.5, totals[family], hash_of(x, totals[family]))
        cheapest_units(x, s, x[:0], problem, keys, result[begin:end])
