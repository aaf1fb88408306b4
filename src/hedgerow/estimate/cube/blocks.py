"""The blocks of whole counts between settled sums: one below each pair of parents.

Below a *parent* row stand its *members*, rows that it is the sum of; below a node of the parent's
group stand the node's cells. The members' cells below one node are a block: how much each member
has there is settled, and so is each cell of the parent. A cuboid of two axes has one group, the
second axis, and no cell missing; a census has groups of its own, and a member has those cells that
its group has; survivors have a group for each block.
"""

from functools import partial

import numpy as np

from hedgerow.arrays import (
    Bool,
    Float64,
    FloatPair,
    Int32,
    Int64,
    IntPair,
    IntTriple,
    int32,
    int64_zeros,
    run_numbers,
    run_starts,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.kernels import kernel, over_families, run_ends, run_range, run_size
from hedgerow.limits import LARGEST_REAL_COUNT

LIMIT = float(LARGEST_REAL_COUNT)
"""Estimates beyond it count as it, as in families
(`hedgerow.estimate.families.real_projection`)."""

AT_ONCE = 64
"""Into how many parts blocks fall at least that are settled side by side, if there are as many."""

TreeLevel = tuple[Int64, Int64, Int64, Float64]
"""Where the nodes of each group begin, and their children at the next level; where the children of
each node begin; and the variances v of these."""

Settled = IntPair
"""Where the nodes of each row begin in a flat table, and the counts."""


@frozen(eq=False)
class Blocks:
    """The blocks below some parents, and where their cells stand in flat tables.

    Attributes:
        parents: the group of each parent, where its members begin, and these rows.
        tree: a level of the groups' trees and the next one.
        u: float64 (rows): a cell's variance is u of its row times v of its node.
        begins: int64: where each member begins in a table of the members at this level, each parent
            in one of the parents at the next level, each member in one of the members there.
    """

    parents: tuple[Int32, Int64, Int64]
    tree: TreeLevel
    u: Float64
    begins: IntTriple

    @classmethod
    def of_cuboid(cls, weights: FloatPair, starts: IntPair) -> "Blocks":
        """Return the blocks of a cuboid of two axes, or of a strip of row families.

        Args:
            weights: float64 (rows) and float64 (columns): a cell's variance is their product.
            starts: int64 (row parents + 1) and int64 (column parents + 1): where children begin.
        """
        rows, columns = map(len, weights)
        above = [len(start) - 1 for start in starts]
        # Where parents along the first axis are few, columns fall into parts, each its own group.
        parts = max(1, min(above[1], AT_ONCE // above[0]))
        start = np.arange(parts + 1) * above[1] // parts
        part = np.arange(parts)
        cell = starts[1][start]

        def begins(many: int, size: int, first: Int64) -> Int64:
            return (np.arange(many)[:, None] * size + first[:-1]).ravel()

        parent = run_numbers(starts[0])[:, None] * parts + part
        members = np.argsort(parent.ravel(), kind="stable")
        member_start = run_starts(np.repeat(np.diff(starts[0]), parts))
        return cls(
            (np.tile(int32(part), above[0]), member_start, members),
            (start, cell, starts[1], np.ascontiguousarray(weights[1])),
            np.repeat(weights[0], parts),
            (begins(rows, above[1], start), begins(above[0], columns, cell),
             begins(rows, columns, cell)),
        )  # fmt: skip

    def settle(self, estimates: Float64, sums: IntPair) -> Int64:
        """Return the whole counts of the members at the next level, in the estimates' shape.

        Args:
            estimates: float64, of the same cells, records.
            sums: int64, of the members at this level and of the parents at the next one, records.

        Raises:
            EstimateError: estimates that are not finite, or sums that contradict each other.
        """
        if not np.isfinite(estimates).all():
            raise EstimateError(
                "a cuboid's estimates must be finite; leave out what is not measured"
            )
        rows, columns = (np.ascontiguousarray(each).ravel() for each in sums)
        counts = int64_zeros(estimates.shape)
        group, member_start, _ = self.parents
        start_below = self.tree[1]
        contradicted = np.zeros(len(group), dtype=np.bool_)
        task = partial(
            settle_blocks, self.parents, self.tree, (estimates.ravel(), self.u),
            (self.begins[0], rows), (self.begins[1], columns),
            (self.begins[2], counts.reshape(-1)), contradicted,
        )  # fmt: skip
        over_families(task, run_starts(np.diff(member_start) * np.diff(start_below)[group]))
        if contradicted.any():
            raise EstimateError("the margins of a block must have one total: settle them first")
        return counts


@kernel
def settle_blocks(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    parents: tuple[Int32, Int64, Int64],
    tree: TreeLevel,
    rests: FloatPair,
    row_sums: Settled,
    column_sums: Settled,
    counts: Settled,
    contradicted: Bool,
    first: int,
    last: int,
) -> None:
    """Write the counts of a level of groups' trees, for the blocks of a range of parents.

    Args:
        parents: of `Blocks`.
        tree: of `Blocks`.
        rests: the estimates of the next level, float64 (nodes of the members), and u of each row.
        row_sums: the members at this level.
        column_sums: the parents at the next level.
        counts: the members at the next level; zeros before.
        contradicted: bool (parents): whether a parent's sums and its members' contradict.
        first: of the parents.
        last: behind the last one.
    """
    group, member_start, members = parents
    start, start_below, child_start, variance = tree
    # Room for the largest block of the range.
    tall, wide, most = 1, 1, 1
    for p in range(first, last):
        m = run_size(member_start, p)
        for node in range(start[group[p]], start[group[p] + 1]):
            n = run_size(child_start, node)
            tall, wide, most = max(tall, m), max(wide, n), max(most, m * n)
    scratch = scratch_of(tall, wide)
    t = np.empty(most)
    y = np.empty(most, dtype=np.int64)
    u = np.empty(tall)
    v = np.empty(wide)
    r = np.empty((2, tall), dtype=np.int64)
    c = np.empty((2, wide), dtype=np.int64)
    for p in range(first, last):
        g = group[p]
        rows = members[member_start[p] : member_start[p + 1]]
        for node in run_range(start, g):
            # Rows and columns whose sum is 0 hold nothing, and are left out.
            m = _positive_rows(rows, node - start[g], row_sums, (counts[0], rests[1]), r, u)
            cells = run_ends(child_start, node)
            begin = column_sums[0][p] - start_below[g]
            n = _positive_cells(cells, begin, column_sums[1], variance, c, v)
            # No whole counts have both sums; nor would the search for them end.
            agree = r[1, :m].sum() == c[1, :n].sum()
            contradicted[p] |= not agree
            if m == 0 or not agree:
                continue
            target = t[: m * n].reshape(m, n)
            whole = y[: m * n].reshape(m, n)
            c[0, :n] -= start_below[g]
            # The rests, row by row; one column is told by its rows.
            for i in range(m if n > 1 else 0):
                for j in range(n):
                    target[i, j] = min(max(rests[0][r[0, i] + c[0, j]], -LIMIT), LIMIT)
            settle_block(target, (u[:m], v[:n]), (r[1, :m], c[1, :n]), scratch, whole)
            for i in range(m):
                for j in range(n):
                    counts[1][r[0, i] + c[0, j]] = whole[i, j]


@kernel
def _positive_rows(
    rows: Int64,
    place: int,
    sums: Settled,
    given: tuple[Int64, Float64],
    out: Int64,
    u: Float64,
) -> int:
    """Write where the rows of a positive sum begin, their sums and u; return how many they are."""
    many = 0
    for k in range(len(rows)):
        total = sums[1][sums[0][rows[k]] + place]
        # A sum of 0 leaves zeros alone: such a row would only make the block larger.
        if total > 0:
            out[0, many] = given[0][rows[k]]
            out[1, many] = total
            u[many] = given[1][rows[k]]
            many += 1
    return many


@kernel
def _positive_cells(
    cells: tuple[int, int],
    begin: int,
    sums: Int64,
    variance: Float64,
    out: Int64,
    v: Float64,
) -> int:
    """Write the cells of a positive sum, their sums and v; return how many they are."""
    many = 0
    for cell in range(cells[0], cells[1]):
        total = sums[begin + cell]
        # A sum of 0 leaves zeros alone, as in `_positive_rows`.
        if total > 0:
            out[0, many] = cell
            out[1, many] = total
            v[many] = variance[cell]
            many += 1
    return many
