"""Cubes and named cuboids: what they alone do, say and refuse; see `test_contract` for the rest."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import EstimateError, MachineError, TableError
from hedgerow.estimate.workload import general
from hedgerow.evaluate.funds import Proportional
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import spine as plan_spine
from hedgerow.plan import tables as plan_tables
from hedgerow.plan.make import read_plan
from hedgerow.release import preflight
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.descent.nodes import by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.tables import TablesFlow
from hedgerow.release.directory import check, stored
from hedgerow.release.passes import Pass, pass_of
from hedgerow.release.preflight import check_memory, needed_memory
from hedgerow.spec.allocation import release_file_lines
from hedgerow.tables.tree import cell_numbers
from tests.made import random_axis, random_counts
from tests.release.dense import Dense
from tests.release.forged import reseal
from tests.release.pairs import (
    LEAVES,
    MARGINS,
    MEASURES,
    PAIRS,
    SINGLE,
    WORKLOADS,
    cube,
    dense,
    named,
    named_axis,
    released,
    summed,
    table_of,
    tables,
    true_table,
)
from tests.release.random_plans import any_shares

# --- survivors ----------------------------------------------------------------------------------


def test_survivors_are_the_leaves_all_of_whose_settled_margins_are_positive():
    counts = table_of(filled=0.1)
    plan = cube(measure=hr.Survivors(), budget=hr.EpsilonDelta("0.5", "1e-8"))
    release = released(counts, plan)
    found, parents = tables(release), [axis.ancestors(1) for axis in PAIRS.axes]
    below = (found[2, 1][:, parents[1]] > 0) & (found[1, 2][parents[0]] > 0)
    assert 0 < below.sum() < below.size
    noisy = release.measurements(LEAVES)
    margins = sum(PAIRS.cells(levels) for levels in plan.levels[1:-1])
    assert release.content.noisy_cells == len(noisy) + margins
    assert below[found[2, 2] > 0].all()
    nodes = answers_of(plan).cells(release.content.stored, [(2, 2)])[2, 2]
    assert np.array_equal(np.stack(nodes.codes, axis=1), np.argwhere(below))
    assert (nodes.variance == plan.by_levels[2, 2].mechanism.noise_variance).all()
    assert np.array_equal(nodes.estimate, noisy["noisy_count"]), "each its own noisy count"
    gaps = nodes.estimate - true_table(counts, (2, 2))[nodes.codes]
    assert np.abs(gaps).max() < 6 * np.sqrt(nodes.variance[0]), "at its own cell"


def test_margins_beside_survivors_have_the_estimates_of_the_cubes_without_leaves():
    release = released(table_of(), cube(measure=hr.Survivors()))
    solver = release.plan.design.solver
    boxes = {box.finest for box in solver.boxes}
    assert boxes == {(1, 2), (2, 1)}
    for corner in boxes:
        box = Dense(release, within=corner)
        for levels in release.plan.levels[1:-1]:
            if solver.variances_of(levels).finest == corner:
                box.agrees(release.level(PAIRS.name_of(levels)))


@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()], ids=["public", "measured"])
def test_survivors_of_any_shares_lie_below_margins_that_are_estimated_together(who):
    plan = any_shares(np.random.default_rng(4), cube(neighbours=who, measure=hr.Survivors()))
    assert plan.design.squares is None
    release = released(table_of(), plan)
    found, together = tables(release), Dense(release)
    for levels, table in found.items():
        assert np.array_equal(summed(PAIRS, found[2, 2], (2, 2), levels), table), levels
        if plan.is_whole(levels):
            together.agrees(release.level(PAIRS.name_of(levels)))


def test_cells_that_were_not_measured_cannot_be_listed():
    release = released(table_of(filled=0.1), cube(measure=hr.Survivors()))
    stored_files, nodes = release.content.stored, dict(release.content.nodes)
    measured = answers_of(release.plan).cells(stored_files, [(2, 2)])[2, 2]
    never = np.argwhere(dense(PAIRS, (2, 2), measured.codes, 1) == 0)[0]
    stray = tuple(np.array([code], dtype=np.int32) for code in never)
    nodes[2, 2] = type(nodes[2, 2]).exact(stray, np.array([1]))
    with pytest.raises(hr.ReleaseError, match="lists cells that were not measured"):
        answers_of(release.plan).cells(replace(stored_files, nodes=nodes), release.plan.levels)


@pytest.mark.parametrize("deeper", [[], [2]], ids=["the leaves", "another table"])
def test_of_a_table_of_survivors_counts_alone_are_answered(deeper):
    tree = hr.Tree([named_axis("o", 3, 4), named_axis("d", 2, 5, *deeper)])
    plan = named(WORKLOADS["margins and leaves"], tree, measure=hr.Survivors())
    release = released(table_of(tree=tree, filled=0.3), plan)
    assert release.cuboid(o="level1")["estimate"].null_count() == 0, "o.level2 is measured whole"
    with pytest.raises(hr.ReleaseError) as caught:
        release.cuboid(o="level1", d="level1")
    assert str(caught.value) == (
        "o.level1 × d.level1 is a sum of o.level2 × d.level2, of which survivors alone were "
        "measured, so its errors are unknown; ask for counts alone: cuboid(None, ...) or "
        "--counts-only"
    )


# --- shares -------------------------------------------------------------------------------------


def test_survivors_without_a_share_or_over_three_axes_are_refused_with_the_way_out():
    tree = hr.Tree([named_axis(name, 2, 2) for name in "abc"])
    with pytest.raises(hr.PlanError, match='measure = "all"'):
        cube(tree, measure=hr.Survivors())
    any_three = any_shares(np.random.default_rng(5), cube(tree))
    with pytest.raises(hr.PlanError, match="over two axes alone"):
        replace(any_three, measure=hr.Survivors())
    plan = cube(measure=hr.Survivors())
    first, *others = plan.measured
    left = [None if k in (first, (0, 0)) else Fraction(1, len(others)) for k in plan.levels]
    with pytest.raises(hr.PlanError, match="every level of every axis needs a share, and so does"):
        replace(plan, shares=tuple(left))


@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
def test_any_shares_read_back_and_their_lines_give_them_by_name(measure):
    plan = any_shares(np.random.default_rng(6), cube(measure=measure))
    assert read_plan(plan.tree, plan.to_dict()).hash == plan.hash
    assert '"o.level1" = "' in release_file_lines(plan)
    names = map(PAIRS.name_of, plan.levels)
    given = {name: share for name, share in zip(names, plan.shares, strict=True) if share}
    again = cube(measure=measure, allocation=hr.Shares(given))
    assert again.hash == replace(plan, allocation="shares").hash


def test_shares_that_are_a_product_stay_with_the_closed_form():
    assert cube().design.squares is not None
    assert '"o" = [' in release_file_lines(cube())


def test_a_cube_that_is_too_large_for_any_shares_is_told_to_give_them_by_axis(monkeypatch):
    plan = cube()
    monkeypatch.setattr(general, "MOST_CELLS_OF_TABLES", 100)
    assert replace(plan).design.shape.cells((2, 2)) == 120
    with pytest.raises(hr.PlanError, match=r"up to 100 measured .*; or give the shares .* by axis"):
        any_shares(np.random.default_rng(7), plan)


def test_funds_by_a_cube_of_any_shares_have_intervals():
    release = released(table_of(), any_shares(np.random.default_rng(8), cube()))
    found = share_intervals(release, "o.level1", Proportional(), 60, draws=40)
    assert (found["low"] < found["high"]).all()


# --- memory and jobs ----------------------------------------------------------------------------

LARGE = hr.Tree([named_axis("o", 50, 50), named_axis("d", 50, 40)])


@pytest.mark.parametrize(
    ("whole", "few", "words"),
    [
        (cube(LARGE), cube(LARGE, measure=hr.Survivors()), 'measure = "survivors"'),
        (
            named(WORKLOADS["a chain with margins"], LARGE),
            named(WORKLOADS["margins that overlap"], LARGE),
            "held in memory at once",
        ),
    ],
    ids=["cube", "named"],
)
def test_tables_that_do_not_fit_in_memory_are_refused_before_anything_is_read(whole, few, words):
    needed = needed_memory(whole)
    assert needed > needed_memory(few)
    with pytest.raises(hr.PlanError, match=words):
        check_memory(whole, needed - 1)
    check_memory(whole, needed)
    check_memory(few, needed - 1)


def test_a_cube_that_does_not_fit_in_memory_is_not_read_back(out, monkeypatch):
    """Files tell nothing of it: a few kilobytes of equal noisy counts state a plan of any size."""
    plan = cube()
    released(table_of(), plan).write(out)
    monkeypatch.setattr(preflight, "usable_memory", lambda: needed_memory(plan) - 1)
    monkeypatch.setattr(stored, "read_noisy", None)
    with pytest.raises(MachineError, match=r"these cuboids again takes about 0\.4 GB of memory"):
        hr.reestimate(out, hr.LeastSquares())
    found = hr.check(out)
    assert not any(each.failure for each in found), (
        "the release is as honest as on a larger machine"
    )
    assert "takes about 0.4 GB" in found[-1].unverified


@pytest.fixture
def in_jobs(monkeypatch):
    """Even a small cube is cut into jobs."""
    for limit, small in (("UNCUT", 0), ("MOST_ABOVE_THE_CUT", 900), ("WORTH_A_JOB", 1)):
        monkeypatch.setattr(plan_spine, limit, small)
    monkeypatch.setattr(plan_tables, "LEAST_SAVED", 0)


def random_cube(who, budget):
    """A cube of two axes of four and three levels, and a table."""
    rng = np.random.default_rng(3)
    tree = hr.Tree([random_axis(rng, "o", 4, 4), random_axis(rng, "d", 3, 4)])
    return random_counts(rng, tree, filled=0.5), cube(tree, budget=budget, neighbours=who)


@pytest.mark.usefixtures("in_jobs")
@pytest.mark.parametrize("who", [hr.Replace(), hr.AddRemove()], ids=["public", "measured"])
@pytest.mark.parametrize("budget", [hr.Rho("1/50"), hr.Rho(3)], ids=["wide", "narrow"])
def test_a_cube_in_jobs_has_the_noise_and_the_estimates_of_one_held_as_tables(who, budget):
    counts, plan = random_cube(who, budget)
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
def test_named_cuboids_that_are_a_grid_are_held_as_tables():
    """They are settled at what they have in common alone, which is closer to the truth."""
    counts, plan = random_cube(hr.Replace(), hr.Rho(1))
    names = [plan.tree.name_of(levels) for levels in [(1, 2), (1, 3), (4, 2), (4, 3)]]
    grid = named(hr.Cuboids(names), plan.tree, budget=hr.Rho(1))
    assert grid.design.along is None
    assert grid.design.cut_at is None
    source = Drawn(counts, grid, seeded_bits(1))
    assert isinstance(pass_of(grid, source, hr.Euclidean()).flow, TablesFlow)


def test_a_cube_goes_in_jobs_only_where_they_are_small_beside_it(monkeypatch):
    for limit, small in (("UNCUT", 0), ("WORTH_A_JOB", 1), ("MOST_ABOVE_THE_CUT", 2000)):
        monkeypatch.setattr(plan_spine, limit, small)
    for first, is_along in ((40, True), (2, False)):
        tree = hr.Tree([named_axis("o", first, 400 // first), named_axis("d", 4, 5)])
        design = cube(tree).design
        assert (design.along is not None) is is_along
        whole = 32 * sum(map(design.shape.cells, design.shape.cuboids()))
        assert (design.bytes_held < whole) is is_along
        assert design.bytes_held + design.bytes_read >= whole - 1000, "they are read back whole"


# --- files --------------------------------------------------------------------------------------


def test_files_are_called_by_the_levels_of_their_cuboids(tmp_path, out):
    release = released(table_of(), cube())
    release.write(out)
    names = {f"cuboid={a}-{b}.parquet" for a in range(3) for b in range(3)}
    assert {path.name for path in (out / "counts").iterdir()} == names
    again = hr.reestimate(release, hr.LeastSquares())
    again.write(tmp_path / "again")
    assert {path.name for path in (tmp_path / "again").iterdir()} >= {*names, "estimate.json"}
    assert pl.read_parquet(tmp_path / "again" / "cuboid=2-1.parquet").equals(again.frames[2, 1])


def test_a_cube_with_levels_of_only_children_repeats_their_counts():
    tree = hr.Tree([named_axis("o", 2, 1, 3), named_axis("d", 1, 4)])
    release = released(table_of(3, tree), cube(tree))
    repeats = release.plan.repeats
    assert repeats[2, 0] == (1, 0)
    assert repeats[3, 1] == (3, 0)
    for levels, coarser in repeats.items():
        one, other = release.content.nodes[levels], release.content.nodes[coarser]
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(one.estimate, other.estimate)


SPOILED = {
    "a leaf": ("counts/cuboid=2-2.parquet", "count"),
    "a margin": ("counts/cuboid=2-0.parquet", "count"),
    "an estimate": ("counts/cuboid=1-2.parquet", "estimate"),
    "a standard error": ("counts/cuboid=0-2.parquet", "standard_error"),
    "a noisy count": ("measurements/cuboid=1-1.parquet", "noisy_count"),
    "a survivor's noisy count": ("measurements/cuboid=2-2.parquet", "noisy_count"),
}


def forge(path, column, change):
    """Write a Parquet file again with another first value in a column."""
    table = pq.read_table(path)
    values, place = table[column].to_numpy().copy(), table.column_names.index(column)
    values[0] = change(values[0])
    forged = table.set_column(place, table.schema.field(column), pa.array(values))
    pq.write_table(forged, path, compression="zstd", store_schema=False)


@pytest.mark.parametrize("spoiled", SPOILED)
def test_what_was_changed_after_the_release_is_found(out, spoiled):
    """The digests are forged too, so that only the contents contradict each other."""
    folder = out
    released(table_of(), cube(measure=hr.Survivors())).write(folder)
    name, column = SPOILED[spoiled]
    forge(folder / name, column, lambda value: value + 7)
    reseal(folder)
    findings = [f.what for f in hr.check(folder) if f.failure]
    assert any("measurements" in f or "sum of its leaves" in f or "noisy" in f for f in findings)


def test_public_counts_with_forged_estimates_are_told_of_in_a_sentence(out):
    folder = out
    released(table_of(), cube()).write(folder)
    forge(folder / "counts/cuboid=0-0.parquet", "estimate", lambda _: np.nan)
    with pytest.raises(hr.EstimateError, match="estimates must be finite"):
        hr.read_release(folder).level("total")
    forge(folder / "counts/cuboid=0-0.parquet", "estimate", lambda _: 1e308)
    assert hr.read_release(folder).level("total")["contradicted"].all()


def test_counts_alone_read_one_file(out, monkeypatch):
    released(table_of(filled=0.6), named(WORKLOADS["margins that overlap"])).write(out)
    release = hr.read_release(out)
    asked, read = [], stored.read_nodes
    monkeypatch.setattr(stored, "read_nodes", lambda *at: asked.append(at[-1]) or read(*at))
    release.cuboid(None, o="level2")
    assert asked == [(2, 1)]


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("measure", MEASURES, ids=["all", "survivors"])
@pytest.mark.sweep(3)
def test_check_shows_that_the_tables_agree(name, measure, out):
    plan = named(WORKLOADS[name], measure=measure)
    released(table_of(filled=0.6), plan).write(out)
    found = [each.what for each in hr.check(out) if "every count is the sum" in each.what]
    pairs = [
        (k, t) for k in plan.levels for t in plan.tables if k != t and np.less_equal(k, t).all()
    ]
    of = PAIRS.name_of
    if len(plan.tables) > 1:
        assert found == [f"{of(k)}: every count is the sum of those of {of(t)}" for k, t in pairs]
        assert len(pairs) > len(plan.levels) - len(plan.tables), "what is shared, against both"
    elif plan.tables == ((2, 2),):
        assert {each.partition(": ")[2] for each in found} == {
            "every count is the sum of its leaves"
        }


def test_check_finds_tables_that_do_not_agree(monkeypatch, out):
    released(table_of(filled=0.6), named(WORKLOADS["margins that overlap"])).write(out)
    read = stored.read_nodes

    def shifted(folder, tree, levels):
        """One record of the second table moved to another region of origin."""
        nodes = read(folder, tree, levels)
        if levels != (1, 2):
            return nodes
        counts, other = nodes.counts.copy(), np.argmax(nodes.codes[0] != nodes.codes[0][0])
        counts[[0, other]] += [-1, 1]
        return replace(nodes, counts=counts)

    monkeypatch.setattr(stored, "read_nodes", shifted)
    failed = {f.what: f.failure for f in check.check(out) if f.failure}
    shared = "o.level1 × d.level1: every count is the sum of those of o.level1 × d.level2"
    assert failed[shared] == "some counts are not the sums of their o.level1 × d.level2"
    other = "o.level1 × d.level1: every count is the sum of those of o.level2 × d.level1"
    assert other not in failed


# --- questions ----------------------------------------------------------------------------------


def test_axes_stand_in_the_order_in_which_they_are_named():
    release = released(table_of(filled=0.4), cube())
    one, other = release.cuboid(o="level1", d="level2"), release.cuboid(d="level2", o="level1")
    assert one.columns[:3] == ["o_1", "d_1", "d_2"]
    assert other.columns[:3] == ["d_1", "d_2", "o_1"]
    assert other.select(one.columns).sort("o_1", "d_1", "d_2").equals(one)


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
    workload = hr.Cuboids(["o.level2", "o.level1 × d.level2"])
    plan, counts = named(workload, invariants=[hr.Invariant("o", "level2")]), table_of(filled=0.6)
    assert plan.by_levels[1, 0] == hr.Public()
    exact = released(counts, plan).cuboid(o="level1")
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


def test_a_count_far_from_its_own_measurements_is_contradicted():
    content = released(table_of(filled=0.6), named(WORKLOADS["margins that overlap"])).content
    far = {
        k: replace(nodes, counts=nodes.counts + 10_000 * (k == (2, 1)))
        for k, nodes in content.nodes.items()
    }
    found = hr.Release(replace(content, nodes=far)).cuboid(o="level2")
    assert found["contradicted"].all()
    assert found.schema["contradicted"] == pl.Boolean


def test_workloads_without_depths_are_asked_by_names():
    release = released(table_of(), cube())
    assert release.level("o.level1 x d.level1").equals(release.level("d.level1 × o.level1"))
    assert release.level("o.level1*d.level1").equals(release.level("o.level1 × d.level1"))
    assert len(release.measurements("o.level2 × d.level1")) == 24
    again = hr.reestimate(release, hr.LeastSquares())
    assert again.level("d.level1 x o.level2").equals(again.frames[2, 1])
    margins = released(table_of(), named(WORKLOADS["margins alone"]))
    by_name = r"no cuboid 'level1' is in the plan; .* release.cuboid\(o=\"level1\"\)"
    for asked, words in [
        ((release, {"depth": 1}), "a cube has no depths; name a cuboid; there are tot"),
        ((release, {"level": "o.levle1"}), r"no cuboid 'o.levle1'; did you mean 'o.level1'"),
        ((release, {"level": "level1"}), r"'level1'; did you mean 'o.level1'"),
        ((margins, {"depth": 1}), "a workload of named cuboids has no depths; name a"),
        ((margins, {"level": "level1"}), by_name),
        ((again, {"depth": 1}), r"these estimates have no depths; name a cuboid, such as 'o"),
        ((again, {"level": "o.level9"}), r"no cuboid is called 'o.level9'; there are total, "),
    ]:
        of, given = asked
        with pytest.raises((hr.ReleaseError, TableError), match=words):
            of.level(**given)


def test_other_estimators_are_refused():
    for plan, estimator, words in [
        (cube(), hr.Chebyshev(), 'settled by method = "euclidean"'),
        (cube(), hr.Isotonic(), 'settled by method = "euclidean"'),
        (cube(), hr.Sparse(), 'a cube is settled by method = "euclidean"'),
        (named(hr.Cuboids(MARGINS)), hr.Chebyshev(), "a workload of named cuboids is settled by"),
    ]:
        with pytest.raises(EstimateError, match=words):
            hr.release(table_of(), plan, estimator=estimator)
        with pytest.raises(EstimateError, match=words):
            hr.reestimate(released(table_of(), plan), estimator)


def test_covariances_that_nobody_knows_are_refused_in_a_sentence(monkeypatch):
    few = hr.Survivors()
    of_cube = hr.reestimate(released(table_of(), cube(measure=few)), hr.LeastSquares())
    assert "of others the noisy counts" in of_cube.described["claim"]
    plan = named(WORKLOADS["margins and leaves"], measure=few)
    of_named = hr.reestimate(released(table_of(), plan), hr.LeastSquares())
    with monkeypatch.context() as patched:
        patched.setattr(general, "MOST_DENSE", 0)
        plan = named(WORKLOADS["a chain with margins"])
        large = hr.reestimate(released(table_of(), plan), hr.LeastSquares())
    other = PAIRS.name_of((1, 2))
    for estimates, cells, words in [
        (of_cube, [(LEAVES, 0), (LEAVES, 1)], "were not all measured whole"),
        (of_cube, [("o.level2 × d.level1", 0), (other, 0)], "estimated from the same noisy counts"),
        (of_cube, [("o.level1", 3)], "has 3 cells, none is 3"),
        (of_named, [("o.level2", 0), (LEAVES, 0)], "measured whole and estimated from the"),
        (large, [("o.level2", 0)], "covariances of so large a workload are unknown"),
    ]:
        with pytest.raises(EstimateError, match=words):
            estimates.covariance(cells)


def test_noisy_counts_from_elsewhere_are_those_of_depths():
    noisy = pl.DataFrame({"noisy_count": [3.0], "variance": [1.0]})
    for key in ("o.level2", True, 1.0, 7):
        frames = {7: noisy} if key == 7 else {0: noisy, key: noisy}
        words = r"those of a tree's depths, 0 to 4, got .*; other cub"
        with pytest.raises(TableError, match=words):
            hr.Measurements.from_frames(PAIRS, frames)
