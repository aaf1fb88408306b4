"""Run the studies, two at a time, then write the summary: ``python -m studies.run [NAME …]``.

A name is a paper (``ko``), one study (``ko/figure_2``) or one of the wider studies beside the
papers' (``coverage``); without names all are run. Each is a process of its own on one thread.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from studies.page import ROOT
from studies.summary import recorded_times, write_summary, write_times

STUDIES = Path(__file__).parent
AT_ONCE = 2
ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
)
SKIPPED = "skipped:"
PUBLISHED = "\ndef main() -> Study:\n"
"""How a study begins that `studies.page.publish` makes a page of."""
BY_HAND = ("run", "summary", "census_intervals", "survivor_sums")
"""What is no study, and what takes too long to be run with all others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a study ended: its exit code, seconds and all that it printed."""

    name: str
    code: int
    seconds: float
    output: str

    @property
    def skipped(self) -> str:
        """Why it did nothing, or nothing at all."""
        lines = self.output.splitlines()
        return next((line for line in lines if line.startswith(SKIPPED)), "")

    @property
    def line(self) -> str:
        """What a reader of the log needs."""
        what = "FAILED" if self.code else self.skipped or "done"
        return f"{self.name:28} {self.seconds:6.1f} s  {what}"


class Running:
    """The studies under way, until one fails or the run is given up."""

    def __init__(self) -> None:
        self.processes = dict[str, subprocess.Popen[bytes]]()
        self.is_over = Event()

    def outcome(self, name: str) -> Outcome | None:
        """Run a study, and return how it ended; None where another one's failure ended it."""
        if self.is_over.is_set():
            return None
        begun = time.perf_counter()
        self.processes[name] = process = subprocess.Popen(
            [sys.executable, *code_of(name)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            start_new_session=True,
        )
        if self.is_over.is_set():  # since it was asked
            self.stop()
        output = process.communicate()[0].decode(errors="replace")
        del self.processes[name]
        code = process.returncode
        if code == -signal.SIGTERM and self.is_over.is_set():
            return None
        if code:
            self.is_over.set()
        return Outcome(name, code, time.perf_counter() - begun, output)

    def stop(self) -> None:
        """Begin no other study, and end those under way and what they started."""
        self.is_over.set()
        for process in [*self.processes.values()]:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def code_of(name: str) -> tuple[str, str]:
    """What Python is to run: a study that makes a page of a paper's, or a module of its own."""
    if PUBLISHED in (STUDIES / f"{name}.py").read_text():
        return "-c", f"from studies.page import publish; publish({name!r})"
    return "-m", f"studies.{name.replace('/', '.')}"


def all_studies() -> list[str]:
    """Every file below ``studies/`` that can be run, but for those `BY_HAND` and the tests."""
    files = [*STUDIES.glob("[a-z]*.py"), *STUDIES.glob("*/[a-z]*.py")]
    return sorted(
        file.relative_to(STUDIES).with_suffix("").as_posix()
        for file in files
        if file.parent.name != "tests"
        and file.stem not in BY_HAND
        and any(mark in file.read_text() for mark in (PUBLISHED, '\nif __name__ == "__main__":'))
    )


def chosen(names: Sequence[str]) -> list[str]:
    """The studies that are meant, the longest first, by their last times.

    Raises:
        SystemExit: a name that no study has.
    """
    known = all_studies()
    wanted = [name.removesuffix(".py").removeprefix("studies/").rstrip("/") for name in names]
    for name in wanted:
        if not any(study == name or study.startswith(f"{name}/") for study in known):
            raise SystemExit(f"no study is called {name!r}; there are {', '.join(known)}")
    meant = [s for s in known if not wanted or s in wanted or s.split("/")[0] in wanted]
    seconds = recorded_times()
    return sorted(meant, key=lambda study: (-seconds.get(study, float("inf")), study))


def run_all(studies: Sequence[str], console: Console) -> list[Outcome]:
    """The outcomes of all; once one has failed, of those alone that ended by themselves."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )  # fmt: skip
    running, ended = Running(), []
    with (
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        task = progress.add_task("studies", total=len(studies))
        try:
            each = [pool.submit(running.outcome, name) for name in studies]
            for future in as_completed(each):
                outcome = future.result()
                if outcome is None:
                    continue
                ended.append(outcome)
                console.print(outcome.line)
                names = ", ".join([*running.processes])
                progress.update(task, advance=1, description=names)
                if outcome.code:
                    running.stop()
        finally:
            running.stop()
    return ended


def main() -> None:
    """Run what the command line names; exit code 1 where a study fails."""
    console = Console(soft_wrap=True, highlight=False)
    names = sys.argv[1:]
    begun = time.perf_counter()
    try:
        ended = run_all(chosen(names), console)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    wall = time.perf_counter() - begun
    failed = [outcome for outcome in ended if outcome.code]
    for outcome in failed:
        console.print(f"{outcome.name} failed:\n{outcome.output}", markup=False)
    if failed:
        raise SystemExit(1)
    left = [outcome for outcome in ended if outcome.skipped]
    if not names and not left:
        write_times(wall, {outcome.name: outcome.seconds for outcome in ended})
    page = write_summary()
    console.print(f"{len(ended) - len(left)} studies in {wall:.0f} s; {page.relative_to(ROOT)}")
    for outcome in left:
        console.print(f"{outcome.name}: {outcome.skipped}", markup=False)


if __name__ == "__main__":
    main()
