import numpy as np
import pytest

from hedgerow.estimate.families.chebyshev import Chebyshev
from tests.estimate.families import any_variances, one_family, small_families
from tests.estimate.oracles import (
    algorithm_4,
    compositions,
    distance,
    every_estimate,
    largest_change,
)


def any_family(rng):
    """A family of one of the kinds that went wrong, or might, somewhere."""
    cells = int(rng.choice([1, 2, 3, 5, 10, 30]))
    spread = int(rng.choice([1, 3, 10, 1000, 10**9, 10**16]))
    x = rng.integers(-spread, spread + 1, cells)
    kind = rng.integers(5)
    if kind == 0:
        return x.tolist(), 0
    if kind == 1:
        return x.tolist(), int(rng.integers(0, 5))
    if kind == 2:
        return x.tolist(), max(int(x.sum()) + int(rng.integers(-3, 4)), 0)
    if kind == 3:
        x[rng.integers(cells)] *= 50
        return x.tolist(), int(rng.integers(0, cells * spread + 1))
    return (-abs(x)).tolist(), int(rng.integers(0, 2 * cells * spread + 1))


def together(
    families,
):
    """Families as the three arrays of `Estimator.project`."""
    noisy = np.array([value for x, _ in families for value in x])
    start = np.cumsum([0, *(len(x) for x, _ in families)])
    return noisy, start, np.array([c for _, c in families])


@pytest.mark.slow
def test_20000_families_equal_algorithm_4_cell_by_cell():
    rng = np.random.default_rng(4)
    families = [any_family(rng) for _ in range(20_000)]
    noisy, start, totals = together(families)
    found = np.split(Chebyshev().project(noisy, start, totals), start[1:-1])
    for y, (x, c) in zip(found, families, strict=True):
        assert y.tolist() == algorithm_4(x, c), (x, c)


def test_the_largest_change_is_the_smallest_possible():
    for x, c in small_families(np.random.default_rng(13), 1500):
        best = min(distance(y, x) for y in compositions(c, len(x)))
        assert distance(one_family(Chebyshev(), x, c), x) == best, (x, c)


def test_the_papers_example_lowers_the_small_cells_first():
    """Section 4.2: (1, 0, 1) and (0, 0, 2) are both optimal for x = (0, -1, 1), c = 2."""
    assert one_family(Chebyshev(), [0, -1, 1], 2) == [0, 0, 2]


def test_equal_noisy_counts_are_lowered_in_order_of_index():
    assert one_family(Chebyshev(), [3, 3, 3, 3], 10) == [2, 2, 3, 3]
    assert one_family(Chebyshev(), [5, 5, -9], 5) == [0, 5, 0]


@pytest.mark.parametrize("c", [0, 1, 2**61])
@pytest.mark.parametrize(
    "x",
    [
        [2**61],
        [-(2**61)],
        [2**61, -(2**61)],
        [2**61, 2**61, 2**61, 2**61],
        [-(2**61)] * 5,
        [2**61, 2**61 - 1, 0, -(2**61), 17],
        [2**61] * 48 + [-(2**61)] * 48,  # the positive ones sum to 6 · 2^64, which wraps to 0
    ],
)
def test_the_largest_counts_equal_algorithm_4_on_unbounded_integers(x, c):
    assert one_family(Chebyshev(), x, c) == algorithm_4(x, c)


@pytest.mark.parametrize(("value", "c"), [(2**61, 5), (-(2**61), 2**61), (2**61, 2**61)])
def test_sums_far_beyond_int64_do_not_wrap(value, c):
    """100,000 cells of ±2^61 sum to ±2^77.6; equal cells share c, the last ones the remainder."""
    cells = 100_000
    y = Chebyshev().project(np.full(cells, value), np.array([0, cells]), np.array([c]))
    # Line 1 makes every cell ceil(c / cells), and the ascending pass lowers the first ones.
    level = -(-c // cells)
    surplus = level * cells - c
    assert sum(y.tolist()) == c
    assert distance(y.tolist(), [value] * cells) == max(abs(level - value), abs(y[0] - value))
    assert (np.diff(y) >= 0).all()
    assert surplus < cells


@pytest.mark.parametrize("variance", [None, 3.0, "array"])
def test_integers_as_real_values_of_equal_variance_give_the_same_estimates(variance):
    rng = np.random.default_rng(21)
    families = [(x, c) for x, c in map(any_family, [rng] * 6000) if max(*map(abs, x), c, 1) < 2**40]
    noisy, start, totals = together(families)
    variances = np.full(len(noisy), 3.0) if variance == "array" else variance
    whole = Chebyshev().project(noisy, start, totals)
    assert (Chebyshev().project(noisy.astype(np.float64), start, totals, variances) == whole).all()
    assert (Chebyshev().project(noisy, start, totals, variances) == whole).all()


@pytest.mark.parametrize("kind", ["mild", "wild", "few"])
@pytest.mark.parametrize("real", [True, False])
def test_the_largest_change_in_standard_deviations_is_the_smallest_possible(kind, real):
    rng = np.random.default_rng(22)
    for whole, c in small_families(rng, 600):
        x = np.array(whole) + (rng.uniform(-1, 1, len(whole)) if real else 0)
        variance = any_variances(rng, len(x), kind)
        y = np.array(one_family(Chebyshev(), x, c, variance=variance))
        best = largest_change(every_estimate(c, len(x)), x, variance).min()
        assert largest_change(y, x, variance) <= best * (1 + 1e-12), (x, variance, c)


@pytest.mark.parametrize("cells", [3, 40, 2000])
def test_no_large_family_can_be_nearer(cells):
    """At a slightly smaller distance the integers within reach are none, or their sums miss c."""
    rng = np.random.default_rng(cells)
    for _ in range(150):
        x = np.where(rng.random(cells) < 0.3, rng.pareto(1, cells) * 9, 0)
        c = int(x.sum() * rng.choice([0.2, 1, 1, 3]))
        sd = np.sqrt(any_variances(rng, cells, str(rng.choice(["mild", "few"]))))
        x += rng.normal(0, 5, cells) * sd
        y = np.array(one_family(Chebyshev(), x, c, variance=sd**2))
        distance = largest_change(y, x, sd**2) * (1 - 1e-9)
        least = np.maximum(np.ceil(x - distance * sd), 0)
        most = np.floor(x + distance * sd)
        assert (least > most).any() or least.sum() > c or most.sum() < c


def test_real_cells_small_in_standard_deviations_go_to_zero_first():
    x, variance = [-9.5, 4.2, 3.1, 30.0], np.array([1.0, 4.0, 1.0, 4.0])
    # No cell is out of reach at 9.5 sd. Raised by 5.2 / 6 sd each, they begin at 0, 6, 4 and 32; of
    # the 9 too many, 4.2 = 2.1 sd gives up all its 6 before 3.1 sd loses 3.
    assert one_family(Chebyshev(), x, 33, variance=variance) == [0, 0, 1, 32]


def test_cells_begin_higher_where_raising_all_alike_falls_short_of_the_total():
    """Raised by 1 / 13 sd each they would begin at 2, 3, 0 and 1: 4 and 2 are out of reach."""
    x, variance = [1.375, 3.25, 0.0, 1.375], np.array([64.0, 1.0, 4.0, 4.0])
    assert one_family(Chebyshev(), x, 7, variance=variance) == [3, 3, 0, 1]


@pytest.mark.slow
def test_ten_million_cells_are_one_family():
    x = np.zeros(10_000_000)
    x[::1000] = 50.25
    x += np.arange(len(x)) % 7 - 3.0
    y = Chebyshev().project(x, np.array([0, len(x)]), np.array([500_000]), 4.0)
    assert y.sum() == 500_000
    assert y.min() == 0
