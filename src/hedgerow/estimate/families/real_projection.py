"""Families of real values with variances: what is refused, and what variances 0 and infinity mean.

A cell of variance 0 is known exactly (an invariant, or the sum of such); one of infinite variance
was never measured. They are the limits of small and large variances, so they are settled first:

1. Cells of variance 0 keep their values, which must be non-negative integers. Where these exceed
   the family's total, or no other cell is left to make up the rest, they are projected on it
   themselves, as cells of equal variance, and all other cells are 0.
2. Where there are cells of infinite variance, every other cell takes the count nearest its value
   by itself (what a penalty makes 0 is 0), if these counts fit into what is left of the total; the
   cells of infinite variance, whatever their values, share the rest evenly, and some of them, as
   `hedgerow.estimate.families.units` has it, one record more. If the counts do not fit, the cells
   of infinite variance are 0.
3. All remaining cells are projected on what is left, by the estimator.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import ClassVar

import numpy as np

from hedgerow.arrays import Bool, Float64, FloatPair, Int64, float64, int64_zeros
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import (
    Estimator,
    Families,
    WholeKernel,
    check_structure,
    check_vector,
    over_integers,
    within,
)
from hedgerow.estimate.families.units import family_hash, receives_leftover_unit
from hedgerow.kernels import kernel, over_families, run_ends
from hedgerow.limits import LARGEST_REAL_COUNT
from hedgerow.text import Json

LARGEST_VARIANCE = 2.0**300
"""Variances lie in 2^-300..2^300, where products with counts neither overflow nor vanish; smaller
ones, of noise that is next to never there, count as 2^-300."""

Kernel = Callable[[Float64, Float64, Int64, Int64, Families, Int64], None]
"""``(x, variance, family_start, totals, (first, last), y)``; one variance is that of all cells."""


@frozen
class FamilyEstimator(Estimator):
    """An estimator that is a kernel, which settles each family by itself; its fields are its own.

    Attributes:
        kernels: that for real noisy counts, or variances that differ; and that for int64 noisy
            counts of one variance, if it has one of its own.
    """

    kernels: ClassVar[tuple[Kernel, WholeKernel | None]]

    def to_dict(self) -> Json:
        """Return method and parameters for the manifest."""
        return {"method": self.name, **asdict(self)}

    def project(
        self,
        noisy: Int64 | Float64,
        family_start: Int64,
        totals: Int64,
        variance: float | Float64 | None = None,
    ) -> Int64:
        """Return the consistent counts, int64 (cells), in records; see `Estimator.project`.

        Noisy counts lie within ±2^40 records, totals in 0..2^40; int64 noisy counts of one variance
        within ±2^61, and their totals in 0..2^61, where there is a kernel for whole numbers. A
        family has at most 2^29 cells. Only the ratios of variances matter to an estimator without
        a penalty, so None and any one positive number are the same to it.

        Raises:
            EstimateError: for arrays that break these rules; within them no sum wraps.
        """
        real, whole = self.kernels
        if whole is not None and not is_real(noisy, variance):
            return over_integers(whole, noisy, family_start, totals)
        return project_real(real, noisy, family_start, totals, variance)


def project_real(
    solve: Kernel,
    noisy: Int64 | Float64,
    family_start: Int64,
    totals: Int64,
    variance: float | Float64 | None,
    penalty: float = 0.0,
) -> Int64:
    """Return the estimates, int64 (cells), of all families by one kernel, in parallel.

    Args:
        solve: the estimator, for positive, finite variances.
        noisy: int64 or float64 (cells), records; values beyond ±2^40 count as ±2^40.
        family_start: int64 (families + 1).
        totals: int64 (families), records, 0 to 2^40.
        variance: records²: a float for all cells, float64 (cells), or None for 1.
        penalty: what the estimator adds to the objective for every count that is not 0.
    """
    check_vector("noisy", noisy, np.int64, np.float64)
    check_structure(len(noisy), family_start, totals, LARGEST_REAL_COUNT)
    x = np.ascontiguousarray(noisy, dtype=np.float64)
    if not within(x, -LARGEST_REAL_COUNT, LARGEST_REAL_COUNT):
        if not np.isfinite(x).all():
            raise EstimateError("real noisy counts must be finite; at least one is not")
        x = np.clip(x, -LARGEST_REAL_COUNT, LARGEST_REAL_COUNT)
    variances, extreme = _checked_variances(x, variance)
    result = int64_zeros(len(x))
    if not extreme:
        over_families(
            lambda a, b: solve(x, variances, family_start, totals, (a, b), result), family_start
        )
        return result
    each = variances if len(variances) == len(x) else np.full(len(x), variances[0])
    start = np.zeros_like(family_start)
    rest = totals.copy()
    left = np.empty(len(x), dtype=np.bool_)
    _settle((x, each), family_start, penalty, (start, rest, left), result)
    part = x[left]
    left_variances = np.maximum(each[left], 1 / LARGEST_VARIANCE)
    left_estimates = int64_zeros(len(part))
    over_families(
        lambda a, b: solve(part, left_variances, start, rest, (a, b), left_estimates), start
    )
    result[left] = left_estimates
    return result


def is_real(noisy: object, variance: object) -> bool:
    """Return whether values or variances are such that only a real-valued kernel can take them."""
    if isinstance(noisy, np.ndarray) and noisy.dtype == np.float64:
        return True
    equal = isinstance(variance, int | float | np.floating) and bool(0 <= variance < np.inf)
    return variance is not None and not equal


def _checked_variances(x: Float64, variance: float | Float64 | None) -> tuple[Float64, bool]:
    """Return one variance for all or one for each, and whether any is 0 or infinite."""
    if variance is None:
        return np.ones(1), False
    one = isinstance(variance, int | float | np.floating) and not isinstance(variance, bool)
    values = float64([variance]) if one else np.asanyarray(variance)
    check_vector("variance", variance if not one else values, np.float64)
    if not one and len(values) != len(x):
        raise EstimateError(
            f"variance must be one number or have one entry a cell ({len(x)} cells), "
            f"got {len(values)}"
        )
    least = 1 / LARGEST_VARIANCE
    values = np.ascontiguousarray(values)
    if within(values, least, LARGEST_VARIANCE):
        return values, False
    values = np.where((values > 0) & (values < least), least, values)
    exact = x[np.broadcast_to(values, len(x)) == 0]
    if not ((exact >= 0) & (exact == np.floor(exact))).all():
        raise EstimateError(
            "a cell of variance 0 is known exactly, so it must hold an integer that is not "
            "negative; at least one does not: give it its true variance"
        )
    usual = values[(values != 0) & (values != np.inf)]
    if not within(usual, least, LARGEST_VARIANCE):
        raise EstimateError(
            "a variance must be from 0 to 2^300, or infinite; at least one is not: "
            "use infinity for cells that were not measured"
        )
    return values, len(usual) < len(values)


@kernel
def _settle(
    cells: FloatPair,
    family_start: Int64,
    penalty: float,
    problem: tuple[Int64, Int64, Bool],
    y: Int64,
) -> None:
    """Write what is settled to y, and the families, totals and cells that are left."""
    # In: rest holds the totals. Out: start, rest and left describe the cells still to be projected.
    # alone: exact cells must be projected themselves; settled: unmeasured cells take the remainder.
    start, rest, left = problem
    for family in range(len(rest)):
        begin, end = run_ends(family_start, family)
        x = cells[0][begin:end]
        variance = cells[1][begin:end]
        part = y[begin:end]
        exact, own, exacts, unknowns = _sums(x, variance, penalty, float(rest[family]))
        # Exact cells beyond the total, or nothing else: these are projected. What was measured fits
        # within it and something was not: that takes the remainder.
        total = rest[family]
        alone = exact > total or exacts == len(x)
        settled = not alone and unknowns > 0 and exact + own <= total
        spare = total - int(exact + own) if settled else 0
        rest[family] = 0 if settled else total if alone else total - int(exact)
        # The remainder in equal parts, single units where a hash puts them.
        share = spare // unknowns if unknowns > 0 else 0
        more = spare - share * unknowns
        hashed = family_hash(x, spare) if more > 0 else 0
        place = 0
        size = 0
        # Which cells are left to be projected, and the counts of all others.
        for i in range(len(x)):
            exact_cell = variance[i] == 0.0
            unknown = variance[i] == np.inf
            left[begin + i] = exact_cell if alone else not (settled or exact_cell or unknown)
            size += left[begin + i]
            if exact_cell and not alone:
                part[i] = int(x[i])
            elif settled and unknown:
                part[i] = share + (
                    more > 0 and receives_leftover_unit(place, hashed, more, unknowns)
                )
                place += 1
            elif settled:
                part[i] = int(_nearest(x[i], variance[i], penalty))
        start[family + 1] = start[family] + size


@kernel
def _sums(
    x: Float64, variance: Float64, penalty: float, total: float
) -> tuple[float, float, int, int]:
    """Return the sums of exact and of other nearest counts, how many are exact or unmeasured."""
    exact = 0.0
    own = 0.0
    exacts = 0
    unknowns = 0
    for i in range(len(x)):
        if variance[i] == 0.0:
            exact += min(x[i], total + 1.0)  # a sum beyond the total need not be exact
            exacts += 1
        elif variance[i] == np.inf:
            unknowns += 1
        else:
            own += _nearest(x[i], variance[i], penalty)
    return exact, own, exacts, unknowns


@kernel
def _nearest(x: float, variance: float, penalty: float) -> float:
    """Return the count that minimises ``(y - x)² / variance + penalty [y > 0]``."""
    whole = np.floor(x + 0.5)
    # What the count saves over 0, times the variance: compared without a quotient.
    saved = x * x - (whole - x) * (whole - x)
    return whole if whole > 0.0 and saved > penalty * variance else 0.0
