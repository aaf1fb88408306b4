"""The counts of groups: whole, within bounds, of their parent's counts or of a public total.

*A family.* The children c of a node have vectors over their groups, z_c from their own subtrees
with the covariances C_c. Given the parent's settled counts X,

    minimise Σ_c (x_c - z_c)ᵀ P_c (x_c - z_c),  P_c = C_c⁻¹,
    over low <= x <= high with Σ_c x_ck = X_k for each group k.

1. *Without bounds* it is the least-squares estimate given X (`Component.step`).
2. *With bounds*, where that breaks one: group by group, the others held, until no count moves by
   more than `NEAR`. What one group is asked is one sum within bounds (`fill_between`) of
   ``t = x - (P (x - z))_k / P_kk`` with ``s = 1 / P_kk``. Each constraint is of one group, so this
   descends to the optimum.
3. *Whole*: group by group the same again with whole counts (`share_between`), `WHOLE_SWEEPS` times.
   Sums and bounds are exact whatever floats do.

*The root* has no sums but that of all groups, where it is public:

    minimise (x - z)ᵀ P (x - z)  over low <= x <= high with Σ x = total.

Moves go from one group to another, the pair whose slopes differ most first (sequential minimal
optimisation: Platt 1998). Fractions first, then whole counts by units, until no move is better: a
local optimum over whole counts. Where the total is not public, one more group without a bound and
without a cost takes what the others leave.
"""

from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.families.units import family_hash
from hedgerow.estimate.spine.matrices import Metric
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

MOVES = 100_000
"""Moves at most, of fractions and again of units."""

NEAR_AT_ROOT = 1e-6
"""Records: the best move of fractions is smaller in the end."""

WIDE = 1 << 60
"""Records: the bounds of a group without bounds."""

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
        # Step 1, cut at the bounds. Only where that moves a count are there sweeps of step 2; then
        # step 3.
        is_cut = _clip(rows, members, totals, family, x) > NEAR
        for is_whole, most, near in ((False, SWEEPS, NEAR), (True, WHOLE_SWEEPS, 0.0)):
            for sweep in range(most if is_whole or is_cut else 0):
                moved = 0.0
                for p in range(family[0], family[1]):
                    one = _settle_group(
                        rows, metric, members, totals[p], p, scratch, x, y, is_whole
                    )
                    moved = max(moved, one)
                if moved <= near and (sweep > 0 or not is_whole):
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
def _settle_group(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    rows: BoundedRows,
    metric: Metric,
    members: Members,
    total: int,
    p: int,
    scratch: tuple[Float64, Int64],
    x: Float64,
    y: Int64,
    is_whole: bool,  # noqa: FBT001 - a kernel
) -> float:
    """Do step 2 for one group, or step 3; return by how much the farthest count moves."""
    (z, low, high), (start, members_of), (floats, ints) = rows, members, scratch
    first, size, begin, entries = metric
    n = start[p + 1] - start[p]
    for i in range(n):  # t, s, low and high of the rows of the parent's row
        row = members_of[start[p] + i]
        own, pull = entries[begin[row] + row - first[row]], 0.0
        for j in range(size[row]):
            other = first[row] + j
            pull += entries[begin[row] + j] * (x[other] - z[other])
        floats[0, i], floats[1, i] = x[row] - pull / own, 1.0 / own
        ints[0, i], ints[1, i] = low[row], min(high[row], total)
    # Whole numbers stay exact up to here.
    if is_whole:
        for i in range(n):
            floats[0, i] = min(max(floats[0, i], -FARTHEST), FARTHEST)
    # The sum within bounds: fractions, from which whole counts begin.
    problem = floats[0, :n], floats[1, :n], ints[0, :n], ints[1, :n]
    level = fill_between(problem, float(total), floats[2, :n])
    if is_whole:
        hashed = family_hash(floats[0, :n], total)
        share_between(problem, total, level, hashed, ints[2, :n])
        floats[2, :n] = ints[2, :n]
    moved = 0.0
    for i in range(n):
        row = members_of[start[p] + i]
        moved = max(moved, abs(floats[2, i] - x[row]))
        x[row] = floats[2, i]
        if is_whole:
            y[row] = ints[2, i]
    return moved


def settle_root(p: Float64, z: Float64, bounds: tuple[Int64, Int64], total: int | None) -> Int64:
    """Return the counts of the root's groups: int64 (groups), records.

    Args:
        p: float64 (groups, groups): P, positive definite.
        z: float64 (groups), records, within ±2^42.
        bounds: low and high, int64 (groups).
        total: the public number of records; None where it is not public.

    Raises:
        EstimateError: a total outside what the bounds allow.
    """
    least, most = sum(bounds[0].tolist()), sum(bounds[1].tolist())
    if total is not None and not least <= total <= most:
        raise EstimateError(
            f"the public total is {total}, but public bounds of groups allow {least} to {most}"
        )
    low, high = bounds
    if total is None:
        k = len(z)
        p, z = np.pad(p, (0, 1)), np.append(z, 0.0)
        low, high = np.append(low, -WIDE), np.append(high, WIDE)
        counts = np.floor(_descended(p, z, (low, high), np.clip(z, low, high)) + 0.5)
        y = np.clip(counts, low, high).astype(np.int64)
        _descend_by_units(p, z, (low, high), y)
        return y[:k]
    family = np.clip(z, low, high).astype(np.float64), 1 / np.diag(p), low, np.minimum(high, total)
    x = np.empty(len(z))
    fill_between(family, float(total), x)
    family = _descended(p, z, bounds, x), *family[1:]
    y = np.empty(len(z), dtype=np.int64)
    share_between(family, total, 0.0, family_hash(family[0], total), y)
    _descend_by_units(p, z, bounds, y)
    return y


@kernel
def _descended(p: Float64, z: Float64, bounds: tuple[Int64, Int64], x: Float64) -> Float64:
    """Return x after moves of fractions, until the best one is of less than 1e-6 records."""
    low, high = bounds
    g = p @ (x - z)
    for _ in range(MOVES):
        # The steepest pair: the least slope of those that may rise, the most of what may fall.
        up, down = -1, -1
        for i in range(len(x)):
            if x[i] < high[i] and (up < 0 or g[i] < g[up]):
                up = i
            if x[i] > low[i] and (down < 0 or g[i] > g[down]):
                down = i
        if min(up, down) < 0 or g[down] <= g[up]:
            break
        # The least of the objective along the pair, and no further than bounds allow.
        step = (g[down] - g[up]) / (p[up, up] + p[down, down] - 2.0 * p[up, down])
        if step <= NEAR_AT_ROOT:
            break
        step = min(step, high[up] - x[up], x[down] - low[down])
        x[down] -= step
        x[up] += step
        g += step * (p[:, up] - p[:, down])
    return x


@kernel
def _descend_by_units(p: Float64, z: Float64, bounds: tuple[Int64, Int64], y: Int64) -> None:
    """Move units as long as the best move lowers the objective."""
    low, high = bounds
    g = p @ (y.astype(np.float64) - z)
    for _ in range(MOVES):
        up, down, best = -1, -1, -1e-9
        for i in range(len(y)):
            for j in range(len(y)):
                if i != j and y[i] < high[i] and y[j] > low[j]:
                    # A unit from j to i adds 2 (g_i - g_j) + c, c being the curvature; over 2c.
                    cost = (g[i] - g[j]) / (p[i, i] + p[j, j] - 2.0 * p[i, j]) + 0.5
                    if cost < best:
                        up, down, best = i, j, cost
        if up < 0:
            break
        y[up] += 1
        y[down] -= 1
        g += p[:, up] - p[:, down]
