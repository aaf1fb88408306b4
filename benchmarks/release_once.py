"""One release of a synthetic table to a directory, in a process of its own, for its peak memory.

Run as ``python -m benchmarks.release_once AREAS CELLS CORES``; prints a line of JSON.
"""

import json
import os
import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import hedgerow as hr
from benchmarks.clock import Clock
from studies.releases import trips_plan, within
from studies.tables import pairs_of

LEVELS = ("region", "province", "area")
REGIONS = 20


def tree_of(areas: int) -> hr.Tree:
    """Pairs of areas, these in provinces of about equal size, and those in regions."""
    provinces = max(REGIONS, int(np.sqrt(areas)))
    number = np.arange(areas)
    province = number * provinces // areas
    codes = {
        LEVELS[0]: province * REGIONS // provinces,
        LEVELS[1]: province,
        LEVELS[2]: number,
    }
    frame = pl.DataFrame({level: pl.Series(code).cast(pl.String) for level, code in codes.items()})
    return pairs_of(frame, LEVELS)


def counts_of(tree: hr.Tree, cells: int) -> hr.Counts:
    """About so many pairs, two records each on average; areas differ as those of a country do."""
    rng = np.random.default_rng(11)
    pull = np.cumsum(rng.lognormal(sigma=1.0, size=tree.axes[0].leaves))
    ends = []
    for _ in range(2):
        spot = rng.random(cells) * pull[-1]
        ends.append(np.searchsorted(pull, spot).astype(np.int32))
    return hr.Counts.from_leaves(tree, (ends[0], ends[1]), rng.geometric(0.5, cells))


def release(counts: hr.Counts, epsilon: str = "1") -> None:
    """To a directory that is removed."""
    plan = trips_plan(counts.tree, within(epsilon), hr.Survivors())
    with TemporaryDirectory() as folder:
        hr.release(counts, plan, directory=Path(folder) / "out")


def peak_memory() -> int:
    """Bytes at most since the last reset; since the start where the system knows no reset."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> None:
    """Forget the peak so far, on Linux."""
    refs = Path("/proc/self/clear_refs")
    if refs.exists():
        refs.write_text("5")


def main() -> None:
    """Measure one point."""
    areas, cells, cores = (int(number) for number in sys.argv[1:])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    release(counts_of(tree_of(100), 1_000), "2")  # loads the kernels, at another price
    counts = counts_of(tree_of(areas), cells)
    reset_peak()
    before = peak_memory()
    time, _ = Clock().timed("release", release, counts)
    point = {
        "possible": float(counts.tree.leaves),
        "cells": len(counts.values),
        "records": counts.total,
        "cores": cores,
        "seconds": time.wall,
        "processor_seconds": time.processor,
        "memory": peak_memory(),
        "memory_before": before,
    }
    print(json.dumps(point))


if __name__ == "__main__":
    main()
