"""Counts along a spine the Bureau's way: from each level's own measurements, from the top down."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hedgerow.arrays import Bool, ByCuboid, Float64, Int32, Int64, Levels, run_of
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import over_families
from studies.bureau.fit import UNKNOWN, Family
from studies.bureau.rounding import rounded, rounded_root

TOLERANCE = 0.1
"""Records: how far the second pass may take a total from what the first pass fitted."""


def bureau_counts(
    model: Model,
    noisy: ByCuboid,
    total: int,
    chain: Sequence[Sequence[int]],
    allowed: Bool,
) -> dict[int, Int64]:
    """Return whole counts of every level of a spine as the 2020 redistricting file was estimated.

    The children of one parent are fitted at a time, to their own noisy counts alone: nothing is
    learnt from levels below. First the totals are fitted, then all other measurements, with totals
    within a tolerance of the first fit; at the root and at the deepest level all measurements at
    once. Cells in which the parent has nobody stay empty. The fit is non-negative, adds up to the
    parent cell by cell and keeps public zeros and bounds; so do the whole counts, which are rounded
    along a chain of attribute cuboids that begins with the totals, each stage keeping the counts of
    the stage before. `studies.bureau.fit` and `.rounding` state both problems.

    This is written from the published description, to be compared with; it is not the Bureau's
    code, and takes no commercial solver.

    Args:
        model: what is measured: a model of `hedgerow.estimate.spine`.
        noisy: for each measured cuboid the flat table of all nodes of its level, float64, records.
        total: the number of records, which is public.
        chain: the attribute cuboids of the rounding, from the groups to the detail, each a
            refinement of the one before.
        allowed: bool (detail cells of all groups): False for cells that are 0 by a public rule.

    Returns:
        For each level int64, detail layout, records.

    Raises:
        EstimateError: public zeros and bounds that leave no counts.

    Source:
        Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm, Harvard
        Data Science Review, Special Issue 2.
    """
    support = model.support
    stages = [model.cells((0, *levels)).numbers for levels in chain]
    here = Level(model, noisy, 0, tuple(chain[-1]))
    counts = {0: _root_counts(here, total, stages, allowed)}
    for level in range(1, support.spine.depth + 1):
        passes = 1 if level == support.spine.depth else 2
        above, here = here, replace(here, level=level)
        counts[level] = _children_counts(above, here, counts[level - 1], stages, passes)
    return counts


@dataclass(frozen=True)
class Level:
    """The measurements of one level of a spine, as the families of the level need them.

    Attributes:
        model: what is measured.
        noisy: flat tables of all nodes.
        level: of the spine.
        finest: the attribute cuboid of the detail.
    """

    model: Model
    noisy: ByCuboid
    level: int
    finest: Levels

    @cached_property
    def detail(self) -> Cells:
        """The layout of the level's counts."""
        return self.model.cells((self.level, *self.finest))

    def cells(self, nodes: range) -> Int64:
        """Return the detail cells of each of some nodes, over all groups."""
        return self.detail.located(np.arange(self.detail.count(nodes)), nodes)[1]

    def put(self, nodes: range, cells: Int64, whole: Int64, counts: Int64) -> None:
        """Write the counts of a family (children, cells) to their places in the level's table."""
        first, last = self.detail.starts[nodes.start], self.detail.starts[nodes.stop]
        node = np.repeat(np.arange(nodes.start, nodes.stop, dtype=np.int32), len(cells))
        cell = np.tile(cells.astype(np.int32), len(nodes))
        self.detail.add(counts[first:last], nodes, node, cell, whole.ravel())

    @cached_property
    def cuboids(self) -> list["Query"]:
        """The cuboids that are measured here; the total is first."""
        return [
            Query(self.model.cells(key), self.noisy[key], variance, not any(key[1:]))
            for key, variance in sorted(self.model.measured.items())
            if key[0] == self.level
        ]

    def family(
        self, nodes: range, cells: Int64, parent: Float64, *, totals_apart: bool
    ) -> tuple[Family, Float64 | None]:
        """Return the family of some nodes, and their noisy totals where these are measured apart.

        Args:
            nodes: one parent's children.
            cells: int64: the detail cells where the parent is positive, over all groups.
            parent: float64 (cells): its counts.
            totals_apart: whether the totals are left out of what the family's cells are fitted to.
        """
        support, total = self.model.support, None
        column, entries = [], 0
        weight, measured = [np.zeros(0)], [np.zeros((len(nodes), 0))]
        for query in self.cuboids:
            if query.is_total and totals_apart:
                total = query.dense(nodes)[:, 0]
                continue
            used, place = np.unique(query.entry[cells], return_inverse=True)
            column.append(entries + place)
            weight.append(np.where(used < query.size, 1 / query.variance, 0.0))
            measured.append(query.dense(nodes)[:, used])
            entries += len(used)
        free, rows = np.full(len(nodes), np.inf), rows_of(support, self.level, nodes)
        low, high = (
            np.where(rows < 0, 0, known[self.level][rows]) for known in (support.low, support.high)
        )
        return Family(
            parent, run_of(support.offset, cells).astype(np.int32), low, high,
            np.array(column, dtype=np.int32).reshape(len(column), len(cells)),
            np.concatenate(weight), np.hstack(measured), -free, free,
        ), total  # fmt: skip


@dataclass(frozen=True, eq=False)
class Query:
    """One measured cuboid of a level.

    Attributes:
        cells: its layout.
        flat: float64: the noisy table of all nodes.
        variance: of its noise, records².
        is_total: whether it is the nodes' totals.
    """

    cells: Cells
    flat: Float64
    variance: float
    is_total: bool

    @cached_property
    def size(self) -> int:
        """The number of cells of a node that has all groups."""
        return int(self.cells.width.sum())

    @cached_property
    def entry(self) -> Int64:
        """The cell that each detail cell of all groups adds to; `size` where it adds to none."""
        return np.where(self.cells.numbers < 0, self.size, self.cells.numbers.astype(np.int64))

    def dense(self, nodes: range) -> Float64:
        """Return the noisy counts of some nodes, 0 where nothing is measured, and a column of 0s.

        Returns:
            float64 (nodes, size + 1), records.
        """
        start, table = self.cells.starts, np.zeros((len(nodes), self.size + 1))
        node, cell = self.cells.located(np.arange(self.cells.count(nodes)), nodes)
        table[node - nodes.start, cell] = self.flat[start[nodes.start] : start[nodes.stop]]
        return table


def rows_of(support: Support, level: int, nodes: range) -> Int64:
    """Return the row of each group at some nodes, -1 where it is not there: (nodes, groups)."""
    here, start = support.rows(level, nodes), support.start[level][nodes.start : nodes.stop + 1]
    rows = np.full((len(nodes), support.groups), -1)
    node = np.repeat(np.arange(len(nodes)), np.diff(start))
    rows[node, support.group[level][here]] = np.arange(here.start, here.stop)
    return rows


def _compact(stages: Sequence[Int32], cells: Int64) -> list[Int32]:
    """Return the stages of some cells: the groups' numbers, then numbers from 0 on."""
    later = [np.unique(stage[cells], return_inverse=True)[1] for stage in stages[1:]]
    return [stages[0][cells], *(label.astype(np.int32) for label in later)]


def _root_counts(here: Level, total: int, stages: Sequence[Int32], allowed: Bool) -> Int64:
    """Return the counts of the spine's root, whose total is known: detail layout."""
    node, inside = range(1), here.cells(range(1))
    cells = inside[allowed[inside]]
    family, _ = here.family(node, cells, np.full(len(cells), UNKNOWN), totals_apart=True)
    known = np.array([float(total)])
    fitted = family.between(known, known).nearest()[0]
    counts = np.zeros(len(inside), dtype=np.int64)
    stages = _compact(stages, cells)
    here.put(
        node, cells, rounded_root(fitted, total, stages, family.low[0], family.high[0]), counts
    )
    return counts


def _children_counts(
    above: Level, here: Level, known: Int64, stages: Sequence[Int32], passes: int
) -> Int64:
    """Return the counts of a level from those of the level above: detail layout both."""
    support, level, start = here.model.support, here.level, above.detail.starts
    child_start = support.spine.child_start[level - 1]
    counts = np.zeros(here.detail.starts[-1], dtype=np.int64)
    here.cuboids  # noqa: B018 - made once, before threads ask for it

    def work(first: int, last: int) -> None:
        for parent in range(first, last):
            nodes = range(int(child_start[parent]), int(child_start[parent + 1]))
            given = known[start[parent] : start[parent + 1]]
            cells, given = above.cells(range(parent, parent + 1))[given > 0], given[given > 0]
            if len(cells):
                family, total = here.family(
                    nodes, cells, given.astype(np.float64), totals_apart=passes > 1
                )
                if total is not None:
                    family = family.with_totals(total, TOLERANCE)
                fitted, of_cells = family.nearest(), _compact(stages, cells)
                whole = rounded(fitted, given, of_cells, family.low, family.high)
                here.put(nodes, cells, whole, counts)

    over_families(work, here.detail.starts[child_start])
    return counts
