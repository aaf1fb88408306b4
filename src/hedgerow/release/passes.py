"""The one pass: jobs up, the top, jobs down; and which flow a plan's workload has."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.plan.chain import PlannedChain, PlannedSums
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.jobs import (
    Flow,
    LocalJobs,
    OnFraction,
    Progress,
    Runner,
    Told,
    joined,
)
from hedgerow.release.descent.nodes import Found, NoisyCuboid
from hedgerow.release.descent.source import Source
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.descent.sums import SumsFlow
from hedgerow.release.descent.tables import TablesFlow

ESTIMATION = 5
"""The version of the estimation: of how released counts are made from noisy ones.

Raise it by one with each change, in whatever room, after which a plan has other released counts for
the same noise (counts that the oracle records anew: ``docs/developers/oracle.md``), and add a line
to ``CHANGELOG.md``. Manifests name it: counts of another version are "not verified" by `check`,
where a number that was not raised would call them forged.
"""
UP = 0.45
"""The share of the pass that is done once all jobs *up* and the top are."""


@dataclass(frozen=True, eq=False)
class Pass:
    """One run of a flow, whoever does its jobs.

    Attributes:
        flow: what a workload does with noisy counts.
        runner: who does the jobs.
    """

    flow: Flow
    runner: Runner = field(default_factory=LocalJobs)

    def results(self) -> Iterator[Found | NoisyCuboid]:
        """Yield the results of the top, then of all jobs; those of a cuboid come in their order."""
        for result in self._results():
            cells = 0 if result.noisy is None else len(result.noisy)
            kept = len(result.nodes) if isinstance(result, Found) else 0
            name = self.flow.tree.name_of(result.levels)
            self.flow.progress.on_cuboid(name, cells, kept, result.seconds)
            yield result
        self.flow.progress.on_fraction(1.0)

    def _results(self) -> Iterator[Found | NoisyCuboid]:
        begun = UP if self.flow.jobs_up() is not None else 0.0
        down = yield from self.flow.top(self.told())
        if down is not None and len(down.weights) > 0:
            yield from self.runner.down(self.flow, down, self._share(begun, 1.0))

    def told(self) -> Told:
        """Return what all jobs *up* tell of their roots."""
        jobs = self.flow.jobs_up()
        if jobs is None:
            return joined((), self.flow.told)
        return self.runner.up(self.flow, jobs, self._share(0.0, UP))

    def _share(self, begun: float, end: float) -> OnFraction:
        """Return whom jobs tell their finished share, of a share of the pass."""
        return lambda done: self.flow.progress.on_fraction(begun + (end - begun) * done)


def pass_of(
    plan: Plan,
    source: Source,
    estimator: Estimator,
    progress: Progress | None = None,
    runner: Runner | None = None,
) -> Pass:
    """Return the pass of a plan, with the flow of its workload.

    A chain whose noisy counts are read back is not cut: they stand depth by depth, not job by job.

    Args:
        plan: what to release.
        source: the table and the bits, or noisy counts that were written down.
        estimator: of the release.
        progress: whom to tell.
        runner: who does the jobs.

    Raises:
        EstimateError: the estimator cannot use what is measured.
    """
    progress, design = Progress() if progress is None else progress, plan.design
    flow: Flow
    if isinstance(design, PlannedSums):
        design.check_estimator(estimator)
        flow = SumsFlow(plan, source, progress, cast("Isotonic", estimator))
    elif isinstance(design, PlannedChain):
        outline = design.outline
        outline = outline.uncut if source.counts is None else outline
        flow = ChainFlow(outline, source, estimator, progress)
    else:
        flow = (TablesFlow if design.along is None else SpineFlow)(plan, source, progress)
    return Pass(flow, LocalJobs() if runner is None else runner)
