"""What one pass does, job by job: the flow of a workload, and who runs its jobs.

A design that is cut has jobs below the nodes of its cut. *Up* a job says what its noisy counts tell
of the cut; *down* it releases everything below, given what is released above. Which work that is
its `Flow` knows. Jobs are independent, and done again they draw the same noise; so they may run
anywhere, in any order.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from hedgerow.arrays import FloatArrays, Int64, Levels
from hedgerow.declared import frozen
from hedgerow.kernels import core_count
from hedgerow.noise.bits import Bits
from hedgerow.plan.design import Design
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Found, JobRoots, NodesOf, NoisyCuboid
from hedgerow.release.descent.source import Source
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree

Work = TypeVar("Work")
Result = TypeVar("Result")
Own = TypeVar("Own", bound=Design)
"""The design that a flow is of."""


class Engine(Protocol):
    """Runs independent jobs in any order, each as often as it has to."""

    def run(self, jobs: Iterable[Work], work: Callable[[Work], Result]) -> Iterator[Result]:
        """Yield the results of the jobs in their order; the first failure ends the run."""


@frozen
class LocalEngine:
    """Runs each job on one of ``workers`` threads, at most one job a worker ahead of the reader.

    So memory holds the results of a few jobs at a time, and writing one job's results overlaps
    with computing the next one's.

    Attributes:
        workers: threads; kernels release the interpreter's lock.
    """

    workers: int = field(default_factory=core_count)

    def run(self, jobs: Iterable[Work], work: Callable[[Work], Result]) -> Iterator[Result]:
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


def tell_nobody(*_what: object) -> None:
    """Do nothing."""


@frozen
class Progress:
    """Callbacks that report how far the pass is.

    Attributes:
        on_cells: called with the number of cells just measured.
        on_fraction: called with the finished share of the pass, 0 to 1.
        on_cuboid: called with each result of a cuboid: its name, its number of measured cells and
            of survivors and the seconds of work in it. The numbers are confidential until the
            release appears, and the seconds for ever.
    """

    on_cells: Callable[[int], None] = tell_nobody
    on_fraction: Callable[[float], None] = tell_nobody
    on_cuboid: Callable[[str, int, int, float], None] = tell_nobody


RUNS = 128
"""Jobs are handed to the engine, and kept when they are finished, in about as many runs."""

Told = FloatArrays
"""What jobs *up* tell of their roots."""
OnFraction = Callable[[float], None]
"""Who is told the finished share of jobs, 0 to 1."""


class Jobs(Protocol):
    """What a flow knows of jobs, in the order of what they release; one job is such by itself."""

    @property
    def weights(self) -> Int64:
        """About how much work each is: int64 (jobs), at least 0."""

    def take(self, which: slice) -> "Jobs":
        """Return some of the jobs."""


Top = Generator[Found | NoisyCuboid, None, Jobs | None]
"""The results of the top, cuboid by cuboid; and what is returned: the jobs below it, if any."""


class Flow(ABC):
    """What a workload does with noisy counts, wherever its jobs are done: up, the top, down.

    One that is not cut is all top.

    Attributes:
        told: how many arrays a job *up* tells of its roots.
        source: where noisy counts come from.
        progress: whom to tell.
    """

    told = 0
    source: Source
    progress: Progress

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The domain."""

    def jobs_up(self) -> Jobs | None:
        """Return the jobs that tell the top of what is below; None where it needs nothing."""
        return None

    def up(self, job: Any) -> Told:
        """Return what one job tells of its roots: arrays of one length."""
        raise NotImplementedError

    def roots(self, jobs: Any) -> JobRoots:
        """Return the nodes that jobs hang from."""
        raise NotImplementedError

    def located(self, jobs: Any) -> Any:
        """Return jobs that were made beside another table, which has the same leaves below them."""
        return jobs

    def on(self, counts: Counts | None, bits: Bits | None) -> "Flow":
        """Return the same flow on another table under a key, or on none, telling nobody."""
        source: Any = replace(cast("Any", self.source), counts=counts, bits=bits)
        flow: Flow = replace(cast("Any", self), source=source, progress=Progress())
        return flow

    @abstractmethod
    def top(self, from_below: Told) -> Top:
        """Yield what is released above the cut, given all that jobs *up* told."""

    def down(self, job: Any) -> Iterator[Found]:
        """Yield the results of one job *down*."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PlannedFlow(Flow, Generic[Own]):
    """What the workload of a plan does with noisy counts.

    Attributes:
        plan: what to measure.
        source: the table and the bits, or noisy counts that were written down.
        progress: callbacks.
    """

    plan: Plan
    source: Source
    progress: Progress = field(default_factory=Progress)

    @property
    def tree(self) -> Tree:
        """The domain."""
        return self.plan.tree

    @property
    def design(self) -> Own:
        """What the plan decides."""
        return cast("Own", self.plan.design)

    def each_found(
        self, wanted: Iterable[Levels], found: Callable[[Levels], Found]
    ) -> Iterator[Found]:
        """Yield what is released of some cuboids.

        Args:
            wanted: the cuboids, coarse to fine.
            found: returns it; not asked of one that has the cells, and so the counts, of a coarser
                one.
        """
        repeats = self.plan.repeats
        again = NodesOf()
        for levels in wanted:
            source = repeats.get(levels)
            result = Found(levels, again[source], None) if source else found(levels)
            if levels in repeats.values():
                again[levels] = result.nodes
            yield result


class Runner(Protocol):
    """Who does the jobs of a flow, and tells ``progress`` the finished share of them."""

    def up(self, flow: Flow, jobs: Jobs, progress: OnFraction) -> Told:
        """Return what the jobs *up* tell of their roots, one after the other."""

    def down(self, flow: Flow, jobs: Jobs, progress: OnFraction) -> Iterable[Found]:
        """Return the results of the jobs *down* in order, but for those written elsewhere."""


class JobCache:
    """Where the work of finished jobs is kept: here in memory alone, so each job is run."""

    def up(self, _jobs: range, work: Callable[[], Told]) -> Told:
        """Return what these jobs tell of their roots: arrays of one length."""
        return work()

    def down(self, _jobs: range, results: Iterator[Found]) -> Iterable[Found]:
        """Return the results of these jobs."""
        return list(results)


@frozen
class LocalJobs:
    """Jobs on this machine, in runs; what is finished is kept.

    Attributes:
        engine: who runs which.
        cache: where the work of finished jobs is kept.
    """

    engine: Engine = field(default_factory=LocalEngine)
    cache: JobCache = field(default_factory=JobCache)

    def up(self, flow: Flow, jobs: Jobs, progress: OnFraction) -> Told:
        """Return what the jobs *up* tell of their roots, one after the other."""

        def run(numbers: range) -> Told:
            each = (flow.up(jobs.take(slice(i, i + 1))) for i in numbers)
            return self.cache.up(numbers, lambda: joined(each, flow.told))

        results = []
        runs = equal_runs(jobs.weights, RUNS)
        for numbers, each in zip(runs, self.engine.run(runs, run), strict=True):
            results.append(each)
            progress(numbers.stop / len(jobs.weights))
        return joined(results, flow.told)

    def down(self, flow: Flow, jobs: Jobs, progress: OnFraction) -> Iterator[Found]:
        """Yield the results of the jobs *down* in order."""

        def run(numbers: range) -> Iterable[Found]:
            each = (flow.down(jobs.take(slice(i, i + 1))) for i in numbers)
            return self.cache.down(numbers, chain.from_iterable(each))

        weights = jobs.weights
        finished = np.cumsum(weights)
        whole = max(int(weights.sum()), 1)
        runs = equal_runs(weights, RUNS)
        for numbers, results in zip(runs, self.engine.run(runs, run), strict=True):
            yield from results
            progress(int(finished[numbers.stop - 1]) / whole)


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
