"""Seconds of programs that are measured side by side, on questions that are new to them.

A program that is asked twice may answer the second time from what it kept. So a `Clock` refuses a
question that it has timed a program on before, and before each run empties every cache of
Hedgerow's functions: what is timed is the work of a process that meets its question for the first
time, its code loaded. Peers keep what they keep.
"""

import hashlib
import inspect
import pickle
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

Question = TypeVar("Question")
Result = TypeVar("Result")
Number = TypeVar("Number", float, Fraction)

_CACHE = type(lru_cache(len))


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds on the clock, and of all cores together; other work on the machine slows the first.

    Attributes:
        wall: on the clock.
        processor: of this process's threads, summed.
    """

    wall: float
    processor: float


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """Times programs, each on questions that it has not been asked before.

    Attributes:
        questions: all that were asked, by their places in memory, with digests of what they hold.
        asked: programs with the digests of what they were asked.
    """

    questions: dict[int, tuple[Any, bytes]] = field(default_factory=dict)
    asked: set[tuple[str, bytes]] = field(default_factory=set)

    def timed(
        self, program: str, task: Callable[[Question], Result], question: Question
    ) -> tuple[Timed, Result]:
        """One run of a task on a question, and what it returns.

        Raises:
            ValueError: the program was asked this before.
        """
        if (program, self._digest(question)) in self.asked:
            raise ValueError(f"{program} was asked this before; ask it something new")
        self.asked.add((program, self._digest(question)))
        forget()
        wall, processor = time.perf_counter(), time.process_time()
        result = task(question)
        return Timed(time.perf_counter() - wall, time.process_time() - processor), result

    def _digest(self, question: Any) -> bytes:
        """Of what a question held when it was first asked, whatever it has kept since."""
        if id(question) not in self.questions:
            digest = hashlib.blake2b(pickle.dumps(question)).digest()
            self.questions[id(question)] = question, digest
        return self.questions[id(question)][1]


def fastest(
    tasks: Mapping[str, Callable[[Question], Any]], questions: Sequence[Question]
) -> dict[str, Timed]:
    """The fastest run of each task over the questions, after the first, which is not counted.

    Other work on the machine can only slow a run down; tasks take turns, so it strikes all alike.
    At the first question compiled code is loaded.

    Args:
        tasks: by the name of the program.
        questions: of equal difficulty, at least two, all different; every task answers each once.

    Raises:
        ValueError: questions that are equal, or fewer than two.
    """
    if len(questions) < 2:
        raise ValueError("the first question is not counted, so there must be at least two")
    clock = Clock()
    found: dict[str, list[Timed]] = {name: [] for name in tasks}
    for question in questions:
        for name, task in tasks.items():
            found[name].append(clock.timed(name, task, question)[0])
    return {
        name: Timed(min(t.wall for t in times[1:]), min(t.processor for t in times[1:]))
        for name, times in found.items()
    }


def near(asked: Number, many: int, step: Number) -> list[Number]:
    """So many questions that are all about the same, each relatively a step further on."""
    return [asked * (1 + step * k) for k in range(many)]


def forget() -> None:
    """Empty the caches of Hedgerow's functions; those of no argument are asked nothing."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "hedgerow":
            continue
        for value in list(vars(module).values()):
            if isinstance(value, _CACHE) and inspect.signature(value).parameters:
                value.cache_clear()
