"""Whether a release keeps the criteria of its plan, from stated errors alone."""

import numpy as np

from hedgerow.arrays import Levels, float64
from hedgerow.plan.criteria.sizes import Sizes
from hedgerow.plan.criteria.verdict import Verdict, verdicts
from hedgerow.release.directory.stored import Content
from hedgerow.tables.tree import cell_numbers


def accepted(content: Content) -> tuple[Verdict, ...]:
    """Return for each criterion of a release's plan whether it is kept: nothing of the truth.

    Where sizes matter, those of the released counts are taken for the true ones.
    """
    tree = content.plan.tree

    def sizes(levels: Levels) -> Sizes:
        nodes = content.nodes[levels]
        numbers = cell_numbers(tree, levels, nodes.codes)
        counts = float64(np.bincount(numbers, nodes.counts, tree.cells(levels)))
        return Sizes(counts, "released counts")

    return verdicts(content.plan, sizes=sizes, estimator=content.estimator)
