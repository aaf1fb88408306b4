"""What a release tells of any cells from its noisy counts, whatever its plan measures.

Estimates are unbiased, and stand beside released counts: of measured cells, listed or not; of
cuboids that the plan does not have; of areas; and once more by another method. Which way leads to
them follows from the plan's design (`answers_of`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.measured_nodes import check_stored
from hedgerow.release.area_sums import AreaSums
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.nodes import Nodes, sums_of_cells
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.directory.stored import Content
from hedgerow.tables.tree import cell_numbers

Covariances = Callable[[Sequence[tuple[Levels, int]]], Float64]
"""Of cells, each a cuboid and a row there: float64 (cells, cells), records²."""


@dataclass(frozen=True, slots=True)
class AreaWork:
    """What errors of sums over areas take.

    Attributes:
        is_known: whether they can be had: every cell has noise of its own.
        noisy: the noisy counts that they are made of.
        most: those that may be read at once.
        work: about how many numbers are run through.
    """

    is_known: bool
    noisy: int
    most: int
    work: int = 0


@dataclass(frozen=True, slots=True)
class Answers(ABC):
    """What a release says of any cells.

    Attributes:
        plan: of the release.
    """

    plan: Plan

    @abstractmethod
    def cells(
        self, stored: Stored, released: Mapping[Levels, Nodes], wanted: Sequence[Levels]
    ) -> dict[Levels, Nodes]:
        """Return all measured cells of cuboids of the plan, with released counts and estimates.

        Args:
            stored: the noisy counts.
            released: the listed cells.
            wanted: the cuboids.

        Raises:
            ReleaseError: the noisy counts are more or fewer than the plan's cells, or cells are
                listed that were not measured.
        """

    def every_cell(self, content: Content, levels: Levels) -> Nodes:
        """Return all measured cells of a cuboid of a release.

        Raises:
            ReleaseError: the cuboid has no estimates of its unlisted cells.
        """
        return self.cells(content.stored, content.nodes, [levels])[levels]

    def listed(self, stored: Stored, released: Mapping[Levels, Nodes]) -> dict[Levels, Nodes]:
        """Return the listed cells of cuboids with their estimates, whoever made their counts.

        Counts are taken as they are: they decide which cells were measured, where these are
        survivors, and nothing else. Left out are cuboids along a chain that were not measured
        themselves, where survivors were.

        Raises:
            ReleaseError: the noisy counts are more or fewer than the cells that were measured, or
                none that a release writes; or cells are listed that were not measured.
        """
        check_stored(stored)
        every = self.cells(stored, released, self.plan.levels)
        return {levels: nodes.take(np.flatnonzero(nodes.counts)) for levels, nodes in every.items()}

    @abstractmethod
    def most_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid may be measured, or lie above what is."""

    @abstractmethod
    def noisy_cells(self, content: Content, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
        """Return the measured cells of a cuboid and their noisy counts, in the order of tables."""

    @abstractmethod
    def sums(self, content: Content, wanted: Levels, confidence: Confidence) -> pl.DataFrame:
        """Return sums by a cuboid that the plan does not have, with errors: see `cuboid_errors`."""

    @abstractmethod
    def area_work(self, sums: AreaSums, *, is_planned: bool) -> AreaWork:
        """Return what errors of sums over areas take.

        Args:
            sums: over which areas.
            is_planned: whether variances alone are wanted.
        """

    @abstractmethod
    def area_estimates(
        self, content: Content, sums: AreaSums, on_fraction: OnFraction
    ) -> tuple[Float64, Float64]:
        """Return estimates and variances of sums over areas: float64 (areas, cells beside) both."""

    @abstractmethod
    def area_variances(self, sums: AreaSums, on_fraction: OnFraction) -> Float64:
        """Return the variances from public facts: float64 (areas, cells beside)."""

    @abstractmethod
    def again(
        self, content: Content, method: Estimator
    ) -> tuple[dict[Levels, Nodes], Covariances | None]:
        """Return the nodes of each cuboid by another method; of least squares, covariances.

        Raises:
            EstimateError: the estimator does not suit the plan.
            ReleaseError: the noisy counts are none that a release could have written.
        """


def table_with(plan: Plan, wanted: Levels) -> Levels:
    """Return the smallest released table that contains a cuboid, or raise a ReleaseError."""
    table = plan.table_of(wanted)
    if table is None:
        name, tables = plan.tree.name_of(wanted), " and ".join(map(plan.tree.name_of, plan.tables))
        several = "tables are" if len(plan.tables) > 1 else "table is"
        raise ReleaseError(
            f"{name} is no sum of what was released: the released {several} {tables}; ask for a "
            f"cuboid that one of them contains, or name this one in [workload] of a new release"
        )
    return table


def listed_sums(content: Content, wanted: Levels, table: Levels) -> tuple[Codes, Int64]:
    """Return the cells with a positive sum of a table, row by row, and their counts."""
    tree = content.plan.tree
    numbers, sums = sums_of_cells(tree, wanted, table, content.listed(table))
    shape = [axis.size(level) for axis, level in zip(tree.axes, wanted, strict=True)]
    codes = np.unravel_index(numbers, shape)
    return tuple(code.astype(np.int32) for code in codes), sums


def fill(plan: Plan, levels: Levels, nodes: Nodes, listed: Nodes) -> Nodes:
    """Write the released counts to cells, which are row by row; return them."""
    every: Int64 = cell_numbers(plan.tree, levels, nodes.codes)
    numbers = cell_numbers(plan.tree, levels, listed.codes)
    place = np.searchsorted(every, numbers)
    there = place[place < len(every)]
    if not np.array_equal(every[there], numbers):
        raise ReleaseError(f"{plan.tree.name_of(levels)} lists cells that were not measured")
    nodes.counts[place] = listed.counts
    return nodes


def check_number(plan: Plan, levels: Levels, cells: int, noisy: Int64) -> None:
    """Raise a ReleaseError unless a cuboid has as many noisy counts as cells."""
    if len(noisy) != cells:
        raise uneven(plan.tree, levels)
