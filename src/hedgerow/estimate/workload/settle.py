"""Whole counts of every element of a workload's lattice, settled from coarse to fine.

Estimates are unbiased, but negative and fractional; to cut them off at 0 and sum them up loses what
the margins know. So elements are settled in the order of refinement, each below the covers that it
keeps (`hedgerow.estimate.workload.lattice`):

- the total is rounded; an element below one cover is a family below each of its cells, projected as
  families of a tree are;
- below two covers, block by block (`hedgerow.estimate.cube.blocks`): the two margins of a block
  keep the sums of the same coarser cell, so they have one total and the block is feasible. Blocks
  are independent of each other, and a margin of 0 leaves its cells out;
- where there are more, two keep their sums, and the others are targets
  (`hedgerow.estimate.cube.targets`).

In the end elements that were targets alone are summed up from the tables. So every element is the
sum of every table that refines it.
"""

from collections.abc import Mapping

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.blocks import settle_cuboid
from hedgerow.estimate.cube.shape import CubeShape, is_within
from hedgerow.estimate.cube.sums import summed
from hedgerow.estimate.cube.targets import settle_with_targets
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.workload.fold import AxisWeights, Fold
from hedgerow.estimate.workload.lattice import Lattice
from hedgerow.limits import LARGEST_REAL_COUNT


def settle(
    shape: CubeShape,
    lattice: Lattice,
    estimates: Mapping[Levels, Float64],
    exact: Mapping[Levels, Int64] | None = None,
    weights: AxisWeights | None = None,
) -> dict[Levels, Int64]:
    """Return whole counts, none negative, each element the sum of every table that refines it.

    Args:
        shape: how the levels nest.
        lattice: what is settled.
        estimates: of each element whose counts are not known, float64 (cells along each axis),
            records: unbiased.
        exact: true counts of cuboids; those of their coarsenings are their sums.
        weights: the factors of the variances of estimates; ones unless given.

    Returns:
        For every element int64 (cells along each axis), records.

    Raises:
        EstimateError: estimates are missing or of another shape; counts are known of a cuboid whose
            sums the lattice does not keep.
    """
    found = settle_in_order(shape, lattice, estimates, exact, weights)
    for element in reversed(lattice.elements):
        if element not in lattice.kept:
            finer = [c for c, covers in lattice.covers.items() if element in covers]
            least = min(finer, key=lambda c: (shape.cells(c), c))
            found[element] = summed(shape, found[least], least, element)
    return found


def settle_in_order(
    shape: CubeShape,
    lattice: Lattice,
    estimates: Mapping[Levels, Float64],
    exact: Mapping[Levels, Int64] | None = None,
    weights: AxisWeights | None = None,
) -> dict[Levels, Int64]:
    """Return the counts as they are settled, targets before they are summed up: see `settle`."""
    found: dict[Levels, Int64] = {}
    for element in lattice.elements:
        known = next((c for c in exact or () if is_within(element, c)), None)
        if known is None:
            table = shape.checked(element, estimates.get(element))
            found[element] = _settled(shape, lattice, element, table, found, weights)
        elif element in lattice.kept:
            found[element] = summed(shape, (exact or {})[known], known, element)
        else:
            raise EstimateError(
                f"true counts of cuboid {element} are known, but tables do not keep its sums"
            )
    return found


def _settled(
    shape: CubeShape,
    lattice: Lattice,
    cuboid: Levels,
    table: Float64,
    coarse: Mapping[Levels, Int64],
    of_axis: AxisWeights | None,
) -> Int64:
    """Return the counts of an element, by how many covers it has."""
    kept, every = lattice.exact[cuboid], lattice.covers[cuboid]
    if not every:
        value = min(max(0, round(float(table.item()))), LARGEST_REAL_COUNT)
        return np.full(table.shape, value, dtype=np.int64)
    targets = tuple(c for c in every if c not in kept) if len(kept) == 2 else ()
    fold = Fold(shape, cuboid, (*kept, *targets))
    upward, weights, starts = fold.fold(table), fold.weights(of_axis), fold.starts
    sums = [fold.fold_cover(i, coarse[cover]) for i, cover in enumerate(fold.covers)]
    if targets:
        margins = dict(enumerate(sums))
        counts = settle_with_targets(upward, weights, margins, dict(enumerate(starts)))
    elif len(sums) == 2:
        pair, below = (weights[0], weights[1]), (starts[0], starts[1])
        counts = settle_cuboid(upward, pair, (sums[1], sums[0]), below)
    else:
        counts = Euclidean().project(upward, starts[0], sums[0], weights[0])
    return fold.unfold(counts)
