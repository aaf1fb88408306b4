"""Which counts of a family are not zero, when each of them costs a penalty.

Minimise ``Σ (y_i - x_i)² / v_i + penalty · #{y > 0}`` over integers ``y >= 0`` with ``Σ y = c``.

*Equal variances* (v = 1 and ``price = penalty · v`` without loss of generality). Let F(k) be the
least squared distance with at most k counts that are not 0.

- The support is that of the k largest x. If ``x_i >= x_j`` but ``y_i = 0 < y_j``, swapping the two
  changes the squared distance by ``-2 y_j (x_i - x_j) <= 0``.
- F is convex. Let Φ_k(u) be the least squared distance of the k largest cells to total u. The gain
  ``F(k) - F(k + 1)`` is the largest ``Φ_k(c) - Φ_k(c - v) + 2 v x - v²`` over v >= 0, x being the
  next largest cell. Φ_k is the sum of its dearest units' costs, and k cells hold u units more
  cheaply than k - 1 do, unit by unit; so the gain falls in k, as x does.

So the best k is the last one with ``F(k - 1) - F(k) > price``. It is at most the support of integer
least squares, where the gains end. In real numbers that gain is ``y_k² k / (k - 1)``, y_k being the
smallest count left by ``x - level``; rounding y_k to an integer u makes it some
``(2 u y_k - u²) k / (k - 1)``. Bisection over x finds the last k where this exceeds the price. For
integer x the gain is known exactly, as ``y - x`` is then as even as integers can be. For real x
rounding the other counts moves the gain by some 2 u + 1, so where the estimate is near the price, for the last cell inside or the first one outside, F itself is computed
for k and its neighbours, up and down, until k is a minimum: that is the optimum, as F is convex.
On the support, where every count is at least 1, the estimate is integer least squares of x - 1 to
the total c - k.

*Unequal variances.* Cells are taken in the order of ``(x_i - level v_i)² / v_i``, what each would
cost to give up at the level of plain least squares; the gain of the last cell j in a set of total
variance V is ``y_j² / v_j · V / (V - v_j)``. The support is a set in this order whose last cell
gains more than the penalty and whose next cell would not. It need not be the best support, but
the estimate is exact least squares on it, for integers from 1 on.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimate.marginal_cost import cheapest_units, write_variances
from hedgerow.kernels import kernel


@kernel
def project_penalised(
    noisy: NDArray[np.float64],
    variance: NDArray[np.float64],
    structure: tuple[NDArray[np.int64], NDArray[np.int64]],
    penalty: float,
    families: tuple[int, int],
    result: NDArray[np.int64],
) -> None:
    """Write the families from the first up to the last, exclusive; see `known.Kernel`."""
    family_start, totals = structure
    first, last = families
    widest = 1
    for family in range(first, last):
        widest = max(widest, family_start[family + 1] - family_start[family])
    s = np.empty(widest, dtype=np.float64)
    keys = np.empty(widest, dtype=np.float64)
    scratch = np.empty((8, widest), dtype=np.float64)
    units = np.empty((2, widest), dtype=np.int64)
    for family in range(first, last):
        begin = family_start[family]
        end = family_start[family + 1]
        if end == begin:
            continue
        x = noisy[begin:end]
        y = result[begin:end]
        equal = write_variances(variance, begin, len(x), s)
        price = penalty * (variance[begin] if len(variance) > 1 else variance[0])
        price = price if equal else penalty
        level = cheapest_units(x, s, x, (0.5, totals[family]), keys, y)[0]
        if len(x) == 2:
            _sparsen_two(x, s, price, y)
        elif len(x) > 2 and price > 0.0:
            _sparsen(x, s, level, price, equal, scratch, units, y)


@kernel
def _sparsen_two(
    x: NDArray[np.float64], s: NDArray[np.float64], price: float, y: NDArray[np.int64]
) -> None:
    """From integer least squares of two cells to the penalised optimum, whatever the variances."""
    if y[0] == 0 or y[1] == 0:
        return
    total = y[0] + y[1]
    both = (y[0] - x[0]) ** 2 / s[0] + (y[1] - x[1]) ** 2 / s[1] + price
    first = (total - x[0]) ** 2 / s[0] + x[1] ** 2 / s[1]
    second = x[0] ** 2 / s[0] + (total - x[1]) ** 2 / s[1]
    if min(first, second) <= both:
        y[0] = total if first < second else 0
        y[1] = total - y[0]


@kernel
def _sparsen(
    x: NDArray[np.float64],
    s: NDArray[np.float64],
    level: float,
    price: float,
    equal: bool,
    scratch: NDArray[np.float64],
    units: NDArray[np.int64],
    y: NDArray[np.int64],
) -> None:
    """From integer least squares in y, at this level, to the penalised optimum in y."""
    size = 0
    total = 0
    places = units[0]
    whole = equal
    for i in range(len(x)):
        if y[i] > 0:
            whole &= x[i] == np.floor(x[i])
            places[size] = i
            scratch[0, size] = x[i]
            scratch[1, size] = s[i]
            scratch[2, size] = x[i] if equal else (x[i] + level * s[i]) / np.sqrt(s[i])
            size += 1
            total += y[i]
    if size < 2:
        return
    cells = scratch[:3, :size]
    ranks = scratch[2, :size]
    k, edge = _last_worthwhile(cells, total, price, whole)
    doubtful = equal and not whole and _is_doubtful(cells, total, price, k, edge)
    if k == size and not doubtful:
        return
    best = scratch[3, :size]
    trial = scratch[4, :size]
    cost = _solve(scratch, size, total, price, edge, units[1], best)
    for direction in (1, -1):
        moved = doubtful
        while moved:
            after = _wider(ranks, edge) if direction > 0 else _narrower(ranks, edge)
            tried = np.inf
            if after[1] > 0:
                tried = _solve(scratch, size, total, price, after, units[1], trial)
            # Of two equally good supports the smaller one.
            moved = tried < cost or (direction < 0 and tried == cost and tried < np.inf)
            if moved:
                cost, edge = tried, after
                best[:] = trial
    for i in range(size):
        y[places[i]] = int(best[i])


@kernel
def _gain(x: float, s: float, sums: tuple[float, float], total: int, whole: bool) -> float:
    """What giving up a cell would cost, in a set with these sums of x and s that holds it."""
    rest = sums[1] - s
    if rest <= 0.0:
        return np.inf
    if whole:
        gap = total - sums[0]
        return _evenly(gap + x, rest) + x * x - _evenly(gap, sums[1])
    count = x + (total - sums[0]) / sums[1] * s
    unit = max(np.floor(count + 0.5), 1.0)
    return float((2.0 * unit * count - unit * unit) / s * (sums[1] / rest))


@kernel
def _evenly(gap: float, cells: float) -> float:
    """The sum of squares of as many integers, as equal as can be, with this sum."""
    share = np.floor(gap / cells)
    more = gap - share * cells
    return float(more * (share + 1.0) * (share + 1.0) + (cells - more) * share * share)


@kernel
def _last_worthwhile(
    cells: NDArray[np.float64], total: int, price: float, whole: bool
) -> tuple[int, tuple[float, int]]:
    """How many cells the support has; the rank of its last one, and how many of that rank it has.

    Bisection between ranks for the lowest whose first cell gains more than the price, given all
    higher ones; then bisection between the cells of this rank.
    """
    x, s, ranks = cells[0], cells[1], cells[2]
    low = ranks.min()
    high = ranks.max()
    while low < high:
        middle = low + (high - low) / 2.0
        if middle >= high:
            middle = low
        sum_x = 0.0
        sum_s = 0.0
        last = -1
        above = np.inf
        for i in range(len(x)):
            if ranks[i] > middle:
                sum_x += x[i]
                sum_s += s[i]
                above = min(above, ranks[i])
            elif last < 0 or ranks[i] > ranks[last]:
                last = i
        sums = (sum_x + x[last], sum_s + s[last])
        if _gain(x[last], s[last], sums, total, whole) > price:
            high = ranks[last]
        else:
            low = above
    sum_x = 0.0
    sum_s = 0.0
    over = 0
    ties = 0
    last = 0
    for i in range(len(x)):
        if ranks[i] > high:
            sum_x += x[i]
            sum_s += s[i]
            over += 1
        elif ranks[i] == high:
            ties += 1
            last = i
    fewest = 1
    while fewest < ties:
        tried = fewest + (ties - fewest + 1) // 2
        sums = (sum_x + tried * x[last], sum_s + tried * s[last])
        if _gain(x[last], s[last], sums, total, whole) > price:
            fewest = tried
        else:
            ties = tried - 1
    return over + fewest, (high, fewest)


@kernel
def _is_doubtful(
    cells: NDArray[np.float64], total: int, price: float, k: int, edge: tuple[float, int]
) -> bool:
    """Whether rounding may make the last cell inside or the first one outside cross the price."""
    x = cells[0]
    sum_x = 0.0
    outside = -np.inf
    over = 0
    for i in range(len(x)):
        if cells[2, i] > edge[0]:
            sum_x += x[i]
            over += 1
        elif cells[2, i] < edge[0]:
            outside = max(outside, x[i])
    inside = edge[0]
    sum_x += (k - over) * inside
    if k < len(x):
        ties = 0
        for i in range(len(x)):
            ties += cells[2, i] == edge[0]
        outside = inside if ties > edge[1] else outside
        gain = _gain(outside, 1.0, (sum_x + outside, k + 1.0), total, False)
        count = max(outside + (total - sum_x - outside) / (k + 1.0), 0.0)
        if gain + 2.0 * count + 4.0 > price:
            return True
    gain = _gain(inside, 1.0, (sum_x, float(k)), total, False)
    count = max(inside + (total - sum_x) / k, 0.0)
    return bool(k > 1 and gain - 2.0 * count - 4.0 <= price)


@kernel
def _wider(ranks: NDArray[np.float64], edge: tuple[float, int]) -> tuple[float, int]:
    """The edge of the support with the next cell; no ties if there is none."""
    ties = 0
    below = -np.inf
    for rank in ranks:
        ties += rank == edge[0]
        below = max(below, rank if rank < edge[0] else -np.inf)
    if ties > edge[1]:
        return edge[0], edge[1] + 1
    return below, 1 if below > -np.inf else 0


@kernel
def _narrower(ranks: NDArray[np.float64], edge: tuple[float, int]) -> tuple[float, int]:
    """The edge of the support without its last cell; no ties if that is the only one."""
    if edge[1] > 1:
        return edge[0], edge[1] - 1
    above = np.inf
    for rank in ranks:
        above = min(above, rank if rank > edge[0] else np.inf)
    ties = 0
    for rank in ranks:
        ties += rank == above
    return above, ties


@kernel
def _solve(
    scratch: NDArray[np.float64],
    size: int,
    total: int,
    price: float,
    edge: tuple[float, int],
    units: NDArray[np.int64],
    found: NDArray[np.float64],
) -> float:
    """Write integer least squares on the support with this edge, 0 elsewhere; the objective."""
    ranks = scratch[2]
    skipped = -edge[1]
    for i in range(size):
        skipped += ranks[i] == edge[0]
    k = 0
    for i in range(size):
        inside = ranks[i] > edge[0]
        if ranks[i] == edge[0]:
            inside = skipped <= 0
            skipped -= 1
        found[i] = 1.0 if inside else 0.0
        if inside:
            scratch[5, k] = scratch[0, i] - 1.0
            scratch[6, k] = scratch[1, i]
            k += 1
    if k > total:
        return np.inf
    x = scratch[5, :k]
    cheapest_units(x, scratch[6, :k], x, (0.5, total - k), scratch[7, :k], units[:k])
    cost = price * k
    k = 0
    for i in range(size):
        if found[i] > 0.0:
            found[i] += units[k]
            k += 1
        change = found[i] - scratch[0, i]
        cost += change * change / scratch[1, i]
    return cost
