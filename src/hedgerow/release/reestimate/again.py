"""Estimating again from noisy counts that were written down: no table, no privacy cost."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.depths import Measured, RunningSums, Summed, Survivors, Unmeasured
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.results import gathered
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.descent.steps import descendants
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.directory.measurements import Shape, read_noisy
from hedgerow.release.distribution.running_sums import SummedPass, pass_of
from hedgerow.release.refusals import check_combines


def estimated_again(
    folder: Path, estimator: Estimator, plan: Plan, released: Mapping[int, Nodes]
) -> dict[int, Nodes]:
    """The survivors of all depths, from the noisy counts of a release directory.

    Args:
        folder: the release directory.
        estimator: any that suits the plan.
        plan: of the release.
        released: at least the public depths' nodes.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the plan's nodes.
        EstimateError: the estimator does not suit the plan, or the noisy counts no estimator.
    """
    check_combines(estimator, plan)
    stored = read_stored(folder, plan, released)
    if isinstance(plan.measure, RunningSums):
        return _all_used(stored, pass_of(plan, stored, estimator))
    return estimated(stored, replace(Outline.of(plan), cut=max(plan.public_depth, 0)), estimator)


def read_stored(folder: Path, plan: Plan, released: Mapping[int, Nodes]) -> Stored:
    """The noisy counts of a release directory, with its public depths' nodes."""
    measured = {
        t: what for t, what in enumerate(plan.depths) if isinstance(what, Measured | Summed)
    }
    return Stored(
        plan.tree,
        {t: read_noisy(folder, _measurable(plan, t, released)) for t in measured},
        {t: what.mechanism.noise_variance for t, what in measured.items()},
        {t: released[t] for t in range(plan.public_depth + 1)},
    )


def _measurable(plan: Plan, depth: int, released: Mapping[int, Nodes]) -> Shape:
    """What the noisy counts of a depth may be: below survivors no more than the released have."""
    shape = Shape.of(plan.tree, depth)
    above = depth - 1
    while above > 0 and isinstance(plan.depths[above], Unmeasured):
        above -= 1
    if isinstance(plan.measure, Survivors) and above in released:
        most = descendants(plan.tree, above, depth, released[above].codes).sum()
        shape = replace(shape, cells=min(shape.cells, int(most)))
    return shape


def estimated(stored: Stored, outline: Outline, estimator: Estimator) -> dict[int, Nodes]:
    """The survivors of all depths, from noisy counts in memory.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the outline's nodes.
    """
    return _all_used(stored, Pass(outline, stored, estimator))


def _all_used(stored: Stored, run: Pass | SummedPass) -> dict[int, Nodes]:
    """The nodes of a pass that reads stored noisy counts; it must read them all."""
    nodes, noisy = gathered(run.results())
    for t, values in stored.noisy.items():
        if len(noisy.get(t, ())) != len(values):
            raise uneven(t)
    return nodes
