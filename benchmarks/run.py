"""Run the benchmarks, one after the other, and write the page: ``python -m benchmarks.run [NAME …]``.

Each is a process of its own that has all cores. What they found is in ``docs/benchmarks/``, and the
page is made of all that is there; so one benchmark can be run again alone.
"""  # noqa: E501

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import ROOT, load
from benchmarks.page import ORDER, write_page

BENCHMARKS = Path(__file__).parent
MEASURES = "\ndef measured() -> Benchmark:\n"
"""How a benchmark begins that `benchmarks.page.publish` keeps."""


def all_benchmarks() -> list[str]:
    """Every file here that measures, in the order of the page."""
    files = sorted(BENCHMARKS.glob("[a-z]*.py"))
    names = [file.stem for file in files if MEASURES in file.read_text(encoding="utf-8")]
    return [*(name for name in ORDER if name in names), *(n for n in names if n not in ORDER)]


def chosen(names: Sequence[str]) -> list[str]:
    """The benchmarks that are meant, all where none is named.

    Raises:
        SystemExit: a name that no benchmark has.
    """
    known = all_benchmarks()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no benchmark is called {unknown[0]!r}; there are {', '.join(known)}")
    return [name for name in known if not names or name in names]


def main() -> None:
    """Run what the command line names; exit code 1 where a benchmark fails."""
    begun = time.perf_counter()
    lines = []
    failed = 0
    print(f"load average {load()}: run benchmarks alone on the machine")
    for name in chosen(sys.argv[1:]):
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        code = f"from benchmarks import {name}, page; page.publish({name!r}, {name}.measured)"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
        failed += done.returncode != 0
        what = "FAILED" if done.returncode else "done"
        lines.append(f"{name:14} {time.perf_counter() - start:6.1f} s  {what}")
    print("\n" + "\n".join(lines))
    print(f"{time.perf_counter() - begun:.0f} s in all; {write_page().relative_to(ROOT)}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
