"""Commands on forged directories, in a process of their own whose memory is bounded.

Two processes serve all tests of a worker: one makes the directories, and what that takes is not
looked at; the other runs the commands. Either is begun anew where it died or did not answer, and
the second where it keeps much memory: what a process has it may use again unseen.
"""

import multiprocessing
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.hostile import directories
from tests.hostile.commands import ran

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.hostile.walking"])
MEMORY = 6 << 30  # of address space, of which threads and allocators take most and use little
KEPT = 100 << 10  # kilobytes that the process may have kept of what it did before


def commands(folder: Path, place: Path) -> list[list[object]]:
    """Every command that reads a release directory."""
    return [
        ["check", folder],
        ["table", folder, "--depth", "2"],
        ["table", folder, "--level", "county"],
        ["table", folder, "--level", "place.county × work.county"],
        ["table", folder, "--by", "place=county", "--output", place / "by.csv"],
        ["report", folder, "--output", place / "page.html"],
        ["estimate", folder, "--method", "least-squares", "--output", place / "least"],
        ["estimate", folder, "--method", "chebyshev", "--output", place / "cheb"],
        ["account", folder],
        ["funds", folder, "--level", "county", "--amount", "100"],
        ["distribution", folder],
    ]


def kilobytes(what: str) -> int:
    """``VmRSS``, the memory that this process has, or ``VmHWM``, the most that it had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))


def make(edit: str, folder: Path) -> Iterator[object]:
    """A forged directory."""
    directories.EDITS[edit](folder / "out")
    yield None


def walk(folder: Path) -> Iterator[object]:
    """Run every command on a forged directory; tell what each said, and how much it took."""
    for arguments in commands(folder / "out", folder):
        before = kilobytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the most is now what there is
        code, out, err = ran(*arguments)
        yield arguments[0], code, out, err, (kilobytes("VmHWM") - before) >> 10


def serve(task: Callable[..., Iterator[object]], pipe: Any, limit: int | None) -> None:
    """Do a task for each message, and send what it yields; at the end, whether to go on."""
    with TemporaryDirectory() as name:  # kernels are loaded once, not at the first directory
        directories.honest(Path(name) / "out")
        for arguments in commands(Path(name) / "out", Path(name)):
            ran(*arguments)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    fresh = kilobytes("VmRSS")
    while True:
        given = pipe.recv()
        for found in task(*given):
            pipe.send(("found", found))
        pipe.send(("done", limit is None or kilobytes("VmRSS") < fresh + KEPT))


class Server:
    """A process that does one task again and again."""

    def __init__(self, task: Callable[..., Iterator[object]], limit: int | None = None):
        self.task, self.limit = task, limit
        self.process: Any = None
        self.pipe: Any = None

    def done(self, *given: object, patience: float) -> list[Any] | str:
        """What the task yields, or how it failed."""
        if self.process is None:
            self.pipe, theirs = PROCESSES.Pipe()
            self.process = PROCESSES.Process(
                target=serve, args=(self.task, theirs, self.limit), daemon=True
            )
            self.process.start()
            theirs.close()
        found: list[Any] = []
        try:
            self.pipe.send(given)
            while self.pipe.poll(patience):
                kind, said = self.pipe.recv()
                if kind == "found":
                    found.append(said)
                    continue
                if not said:
                    self.end()
                return found
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            self.end()
            return f"ended with {code} after {found}"
        self.end()
        return f"no answer in {patience} seconds after {found}"

    def end(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
        self.process = None


@contextmanager
def walkers(patience: float) -> Iterator[Callable[[str, Path], Any]]:
    """What makes a forged directory and walks it: command, code, output, errors and megabytes."""
    maker, walker = Server(make), Server(walk, MEMORY)

    def walked(edit: str, folder: Path) -> Any:
        made = maker.done(edit, folder, patience=patience)
        return made if isinstance(made, str) else walker.done(folder, patience=patience)

    try:
        yield walked
    finally:
        maker.end()
        walker.end()
