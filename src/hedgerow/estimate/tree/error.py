"""The exact variance of the estimates of a whole tree, from its real family sizes.

*Combined* estimates are least squares over all depths (Hay et al. 2010, any families and
variances). *Projected* ones are projected family by family from the root down. A variance of 0 is a
public depth, an infinite one an unmeasured depth. All is exact for real-valued estimates; rounding
and cutting off at 0 are not in it. The work is that of the distinct subtrees (`Shapes`), never that
of the nodes. Formulas: `docs/proofs.md`, "Variances of a whole tree".
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import EstimateError
from hedgerow.estimate.tree.passes import Passes, last_measured
from hedgerow.estimate.tree.shapes import Shapes

Numbers = Sequence[float] | Float64


def mean_variances(shapes: Shapes, own_variance: Numbers, *, combine: bool) -> Float64:
    """Return the mean variance of the estimates of each depth's nodes: float64 (T + 1), records².

    Returns:
        inf for a depth about which the measurements do not say enough.
    """
    own = _checked(shapes, own_variance)
    if not combine and _is_measured_throughout(shapes, own):
        sums: Float64 = _by_source(shapes.projection, own).sum(axis=1)
        return sums / shapes.sizes
    sums = Passes(shapes, own, combine=combine).sums()
    return _with_unmeasured_tail(shapes, own, sums) / shapes.sizes


def largest_variances(shapes: Shapes, own_variance: Numbers, *, combine: bool) -> Float64:
    """Return the largest variance among the nodes of each depth: float64 (T + 1), records².

    Exact; but where a tree has too many distinct subtrees and is projected, an upper bound: every
    parent is taken for the worst one of its depth. Arguments and errors are those of
    `mean_variances`.
    """
    own = _checked(shapes, own_variance)
    if combine or shapes.fit or not _is_measured_throughout(shapes, own):
        largest = Passes(shapes, own, combine=combine).largest()
        return _with_unmeasured_tail(shapes, own, largest)
    by_depth = own.copy()
    for t, (axis, level) in enumerate(shapes.steps, start=1):
        n = np.unique(shapes.levels[axis][level - 1].families)
        n_own = np.where(n > 1, own[t], 0.0)  # an only child is its parent
        by_depth[t] = (by_depth[t - 1] / n**2 + n_own * (1 - 1 / n)).max()
    return by_depth


def weighted_variance_and_gradient(
    shapes: Shapes, own_variance: Numbers, weights: Numbers, *, combine: bool
) -> tuple[float, Float64]:
    """Return Σ_t weights_t Σ_{nodes of t} Var, and its derivatives by the depths' precisions 1/v_t.

    By reverse differentiation of the two passes, so both cost a few evaluations.

    Returns:
        The sum (inf where a weighted depth is not determined), and float64 (T + 1): at most 0, and
        0 for public depths. Combined, it says of an unmeasured depth what measuring it would begin
        to gain; projected, it is 0 there, for a bad measurement would be worse than none.
    """
    own = _checked(shapes, own_variance)
    weight = _numbers(shapes, weights, "weights")
    if not np.isfinite(weight).all():
        raise EstimateError("weights must be finite")
    if not combine and _is_measured_throughout(shapes, own):
        effect = weight @ shapes.projection
        with np.errstate(invalid="ignore"):
            costs = np.where(effect > 0, effect * own, 0.0)
            return float(costs.sum()), np.where(effect > 0, -costs * own, 0.0)
    last = last_measured(own)
    beyond = weight.copy()
    for t in range(shapes.depth, last, -1):
        if not shapes.is_single(t):
            if weight[t:].any():
                return float("inf"), np.full(len(own), -np.inf)
            continue
        beyond[t - 1] += beyond[t]  # an unmeasured only child has its parent's estimate
    return Passes(shapes, own, combine=combine).value_and_gradient(beyond[: last + 1])


def _checked(shapes: Shapes, own_variance: Numbers) -> Float64:
    own = _numbers(shapes, own_variance, "own_variance")
    if not np.isfinite(own).any():
        raise EstimateError("own_variance must be finite for at least one depth: none is measured")
    return own


def _numbers(shapes: Shapes, given: Numbers, name: str) -> Float64:
    """Return the numbers, one a depth and none below 0."""
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != (shapes.depth + 1,):
        raise EstimateError(
            f"{name} must hold one number for each of {shapes.depth + 1} depths, got {numbers.size}"
        )
    if not (numbers >= 0).all():
        raise EstimateError(f"{name} must not hold numbers below 0 or NaN, got {list(given)}")
    return numbers


def _is_measured_throughout(shapes: Shapes, own: Float64) -> bool:
    """Return whether all depths to the last measured one are measured, only children aside."""
    unmeasured = np.flatnonzero(np.isinf(own[: last_measured(own)]))
    return all(t > 0 and shapes.is_single(int(t)) for t in unmeasured)


def _by_source(projection: Float64, own: Float64) -> Float64:
    """Return what each depth's own variance adds to each depth's sum."""
    with np.errstate(invalid="ignore"):
        return np.where(projection > 0, projection * own, 0.0)


def _with_unmeasured_tail(shapes: Shapes, own: Float64, measured: Float64) -> Float64:
    """Append the unmeasured depths at the end: only children are as good as their parents."""
    whole = np.append(measured, np.zeros(len(own) - len(measured)))
    for t in range(len(measured), len(own)):
        whole[t] = whole[t - 1] if shapes.is_single(t) else np.inf
    return whole
