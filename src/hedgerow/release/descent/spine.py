"""The pass along a spine: jobs up, the top, jobs down.

1. *Up*: each job draws the noise of its part of the spine and says what all of it tells of the
   job's roots (`hedgerow.estimate.spine.model`).
2. *The top*, down to the cut, is estimated and settled from its own noisy counts and what the jobs
   told.
3. *Down*: each job draws the same noise again, and from its roots' estimates and settled counts
   estimates and settles its part. Every cuboid is the sum of the same cells, so all add up.

What a job holds is its part alone; noise is drawn twice, which takes less than to store it. A job
that is done again draws the same noise: its stream's place is the cuboid's levels and the first
root (`hedgerow.release.descent.source.Drawn`). Of a cube that could be held as tables the stream is
the cuboid's, as there: a job draws from it at the number of its first cell. Parts are consecutive
nodes, and the cells of a part those beside its nodes, so jobs' stretches of a stream do not meet.
"""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise, starmap
from time import perf_counter
from typing import cast

import numpy as np

from hedgerow.arrays import (
    ByLevel,
    Float64,
    Int64,
    IntTables,
    Levels,
    Tables,
    float64,
    int32,
    row_by_row,
    some_of,
)
from hedgerow.estimate.spine.model import Upward
from hedgerow.estimate.spine.support import Part
from hedgerow.limits import LARGEST_REAL_COUNT
from hedgerow.plan.joint import Joint
from hedgerow.plan.spine import Spine
from hedgerow.release.descent.jobs import LocalEngine, PlannedFlow, Told, Top
from hedgerow.release.descent.layouts import SpineLeaves, Stretch, leaves_between
from hedgerow.release.descent.nodes import Found, JobRoots, Nodes
from hedgerow.release.descent.source import Stored
from hedgerow.tables.counts import Counts


@dataclass(frozen=True, eq=False)
class SpineJobs:
    """Parts below the cut and, on the way down, what the top says of their roots.

    Attributes:
        parts: one after the other.
        above: of each the estimates and the settled counts of its roots' detail cells: float64 and
            int64 (detail cells), records; nothing on the way up.
    """

    parts: tuple[Part, ...]
    above: tuple[tuple[Float64, Int64], ...] = ()

    @property
    def weights(self) -> Int64:
        """About how much work each is: parts are of about one size."""
        return np.ones(len(self.parts), dtype=np.int64)

    def take(self, which: slice) -> "SpineJobs":
        """Return some of the jobs."""
        return SpineJobs(self.parts[which], self.above[which])


@dataclass(frozen=True, eq=False)
class SpineFlow(PlannedFlow[Joint]):
    """What cuboids along a spine do with noisy counts."""

    told = 1

    @property
    def spine(self) -> Spine:
        """How cuboids go along the first axis."""
        return cast("Spine", self.design.spine)

    def estimates_at(
        self, levels: Iterable[int], from_below: Told
    ) -> Iterator[tuple[int, range, Float64]]:
        """Yield the estimates of levels of the spine, some nodes after the other.

        Args:
            levels: of the spine.
            from_below: what all jobs tell *up*.

        Returns:
            The level, which nodes, and float64 (their cells, detail layout), records.
        """
        spine = self.spine
        wanted = sorted({*levels})
        top = self._estimated(spine.top, from_below)
        support = spine.model.support
        parts = spine.jobs if wanted and wanted[-1] > spine.cut else ()
        below = (
            (part, self._estimated(part, (), top[spine.cut][here]))
            for part, here in zip(parts, self._cells_of_jobs, strict=False)
        )
        for part, estimates in chain([(spine.top, top)], below):
            for level in wanted:
                if part.root < level <= part.last:
                    yield level, support.nodes(part, level), estimates[level]

    @cached_property
    def _cells_of_jobs(self) -> list[slice]:
        """The detail cells of each job's roots."""
        support = self.spine.model.support
        cut = self.spine.cut
        firsts = (part.nodes.start for part in self.spine.jobs)
        nodes = [*firsts, self.spine.shape.axes[0].sizes[cut]]
        return list(starmap(slice, pairwise(support.cell[cut][support.start[cut][nodes]].tolist())))

    def jobs_up(self) -> SpineJobs | None:
        """Return all parts below the cut."""
        parts = self.spine.jobs
        if isinstance(self.source, Stored):
            dict(self.source.measured)  # read once, before threads ask for it
        elif self.source.counts is not None:
            self._table  # noqa: B018 - ordered once, likewise
        return SpineJobs(parts) if parts else None

    def roots(self, jobs: SpineJobs) -> JobRoots:
        """Return the nodes that jobs hang from: consecutive ones of the cut."""
        levels = (self.spine.level_of_cut, *(0 for _ in self.tree.axes[1:]))
        nodes = np.arange(jobs.parts[0].nodes.start, jobs.parts[-1].nodes.stop, dtype=np.int32)
        first = np.array([part.nodes.start for part in jobs.parts]) - nodes[0]
        return JobRoots(levels, (nodes, *(np.zeros_like(nodes) for _ in levels[1:])), first)

    def up(self, job: SpineJobs) -> Told:
        """Return what one job tells of its roots: an array."""
        return (self._upward(job.parts[0]).root_sums,)

    def top(self, from_below: Told) -> Top:
        """Yield what is released down to the cut; return what is below it, given that."""
        spine = self.spine
        estimates, counts = yield from self._released(spine.top, from_below, None, None)
        if not spine.jobs:
            return None
        above_cut = estimates[spine.cut]
        settled = counts[spine.cut]
        above = tuple((above_cut[here], settled[here]) for here in self._cells_of_jobs)
        return SpineJobs(spine.jobs, above)

    def down(self, job: SpineJobs) -> Iterator[Found]:
        """Return the results of one job, given what is above it."""
        (part,) = job.parts
        (above,) = job.above
        return self._released(part, (), *above)

    def _upward(self, part: Part, from_below: Told = ()) -> Upward:
        """Return what a part's noisy counts say; the top's with what all jobs told."""
        return self.spine.model.up(part, as_floats(self._drawn(part)), *from_below)

    def _estimated(self, part: Part, from_below: Told, above: Float64 | None = None) -> ByLevel:
        """Return the estimates of a part, given those of its roots."""
        upward = self._upward(part, from_below)
        return self.spine.model.estimates(part, upward, above, self._total(part))

    def _released(
        self, part: Part, from_below: Told, above: Float64 | None, settled: Int64 | None
    ) -> Generator[Found, None, tuple[ByLevel, dict[int, Int64]]]:
        """Yield what is released of a part; return its estimates and counts.

        Args:
            part: of the spine.
            from_below: what all jobs tell *up*; nothing for a job.
            above: the estimates of its roots; None for the top.
            settled: their counts; likewise.
        """
        model = self.spine.model
        noisy = self._drawn(part)
        total = self._total(part)
        upward = model.up(part, as_floats(noisy), *from_below)
        estimates = model.estimates(part, upward, above, total)
        counts = model.settle(part, upward, settled, total)

        def found(levels: Levels) -> Found:
            began = perf_counter()
            cuboid = self.design.shape.given(levels)
            nodes = self._nodes(part, cuboid, estimates[cuboid[0]], counts[cuboid[0]])
            return Found(levels, nodes, noisy.get(cuboid), perf_counter() - began)

        given = self.design.shape.axes[0].given
        here = (k for k in self.plan.levels if part.root < given[k[0]] <= part.last)
        yield from self.each_found(here, found)
        return estimates, counts

    def _total(self, part: Part) -> int | None:
        """Return the number of records where it is public and a part is the top."""
        if self.plan.public is None or not part.is_top:
            return None
        return min(int(self.source.exact(self.plan.public)[0]), LARGEST_REAL_COUNT)

    @cached_property
    def _table(self) -> Counts:
        """The confidential table in the order of the spine."""
        return cast("Counts", self.source.counts).by_first_axis()

    def _drawn(self, part: Part) -> IntTables:
        """Return the noisy counts of a part's measured cuboids; a large top's come from threads."""
        joint = self.design
        spine = self.spine
        support = spine.model.support
        job = spine.job_of(part)
        ends = support.nodes(part, spine.shape.axes[0].depth)

        @cache
        def leaves(_counts: Counts) -> SpineLeaves:
            return leaves_between(self._table, spine.detail_of, ends.start, ends.stop)

        def drawn(cuboid: Levels) -> Int64:
            nodes = support.nodes(part, cuboid[0])
            above = spine.ancestors(cuboid[0])
            first = spine.start(cuboid, nodes.start)
            layout = Stretch(spine.cells(cuboid), nodes, first, above, leaves)
            start = 0 if job else first  # in the stream of the job, or of the whole cuboid
            noisy = self.source.noisy(joint.levels(cuboid), layout, job, start)
            self.progress.on_cells(len(noisy))
            return cast("Int64", noisy)

        wanted = [cuboid for cuboid in joint.noise if part.root < cuboid[0] <= part.last]
        if self.source.counts is not None:
            leaves(self.source.counts)  # once, before threads ask for them
        threads = part.is_top and len(spine.jobs) > 0
        every = LocalEngine().run(wanted, drawn) if threads else map(drawn, wanted)
        return dict(zip(wanted, every, strict=True))

    def _nodes(self, part: Part, cuboid: Levels, estimates: Float64, counts: Int64) -> Nodes:
        """Return the cells with a positive count, row by row, with their estimates."""
        joint = self.design
        spine = self.spine
        nodes = spine.model.support.nodes(part, cuboid[0])
        cells = spine.cells(cuboid)
        sums = cells.sums(counts, nodes)
        kept = np.flatnonzero(sums > 0)
        node, number = cells.located(kept, nodes)
        across, _ = spine.attribute_cells(cuboid)
        codes = (int32(node), *some_of(across, number))
        values = sums[kept]
        if self.plan.is_public(joint.levels(cuboid)):
            return Nodes.exact(codes, values)
        if not spine.is_row_by_row(cuboid):
            codes, order = row_by_row(codes)
            values, kept = values[order], kept[order]
        estimate = cells.sums(estimates, nodes)[kept]
        return Nodes(codes, values, estimate, joint.variances_at(cuboid, codes))


def as_floats(drawn: IntTables) -> Tables:
    """Return noisy counts as floats."""
    return {cuboid: float64(noisy) for cuboid, noisy in drawn.items()}
