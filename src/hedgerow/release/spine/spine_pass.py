"""The pass along a spine: jobs up, the top, jobs down.

1. *Up*: each job draws the noise of its part of the spine and says what all of it tells of the
   job's roots (`hedgerow.estimate.spine.model`).
2. *The top*, down to the cut, is estimated and settled from its own noisy counts and what the jobs
   told.
3. *Down*: each job draws the same noise again, and from its roots' estimates and settled counts
   estimates and settles its part. Every cuboid is the sum of the same cells, so all add up.

What a job holds is its part alone; noise is drawn twice, which takes less than to store it. A job
that is done again draws the same noise: its stream's place is the cuboid's levels and the first
root (`hedgerow.release.descent.source.Drawn`).
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from time import perf_counter
from typing import cast

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.spine.part import Part
from hedgerow.limits import LARGEST_REAL_COUNT
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.jobs import (
    Engine,
    JobCache,
    LocalEngine,
    LocalJobs,
    NoCache,
    Progress,
    Told,
)
from hedgerow.release.descent.layouts import SpineLeaves, Stretch, leaves_between
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Found
from hedgerow.release.descent.source import Source
from hedgerow.tables.counts import Counts

Tables = dict[int, Float64]


@dataclass(frozen=True, eq=False)
class Above:
    """What the top says of the nodes of the cut: their estimates and their settled counts.

    Attributes:
        estimates: float64 (detail cells of all roots), records.
        counts: int64 (detail cells of all roots), records.
    """

    estimates: Float64
    counts: Int64


def spine_of(plan: Plan) -> PlannedSpine:
    """Return what a plan decides along its spine, or raise a ReleaseError."""
    if not isinstance(plan.design, PlannedSpine):
        raise ReleaseError(
            "sums by columns of attributes need a release along a spine: attribute = true for the "
            'axes beside it, and cuboids = "cube" or a list that the plan says goes along it'
        )
    return plan.design


@dataclass(frozen=True, eq=False)
class SpinePass:
    """One run of the pass.

    Attributes:
        plan: what to measure.
        source: the table and the bits, or noisy counts that were written down.
        estimator: named in the manifest; counts are settled as the model says.
        engine: who runs the jobs.
        progress: callbacks.
        cache: where the work of finished jobs is kept.
    """

    plan: Plan
    source: Source
    estimator: Estimator
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Progress)
    cache: JobCache = field(default_factory=NoCache)

    @cached_property
    def joint(self) -> PlannedSpine:
        """What the plan decides."""
        return spine_of(self.plan)

    def results(self) -> Iterator[Found]:
        """Yield every cuboid's counts and noisy counts: the top, then job by job in order."""
        told = self._told()
        above = yield from self._from_top(told)
        yield from self._from_jobs(above)
        self.progress.on_fraction(1.0)

    def estimates_at(self, level: int) -> Iterator[tuple[range, Float64]]:
        """Yield the estimates of a level of the spine, some nodes after the other.

        Returns:
            Which nodes, and float64 (their cells, detail layout), records.
        """
        joint, model = self.joint, self.joint.model
        told = self._told()
        top, estimates = joint.top, self._top_estimates(told)
        if level <= joint.cut:
            yield model.support.nodes(top, level), estimates[level]
            return
        for part in joint.jobs:
            noisy = as_floats(self._drawn(part))
            upward, above = model.up(part, noisy), estimates[joint.cut][self._roots(part)]
            yield (
                model.support.nodes(part, level),
                model.estimates(part, upward, above, None)[level],
            )

    def _top_estimates(self, told: Float64) -> Tables:
        joint, model, part = self.joint, self.joint.model, self.joint.top
        noisy = as_floats(self._drawn(part))
        upward, total = model.up(part, noisy, told if joint.jobs else None), self._total()
        return model.estimates(part, upward, None, None if total is None else float(total))

    def _roots(self, part: Part) -> slice:
        """Return where the cells of a job's roots lie among those of all nodes of the cut."""
        support = self.joint.model.support
        rows, start = support.rows(part.root, part.nodes), support.cell_start(part.root)
        return slice(int(start[rows.start]), int(start[rows.stop]))

    # --- up ---------------------------------------------------------------------------------------

    @property
    def _jobs(self) -> tuple[LocalJobs, Int64]:
        """Who does the jobs, and their weights."""
        return LocalJobs(self.engine, self.cache), np.ones(len(self.joint.jobs), dtype=np.int64)

    def _told(self) -> Float64:
        """Return what all jobs tell of their roots: float64 (detail cells of the cut's nodes)."""
        parts, (jobs, weights) = self.joint.jobs, self._jobs
        (told,) = jobs.up(
            weights,
            lambda i: self.told(parts[i]),
            1,
            lambda done: self.progress.on_fraction(0.4 * done),
        )
        return told

    def told(self, part: Part) -> Told:
        """Return what one job tells of its roots: an array."""
        return (self.joint.model.up(part, as_floats(self._drawn(part))).told,)

    # --- the top ----------------------------------------------------------------------------------

    def _from_top(self, told: Float64) -> Generator[Found, None, Above]:
        """Yield the results of the top; return what is below it given."""
        joint, model, part = self.joint, self.joint.model, self.joint.top
        noisy = self._drawn(part)
        upward = model.up(part, as_floats(noisy), told if joint.jobs else None)
        total = self._total()
        known = None if total is None else float(total)
        estimates = model.estimates(part, upward, None, known)
        counts = model.settle(part, upward, None, total)
        yield from self._found(part, noisy, estimates, counts)
        self.progress.on_fraction(0.45)
        return Above(estimates[joint.cut], counts[joint.cut])

    def _total(self) -> int | None:
        """Return the number of records where it is public."""
        if self.plan.public is None:
            return None
        return min(int(self.source.exact(self.plan.public)[0]), LARGEST_REAL_COUNT)

    # --- down -------------------------------------------------------------------------------------

    def _from_jobs(self, above: Above) -> Iterator[Found]:
        """Return the results of all jobs, in order."""
        parts, (jobs, weights) = self.joint.jobs, self._jobs
        return jobs.down(
            weights,
            lambda i: self.released(parts[i], above),
            lambda done: self.progress.on_fraction(0.45 + 0.55 * done),
        )

    def released(self, part: Part, above: Above) -> Iterator[Found]:
        """Yield the results of one job, given what is above it."""
        model, here = self.joint.model, self._roots(part)
        noisy = self._drawn(part)
        upward = model.up(part, as_floats(noisy))
        estimates = model.estimates(part, upward, above.estimates[here], None)
        counts = model.settle(part, upward, above.counts[here], None)
        yield from self._found(part, noisy, estimates, counts)

    # --- both -------------------------------------------------------------------------------------

    def _drawn(self, part: Part) -> dict[Levels, Int64]:
        """Return the noisy counts of the measured cuboids of a part."""
        joint, support, found = self.joint, self.joint.model.support, dict[Levels, Int64]()
        ends = support.nodes(part, joint.shape.axes[0].depth)

        @cache
        def leaves(counts: Counts) -> SpineLeaves:
            return leaves_between(counts, joint.detail_of, ends.start, ends.stop)

        for cuboid in joint.noise:
            if part.root < cuboid[0] <= part.last:
                nodes, above = support.nodes(part, cuboid[0]), joint.ancestors(cuboid[0])
                first = joint.start(cuboid, nodes.start)
                layout = Stretch(joint.cells(cuboid), nodes, first, above, leaves)
                noisy = self.source.noisy(joint.levels(cuboid), layout, joint.job_of(part))
                found[cuboid] = cast("Int64", noisy)
                self.progress.on_cells(len(noisy))
        return found

    def _found(
        self, part: Part, noisy: dict[Levels, Int64], estimates: Tables, counts: dict[int, Int64]
    ) -> Iterator[Found]:
        """Yield what is released of each cuboid of a part."""
        joint, plan = self.joint, self.plan
        again: dict[Levels, Nodes] = {}
        for levels in plan.levels:
            cuboid = joint.shape.given(levels)
            if not part.root < cuboid[0] <= part.last:
                continue
            began = perf_counter()
            source = plan.repeats.get(levels, levels)
            if source not in again:
                again[source] = self._nodes(part, cuboid, estimates[cuboid[0]], counts[cuboid[0]])
            own = noisy.get(cuboid) if source == levels else None
            seconds = perf_counter() - began
            found = Found(levels, again[source], own, seconds)
            cells = 0 if own is None else len(own)
            self.progress.on_cuboid(plan.tree.name_of(levels), cells, len(found.nodes), seconds)
            yield found

    def _nodes(self, part: Part, cuboid: Levels, estimates: Float64, counts: Int64) -> Nodes:
        """Return the cells with a positive count, row by row, with their estimates."""
        joint, nodes = self.joint, self.joint.model.support.nodes(part, cuboid[0])
        cells = joint.cells(cuboid)
        sums = cells.sums(counts, nodes)
        kept = np.flatnonzero(sums > 0)
        node, number = cells.located(kept, nodes)
        beside, _ = joint.attribute_cells(cuboid)
        codes = (node.astype(np.int32), *(code[number] for code in beside))
        values = sums[kept]
        if self.plan.is_public(joint.levels(cuboid)):
            return Nodes.exact(codes, values)
        if not joint.is_row_by_row(cuboid):
            order = np.lexsort(codes[::-1])
            codes, values, kept = tuple(c[order] for c in codes), values[order], kept[order]
        told = cells.sums(estimates, nodes)[kept]
        return Nodes(codes, values, told, joint.variances_at(cuboid, codes))


def as_floats(drawn: dict[Levels, Int64]) -> dict[Levels, Float64]:
    """Return noisy counts as floats."""
    return {cuboid: noisy.astype(np.float64) for cuboid, noisy in drawn.items()}
