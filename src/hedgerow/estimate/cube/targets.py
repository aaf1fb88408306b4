"""Cuboids that refine three axes or more: two axes' sums exact, the others as near as may be.

Two margins that agree always admit a table; three need not, not even a fractional one. So of the
refined axes the first two, p and q, keep their settled sums exactly: below each cell of all other
axes the blocks are those of two axes (`hedgerow.estimate.cube.block`). By induction each margin of
such a block was settled with the other one's axis exact, so the two have one total. The sums along
the remaining axes are targets:

1. The fractional table is filled up to the sums along every refined axis in turn, again and again
   (each a water-filling in the metric of the variances), until all are near or `TURNS` are done.
2. It is made whole slab by slab, a slab being the cells of p and q at one node of each other axis.
   Along the first target axis the children of a parent are taken in order, and what rounding left
   out of a cell in one slab is carried to the next: sums over the children stay near the target's.

So the released sums of p, of q and of p × q are the settled ones, at every level of the other axes;
a settled sum that is a target may differ from that of the released leaves.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.cube.axis_squares import lines, over_lines
from hedgerow.estimate.cube.block import EXACT, NEAR
from hedgerow.estimate.cube.blocks import LIMIT, Blocks
from hedgerow.estimate.families.units import fill
from hedgerow.kernels import kernel, run_ends

TURNS = 30
"""Turns of all axes at most: sums that contradict each other are never reached."""


def settle_with_targets(
    upward: Float64,
    weights: Sequence[Float64],
    margins: Mapping[int, Int64],
    starts: Mapping[int, Int64],
) -> Int64:
    """Return the whole counts of a cuboid that refines three axes or more.

    Args:
        upward: float64 (cells along each axis), records.
        weights: for each axis float64 (nodes): a cell's variance is their product.
        margins: for each refined axis the settled counts of the cuboid one level coarser along it.
        starts: for each refined axis int64 (parents + 1): where children begin.

    Returns:
        int64 (cells along each axis), records; the sums along the first two refined axes are exact.
    """
    filled = _filled(upward, weights, margins, starts)
    first, second, carried, *_ = sorted(starts)
    others = (axis for axis in range(upward.ndim) if axis not in {first, second, carried})
    order = [*others, carried, first, second]
    turned = np.ascontiguousarray(filled.transpose(order))
    sums = margins[second].transpose(order), margins[first].transpose(order)
    pair = (weights[first], weights[second])
    below = (starts[first], starts[second])
    blocks = Blocks.of_cuboid(pair, below)
    eldest = frozenset(starts[carried][:-1].tolist())
    counts = np.empty(turned.shape, dtype=np.int64)
    left_out = np.zeros(turned.shape[-2:])
    for place in np.ndindex(turned.shape[:-2]):
        if place[-1] in eldest:
            left_out[:] = 0.0
        real = turned[place]
        counts[place] = blocks.settle(real + left_out, (sums[0][place], sums[1][place]))
        left_out += np.maximum(real, 0) - counts[place]
    return np.ascontiguousarray(counts.transpose(np.argsort(order)))


def _filled(
    upward: Float64,
    weights: Sequence[Float64],
    margins: Mapping[int, Int64],
    starts: Mapping[int, Int64],
) -> Float64:
    """Return z with the multipliers of all sums in it (step 1); its positive part is the table."""
    t = np.clip(upward, -LIMIT, LIMIT)
    for _ in range(TURNS):
        worst = 0.0
        for axis in sorted(starts, reverse=True):  # the exact ones last
            start = starts[axis]
            far = np.zeros(len(starts[axis]) - 1)
            table = lines(t, axis)
            wanted = lines(np.ascontiguousarray(margins[axis]), axis)
            task = partial(_fill_lines, table, weights[axis], wanted, start, far)
            over_lines(task, table.shape, start)
            worst = max(worst, float(far.max()))
        if worst <= NEAR:
            break
    return t


@kernel
def _fill_lines(
    t: Float64,
    w: Float64,
    wanted: Int64,
    start: Int64,
    far: Float64,
    part: tuple[int, int, int, int],
) -> None:
    """Fill each family along the middle axis up to its sum, in place; write how far off it was."""
    for i in range(part[0], part[1]):
        for p in range(part[2], part[3]):
            first, last = run_ends(start, p)
            for r in range(t.shape[2]):
                total = float(wanted[i, p, r])
                filled = 0.0
                for c in range(first, last):
                    filled += max(t[i, c, r], 0.0)
                far[p] = max(far[p], abs(filled - total))
                # t + w λ, the positive part of which has the sum: a multiplier a family.
                here = t[i, first:last, r]
                weights = w[first:last]
                level = fill(here, (0.0, weights), weights, total, EXACT * total, 0.0)
                for c in range(last - first):
                    here[c] += weights[c] * level
