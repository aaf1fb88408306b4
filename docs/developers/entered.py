# ruff: noqa: INP001 - a script
"""Print how many files and functions of the package one small release enters.

    python docs/developers/entered.py [chain | cube | named | spine]

The tree, the table and the plan are made before; what is counted is `hedgerow.release` into a
directory: noise, estimates, files, the page, the manifest.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

import hedgerow as hr

WORKLOADS = {
    "chain": hr.Chain(),
    "cube": hr.Cube(),
    "named": hr.Cuboids(["place.tract", "place.county × kind.kind"]),
    "spine": hr.Cube(),
}


def made(workload: str) -> tuple[hr.Counts, hr.Plan]:
    """Return a table of six tracts and two kinds, and its plan."""
    places = {"county": ["A", "A", "A", "B", "B", "B"], "tract": ["1", "2", "3", "4", "5", "6"]}
    place = hr.Axis.from_frame("place", pl.DataFrame(places), levels=["county", "tract"])
    kinds = pl.DataFrame({"kind": ["x", "y"]})
    kind = hr.Axis.from_frame("kind", kinds, levels=["kind"], attribute=workload == "spine")
    tree = hr.Tree([place, kind])
    rows = pl.DataFrame({"tract": ["1", "2", "2", "6"], "kind": ["x", "x", "y", "y"]})
    plan = hr.make_plan(
        tree,
        budget=hr.Rho("1/2"),
        neighbours=hr.Replace(),
        measure=hr.All(),
        workload=WORKLOADS[workload],
    )
    return hr.Counts.from_frame(tree, rows), plan


def walked(action: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the files and functions of the package that an action enters, in that order."""
    package, found = str(Path(hr.__file__).parent), dict[tuple[str, str], None]()

    def told(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(package) and code.co_name != "<module>"
        if event == "call" and is_ours:
            file = Path(code.co_filename).relative_to(package).as_posix()
            found.setdefault((file, code.co_qualname))

    sys.setprofile(told)
    threading.setprofile(told)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def release_of(workload: str) -> hr.Release:
    """Return a release in a directory that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        return hr.release(*made(workload), directory=Path(folder) / "out")


def entered(workload: str) -> list[tuple[str, str]]:
    """Return what a release enters once all is imported and compiled."""
    release_of(workload)
    counts, plan = made(workload)
    with tempfile.TemporaryDirectory() as folder:
        return walked(lambda: hr.release(counts, plan, directory=Path(folder) / "out"))


if __name__ == "__main__":
    for name in sys.argv[1:] or WORKLOADS:
        functions = entered(name)
        files = len({file for file, _ in functions})
        print(f"{name:6} {files:4} files {len(functions):5} functions")  # noqa: T201
