"""The non-negative fit of one parent's children to their own measurements.

With x (children × cells) the counts of the children in the cells where the parent is positive,
Q the measured queries of a child, m its noisy counts and v their variances:

    minimise    Σ_c Σ_q ‖Q_q x_c − m_cq‖² / v_q
    subject to  x ≥ 0,   Σ_c x_c = the parent's counts, cell by cell,
                low ≤ Σ of a child's group ≤ high,   total_low ≤ Σ x_c ≤ total_high.

The first line of constraints is a simplex for each cell, onto which a projection is exact; the
second enters by an augmented Lagrangian. The gradient is accelerated, with restarts, and steps are
scaled cell by cell: Q_qᵀQ_q has blocks of ones, so the diagonal matrix of ``D_p = Σ_q s_qp / v_q``,
with s the number of cells that share a measured count, is above the Hessian, and being the same for
all children it leaves the projection as it is.

Sources: Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm, Harvard
Data Science Review, Special Issue 2 (the problem); Michelot (1986) (the simplex); Beck & Teboulle
(2009) and O'Donoghue & Candès (2015) (acceleration and restart); Rockafellar (1976) (multipliers).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import Bool, Float64, Int32, Int64
from hedgerow.kernels import kernel

UNKNOWN = -1.0
"""In place of a parent's count: there is no parent, so the cell is only not negative."""

Bounds = tuple[Float64, Float64]
"""The least and the largest sums of each child's groups, its total last: (children, groups + 1)."""

UNBOUNDED = 1 << 53
STEPS = 4000
ACCURACY = 2e-3
"""Records: how far a cell may be from the optimum, estimated by the last step and the curvature."""
WITHIN = 1e-3
"""Records: how far a bound of a sum may be missed before counts are whole, which keep it."""
FLATTEST = 1e-3
"""The least curvature that the stopping rule supposes, over that of the steepest direction."""
TURN = 40
"""Steps between two changes of the multipliers, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One parent's children: what is measured of each, and what is known.

    Attributes:
        parent: float64 (cells): the parent's counts, positive; all `UNKNOWN` where there is none.
        group: int32 (cells): the group of a cell.
        low, high: int64 (children, groups): bounds of the groups' counts, records; high 0 where a
            child has no such group.
        column: int32 (queries, cells): which measured count a cell adds to.
        weight: float64 (measured counts): 1 / variance, of a child's; 1 / records².
        measured: float64 (children, measured counts): noisy counts, records.
        total_low, total_high: float64 (children): bounds of the children's totals.
    """

    parent: Float64
    group: Int32
    low: Int64
    high: Int64
    column: Int32
    weight: Float64
    measured: Float64
    total_low: Float64
    total_high: Float64

    def nearest(self) -> Float64:
        """Return the fitted counts: float64 (children, cells), records."""
        fitted = np.zeros((len(self.low), len(self.parent)))
        if fitted.size:
            queries = self.column, self.weight
            closed, bounds = self.high == 0, self._bounds()
            _fit(self.parent, self.group, closed, bounds, queries, self.measured, fitted)
        return fitted

    def _bounds(self) -> Bounds:
        """Return the bounds of the sums of each child's groups and of its total, last.

        Infinite where they say nothing: float64 (children, groups + 1).
        """
        most = np.bincount(self.group, weights=self.parent, minlength=self.low.shape[1])
        if (self.parent < 0).any():
            most = np.full_like(most, UNBOUNDED)
        idle_low, idle_high = self.low == 0, (self.high == 0) | (self.high >= most)
        low = np.where(idle_low, -np.inf, self.low.astype(np.float64))
        high = np.where(idle_high, np.inf, self.high.astype(np.float64))
        return np.column_stack((low, self.total_low)), np.column_stack((high, self.total_high))

    def with_totals(self, noisy: Float64, tolerance: float) -> "Family":
        """Return the family with totals near those that fit the measured totals best.

        What a child's total can be follows from the groups alone, so the cells of a group are one.

        Args:
            noisy: float64 (children): measured totals, records, of equal variances.
            tolerance: how far the totals may be from the fitted ones, records.
        """
        groups = self.low.shape[1]
        sums = np.bincount(self.group, self.parent, groups).astype(np.float64)
        totals = replace(
            self,
            parent=sums,
            group=np.arange(groups, dtype=np.int32),
            column=np.zeros((1, groups), dtype=np.int32),
            weight=np.ones(1),
            measured=np.ascontiguousarray(noisy[:, None]),
        )
        fitted = totals.nearest().sum(axis=1)
        return self.between(fitted - tolerance, fitted + tolerance)

    def between(self, low: Float64, high: Float64) -> "Family":
        """Return the family with bounds of the children's totals: float64 (children), records."""
        return replace(self, total_low=low, total_high=high)


@kernel
def _fit(
    parent: Float64,
    group: Int32,
    closed: Bool,
    bounds: Bounds,
    queries: tuple[Int32, Float64],
    measured: Float64,
    x: Float64,
) -> None:
    """Fit a family: see the module; ``x`` begins at 0 and becomes the fitted counts."""
    children, cells = x.shape
    scale, flat = _curvature(queries)
    penalty = _penalties(group, scale, bounds)
    for p in range(cells):
        scale[p] += penalty[group[p]] * (group == group[p]).sum() + penalty[-1] * cells
    small = ACCURACY * max(flat / scale.max(), FLATTEST)
    multiplier, pull = np.zeros(bounds[0].shape), np.zeros(len(penalty))
    at, old, slope = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape)
    entries = np.zeros(len(queries[1]))
    momentum, since = 1.0, 0
    for _ in range(STEPS):
        for c in range(children):
            _write_slope(at[c], queries, measured[c], entries, slope[c])
            edges = (bounds[0][c], bounds[1][c], multiplier[c])
            _add_pull(at[c], group, penalty, edges, pull, slope[c])
        old[:] = x
        x[:] = at
        largest, uphill = _step(x, old, slope, scale, parent, closed, group)
        since += 1
        if largest <= small or since == TURN:
            missed = _turn(x, group, penalty, bounds, pull, multiplier)
            if largest <= small and missed <= WITHIN:
                return
            since = 0
            uphill |= missed > 0
        faster = 1.0 if uphill else 0.5 + math.sqrt(0.25 + momentum * momentum)
        ahead = 0.0 if uphill else (momentum - 1) / faster
        momentum = faster
        at[:] = x + ahead * (x - old)


@kernel
def _step(
    x: Float64,
    old: Float64,
    slope: Float64,
    scale: Float64,
    parent: Float64,
    closed: Bool,
    group: Int32,
) -> tuple[float, bool]:
    """Step down the slope from ``x``, in place, and project each cell on its simplex.

    Returns:
        The largest move of a cell (records), and whether the way from ``old`` went uphill.
    """
    children, cells = x.shape
    began, room = np.zeros(children), np.zeros(children)
    largest, uphill = 0.0, 0.0
    for p in range(cells):
        for c in range(children):
            began[c] = x[c, p]
            x[c, p] -= slope[c, p] / scale[p]
        _project(x[:, p], parent[p], closed[:, group[p]], room)
        for c in range(children):
            change = x[c, p] - began[c]
            largest = max(largest, abs(change))
            uphill -= change * (x[c, p] - old[c, p]) * scale[p]
    return largest, uphill > 0


@kernel
def _curvature(queries: tuple[Int32, Float64]) -> tuple[Float64, float]:
    """Return the diagonal D above the Hessian (cells), and a bound below it; 1 / records²."""
    column, weight = queries
    cells = column.shape[1]
    steep, alone = np.zeros(cells), np.zeros(cells)
    for q in range(len(column)):
        sharing = np.zeros(len(weight))
        for p in range(cells):
            sharing[column[q, p]] += 1
        for p in range(cells):
            entry = column[q, p]
            steep[p] += weight[entry] * sharing[entry]
            if sharing[entry] == 1:
                alone[p] += weight[entry]
    return steep, alone.min()


@kernel
def _penalties(group: Int32, steep: Float64, bounds: Bounds) -> Float64:
    """Return the penalty of each bounded sum, as steep as the objective is along it; else 0."""
    low, high = bounds
    penalty = np.zeros(low.shape[1])
    for g in range(len(penalty)):
        if (np.isfinite(low[:, g]) | np.isfinite(high[:, g])).any():
            members, total = 0, 0.0
            for p in range(len(group)):
                if group[p] == g or g == len(penalty) - 1:
                    members, total = members + 1, total + steep[p]
            penalty[g] = total / members**2 if members else 0.0
    return penalty


@kernel
def _write_slope(
    x: Float64, queries: tuple[Int32, Float64], measured: Float64, entries: Float64, out: Float64
) -> None:
    """Write the gradient of half a child's objective: Σ_q Q_qᵀ (Q_q x − m_q) / v_q."""
    column, weight = queries
    entries[:] = 0
    out[:] = 0
    for q in range(len(column)):
        for p in range(len(x)):
            entries[column[q, p]] += x[p]
    for j in range(len(entries)):
        entries[j] = weight[j] * (entries[j] - measured[j])
    for q in range(len(column)):
        for p in range(len(x)):
            out[p] += entries[column[q, p]]


Edges = tuple[Float64, Float64, Float64]
"""A child's bounds and multipliers: float64 (groups + 1) each."""


@kernel
def _write_pull(x: Float64, group: Int32, penalty: Float64, edges: Edges, pull: Float64) -> None:
    """Write the gradient of a child's penalties: multiplier + penalty × sum, beyond its bounds."""
    low, high, multiplier = edges
    pull[:] = 0
    for p in range(len(x)):
        pull[group[p]] += x[p]
        pull[-1] += x[p]
    for g in range(len(pull)):
        if penalty[g] > 0:
            aim = pull[g] + multiplier[g] / penalty[g]
            pull[g] = penalty[g] * (aim - min(max(aim, low[g]), high[g]))
        else:
            pull[g] = 0


@kernel
def _add_pull(
    x: Float64, group: Int32, penalty: Float64, edges: Edges, pull: Float64, slope: Float64
) -> None:
    """Add the gradient of a child's penalties."""
    if penalty.any():
        _write_pull(x, group, penalty, edges, pull)
        for p in range(len(x)):
            slope[p] += pull[group[p]] + pull[-1]


@kernel
def _turn(
    x: Float64, group: Int32, penalty: Float64, bounds: Bounds, pull: Float64, multiplier: Float64
) -> float:
    """Update the multipliers, and return by how much a bound is missed at most, records.

    The next multiplier is the gradient of the penalty, and differs by the penalty times the miss.
    """
    missed = 0.0
    for c in range(len(x) if penalty.any() else 0):
        _write_pull(x[c], group, penalty, (bounds[0][c], bounds[1][c], multiplier[c]), pull)
        for g in range(len(pull)):
            if penalty[g] > 0:
                missed = max(missed, abs(pull[g] - multiplier[c, g]) / penalty[g])
        multiplier[c] = pull
    return missed


@kernel
def _project(x: Float64, total: float, closed: Bool, room: Float64) -> None:
    """Move a cell's counts (children) to the nearest with x ≥ 0 and their sum."""
    active = 0
    for c in range(len(x)):
        if not closed[c]:
            room[active] = x[c]
            active += 1
    level = _simplex_level(room[:active], total) if total > 0 else 0.0
    for c in range(len(x)):
        x[c] = 0.0 if closed[c] else max(x[c] - level, 0.0)


@kernel
def _simplex_level(room: Float64, total: float) -> float:
    """Return the a for which Σ max(room − a, 0) is a positive total (Michelot); ``room`` is lost.

    The mean excess over the total is a lower bound of a, so what is not above it leaves for good.
    """
    active, left = len(room), len(room) + 1
    level = 0.0
    while active < left:
        left, level = active, (room[:active].sum() - total) / active
        active = 0
        for i in range(left):
            if room[i] > level:
                room[active] = room[i]
                active += 1
    return level
