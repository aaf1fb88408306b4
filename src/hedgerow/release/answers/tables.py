"""What cuboids that are estimated together tell of any cells, held as tables or along a spine.

Of the cuboids that are measured whole estimates are the best linear unbiased ones; of the others
those cells were measured that lie below positive counts of the release, and their estimates are the
noisy counts as they are.

*Areas of tables.* A sum over an area, by groups of the other axes, has weights that are a product
over axes: its variance follows from the covariance of such sums, which cubes and workloads with a
dense factor have in closed form. Of others estimates are found by iteration. They are linear in
noisy counts,

    y = C Σ_c S_cᵀ m_c / v_c,

C being their covariance, S_c the sums of cuboid c, m_c its noisy counts and v_c their variance; so
from v_c u as the noisy counts of one cuboid, and 0 as those of all others, they are C w for the
weights w = S_cᵀ u: one estimation a sum, exact as far as iteration goes (a residual of 1e-9).
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.cube.shape import is_within, meet
from hedgerow.estimate.cube.sums import spread
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.intervals import Confidence
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.estimate.workload.sparse import Survivors, survivors_below
from hedgerow.limits import MOST_NOISY_READ
from hedgerow.plan.joint import Joint
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.answers.answers import (
    Answers,
    AreaWork,
    Covariances,
    check_number,
    fill,
    listed_sums,
    table_with,
)
from hedgerow.release.answers.measured_nodes import check_stored, estimated_again
from hedgerow.release.area_sums import AreaSums
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.layouts import Below
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Source, Stored
from hedgerow.release.descent.tables import TablesFlow
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import COUNT, error_columns
from hedgerow.release.directory.stored import Content
from hedgerow.release.passes import ESTIMATION
from hedgerow.release.preflight import check_combines
from hedgerow.tables.counts import label_nodes

A_SUM = 1 << 14
"""What a sum takes beside its nodes, in nodes."""
ITERATIONS = 4
"""What a cell takes where sums iterate, in nodes of an axis."""


@dataclass(frozen=True, slots=True)
class JointAnswers(Answers):
    """Those of cuboids that are estimated together.

    Attributes:
        joint: the plan's design.
    """

    joint: Joint

    def most_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid may be measured."""
        return self.joint.possible_cells(levels)

    def given(self, sums: AreaSums) -> Levels:
        """Return the cuboid whose cells are summed, in the terms of estimates."""
        return self.joint.shape.given(meet(sums.levels, sums.table()))

    @abstractmethod
    def estimates(self, source: Source, levels: Levels) -> Float64:
        """Return the estimates of all cells of a known cuboid that may hold records, row by row."""

    @abstractmethod
    def listed_estimates(self, content: Content, levels: Levels, codes: Codes) -> Float64:
        """Return the estimates of listed cells of a cuboid that is known: float64 (cells)."""

    def sums(self, content: Content, wanted: Levels, confidence: Confidence) -> pl.DataFrame:
        """Return positive sums of a table, with least-squares estimates of the same sums."""
        plan = self.plan
        table = table_with(plan, wanted)
        cuboid = meet(wanted, table)  # which has its cells
        if not self.joint.is_answerable(cuboid):
            raise ReleaseError(
                f"{plan.tree.name_of(wanted)} is a sum of {plan.tree.name_of(table)}, of which "
                f"survivors alone were measured, so its errors are unknown; ask for counts alone: "
                f"cuboid(None, ...) or --counts-only"
            )
        total = int(content.listed(plan.tree.cuboid(0)).counts.sum())
        codes, counts = listed_sums(content, wanted, table)
        estimate = self.listed_estimates(content, cuboid, codes)
        variance = self.joint.variances_at(self.joint.shape.given(cuboid), codes)
        errors = CuboidErrors.of(plan, cuboid, total)
        columns = error_columns(counts, estimate, variance, errors, confidence)
        return label_nodes(plan.tree, wanted, codes, **{COUNT: counts}, **columns)

    def area_estimates(
        self, content: Content, sums: AreaSums, on_fraction: OnFraction
    ) -> tuple[Float64, Float64]:
        """Return estimates and variances: float64 (areas, cells beside) both."""
        if self.joint.is_public(self.given(sums)):
            exact = sums.counts(content).astype(np.float64)
            return exact, np.zeros(exact.shape)
        return self.open_estimates(content, sums), self.open_variances(sums, on_fraction)

    def area_variances(self, sums: AreaSums, on_fraction: OnFraction) -> Float64:
        """Return the variances from public facts: float64 (areas, cells beside)."""
        if self.joint.is_public(self.given(sums)):
            return np.zeros((len(sums.lookup), sums.cells))
        return self.open_variances(sums, on_fraction)

    @abstractmethod
    def open_estimates(self, content: Content, sums: AreaSums) -> Float64:
        """Return estimates of sums that are not public."""

    @abstractmethod
    def open_variances(self, sums: AreaSums, on_fraction: OnFraction) -> Float64:
        """Return their variances."""

    def again(
        self, content: Content, method: Estimator
    ) -> tuple[dict[Levels, Nodes], Covariances | None]:
        """Return the nodes of each cuboid: all measured cells, or by the plan's own method."""
        plan, stored = self.plan, content.stored
        if isinstance(method, LeastSquares):
            check_stored(stored)
            found = self.cells(stored, content.nodes, plan.levels)
            return found, partial(covariance_of_cells, plan, self.joint)
        check_combines(method, plan)
        check_stored(stored)
        if content.estimation != ESTIMATION and not plan.whole.issuperset(plan.levels):
            raise ReleaseError(
                f"version {content.estimation} of the estimation made the counts, which decided "
                f"what was measured, and this is version {ESTIMATION}: estimate by least squares, "
                f"or with the Hedgerow that made the release"
            )
        return estimated_again(stored, method, plan), None


@dataclass(frozen=True, slots=True)
class TablesAnswers(JointAnswers):
    """Those of tables that are held in memory."""

    joint: PlannedTables

    def cells(
        self, stored: Stored, released: Mapping[Levels, Nodes], wanted: Sequence[Levels]
    ) -> dict[Levels, Nodes]:
        """Return all measured cells of cuboids, row by row."""
        joint, found = self.joint, dict[Levels, Nodes]()
        cuboids = {levels: joint.shape.given(levels) for levels in wanted}
        whole = {cuboid for cuboid in cuboids.values() if cuboid in joint.whole}
        estimates = TablesFlow(self.plan, stored).estimates(whole) if whole else {}
        for levels, cuboid in cuboids.items():
            if cuboid in joint.whole:
                nodes = self._whole(cuboid, estimates[cuboid])
            else:
                nodes = self._survivors(cuboid, stored, released)
            found[levels] = fill(self.plan, levels, nodes, released[levels])
        return found

    def _whole(self, cuboid: Levels, estimates: Float64) -> Nodes:
        """Return all cells of a cuboid, with counts of 0."""
        codes = tuple(code.ravel().astype(np.int32) for code in np.indices(estimates.shape))
        variance = np.zeros(estimates.size)
        if not self.joint.is_public(cuboid):
            variance = self.joint.variances_of(cuboid).of_cells(cuboid).ravel()
        return Nodes(codes, np.zeros(estimates.size, np.int64), estimates.ravel(), variance)

    def _survivors(self, cuboid: Levels, stored: Stored, released: Mapping[Levels, Nodes]) -> Nodes:
        """Return the cells below positive counts of all margins, with counts of 0."""
        survivors = self._surviving(cuboid, released.__getitem__)
        levels = self.joint.levels(cuboid)
        noisy = stored.noisy(levels, Below(levels, survivors))
        codes, order = _row_by_row(survivors)
        counts, variance = np.zeros(len(order), np.int64), self.joint.noise[cuboid]
        estimate = noisy[order].astype(np.float64)
        return Nodes(codes, counts, estimate, np.full(len(order), variance))

    def _surviving(self, cuboid: Levels, listed: Callable[[Levels], Nodes]) -> Survivors:
        """Return the cells of a cuboid that were measured below positive counts of its margins.

        Args:
            cuboid: of which survivors were measured.
            listed: of a margin its released cells.
        """
        covers = self.joint.margins[cuboid]
        margins = {cover: listed(self.joint.levels(cover)) for cover in covers}
        counted = {cover: (nodes.codes, nodes.counts) for cover, nodes in margins.items()}
        return survivors_below(self.joint.shape, cuboid, covers, counted)

    def noisy_cells(self, content: Content, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
        """Return the measured cells of a cuboid, row by row, and their noisy counts."""
        plan = self.plan
        if not plan.is_whole(levels):
            survivors = self._surviving(self.joint.shape.given(levels), content.listed)
            check_number(plan, levels, survivors.cells, noisy)
            codes, order = _row_by_row(survivors)
            return codes, noisy[order]
        cells = plan.tree.cells(levels)
        check_number(plan, levels, cells, noisy)
        sizes = [axis.size(level) for axis, level in zip(plan.tree.axes, levels, strict=True)]
        rows = np.unravel_index(np.arange(cells), sizes)
        return tuple(code.astype(np.int32) for code in rows), noisy

    def estimates(self, source: Source, levels: Levels) -> Float64:
        """Return the estimates of all cells of a known cuboid, row by row: float64 (cells)."""
        return self._estimates(source, self.joint.shape.given(levels)).ravel()

    def listed_estimates(self, content: Content, levels: Levels, codes: Codes) -> Float64:
        """Return the estimates of listed cells of a cuboid that is known: float64 (cells)."""
        return self._estimates(content.stored, self.joint.shape.given(levels))[codes]

    def _estimates(self, source: Source, cuboid: Levels) -> Float64:
        return TablesFlow(self.plan, source).estimates([cuboid])[cuboid]

    # --- sums over areas ------------------------------------------------------------------------

    def area_work(self, sums: AreaSums, *, is_planned: bool) -> AreaWork:
        """Return that each sum goes over its axes' nodes, or all noisy counts where it iterates."""
        del is_planned
        joint, many, cuboid = self.joint, len(sums.lookup) * sums.cells, self.given(sums)
        noisy, is_known = sum(map(joint.size, joint.noise)), joint.is_known(cuboid)
        if not is_known or noisy > MOST_NOISY_READ:
            return AreaWork(is_known, noisy, MOST_NOISY_READ)
        closed = joint.is_public(cuboid) or joint.variances_of(cuboid).has_covariances
        each = sum(joint.shape.shape(cuboid)) if closed else noisy * ITERATIONS
        return AreaWork(True, noisy, MOST_NOISY_READ, many * (each + A_SUM))

    def open_estimates(self, content: Content, sums: AreaSums) -> Float64:
        """Return the estimates: float64 (areas, cells beside)."""
        return sums.of_table(self._estimates(content.stored, self.given(sums)))

    def open_variances(self, sums: AreaSums, on_fraction: OnFraction) -> Float64:
        """Return the variances: float64 (areas, cells beside).

        Raises:
            ReleaseError: iteration does not reach its residual.
        """
        joint, found, cuboid = (
            self.joint,
            np.zeros((len(sums.lookup), sums.cells)),
            self.given(sums),
        )
        known = joint.variances_of(cuboid)
        tables = {} if known.has_covariances else _zeros(joint)
        for number in range(found.size):
            area, cell = divmod(number, sums.cells)
            weights = _weights(sums, cuboid, joint.shape.shape(cuboid), area, cell)
            if known.has_covariances:
                found[area, cell] = known.covariance(weights, weights)
            else:
                found[area, cell] = _by_iteration(joint, cuboid, weights, tables)
            on_fraction((number + 1) / found.size)
        return np.maximum(found, 0.0)


def _row_by_row(survivors: Survivors) -> tuple[Codes, Int64]:
    """Return the codes of survivors row by row, and the place of each among them."""
    codes = survivors.nodes(np.arange(survivors.cells))
    order = np.lexsort(codes[::-1])
    return tuple(code[order] for code in codes), order


def _weights(sums: AreaSums, cuboid: Levels, sizes: Sequence[int], area: int, cell: int) -> Product:
    """Return the weights of a sum, a product over axes."""
    place = np.unravel_index(cell, sums.sizes)
    found = list[tuple[int, Float64]]()
    axes = zip(cuboid, sizes, sums.beside, strict=True)
    for number, (level, size, beside) in enumerate(axes):
        weight = np.zeros(size)
        if number == sums.lookup.axis:
            weight[sums.lookup.members(area)] = 1.0
        else:
            weight[beside.number == place[number]] = 1.0
        found.append((level, weight))
    return found


def _zeros(joint: PlannedTables) -> dict[Levels, Float64]:
    """Return tables of zeros of all that estimates are made of."""
    known = [cuboid for cuboid in joint.noise if cuboid in joint.whole]
    if joint.public is not None:
        known.append(joint.public)
    return {cuboid: np.zeros(joint.shape.shape(cuboid)) for cuboid in known}


def _by_iteration(
    joint: PlannedTables, cuboid: Levels, weights: Product, tables: dict[Levels, Float64]
) -> float:
    """Return wᵀ C w; the tables of zeros stay as they are."""
    table = reduce(np.multiply.outer, [weight for _, weight in weights])
    finer = [each for each in tables if each in joint.noise and is_within(cuboid, each)]
    source = min(finer, key=joint.shape.cells)
    of_source = joint.noise[source] * spread(joint.shape, table, cuboid, source)
    try:
        found = joint.estimates({**tables, source: of_source}, [cuboid])[cuboid]
    except EstimateError as error:
        raise ReleaseError(f"errors of sums over areas: {error}") from None
    return float((table * found).sum())


def covariance_of_cells(plan: Plan, joint: Joint, cells: Sequence[tuple[Levels, int]]) -> Float64:
    """Return covariances of the estimates of all measured cells: float64 (cells, cells), records².

    Args:
        plan: whose cuboids are estimated together.
        joint: its design.
        cells: the cuboid of each, and its place there, row by row.

    Raises:
        EstimateError: a cell is not there, or its estimate is none of least squares over the same
            measurements as the others.
    """
    names = [plan.tree.name_of(levels) for levels, _ in cells]
    cuboids = [joint.shape.given(levels) for levels, _ in cells]
    weights = [_alone(joint, *each) for each in zip(cuboids, cells, names, strict=True)]
    if all(map(joint.is_public, cuboids)):
        return np.zeros((len(cells), len(cells)))
    whole = [joint.variances_of(cuboid) for cuboid in cuboids if cuboid in joint.whole]
    if len(whole) < len(cuboids) or len({id(each) for each in whole}) != 1:
        raise EstimateError(
            f"{' and '.join(sorted(set(names)))} were not all measured whole and estimated from "
            f'the same noisy counts, so covariances are unknown; they exist with measure = "all"'
        )
    found = np.empty((len(cells), len(cells)))
    for i, one in enumerate(weights):
        for j, other in enumerate(weights[: i + 1]):
            found[i, j] = found[j, i] = whole[0].covariance(one, other)
    return found


def _alone(joint: Joint, cuboid: Levels, cell: tuple[Levels, int], name: str) -> Product:
    """Return the weights of the sum that is one cell."""
    shape = joint.shape.shape(cuboid)
    if not 0 <= cell[1] < joint.shape.cells(cuboid):
        raise EstimateError(f"{name} has {joint.shape.cells(cuboid):,} cells, none is {cell[1]}")
    place = np.unravel_index(cell[1], shape)
    return [
        (level, np.bincount([int(at)], minlength=size).astype(np.float64))
        for level, at, size in zip(cuboid, place, shape, strict=True)
    ]
