"""The counts of groups of a family of nodes: whole, within bounds, of the parent's counts.

The children c of a node have vectors over their groups, z_c from their own subtrees with the
covariances C_c. Given the parent's settled counts X,

    minimise Σ_c (x_c - z_c)ᵀ P_c (x_c - z_c),  P_c = C_c⁻¹,
    over low <= x <= high with Σ_c x_ck = X_k for each group k.

1. *Without bounds* it is the least-squares estimate given X (`Coupled.step`).
2. *With bounds*, where that breaks one: group by group, the others held, until no count moves by
   more than `NEAR`. What one group is asked is one sum within bounds (`fill_between`) of
   ``t = x - (P (x - z))_k / P_kk`` with ``s = 1 / P_kk``. Each constraint is of one group, so this
   descends to the optimum.
3. *Whole*: group by group the same again with whole counts (`share_between`), `WHOLE_SWEEPS` times.
   Sums and bounds are exact whatever floats do.
"""

from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.families.units import family_hash
from hedgerow.estimate.spine.nested.bounded import fill_between, share_between
from hedgerow.kernels import kernel

NEAR = 1e-3
"""Records by which counts may still move when the sweeps end; rounding moves them by more."""

SWEEPS = 300
"""Sweeps over the groups at most."""

WHOLE_SWEEPS = 3
"""Sweeps over whole counts at most."""

FARTHEST = 2.0**42
"""Records: what t is cut off at, so that whole numbers stay exact."""

Metric: TypeAlias = tuple[Int64, Int64, Int64, Float64]
"""Of each row: the first row of its node, the number of rows there, and where its row of P begins;
and the entries of all P."""

Members: TypeAlias = tuple[Int64, Int64]
"""Where the rows of each parent's row begin, and the rows."""

BoundedRows: TypeAlias = tuple[Float64, Int64, Int64]
"""Of each row: z, and its least and largest count, records."""


@kernel
def settle_families(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    rows: BoundedRows,
    metric: Metric,
    members: Members,
    parents: tuple[Int64, Int64],
    x: Float64,
    y: Int64,
    first: int,
    last: int,
) -> None:
    """Write the counts of the rows of the families of a range of parent nodes.

    Args:
        rows: z, low and high of the children's rows.
        metric: of the children's rows.
        members: the children's rows by parent row.
        parents: where the rows of each parent node begin, int64 (nodes + 1), and X of each row.
        x: float64 (rows): the estimates given X; overwritten.
        y: int64 (rows), records.
        first: of the parent nodes.
        last: behind the last one.
    """
    start, totals = parents
    longest = 0
    for p in range(start[first], start[last]):
        longest = max(longest, members[0][p + 1] - members[0][p])
    scratch = np.empty((3, longest)), np.empty((3, longest), dtype=np.int64)
    for n in range(first, last):
        family = start[n], start[n + 1]
        if _clip(rows, members, totals, family, x) > NEAR:
            for _ in range(SWEEPS):
                moved = 0.0
                for p in range(family[0], family[1]):
                    moved = max(moved, _fill(rows, metric, members, totals[p], p, scratch, x))
                if moved <= NEAR:
                    break
        for sweep in range(WHOLE_SWEEPS):
            moved = 0.0
            for p in range(family[0], family[1]):
                moved = max(moved, _share(rows, metric, members, totals[p], p, scratch, x, y))
            if sweep > 0 and moved == 0.0:
                break


@kernel
def _clip(
    rows: BoundedRows, members: Members, totals: Int64, family: tuple[int, int], x: Float64
) -> float:
    """Move the estimates of a family into their bounds; return by how much the farthest moves."""
    farthest = 0.0
    for p in range(family[0], family[1]):
        for m in range(members[0][p], members[0][p + 1]):
            row = members[1][m]
            high = min(rows[2][row], totals[p])
            value = min(max(x[row], float(rows[1][row])), float(high))
            farthest = max(farthest, abs(value - x[row]))
            x[row] = value
    return farthest


@kernel
def _write_problem(
    rows: BoundedRows,
    metric: Metric,
    members: Members,
    total: int,
    p: int,
    scratch: tuple[Float64, Int64],
    x: Float64,
) -> int:
    """Write t, s, low and high of the rows of a parent's row; return how many they are."""
    z, low, high = rows
    first, size, start, entries = metric
    floats, ints = scratch
    n = 0
    for m in range(members[0][p], members[0][p + 1]):
        row = members[1][m]
        own, pull = entries[start[row] + row - first[row]], 0.0
        for j in range(size[row]):
            other = first[row] + j
            pull += entries[start[row] + j] * (x[other] - z[other])
        floats[0, n], floats[1, n] = x[row] - pull / own, 1.0 / own
        ints[0, n], ints[1, n] = low[row], min(high[row], total)
        n += 1
    return n


@kernel
def _fill(
    rows: BoundedRows,
    metric: Metric,
    members: Members,
    total: int,
    p: int,
    scratch: tuple[Float64, Int64],
    x: Float64,
) -> float:
    """Do step 2 for one group; return by how much the farthest count moves."""
    n = _write_problem(rows, metric, members, total, p, scratch, x)
    floats, ints = scratch
    problem = floats[0, :n], floats[1, :n], ints[0, :n], ints[1, :n]
    fill_between(problem, float(total), floats[2, :n])
    moved = 0.0
    for i in range(n):
        row = members[1][members[0][p] + i]
        moved = max(moved, abs(floats[2, i] - x[row]))
        x[row] = floats[2, i]
    return moved


@kernel
def _share(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    rows: BoundedRows,
    metric: Metric,
    members: Members,
    total: int,
    p: int,
    scratch: tuple[Float64, Int64],
    x: Float64,
    y: Int64,
) -> float:
    """Do step 3 for one group; return by how much the farthest count moves."""
    n = _write_problem(rows, metric, members, total, p, scratch, x)
    floats, ints = scratch
    for i in range(n):
        floats[0, i] = min(max(floats[0, i], -FARTHEST), FARTHEST)
    problem = floats[0, :n], floats[1, :n], ints[0, :n], ints[1, :n]
    level = fill_between(problem, float(total), floats[2, :n])
    hashed = family_hash(floats[0, :n], total)
    share_between(problem, total, level, hashed, ints[2, :n])
    moved = 0.0
    for i in range(n):
        row = members[1][members[0][p] + i]
        moved = max(moved, abs(ints[2, i] - x[row]))
        x[row], y[row] = ints[2, i], ints[2, i]
    return moved
