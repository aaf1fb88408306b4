"""The estimator of InfTDA: the smallest largest change of any cell."""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.declared import frozen
from hedgerow.estimate.estimator import Families
from hedgerow.estimate.families.euclidean import (
    floor_quotient,
    lower_in_ascending_order,
    survey,
    water_level,
)
from hedgerow.estimate.families.real_projection import FamilyEstimator
from hedgerow.estimate.families.units import cheapest_units, widest_family, write_variances
from hedgerow.kernels import kernel, run_ends

# Minimise max |y - x| / s over integers y >= 0 with Σ y = c, s being standard deviations. A
# distance t allows the integers from L(t) = max(⌈x - t s⌉, 0) to U(t) = ⌊x + t s⌋ in a cell. The
# least t is the largest of t0 (no range is empty), the least with Σ U(t) >= c and the least with Σ
# L(t) <= c. Then cells are lowered from U or what lies between towards L, in ascending order of the
# *rank* x / s, ties by index. Proof: `docs/proofs/families.md`, "Least distance over the integers".


@kernel
def project_least_distance(
    noisy: Float64,
    variance: Float64,
    family_start: Int64,
    totals: Int64,
    families: Families,
    result: Int64,
) -> None:
    """Write the families from the first up to the last, exclusive; see `real_projection.Kernel`."""
    first, last = families
    widest = widest_family(family_start, families)
    s = np.empty(widest)
    scratch = (np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest))
    for family in range(first, last):
        begin, end = run_ends(family_start, family)
        if end == begin:
            continue
        x = noisy[begin:end]
        # Standard deviations; equal ones are 1.
        if not write_variances(variance, begin, len(x), s):
            for i in range(len(x)):
                s[i] = np.sqrt(s[i])
        _project_weighted(x, s, totals[family], scratch, result[begin:end])


@kernel
def _project_weighted(
    x: Float64, s: Float64, total: int, scratch: tuple[Float64, Float64, Float64, Float64], y: Int64
) -> None:
    rank, keys, least, most = scratch
    distance = 0.0
    gap = float(total)
    sum_s = 0.0
    for i in range(len(x)):
        # t0: the distance at which no range is empty, that of the nearest counts.
        inverse = 1.0 / s[i]
        rank[i] = x[i] * inverse
        distance = max(distance, abs(max(np.floor(x[i] + 0.5), 0.0) - x[i]) * inverse)
        gap -= x[i]
        sum_s += s[i]
    # Σ L(t0), the sum of x raised evenly in units of s and brought into ranges, and Σ U(t0).
    lower, middle, upper = _write_ranges(x, s, distance, gap / sum_s, float(total), least, most)
    if upper < total or lower > total:
        # t0 does not reach c: the least t is the cost of its last unit, offset 0 from below and 1
        # from above.
        offset = 0.0 if upper < total else 1.0
        cost, equal_left = cheapest_units(x, s, None, (offset, total, 0), keys, y)
        if not equal_left:
            return
        # Units that cost just as much go by rank instead: all are given, and taken back in order.
        for i in range(len(x)):
            most[i] = y[i] + ((y[i] + 1 - offset - x[i]) / s[i] <= cost)
            least[i] = most[i] - (most[i] > 0 and (most[i] - offset - x[i]) / s[i] >= cost)
            if upper < total:
                least[i] = _lowest(x[i], s[i], cost)
    elif middle < total:
        # Raised cells fall short of c: they begin at U(t0).
        for i in range(len(x)):
            most[i] = min(_highest(x[i], s[i], distance), float(total))
    lower_in_order(rank, least, most, total, y)


@kernel
def _lowest(x: float, s: float, distance: float) -> float:
    """Return ``L(distance)``, never above the nearest count, whatever the rounding."""
    # At the distance of the nearest count rounding may put the end past it.
    return float(max(min(np.ceil(x - distance * s), np.floor(x + 0.5)), 0.0))


@kernel
def _highest(x: float, s: float, distance: float) -> float:
    """Return ``U(distance)``, never below the nearest count, whatever the rounding."""
    # As in `_lowest`: rounding must not leave out the nearest count.
    return float(max(np.floor(x + distance * s), np.floor(x + 0.5), 0.0))


@kernel
def _write_ranges(
    x: Float64,
    s: Float64,
    distance: float,
    raised: float,
    total: float,
    least: Float64,
    most: Float64,
) -> tuple[float, float, float]:
    """Write where cells end and begin when lowered; the sums of L, of the beginnings, of U."""
    lower = 0.0
    middle = 0.0
    upper = 0.0
    for i in range(len(x)):
        bottom = _lowest(x[i], s[i], distance)
        top = _highest(x[i], s[i], distance)
        # No count passes the total, so no sum loses digits below it.
        begin = min(max(min(np.ceil(x[i] + raised * s[i]), top), bottom), max(total, bottom))
        least[i] = bottom
        most[i] = begin
        lower += min(bottom, total + 1.0)
        middle += begin
        upper += min(top, total)
    return lower, middle, upper


@kernel
def lower_in_order(rank: Float64, least: Float64, most: Float64, total: int, y: Int64) -> None:
    """Write ``most``, lowered in ascending order of (rank, index) to ``least`` until it sums to c.

    All arrays but y may be longer than the family.
    """
    held = 0.0  # whole numbers that sum to at most 2^40: exact
    for i in range(len(y)):
        held += least[i]
    spare = total - int(held)
    # From the end of the order, cells keep all above ``least`` until the spare records are used up.
    order = np.argsort(rank[: len(y)], kind="mergesort")
    for i in order[::-1]:
        given = min(spare, int(most[i]) - int(least[i]))
        y[i] = int(least[i]) + given
        spare -= given


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
        least, greatest, high, low = survey(x, total)
        # Line 1: z = max(raised, -x). Line 2: start = max |z|.
        raised = floor_quotient(high, low + len(x) - 1, len(x))
        start = max(raised, -least, -max(raised, -greatest))
        # t = max(start, s), s the least level whose Σ max(x - s, 0) <= c.
        water, held = water_level(x, total, start)
        if water > start:
            raised = 1 - water
        bounds = (least, greatest)
        shifts = (raised, water)
        lower_in_ascending_order(x, total, bounds, shifts, held, result[begin:end])


@frozen
class Chebyshev(FamilyEstimator):
    """Minimise ``max_i |y_i - x_i| / s_i`` over integers ``y >= 0`` with ``Σ y = c``, in a family.

    x (cells) are the family's noisy counts or combined estimates, s their standard deviations, c is
    the family's total, y its estimate, all in records; b is the number of cells. Among the many
    optima this is one that lowers small noisy counts first, so cells that are truly empty tend to
    be released as 0; but also cells that are larger than their siblings gain up to half a record in
    each family, which sums over many families show (`Euclidean` does not). For real x or unequal s
    see `hedgerow.estimate.families.chebyshev`.

    Proofs: `docs/proofs/families.md`, "Least distance over the integers".

    For integer x and equal s it equals, cell by cell, the result of IntOpt∞ (Boninsegna &
    Silvestri, Algorithms 2 and 4, with a stable ascending sort), but takes a few passes over the
    family and no sort.

    Example:
        >>> import numpy as np
        >>> noisy, families, totals = np.array([7, -2, 4, 1]), np.array([0, 2, 4]), np.array([6, 5])
        >>> hr.Chebyshev().project(noisy, families, totals)
        array([6, 0, 4, 1])
    """

    name = "chebyshev"
    kernels = project_least_distance, _project
