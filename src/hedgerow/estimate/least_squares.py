"""Best linear unbiased counts of a tree: one pass up to combine, one pass down to spread.

Write x for a node's noisy count (records) and v for its variance (records²). The problem is

    minimise Σ (y - x)² / v over all nodes, where every y is the sum of its children's y.

*Up.* z, the estimate of a node from the measurements of its own subtree, is the mean of its own x
and of the sum of its children's z, weighted by inverse variances: the two are independent, and the
measurements below say nothing more about the node than their sum does (`combine`).

*Down.* The root's z has seen every measurement, so y = z there. Below a parent p that is final, the
children's z must move to sum to y_p at the smallest cost Σ (y - z)² / v, v being the variances of z
now: each takes a share of the gap in proportion to v (`spread`).

Source: Hay et al. (2010), Section 4, for equal variances and families; Honaker (2015) for
variances by recursion; here variances and families are any. Each pass reads every node once.

A variance of 0 holds a count exactly (a public total, an invariant), infinity leaves it unmeasured;
both are limits of the problem above and are taken as such, not by a large or a small number.
"""

from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_vector
from hedgerow.kernels import kernel, over_families

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]


def combine(
    noisy: Int64 | Float64 | None,
    variance: float | Float64,
    child_estimate: Float64,
    child_variance: float | Float64,
    family_start: Int64,
) -> tuple[Float64, Float64]:
    """The combined estimate and variance of each node: its own count and its children's sum.

    With s and S the sums of the children's estimates and variances, ``z = x + (s - x) v / (v + S)``
    with variance ``v S / (v + S)``. A node with v = 0 keeps x; one with v infinite gets s and S; one
    without children, or with S infinite, keeps x and v; one with neither gets an infinite variance,
    and its estimate means nothing.

    Args:
        noisy: int64 or float64 (nodes), records; None where this depth is unmeasured. What it holds
            beside an infinite variance is not looked at.
        variance: one float, or float64 (nodes), records²; not looked at where noisy is None.
        child_estimate: float64 (children), records: the children's combined estimates.
        child_variance: one float, or float64 (children), records².
        family_start: int64 (nodes + 1): where each node's children begin, and the end.

    Raises:
        EstimateError: arrays that do not fit together.
    """
    nodes = _family_count(family_start, len(child_estimate))
    if noisy is None:
        noisy, variance = np.zeros(nodes), inf
    _check_length("noisy", noisy, nodes)
    own = _column("variance", variance, nodes)
    child = _column("child_variance", child_variance, len(child_estimate))
    combined = np.empty(nodes), np.empty(nodes)
    over_families(
        lambda first, last: _combine(
            noisy, own, child_estimate, child, family_start, (first, last), combined
        ),
        family_start,
    )
    return combined


def spread(
    parent_estimate: Float64,
    parent_variance: float | Float64,
    estimate: Float64,
    variance: float | Float64,
    family_start: Int64,
) -> tuple[Float64, Float64]:
    """The final estimates and variances of the children, which sum to their parents' final ones.

    With z and v a child's combined estimate and variance and S the family's sum of v,
    ``y = z + (y_p - Σz) v / S`` with variance ``(v / S)² Var(y_p) + v - v² / S``. If one v in a
    family is infinite, that child takes the whole gap and has the variance
    ``Var(y_p) + Σ of the others' v``. If several are, these children are not identified: they share
    the gap evenly and keep infinite variances. If S = 0 the children stay, whatever y_p is.

    Args:
        parent_estimate: float64 (parents), records: the parents' final estimates.
        parent_variance: one float, or float64 (parents), records²: the variances of these.
        estimate: float64 (children), records: the children's combined estimates.
        variance: one float, or float64 (children), records²: the variances of these.
        family_start: int64 (parents + 1): where each parent's children begin, and the end.

    Raises:
        EstimateError: arrays that do not fit together.
    """
    parents = _family_count(family_start, len(estimate))
    _check_length("parent_estimate", parent_estimate, parents)
    above = _column("parent_variance", parent_variance, parents)
    own = _column("variance", variance, len(estimate))
    final = np.empty(len(estimate)), np.empty(len(estimate))
    over_families(
        lambda first, last: _spread(
            parent_estimate, above, estimate, own, family_start, (first, last), final
        ),
        family_start,
    )
    return final


def _column(name: str, values: float | Float64, length: int) -> tuple[Float64, int]:
    """The values and the step from one entry to the next: 0 where one value stands for all."""
    if isinstance(values, np.ndarray) and values.ndim:
        check_vector(name, values, np.float64)
        _check_length(name, values, length)
        return values, 1
    return np.array([values], dtype=np.float64), 0


def _check_length(name: str, values: Int64 | Float64, length: int) -> None:
    if len(values) != length:
        raise EstimateError(f"{name} must have {length} entries, one a node, got {len(values)}")


def _family_count(family_start: Int64, cells: int) -> int:
    """The number of families, once they partition the cells."""
    check_vector("family_start", family_start, np.int64)
    if not len(family_start) or family_start[0] != 0 or family_start[-1] != cells:
        raise EstimateError(
            f"family_start must begin with 0 and end with the number of children, {cells}"
        )
    if _decreases(family_start):
        raise EstimateError("family_start must not decrease")
    return len(family_start) - 1


@kernel
def _decreases(family_start: Int64) -> bool:
    found = 0
    for family in range(len(family_start) - 1):
        found += family_start[family + 1] < family_start[family]
    return found > 0


@kernel
def _combine(
    noisy: Int64 | Float64,
    own: tuple[Float64, int],
    child_estimate: Float64,
    child: tuple[Float64, int],
    family_start: Int64,
    families: tuple[int, int],
    combined: tuple[Float64, Float64],
) -> None:
    variance, step = own
    child_variance, child_step = child
    estimates, variances = combined
    for node in range(families[0], families[1]):
        begin = family_start[node]
        end = family_start[node + 1]
        total = 0.0
        below = 0.0 if end > begin else np.inf
        for i in range(begin, end):
            total += child_estimate[i]
            below += child_variance[i * child_step]
        v = variance[node * step]
        if v == np.inf:
            estimates[node] = total
            variances[node] = below
        elif v == 0.0 or below == np.inf:
            estimates[node] = noisy[node]
            variances[node] = v
        else:
            share = v / (v + below)
            estimates[node] = noisy[node] + (total - noisy[node]) * share
            variances[node] = below * share


@kernel
def _spread(
    parent_estimate: Float64,
    above: tuple[Float64, int],
    estimate: Float64,
    own: tuple[Float64, int],
    family_start: Int64,
    families: tuple[int, int],
    final: tuple[Float64, Float64],
) -> None:
    parent_variance, parent_step = above
    variance, step = own
    estimates, variances = final
    for family in range(families[0], families[1]):
        begin = family_start[family]
        end = family_start[family + 1]
        if end == begin:
            continue
        # The child of the largest variance is kept apart: S - v would cancel for it alone.
        widest = begin
        largest = variance[begin * step]
        rest = 0.0
        others = 0.0
        for i in range(begin + 1, end):
            v = variance[i * step]
            if v > largest:
                rest += largest
                others += estimate[widest]
                widest = i
                largest = v
            else:
                rest += v
                others += estimate[i]
        left = parent_estimate[family] - others
        inherited = parent_variance[family * parent_step]
        whole = rest + largest
        if rest == np.inf:
            _share_evenly(parent_estimate[family], estimate, own, (begin, end), final)
            continue
        if whole == 0.0:
            estimates[begin:end] = estimate[begin:end]
            variances[begin:end] = 0.0
            continue
        gap = left - estimate[widest]
        for i in range(begin, end):
            v = variance[i * step]
            share = v / whole
            estimates[i] = estimate[i] + gap * share
            # 0 times an unidentified parent's infinite variance is 0: nothing comes from there.
            variances[i] = v * (1.0 - share) + (share * share * inherited if share > 0.0 else 0.0)
        share = largest / whole if largest < np.inf else 1.0
        estimates[widest] = left - gap * (rest / whole)
        variances[widest] = rest * share + share * share * inherited


@kernel
def _share_evenly(
    total: float,
    estimate: Float64,
    own: tuple[Float64, int],
    cells: tuple[int, int],
    final: tuple[Float64, Float64],
) -> None:
    """Write a family in which several children are not identified."""
    variance, step = own
    estimates, variances = final
    begin, end = cells
    unknown = 0
    for i in range(begin, end):
        v = variance[i * step]
        estimates[i] = estimate[i]
        variances[i] = v
        if v == np.inf:
            unknown += 1
        else:
            total -= estimate[i]
    for i in range(begin, end):
        if variances[i] == np.inf:
            estimates[i] = total / unknown
