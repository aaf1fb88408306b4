"""The census as a cube along its spine, against dense matrices."""

import re
from itertools import pairwise

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.support import Part
from tests.estimate.spine.censuses import (
    dense_estimates,
    detail_sums,
    every,
    of_part,
    random_census,
    random_noisy,
)
from tests.estimate.spine.spines import detail_cells, parts_below

TOTAL = 123.0


def whole_of(model):
    return Part.top(model.support.spine.depth)


def total_of(model):
    return TOTAL if model.total_known else None


def gap(found, expected):
    return np.abs(found - expected).max(initial=0.0) / (1 + np.abs(expected).max(initial=0.0))


@pytest.mark.parametrize("seed", range(60))
def test_estimates_are_the_best_linear_unbiased_ones(seed):
    model = random_census(seed)
    noisy = random_noisy(seed, model)
    expected, _ = dense_estimates(model, noisy, TOTAL)
    whole = whole_of(model)
    found = model.estimates(whole, model.up(whole, noisy), None, total_of(model))
    for level in whole.levels:
        assert gap(found[level], detail_sums(model, level) @ expected) < 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_jobs_that_are_cut_at_any_level_estimate_what_the_whole_does(seed):
    model = random_census(seed)
    support, depth = model.support, model.support.spine.depth
    noisy = random_noisy(seed, model)
    whole = whole_of(model)
    expected = model.estimates(whole, model.up(whole, noisy), None, total_of(model))
    for cut in range(depth):
        top, jobs = Part.top(cut), parts_below(support, cut)
        ups = [model.up(job, of_part(model, job, noisy)) for job in jobs]
        told = np.concatenate([up.root_sums for up in ups])
        upward = model.up(top, of_part(model, top, noisy), told)
        assert len(upward.root_sums) == 0
        found = model.estimates(top, upward, None, total_of(model))
        for level in top.levels:
            assert np.array_equal(found[level], expected[level])
        cells = np.cumsum([0, *(support.cells(cut, job.nodes) for job in jobs)])
        below = [
            model.estimates(job, up, found[cut][cells[i] : cells[i + 1]])
            for i, (job, up) in enumerate(zip(jobs, ups, strict=True))
        ]
        for level in range(cut + 1, depth + 1):
            joined = np.concatenate([each[level] for each in below])
            assert gap(joined, expected[level]) < 1e-12


@pytest.mark.parametrize("seed", range(40))
def test_variances_of_any_sums_are_the_dense_ones(seed):
    model = random_census(seed)
    rng = np.random.default_rng(seed)
    _, covariance = dense_estimates(model, random_noisy(seed, model), TOTAL)
    cells = int(model.support.widths.sum())
    labels = rng.integers(-1, rng.integers(1, cells + 2), cells).astype(np.int32)
    labels[rng.integers(cells)] = 0
    forms = model.variances(labels)
    for level in range(model.support.spine.depth + 1):
        here = detail_sums(model, level)
        dense = here @ covariance @ here.T
        detail = detail_cells(model.support, level, every(model, level))
        expected = {}
        for node in every(model, level):
            for s in range(labels.max() + 1):
                a = np.array([n == node and labels[c] == s for n, _, c in detail], dtype=float)
                if a.any():
                    expected[node, s] = a @ dense @ a
        nodes, sums = np.array(list(expected)).T
        variances = np.array(list(expected.values()))
        assert gap(forms.at(level, nodes, sums), variances) < 1e-9
        assert np.isclose(forms.mean(level), variances.mean(), rtol=1e-9, atol=1e-12)
        assert np.isclose(forms.largest(level), variances.max(), rtol=1e-9, atol=1e-12)


def test_the_variance_of_a_sum_that_a_node_does_not_have_is_0():
    model = next(m for m in map(random_census, range(1, 99, 4)) if (m.support.widths > 0).sum() > 2)
    depth, cells = model.support.spine.depth, int(model.support.widths.sum())
    there = {(n, c) for n, _, c in detail_cells(model.support, depth, every(model, depth))}
    absent = [(n, c) for n in every(model, depth) for c in range(cells) if (n, c) not in there]
    assert absent
    nodes, sums = np.array(absent).T
    forms = model.variances(np.arange(cells, dtype=np.int32))
    assert not forms.at(depth, nodes, sums).any()


@pytest.mark.parametrize("seed", range(10))
def test_variances_with_other_noise_than_the_weights_say_are_upper_bounds(seed):
    nominal = random_census(seed)
    rng = np.random.default_rng(seed)
    noise = {key: v * rng.uniform(0.8, 1.2) for key, v in nominal.measured.items()}
    model = random_census(seed, noise=noise)
    assert dict(model.measured) == noise
    gain, _ = np.zeros(0), None
    whole, depth = whole_of(model), model.support.spine.depth
    zero = {key: np.zeros_like(t) for key, t in random_noisy(seed, model).items()}
    total = 0.0 if model.total_known else None
    true = 0.0
    for key, variance in noise.items():  # the estimate is linear: what each noisy count moves
        for i in range(len(zero[key])):
            unit = {**zero, key: np.eye(len(zero[key]))[i]}
            gain = model.estimates(whole, model.up(whole, unit), None, total)[depth]
            true = true + variance * gain**2
    detail = detail_cells(model.support, depth, every(model, depth))
    nodes, cells = np.array([(n, c) for n, _, c in detail]).T
    labels = np.arange(model.support.widths.sum(), dtype=np.int32)
    stated = model.variances(labels).at(depth, nodes, cells)
    assert (true <= stated * (1 + 1e-9) + 1e-12).all()
    assert (stated <= true * 1.5 * (1 + 1e-9) + 1e-12).all()
    exact = nominal.variances(labels).at(depth, nodes, cells)
    assert np.allclose(exact * model.excess, stated)


def test_what_is_measured_is_every_pair_of_measured_levels_but_a_public_total():
    model = random_census(3, total_known=False)
    v, s = model.spine_variances, model.attribute_variances
    pairs = {(a, b): v[a] * s[b] for a in range(len(v)) for b in range(len(s))}
    assert dict(model.measured) == {k: x for k, x in pairs.items() if np.isfinite(x)}
    assert (0, 0) not in random_census(3, total_known=True).measured


@pytest.mark.parametrize("seed", range(20))
def test_cuboids_within_groups_have_the_cells_that_no_rule_makes_0(seed):
    model = random_census(seed)
    depth, groups = model.support.spine.depth, model.group_level
    for b in range(groups, groups + model.trees.depth + 1):
        cells = model.cells((depth, b))
        offset, places = model.support.offset, model.trees.places(b - groups)
        runs = [places[a:b].tolist() for a, b in pairwise(offset)]
        expected = [len(set(run)) for run in runs if run]
        assert cells.width[model.support.widths > 0].tolist() == expected
    assert model.cells((depth, groups + model.trees.depth)).is_detail


def test_tables_that_are_not_as_measured_are_refused():
    model = random_census(5, depth=2)
    noisy, whole = random_noisy(5, model), whole_of(model)
    key = max(noisy)
    for table, words in [
        (None, "got none"),
        (noisy[key][1:], "needs a float64 table"),
        (noisy[key].astype(np.float32), "got float32"),
        (noisy[key] * np.nan, "must be finite"),
    ]:
        with pytest.raises(EstimateError, match=words):
            model.up(whole, {k: t for k, t in {**noisy, key: table}.items() if t is not None})
    for key, table in noisy.items():
        for wrong in (np.nan, np.inf):
            one = np.where(np.arange(len(table)) == len(table) - 1, wrong, table)
            with pytest.raises(EstimateError, match=re.escape(f"cuboid {key} must be finite")):
                model.up(whole, {**noisy, key: one})
    job = parts_below(model.support, 0)[0]
    upward = model.up(job, of_part(model, job, noisy))
    with pytest.raises(EstimateError, match="cells of its roots"):
        model.estimates(job, upward, None)
    top = Part.top(0)
    for told, words in [(upward.root_sums[1:], "numbers here"), (None, "numbers here, got none")]:
        with pytest.raises(EstimateError, match=words):
            model.up(top, of_part(model, top, noisy), told)


def made(*, v=(1.0, 1.0), s=(1.0, 1.0), zeros=(False, False)):
    axis = AxisShape.of([np.array([0, 2])])
    zero_leaves = np.array(zeros, dtype=bool)
    return Nested.of(axis, axis, 0, None, (), zero_leaves, v, s, total_known=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"v": (1.0,)}, "each of its 2 levels"),
        ({"v": (0.0, 1.0)}, "a variance above 0"),
        ({"v": (1.0, np.inf)}, "a finite one for the last"),
        ({"s": (0.0, 1.0)}, "a variance above 0"),
        ({"s": (1.0, np.inf)}, "a finite one for the last"),
        ({"zeros": (True, True)}, "every attribute cell 0"),
        ({"zeros": (True, True, False)}, "2 leaves, got"),
    ],
)
def test_what_is_no_census_is_refused(wrong, words):
    assert made().measured[1, 1] == 1.0
    with pytest.raises(EstimateError, match=words):
        made(**wrong)


def test_sums_need_a_label_a_detail_cell_and_one_of_them_from_0():
    for labels in ([0], [-1, -1]):
        with pytest.raises(EstimateError, match="each of 2 detail cells needs a label"):
            made().variances(np.array(labels, dtype=np.int32))
