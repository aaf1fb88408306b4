"""The sums of errors that bias² and variance rest on, laid out and sparse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.evaluate import moments
from hedgerow.evaluate.method import CuboidCounts, align_cells
from hedgerow.evaluate.moments import ErrorSums

CELLS = 30
lists = st.dictionaries(st.integers(0, CELLS - 1), st.integers(-50, 50), max_size=CELLS)


def cells_of(given):
    number = np.array(sorted(given), dtype=np.int64)
    return CuboidCounts(number, np.array([given[n] for n in number], dtype=np.int64))


@given(lists, lists)
def test_two_lists_stand_align_cells(one, other):
    number, a, b = align_cells(cells_of(one), cells_of(other), CELLS)
    assert number.tolist() == sorted({*one, *other})
    assert a.tolist() == [one.get(n, 0) for n in number]
    assert b.tolist() == [other.get(n, 0) for n in number]


@given(lists, lists)
def test_a_list_of_all_cells_lays_the_other_out(one, other):
    every = CuboidCounts(None, cells_of(one).dense(CELLS))
    number, a, b = align_cells(every, cells_of(other), CELLS)
    assert number is None
    assert a.tolist() == [one.get(n, 0) for n in range(CELLS)]
    assert b.tolist() == [other.get(n, 0) for n in range(CELLS)]


def summed(errors, *, sparse):
    """What `ErrorSums` finds of a matrix (runs, cells)."""
    sums = ErrorSums(errors.shape[1], len(errors))
    for run, row in enumerate(errors):
        number = np.flatnonzero(row)
        sums.add(run, CuboidCounts(number, row[number]) if sparse else CuboidCounts(None, row))
    return sums.moments((errors.astype(float) ** 2).sum(axis=1))


@given(st.integers(3, 20), st.integers(0, 2**32 - 1))
def test_sums_find_bias_and_variance_of_every_cell(runs, seed):
    rng = np.random.default_rng(seed)
    errors = rng.integers(-9, 10, (runs, CELLS)) * (rng.random((runs, CELLS)) < 0.4)
    found = summed(errors, sparse=False)
    variance = errors.var(axis=0, ddof=1).mean()
    assert found["variance"] == pytest.approx(variance, rel=1e-9)
    bias2 = (errors.mean(axis=0) ** 2).mean() - variance / runs
    assert found["bias2"] == pytest.approx(bias2, rel=1e-9, abs=1e-9)
    assert summed(errors, sparse=True) == found


@given(st.integers(3, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.04, 0.1]))
def test_sparse_sums_are_those_of_all_cells(runs, seed, share):
    """Few cells are in error in the first case; more than half of them, in the end, in the last."""
    rng = np.random.default_rng(seed)
    errors = rng.integers(-9, 10, (runs, 200)) * (rng.random((runs, 200)) < share)
    assert summed(errors, sparse=True) == summed(errors, sparse=False)


def test_errors_of_very_many_cells_are_those_of_few():
    """Of so many that runs² × cells passes 2⁶³."""
    rng = np.random.default_rng(3)
    errors = rng.integers(-9, 10, (120, 50))
    few, many = (ErrorSums(cells, len(errors)) for cells in (10**6, 2**54))
    for run, row in enumerate(errors):
        for sums in (few, many):
            sums.add(run, CuboidCounts(np.arange(50), row))
    squares = (errors.astype(float) ** 2).sum(axis=1)
    found = [np.array([*each.moments(squares).values()]) * each.cells for each in (few, many)]
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def test_cells_are_dense_once_half_of_them_had_an_error():
    sums = ErrorSums(CELLS, 1)
    for n, dense in ((3, False), (14, False), (15, True), (2, True)):
        sums.add(0, CuboidCounts(np.arange(n), np.ones(n, dtype=np.int64)))
        assert (sums._sums[0].number is None) == dense
    assert sums._sums[0].values.tolist() == [4] * 2 + [3] + [2] * 11 + [1] + [0] * 15


def test_the_jackknife_leaves_out_one_group_at_a_time():
    rng = np.random.default_rng(3)
    errors = rng.integers(-5, 9, (6, CELLS))
    found = summed(errors, sparse=False)
    parts = []
    for r in range(6):
        rest = np.delete(errors, r, axis=0)
        variance = rest.var(axis=0, ddof=1).mean()
        parts.append(((rest.mean(axis=0) ** 2).mean() - variance / 5, variance))
    wanted = np.sqrt(5 / 6 * ((np.array(parts) - np.mean(parts, axis=0)) ** 2).sum(axis=0))
    assert [found["bias2_error"], found["variance_error"]] == pytest.approx(wanted.tolist())


def test_bias_is_left_out_where_too_many_cells_had_an_error(monkeypatch):
    monkeypatch.setattr(moments, "MOST_CELLS_OF_RUNS", 0)
    monkeypatch.setattr(moments, "MOST_SUMS_OF_RUNS", 16)
    errors = np.ones((4, CELLS), dtype=np.int64)
    assert summed(errors, sparse=True) is None
    assert summed(errors * (np.arange(CELLS) == 3), sparse=True)["bias2"] == pytest.approx(
        1 / CELLS
    )


def test_many_cells_have_fewer_groups_of_runs(monkeypatch):
    monkeypatch.setattr(moments, "MOST_SUMS_OF_RUNS", 5 * CELLS)
    monkeypatch.setattr(moments, "MOST_CELLS_OF_RUNS", CELLS)
    errors = np.random.default_rng(4).integers(-5, 9, (10, CELLS))
    found = summed(errors, sparse=False)
    assert found["variance"] == pytest.approx(errors.var(axis=0, ddof=1).mean())
    assert found["variance_error"] > 0
