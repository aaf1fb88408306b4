"""Whole numbers of given row and column sums, nearest to targets: exact, by negative cycles.

A table is optimal for a sum of convex functions of one cell each exactly if no cycle of the
residual network, rows and columns being its nodes, has a negative cost; a unit along each one that
has lowers the objective. Every step of it is independent of the package.
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array


def cost(y, z, u, v):
    return float(((y - z) ** 2 / np.outer(u, v)).sum())


def optimum(y, z, u, v):
    """The integer optimum with the row and column sums of ``y``, from which it starts."""
    y, w = y.copy(), np.outer(u, v)
    while (cycle := _negative_cycle(y, z, w)) is not None:
        for i, j, step in cycle:
            y[i, j] += step
    return y


def optimum_by_linear_program(z, u, v, rows, columns):
    """The least cost, found otherwise: a cell is so many units, each dearer than the one before.

    The constraints are those of a network, so the linear program has a solution in whole units.
    """
    m, n = z.shape
    most = np.minimum.outer(rows, columns).ravel()
    cell = np.repeat(np.arange(m * n), most)
    unit = np.arange(cell.size) - np.repeat(np.cumsum(most) - most, most)
    w, targets = np.outer(u, v).ravel(), z.ravel()
    if not cell.size:
        return float((targets**2 / w).sum())
    each = (2 * (unit - targets[cell]) + 1) / w[cell]
    ones, unit_number = np.ones(cell.size), np.arange(cell.size)
    places = np.concatenate([cell // n, m + cell % n]), np.concatenate([unit_number, unit_number])
    sums = csr_array((np.concatenate([ones, ones]), places), shape=(m + n, cell.size))
    found = linprog(each, A_eq=sums, b_eq=np.concatenate([rows, columns]), bounds=(0, 1))
    assert found.success
    return float(found.fun + (targets**2 / w).sum())


def _negative_cycle(y, z, w):
    """Cells and steps of ±1 of a cycle of negative cost; None if there is none (Bellman-Ford)."""
    m, n = y.shape
    up = (2 * (y - z) + 1) / w
    down = np.where(y > 0, (2 * (z - y) + 1) / w, np.inf)
    rows, columns = np.zeros(m), np.zeros(n)
    row_from, column_from = np.full(m, -1), np.full(n, -1)
    for _ in range(m + n + 1):
        changed = -1
        through = rows[:, None] + up
        best = through.argmin(axis=0)
        better = through.min(axis=0) < columns - 1e-11
        columns[better], column_from[better] = through.min(axis=0)[better], best[better]
        through = columns[None, :] + down
        best = through.argmin(axis=1)
        better = through.min(axis=1) < rows - 1e-11
        rows[better], row_from[better] = through.min(axis=1)[better], best[better]
        if not better.any():
            return None
        changed = int(np.flatnonzero(better)[0])
    at = changed
    for _ in range(m + n):
        at = int(column_from[row_from[at]])
    cycle, row = [], at
    while True:
        column = int(row_from[row])
        above = int(column_from[column])
        cycle += [(row, column, -1), (above, column, 1)]
        row = above
        if row == at:
            return cycle


def random_block(rng, kind):
    """Counts, targets, weights and margins of a block of a kind."""
    m, n = rng.integers(1, 13, 2)
    if kind == "lopsided":
        m, n = (int(rng.integers(1, 4)), int(rng.integers(15, 40)))[:: rng.choice([1, -1])]
    elif kind == "very sparse":
        m, n = rng.integers(10, 21, 2)
    mean = {"dense": 40, "sparse": 0.08, "very sparse": 0.01, "lopsided": 3, "wild": 2, "steep": 2}
    true = rng.poisson(mean[kind] * rng.lognormal(0, 1.5, (m, n)))
    spread = 3 if kind == "steep" else 0.5
    u, v = np.exp(rng.normal(0, spread, m)), np.exp(rng.normal(0, spread, n))
    noise = {"dense": 3, "lopsided": 5, "wild": 100}.get(kind, 1.5)
    z = true + rng.normal(0, noise, (m, n)) * np.sqrt(np.outer(u, v))
    if rng.random() < 0.3:  # as whole as noisy counts are, of one variance: ties everywhere
        z, u, v = np.round(z), np.ones(m), np.ones(n)
    rows = np.maximum(0, np.round(true.sum(axis=1) + rng.normal(0, noise, m))).astype(np.int64)
    columns = rng.multinomial(rows.sum(), _shares(true.sum(axis=0) + 0.01)).astype(np.int64)
    return true, (z, u, v, rows, columns)


def _shares(x):
    return x / x.sum()
