"""The edge of a support: the rank of its last cell, and how many cells of that rank it holds.

Cells (float64, 3 × cells) are x, s and rank; the mathematics is in
`hedgerow.estimate.families.sparse`. Of cells of equal rank the last ones by index come first. No
array is sorted: bisection between ranks takes one pass over the cells a step.
"""

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.kernels import kernel

Edge = tuple[float, int]
"""The rank of a support's last cell, and how many of that rank it has."""


@kernel
def _gain(x: float, s: float, sums: tuple[float, float], total: int, whole: bool) -> float:  # noqa: FBT001
    """Return what giving up a cell would cost, given the sums of x and s of a set that holds it."""
    rest = sums[1] - s
    # The last cell must hold the total: it cannot be given up, and nothing is divided by 0.
    if rest <= 0.0:
        return np.inf
    if whole:
        # Equal variances and whole noisy counts: integers, whose squares compare exactly.
        gap = total - sums[0]
        return _evenly(gap + x, rest) + x * x - _evenly(gap, sums[1])
    count = x + (total - sums[0]) / sums[1] * s
    unit = max(np.floor(count + 0.5), 1.0)
    return float((2.0 * unit * count - unit * unit) / s * (sums[1] / rest))


@kernel
def _evenly(gap: float, cells: float) -> float:
    """Return the sum of squares of as many integers, as equal as can be, with this sum."""
    # Squares sum to least where integers differ by one at most.
    share = np.floor(gap / cells)
    more = gap - share * cells
    return float(more * (share + 1.0) * (share + 1.0) + (cells - more) * share * share)


@kernel
def last_worthwhile(
    cells: Float64,
    total: int,
    price: float,
    whole: bool,  # noqa: FBT001
) -> tuple[int, Edge]:
    """Return the size of the support, the rank of its last cell, and how many of that rank it has.

    Bisection between ranks for the lowest whose first cell gains more than the price, given all
    higher ones; then bisection between the cells of this rank.
    """
    x = cells[0]
    s = cells[1]
    ranks = cells[2]
    edge = _lowest_worthwhile(cells, total, price, whole)
    # Σ x and Σ s of all cells above the edge, and how many are on it.
    sum_x = 0.0
    sum_s = 0.0
    over = 0
    ties = 0
    last = 0
    for i in range(len(x)):
        if ranks[i] > edge:
            sum_x += x[i]
            sum_s += s[i]
            over += 1
        elif ranks[i] == edge:
            ties += 1
            last = i
    # Between fewest and ties lies how many of these gain more than the price.
    fewest = 1
    while fewest < ties:
        tried = fewest + (ties - fewest + 1) // 2
        sums = (sum_x + tried * x[last], sum_s + tried * s[last])
        if _gain(x[last], s[last], sums, total, whole) > price:
            fewest = tried
        else:
            ties = tried - 1
    return over + fewest, (edge, fewest)


@kernel
def _lowest_worthwhile(
    cells: Float64,
    total: int,
    price: float,
    whole: bool,  # noqa: FBT001 - a kernel has no keyword-only arguments
) -> float:
    """Return the lowest rank whose first cell gains more than the price, given all higher ranks."""
    x = cells[0]
    s = cells[1]
    ranks = cells[2]
    low = ranks.min()
    high = ranks.max()
    while low < high:
        # The answer lies in low .. high; ranks a rounding apart have no middle.
        middle = low + (high - low) / 2.0
        if middle >= high:
            middle = low
        # All above the middle, and the first rank up to it.
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
        # It is worthwhile, and the answer no higher; or it is not, and the answer above it.
        sums = (sum_x + x[last], sum_s + s[last])
        if _gain(x[last], s[last], sums, total, whole) > price:
            high = ranks[last]
        else:
            low = above
    return float(high)


@kernel
def is_doubtful(cells: Float64, total: int, price: float, k: int, edge: Edge) -> bool:
    """Return whether rounding may carry the last cell inside or the first outside past it."""
    x = cells[0]
    # Σ x above the edge, and the largest x outside.
    sum_x = 0.0
    outside = -np.inf
    over = 0
    ties = 0
    for i in range(len(x)):
        if cells[2, i] > edge[0]:
            sum_x += x[i]
            over += 1
        elif cells[2, i] < edge[0]:
            outside = max(outside, x[i])
        else:
            ties += 1
    inside = edge[0]
    sum_x += (k - over) * inside
    # Rounding the others moves a gain by some 2 count + 1: could the next one pay?
    if k < len(x):
        outside = inside if ties > edge[1] else outside
        gain = _gain(outside, 1.0, (sum_x + outside, k + 1.0), total, False)
        count = max(outside + (total - sum_x - outside) / (k + 1.0), 0.0)
        if gain + 2.0 * count + 4.0 > price:
            return True
    # And might the last one not?
    gain = _gain(inside, 1.0, (sum_x, float(k)), total, False)
    count = max(inside + (total - sum_x) / k, 0.0)
    return bool(k > 1 and gain - 2.0 * count - 4.0 <= price)


@kernel
def moved_edge(ranks: Float64, edge: Edge, step: int) -> Edge:
    """Return the edge of the support with the next cell, or without its last one (step 1 or -1).

    There are no ties if there is no other cell.
    """
    ties = 0
    beyond = np.inf  # the next rank in this direction, its sign such that it is the least
    for rank in ranks:
        ties += rank == edge[0]
        if step * (edge[0] - rank) > 0.0:
            beyond = min(beyond, -step * rank)
    if 1 <= edge[1] + step <= ties:
        return edge[0], edge[1] + step
    rank = -step * beyond
    ties = 0
    for other in ranks:
        ties += other == rank
    return rank, min(ties, 1) if step > 0 else ties
