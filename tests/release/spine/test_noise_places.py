"""Whose noise is whose: the places of streams along a spine, and what a table may steer."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.plan import spine as plan_spine
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.descent.jobs import Progress
from hedgerow.release.directory import keys
from hedgerow.release.directory.job_cache import DiskCache
from hedgerow.release.directory.output import Unfinished
from hedgerow.release.execution import in_memory
from tests.made import plain_plan, random_axis
from tests.release.spine.made_spines import kinds_of_blocks, people, spine_tree


@pytest.fixture(autouse=True)
def _in_many_jobs(monkeypatch):
    monkeypatch.setattr(plan_spine, "UNCUT", 0)
    monkeypatch.setattr(plan_spine, "MOST_ABOVE_THE_CUT", 60)
    monkeypatch.setattr(plan_spine, "WORTH_A_JOB", 1)


class Recorder:
    """Bits that tell which places were asked for."""

    def __init__(self, bits):
        self.bits, self.place_of = bits, {}

    def stream(self, *place):
        stream = self.bits.stream(*place)
        self.place_of[stream] = place
        return stream


def planned(seed):
    """A plan over a random spine: a cube, or named cuboids with single children among them."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        tree = spine_tree(rng)
        kinds = kinds_of_blocks(rng, tree)
        facts, workload = [hr.PublicTable(kinds, zeros="unlisted")], hr.Cube()
    else:
        one = pl.DataFrame({"all": ["all"] * 3, "kind": ["a", "b", "c"]})
        two = pl.DataFrame({"age": ["minor", "adult"]})
        tree = hr.Tree([
            random_axis(rng, "place", 3, 3),
            hr.Axis.from_frame("kind", one, ["all", "kind"], attribute=True),
            hr.Axis.from_frame("age", two, ["age"], attribute=True),
        ])  # fmt: skip
        names = ["place.level1 × kind.all", "kind.kind × age.age", "place.level2 × age.age"]
        names += ["place.level3 × kind.kind × age.age", "kind.all × age.age"]
        facts, workload = [], hr.Cuboids(names)
    neighbours = hr.AddRemove() if seed % 3 else hr.Replace()
    options = {"workload": workload, "neighbours": neighbours, "public": facts}
    plan = plain_plan(tree, budget=hr.Rho("1/5"), **options)
    assert isinstance(plan.design, PlannedSpine)
    return rng, plan


@pytest.mark.parametrize("seed", range(8))
def test_no_stream_is_drawn_for_the_noise_of_two_cells(seed, monkeypatch):
    rng, plan = planned(seed)
    tree, draws, draw = plan.tree, [], DiscreteGaussian.draw

    def recorded(mechanism, stream, start, out):
        draw(mechanism, stream, start, out)
        draws.append((bits.place_of[stream], start, len(out), out.tobytes()))

    codes = tuple(rng.integers(0, axis.size(axis.depth), 40, dtype=np.int32) for axis in tree.axes)
    counts = hr.Counts.from_leaves(tree, codes, rng.integers(1, 9, 40))
    bits = Recorder(seeded_bits(seed))
    monkeypatch.setattr(DiscreteGaussian, "draw", recorded)
    in_memory(counts, plan, estimator=hr.Euclidean(), bits=bits)
    noise = defaultdict(set)
    for place, start, cells, words in draws:
        assert start == 0
        noise[place].add((cells, words))
    assert all(len(each) == 1 for each in noise.values())  # a job up and down has the same noise
    cells_of = Counter()
    for place, ((cells, _),) in noise.items():
        cells_of[place[: len(tree.axes)]] += cells
    joint = plan.design
    assert cells_of == {joint.levels(each): joint.size(each) for each in joint.noise}
    assert len(joint.jobs) > 1
    assert {place[len(tree.axes) :] for place in noise} <= {
        (),
        *((part.nodes.start,) for part in joint.jobs),
    }


def test_names_of_files_streams_and_progress_are_the_same_whatever_the_table_holds(
    tmp_path, monkeypatch
):
    tree = spine_tree(rng := np.random.default_rng(5))
    kinds = kinds_of_blocks(rng, tree)
    facts = [hr.PublicTable(kinds, zeros="unlisted", at_least="least")]
    options = {"neighbours": hr.AddRemove(), "workload": hr.Cube(), "public": facts}
    plan = plain_plan(tree, budget=hr.Rho("1/5"), **options)
    sizes = [axis.size(axis.depth) for axis in tree.axes]
    every = tuple(code.ravel().astype(np.int32) for code in np.indices(sizes))
    zeros = np.zeros(len(every[0]), dtype=np.int64)
    seen, stream, path = [], ReleaseKey.stream, DiskCache._path

    def streamed(key, *place):
        seen[-1]["places"][place] += 1
        return stream(key, *place)

    def kept(cache, way, jobs):
        seen[-1]["files"][way, jobs] += 1
        return path(cache, way, jobs)

    monkeypatch.setattr(ReleaseKey, "stream", streamed)
    monkeypatch.setattr(DiskCache, "_path", kept)
    kept_facts = people(rng, tree, kinds)
    tables = {
        "nobody": hr.Counts.from_leaves(tree, every, zeros),
        "as facts say": kept_facts,
        "against all facts": hr.Counts.from_leaves(tree, every, zeros + 1000),
        "as many as are counted": hr.Counts.from_leaves(tree, every, zeros + (1 << 40)),
    }
    for name, counts in tables.items():
        seen.append({name: Counter() for name in ("places", "files", "progress")})
        told = seen[-1]["progress"]
        progress = Progress(
            on_cells=lambda cells, told=told: told.update([cells]),
            on_fraction=lambda done, told=told: told.update([done]),
        )
        hr.release(counts, plan, directory=tmp_path / name, progress=progress)
        assert not [finding for finding in hr.check(tmp_path / name) if not finding.passed]
        seen[-1]["released"] = sorted(
            str(file.relative_to(tmp_path / name)) for file in (tmp_path / name).rglob("*")
        )
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(tables)  # no cache is left
    assert all(each == seen[0] for each in seen)
    assert len(plan.design.jobs) > 1


def test_a_release_that_was_killed_and_resumed_is_the_one_that_was_not(tmp_path, monkeypatch):
    rng, plan = planned(5)
    tree = plan.tree
    codes = tuple(rng.integers(0, axis.size(axis.depth), 40, dtype=np.int32) for axis in tree.axes)
    counts = hr.Counts.from_leaves(tree, codes, rng.integers(1, 9, 40))
    path, left = DiskCache._path, [0]
    monkeypatch.setattr(keys.os, "urandom", lambda size: bytes(range(size)))
    hr.release(counts, plan, directory=tmp_path / "whole")

    def killed(cache, way, jobs):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return path(cache, way, jobs)

    monkeypatch.setattr(DiskCache, "_path", killed)
    jobs = len(plan.design.jobs)
    assert jobs > 3
    options, resumed = {"directory": tmp_path / "again"}, {"unfinished": Unfinished.RESUME}
    for runs in (2, jobs + 2, 2 * jobs):  # up, at the first jobs down, at the last one
        left[0] = runs
        with pytest.raises(KeyboardInterrupt):
            hr.release(counts, plan, **options)
        options |= resumed
    left[0] = 0
    hr.release(counts, plan, **options)
    whole, again = (hr.read_release(tmp_path / name).content for name in ("whole", "again"))
    for levels, noisy in whole.stored.measured.items():
        assert np.array_equal(noisy, again.stored.measured[levels])
    for levels, nodes in whole.nodes.items():
        assert np.array_equal(nodes.counts, again.nodes[levels].counts)
        assert np.array_equal(nodes.estimate, again.nodes[levels].estimate)
