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
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TypeVar

import numpy as np

from hedgerow.arrays import (
    Array,
    CellNumbers,
    Float64,
    Int64,
    Levels,
    Tables,
    among,
    distinct,
    float64,
    int64_zeros,
    row_by_row,
)
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.cube.shape import is_within, spread
from hedgerow.estimate.cube.variances import ByFactors, Product
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.factors import Factors
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.estimate.workload.sparse import survivors_below
from hedgerow.plan.joint import Joint
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.answers.answers import Again, Answer, Answers
from hedgerow.release.answers.measured_nodes import check_stored, estimated_again
from hedgerow.release.answers.sums import Sums, Totals
from hedgerow.release.descent.jobs import OnFraction, tell_nobody
from hedgerow.release.descent.nodes import Nodes, NodesOf
from hedgerow.release.descent.source import Source, Stored, uneven
from hedgerow.release.descent.tables import TablesFlow
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content
from hedgerow.release.passes import ESTIMATION, pass_of
from hedgerow.release.preflight import check_estimator
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import cell_codes, cell_numbers

Both = TypeVar("Both", bound=Joint)
"""The design of tables, or along a spine."""

Wanted = tuple[Sums, Int64]
"""Sums, and the numbers of those that are wanted: int64 (sums), ascending."""

A_SUM = 1 << 14
"""What a sum takes beside its nodes, in nodes."""
A_TIME = 1 << 24
"""Nodes and cells that weights and variances of areas are held of at once."""
ITERATIONS = 4
"""What a cell takes where sums iterate, in nodes of an axis."""


class JointAnswers(Answers[Both]):
    """Those of cuboids that are estimated together."""

    def cells(self, stored: Stored, wanted: Sequence[Levels]) -> NodesOf:
        """Return all measured cells of cuboids, row by row."""
        plan = self.plan
        tree = plan.tree
        nodes_of = NodesOf()
        # one with the cells of a public cuboid is public, too, whatever its levels
        noisy = [k for k in wanted if not self.design.is_public(self.design.shape.given(k))]
        whole = [k for k in noisy if k in plan.whole]
        estimates = self.whole_estimates(stored, whole) if whole else {}
        for levels in wanted:
            codes, order = self.places(levels, stored.nodes)
            numbers = cell_numbers(tree, levels, codes)
            listed = stored.nodes[levels]
            own = cell_numbers(tree, levels, listed.codes)
            place, there = among(numbers, own)
            if not there.all():
                raise ReleaseError(f"{tree.name_of(levels)} lists cells that were not measured")
            counts = int64_zeros(len(numbers))
            counts[place] = listed.counts
            nodes_of[levels] = Nodes.exact(codes, counts)
            if levels in estimates:
                variance = self.variances(Sums.of(plan, levels), numbers, tell_nobody)
                nodes_of[levels] = Nodes(codes, counts, estimates[levels], variance)
            elif levels in noisy:
                cuboid = self.design.shape.given(levels)
                given = stored.measured[self.design.levels(cuboid)]
                alone = float64(self._in_order(levels, given, order))
                variance = np.full(len(alone), self.design.noise[cuboid])
                nodes_of[levels] = Nodes(codes, counts, alone, variance)
        return nodes_of

    def whole_estimates(self, source: Source, wanted: Sequence[Levels]) -> Tables:
        """Return the estimates of all cells that may hold records, row by row.

        Args:
            source: of the noisy counts.
            wanted: cuboids of which every cell is measured, or a sum of such.
        """
        wanted_sums = []
        joint = self.design
        for levels in wanted:
            codes, _ = joint.codes_of(joint.shape.given(levels))
            numbers = cell_numbers(self.plan.tree, levels, codes)
            wanted_sums.append((Sums.of(self.plan, levels), numbers))
        return dict(zip(wanted, self.estimates(source, wanted_sums), strict=True))

    def places(self, levels: Levels, listed: NodesOf) -> CellNumbers:
        """Return the measured cells of a cuboid row by row, and where each one's noisy count is.

        Args:
            levels: the cuboid.
            listed: of other cuboids their released cells.
        """
        del listed
        return self.design.codes_of(self.design.shape.given(levels))

    def noisy_cells(self, content: Content, levels: Levels) -> CellNumbers:
        """Return the measured cells of a cuboid, row by row, and their noisy counts."""
        codes, order = self.places(levels, content.nodes)
        return codes, self._in_order(levels, content.measured[levels], order)

    def _in_order(self, levels: Levels, noisy: Array, order: Int64) -> Array:
        """Return noisy counts row by row, or raise a ReleaseError if they are more or fewer."""
        whole = self.plan.is_whole(levels)
        if len(noisy) != (self.design.possible_cells(levels) if whole else len(order)):
            raise uneven(self.plan.tree, levels)
        return noisy[order]

    def again(self, content: Content, method: Estimator) -> Again:
        """Return all measured cells by least squares, or the nodes by the plan's own method."""
        check_stored(content.stored)
        if isinstance(method, LeastSquares):
            return self.cells(content.stored, self.plan.levels), self.covariance
        check_estimator(method, self.plan)
        if content.estimation != ESTIMATION and not self.plan.whole.issuperset(self.plan.levels):
            raise ReleaseError(
                f"version {content.estimation} of the estimation made the counts, which decided "
                f"what was measured, and this is version {ESTIMATION}: estimate by least squares, "
                f"or with the Hedgerow that made the release"
            )
        run = pass_of(self.plan, content.stored, method)
        return estimated_again(content.stored, run), None

    def covariance(self, cells: Sequence[tuple[Levels, int]]) -> Float64:
        """Return covariances of the estimates of all measured cells: float64 (cells, cells).

        Args:
            cells: the cuboid of each, and its place there, row by row.

        Raises:
            EstimateError: a cell is not there, or its estimate is none of least squares over the
                same measurements as the others.
        """
        joint = self.design
        name_of = self.plan.tree.name_of
        cuboids = [joint.shape.given(levels) for levels, _ in cells]
        weights = []
        for cuboid, (levels, row) in zip(cuboids, cells, strict=True):
            if not 0 <= row < (size := joint.shape.cells(cuboid)):
                raise EstimateError(f"{name_of(levels)} has {size:,} cells, none is {row}")
            weights.append(_weights(Sums.of(self.plan, levels), cuboid, row))
        matrix = np.zeros((len(cells), len(cells)))
        noisy = [i for i, cuboid in enumerate(cuboids) if not joint.is_public(cuboid)]
        whole = [joint.variances_of(cuboids[i]) for i in noisy if cuboids[i] in joint.whole]
        if len(whole) < len(noisy) or len({id(each) for each in whole}) > 1:
            names = " and ".join(sorted({name_of(levels) for levels, _ in cells}))
            raise EstimateError(
                f"{names} were not all measured whole and estimated from the same noisy counts, so "
                f'covariances are unknown; they exist with measure = "all"'
            )
        for place, i in enumerate(noisy):
            for j in noisy[: place + 1]:
                matrix[i, j] = matrix[j, i] = whole[0].covariance(weights[i], weights[j])
        return matrix

    # --- sums -----------------------------------------------------------------------------------

    def check_sums(self, content: Content, sums: Sums) -> None:
        """Raise a ReleaseError if survivors alone of what is summed were measured, or too many."""
        table = sums.table()
        name_of = self.plan.tree.name_of
        if not self.design.is_answerable(sums.cuboid):
            raise ReleaseError(
                f"{name_of(sums.levels)} is a sum of {name_of(table)}, of which survivors alone "
                f"were measured, so its errors are unknown; ask for counts alone: "
                f"cuboid(None, ...) or --counts-only"
            )
        super().check_sums(content, sums)

    def answer(self, content: Content, sums: Sums, on_fraction: OnFraction) -> Answer:
        """Return positive sums, or all over areas, with least-squares estimates of the same."""
        (numbers, counts), total = sums.counted(content), content.total
        errors = CuboidErrors.of_sums(self.plan, sums.many, total)
        if sums.is_cuboid:
            errors = CuboidErrors.of(self.plan, sums.cuboid, total)
        if self._is_public(sums):
            return numbers, counts, float64(counts), np.zeros(len(counts)), errors
        (estimate,) = self.estimates(content.stored, [(sums, numbers)])
        return numbers, counts, estimate, self.variances(sums, numbers, on_fraction), errors

    def every(self, content: Content, sums: Sums) -> tuple[Int64, Float64]:
        """Return of all sums, listed or not, the counts and the estimates."""
        numbers = np.arange(sums.many)
        counts = int64_zeros(sums.many)
        listed, positive = sums.counted(content)
        counts[listed] = positive
        if self._is_public(sums):
            return counts, float64(counts)
        return counts, self.estimates(content.stored, [(sums, numbers)])[0]

    def _is_public(self, sums: Sums) -> bool:
        return self.design.is_public(self.design.shape.given(sums.cuboid))

    def planned_variances(self, sums: Sums, on_fraction: OnFraction) -> Float64:
        """Return the variances of all sums over areas from public facts: float64 (sums)."""
        if self._is_public(sums):
            return np.zeros(sums.many)
        return self.variances(sums, np.arange(sums.many), on_fraction)

    @abstractmethod
    def estimates(self, source: Source, wanted: Sequence[Wanted]) -> list[Float64]:
        """Return the estimates of sums that are not public, by number: float64 (sums) each."""

    @abstractmethod
    def variances(self, sums: Sums, numbers: Int64, on_fraction: OnFraction) -> Float64:
        """Return the variances of such sums; on_fraction is told how far it is.

        They are exact, or bounds, as those of all estimates of the plan are.
        """


class TablesAnswers(JointAnswers[PlannedTables]):
    """Those of tables that are held in memory."""

    def places(self, levels: Levels, listed: NodesOf) -> CellNumbers:
        """Return the measured cells of a cuboid: all, or those below positive counts."""
        joint = self.design
        cuboid = joint.shape.given(levels)
        if cuboid in joint.whole:
            return joint.codes_of(cuboid)
        covers = joint.margins[cuboid]
        margins = {cover: listed[joint.levels(cover)] for cover in covers}
        counted = {cover: (nodes.codes, nodes.counts) for cover, nodes in margins.items()}
        survivors = survivors_below(joint.shape, cuboid, covers, counted)
        return row_by_row(survivors.nodes(np.arange(survivors.cells)))

    def factors(self, content: Content, levels: Levels, cells: Nodes) -> Factors | None:
        """Return the covariance of the estimates of all cells of a cuboid, row by row."""
        cuboid = self.design.shape.given(levels)
        if levels not in self.plan.whole or self.design.is_public(cuboid):
            return super().factors(content, levels, cells)
        solver = self.design.variances_of(cuboid)
        return solver.factors(cuboid) if isinstance(solver, ByFactors) else None

    def work(self, sums: Sums, noisy: int) -> int:
        """Return that each sum goes over its axes' nodes, or all noisy counts where it iterates."""
        joint = self.design
        cuboid = joint.shape.given(sums.cuboid)
        solver = None if joint.is_public(cuboid) else joint.variances_of(cuboid)
        axes = sum(joint.shape.shape(cuboid))
        if isinstance(solver, ByFactors):  # all at once
            return sums.many * (1 if sums.lookup is None else axes)
        closed = solver is None or solver.has_covariances
        return len(distinct(_kinds(sums))) * ((axes if closed else noisy * ITERATIONS) + A_SUM)

    def estimates(self, source: Source, wanted: Sequence[Wanted]) -> list[Float64]:
        """Return the estimates of sums; all from one solution."""
        cuboids = [self.design.shape.given(sums.cuboid) for sums, _ in wanted]
        tables = TablesFlow(self.plan, source).estimates({*cuboids})
        estimates = []
        for (sums, numbers), cuboid in zip(wanted, cuboids, strict=True):
            cells = tables[cuboid].ravel()
            total = Totals.of(sums, numbers)
            if sums.is_cuboid:
                estimates.append(cells[numbers])
                continue
            total.add(reduce(np.add.outer, sums.keys).ravel(), cells)
            estimates.append(total.sums)
        return estimates

    def variances(self, sums: Sums, numbers: Int64, on_fraction: OnFraction) -> Float64:
        """Return the variances of cells, or of all sums over areas.

        Raises:
            ReleaseError: iteration does not reach its residual.
        """
        joint = self.design
        cuboid = joint.shape.given(sums.cuboid)
        if sums.is_cuboid and len(numbers) == sums.many:
            return joint.each(cuboid).ravel()
        if sums.is_cuboid:
            codes = cell_codes(self.plan.tree, sums.levels, numbers)
            return joint.variances_at(cuboid, codes)
        solver = joint.variances_of(cuboid)
        variance = []
        every = [*joint.whole.intersection(joint.noise), *filter(None, [joint.public])]
        made = [] if solver.has_covariances else every
        tables = {cuboid: np.zeros(joint.shape.shape(cuboid)) for cuboid in made}
        for first, groups in _groups(sums):
            fixed = _by_area(sums, joint.fixed(cuboid, groups))
            if isinstance(solver, ByFactors):
                of_sums = _by_area(sums, solver.of_cells(cuboid, groups))
            else:
                kinds = _kinds(sums)[first : first + len(fixed)]
                _, ones, own_kind = np.unique(kinds, return_index=True, return_inverse=True)
                of_sums = np.zeros(len(fixed))
                for i in ones[~fixed[ones]]:
                    own = _weights(sums, cuboid, first + int(i))
                    if solver.has_covariances:
                        of_sums[i] = solver.covariance(own, own)
                    else:
                        of_sums[i] = _by_iteration(joint, cuboid, own, tables)
                    on_fraction((first + i + 1) / sums.many)
                of_sums = of_sums[ones][own_kind]
            variance.append(np.where(fixed, 0.0, np.maximum(of_sums, 0.0)))
            on_fraction((first + len(fixed)) / sums.many)
        return np.concatenate(variance)


def _kinds(sums: Sums) -> Int64:
    """Return a number for each sum; those that a symmetry of the axes exchanges have the same.

    Their variances are the same, too, as all cells of a cuboid have noise of one law.
    """
    every = [np.arange(sums.many // sums.cells)]
    for axis, each in zip(sums.plan.tree.axes, sums.groups, strict=True):
        own = np.arange(each.many)
        every.append(_alike(axis, each.level) if np.array_equal(each.number, own) else own)
    number = reduce(lambda one, more: np.add.outer(one * (more.max() + 1), more), every)
    return np.asarray(number).ravel()


def _alike(axis: Axis, level: int) -> Int64:
    """Return a number for each node of a level; those that a symmetry exchanges have the same."""
    below = [int64_zeros(axis.leaves)]
    for start in axis.child_start[::-1]:
        families = [np.sort(each).tobytes() for each in np.split(below[0], start[1:-1])]
        below.insert(0, np.unique(np.array(families, object), return_inverse=True)[1])
    kinds = below[0]
    for start, own in zip(axis.child_start[:level], below[1:], strict=False):
        both = np.repeat(kinds, np.diff(start)) * len(own) + own
        kinds = np.unique(both, return_inverse=True)[1]
    return kinds


def _weights(sums: Sums, cuboid: Levels, number: int) -> Product:
    """Return the weights of a sum, a product over axes."""
    (area, cell), lookup = divmod(number, sums.cells), sums.lookup
    each = zip(cuboid, sums.groups, np.unravel_index(cell, sums.sizes), strict=True)
    weights = [(k, float64(groups.number == place)) for k, groups, place in each]
    if lookup is not None:
        inside = float64(np.bincount(lookup.members(area), minlength=sums.area_nodes))
        weights[lookup.axis] = cuboid[lookup.axis], inside
    return weights


def _groups(sums: Sums) -> Iterator[tuple[int, list[Float64 | None]]]:
    """Yield of some areas at a time the number of their first sum, and the groups of each axis."""
    beside = [
        None
        if np.array_equal(each.number, np.arange(each.many))
        else np.eye(each.many)[each.number]
        for each in sums.groups
    ]
    if (lookup := sums.lookup) is None:
        yield 0, beside
        return
    nodes = sums.area_nodes
    at_once = max(1, A_TIME // (nodes + sums.cells))
    for begin in range(0, len(lookup), at_once):
        some = range(begin, min(begin + at_once, len(lookup)))
        weights = np.zeros((nodes, len(some)))
        for column, area in enumerate(some):
            weights[lookup.members(area), column] = 1.0
        yield begin * sums.cells, [*beside[: lookup.axis], weights, *beside[lookup.axis + 1 :]]


def _by_area(sums: Sums, table: Array) -> Array:
    """Return numbers of sums by area, then row by row, from those along each axis."""
    return table.ravel() if sums.lookup is None else np.moveaxis(table, sums.lookup.axis, 0).ravel()


def _by_iteration(joint: PlannedTables, cuboid: Levels, weights: Product, tables: Tables) -> float:
    """Return wᵀ C w; the tables of zeros stay as they are."""
    table = reduce(np.multiply.outer, [weight for _, weight in weights])
    finer = [each for each in tables if each in joint.noise and is_within(cuboid, each)]
    source = min(finer, key=joint.shape.cells)
    of_source = joint.noise[source] * spread(joint.shape, table, cuboid, source)
    try:
        estimates = joint.estimates({**tables, source: of_source}, [cuboid])[cuboid]
    except EstimateError as error:
        raise ReleaseError(f"errors of sums over areas: {error}") from None
    return float((table * estimates).sum())
