"""The counts within groups: blocks of the nodes of a family that have a group × sibling cells.

Below a row of the parent node (a group) stand the rows of its children that have the group; below a
cell of the group's tree stand its children. Their cells form a block with settled row and column
sums, whose counts are those of a cube (`hedgerow.estimate.cube.block`): no cell of it is missing.
The root has no family: below each of its cells the counts of the children have one sum.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.estimate.cube.blocks import LIMIT
from hedgerow.estimate.families.units import cheapest_units, family_hash
from hedgerow.kernels import kernel

TreeLevel: TypeAlias = tuple[Int64, Int64, Int64, Float64]
"""Where the nodes of each group begin at a level of the trees, and at the next one; where the
children of each node begin; and the variances v of the nodes of the next level."""

Settled: TypeAlias = tuple[Int64, Int64]
"""Where the nodes of each row begin in a flat table, int64 (rows + 1), and the counts."""


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
