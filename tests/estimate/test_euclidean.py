from fractions import Fraction

import numpy as np
import pytest

from hedgerow.estimate.families.euclidean import Euclidean
from tests.estimate.families import any_variances, one_family, small_families
from tests.estimate.oracles import least_squared_distance, squared_distance


def dearest_and_cheapest(x, v, y):
    """The cost of the dearest unit in y, and of the cheapest left out, exactly."""
    rows = [(Fraction(x_i), Fraction(v_i), k) for x_i, v_i, k in zip(x, v, y, strict=True)]
    inside = max((2 * (k - x_i) - 1) / v_i for x_i, v_i, k in rows if k > 0)
    return inside, min((2 * (k - x_i) + 1) / v_i for x_i, v_i, k in rows)


def test_the_sum_of_squares_is_the_smallest_possible():
    for x, c in small_families(np.random.default_rng(2), 3000):
        y = one_family(Euclidean(), x, c)
        ones = [1.0] * len(x)
        assert squared_distance(y, x, ones) == least_squared_distance(x, ones, c), (x, c)


@pytest.mark.parametrize("kind", ["mild", "wild", "few"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_the_weighted_sum_of_squares_is_the_smallest_possible(kind, dtype):
    rng = np.random.default_rng(8)
    for whole, c in small_families(rng, 800):
        x = np.array(whole, dtype=dtype)
        if dtype is np.float64:
            x += rng.uniform(-1, 1, len(x))
        v = any_variances(rng, len(x), kind)
        y = one_family(Euclidean(), x, c, variance=v)
        assert sum(y) == c
        best = least_squared_distance(x.tolist(), v.tolist(), c)
        assert squared_distance(y, x.tolist(), v.tolist()) == best, (x, v, c)


@pytest.mark.parametrize("kind", ["mild", "wild", "few"])
def test_large_weighted_families_hold_the_cheapest_units(kind):
    """The optimality condition in exact arithmetic, up to the rounding of one product."""
    rng = np.random.default_rng(16)
    for _ in range(300):
        cells = int(rng.integers(2, 300))
        spread = int(rng.choice([10, 10**4, 2**38]))
        x = rng.integers(-spread, spread + 1, cells)
        v = any_variances(rng, cells, kind)
        c = int(rng.integers(1, spread * 4))
        y = one_family(Euclidean(), x, c, variance=v)
        assert sum(y) == c
        assert min(y) >= 0
        dearest, cheapest = dearest_and_cheapest(x.tolist(), v.tolist(), y)
        assert dearest - cheapest <= abs(cheapest) * Fraction(1, 2**51)


@pytest.mark.parametrize("seed", range(6))
def test_unit_costs_decide_where_the_real_level_is_rounded(seed):
    """No unit inside costs more than one outside; of equal ones an empty cell's comes last."""
    rng = np.random.default_rng(seed)
    shape = (300_000, [3, 4, 6][seed % 3])
    x = rng.integers(-20, 40, shape)
    v = rng.integers(1, [8, 30][seed % 2], shape).astype(np.float64)
    start = np.arange(0, x.size + 1, shape[1])
    y = Euclidean().project(x.ravel(), start, rng.integers(0, 60, len(x)), v.ravel()).reshape(shape)
    inside = np.where(y > 0, (2.0 * (y - x) - 1) / v, -np.inf)
    outside = (2.0 * (y + 1 - x) - 1) / v
    dearest, cheapest = inside.max(axis=1), outside.min(axis=1)
    assert (dearest <= cheapest).all()
    woken = ((inside == dearest[:, None]) & (y == 1)).any(axis=1)
    passed_over = ((outside == cheapest[:, None]) & (y > 0)).any(axis=1)
    tied = dearest == cheapest
    assert 0 < tied.mean() < 1
    assert not (woken & passed_over)[tied].any()


def test_equal_variances_change_nothing():
    rng = np.random.default_rng(32)
    for x, c in small_families(rng, 500, cells=40, total=60, spread=9):
        plain = one_family(Euclidean(), x, c)
        for variance in (0.25, 1.0, 3.0):
            assert one_family(Euclidean(), x, c, variance=variance) == plain
            assert one_family(Euclidean(), x, c, variance=np.full(len(x), variance)) == plain
        assert one_family(Euclidean(), np.array(x, dtype=np.float64), c) == plain


def test_only_ratios_of_variances_matter():
    rng = np.random.default_rng(64)
    for x, c in small_families(rng, 300, cells=9, total=30, spread=9):
        v = any_variances(rng, len(x), "wild")
        once = one_family(Euclidean(), x, c, variance=v)
        for scale in (2.0**-270, 2.0**270):
            assert one_family(Euclidean(), x, c, variance=v * scale) == once


def test_a_cell_of_smaller_variance_moves_less():
    assert one_family(Euclidean(), [10, 10], 30, variance=np.array([1.0, 4.0])) == [12, 18]


def test_of_equal_costs_empty_cells_stay_empty_and_the_others_share_evenly():
    assert one_family(Euclidean(), [1, 2], 2) == [0, 2]
    assert one_family(Euclidean(), [2, 1, 2], 4) == [2, 0, 2]
    for more in ({}, {"variance": np.full(4, 7.0)}):
        assert one_family(Euclidean(), [3, 3, 3, 3], 10, **more) in ([2, 3, 2, 3], [3, 2, 3, 2])


def test_one_more_record_never_lowers_a_cell_but_by_an_even_share():
    rng = np.random.default_rng(128)
    for x, c in small_families(rng, 1000, cells=12, total=40, spread=15):
        v = any_variances(rng, len(x), "wild")
        for more in ({}, {"variance": v}):
            before = one_family(Euclidean(), x, c, **more)
            after = one_family(Euclidean(), x, c + 1, **more)
            least = 0 if more else -1
            assert all(b - a >= least for a, b in zip(before, after, strict=True)), (x, c, more)


@pytest.mark.parametrize("c", [0, 7, 2**61])
@pytest.mark.parametrize("value", [2**61, -(2**61)])
def test_sums_far_beyond_int64_do_not_wrap(value, c):
    """Equal cells share the total evenly, evenly spread ones the remainder."""
    cells = 100_000
    y = Euclidean().project(np.full(cells, value), np.array([0, cells]), np.array([c]))
    share, rest = divmod(c, cells)
    assert set(y.tolist()) <= {share, share + 1}
    assert sum(y.tolist()) == c
    ahead = np.cumsum(y - share) - np.arange(1, cells + 1) * rest / cells
    assert np.abs(ahead).max() < 1


def test_the_largest_spread_does_not_wrap():
    y = one_family(Euclidean(), [2**61, -(2**61), 2**61 - 2], 2**61)
    assert y == [2**60 + 1, 0, 2**60 - 1]


def test_a_sum_that_would_wrap_to_zero_is_seen_as_large():
    """48 cells of 2^61 sum to 6 · 2^64."""
    y = one_family(Euclidean(), [2**61] * 48 + [-(2**61)] * 48, 2**61)
    share, rest = divmod(2**61, 48)
    assert sorted(y) == [0] * 48 + [share] * (48 - rest) + [share + 1] * rest
    assert y[48:] == [0] * 48
