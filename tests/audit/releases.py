"""Many releases of two neighbouring tables by the real pass, and what they show.

Two ways. *One by one*: a whole release for each run, under a key of its own. *Side by side*: one
release of many copies of the small table, each under a public node of its own, so that one run of
the pass over one large table makes thousands of releases of the small one; a unit lives in one
copy, so each copy keeps the promise of the whole plan, and the noise of different copies is
independent.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Codes, Levels
from hedgerow.estimate.workload.sparse import survivors_below
from hedgerow.noise.bits import Bits, ReleaseKey
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Invariant, Measured, RunningSums, Summed
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import as_tables
from hedgerow.release.descent.steps import Refinement
from hedgerow.release.in_memory import InMemory
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_numbers
from tests.audit.method import Event, Seen, Truth, audited
from tests.made import fixed_axis


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables over one small tree, and how they are released.

    Attributes:
        plan: of one release of one of the small tables.
        first, second: leaf counts, one dimension an axis.
        release: makes a release of a table with given bits, under a plan.
        seed: of the keys.
    """

    plan: Plan
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    release: Callable[[Counts, Plan, Bits], Release]
    seed: str = ""

    def one_by_one(self, runs: int) -> tuple[Plan, list[Event]]:
        """The plan, and the audit of so many releases of each table."""
        tree, seen = self.plan.tree, []
        for side, leaves in enumerate((self.first, self.second)):
            counts = table(tree, leaves)
            rows = Rows(tree, runs) if self.plan.is_chain else CuboidRows(self.plan, runs)
            for run in range(runs):
                rows.add(self.plan, self.release(counts, self.plan, self._key(side, run)), run)
            seen.append(rows.seen)
        return self.plan, audited(seen[0], seen[1], self._truth(self.plan, above=0))

    def side_by_side(self, copies: int) -> tuple[Plan, list[Event]]:
        """The plan for so many copies of each table, and the audit of one release of them."""
        tree, plan, seen = self.plan.tree, self._plan_of_copies(copies), []
        for side, leaves in enumerate((self.first, self.second)):
            counts = table(plan.tree, np.broadcast_to(leaves, (copies, *leaves.shape)))
            rows = Rows(tree, copies)
            rows.add(plan, self.release(counts, plan, self._key(side, copies)), None)
            seen.append(rows.seen)
        return plan, audited(seen[0], seen[1], self._truth(plan, above=1))

    def _key(self, side: int, run: int) -> Bits:
        name = f"hedgerow/audit/{self.seed}/{side}/{run}"
        return ReleaseKey(hashlib.sha256(name.encode()).digest())

    def _truth(self, plan: Plan, above: int) -> Truth:
        """Of a plan whose first depths lie above the small tree."""
        tree, noise = self.plan.tree, []
        if not plan.is_chain:
            for levels, what in plan.by_levels.items():
                mechanism = what.mechanism if isinstance(what, Measured) else None
                noise += [mechanism] * tree.cells(levels)
            before, after = (sums_of_cuboids(plan, side) for side in (self.first, self.second))
            return Truth(before, after, tuple(noise))
        for depth, what in enumerate(plan.depths[above:]):
            mechanism = what.mechanism if isinstance(what, Measured | Summed) else None
            noise += [mechanism] * tree.nodes(depth)
        first, second = (measured(plan, tree, side) for side in (self.first, self.second))
        return Truth(first, second, tuple(noise))

    def _plan_of_copies(self, copies: int) -> Plan:
        """The same shares below so many nodes; these are public if the small table's total is.

        If it is not, each copy's total is measured and that of all of them is not: a unit moves it
        too, and its price would be paid for nothing that a copy shows.
        """
        small = self.plan
        public = small.neighbours.total_is_public
        steps = [(small.tree.axes[a], level) for a, level in small.tree.steps]
        names = [f"{axis.name}.{axis.levels[level - 1]}" for axis, level in steps]
        axis = fixed_axis("copy", copies, columns=["copy"])
        shares = [share or 0 for share in (small.shares[1:] if public else (0, *small.shares))]
        return make_plan(
            Tree([axis, *small.tree.axes], refine=["copy.level1", *names]),
            budget=small.budget,
            neighbours=small.neighbours,
            mechanism=small.mechanism,
            allocation=Shares(shares),
            measure=small.measure,
            invariants=[Invariant("copy", "level1")] if public else [],
        )


def table(tree: Tree, leaves: NDArray[np.int64]) -> Counts:
    """A table with a count for every possible leaf: one dimension an axis."""
    codes = tuple(code.ravel().astype(np.int32) for code in np.indices(leaves.shape))
    return Counts.from_leaves(tree, codes, leaves.ravel())


class Rows:
    """What releases show, by node of the small tree; depths follow each other, coarsest first."""

    def __init__(self, tree: Tree, runs: int) -> None:
        self.tree = tree
        columns = sum(tree.nodes(depth) for depth in range(tree.depth + 1))
        self.seen = Seen(np.full((runs, columns), np.nan), np.zeros((runs, columns)))

    def add(self, plan: Plan, release: Release, run: int | None) -> None:
        """One release in one row, or (None) all copies of one release in theirs."""
        above = plan.tree.depth - self.tree.depth
        codes: Codes = ()
        for depth in range(plan.tree.depth + 1):
            parents = every_node(plan.tree, depth - 1) if isinstance(plan.measure, All) else codes
            codes, counts = released(plan.tree, release, depth)
            if depth < above:
                continue
            self._put(self.seen.counts, depth - above, codes, counts, run)
            if isinstance(plan.depths[depth], Measured | Summed):
                cells = children(plan.tree, depth, parents)
                noisy = release.content.measured[plan.tree.cuboid(depth)]
                self._put(self.seen.noisy, depth - above, cells, noisy, run)

    def _put(self, out: Any, depth: int, codes: Codes, values: Any, run: int | None) -> None:
        small = codes if run is not None else codes[1:]
        rows = np.full(len(values), run) if run is not None else codes[0]
        out[rows, columns(self.tree, depth, small)] = values


class CuboidRows:
    """What releases of a cube, or of named cuboids, show, by cell; coarser cuboids come first."""

    def __init__(self, plan: Plan, runs: int) -> None:
        self.tree = plan.tree
        ends = np.cumsum([plan.tree.cells(levels) for levels in plan.levels])
        self.start = dict(zip(plan.levels, [0, *ends.tolist()], strict=False))
        shape = (runs, int(ends[-1]))
        self.seen = Seen(np.full(shape, np.nan), np.zeros(shape))

    def add(self, plan: Plan, release: Release, run: int) -> None:
        """One release in one row."""
        content = release.content
        assert isinstance(content, InMemory)
        for levels, what in plan.by_levels.items():
            nodes = content.nodes[levels]
            self._put(self.seen.counts, run, levels, nodes.codes, nodes.counts)
            if isinstance(what, Measured):
                noisy = content.measured[levels]
                cells = self._cells(plan, content, levels)
                self._put(self.seen.noisy, run, levels, cells, noisy)

    def _put(self, out: Any, run: int, levels: Levels, codes: Codes, values: Any) -> None:
        out[run, self.start[levels] + cell_numbers(self.tree, levels, codes)] = values

    def _cells(self, plan: Plan, content: InMemory, levels: Levels) -> Codes:
        """The cells that were measured, in the order of their noisy counts."""
        if plan.is_whole(levels):
            sizes = [axis.size(k) for axis, k in zip(self.tree.axes, levels, strict=True)]
            return tuple(code.ravel().astype(np.int32) for code in np.indices(sizes))
        joint = as_tables(plan.design)
        cuboid = joint.shape.given(levels)
        above = {cover: content.nodes[joint.levels(cover)] for cover in joint.margins[cuboid]}
        listed = {cover: (nodes.codes, nodes.counts) for cover, nodes in above.items()}
        survivors = survivors_below(joint.shape, cuboid, joint.margins[cuboid], listed)
        return survivors.nodes(np.arange(survivors.cells))


def sums_of_cuboids(plan: Plan, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
    """What noise is added to in each cuboid of a plan: true counts, by column."""
    found = []
    for levels in plan.levels:
        sums = leaves
        for number, (axis, level) in enumerate(zip(plan.tree.axes, levels, strict=True)):
            start = axis.descendant_start(level, axis.depth)[:-1]
            sums = np.add.reduceat(sums, start, axis=number)
        found.append(sums.ravel())
    return np.concatenate(found)


def released(tree: Tree, release: Release, depth: int) -> tuple[Codes, NDArray[np.int64]]:
    """The nodes and counts of a depth; in a directory a node's label is its number."""
    if isinstance(release.content, InMemory):
        nodes = release.content.nodes[tree.cuboid(depth)]
        return nodes.codes, nodes.counts
    frame = release.level(depth=depth)
    labels = [
        frame[axis.columns[level - 1]].cast(pl.Int32).to_numpy()
        if level
        else np.zeros(len(frame), dtype=np.int32)
        for axis, level in zip(tree.axes, tree.cuboid(depth), strict=True)
    ]
    return tuple(labels), frame["count"].to_numpy()


def columns(tree: Tree, depth: int, codes: Codes) -> NDArray[np.int64]:
    """The column of each node of a depth."""
    before = sum(tree.nodes(upper) for upper in range(depth))
    place = np.zeros(len(codes[0]), dtype=np.int64)
    for axis, level, code in zip(tree.axes, tree.cuboid(depth), codes, strict=True):
        place = place * axis.size(level) + code
    return before + place


def children(tree: Tree, depth: int, parents: Codes) -> Codes:
    """The children of nodes of the depth above, in the order in which they are measured."""
    if depth <= 0:
        return tuple(np.zeros(1, dtype=np.int32) for _ in tree.axes)
    step = refinement(tree, depth)
    above = parents[step.axis]
    start = np.append(0, np.cumsum(step.child_start[above + 1] - step.child_start[above]))
    parent = np.repeat(np.arange(len(start) - 1), np.diff(start))
    refined = step.child_start[parents[step.axis][parent]] + np.arange(start[-1]) - start[parent]
    return tuple(refined if a == step.axis else code[parent] for a, code in enumerate(parents))


@cache
def refinement(tree: Tree, depth: int) -> Refinement:
    """The step to a depth."""
    return Refinement.of(tree, depth)


@cache
def every_node(tree: Tree, depth: int) -> Codes:
    """All nodes of a depth in tree order."""
    return children(tree, depth, every_node(tree, depth - 1) if depth > 0 else ())


def measured(plan: Plan, tree: Tree, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
    """What noise is added to, by column: true counts, or weighted sums in the place of the bins."""
    found = np.zeros(sum(tree.nodes(depth) for depth in range(tree.depth + 1)), dtype=np.int64)
    for depth in range(tree.depth + 1):
        codes, values = table(tree, leaves).roll_up(depth)
        found[columns(tree, depth, codes)] = values
    if isinstance(plan.measure, RunningSums):
        found[-leaves.size :] = plan.strategy.sums(leaves[None])[0]
    return found
