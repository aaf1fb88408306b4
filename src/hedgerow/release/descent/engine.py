"""What an engine is: given jobs and what to do with one, it decides who runs which."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs jobs that know nothing of each other, in any order, each as often as it has to."""

    def run(self, jobs: Iterable[Job], work: Callable[[Job], Result]) -> Iterator[Result]:
        """The results of ``work`` in the order of ``jobs``; the first failure ends the run."""
