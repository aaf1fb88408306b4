import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.running_sums import Decoded, Strategy
from hedgerow.limits import MOST_SUMMED_BINS
from tests.estimate.dense import Dense, of_cuts

few_bins = st.integers(2, 40)


def matrix(bins):
    """W, entry by entry."""
    weights = Strategy.of(bins).weights
    lag = np.subtract.outer(np.arange(bins), np.arange(bins))
    return np.where(lag >= 0, weights[np.abs(lag)], 0)


def least_squares(bins, variance, *, known):
    """Of the bins, whose sum may be known."""
    total = np.ones((int(known), bins))
    return Dense.of([(matrix(bins), variance), (total, 0.0)])


@given(bins=few_bins)
def test_the_price_is_the_largest_of_all_columns_and_pairs(bins):
    columns = matrix(bins).T
    gaps = columns[:, None] - columns[None]
    found = Strategy.of(bins)
    assert found.column_squared == max(int(c @ c) for c in columns)
    assert found.distance_squared == int((gaps**2).sum(axis=2).max())


@pytest.mark.parametrize("bins", [2, 100, 997, 4096])
def test_the_weights_are_the_scaled_square_root_of_the_prefix_sums(bins):
    found = Strategy.of(bins)
    assert found.scale & (found.scale - 1) == 0
    assert 32 * bins**0.5 <= found.scale < 64 * bins**0.5
    square = np.convolve(found.weights, found.weights)[:bins] / found.scale**2
    assert np.allclose(square, 1, atol=0.05)  # (1 - z)^(-1/2) squared is 1 + z + z² + …
    assert found.weights.min() >= 18


@given(bins=few_bins, seed=st.integers(0, 99))
def test_sums_are_those_of_the_matrix_and_decode_to_the_truth(bins, seed):
    leaves = np.random.default_rng(seed).integers(0, 1 << 30, bins)
    found = Strategy.of(bins)
    sums = found.sums(leaves[None])
    assert np.array_equal(sums[0], matrix(bins) @ leaves)
    decoded = Decoded(found, 1.0, known=1.0)
    cumulative = decoded.estimate(sums)
    for each in (cumulative, decoded.given_totals(cumulative, leaves.sum(keepdims=True))):
        assert np.allclose(each[0, 1:], np.cumsum(leaves), rtol=1e-12)


def test_the_largest_table_in_the_most_bins_does_not_wrap():
    leaves = np.zeros(MOST_SUMMED_BINS, dtype=np.int64)
    leaves[0] = 1 << 39
    (sums,) = Strategy.of(MOST_SUMMED_BINS).sums(leaves[None])
    assert sums[0] == (1 << 39) * Strategy.of(MOST_SUMMED_BINS).scale
    assert sums[0] < 1 << 53
    assert (sums > 0).all()


@pytest.mark.parametrize("known", [False, True])
@given(bins=few_bins, share=st.floats(0.01, 0.99))
def test_variances_are_those_of_a_dense_inverse(bins, share, known):
    wanted = of_cuts(least_squares(bins, 7.0, known=known))
    decoded = Decoded(Strategy.of(bins), 7.0, float(known))
    own = np.diag(wanted)
    near = {"rtol": 1e-9, "atol": 1e-9 * own.max()}
    assert np.allclose(decoded.cuts, own, **near)
    first, last = np.triu_indices(bins + 1, 1)
    between = own[first] + own[last] - 2 * wanted[first, last]
    assert np.allclose(decoded.between(first, last), between, **near)
    assert np.allclose(decoded.leaves, between[last == first + 1], **near)
    excess = own + share**2 * own[-1] - 2 * share * wanted[:, -1]
    assert np.allclose(decoded.excess(share), excess, **near)


def test_a_known_total_is_kept_and_used_as_least_squares_uses_it():
    bins, rng = 12, np.random.default_rng(3)
    leaves = rng.integers(0, 50, bins)
    noisy = Strategy.of(bins).sums(leaves[None]) + rng.integers(-900, 900, bins)
    total, decoded = int(leaves.sum()), Decoded(Strategy.of(bins), 1.0, known=1.0)
    (found,) = decoded.given_totals(decoded.estimate(noisy), np.array([total]))
    best = least_squares(bins, 1.0, known=True).gain @ [*noisy[0], total]
    assert found[0] == 0
    assert found[-1] == total
    assert np.allclose(found[1:], np.cumsum(best))


@pytest.mark.parametrize("bins", [0, 1, MOST_SUMMED_BINS + 1])
def test_too_few_and_too_many_bins_are_refused(bins):
    with pytest.raises(EstimateError, match=r"2 to 2\^16 bins"):
        Strategy.of(bins)
