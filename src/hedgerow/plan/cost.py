"""The expected cost of a release in time, memory and disk, and its sums off the tree's chain.

The cost follows from public facts and is rough: it tells minutes from hours. Of n possible nodes at
noise of standard deviation σ about ``min(n, children of the survivors above, N / max(σ, 1))``
survive, for N records. Constants were measured on two cores of a cloud machine, on three large
synthetic tables: the cells of all depths together were half of the forecast; single depths were off
by up to 27 times. Along a spine they were measured on Rhode Island and on a synthetic nation
(`hedgerow example redistricting`), as cubes: within a factor of three of both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import log2, pi, prod, sqrt

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.estimate.cube.shape import meet
from hedgerow.estimate.workload.solvers import bytes_of_solver
from hedgerow.plan.cuboids import All, Measured, Public, Summed
from hedgerow.plan.describe import aligned
from hedgerow.plan.forecast import Planned, forecast
from hedgerow.plan.joint import as_tables
from hedgerow.plan.named import PlannedCuboids
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.tables.tree import Tree

SECONDS_A_ROW = 0.4e-6
"""Core seconds to read, check and sort a row of the table."""
SECONDS_A_CELL = 0.1e-6
"""Core seconds to draw, project and write a measured cell."""
SECONDS_A_SPINE_CELL = 0.6e-6
"""The same of a cell along a spine: it is drawn twice, estimated and settled."""
SECONDS_A_SURVIVOR = 1.0e-6
"""Core seconds to write a released count with its labels and interval."""
SECONDS_TO_START = 2.0
PARALLEL = 0.8
"""The speed of each further core, the first being 1."""

BYTES_TO_START = 350_000_000
BYTES_AN_AREA = 250
BYTES_A_ROW = 37
"""While rows are sorted; a limit on memory sends them to disk."""
BYTES_AT_ONCE = 100
"""Of a cell that is drawn and estimated at once with others."""
BYTES_A_CUBE_CELL = 32
"""Of a cell of a cube, whose tables are held in memory whole: noise, sums, counts, estimates."""
BYTES_A_NAMED_CELL = 40
"""Of a cell of named cuboids, or of what they are settled at, likewise."""
BYTES_A_FOLDED_NODE = 24
"""Of a row or column among which survivors of named cuboids are found: its parent, and weights."""
BYTES_A_SURVIVOR_ON_DISK = 9
BITS_OF_A_GAUSSIAN = 2.05
"""log₂ √(2πe): the entropy of noise of standard deviation 1."""


@dataclass(frozen=True, slots=True)
class Work:
    """The number of measured cells and of released counts above 0, by depth."""

    cells: tuple[int, ...]
    survivors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
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
        cells, most = sum(self.expected.cells), sum(self.most.cells)
        return (
            f"Expected cost (rough): about {_time(self.seconds)}, "
            f"{_size(self.memory)} of memory and {_size(self.output)} on disk; "
            f"{cells:,} measured cells{f' (at most {most:,})' if most > cells else ''}."
        )


def expected_cost(plan: Plan, records: int, cores: int) -> Cost:
    """Return the cost of executing a plan on so many records (or a public bound) and cores."""
    expected, most = _work(plan, records, noisy=True), _work(plan, records, noisy=False)
    is_along_spine = not plan.is_chain and isinstance(plan.joint, PlannedSpine)
    rows = min(records, possible_leaves(plan))
    if is_along_spine:  # cells with records are about as rare in the table as in its release
        rows = min(rows, expected.survivors[-1])
    seconds = rows * SECONDS_A_ROW
    a_cell = SECONDS_A_SPINE_CELL if is_along_spine else SECONDS_A_CELL
    seconds += sum(expected.cells) * a_cell
    seconds += sum(expected.survivors) * SECONDS_A_SURVIVOR
    areas = sum(axis.size(axis.depth) for axis in plan.tree.axes)
    starts = (start for axis in plan.tree.axes for start in axis.child_start)
    widest = max(int(np.diff(start).max()) for start in starts)
    uncut = max(widest, min(max(expected.cells), 1 << 22))  # a family, or part of a depth
    if not plan.is_chain:
        uncut = bytes_of_tables(plan) // BYTES_AT_ONCE
    return Cost(
        expected,
        most,
        SECONDS_TO_START + seconds / (1 + PARALLEL * (cores - 1)),
        BYTES_TO_START + areas * BYTES_AN_AREA + rows * BYTES_A_ROW + BYTES_AT_ONCE * uncut,
        _output(plan, expected),
    )


def bytes_of_tables(plan: Plan) -> int:
    """Return the memory that the tables of a plan take that estimates cuboids together.

    Of named cuboids: the measured tables, what is settled on the way, and what a solver keeps.
    """
    joint = plan.joint
    if isinstance(joint, PlannedSpine):
        return joint.bytes_held
    if not isinstance(joint, PlannedCuboids):
        whole = sum(plan.tree.cells(levels) for levels in plan.levels if plan.is_whole(levels))
        return whole * BYTES_A_CUBE_CELL
    held = {*joint.lattice.elements, *(cuboid for cuboid in joint.noise if cuboid in joint.whole)}
    cells = sum(map(joint.shape.cells, held))
    folded = max((sum(joint.folded(cuboid)) for cuboid in joint.sparse), default=0)
    return cells * BYTES_A_NAMED_CELL + bytes_of_solver(joint.solver) + folded * BYTES_A_FOLDED_NODE


def _work(plan: Plan, records: int, *, noisy: bool) -> Work:
    """Return the cells and survivors of each cuboid, coarsest first."""
    work = _work_of_chain if plan.is_chain else _work_of_joint
    return work(plan, records, noisy=noisy)


def _work_of_joint(plan: Plan, records: int, *, noisy: bool) -> Work:
    """Return those of a joint plan: whole cuboids, and survivors below positive margins."""
    cells: dict[Levels, int] = {}
    alive: dict[Levels, int] = {}
    for levels, what in plan.by_levels.items():
        source = plan.repeats.get(levels, levels)
        if source != levels:
            cells[levels], alive[levels] = 0, alive[source]
            continue
        laid_out = plan.joint.possible_cells(plan.joint.shape.given(levels))
        if not plan.is_whole(levels):
            laid_out = min(laid_out, _below_margins(plan, levels, alive))
        alive[levels] = min(laid_out, records)
        cells[levels] = laid_out if isinstance(what, Measured | Summed) else 0
        if isinstance(what, Measured | Summed) and noisy:
            alive[levels] = min(alive[levels], int(records / max(1.0, _deviation(what))))
        alive[levels] = max(alive[levels], min(1, records))
    return Work(tuple(cells.values()), tuple(alive.values()))


def possible_leaves(plan: Plan) -> int:
    """Return how many cells of the finest cuboid there are that public facts do not rule out."""
    return plan.tree.leaves if plan.is_chain else possible_cells(plan, plan.tree.chain[-1])


def possible_cells(plan: Plan, levels: Levels) -> int:
    """Return how many cells of a cuboid there are that public facts do not rule out."""
    joint = None if plan.is_chain else plan.joint
    if isinstance(joint, PlannedSpine):
        return joint.open_cells(joint.shape.given(levels))
    return plan.tree.cells(levels)


def _below_margins(plan: Plan, levels: Levels, alive: Mapping[Levels, int]) -> int:
    """Return how many cells of a cuboid lie below positive ones of the one or two above it.

    Rows and columns of positive margins are taken to be spread evenly over the blocks.
    """
    joint = as_tables(plan.joint)
    covers = joint.margins[joint.shape.given(levels)]
    count = prod(alive[joint.levels(cover)] for cover in covers)
    if len(covers) == 1:
        return -(-count * plan.tree.cells(levels) // joint.shape.cells(covers[0]))
    return -(-count // max(1, alive[joint.levels(meet(*covers))]))


def _work_of_chain(plan: Plan, records: int, *, noisy: bool) -> Work:
    """Return those of a chain: nodes, or the children of survivors."""
    cells, survivors = [], [1]
    pruned = not isinstance(plan.measure, All)
    above = 1, 1  # survivors of the last measured depth, and possible nodes there
    for depth, depth_plan in enumerate(plan.depths):
        nodes = plan.tree.nodes(depth)
        laid_out = -(-above[0] * nodes // above[1]) if pruned else nodes
        laid_out = min(laid_out, nodes)
        alive = min(laid_out, records)
        if isinstance(depth_plan, Measured | Summed):
            cells.append(laid_out)
            if noisy:
                alive = min(alive, int(records / max(1.0, _deviation(depth_plan))))
        else:
            cells.append(0)
        alive = max(alive, min(1, records))
        survivors.append(alive)
        if isinstance(depth_plan, Measured | Summed | Public):
            above = alive, nodes
    return Work(tuple(cells), tuple(survivors[1:]))


def _deviation(depth_plan: Measured | Summed) -> float:
    return sqrt(depth_plan.mechanism.noise_variance)


def _output(plan: Plan, work: Work) -> int:
    size = sum(axis.size(axis.depth) for axis in plan.tree.axes) * 2
    every = plan.by_levels.values()
    for depth_plan, cells, survivors in zip(every, work.cells, work.survivors, strict=True):
        if isinstance(depth_plan, Measured | Summed):
            bits = BITS_OF_A_GAUSSIAN + log2(max(1.0, _deviation(depth_plan)))
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
# expectation, the worst case over all tables: docs/proofs.md, "Sums off the chain".

SCHEMA = {"cuboid": pl.String, "cells": pl.Float64, "summands": pl.Float64, "of": pl.String,
          "excess": pl.Float64}  # fmt: skip
MOST_CUBOIDS = 4096


def sums_off_the_chain(plan: Planned, expected: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the cuboids off the chain by how far a count may exceed its truth, worst first.

    Returns:
        One row a cuboid: its name, ``cells`` (possible ones), ``summands`` (how many counts a cell
        sums at most), ``of`` (the depth they are of, by name), and the ``excess`` (records):
        *worst case over tables, approximate*, null where the error of the summands is unknown.
        Cuboids whose summands are public are left out, as sums of exact counts are exact. Of trees
        with more than 4,096 cuboids those that refine one axis alone. Of other workloads there
        are none: a cube has all cuboids, and who names cuboids names those that matter.
    """
    tree = plan.tree
    if not plan.is_chain:
        return pl.DataFrame(schema=SCHEMA)
    rmse = (forecast(plan) if expected is None else expected)["rmse"]
    rows = []
    for levels in off_the_chain(tree):
        depth = first_refining(tree, levels)
        if rmse[depth] == 0:
            continue
        summands = _most_below(tree, levels, tree.cuboid(depth))
        error = rmse[depth]
        excess = None if error is None else summands * error / sqrt(2 * pi)
        cells = prod(float(axis.size(level)) for axis, level in zip(tree.axes, levels, strict=True))
        name = tree.name_of(levels)
        rows.append((name, cells, float(summands), tree.cuboid_name(depth), excess))
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return frame.sort("excess", descending=True, nulls_last=False, maintain_order=True)


def off_the_chain(tree: Tree) -> Iterator[Levels]:
    """Yield the levels of all cuboids off the chain; of wide trees those refining one axis."""
    chain = {tree.cuboid(t) for t in range(tree.depth + 1)}
    every = [range(axis.depth + 1) for axis in tree.axes]
    if prod(map(len, every)) <= MOST_CUBOIDS:
        cuboids: Iterator[Levels] = product(*every)
    else:
        cuboids = (
            tuple(level if i == a else 0 for i in range(len(every)))
            for a, levels in enumerate(every)
            for level in levels[1:]
        )
    return (levels for levels in cuboids if levels not in chain)


def first_refining(tree: Tree, levels: Levels) -> int:
    """Return the first depth of which every node lies in one cell of the cuboid."""
    return next(
        t
        for t in range(tree.depth + 1)
        if all(k >= level for k, level in zip(tree.cuboid(t), levels, strict=True))
    )


def _most_below(tree: Tree, levels: Levels, deeper: Levels) -> int:
    """Return how many nodes of deeper levels one cell holds at most."""
    return prod(
        int(np.diff(axis.descendant_start(level, k)).max(initial=0))
        for axis, level, k in zip(tree.axes, levels, deeper, strict=True)
        if k > level
    )


HEADINGS = ("", "cuboid", "cells", "counts a cell", "of", "too high by up to")
MOST_SHOWN = 5


def sums_text(sums: pl.DataFrame, *, everything: bool) -> str:
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
    return (
        "Sums that are not a depth of the tree add up counts that are each clipped at 0: they are "
        "too high where the true counts are 0, on average by up to about this many records (worst "
        "case over tables), and too low elsewhere, by the same amount in total:\n\n"
        f"{aligned([HEADINGS, *rows])}{more}\n\n{way_out} Or make sums that matter "
        "depths of the tree: refine their levels first."
    )
