"""The contract: what holds for every model along a spine, beside dense matrices over all cells."""

import re

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.support import Part
from tests.estimate.spine.random_models import MODELS, bounded, small_model
from tests.estimate.spine.spines import detail_cells, parts_below

TOTAL = 123
each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def gap(found, expected):
    return np.abs(found - expected).max(initial=0.0) / (1 + np.abs(expected).max(initial=0.0))


@each_model
@pytest.mark.parametrize("seed", range(60))
def test_estimates_are_the_best_linear_unbiased_ones(seed, make):
    case = make(seed)
    tables, total = case.tables(np.random.default_rng(seed), 30.0)
    leaves, found = case.estimates(tables, total), case.ask("estimates", tables, total)
    for level, table in found.items():
        assert gap(table, case.detail(level) @ leaves) < 1e-9


each_seed = pytest.mark.parametrize("seed", range(40))


@each_model
@each_seed
def test_variances_of_any_sums_are_the_dense_ones(seed, make):
    """And 0 of sums of what a node does not have."""
    case, rng = make(seed), np.random.default_rng(seed)
    support = case.model.support
    cells = int(support.widths.sum())
    labels = rng.integers(-1, rng.integers(1, cells + 2), cells).astype(np.int32)
    labels[rng.integers(cells)] = 0
    forms = case.model.variances(labels)
    for level, size in enumerate(support.spine.sizes):
        node, _, cell = np.transpose(detail_cells(support, level, range(size)))
        asked = np.indices((size, labels.max() + 1)).reshape(2, -1)
        inside = [(node == n) & (labels[cell] == s) for n, s in asked.T]
        expected = case.dense.variances_of(inside @ case.detail(level))
        assert gap(forms.at(level, *asked), expected) < 1e-9
        there = expected[np.any(inside, axis=1)]
        if there.size:  # else no node has a cell of any sum
            assert np.isclose(forms.mean(level), there.mean(), rtol=1e-9, atol=1e-12)
            assert np.isclose(forms.largest(level), there.max(), rtol=1e-8, atol=1e-12)


@each_model
@each_seed
def test_parts_that_are_cut_at_any_level_say_what_the_whole_says(seed, make):
    case, total = bounded(make, seed)
    tables, _ = case.tables(np.random.default_rng(seed))
    for what, most in (("estimates", 1e-12), ("settle", 0)):
        expected = case.ask(what, tables, total)
        for cut in range(case.depth):
            found = case.ask_parts(what, tables, total, cut)
            assert found.keys() == expected.keys()
            for level, table in found.items():
                assert gap(table, expected[level]) <= (most if level > cut else 0)


def check_counts(case, counts, total):
    """Sums, bounds and zeros are exact."""
    support, finest = case.model.support, counts[case.depth]
    for level, table in counts.items():
        assert table.dtype == np.int64
        assert (table >= 0).all()
        rows = np.add.reduceat(table, support.cell[level][:-1])
        assert (rows >= support.low[level]).all()
        assert (rows <= support.high[level]).all()
        assert (table == case.detail(level) @ finest).all()
        if hasattr(case.model, "allowed"):
            assert not table[~case.model.allowed[support.group[level]].ravel()].any()
    assert total in {None, counts[0].sum()}


@each_model
@pytest.mark.parametrize("scale", [0.3, 5.0, 300.0, 1e7])
@each_seed
def test_sums_bounds_and_zeros_are_exact(seed, scale, make):
    case, total = bounded(make, seed)
    tables, _ = case.tables(np.random.default_rng(seed), scale)
    check_counts(case, case.ask("settle", tables, total), total)


@each_model
@pytest.mark.parametrize("value", [1e15, -1e15, 1e300, -1e300, 0.0])
@pytest.mark.parametrize("seed", range(20))
def test_estimates_of_any_size_end_in_counts(seed, value, make):
    case, total = bounded(make, seed)
    rng = np.random.default_rng(seed)
    tables, _ = case.tables(rng)
    for table in tables.values():
        table[rng.random(len(table)) < 0.3] = value
    check_counts(case, case.ask("settle", tables, total), total)


@each_model
@pytest.mark.parametrize("seed", range(20))
def test_exact_measurements_are_settled_as_they_are(seed, make):
    """Where noisy tables are those of whole counts within the bounds, these come out."""
    case, total = bounded(make, seed, depth=2)
    tables, _ = case.tables(np.random.default_rng(seed))
    truth = case.ask("settle", tables, total)
    exact = {key: case.sums(key) @ truth[case.depth] for key in tables}
    for level, table in case.ask("settle", exact, total).items():
        assert np.array_equal(table, truth[level])


@each_model
def test_tables_that_are_not_as_measured_are_refused(make):
    case = make(5, depth=2)
    model, (tables, _) = case.model, case.tables(np.random.default_rng(5))
    for key, table in tables.items():
        last = np.arange(len(table)) == len(table) - 1
        for wrong, words in [
            (None, f"cuboid {key} needs a float64 table of {len(table)} cells, got none"),
            (table[1:], "needs a float64 table"),
            (table.astype(np.float32), "got float32"),
            *((np.where(last, x, table), f"cuboid {key} must be finite") for x in (np.nan, np.inf)),
        ]:
            given = {k: t for k, t in {**tables, key: wrong}.items() if t is not None}
            with pytest.raises(EstimateError, match=re.escape(words)):
                model.up(case.whole, given)


@each_model
def test_what_parts_are_told_of_others_has_to_fit(make):
    case, total = bounded(make, 1, depth=2, known=True)
    model, (tables, _) = case.model, case.tables(np.random.default_rng(1))
    job, top = parts_below(model.support, 0)[0], Part.top(0)
    upward, good = model.up(job, case.of_part(job, tables)), case.ask("settle", tables, total)[0]
    for above in (None, good[1:]):
        for ask in (model.estimates, model.settle):
            with pytest.raises(EstimateError, match=f"needs the {len(good)} cells of its roots"):
                ask(job, upward, above)
    for told, words in [(upward.root_sums[1:], "numbers here"), (None, "numbers here, got none")]:
        with pytest.raises(EstimateError, match=words):
            model.up(top, case.of_part(top, tables), told)
    model.settle(job, upward, good)
    negative = good.copy()
    negative[0] = -1
    for wrong in (negative, 0 * good, good + (1 << 54)):
        with pytest.raises(EstimateError, match="must not break public bounds"):
            model.settle(job, upward, wrong)
    with pytest.raises(EstimateError, match="cells of its roots"):
        model.settle(job, upward, good.astype(float))


@each_model
@pytest.mark.parametrize("known", [False, True])
def test_a_total_is_given_where_it_is_known_and_only_there(known, make):
    case = make(3, known=known)
    tables, _ = case.tables(np.random.default_rng(3))
    for what in ("estimates", "settle"):
        with pytest.raises(EstimateError, match="where, and only where, it is public"):
            case.ask(what, tables, None if known else TOTAL)


@each_model
def test_a_public_total_outside_the_bounds_is_refused(make):
    case, _ = bounded(make, 1, depth=2, known=True)
    tables, _ = case.tables(np.random.default_rng(1))
    least = int(case.model.support.low[0].sum())
    assert least > 0
    with pytest.raises(EstimateError, match=f"records, {least - 1}, .* sum to {least} at"):
        case.ask("settle", tables, least - 1)


def test_totals_at_either_bound_are_kept():
    every = np.arange(4).repeat(2), np.tile(np.arange(2), 4)
    model = small_model(bounds=[(2, *every, np.full(8, 2), np.full(8, 3))], known=True)
    tables = {key: np.ones(model.cells(key).count(range(4))) for key in model.measured}
    upward = model.up(Part.top(2), tables)
    for total in (15, 25):
        with pytest.raises(EstimateError, match="16 at least and 24 at most"):
            model.settle(Part.top(2), upward, None, total)
    for total in (16, 24):
        assert model.settle(Part.top(2), upward, None, total)[0].sum() == total


@each_model
def test_sums_need_a_label_a_detail_cell_and_one_of_them_from_0(make):
    model = make(5).model
    cells = int(model.support.widths.sum())
    for labels in (np.zeros(cells - 1), np.full(cells, -1)):
        with pytest.raises(EstimateError, match=f"each of {cells} detail cells needs a label"):
            model.variances(labels.astype(np.int32))
