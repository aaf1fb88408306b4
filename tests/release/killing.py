"""Releases that are killed with SIGKILL, in processes of their own."""

import multiprocessing
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.release.descent import block, outline
from hedgerow.release.directory.keys import Charging
from tests.made import fixed_axis

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.release.killing"])
DATASET = "trips"


def table(measure):
    """Counts over two axes and a plan: a second of work where it is cut."""
    axes = [fixed_axis(n, 6, 8, 8, columns=[f"{n}{k}" for k in range(3)]) for n in "od"]
    tree = hr.Tree(axes)
    rng = np.random.default_rng(1)
    codes = tuple(rng.integers(0, 384, 30_000).astype(np.int32) for _ in "od")
    counts = hr.Counts.from_leaves(tree, codes, rng.integers(1, 200, 30_000))
    budget = hr.EpsilonDelta(1, "1e-8")
    return counts, hr.make_plan(tree, budget=budget, neighbours=hr.AddRemove(), measure=measure)


def release(directory, measure, unfinished):
    """Make the release, charged to a ledger beside it, with a tree that is cut."""
    outline.UNCUT_LEAVES = outline.UNCUT_LEAVES_OF_ALL = 0
    outline.MIN_JOBS, block.CHUNK_CELLS = 30, 1000
    counts, plan = table(measure)
    charging = Charging(Ledger(directory.with_name("ledger.sqlite")), DATASET)
    hr.release(counts, plan, directory=directory, charging=charging, unfinished=unfinished)


def killed(directory: Path, measure, unfinished, after: float | None) -> int | None:
    """The exit code of a release that is killed after some seconds, if it lasts so long."""
    process = PROCESSES.Process(target=release, args=(directory, measure, unfinished))
    process.start()
    process.join(after)
    if process.is_alive():
        process.kill()
        process.join()
    code = process.exitcode
    process.close()
    return code
