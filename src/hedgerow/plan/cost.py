"""The expected cost of a release in time, memory and disk, and its sums off the tree's chain.

The cost follows from public facts and is rough: it tells minutes from hours. Of n possible nodes at
noise of standard deviation σ about ``min(n, children of the survivors above, N / max(σ, 1))``
survive, for N records. Constants were measured on two cores of a cloud machine, on three large
synthetic tables: the cells of all depths together were half of the forecast; single depths were off
by up to 27 times. Along a spine they were measured on Rhode Island and on a synthetic nation
(`hedgerow example redistricting`), as cubes: within a factor of three of both.
"""

from collections.abc import Iterator
from itertools import product
from math import log2, pi, prod, sqrt

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.columns import aligned
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import is_within
from hedgerow.limits import MOST_CUBOIDS
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.design import Work, deviation
from hedgerow.plan.forecast import forecast
from hedgerow.plan.plan import Plan
from hedgerow.tables.tree import Tree

SECONDS_A_ROW = 0.4e-6
"""Core seconds to read, check and sort a row of the table."""
SECONDS_A_SURVIVOR = 1.0e-6
"""Core seconds to write a released count with its labels and interval."""
SECONDS_TO_START = 2.0
PARALLEL = 0.8
"""The speed of each further core, the first being 1."""

BYTES_TO_START = 350_000_000
BYTES_AN_AREA = 250
BYTES_A_ROW = 37
"""While rows are sorted; a limit on memory sends them to disk."""
BYTES_A_SURVIVOR_ON_DISK = 9
BITS_OF_A_GAUSSIAN = 2.05
"""log₂ √(2πe): the entropy of noise of standard deviation 1."""


@frozen
class Cost:
    """The rough cost of a release, from public facts alone.

    Attributes:
        expected: the work if small counts are projected to 0.
        most: the work that is not exceeded while the released total is at most the records.
        seconds: for the expected work, from file to directory.
        memory: bytes at the peak, without a limit.
        output: bytes of the release directory, for the expected work.
    """

    expected: Work
    most: Work
    seconds: float
    memory: int
    output: int

    def describe(self) -> str:
        """Return the cost in a sentence."""
        cells = sum(self.expected.cells)
        most = sum(self.most.cells)
        return (
            f"Expected cost (rough): about {_time(self.seconds)}, "
            f"{_size(self.memory)} of memory and {_size(self.output)} on disk; "
            f"{cells:,} measured cells{f' (at most {most:,})' if most > cells else ''}."
        )


def expected_cost(plan: Plan, records: int, cores: int) -> Cost:
    """Return the cost of executing a plan on so many records (or a public bound) and cores."""
    design = plan.design
    expected, most = (design.work(records, noisy=noisy) for noisy in (True, False))
    rows = design.rows(records, expected)
    seconds = rows * SECONDS_A_ROW
    seconds += sum(expected.cells) * design.seconds_a_cell
    seconds += sum(expected.survivors) * SECONDS_A_SURVIVOR
    areas = sum(axis.leaves for axis in plan.tree.axes)
    read = areas * BYTES_AN_AREA + rows * BYTES_A_ROW
    return Cost(
        expected,
        most,
        SECONDS_TO_START + seconds / (1 + PARALLEL * (cores - 1)),
        BYTES_TO_START + read + design.bytes_at_once(expected),
        _output(plan, expected),
    )


def _output(plan: Plan, work: Work) -> int:
    size = sum(axis.leaves for axis in plan.tree.axes) * 2
    for levels, cells, survivors in zip(plan.levels, work.cells, work.survivors, strict=True):
        if levels in plan.noise:
            bits = BITS_OF_A_GAUSSIAN + log2(max(1.0, deviation(plan.noise[levels])))
            size += int(cells * bits * 1.25 / 8)
        size += survivors * BYTES_A_SURVIVOR_ON_DISK
    return size


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds)):,} seconds"
    return f"{round(seconds / 60):,} minutes" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"


def _size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6)):,} MB"


# Sums off the tree's chain are sums of counts of the first depth that refines them. Each count is
# clipped at 0, so a sum of n of them with variance V may exceed a true 0 by n √(V / 2π) in
# expectation, the worst case over all tables: docs/proofs/variances.md, "Sums off the chain".

SCHEMA = {"cuboid": pl.String, "cells": pl.Float64, "summands": pl.Float64, "of": pl.String,
          "excess": pl.Float64}  # fmt: skip


def sums_off_the_chain(plan: Plan, expected: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the cuboids off the chain by how far a count may exceed its truth, worst first.

    Returns:
        One row a cuboid: its name, ``cells`` (possible ones), ``summands`` (how many counts a cell
        sums at most), ``of`` (the depth they are of, by name), and the ``excess`` (records):
        *worst case over tables, approximate*, null where the error of the summands is unknown.
        Cuboids whose summands are public are left out, as sums of exact counts are exact. Of trees
        with more than 4,096 cuboids those that refine one axis alone. Of other workloads there
        are none: a cube has all cuboids, and who names cuboids names those that matter. Nor of
        running sums, whose bins are steps of cumulative counts, and not clipped one by one.
    """
    tree = plan.tree
    forecasts = forecast(plan) if expected is None else expected
    rmse = forecasts["rmse"]
    rows = []
    if forecasts["depth"].null_count() or isinstance(plan.measure, RunningSums):
        return pl.DataFrame(schema=SCHEMA)
    for levels in off_the_chain(tree):
        depth = first_refining(tree, levels)
        if rmse[depth] == 0:
            continue
        summands = _most_below(tree, levels, tree.cuboid(depth))
        error = rmse[depth]
        excess = None if error is None else summands * error / sqrt(2 * pi)
        cells = prod(map(float, tree.sizes(levels)))
        name = tree.name_of(levels)
        rows.append((name, cells, float(summands), tree.cuboid_name(depth), excess))
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return frame.sort("excess", descending=True, nulls_last=False, maintain_order=True)


def off_the_chain(tree: Tree) -> Iterator[Levels]:
    """Yield the levels of all cuboids off the chain; of wide trees those refining one axis."""
    chain = set(tree.chain)
    every = tree.level_numbers
    if prod(map(len, every)) <= MOST_CUBOIDS:
        cuboids: Iterator[Levels] = product(*every)
    else:
        cuboids = (
            tree.cuboid_of({axis.name: level}) for axis in tree.axes for level in axis.levels
        )
    return (levels for levels in cuboids if levels not in chain)


def first_refining(tree: Tree, levels: Levels) -> int:
    """Return the first depth of which every node lies in one cell of the cuboid."""
    return next(t for t, cuboid in enumerate(tree.chain) if is_within(levels, cuboid))


def _most_below(tree: Tree, levels: Levels, deeper: Levels) -> int:
    """Return how many nodes of deeper levels one cell holds at most."""
    return prod(
        int(np.diff(axis.descendant_start(level, k)).max(initial=0))
        for axis, level, k in zip(tree.axes, levels, deeper, strict=True)
        if k > level
    )


HEADINGS = ("", "cuboid", "cells", "counts a cell", "of", "too high by up to")
MOST_SHOWN = 5


def sums_text(sums: pl.DataFrame, *, everything: bool, wide: bool = False) -> str:
    """Return the worst of `sums_off_the_chain` as text, empty where there are none.

    Where all nodes are measured (``everything``), sums have unbiased estimates.
    """
    if sums.is_empty():
        return ""
    rows = [
        ("", row["cuboid"], f"{row['cells']:,.0f}", f"{row['summands']:,.0f}", row["of"],
         "unknown" if row["excess"] is None else f"{row['excess']:,.3g}"
         if row["excess"] < 1000 else f"{row['excess']:,.0f}")
        for row in sums.head(MOST_SHOWN).iter_rows(named=True)
    ]  # fmt: skip
    left = len(sums) - len(rows)
    more = f"\n{left:,} more; --json has them all." if left else ""
    way_out = (
        "A release shows an unbiased estimate beside each sum and flags what it contradicts."
        if everything
        else (
            'With measure = "survivors" nothing below a count released as 0 is measured. A release '
            "gives such a sum an estimate with an approximate interval, or neither where too much "
            "of the sum may be unmeasured; which sums these are is known after the release only. "
            'For exact intervals take measure = "all" or cuboids = "cube", or name these cuboids '
            "in [workload]."
        )
    )
    table = aligned([HEADINGS, *rows], left=(1, 4), wide=wide)
    return (
        "Sums that are not a depth of the tree add up counts that are each clipped at 0: they are "
        "too high where the true counts are 0, on average by up to about this many records (worst "
        "case over tables), and too low elsewhere, by the same amount in total:\n\n"
        f"{table}{more}\n\n{way_out} Or make sums that matter depths of the tree: refine their "
        "levels first."
    )
