"""A block: depths that are measured below the same parents, combined upward, then estimated.

With `hedgerow.plan.cuboids.All` every depth below the public ones is one block, so its combined
estimates are those of least squares. With `Survivors` a block ends at each measured depth: what is
measured next depends on the counts just released, so nothing is combined across blocks; depths
above its measured one are sums of what is measured below them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from hedgerow.arrays import FloatPair, Int64, run_starts
from hedgerow.declared import frozen
from hedgerow.estimate.tree.least_squares import combine
from hedgerow.release.descent.nodes import Nodes, Noisy, Roots
from hedgerow.release.descent.source import NO_INFORMATION, Variance
from hedgerow.release.descent.steps import Families, Refinement, descendants
from hedgerow.tables.tree import Tree

CHUNK_CELLS = 1 << 21


@frozen
class Generation:
    """The children of all nodes of a depth of a block, in tree order.

    Attributes:
        families: the cells, below the nodes above.
        noisy: int64 or float64 (cells): their noisy counts, None where unmeasured; records.
        variance: of the noisy counts, records².
        estimate: int64 or float64 (cells), records: combined with all that lies below.
        combined: the variance of the estimate, records².
    """

    families: Families
    noisy: Noisy | None
    variance: Variance
    estimate: Noisy
    combined: Variance

    def below(self, parents: Int64, listed: Nodes | None) -> tuple[Int64 | slice, Int64]:
        """Return the cells of the families of some parents, and where each family begins.

        Args:
            parents: int64 (parents), ascending: their places.
            listed: the only nodes that are of interest, if not all are.
        """
        if listed is not None:
            cells, family_start = self.families.below(parents)
            is_listed = np.zeros(len(self.estimate), dtype=bool)
            is_listed[self.families.places(listed.codes)] = True
            kept = is_listed[cells]
            return cells[kept], run_starts(kept)[family_start]
        if len(parents) == len(self.families.start) - 1:
            return slice(None), self.families.start
        return self.families.below(parents)


def chunks_of_block(
    tree: Tree, roots: Roots, steps: Sequence[Refinement]
) -> Iterator[tuple[Roots, dict[int, int]]]:
    """Yield consecutive roots whose cells fit the caches, and how many cells lie before theirs."""
    if tree.cells(steps[-1].levels) <= CHUNK_CELLS:
        yield roots, {step.depth: 0 for step in steps}
        return
    codes = roots.nodes.codes
    above = tree.cuboid(steps[0].depth - 1)
    before = {
        step.depth: run_starts(descendants(tree, above, step.levels, codes)) for step in steps
    }
    cells = before[steps[-1].depth]
    edges = np.arange(CHUNK_CELLS, cells[-1], CHUNK_CELLS)
    cuts = [0, *np.unique(np.searchsorted(cells, edges)).tolist(), len(cells) - 1]
    for first, last in pairwise(cuts):
        yield roots.take(slice(first, last)), {t: int(many[first]) for t, many in before.items()}


def parents_below(first: Generation) -> FloatPair:
    """Return what a block tells of the nodes above it: sums of its first generation, variances."""
    return combine(None, NO_INFORMATION, first.estimate, first.combined, first.families.start)


def combined(
    upper: Generation, estimate: Noisy, variance: Variance, family_start: Int64
) -> Generation:
    """Return a generation with what is below it: sums of families, and their variances."""
    below = estimate.astype(np.float64, copy=False)
    both = combine(upper.noisy, upper.variance, below, variance, family_start)
    return replace(upper, estimate=both[0], combined=both[1])


def taken(variance: Variance, cells: Int64 | slice) -> Variance:
    """Return the variances of some cells, or the one that all have."""
    return variance if isinstance(variance, float) else variance[cells]
