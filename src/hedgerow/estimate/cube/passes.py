"""The passes along one axis of a cube's tables, in place: up and down.

A table is seen as (left, nodes, right): all axes before the one at hand, its nodes, all axes
behind. Formulas are those of `hedgerow.estimate.cube.axis_squares`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.kernels import kernel, over_families


def lines(table: NDArray[Any], axis: int) -> NDArray[Any]:
    """Return a contiguous table as (left, nodes, right), without a copy."""
    left, right = table.shape[:axis], table.shape[axis + 1 :]
    return table.reshape(prod(left), table.shape[axis], prod(right))


def over_lines(
    task: Callable[[tuple[int, int, int, int]], None],
    shape: tuple[int, int, int],
    child_start: Int64,
) -> None:
    """Run ``task((l0, l1, p0, p1))`` over ranges of left and of parents that cover all once.

    Args:
        task: calls a kernel for ``l0 <= left < l1`` and the families ``p0 <= parent < p1``.
        shape: (left, children, right) of the lower table.
        child_start: int64 (parents + 1).
    """
    left, children, right = shape
    parents = len(child_start) - 1
    if left >= parents:
        starts = np.arange(left + 1, dtype=np.int64) * (children * right)
        over_families(lambda a, b: task((a, b, 0, parents)), starts)
    else:
        over_families(lambda a, b: task((0, left, a, b)), child_start * (left * right))


def combine_levels(own: AxisSquares, levels: Sequence[Float64], axis: int) -> None:
    """Pass up an axis, in place: turn noisy counts into what each node's subtree says of it.

    Args:
        own: least squares along the axis.
        levels: for each level of the axis a contiguous float64 table with its nodes along ``axis``.
        axis: which dimension of the tables.
    """
    for level in range(own.depth - 1, -1, -1):
        above, below = lines(levels[level], axis), lines(levels[level + 1], axis)
        weights, start = (own.own_weight(level), own.child_weight(level)), own.shape.child_start
        task = partial(combine_lines, above, below, start[level], weights)
        over_lines(task, below.shape, start[level])


def spread_levels(own: AxisSquares, levels: Sequence[Float64], axis: int) -> None:
    """Pass down an axis, in place: after `combine_levels`, turn all levels into estimates."""
    for level in range(1, own.depth + 1):
        above, below = lines(levels[level - 1], axis), lines(levels[level], axis)
        start = own.shape.child_start[level - 1]
        task = partial(spread_lines, above, below, start, own.share[level])
        over_lines(task, below.shape, start)


@kernel
def combine_lines(
    upper: Float64,
    lower: Float64,
    child_start: Int64,
    weights: tuple[Float64, Float64],
    part: tuple[int, int, int, int],
) -> None:
    """Write ``own · upper + child · Σ lower`` to the upper table, (left, parents, right)."""
    own, child = weights
    right = upper.shape[2]
    for i in range(part[0], part[1]):
        for p in range(part[2], part[3]):
            for r in range(right):
                upper[i, p, r] *= own[p]
            for c in range(child_start[p], child_start[p + 1]):
                for r in range(right):
                    upper[i, p, r] += child[p] * lower[i, c, r]


@kernel
def spread_lines(
    upper: Float64,
    lower: Float64,
    child_start: Int64,
    share: Float64,
    part: tuple[int, int, int, int],
) -> None:
    """Move the children by their shares of the gap to their parent, in the lower table."""
    right = upper.shape[2]
    gap = np.empty(right)
    for i in range(part[0], part[1]):
        for p in range(part[2], part[3]):
            for r in range(right):
                gap[r] = upper[i, p, r]
            for c in range(child_start[p], child_start[p + 1]):
                for r in range(right):
                    gap[r] -= lower[i, c, r]
            for c in range(child_start[p], child_start[p + 1]):
                for r in range(right):
                    lower[i, c, r] += share[c] * gap[r]
