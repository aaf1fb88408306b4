"""The blocks of a cuboid of two axes: one below each pair of parents, independent of each other."""

from functools import partial

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.estimate.families.units import widest_family
from hedgerow.kernels import kernel, over_families
from hedgerow.limits import LARGEST_REAL_COUNT

LIMIT = float(LARGEST_REAL_COUNT)
"""Estimates beyond it count as it, as in families
(`hedgerow.estimate.families.real_projection`)."""


def settle_cuboid(
    upward: Float64,
    weights: tuple[Float64, Float64],
    margins: tuple[Int64, Int64],
    starts: tuple[Int64, Int64],
) -> Int64:
    """Return the whole counts of a cuboid of two axes, or of a strip of row families, by blocks.

    Args:
        upward: float64 (rows, columns), records.
        weights: float64 (rows) and float64 (columns).
        margins: int64 (rows, column parents) and int64 (row parents, columns): sums over the
            children along the second axis and along the first.
        starts: int64 (row parents + 1) and int64 (column parents + 1): where children begin.

    Returns:
        int64 (rows, columns).

    Raises:
        EstimateError: estimates that are not finite, or margins that contradict each other.
    """
    if not np.isfinite(upward).all():
        raise EstimateError("a cuboid's estimates must be finite; leave out what is not measured")
    sums = np.add.reduceat(margins[0], starts[0][:-1]), margins[1]
    if not np.array_equal(sums[0], np.add.reduceat(sums[1], starts[1][:-1], axis=1)):
        raise EstimateError("the margins of a block must have one total: settle them first")
    counts = np.empty(upward.shape, dtype=np.int64)
    task = partial(_settle_blocks, upward, weights, margins, starts, counts)
    rows, columns = starts
    if len(rows) >= len(columns) or len(rows) > 16:
        over_families(lambda a, b: task((a, b, 0, len(columns) - 1)), rows * upward.shape[1])
    else:
        over_families(lambda a, b: task((0, len(rows) - 1, a, b)), columns * upward.shape[0])
    return counts


@kernel
def _settle_blocks(
    z: Float64,
    weights: tuple[Float64, Float64],
    margins: tuple[Int64, Int64],
    starts: tuple[Int64, Int64],
    counts: Int64,
    part: tuple[int, int, int, int],
) -> None:
    """Settle the blocks of a range of row parents and of column parents."""
    row_start, column_start = starts
    tall = widest_family(row_start, (part[0], part[1]))
    wide = widest_family(column_start, (part[2], part[3]))
    scratch = scratch_of(tall, wide)
    t, y = np.empty(tall * wide), np.empty(tall * wide, dtype=np.int64)
    u, v = np.empty(tall), np.empty(wide)
    row_sums, column_sums = np.empty(tall, dtype=np.int64), np.empty(wide, dtype=np.int64)
    rows, columns = np.empty(tall, dtype=np.int64), np.empty(wide, dtype=np.int64)
    for p in range(part[0], part[1]):
        begin, end = row_start[p], row_start[p + 1]
        for q in range(part[2], part[3]):
            first, last = column_start[q], column_start[q + 1]
            counts[begin:end, first:last] = 0
            m = _positive(margins[0][begin:end, q], begin, weights[0], rows, row_sums, u)
            if m == 0:
                continue
            n = _positive(margins[1][p, first:last], first, weights[1], columns, column_sums, v)
            target, whole = t[: m * n].reshape(m, n), y[: m * n].reshape(m, n)
            for i in range(m):
                for j in range(n):
                    target[i, j] = min(max(z[rows[i], columns[j]], -LIMIT), LIMIT)
            sums = row_sums[:m], column_sums[:n]
            settle_block(target, (u[:m], v[:n]), sums, scratch, whole)
            for i in range(m):
                for j in range(n):
                    counts[rows[i], columns[j]] = whole[i, j]


@kernel
def _positive(
    given: Int64, begin: int, weight: Float64, nodes: Int64, sums: Int64, weights: Float64
) -> int:
    """Write the nodes of positive sums, their sums and weights; return how many they are."""
    many = 0
    for i in range(len(given)):
        if given[i] > 0:
            nodes[many], sums[many], weights[many] = begin + i, given[i], weight[begin + i]
            many += 1
    return many
