"""Whole counts of a census along its spine, coarse to fine.

From the root of a part down, level by level of the spine:

1. the counts of groups, family by family of nodes, within public bounds
   (`hedgerow.estimate.spine.nested.groups`);
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
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.estimate.cube.blocks import LIMIT
from hedgerow.estimate.families.units import cheapest_units, family_hash
from hedgerow.estimate.spine.component import Component, invert_blocks
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.nested.groups import settle_families, settle_root
from hedgerow.estimate.spine.support import Part, run_starts, starts_within
from hedgerow.kernels import kernel, over_families

TreeLevel: TypeAlias = tuple[Int64, Int64, Int64, Float64]
"""Where the nodes of each group begin at a level of the trees, and at the next one; where the
children of each node begin; and the variances v of the nodes of the next level."""

Settled: TypeAlias = tuple[Int64, Int64]
"""Where the nodes of each row begin in a flat table, int64 (rows + 1), and the counts."""


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
    here, (rest, whole) = component.support, said
    group = here.group[0]
    metric = np.linalg.inv(component.at_root)
    bounds = here.low[0], here.high[0]
    counts = settle_root((metric + metric.T) / 2, np.clip(whole, -LIMIT, LIMIT), bounds, total)
    rests = trees.sums(group, rest)
    for level in range(trees.depth):
        start, below = trees.row_start(level, group), trees.row_start(level + 1, group)
        found = np.zeros(int(below[-1]), dtype=np.int64)
        settle_root_cells(
            group, trees.level(level), rests[level + 1], (start, counts), (below, found)
        )
        counts = found
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
    (rests, groups), (part, level) = components, where
    here = rests.support
    rows, upper = here.part_rows(part, level), here.part_rows(part, level - 1)
    group, group_above = here.group[level][rows], here.group[level - 1][upper]
    parent = here.parent[level][rows] - upper.start
    counts = np.bincount(parent, minlength=upper.stop - upper.start)
    members = run_starts(counts), np.argsort(parent, kind="stable")
    column_sums = trees.sums(group_above, above)
    counts = _groups(groups, where, said[1], column_sums[0], members)
    each, u = trees.sums(group, said[0]), rests.combined[level][rows]
    for k in range(trees.depth):
        start, below = trees.row_start(k, group), trees.row_start(k + 1, group)
        found = np.zeros(int(below[-1]), dtype=np.int64)
        start_above = trees.row_start(k + 1, group_above)
        task = partial(
            settle_blocks, (group_above, *members), trees.level(k), (each[k + 1], u),
            (start, counts), (start_above, column_sums[k + 1]), (below, found),
        )  # fmt: skip
        over_families(task, start_above)
        counts = found
    return counts


def _groups(
    component: Component,
    where: tuple[Part, int],
    said: Float64,
    totals: Int64,
    members: tuple[Int64, Int64],
) -> Int64:
    """Return the counts of the groups of every node of a level: int64 (rows)."""
    (part, level), here = where, component.support
    rows, nodes = here.part_rows(part, level), here.nodes(part, level)
    z = np.clip(said, -LIMIT, LIMIT)
    x = component.step(part, level, z, totals.astype(np.float64))
    first, size, at, combined = component.metric(level, nodes)
    entries = combined.copy()
    invert_blocks(component.blocks(level, nodes), entries)
    counts = np.zeros(len(z), dtype=np.int64)
    bounded = z, here.low[level][rows], here.high[level][rows]
    parents = starts_within(here.start[level - 1], here.nodes(part, level - 1)), totals
    metric = first, size, at, entries
    task = partial(settle_families, bounded, metric, members, parents, x, counts)
    over_families(task, members[0][parents[0]])
    return counts


@kernel
def settle_blocks(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    parents: tuple[Int32, Int64, Int64],
    tree: TreeLevel,
    rests: tuple[Float64, Float64],
    row_sums: Settled,
    column_sums: Settled,
    found: Settled,
    first: int,
    last: int,
) -> None:
    """Write the counts of a level of the trees, for the families of a range of parent rows.

    Args:
        parents: the group of each parent row, where its children's rows begin, and these rows.
        tree: a level of the groups' trees and the next one.
        rests: e of the next level, float64 (nodes of the children's rows), and u of each row.
        row_sums: the children's rows at this level.
        column_sums: the parent rows at the next level.
        found: the children's rows at the next level; zeros before.
        first: of the parent rows.
        last: behind the last one.
    """
    group, member_start, members = parents
    start, start_below, child_start, variance = tree
    if first == last:
        return
    tall = np.max(np.diff(member_start[first : last + 1]))
    wide = np.max(np.diff(child_start))
    scratch = scratch_of(tall, wide)
    t, y = np.empty(tall * wide), np.empty(tall * wide, dtype=np.int64)
    u, v = np.empty(tall), np.empty(wide)
    r, c = np.empty((2, tall), dtype=np.int64), np.empty((2, wide), dtype=np.int64)
    for p in range(first, last):
        g = group[p]
        rows = members[member_start[p] : member_start[p + 1]]
        for node in range(start[g], start[g + 1]):
            m = _positive_rows(rows, node - start[g], row_sums, (found[0], rests[1]), r, u)
            if m == 0:
                continue
            cells = child_start[node], child_start[node + 1]
            begin = column_sums[0][p] - start_below[g]
            n = _positive_cells(cells, begin, column_sums[1], variance, c, v)
            target, whole = t[: m * n].reshape(m, n), y[: m * n].reshape(m, n)
            c[0, :n] -= start_below[g]
            for i in range(m if n > 1 else 0):
                for j in range(n):
                    target[i, j] = min(max(rests[0][r[0, i] + c[0, j]], -LIMIT), LIMIT)
            settle_block(target, (u[:m], v[:n]), (r[1, :m], c[1, :n]), scratch, whole)
            for i in range(m):
                for j in range(n):
                    found[1][r[0, i] + c[0, j]] = whole[i, j]


@kernel
def _positive_rows(
    rows: Int64,
    place: int,
    sums: Settled,
    given: tuple[Int64, Float64],
    found: NDArray[np.int64],
    u: Float64,
) -> int:
    """Write where the rows of a positive sum begin, their sums and u; return how many they are."""
    many = 0
    for k in range(len(rows)):
        total = sums[1][sums[0][rows[k]] + place]
        if total > 0:
            found[0, many], found[1, many], u[many] = given[0][rows[k]], total, given[1][rows[k]]
            many += 1
    return many


@kernel
def _positive_cells(
    cells: tuple[int, int],
    begin: int,
    sums: Int64,
    variance: Float64,
    found: NDArray[np.int64],
    v: Float64,
) -> int:
    """Write the cells of a positive sum, their sums and v; return how many they are."""
    many = 0
    for cell in range(cells[0], cells[1]):
        total = sums[begin + cell]
        if total > 0:
            found[0, many], found[1, many], v[many] = cell, total, variance[cell]
            many += 1
    return many


@kernel
def settle_root_cells(
    group: Int32, tree: TreeLevel, rest: Float64, sums: Settled, found: Settled
) -> None:
    """Write the counts of a level of the trees of the spine's root.

    Args:
        group: int32 (rows): the root's groups.
        tree: a level of the groups' trees and the next one.
        rest: e of the next level, float64 (nodes of the rows).
        sums: the rows at this level.
        found: the rows at the next level.
    """
    start, start_below, child_start, variance = tree
    widest = np.max(np.diff(child_start))
    t, keys = np.empty(widest), np.empty(widest)
    for row in range(len(group)):
        g = group[row]
        for node in range(start[g], start[g + 1]):
            first, last = child_start[node], child_start[node + 1]
            begin, n = found[0][row] + first - start_below[g], last - first
            for j in range(n):
                t[j] = min(max(rest[begin + j], -LIMIT), LIMIT)
            total = sums[1][sums[0][row] + node - start[g]]
            problem = (0.5, total, family_hash(t[:n], total))
            whole = found[1][begin : begin + n]
            cheapest_units(t[:n], variance[first:last], problem, keys, whole)
