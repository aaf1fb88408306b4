# ruff: noqa: INP001 - a script
"""Print how many files and functions of the package one small release enters.

    python docs/developers/entered.py [chain | cube | named | spine]

The tree, the table and the plan are made before; what is counted is `hedgerow.release` into a
directory: noise, estimates, files, the page, the manifest.
"""

import sys
import tempfile
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


def entered(workload: str) -> set[tuple[str, str]]:
    """Return the files and functions that a release enters once all is imported and compiled."""
    with tempfile.TemporaryDirectory() as folder:
        hr.release(*made(workload), directory=Path(folder) / "out")
    counts, plan = made(workload)
    package, found = str(Path(hr.__file__).parent), set[tuple[str, str]]()

    def told(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            found.add((code.co_filename, code.co_qualname))

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(told)
        try:
            hr.release(counts, plan, directory=Path(folder) / "out")
        finally:
            sys.setprofile(None)
    return found


if __name__ == "__main__":
    for name in sys.argv[1:] or WORKLOADS:
        functions = entered(name)
        files = len({file for file, _ in functions})
        print(f"{name:6} {files:4} files {len(functions):5} functions")  # noqa: T201
