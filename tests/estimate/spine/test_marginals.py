"""Marginals that do not nest against dense matrices over all cells."""

import re
import tracemalloc
from math import prod

import numpy as np
import pytest

from hedgerow.arrays import run_starts
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.fit.families import _covariances
from hedgerow.estimate.spine.marginals import Marginals
from hedgerow.estimate.spine.support import Part, Support
from tests.estimate.spine.random_marginals import (
    Dense,
    flat_axis,
    noisy_tables,
    of_part,
    random_model,
    run_parts,
    run_whole,
)


@pytest.mark.parametrize("seed", range(60))
def test_estimates_are_those_of_a_dense_solver(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, groups=seed % 5 > 0)
    dense = Dense(model)
    tables, total = noisy_tables(rng, dense)
    total = total if model.total_known else None
    x, _ = dense.solved(tables, total)
    found, _ = run_whole(model, tables, total)
    for level, table in found.items():
        expected = dense.detail(level) @ x
        np.testing.assert_allclose(
            table, expected, rtol=0, atol=1e-9 * max(1, np.abs(expected).max())
        )


@pytest.mark.parametrize("seed", range(40))
def test_variances_of_any_labels_are_those_of_a_dense_solver(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, depth=int(rng.integers(0, 3)), groups=seed % 5 > 0)
    dense = Dense(model)
    tables, total = noisy_tables(rng, dense)
    _, covariance = dense.solved(tables, total if model.total_known else None)
    labels = rng.integers(-1, 4, size=int(model.support.widths.sum())).astype(np.int32)
    labels[rng.integers(len(labels))] = 3
    forms = model.variances(labels)
    offset = model.support.offset
    for level in range(model.support.spine.depth + 1):
        sums = dense.detail(level)
        node, label = [], []
        for n in range(model.support.spine.sizes[level]):
            rows = model.support.rows(level, range(n, n + 1))
            for g in model.support.group[level][rows]:
                own = labels[offset[g] : offset[g + 1]]
                node += [n] * len(own)
                label += own.tolist()
        node, label = np.array(node), np.array(label)
        pairs = sorted({(n, s) for n, s in zip(node, label, strict=True) if s >= 0})
        expected = []
        for n, s in pairs:
            weights = ((node == n) & (label == s)).astype(float) @ sums
            expected.append(weights @ covariance @ weights)
        scale = np.diag(sums @ covariance @ sums.T).max() * len(labels)
        asked = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        found = forms.at(level, asked[:, 0], asked[:, 1])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * scale)
        if pairs:
            assert forms.mean(level) == pytest.approx(
                np.mean(expected), rel=1e-9, abs=1e-12 * scale
            )
            assert forms.largest(level) == pytest.approx(max(expected), rel=1e-8, abs=1e-12 * scale)


@pytest.mark.parametrize("seed", range(25))
def test_parts_say_what_the_whole_says(seed):
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(1, 4))
    model = random_model(rng, depth=depth)
    tables, total = noisy_tables(rng, Dense(model))
    total = total if model.total_known else None
    whole, counts = run_whole(model, tables, total)
    for cut in range(depth):
        estimates, settled = run_parts(model, tables, total, cut)
        for level in range(depth + 1):
            np.testing.assert_allclose(estimates[level], whole[level], atol=1e-9)
            np.testing.assert_array_equal(settled[level], counts[level])


@pytest.mark.parametrize("seed", range(40))
def test_counts_keep_sums_zeros_bounds_and_the_total(seed):
    rng = np.random.default_rng(seed)
    model = random_model(np.random.default_rng(seed), depth=2)
    support = model.support
    truth = [rng.poisson(6, size=len(each)) for each in support.group]
    deepest = np.arange(len(support.group[2]))
    node = np.repeat(np.arange(support.spine.sizes[2]), np.diff(support.start[2]))
    slack = rng.integers(0, 3, size=(2, len(deepest)))
    bounds = (
        2,
        node,
        support.group[2].astype(np.int64),
        np.maximum(truth[2] - slack[0], 0),
        truth[2] + slack[1],
    )
    zeros = rng.random([a.sizes[-1] for a in model.shape.axes[1:]]) < 0.2
    if zeros.any():
        moved = np.moveaxis(zeros, model.group_axis - 1, 0)
        moved.reshape(len(moved), -1)[:, 0] = False
    has = node, support.group[2].astype(np.int64)
    model = Marginals.of(
        model.shape, model.group_axis, has, [bounds], zeros.ravel(),
        model.measured, total_known=model.total_known,
    )  # fmt: skip
    tables, _ = noisy_tables(rng, Dense(model), scale=8.0)
    total = int(truth[2].sum()) if model.total_known else None
    _, counts = run_whole(model, tables, total)
    width = model.residuals.width
    for level, table in counts.items():
        here = model.support
        by_row = table.reshape(-1, width)
        assert (by_row >= 0).all()
        assert (by_row[~model.allowed[here.group[level]]] == 0).all()
        assert (by_row.sum(axis=1) >= here.low[level]).all()
        assert (by_row.sum(axis=1) <= here.high[level]).all()
        if level:
            above = np.zeros_like(counts[level - 1].reshape(-1, width))
            np.add.at(above, here.parent[level], by_row)
            np.testing.assert_array_equal(above.ravel(), counts[level - 1])
    if total is not None:
        assert counts[0].sum() == total


def small_shape(*, middle=False):
    """A spine of three levels, groups, and one attribute of two levels or three."""
    spine = AxisShape.of([np.array([0, 2]), np.array([0, 2, 4])])
    starts = [np.array([0, 2]), np.array([0, 2, 4])]
    return CubeShape((spine, flat_axis(2), AxisShape.of(starts) if middle else flat_axis(3)))


def small_model(shape=None, noise=None, bounds=(), zeros=None, *, group=1, known=False):
    shape = shape or small_shape()
    noise = {shape.finest: 1.0} if noise is None else noise
    if zeros is None:
        zeros = np.zeros(prod(a.sizes[-1] for a in shape.axes[1:]), dtype=bool)
    return Marginals.of(shape, group, None, bounds, zeros, noise, total_known=known)


def takes(shape, cuboids, group):
    """A model takes cuboids, beside the finest one."""
    return small_model(shape, dict.fromkeys([shape.finest, *cuboids], 1.0), group=group)


def refuses(shape, cuboids, group):
    with pytest.raises(EstimateError, match="total and finest levels alone"):
        takes(shape, cuboids, group)


def test_an_attribute_measured_at_a_middle_level_does_not_fit():
    shape = small_shape(middle=True)
    takes(shape, [(1, 1, 0)], 1)
    refuses(shape, [(1, 1, 1)], 1)
    takes(shape, [(1, 1, 1)], 2)


def test_cuboids_outside_the_shape_and_too_many_attributes_do_not_fit():
    shape = small_shape()
    refuses(shape, [(2, 1)], 1)
    refuses(shape, [(3, 1, 1)], 1)
    refuses(shape, [(2, -1, 1)], 1)
    wide = CubeShape((shape.axes[0], *(flat_axis(2) for _ in range(9))))
    takes(wide, [], 1)
    refuses(wide, [], None)


def test_what_does_not_measure_the_finest_cells_is_refused():
    with pytest.raises(EstimateError, match="measure every attribute at its finest level"):
        small_model(noise={(2, 1, 0): 1.0, (2, 0, 1): 1.0, (1, 1, 1): 1.0})


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(EstimateError, match=r"cuboid \(2, 1, 1\) must be above 0"):
        small_model(noise={(2, 1, 1): variance})


def test_zeros_by_rule_need_an_entry_a_cell():
    with pytest.raises(EstimateError, match="each of 6 cells, got 5"):
        small_model(zeros=np.zeros(5, dtype=bool))


def test_a_group_all_of_whose_cells_are_zero_is_nowhere():
    model = small_model(zeros=np.array([1, 1, 1, 0, 0, 1], dtype=bool))
    assert model.support.widths.tolist() == [0, 3]
    assert all(set(each.tolist()) == {1} for each in model.support.group)
    np.testing.assert_array_equal(model.allowed[1], [True, True, False])


def upward_of(model):
    """What a part of the lowest level and the whole say, of tables of ones."""
    tables = {key: np.ones(model.cells(key).count(range(4))) for key in model.measured}
    part = Part(1, range(1), 2)
    return tables, part, model.up(Part.top(2), tables), model.up(part, of_part(model, part, tables))


@pytest.mark.parametrize("known", [False, True])
def test_a_total_is_given_where_it_is_known_and_only_there(known):
    model = small_model(known=known)
    _, _, upward, _ = upward_of(model)
    total = None if known else 24
    with pytest.raises(EstimateError, match="where, and only where, it is public"):
        model.estimates(Part.top(2), upward, None, total)
    with pytest.raises(EstimateError, match="where, and only where, it is public"):
        model.settle(Part.top(2), upward, None, total)


def test_a_part_needs_the_cells_of_its_roots():
    model = small_model()
    _, part, _, upward = upward_of(model)
    for above in (None, np.zeros(5)):
        with pytest.raises(EstimateError, match="needs the 6 cells of its roots"):
            model.estimates(part, upward, above)
        with pytest.raises(EstimateError, match="needs the 6 cells of its roots"):
            model.settle(part, upward, above)


@pytest.mark.parametrize("tables", [{}, {(2, 1, 1): np.zeros(23)}])
def test_a_missing_or_short_table_is_refused(tables):
    with pytest.raises(
        EstimateError, match=r"cuboid \(2, 1, 1\) needs a float64 table of 24 cells"
    ):
        small_model().up(Part.top(2), tables)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_count_that_is_not_finite_is_refused_in_every_cuboid(seed, wrong):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    tables, _ = noisy_tables(rng, Dense(model))
    for key, table in tables.items():
        one = np.where(np.arange(len(table)) == len(table) - 1, wrong, table)
        with pytest.raises(EstimateError, match=re.escape(f"cuboid {key} must be finite")):
            model.up(Part.top(model.support.spine.depth), {**tables, key: one})


def test_a_total_outside_the_bounds_is_refused():
    every = np.arange(4).repeat(2), np.tile(np.arange(2), 4)
    bounds = [(2, *every, np.full(8, 2), np.full(8, 3))]
    model = small_model(bounds=bounds, known=True)
    _, _, upward, _ = upward_of(model)
    for total in (15, 25):
        with pytest.raises(EstimateError, match="16 at least and 24 at most"):
            model.settle(Part.top(2), upward, None, total)
    for total in (16, 24):
        assert model.settle(Part.top(2), upward, None, total)[0].sum() == total


def test_labels_are_one_a_detail_cell():
    with pytest.raises(EstimateError, match="each of 6 detail cells needs a label"):
        small_model().variances(np.zeros(5, dtype=np.int32))


@pytest.mark.parametrize("known", [False, True])
def test_sums_of_the_root_are_not_moved_by_cells_that_hold_nobody(known):
    """The best fit of all cells at once takes 10 records from the group that fills its cells."""
    shape = CubeShape((flat_axis(2), flat_axis(2), flat_axis(40)))
    noise = {(0, 1, 0): 100.0, (0, 1, 1): 20.0, shape.finest: 20.0}
    model = small_model(shape, noise, known=known)
    true = {1: np.zeros((2, 2, 40))}
    true[1][:, 0, :30], true[1][:, 1, 0] = 200, 300
    true[0] = true[1].sum(axis=0)
    rng, runs, part = np.random.default_rng(1), 200, Part.top(1)
    errors = np.empty((runs, 2))
    for run in range(runs):
        tables = {}
        for key, variance in noise.items():
            table = true[key[0]] if key[2] else true[key[0]].sum(axis=1)
            tables[key] = (table + rng.normal(0, variance**0.5, table.shape)).ravel()
        total = int(true[0].sum()) if known else None
        counts = model.settle(part, model.up(part, tables), None, total)
        errors[run] = counts[0].reshape(2, 40).sum(axis=1) - true[0].sum(axis=1)
    groups = np.repeat(np.arange(2, dtype=np.int32), 40)
    error = model.variances(groups).at(0, np.zeros(2, np.int64), np.arange(2)) ** 0.5
    # five standard errors of the mean of nearly normal errors: α = 6e-7 a group
    assert (np.abs(errors.mean(axis=0)) < 5 * error / runs**0.5).all()
    assert (errors.std(axis=0) < 1.3 * error).all()


def test_covariances_of_families_are_copied_without_lists_of_their_entries():
    spine, tree = AxisShape.of([np.array([0, 40])]), AxisShape.of([np.array([0, 50])])
    support = Support.of(spine, tree, np.ones(50, dtype=int), None)
    apart, nothing = np.eye(50), np.zeros((50, 50))
    components = [
        Component.of(support, np.ones(50, dtype=int), [nothing, information])
        for information in (apart, apart + 1)
    ]
    begin = run_starts(np.full(30, 2 * 50**2))
    given = components, 1, range(10, 40), begin
    _covariances(*given)  # compiles
    tracemalloc.start()
    found = _covariances(*given)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for own in found.reshape(30, 2, 50, 50):
        assert (own[0] == apart).all()
        assert np.allclose(own[1], np.linalg.inv(apart + 1))
    assert most < 1.2 * found.nbytes
