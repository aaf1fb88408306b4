"""The three settlers where little is left to choose, and where there are very many children."""

import numpy as np
import pytest

from hedgerow.estimate.cube.blocks import Blocks
from hedgerow.estimate.cube.residuals import Residuals
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.units import cheapest_units, cutoff_below, level_of
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.support import Part
from tests.estimate.spine.random_families import Family, rounded

CHILDREN = 200_000


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
    blocks = Blocks.of_cuboid((np.ones(z.shape[0]), np.ones(z.shape[1])), start)
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


@pytest.mark.parametrize("total", [1, 60_000])
def test_very_many_children_of_one_parent(total):
    z = np.random.default_rng(5).normal(total / CHILDREN, 3, (CHILDREN, 1))
    assert settle_family(z[:, 0], total).sum() == total
    _, out = rounded(family(z, np.array([[total]])))
    assert out.sum() == total


@pytest.mark.parametrize("total", [0, 1, 7000, 10**9])
def test_a_long_block_of_two_columns(total):
    rng = np.random.default_rng(6)
    columns = np.array([total // 3, total - total // 3])
    rows = rng.multinomial(total, np.full(20_000, 1 / 20_000))
    y = settle_block(rng.normal(total / 40_000, 3, (20_000, 2)), rows, columns)
    assert (y.sum(axis=0) == columns).all()
    assert (y.sum(axis=1) == rows).all()


@pytest.mark.parametrize("spread", [27, 50, 80])
@pytest.mark.parametrize("is_bounded", [False, True])
def test_few_units_are_left_to_be_counted_out_one_by_one(spread, is_bounded):
    """Whatever variances there are: a level that leaves many would count for hours."""
    rng = np.random.default_rng(spread)
    for _ in range(3000):
        cells = int(rng.integers(5, 60))
        s = 2.0 ** rng.uniform(-spread, 0, cells)
        x = np.full(cells, -(2.0**40))
        if rng.random() < 0.5:
            x = -np.round(2.0 ** rng.uniform(0, 40, cells))
        most = np.round(2.0 ** rng.uniform(0, rng.choice([3, 10, 20, 38]), cells)).astype(np.int64)
        widest = np.argmin(s)
        most[widest] = 1 << rng.integers(10, 38)
        less = rng.integers(0, 5) if rng.random() < 0.7 else rng.integers(0, most[widest])
        total, bounds = int(most.sum() - less), most if is_bounded else None
        level = cutoff_below(x, s, bounds, 0.5, float(total), level_of(x, s, float(total), 0.25))
        units = np.floor(x + 0.5 + s * level).clip(0, most if is_bounded else total).sum()
        assert 0 <= total - units <= 100


def spine_of(groups, leaves, bounds=(), *, total_known):
    """A root with two parts beside attributes, all of which are measured with one variance."""
    attribute = [np.array([0, groups]), np.arange(0, groups * leaves + 1, leaves)]
    axes = AxisShape.of([np.array([0, 2])]), AxisShape.of(attribute)
    zero = np.zeros(groups * leaves, dtype=bool)
    return Nested.of(*axes, 1, None, bounds, zero, [1.0, 1.0], [1.0] * 3, total_known=total_known)


def settled(model, noisy, total):
    part = Part.top(1)
    return model.settle(part, model.up(part, noisy), None, total)


def test_a_public_total_is_kept_over_a_thousand_groups_without_bounds():
    """Bounds of 2^53 each: 1,024 of them are more than 64 bits hold."""
    model = spine_of(1024, 2, total_known=True)
    rng = np.random.default_rng(1)
    sizes = model.support.spine.sizes
    noisy = {key: rng.normal(5, 1, model.cells(key).count(range(sizes[key[0]])))
             for key in model.measured}  # fmt: skip
    for counts in settled(model, noisy, 5120).values():
        assert counts.sum() == 5120


def test_a_table_beyond_the_limit_of_a_count_is_cut_to_it_beside_a_public_bound():
    most = 2.0**40
    bound = [(0, np.array([0]), np.array([1]), np.array([0]), np.array([100]))]
    model = spine_of(2, 2, bound, total_known=False)
    noisy = {
        (0, 0): [most], (0, 1): [most, 1099], (0, 2): [most, 0, 1099, 0], (1, 0): [most, most],
        (1, 1): [most, 1009, most, 0], (1, 2): [most, 0, 1000, 0, most, 0, 0, 0],
    }  # fmt: skip
    noisy = {key: np.clip(np.array(each, float), -most, most) for key, each in noisy.items()}
    counts = settled(model, noisy, None)[0]
    assert counts.max() <= most
    assert counts[2:].sum() <= 100
