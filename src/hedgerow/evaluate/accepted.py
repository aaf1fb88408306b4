"""How many counts of a release keep the criteria of its plan in fact: confidential."""

from collections.abc import Iterator

import numpy as np

from hedgerow.evaluate.metrics import true_cells
from hedgerow.limits import MOST_VARIANCES
from hedgerow.plan.criteria.criterion import Criterion, OfRecords
from hedgerow.plan.criteria.items import NOTHING, items_of, table_of
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import cell_numbers

ROUNDED = 1 + 1e-10
"""By what a bound that is computed may be too low: whole errors that reach it keep it."""
OUTSIDE = (
    "To withhold this release, or to draw another one, because of these lines is outside the "
    "promise: what is published then depends on the table in a way that no noise covers. Each try "
    "is charged, too. Whether criteria will be kept, hedgerow plan says beforehand, and of a "
    "release hedgerow check, without the table."
)


def kept_in_fact(counts: Counts, release: Release, criterion: Criterion) -> tuple[int, int]:
    """Return how many items a criterion is of, by the true counts, and how many keep it.

    Errors are those of released counts. Cells that neither side lists are right; of quantiles that
    may be any number of a range, one within the bound is enough.

    Args:
        counts: the true ones.
        release: of them, with the cuboid that the criterion is about.
        criterion: of its plan.
    """
    plan = release.plan
    tree = release.plan.tree
    table = table_of(plan, criterion)
    nodes = release.content.nodes
    codes, values = true_cells(counts, table)
    here, there = (cell_numbers(tree, table, each) for each in (codes, nodes[table].codes))
    every = np.arange(0 if criterion.is_of_cells else tree.cells(table))
    numbers = np.concatenate([here, there, every])  # what is of one cell adds up
    true, error = np.zeros((2, len(numbers)))
    true[: len(here)] = values
    error[: len(here)] = -values
    error[len(here) :][: len(there)] = nodes[table].counts
    total = counts.total if isinstance(criterion.within, OfRecords) else 1
    items = items_of(tree, criterion, table, numbers, true, max(total, NOTHING))
    missed = int((items.largest(error[:, None]) > ROUNDED).sum())
    is_every = criterion.is_of_cells and not hasattr(criterion.within, "least")
    cells = tree.cells(table) if is_every else len(items.within)
    return cells, cells - missed


def in_fact(counts: Counts, release: Release) -> Iterator[str]:
    """Yield of each criterion of a release's plan how many cells keep it in fact: a sentence."""
    plan = release.plan
    for criterion in plan.accept:
        told = "not of cells that are released, or too many"
        table = table_of(plan, criterion)
        few = criterion.is_of_cells or plan.tree.cells(table) <= MOST_VARIANCES
        if few and table in plan.levels:
            cells, kept = kept_in_fact(counts, release, criterion)
            must = criterion.least(cells)
            verdict = "kept" if kept >= must else "not kept"
            told = f"{kept:,} of {cells:,} cells keep it, {must:,} must: {verdict}"
        yield f"{criterion!r}: {told}."
