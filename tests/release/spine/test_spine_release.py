"""Releases along a spine: sums, facts, least squares against dense matrices, jobs, resuming."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import spine as plan_spine
from hedgerow.release import preflight
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.descent.source import Drawn, Stored
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import pass_of
from tests.made import plain_plan
from tests.release.spine.made_spines import (
    dense_estimates,
    incidence,
    kinds_of_blocks,
    people,
    possible,
    spine_tree,
)

SEEDS = range(12)


def planned(seed, **options):
    rng = np.random.default_rng(seed)
    tree = spine_tree(rng)
    kinds = kinds_of_blocks(rng, tree)
    facts = [hr.PublicTable(kinds, zeros="unlisted", at_least="least")]
    options = {
        "budget": hr.Rho(1),
        "neighbours": hr.Replace() if seed % 3 else hr.AddRemove(),
        "workload": hr.Cube(),
        "public": facts,
        **options,
    }
    return rng, plain_plan(tree, **options), kinds


def released(seed, **options):
    rng, plan, kinds = planned(seed, **options)
    counts = people(rng, plan.tree, kinds)
    made = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
    return counts, plan, kinds, made


def dense_table(tree, nodes):
    found = np.zeros([axis.size(axis.depth) for axis in tree.axes], dtype=np.int64)
    np.add.at(found, tuple(nodes.codes), nodes.counts)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cuboid_is_the_sum_of_the_leaves_and_keeps_the_public_facts(seed):
    counts, plan, kinds, made = released(seed)
    tree, nodes = plan.tree, made.content.nodes
    leaves = dense_table(tree, nodes[tree.chain[-1]])
    allowed = possible(tree, kinds)
    assert not leaves[~allowed].any()
    for levels, listed in nodes.items():
        summed = leaves
        for a, (axis, level) in enumerate(zip(tree.axes, levels, strict=True)):
            start = axis.descendant_start(level, axis.depth)
            summed = np.add.reduceat(summed, start[:-1], axis=a)
        assert np.array_equal(np.argwhere(summed > 0), np.stack(listed.codes, axis=1))
        assert np.array_equal(summed[tuple(listed.codes)], listed.counts)
    if seed % 3:
        assert leaves.sum() == counts.total
    block = {code: i for i, code in enumerate(tree.axes[0].labels[-1])}
    for b, kind, least in kinds.iter_rows():
        here = [code.startswith(f"{kind}.") for code in tree.axes[1].labels[-1]]
        assert leaves[block[b]][here].sum() >= least


@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_and_variances_are_those_of_dense_least_squares(seed):
    counts, plan, kinds, made = released(seed)
    allowed = possible(plan.tree, kinds)
    noisy = made.content.stored.measured
    total = counts.total if seed % 3 else None
    x, covariance = dense_estimates(plan, allowed, noisy, total)
    cells = answers_of(plan).cells(made.content.stored, plan.levels)
    for levels, nodes in cells.items():
        matrix, _ = incidence(plan.tree, levels, allowed)
        np.testing.assert_allclose(nodes.estimate, matrix @ x, rtol=1e-7, atol=1e-6)
        if not plan.is_public(levels):
            expected = np.einsum("ij,jk,ik->i", matrix, covariance, matrix)
            np.testing.assert_allclose(nodes.variance, expected, rtol=1e-6, atol=1e-9)
            mean = hr.forecast(plan).filter(cuboid=plan.tree.name_of(levels))["rmse"][0]
            np.testing.assert_allclose(mean**2, expected.mean(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_jobs_say_the_same_wherever_the_spine_is_cut(seed, monkeypatch):
    _, plan, _, made = released(seed)
    stored = made.content.stored

    def read_through(most_held, worth):
        monkeypatch.setattr(plan_spine, "UNCUT", 0)
        monkeypatch.setattr(plan_spine, "MOST_ABOVE_THE_CUT", most_held)
        monkeypatch.setattr(plan_spine, "WORTH_A_JOB", worth)
        again = replace(plan)
        run = pass_of(again, stored, hr.Euclidean())
        found = {}
        for result in run.results():
            found.setdefault(result.levels, []).append(result.nodes)
        return again.design.jobs, found

    whole = made.content.nodes
    cuts = set()
    for held, worth in [(1 << 26, 1), (200, 1), (200, 50), (1, 1)]:
        jobs, found = read_through(held, worth)
        cuts.add((jobs[0].root, len(jobs)))
        for levels, parts in found.items():
            counts = np.concatenate([part.counts for part in parts])
            estimate = np.concatenate([part.estimate for part in parts])
            np.testing.assert_array_equal(counts, whole[levels].counts)
            np.testing.assert_allclose(estimate, whole[levels].estimate, rtol=1e-9, atol=1e-7)
    assert len(cuts) > 1


def test_noise_is_a_matter_of_the_key_and_the_place(monkeypatch):
    monkeypatch.setattr(plan_spine, "UNCUT", 0)
    monkeypatch.setattr(plan_spine, "MOST_ABOVE_THE_CUT", 300)
    monkeypatch.setattr(plan_spine, "WORTH_A_JOB", 1)
    _, _, _, one = released(7)
    _, _, _, again = released(7)
    for levels, noisy in one.content.stored.measured.items():
        assert np.array_equal(noisy, again.content.stored.measured[levels])
    assert len(one.plan.design.jobs) > 2


def test_noisy_counts_are_true_counts_plus_noise_of_the_plan():
    rng, plan, kinds = planned(5, budget=hr.Rho(10**6))
    counts = people(rng, plan.tree, kinds)
    run = pass_of(plan, Drawn(counts, plan, seeded_bits(1)), hr.Euclidean())
    allowed = possible(plan.tree, kinds)
    truth = np.zeros(allowed.shape, dtype=np.int64)
    np.add.at(truth, counts.codes, counts.values)
    noisy = {}
    for found in run.results():
        if found.noisy is not None:
            noisy.setdefault(found.levels, []).append(found.noisy)
    for levels, parts in noisy.items():
        matrix, _ = incidence(plan.tree, levels, allowed)
        assert np.array_equal(np.concatenate(parts), matrix @ truth[allowed])


def test_too_few_noisy_counts_are_refused():
    _, plan, _, made = released(4)
    stored = made.content.stored
    cut = {levels: noisy[:-1] for levels, noisy in stored.measured.items()}
    short = Stored(stored.tree, cut, stored.variances, stored.nodes)
    with pytest.raises(hr.ReleaseError, match="more or fewer"):
        list(pass_of(plan, short, hr.Euclidean()).results())


def test_noisy_counts_that_do_not_fit_into_memory_are_not_read(monkeypatch):
    _, plan, _ = planned(5)
    cells = sum(plan.design.size(cuboid) for cuboid in plan.design.noise)
    assert plan.design.bytes_read == 8 * cells
    needed = preflight.needed_memory(plan)
    monkeypatch.setattr(preflight, "_memory_limit", lambda: needed + 8 * cells)
    preflight.check_tables(plan)
    monkeypatch.setattr(preflight, "_memory_limit", lambda: needed + 8 * cells - 1)
    with pytest.raises(hr.MachineError, match="use a larger machine"):
        preflight.check_tables(plan)
