"""Real values, variances, and the descriptions in a manifest: what holds for every estimator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.sparse import Sparse
from hedgerow.estimate.registry import ESTIMATORS, read_estimator
from tests.estimate.families import any_variances, one_family

every_estimator = pytest.mark.parametrize(
    "estimator", [Chebyshev(), Euclidean(), Sparse()], ids=lambda e: e.name
)
values = st.one_of(
    st.floats(-60, 60),
    st.integers(-80, 400).map(lambda eighths: eighths / 8),
    st.floats(-(2.0**40), 2.0**40),
)
spreads = st.one_of(
    st.sampled_from([0.25, 1.0, 3.0, 400.0]), st.floats(1e-3, 1e3), st.floats(2.0**-300, 2.0**300)
)
cells = st.lists(st.tuples(values, spreads), min_size=1, max_size=12)
totals = st.one_of(st.integers(0, 60), st.integers(0, 2**40))


@every_estimator
@given(cells=cells, c=totals, extremes=st.lists(st.sampled_from([0, 1, 2]), max_size=12))
@settings(deadline=None, max_examples=250)
@pytest.mark.sweep(3)
def test_real_estimates_are_not_negative_and_sum_to_the_total(estimator, cells, c, extremes):
    x, variance = (np.array(column) for column in zip(*cells, strict=True))
    for i, kind in enumerate(extremes[: len(x)]):
        if kind == 1:
            x[i], variance[i] = abs(np.rint(x[i])), 0
        if kind == 2:
            variance[i] = np.inf
    y = one_family(estimator, x, c, variance=variance)
    assert min(y) >= 0
    assert sum(y) == c


@every_estimator
def test_cells_in_another_order_get_the_same_real_estimates(estimator):
    rng = np.random.default_rng(1)
    for _ in range(1000):
        x = rng.normal(3, 9, rng.integers(1, 30))
        variance = any_variances(rng, len(x), "mild")
        order = rng.permutation(len(x))
        c = int(rng.integers(0, 60))
        y = np.array(one_family(estimator, x, c, variance=variance))
        assert one_family(estimator, x[order], c, variance=variance[order]) == y[order].tolist()


@every_estimator
@pytest.mark.parametrize("widest", [2, 9, 700])
def test_every_real_family_is_estimated_by_itself(estimator, widest):
    rng = np.random.default_rng(3)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, widest + 1, 60))])
    x = rng.normal(2, 20, start[-1])
    variance = any_variances(rng, len(x), "few")
    total = rng.integers(0, 300, 60)
    together = estimator.project(x, start, total, variance)
    for f in range(60):
        cells = slice(start[f], start[f + 1])
        alone = one_family(estimator, x[cells], int(total[f]), variance=variance[cells])
        assert together[cells].tolist() == alone


@every_estimator
def test_only_ratios_of_variances_matter_save_for_a_penalty(estimator):
    rng = np.random.default_rng(5)
    for _ in range(300):
        x = rng.integers(-9, 20, rng.integers(1, 9)).astype(np.float64)
        variance = any_variances(rng, len(x), "few")
        c = int(rng.integers(0, 40))
        once = one_family(estimator, x, c, variance=variance)
        same = [2.0**-200 * variance, 2.0**200 * variance]
        if estimator.name != "sparse":
            assert all(one_family(estimator, x, c, variance=v) == once for v in same)


@every_estimator
def test_strided_values_and_variances_are_read_as_they_are(estimator):
    x, variance = np.array([5.5, 99, -2, 99, 3, 99]), np.array([1.0, 9, 2, 9, 3, 9])
    copies = x[::2].copy(), variance[::2].copy()
    found = one_family(estimator, x[::2], 6, variance=variance[::2])
    assert found == one_family(estimator, copies[0], 6, variance=copies[1])


@every_estimator
def test_ten_thousand_clustered_values_take_a_moment(estimator):
    """Costs that nearly coincide, down to the resolution of doubles, do not stall a search."""
    rng = np.random.default_rng(9)
    for spread in (0.0, 1e-15, 1e-9, 1e-3):
        x = 1e6 + rng.normal(0, 1, 10_000) * spread
        y = one_family(estimator, x, 5_000_000_123, variance=np.full(10_000, 2.0))
        assert sum(y) == 5_000_000_123
        if estimator.name != "sparse":
            assert max(y) - min(y) <= 1


@every_estimator
def test_a_cell_of_variance_0_keeps_its_value(estimator):
    x, variance = np.array([7.0, 40.0, 30.0]), np.array([0.0, 1.0, 1.0])
    y = one_family(estimator, x, 50, variance=variance)
    assert y[0] == 7
    assert y[1:] == one_family(estimator, x[1:], 43, variance=variance[1:])


@every_estimator
def test_cells_of_variance_0_beyond_the_total_are_projected_alone(estimator):
    variance = np.array([0.0, 0.0, 1.0, np.inf])
    assert one_family(estimator, [9.0, 5.0, 40.0, 3.0], 10, variance=variance) == [7, 3, 0, 0]
    assert one_family(estimator, [9.0, 5.0], 20, variance=np.zeros(2)) == [12, 8]


@every_estimator
def test_cells_of_infinite_variance_share_evenly_what_the_others_leave(estimator):
    variance = np.array([1.0, np.inf, 0.0, np.inf, np.inf])
    y = one_family(estimator, [20.3, -7.0, 4.0, 1e9, 0.0], 35, variance=variance)
    assert (y[0], y[2]) == (20, 4)
    assert sorted([y[1], *y[3:]]) == [3, 4, 4]


@every_estimator
def test_cells_of_infinite_variance_are_0_where_nothing_is_left(estimator):
    x, variance = np.array([20.3, 30.0, 8.0]), np.array([1.0, 2.0, np.inf])
    y = one_family(estimator, x, 45, variance=variance)
    assert y == [*one_family(estimator, x[:2], 45, variance=variance[:2]), 0]


@every_estimator
def test_one_infinite_variance_for_all_shares_the_total_evenly(estimator):
    assert one_family(estimator, [9, -3, 100], 8, variance=np.inf) == [2, 3, 3]


@every_estimator
def test_a_penalty_holds_next_to_cells_of_infinite_variance(estimator):
    """The first cell's gain is x² = 1, less than half its variance: a penalty of 0.5 takes it."""
    y = one_family(estimator, [1.0, 0.0], 9, variance=np.array([4.0, np.inf]))
    assert y == ([0, 9] if estimator.name == "sparse" else [1, 8])


@every_estimator
@pytest.mark.parametrize("variance", [-1.0, np.nan, -(2.0**-301), 2.0**301, -np.inf])
def test_what_is_no_variance_is_refused(estimator, variance):
    with pytest.raises(EstimateError, match="a variance must be from 0 to"):
        one_family(estimator, [1, 2], 3, variance=np.array([1.0, variance]))
    with pytest.raises(EstimateError, match="a variance must be from 0 to"):
        one_family(estimator, [1.0, 2.0], 3, variance=variance)


@every_estimator
@pytest.mark.parametrize("variance", [2.0**-301, 5e-324])
def test_next_to_no_variance_is_the_least_that_there_is(estimator, variance):
    x = [1.2, 2.0, 8.9]
    for tiny in (np.array([1.0, variance, variance]), np.full(3, variance), variance):
        least = np.maximum(tiny, 2.0**-300) if isinstance(tiny, np.ndarray) else 2.0**-300
        expected = one_family(estimator, x, 10, variance=least)
        assert one_family(estimator, x, 10, variance=tiny) == expected


@every_estimator
@pytest.mark.parametrize("value", [-1.0, 1.5])
def test_a_known_cell_that_is_no_count_is_refused(estimator, value):
    with pytest.raises(EstimateError, match="variance 0 is known exactly"):
        one_family(estimator, [1.0, value], 3, variance=np.array([1.0, 0.0]))


@every_estimator
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_refused(estimator, value):
    with pytest.raises(EstimateError, match="must be finite"):
        one_family(estimator, [1.5, value], 3, variance=1.0)


@every_estimator
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_value_that_doubles_cannot_place_counts_as_the_limit(estimator, sign):
    beyond, at = (one_family(estimator, [1.5, sign * 2.0**k], 3, variance=1.0) for k in (41, 40))
    assert beyond == at


@every_estimator
def test_real_totals_beyond_2_to_the_40_are_refused(estimator):
    assert sum(one_family(estimator, [1.5, 2], 2**40, variance=1.0)) == 2**40
    with pytest.raises(EstimateError, match="at most 1099511627776"):
        one_family(estimator, [1.5, 2], 2**40 + 1, variance=1.0)


@every_estimator
@pytest.mark.parametrize("variance", [np.ones(2, dtype=np.float32), [1.0, 2.0], True, "1"])
def test_variances_of_another_type_are_refused(estimator, variance):
    with pytest.raises(EstimateError, match="variance must be a NumPy array of float64"):
        one_family(estimator, [1.5, 2], 3, variance=variance)


@every_estimator
def test_variances_of_another_length_are_refused(estimator):
    with pytest.raises(EstimateError, match="one entry a cell"):
        one_family(estimator, [1, 2], 3, variance=np.ones(3))


def test_a_description_is_read_back():
    for described in (
        {"method": "chebyshev"},
        {"method": "euclidean"},
        {"method": "sparse", "penalty": 0.25},
    ):
        estimator = read_estimator(described)
        assert estimator.to_dict() == described
        assert estimator.name == described["method"]


def test_every_estimator_has_defaults_and_goes_by_its_name():
    for name, make in ESTIMATORS.items():
        assert make().name == name


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"method": "median"}, 'must be one of "chebyshev", "euclidean", "sparse".* got .median.'),
        ({}, "must be one of .* got None"),
        ({"method": ["chebyshev"]}, "must be one of"),
        ({"method": "chebyshev", "penalty": 1.0}, '"chebyshev" does not take .* penalty'),
        ({"method": "sparse", "penalty": "1"}, "penalty must be a number from 0 on, got '1'"),
        ({"method": "sparse", "penalty": True}, "penalty must be a number from 0 on"),
        ({"method": "sparse", "penalty": -0.1}, "penalty must be a number from 0 on"),
        ({"method": "sparse", "penalty": float("nan")}, "penalty must be a number from 0 on"),
        ({"method": "sparse", "penalty": float("inf")}, "penalty must be a number from 0 on"),
    ],
    ids=range(9),
)
def test_a_description_of_nothing_known_is_refused(described, message):
    with pytest.raises(EstimateError, match=message):
        read_estimator(described)
