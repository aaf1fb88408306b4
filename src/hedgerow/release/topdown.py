"""The top-down pass: measure, estimate, drop zeros, descend.

Source: InfTDA, Boninsegna & Silvestri, Algorithms 1 and 3; with `All`, their pass over estimates
that are combined upward first (`hedgerow.release.block`). Privacy: at each measured depth every
measured count is its true count plus one draw of the depth's noise; the counts of one depth are
those of disjoint sets of records, so a unit changes them by at most the plan's shifts. Which nodes
are measured depends on released counts of coarser depths alone (with `All`, on the public domain),
so the depths compose adaptively and the pass satisfies the plan's guarantee; everything else is
post-processing.

The tree is cut (`hedgerow.release.outline`) into subtree jobs. The noise of a job at a depth is one
keyed stream under the place of the job, and the i-th cell that the job measures there takes the
i-th draw. Which cells those are follows from the same stream's coarser depths, so whoever runs a
job again, on whichever machine and in whichever chunks, draws the same noise for the same cell.
Where all nodes are measured each job runs twice: *up*, which hands back what its nodes say of the
root's count, and *down*, which draws the same noise again and releases everything below.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter
from typing import Protocol, cast

import numpy as np

from hedgerow.engines.engine import Engine
from hedgerow.engines.local import LocalEngine
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.least_squares import combine
from hedgerow.release.block import (
    Generation,
    measured_block,
    parents_below,
    survivors_of_block,
)
from hedgerow.release.outline import Outline
from hedgerow.release.source import Float64, Noisy, Reader, Source
from hedgerow.release.steps import (
    Int64,
    Nodes,
    Refinement,
    children,
    descendants,
    only_children,
)

CHUNK_CELLS = 1 << 21
RUNS = 128
"""Jobs are handed to the engine, and kept when they are finished, in about as many runs."""


@dataclass(frozen=True, slots=True)
class DepthResult:
    """What a job found at one depth, in tree order.

    Attributes:
        depth: the depth.
        nodes: the survivors with their released counts and unbiased estimates.
        noisy: int64 (measured cells): the noisy counts, families end to end, of surviving parents
            or (`All`) of all; None where nothing was measured.
        seconds: of work; confidential, for the terminal alone. 0 where the result had been kept.
    """

    depth: int
    nodes: Nodes
    noisy: Noisy | None
    seconds: float = 0.0


Said = tuple[Float64, Float64]
"""What jobs *up* say of their roots: estimates and variances."""


class Kept(Protocol):
    """Where the work of finished jobs is kept; a job that is found there is not run again."""

    def up(self, jobs: range, work: Callable[[], Said]) -> Said:
        """What these jobs say of their roots."""

    def down(self, jobs: range, results: Iterator[DepthResult]) -> Iterable[DepthResult]:
        """The results of these jobs."""


class NotKept:
    """Nothing is kept but in memory."""

    def up(self, _jobs: range, work: Callable[[], Said]) -> Said:
        """What these jobs say of their roots."""
        return work()

    def down(self, _jobs: range, results: Iterator[DepthResult]) -> Iterable[DepthResult]:
        """The results of these jobs."""
        return list(results)


@dataclass(frozen=True, slots=True)
class Progress:
    """Whom to tell how far the pass is.

    Attributes:
        on_cells: called with the number of cells just measured.
        on_fraction: called with the finished share of the pass, 0 to 1.
        on_depth: called with each result of a depth: its number of measured cells and of survivors
            and the seconds of work in it. These are confidential until the release appears, and
            the seconds for ever.
    """

    on_cells: Callable[[int], None] = lambda _cells: None
    on_fraction: Callable[[float], None] = lambda _fraction: None
    on_depth: Callable[[int, int, int, float], None] = lambda _depth, _cells, _kept, _seconds: None


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
    """

    outline: Outline
    source: Source
    estimator: Estimator
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Progress)
    kept: Kept = field(default_factory=NotKept)

    @cached_property
    def combines(self) -> bool:
        """Whether combined estimates are projected."""
        wanted = self.estimator.combine
        return self.outline.everything if wanted is None else wanted

    @cached_property
    def _blocks_below(self) -> list[list[Refinement]]:
        return self.outline.blocks(self.outline.cut, self.outline.tree.depth)

    def results(self) -> Iterator[DepthResult]:
        """The results of all jobs; the results of each depth come in tree order."""
        for found in self._results():
            cells = 0 if found.noisy is None else len(found.noisy)
            self.progress.on_depth(found.depth, cells, len(found.nodes), found.seconds)
            yield found
        self.progress.on_fraction(1.0)

    def subtree(self, root: Nodes) -> Iterator[DepthResult]:
        """The job *down* of one node of the cut: everything below, given its released count.

        A function of the root, the plan, the key and the root's own slice of the leaves: it may
        run anywhere, and again.
        """
        return self._down(root, self._place(root), self._blocks_below, self.outline.cut)

    def said(self, root: Nodes) -> Said:
        """The job *up* of one node of the cut: what its nodes say of its count."""
        steps = self._blocks_below[0]
        readers = self._readers(self._place(root), steps)
        return parents_below(self._measured(root, readers, steps)[0])

    def _place(self, root: Nodes) -> tuple[int, ...]:
        return (self.outline.cut, *(int(code[0]) for code in root.codes))

    def _results(self) -> Iterator[DepthResult]:
        outline = self.outline
        first, cut, last = outline.first, outline.cut, outline.tree.depth
        for t in range(outline.public_depth + 1):
            nodes = self.source.public(t)
            yield DepthResult(t, nodes, None)
        if outline.public_depth < 0:
            nodes = self._everything()
        if cut in (first, last):
            yield from self._down(nodes, (first,), outline.blocks(first, last), first)
        elif outline.everything:
            yield from self._up_and_down(nodes)
        else:
            for result in self._down(nodes, (first,), outline.blocks(first, cut), first):
                yield result
            yield from self._jobs(result.nodes)

    def _everything(self) -> Nodes:
        """The root, of which nothing is known yet."""
        codes = tuple(np.zeros(1, dtype=np.int32) for _ in self.outline.tree.axes)
        nothing, unknown = np.zeros(1, dtype=np.int64), np.full(1, np.inf)
        stop = np.array([len(self.source.counts.values)])
        return Nodes(codes, nothing, np.zeros(1), unknown, nothing, stop)

    def _root(
        self, root: Nodes, below: tuple[Float64, Float64] | None
    ) -> tuple[Nodes, DepthResult]:
        """The total from its measurement and what the depths below say of it; 0 or more.

        It comes with its count, and as a result, which lists it only if that is positive.
        """
        noisy, variance = self.source.root()
        estimate, known = noisy.astype(np.float64), np.full(1, variance)
        if below is not None:
            measured = None if 0 not in self.outline.measured else noisy
            estimate, known = combine(measured, variance, *below, np.array([0, 1]))
        if not np.isfinite(known).all():
            raise ReleaseError("nothing that was measured tells the total; measure a depth above")
        value = estimate[0] if self.combines or 0 not in self.outline.measured else noisy[0]
        released = np.array([max(0, round(value))], dtype=np.int64)
        root = Nodes(root.codes, released, estimate, known, root.start, root.stop)
        listed = root.taken(np.flatnonzero(released > 0))
        return root, DepthResult(0, listed, noisy if 0 in self.outline.measured else None)

    def _down(
        self, nodes: Nodes, place: tuple[int, ...], blocks: list[list[Refinement]], above: int
    ) -> Iterator[DepthResult]:
        """The job *down*: given the released counts of its roots, release everything below."""
        if above == 0 and self.outline.public_depth < 0:
            if 0 in self.outline.measured and not self.outline.everything:
                _, result = self._root(nodes, None)
                yield result
                nodes = result.nodes
            else:
                for result in self._with_root(nodes, place, blocks[0]):
                    yield result
                nodes, blocks = result.nodes, blocks[1:]
        for block in blocks:
            for result in self._block(nodes, place, block):
                yield result
                if above == self.outline.first:
                    done = (result.depth - above) / (self.outline.tree.depth - above)
                    self.progress.on_fraction(done)
            nodes = result.nodes

    def _with_root(
        self, root: Nodes, place: tuple[int, ...], steps: list[Refinement]
    ) -> Iterator[DepthResult]:
        """The first block together with a total of which it says something."""
        found = self._measured(root, self._readers(place, steps), steps)
        root, result = self._root(root, parents_below(found[0]))
        yield result
        yield from self._released(found, root)

    def _block(
        self, nodes: Nodes, place: tuple[int, ...], steps: list[Refinement]
    ) -> Iterator[DepthResult]:
        """One block below roots whose counts are released, in chunks that fit the caches."""
        if self.outline.measured.isdisjoint(step.depth for step in steps):
            for step in steps:
                nodes = only_children(nodes, step)
                yield DepthResult(step.depth, nodes, None)
            return
        readers = self._readers(place, steps)
        start = {step.depth: self._cells_before(nodes, steps[0].depth - 1, step) for step in steps}
        cells = start[steps[-1].depth]
        edges = np.arange(CHUNK_CELLS, cells[-1], CHUNK_CELLS)
        cuts = [0, *np.unique(np.searchsorted(cells, edges)).tolist(), len(nodes)]
        parts: list[list[DepthResult]] = []
        began = perf_counter()
        for i, j in pairwise(cuts):
            starts = {t: int(begin[i]) for t, begin in start.items()}
            found = self._measured(nodes.part(i, j), readers, steps, starts)
            parts.append(list(self._released(found, found[0].parents)))
        seconds = (perf_counter() - began) / len(steps)
        for depth in zip(*parts, strict=True):
            yield replace(joined(depth), seconds=seconds)

    def _cells_before(self, nodes: Nodes, above: int, step: Refinement) -> Int64:
        """How many cells of a depth lie below the nodes before each node, and below all."""
        many = descendants(self.outline.tree, above, step.depth, nodes.codes)
        return np.append(0, np.cumsum(many))

    def _readers(self, place: tuple[int, ...], steps: list[Refinement]) -> dict[int, Reader]:
        readers = {step.depth: self.source.reader(place, step.depth) for step in steps}
        return {t: reader for t, reader in readers.items() if reader is not None}

    def _measured(
        self,
        nodes: Nodes,
        readers: dict[int, Reader],
        steps: list[Refinement],
        starts: dict[int, int] | None = None,
        below: tuple[Float64, Float64] | None = None,
    ) -> list[Generation]:
        starts = dict.fromkeys(readers, 0) if starts is None else starts
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

    def _jobs(self, roots: Nodes) -> Iterator[DepthResult]:
        """One job *down* a node of the cut; of a node that was released as 0, its noise alone."""

        def run(jobs: range) -> Iterable[DepthResult]:
            each = (found for i in jobs for found in self.subtree(roots.part(i, i + 1)))
            return self.kept.down(jobs, each)

        if not len(roots):
            yield from self._nothing()
        released, finished = max(int(roots.counts.sum()), 1), 0
        runs = _runs(roots.counts)
        for jobs, results in zip(runs, self.engine.run(runs, run), strict=True):
            yield from results
            finished += int(roots.counts[jobs.start : jobs.stop].sum())
            done = finished / released
            self.progress.on_fraction((1 + done) / 2 if self.outline.everything else done)

    def _nothing(self) -> Iterator[DepthResult]:
        """Results without nodes, where no node of the cut is left."""
        tree = self.outline.tree
        for depth in range(self.outline.cut + 1, tree.depth + 1):
            noisy = np.empty(0, dtype=np.int64) if depth in self.outline.measured else None
            yield DepthResult(depth, Nodes.none(len(tree.axes)), noisy)

    def _up_and_down(self, nodes: Nodes) -> Iterator[DepthResult]:
        """A tree that is cut and measured everywhere: all jobs *up*, the top, all jobs *down*."""
        outline = self.outline
        (steps,) = outline.blocks(outline.first, outline.cut)
        roots = nodes
        for step in steps:
            start = step.family_start(roots.codes)
            roots = children(np.arange(start[-1]), start, roots, step, self.source.counts)

        def up(jobs: range) -> Said:
            return self.kept.up(jobs, lambda: _told(self.said(roots.part(i, i + 1)) for i in jobs))

        told: list[Said] = []
        runs = _runs(roots.counts)
        for jobs, found in zip(runs, self.engine.run(runs, up), strict=True):
            told.append(found)
            self.progress.on_fraction(jobs.stop / len(roots) / 2)
        estimate, variance = _told(told)
        readers = self._readers((outline.first,), steps)
        top = self._measured(nodes, readers, steps, below=(estimate, variance))
        if outline.public_depth < 0:
            nodes, result = self._root(nodes, parents_below(top[0]))
            yield result
        for result in self._released(top, nodes):
            yield result
        yield from self._jobs(_placed(result.nodes, roots))


def _runs(counts: Int64) -> list[range]:
    """Consecutive jobs in runs of about equal released counts, at most `RUNS` of them.

    Which jobs are one run depends on released counts alone, so a resumed release has the same runs.
    """
    if not len(counts):
        return []
    before = np.cumsum(counts + max(1, int(counts.sum()) // len(counts)))
    edges = np.searchsorted(before, np.linspace(0, before[-1], RUNS + 1)[1:-1], side="right")
    cuts = np.unique(np.concatenate([[0], edges, [len(counts)]])).tolist()
    return [range(*jobs) for jobs in pairwise(cuts)]


def _told(said: Iterable[Said]) -> Said:
    """What jobs say of their roots, one after the other."""
    every = [(np.empty(0), np.empty(0)), *said]
    estimate, variance = (np.concatenate(each) for each in zip(*every, strict=True))
    return estimate, variance


def _placed(survivors: Nodes, every: Nodes) -> Nodes:
    """All nodes, with what is known of the survivors among them; the others are released as 0."""
    order = {codes: i for i, codes in enumerate(zip(*every.codes, strict=True))}
    kept = np.array([order[codes] for codes in zip(*survivors.codes, strict=True)], dtype=np.int64)
    counts, estimate, variance = every.counts.copy(), every.estimate.copy(), every.variance.copy()
    counts[kept] = survivors.counts
    estimate[kept], variance[kept] = survivors.estimate, survivors.variance
    return replace(every, counts=counts, estimate=estimate, variance=variance)


def joined(parts: Sequence[DepthResult]) -> DepthResult:
    """The results of one depth from chunks or jobs that follow each other."""
    noisy = [part.noisy for part in parts if part.noisy is not None]
    nodes = Nodes.joined([part.nodes for part in parts])
    seconds = sum(part.seconds for part in parts)
    return DepthResult(parts[0].depth, nodes, _end_to_end(noisy) if noisy else None, seconds)


def _end_to_end(parts: list[Noisy]) -> Noisy:
    return parts[0] if len(parts) == 1 else cast("Noisy", np.concatenate(parts))


def gathered(results: Iterable[DepthResult]) -> tuple[dict[int, Nodes], dict[int, Noisy]]:
    """All survivors and all noisy counts by depth.

    The survivors come without their slices of the table: how many leaves they have is confidential.
    """
    nodes: dict[int, list[Nodes]] = {}
    noisy: dict[int, list[Noisy]] = {}
    for found in results:
        nodes.setdefault(found.depth, []).append(found.nodes)
        if found.noisy is not None:
            noisy.setdefault(found.depth, []).append(found.noisy)
    whole = {t: Nodes.joined(parts).without_slices() for t, parts in nodes.items()}
    return whole, {t: _end_to_end(parts) for t, parts in noisy.items()}
