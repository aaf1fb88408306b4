"""How many counts of a release keep the criteria of its plan in fact: confidential."""

from collections.abc import Iterator

import numpy as np

from hedgerow.evaluate.metrics import TRUE, beside_truth
from hedgerow.plan.criteria.criterion import Criterion, OfRecords
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts

ROUNDED = 1 + 1e-12
"""By what a bound that is computed may be too low: whole errors that reach it keep it."""
OUTSIDE = (
    "To withhold this release, or to draw another one, because of these lines is outside the "
    "promise: what is published then depends on the table in a way that no noise covers. Each try "
    "is charged, too. Whether criteria will be kept, hedgerow plan says beforehand, and of a "
    "release hedgerow check, without the table."
)


def kept_in_fact(counts: Counts, release: Release, criterion: Criterion) -> tuple[int, int]:
    """Return how many cells a criterion is of, by their true counts, and how many keep it.

    Args:
        counts: the true ones.
        release: of them, with the criterion's cuboid.
        criterion: of its plan.
    """
    tree, within = release.plan.tree, criterion.within
    levels = criterion.levels(tree)
    both = beside_truth(counts, levels, release.level(tree.name_of(levels)))
    given, true = both[COUNT].to_numpy(), both[TRUE].to_numpy()
    least, of = getattr(within, "least", 0), counts.total if isinstance(within, OfRecords) else 1
    missed = np.abs(given - true) > float(criterion.amount) * ROUNDED * (true if least else of)
    large = true >= least
    cells = int(large.sum()) if least else tree.cells(levels)  # what neither side lists is right
    return cells, cells - int((missed & large).sum())


def in_fact(counts: Counts, release: Release) -> Iterator[str]:
    """Yield of each criterion of a release's plan how many cells keep it in fact: a sentence."""
    plan = release.plan
    for criterion in plan.accept:
        told = "not among the released cuboids"
        if criterion.levels(plan.tree) in plan.levels:
            cells, kept = kept_in_fact(counts, release, criterion)
            must = criterion.least(cells)
            verdict = "kept" if kept >= must else "not kept"
            told = f"{kept:,} of {cells:,} cells keep it, {must:,} must: {verdict}"
        yield f"{criterion!r}: {told}."
