"""Seconds of tasks that are measured side by side."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds on the clock, and of all cores together; other work on the machine slows the first.

    Attributes:
        wall: on the clock.
        processor: of this process's threads, summed.
    """

    wall: float
    processor: float


def timed(task: Callable[[], Result]) -> tuple[Timed, Result]:
    """One run of a task, and what it returns."""
    wall, processor = time.perf_counter(), time.process_time()
    result = task()
    return Timed(time.perf_counter() - wall, time.process_time() - processor), result


def fastest(tasks: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, Timed]:
    """The fastest of several runs of each task, taken in turns, after one that is not counted.

    Other work on the machine can only slow a run down; turns let it strike all alike.
    """
    for task in tasks.values():
        task()
    found: dict[str, list[Timed]] = {name: [] for name in tasks}
    for _ in range(runs):
        for name, task in tasks.items():
            found[name].append(timed(task)[0])
    return {
        name: Timed(min(t.wall for t in times), min(t.processor for t in times))
        for name, times in found.items()
    }
