"""The top-down pass: measure, estimate, drop zeros, descend.

Source: InfTDA, Boninsegna & Silvestri, Algorithms 1 and 3; with `All`, their pass over estimates
that are combined upward first (`hedgerow.release.descent.block`). Why the pass satisfies the plan's
guarantee, and why whoever runs a job again draws the same noise: ``docs/proofs.md``.

The tree is cut (`hedgerow.release.descent.outline`) into subtree jobs. Where all nodes are measured
each job runs twice: *up*, which returns what its nodes tell of the root's count, and *down*, which
draws the same noise again and releases everything below.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.least_squares import combine
from hedgerow.limits import LARGEST_COUNT, LARGEST_REAL_COUNT
from hedgerow.release.descent.block import (
    Generation,
    chunks_of_block,
    measured_block,
    parents_below,
    survivors_of_block,
)
from hedgerow.release.descent.jobs import (
    Engine,
    JobCache,
    Jobs,
    LocalEngine,
    LocalJobs,
    NoCache,
    OnFraction,
    Progress,
    Told,
)
from hedgerow.release.descent.layouts import Dense
from hedgerow.release.descent.nodes import Nodes, Roots, Slices, placed
from hedgerow.release.descent.outline import Found, Outline
from hedgerow.release.descent.source import Source
from hedgerow.release.descent.steps import Refinement, all_children, only_children, slices_below

UpwardEstimate = tuple[Float64, Float64]
"""What a chain's jobs *up* tell of their roots: estimates and variances."""

Results = Generator[Found, None, Roots]
"""Results, cuboid by cuboid; and what is returned: the nodes below which the pass goes on."""


@dataclass(frozen=True, eq=False)
class Pass:
    """One run of the pass.

    Attributes:
        outline: what to measure.
        source: where noisy counts come from.
        estimator: from noisy counts and parents' counts to consistent counts.
        engine: who runs the jobs.
        progress: whom to tell.
        cache: where the work of finished jobs is kept.
        remote_jobs: who does the jobs in place of the engine, and keeps their work.
        listed: where the noisy counts of a release are estimated another way: by depth the nodes
            that it lists and below which it measured. No other node may get a count there.
    """

    outline: Outline
    source: Source
    estimator: Estimator
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Progress)
    cache: JobCache = field(default_factory=NoCache)
    remote_jobs: Jobs | None = None
    listed: Mapping[int, Nodes] = field(default_factory=dict)

    @cached_property
    def combines(self) -> bool:
        """Whether combined estimates are projected."""
        wanted = self.estimator.combine
        return self.outline.everything if wanted is None else wanted

    @property
    def _total_measured(self) -> bool:
        return 0 in self.outline.measured

    def results(self) -> Iterator[Found]:
        """Yield the results of all jobs; those of each depth come in tree order."""
        outline, tree = self.outline, self.outline.tree
        for result in self._results():
            cells = 0 if result.noisy is None else len(result.noisy)
            name = tree.name_of(result.levels)
            self.progress.on_cuboid(name, cells, len(result.nodes), result.seconds)
            yield result
            depth = tree.chain.index(result.levels)
            if not outline.is_cut and depth > outline.first:
                done = (depth - outline.first) / (tree.depth - outline.first)
                self.progress.on_fraction(done)
        self.progress.on_fraction(1.0)

    def _results(self) -> Iterator[Found]:
        """Yield what is public, then all below it: at once, or above the cut and then its jobs."""
        outline, roots = self.outline, self.source.root()
        for t in range(outline.public_depth + 1):
            levels = outline.tree.cuboid(t)
            roots = self.source.public(levels)
            yield Found(levels, roots.nodes, None)
        if not outline.is_cut:
            yield from self._from_first(roots, outline.tree.depth)
        elif outline.everything:
            yield from self._up_and_down(roots)
        else:
            roots = yield from self._from_first(roots, outline.cut)
            yield from self._below(roots)

    def _from_first(self, roots: Roots, last: int) -> Results:
        """Yield the total, unless it is public, and the depths down to ``last``."""
        first = self.outline.first
        blocks = self.outline.blocks(first, last)
        if self.outline.public_depth < 0:
            if self._total_measured and not self.outline.everything:
                root, result = self._root()
                yield result
                roots = Roots(root, roots.slices).take(np.flatnonzero(root.counts > 0))
            else:
                roots = yield from self._first_block(roots, blocks.pop(0))
        return (yield from self._down(roots, (), blocks))

    def _down(self, roots: Roots, job: tuple[int, ...], blocks: list[list[Refinement]]) -> Results:
        """Yield the job *down*: given its nodes' released counts, release all below."""
        for block in blocks:
            roots = yield from self._block(roots, job, block)
        return roots

    def _block(self, roots: Roots, job: tuple[int, ...], steps: list[Refinement]) -> Results:
        """Yield one block below nodes with released counts: measure, estimate, drop zeros."""
        if self.outline.measured.isdisjoint(step.depth for step in steps):
            for step in steps:
                roots = only_children(roots, step)
                nodes = roots.nodes
                if self.listed:
                    nodes = nodes.take(np.flatnonzero(nodes.counts > 0))
                yield Found(step.levels, nodes, None)
            return roots
        began = perf_counter()
        chunks: list[tuple[list[Found], Slices]] = []
        for chunk, starts in chunks_of_block(self.outline.tree, roots, steps):
            generations = self._measured(chunk.slices, job, steps, starts)
            chunks.append(self._released(generations, chunk.nodes))
        seconds = (perf_counter() - began) / len(steps)
        results, slices = zip(*chunks, strict=True)
        for parts in zip(*results, strict=True):
            result = replace(Found.concatenate(parts), seconds=seconds)
            yield result
        return self._roots(steps[-1], result.nodes, Slices.concatenate(slices))

    def _measured(
        self,
        parents: Slices,
        job: tuple[int, ...],
        steps: list[Refinement],
        starts: Mapping[int, int],
        below: UpwardEstimate | None = None,
    ) -> list[Generation]:
        measured = self.outline.measured
        generations = measured_block(self.source, job, measured, parents, steps, starts, below)
        self.progress.on_cells(sum(len(g.noisy) for g in generations if g.noisy is not None))
        return generations

    def _released(
        self, generations: Sequence[Generation], roots: Nodes
    ) -> tuple[list[Found], Slices]:
        """Return what is released of a block, and the slices of its last survivors."""
        survivors = survivors_of_block(
            generations,
            roots,
            self.estimator,
            self.listed,
            combines=self.combines,
            pruned=not self.outline.everything,
        )
        results, parent = [], np.empty(0, dtype=np.int64)
        for generation, (nodes, parent) in zip(generations, survivors, strict=True):  # noqa: B007
            results.append(Found(generation.step.levels, nodes, generation.noisy))
        last, nodes = generations[-1], results[-1].nodes
        if last.step.depth == self.outline.tree.depth:  # nothing is below leaves
            return results, Slices.without_table(nodes.codes)
        return results, slices_below(
            nodes.codes, parent, last.parents, last.step, self.source.counts
        )

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

    def _first_block(
        self, roots: Roots, steps: list[Refinement], below: UpwardEstimate | None = None
    ) -> Results:
        """Yield the block below the first depth and, unless it is public, the total above it."""
        nodes = roots.nodes
        generations = self._measured(roots.slices, (), steps, {}, below)
        if self.outline.public_depth < 0:
            nodes, result = self._root(parents_below(generations[0]))
            yield result
        results, slices = self._released(generations, nodes)
        yield from results
        return self._roots(steps[-1], results[-1].nodes, slices)

    def _root(self, below: UpwardEstimate | None = None) -> tuple[Nodes, Found]:
        """Return the root with its released count, 0 or more, from all that tells of it.

        It comes with its count, and as a result, which lists it only if that is positive.
        """
        levels, noisy = self.outline.tree.cuboid(0), None
        layout = Dense(self.outline.tree, levels)
        variance = self.source.variance(levels, layout)
        estimate, combined = np.zeros(1), np.full(1, variance)
        if self._total_measured:
            noisy = self.source.noisy(levels, layout)
            estimate = noisy.astype(np.float64)
        if below is not None:
            estimate, combined = combine(noisy, variance, *below, np.array([0, 1]))
        if not np.isfinite(combined).all():
            raise ReleaseError("nothing that was measured tells the total; measure a depth above")
        value = estimate[0] if self.combines or noisy is None else noisy[0]
        is_real = self.outline.needs_reals(self.estimator)
        most = LARGEST_REAL_COUNT if is_real else LARGEST_COUNT
        released = np.array([min(max(0, round(value)), most)], dtype=np.int64)
        codes = tuple(np.zeros(1, dtype=np.int32) for _ in self.outline.tree.axes)
        root = Nodes(codes, released, estimate, combined)
        listed = root.take(np.flatnonzero(released > 0))
        return root, Found(levels, listed, noisy)

    def release_subtree(self, root: Roots) -> Iterator[Found]:
        """Yield the job *down* of one node of the cut: everything below, given its released count.

        A function of the root, the plan, the key and the root's own slice of the leaves: it may
        run anywhere, and again.
        """
        return self._down(root, _job(root), self._blocks_below)

    def estimate_upward(self, root: Roots) -> UpwardEstimate:
        """Return the job *up* of one node of the cut: what its nodes tell of its count."""
        steps = self._blocks_below[0]
        return parents_below(self._measured(root.slices, _job(root), steps, {})[0])

    @cached_property
    def _blocks_below(self) -> list[list[Refinement]]:
        return self.outline.blocks(self.outline.cut, self.outline.tree.depth)

    def _up_and_down(self, roots: Roots) -> Iterator[Found]:
        """Yield a tree that is measured everywhere: all jobs *up*, the top, all jobs *down*."""
        (steps,) = self.outline.blocks(self.outline.first, self.outline.cut)
        slices = roots.slices
        for step in steps:
            slices = all_children(slices, step, self.source.counts)
        every = Roots(Nodes.unknown(slices.codes), slices)
        told = self._jobs.up(every, lambda done: self.progress.on_fraction(done / 2))
        top = yield from self._first_block(roots, steps, (told[0], told[1]))
        yield from self._below(Roots(placed(top.nodes, every.nodes), slices))

    def _below(self, roots: Roots) -> Iterator[Found]:
        """Yield one job *down* a node of the cut; of a node released as 0, its noise alone."""

        def on_fraction(done: float) -> None:
            self.progress.on_fraction((1 + done) / 2 if self.outline.everything else done)

        if len(roots.nodes):
            yield from self._jobs.down(roots, on_fraction)
            return
        for depth in range(self.outline.cut + 1, self.outline.tree.depth + 1):
            noisy = np.empty(0, dtype=np.int64) if depth in self.outline.measured else None
            yield Found(self.outline.tree.cuboid(depth), roots.nodes, noisy)

    @property
    def _jobs(self) -> Jobs:
        return self if self.remote_jobs is None else self.remote_jobs

    def up(self, roots: Roots, progress: OnFraction) -> Told:
        """Return what the jobs *up* tell of their roots."""
        jobs = LocalJobs(self.engine, self.cache)
        work = self.estimate_upward
        return jobs.up(roots.nodes.counts, lambda i: work(roots.take(slice(i, i + 1))), 2, progress)

    def down(self, roots: Roots, progress: OnFraction) -> Iterator[Found]:
        """Return the results of the jobs *down*, in tree order."""
        jobs = LocalJobs(self.engine, self.cache)
        work = self.release_subtree
        return jobs.down(roots.nodes.counts, lambda i: work(roots.take(slice(i, i + 1))), progress)


def _job(root: Roots) -> tuple[int, ...]:
    """Return which subtree job a root of the cut has: its codes, one an axis."""
    return tuple(int(code[0]) for code in root.nodes.codes)
