"""Time and peak memory of a release as the table grows, and with one core more.

Every point is a process of its own (`benchmarks.release_once`): the peak of one would hide the
next one's.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.machine import ROOT
from benchmarks.page import Benchmark, clock, number
from benchmarks.picture import OTHER, OURS, panels, save
from hedgerow.kernels import core_count
from studies.page import markdown

Point = dict[str, Any]

CELLS = (10_000, 100_000, 1_000_000, 3_000_000, 10_000_000)
AREAS = (1_000, 10_000, 100_000, 1_000_000)
MANY_AREAS, SOME_CELLS, MANY_CELLS = 100_000, 300_000, 3_000_000

FORMS = ".0e | , | "

TEXT = """A release of pairs of areas, six depths deep (regions, provinces, areas at both ends), at
ε = 1, δ = 1e-8 by survivors, from counts in memory to a directory on disk; the time includes the
plan and the exact accounting. Each runs in a process of its own, which has loaded its code with
another table and ε and has emptied its caches. Memory is the peak of the process, which holds the
counts, the interpreter and the compiled kernels (about {base:.0f} MB before anything is released).

**Non-zero cells**, {possible:.0e} possible ones, about two records in each:

{by_cells}

**Possible cells**, {some:,} of them filled, or as many as fit. Time depends on the number of
measured cells, which are the children of survivors: their number grows with the size of families,
here the square root of the size of an axis, not with the number of possible cells:

{by_possible}

**Cores**, {many:,} non-zero of {possible:.0e} possible cells:

{by_cores}"""


def point(areas: int, cells: int, cores: int) -> Point:
    """One release."""
    command = [sys.executable, "-m", "benchmarks.release_once", *map(str, (areas, cells, cores))]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: Point = json.loads(done.stdout)
    print(f"{areas:,} areas, {cells:,} cells, {cores} cores: {clock(found['seconds'])}", flush=True)
    return found


def rows(points: Sequence[Point]) -> list[list[object]]:
    """Possible and non-zero cells, seconds, memory."""
    return [
        [one["possible"], one["cells"], *taken(one), f"{one['memory'] / 1e6:,.0f} MB"]
        for one in points
    ]


def taken(one: Point) -> list[str]:
    """The seconds of a point, on the clock and of all cores."""
    return [clock(one["seconds"]), clock(one["processor_seconds"])]


def measured() -> Benchmark:
    """All points."""
    cores = core_count()
    by_cells = [point(MANY_AREAS, cells, cores) for cells in CELLS]
    by_possible = [point(areas, SOME_CELLS, cores) for areas in AREAS]
    by_cores = [  # the faster of two: other work weighs on one core otherwise than on two
        min((point(MANY_AREAS, MANY_CELLS, c) for _ in range(2)), key=lambda one: one["seconds"])
        for c in sorted({1, min(2, cores), cores})
    ]
    heads = "possible cells | non-zero cells | seconds | of all cores | peak memory"
    speeds = [
        [one["cores"], *taken(one), number(by_cores[0]["seconds"] / one["seconds"])]
        for one in by_cores
    ]
    text = TEXT.format(
        base=by_cells[0]["memory_before"] / 1e6,
        possible=MANY_AREAS**2,
        some=SOME_CELLS,
        many=MANY_CELLS,
        by_cells=markdown(heads, rows(by_cells), FORMS),
        by_possible=markdown(heads, rows(by_possible), FORMS),
        by_cores=markdown("cores | seconds | of all cores | times as fast", speeds),
    )
    figures = {"by_cells": by_cells, "by_possible": by_possible, "by_cores": by_cores}
    return Benchmark("Scaling", text, (), [figure(by_cells, by_possible)], figures)


def figure(by_cells: Sequence[Point], by_possible: Sequence[Point]) -> str:
    """Seconds and memory over both."""
    drawn, axes = panels(2, 2)
    for column, points, kind, words in (
        (0, by_cells, "cells", "non-zero cells"),
        (1, by_possible, "possible", "possible cells"),
    ):
        given = [one[kind] for one in points]
        for row, measure, unit, colour in ((0, "seconds", 1, OURS), (1, "memory", 1e9, OTHER)):
            panel = axes[2 * row + column]
            panel.plot(given, [one[measure] / unit for one in points], "o-", color=colour)
            panel.set(ylim=(0, None), xlabel=words, xscale="linear" if column == 0 else "log")
    axes[0].set_ylabel("seconds of a release")
    axes[2].set_ylabel("peak memory of the process (GB)")
    return save(drawn, "scaling")
