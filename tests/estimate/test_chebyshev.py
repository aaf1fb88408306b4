import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.estimate.chebyshev import Chebyshev
from tests.estimate.families import one_family, small_families
from tests.estimate.oracles import algorithm_4, compositions, distance


def any_family(rng: np.random.Generator) -> tuple[list[int], int]:
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
    families: list[tuple[list[int], int]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Families as the three arrays of `Estimator.project`."""
    noisy = np.array([value for x, _ in families for value in x])
    start = np.cumsum([0, *(len(x) for x, _ in families)])
    return noisy, start, np.array([c for _, c in families])


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
