"""What every estimator promises, and what every estimator refuses."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from hedgerow.arrays import Array, Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel, over_families, run_size
from hedgerow.limits import LARGEST_COUNT, LARGEST_FAMILY
from hedgerow.text import Json

Families = tuple[int, int]
"""Those from the first up to the last, exclusive, that a kernel is called for."""

WholeKernel = Callable[[Int64, Int64, Int64, int, int, Int64], None]
"""``(noisy, family_start, totals, first, last, y)``."""


class Estimator(Protocol):
    """From the noisy counts of families to counts that add up to their parents' counts."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What the release file and the manifest call this estimator."""
        ...

    def to_dict(self) -> Json:
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


def over_integers(
    project: WholeKernel, noisy: Int64 | Float64, family_start: Int64, totals: Int64
) -> Int64:
    """Return the estimates, int64 (cells), that a kernel for integer counts makes of all families.

    Args:
        project: the kernel.
        noisy: int64 (cells), records, within ±2^61; see `Estimator.project` for the rules.
        family_start: int64 (families + 1).
        totals: int64 (families), records.
    """
    check_vector("noisy", noisy, np.int64)
    counts = noisy.astype(np.int64, copy=False)
    check_structure(len(counts), family_start, totals, LARGEST_COUNT)
    if not within(counts, -LARGEST_COUNT, LARGEST_COUNT):
        raise EstimateError(
            "noisy counts must lie between -2^61 and 2^61, where no sum can wrap; "
            "at least one does not: is the noise far larger than the table?"
        )
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
    family, rule = _first_impossible_family(family_start, totals, largest_total, LARGEST_FAMILY)
    if family < 0:
        return
    cells = int(family_start[family + 1]) - int(family_start[family])
    refusals = (
        f"family_start must not decrease, but does after family {family}",
        f"family {family} has {cells} cells; at most 2^29 are possible",
        (
            f"totals must not be negative, but family {family} has such a one; "
            "estimate the parents first"
        ),
        f"totals must be at most {largest_total}; family {family} has more",
        f"family {family} has no cells but a positive total; give it children or a total of 0",
    )
    raise EstimateError(refusals[rule])


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


@kernel
def within(values: Array, least: float, greatest: float) -> bool:
    """Return whether all values are between the two; NaN is not, as no comparison with it holds."""
    outside = 0
    # Counted to the end: without a way out of the loop the compiler makes vectors of it.
    for value in values:
        outside += not (least <= value <= greatest)
    return outside == 0


@kernel
def _first_impossible_family(
    family_start: Int64, totals: Int64, largest_total: int, largest_family: int
) -> tuple[int, int]:
    """Return the first family that breaks a rule of `check_structure`, and the rule; or -1."""
    for family in range(len(totals)):
        cells = run_size(family_start, family)
        total = totals[family]
        # Two entries of opposite extremes make the difference wrap; it then turns negative.
        if cells < 0 or cells > largest_family:
            return family, 0 if cells < 0 else 1
        if total < 0 or total > largest_total:
            return family, 2 if total < 0 else 3
        if cells == 0 and total > 0:
            return family, 4
    return -1, -1
