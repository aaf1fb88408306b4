"""Best linear unbiased counts of a tree: one pass up to combine, one pass down to distribute.

With x a node's noisy count (records) and v its variance (records²), the problem is

    minimise Σ (y - x)² / v over all nodes, where every y is the sum of its children's y.

A variance of 0 holds a count exactly, infinity leaves it unmeasured: both are taken as limits.
Source: Hay et al. (2010), Section 4, for equal variances and families; Honaker (2015) for unequal
variances on binary trees. Each pass reads every node once: `docs/proofs/variances.md`, "Least
squares on a tree".
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.real_projection import FamilyEstimator
from hedgerow.estimate.tree.layers import (
    Estimate,
    Estimates,
    Layer,
    Noisy,
    check_layers,
    check_length,
    column,
    combine_families,
    distribute_families,
    family_count,
    first_contradiction,
    start_of,
)
from hedgerow.kernels import over_families

__all__ = [
    "Estimate",
    "Layer",
    "LeastSquares",
    "combine",
    "distribute_down",
    "downward",
    "least_squares",
    "upward",
]


@frozen
class LeastSquares(FamilyEstimator):
    """Minimise ``Σ (x - y)² / v`` over all nodes, parents being sums: generalised least squares.

    x are noisy counts and y estimates (records), v the variances of x (records²). Where all nodes
    are measured (``measure=All()``) y is the best linear unbiased estimate: of all estimates that
    are linear in x and right on average, none has a smaller variance, at any node or any sum of
    nodes (Gauss-Markov; Hay et al. 2010, Theorem 4, for equal variances). The passes are those of
    Hay et al. (2010) and Honaker (2015), for any tree and any variances; Ko et al. show what
    allocations cost *without* such an estimate.

    On a tree that was pruned because noisy counts were small, the nodes left are those whose noise
    was large: y is then conditional on their survival, and unbiasedness is not claimed.

    Estimates may be negative and fractional: they are an analyst's, beside a release, and no table
    of counts themselves. A release that is made with this method has the counts of
    `Euclidean`: the nearest whole counts that are not negative and add up, from the top down.

    Example:
        >>> import numpy as np
        >>> from hedgerow.estimate.tree.layers import Layer
        >>> root, children = np.array([10]), np.array([4, 3])
        >>> layers = [Layer(root, 0.0), Layer(children, 2.0, family_start=np.array([0, 2]))]
        >>> hr.LeastSquares().estimate(layers)[1].estimate
        array([5.5, 4.5])
    """

    name = "least-squares"
    kernels = Euclidean.kernels

    def estimate(self, layers: Sequence[Layer]) -> list[Estimate]:
        """Return the estimates of every depth; see `least_squares`."""
        return least_squares(layers)


def least_squares(layers: Sequence[Layer]) -> list[Estimate]:
    """Return the best linear unbiased estimates and their variances, for each depth 0..T.

    A node without children is a leaf, at any depth. A node that the measurements do not identify
    has an infinite variance; its estimate is one of those that fit best.
    """
    return downward(layers, upward(layers))


def downward(layers: Sequence[Layer], combined: Sequence[Estimates]) -> list[Estimate]:
    """Return the estimates from everything, from those of each node's own subtree: `upward`."""
    final = [combined[0]]
    for layer, (estimate, variance) in zip(layers[1:], combined[1:], strict=True):
        above = final[-1]
        family_start = start_of(layer)
        final.append(distribute_down(*above, estimate, variance, family_start))
        if first_contradiction(above[0], *final[-1], family_start) >= 0:
            raise EstimateError(
                f"depth {len(final) - 1}: exact counts (variance 0) of a family do not sum to "
                "their parent's; correct them, or give one of them its true variance"
            )
    return [Estimate(*pair) for pair in final]


def upward(layers: Sequence[Layer]) -> list[Estimates]:
    """Return estimate and variance of each node from its own subtree alone, for each depth 0..T."""
    check_layers(layers)
    combined = [_measured(layers[-1])]
    for depth in range(len(layers) - 2, -1, -1):
        layer = layers[depth]
        below = combined[-1]
        combined.append(combine(layer.noisy, layer.variance, *below, start_of(layers[depth + 1])))
    return combined[::-1]


def _measured(layer: Layer) -> Estimates:
    """Return the measurements of the deepest layer as estimates."""
    variance = np.full(layer.nodes, layer.variance, dtype=np.float64)
    if layer.noisy is None:
        return np.zeros(layer.nodes), variance
    return np.where(variance == inf, 0.0, layer.noisy), variance


def combine(
    noisy: Noisy | None,
    variance: float | Float64,
    child_estimate: Noisy,
    child_variance: float | Float64,
    family_start: Int64,
) -> Estimates:
    """Return the combined estimate and variance of each node: its own count and its children's sum.

    With Σz and S the sums of the children's estimates and variances,
    ``z = x + (Σz - x) v / (v + S)`` with variance ``u = v S / (v + S)``. A node with v = 0 keeps x;
    one with v infinite gets Σz and S; one without children, or with S infinite, keeps x and v; one
    with neither gets an infinite variance, and its estimate means nothing.

    Args:
        noisy: int64 or float64 (nodes), records; None where this depth is unmeasured. What it holds
            beside an infinite variance is not looked at.
        variance: one float, or float64 (nodes), records²; not looked at where noisy is None.
        child_estimate: int64 or float64 (children), records: the children's combined estimates.
        child_variance: one float, or float64 (children), records².
        family_start: int64 (nodes + 1): where each node's children begin, and the end.
    """
    nodes = family_count(family_start, len(child_estimate))
    if noisy is None:
        noisy = np.zeros(nodes)
        variance = inf
    check_length("noisy", noisy, nodes)
    own = column("variance", variance, nodes)
    child = column("child_variance", child_variance, len(child_estimate))
    combined = np.empty(nodes), np.empty(nodes)
    over_families(
        lambda first, last: combine_families(
            noisy, own, child_estimate, child, family_start, (first, last), combined
        ),
        family_start,
    )
    return combined


def distribute_down(
    parent_estimate: Float64,
    parent_variance: float | Float64,
    estimate: Noisy,
    variance: float | Float64,
    family_start: Int64,
) -> Estimates:
    """Return final estimates and variances of the children, which sum to their parents'.

    With z and u a child's combined estimate and variance and S the family's sum of u,
    ``y = z + (y_p - Σz) u / S`` with variance ``(u / S)² Var(y_p) + u - u² / S``. If one u in a
    family is infinite, that child takes the whole gap and has the variance
    ``Var(y_p) + Σ of the others' u``. If several are, these children are not identified: they share
    the gap evenly and keep infinite variances. If S = 0 the children stay, whatever y_p is.

    Args:
        parent_estimate: float64 (parents), records: the parents' final estimates.
        parent_variance: one float, or float64 (parents), records²: the variances of these.
        estimate: int64 or float64 (children), records: the children's combined estimates.
        variance: one float, or float64 (children), records²: the variances of these.
        family_start: int64 (parents + 1): where each parent's children begin, and the end.
    """
    parents = family_count(family_start, len(estimate))
    check_length("parent_estimate", parent_estimate, parents)
    above = column("parent_variance", parent_variance, parents)
    own = column("variance", variance, len(estimate))
    final = np.empty(len(estimate)), np.empty(len(estimate))
    over_families(
        lambda first, last: distribute_families(
            parent_estimate, above, estimate, own, family_start, (first, last), final
        ),
        family_start,
    )
    return final
