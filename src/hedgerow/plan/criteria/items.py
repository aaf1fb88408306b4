"""What a criterion is about: items, each a few linear conditions on the errors of a table's cells.

Let e be the errors of the cells of a cuboid of the plan, together. An *item* keeps the criterion
where e fulfils conditions f·e ≤ 1, one form f each, so that T of an item, the largest of its f·e,
must be at most 1. Where all errors are multiplied with something, T is, too: so the law of T at one
budget tells all (`hedgerow.plan.criteria.law`).

1. *A count*, of a cell or an area: ±(the sum of e over its cells) / w ≤ 1.
2. *A ratio* r = a / b of sums of cells, b > 0, whose errors are e_a and e_b: |(a + e_a) / (b + e_b)
   - r| ≤ w, where b + e_b > 0, is the same as

       (e_a - (r + w) e_b) / (w b) ≤ 1   and   -(e_a - (r - w) e_b) / (w b) ≤ 1.

   *Proof.* Multiplied with b + e_b > 0, the bound is (r - w)(b + e_b) ≤ a + e_a ≤ (r + w)(b + e_b);
   with a = r b these are the two. And both together add up to -2 w e_b ≤ 2 w b, so that b + e_b ≥ 0
   wherever they hold.
3. *A quantile* of rank p is where N(x) = p N, N(x) being the records before x, straight within each
   bin, and N all of them. Let it be m. One of the estimated counts lies within d of it where N(x) -
   p N, a continuous function of x, is at most 0 at m - d and at least 0 at m + d: with g_x the error
   of N(x) - p N,

       g_(m-d) / (p N - N(m-d)) ≤ 1   and   -g_(m+d) / (N(m+d) - p N) ≤ 1,

   but for ends that are beyond those of the axis, as no quantile is. Counts that are not negative
   have no other one (where N(x) is p N along a stretch, any of it is one). This is enough, and more
   than is needed of estimates, whose N(x) may cross p N several times.

Of ratios and quantiles, b and N must stay above 0: -e_b / b ≤ 1 - `NOTHING` is a third condition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, vstack

from hedgerow.arrays import Float64, Int32, Int64, Levels, among
from hedgerow.estimate.cube.shape import is_within
from hedgerow.plan.criteria.criterion import (
    Criterion,
    OfCount,
    OfQuantile,
    OfShare,
    named,
)
from hedgerow.plan.plan import Plan
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.ranges import edges_of
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree, cell_codes, cell_numbers, cells_above

NOTHING = 1e-9
"""Part of a count that is none; and records between a quantile and its bound where there are none,
so that half of all errors miss it at any budget."""

Forms = Any
"""Linear forms of the errors of a table's cells: a sparse matrix (forms, cells)."""


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """What a criterion says of each item.

    Attributes:
        forms: all first conditions, then all second ones: (conditions · items, cells of the table).
        many: how many items there are.
        within: float64 (items): of items that are cells of the table their bounds, records; else
            empty.
        cells: int64 (items): the places of these cells; else empty.
    """

    forms: Forms
    many: int
    within: Float64
    cells: Int64

    @classmethod
    def of(cls, conditions: Sequence[Forms], within: Float64, cells: Int64) -> "Items":
        """Return the items of conditions, a row an item each."""
        return cls(vstack(conditions, format="csr"), conditions[0].shape[0], within, cells)

    @property
    def of_estimates(self) -> Float64:
        """The bounds of estimates of cells that keep those of the nearest whole counts, too.

        With |y - N| < ⌊w⌋ + 1/2 the nearest whole number to y is within ⌊w⌋ of N.
        """
        return np.minimum(self.within, np.floor(self.within) + 0.5)

    def rescaled(self, factor: Float64) -> "Items":
        """Return the same with all bounds of cells divided by factors, one an item."""
        return replace(self, forms=diags_array(np.tile(factor, 2)) @ self.forms)

    def largest(self, errors: Float64) -> Float64:
        """Return T of each item: float64 (items, runs), of errors (cells, runs), records."""
        each = (self.forms @ errors).reshape(-1, self.many, errors.shape[1])
        return np.asarray(each.max(axis=0))


def table_of(plan: Plan, criterion: Criterion) -> Levels:
    """Return the cuboid of the plan whose cells a criterion is about: the smallest that has them.

    Where there is none, the cuboid that it would need.
    """
    tree, areas, within = plan.tree, criterion.areas, criterion.within
    levels = list(criterion.levels(tree))
    if areas is not None:
        levels[areas.axis] = areas.level
    if isinstance(within, OfQuantile):
        number = [axis.name for axis in tree.axes].index(within.axis)
        levels[number] = tree.axes[number].depth
    needed = tuple(levels)
    holding = [] if criterion.is_of_cells else [k for k in plan.levels if is_within(needed, k)]
    return min(holding, key=lambda k: (k not in plan.whole, tree.cells(k)), default=needed)


def items_of(
    tree: Tree, criterion: Criterion, table: Levels, numbers: Int64, counts: Float64,
    total: float = 1.0,
) -> Items:  # fmt: skip
    """Return the items of a criterion that are large enough.

    Args:
        tree: of the plan.
        criterion: of cells of the table.
        table: a cuboid.
        numbers: int64 (cells): their numbers, row by row. An item without any of them is none.
        counts: float64 (cells): their sizes, records, for bounds that need them.
        total: of all sizes, for a bound that is a part of it.
    """
    within, levels = criterion.within, criterion.levels(tree)
    ids, sums = _sums(tree, table, numbers, levels, criterion.areas)
    sizes, amount = sums @ counts, float(criterion.amount)
    if isinstance(within, OfQuantile):
        number = [axis.name for axis in tree.axes].index(within.axis)
        bins = cell_codes(tree, table, numbers)[number]
        return _quantiles(within, tree.axes[number], bins, sums[sizes > 0], counts)
    if isinstance(within, OfShare):
        of = _denominators(tree, criterion, within.of, table, numbers, ids)
        large = of @ counts >= within.least
        sums, of, a, b = sums[large], of[large], sizes[large], (of @ counts)[large]
        ratio, inverse = a / b, diags_array(1 / (amount * b))
        below = inverse @ (diags_array(ratio - amount) @ of - sums)
        above = inverse @ (sums - diags_array(ratio + amount) @ of)
        return Items.of([above, below, _above_nothing(of, b)], *_NO_CELLS)
    bounds = np.full(len(ids), amount * total)
    if isinstance(within, OfCount):
        large = sizes >= within.least
        sums, bounds = sums[large], amount * sizes[large]
    forms = diags_array(1 / bounds) @ sums
    return Items.of([forms, -forms], bounds, sums.indices)


_NO_CELLS = np.empty(0), np.empty(0, dtype=np.int64)


def _quantiles(within: OfQuantile, axis: Axis, bins: Int32, sums: Forms, counts: Float64) -> Items:
    """Return the items that are quantiles of sums, all of which have records."""
    (edges, _), rank, items = edges_of(axis), float(within.rank), np.arange(sums.shape[0])
    width, entries, every = np.diff(edges), sums.tocoo(), np.arange(len(bins))
    records = (sums @ csr_array((counts, (every, bins)), (len(bins), len(width)))).toarray()
    before = np.cumsum(np.pad(records, ((0, 0), (1, 0))), axis=1)
    wanted = rank * before[:, -1]
    j = (before[:, 1:] < wanted[:, None]).sum(axis=1)
    value = edges[j] + (wanted - before[items, j]) / records[items, j] * width[j]
    conditions = [_above_nothing(sums, before[:, -1])]
    for sign in (-1, 1):
        end = value + sign * float(within.part)
        weight = np.clip((end[:, None] - edges[:-1]) / width, 0.0, 1.0) - rank
        margin = np.maximum(sign * (records * weight).sum(axis=1), NOTHING)
        margin[(end <= edges[0]) | (end >= edges[-1])] = np.inf
        error = weight[entries.row, bins[entries.col]]
        forms = csr_array((error, (entries.row, entries.col)), sums.shape)
        conditions.append(diags_array(-sign / margin) @ forms)
    return Items.of(conditions, *_NO_CELLS)


def _above_nothing(sums: Forms, sizes: Float64) -> Forms:
    """Return the condition that sums stay above 0."""
    return diags_array(-1 / ((1 - NOTHING) * sizes)) @ sums


def _sums(
    tree: Tree, table: Levels, numbers: Int64, levels: Levels, areas: Lookup | None
) -> tuple[Int64, Forms]:
    """Return the sums of cells of a table by a coarser cuboid, and areas: numbers, ascending."""
    codes, places = cell_codes(tree, table, numbers), np.arange(len(numbers))
    number = cell_numbers(tree, levels, cells_above(tree, levels, table, codes))
    if areas is not None:
        axis, own = tree.axes[areas.axis], table[areas.axis]
        pairs = np.ones(len(areas.nodes)), areas.nodes, areas.start
        members = csr_array(pairs, (len(areas), axis.size(areas.level)))
        node = axis.nodes_above(areas.level, own, codes[areas.axis])
        area, places = members[:, node].nonzero()
        number = area * tree.cells(levels) + number[places]
    ids, row = np.unique(number, return_inverse=True)
    return ids, csr_array((np.ones(len(row)), (row, places)), (len(ids), len(numbers)))


def _denominators(
    tree: Tree, criterion: Criterion, of: str, table: Levels, numbers: Int64, ids: Int64
) -> Forms:
    """Return what sums of some numbers are shares of, nothing where that has no cells: a row each."""
    levels, areas = criterion.levels(tree), criterion.areas
    coarse = levels if areas is not None else named(tree, of, "share")
    if of == "total":
        areas = None
    codes = cell_codes(tree, levels, ids % tree.cells(levels))
    wanted = cell_numbers(tree, coarse, cells_above(tree, coarse, levels, codes))
    if areas is not None:
        wanted += areas.areas.to_list().index(of) * tree.cells(levels)
    others, sums = _sums(tree, table, numbers, coarse, areas)
    place, there = among(others, wanted)
    return diags_array(there * 1.0) @ sums[np.minimum(place, len(others) - 1)]
