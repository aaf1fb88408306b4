"""The local engine: jobs on the threads of one machine, results in the order of the jobs."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from hedgerow.kernels import core_count

Job = TypeVar("Job")
Result = TypeVar("Result")


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
