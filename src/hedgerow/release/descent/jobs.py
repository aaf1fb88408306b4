"""The subtree jobs of a tree that is cut: who does them, in which runs, and what is kept of them.

A job belongs to one node of the cut, its root. *Up* it returns what its nodes tell of the root's
count; *down* it releases everything below, given the root's released count. What the two do is in
`hedgerow.release.descent.topdown`. Jobs are independent, and done again they draw the same noise;
so an engine may run them anywhere, in any order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Protocol, TypeVar

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.kernels import core_count
from hedgerow.release.descent.nodes import Roots
from hedgerow.release.descent.outline import Found

Job = TypeVar("Job")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs independent jobs in any order, each as often as it has to."""

    def run(self, jobs: Iterable[Job], work: Callable[[Job], Result]) -> Iterator[Result]:
        """Yield the results of the jobs in their order; the first failure ends the run."""


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
        """Yield the results of the jobs in their order; the first failure ends the run."""
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


@dataclass(frozen=True, slots=True)
class Progress:
    """Callbacks that report how far the pass is.

    Attributes:
        on_cells: called with the number of cells just measured.
        on_fraction: called with the finished share of the pass, 0 to 1.
        on_cuboid: called with each result of a cuboid: its name, its number of measured cells and
            of survivors and the seconds of work in it. The numbers are confidential until the
            release appears, and the seconds for ever.
    """

    on_cells: Callable[[int], None] = lambda _cells: None
    on_fraction: Callable[[float], None] = lambda _fraction: None
    on_cuboid: Callable[[str, int, int, float], None] = lambda _name, _cells, _kept, _seconds: None


RUNS = 128
"""Jobs are handed to the engine, and kept when they are finished, in about as many runs."""

Told = tuple[Float64, ...]
"""What jobs *up* tell of their roots."""
OnFraction = Callable[[float], None]
"""Who is told the finished share of jobs, 0 to 1."""


class Jobs(Protocol):
    """Who does all jobs of some roots: nodes of the cut in tree order.

    Whoever it is tells ``progress`` the finished share of them.
    """

    def up(self, roots: Roots, progress: OnFraction) -> Told:
        """Return what the jobs *up* tell of their roots."""

    def down(self, roots: Roots, progress: OnFraction) -> Iterable[Found]:
        """Return the results of the jobs *down* in tree order, but for those written elsewhere."""


class JobCache(Protocol):
    """Where the work of finished jobs is kept; a job that is found there is not run again."""

    def up(self, jobs: range, work: Callable[[], Told]) -> Told:
        """Return what these jobs tell of their roots: arrays of one length."""

    def down(self, jobs: range, results: Iterator[Found]) -> Iterable[Found]:
        """Return the results of these jobs."""


class NoCache:
    """Nothing is kept but in memory."""

    def up(self, _jobs: range, work: Callable[[], Told]) -> Told:
        """Return what these jobs tell of their roots: arrays of one length."""
        return work()

    def down(self, _jobs: range, results: Iterator[Found]) -> Iterable[Found]:
        """Return the results of these jobs."""
        return list(results)


@dataclass(frozen=True, slots=True)
class LocalJobs:
    """Jobs on this machine, in runs; what is finished is kept.

    Attributes:
        engine: who runs which.
        cache: where the work of finished jobs is kept.
    """

    engine: Engine
    cache: JobCache

    def up(
        self, weights: Int64, work: Callable[[int], Told], many: int, progress: OnFraction
    ) -> Told:
        """Return what jobs *up* tell of their roots, one after the other.

        Args:
            weights: int64 (jobs), at least 0: about how much work each is.
            work: what the job of a number tells: arrays of one length.
            many: how many arrays.
            progress: called with the finished share of the jobs.
        """

        def run(jobs: range) -> Told:
            return self.cache.up(jobs, lambda: joined(map(work, jobs), many))

        told, runs = list[Told](), equal_runs(weights, RUNS)
        for jobs, each in zip(runs, self.engine.run(runs, run), strict=True):
            told.append(each)
            progress(jobs.stop / len(weights))
        return joined(told, many)

    def down(
        self, weights: Int64, work: Callable[[int], Iterator[Found]], progress: OnFraction
    ) -> Iterator[Found]:
        """Yield the results of the jobs *down*; the arguments are those of `up`."""

        def run(jobs: range) -> Iterable[Found]:
            return self.cache.down(jobs, chain.from_iterable(map(work, jobs)))

        finished, whole = np.cumsum(weights), max(int(weights.sum()), 1)
        runs = equal_runs(weights, RUNS)
        for jobs, results in zip(runs, self.engine.run(runs, run), strict=True):
            yield from results
            progress(int(finished[jobs.stop - 1]) / whole)


def equal_runs(weights: Int64, most: int) -> list[range]:
    """Return consecutive jobs in runs of about equal weight, at most so many.

    Which jobs are one run follows from the weights, such as released counts, alone: a resumed
    release has the same runs.
    """
    if not len(weights):
        return []
    before = np.cumsum(weights + max(1, int(weights.sum()) // len(weights)))
    edges = np.searchsorted(before, np.linspace(0, before[-1], most + 1)[1:-1], side="right")
    cuts = np.unique(np.concatenate([[0], edges, [len(weights)]])).tolist()
    return [range(*jobs) for jobs in pairwise(cuts)]


def joined(parts: Iterable[Told], many: int) -> Told:
    """Return what jobs tell of their roots, one after the other: so many arrays."""
    every = [tuple(np.empty(0) for _ in range(many)), *parts]
    return tuple(map(np.concatenate, zip(*every, strict=True)))
