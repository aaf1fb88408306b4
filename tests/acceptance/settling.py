"""How good whole counts are, beside the best ones of small random tables.

Each of the three settlers makes tables of a few cells, and an exact solver the best whole tables of
the same constraints: an integer program over units that each cost more than the one before, or,
where the metric is a matrix, all tables one by one.

``python -m tests.acceptance.settling [tables]`` prints a line a settler: the share of tables that
are the best, and by how much the objectives of the others are above.
"""

import sys
from functools import partial
from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from hedgerow.estimate.cube.block import scratch_of, settle_block
from hedgerow.estimate.families.euclidean import Euclidean
from tests.estimate.oracles import every_estimate
from tests.estimate.spine.random_families import distance, random_family, rounded

MOST_TABLES = 50_000
"""Tables that are looked at one by one."""


def best_by_units(target, variance, sums, wanted):
    """The least Σ (y - target)² / variance over whole y from 0 on with ``sums @ y`` as wanted."""
    most = int(max(wanted))
    unit, cell = np.tile(np.arange(most), len(target)), np.repeat(np.arange(len(target)), most)
    nothing = (target**2 / variance).sum()
    if most == 0:
        return nothing
    costs = (2 * (unit - target[cell]) + 1) / variance[cell]
    exact = LinearConstraint(np.asarray(sums, dtype=float)[:, cell], wanted, wanted)
    found = milp(costs, integrality=np.ones(len(cell)), bounds=Bounds(0, 1), constraints=exact,
                 options={"mip_rel_gap": 0.0})  # fmt: skip
    assert found.success
    return nothing + found.fun


def settled_family(rng):
    """The objectives of one family, and of the best one."""
    n, scale = int(rng.integers(1, 8)), rng.choice([0.5, 2.0, 10.0])
    truth = rng.poisson(rng.choice([0.2, 2.0, 6.0], n))
    target, variance = truth + rng.normal(size=n) * scale, rng.choice([1.0, 2.0, 7.5], n)
    start, total = np.array([0, n]), np.array([truth.sum()])
    y = Euclidean().project(target, start, total, variance)
    assert y.sum() == total[0]
    assert (y >= 0).all()
    return ((y - target) ** 2 / variance).sum(), best_by_units(
        target, variance, np.ones((1, n)), total
    )


def settled_block(rng):
    """The objectives of one block, and of the best one."""
    m, n = (int(size) for size in rng.integers(2, 5, 2))
    truth = rng.poisson(rng.choice([0.3, 2.0], (m, n)))
    u, v = rng.choice([1.0, 2.0, 5.0], m), rng.choice([1.0, 3.0], n)
    target = truth + rng.normal(size=(m, n)) * rng.choice([0.5, 3.0])
    rows, columns = truth.sum(axis=1), truth.sum(axis=0)
    is_in = rows > 0, columns > 0
    u, v, rows, columns = u[is_in[0]], v[is_in[1]], rows[is_in[0]], columns[is_in[1]]
    target = np.ascontiguousarray(target[is_in[0]][:, is_in[1]])
    m, n = target.shape
    if target.size == 0:
        return 0.0, 0.0
    y = np.zeros((m, n), dtype=np.int64)
    settle_block(target.copy(), (u, v), (rows, columns), scratch_of(m, n), y)
    assert (y >= 0).all()
    assert (y.sum(axis=1) == rows).all()
    assert (y.sum(axis=0) == columns).all()
    sums = [np.repeat(np.eye(m), n, axis=1), np.tile(np.eye(n), m)]
    variance = np.outer(u, v)
    best = best_by_units(
        target.ravel(), variance.ravel(), np.vstack(sums), np.append(rows, columns)
    )
    return ((y - target) ** 2 / variance).sum(), best


def whole_tables(family):
    """All whole counts of a family within sums and bounds; None where there are too many."""
    places, choices = [], []
    for s, k in np.argwhere(family.above > 0):
        here = np.flatnonzero(family.slot == s)
        places.append((here, k))
        choices.append(every_estimate(int(family.above[s, k]), len(here)))
    if np.prod([float(len(each)) for each in choices]) > MOST_TABLES:
        return None
    found = []
    for picked in product(*choices):
        table = np.zeros(family.z.shape, dtype=np.int64)
        for (here, k), counts in zip(places, picked, strict=True):
            table[here, k] = counts
        sums = table.sum(axis=1)
        if (sums >= family.low).all() and (sums <= family.high).all():
            found.append(table)
    return found


def settled_fit(sizes, rng):
    """The objectives of one family by the fit and rounded, and of the best one."""
    while True:
        family = random_family(rng, sizes, children=int(rng.integers(2, 4)))
        every = whole_tables(family) if family.above.sum() < 25 else None
        if every is not None:
            break
    y, out = rounded(family)
    return distance(family, y, out), min(distance(family, y, table) for table in every)


SETTLERS = {
    "families": settled_family,
    "blocks": settled_block,
    "fit, groups alone": partial(settled_fit, ()),
    "fit, marginals": partial(settled_fit, (2,)),
}


def excesses(settler, tables, first=0):
    """By how much each table's objective is above the best one's, over 1 plus that."""
    pairs = [SETTLERS[settler](np.random.default_rng(first + i)) for i in range(tables)]
    return np.array([(found - best) / (1 + best) for found, best in pairs])


def main(tables):
    """Print a line a settler."""
    for settler in SETTLERS:
        found = excesses(settler, tables)
        sys.stdout.write(
            f"{settler:18} best in {np.mean(found < 1e-9):.1%} of {tables} tables; above the best "
            f"by {found.mean():.2%} on average, {np.quantile(found, 0.99):.1%} at the 99th "
            f"percentile, {found.max():.1%} at most\n"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
