"""The estimator of InfTDA: the smallest largest change of any cell."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimate.estimator import check_combine, over_integers
from hedgerow.estimate.families.ascending import (
    floor_quotient,
    lower_in_ascending_order,
    survey,
    water_level,
)
from hedgerow.estimate.families.chebyshev_weighted import project_least_distance
from hedgerow.estimate.families.real_projection import is_real, project_real
from hedgerow.kernels import kernel


@dataclass(frozen=True, slots=True)
class Chebyshev:
    """Minimise ``max_i |y_i - x_i| / s_i`` over integers ``y >= 0`` with ``Σ y = c``, in a family.

    x (cells) are the family's noisy counts or combined estimates, s their standard deviations, c is
    the family's total, y its estimate, all in records; b is the number of cells. Among the many
    optima this is one that lowers small noisy counts first, so cells that are truly empty tend to
    be released as 0; but also cells that are larger than their siblings gain up to half a record in
    each family, which sums over many families show (`Euclidean` does not). For real x or unequal s
    see `hedgerow.estimate.families.chebyshev_weighted`.

    For integer x and equal s it equals, cell by cell, the result of IntOpt∞ (Boninsegna &
    Silvestri, Algorithms 2 and 4, with a stable ascending sort), but takes a few passes over the
    family and no sort.

    Why it is the same. Let ``z = y - x``. Line 1 starts from ``z = max(raised, -x)`` with
    ``raised = ceil((c - Σx) / b)``, line 2 from ``t0 = max |z|``. A pass at t that does not end the
    loop leaves ``z = max(-x, -t)``, whatever came before; so the loop ends in the first pass with
    ``Σ max(x - t, 0) <= c``. Algorithm 2 tries every t from t0 on. Algorithm 4 jumps by
    ``max(1, r)``, ``r = floor(Δ / |I|)``; lowering |I| cells by r takes at most Δ off the sum, so
    it never jumps past the smallest such t, and if it reaches it with r >= 2, then all of Δ is used
    and no cell is lowered in part. Hence ``t = max(t0, s)``, s the smallest integer with
    ``Σ max(x - s, 0) <= c``. The last pass starts from ``max(x + raised, 0)`` where t = t0, else
    from ``max(x - (t - 1), 0)``, and lowers cells in ascending order to ``max(x - t, 0)`` until the
    sum is c: that is `lower_in_ascending_order`.

    Why it is optimal (their Lemma 13). A distance u needs ``u >= max(raised, -min x)`` (Lemma 12)
    and, as ``y >= max(x - u, 0)``, also ``u >= s``. Now ``t0 = max(raised, -min x, min(-raised,
    max x))``, and its last term is at most s, as ``c >= Σ (x - s)`` gives
    ``s >= (Σx - c) / b >= -raised``. So ``t = max(raised, -min x, s)``, the least u possible, and
    no ``|z|`` exceeds it.
    """

    name: ClassVar[str] = "chebyshev"
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
            return project_real(project_least_distance, noisy, family_start, totals, variance)
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
        least, greatest, high, low = survey(x, total)
        # Line 1: z = max(raised, -x). Line 2: start = max |z|.
        raised = floor_quotient(high, low + len(x) - 1, len(x))
        start = max(raised, -least, -max(raised, -greatest))
        level, held = water_level(x, total, start)
        if level > start:
            raised = 1 - level
        bounds = (least, greatest)
        shifts = (raised, level)
        lower_in_ascending_order(x, total, bounds, shifts, held, result[begin:end])
