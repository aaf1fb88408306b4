"""What every estimator promises, and what every estimator refuses."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel, over_families
from hedgerow.limits import LARGEST_COUNT, LARGEST_FAMILY


class Estimator(Protocol):
    """From the noisy counts of families to counts that add up to their parents' counts."""

    @property
    def name(self) -> str:
        """What the release file and the manifest call this estimator."""
        ...

    @property
    def combine(self) -> bool | None:
        """Whether upward-combined estimates are projected (True) or raw noisy counts (False).

        None, the default, combines where the plan measures all nodes. The top-down pass reads
        this; `project` does not.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return method and parameters for the manifest; the registry reads them back."""
        ...

    def project(
        self,
        noisy: Int64 | Float64,
        family_start: Int64,
        totals: Int64,
        variance: float | Float64 | None = None,
    ) -> Int64:
        """Return non-negative counts near the noisy ones; each family sums exactly to its total.

        Args:
            noisy: int64 or float64 (cells), records: the noisy counts or combined estimates, one
                family after the other; not changed.
            family_start: int64 (families + 1): family f owns the cells
                ``family_start[f]:family_start[f + 1]``; begins with 0, ends with the number of
                cells. A family may be empty when its total is 0.
            totals: int64 (families), records, not negative: what each family must sum to.
            variance: records²: of every noisy count (a float), or of each, float64 (cells); None
                for equal and unknown. See `hedgerow.estimate.families.real_projection` for 0 and
                infinity.

        Returns:
            int64 (cells), records.

        Raises:
            EstimateError: for arrays that break these rules or pass the limits of this module.
        """
        ...


def check_combine(combine: object) -> None:
    """Raise unless the value is True, False or None."""
    if combine is not None and not isinstance(combine, bool):
        raise EstimateError(f"combine must be True, False or None, got {combine!r}")


def check_families(noisy: Int64, family_start: Int64, totals: Int64) -> None:
    """Raise unless an integer estimate can be made; see `Estimator.project` for the rules."""
    check_vector("noisy", noisy, np.int64)
    check_structure(len(noisy), family_start, totals, LARGEST_COUNT)
    if not _within(noisy, -LARGEST_COUNT, LARGEST_COUNT):
        raise EstimateError(
            "noisy counts must lie between -2^61 and 2^61, where no sum can wrap; "
            "at least one does not: is the noise far larger than the table?"
        )


def over_integers(
    project: Callable[[Int64, Int64, Int64, int, int, Int64], None],
    noisy: Int64 | Float64,
    family_start: Int64,
    totals: Int64,
) -> Int64:
    """Return the estimates, int64 (cells), that a kernel for integer counts makes of all families.

    Args:
        project: ``(noisy, family_start, totals, first, last, result)``.
        noisy: see `check_families`, like the rest.
        family_start: int64 (families + 1).
        totals: int64 (families), records.
    """
    check_vector("noisy", noisy, np.int64)
    counts = noisy.astype(np.int64, copy=False)
    check_families(counts, family_start, totals)
    result = np.empty(len(counts), dtype=np.int64)
    over_families(
        lambda first, last: project(counts, family_start, totals, first, last, result), family_start
    )
    return result


def check_structure(cells: int, family_start: Int64, totals: Int64, largest_total: int) -> None:
    """Raise unless families partition the cells and can sum to their totals."""
    check_vector("family_start", family_start, np.int64)
    check_vector("totals", totals, np.int64)
    if len(family_start) != len(totals) + 1:
        raise EstimateError(
            f"family_start must have one entry more than totals has ({len(totals)} families), "
            f"got {len(family_start)}"
        )
    if family_start[0] != 0 or family_start[-1] != cells:
        raise EstimateError(
            f"family_start must begin with 0 and end with the number of cells, {cells}; "
            f"got {family_start[0]} and {family_start[-1]}"
        )
    family = _first_impossible_family(family_start, totals, largest_total, LARGEST_FAMILY)
    if family >= 0:
        _refuse_family(family, family_start, totals, largest_total)


def check_vector(name: str, array: object, *dtypes: type[np.generic]) -> None:
    """Raise unless the value is a one-dimensional NumPy array of one of these dtypes."""
    if not isinstance(array, np.ndarray):
        actual = type(array).__name__
    elif array.ndim != 1 or array.dtype not in dtypes:
        actual = f"{array.dtype} in {array.ndim} dimensions"
    else:
        return
    wanted = " or ".join(dtype.__name__ for dtype in dtypes)
    raise EstimateError(
        f"{name} must be a NumPy array of {wanted} in 1 dimensions, got {actual}; convert it first"
    )


def _refuse_family(family: int, family_start: Int64, totals: Int64, largest_total: int) -> None:
    cells = int(family_start[family + 1]) - int(family_start[family])
    if cells < 0:
        raise EstimateError(f"family_start must not decrease, but does after family {family}")
    if cells > LARGEST_FAMILY:
        raise EstimateError(f"family {family} has {cells} cells; at most 2^29 are possible")
    if totals[family] < 0:
        raise EstimateError(
            f"totals must not be negative, but family {family} has such a one; "
            "estimate the parents first"
        )
    if totals[family] > largest_total:
        raise EstimateError(f"totals must be at most {largest_total}; family {family} has more")
    raise EstimateError(
        f"family {family} has no cells but a positive total; give it children or a total of 0"
    )


@kernel
def _within(values: Int64, least: int, greatest: int) -> bool:
    low = 0  # both bounds hold 0, so 0 is a safe start
    high = 0
    for value in values:
        low = min(low, value)
        high = max(high, value)
    return least <= low and high <= greatest


@kernel
def _first_impossible_family(
    family_start: Int64, totals: Int64, largest_total: int, largest_family: int
) -> int:
    for family in range(len(totals)):
        cells = family_start[family + 1] - family_start[family]
        total = totals[family]
        # Two entries of opposite extremes make the difference wrap; it then turns negative.
        if cells < 0 or cells > largest_family or total < 0 or total > largest_total:
            return family
        if cells == 0 and total > 0:
            return family
    return -1
