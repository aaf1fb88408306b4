"""How large counts are, for bounds that are a part of them: from public sources, by name."""

from collections.abc import Callable

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels, float64
from hedgerow.declared import frozen
from hedgerow.plan.criteria.criterion import Bound, Criterion, OfRecords
from hedgerow.plan.criteria.items import Items, items_of
from hedgerow.plan.criteria.joint import NoVerdictError
from hedgerow.plan.facts.public_rows import node_numbers
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.tables.tree import cell_numbers


@frozen(eq=False)
class Sizes:
    """How large the counts of a cuboid are taken to be.

    Attributes:
        counts: float64 (cells, row by row), records.
        source: where they are from, in words.

    Example:
        >>> import numpy as np
        >>> hr.Sizes(np.array([900.0, 1100.0]), "the census of 2021").source
        'the census of 2021'
    """

    counts: Float64
    source: str


SizesOf = Callable[[Levels], Sizes]
"""Of a cuboid of a plan, how large its counts are."""


def sized_items(
    plan: Plan, criterion: Criterion, table: Levels, numbers: Int64, sizes: SizesOf | None = None
) -> tuple[Items, str]:
    """Return what a criterion says of its items, and what their sizes are from, in words, if any.

    Args:
        plan: of the release.
        criterion: of it.
        table: the cuboid whose cells it is about (`hedgerow.plan.criteria.items.table_of`).
        numbers: int64 (cells): their numbers, row by row.
        sizes: of the counts; from the criterion and the plan unless given.

    Raises:
        NoVerdictError: nothing tells sizes that are needed, or none is so large.
    """
    within = criterion.within
    if not isinstance(within, Bound):
        return items_of(plan.tree, criterion, table, numbers, np.zeros(len(numbers))), ""
    given = (sizes or _public_sizes(plan, criterion))(table)
    if not (total := float(given.counts.sum())):
        raise NoVerdictError(f"there are no records in {given.source}")
    part = total if isinstance(within, OfRecords) else 1.0
    items = items_of(plan.tree, criterion, table, numbers, given.counts[numbers], part)
    if not len(items.within):
        least = getattr(within, "least", 1)
        raise NoVerdictError(f"no count is {least:,} or more in {given.source}")
    return items, given.source


def _public_sizes(plan: Plan, criterion: Criterion) -> SizesOf:
    """Return the sizes of a criterion's own table, its number of records, or the plan's prior."""
    prior = criterion.sizes or (None if criterion.records is not None else plan.prior)
    if prior is not None:
        return lambda levels: _of_prior(plan, prior, levels)
    if criterion.records is None or not criterion.is_of_counts:
        number = "the expected number of records (records = 1_000_000), or "
        raise NoVerdictError(
            f"{criterion.within!r} needs to know how large counts are: give "
            f"{number if criterion.is_of_counts else ''}a public table (sizes)"
        )
    total = float(criterion.records)

    def evenly(levels: Levels) -> Sizes:
        cells = plan.tree.cells(levels)
        spread = "" if cells == 1 or isinstance(criterion.within, OfRecords) else ", spread evenly"
        return Sizes(np.full(cells, total / cells), f"{total:,.0f} expected records{spread}")

    return evenly


def _of_prior(plan: Plan, prior: Prior, levels: Levels) -> Sizes:
    """Return the counts of a public table, cell by cell; what it does not list is empty."""
    tree, own, (codes, counts) = plan.tree, prior.counts.tree, prior.counts.cuboid(levels)
    nodes = [
        node_numbers(axis, level, named.labels[level - 1][code]) if level else code
        for axis, named, level, code in zip(tree.axes, own.axes, levels, codes, strict=True)
    ]
    there = np.min(nodes, axis=0) >= 0
    if not there.any():
        raise NoVerdictError(
            f"the public table of sizes names no area of {tree.name_of(levels)}; its codes must be "
            "those of the release"
        )
    numbers = cell_numbers(tree, levels, tuple(node[there] for node in nodes))
    sizes = np.bincount(numbers, counts[there], tree.cells(levels))
    source = f"a public table of {counts.sum():,} records"
    lost = counts.sum() - sizes.sum()
    if lost:
        source += f", {lost:,.0f} of which are in no area of the release"
    return Sizes(float64(sizes), source)
