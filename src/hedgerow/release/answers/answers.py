"""What a release tells of any cells from its noisy counts, whatever its plan measures.

Estimates are unbiased, and stand beside released counts: of measured cells, listed or not; of sums
of cells, by cuboids that the plan does not have or over areas; and once more by another method.
Which way leads to them follows from the plan's design (`answers_of`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np
import polars as pl

from hedgerow.arrays import CellNumbers, Float64, Int64, Levels, int64_zeros
from hedgerow.distribution.cut_error import CutErrors
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.factors import Factors
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_NOISY_READ, MOST_WORK_OF_SUMS
from hedgerow.plan.design import Design
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.measured_nodes import check_stored
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.jobs import OnFraction, tell_nobody
from hedgerow.release.descent.nodes import Nodes, NodesOf
from hedgerow.release.descent.source import Stored
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, released_columns
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import is_off_tree

Own = TypeVar("Own", bound=Design)
"""The design that answers are of."""

Covariances = Callable[[Sequence[tuple[Levels, int]]], Float64]
"""Of cells, each a cuboid and a row there: float64 (cells, cells), records²."""

Again = tuple[NodesOf, Covariances | None]
"""Nodes of cuboids, estimated by another method; of least squares also their covariances."""

Answer = tuple[Int64, Int64, Float64, Float64, CuboidErrors]
"""Of sums their numbers, ascending, released counts, estimates, variances, and what else is known
of errors."""

COUNTS_ALONE = "ask for counts alone: areas(…, confidence=None) or --counts-only"


@dataclass(frozen=True)
class Answers(ABC, Generic[Own]):
    """What a release says of any cells.

    Attributes:
        most_noisy: how many noisy counts sums may take.
        of_all: what takes all noisy counts, in words; empty where nothing does.
        reads: whether the variances of sums over areas go over all noisy counts, too.
        plan: of the release.
    """

    most_noisy = MOST_NOISY_READ
    of_all = ""
    reads = True
    plan: Plan

    @property
    def design(self) -> Own:
        """What the plan decides."""
        return cast("Own", self.plan.design)

    # --- cells ----------------------------------------------------------------------------------

    @abstractmethod
    def cells(self, stored: Stored, wanted: Sequence[Levels]) -> NodesOf:
        """Return all measured cells of cuboids of the plan, with released counts and estimates.

        Args:
            stored: the noisy counts, and the listed cells.
            wanted: the cuboids.

        Raises:
            ReleaseError: the noisy counts are more or fewer than the plan's cells, or cells are
                listed that were not measured.
        """

    def listed(self, stored: Stored) -> NodesOf:
        """Return the listed cells of cuboids with their estimates, whoever made their counts.

        Counts are taken as they are: they decide which cells were measured, where these are
        survivors, and nothing else. Left out are cuboids along a chain that were not measured
        themselves, where survivors were.

        Raises:
            ReleaseError: the noisy counts are more or fewer than the cells that were measured, or
                none that a release writes; or cells are listed that were not measured.
        """
        check_stored(stored)
        every = self.cells(stored, self.plan.levels)
        return {levels: nodes.take(np.flatnonzero(nodes.counts)) for levels, nodes in every.items()}

    @abstractmethod
    def noisy_cells(self, content: Content, levels: Levels) -> CellNumbers:
        """Return the measured cells of a cuboid and their noisy counts, in the order of tables."""

    @abstractmethod
    def again(self, content: Content, method: Estimator) -> Again:
        """Return the nodes of each cuboid by another method; of least squares, covariances.

        Raises:
            EstimateError: the estimator does not suit the plan.
            ReleaseError: the noisy counts are none that a release could have written.
        """

    def factors(self, content: Content, levels: Levels, cells: Nodes) -> Factors | None:
        """Return the covariance of the estimates of all measured cells of a cuboid of the plan.

        Args:
            content: the release.
            levels: the cuboid.
            cells: as `cells` returns them.

        Returns:
            None where it has no sparse factors.
        """
        del content
        noise = self.design.carried_noise(levels)
        is_alone = noise.raw or noise.mechanism is None
        return Factors.diagonal(cells.variance) if is_alone else None

    # --- sums -----------------------------------------------------------------------------------

    def sums(
        self, content: Content, sums: Sums, confidence: Confidence, on_fraction: OnFraction
    ) -> pl.DataFrame:
        """Return released sums with their errors, a row each; on_fraction is told how far it is."""
        numbers, counts, estimate, variance, errors = self.answer(content, sums, on_fraction)
        columns = released_columns(Nodes((), counts, estimate, variance), errors, confidence)
        flags = errors.contradicted(counts, estimate, variance, confidence.coverage)
        frame = sums.labelled(numbers, **columns, **{CONTRADICTED: flags})
        is_told = pl.Series(errors.is_told(variance, confidence))
        errors_or_null = pl.when(is_told).then(pl.col(*(columns.keys() - {COUNT}), CONTRADICTED))
        return frame if is_told.all() else frame.with_columns(errors_or_null)

    @abstractmethod
    def answer(self, content: Content, sums: Sums, on_fraction: OnFraction) -> Answer:
        """Return what a release says of sums: of areas all, of others those that are listed."""

    def every(self, content: Content, sums: Sums) -> tuple[Int64, Float64]:
        """Return of all sums, listed or not, the counts, int64, and estimates, float64 (sums).

        Sums without measured cells have 0.
        """
        counts = int64_zeros(sums.many)
        estimates = np.zeros(sums.many)
        answer = self.answer(content, sums, tell_nobody)
        numbers = answer[0]
        counts[numbers], estimates[numbers] = answer[1:3]
        return counts, estimates

    @abstractmethod
    def planned_variances(self, sums: Sums, on_fraction: OnFraction) -> Float64:
        """Return the variances of all sums over areas from public facts: float64 (sums)."""

    def each_variances(self, content: Content, each: Sequence[Sums]) -> list[Float64]:
        """Return the variances of the same estimates, of each of several kinds of sums."""
        del content
        return [self.planned_variances(sums, tell_nobody) for sums in each]

    def cut_errors(self, content: Content, sums: Sums, number: int) -> CutErrors | None:
        """Return the errors of counts before the cuts of an axis that is summed over, by place.

        Args:
            content: the release.
            sums: the places.
            number: that of the axis.

        Returns:
            None where nothing but the variances of sums tells them.
        """
        del content, sums, number
        return None

    def check_sums(self, content: Content, sums: Sums) -> None:
        """Raise a ReleaseError unless sums by a cuboid have errors, before anything is read."""
        del sums
        if self.of_all and (cells := content.noisy_cells) > self.most_noisy:
            raise ReleaseError(
                f"errors of {self.of_all} need all {cells:,} noisy counts, and can be had up to "
                f"{self.most_noisy:,}; ask for counts alone: cuboid(None, ...) or --counts-only"
            )

    def check_columns(self, sums: Sums) -> None:
        """Raise a ReleaseError unless a release has sums by these columns."""
        if is_off_tree(self.plan, sums.by):
            raise ReleaseError(
                "sums by columns of attributes need a release along a spine: attribute = true for "
                'the axes beside it, and cuboids = "cube" or a list that the plan says goes along '
                "it"
            )

    def check_areas(self, sums: Sums, *, is_planned: bool = False) -> None:
        """Raise unless estimates of sums over areas and their variances can be had.

        Args:
            sums: over which areas.
            is_planned: whether variances alone are wanted, which along a spine read no noisy
                counts.

        Raises:
            ReleaseError: survivors alone were measured, or it would take too long.
        """
        if (fault := self.fault_of_areas(sums, is_planned=is_planned)) is not None:
            raise ReleaseError(fault)

    def fault_of_areas(self, sums: Sums, *, is_planned: bool = False) -> str | None:
        """Return why sums over areas have no errors, in a sentence; None where they have."""
        without, instead = ("", "") if is_planned else (f"; {COUNTS_ALONE}", f", or {COUNTS_ALONE}")
        if not self.design.is_answerable(sums.cuboid):
            return (
                "errors of sums over areas are unknown here: not every one of these cells is "
                f"measured with noise of its own, and noise decides which are{without}; a plan "
                'with measure = "all" has errors of any areas'
            )
        noisy = 0
        if self.reads or not is_planned:
            noisy = sum(map(self.design.possible_cells, self.plan.measured))
        if noisy > self.most_noisy or self.work(sums, noisy) > MOST_WORK_OF_SUMS:
            return (
                f"errors of these {sums.many:,} sums would take too long, with {noisy:,} noisy "
                f"counts; name fewer areas or coarser levels{instead}"
            )
        return None

    def work(self, sums: Sums, noisy: int) -> int:
        """Return about how many numbers errors over areas run through beside so many counts."""
        del sums, noisy
        return 0
