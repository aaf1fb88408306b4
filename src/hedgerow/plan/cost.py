"""What a release will cost in time, memory and disk: expected from public facts, and rough.

How many cells a pass measures follows from how many nodes survive, which nobody knows before. Two
public numbers tell much: the possible nodes of each depth, and the number of records N (public
under `Replace`; else any bound that may be said aloud). A count below the noise is mostly projected
to 0, so of n possible nodes at noise of standard deviation σ about

    min(n, children of the survivors above, N / max(σ, 1))

survive; no more than N can. Both are given: `expected` and `most`. On three large synthetic tables,
from which the constants come too, the cells of all depths together were half of what is expected;
single depths were off by up to 27 times. So this tells minutes from hours, and no more. Measured
on two cores of a cloud machine; another machine has others.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import log2, sqrt

import numpy as np
import polars as pl

from hedgerow.plan.depths import All, Measured, Public, Summed
from hedgerow.plan.describe import aligned
from hedgerow.plan.forecast import Planned, forecast
from hedgerow.plan.plan import Plan
from hedgerow.tables.tree import Tree

SECONDS_A_ROW = 0.4e-6
"""Core seconds to read, check and sort a row of the table."""
SECONDS_A_CELL = 0.1e-6
"""Core seconds to draw, project and write a measured cell."""
SECONDS_A_SURVIVOR = 1.0e-6
"""Core seconds to write a released count with its labels and interval."""
SECONDS_TO_START = 2.0
PARALLEL = 0.8
"""What each further core is worth."""

BYTES_TO_START = 350_000_000
BYTES_AN_AREA = 250
BYTES_A_ROW = 37
"""While rows are sorted; a limit on memory sends them to disk."""
BYTES_A_SURVIVOR_ON_DISK = 9
BITS_OF_A_GAUSSIAN = 2.05
"""log₂ √(2πe): the entropy of noise of standard deviation 1."""


@dataclass(frozen=True, slots=True)
class Work:
    """How much there is to do at each depth.

    Attributes:
        cells: measured, one number a depth.
        survivors: released counts above 0, one number a depth.
    """

    cells: tuple[int, ...]
    survivors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a release will cost; rough, and said of public facts alone.

    Attributes:
        expected: the work if small counts are projected to 0.
        most: the work that is not exceeded while the released total is no more than the records
            (a measured total may be, by its noise).
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
        cells, most = sum(self.expected.cells), sum(self.most.cells)
        return (
            f"Expected cost (rough): about {_time(self.seconds)}, "
            f"{_size(self.memory)} of memory and {_size(self.output)} on disk; "
            f"{cells:,} measured cells (at most {most:,})."
        )


def expected_cost(plan: Plan, records: int, cores: int) -> Cost:
    """Return the cost of executing a plan.

    Args:
        plan: what is measured at which depth.
        records: their number, or a bound on it; public, or stated by the user.
        cores: of the machine.

    Raises:
        ValueError: there are fewer than 0 records or no core.
    """
    if records < 0 or cores < 1:
        raise ValueError(f"there must be records and cores, got {records} and {cores}")
    expected, most = _work(plan, records, noisy=True), _work(plan, records, noisy=False)
    rows = min(records, plan.tree.leaves)
    seconds = rows * SECONDS_A_ROW
    seconds += sum(expected.cells) * SECONDS_A_CELL
    seconds += sum(expected.survivors) * SECONDS_A_SURVIVOR
    areas = sum(axis.size(axis.depth) for axis in plan.tree.axes)
    return Cost(
        expected,
        most,
        SECONDS_TO_START + seconds / (1 + PARALLEL * (cores - 1)),
        BYTES_TO_START + areas * BYTES_AN_AREA + rows * BYTES_A_ROW + _widest(plan, expected),
        _output(plan, expected),
    )


def _work(plan: Plan, records: int, *, noisy: bool) -> Work:
    """Return the cells and survivors of each depth, coarsest first."""
    cells, survivors = [], [1]
    pruned = not isinstance(plan.measure, All)
    above = 1, 1  # survivors of the last measured depth, and possible nodes there
    for depth, what in enumerate(plan.depths):
        nodes = plan.tree.nodes(depth)
        laid_out = -(-above[0] * nodes // above[1]) if pruned else nodes
        laid_out = min(laid_out, nodes)
        alive = min(laid_out, records)
        if isinstance(what, Measured | Summed):
            cells.append(laid_out)
            if noisy:
                alive = min(alive, int(records / max(1.0, _deviation(what))))
        else:
            cells.append(0)
        alive = max(alive, min(1, records))
        survivors.append(alive)
        if isinstance(what, Measured | Summed | Public):
            above = alive, nodes
    return Work(tuple(cells), tuple(survivors[1:]))


def _deviation(what: Measured | Summed) -> float:
    return sqrt(what.mechanism.noise_variance)


def _widest(plan: Plan, work: Work) -> int:
    """Bytes for the widest of what cannot be cut: a family, and a depth where all are measured."""
    tree = plan.tree
    widest = max(
        int((start[1:] - start[:-1]).max()) for axis in tree.axes for start in axis.child_start
    )
    cells = max(work.cells)
    return 100 * max(widest, min(cells, 1 << 22))


def _output(plan: Plan, work: Work) -> int:
    size = sum(axis.size(axis.depth) for axis in plan.tree.axes) * 2
    for what, cells, survivors in zip(plan.depths, work.cells, work.survivors, strict=True):
        if isinstance(what, Measured | Summed):
            bits = BITS_OF_A_GAUSSIAN + log2(max(1.0, _deviation(what)))
            size += int(cells * bits * 1.25 / 8)
        size += survivors * BYTES_A_SURVIVOR_ON_DISK
    return size


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds)):,} seconds"
    return f"{round(seconds / 60):,} minutes" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"


def _size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6)):,} MB"


# How far sums off the tree's chain may leave their truth, foreseen from public facts.
#
# Released counts are kept from falling below 0. Of one count that raises the expectation a little;
# a sum over many of them adds it up, while the noise that it averages out grows more slowly. On the
# chain this cannot happen: a count there is settled before the counts below it, which then add up
# to it. A cuboid off the chain is a sum of counts of the first depth that refines it, and those
# that lie in one of its cells belong to many families.
#
# The *excess* of a cell that sums n counts, each estimated with variance V, is at most about
#
# n √V E max(0, Z) = n √(V / 2π)          (Z standard normal),
#
# which a cell reaches whose true counts are all 0, beside siblings so large that they are never
# cut off and take in all that it gains; truths above 0 gain less, as E max(0, T + e) - T falls with
# T, and so do empty cells beside empty siblings, which share what their family's count leaves them.
# What some cells gain others lose, as the total is kept. So this is the worst case over all tables;
# `hedgerow.evaluate.forecast` simulates a public prior instead.

SCHEMA = {"cuboid": pl.String, "cells": pl.Float64, "summands": pl.Float64, "of": pl.String,
          "excess": pl.Float64}  # fmt: skip
MOST_CUBOIDS = 4096

Levels = tuple[int, ...]


def sums_off_the_chain(plan: Planned, expected: pl.DataFrame | None = None) -> pl.DataFrame:
    """The cuboids off the chain by how far a count of theirs may exceed its truth, worst first.

    Args:
        plan: what is measured.
        expected: its `forecast`, if it is at hand.

    Returns:
        One row a cuboid: its name, ``cells`` (possible ones), ``summands`` (how many counts a cell
        sums at most), ``of`` (the depth they are of, by name), and the ``excess`` (records):
        *worst case over tables, approximate*, null where the error of the summands is not known.
        Cuboids whose summands are public are left out, as sums of exact counts are exact. Of trees
        with more than 4,096 cuboids those that refine one axis alone.
    """
    tree = plan.tree
    rmse = (forecast(plan) if expected is None else expected)["rmse"]
    rows = []
    for levels in off_the_chain(tree):
        depth = first_refining(tree, levels)
        if rmse[depth] == 0:
            continue
        summands = _most_below(tree, levels, tree.cuboid(depth))
        error = rmse[depth]
        excess = None if error is None else summands * error / math.sqrt(2 * math.pi)
        cells = math.prod(
            float(axis.size(level)) for axis, level in zip(tree.axes, levels, strict=True)
        )
        name = tree.name_of(levels)
        rows.append((name, cells, float(summands), tree.cuboid_name(depth), excess))
    found = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return found.sort("excess", descending=True, nulls_last=False, maintain_order=True)


def off_the_chain(tree: Tree) -> Iterator[Levels]:
    """The levels of all cuboids off the chain, or of a wide tree those that refine one axis."""
    chain = {tree.cuboid(t) for t in range(tree.depth + 1)}
    every = [range(axis.depth + 1) for axis in tree.axes]
    if math.prod(map(len, every)) <= MOST_CUBOIDS:
        found: Iterator[Levels] = product(*every)
    else:
        found = (
            tuple(level if i == a else 0 for i in range(len(every)))
            for a, levels in enumerate(every)
            for level in levels[1:]
        )
    return (levels for levels in found if levels not in chain)


def first_refining(tree: Tree, levels: Levels) -> int:
    """Return the first depth of which every node lies in one cell of the cuboid."""
    return next(
        t
        for t in range(tree.depth + 1)
        if all(k >= level for k, level in zip(tree.cuboid(t), levels, strict=True))
    )


def _most_below(tree: Tree, levels: Levels, deeper: Levels) -> int:
    """Return how many nodes of deeper levels one cell holds at most."""
    return math.prod(
        int(np.diff(axis.descendant_start(level, k)).max(initial=0))
        for axis, level, k in zip(tree.axes, levels, deeper, strict=True)
        if k > level
    )


HEADINGS = ("", "cuboid", "cells", "counts a cell", "of", "too high by up to")
MOST_SHOWN = 5


def sums_told(sums: pl.DataFrame, *, everything: bool) -> str:
    """The worst of `sums_off_the_chain` in words and as a table; nothing where there are none.

    Args:
        sums: of `sums_off_the_chain`.
        everything: whether all nodes are measured, so that sums have unbiased estimates.
    """
    if sums.is_empty():
        return ""
    rows = [
        ("", row["cuboid"], f"{row['cells']:,.0f}", f"{row['summands']:,.0f}", row["of"],
         "not known" if row["excess"] is None else f"{row['excess']:,.3g}"
         if row["excess"] < 1000 else f"{row['excess']:,.0f}")
        for row in sums.head(MOST_SHOWN).iter_rows(named=True)
    ]  # fmt: skip
    left = len(sums) - len(rows)
    more = f"\n{left:,} more; --json has them all." if left else ""
    way_out = (
        "A release shows an unbiased estimate beside each sum and flags what it contradicts."
        if everything
        else 'Of survivors such sums have no unbiased estimate; with measure = "all" they have.'
    )
    return (
        "Sums that are no depth of the tree add up counts that are each kept from falling below 0: "
        "too high where the true counts are 0, on average by up to about so many records (worst "
        "case over tables), and too low elsewhere, by as much altogether:\n\n"
        f"{aligned([HEADINGS, *rows])}{more}\n\n{way_out} Sums that matter should be depths: "
        "refine their levels first."
    )
