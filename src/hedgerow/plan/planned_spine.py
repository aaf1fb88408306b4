"""What a plan decides for cuboids along a spine, and which model it takes: from public facts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import floor, prod
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.arrays import (
    CellNumbers,
    Codes,
    Float64,
    Int64,
    Integers,
    Levels,
    OfCuboids,
    Sizes,
    distinct,
    int32,
    int64,
    row_by_row,
    run_numbers,
    some_of,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError, PlanError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.spine.component import MOST_APART
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.marginals import Marginals
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.support import Part
from hedgerow.estimate.workload.observed import Variances, are_two_chains
from hedgerow.limits import MOST_ATTRIBUTE_CELLS, MOST_CELLS_MEASURED
from hedgerow.plan.cuboids import All, Measured
from hedgerow.plan.design import Work
from hedgerow.plan.facts.constraints import Constraints, attribute_cells, constraints_of
from hedgerow.plan.facts.public_rows import SECTION
from hedgerow.plan.joint import TARGETS, Joint, own_levels, shape_of_tree
from hedgerow.plan.placed import Flags
from hedgerow.plan.product import axis_factors, product_variances, wide_variance
from hedgerow.plan.spine import Spine
from hedgerow.plan.tables import SMALLEST
from hedgerow.tables.tree import Tree

if TYPE_CHECKING:  # a plan makes its design
    from hedgerow.plan.plan import Plan

NEXT_TO_NONE = 1e-4
"""Of a noise variance, records²: a hundredth of a record."""
SECONDS_A_CELL = 0.6e-6
"""Core seconds of a measured cell: it is drawn twice, estimated and settled."""


class NoSpineError(EstimateError):
    """Cuboids that can be held as tables cannot go along a spine, and why, in a clause."""


@dataclass(frozen=True, eq=False)
class PlannedSpine(Spine, Joint):
    """What a plan decides for cuboids along the spine, the first axis.

    Attributes:
        is_free: bool (detail cells): whether no public rule says that nobody is there.
        excess: the largest ratio of the variance of wide noise to that of a measured cuboid's.
    """

    seconds_a_cell = SECONDS_A_CELL
    is_free: Flags
    excess: float

    @property
    def bytes_read(self) -> int:
        """The memory that all noisy counts of a release take once they are read back."""
        return 8 * sum(map(self.size, self.noise))

    @property
    def along(self) -> Spine:
        """How cuboids go along it: in which jobs."""
        return self

    def job_of(self, part: Part) -> Sizes:
        """Return what tells the noise of a part from that of others: nothing, or its first root.

        Each job has a stream of its own.
        """
        return () if part.root < 0 else (part.nodes.start,)

    def size(self, cuboid: Levels) -> int:
        """Return how many cells of a cuboid are measured: all that stand in `Cells`.

        Not measured are those of groups that a node does not have. A rule that couples attributes
        empties some of the others, which are measured as marginals need them (`is_open`).
        """
        return self.start(cuboid, self.shape.axes[0].sizes[cuboid[0]])

    def open_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid may hold records."""
        cuboid = self.shape.given(levels)
        codes, numbers = self.attribute_cells(cuboid)
        reaches = self.reaches(numbers, len(codes[0]))
        kinds, times = np.unique(reaches, axis=0, return_counts=True)
        return self.model.support.count_pairs(cuboid[0], kinds, times)

    def codes_of(self, cuboid: Levels) -> CellNumbers:
        """Return the cells of a cuboid that public facts do not rule out, row by row.

        Returns:
            For each axis int32 (cells): the node; and int64 (cells): the place of each in the
            order of `Cells`.
        """
        cells = self.cells(cuboid)
        nodes = range(self.shape.axes[0].sizes[cuboid[0]])
        node, number = cells.located(np.arange(cells.count(nodes)), nodes)
        attributes, numbers = self.attribute_cells(cuboid)
        has = self.has(cuboid[0])
        reaches = self.reaches(numbers, len(attributes[0]))
        is_open = np.zeros(len(node), dtype=np.bool_)
        for group in range(has.shape[1]):
            is_open |= has[node, group] & reaches[number, group]
        place = np.flatnonzero(is_open)
        node, number = node[place], number[place]
        codes, order = row_by_row((int32(node), *some_of(attributes, number)))
        return codes, place[order]

    def has(self, level: int) -> Flags:
        """Return which groups each node of a level of the spine has: bool (nodes, groups)."""
        support = self.model.support
        start = support.start[level]
        has = np.zeros((len(start) - 1, support.groups), dtype=np.bool_)
        has[run_numbers(start), support.group[level]] = True
        return has

    def reaches(self, numbers: Integers, many: int) -> Flags:
        """Return in which groups sums have a cell that may hold records: bool (many, groups).

        Args:
            numbers: integers (detail cells): the sum that each belongs to, -1 for none.
            many: how many sums there are.
        """
        support = self.model.support
        taken = self.is_free & (numbers >= 0)
        group = np.repeat(np.arange(support.groups), support.widths)
        reaches = np.zeros((many, support.groups), dtype=np.bool_)
        reaches[numbers[taken], group[taken]] = True
        return reaches

    # --- variances ------------------------------------------------------------------------------

    @cached_property
    def _forms(self) -> dict[Levels, "SpineVariances"]:
        return {}

    def variances_of(self, cuboid: Levels) -> "SpineVariances":
        """Return the variances of the cuboids with the attribute levels of one."""
        levels = cuboid[1:]
        if levels not in self._forms:
            codes, numbers = self.attribute_cells(cuboid)
            sizes = [a.sizes[k] for a, k in zip(self.shape.axes[1:], levels, strict=True)]
            number = np.full(prod(sizes), -1, dtype=np.int64)
            used = distinct(numbers[numbers >= 0])  # others have no detail cell, and no code
            number[np.ravel_multi_index(some_of(codes, used), sizes)] = used
            forms = self.model.variances(numbers)
            self._forms[levels] = SpineVariances(forms, number, tuple(sizes))
        return self._forms[levels]

    def wide_mean(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide, or a little more (records²).

        Estimates vary the more, the more noise does, and by no more than its largest excess.
        """
        return self.mean(cuboid) * self.excess

    def is_known(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is a sum of cells that are all measured: every one is."""
        return len(cuboid) == len(self.shape.axes)

    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h.

        That is proved of a cube whose nodes all have the same groups, and of the cuboids of two
        chains whoever has which groups (docs/proofs/coefficients.md, "Coefficients of an
        estimate").
        """
        public = () if self.public is None else (self.public,)
        if not self._is_whole_cube and not are_two_chains({*self.noise, *public, cuboid}):
            return self.steps_of_sums
        return None if self.is_best else Steps(0.0, is_exact=False)

    @property
    def steps_of_sums(self) -> Steps:
        """What bounds the coefficients of the estimates of any sums of cells."""
        return Steps(min(self.noise.values()), self.is_best)

    @cached_property
    def _is_whole_cube(self) -> bool:
        """Whether shares are a product and every node has every group that any node has."""
        group = self.model.support.group[-1]
        nodes = self.shape.axes[0].sizes[-1]
        return isinstance(self.model, Nested) and len(group) == nodes * len(distinct(group))

    @property
    def is_best(self) -> bool:
        """Whether the noise has the variances of its weights: stated ones are then exact."""
        return self.model.is_exact

    @property
    def ways(self) -> str:
        """How cuboids are estimated, and what the stated errors are, in a sentence."""
        errors = "exact"
        if not self.is_best:
            least = 100 * float(self.model.ratios.min() / self.model.excess) ** 0.5
            errors = f"at most those stated, and at least {floor(least)} % of them"
        return f"Cuboids are estimated together along the spine, and their errors are {errors}."

    @property
    def remarks(self) -> str:
        """That some settled sums are kept nearly: those of marginals that do not nest."""
        return TARGETS if isinstance(self.model, Marginals) else ""

    def each(self, cuboid: Levels) -> Float64:
        """Return the variances of all cells of a cuboid that public facts do not rule out."""
        return self.variances_at(cuboid, self.codes_of(cuboid)[0])

    def below_margins(self, cuboid: Levels, alive: Mapping[Levels, int]) -> int:
        """Return all cells: none is measured at survivors."""
        del alive
        return self.size(cuboid)

    def rows(self, records: int, expected: Work) -> int:
        """Return how many rows are read: cells with records are about as rare in the release."""
        return min(records, self.open_cells(self.tree.finest), expected.survivors[-1])


@frozen(eq=False)
class SpineVariances(Variances):
    """The variances of the cuboids that have some attribute levels, at every level of the spine.

    Attributes:
        forms: of the model.
        number: int64 (attribute cells, row by row): the number of each, -1 where nobody can be.
        sizes: of the attributes at these levels.
    """

    forms: Forms
    number: Int64
    sizes: Sizes

    def mean(self, cuboid: Levels) -> float:
        """Return the mean over the cells that public facts do not rule out."""
        return self.forms.mean(cuboid[0])

    def largest(self, cuboid: Levels) -> float:
        """Return the largest one."""
        return self.forms.largest(cuboid[0])

    def at(self, cuboid: Levels, codes: Codes) -> Float64:  # type: ignore[override]
        """Return those of listed cells: float64 (cells); 0 where nobody can be."""
        flat = np.ravel_multi_index(tuple(int64(c) for c in codes[1:]), self.sizes)
        number = self.number[flat]
        there = number >= 0
        variances = np.zeros(len(number))
        variances[there] = self.forms.at(cuboid[0], int64(codes[0][there]), number[there])
        return variances

    def covariance(self, first: Product, second: Product) -> float:
        """Raise: covariances between nodes of a spine are not kept."""
        del first, second
        raise EstimateError("covariances of estimates along a spine are not kept")


def planned_spine(plan: "Plan") -> PlannedSpine:
    """Return what a plan decides for cuboids along the spine of its tree.

    Raises:
        NoSpineError: without public facts, which tables cannot use: survivors are measured, more
            than the total is public, or no model fits.
        PlanError: the spine is not the first axis, too many cells would be measured, or the same
            of a plan with public facts.
    """
    tree = plan.tree
    public = plan.public
    if plan.constraints is None:
        _check_admitted(plan)
    else:
        _check_with_facts(plan)
    _check_order(tree)
    constraints = constraints_of(tree, ()) if plan.constraints is None else plan.constraints
    shape = shape_of_tree(tree)
    measured = {
        shape.given(levels): what
        for levels, what in plan.by_levels.items()
        if isinstance(what, Measured)
    }
    if plan.constraints is None and shape.finest not in measured:
        raise NoSpineError(f"{tree.name_of(tree.finest)} is not measured")
    noise = _noise_variances(measured)
    own = own_levels(shape, plan.by_levels)
    exact = None if public is None else shape.given(public)
    try:
        model = _nested(shape, measured, exact, constraints) or _marginals(
            shape, noise, exact, constraints
        )
    except EstimateError as error:
        raise (NoSpineError if plan.constraints is None else PlanError)(str(error)) from None
    wide = {cuboid: wide_variance(what.mechanism) for cuboid, what in measured.items()}
    excess = max((wide[cuboid] / variance for cuboid, variance in noise.items()), default=1.0)
    planned = PlannedSpine(
        shape=shape,
        model=model,
        plan=plan,
        noise=noise,
        public=exact,
        whole=frozenset(own),
        is_free=~constraints.zeros[model.leaves],
        own_levels=own,
        excess=excess,
    )
    if (cells := planned.held[-1]) > MOST_CELLS_MEASURED:
        raise PlanError(
            f"this plan would measure {cells:,} cells at the finest level of the spine, more than "
            f"2**32: say what nobody can be in ([[public]]), or leave out a level"
        )
    return planned


def _noise_variances(measured: Mapping[Levels, Measured]) -> OfCuboids:
    """Return the noise variances of measured cuboids, those of next to no noise raised a little.

    A budget that leaves one cuboid no noise at all may leave another much: raised to `NEXT_TO_NONE`
    at most, least squares hold both, and estimates vary by less than is said.
    """
    variances = {cuboid: what.mechanism.noise_variance for cuboid, what in measured.items()}
    held = max(variances.values(), default=0.0) / MOST_APART
    least = max(SMALLEST, min(held, NEXT_TO_NONE))
    return {cuboid: max(variance, least) for cuboid, variance in variances.items()}


def _check_order(tree: Tree) -> None:
    """Raise a PlanError unless the spine comes first."""
    spine = tree.axes[tree.spine or 0].name
    if tree.spine != 0 or not tree.is_spine_first:
        raise PlanError(
            f"a release along a spine takes the axis {spine!r} first: list it first, and in refine "
            f"all its levels before those of the attributes (or leave refine out)"
        )


def _check_admitted(plan: "Plan") -> None:
    """Raise a NoSpineError unless a plan without public facts may go along its spine."""
    cells = attribute_cells(plan.tree)
    public = plan.public
    if cells > MOST_ATTRIBUTE_CELLS:
        raise NoSpineError(
            f"the attributes have {cells:,} cells, more than {MOST_ATTRIBUTE_CELLS:,}"
        )
    if not isinstance(plan.measure, All):
        raise NoSpineError("all cells are measured there, not survivors")
    if public is not None and any(public):
        raise NoSpineError("only the total can be held exactly there")


def _check_with_facts(plan: "Plan") -> None:
    """Raise a PlanError if survivors are measured beside public facts, or more is held exactly."""
    tree = plan.tree
    public = plan.public
    if not isinstance(plan.measure, All):
        raise PlanError(
            f"with {SECTION} all cells are measured that public facts do not rule out: leave "
            'measure out, or set measure = "all"'
        )
    if public is not None and any(public):
        raise PlanError(
            f"along the spine {tree.axes[tree.spine or 0].name!r} only the total can be held "
            "exactly; leave out [[invariant]], or the attributes (attribute = true)"
        )


def _nested(
    shape: CubeShape,
    measured: Mapping[Levels, Measured],
    public: Levels | None,
    constraints: Constraints,
) -> Model | None:
    """Return the model of a cube over the spine and one attribute, if shares are a product."""
    if len(shape.axes) != 2 or shape.finest not in measured:
        return None
    factors = axis_factors(shape, {c: what.share for c, what in measured.items()}, public)
    if factors is None:
        return None
    spine, attribute = product_variances(shape, factors, measured[shape.finest].mechanism, public)
    return Nested.of(
        shape.axes[0],
        shape.axes[1],
        constraints.group_level,
        constraints.has,
        constraints.bounds,
        constraints.zeros,
        spine,
        attribute,
        total_known=public is not None,
        noise={cuboid: what.mechanism.noise_variance for cuboid, what in measured.items()},
    )


def _marginals(
    shape: CubeShape, noise: OfCuboids, public: Levels | None, constraints: Constraints
) -> Model:
    """Return the model of any cuboids over the spine and attributes of two levels.

    Raises:
        EstimateError: it does not fit.
    """
    several = [a for a, each in enumerate(shape.axes) if a and each.depth > 1]
    axis = constraints.group_axis or (several[0] if several else None)
    by_group = constraints.has, constraints.bounds
    has, bounds = by_group if axis is None else constraints.at_leaves(axis, shape.axes[axis])
    return Marginals.of(
        shape,
        axis,
        has,
        bounds,
        constraints.zeros,
        noise,
        total_known=public is not None,
    )
