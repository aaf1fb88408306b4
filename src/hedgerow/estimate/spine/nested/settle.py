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

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.estimate.cube.blocks import LIMIT
from hedgerow.estimate.families.units import cheapest_units, family_hash
from hedgerow.estimate.spine.block_squares import invert_blocks
from hedgerow.estimate.spine.coupled import Coupled
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.nested.groups import settle_families, settle_root
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Part, Support, run_starts, starts_within
from hedgerow.kernels import kernel, over_families

TreeLevel: TypeAlias = tuple[Int64, Int64, Int64, Float64]
"""Where the nodes of each group begin at a level of the trees, and at the next one; where the
children of each node begin; and the variances v of the nodes of the next level."""

Settled: TypeAlias = tuple[Int64, Int64]
"""Where the nodes of each row begin in a flat table, int64 (rows + 1), and the counts."""


@dataclass(frozen=True, slots=True)
class Descent:
    """The steps down one part.

    Attributes:
        coupled: least squares of the vectors of groups.
        rests: least squares of the rests along the spine.
        trees: those below groups.
        part: a part of the spine.
        whole: what each row's subtree says of its count: for each level float64 (rows).
        rest: what it says of its rests: for each level float64, detail layout.
    """

    coupled: Coupled
    rests: RowSquares
    trees: GroupTrees
    part: Part
    whole: Mapping[int, Float64]
    rest: Mapping[int, Float64]

    def counts(self, above: Int64 | None, total: int | None) -> dict[int, Int64]:
        """Return the whole counts of every level of the part: int64, detail layout, records.

        Args:
            above: the counts of the roots, detail layout; None for the top.
            total: for the top the public number of records, if it is public.

        Raises:
            EstimateError: counts of roots that break their bounds, or a total that does.
        """
        first = max(self.part.root, 0)
        found = {first: self.at_root(total) if self.part.is_top else self.checked(above)}
        for level in range(first + 1, self.part.last + 1):
            found[level] = self.below(level, found[level - 1])
        return {level: found[level] for level in self.part.levels}

    @property
    def support(self) -> Support:
        """Which nodes have which groups."""
        return self.coupled.support

    def at_root(self, total: int | None) -> Int64:
        """Return the counts of the spine's root."""
        trees, here = self.trees, self.support
        group = here.group[0]
        z = np.clip(self.whole[0], -LIMIT, LIMIT)
        metric = np.linalg.inv(
            self.coupled.squares.combined_matrices(0, range(1))[1].reshape(len(group), len(group))
        )
        counts = settle_root((metric + metric.T) / 2, z, (here.low[0], here.high[0]), total)
        rests = trees.sums(group, self.rest[0])
        for level in range(trees.depth):
            start, below = trees.row_start(level, group), trees.row_start(level + 1, group)
            found = np.zeros(int(below[-1]), dtype=np.int64)
            settle_root_cells(
                group, trees.level(level), rests[level + 1], (start, counts), (below, found)
            )
            counts = found
        return counts

    def checked(self, above: Int64 | None) -> Int64:
        """Return the counts of the roots.

        Raises:
            EstimateError: they are missing, negative, or outside public bounds.
        """
        here, root = self.support, self.part.root
        rows, cell = here.part_rows(self.part, root), here.part_cells(self.part, root)
        if above is None or above.shape != (int(cell[-1]),) or above.dtype != np.int64:
            raise EstimateError(f"a part below the top needs the {cell[-1]} counts of its roots")
        totals = np.add.reduceat(above, cell[:-1])
        low, high = here.low[root][rows], here.high[root][rows]
        if (above < 0).any() or (totals < low).any() or (totals > high).any():
            raise EstimateError("the counts of a part's roots must not break public bounds")
        return above

    def below(self, level: int, above: Int64) -> Int64:
        """Return the counts of a level, given those of the level above it."""
        trees, here = self.trees, self.support
        rows, upper = here.part_rows(self.part, level), here.part_rows(self.part, level - 1)
        group, group_above = here.group[level][rows], here.group[level - 1][upper]
        parent = here.parent[level][rows] - upper.start
        counts = np.bincount(parent, minlength=upper.stop - upper.start)
        members = run_starts(counts), np.argsort(parent, kind="stable")
        column_sums = trees.sums(group_above, above)
        counts = self._groups(level, column_sums[0], members)
        said = trees.sums(group, self.rest[level])
        u = self.rests.combined[level][rows]
        for k in range(trees.depth):
            start, below = trees.row_start(k, group), trees.row_start(k + 1, group)
            found = np.zeros(int(below[-1]), dtype=np.int64)
            start_above = trees.row_start(k + 1, group_above)
            task = partial(
                settle_blocks, (group_above, *members), trees.level(k), (said[k + 1], u),
                (start, counts), (start_above, column_sums[k + 1]), (below, found),
            )  # fmt: skip
            over_families(task, start_above)
            counts = found
        return counts

    def _groups(self, level: int, totals: Int64, members: tuple[Int64, Int64]) -> Int64:
        """Return the counts of the groups of every node of a level: int64 (rows)."""
        coupled, here = self.coupled, self.support
        rows = here.part_rows(self.part, level)
        z = np.clip(self.whole[level], -LIMIT, LIMIT)
        x = coupled.step(self.part, level, z[:, None], totals[:, None].astype(np.float64))[:, 0]
        nodes, above = here.nodes(self.part, level), here.nodes(self.part, level - 1)
        row_start = starts_within(here.start[level], nodes)
        start, entries = coupled.squares.combined_matrices(level, nodes)
        entries = entries.copy()
        invert_blocks(row_start, start, entries)
        sizes = np.diff(row_start)
        size, first = np.repeat(sizes, sizes), np.repeat(row_start[:-1], sizes)
        at = np.repeat(start[:-1], sizes) + (np.arange(len(first)) - first) * size
        counts = np.zeros(len(z), dtype=np.int64)
        bounded = z, here.low[level][rows], here.high[level][rows]
        parents = starts_within(here.start[level - 1], above), totals
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
