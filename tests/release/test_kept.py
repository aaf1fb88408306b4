"""Finished jobs are kept, found again and never run twice."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.release.descent import block, jobs
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.nodes import by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory import job_cache as kept
from hedgerow.release.directory.job_cache import DiskCache
from hedgerow.release.passes import pass_of
from tests.made import plain_plan, random_counts, random_tree

MEASURES = {"survivors": hr.Survivors(), "all": hr.All()}


@pytest.fixture(params=MEASURES)
def made(request, monkeypatch):
    for name in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
        monkeypatch.setattr(planned_chain, name, 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", 9)
    monkeypatch.setattr(block, "CHUNK_CELLS", 5)
    monkeypatch.setattr(jobs, "RUNS", 4)
    monkeypatch.setattr(kept, "ROWS_WORTH_COMPRESSING", 20)
    rng = np.random.default_rng(3)
    tree = random_tree(rng, axes=2, depth=3)
    counts = random_counts(rng, tree, filled=0.9)
    plan = plain_plan(tree, budget=hr.Rho("1/2"), measure=MEASURES[request.param])
    source = Drawn(counts, plan, seeded_bits(0))

    def run(folder=None):
        runner = None if folder is None else jobs.LocalJobs(cache=DiskCache(folder))
        return pass_of(plan, source, hr.Chebyshev(), runner=runner)

    return run


def arrays(nodes):
    return [*nodes.codes, nodes.counts, nodes.estimate, nodes.variance]


def same(one, other):
    for nodes, others in zip(one[0].values(), other[0].values(), strict=True):
        for a, b in zip(arrays(nodes), arrays(others), strict=True):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
    for t, noisy in one[1].items():
        assert np.array_equal(noisy, other[1][t])


@pytest.mark.parametrize("rows", [1, 1 << 20])
def test_what_is_kept_is_what_was_found(made, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(kept, "ROWS_A_BATCH", rows)
    plain = by_cuboid(made().results())
    same(by_cuboid(made(tmp_path).results()), plain)
    assert 2 <= len(list(tmp_path.glob("down-*.arrow"))) <= 4
    same(by_cuboid(made(tmp_path).results()), plain)


def test_a_finished_job_is_not_run_again(made, tmp_path, monkeypatch):
    whole = by_cuboid(made(tmp_path).results())
    files = sorted(tmp_path.iterdir())
    ran = []
    for job in ("down", "up"):
        method = getattr(ChainFlow, job)
        monkeypatch.setattr(
            ChainFlow, job, lambda run, root, m=method, j=job: (ran.append(j), m(run, root))[1]
        )
    same(by_cuboid(made(tmp_path).results()), whole)
    assert ran == []
    files[0].unlink()
    same(by_cuboid(made(tmp_path).results()), whole)
    assert set(ran) == {"down"}, "the first file in the alphabet is of a job down"
    assert sorted(tmp_path.iterdir()) == files


def test_half_a_file_is_no_finished_job(made, tmp_path):
    whole = by_cuboid(made(tmp_path).results())
    path = next(tmp_path.glob("down-*"))
    path.rename(path.with_suffix(kept.UNFINISHED))
    path.with_suffix(kept.UNFINISHED).write_bytes(b"half")
    same(by_cuboid(made(tmp_path).results()), whole)
    assert not path.with_suffix(kept.UNFINISHED).exists()


@pytest.mark.parametrize("damage", ["empty", "nonsense", "no end", "cut off", "changed"])
def test_a_damaged_file_is_refused_with_a_way_out(made, tmp_path, damage):
    by_cuboid(made(tmp_path).results())
    for path in tmp_path.glob("down-*"):
        whole = path.read_bytes()
        spoiled = {
            "empty": b"",
            "nonsense": b"nonsense",
            "no end": whole[: -len(kept.END)],
            "cut off": whole[: -len(whole) // 2] + kept.END,
            "changed": bytes(100) + whole[100:],
        }
        path.write_bytes(spoiled[damage])
    with pytest.raises(hr.ReleaseError, match="damaged; delete it, and its jobs are redone"):
        by_cuboid(made(tmp_path).results())


def test_runs_cover_all_jobs_once_whatever_their_counts():
    rng = np.random.default_rng(0)
    for counts in ([], [0], [5], [0] * 1000, [2**59, 1] * 2, rng.pareto(0.5, 5000)):
        weights = np.asarray(counts, dtype=np.int64)
        runs = jobs.equal_runs(weights, 128)
        assert [i for run in runs for i in run] == list(range(len(weights)))
        assert all(runs)
        assert len(runs) <= 128
