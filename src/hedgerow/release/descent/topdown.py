"""The top-down pass: measure, estimate, drop zeros, descend.

Source: InfTDA, Boninsegna & Silvestri, Algorithms 1 and 3; with `All`, their pass over estimates
that are combined upward first (`hedgerow.release.descent.block`). Privacy: at each measured depth
every measured count is its true count plus one draw of the depth's noise; the counts of one depth
are those of disjoint sets of records, so a unit changes them by at most the plan's shifts. Which
nodes are measured depends on released counts of coarser depths alone (with `All`, on the public
domain), so the depths compose adaptively and the pass satisfies the plan's guarantee; everything
else is post-processing.

The tree is cut (`hedgerow.release.descent.outline`) into subtree jobs. The noise of a job at a
depth is one keyed stream under the place of the job, and the i-th cell that the job measures there
takes the i-th draw. Which cells those are follows from the same stream's coarser depths, so whoever
runs a job again, on whichever machine and in whichever chunks, draws the same noise for the same
cell. Where all nodes are measured each job runs twice: *up*, which hands back what its nodes say of
the root's count, and *down*, which draws the same noise again and releases everything below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import LARGEST_COUNT, Estimator
from hedgerow.estimate.families.real_projection import LARGEST_REAL_COUNT
from hedgerow.estimate.tree.least_squares import combine
from hedgerow.release.descent.block import (
    Generation,
    chunks_of_block,
    measured_block,
    parents_below,
    survivors_of_block,
)
from hedgerow.release.descent.jobs import (
    Engine,
    Jobs,
    Kept,
    LocalEngine,
    NotKept,
    OnEngine,
    Progress,
    Said,
)
from hedgerow.release.descent.nodes import Nodes, placed, unknown_root
from hedgerow.release.descent.outline import DepthResult, Outline, joined
from hedgerow.release.descent.source import Reader, Source
from hedgerow.release.descent.steps import Refinement, all_children, only_children


@dataclass(frozen=True, eq=False)
class Pass:
    """One run of the pass.

    Attributes:
        outline: what to measure.
        source: where noisy counts come from.
        estimator: from noisy counts and parents' counts to consistent counts.
        engine: who runs the jobs.
        progress: whom to tell.
        kept: where the work of finished jobs is kept.
        elsewhere: who does the jobs in the engine's place, and keeps them.
    """

    outline: Outline
    source: Source
    estimator: Estimator
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Progress)
    kept: Kept = field(default_factory=NotKept)
    elsewhere: Jobs | None = None

    @cached_property
    def combines(self) -> bool:
        """Whether combined estimates are projected."""
        wanted = self.estimator.combine
        return self.outline.everything if wanted is None else wanted

    @property
    def _total_measured(self) -> bool:
        return 0 in self.outline.measured

    def results(self) -> Iterator[DepthResult]:
        """The results of all jobs; the results of each depth come in tree order."""
        for found in self._results():
            cells = 0 if found.noisy is None else len(found.noisy)
            self.progress.on_depth(found.depth, cells, len(found.nodes), found.seconds)
            yield found
        self.progress.on_fraction(1.0)

    def _results(self) -> Iterator[DepthResult]:
        """What is public, then all below it: at once, or above the cut and then its jobs."""
        outline = self.outline
        first, cut, last = outline.first, outline.cut, outline.tree.depth
        for t in range(outline.public_depth + 1):
            nodes = self.source.public(t)
            yield DepthResult(t, nodes, None)
        if outline.public_depth < 0:
            nodes = unknown_root(self.source.counts)
        if cut in (first, last):
            yield from self._from_first(nodes, last)
        elif outline.everything:
            yield from self._up_and_down(nodes)
        else:
            for result in self._from_first(nodes, cut):
                yield result
            yield from self._below(result.nodes)

    def _from_first(self, nodes: Nodes, last: int) -> Iterator[DepthResult]:
        """The total, unless it is public, and the depths down to ``last``."""
        first, deepest = self.outline.first, self.outline.tree.depth
        blocks = self.outline.blocks(first, last)
        if self.outline.public_depth < 0:
            if self._total_measured and not self.outline.everything:
                _, result = self._root(nodes)
                yield result
            else:
                for result in self._first_block(nodes, blocks.pop(0)):
                    yield result
            nodes = result.nodes
        for result in self._down(nodes, (first,), blocks):
            yield result
            self.progress.on_fraction((result.depth - first) / (deepest - first))

    def _down(
        self, nodes: Nodes, place: tuple[int, ...], blocks: list[list[Refinement]]
    ) -> Iterator[DepthResult]:
        """The job *down* of a place: given released counts of its nodes, release all below."""
        for block in blocks:
            for result in self._block(nodes, place, block):
                yield result
            nodes = result.nodes

    def _block(
        self, nodes: Nodes, place: tuple[int, ...], steps: list[Refinement]
    ) -> Iterator[DepthResult]:
        """One block below roots whose counts are released: measure, estimate, drop zeros."""
        if self.outline.measured.isdisjoint(step.depth for step in steps):
            for step in steps:
                nodes = only_children(nodes, step)
                yield DepthResult(step.depth, nodes, None)
            return
        readers = self._readers(place, steps)
        parts: list[list[DepthResult]] = []
        began = perf_counter()
        for roots, starts in chunks_of_block(self.outline.tree, nodes, steps):
            found = self._measured(roots, readers, steps, starts)
            parts.append(list(self._released(found, roots)))
        seconds = (perf_counter() - began) / len(steps)
        for depth in zip(*parts, strict=True):
            yield replace(joined(depth), seconds=seconds)

    def _readers(self, place: tuple[int, ...], steps: list[Refinement]) -> dict[int, Reader]:
        readers = {step.depth: self.source.reader(place, step.depth) for step in steps}
        return {t: reader for t, reader in readers.items() if reader is not None}

    def _measured(
        self,
        nodes: Nodes,
        readers: dict[int, Reader],
        steps: list[Refinement],
        starts: Mapping[int, int],
        below: Said | None = None,
    ) -> list[Generation]:
        found = measured_block(self.source, readers, nodes, steps, starts, below)
        self.progress.on_cells(sum(len(g.noisy) for g in found if g.noisy is not None))
        return found

    def _released(self, found: Sequence[Generation], roots: Nodes) -> Iterator[DepthResult]:
        every = survivors_of_block(
            found,
            roots,
            self.estimator,
            self.source,
            combines=self.combines,
            pruned=not self.outline.everything,
        )
        for generation, nodes in zip(found, every, strict=True):
            yield DepthResult(generation.step.depth, nodes, generation.noisy)

    def _first_block(
        self, nodes: Nodes, steps: list[Refinement], below: Said | None = None
    ) -> Iterator[DepthResult]:
        """The block below the first depth and, unless it is public, a total that it tells of."""
        readers = self._readers((self.outline.first,), steps)
        found = self._measured(nodes, readers, steps, dict.fromkeys(readers, 0), below)
        if self.outline.public_depth < 0:
            nodes, result = self._root(nodes, parents_below(found[0]))
            yield result
        yield from self._released(found, nodes)

    def _root(self, root: Nodes, below: Said | None = None) -> tuple[Nodes, DepthResult]:
        """The total from its measurement and what the depths below say of it; 0 or more.

        It comes with its count, and as a result, which lists it only if that is positive.
        """
        noisy, variance = self.source.root()
        estimate, known = noisy.astype(np.float64), np.full(1, variance)
        if below is not None:
            measured = noisy if self._total_measured else None
            estimate, known = combine(measured, variance, *below, np.array([0, 1]))
        if not np.isfinite(known).all():
            raise ReleaseError("nothing that was measured tells the total; measure a depth above")
        value = estimate[0] if self.combines or not self._total_measured else noisy[0]
        is_real = self.outline.needs_reals(self.estimator)
        most = LARGEST_REAL_COUNT if is_real else LARGEST_COUNT
        released = np.array([min(max(0, round(value)), most)], dtype=np.int64)
        root = Nodes(root.codes, released, estimate, known, root.start, root.stop)
        listed = root.taken(np.flatnonzero(released > 0))
        return root, DepthResult(0, listed, noisy if self._total_measured else None)

    def subtree(self, root: Nodes) -> Iterator[DepthResult]:
        """The job *down* of one node of the cut: everything below, given its released count.

        A function of the root, the plan, the key and the root's own slice of the leaves: it may
        run anywhere, and again.
        """
        return self._down(root, self._place(root), self._blocks_below)

    def said(self, root: Nodes) -> Said:
        """The job *up* of one node of the cut: what its nodes say of its count."""
        steps = self._blocks_below[0]
        readers = self._readers(self._place(root), steps)
        return parents_below(self._measured(root, readers, steps, dict.fromkeys(readers, 0))[0])

    def _place(self, root: Nodes) -> tuple[int, ...]:
        return (self.outline.cut, *(int(code[0]) for code in root.codes))

    @cached_property
    def _blocks_below(self) -> list[list[Refinement]]:
        return self.outline.blocks(self.outline.cut, self.outline.tree.depth)

    def _up_and_down(self, nodes: Nodes) -> Iterator[DepthResult]:
        """A tree that is cut and measured everywhere: all jobs *up*, the top, all jobs *down*."""
        (steps,) = self.outline.blocks(self.outline.first, self.outline.cut)
        roots = nodes
        for step in steps:
            roots = all_children(roots, step, self.source.counts)
        said = self._jobs.up(roots, lambda done: self.progress.on_fraction(done / 2))
        for result in self._first_block(nodes, steps, said):
            yield result
        yield from self._below(placed(result.nodes, roots))

    def _below(self, roots: Nodes) -> Iterator[DepthResult]:
        """One job *down* a node of the cut; of a node that was released as 0, its noise alone."""

        def told(done: float) -> None:
            self.progress.on_fraction((1 + done) / 2 if self.outline.everything else done)

        if len(roots):
            yield from self._jobs.down(roots, told)
            return
        for depth in range(self.outline.cut + 1, self.outline.tree.depth + 1):
            noisy = np.empty(0, dtype=np.int64) if depth in self.outline.measured else None
            yield DepthResult(depth, Nodes.none(len(roots.codes)), noisy)

    @property
    def _jobs(self) -> Jobs:
        return self.elsewhere or OnEngine(self.said, self.subtree, self.engine, self.kept)
