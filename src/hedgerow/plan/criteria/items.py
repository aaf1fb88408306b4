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

That b + e_b is above 0 is a third condition: -e_b / b ≤ 1 - `NOTHING`.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.estimate.cube.shape import is_within
from hedgerow.plan.criteria.criterion import Criterion, OfCount, OfShare, named
from hedgerow.plan.plan import Plan
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree, cell_codes, cell_numbers, cells_above

NOTHING = 1e-9
"""Part of a count that is none."""

Forms = Any
"""Linear forms of the errors of a table's cells: a sparse matrix (forms, cells)."""

Conditions = list[tuple[Forms, Float64]]
"""On each of some items: their forms, and float64 (items) bounds that these must not exceed; first
of sums that are not below 0."""


def largest(conditions: Conditions, errors: Float64) -> Float64:
    """Return T of each item: float64 (items, runs), of errors (cells, runs), records."""
    each = [(forms @ errors) / bounds[:, None] for forms, bounds in conditions]
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
) -> Conditions:  # fmt: skip
    """Return what a criterion says of the items that are large enough.

    Args:
        tree: of the plan.
        criterion: of cells of the table.
        table: a cuboid.
        numbers: int64 (cells): their numbers, row by row. An item without any of them is none.
        counts: float64 (cells): their sizes, records, for bounds that need them.
        total: of all sizes, for a bound that is a part of it.
    """
    within, amount = criterion.within, float(criterion.amount)
    codes = cell_codes(tree, table, numbers)

    def sums_by(levels: Levels, areas: Lookup | None) -> Forms:
        """Return the sums of cells by a coarser cuboid, and areas: of those that have any."""
        places = np.arange(len(numbers))
        number = cell_numbers(tree, levels, cells_above(tree, levels, table, codes))
        if areas is not None:
            axis, own = tree.axes[areas.axis], table[areas.axis]
            pairs = np.ones(len(areas.nodes)), areas.nodes, areas.start
            members = csr_array(pairs, (len(areas), axis.size(areas.level)))
            node = axis.nodes_above(areas.level, own, codes[areas.axis])
            area, places = members[:, node].nonzero()
            number = area * tree.cells(levels) + number[places]
        ids, row = np.unique(number, return_inverse=True)
        return csr_array((np.ones(len(row)), (row, places)), (len(ids), len(numbers)))

    sums = sums_by(criterion.levels(tree), criterion.lookup(tree))
    sizes = sums @ counts
    if isinstance(within, OfShare):
        every = sums_by(named(tree, within.of, "share"), None)
        of = every[every.tocsc().indices[sums.indices[sums.indptr[:-1]]]]
        large = of @ counts >= within.least
        sums, of, b, r = sums[large], of[large], (of @ counts)[large], sizes[large]
        bound, r = amount * b, r / b
        low, high = (diags_array(end) @ of - sums for end in (r - amount, r + amount))
        return [(low, bound), (-high, bound), (-of, b * (1 - NOTHING))]
    bounds = np.full(len(sizes), amount * total)
    if isinstance(within, OfCount):
        large = sizes >= within.least
        sums, bounds = sums[large], amount * sizes[large]
    if criterion.is_of_cells:  # where |y - N| < ⌊w⌋ + 1/2 the nearest whole number keeps w
        bounds = np.minimum(bounds, np.floor(bounds) + 0.5)
    return [(sums, bounds), (-sums, bounds)]
