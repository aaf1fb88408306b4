"""The top-down pass: measure, estimate, drop zeros, descend.

Source: InfTDA, Boninsegna & Silvestri, Algorithms 1 and 3; with `All`, their pass over estimates
that are combined upward first (`hedgerow.release.descent.block`). Why the pass satisfies the plan's
guarantee, and why whoever runs a job again draws the same noise: ``docs/proofs/releases.md``, "The
pass satisfies the plan's guarantee".

The tree is cut (`Outline`) into subtree jobs. Where all nodes are measured
each job runs twice: *up*, which returns what its nodes tell of the root's count, and *down*, which
draws the same noise again and releases everything below.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from hedgerow.arrays import FloatPair, Sizes, float64, int64, int64_zeros
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.least_squares import combine, distribute_down
from hedgerow.limits import LARGEST_COUNT, LARGEST_REAL_COUNT
from hedgerow.plan.chain import Outline
from hedgerow.release.descent.block import (
    Generation,
    chunks_of_block,
    combined,
    parents_below,
    taken,
)
from hedgerow.release.descent.jobs import Flow, Progress, Told, Top
from hedgerow.release.descent.layouts import EveryCell
from hedgerow.release.descent.nodes import (
    Found,
    JobRoots,
    Nodes,
    Noisy,
    Roots,
    Slices,
    placed,
    unknown_root,
)
from hedgerow.release.descent.source import NO_INFORMATION, Source, Variance
from hedgerow.release.descent.steps import Families, Refinement, only_children
from hedgerow.tables.tree import Tree

UpwardEstimate = FloatPair
"""What a chain's jobs *up* tell of their roots: estimates and variances."""

Results = Generator[Found, None, Roots]
"""Results, cuboid by cuboid; and what is returned: the nodes below which the pass goes on."""


@dataclass(frozen=True, eq=False)
class ChainFlow(Flow):
    """What a chain does with noisy counts.

    Attributes:
        outline: what to measure.
        source: where noisy counts come from.
        estimator: from noisy counts and parents' counts to consistent counts.
        progress: whom to tell.
        listed: where the noisy counts of a release are estimated another way: by depth the nodes
            that it lists and below which it measured. No other node may get a count there.
    """

    told = 2
    outline: Outline
    source: Source
    estimator: Estimator
    progress: Progress = field(default_factory=Progress)
    listed: Mapping[int, Nodes] = field(default_factory=dict)

    @property
    def tree(self) -> Tree:
        """The domain."""
        return self.outline.tree

    @cached_property
    def _public(self) -> tuple[Roots, ...]:
        """The nodes of each public depth."""
        tree = self.outline.tree
        return tuple(
            self.source.public(tree.cuboid(t)) for t in range(self.outline.public_depth + 1)
        )

    @property
    def _above_all(self) -> Roots:
        """The nodes that the pass starts below."""
        return self._public[-1] if self._public else unknown_root(self.tree, self.source.counts)

    @cached_property
    def _of_the_cut(self) -> Roots:
        """All nodes of the cut that were measured, or lie above such."""
        roots = self._above_all.slices
        for step in blocks_of(self.outline, self.outline.first, self.outline.cut)[0]:
            roots = Families.of(step, roots).every(self.source.counts)
        return Roots(Nodes.unknown(roots.codes), roots)

    def jobs_up(self) -> Roots | None:
        """Return a job a node of the cut where all nodes are measured."""
        if self.outline.is_cut and self.outline.everything:
            return self._of_the_cut
        return None

    def roots(self, jobs: Roots) -> JobRoots:
        """Return the nodes that jobs hang from: one each."""
        every = np.arange(len(jobs.nodes))
        return JobRoots(self.tree.cuboid(self.outline.cut), jobs.nodes.codes, every)

    def located(self, jobs: Roots) -> Roots:
        """Return jobs that were made beside another table, with the slices of this one's leaves."""
        counts = self.source.counts
        every = np.arange(len(jobs.nodes))
        if counts is None:
            return jobs
        job = self.roots(jobs).jobs_of(self.tree, counts.codes)
        ends = (np.searchsorted(job, every, side=side) for side in ("left", "right"))
        return Roots(jobs.nodes, Slices(jobs.nodes.codes, *ends))

    def up(self, job: Roots) -> Told:
        """Return what the nodes below one node of the cut tell of its count."""
        steps = self._blocks_below[0]
        return parents_below(self._measured(job.slices, _place(job), steps, {})[0])

    def top(self, from_below: Told) -> Top:
        """Yield what is public and all down to the cut; return a job a node that goes on."""
        outline = self.outline
        tree = self.outline.tree
        for t, public in enumerate(self._public):
            yield Found(tree.cuboid(t), public.nodes, None)
        if not outline.is_cut:
            yield from self._from_first(tree.depth)
            return None
        if outline.everything:
            every = self._of_the_cut
            top = yield from self._from_first(outline.cut, (from_below[0], from_below[1]))
            roots = Roots(placed(top.nodes, every.nodes), every.slices)
        else:
            roots = yield from self._from_first(outline.cut)
        if not len(roots.nodes):  # nothing is measured below, and that is said
            for depth in range(outline.cut + 1, tree.depth + 1):
                noisy = int64_zeros(0) if depth in outline.measured else None
                yield Found(tree.cuboid(depth), roots.nodes, noisy)
        return roots

    def down(self, job: Roots) -> Iterator[Found]:
        """Yield everything below one node of the cut, given its released count.

        A function of the root, the plan, the key and the root's own slice of the leaves: it may
        run anywhere, and again. Below a count of 0 it is noise alone.
        """
        roots = job
        place = _place(job)
        for block in self._blocks_below:
            roots = yield from self._block(roots, place, block)

    def _from_first(self, last: int, from_below: UpwardEstimate | None = None) -> Results:
        """Yield the total, unless it is public, and the depths down to ``last``."""
        roots = self._above_all
        blocks = blocks_of(self.outline, self.outline.first, last)
        if self.outline.public_depth < 0:
            if 0 in self.outline.measured and not self.outline.everything:
                root, result = self._root()
                yield result
                roots = Roots(root, roots.slices).take(np.flatnonzero(root.counts > 0))
            else:
                roots = yield from self._block(roots, (), blocks.pop(0), from_below, is_open=True)
        for block in blocks:
            roots = yield from self._block(roots, (), block, from_below)
            if not self.outline.is_cut:
                self.progress.on_fraction(block[-1].depth / self.outline.tree.depth)
        return roots

    def _block(
        self,
        roots: Roots,
        job: Sizes,
        steps: list[Refinement],
        from_below: UpwardEstimate | None = None,
        *,
        is_open: bool = False,
    ) -> Results:
        """Yield one block below nodes with released counts: measure, estimate, drop zeros.

        Args:
            roots: the nodes above.
            job: which subtree job's block it is.
            steps: the refinements, coarsest first.
            from_below: what the jobs below the block tell of its last nodes.
            is_open: whether the total above the block has no count yet, and is yielded first.
        """
        at_once = is_open or from_below is not None
        if not at_once and self.outline.measured.isdisjoint(step.depth for step in steps):
            for step in steps:
                roots = only_children(roots, step)
                nodes = roots.nodes
                if self.listed:
                    nodes = nodes.listed
                yield Found(step.levels, nodes, None)
            return roots
        began = perf_counter()
        chunks = []
        every = chunks_of_block(self.outline.tree, roots, steps)
        for chunk, starts in [(roots, {})] if at_once else every:
            generations = self._measured(chunk.slices, job, steps, starts, from_below)
            nodes = chunk.nodes
            if is_open:
                nodes, result = self._root(parents_below(generations[0]))
                yield result
            chunks.append(self._released(generations, nodes))
        seconds = (perf_counter() - began) / len(steps)
        results, slices = zip(*chunks, strict=True)
        for parts in zip(*results, strict=True):
            result = replace(Found.concatenate(parts), seconds=seconds)
            yield result
        return self._roots(steps[-1], result.nodes, Slices.concatenate(slices))

    def _measured(
        self,
        parents: Slices,
        job: Sizes,
        steps: Sequence[Refinement],
        starts: Mapping[int, int],
        from_below: UpwardEstimate | None = None,
    ) -> list[Generation]:
        """Return the generations of a block, measured and combined upward: the job *up*.

        Args:
            parents: the nodes above the block.
            job: which subtree job's.
            steps: the refinements, coarsest first.
            starts: by depth, how many cells the job measured there before these; 0 unless given.
            from_below: estimate and variance (float64, nodes of the last step) of what lies below
                the block, where the tree is cut there.
        """
        generations = []
        source = self.source
        for step in steps:
            families = Families.of(step, parents, starts.get(step.depth, 0))
            noisy: Noisy | None = None
            variance: Variance = NO_INFORMATION
            if step.depth in self.outline.measured:
                noisy = source.noisy(step.levels, families, job, families.first)
                variance = source.variance(step.levels, families)
                self.progress.on_cells(len(noisy))
            estimate = np.zeros(families.cells) if noisy is None else noisy
            generations.append(Generation(families, noisy, variance, estimate, variance))
            if step is not steps[-1]:
                parents = families.every(source.counts)
        if from_below is not None:
            one_each = np.arange(len(from_below[0]) + 1, dtype=np.int64)
            generations[-1] = combined(generations[-1], *from_below, one_each)
        for i in range(len(generations) - 2, -1, -1):
            lower = generations[i + 1]
            below = lower.estimate, lower.combined, lower.families.start
            generations[i] = combined(generations[i], *below)
        return generations

    def _released(
        self, generations: Sequence[Generation], roots: Nodes
    ) -> tuple[list[Found], Slices]:
        """Return what is released of a block, and the slices of its last survivors: the job *down*.

        Args:
            generations: of the block.
            roots: the nodes above it.
        """
        kept = np.flatnonzero(roots.counts > 0)
        results = []
        nodes = roots if len(kept) == len(roots) else roots.take(kept)
        for generation in generations:
            families = generation.families
            cells, family_start = generation.below(kept, self.listed.get(families.step.depth))
            estimate = generation.estimate[cells]
            precision = taken(generation.combined, cells)
            values = estimate
            variance = precision
            if generation.noisy is not None and not self.outline.everything:
                values = generation.noisy[cells]
                variance = taken(generation.variance, cells)
            released = self.estimator.project(values, family_start, nodes.counts, variance)
            estimate = estimate.astype(np.float64, copy=False)
            if self.outline.everything:
                above = nodes.estimate, nodes.variance
                estimate, precision = distribute_down(*above, estimate, precision, family_start)
            positive = np.flatnonzero(released > 0)
            kept = positive if isinstance(cells, slice) else cells[positive]
            codes, first = families.codes(kept)
            uncertain = np.broadcast_to(precision, estimate.shape)[positive]
            nodes = Nodes(codes, released[positive], estimate[positive], uncertain)
            results.append(Found(families.step.levels, nodes, generation.noisy))
        if families.step.depth == self.tree.depth:  # nothing is below leaves
            return results, Slices.without_table(nodes.codes)
        return results, families.slices(nodes.codes, first, self.source.counts)

    def _roots(self, last: Refinement, nodes: Nodes, slices: Slices) -> Roots:
        """Return the nodes below which the pass goes on: the survivors of the last depth.

        Where a release measured below the nodes that it lists, these are the ones: its noisy counts
        are those of their children, in their order.
        """
        if last.depth not in self.listed:
            return Roots(nodes, slices)
        listed = self.listed[last.depth]
        every = Nodes.unknown(listed.codes)
        return Roots(placed(nodes, every), Slices.without_table(every.codes))

    def _root(self, below: UpwardEstimate | None = None) -> tuple[Nodes, Found]:
        """Return the root with its released count, 0 or more, from all that tells of it.

        It comes with its count, and as a result, which lists it only if that is positive.
        """
        levels = self.outline.tree.cuboid(0)
        noisy = None
        layout = EveryCell(self.outline.tree, levels)
        variance = self.source.variance(levels, layout)
        estimate = np.zeros(1)
        precision = np.full(1, variance)
        if 0 in self.outline.measured:
            noisy = self.source.noisy(levels, layout)
            estimate = float64(noisy)
        if below is not None:
            estimate, precision = combine(noisy, variance, *below, np.array([0, 1]))
        if not np.isfinite(precision).all():
            raise ReleaseError("nothing that was measured tells the total; measure a depth above")
        value = estimate[0] if self.outline.everything or noisy is None else noisy[0]
        is_real = self.outline.needs_reals(self.estimator)
        most = LARGEST_REAL_COUNT if is_real else LARGEST_COUNT
        released = int64([min(max(0, round(value)), most)])
        root = Nodes(self._above_all.nodes.codes, released, estimate, precision)
        return root, Found(levels, root.listed, noisy)

    @cached_property
    def _blocks_below(self) -> list[list[Refinement]]:
        return blocks_of(self.outline, self.outline.cut, self.outline.tree.depth)


def blocks_of(outline: Outline, above: int, last: int) -> list[list[Refinement]]:
    """Return the steps from a depth down to another, by block."""
    blocks = []
    waiting = []
    deepest = max(outline.measured)
    # Single children take their parent's count, where it has one: an unmeasured total has none.
    has_parent_count = above > 0 or outline.public_depth >= 0 or 0 in outline.measured
    for t in range(above + 1, last + 1):
        step = Refinement.of(outline.tree, t)
        waiting.append(step)
        ends = t in outline.measured and not (outline.everything and t < min(deepest, last))
        alone = step.single and len(waiting) == 1 and t not in outline.measured and has_parent_count
        if ends or t > deepest or (alone and not outline.everything):
            blocks.append(waiting)
            waiting = []
            has_parent_count = True
    return [*blocks, waiting] if waiting else blocks


def _place(job: Roots) -> Sizes:
    """Return which subtree job a root of the cut has: its codes, one an axis."""
    return tuple(int(code[0]) for code in job.nodes.codes)
