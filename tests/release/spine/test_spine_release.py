"""Releases along a spine: wherever it is cut, and what does not fit."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import spine as plan_spine
from hedgerow.release import preflight
from hedgerow.release.descent.source import Stored
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import pass_of
from tests.release.random_plans import random_spine


def released(seed):
    case = random_spine(seed)
    made = in_memory(case.counts, case.plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
    return case.plan, made


@pytest.mark.parametrize("seed", range(4))
def test_jobs_say_the_same_wherever_the_spine_is_cut(seed, monkeypatch):
    plan, made = released(seed)
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


def test_too_few_noisy_counts_are_refused():
    plan, made = released(4)
    stored = made.content.stored
    cut = {levels: noisy[:-1] for levels, noisy in stored.measured.items()}
    short = Stored(stored.tree, cut, stored.variances, stored.nodes)
    with pytest.raises(hr.ReleaseError, match="more or fewer"):
        list(pass_of(plan, short, hr.Euclidean()).results())


def test_noisy_counts_that_do_not_fit_into_memory_are_not_read(monkeypatch):
    plan = random_spine(5).plan
    cells = sum(plan.design.size(cuboid) for cuboid in plan.design.noise)
    assert plan.design.bytes_read == 8 * cells
    needed = preflight.needed_memory(plan)
    monkeypatch.setattr(preflight, "_memory_limit", lambda: needed + 8 * cells)
    preflight.check_tables(plan)
    monkeypatch.setattr(preflight, "_memory_limit", lambda: needed + 8 * cells - 1)
    with pytest.raises(hr.MachineError, match="use a larger machine"):
        preflight.check_tables(plan)
