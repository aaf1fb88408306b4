"""How large counts are, for bounds that are a part of them: from public sources, by name."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.plan.criteria.criterion import Criterion, OfCount, OfRecords
from hedgerow.plan.criteria.joint import NoVerdictError
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.tables.counts import label_nodes

RECORDS = "number of records"


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What a criterion says of each cell.

    Attributes:
        cells: int64: the places, among those that are given, of the cells that must keep it.
        within: float64 (these cells), or (1) where all have one: records.
        source: what sizes are from, in words; empty where none is needed.
    """

    cells: Int64
    within: Float64
    source: str

    @property
    def of_estimates(self) -> Float64:
        """The bounds of estimates that keep those of the nearest whole counts, too.

        With |y - N| < ⌊w⌋ + 1/2 the nearest whole number to y is within ⌊w⌋ of N.
        """
        return np.minimum(self.within, np.floor(self.within) + 0.5)


def bounds_of(
    plan: Plan, criterion: Criterion, numbers: Int64, sizes: SizesOf | None = None
) -> Bounds:
    """Return what a criterion says of cells.

    Args:
        plan: of the release.
        criterion: of a cuboid of it.
        numbers: int64 (cells): their numbers, row by row.
        sizes: of the counts; from the criterion and the plan unless given.

    Raises:
        NoVerdictError: nothing tells sizes that are needed, or no cell is so large.
    """
    within, amount, every = criterion.within, float(criterion.amount), np.arange(len(numbers))
    if not isinstance(within, OfCount | OfRecords):
        return Bounds(every, np.array([amount]), "")
    given = (sizes or _public_sizes(plan, criterion))(criterion.levels(plan.tree))
    if isinstance(within, OfRecords):
        total = float(given.counts.sum())
        if not total:
            raise NoVerdictError(f"there are no records in {given.source}")
        return Bounds(every, np.array([amount * total]), given.source)
    counts = given.counts[numbers]
    large = np.flatnonzero(counts >= within.least)
    if not len(large):
        raise NoVerdictError(f"no count is {within.least:,} or more in {given.source}")
    return Bounds(large, amount * counts[large], given.source)


def _public_sizes(plan: Plan, criterion: Criterion) -> SizesOf:
    """Return the sizes of a criterion's own table, its number of records, or the plan's prior."""
    prior = criterion.sizes or (None if criterion.records is not None else plan.prior)
    if prior is not None:
        return lambda levels: _of_prior(plan, prior, levels)
    if criterion.records is None:
        raise NoVerdictError(
            f"{criterion.within!r} needs to know how large counts are: give the expected number of "
            "records (records = 1_000_000), or a public table (sizes)"
        )
    total = float(criterion.records)

    def evenly(levels: Levels) -> Sizes:
        cells = plan.tree.cells(levels)
        spread = "" if cells == 1 or isinstance(criterion.within, OfRecords) else ", spread evenly"
        return Sizes(np.full(cells, total / cells), f"{total:,.0f} expected records{spread}")

    return evenly


def _of_prior(plan: Plan, prior: Prior, levels: Levels) -> Sizes:
    """Return the counts of a public table, cell by cell; what it does not list is empty."""
    tree, (codes, counts) = plan.tree, prior.counts.cuboid(levels)
    frame = label_nodes(prior.counts.tree, levels, codes, **{RECORDS: counts})
    number = pl.lit(0)
    for axis, level in zip(tree.axes, levels, strict=True):
        if level:
            keys = axis.keys(level)
            node = f"node of {axis.name}"
            frame = frame.join(keys.with_row_index(node), on=keys.columns)
            number = number * axis.size(level) + pl.col(node).cast(pl.Int64)
    if frame.is_empty():
        raise NoVerdictError(
            f"the public table of sizes names no area of {tree.name_of(levels)}; its codes must be "
            "those of the release"
        )
    numbers = frame.select(number)[:, 0].to_numpy()
    sizes = np.bincount(np.broadcast_to(numbers, len(frame)), frame[RECORDS], tree.cells(levels))
    return Sizes(sizes.astype(np.float64), f"a public table of {sizes.sum():,.0f} records")
