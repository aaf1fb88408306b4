"""Vectors of counts over groups, for families of nodes: exact sums and bounds, nearest counts."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from hedgerow.estimate.spine.nested.bounded import fill_between, share_between
from hedgerow.estimate.spine.nested.groups import settle_families, settle_root


def random_family(rng, *, size=1.0, widest=6, most_groups=4):
    """Children with some of the groups each: (groups of each, P of each, z, low, high, totals)."""
    groups = int(rng.integers(1, most_groups + 1))
    children = int(rng.integers(1, widest + 1))
    has = [np.flatnonzero(rng.random(groups) < 0.7) for _ in range(children)]
    if not any(len(h) for h in has):
        has[0] = np.array([0])
    metrics = []
    for h in has:
        a = rng.normal(size=(len(h), len(h)))
        metrics.append(a @ a.T * rng.uniform(0, 2) + np.diag(rng.uniform(0.1, 2, len(h))))
    rows = sum(map(len, has))
    truth = rng.poisson(size * rng.choice([0.2, 3.0, 30.0], rows)).astype(np.int64)
    z = truth + rng.normal(size=rows) * size * rng.choice([0.5, 5, 50])
    low = np.where(rng.random(rows) < 0.3, np.maximum(truth - rng.integers(0, 3, rows), 0), 0)
    high = np.where(rng.random(rows) < 0.3, truth + rng.integers(0, 3, rows), 1 << 53)
    return has, metrics, z, low.astype(np.int64), high.astype(np.int64), truth


def flat(families):
    """All families as the arrays of the kernel."""
    first, size, at, entries, members, parent_start = [], [], [], [], [], [0]
    totals, row = [], 0
    for has, metrics, _, _, _, truth in families:
        below, begin = {}, row
        for h, p in zip(has, metrics, strict=True):
            for i, group in enumerate(h):
                first.append(row)
                size.append(len(h))
                at.append(len(entries) + i * len(h))
                below.setdefault(int(group), []).append(row + i)
            entries.extend(p.ravel())
            row += len(h)
        for group in sorted(below):
            members.append(below[group])
            totals.append(int(sum(truth[r - begin] for r in below[group])))
        parent_start.append(len(members))
    rows = tuple(np.concatenate([f[k] for f in families]) for k in (2, 3, 4))
    start = np.concatenate(([0], np.cumsum([len(m) for m in members])))
    ints = [np.array(each, dtype=np.int64) for each in (first, size, at)]
    return (
        rows, (*ints, np.array(entries)),
        (start, np.array([r for m in members for r in m], dtype=np.int64)),
        (np.array(parent_start), np.array(totals, dtype=np.int64)),
    )  # fmt: skip


def settled(families):
    rows, metric, members, parents = flat(families)
    x, y = rows[0].copy(), np.zeros(len(rows[0]), dtype=np.int64)
    settle_families(rows, metric, members, parents, x, y, 0, len(families))
    return y


def objective(family, x):
    has, metrics, z, *_ = family
    total, row = 0.0, 0
    for h, p in zip(has, metrics, strict=True):
        gap = x[row : row + len(h)] - z[row : row + len(h)]
        total += gap @ p @ gap
        row += len(h)
    return total


def sum_matrix(family):
    """0/1 (groups that are there, rows)."""
    of = np.concatenate(family[0])
    return (of == np.unique(of)[:, None]).astype(float)


def test_sums_and_bounds_of_10_000_families_are_exact():
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(-1, 8, 10_000)
    families = [random_family(rng, size=scale) for scale in scales]
    y = settled(families)
    rows, _, members, parents = flat(families)
    assert (y >= rows[1]).all()
    assert (y <= rows[2]).all()
    assert np.array_equal(np.add.reduceat(y[members[1]], members[0][:-1]), parents[1])
    assert np.array_equal(settled(families), y)


def coupled(family, strength):
    """The same family, where the sum of a node's groups is known far better than each."""
    has = family[0]
    return has, [np.eye(len(h)) + strength * np.ones((len(h), len(h))) for h in has], *family[2:]


@pytest.mark.parametrize("strength", [None, 10.0, 300.0])
def test_large_counts_come_near_the_optimum_over_fractions(strength):
    """Rounding is nothing beside counts of thousands, so the fractions are compared."""
    rng = np.random.default_rng(1)
    clipped, scale = 0, 1000.0
    for _ in range(60):
        family = random_family(rng, size=scale, widest=4, most_groups=3)
        if strength is not None:
            family = coupled(family, strength)
        _, _, _, low, high, truth = family
        sums = sum_matrix(family)
        found = objective(family, settled([family]))
        best = minimize(
            lambda x, family=family: objective(family, x * scale) / scale**2,
            truth / scale, method="SLSQP", bounds=list(zip(low / scale, high / scale, strict=True)),
            constraints={"type": "eq", "fun": lambda x, s=sums, t=truth: s @ (x - t / scale)},
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        clipped += bool((best.x * scale < low + 0.5).any())
        assert found <= best.fun * scale**2 * 1.01 + 30 + 5 * (strength or 0.0)
    assert clipped > 15


def test_small_counts_come_near_the_optimum_over_whole_counts():
    rng = np.random.default_rng(2)
    ratios, tried = [], 0
    while tried < 250:
        family = random_family(rng, widest=3, most_groups=2)
        _, _, _, low, high, truth = family
        sums = sum_matrix(family)
        totals = (sums @ truth).astype(int)
        ranges = [range(a, min(b, int(sums[:, i] @ totals)) + 1)
                  for i, (a, b) in enumerate(zip(low, high, strict=True))]  # fmt: skip
        if np.prod([float(len(r)) for r in ranges]) > 20_000 or len(truth) < 2:
            continue
        tried += 1
        every = np.array(list(product(*ranges)))
        every = every[(every @ sums.T == totals).all(axis=1)]
        best = min(objective(family, y) for y in every)
        ratios.append((objective(family, settled([family])) + 1) / (best + 1))
    assert min(ratios) > 1 - 1e-9
    assert max(ratios) < 1.6
    assert np.mean(ratios) < 1.01


def random_bounded(rng):
    n = int(rng.integers(1, 6))
    low = (rng.integers(0, 4, n) * (rng.random(n) < 0.5)).astype(np.int64)
    high = low + rng.integers(0, 5, n)
    total = int(rng.integers(low.sum(), high.sum() + 1))
    scale = 10.0 ** rng.integers(-2, 11)
    t = rng.normal(size=n) * scale if rng.random() < 0.7 else np.full(n, 0.5)
    s = rng.uniform(0.1, 10, n) if rng.random() < 0.7 else np.ones(n)
    return (t, s, low, high), total


def test_one_sum_is_shared_out_at_least_cost():
    rng = np.random.default_rng(3)
    for _ in range(3000):
        family, total = random_bounded(rng)
        t, s, low, high = family
        x, y = np.empty(len(t)), np.empty(len(t), dtype=np.int64)
        level = fill_between(family, float(total), x)
        assert abs(x.sum() - total) < 1e-9 * (1 + np.abs(t).max())
        inner = (x > low + 1e-9) & (x < high - 1e-9)
        steep = (x - t) / s
        tolerance = 1e-9 * (1 + np.abs(steep).max())
        assert (np.abs(steep[inner] - level) < tolerance).all()
        assert (steep[(x <= low) & (high > low)] >= level - tolerance).all()
        assert (steep[(x >= high) & (high > low)] <= level + tolerance).all()
        share_between(family, total, level, 12345, y)
        assert y.sum() == total
        assert (y >= low).all()
        assert (y <= high).all()
        every = np.array(list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))))
        every = every[every.sum(axis=1) == total]
        costs = ((every - 2 * t) * every / s).sum(axis=1)
        assert ((y - 2 * t) * y / s).sum() <= costs.min() + 1e-9 * (1 + np.abs(costs).max())


@pytest.mark.parametrize("guess", [0.0, 1e9, -1e9, 1e-3])
def test_whole_counts_are_the_same_from_any_guess(guess):
    rng = np.random.default_rng(4)
    for _ in range(300):
        family, total = random_bounded(rng)
        found = np.empty((2, len(family[0])), dtype=np.int64)
        share_between(family, total, fill_between(family, float(total), np.empty(len(found[0]))),
                      7, found[0])  # fmt: skip
        share_between(family, total, guess, 7, found[1])
        assert found[1].sum() == total
        cost = [((y - 2 * family[0]) * y / family[1]).sum() for y in found]
        assert np.isclose(*cost, rtol=1e-9, atol=1e-9)


def test_units_of_equal_cost_go_to_every_cell_alike():
    counts = np.zeros(7, dtype=np.int64)
    y = np.empty(7, dtype=np.int64)
    family = np.full(7, 0.25), np.ones(7), np.zeros(7, dtype=np.int64), np.full(7, 1 << 53)
    for hashed in range(700):
        share_between(family, 3, 0.0, hashed, y)
        assert y.max() == 1
        counts += y
    assert counts.tolist() == [300] * 7


@pytest.mark.parametrize("is_known", [True, False])
def test_the_root_comes_near_the_optimum_over_whole_counts(is_known):
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(200):
        k = int(rng.integers(1, 5))
        a = rng.normal(size=(k, k))
        p = a @ a.T + np.diag(rng.uniform(0.05, 1, k))
        low = rng.integers(0, 3, k)
        high = low + rng.integers(0, 7, k)
        z = rng.normal(size=k) * rng.choice([2, 8]) + 3
        total = int(rng.integers(low.sum(), high.sum() + 1)) if is_known else None
        y = settle_root(p, z, (low, high), total)
        assert (y >= low).all()
        assert (y <= high).all()
        assert total is None or y.sum() == total
        every = np.array(list(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))))
        if is_known:
            every = every[every.sum(axis=1) == total]
        best = min((e - z) @ p @ (e - z) for e in every)
        ratios.append(((y - z) @ p @ (y - z) + 1) / (best + 1))
    assert max(ratios) < 1.05
    assert np.mean(ratios) < 1.001


def test_the_root_takes_estimates_of_any_size():
    p, low = np.eye(3) + 1, np.zeros(3, dtype=np.int64)
    for z in (1e12, -1e12):
        far = np.array([z, 5.0, -z / 3])
        y = settle_root(p, far, (low, np.full(3, 1 << 53)), 10**11)
        assert y.sum() == 10**11
        assert settle_root(p, far, (low, np.full(3, 9)), None).max() <= 9
