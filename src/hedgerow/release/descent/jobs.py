"""The subtree jobs of a tree that is cut: who does them, in which runs, and what is kept of them.

A job belongs to one node of the cut, its root. *Up* it says what its nodes tell of the root's
count; *down* it releases everything below, given the root's released count. What the two do is in
`hedgerow.release.descent.topdown`. Jobs know nothing of each other, and done again they draw the
same noise; so an engine may run them anywhere, in any order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.kernels import core_count
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import DepthResult

# What an engine is: given jobs and what to do with one, it decides who runs which.

Job = TypeVar("Job")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs jobs that know nothing of each other, in any order, each as often as it has to."""

    def run(self, jobs: Iterable[Job], work: Callable[[Job], Result]) -> Iterator[Result]:
        """The results of ``work`` in the order of ``jobs``; the first failure ends the run."""


# The local engine: jobs on the threads of one machine, results in the order of the jobs.


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Runs each job on one of ``workers`` threads, at most one job a worker ahead of the reader.

    So memory holds the results of a few jobs at a time, and writing one job's results overlaps
    with computing the next one's.

    Attributes:
        workers: threads; kernels release the interpreter's lock.
    """

    workers: int = field(default_factory=core_count)

    def run(self, jobs: Iterable[Job], work: Callable[[Job], Result]) -> Iterator[Result]:
        """The results of ``work`` in the order of ``jobs``; the first failure ends the run."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="hedgerow-job")
        waiting: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(work, job))
                if len(waiting) > self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


# How far a pass is, told to whoever wants to know.


@dataclass(frozen=True, slots=True)
class Progress:
    """Whom to tell how far the pass is.

    Attributes:
        on_cells: called with the number of cells just measured.
        on_fraction: called with the finished share of the pass, 0 to 1.
        on_depth: called with each result of a depth: its number of measured cells and of survivors
            and the seconds of work in it. These are confidential until the release appears, and
            the seconds for ever.
    """

    on_cells: Callable[[int], None] = lambda _cells: None
    on_fraction: Callable[[float], None] = lambda _fraction: None
    on_depth: Callable[[int, int, int, float], None] = lambda _depth, _cells, _kept, _seconds: None


RUNS = 128
"""Jobs are handed to the engine, and kept when they are finished, in about as many runs."""

Said = tuple[Float64, Float64]
"""What jobs *up* say of their roots: estimates and variances."""


class Jobs(Protocol):
    """Who does all jobs of some roots: nodes of the cut in tree order.

    Whoever it is calls ``told`` with the finished share of them, 0 to 1.
    """

    def up(self, roots: Nodes, told: Callable[[float], None]) -> Said:
        """What the jobs *up* say of their roots."""

    def down(self, roots: Nodes, told: Callable[[float], None]) -> Iterable[DepthResult]:
        """The results of the jobs *down*, each depth's in tree order; those kept elsewhere not."""


class Kept(Protocol):
    """Where the work of finished jobs is kept; a job that is found there is not run again."""

    def up(self, jobs: range, work: Callable[[], Said]) -> Said:
        """What these jobs say of their roots."""

    def down(self, jobs: range, results: Iterator[DepthResult]) -> Iterable[DepthResult]:
        """The results of these jobs."""


class NotKept:
    """Nothing is kept but in memory."""

    def up(self, _jobs: range, work: Callable[[], Said]) -> Said:
        """What these jobs say of their roots."""
        return work()

    def down(self, _jobs: range, results: Iterator[DepthResult]) -> Iterable[DepthResult]:
        """The results of these jobs."""
        return list(results)


@dataclass(frozen=True, slots=True)
class OnEngine:
    """Jobs on an engine, in runs; what is finished is kept.

    Attributes:
        said: the job *up* of one root.
        subtree: the job *down* of one root.
        engine: who runs which.
        kept: where the work of finished jobs is kept.
    """

    said: Callable[[Nodes], Said]
    subtree: Callable[[Nodes], Iterator[DepthResult]]
    engine: Engine
    kept: Kept

    def up(self, roots: Nodes, told: Callable[[float], None]) -> Said:
        """What the jobs *up* say of their roots."""

        def run(jobs: range) -> Said:
            each = (self.said(roots.part(i, i + 1)) for i in jobs)
            return self.kept.up(jobs, lambda: all_said(each))

        found: list[Said] = []
        runs = equal_runs(roots.counts, RUNS)
        for jobs, said in zip(runs, self.engine.run(runs, run), strict=True):
            found.append(said)
            told(jobs.stop / len(roots))
        return all_said(found)

    def down(self, roots: Nodes, told: Callable[[float], None]) -> Iterator[DepthResult]:
        """The results of the jobs *down*."""

        def run(jobs: range) -> Iterable[DepthResult]:
            each = (found for i in jobs for found in self.subtree(roots.part(i, i + 1)))
            return self.kept.down(jobs, each)

        released, finished = max(int(roots.counts.sum()), 1), 0
        runs = equal_runs(roots.counts, RUNS)
        for jobs, results in zip(runs, self.engine.run(runs, run), strict=True):
            yield from results
            finished += int(roots.counts[jobs.start : jobs.stop].sum())
            told(finished / released)


def equal_runs(weights: Int64, most: int) -> list[range]:
    """Consecutive jobs in runs of about equal weight, at most so many.

    Which jobs are one run follows from the weights, such as released counts, alone: a resumed
    release has the same runs.
    """
    if not len(weights):
        return []
    before = np.cumsum(weights + max(1, int(weights.sum()) // len(weights)))
    edges = np.searchsorted(before, np.linspace(0, before[-1], most + 1)[1:-1], side="right")
    cuts = np.unique(np.concatenate([[0], edges, [len(weights)]])).tolist()
    return [range(*jobs) for jobs in pairwise(cuts)]


def all_said(said: Iterable[Said]) -> Said:
    """What jobs say of their roots, one after the other."""
    every = [(np.empty(0), np.empty(0)), *said]
    estimate, variance = (np.concatenate(each) for each in zip(*every, strict=True))
    return estimate, variance
