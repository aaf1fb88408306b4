"""Time and peak memory of six large releases, by this commit and another: ``make oracle-large``.

Both take turns on one machine, each release from file to directory in a process of its own. A step
is backed out that takes over 5 % more time or 2 % more memory in two of five turns.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.machine import ROOT, commit

ALLOWED = {"processor s": 1.05, "clock s": 1.05, "peak MB": 1.02}
LARGE = {
    "pairs by chain": ("commuting", "national", "chain", "survivors"),
    "cube survivors": ("commuting", "national", "cube", "survivors"),
    "cube all": ("commuting", "national", "cube", "all"),
    "redistricting": ("redistricting", "state", "cube", "all"),
    "census": ("census", "national", "chain", "all"),
    "sections": ("commuting", "sections", "chain", "survivors"),
}
"""The example and its size, its cuboids, and which of their cells are measured."""
EXPLICIT = """[workload]
cuboids = "{}"
[estimate]
method = "euclidean"
measure = "{}"
"""
Run = tuple[float, ...]


def written(folder: Path, example: str, size: str, cuboids: str, measure: str) -> Path:
    """The release file, with nothing left to defaults; tables that are there are kept."""
    file = folder / f"{example} {size}" / "release.toml"
    if not file.exists():
        timed(ROOT, folder, "example", example, file.parent, "--size", size)
    text = re.sub(r"\n\[(estimate|workload)\]\n[^[]*", "\n", file.read_text())
    own = file.with_name(f"{cuboids} {measure}.toml")
    own.write_text(text + EXPLICIT.format(cuboids, measure))
    return own


def timed(tree: Path, folder: Path, *command: str | Path) -> Run:
    """Processor and clock seconds and peak megabytes of a command by the code of a tree.

    What it releases in the folder is thrown away.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "hedgerow.cli", *command],
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        stdout=subprocess.DEVNULL,
    )
    _, process.returncode, usage = os.wait4(process.pid, 0)
    if process.returncode:
        raise SystemExit(f"{tree}: hedgerow {command} failed")
    shutil.rmtree(folder / "out", ignore_errors=True)
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - begun, usage.ru_maxrss / 1000


def compared(ours: Sequence[Run], theirs: Sequence[Run]) -> Iterator[str]:
    """A line a quantity: least, median and most of both, the ratio, and a word where it is over."""
    sides = zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True)
    for (name, most), both in zip(ALLOWED.items(), sides, strict=True):
        over = sum(one > most * other for one, other in zip(*both, strict=True))
        told = " | ".join(f"{min(s):9.2f} {median(s):9.2f} {max(s):9.2f}" for s in both)
        flag = f"  OVER {most - 1:.0%} in {over} of {len(ours)}" if over > 1 else ""
        yield f"  {name:12} {told} | {median(both[0]) / median(both[1]):.3f}{flag}"


def main() -> None:
    """Compare; exit code 1 where a limit is passed twice."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("against", help="a commit")
    asked.add_argument("--only", choices=LARGE)
    asked.add_argument("--times", type=int, default=5, help="turns of each (5)")
    asked.add_argument("--small", action="store_true", help="to try it out")
    given = asked.parse_args()
    told = list[str]()
    print(f"{commit()} and {given.against}: least, median and most of each")
    with TemporaryDirectory() as place:
        folder = Path(place)
        git = ["git", "-C", str(ROOT), "worktree"]
        trees = [ROOT, folder / "other"]
        subprocess.run([*git, "add", "-q", "--detach", trees[1], given.against], check=True)
        try:
            for name in [given.only] if given.only else LARGE:
                example, size, *how = LARGE[name]
                file = written(folder, example, "small", *how)
                for tree in trees:
                    timed(tree, file.parent, "release", file)  # its kernels are compiled
                if not given.small:
                    file = written(folder, example, size, *how)
                runs: tuple[list[Run], list[Run]] = [], []
                for turn in range(given.times):
                    for side in (turn % 2, 1 - turn % 2):
                        runs[side].append(timed(trees[side], file.parent, "release", file))
                told += compared(*runs)
                print(name, *told[-len(ALLOWED) :], sep="\n", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", trees[1]], check=True)
    raise SystemExit(any("OVER" in line for line in told))


if __name__ == "__main__":
    main()
