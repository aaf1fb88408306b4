"""Whole counts of a census along its spine."""

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.support import UNBOUNDED, Part
from tests.estimate.spine.censuses import (
    detail_sums,
    every,
    of_part,
    random_census,
    random_noisy,
)
from tests.estimate.spine.spines import parts_below
from tests.estimate.spine.test_nested import whole_of


def random_bounds(rng, model, *, wide=False):
    """Bounds of some rows of some levels around a random table that meets them all."""
    support, depth = model.support, model.support.spine.depth
    rows = len(support.group[depth])
    counts = rng.poisson(4, rows)
    tables = {depth: counts}
    for level in range(depth, 0, -1):
        above = len(support.group[level - 1])
        tables[level - 1] = np.bincount(support.parent[level], tables[level], minlength=above)
    found = []
    for level, table in tables.items():
        node = np.repeat(every(model, level), np.diff(support.start[level]))
        some = np.flatnonzero(rng.random(len(table)) < 0.5)
        low = np.maximum(table - rng.integers(0, 4, len(table)), 0)
        high = table + rng.integers(0, 4, len(table))
        if wide:
            high[:] = UNBOUNDED
        group = support.group[level].astype(np.int64)
        found.append((level, node[some], group[some], low[some], high[some].astype(np.int64)))
    return found, int(counts.sum())


def bounded_census(seed, **kind):
    """A census with bounds, and a total within them."""
    rng = np.random.default_rng(seed)
    bounds, total = random_bounds(rng, random_census(seed, **kind), wide=seed % 3 == 0)
    return random_census(seed, bounds=bounds, **kind), total


def group_counts(model, level, detail):
    return np.add.reduceat(detail, model.support.cell[level][:-1])


def check_counts(model, counts, total):
    """Sums, bounds and zeros are exact."""
    support = model.support
    for level, table in counts.items():
        assert table.dtype == np.int64
        assert (table >= 0).all()
        groups = group_counts(model, level, table)
        assert (groups >= support.low[level]).all()
        assert (groups <= support.high[level]).all()
        if level > 0:
            start = support.cell[level]
            above = np.zeros_like(counts[level - 1])
            for row, parent in enumerate(support.parent[level]):
                at = support.cell[level - 1][parent]
                width = start[row + 1] - start[row]
                above[at : at + width] += table[start[row] : start[row + 1]]
            assert np.array_equal(above, counts[level - 1])
    if total is not None:
        assert counts[0].sum() == total


@pytest.mark.parametrize("scale", [0.3, 5.0, 300.0, 1e7])
@pytest.mark.parametrize("seed", range(40))
def test_sums_bounds_and_zeros_are_exact(seed, scale):
    model, total = bounded_census(seed)
    whole, given = whole_of(model), total if model.total_known else None
    upward = model.up(whole, random_noisy(seed, model, scale))
    check_counts(model, model.settle(whole, upward, None, given), given)


@pytest.mark.parametrize("value", [1e15, -1e15, 1e300, -1e300, 0.0])
@pytest.mark.parametrize("seed", range(20))
def test_estimates_of_any_size_end_in_counts(seed, value):
    model, total = bounded_census(seed)
    whole, given = whole_of(model), total if model.total_known else None
    rng = np.random.default_rng(seed)
    noisy = random_noisy(seed, model)
    for table in noisy.values():
        table[rng.random(len(table)) < 0.3] = value
    check_counts(model, model.settle(whole, model.up(whole, noisy), None, given), given)


@pytest.mark.parametrize("seed", range(40))
def test_jobs_that_are_cut_at_any_level_settle_what_the_whole_does(seed):
    model, total = bounded_census(seed)
    support, depth = model.support, model.support.spine.depth
    given = total if model.total_known else None
    noisy, whole = random_noisy(seed, model), whole_of(model)
    expected = model.settle(whole, model.up(whole, noisy), None, given)
    for cut in range(depth):
        top, jobs = Part.top(cut), parts_below(support, cut)
        ups = [model.up(job, of_part(model, job, noisy)) for job in jobs]
        below = np.concatenate([up.root_sums for up in ups])
        upward = model.up(top, of_part(model, top, noisy), below)
        found = model.settle(top, upward, None, given)
        for level in top.levels:
            assert np.array_equal(found[level], expected[level])
        cells = np.cumsum([0, *(support.cells(cut, job.nodes) for job in jobs)])
        below = [
            model.settle(job, up, found[cut][cells[i] : cells[i + 1]])
            for i, (job, up) in enumerate(zip(jobs, ups, strict=True))
        ]
        for level in range(cut + 1, depth + 1):
            joined = np.concatenate([each[level] for each in below])
            assert np.array_equal(joined, expected[level])


@pytest.mark.parametrize("seed", range(20))
def test_exact_measurements_are_settled_as_they_are(seed):
    """Where noisy tables are those of whole counts within the bounds, these come out."""
    model, _ = bounded_census(seed, depth=2)
    depth = model.support.spine.depth
    rng = np.random.default_rng(seed)
    whole = whole_of(model)
    noisy = random_noisy(seed, model, 3.0)
    total = model.support.low[0].sum() + 5
    given = int(min(total, model.support.high[0].sum())) if model.total_known else None
    truth = model.settle(whole, model.up(whole, noisy), None, given)
    assert rng is not None
    exact = {}
    for key in model.measured:
        level = key[0]
        detail = detail_sums(model, level) @ truth[depth]
        exact[key] = model.cells(key).sums(detail.astype(float), every(model, level))
    again = model.settle(whole, model.up(whole, exact), None, given)
    for level in whole.levels:
        assert np.array_equal(again[level], truth[level])


def test_a_public_total_outside_the_bounds_is_refused():
    model, _ = bounded_census(1, total_known=True, depth=2)
    whole = whole_of(model)
    upward = model.up(whole, random_noisy(1, model))
    least = int(model.support.low[0].sum())
    assert least > 0
    with pytest.raises(EstimateError, match=f"records, {least - 1}, .* sum to {least} at"):
        model.settle(whole, upward, None, least - 1)
    with pytest.raises(EstimateError, match="where, and only where, it is public"):
        model.settle(whole, upward, None)


def test_counts_of_roots_that_break_bounds_are_refused():
    model, total = bounded_census(1, total_known=True, depth=2)
    job = parts_below(model.support, 0)[0]
    upward = model.up(job, of_part(model, job, random_noisy(1, model)))
    good = model.settle(whole_of(model), model.up(whole_of(model), random_noisy(1, model)),
                        None, total)[0]  # fmt: skip
    model.settle(job, upward, good)
    negative = good.copy()
    negative[0] = -1
    for wrong in (negative, 0 * good, good + (1 << 54)):
        with pytest.raises(EstimateError, match="must not break public bounds"):
            model.settle(job, upward, wrong)
    for wrong in (None, good[1:], good.astype(float)):
        with pytest.raises(EstimateError, match="cells of its roots"):
            model.settle(job, upward, wrong)


def test_records_of_equal_estimates_are_handed_out_by_a_hash_and_alike_every_time():
    spine, attribute = (AxisShape.of([np.array([0, n])]) for n in (40, 6))
    model = Nested.of(
        spine,
        attribute,
        1,
        None,
        (),
        np.zeros(6, dtype=bool),
        [1.0, 1.0],
        [1.0, 1.0],
        total_known=True,
    )
    first = set()
    for shift in range(20):
        noisy = {key: np.full(model.cells(key).count(every(model, key[0])), 0.5 + shift)
                 for key in model.measured}  # fmt: skip
        upward = model.up(whole_of(model), noisy)
        counts = [model.settle(whole_of(model), upward, None, 100) for _ in range(2)]
        assert np.array_equal(counts[0][1], counts[1][1])
        first.add(tuple(group_counts(model, 0, counts[0][0])))
        assert np.ptp(group_counts(model, 0, counts[0][0])) <= 1
    assert len(first) > 3
