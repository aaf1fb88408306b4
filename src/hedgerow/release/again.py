"""Estimating again from noisy counts that were written down: no table, no privacy cost."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.known import LARGEST_REAL_COUNT
from hedgerow.estimate.nearest_cdf import Isotonic
from hedgerow.estimate.sparse import Sparse
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.plan.depths import All, Measured, RunningSums, Summed, Unmeasured
from hedgerow.plan.plan import Plan
from hedgerow.release.measurements import read_noisy
from hedgerow.release.outline import Outline
from hedgerow.release.source import Stored, uneven
from hedgerow.release.steps import Nodes
from hedgerow.release.summed import SummedPass, pass_of
from hedgerow.release.topdown import Pass, gathered
from hedgerow.tables.order import Codes

Int64 = NDArray[np.int64]

LARGEST_NOISE = 1 << 30
"""Standard deviation or scale of noise (records) that real-valued estimates hold for certain."""


def check_combines(estimator: Estimator, plan: Plan) -> None:
    """Refuse an estimator that cannot use what a plan measures.

    Raises:
        EstimateError: it wants to combine depths, and the plan measures survivors alone; or it
            works on real numbers, and the noise is out of their reach.
    """
    summed = isinstance(plan.measure, RunningSums)
    if summed and not isinstance(estimator, Isotonic):
        raise EstimateError(
            f'running sums are estimated by method = "isotonic" alone, got "{estimator.name}"; to '
            'use another, measure all nodes of a tree (measure = "all")'
        )
    if estimator.combine and not isinstance(plan.measure, All):
        raise EstimateError(
            f"{estimator.name} with combine = true needs a plan that measures all nodes "
            '(measure = "all"): what is measured below survivors is biased by their survival'
        )
    scale = plan.strategy.scale if summed else 1
    drawn = (what.mechanism for what in plan.depths if isinstance(what, Measured | Summed))
    widest = max((noise.parameter for noise in drawn), default=Fraction(0))
    if plan.mechanism is DiscreteGaussian:
        too_wide = widest > (LARGEST_NOISE * scale) ** 2
    else:
        too_wide = widest > LARGEST_NOISE
    if too_wide and _is_real(estimator, plan):
        raise EstimateError(
            "the noise of this plan is above 2**30 records, which real-valued estimates do not "
            "hold: give it a larger budget"
        )


def check_range(total: int, estimator: Estimator, plan: Plan) -> None:
    """Refuse a table too large for the estimator, before its noise is drawn or charged.

    Raises:
        EstimateError: more than 2³⁹ records where estimates are real numbers.
    """
    if total > LARGEST_REAL_COUNT // 2 and _is_real(estimator, plan):
        raise EstimateError(
            "the table has more than 2**39 records, which real-valued estimates do not hold: use "
            'method = "chebyshev" or "euclidean" with measure = "survivors"'
        )


def _is_real(estimator: Estimator, plan: Plan) -> bool:
    """Whether the estimator is given combined, real-valued counts, or makes such."""
    combines = isinstance(plan.measure, All) and estimator.combine is not False
    gaps = any(isinstance(what, Unmeasured) for what in plan.depths)
    return combines or gaps or isinstance(estimator, Sparse | Isotonic)


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
        {t: read_noisy(folder, t) for t in measured},
        {t: what.mechanism.noise_variance for t, what in measured.items()},
        {t: released[t] for t in range(plan.public_depth + 1)},
    )


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
