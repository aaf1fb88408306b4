"""The three settlers where little is left to choose, and where there are very many children."""

import numpy as np
import pytest

from hedgerow.estimate.cube.blocks import CuboidBlocks
from hedgerow.estimate.cube.residuals import Residuals
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.units import cheapest_units
from tests.estimate.spine.random_families import Family, rounded

CHILDREN = 1_000_000


def family(z, above, low=0, high=1 << 53, sizes=(), groups=1):
    """Children that have all groups each, measured with one variance."""
    here, rows = Residuals(tuple(range(len(sizes))), sizes), len(z)
    row_start = np.arange(0, rows + 1, groups)
    blocks = [np.repeat(np.eye(groups)[None], len(here.every), axis=0)] * (rows // groups)
    slot = np.tile(np.arange(groups), rows // groups)
    bounds = (np.full(rows, bound, dtype=np.int64) for bound in (low, high))
    return Family(here, groups, row_start, slot, z, blocks, above, *bounds)


def settle_family(z, total):
    return Euclidean().project(z, np.array([0, len(z)]), np.array([total]), 2.0)


def settle_block(z, rows, columns):
    start = np.array([0, z.shape[0]]), np.array([0, z.shape[1]])
    blocks = CuboidBlocks.of((np.ones(z.shape[0]), np.ones(z.shape[1])), start)
    return blocks.settle(z, (rows[:, None], columns[None]))


@pytest.mark.parametrize("mass", [0, 7, 10**9])
@pytest.mark.parametrize("place", [0, 3])
def test_all_records_in_one_cell_or_nowhere(mass, place):
    """Wherever the noise points, sums leave one table alone."""
    z = np.random.default_rng(1).normal(0, 100, (4, 5))
    rows, columns = np.zeros(4, dtype=np.int64), np.zeros(5, dtype=np.int64)
    rows[place] = columns[place] = mass
    assert (settle_block(z, rows, columns) == np.diag(columns)[:4]).all()
    exact = columns.astype(float)
    assert (settle_family(exact, mass) == columns).all()
    above = np.zeros((1, 3), dtype=np.int64)
    above[0, 1] = mass
    _, out = rounded(family(z[:, :3], above, sizes=(3,)))
    assert out[:, 1].sum() == mass
    assert (out[:, [0, 2]] == 0).all()


@pytest.mark.parametrize("sizes", [(), (2,), (2, 3)])
@pytest.mark.parametrize("bound", ["low", "high", "both"])
def test_bounds_that_only_just_hold_are_kept(bound, sizes):
    rng, width = np.random.default_rng(2), int(np.prod(sizes, dtype=int))
    for groups in (1, 3):
        truth = rng.poisson(4, (6 * groups, width))
        z = truth + rng.normal(0, 50, truth.shape)
        above = truth.reshape(6, groups, width).sum(axis=0)
        given = family(z, above, sizes=sizes, groups=groups)
        if bound != "high":
            given.low[:] = truth.sum(axis=1)
        if bound != "low":
            given.high[:] = truth.sum(axis=1)
        _, out = rounded(given)
        assert (out.sum(axis=1) == truth.sum(axis=1)).all()
        assert (out.reshape(6, groups, width).sum(axis=0) == above).all()
        assert (out >= 0).all()


def test_units_have_room_for_just_the_total():
    rng = np.random.default_rng(3)
    for _ in range(300):
        most = rng.integers(0, 6, 8)
        x, s, y = rng.normal(0, 9, 8), rng.uniform(0.1, 9, 8), np.empty(8, dtype=np.int64)
        cheapest_units(x, s, most, (0.5, int(most.sum()), 1), np.empty(8), y)
        assert (y == most).all()


def test_units_within_bounds_are_the_cheapest():
    rng = np.random.default_rng(4)
    for _ in range(2000):
        n = int(rng.integers(1, 7))
        most = rng.integers(0, 6, n)
        total = int(rng.integers(0, most.sum() + 1))
        x = rng.normal(size=n) * 10.0 ** rng.integers(-2, 11)
        x = x if rng.random() < 0.7 else np.full(n, 0.5)
        s, y = rng.uniform(0.1, 10, n), np.empty(n, dtype=np.int64)
        cheapest_units(x, s, most, (0.5, total, 12345), np.empty(n), y)
        assert y.sum() == total
        assert (y >= 0).all()
        assert (y <= most).all()
        costs = np.concatenate([(np.arange(1, m + 1) - 0.5 - t) / v
                                for m, t, v in zip(most, x, s, strict=True)])  # fmt: skip
        taken = sum(((np.arange(1, k + 1) - 0.5 - t) / v).sum()
                    for k, t, v in zip(y, x, s, strict=True))  # fmt: skip
        least = np.sort(costs)[:total].sum()
        assert taken <= least + 1e-9 * (1 + np.abs(costs).sum())


def test_units_of_equal_cost_within_bounds_go_to_every_cell_alike():
    counts, y = np.zeros(7, dtype=np.int64), np.empty(7, dtype=np.int64)
    for hashed in range(700):
        most = np.full(7, 1 << 53)
        cheapest_units(np.full(7, 0.25), np.ones(7), most, (0.5, 3, hashed), np.empty(7), y)
        assert y.max() == 1
        counts += y
    assert counts.tolist() == [300] * 7


@pytest.mark.parametrize("total", [1, 300_000])
def test_a_million_children_of_one_parent(total):
    z = np.random.default_rng(5).normal(total / CHILDREN, 3, (CHILDREN, 1))
    assert settle_family(z[:, 0], total).sum() == total
    _, out = rounded(family(z, np.array([[total]])))
    assert out.sum() == total
    assert out.min() >= 0


@pytest.mark.parametrize("total", [0, 1, 7000, 10**9])
def test_a_long_block_of_two_columns(total):
    rng = np.random.default_rng(6)
    columns = np.array([total // 3, total - total // 3])
    rows = rng.multinomial(total, np.full(20_000, 1 / 20_000))
    y = settle_block(rng.normal(total / 40_000, 3, (20_000, 2)), rows, columns)
    assert (y.sum(axis=0) == columns).all()
    assert (y.sum(axis=1) == rows).all()
