"""The estimator of InfTDA: the smallest largest change of any cell."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import check_combine, over_integers
from hedgerow.estimate.families.euclidean import (
    floor_quotient,
    lower_in_ascending_order,
    survey,
    water_level,
)
from hedgerow.estimate.families.marginal_cost import cheapest_units, write_variances
from hedgerow.estimate.families.real_projection import is_real, project_real
from hedgerow.kernels import kernel

# Integer least distance in units of the cells' standard deviations, then one ascending pass.
#
# Minimise ``max_i |y_i - x_i| / s_i`` over integers ``y >= 0`` with ``Σ y = c``: x (float64, cells)
# and c in records, s (float64, cells) the standard deviations; only their ratios matter.
#
# A distance t allows the integers from ``L_i(t) = max(⌈x_i - t s_i⌉, 0)`` to
# ``U_i(t) = ⌊x_i + t s_i⌋`` in cell i. So it is possible if and only if no such range is empty and
# ``Σ L(t) <= c <= Σ U(t)``. As t grows, L falls and U rises, so the least distance is the largest
# of
#
# - t0, the largest ``|r_i - x_i| / s_i`` with ``r = max(⌊x + 1/2⌋, 0)`` the nearest counts: ranges
# are non-empty from t0 on, and the range of cell i then holds r_i;
# - the least t with ``Σ U(t) >= c``, where that is more than t0;
# - the least t with ``Σ L(t) <= c``.
#
# The last two are not both more than t0: where ``Σ U(t) < c`` also ``Σ L(t) < c``. Each is the cost
# of a unit (`hedgerow.estimate.families.marginal_cost`), for ``U_i(t)`` counts the k with
# ``(k - x_i) / s_i <= t``, and ``L_i(t)`` the k >= 1 with ``(k - 1 - x_i) / s_i < -t``.
#
# Which optimum. A cell's place in the ascending order is ``x_i / s_i``, ties by index.
#
# - ``Σ U(t0) < c``: with r the cost of the c-th cheapest unit of offset 0, t = r. From U(r), which
# exceeds c only by units of equal cost r, cells are lowered in ascending order to L(r) until the
# sum is c.
# - ``Σ L(t0) > c``: the c cheapest units of offset 1. They hold all of L(t) and of the equal costs
# just left out those of the largest cells: that is lowering from one level to the next, in order.
# - Otherwise t = t0. From ``⌈x + r s⌉``, ``r = (c - Σx) / Σs``, brought between L(t0) and U(t0)
# (from U(t0) itself should that fall short of c), cells are lowered in ascending order to L(t0).
#
# All of these lie between L(t) and U(t), hence are optimal. For integer x and equal s they are the
# three cases of `Chebyshev`'s integer kernel: ``r s`` there is ``raised``, ``t s`` is ``water``.
#
# Costs are rounded to doubles, so the distance is least up to some 2^-51 of ``(|x_i| + c) / s_i``.


@kernel
def project_least_distance(
    noisy: Float64,
    variance: Float64,
    family_start: Int64,
    totals: Int64,
    families: tuple[int, int],
    result: Int64,
) -> None:
    """Write the families from the first up to the last, exclusive; see `real_projection.Kernel`."""
    first, last = families
    widest = 1
    for family in range(first, last):
        widest = max(widest, family_start[family + 1] - family_start[family])
    s = np.empty(widest, dtype=np.float64)
    scratch = (np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest))
    for family in range(first, last):
        begin = family_start[family]
        end = family_start[family + 1]
        if end == begin:
            continue
        x = noisy[begin:end]
        if not write_variances(variance, begin, len(x), s):
            for i in range(len(x)):
                s[i] = np.sqrt(s[i])
        _project_weighted(x, s, totals[family], scratch, result[begin:end])


@kernel
def _project_weighted(
    x: Float64,
    s: Float64,
    total: int,
    scratch: tuple[Float64, Float64, Float64, Float64],
    y: Int64,
) -> None:
    rank, keys, least, most = scratch
    distance = 0.0
    gap = float(total)
    sum_s = 0.0
    for i in range(len(x)):
        inverse = 1.0 / s[i]
        rank[i] = x[i] * inverse
        distance = max(distance, abs(max(np.floor(x[i] + 0.5), 0.0) - x[i]) * inverse)
        gap -= x[i]
        sum_s += s[i]
    lower, middle, upper = _write_ranges(x, s, distance, gap / sum_s, float(total), least, most)
    if upper < total:
        raised, equal_left = cheapest_units(x, s, rank, (0.0, total, 0), keys, y)
        if not equal_left:
            return
        for i in range(len(x)):
            least[i] = _lowest(x[i], s[i], raised)
            most[i] = y[i] + ((y[i] + 1 - x[i]) / s[i] <= raised)
    elif lower > total:
        cheapest_units(x, s, rank, (1.0, total, 0), keys, y)
        return
    elif middle < total:
        _write_upper(x, s, distance, float(total), most)
    lower_in_order(rank, least, most, total, y)


@kernel
def _lowest(x: float, s: float, distance: float) -> float:
    """``L(distance)``, never above the nearest count, whatever the rounding."""
    return float(max(min(np.ceil(x - distance * s), np.floor(x + 0.5)), 0.0))


@kernel
def _highest(x: float, s: float, distance: float) -> float:
    """``U(distance)``, never below the nearest count, whatever the rounding."""
    return float(max(np.floor(x + distance * s), np.floor(x + 0.5), 0.0))


@kernel
def _write_upper(
    x: Float64,
    s: Float64,
    distance: float,
    total: float,
    most: Float64,
) -> None:
    for i in range(len(x)):
        most[i] = min(_highest(x[i], s[i], distance), total)


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
def lower_in_order(
    rank: Float64,
    least: Float64,
    most: Float64,
    total: int,
    y: Int64,
) -> None:
    """Write ``most``, lowered in ascending order of (rank, index) to ``least`` until it sums to c.

    All arrays but y may be longer than the family. All cells below some pivot are lowered the whole
    way, all above it not at all. The pivot is the smallest rank with
    ``K(v) = Σ_{rank > v} most + Σ_{rank <= v} least <= c``, found by bisection between ranks.
    """
    low = np.inf
    high = -np.inf
    held = 0.0
    for i in range(len(y)):
        low = min(low, rank[i])
        high = max(high, rank[i])
        held += least[i]
    while low < high:
        middle = low + (high - low) / 2.0
        if middle >= high:
            middle = low
        kept = 0.0
        below = -np.inf
        above = np.inf
        for i in range(len(y)):
            over = rank[i] > middle
            kept += most[i] if over else least[i]
            below = max(below, -np.inf if over else rank[i])
            above = min(above, rank[i] if over else np.inf)
        if kept <= total:
            high = below
            held = kept
        else:
            low = above
    spare = total - int(held)
    for i in range(len(y) - 1, -1, -1):
        if rank[i] > high:
            y[i] = int(most[i])
            continue
        y[i] = int(least[i])
        if rank[i] == high:
            given = min(spare, int(most[i]) - y[i])
            y[i] += given
            spare -= given


@dataclass(frozen=True, slots=True)
class Chebyshev:
    """Minimise ``max_i |y_i - x_i| / s_i`` over integers ``y >= 0`` with ``Σ y = c``, in a family.

    x (cells) are the family's noisy counts or combined estimates, s their standard deviations, c is
    the family's total, y its estimate, all in records; b is the number of cells. Among the many
    optima this is one that lowers small noisy counts first, so cells that are truly empty tend to
    be released as 0; but also cells that are larger than their siblings gain up to half a record in
    each family, which sums over many families show (`Euclidean` does not). For real x or unequal s
    see `hedgerow.estimate.families.chebyshev`.

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
        noisy: Int64 | Float64,
        family_start: Int64,
        totals: Int64,
        variance: float | Float64 | None = None,
    ) -> Int64:
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
    noisy: Int64,
    family_start: Int64,
    totals: Int64,
    first: int,
    last: int,
    result: Int64,
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
        water, held = water_level(x, total, start)
        if water > start:
            raised = 1 - water
        bounds = (least, greatest)
        shifts = (raised, water)
        lower_in_ascending_order(x, total, bounds, shifts, held, result[begin:end])
