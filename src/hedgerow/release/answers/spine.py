"""What cuboids along a spine tell of any cells, and of sums: nodes of the spine, or codes beside.

A sum of attribute cells at a node of the spine has its own estimate, the sum of those of all its
cells, whether these are listed or not, and its own exact variance
(`hedgerow.estimate.spine.forms.Forms`): also where it is no cuboid, as voting age × race below
kinds of quarters. Memory is for one part of the spine at a time, and for the sums that are listed.

Areas of the spine have the covariance of the sum of their nodes' estimates, from these nodes, their
ancestors and the siblings of both (`hedgerow.estimate.spine.forms`). Areas of an attribute are
sums of cells at each node of the spine by itself.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64, distinct, float64, int32, int64_zeros, runs
from hedgerow.estimate.spine.forms import Forms
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.spine import Spine
from hedgerow.release.answers.sums import Sums, Totals
from hedgerow.release.answers.tables import JointAnswers, Wanted
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.source import Source
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.passes import Pass
from hedgerow.tables.tree import cell_codes

MOST_OF_FORMS = 1 << 23
"""Numbers of the forms of sums that are held at once, for each component."""
FLAGS_AT_ONCE = 1 << 22


class SpineAnswers(JointAnswers[PlannedSpine]):
    """Those of cuboids along a spine."""

    reads = False
    of_all = "these sums"

    def check_columns(self, sums: Sums) -> None:
        """Do nothing: sums by any columns have estimates."""

    def work(self, sums: Sums, noisy: int) -> int:
        """Return that variances go over rows of the spine."""
        del noisy
        lookup = sums.lookup
        many = sums.many
        rows = many if lookup is None or lookup.axis else len(lookup.nodes)
        if self.plan.tree.axes[0].name in sums.own:
            rows = len(sums.groups[0].number)
        return rows * self.design.model.support.groups**2 + many

    def _level(self, sums: Sums) -> int:
        """Return the level of the spine whose nodes are summed or stand beside what is."""
        return self.design.shape.axes[0].given[sums.levels[0]]

    def estimates(self, source: Source, wanted: Sequence[Wanted]) -> list[Float64]:
        """Return the estimates of sums, all from one pass; 0 where nobody can be."""
        flow = SpineFlow(self.plan, source)
        support = self.design.model.support
        levels = [self._level(sums) for sums, _ in wanted]
        keys = [(sums.keys[0], keys_beside(self.design, sums)) for sums, _ in wanted]
        totals = [Totals.of(*each) for each in wanted]
        for level, nodes, estimates in flow.estimates_at(levels, Pass(flow).told()):
            ends = support.cell[level][support.start[level][nodes.start : nodes.stop + 1]]
            node = np.repeat(np.arange(nodes.start, nodes.stop), np.diff(ends))
            group = support.group[level][support.rows(level, nodes)]
            cell = runs(support.offset[group], support.widths[group])
            for own, (along, across), total in zip(levels, keys, totals, strict=True):
                if own == level:
                    total.add(along[node] + across[cell], estimates)
        return [total.sums * self._is_open(total.of_what) for total in totals]

    def variances(self, sums: Sums, numbers: Int64, on_fraction: OnFraction) -> Float64:
        """Return the variances of sums; 0 where nobody can be."""
        if sums.is_cuboid:
            codes = cell_codes(self.plan.tree, sums.levels, numbers)
            return self.design.variances_at(self.design.shape.given(sums.levels), codes)
        lookup = sums.lookup
        level = self._level(sums)
        across = keys_beside(self.design, sums)
        if lookup is not None and lookup.axis == 0:
            of_areas = np.zeros((len(lookup), sums.cells))
            for first, last, forms in self._forms(across):
                for i in range(len(lookup)):
                    of_areas[i, first:last] = forms.over(level, lookup.members(i))
                    on_fraction((first + (last - first) * (i + 1) / len(lookup)) / sums.cells)
            return of_areas.ravel() * self._is_open(sums)
        many = prod(sums.sizes[1:])
        areas = [int64_zeros(1)]
        if lookup is not None:
            areas = lookup.partitions(sums.area_nodes)
        area, node, cell = np.unravel_index(numbers, (sums.many // sums.cells, sums.sizes[0], many))
        label = area * many + cell
        variance = np.zeros(len(numbers))
        attribute, across = np.divmod(across, sums.cells)
        along = None
        if self.plan.tree.axes[0].name in sums.own:  # several nodes of the spine are a group
            along = [np.flatnonzero(sums.groups[0].number == k) for k in range(sums.sizes[0])]
        for each in areas:
            own = each[attribute]
            for first, last, forms in self._forms(np.where(own < 0, -1, own * many + across)):
                here = np.flatnonzero((first <= label) & (label < last))
                if along is None:
                    variance[here] += forms.at(level, node[here], label[here] - first)
                    continue
                over = np.stack([forms.over(level, members) for members in along])
                variance[here] += over[node[here], label[here] - first]
        on_fraction(1.0)
        return variance * self._is_open(sums)

    def _forms(self, labels: Int64) -> Iterator[tuple[int, int, Forms]]:
        """Yield the first of some sums, the last and one, and their variances, in their order.

        Args:
            labels: int64 (detail cells): the number of the sum that each belongs to, -1 for none.
        """
        model = self.design.model
        there = labels >= 0
        group = np.repeat(np.arange(model.support.groups), model.support.widths)
        entries = distinct(labels[there] * model.support.groups + group[there])
        size = np.cumsum(np.bincount(entries // model.support.groups) ** 2)
        first = 0
        while first < len(size):
            held = size[first] + MOST_OF_FORMS
            last = max(first + 1, int(np.searchsorted(size, held, side="right")))
            some = np.where((first <= labels) & (labels < last), labels - first, -1)
            if (some >= 0).any():
                yield first, first + int(some.max()) + 1, model.variances(int32(some))
            first = last

    def _is_open(self, sums: Sums) -> Bool:
        """Return of sums over areas whether public facts let anybody be there: bool (sums).

        Of others one, and true: somebody is in what is listed.
        """
        if sums.lookup is None:
            return np.ones(1, dtype=np.bool_)
        used, label = np.unique(keys_beside(self.design, sums), return_inverse=True)
        has = self.design.has(self._level(sums))
        reaches = self.design.reaches(label, len(used))
        open_cells = Totals.of(sums, np.arange(sums.many))
        reach = float64(reaches.T)
        most = max(1, FLAGS_AT_ONCE // len(used))
        for begin in range(0, len(has), most):
            keys = sums.keys[0][begin : begin + most, None] + used
            open_cells.add(keys.ravel(), (has[begin : begin + most] @ reach).ravel())
        return open_cells.sums > 0


def keys_beside(spine: Spine, sums: Sums) -> Int64:
    """Return what each detail cell adds to the key of a node of the spine: int64 (cells)."""
    codes = spine.codes_of_leaves(spine.shape.given(sums.levels))
    return np.asarray(sum(key[code] for key, code in zip(sums.keys[1:], codes, strict=True)))
