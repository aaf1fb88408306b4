"""Whole numbers of given row and column sums, nearest to targets: exact, by negative cycles.

A table is optimal for a sum of convex functions of one cell each exactly if no cycle of the
residual network, rows and columns being its nodes, has a negative cost; a unit along each one that
has lowers the objective. Every step of it is independent of the package.
"""

import numpy as np


def cost(y, z, u, v):
    return float(((y - z) ** 2 / np.outer(u, v)).sum())


def optimum(y, z, u, v):
    """The integer optimum with the row and column sums of ``y``, from which it starts."""
    y, w = y.copy(), np.outer(u, v)
    while (cycle := _negative_cycle(y, z, w)) is not None:
        for i, j, step in cycle:
            y[i, j] += step
    return y


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
    """Targets, weights and margins of a block of a kind: dense, sparse, lopsided, wild."""
    m, n = rng.integers(1, 13, 2)
    if kind == "lopsided":
        m, n = (int(rng.integers(1, 4)), int(rng.integers(15, 40)))[:: rng.choice([1, -1])]
    mean = {"dense": 40, "sparse": 0.08, "lopsided": 3, "wild": 2}[kind]
    true = rng.poisson(mean * rng.lognormal(0, 1.5, (m, n)))
    u, v = np.exp(rng.normal(0, 0.5, m)), np.exp(rng.normal(0, 0.5, n))
    noise = {"dense": 3, "sparse": 1.5, "lopsided": 5, "wild": 100}[kind]
    z = true + rng.normal(0, noise, (m, n)) * np.sqrt(np.outer(u, v))
    if rng.random() < 0.3:  # as whole as noisy counts are, of one variance: ties everywhere
        z, u, v = np.round(z), np.ones(m), np.ones(n)
    rows = np.maximum(0, np.round(true.sum(axis=1) + rng.normal(0, noise, m))).astype(np.int64)
    columns = rng.multinomial(rows.sum(), _shares(true.sum(axis=0) + 0.01)).astype(np.int64)
    return z, u, v, rows, columns


def _shares(x):
    return x / x.sum()
