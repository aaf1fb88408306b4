"""What cuboids along a spine tell of any cells, and of sums: nodes of the spine, or codes beside.

A sum of attribute cells at a node of the spine has its own estimate, the sum of those of all its
cells, whether these are listed or not, and its own exact variance
(`hedgerow.estimate.spine.forms.Forms`): also where it is no cuboid, as voting age × race below
kinds of quarters. Memory is for one part of the spine at a time, and for the sums that are listed.

Areas of the spine have the covariance of the sum of their nodes' estimates, from these nodes, their
ancestors and the siblings of both (`hedgerow.estimate.spine.forms`). Areas of an attribute are
sums of cells at each node of the spine by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.estimate.spine.support import runs, starts_within
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.spine import Spine
from hedgerow.release.answers.sums import Sums
from hedgerow.release.answers.tables import JointAnswers
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.source import Source
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.directory.stored import Content
from hedgerow.release.passes import Pass
from hedgerow.tables.tree import cell_numbers


class SpineAnswers(JointAnswers[PlannedSpine]):
    """Those of cuboids along a spine."""

    reads = False

    def whole_estimates(self, source: Source, wanted: Sequence[Levels]) -> dict[Levels, Float64]:
        """Return the estimates of all cells of cuboids that may hold records, row by row."""
        found, shape = dict[Levels, Float64](), self.design.shape
        for levels in wanted:
            if self.plan.is_public(levels):
                found[levels] = source.exact(levels).astype(np.float64)
                continue
            codes, _ = self.design.codes_of(shape.given(levels))
            numbers = cell_numbers(self.plan.tree, levels, codes)
            found[levels] = self.estimates(source, Sums.of(self.plan, levels), numbers)
        return found

    def check_columns(self, sums: Sums) -> None:
        """Do nothing: sums by any columns have estimates."""

    def check_sums(self, content: Content, sums: Sums) -> None:
        """Raise a ReleaseError if there is no such sum, or noisy counts are too many."""
        super().check_sums(content, sums)
        self.check_read(content, "these sums")

    def work(self, sums: Sums, noisy: int) -> int:
        """Return that variances go over rows of the spine."""
        del noisy
        lookup, many = sums.lookup, sums.many
        rows = many if lookup is None or lookup.axis else len(lookup.nodes)
        return rows * self.design.model.support.groups**2 + many

    def estimates(self, source: Source, sums: Sums, numbers: Int64) -> Float64:
        """Return the estimates of sums; 0 where nobody can be."""
        along = SpineSums(sums, self.design, numbers)
        return self._of_open(along, along.estimates(source))

    def variances(self, sums: Sums, numbers: Int64, on_fraction: OnFraction) -> Float64:
        """Return the variances of sums; on_fraction is told how far it is.

        They are exact, or bounds, as those of all estimates of the plan are; 0 where nobody can be.
        """
        along = SpineSums(sums, self.design, numbers)
        return self._of_open(along, along.variances(on_fraction))

    def _of_open(self, along: "SpineSums", values: Float64) -> Float64:
        """Return 0 for areas where nobody can be by public facts; somebody is in what is listed."""
        if along.sums.lookup is None:
            return values
        flags = self.design.is_open(along.level, *along.pairs)
        return values * (along.of_areas(flags.astype(np.float64)) > 0)


@dataclass(frozen=True, eq=False)
class SpineSums:
    """Sums along a spine.

    Attributes:
        sums: by what, and over which areas.
        spine: how they go along the first axis.
        numbers: int64 (sums): those that are asked for, each once; all where there are areas.
    """

    sums: Sums
    spine: Spine
    numbers: Int64

    @property
    def level(self) -> int:
        """Of the spine, whose nodes are summed or stand beside what is."""
        return self.spine.shape.axes[0].given[self.sums.levels[0]]

    @property
    def nodes(self) -> int:
        """How many nodes that level has."""
        return self.spine.shape.axes[0].sizes[self.level]

    @property
    def many(self) -> int:
        """How many combinations of attributes there are beside a node, or an area."""
        return prod(self.sums.sizes[1:])

    @property
    def of_attribute(self) -> int:
        """How many nodes of an attribute areas are made of: 1 where there is none like that."""
        lookup = self.sums.lookup
        if lookup is None or lookup.axis == 0:
            return 1
        return self.sums.plan.tree.axes[lookup.axis].size(lookup.level)

    @cached_property
    def of_cell(self) -> tuple[Int64, Int64]:
        """The node of an attribute's areas that each detail cell has, and the combination."""
        axes, levels = self.sums.plan.tree.axes[1:], self.sums.levels[1:]
        codes = np.unravel_index(self.spine.leaves, [axis.size(axis.depth) for axis in axes])
        each = zip(axes, levels, codes, strict=True)
        at_levels = [axis.ancestors(level)[code] for axis, level, code in each]
        return self.sums.split([np.zeros(len(self.spine.leaves), dtype=np.int64), *at_levels])

    @cached_property
    def pairs(self) -> tuple[Int64, Int64, Int64]:
        """The sum of each detail cell at a node, and the nodes and sums that are added up."""
        (own, beside), lookup = self.of_cell, self.sums.lookup
        labels = own * self.many + beside
        if lookup is None:
            return labels, *np.divmod(self.numbers, self.many)
        wanted = np.arange(self.nodes) if lookup.axis else np.unique(lookup.nodes)
        width = self.of_attribute * self.many
        return labels, np.repeat(wanted, width), np.tile(np.arange(width), len(wanted))

    def estimates(self, source: Source) -> Float64:
        """Return the estimates: float64 (sums), records."""
        every = estimates_of_sums(self.sums.plan, source, self.level, *self.pairs)
        return self.of_areas(every)

    def of_areas(self, values: Float64) -> Float64:
        """Return the sums over areas, if there are any, of values of `pairs`: float64 (sums)."""
        _, node, number = self.pairs
        if self.sums.lookup is None:
            return values
        found = np.zeros((self.nodes, self.of_attribute, self.many))
        found.reshape(self.nodes, -1)[node, number] = values
        of_areas = found if self.sums.lookup.axis == 0 else np.moveaxis(found, 1, 0)
        return self.sums.lookup.sums(of_areas.reshape(len(of_areas), -1)).ravel()

    def variances(self, on_fraction: OnFraction) -> Float64:
        """Return the variances: float64 (sums), records²."""
        lookup, (own, beside) = self.sums.lookup, self.of_cell
        if lookup is None:
            return self._at(*self.pairs)
        found = np.zeros((len(lookup), self.sums.cells))
        if lookup.axis == 0:
            forms = self.spine.model.variances(beside.astype(np.int32))
            for area in range(len(lookup)):
                each = forms.over(self.level, lookup.members(area))
                found[area, : len(each)] = each
                on_fraction((area + 1) / len(lookup))
        else:
            for area_of in lookup.partitions(self.of_attribute):
                areas = np.unique(area_of[area_of >= 0])
                labels = np.where(area_of[own] >= 0, area_of[own] * self.many + beside, -1)
                which, node, cell = np.indices((len(areas), self.nodes, self.many)).reshape(3, -1)
                each = self._at(labels, node, areas[which] * self.many + cell)
                found[areas] = each.reshape(len(areas), -1)
            on_fraction(1.0)
        return found.ravel()

    def _at(self, labels: Int64, node: Int64, number: Int64) -> Float64:
        """Return the variances of sums at nodes: float64 (pairs); 0 of those without a cell.

        Args:
            labels: int64 (detail cells): the sum that each belongs to, -1 for none.
            node: int64 (pairs): the node of each sum.
            number: int64 (pairs): its number.
        """
        every, found = np.unique(labels[labels >= 0]), np.zeros(len(number))
        place = np.searchsorted(every, number)
        there = np.append(every, -1)[place] == number
        if there.any():
            compact = np.where(labels >= 0, np.searchsorted(every, labels), -1).astype(np.int32)
            forms = self.spine.model.variances(compact)
            found[there] = forms.at(self.level, node[there], place[there])
        return found


def estimates_of_sums(
    plan: Plan, source: Source, level: int, numbers: Int64, node: Int64, sums: Int64
) -> Float64:
    """Return the estimates of listed sums of detail cells at nodes of a level of the spine.

    Args:
        plan: whose cuboids go along a spine.
        source: of its noisy counts.
        level: of the spine, in the plan's shape.
        numbers: int64 (detail cells): the sum that each belongs to, -1 for none.
        node: int64 (pairs): the node of each listed sum.
        sums: int64 (pairs): its number. No pair is listed twice.

    Returns:
        float64 (pairs), records.
    """
    flow, many = SpineFlow(plan, source), int(max(numbers.max(initial=0), sums.max(initial=0))) + 1
    support = flow.spine.model.support
    keys = node * many + sums
    order, found = np.argsort(keys), np.zeros(len(keys))
    keys = np.append(keys[order], -1)  # so that what comes after all of them is none
    for nodes, estimates in flow.estimates_at(level, Pass(flow).told()):
        rows = support.rows(level, nodes)
        group = support.group[level][rows]
        number = numbers[_detail_cells(support.offset, group)]
        of_node = np.diff(starts_within(support.start[level], nodes))
        above = np.repeat(np.arange(nodes.start, nodes.stop), of_node)
        flat = np.repeat(above, support.widths[group]) * many + number
        place = np.searchsorted(keys[:-1], flat)
        there = (number >= 0) & (keys[place] == flat)
        np.add.at(found, order[place[there]], estimates[there])
    return found


def _detail_cells(offset: Int64, group: Int32) -> Int64:
    """Return the number over all groups of each cell of rows: int64 (cells)."""
    return runs(offset[group], offset[group + 1] - offset[group])
