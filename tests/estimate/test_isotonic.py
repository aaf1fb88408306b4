import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.rameshwar.isotonic import isotonic_absolute, isotonic_squared

NORMS = ["absolute", "squared", "weighted"]


def trellis(x, total, cost):
    """The least cost of a path through the trellis of Rameshwar, Section VI: O(K N²)."""
    best = [Fraction(0)] * (total + 1)
    for i, value in enumerate(x[:-1]):
        best = [
            min(best[before] for before in range(y + 1)) + cost(i, y, Fraction(value))
            for y in range(total + 1)
        ]
    return Fraction(min(best) + cost(len(x) - 1, total, Fraction(x[-1])))


def cost_of(norm, weights):
    if norm == "absolute":
        return lambda _, y, x: abs(y - x)
    if norm == "squared":
        return lambda _, y, x: (y - x) ** 2
    return lambda i, y, x: Fraction(weights[i]) * (y - x) ** 2


def fit(norm, x, total, weights):
    if norm == "absolute":
        return isotonic_absolute(x, total)
    return isotonic_squared(x.astype(float), total, 1 / weights if norm == "weighted" else None)


def problems(rng, number, kind):
    """Random cumulative counts with much and with little noise, some far out of bounds."""
    for _ in range(number):
        bins, total = int(rng.integers(1, 9)), int(rng.integers(0, 9))
        truth = np.sort(rng.integers(0, total + 1, bins))
        x = truth + rng.normal(0, rng.choice([0.3, 2, 6]), bins)
        if kind == "integer":
            x = np.round(x)
        elif kind == "halves":
            x = np.round(2 * x) / 2
        weights = rng.choice([0.25, 1.0, 4.0], bins)
        yield x.astype(np.int64 if kind == "integer" else np.float64), total, weights


each_norm = pytest.mark.parametrize("norm", NORMS)


@each_norm
@pytest.mark.parametrize(("kind", "number"), [("integer", 500), ("halves", 250), ("real", 250)])
def test_the_objective_is_that_of_the_papers_trellis(norm, kind, number):
    for x, total, weights in problems(np.random.default_rng(5), number, kind):
        cost = cost_of(norm, weights)
        y = fit(norm, x, total, weights)
        found = sum(cost(i, int(a), Fraction(b)) for i, (a, b) in enumerate(zip(y, x, strict=True)))
        least = trellis(x.tolist(), total, cost)
        if kind == "real":
            assert float(found) == pytest.approx(float(least), abs=1e-12)
        else:
            assert found == least, (x, total, weights)


@each_norm
@given(
    x=st.lists(st.floats(-100, 1000), min_size=1, max_size=60),
    total=st.integers(0, 500),
    whole=st.booleans(),
)
def test_the_result_is_a_distribution_and_its_own_fit(norm, x, total, whole):
    array = np.array(x, dtype=np.int64 if whole else np.float64)
    weights = np.linspace(1, 2, len(x))
    y = fit(norm, array, total, weights)
    assert y.dtype == np.int64
    assert all(a <= b for a, b in pairwise([0, *y.tolist()]))
    assert y[-1] == total
    assert (fit(norm, y, total, weights) == y).all()


@each_norm
def test_counts_beyond_any_integer_are_moved_to_the_bounds(norm):
    x = np.array([-1e300, 2.0, 1e300, 5.0])
    low, middle = fit(norm, x[:2], 5, np.ones(2)), fit(norm, x[[0, 1, 3]], 5, np.ones(3))
    assert (low.tolist(), middle.tolist()) == ([0, 5], [0, 2, 5])
    assert fit(norm, x, 5, np.ones(4)).tolist() == [0, 2, 5, 5]


def test_halves_are_rounded_up_block_by_block():
    assert list(isotonic_squared(np.array([1.0, 0, 9]), 9)) == [1, 1, 9]
    assert list(isotonic_squared(np.array([0.5, 2.5, 9]), 9)) == [1, 3, 9]
    almost = float(np.nextafter(0.5, 0))
    assert list(isotonic_squared(np.array([almost, 3.0]), 3)) == [0, 3]


def test_weights_draw_a_block_to_the_better_known_count():
    x = np.array([10.0, 0, 20])
    assert list(isotonic_squared(x, 20, np.array([1.0, 9, 9]))) == [9, 9, 20]
    assert list(isotonic_squared(x, 20, np.array([9.0, 1, 9]))) == [1, 1, 20]


def test_absolute_error_ignores_how_far_an_outlier_is():
    for outlier in (40.0, 4000.0):
        x = np.array([1, 2, outlier, 3, 4, 50])
        assert isotonic_absolute(x, 50).tolist() == [1, 2, 4, 4, 4, 50]


@each_norm
def test_one_bin_and_no_records_leave_no_choice(norm):
    one = np.ones(1)
    assert list(fit(norm, np.array([5.5]), 3, one)) == [3]
    assert list(fit(norm, np.array([5.5, -2.0, 1.0]), 0, np.ones(3))) == [0, 0, 0]


@each_norm
def test_a_million_bins_take_less_than_a_second_of_a_processor(norm):
    """At most a half of it, in fact; processor time is our own, whatever else the machine does."""
    rng = np.random.default_rng(5)
    x = np.cumsum(rng.integers(0, 3, 10**6)) + rng.integers(-2000, 2000, 10**6)
    weights = rng.uniform(1, 2, len(x))
    fit(norm, x[:100], 50, weights[:100])  # compiled
    begun = time.process_time()
    found = fit(norm, x, 10**6, weights)
    assert time.process_time() - begun < 1
    assert (np.diff(found) >= 0).all()
    assert found[-1] == 10**6


@each_norm
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_a_large_table_agrees_with_itself_in_pieces_of_known_counts(norm, dtype):
    """Where a count is far above all before and far below all after it, the problem splits."""
    rng = np.random.default_rng(3)
    pieces = [np.round(1000 * k + rng.normal(0, 50, 40)) for k in range(1, 6)]
    x = np.concatenate(pieces).astype(dtype)
    weights = rng.uniform(1, 2, len(x))
    whole = fit(norm, x, 9000, weights)
    start = 0
    for piece in pieces[:-1]:
        end = start + len(piece)
        part = np.append(x[start:end], x.dtype.type(9000))
        alone = fit(norm, part, 9000, np.append(weights[start:end], 1.0))
        assert (alone[:-1] == whole[start:end]).all()
        start = end
