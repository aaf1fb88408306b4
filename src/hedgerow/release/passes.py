"""Which pass releases a plan: down a tree, over a cube, or over running sums."""

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.jobs import Progress
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
    plan: Plan, source: Drawn | Stored, estimator: Estimator, progress: Progress | None = None
) -> AnyPass:
    """Return the pass that a plan asks for.

    Raises:
        EstimateError: the estimator is not the one for running sums.
    """
    progress = Progress() if progress is None else progress
    if not plan.is_chain and isinstance(plan.joint, PlannedSpine):
        return SpinePass(plan, source, estimator, progress=progress)
    if not plan.is_chain:
        return JointPass(plan, source, estimator, progress)
    if not isinstance(plan.measure, RunningSums):
        return Pass(Outline.of(plan), source, estimator, progress=progress)
    if not isinstance(estimator, Isotonic):
        raise EstimateError('running sums are estimated by method = "isotonic" alone')
    return SummedPass(plan, source, estimator, progress)
