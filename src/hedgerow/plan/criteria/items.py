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
3. *A quantile* of rank p is where N(x) = p N: N(x) are the records before x, straight within each
   bin, and N all of them. Let it be m. A quantile of the estimates lies within d of it where N(x) -
   p N, a continuous function of x, is at most 0 at m - d and at least 0 at m + d: with g_x the
   error of N(x) - p N,

       g_(m-d) / (p N - N(m-d)) ≤ 1   and   -g_(m+d) / (N(m+d) - p N) ≤ 1,

   but for ends that are beyond those of the axis, as no quantile is. Counts that are not negative
   have no other one (where N(x) is p N along a stretch, any of it is one). This is enough, and more
   than is needed of estimates, whose N(x) may cross p N several times.

Of ratios and quantiles, b and N must stay above 0: -e_b / b ≤ 1 - `NOTHING` is a third condition.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, vstack

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import is_within
from hedgerow.plan.criteria.criterion import Criterion, OfCount, OfQuantile, OfShare, named
from hedgerow.plan.plan import Plan
from hedgerow.tables.codes.ranges import edges_of
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree, cell_codes, cell_numbers, cells_above

NOTHING = 1e-9
"""Part of a count that is none; and records between a quantile and its bound where there are none,
so that half of all errors miss it at any budget."""

Forms = Any
"""Linear forms of errors, a row each: a sparse matrix."""


@frozen(eq=False)
class Items:
    """What a criterion says of each of its items.

    Attributes:
        sums: of a table's cells, of which several items may be made: a sparse matrix (sums, cells).
        conditions: forms of these sums, (items, sums), and float64 (items) bounds that these must
            not exceed.
    """

    sums: Forms
    conditions: Sequence[tuple[Forms, Float64]]

    @property
    def within(self) -> Float64:
        """The first bounds: of counts, how far each may be off, in records."""
        return self.conditions[0][1]

    def largest(self, errors: Float64) -> Float64:
        """Return T of each item: float64 (items, runs), of errors (cells, runs), records."""
        sums = self.sums @ errors
        each = [(forms @ sums) / bounds[:, None] for forms, bounds in self.conditions]
        return np.asarray(np.max(each, axis=0))


def table_of(plan: Plan, criterion: Criterion) -> Levels:
    """Return the cuboid of the plan whose cells a criterion is about: the smallest that has them.

    Where there is none, the cuboid that it would need.
    """
    needed = criterion.needed(plan.tree)
    holding = [] if criterion.is_of_cells else [k for k in plan.levels if is_within(needed, k)]
    return min(holding, key=lambda k: (k not in plan.whole, plan.tree.cells(k)), default=needed)


def items_of(
    tree: Tree, criterion: Criterion, table: Levels, numbers: Int64, counts: Float64,
    total: float = 1.0,
) -> Items:  # fmt: skip
    """Return what a criterion says of the items that are large enough.

    Args:
        tree: of the plan.
        criterion: of cells of the table.
        table: a cuboid.
        numbers: int64 (cells): their numbers, row by row. An item without any of them is none.
        counts: float64 (cells): their sizes, records, for bounds that need them.
        total: of all sizes, for a bound that is a part of it.
    """
    within = criterion.within
    amount = float(criterion.amount)
    codes = cell_codes(tree, table, numbers)

    def sums_by(levels: Levels, areas: Lookup | None) -> Forms:
        """Return the sums of cells by a coarser cuboid, and areas: of those that have any."""
        places = np.arange(len(numbers))
        number = cell_numbers(tree, levels, cells_above(tree, levels, table, codes))
        if areas is not None:
            axis = tree.axes[areas.axis]
            own = table[areas.axis]
            pairs = np.ones(len(areas.nodes)), areas.nodes, areas.start
            members = csr_array(pairs, (len(areas), axis.size(areas.level)))
            node = axis.nodes_above(areas.level, own, codes[areas.axis])
            area, places = members[:, node].nonzero()
            number = area * tree.cells(levels) + number[places]
        ids, row = np.unique(number, return_inverse=True)
        return csr_array((np.ones(len(row)), (row, places)), (len(ids), len(numbers)))

    sums = sums_by(criterion.levels(tree), criterion.lookup(tree))
    sizes = sums @ counts
    if isinstance(within, OfQuantile):
        number, _ = within.place(tree)
        edges, _ = edges_of(tree.axes[number])
        return _quantiles(within, edges, codes[number], sums[sizes >= within.least], counts)
    if isinstance(within, OfShare):
        every = sums_by(named(tree, within.of, "share"), None)
        of = every.tocsc().indices[sums.indices[sums.indptr[:-1]]]  # that of the first cell
        whole = (every @ counts)[of]
        large = np.flatnonzero(whole >= within.least)
        of, a, b = of[large], sizes[large], whole[large]
        bound = amount * b
        r = a / b
        places = np.stack([large, len(sizes) + of], axis=1).ravel()

        def form(of_a: float, of_b: Float64) -> Forms:
            weights = np.stack([np.full(len(b), of_a), of_b], axis=1).ravel()
            starts = np.arange(0, len(places) + 1, 2)
            return csr_array((weights, places, starts), (len(b), len(sizes) + every.shape[0]))

        low = form(-1.0, r - amount)
        high = form(1.0, -(r + amount))
        positive = form(0.0, np.full(len(b), -1.0)), b * (1 - NOTHING)
        return Items(vstack([sums, every], "csr"), [(low, bound), (high, bound), positive])
    bounds = np.full(len(sizes), amount * total)
    if isinstance(within, OfCount):
        large = np.flatnonzero(sizes >= within.least)
        sums, bounds = sums[large], amount * sizes[large]
    bounds = np.minimum(bounds, np.floor(bounds) + 0.5)  # so near, the nearest whole number is, too
    alone = eye_array(len(bounds), format="csr")
    return Items(sums, [(alone, bounds), (-alone, bounds)])


def _quantiles(
    within: OfQuantile, edges: Float64, bins: Int32, sums: Forms, counts: Float64
) -> Items:
    """Return the conditions on quantiles of sums, all of which have records."""
    (p, q), width, entries = within.ratio, np.diff(edges), sums.tocoo()
    bins, records = bins[entries.col], np.zeros((sums.shape[0], len(width)))
    np.add.at(records, (entries.row, bins), counts[entries.col])
    before = np.cumsum(np.pad(records, ((0, 0), (1, 0))), axis=1)
    wanted = p / q * before[:, -1]  # and exactly, to see in which bin that is
    j = (q * before >= p * before[:, -1:]).argmax(axis=1) - 1
    every = np.arange(len(records))
    part = (wanted - before[every, j]) / records[every, j]
    value = edges[j] + np.clip(part, 0.0, 1.0) * width[j]
    conditions = [(-sums, before[:, -1] * (1 - NOTHING))]
    for sign in (-1, 1):
        end = value + sign * float(within.part)
        weight = np.clip((end[:, None] - edges[:-1]) / width, 0.0, 1.0) - p / q
        bound = np.maximum(sign * (records * weight).sum(axis=1), NOTHING)
        bound[(end <= edges[0]) | (end >= edges[-1])] = np.inf
        error = -sign * weight[entries.row, bins]
        forms = csr_array((error, (entries.row, entries.col)), sums.shape)
        conditions.append((forms, bound))
    return Items(eye_array(len(counts), format="csr"), conditions)
