"""Which pass releases a plan: down a tree, over a cube, along a spine, or over running sums."""

from dataclasses import replace

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.plan.chain import PlannedSums
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.descent.jobs import JobCache, NoCache, Progress
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.source import Drawn, Stored
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.distribution.running_sums import SummedPass
from hedgerow.release.joint.joint_pass import JointPass
from hedgerow.release.spine.spine_pass import SpinePass

AnyPass = Pass | JointPass | SpinePass | SummedPass

ESTIMATION = 1
"""The version of the estimation: of how released counts are made from noisy ones.

Raise it by one with each change, in whatever room, after which a plan has other released counts for
the same noise (counts that the oracle records anew: ``docs/developers/oracle.md``), and add a line
to ``CHANGELOG.md``. Manifests name it: counts of another version are "not verified" by `check`,
where a number that was not raised would call them forged.
"""


def pass_of(
    plan: Plan,
    source: Drawn | Stored,
    estimator: Estimator,
    progress: Progress | None = None,
    *,
    cache: JobCache | None = None,
    in_jobs: bool = True,
) -> AnyPass:
    """Return the pass that a plan asks for.

    Args:
        plan: what to release.
        source: the table and the bits, or noisy counts that were written down.
        estimator: of the release.
        progress: whom to tell.
        cache: where the work of finished jobs is kept, if anywhere.
        in_jobs: whether a chain is cut into jobs, as where its table is read part by part.

    Raises:
        EstimateError: the estimator is not the one for running sums.
    """
    progress = Progress() if progress is None else progress
    kept = NoCache() if cache is None else cache
    match plan.design:
        case PlannedSpine():
            return SpinePass(plan, source, estimator, progress=progress, cache=kept)
        case PlannedTables():
            return JointPass(plan, source, estimator, progress)
        case PlannedSums():
            if not isinstance(estimator, Isotonic):
                raise EstimateError('running sums are estimated by method = "isotonic" alone')
            return SummedPass(plan, source, estimator, progress)
    outline = Outline.of(plan)
    outline = outline if in_jobs else replace(outline, cut=outline.first)
    return Pass(outline, source, estimator, progress=progress, cache=kept)
