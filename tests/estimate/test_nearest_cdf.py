import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.families.isotonic import Isotonic

values = st.integers(-6, 8)


def cost(counts, noisy, variance):
    """Σ w_j (Y_j - X_j)², w_j the inverse variance of X_j given the sum of all."""
    upto = np.cumsum(variance)[:-1]
    weights = upto[-1:] / upto if len(upto) == 0 else sum(variance) / upto / (sum(variance) - upto)
    gaps = (np.cumsum(counts) - np.cumsum(noisy))[:-1]
    return float((weights * gaps**2).sum())


@given(data=st.data())
def test_no_other_family_is_nearer(data):
    cells, total = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 5))
    noisy = np.array(data.draw(st.lists(values, min_size=cells, max_size=cells)), dtype=np.int64)
    spread = data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=cells, max_size=cells))
    variance = np.array(spread)
    start, totals = np.array([0, cells]), np.array([total])
    found = Isotonic().project(noisy, start, totals, variance)
    assert found.sum() == total
    assert found.min() >= 0
    every = itertools.product(range(total + 1), repeat=cells)
    best = min(cost(np.array(y), noisy, variance) for y in every if sum(y) == total)
    assert cost(found, noisy, variance) == pytest.approx(best, abs=1e-9)


def test_nearest_is_weighted_by_the_inverse_variances():
    """Of each row by itself, with its own total."""
    cumulative, totals = np.array([[3.0, 1.0, 4.0], [0.0, 9.0, 9.0]]), np.array([4, 2])
    sure_of_the_first = Isotonic.nearest(cumulative, totals, np.array([1e-6, 1.0, 0.0]))
    sure_of_the_second = Isotonic.nearest(cumulative, totals, np.array([1.0, 1e-6, 0.0]))
    assert sure_of_the_first.tolist() == [[3, 0, 1], [0, 2, 0]]
    assert sure_of_the_second.tolist() == [[1, 0, 3], [0, 2, 0]]


def test_equal_variances_of_zero_are_equal_weights():
    assert Isotonic.nearest(np.array([[2.0, 1.0, 4.0]]), np.array([4]), np.zeros(3)).sum() == 4


@pytest.mark.parametrize(("last", "total"), [(np.nan, 3), (2.0, -1), (2.0, (1 << 53) + 1)])
def test_cumulative_counts_that_no_double_holds_are_refused(last, total):
    with pytest.raises(EstimateError, match="cumulative counts must be finite, and totals"):
        Isotonic.nearest(np.array([[1.0, last]]), np.array([total]), np.ones(2))
