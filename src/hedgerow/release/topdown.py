"""The top-down pass: measure the children of every survivor, estimate, drop zeros, descend.

Source: InfTDA, Boninsegna & Silvestri, Algorithms 1 and 3. Privacy: at each measured depth every
measured count is its true count plus one draw of the depth's noise; the counts of one depth are
those of disjoint sets of records, so a unit changes them by at most the plan's shifts. Which nodes
are measured depends on released counts of coarser depths alone, so the depths compose adaptively
and the pass satisfies the plan's guarantee; everything else is post-processing.

The tree is cut (`cut_depth`) into subtree jobs. The noise of a job at a depth is one keyed stream
under the place of the job, and the i-th cell that the job measures there takes the i-th draw. Which
cells those are follows from the same stream's coarser depths, so whoever runs a job again, on
whichever machine and in whichever chunks, draws the same noise for the same cell.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from hedgerow.engines.local import LocalEngine
from hedgerow.estimate.estimator import Estimator
from hedgerow.noise.bits import Bits, Stream
from hedgerow.plan.depths import Measured
from hedgerow.plan.plan import Plan
from hedgerow.release.steps import (
    Int64,
    Nodes,
    Refinement,
    add_true_counts,
    only_children,
    survivors,
    true_nodes,
)
from hedgerow.tables.counts import Counts

CHUNK_CELLS = 1 << 21
UNCUT_LEAVES = 1 << 24
MIN_JOBS = 256


@dataclass(frozen=True, slots=True)
class DepthResult:
    """What a job found at one depth, in tree order.

    Attributes:
        depth: the depth.
        nodes: the survivors with their released counts.
        noisy: int64 (measured cells): the noisy counts, families of surviving parents end to end;
            None where nothing was measured.
    """

    depth: int
    nodes: Nodes
    noisy: Int64 | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Whom to tell how far the pass is.

    Attributes:
        on_cells: called with the number of cells just measured.
        on_fraction: called with the finished share of the pass, 0 to 1.
    """

    on_cells: Callable[[int], None] = lambda _cells: None
    on_fraction: Callable[[float], None] = lambda _fraction: None


def cut_depth(plan: Plan) -> int:
    """Where the tree is cut into jobs: public, and fixed by the plan alone.

    Small trees are one job. Others are cut at the first depth with at least 256 possible nodes
    at or below the public ones: jobs enough for any number of workers, and few enough to be cheap.
    """
    tree, first = plan.tree, max(plan.public_depth, 0)
    if tree.leaves <= UNCUT_LEAVES:
        return first
    wide = (t for t in range(first, tree.depth) if tree.nodes(t) >= MIN_JOBS)
    return next(wide, first)


@dataclass(frozen=True, eq=False)
class Pass:
    """One run of the pass over a table.

    Attributes:
        counts: the confidential table, over the plan's tree.
        plan: what to measure with which noise.
        estimator: from noisy counts and parents' counts to consistent counts.
        bits: where random words come from: a release key, or a seed in simulation.
        engine: who runs the jobs.
        progress: whom to tell.
    """

    counts: Counts
    plan: Plan
    estimator: Estimator
    bits: Bits
    engine: LocalEngine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Progress)

    def results(self) -> Iterator[DepthResult]:
        """The results of all jobs; the results of each depth come in tree order."""
        tree = self.plan.tree
        steps = [Refinement.of(tree, t) for t in range(1, tree.depth + 1)]
        first, cut = max(self.plan.public_depth, 0), cut_depth(self.plan)
        for result in self._undivided():
            yield result
        nodes = result.nodes
        upper, lower = steps[first:cut], steps[cut:]
        for result in self._down(nodes, (first,), upper or lower):
            yield result
            self.progress.on_fraction(0.0 if upper else (result.depth - first) / len(lower))
            nodes = result.nodes
        if upper and lower:
            yield from self._jobs(nodes, cut, lower)
        self.progress.on_fraction(1.0)

    def _undivided(self) -> Iterator[DepthResult]:
        """The public depths, or the measured total where even that is not public."""
        for t in range(self.plan.public_depth + 1):
            yield DepthResult(t, true_nodes(self.counts, t), None)
        root = self.plan.depths[0]
        if isinstance(root, Measured):
            noisy = np.empty(1, dtype=np.int64)
            root.mechanism.draw(self.bits.stream(0, 0), 0, noisy)
            noisy += self.counts.total
            yield DepthResult(0, self._root(max(0, int(noisy[0]))), noisy)

    def _root(self, released: int) -> Nodes:
        survives = min(1, released)
        everything = np.full(survives, released, dtype=np.int64)
        codes = tuple(np.zeros(survives, dtype=np.int32) for _ in self.plan.tree.axes)
        stop = np.full(survives, len(self.counts.values), dtype=np.int64)
        return Nodes(codes, everything, np.zeros(survives, dtype=np.int64), stop)

    def _jobs(self, roots: Nodes, cut: int, lower: list[Refinement]) -> Iterator[DepthResult]:
        """One job a surviving node of the cut."""

        def run(i: int) -> list[DepthResult]:
            place = (cut, *(int(code[i]) for code in roots.codes))
            return list(self._down(roots.part(i, i + 1), place, lower))

        released, finished = int(roots.counts.sum()), 0
        for i, results in enumerate(self.engine.run(range(len(roots)), run)):
            yield from results
            finished += int(roots.counts[i])
            self.progress.on_fraction(finished / released)

    def _down(
        self, nodes: Nodes, place: tuple[int, ...], steps: list[Refinement]
    ) -> Iterator[DepthResult]:
        """The job *down*: given the released counts of its roots, release everything below."""
        for step in steps:
            what = self.plan.depths[step.depth]
            if isinstance(what, Measured):
                stream = self.bits.stream(*place, step.depth)
                nodes, noisy = self._measure(nodes, step, what, stream)
                yield DepthResult(step.depth, nodes, noisy)
            else:
                nodes = only_children(nodes, step)
                yield DepthResult(step.depth, nodes, None)

    def _measure(
        self, parents: Nodes, step: Refinement, what: Measured, stream: Stream
    ) -> tuple[Nodes, Int64]:
        """The survivors among the children of ``parents``, and all their noisy counts."""
        family_start = step.family_start(parents.codes)
        cells = int(family_start[-1])
        noisy = np.empty(cells, dtype=np.int64)
        edges = np.arange(CHUNK_CELLS, cells, CHUNK_CELLS)
        cuts = [0, *np.unique(np.searchsorted(family_start, edges)).tolist(), len(parents)]
        found = [Nodes.none(len(parents.codes))]
        for first, last in pairwise(cuts):
            start, stop = family_start[first], family_start[last]
            part, family = parents.part(first, last), family_start[first : last + 1] - start
            chunk = noisy[start:stop]
            what.mechanism.draw(stream, int(start), chunk)
            add_true_counts(chunk, family, part, step, self.counts)
            released = self.estimator.project(chunk, family, part.counts)
            found.append(survivors(released, family, part, step, self.counts))
            self.progress.on_cells(len(chunk))
        return Nodes.joined(found), noisy
