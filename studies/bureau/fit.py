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

Queries = tuple[Int32, Float64]
"""Which entry each cell adds to (queries, cells), and the entries' weights, 1 / records²: counts
that are measured, then the sums of groups, then the total."""

Edges = tuple[Float64, Float64]
"""The least and the largest values of the entries: what is measured has both alike, and of sums
they are infinite where nothing is known. Float64 (children, entries) or of one child (entries)."""

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
            first, groups = len(self.weight), self.low.shape[1]
            sums = np.vstack((first + self.group, np.full_like(self.group, first + groups)))
            low, high = (np.hstack((self.measured, bounds)) for bounds in self._bounds())
            closed = np.ascontiguousarray((self.high == 0)[:, self.group])
            weight = np.append(self.weight, np.zeros(groups + 1))
            steep, flat = _curvature(self.column, weight)
            # Each bounded sum is weighed as steep as the objective is along it.
            members = np.bincount(sums.ravel(), minlength=len(weight))
            along = np.bincount(sums.ravel(), np.tile(steep, 2), len(weight))
            bounded = (np.isfinite(low) | np.isfinite(high)).any(axis=0) & (members > 0)
            weight[bounded] = along[bounded] / members[bounded] ** 2
            queries = np.vstack((self.column, sums)), weight
            scale, _ = _curvature(*queries)
            small = ACCURACY * max(flat / scale.max(), FLATTEST)
            _fit(self.parent, closed, (low, high), queries, (scale, small), first, fitted)
        return fitted

    def _bounds(self) -> Edges:
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


def _curvature(column: Int32, weight: Float64) -> tuple[Float64, float]:
    """Return the diagonal D above the Hessian (cells), and a bound below it; 1 / records²."""
    steep, alone = np.zeros(column.shape[1]), np.zeros(column.shape[1])
    for entry in column:
        sharing = np.bincount(entry)[entry]
        steep += weight[entry] * sharing
        alone += np.where(sharing == 1, weight[entry], 0.0)
    return steep, alone.min()


@kernel
def _fit(
    parent: Float64,
    closed: Bool,
    edges: Edges,
    queries: Queries,
    steps: tuple[Float64, float],
    first: int,
    x: Float64,
) -> None:
    """Fit a family: see the module; ``x`` begins at 0 and becomes the fitted counts.

    Entries from ``first`` on are bounded sums. ``steps`` are the curvature of each cell and the
    step, records, that ends the fit.
    """
    low, high = edges
    scale, small = steps
    children, cells = x.shape
    weight = queries[1]
    multiplier, entries, room = np.zeros(low.shape), np.zeros(len(weight)), np.zeros(children)
    at, old, slope = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape)
    momentum, since = 1.0, 0
    for _ in range(STEPS):
        for c in range(children):
            _write_slope(at[c], queries, (low[c], high[c]), multiplier[c], entries, slope[c])
        old[:] = x
        largest, turned = 0.0, 0.0
        for p in range(cells):  # a step down the slope, and each cell to its simplex
            for c in range(children):
                x[c, p] = at[c, p] - slope[c, p] / scale[p]
            _project(x[:, p], parent[p], closed[:, p], room)
            for c in range(children):
                change = x[c, p] - at[c, p]
                largest = max(largest, abs(change))
                turned -= change * (x[c, p] - old[c, p]) * scale[p]
        uphill = turned > 0
        since += 1
        if largest <= small or since == TURN:
            missed = _turn(x, queries, edges, first, multiplier, entries, slope)
            if largest <= small and missed <= WITHIN:
                return
            since = 0
            uphill |= missed > 0
        faster = 1.0 if uphill else 0.5 + math.sqrt(0.25 + momentum * momentum)
        ahead = 0.0 if uphill else (momentum - 1) / faster
        momentum = faster
        at[:] = x + ahead * (x - old)


@kernel
def _turn(
    x: Float64,
    queries: Queries,
    edges: Edges,
    first: int,
    multiplier: Float64,
    entries: Float64,
    slope: Float64,
) -> float:
    """Update the multipliers, and return by how much a bound is missed at most, records.

    The next multiplier is the gradient of the penalty, and differs by the penalty times the miss.
    """
    weight, missed = queries[1], 0.0
    for c in range(len(x)):
        edge = edges[0][c], edges[1][c]
        _write_slope(x[c], queries, edge, multiplier[c], entries, slope[c])
        for j in range(first, len(weight)):
            if weight[j] > 0:
                missed = max(missed, abs(entries[j] - multiplier[c, j]) / weight[j])
                multiplier[c, j] = entries[j]
    return missed


@kernel
def _write_slope(
    x: Float64,
    queries: Queries,
    edges: Edges,
    multiplier: Float64,
    entries: Float64,
    out: Float64,
) -> None:
    """Write the gradient of half a child's objective and penalties: Σ_q Q_qᵀ e_q.

    An entry of ``entries`` is e = w (a − a′) with a = Q_q x + multiplier / w, and a′ the nearest to
    it within the edges: of a measured count (Q_q x − m) / v.
    """
    column, weight = queries
    low, high = edges
    entries[:] = 0
    out[:] = 0
    for q in range(len(column)):
        for p in range(len(x)):
            entries[column[q, p]] += x[p]
    for j in range(len(entries)):
        if weight[j] > 0:
            aim = entries[j] + multiplier[j] / weight[j]
            entries[j] = weight[j] * (aim - min(max(aim, low[j]), high[j]))
        else:
            entries[j] = 0
    for q in range(len(column)):
        for p in range(len(x)):
            out[p] += entries[column[q, p]]


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
