"""The whole counts nearest to a fit, stage by stage: each keeps the stage before and the parent's.

A *stage* is a partition of the parent's cells that refines the one before it. Its counts, children
× cells of the stage, fall into one block for each cell of the stage before: rows (children) sum to
the whole counts of that stage, columns to the parent's. A block is a transport problem,

    minimise Σ_ij w_j |y_ij − z_ij|,  low ≤ y ≤ high,  Σ_j y_ij = rows_i,  Σ_i y_ij = columns_j,

over whole numbers, solved exactly by shortest augmenting paths from the cell-wise nearest y
(Ahuja, Magnanti & Orlin 1993, Network Flows, sections 9.7 and 14.5). The first stages are blocks
too: what is free there is a row or a column more, of weight 0 or of what is left over.

Source of the chain: Abowd et al. (2022), Harvard Data Science Review, Special Issue 2, Section 6
(controlled rounding to the nearest whole table in L1, in several passes).
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Bool, Float64, Int32, Int64
from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel

Number = TypeVar("Number", np.int64, np.float64)
Block: TypeAlias = tuple[Float64, Int64, Int64, Float64]
"""The target, the least and the largest counts (rows, columns), and the weights of columns."""


def rounded(
    fitted: Float64,
    parent: Int64,
    stages: Sequence[Int32],
    low: Int64,
    high: Int64,
    totals: Int64 | None = None,
) -> Int64:
    """Return the whole counts of one parent's children, by a chain of stages.

    Args:
        fitted: float64 (children, cells): counts that need not be whole, records.
        parent: int64 (cells): the parent's counts, records.
        stages: each int32 (cells): the number of the stage's cell that a cell is in. The first is
            the groups, the last tells all cells apart, and each refines the one before.
        low: int64 (children, groups): the least counts of the groups.
        high: int64 (children, groups): the largest.
        totals: int64 (children): their totals; None where these are to be rounded, too.

    Returns:
        int64 (children, cells): columns sum to the parent's counts, groups keep their bounds. First
        the totals are nearest to the fitted ones, then the groups given the totals, and so on.

    Raises:
        EstimateError: the bounds leave no such counts.
    """
    groups = stages[0]
    wanted, given = _by(groups, fitted, low.shape[1]), _by(groups, parent[None], low.shape[1])[0]
    rows = whole_totals(wanted, given, low, high) if totals is None else totals
    whole = nearest_whole(wanted, low, high, rows, given)
    for coarse, fine in pairwise(stages):
        whole = _refined(fitted, parent, coarse, fine, whole)
    return whole[:, stages[-1]]


def whole_totals(wanted: Float64, given: Int64, low: Int64, high: Int64) -> Int64:
    """Return the children's whole totals nearest to those wanted that bounded groups can have.

    Args:
        wanted: float64 (children, groups).
        given: int64 (groups): the parent's counts.
        low: int64 (children, groups): the least counts.
        high: int64 (children, groups): the largest.
    """
    most = int(given.sum())
    target = np.column_stack((wanted, most - wanted.sum(axis=1)))
    weight = np.append(np.zeros(len(given)), 1.0)
    rest = np.zeros((len(low), 1), dtype=np.int64)
    left = np.append(given, most * (len(low) - 1))
    rows = np.full(len(low), most)
    table = nearest_whole(
        target, np.hstack((low, rest)), np.hstack((high, rest + most)), rows, left, weight
    )
    return most - table[:, -1]


def rounded_root(
    fitted: Float64, total: int, stages: Sequence[Int32], low: Int64, high: Int64
) -> Int64:
    """Return the whole counts of a node without a parent: int64 (cells), of this total.

    They are those of a child beside one that takes what is left of the total in every cell.

    Args:
        fitted: float64 (cells).
        total: records.
        stages: as of `rounded`.
        low: int64 (groups): the least counts of the groups.
        high: int64 (groups): the largest.
    """
    parent = np.full(len(fitted), total)
    most = _by(stages[0], parent[None], len(low))
    both, totals = np.stack((fitted, total - fitted)), np.array([total, most.sum() - total])
    low, high = np.vstack((low, 0 * most)), np.vstack((np.minimum(high, total), most))
    return rounded(both, parent, stages, low, high, totals)[:1].ravel()


def nearest_whole(
    target: Float64,
    low: Int64,
    high: Int64,
    rows: Int64,
    columns: Int64,
    weight: Float64 | None = None,
) -> Int64:
    """Return the whole table with these sums nearest to a target in weighted L1: see the module.

    Args:
        target: float64 (rows, columns).
        low: int64 (rows, columns): the least counts.
        high: int64 (rows, columns): the largest.
        rows: int64: the sums of rows.
        columns: int64: the sums of columns.
        weight: float64 (columns), 1 each unless given.

    Raises:
        EstimateError: no table has these sums within these bounds.
    """
    weight = np.ones(len(columns)) if weight is None else weight
    whole = np.zeros(target.shape, dtype=np.int64)
    low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
    block = (np.ascontiguousarray(target), low, high, weight)
    if not _nearest(block, rows, columns, whole):
        raise EstimateError("bounds and zeros of a family leave no counts that add up")
    return whole


def _by(label: Int32, values: NDArray[Number], cells: int) -> NDArray[Number]:
    """Return the sums of a table's columns by label: (rows, cells)."""
    out = np.zeros((cells, len(values)), dtype=values.dtype)
    np.add.at(out, label, values.T)
    return np.ascontiguousarray(out.T)


def _refined(fitted: Float64, parent: Int64, coarse: Int32, fine: Int32, whole: Int64) -> Int64:
    """Return the next stage's whole counts: int64 (children, fine cells)."""
    within = np.zeros(int(fine.max(initial=-1)) + 1, dtype=np.int32)
    within[fine] = coarse  # the coarse cell of each fine one
    order = np.argsort(within, kind="stable")
    start = np.searchsorted(within[order], np.arange(whole.shape[1] + 1))
    wanted = _by(fine, fitted, len(within))[:, order]
    given = _by(fine, parent[None], len(within))[0][order]
    found = np.zeros(wanted.shape, dtype=np.int64)
    if not _blocks(np.ascontiguousarray(wanted), given, start, whole, found):
        raise EstimateError("counts of a family do not add up to those of its parent")
    out = np.empty_like(found)
    out[:, order] = found
    return out


@kernel
def _blocks(target: Float64, parent: Int64, start: Int64, whole: Int64, out: Int64) -> bool:
    """Write the nearest whole counts of every block of a stage; False where there are none."""
    for b in range(len(start) - 1):
        first, last = start[b], start[b + 1]
        if last - first == 1:
            out[:, first] = whole[:, b]
        elif last > first:
            shape = (len(whole), last - first)
            low, high = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
            for i in range(shape[0]):
                high[i] = whole[i, b]
            wanted = np.ascontiguousarray(target[:, first:last])
            rows = np.ascontiguousarray(whole[:, b])
            block = (wanted, low, high, np.ones(shape[1]))
            if not _nearest(block, rows, parent[first:last], low):
                return False
            out[:, first:last] = low
    return True


@kernel
def _nearest(block: Block, rows: Int64, columns: Int64, out: Int64) -> bool:
    """Write the whole table nearest to a target (see the module); False where there is none.

    Rows are the nodes 0 …, columns those after them. A node with a unit too many sends it to one
    that lacks a unit, over cells that go up (row to column) and down (column to row); each unit
    takes a path of least cost, with potentials that keep all reduced costs at 0 or above.
    """
    target, low, high, _ = block
    n, nodes = len(rows), len(rows) + len(columns)
    # The nearest counts cell by cell, and each node's units too many.
    whole = np.minimum(np.maximum(np.rint(target).astype(np.int64), low), high)
    excess = np.append(rows - whole.sum(axis=1), whole.sum(axis=0) - columns)
    if excess.sum() != 0:
        return False
    potential, far = np.zeros(nodes), np.zeros(nodes)
    before, done = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.bool_)
    for source in range(nodes):
        while excess[source] > 0:
            end = _shortest(source, block, whole, excess, potential, (far, before, done))
            if end < 0:
                return False
            for v in range(nodes):
                if done[v]:
                    potential[v] += far[v] - far[end]
            excess[source] -= 1
            excess[end] += 1
            while end != source:
                u = before[end]
                if u < n:
                    whole[u, end - n] += 1
                else:
                    whole[end, u - n] -= 1
                end = u
    out[:] = whole
    return True


@kernel
def _shortest(
    source: int,
    block: Block,
    whole: Int64,
    excess: Int64,
    potential: Float64,
    search: tuple[Float64, Int64, Bool],
) -> int:
    """Return the nearest node that lacks a unit (Dijkstra over a dense graph), or -1."""
    target, low, high, weight = block
    far, before, done = search
    n, k = target.shape
    far[:] = math.inf
    done[:] = False
    far[source] = 0.0
    while True:
        u, least = -1, math.inf
        for v in range(n + k):
            if not done[v] and far[v] < least:
                u, least = v, far[v]
        if u < 0:
            return -1
        done[u] = True
        if excess[u] < 0:
            return u
        first, last = (n, n + k) if u < n else (0, n)
        for v in range(first, last):
            i, j, up = (u, v - n, 1) if u < n else (v, u - n, -1)
            y = whole[i, j]
            if done[v] or (y >= high[i, j] if up > 0 else y <= low[i, j]):
                continue
            cost = weight[j] * (abs(y + up - target[i, j]) - abs(y - target[i, j]))
            reach = least + max(cost + potential[u] - potential[v], 0.0)
            if reach < far[v]:
                far[v], before[v] = reach, u
