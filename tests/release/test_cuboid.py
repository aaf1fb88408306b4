"""Sums of released leaves by a cuboid off the tree, and how sure they are."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers import chain
from hedgerow.release.answers.questions import sums_of
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.execution import in_memory
from hedgerow.release.release import read_release
from tests.made import fixed_axis, plain_plan, random_counts

ORIGIN = {"o": "level2"}
COLUMNS = ["o1", "o2"]


@pytest.fixture(scope="module")
def tree():
    return hr.Tree([fixed_axis(n, 3, 4, columns=[f"{n}1", f"{n}2"]) for n in "od"], ["d", "o"])


@pytest.fixture(scope="module")
def counts(tree):
    return random_counts(np.random.default_rng(2), tree, filled=0.5)


def made(counts, *, seed=0, measure=None, estimator=None, **options):
    plan = plain_plan(
        counts.tree,
        budget=options.pop("budget", hr.Rho("1/20")),
        neighbours=options.pop("neighbours", hr.Replace()),
        measure=hr.All() if measure is None else measure,
        **options,
    )
    estimator = hr.Chebyshev() if estimator is None else estimator
    return in_memory(counts, plan, estimator=estimator, bits=seeded_bits(seed))


def cuboid_errors(content, levels, confidence):
    """Sums by a cuboid off the tree, with their errors."""
    return sums_of(content, Sums(content.plan, levels), confidence)


def truth(counts):
    """The true counts of all 12 origins, in order."""
    return np.bincount(counts.codes[0], counts.values, minlength=12).astype(np.int64)


def test_intervals_of_sums_hold_as_often_as_they_say(counts):
    """200 releases: 95 % within 4 standard errors of the mean over independent releases."""
    exact, held, errors, z = truth(counts), [], [], []
    for seed in range(200):
        found = cuboid_errors(made(counts, seed=seed).content, ORIGIN, Confidence())
        low, high = found["low"].to_numpy(), found["high"].to_numpy()
        held.append(((low <= exact) & (exact <= high)).mean())
        errors.append(found["estimate"].to_numpy() - exact)
        z.append(((errors[-1] / found["standard_error"].to_numpy()) ** 2).mean())
    margin = 4 / np.sqrt(len(held))
    assert np.mean(held) > 0.95 - margin * np.std(held)
    assert np.mean(held) < 0.96 + margin * np.std(held), "discreteness adds little"
    assert abs(np.mean(z) - 1) < margin * np.std(z), "standard errors are those of the estimates"
    assert abs(np.mean(errors)) < margin * np.std(errors) + 1e-9


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
def test_no_interval_passes_a_public_total(tree, measure):
    codes = (np.zeros(2, dtype=np.int32), np.array([0, 7], dtype=np.int32))
    table = hr.Counts.from_leaves(tree, codes, np.array([25, 25]))
    tops = {"replace": [], "add-remove": []}
    for neighbours in (hr.Replace(), hr.AddRemove()):
        for seed in range(5):
            release = made(
                table, seed=seed, measure=measure, neighbours=neighbours, budget=hr.Rho("1/400")
            )
            found = cuboid_errors(release.content, ORIGIN, Confidence()).drop_nulls("high")
            tops[neighbours.name] += found["high"].to_list()
    assert max(tops["replace"]) == 50
    assert max(tops["add-remove"]) > 50


def test_simultaneous_intervals_of_survivors_are_wider(counts):
    content = made(counts, measure=hr.Survivors()).content
    single, every = (
        cuboid_errors(content, ORIGIN, Confidence(simultaneous=both)) for both in (False, True)
    )
    assert (every["high"] - every["low"]).sum() > (single["high"] - single["low"]).sum()


@pytest.mark.parametrize("first", [0, 4], ids=["all regions", "one is empty"])
def test_sums_add_up_to_a_public_total(counts, first):
    tree = hr.Tree(counts.tree.axes, ["d.level1", "o.level1", "o.level2", "d.level2"])
    kept = counts.codes[1] >= first  # the first region of destination may be empty
    codes = tuple(code[kept] for code in counts.codes)
    table = hr.Counts.from_leaves(tree, codes, counts.values[kept])
    release = made(table, invariants=[hr.Invariant("d", "level1")])
    assert tree.depth_at((1, 0)) is None
    found = cuboid_errors(release.content, {"o": "level1"}, Confidence())
    assert found["estimate"].sum() == pytest.approx(table.total)
    assert len(found) == 3
    assert (found["standard_error"] > 0).all()


def test_cuboids_of_the_chain_are_found(counts):
    tree = counts.tree
    names = [{}, {"o": "level1", "d": "level1"}, {"d": "level1"}, {"o": "level1"}]
    assert [tree.depth_at(tree.cuboid_of(each)) for each in names] == [0, 2, 1, None]


def test_nothing_released_has_no_rows(counts):
    empty = hr.Counts.from_leaves(
        counts.tree, tuple(c[:0] for c in counts.codes), counts.values[:0]
    )
    for measure in (hr.All(), hr.Survivors()):
        found = cuboid_errors(made(empty, measure=measure).content, ORIGIN, Confidence())
        assert found.is_empty()
        assert found.columns == [
            *COLUMNS, "count", "estimate", "standard_error", "low", "high", "contradicted"
        ]  # fmt: skip


def test_what_is_too_large_is_refused_with_the_way_out(monkeypatch, counts, out):
    release = made(counts, measure=hr.Survivors())
    release.write(out)
    monkeypatch.setattr(chain.ChainAnswers, "most_noisy", 20)
    for content in (release.content, read_release(out).content, made(counts).content):
        with pytest.raises(hr.ReleaseError, match=r"up to 20; .* cuboid\(None"):
            cuboid_errors(content, ORIGIN, Confidence())


def test_sums_off_a_tree_of_18_million_leaves_have_errors(counts, monkeypatch):
    """And so has a third of a billion not: 40 seconds and 2.3 gigabytes are fine, 40 are not."""
    content = made(counts).content
    for many, refused in ((18_576_420, False), (300_000_000, True)):
        monkeypatch.setattr(type(content), "noisy_cells", many)
        with pytest.raises(hr.ReleaseError) if refused else nullcontext():
            cuboid_errors(content, ORIGIN, Confidence())


def test_where_nodes_are_measured_errors_follow_from_the_noisy_counts_alone(counts):
    release = made(counts)
    nodes = {
        c: Nodes.exact(n.codes, n.counts) for c, n in release.content.nodes.items()
    }  # without estimates
    bare = replace(release.content, nodes=nodes)
    known = cuboid_errors(release.content, ORIGIN, Confidence())
    assert cuboid_errors(bare, ORIGIN, Confidence()).equals(known)
