"""Whole counts of a census along its spine, coarse to fine.

From the root of a part down, level by level of the spine:

1. the counts of groups, family by family of nodes, within public bounds: the fit of marginals
   (`hedgerow.estimate.spine.fit.families`) where each group has one cell;
2. from the groups down their attribute trees, level by level, blocks of the nodes of a family that
   have the group × sibling cells. Below a row of the parent node (a group) stand the rows of its
   children that have the group; below a cell of the group's tree stand its children. Their cells
   form a block with settled row and column sums, whose counts are those of a cube
   (`hedgerow.estimate.cube.block`): no cell of it is missing. The root has no family: below each of
   its cells the counts of the children have one sum.

What is settled above, along the spine and along the attribute, is kept exactly. Given both sums of
a block, what a subtree says of it and the estimate from everything have the same nearest counts:
they differ by terms that the multipliers of the sums absorb. So the upward pass is all that is
needed.
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import Float64, Int64, run_starts, runs
from hedgerow.estimate.cube.blocks import Blocks
from hedgerow.estimate.cube.residuals import Residuals
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.fit.families import settle_families, settle_root
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.support import Part

ONE_CELL = Residuals((), ())
"""Of the groups alone: nothing stands beside them."""
OWN = np.zeros((0, 0))
"""Whole counts are nearest to the fit in its own metric."""


def settle_top(
    component: Component, trees: GroupTrees, said: Sequence[Float64], total: int | None
) -> Int64:
    """Return the counts of the spine's root: int64, detail layout, records.

    Args:
        component: the vectors of groups.
        trees: those below groups.
        said: what is said of the root: of its rests float64, detail layout, and of its rows.
        total: the public number of records, if it is public.

    Raises:
        EstimateError: a total outside public bounds.
    """
    here = component.support
    rest, whole = said
    group = here.group[0]
    any_count = np.ones((here.groups, 1), dtype=np.bool_)
    counts = settle_root(ONE_CELL, [component], OWN, any_count, whole[:, None], total).ravel()
    rests = trees.sums(group, rest)
    for level in range(trees.depth):
        start, _, child_start, variance = trees.level(level)
        nodes = runs(start[group], trees.widths(level)[group])
        first = child_start[nodes]
        many = np.diff(child_start)[nodes]
        given = rests[level + 1], run_starts(many), counts, variance[runs(first, many)]
        counts = Euclidean().project(*given)
    return counts


def settle_below(
    components: tuple[Component, ...],
    trees: GroupTrees,
    where: tuple[Part, int],
    said: Sequence[Float64],
    above: Int64,
) -> Int64:
    """Return the counts of a level of a part: int64, detail layout, records.

    Args:
        components: the rests, and the vectors of groups.
        trees: those below groups.
        where: a part of the spine, and a level of it below the spine's root.
        said: what is said of the level: of its rests float64, detail layout, and of its rows.
        above: the counts of the level above, detail layout.
    """
    rests, groups = components
    part, level = where
    here = rests.support
    rows = here.part_rows(part, level)
    upper = here.part_rows(part, level - 1)
    group = here.group[level][rows]
    group_above = here.group[level - 1][upper]
    parent = here.parent[level][rows] - upper.start
    counts = np.bincount(parent, minlength=upper.stop - upper.start)
    members = run_starts(counts), np.argsort(parent, kind="stable")
    column_sums = trees.sums(group_above, above)
    model = (ONE_CELL, [groups], OWN)
    totals = column_sums[0][:, None]
    counts = settle_families(*model, part, level, said[1][:, None], totals).ravel()
    each = trees.sums(group, said[0])
    u = rests.combined[level][rows]
    for k in range(trees.depth):
        start = trees.row_start(k, group)
        below = trees.row_start(k + 1, group)
        start_above = trees.row_start(k + 1, group_above)
        blocks = Blocks((group_above, *members), trees.level(k), u, (start, start_above, below))
        counts = blocks.settle(each[k + 1], (counts, column_sums[k + 1]))
    return counts
