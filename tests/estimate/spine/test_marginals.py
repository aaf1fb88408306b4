"""Marginals that do not nest against dense matrices over all cells."""

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.spine.marginals import Marginals
from hedgerow.estimate.spine.part import Part
from tests.estimate.spine.random_marginals import (
    Dense,
    flat_axis,
    noisy_tables,
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
        np.testing.assert_allclose(table, expected, rtol=0, atol=1e-9 * max(1, np.abs(expected).max()))


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
            assert forms.mean(level) == pytest.approx(np.mean(expected), rel=1e-9, abs=1e-12 * scale)
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
    bounds = (2, node, support.group[2].astype(np.int64), np.maximum(truth[2] - slack[0], 0), truth[2] + slack[1])
    zeros = rng.random([a.sizes[-1] for i, a in enumerate(model.shape.axes) if i != model.spine_axis]) < 0.2
    if zeros.any():
        moved = np.moveaxis(zeros, model.group_axis - (model.group_axis > model.spine_axis), 0)
        moved.reshape(len(moved), -1)[:, 0] = False
    has = node, support.group[2].astype(np.int64)
    model = Marginals.of(
        model.shape, model.spine_axis, model.group_axis, has, [bounds], zeros.ravel(),
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
