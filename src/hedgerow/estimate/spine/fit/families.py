"""Whole counts along a spine by the fit, level by level: families, and the root.

`settle_families` fits and rounds every family of a level of a part, on all cores; `settle_root`
does the same for the root, whose cells may have any counts that keep its bounds and, where it is
public, the number of all records: first the sums of its rows, then the cells below them.
"""

from collections.abc import Sequence
from functools import partial
from math import nan, sqrt

import numpy as np

from hedgerow.arrays import (
    Bool,
    Float64,
    FloatPair,
    Int32,
    Int64,
    IntPair,
    float64,
    int64,
    int64_zeros,
    run_starts,
    starts_within,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.residuals import Residuals
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.fit.fit import fit_family
from hedgerow.estimate.spine.fit.rounding import metric_of, round_family, round_root
from hedgerow.estimate.spine.fit.steps import ChildRows, Runs
from hedgerow.estimate.spine.matrices import Blocks
from hedgerow.estimate.spine.support import Part
from hedgerow.kernels import kernel, over_families, run_ends, run_size
from hedgerow.limits import LARGEST_REAL_COUNT

LIMIT = float(LARGEST_REAL_COUNT)
"""Estimates beyond it count as it."""
TOLERANCE = 0.02
"""Records: how near the fit comes before it is rounded; a tenth of it changes no mean error."""
SUM_TOLERANCE = 0.002
"""Records: the same of sums that cells are fitted below."""
MOST_ROUNDS = 3000
"""Rounds of a fit, at most; hundreds are usual."""

Cells = tuple[Int64, Runs, Int32, Float64]
"""The extents, runs and sums' places of `Residuals`; and ``near`` of `weights_of`."""
Rows = tuple[Int64, Int64, Int64, Int64, Int64, Int32]
"""Where the children of each node begin, the rows of each child and of each node; a row's parent;
where the covariance of each child begins; all from 0. And the group of each row of a node."""


def settle_families(
    residuals: Residuals,
    components: Sequence[Component],
    near: Float64,
    part: Part,
    level: int,
    said: Float64,
    above: Int64,
) -> Int64:
    """Return the whole counts of a level of a part: int64 (rows, W).

    Args:
        residuals: of the attributes beside the groups.
        components: for each residual least squares along the spine.
        near: of `Cells`.
        part: a part of the spine.
        level: one of its levels, below the spine's root.
        said: float64 (rows, W): what each node's subtree says, in coordinates.
        above: int64 (rows of the level above, W): the counts of the parents.
    """
    support = components[0].support
    over = support.nodes(part, level - 1)
    nodes = support.nodes(part, level)
    rows = support.rows(level, nodes)
    upper = support.rows(level - 1, over)
    start = starts_within(support.start[level], nodes)
    matrices = run_starts(np.diff(start) ** 2) * len(components)
    layout = (
        starts_within(support.spine.child_start[level - 1], over), start,
        starts_within(support.start[level - 1], over), support.parent[level][rows] - upper.start,
        matrices, support.group[level - 1][upper],
    )  # fmt: skip
    bounds = support.low[level][rows], support.high[level][rows]
    covariance = _covariances(components, level, nodes, matrices)
    out, said = int64_zeros(said.shape), np.clip(said, -LIMIT, LIMIT)
    tables = said, covariance, np.ascontiguousarray(above), out
    stop = TOLERANCE, MOST_ROUNDS
    cells = residuals.extents, residuals.runs, residuals.sum_place, near
    task = partial(_settle_range, cells, layout, bounds, tables, stop)
    over_families(task, layout[1][layout[0]] * residuals.width)
    return out


def settle_root(
    residuals: Residuals,
    components: Sequence[Component],
    near: Float64,
    allowed: Bool,
    said: Float64,
    total: int | None,
) -> Int64:
    """Return the whole counts of the root: int64 (rows, W).

    Args:
        residuals: of the attributes beside the groups.
        components: for each residual least squares along the spine.
        near: of `Cells`.
        allowed: bool (groups, W): where counts may be above 0.
        said: float64 (rows, W): what its subtree says, in coordinates.
        total: the number of all records, where it is public.

    Raises:
        EstimateError: a total outside the root's bounds.
    """
    support = components[0].support
    low = support.low[0]
    high = support.high[0]
    least, most = sum(low.tolist()), sum(high.tolist())  # of many unbounded groups beyond 2^63
    if total is not None and not least <= total <= most:
        raise EstimateError(
            f"the public number of records, {total}, is outside the public bounds of its groups, "
            f"which sum to {least} at least and {most} at most"
        )
    high = np.maximum(low, np.minimum(high, LARGEST_REAL_COUNT))
    extents = residuals.extents
    runs = residuals.runs
    matrices = np.array([0, len(components) * len(low) ** 2])
    covariance = _covariances(components, 0, range(1), matrices)
    free = int64(np.ascontiguousarray(allowed[support.group[0]]))
    rows = np.array([0, len(low)]), np.arange(len(low))
    said = np.clip(said, -LIMIT, LIMIT)
    fit = np.zeros_like(said)
    out = int64_zeros(said.shape)
    total_bound = False, nan if total is None else float(total)
    sums = _root_sums(rows, (said, covariance), (low, high, total_bound))
    bounds = float64(free), sums, sums, total_bound
    fit_family((extents, runs), rows, (said, covariance), bounds, (TOLERANCE, MOST_ROUNDS), fit)
    place = residuals.sum_place
    own = near, support.group[0]
    metric = metric_of(own, rows, (said, covariance), fit, place[-1, -1] + 1)
    wanted = -1 if total is None else total
    round_root((place, *metric), (free, low, high), wanted, fit, out)
    return out


def _root_sums(
    rows: ChildRows,
    given: FloatPair,
    limits: tuple[Int64, Int64, tuple[bool, float]],
) -> Float64:
    """Return the sums of the root's rows that fit best before any cell does: float64 (rows).

    Of a cell that holds nobody half of all estimates are below 0, where no count can be. Of
    thousands of cells this adds up, and what it adds to the sums of some rows it takes from others:
    the best fit of all cells at once moves sums by many of their standard errors. Sums are far
    from 0. They are the same fit with one cell a row, and the cells are fitted below them. Deeper
    down sums are those of the parent, and there cells tell more of them than they move.
    """
    said, covariance = given
    low, high, total_bound = limits
    width = said.shape[1]
    row_sums = np.zeros((len(said), 1))
    one = int64_zeros(0), (np.array([0, 1]), np.zeros(1, dtype=np.int32))
    sums = np.ascontiguousarray(said[:, :1]) * sqrt(width), covariance[: len(low) ** 2] * width
    bounds = np.ones_like(row_sums), float64(low), float64(high), total_bound
    fit_family(one, rows, sums, bounds, (SUM_TOLERANCE, MOST_ROUNDS), row_sums)
    # To the last digit, as cells keep both these sums and the total; a fit of absurd estimates may
    # end at 0.
    if total_bound[1] > 0 and row_sums.any():
        row_sums *= total_bound[1] / row_sums.sum()
    return row_sums.ravel()


def _covariances(
    components: Sequence[Component], level: int, nodes: range, begin: Int64
) -> Float64:
    """Return C of some nodes: for each float64 (residuals, rows, rows), one behind the other."""
    start = starts_within(components[0].support.start[level], nodes)
    matrices = np.zeros(begin[-1])
    for residual, component in enumerate(components):
        blocks = component.blocks(level, nodes)
        _gather((start, begin), blocks, component.combined[level], residual, matrices)
    return matrices


@kernel
def _gather(nodes: IntPair, blocks: Blocks, matrices: Float64, residual: int, out: Float64) -> None:
    """Copy the blocks of each node to their places in its matrix."""
    start, begin = nodes
    rows, at = blocks
    node = 0
    for b in range(len(at) - 1):
        k = run_size(rows, b)
        first = rows[b] - rows[0]
        # Blocks ascend, so the node of each is looked for from the last one on.
        while first + k > start[node + 1]:
            node += 1
        many = run_size(start, node)
        place = first - start[node]
        for i in range(k):
            line = begin[node] + (residual * many + place + i) * many + place
            for j in range(k):
                out[line + j] = matrices[at[b] + i * k + j]


@kernel
def _settle_range(
    cells: Cells,
    rows: Rows,
    limits: IntPair,
    tables: tuple[Float64, Float64, Int64, Int64],
    stop: tuple[float, int],
    first: int,
    last: int,
) -> None:
    """Fit and round a range of families."""
    extents, runs, place, near = cells
    child_start, row_start, upper_start, parent, matrices, group = rows
    said, covariance, above, out = tables
    for f in range(first, last):
        a, b = run_ends(child_start, f)
        if upper_start[f] == upper_start[f + 1]:
            continue  # nobody may be there
        r = row_start[a]
        s = row_start[b]
        counts = above[upper_start[f] : upper_start[f + 1]]
        if s - r == len(counts):  # every group has one child that has it
            for row in range(r, s):
                out[row] = counts[parent[row] - upper_start[f]]
            continue
        # The family: rows of its children, the row above each, and C of each child.
        low = limits[0][r:s]
        high = limits[1][r:s]
        own = row_start[a : b + 1] - r, parent[r:s] - upper_start[f]
        matrix = covariance[matrices[a] : matrices[b]]
        fit = np.zeros((s - r, said.shape[1]))
        bounds = (
            counts.astype(np.float64), low.astype(np.float64), high.astype(np.float64),
            (True, 0.0),
        )  # fmt: skip
        fit_family((extents, runs), own, (said[r:s], matrix), bounds, stop, fit)
        groups = group[upper_start[f] : upper_start[f + 1]]
        metric = metric_of((near, groups), own, (said[r:s], matrix), fit, place[-1, -1] + 1)
        round_family((place, *metric), own, (counts, low, high), fit, out[r:s])
