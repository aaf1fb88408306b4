"""A block: depths that are measured below the same parents, combined upward, then estimated.

With `hedgerow.plan.cuboids.All` every depth below the public ones is one block, so its combined
estimates are those of least squares. With `Survivors` a block ends at each measured depth: what is
measured next depends on the counts just released, so nothing is combined across blocks; depths
above its measured one are sums of what is measured below them.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.least_squares import combine, distribute_down
from hedgerow.release.descent.nodes import Nodes, Noisy, Roots, Slices
from hedgerow.release.descent.source import NO_INFORMATION, Source, Variance
from hedgerow.release.descent.steps import Families, Refinement, descendants
from hedgerow.tables.tree import Tree

CHUNK_CELLS = 1 << 21


@dataclass(frozen=True, slots=True)
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
            return cells[kept], np.append(0, np.cumsum(kept))[family_start]
        if len(parents) == len(self.families.start) - 1:
            return slice(None), self.families.start
        return self.families.below(parents)


def chunks_of_block(
    tree: Tree, roots: Roots, steps: Sequence[Refinement]
) -> Iterator[tuple[Roots, dict[int, int]]]:
    """Yield consecutive roots whose cells fit the caches, and how many cells lie before theirs."""
    codes = roots.nodes.codes
    before = {
        step.depth: np.append(
            0, np.cumsum(descendants(tree, steps[0].depth - 1, step.depth, codes))
        )
        for step in steps
    }
    cells = before[steps[-1].depth]
    edges = np.arange(CHUNK_CELLS, cells[-1], CHUNK_CELLS)
    cuts = [0, *np.unique(np.searchsorted(cells, edges)).tolist(), len(cells) - 1]
    for first, last in pairwise(cuts):
        yield roots.take(slice(first, last)), {t: int(many[first]) for t, many in before.items()}


def measured_block(
    source: Source,
    job: tuple[int, ...],
    measured: Container[int],
    parents: Slices,
    steps: Sequence[Refinement],
    starts: Mapping[int, int],
    told: tuple[Float64, Float64] | None = None,
) -> list[Generation]:
    """Return the generations of a block, measured and combined upward: the job *up*.

    Args:
        source: where noisy counts come from.
        job: which subtree job's.
        measured: the depths with noisy counts.
        parents: the nodes above the block.
        steps: the refinements, coarsest first.
        starts: by depth, how many cells the job measured there before these; 0 unless given.
        told: estimate and variance (float64, nodes of the last step) of what lies below the
            block, where the tree is cut there.
    """
    generations: list[Generation] = []
    for step in steps:
        families = Families.of(step, parents, starts.get(step.depth, 0))
        noisy: Noisy | None = None
        variance: Variance = NO_INFORMATION
        if step.depth in measured:
            noisy = source.noisy(step.levels, families, job, families.first)
            variance = source.variance(step.levels, families)
        estimate = np.zeros(families.cells) if noisy is None else noisy
        generations.append(Generation(families, noisy, variance, estimate, variance))
        if step is not steps[-1]:
            parents = families.every(source.counts)
    if told is not None:
        one_each = np.arange(len(told[0]) + 1, dtype=np.int64)
        generations[-1] = _combined(generations[-1], *told, one_each)
    for i in range(len(generations) - 2, -1, -1):
        lower = generations[i + 1]
        below = lower.estimate, lower.combined, lower.families.start
        generations[i] = _combined(generations[i], *below)
    return generations


def parents_below(first: Generation) -> tuple[Float64, Float64]:
    """Return what a block tells of the nodes above it: sums of its first generation, variances."""
    return combine(None, NO_INFORMATION, first.estimate, first.combined, first.families.start)


def _combined(
    upper: Generation, estimate: Noisy, variance: Variance, family_start: Int64
) -> Generation:
    below = estimate.astype(np.float64, copy=False)
    both = combine(upper.noisy, upper.variance, below, variance, family_start)
    return replace(upper, estimate=both[0], combined=both[1])


def survivors_of_block(
    generations: Sequence[Generation],
    roots: Nodes,
    estimator: Estimator,
    listed: Mapping[int, Nodes],
    *,
    combines: bool,
    pruned: bool,
) -> Iterator[tuple[Nodes, Int64]]:
    """Yield the survivors of each depth of a block, and the place of each one's parent in it.

    It is the job *down*.
    """
    kept = np.flatnonzero(roots.counts > 0)
    parents = roots if len(kept) == len(roots) else roots.take(kept)
    for generation in generations:
        families = generation.families
        cells, family_start = generation.below(kept, listed.get(families.step.depth))
        combined, combined_variance = generation.estimate[cells], _take(generation.combined, cells)
        values, variance = combined, combined_variance
        if generation.noisy is not None and not combines:
            values, variance = generation.noisy[cells], _take(generation.variance, cells)
        released = estimator.project(values, family_start, parents.counts, variance)
        estimate, precision = combined.astype(np.float64, copy=False), combined_variance
        if not pruned:
            above = parents.estimate, parents.variance
            estimate, precision = distribute_down(*above, estimate, precision, family_start)
        positive = np.flatnonzero(released > 0)
        kept = positive if isinstance(cells, slice) else cells[positive]
        codes, parent = families.codes(kept)
        uncertain = np.broadcast_to(precision, estimate.shape)[positive]
        parents = Nodes(codes, released[positive], estimate[positive], uncertain)
        yield parents, parent


def _take(variance: Variance, cells: Int64 | slice) -> Variance:
    return variance if isinstance(variance, float) else variance[cells]
