"""Integer least squares with weights: real water-filling, rounding, then the cheapest units.

Minimise ``Σ w_i (y_i - x_i)²`` over integers ``y >= 0`` with ``Σ y = c``: x (float64, cells) and c
in records, w (float64, cells) positive. Raising y_i from k to k + 1, one unit, costs
``w_i (2 (k - x_i) + 1)``, which grows with k; so y is optimal if and only if no unit in it costs
more than a unit left out.

1. *Water-filling.* The real optimum is ``max(x - s / w, 0)``, with s where that sums to c.
2. *Rounding.* Of cell i's units ``max(floor(x_i - s / w_i + 1/2), 0)`` cost at most -2s: that is
   the real optimum, rounded. In doubles it may be a unit off, so the costs themselves decide. The
   result holds the cheapest units of all cells, only too many or too few of them.
3. *Repair.* Taking the dearest units out, or putting the cheapest in, one by one from a heap, keeps
   them the cheapest, and ends at c. Of equal costs the largest in (x, index) gains first and loses
   last, so small cells go to zero first.

So y consists of the first c units in the order of (cost, -x, -index), whatever the rounding of s:
optimal for the costs that doubles give (relative error 2^-52 for integer x), that is, up to the
rounding of the objective. Rounding leaves some sqrt(b) units to repair, rarely more than b / 2,
with a heap of b cells: O(b log b).
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import kernel


@kernel
def project_weighted(
    noisy: NDArray[np.float64],
    weights: NDArray[np.float64],
    family_start: NDArray[np.int64],
    totals: NDArray[np.int64],
    families: tuple[int, int],
    result: NDArray[np.int64],
) -> None:
    """Write the families from the first up to the last, exclusive; shapes as in `Euclidean`."""
    first, last = families
    widest = 0
    for family in range(first, last):
        widest = max(widest, family_start[family + 1] - family_start[family])
    scratch = np.empty(widest, dtype=np.float64)
    heap = np.empty(widest, dtype=np.int64)
    for family in range(first, last):
        begin = family_start[family]
        end = family_start[family + 1]
        total = totals[family]
        x = noisy[begin:end]
        w = weights[begin:end]
        y = result[begin:end]
        missing = _round_water(x, w, total, scratch, y)
        if missing != 0:
            _repair(x, w, missing, scratch, heap, y)


@kernel
def _round_water(
    x: NDArray[np.float64],
    w: NDArray[np.float64],
    total: int,
    reciprocal: NDArray[np.float64],
    y: NDArray[np.int64],
) -> int:
    """Write the units that cost at most -2s to y; how many units that is short of the total."""
    level = _real_level(x, w, total, reciprocal)
    missing = total
    for i in range(len(x)):
        # Clipped before the cast: doubles beyond int64 have no defined integer.
        rounded = np.floor(x[i] - level * reciprocal[i] + 0.5)
        units = int(min(max(rounded, 0.0), float(total)))
        while units < total and _unit_cost(x[i], w[i], units + 1) <= -2.0 * level:
            units += 1
        while units > 0 and _unit_cost(x[i], w[i], units) > -2.0 * level:
            units -= 1
        y[i] = units
        missing -= units
    return missing


@kernel
def _real_level(
    x: NDArray[np.float64],
    w: NDArray[np.float64],
    total: int,
    reciprocal: NDArray[np.float64],
) -> float:
    """The s with ``Σ max(x - s / w, 0) = c``, by Newton's method from the left."""
    excess = -float(total)
    size = float(total)
    slope = 0.0
    for i in range(len(x)):
        reciprocal[i] = 1.0 / w[i]
        excess += x[i]
        size += abs(x[i])
        slope += reciprocal[i]
    # All cells active gives a level to the left of s; the margin covers the rounding of the sums.
    resolution = (len(x) + 8) * 2.0**-52
    level = (excess - resolution * size) / slope
    while True:
        excess = -float(total)
        slope = 0.0
        for i in range(len(x)):
            part = x[i] - level * reciprocal[i]
            if part > 0.0:
                excess += part
                slope += reciprocal[i]
        # What the sum's rounding hides is left to the repair: Newton's steps would only crawl.
        if excess <= resolution * total or level + excess / slope <= level:
            return level
        level += excess / slope


@kernel
def _repair(
    x: NDArray[np.float64],
    w: NDArray[np.float64],
    missing: int,
    keys: NDArray[np.float64],
    heap: NDArray[np.int64],
    y: NDArray[np.int64],
) -> None:
    """Add the cheapest missing units, or take the dearest surplus ones."""
    step = 1 if missing > 0 else -1
    size = 0
    for i in range(len(x)):
        if step > 0 or y[i] > 0:
            keys[i] = _key(x[i], w[i], y[i], step)
            heap[size] = i
            size += 1
    for root in range(size // 2 - 1, -1, -1):
        _sift_down(x, keys, heap, root, size, step)
    for _ in range(abs(missing)):
        i = heap[0]
        y[i] += step
        if y[i] == 0 and step < 0:
            size -= 1
            heap[0] = heap[size]
        else:
            keys[i] = _key(x[i], w[i], y[i], step)
        _sift_down(x, keys, heap, 0, size, step)


@kernel
def _unit_cost(x: float, w: float, unit: int) -> float:
    """What raising the cell from ``unit - 1`` to ``unit`` adds to the objective."""
    # One double a unit, whether it is added or taken: all steps see one and the same order.
    return w * (2.0 * (unit - x) - 1.0)


@kernel
def _key(x: float, w: float, y: int, step: int) -> float:
    """What one unit more (step 1) or less (step -1) adds to the objective."""
    return _unit_cost(x, w, y + 1) if step > 0 else -_unit_cost(x, w, y)


@kernel
def _sift_down(
    x: NDArray[np.float64],
    keys: NDArray[np.float64],
    heap: NDArray[np.int64],
    root: int,
    size: int,
    step: int,
) -> None:
    """Restore the heap below its root: the cell whose step costs least comes first."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and _comes_first(x, keys, heap[child + 1], heap[child], step):
            child += 1
        if not _comes_first(x, keys, heap[child], heap[root], step):
            return
        heap[child], heap[root] = heap[root], heap[child]
        root = child


@kernel
def _comes_first(
    x: NDArray[np.float64], keys: NDArray[np.float64], one: int, other: int, step: int
) -> bool:
    if keys[one] != keys[other]:
        return bool(keys[one] < keys[other])
    if x[one] != x[other]:
        return bool(x[one] < x[other]) == (step < 0)
    return (one < other) == (step < 0)
