"""Whatever is asked of a release of named cuboids: its tables agree, and their sums have errors."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory import check, stored
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.made import fixed_axis, plain_plan
from tests.release.cube.test_cube_release import (
    BUDGET,
    PAIRS,
    dense,
    named_axis,
    released,
    summed,
    table_of,
    tables,
    true_table,
)

MARGINS = ["o.level2", "d.level2"]
OVERLAP = ["o.level2 × d.level1", "o.level1 × d.level2"]
WORKLOADS = {
    "margins alone": hr.Cuboids(MARGINS),
    "margins that overlap": hr.Cuboids(OVERLAP),
    "a chain with margins": hr.Cuboids(MARGINS, chain=True),
    "margins and leaves": hr.Cuboids([*MARGINS, "o.level2 × d.level2"]),
    "overlap and leaves": hr.Cuboids([*OVERLAP, "o.level2 × d.level2"]),
}
EVERY = list(itertools.product(range(3), repeat=2))
SINGLE = hr.Tree([named_axis("o", 2, 1, 2), named_axis("d", 3, 1)])
"""Levels of only children: o.level2 repeats o.level1, d.level2 repeats d.level1."""


def named(workload, tree=PAIRS, **options):
    options = {"budget": BUDGET, "neighbours": hr.Replace(), "measure": hr.All(), **options}
    return plain_plan(tree, workload=workload, **options)


def choice(levels):
    return {name: f"level{k}" for name, k in zip("od", levels, strict=True) if k}


def dense_estimates(release):
    """Estimates of the leaves from all that was measured whole, and their covariance: dense.

    Where no table has the leaves they are some of many, and sums of tables are the same for all.
    """
    plan = release.plan
    shape = CubeShape.of([axis.child_start for axis in plan.tree.axes])
    sums, noisy, weights = [], [], []
    for levels, what in plan.by_levels.items():
        if isinstance(what, hr.Measured) and levels in plan.whole:
            sums.append(cuboid_sums(shape, shape.given(levels)))
            noisy.append(release.content.measured[levels])
            weights.append(np.full(len(noisy[-1]), 1 / what.mechanism.noise_variance))
    sums, noisy, weights = map(np.concatenate, (sums, noisy, weights))
    leaves, free = np.zeros(sums.shape[1]), np.eye(sums.shape[1])
    if plan.public is not None:
        exact = cuboid_sums(shape, shape.given(plan.public))
        nodes = release.content.nodes[plan.public]
        known = dense(plan.tree, plan.public, nodes.codes, nodes.counts).ravel()
        leaves = np.linalg.pinv(exact) @ known
        free = np.linalg.svd(exact)[2][len(exact) :].T
    seen = sums @ free
    inverse = np.linalg.pinv((seen.T * weights) @ seen, rcond=1e-12, hermitian=True)
    covariance = free @ inverse @ free.T
    return shape, leaves + covariance @ (sums.T @ (weights * (noisy - sums @ leaves))), covariance


CASES = [(name, levels) for name in WORKLOADS for levels in EVERY]


@pytest.mark.parametrize(("name", "levels"), CASES, ids=str)
@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()], ids=["public", "measured"])
def test_any_cuboid_within_a_table_has_its_sums_with_dense_least_squares_beside_them(
    name, levels, who
):
    release = released(table_of(filled=0.6), named(WORKLOADS[name], neighbours=who))
    table = release.plan.table_of(levels)
    if table is None:
        for confidence in (hr.Confidence(), None):
            with pytest.raises(hr.ReleaseError, match="is no sum of what was released"):
                release.cuboid(confidence, **choice(levels))
        return
    counts = summed(PAIRS, tables(release)[table], table, levels)
    found = release.cuboid(**choice(levels))
    assert found["count"].to_list() == counts[counts > 0].tolist(), "row by row"
    shape, leaves, covariance = dense_estimates(release)
    sums = cuboid_sums(shape, levels)
    listed = counts.ravel() > 0
    assert np.allclose(found["estimate"], (sums @ leaves)[listed], rtol=1e-8, atol=1e-6)
    variance = np.diag(sums @ covariance @ sums.T)[listed]
    assert np.allclose(found["standard_error"] ** 2, variance, rtol=1e-7, atol=1e-6)
    alone = release.cuboid(None, **choice(levels))
    assert alone.equals(found.select(alone.columns))


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_directory_says_the_same_of_every_answerable_cuboid(name, tmp_path):
    for measure in (hr.All(), hr.Survivors()):
        release = released(table_of(filled=0.6), named(WORKLOADS[name], measure=measure))
        place = tmp_path / measure.name
        release.write(place)
        again = hr.read_release(place)
        for levels in EVERY:
            if release.plan.table_of(levels) is not None:
                known = release.plan.design.is_answerable(levels)
                for confidence in (hr.Confidence(), None) if known else (None,):
                    one, other = (
                        each.cuboid(confidence, **choice(levels)) for each in (release, again)
                    )
                    assert one.equals(other), levels


def test_counts_alone_read_one_file(tmp_path, monkeypatch):
    released(table_of(filled=0.6), named(WORKLOADS["margins that overlap"])).write(tmp_path / "out")
    release = hr.read_release(tmp_path / "out")
    asked = []
    read = stored.read_nodes
    monkeypatch.setattr(stored, "read_nodes", lambda *at: asked.append(at[-1]) or read(*at))
    release.cuboid(None, o="level2")
    assert asked == [(2, 1)]


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
@pytest.mark.parametrize("tree", [PAIRS, SINGLE], ids=["pairs", "single children"])
def test_check_passes_and_shows_that_the_tables_agree(name, measure, tree, tmp_path):
    plan = named(WORKLOADS[name], tree, measure=measure)
    released(table_of(tree=tree, filled=0.6), plan).write(tmp_path / "out")
    findings = [f for f in hr.check(tmp_path / "out") if "every count is the sum" in f.what]
    every = hr.check(tmp_path / "out")
    assert [f for f in every if not f.passed] == []
    if tree is PAIRS and len(plan.tables) > 1:
        pairs = [
            (k, t)
            for k in plan.levels
            for t in plan.tables
            if k != t and all(map(int.__le__, k, t))
        ]
        said = [
            f"{tree.name_of(k)}: every count is the sum of those of {tree.name_of(t)}"
            for k, t in pairs
        ]
        assert [f.what for f in findings] == said
        assert len(pairs) > len(plan.levels) - len(plan.tables), (
            "what they share is checked against both"
        )
    if tree is PAIRS and plan.tables == ((2, 2),):
        assert {f.what.partition(": ")[2] for f in findings} == {
            "every count is the sum of its leaves"
        }


def test_check_finds_tables_that_do_not_agree(monkeypatch, tmp_path):
    plan = named(WORKLOADS["margins that overlap"])
    released(table_of(filled=0.6), plan).write(tmp_path / "out")
    read = stored.read_nodes

    def shifted(folder, tree, levels):
        """One record of the second table moved to another region of origin."""
        nodes = read(folder, tree, levels)
        if levels != (1, 2):
            return nodes
        counts = nodes.counts.copy()
        i = 0
        j = int(np.flatnonzero(nodes.codes[0] != nodes.codes[0][i])[0])
        counts[i], counts[j] = counts[i] - 1, counts[j] + 1
        return replace(nodes, counts=counts)

    monkeypatch.setattr(stored, "read_nodes", shifted)
    failed = {f.what: f.failure for f in check.check(tmp_path / "out") if f.failure}
    shared = "o.level1 × d.level1: every count is the sum of those of o.level1 × d.level2"
    assert failed[shared] == "some counts are not the sums of their o.level1 × d.level2"
    other = "o.level1 × d.level1: every count is the sum of those of o.level2 × d.level1"
    assert other not in failed


def test_levels_of_only_children_are_answered_as_the_levels_that_they_repeat():
    workload = hr.Cuboids(["o.level1 × d.level1", "o.level3"])
    release = released(table_of(tree=SINGLE, filled=0.8), named(workload, SINGLE))
    assert release.plan.table_of((2, 2)) == (1, 1)
    for confidence in (hr.Confidence(), None):
        fine = release.cuboid(confidence, o="level2", d="level2")
        coarse = release.cuboid(confidence, o="level1", d="level1")
        assert fine.columns[:4] == ["o_1", "o_2", "d_1", "d_2"]
        assert fine.drop("o_2", "d_2").equals(coarse)
    assert release.cuboid(o="level2").drop("o_2").equals(release.cuboid(o="level1"))


def test_a_public_cuboid_that_the_workload_lacks_is_answered_exactly():
    plan = named(
        hr.Cuboids(["o.level2", "o.level1 × d.level2"]), invariants=[hr.Invariant("o", "level2")]
    )
    counts = table_of(filled=0.6)
    release = released(counts, plan)
    assert plan.by_levels[1, 0] == hr.Public()
    exact = release.cuboid(o="level1")
    assert exact["count"].to_list() == true_table(counts, (1, 0)).ravel().tolist()
    assert (exact["standard_error"] == 0).all()
    assert (exact["low"] == exact["high"]).all()


def test_what_no_table_contains_is_refused_with_the_tables_there_are():
    release = released(table_of(), named(WORKLOADS["margins alone"]))
    with pytest.raises(hr.ReleaseError) as caught:
        release.cuboid(o="level1", d="level1")
    assert str(caught.value) == (
        "o.level1 × d.level1 is no sum of what was released: the released tables are d.level2 and "
        "o.level2; ask for a cuboid that one of them contains, or name this one in [workload] of a "
        "new release"
    )


@pytest.mark.parametrize("deeper", [[], [2]], ids=["the leaves", "another table"])
def test_of_a_table_of_survivors_counts_alone_are_answered(deeper):
    tree = hr.Tree([named_axis("o", 3, 4), named_axis("d", 2, 5, *deeper)])
    workload = hr.Cuboids(["o.level2", "d.level2", "o.level2 × d.level2"])
    release = released(
        table_of(tree=tree, filled=0.3), named(workload, tree, measure=hr.Survivors())
    )
    assert release.cuboid(o="level1")["estimate"].null_count() == 0, "o.level2 is measured whole"
    with pytest.raises(hr.ReleaseError) as caught:
        release.cuboid(o="level1", d="level1")
    assert str(caught.value) == (
        "o.level1 × d.level1 is a sum of o.level2 × d.level2, of which survivors alone were "
        "measured, so its errors are unknown; ask for counts alone: cuboid(None, ...) or "
        "--counts-only"
    )
    counts = summed(tree, tables(release)[2, 2], (2, 2), (1, 1))
    assert (
        release.cuboid(None, o="level1", d="level1")["count"].to_list()
        == counts[counts > 0].tolist()
    )


def test_more_confidence_widens_intervals_of_any_sum():
    release = released(table_of(filled=0.6), named(WORKLOADS["overlap and leaves"]))
    usual = release.cuboid(o="level1")
    for sure in (hr.Confidence(0.999), hr.Confidence(0.95, simultaneous=True)):
        wide = release.cuboid(sure, o="level1")
        assert (wide["low"] <= usual["low"]).all()
        assert (wide["high"] > usual["high"]).all()
    assert not usual["contradicted"].any()


def test_a_count_far_from_its_own_measurements_is_contradicted():
    release = released(table_of(filled=0.6), named(WORKLOADS["margins that overlap"]))
    content = release.content
    far = {
        k: Nodes(n.codes, n.counts + 10_000 * (k == (2, 1)), n.estimate, n.variance)
        for k, n in content.nodes.items()
    }
    moved = hr.Release(replace(content, nodes=far))
    found = moved.cuboid(o="level2")
    assert found["contradicted"].all()
    assert found.schema["contradicted"] == pl.Boolean


def test_named_cuboids_have_no_depths():
    release = released(table_of(), named(WORKLOADS["margins alone"]))
    with pytest.raises(hr.ReleaseError, match="a workload of named cuboids has no depths; name a"):
        release.level(depth=1)
    with pytest.raises(
        hr.ReleaseError,
        match=r"no cuboid 'level1' is in the plan; .* release.cuboid\(o=\"level1\"\)",
    ):
        release.level("level1")


def test_fixed_axes_of_one_level_answer_too():
    tree = hr.Tree([fixed_axis(n, 2, columns=[n]) for n in ("a", "b", "c")])
    plan = named(hr.Cuboids(["a.level1 × b.level1", "a.level1 × c.level1"]), tree)
    release = released(table_of(tree=tree, filled=2.0), plan)
    one = release.cuboid(a="level1")
    assert one["count"].sum() == release.level("total")["count"].item()
    assert release.cuboid(b="level1")["estimate"].null_count() == 0
    with pytest.raises(hr.ReleaseError, match=r"^b\.level1 × c\.level1 is no sum of"):
        release.cuboid(b="level1", c="level1")
