"""A cube's release: measured whole, estimated exactly, settled to whole counts that add up."""

import hashlib
import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import MachineError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan import spine as plan_spine
from hedgerow.plan import tables as plan_tables
from hedgerow.release import preflight
from hedgerow.release.descent.nodes import Found, by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.descent.tables import TablesFlow
from hedgerow.release.directory import stored
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import Pass, pass_of
from hedgerow.release.preflight import check_memory, needed_memory
from hedgerow.tables.tree import cell_numbers
from tests.estimate.cube.dense_cubes import cuboid_sums, dense_gain
from tests.made import fixed_axis, plain_plan, random_axis, random_counts, random_tree
from tests.release.test_draws import Recorder

BUDGET = hr.EpsilonDelta("1", "1e-8")
MEASURES = [hr.All(), hr.Survivors()]


def named_axis(name, *sizes):
    return fixed_axis(name, *sizes, columns=[f"{name}_{k}" for k in range(1, len(sizes) + 1)])


PAIRS = hr.Tree([named_axis("o", 3, 4), named_axis("d", 2, 5)])


def cube(tree=PAIRS, **options):
    options = {"budget": BUDGET, "neighbours": hr.Replace(), "measure": hr.All(), **options}
    return plain_plan(tree, workload=hr.Cube(), **options)


def released(counts, plan, seed=1):
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))


def dense(tree, levels, codes, values):
    """The table of listed cells: int64 (cells along each axis)."""
    found = np.zeros([a.size(k) for a, k in zip(tree.axes, levels, strict=True)], dtype=np.int64)
    np.add.at(found, tuple(codes), values)
    return found


def true_table(counts, levels):
    tree = counts.tree
    ancestors = [axis.ancestors(k) for axis, k in zip(tree.axes, levels, strict=True)]
    codes = [up[code] for up, code in zip(ancestors, counts.codes, strict=True)]
    return dense(tree, levels, codes, counts.values)


def tables(release):
    """Each cuboid's released counts as a dense table."""
    nodes = release.content.nodes
    return {k: dense(release.plan.tree, k, n.codes, n.counts) for k, n in nodes.items()}


def summed(tree, table, finer, coarser):
    """The sums of a dense table by a coarser cuboid."""
    for axis, (k, j) in enumerate(zip(finer, coarser, strict=True)):
        start = tree.axes[axis].descendant_start(j, k)
        table = np.add.reduceat(table, start[:-1], axis=axis)
    return table


def table_of(seed=5, tree=PAIRS, **options):
    return random_counts(np.random.default_rng(seed), tree, **options)


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove(), hr.Replace(exactly=False)])
def test_every_cuboid_is_the_sum_of_the_released_leaves(measure, who):
    counts = table_of()
    release = released(counts, cube(neighbours=who, measure=measure))
    found = tables(release)
    leaves = found[2, 2]
    assert (leaves >= 0).all()
    for levels, table in found.items():
        assert np.array_equal(summed(PAIRS, leaves, (2, 2), levels), table), levels
    if who.total_is_public:
        assert leaves.sum() == counts.total


def test_over_three_axes_and_more_every_cuboid_is_the_sum_of_the_released_leaves():
    for seed in range(6):
        tree = random_tree(np.random.default_rng(seed), axes=3 + seed % 2, depth=2, widest=3)
        counts = table_of(seed, tree)
        release = released(counts, cube(tree), seed)
        found, finest = tables(release), release.plan.levels[-1]
        for levels, table in found.items():
            assert (table >= 0).all()
            assert np.array_equal(summed(tree, found[finest], finest, levels), table), levels
        assert found[finest].sum() == counts.total


INVARIANTS = {
    "nothing": (hr.AddRemove(), ()),
    "the total": (hr.Replace(), ()),
    "a level of the first axis": (hr.Replace(), [("a0", 1)]),
    "a level of the last axis": (hr.Replace(), [("a1", 2)]),
}


@pytest.mark.parametrize("public", INVARIANTS)
@pytest.mark.parametrize("mechanism", [hr.DiscreteGaussian, hr.DiscreteLaplace])
@pytest.mark.parametrize("seed", range(3))
def test_estimates_and_standard_errors_are_those_of_dense_least_squares(public, mechanism, seed):
    tree = random_tree(np.random.default_rng(40 + seed), axes=2, depth=2, widest=3)
    who, exact = INVARIANTS[public]
    levels_of = {axis.name: axis.levels for axis in tree.axes}
    budget = BUDGET if mechanism is hr.DiscreteGaussian else hr.Epsilon(1)
    plan = cube(
        tree,
        neighbours=who,
        mechanism=mechanism,
        budget=budget,
        invariants=[hr.Invariant(name, levels_of[name][k - 1]) for name, k in exact],
    )
    counts = table_of(seed, tree, filled=2.0)
    release = released(counts, plan)
    shape = CubeShape.of([axis.child_start for axis in tree.axes])
    noise = {
        shape.given(levels): what.mechanism.noise_variance
        for levels, what in plan.by_levels.items()
        if isinstance(what, hr.Measured)
    }
    fixed = None if plan.public is None else shape.given(plan.public)
    gains, covariance = dense_gain(shape, noise, fixed)
    leaves = np.zeros(shape.cells(shape.finest))
    for levels, noisy in release.content.measured.items():
        leaves += gains[shape.given(levels)] @ noisy
    if plan.public is not None:
        leaves += gains["public"] @ true_table(counts, plan.public).ravel()
    for levels, nodes in release.content.nodes.items():
        sums = cuboid_sums(shape, shape.given(levels))
        cells = np.ravel_multi_index(nodes.codes, shape.shape(shape.given(levels)))
        np.testing.assert_allclose(nodes.estimate, (sums @ leaves)[cells], rtol=1e-9, atol=1e-7)
        variance = np.diag(sums @ covariance @ sums.T)[cells]
        assert np.allclose(nodes.variance, variance, rtol=1e-9, atol=1e-7)


def test_public_cuboids_are_released_exactly_and_say_so():
    counts = table_of()
    plan = cube(invariants=[hr.Invariant("d", "level1")])
    release = released(counts, plan)
    assert plan.public == (0, 1)
    found = tables(release)
    assert np.array_equal(found[0, 1], true_table(counts, (0, 1)))
    frame = release.level("d.level1")
    assert (frame["low"] == frame["count"]).all()
    assert (frame["high"] == frame["count"]).all()
    assert (frame["standard_error"] == 0).all()
    leaves = summed(PAIRS, found[2, 2], (2, 2), (0, 1))
    assert np.array_equal(leaves, true_table(counts, (0, 1)))


def test_a_confidential_cuboid_is_never_handed_out_exactly():
    counts, plan = table_of(), cube()
    source = Drawn(counts, plan, seeded_bits(0))
    assert source.exact((0, 0)) == counts.total
    for levels in plan.levels[1:]:
        with pytest.raises(ValueError, match="not public"):
            source.exact(levels)


def test_survivors_are_the_leaves_all_of_whose_settled_margins_are_positive():
    counts = table_of(filled=0.15)
    plan = cube(measure=hr.Survivors(), budget=hr.EpsilonDelta("0.5", "1e-8"))
    release = released(counts, plan)
    found = tables(release)
    rows, columns = found[2, 1] > 0, found[1, 2] > 0
    parents = [axis.ancestors(1) for axis in PAIRS.axes]
    expected = sum(
        bool(rows[i, parents[1][j]] and columns[parents[0][i], j])
        for i, j in itertools.product(range(12), range(10))
    )
    noisy = release.measurements("o.level2 × d.level2")
    assert len(noisy) == expected < 120
    assert release.content.noisy_cells == expected + sum(
        PAIRS.cells(levels) for levels in plan.levels[1:-1]
    )
    positive = np.argwhere(found[2, 2] > 0)
    assert all(rows[i, parents[1][j]] and columns[parents[0][i], j] for i, j in positive)
    variance = release.content.nodes[2, 2].variance
    assert np.allclose(variance, plan.by_levels[2, 2].mechanism.noise_variance)


def test_margins_beside_survivors_have_the_estimates_of_the_cubes_without_leaves():
    counts = table_of()
    plan = cube(measure=hr.Survivors())
    release = released(counts, plan)
    boxes = {box.finest for box in plan.design.solver.boxes}
    assert boxes == {(1, 2), (2, 1)}
    for corner in boxes:
        shape = CubeShape.of([a.child_start[:k] for a, k in zip(PAIRS.axes, corner, strict=True)])
        noise = {c: plan.design.noise[c] for c in shape.cuboids() if c != (0, 0)}
        gains, covariance = dense_gain(shape, noise, (0, 0))
        finest = gains["public"] @ np.array([counts.total])
        for levels, noisy in release.content.measured.items():
            if levels in noise:
                finest = finest + gains[levels] @ noisy
        for levels in shape.cuboids():
            if plan.design.solver.variances_of(levels).finest != corner or levels == (0, 0):
                continue
            nodes, sums = release.content.nodes[levels], cuboid_sums(shape, levels)
            cells = np.ravel_multi_index(nodes.codes, shape.shape(levels))
            np.testing.assert_allclose(nodes.estimate, (sums @ finest)[cells], rtol=1e-9)
            variance = np.diag(sums @ covariance @ sums.T)[cells]
            np.testing.assert_allclose(nodes.variance, variance, rtol=1e-9)


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_no_two_cells_of_a_cube_share_a_draw(measure):
    counts, plan = table_of(), cube(neighbours=hr.AddRemove(), measure=measure)
    bits = Recorder()
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=bits)
    assert bits.shared() == []
    assert len(bits.words()) == release.content.noisy_cells
    cells = {place: sum(b - a for a, b in ranges) for place, ranges in bits.by_place().items()}
    assert cells == {levels: len(noisy) for levels, noisy in release.content.measured.items()}
    for drop in (0, 1):
        fault = Recorder(drop)
        in_memory(counts, plan, estimator=hr.Euclidean(), bits=fault)
        assert fault.shared()


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_a_cube_on_disk_is_the_one_in_memory_and_passes_the_check(tmp_path, measure):
    release = released(table_of(), cube(measure=measure))
    release.write(tmp_path / "out")
    findings = hr.check(tmp_path / "out")
    assert [finding.what for finding in findings if not finding.passed] == []
    again = hr.read_release(tmp_path / "out")
    assert again.plan.hash == release.plan.hash
    for name in release.plan.cuboids:
        assert again.level(name).equals(release.level(name))
    names = {path.name for path in (tmp_path / "out" / "counts").iterdir()}
    assert names == {f"cuboid={a}-{b}.parquet" for a in range(3) for b in range(3)}


def test_a_cube_with_levels_of_only_children_repeats_their_counts(tmp_path):
    tree = hr.Tree([named_axis("o", 2, 1, 3), named_axis("d", 1, 4)])
    release = released(table_of(3, tree), cube(tree))
    repeats = release.plan.repeats
    assert repeats[2, 0] == (1, 0)
    assert repeats[3, 1] == (3, 0)
    for levels, coarser in repeats.items():
        one, other = release.content.nodes[levels], release.content.nodes[coarser]
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(one.estimate, other.estimate)
    release.write(tmp_path / "out")
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()])
def test_an_empty_table_is_released_like_any_other(tmp_path, measure, who):
    empty = hr.Counts.from_leaves(
        PAIRS, (np.empty(0, np.int32), np.empty(0, np.int32)), np.empty(0, np.int64)
    )
    release = released(empty, cube(neighbours=who, measure=measure))
    release.write(tmp_path / "out")
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_enormous_counts_keep_their_sums(measure):
    codes = (np.array([0, 5, 11], np.int32), np.array([0, 3, 9], np.int32))
    counts = hr.Counts.from_leaves(PAIRS, codes, np.array([1 << 39, 1 << 38, 3]))
    release = released(counts, cube(neighbours=hr.AddRemove(), measure=measure))
    found = tables(release)
    for levels, table in found.items():
        assert np.array_equal(summed(PAIRS, found[2, 2], (2, 2), levels), table)
    assert abs(int(found[0, 0].sum()) - counts.total) < 1000


def test_a_key_draws_the_same_release_again():
    counts, plan = table_of(), cube()
    one, other = (tables(released(counts, plan, seed=8)) for _ in range(2))
    assert all(np.array_equal(one[levels], other[levels]) for levels in one)


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_a_cube_that_was_killed_is_finished_with_the_same_noise(tmp_path, monkeypatch, measure):
    counts, plan, keys = table_of(), cube(measure=measure), []
    own = Pass._results

    def dies(run):
        keys.append(run.flow.source.bits)
        for found in own(run):
            if isinstance(found, Found) and found.levels == (1, 2):
                raise OSError(28, "No space left on device")
            yield found

    with monkeypatch.context() as patch:
        patch.setattr(Pass, "_results", dies)
        with pytest.raises(hr.MachineError, match="No space left"):
            hr.release(counts, plan, directory=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(hr.ReleaseError, match="--resume"):
        hr.release(counts, plan, directory=tmp_path / "out")
    resume = hr.Unfinished.RESUME
    release = hr.release(counts, plan, directory=tmp_path / "out", unfinished=resume)
    expected = in_memory(counts, plan, estimator=hr.Euclidean(), bits=keys[0])
    for name in plan.cuboids:
        assert release.level(name).equals(expected.level(name))
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))


SPOILED = {
    "a leaf": ("counts/cuboid=2-2.parquet", "count"),
    "a margin": ("counts/cuboid=2-0.parquet", "count"),
    "an estimate": ("counts/cuboid=1-2.parquet", "estimate"),
    "a standard error": ("counts/cuboid=0-2.parquet", "standard_error"),
    "a noisy count": ("measurements/cuboid=1-1.parquet", "noisy_count"),
    "a survivor's noisy count": ("measurements/cuboid=2-2.parquet", "noisy_count"),
}


@pytest.mark.parametrize("spoiled", SPOILED)
def test_what_was_changed_after_the_release_is_found(tmp_path, spoiled):
    """The digests are forged too, so that only the contents contradict each other."""
    released(table_of(), cube(measure=hr.Survivors())).write(tmp_path / "out")
    name, column = SPOILED[spoiled]
    path = tmp_path / "out" / name
    table = pq.read_table(path)
    values = table[column].to_numpy().copy()
    values[0] += 7
    place = table.column_names.index(column)
    forged = table.set_column(place, table.schema.field(column), pa.array(values))
    pq.write_table(forged, path, compression="zstd", store_schema=False)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    manifest["files"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    findings = [f.what for f in hr.check(tmp_path / "out") if f.failure]
    assert any("measurements" in f or "sum of its leaves" in f or "noisy" in f for f in findings)


def test_other_estimators_are_refused_on_a_cube():
    counts, plan = table_of(), cube()
    for estimator in (hr.Chebyshev(), hr.Isotonic()):
        with pytest.raises(hr.EstimateError, match='settled by method = "euclidean"'):
            hr.release(counts, plan, estimator=estimator)


def test_survivors_over_three_axes_are_refused_with_the_way_out():
    tree = hr.Tree([named_axis(name, 2, 2) for name in "abc"])
    with pytest.raises(hr.PlanError, match='measure = "all"'):
        cube(tree, measure=hr.Survivors())


def test_a_cube_that_does_not_fit_in_memory_is_refused_before_anything_is_read():
    tree = hr.Tree([named_axis("o", 50, 50), named_axis("d", 50, 40)])
    whole, few = cube(tree), cube(tree, measure=hr.Survivors())
    assert needed_memory(whole) > needed_memory(few)
    with pytest.raises(hr.PlanError, match='measure = "survivors"'):
        check_memory(whole, needed_memory(whole) - 1)
    check_memory(few, needed_memory(few))


def test_a_cube_that_does_not_fit_in_memory_is_not_read_back(tmp_path, monkeypatch):
    """Files tell nothing of it: a few kilobytes of equal noisy counts state a plan of any size."""
    plan = cube()
    released(table_of(), plan).write(tmp_path / "out")
    monkeypatch.setattr(preflight, "usable_memory", lambda: needed_memory(plan) - 1)
    monkeypatch.setattr(stored, "read_noisy", None)
    with pytest.raises(MachineError, match=r"these cuboids again takes about 0\.4 GB of memory"):
        hr.reestimate(tmp_path / "out", hr.LeastSquares())
    failed, unverified = zip(
        *((each.failure, each.unverified) for each in hr.check(tmp_path / "out")), strict=True
    )
    assert not any(failed), "the release is as honest as on a larger machine"
    assert "takes about 0.4 GB" in unverified[-1]


def test_public_counts_with_forged_estimates_are_told_of_in_a_sentence(tmp_path):
    released(table_of(), cube()).write(tmp_path / "out")
    path = tmp_path / "out" / "counts" / "cuboid=0-0.parquet"
    table = pq.read_table(path)

    def forged(estimate):
        place = table.schema.get_field_index("estimate")
        pq.write_table(table.set_column(place, "estimate", pa.array([estimate])), path)
        return hr.read_release(tmp_path / "out").level("total")

    with pytest.raises(hr.EstimateError, match="estimates must be finite"):
        forged(float("nan"))
    assert forged(1e308)["contradicted"].all()


def test_what_a_cuboid_measures_is_in_the_composition_once():
    plan = cube(neighbours=hr.AddRemove())
    release = released(table_of(), plan)
    assert len(plan.guarantee.uses) == len(release.content.measured)


def test_a_level_without_a_share_is_estimated_from_the_others():
    plan = cube(neighbours=hr.AddRemove())
    share = plan.shares[0]
    kept = [levels for levels in plan.levels if levels[0] != 1]
    part = 1 / (share.__class__(len(kept)))
    thin = replace(plan, shares=tuple(part if k in kept else None for k in plan.levels))
    release = released(table_of(), thin)
    assert isinstance(thin.by_levels[1, 1], hr.Unmeasured)
    assert (1, 1) not in release.content.measured
    found = tables(release)
    assert np.array_equal(summed(PAIRS, found[2, 2], (2, 2), (1, 1)), found[1, 1])
    assert (release.content.nodes[1, 1].variance > 0).all()


@pytest.fixture
def in_jobs(monkeypatch):
    """Even a small cube is cut into jobs."""
    for limit, small in (("UNCUT", 0), ("MOST_ABOVE_THE_CUT", 900), ("WORTH_A_JOB", 1)):
        monkeypatch.setattr(plan_spine, limit, small)
    monkeypatch.setattr(plan_tables, "LEAST_SAVED", 0)


def random_cube(seed, who, budget):
    """A cube of two axes of four and three levels, and a table."""
    rng = np.random.default_rng(seed)
    tree = hr.Tree([random_axis(rng, "o", 4, 4), random_axis(rng, "d", 3, 4)])
    plan = plain_plan(tree, budget=budget, neighbours=who, measure=hr.All(), workload=hr.Cube())
    return random_counts(rng, tree, filled=0.5), plan


@pytest.mark.usefixtures("in_jobs")
@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()], ids=["public", "measured"])
@pytest.mark.parametrize("budget", [hr.Rho("1/50"), hr.Rho(3)], ids=["wide", "narrow"])
def test_a_cube_in_jobs_has_the_noise_and_the_estimates_of_one_held_as_tables(who, budget):
    counts, plan = random_cube(3, who, budget)
    assert len(plan.design.along.jobs) > 5
    source = Drawn(counts, plan, seeded_bits(1))
    nodes, noisy = by_cuboid(pass_of(plan, source, hr.Euclidean()).results())
    whole, drawn = by_cuboid(Pass(TablesFlow(plan, source)).results())
    for levels in plan.levels:
        assert levels not in drawn or np.array_equal(noisy[levels], drawn[levels])
        one, other = nodes[levels], whole[levels]
        places = [cell_numbers(plan.tree, levels, each.codes) for each in (one, other)]
        _, here, there = np.intersect1d(*places, return_indices=True)
        assert len(here) >= 0.9 * max(len(one), len(other))
        for of in ("estimate", "variance"):
            assert np.allclose(getattr(one, of)[here], getattr(other, of)[there], atol=1e-9)
        moved = one.counts[here] != other.counts[there]  # ties and rounding fall otherwise
        assert moved.mean() < 0.25, levels


@pytest.mark.usefixtures("in_jobs")
@pytest.mark.parametrize("place", ["up", "down"])
def test_a_cube_in_jobs_that_was_killed_is_finished_with_the_same_noise(
    tmp_path, monkeypatch, place
):
    counts, plan = random_cube(4, hr.Replace(), hr.Rho(1))
    own, before = getattr(SpineFlow, place), iter(range(3))

    def dies(flow, job):
        if next(before, None) is None:
            raise KeyboardInterrupt
        return own(flow, job)

    with monkeypatch.context() as patch:
        patch.setattr(SpineFlow, place, dies)
        with pytest.raises(KeyboardInterrupt):
            hr.release(counts, plan, directory=tmp_path / "out")
    key = ReleaseKey((tmp_path / "out.staging" / "release.key").read_bytes())
    resume = hr.Unfinished.RESUME
    release = hr.release(counts, plan, directory=tmp_path / "out", unfinished=resume)
    expected = in_memory(counts, plan, estimator=hr.Euclidean(), bits=key)
    for name in plan.cuboids:
        assert release.level(name).equals(expected.level(name))
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))


@pytest.mark.usefixtures("in_jobs")
def test_named_cuboids_that_are_a_grid_are_held_as_tables():
    """They are settled at what they have in common alone, which is closer to the truth."""
    counts, plan = random_cube(3, hr.Replace(), hr.Rho(1))
    names = [plan.tree.name_of(levels) for levels in [(1, 2), (1, 3), (4, 2), (4, 3)]]
    named = plain_plan(
        plan.tree, budget=hr.Rho(1), measure=hr.All(), workload=hr.Cuboids(names),
        allocation=hr.Uniform(), neighbours=hr.Replace(),
    )  # fmt: skip
    assert named.design.along is None
    assert named.design.cut_at is None
    source = Drawn(counts, named, seeded_bits(1))
    assert isinstance(pass_of(named, source, hr.Euclidean()).flow, TablesFlow)


def test_a_cube_goes_in_jobs_only_where_they_are_small_beside_it(monkeypatch):
    monkeypatch.setattr(plan_spine, "UNCUT", 0)
    monkeypatch.setattr(plan_spine, "WORTH_A_JOB", 1)
    monkeypatch.setattr(plan_spine, "MOST_ABOVE_THE_CUT", 2000)
    for first, is_along in ((40, True), (2, False)):
        tree = hr.Tree([named_axis("o", first, 400 // first), named_axis("d", 4, 5)])
        design = cube(tree).design
        assert (design.along is not None) is is_along
        whole = 32 * sum(map(design.shape.cells, design.shape.cuboids()))
        assert (design.bytes_held < whole) is is_along
        assert design.bytes_held + design.bytes_read >= whole - 1000, "they are read back whole"
