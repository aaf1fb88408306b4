"""The counts of the root's groups: whole, within bounds, and of a public total if there is one.

    minimise (x - z)ᵀ P (x - z)  over low <= x <= high with Σ x = total.

Moves go from one group to another, the pair whose slopes differ most first (sequential minimal
optimisation: Platt 1998). Fractions first, then whole counts by units, until no move is better: a
local optimum over whole counts. Where the total is not public, one more group without a bound and
without a cost takes what the others leave.
"""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.families.units import family_hash
from hedgerow.estimate.spine.nested.bounded import fill_between, share_between
from hedgerow.kernels import kernel

MOVES = 100_000
"""Moves at most, of fractions and again of units."""

NEAR = 1e-6
"""Records: the best move of fractions is smaller in the end."""

WIDE = 1 << 60
"""Records: the bounds of a group without bounds."""


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
        up, down = -1, -1
        for i in range(len(x)):
            if x[i] < high[i] and (up < 0 or g[i] < g[up]):
                up = i
            if x[i] > low[i] and (down < 0 or g[i] > g[down]):
                down = i
        if min(up, down) < 0 or g[down] <= g[up]:
            break
        step = (g[down] - g[up]) / (p[up, up] + p[down, down] - 2.0 * p[up, down])
        if step <= NEAR:
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
                    cost = (g[i] - g[j]) / (p[i, i] + p[j, j] - 2.0 * p[i, j]) + 0.5
                    if cost < best:
                        up, down, best = i, j, cost
        if up < 0:
            break
        y[up] += 1
        y[down] -= 1
        g += p[:, up] - p[:, down]
