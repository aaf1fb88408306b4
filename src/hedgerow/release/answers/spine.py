"""What cuboids along a spine tell of any cells, and of areas: nodes of the spine, or codes beside.

Areas of the spine have the covariance of the sum of their nodes' estimates, from these nodes, their
ancestors and the siblings of both (`hedgerow.estimate.spine.forms`). Areas of an attribute are
sums of cells at each node of the spine by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.arrays import Codes, Float64, Int32, Int64, Levels
from hedgerow.limits import MOST_NOISY_READ
from hedgerow.plan.placed import Flags
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.answers.answers import AreaWork, check_number, fill
from hedgerow.release.answers.attribute_sums import (
    check_noisy,
    estimates_along_spine,
    estimates_of_sums,
)
from hedgerow.release.answers.tables import JointAnswers
from hedgerow.release.area_sums import AreaSums
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Source, Stored
from hedgerow.release.directory.stored import Content


@dataclass(frozen=True, slots=True)
class SpineAnswers(JointAnswers):
    """Those of cuboids along a spine."""

    joint: PlannedSpine

    def cells(
        self, stored: Stored, released: Mapping[Levels, Nodes], wanted: Sequence[Levels]
    ) -> dict[Levels, Nodes]:
        """Return all cells of cuboids that can hold records, row by row."""
        return {
            levels: fill(self.plan, levels, self._cells(stored, levels), released[levels])
            for levels in wanted
        }

    def _cells(self, stored: Stored, levels: Levels) -> Nodes:
        """Return those of one, with counts of 0."""
        cuboid = self.joint.shape.given(levels)
        codes, _ = self.joint.codes_of(cuboid)
        if self.plan.is_public(levels):
            return Nodes.exact(codes, stored.exact(levels))
        estimates = self.estimates(stored, levels)
        variance = self.joint.variances_at(cuboid, codes)
        return Nodes(codes, np.zeros(len(codes[0]), dtype=np.int64), estimates, variance)

    def estimates(self, source: Source, levels: Levels) -> Float64:
        """Return the estimates of all cells of a cuboid that may hold records, row by row."""
        codes, _ = self.joint.codes_of(self.joint.shape.given(levels))
        return estimates_along_spine(self.plan, source, levels, codes)

    def noisy_cells(self, content: Content, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
        """Return the cells that can hold records, row by row, and their noisy counts."""
        del content
        cuboid = self.joint.shape.given(levels)
        check_number(self.plan, levels, self.joint.size(cuboid), noisy)
        codes, order = self.joint.codes_of(cuboid)
        return codes, noisy[order]

    def listed_estimates(self, content: Content, levels: Levels, codes: Codes) -> Float64:
        """Return the estimates of listed cells of any cuboid: float64 (cells)."""
        check_noisy(content)
        return estimates_along_spine(self.plan, content.stored, levels, codes)

    def area_work(self, sums: AreaSums, *, is_planned: bool) -> AreaWork:
        """Return that variances go over rows of the spine; noisy counts are read for estimates."""
        lookup, joint = sums.lookup, self.joint
        noisy = 0 if is_planned else sum(map(joint.size, joint.noise))
        many = len(lookup) * sums.cells
        rows = len(lookup.nodes) if lookup.axis == 0 else many
        work = rows * joint.model.support.groups**2 + many
        return AreaWork(joint.is_known(self.given(sums)), noisy, MOST_NOISY_READ, work)

    def open_estimates(self, content: Content, sums: AreaSums) -> Float64:
        """Return the estimates: float64 (areas, cells beside)."""
        return SpineSums(sums, self.joint).estimates(content.stored)

    def open_variances(self, sums: AreaSums, on_fraction: OnFraction) -> Float64:
        """Return the variances: float64 (areas, cells beside)."""
        return SpineSums(sums, self.joint).variances(on_fraction)


@dataclass(frozen=True, eq=False)
class SpineSums:
    """Sums over areas along a spine.

    Attributes:
        sums: over which areas.
        joint: what the plan decides along its spine, the first axis.
    """

    sums: AreaSums
    joint: PlannedSpine

    @property
    def level(self) -> int:
        """Of the spine, whose nodes are summed or stand beside the areas."""
        return self.joint.shape.axes[0].given[self.sums.levels[0]]

    @property
    def nodes(self) -> int:
        """How many nodes that level has."""
        return self.joint.shape.axes[0].sizes[self.level]

    @property
    def many(self) -> int:
        """How many combinations of attributes there are beside the areas."""
        return self.sums.cells // self.sums.sizes[0]

    @property
    def sums_nodes(self) -> bool:
        """Whether the areas are made of the spine's own nodes, not of codes beside them."""
        return self.sums.lookup.axis == 0

    @cached_property
    def of_cell(self) -> tuple[Int64, Int64]:
        """Of each detail cell the areas' node, if it is an attribute's, and what is beside it."""
        axes, levels = self.sums.plan.tree.axes[1:], self.sums.levels[1:]
        codes = np.unravel_index(self.joint.leaves, [axis.size(axis.depth) for axis in axes])
        each = zip(axes, levels, codes, strict=True)
        at_levels = [axis.ancestors(level)[code] for axis, level, code in each]
        return self.sums.split([np.zeros(len(self.joint.leaves), dtype=np.int64), *at_levels])

    @cached_property
    def listed(self) -> tuple[Int64, Int64, Int64]:
        """The sum of each detail cell at a node, and the nodes and sums that areas are made of."""
        own, beside = self.of_cell
        wanted = np.arange(self.nodes)
        if self.sums_nodes:
            wanted = np.unique(self.sums.lookup.nodes)
        width = self.kinds * self.many
        node, number = np.repeat(wanted, width), np.tile(np.arange(width), len(wanted))
        return own * self.many + beside, node, number

    @property
    def kinds(self) -> int:
        """How many nodes of an attribute the areas are made of: 1 where they are of the spine's."""
        axis = self.sums.plan.tree.axes[self.sums.lookup.axis]
        return 1 if self.sums_nodes else axis.size(self.sums.lookup.level)

    def estimates(self, stored: Stored) -> Float64:
        """Return the estimates: float64 (areas, cells beside); 0 where nobody can be."""
        every = estimates_of_sums(self.sums.plan, stored, self.level, *self.listed)
        return self._of_areas(every) * self.is_open

    @cached_property
    def is_open(self) -> Flags:
        """Whether public facts let anybody be there: bool (areas, cells beside)."""
        flags = self.joint.is_open(self.level, *self.listed)
        return self._of_areas(flags.astype(np.float64)) > 0

    def _of_areas(self, values: Float64) -> Float64:
        """Return the sums over areas of values of `listed`: float64 (areas, cells beside)."""
        _, node, number = self.listed
        found = np.zeros((self.nodes, self.kinds * self.many))
        found[node, number] = values
        if self.sums_nodes:
            return np.asarray(self.sums.lookup.sums(found))
        by_kind = np.moveaxis(found.reshape(self.nodes, self.kinds, self.many), 1, 0)
        return np.asarray(self.sums.lookup.sums(by_kind.reshape(self.kinds, -1)))

    def variances(self, on_fraction: OnFraction) -> Float64:
        """Return the variances: float64 (areas, cells beside); on_fraction is told how far it is.

        They are exact, or bounds, as those of all estimates of the plan are; 0 where nobody can be.
        """
        return self._variances(on_fraction) * self.is_open

    def _variances(self, on_fraction: OnFraction) -> Float64:
        lookup, found = self.sums.lookup, np.zeros((len(self.sums.lookup), self.sums.cells))
        if self.sums_nodes:
            forms = self.joint.model.variances(self.of_cell[1].astype(np.int32))
            for area in range(len(lookup)):
                each = forms.over(self.level, lookup.members(area))
                found[area, : len(each)] = each
                on_fraction((area + 1) / len(lookup))
            return found
        axis = self.sums.plan.tree.axes[lookup.axis]
        for area_of in lookup.partitions(axis.size(lookup.level)):
            self._write_group(area_of, found)
        on_fraction(1.0)
        return found

    def _write_group(self, area_of: Int64, found: Float64) -> None:
        """Write the variances of areas of an attribute that do not overlap."""
        own, beside = self.of_cell
        areas = np.unique(area_of[area_of >= 0])
        place = np.searchsorted(areas, area_of)
        labels = np.where(area_of[own] >= 0, place[own] * self.many + beside, -1).astype(np.int32)
        if (labels < 0).all():
            return  # nobody can be there
        number = np.unique(labels[labels >= 0]).astype(np.int64)
        forms = self.joint.model.variances(_renumbered(labels, number))
        node, sums = np.repeat(np.arange(self.nodes), len(number)), np.tile(number, self.nodes)
        each = forms.at(self.level, node, np.tile(np.arange(len(number)), self.nodes))
        found[areas[sums // self.many], node * self.many + sums % self.many] = each


def _renumbered(labels: Int32, number: Int64) -> Int32:
    """Return labels counted without gaps."""
    return np.where(labels >= 0, np.searchsorted(number, labels), -1).astype(np.int32)
