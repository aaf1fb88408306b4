"""Commands on forged directories, in a process of their own whose memory is bounded."""

import multiprocessing
import resource
from pathlib import Path

from tests.hostile import directories
from tests.hostile.commands import ran

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.hostile.walking"])
MEMORY = 6 << 30  # of address space, of which threads and allocators take most and use little


def commands(folder: Path, place: Path) -> list[list[object]]:
    """Every command that reads a release directory."""
    return [
        ["check", folder],
        ["table", folder, "--depth", "2"],
        ["table", folder, "--level", "county"],
        ["table", folder, "--by", "place=county", "--output", place / "by.csv"],
        ["report", folder, "--output", place / "page.html"],
        ["estimate", folder, "--method", "least-squares", "--output", place / "least"],
        ["estimate", folder, "--method", "chebyshev", "--output", place / "cheb"],
        ["account", folder],
        ["funds", folder, "--level", "county", "--amount", "100"],
        ["distribution", folder],
    ]


def walk(edit: str, folder: Path, told) -> None:
    """Make a forged directory and run every command on it; tell what each said."""
    directories.EDITS[edit](folder / "out")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for arguments in commands(folder / "out", folder):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        code, out, err = ran(*arguments)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told.send((arguments[0], code, out, err, (after - before) >> 10))
    told.send(None)


def walked(edit: str, folder: Path, patience: float) -> list[tuple[str, int, str, str, int]] | str:
    """What each command said: code, output, errors, and the megabytes that it took more."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=walk, args=(edit, folder, theirs))
    process.start()
    theirs.close()
    found: list[tuple[str, int, str, str, int]] = []
    try:
        while ours.poll(patience):
            said = ours.recv()
            if said is None:
                process.join()
                return found
            found.append(said)
        return f"no answer in {patience} seconds after {[f[0] for f in found]}"
    except EOFError:
        process.join()
        return f"ended with {process.exitcode} after {[f[0] for f in found]}"
    finally:
        process.kill()
        process.join()
