"""Integer least distance in units of the cells' standard deviations, then one ascending pass.

Minimise ``max_i |y_i - x_i| / s_i`` over integers ``y >= 0`` with ``Σ y = c``: x (float64, cells)
and c in records, s (float64, cells) the standard deviations; only their ratios matter.

A distance t allows the integers from ``L_i(t) = max(⌈x_i - t s_i⌉, 0)`` to
``U_i(t) = ⌊x_i + t s_i⌋`` in cell i. So it is possible if and only if no such range is empty and
``Σ L(t) <= c <= Σ U(t)``. As t grows, L falls and U rises, so the least distance is the largest of

- t0, the largest ``|r_i - x_i| / s_i`` with ``r = max(⌊x + 1/2⌋, 0)`` the nearest counts: ranges
  are non-empty from t0 on, and the range of cell i then holds r_i;
- the least t with ``Σ U(t) >= c``, where that is more than t0;
- the least t with ``Σ L(t) <= c``.

The last two are not both more than t0: where ``Σ U(t) < c`` also ``Σ L(t) < c``. Each is the cost
of a unit (`hedgerow.estimate.families.marginal_cost`), for ``U_i(t)`` counts the k with
``(k - x_i) / s_i <= t``, and ``L_i(t)`` the k >= 1 with ``(k - 1 - x_i) / s_i < -t``.

Which optimum. A cell's place in the ascending order is ``x_i / s_i``, ties by index.

- ``Σ U(t0) < c``: with r the cost of the c-th cheapest unit of offset 0, t = r. From U(r), which
  exceeds c only by units of equal cost r, cells are lowered in ascending order to L(r) until the
  sum is c.
- ``Σ L(t0) > c``: the c cheapest units of offset 1. They hold all of L(t) and of the equal costs
  just left out those of the largest cells: that is lowering from one level to the next, in order.
- Otherwise t = t0. From ``⌈x + r s⌉``, ``r = (c - Σx) / Σs``, brought between L(t0) and U(t0) (from
  U(t0) itself should that fall short of c), cells are lowered in ascending order to L(t0).

All of these lie between L(t) and U(t), hence are optimal. For integer x and equal s they are the
three cases of `Chebyshev`'s integer kernel: ``r s`` there is ``raised``, ``t s`` is ``level``.

Costs are rounded to doubles, so the distance is least up to some 2^-51 of ``(|x_i| + c) / s_i``.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimate.families.marginal_cost import cheapest_units, write_variances
from hedgerow.kernels import kernel

Real = NDArray[np.float64]


@kernel
def project_least_distance(
    noisy: Real,
    variance: Real,
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
        _project(x, s, totals[family], scratch, result[begin:end])


@kernel
def _project(
    x: Real,
    s: Real,
    total: int,
    scratch: tuple[Real, Real, Real, Real],
    y: NDArray[np.int64],
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
    x: Real,
    s: Real,
    distance: float,
    total: float,
    most: Real,
) -> None:
    for i in range(len(x)):
        most[i] = min(_highest(x[i], s[i], distance), total)


@kernel
def _write_ranges(
    x: Real,
    s: Real,
    distance: float,
    raised: float,
    total: float,
    least: Real,
    most: Real,
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
    rank: Real,
    least: Real,
    most: Real,
    total: int,
    y: NDArray[np.int64],
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
