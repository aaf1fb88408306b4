"""Subtree jobs on slices of a table, and the parts of a release that they write."""

from itertools import chain

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.nodes import NOWHERE, first_leaves, true_nodes
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.manifest import part_files, whole_names
from hedgerow.release.directory.measurements import cuboid_slug
from hedgerow.spark.executors import each_job, read_notes, runs_of, take_parts, write_run
from hedgerow.tables.counts import Counts
from tests.made import plain_plan, random_counts, random_tree


@pytest.fixture(params=[hr.Survivors(), hr.All()], ids=["survivors", "all"])
def subtrees(request, monkeypatch):
    """The jobs of a small tree that is cut, with the true counts of the cut as released ones."""
    for limit in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
        monkeypatch.setattr(planned_chain, limit, 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", 4)
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 2, depth=2, widest=4)
    counts = random_counts(rng, tree)
    plan = plain_plan(tree, budget=hr.Rho("1/2"), measure=request.param)
    cut = plan.design.outline
    assert 0 < cut.cut < tree.depth
    flow = ChainFlow(cut, Drawn(counts, plan, seeded_bits(2)), hr.Euclidean())
    return flow, true_nodes(counts, cut.cut), counts


def down(flow, jobs, leaves):
    """What jobs find on the leaves below them, as an executor does them."""
    here = flow.on(None, None).on(leaves, flow.source.bits)
    return chain.from_iterable(map(here.down, each_job(here.located(jobs))))


def errors_of(flow):
    plan = flow.source.plan
    return {levels: CuboidErrors.of(plan, levels, None) for levels in plan.levels}


def share(counts, keep):
    codes = tuple(code[keep] for code in counts.codes)
    return Counts.from_leaves(counts.tree, codes, counts.values[keep])


def test_a_job_needs_its_own_slice_of_the_table_alone(subtrees):
    flow, roots, counts = subtrees
    place = flow.roots(roots).jobs_of(flow.tree, counts.codes)
    half = len(roots.nodes) // 2
    for run in (range(half), range(half, len(roots.nodes))):
        few = roots.take(slice(run.start, run.stop))
        leaves = share(counts, (place >= run.start) & (place < run.stop))
        wanted = [found for job in each_job(few) for found in flow.down(job)]
        for one, other in zip(down(flow, few, leaves), wanted, strict=True):
            assert np.array_equal(one.nodes.counts, other.nodes.counts)
            assert np.array_equal(one.nodes.estimate, other.nodes.estimate)
            assert np.array_equal(one.noisy, other.noisy)
        here = flow.on(leaves, flow.source.bits)
        for job, own in zip(each_job(few), each_job(here.located(few)), strict=True):
            for one, other in zip(here.up(own), flow.up(job), strict=True):
                assert np.array_equal(one, other)


def test_leaves_find_their_root_or_none(subtrees):
    flow, roots, counts = subtrees
    place = flow.roots(roots.take(slice(1, None))).jobs_of(flow.tree, counts.codes)
    slices = roots.slices
    assert (place[: int(slices.stop[0])] == NOWHERE).all()
    assert np.array_equal(np.flatnonzero(place == 0), np.arange(slices.start[1], slices.stop[1]))


def test_records_on_the_first_leaf_of_their_node_have_its_counts(subtrees):
    flow, _, counts = subtrees
    cut, tree = flow.outline.cut, counts.tree
    codes, values = counts.roll_up(cut)
    moved = Counts.from_leaves(tree, first_leaves(tree, tree.cuboid(cut), codes), values)
    for depth in range(cut + 1):
        assert moved.level(depth).equals(counts.level(depth))


@pytest.mark.parametrize("weights", [[0] * 300, [5], [0, 0, 10**6, 0], list(range(2000))])
def test_runs_cover_all_jobs_once_in_order(subtrees, weights):
    runs = runs_of(subtrees[0].tree, np.array(weights))
    assert [i for run in runs for i in run] == list(range(len(weights)))
    assert all(runs)
    assert len(runs) <= 8


def test_a_run_that_is_written_twice_is_the_same_files(subtrees, tmp_path):
    flow, roots, counts = subtrees
    seen = []
    for _ in range(2):
        write_run(tmp_path, flow.tree, errors_of(flow), 7, (1, 2), down(flow, roots, counts))
        parts = sorted(path for path in tmp_path.rglob("*.*") if path.is_file())
        seen.append([(path, path.read_bytes()) for path in parts])
    assert seen[0] == seen[1]
    assert list((tmp_path / "attempts").iterdir()) == []
    (note,) = read_notes(tmp_path).values()
    assert (note.run, note.sums) == (7, (1, 2))
    assert set(note.survivors) == set(map(cuboid_slug, flow.tree.chain[flow.outline.cut + 1 :]))


@pytest.mark.parametrize("lost", ["counts", "measurements"])
def test_a_run_whose_parts_were_moved_is_not_finished(subtrees, tmp_path, lost):
    """Whoever kills a release after it took its parts leaves the notes without them."""
    flow, roots, counts = subtrees
    write_run(tmp_path, flow.tree, errors_of(flow), 7, (1, 2), down(flow, roots, counts))
    assert set(read_notes(tmp_path)) == {7}
    next((tmp_path / "parts" / lost).glob("*/part-00007.parquet")).unlink()
    assert read_notes(tmp_path) == {}


def test_a_run_that_breaks_off_leaves_nothing(subtrees, tmp_path):
    flow, roots, counts = subtrees

    def broken():
        yield next(down(flow, roots.take(slice(0, 1)), counts))
        raise OSError

    with pytest.raises(OSError, match=r"^$"):
        write_run(tmp_path, flow.tree, errors_of(flow), 0, (), broken())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert read_notes(tmp_path) == {}


def test_parts_take_the_place_of_their_cuboid(tmp_path):
    for name in (
        "parts/counts/cuboid=1-1/part-00001.parquet",
        "parts/counts/cuboid=1-1/part-00000.parquet",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    content = tmp_path / "content"
    (content / "counts").mkdir(parents=True)
    for levels in ("1-0", "1-1"):
        (content / "counts" / f"cuboid={levels}.parquet").touch()
    take_parts(tmp_path, content)
    counts = content / "counts"
    assert part_files(content, "counts/cuboid=1-0.parquet") == [counts / "cuboid=1-0.parquet"]
    names = [path.name for path in part_files(content, "counts/cuboid=1-1.parquet")]
    assert names == ["part-00000.parquet", "part-00001.parquet"]
    assert not (counts / "cuboid=1-1.parquet").exists()


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        (["a", "counts/cuboid=3/part-00000.parquet"], ["a", "counts/cuboid=3.parquet"]),
        (["counts/cuboid=3/part-00001.parquet"], None),
        (["counts/cuboid=3.parquet", "counts/cuboid=3/part-00000.parquet"], None),
        (["counts/cuboid=3/part-0.parquet"], None),
        (["other/cuboid=3/part-00000.parquet"], None),
        (["counts/cuboid=3/x/part-00000.parquet"], None),
        (["counts/cuboid=/part-00000.parquet"], None),
        (["counts/cuboid=3-/part-00000.parquet"], None),
        (["counts/cuboid=3-11-0/part-00000.parquet"], ["counts/cuboid=3-11-0.parquet"]),
    ],
)  # fmt: skip
def test_parts_stand_for_their_file_if_all_are_there_and_it_is_not(names, whole):
    assert whole_names(names) == (names if whole is None else whole)
