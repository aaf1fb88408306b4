"""Estimating again from noisy counts that were written down: no table, no privacy cost."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.depths import All, Measured
from hedgerow.plan.plan import Plan
from hedgerow.release.measurements import read_noisy
from hedgerow.release.source import Stored, uneven
from hedgerow.release.steps import Nodes
from hedgerow.release.topdown import Outline, Pass, gathered
from hedgerow.tables.order import Codes

Int64 = NDArray[np.int64]


def check_combines(estimator: Estimator, plan: Plan) -> None:
    """Refuse to combine the depths of a pruned tree.

    Raises:
        EstimateError: the estimator wants to, and the plan measures survivors alone.
    """
    if estimator.combine and not isinstance(plan.measure, All):
        raise EstimateError(
            f"{estimator.name} with combine = true needs a plan that measures all nodes "
            '(measure = "all"): what is measured below survivors is biased by their survival'
        )


def listed_nodes(codes: Codes, counts: Int64) -> Nodes:
    """Nodes as a release lists them: exact where they are public, and without a table below."""
    nothing = np.zeros(len(counts), dtype=np.int64)
    return Nodes(codes, counts, counts.astype(float), np.zeros(len(counts)), nothing, nothing)


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
    return estimated(stored, replace(Outline.of(plan), cut=max(plan.public_depth, 0)), estimator)


def read_stored(folder: Path, plan: Plan, released: Mapping[int, Nodes]) -> Stored:
    """The noisy counts of a release directory, with its public depths' nodes."""
    measured = {t: what for t, what in enumerate(plan.depths) if isinstance(what, Measured)}
    return Stored(
        plan.tree,
        {t: read_noisy(folder, t) for t in measured},
        {t: what.mechanism.noise_variance for t, what in measured.items()},
        {t: released[t] for t in range(plan.public_depth + 1)},
    )


def estimated(stored: Stored, outline: Outline, estimator: Estimator) -> dict[int, Nodes]:
    """The survivors of all depths, from noisy counts in memory.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the outline's nodes.
    """
    nodes, noisy = gathered(Pass(outline, stored, estimator).results())
    for t, values in stored.noisy.items():
        if len(noisy.get(t, ())) != len(values):
            raise uneven(t)
    return nodes
