"""A block: depths that are measured below the same parents, combined upward, then estimated.

With `hedgerow.plan.depths.All` every depth below the public ones is one block, so its combined
estimates are those of least squares. With `Survivors` a block ends at each measured depth: what is
measured next depends on the counts just released, so nothing is combined across blocks; depths
above its measured one are sums of what is measured below them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.least_squares import combine, distribute_down
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Noisy, Reader, Source, Variance
from hedgerow.release.descent.steps import Refinement, children, descendants, families_of
from hedgerow.tables.tree import Tree

CHUNK_CELLS = 1 << 21
NO_INFORMATION = float("inf")


@dataclass(frozen=True, slots=True)
class Generation:
    """The children of all nodes of a depth of a block, in tree order.

    Attributes:
        step: the refinement.
        parents: the nodes above.
        family_start: int64 (parents + 1).
        noisy: int64 or float64 (cells): their noisy counts, None where unmeasured; records.
        variance: of the noisy counts, records².
        estimate: int64 or float64 (cells), records: combined with all that lies below.
        combined: the variance of the estimate, records².
    """

    step: Refinement
    parents: Nodes
    family_start: Int64
    noisy: Noisy | None
    variance: Variance
    estimate: Noisy
    combined: Variance

    def families(self, parents: Int64) -> tuple[Int64 | slice, Int64]:
        """The cells of the families of some parents, ascending, and where each family begins."""
        if len(parents) == len(self.family_start) - 1:
            return slice(None), self.family_start
        return families_of(self.family_start, parents)


def chunks_of_block(
    tree: Tree, parents: Nodes, steps: Sequence[Refinement]
) -> Iterator[tuple[Nodes, dict[int, int]]]:
    """Consecutive parents whose cells fit the caches, with how many cells lie before theirs.

    Args:
        tree: the tree.
        parents: the nodes above the block.
        steps: the refinements, coarsest first.

    Yields:
        Some of the parents; and by depth, how many cells lie below those before them.
    """
    before = {
        step.depth: np.append(
            0, np.cumsum(descendants(tree, steps[0].depth - 1, step.depth, parents.codes))
        )
        for step in steps
    }
    cells = before[steps[-1].depth]
    edges = np.arange(CHUNK_CELLS, cells[-1], CHUNK_CELLS)
    cuts = [0, *np.unique(np.searchsorted(cells, edges)).tolist(), len(parents)]
    for first, last in pairwise(cuts):
        yield parents.part(first, last), {t: int(many[first]) for t, many in before.items()}


def measured_block(
    source: Source,
    readers: Mapping[int, Reader],
    parents: Nodes,
    steps: Sequence[Refinement],
    starts: Mapping[int, int],
    below: tuple[Float64, Float64] | None = None,
) -> list[Generation]:
    """The generations of a block, measured and combined upward: the job *up*.

    Args:
        source: where noisy counts come from.
        readers: by depth; a depth without one is unmeasured.
        parents: the nodes above the block.
        steps: the refinements, coarsest first.
        starts: by depth, how many cells the job measured there before these.
        below: estimate and variance (float64, nodes of the last step) of what lies below the
            block, where the tree is cut there.
    """
    found: list[Generation] = []
    for step in steps:
        family_start = step.family_start(parents.codes)
        noisy: Noisy | None = None
        variance: Variance = NO_INFORMATION
        if step.depth in readers:
            read = readers[step.depth]
            noisy, variance = read(starts[step.depth], family_start, parents, step)
        cells = int(family_start[-1])
        estimate = np.zeros(cells) if noisy is None else noisy
        found.append(Generation(step, parents, family_start, noisy, variance, estimate, variance))
        if step is not steps[-1]:
            every = np.arange(cells)
            parents = children(every, family_start, parents, step, source.counts)
    if below is not None:
        one_each = np.arange(len(below[0]) + 1, dtype=np.int64)
        found[-1] = _combined(found[-1], *below, one_each)
    for i in range(len(found) - 2, -1, -1):
        lower = found[i + 1]
        found[i] = _combined(found[i], lower.estimate, lower.combined, lower.family_start)
    return found


def parents_below(first: Generation) -> tuple[Float64, Float64]:
    """What a block says of the nodes above it: sums of its first generation, and variances."""
    return combine(None, NO_INFORMATION, first.estimate, first.combined, first.family_start)


def _combined(
    upper: Generation, estimate: Noisy, variance: Variance, family_start: Int64
) -> Generation:
    below = estimate.astype(np.float64, copy=False)
    both = combine(upper.noisy, upper.variance, below, variance, family_start)
    return replace(upper, estimate=both[0], combined=both[1])


def survivors_of_block(
    found: Sequence[Generation],
    roots: Nodes,
    estimator: Estimator,
    source: Source,
    *,
    combines: bool,
    pruned: bool,
) -> Iterator[Nodes]:
    """The survivors of each depth of a block, from the top down: the job *down*.

    Args:
        found: the generations of the block; the first one's parents are the ``roots``.
        roots: with their released counts; those with 0 have no survivors below.
        estimator: from noisy counts to consistent counts.
        source: of the noisy counts.
        combines: whether combined estimates are projected, or noisy counts where there are any.
        pruned: whether the block hangs below survivors: what is known of its roots depends on
            their survival, so it says nothing of the nodes below.
    """
    kept = np.flatnonzero(roots.counts > 0)
    parents = roots if len(kept) == len(roots) else roots.taken(kept)
    for generation in found:
        cells, family_start = generation.families(kept)
        combined, precision = generation.estimate[cells], _taken(generation.combined, cells)
        values, variance = combined, precision
        if generation.noisy is not None and not combines:
            values, variance = generation.noisy[cells], _taken(generation.variance, cells)
        released = estimator.project(values, family_start, parents.counts, variance)
        estimate, known = combined.astype(np.float64, copy=False), precision
        if not pruned:
            above = parents.estimate, parents.variance
            estimate, known = distribute_down(*above, estimate, precision, family_start)
        positive = np.flatnonzero(released > 0)
        parents = replace(
            children(positive, family_start, parents, generation.step, source.counts),
            counts=released[positive],
            estimate=estimate[positive],
            variance=np.broadcast_to(known, estimate.shape)[positive],
        )
        yield parents
        kept = positive if isinstance(cells, slice) else cells[positive]


def _taken(variance: Variance, cells: Int64 | slice) -> Variance:
    return variance if isinstance(variance, float) else variance[cells]
