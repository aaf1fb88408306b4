"""The contract: what holds for every estimator."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import kernels
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_structure
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.families.sparse import Sparse
from hedgerow.limits import LARGEST_FAMILY
from tests.estimate.families import Given, family, one_family, sparse_table, total

ESTIMATORS: list[Any] = [
    Chebyshev(),
    Given("real chebyshev", Chebyshev(), real=True),
    Given("weighted chebyshev", Chebyshev(), "unequal"),
    Euclidean(),
    Given("real euclidean", Euclidean(), 2.0, real=True),
    Given("weighted euclidean", Euclidean(), "unequal"),
    Given("sparse", Sparse(), 4.0),
    Given("real sparse", Sparse(2.0), 3.0, real=True),
    Given("weighted sparse", Sparse(), "unequal"),
]
IN_ORDER = [estimator for estimator in ESTIMATORS if "chebyshev" in estimator.name]
EVENLY = [estimator for estimator in ESTIMATORS if estimator not in IN_ORDER]
ALIKE = [estimator for estimator in EVENLY if "weighted" not in estimator.name]
OF_ORDERED_CHILDREN: list[Any] = [
    Given("isotonic", Isotonic(), 2.0),
    Given("weighted isotonic", Isotonic(), "unequal"),
]


def pytest_generate_tests(metafunc):
    """Every test sees every estimator, but for those about some of them."""
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    some = {"in_order": IN_ORDER, "evenly": EVENLY, "alike": ALIKE}
    every = ESTIMATORS + OF_ORDERED_CHILDREN
    for mark in marks & set(some):
        every = some[mark]
    metafunc.parametrize("estimator", every, ids=lambda e: e.name)


few_seconds = settings(deadline=None, max_examples=120)


@given(x=family, c=total)
@few_seconds
@pytest.mark.sweep(3)
def test_estimates_are_not_negative_and_sum_to_the_total(estimator, x, c):
    y = one_family(estimator, x, c)
    assert min(y) >= 0
    assert sum(y) == c


@given(x=st.lists(st.integers(0, 2**29), min_size=1, max_size=12))
@few_seconds
def test_consistent_counts_stay_as_they_are(estimator, x):
    if "sparse" in estimator.name:  # what a penalty may take is far below the noise
        x = [value * 100 for value in x]
    assert one_family(estimator, x, sum(x)) == x


@pytest.mark.in_order
@given(x=st.sets(st.integers(-50, 50), min_size=1, max_size=12), c=total, data=st.data())
@few_seconds
def test_cells_in_another_order_get_the_same_estimates(estimator, x, c, data):
    shuffled = data.draw(st.permutations(sorted(x)))
    before = dict(zip(sorted(x), one_family(estimator, sorted(x), c), strict=True))
    after = dict(zip(shuffled, one_family(estimator, shuffled, c), strict=True))
    assert after == before


@pytest.mark.evenly
@given(x=st.sets(st.integers(-50, 50), min_size=1, max_size=12), c=total, data=st.data())
@few_seconds
def test_cells_in_another_order_get_the_same_estimates_but_for_a_record(estimator, x, c, data):
    shuffled = data.draw(st.permutations(sorted(x)))
    before = dict(zip(sorted(x), one_family(estimator, sorted(x), c), strict=True))
    after = dict(zip(shuffled, one_family(estimator, shuffled, c), strict=True))
    assert all(abs(after[value] - before[value]) <= 1 for value in x)


@pytest.mark.alike
@given(x=st.sets(st.integers(-50, 50), min_size=2, max_size=12), c=total)
@few_seconds
def test_a_smaller_noisy_count_is_at_most_a_record_ahead(estimator, x, c):
    y = one_family(estimator, sorted(x), c)
    assert all(later >= earlier - 1 for earlier, later in pairwise(y))


@pytest.mark.in_order
@given(x=st.lists(st.integers(-5, 5), min_size=2, max_size=12), c=st.integers(0, 40))
@few_seconds
def test_of_equal_noisy_counts_the_last_keeps_most(estimator, x, c):
    y = one_family(estimator, x, c)
    for value in set(x):
        same = [y_i for y_i, x_i in zip(y, x, strict=True) if x_i == value]
        assert same == sorted(same)


@given(x=family)
@few_seconds
@pytest.mark.sweep(3)
def test_a_family_with_a_zero_parent_gets_only_zeros(estimator, x):
    assert one_family(estimator, x, 0) == [0] * len(x)


@given(x=family, c=total)
@few_seconds
@pytest.mark.sweep(3)
def test_a_single_child_gets_the_whole_total(estimator, x, c):
    assert one_family(estimator, x[:1], c) == [c]


def test_every_family_is_estimated_by_itself(estimator):
    noisy, start, totals = sparse_table(np.random.default_rng(3), 400, 12)
    together = estimator.project(noisy, start, totals)
    for f, c in enumerate(totals.tolist()):
        cells = slice(start[f], start[f + 1])
        assert together[cells].tolist() == one_family(estimator, noisy[cells], c)


@pytest.mark.parametrize("widest", [3, 5000])
def test_threads_change_nothing(estimator, widest, monkeypatch):
    noisy, start, totals = sparse_table(np.random.default_rng(5), 400_000 // widest, widest)
    threads = ThreadPoolExecutor(4)
    used = Mock(wraps=threads)
    monkeypatch.setattr(kernels, "_threads", lambda: used)
    monkeypatch.setattr(kernels, "core_count", lambda: 1)
    alone = estimator.project(noisy, start, totals)
    used.submit.assert_not_called()
    monkeypatch.setattr(kernels, "core_count", lambda: 7)
    together = estimator.project(noisy, start, totals)
    threads.shutdown()
    assert used.submit.call_count > 3
    assert (together == alone).all()


def test_the_noisy_counts_are_left_alone_even_when_read_only(estimator):
    noisy, start, totals = sparse_table(np.random.default_rng(7), 50, 12)
    copies = [array.copy() for array in (noisy, start, totals)]
    for array in (noisy, start, totals):
        array.flags.writeable = False
    first = estimator.project(noisy, start, totals)
    assert (first == estimator.project(*copies)).all()
    assert (noisy == copies[0]).all()


def test_strided_noisy_counts_are_read_as_they_are(estimator):
    noisy = np.array([5, 99, -2, 99, 3, 99])
    assert one_family(estimator, noisy[::2], 4) == one_family(estimator, noisy[::2].copy(), 4)


def test_empty_families_and_no_families_are_fine(estimator):
    nothing = np.array([], dtype=np.int64)
    assert estimator.project(nothing, np.array([0]), nothing).tolist() == []
    assert estimator.project(nothing, np.array([0, 0]), np.array([0])).tolist() == []
    start, totals = np.array([0, 0, 2, 2, 3, 3]), np.array([0, 3, 0, 2, 0])
    assert estimator.project(np.array([3, 0, 9]), start, totals).tolist() == [3, 0, 2]


BROKEN_RULES = [
    ([1, 2], [0, 0, 2], [1, 3], "family 0 has no cells but a positive total"),
    ([1, 2], [0, 1, 2], [1, -1], "totals must not be negative"),
    ([1, 2], [0, 1, 2], [1, 2**61 + 1], "totals must be at most"),
    ([1, 2], [0, 3, 2], [1, 1], "must not decrease, but does after family 1"),
    ([1, 2], [0, 2**63 - 1, -(2**63), 2], [1, 1, 1], "at most 2.29 are possible"),
    ([1, 2], [0, -(2**63), 2**63 - 1, 2], [1, 1, 1], "must not decrease"),
    ([1, 2], [0, 1], [1], "end with the number of cells, 2"),
    ([1, 2], [1, 2], [1], "must begin with 0"),
    ([1, 2], [0, 1, 2], [1], "one entry more than totals"),
    ([1, 2], [], [], "one entry more than totals"),
    ([[1, 2]], [0, 1], [1], "noisy.* must be a NumPy array of int64.*in 2 dimensions"),
]


def test_arrays_that_break_a_rule_are_refused(estimator):
    for *broken, message in BROKEN_RULES:
        arrays = [np.array(values, dtype=np.int64) for values in broken]
        with pytest.raises(EstimateError, match=message):
            estimator.project(*arrays)


def test_noisy_counts_beyond_their_limits_count_as_these_or_are_refused_by_integers(estimator):
    """Real-valued estimates stop at 2^40: how large a table is is no reason to refuse it."""
    for noisy in ([2**61 + 1, 2], [1, -(2**61) - 1], [1, -(2**63)]):
        arrays = np.array(noisy), np.array([0, 2]), np.array([2**40])
        if estimator.name in {"chebyshev", "euclidean"} and not isinstance(estimator, Given):
            with pytest.raises(EstimateError, match=r"noisy counts .*must.* lie between"):
                estimator.project(*arrays)
            continue
        cut = np.clip(arrays[0], -(2**40), 2**40)
        found = estimator.project(*arrays)
        assert found.tolist() == estimator.project(cut, *arrays[1:]).tolist()
        assert found.sum() == 2**40


def test_other_dtypes_are_refused(estimator):
    for dtype in (np.int32, np.uint64, np.bool_, object):
        for position in range(3):
            arrays = [np.array([1, 2]), np.array([0, 2]), np.array([3])]
            arrays[position] = arrays[position].astype(dtype)
            with pytest.raises(EstimateError, match="must be a NumPy array of int64"):
                estimator.project(*arrays)


def test_a_list_is_not_an_array(estimator):
    with pytest.raises(EstimateError, match=r"family_start must be a NumPy array.* got list"):
        estimator.project(np.array([1, 2]), [0, 2], np.array([3]))


def test_a_family_too_wide_for_exact_sums_is_refused(estimator):
    """Tested on the structure alone: such a family has 4 GiB of cells."""
    assert estimator.name
    start, totals = np.array([0, LARGEST_FAMILY + 1]), np.array([1])
    with pytest.raises(EstimateError, match=r"at most 2\^29"):
        check_structure(LARGEST_FAMILY + 1, start, totals, 10)
