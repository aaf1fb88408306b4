"""The two loops of least squares over a tree: combine upward, spread downward.

`hedgerow.estimate.tree.least_squares` states the problem and the formulas; here is how they stay
exact in doubles. Every term is positive or a difference without cancellation, so variances may
differ by any factor, and 0 and infinity need no stand-in.

A column of variances comes with the step from one entry to the next: 0 where one stands for all.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import kernel

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]
Noisy: TypeAlias = Int64 | Float64
Column: TypeAlias = tuple[Float64, int]


@kernel
def decreases(family_start: Int64) -> bool:
    """Whether a family begins before the one in front of it."""
    found = 0
    for family in range(len(family_start) - 1):
        found += family_start[family + 1] < family_start[family]
    return found > 0


@kernel
def combine_families(
    noisy: Noisy,
    own: Column,
    child_estimate: Noisy,
    child: Column,
    family_start: Int64,
    families: tuple[int, int],
    combined: tuple[Float64, Float64],
) -> None:
    """Write the nodes from the first up to the last, exclusive; shapes as in `combine`."""
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
        elif v <= below:
            share = v / (v + below)
            estimates[node] = noisy[node] + (total - noisy[node]) * share
            variances[node] = below * share
        else:  # Starting from the better of the two, a wild one leaves no rounding behind.
            share = below / (v + below)
            estimates[node] = total + (noisy[node] - total) * share
            variances[node] = v * share


@kernel
def spread_families(
    parent_estimate: Float64,
    above: Column,
    estimate: Noisy,
    own: Column,
    family_start: Int64,
    families: tuple[int, int],
    final: tuple[Float64, Float64],
) -> None:
    """Write the families from the first up to the last, exclusive; shapes as in `spread`."""
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
def first_contradiction(
    parent_estimate: Float64, estimate: Float64, variance: Float64, family_start: Int64
) -> int:
    """The first family of exact children that does not sum to its parent; -1 if there is none."""
    for family in range(len(family_start) - 1):
        begin = family_start[family]
        end = family_start[family + 1]
        i = begin
        gap = parent_estimate[family]
        size = abs(gap)
        while i < end and variance[i] == 0.0:
            gap -= estimate[i]
            size += abs(estimate[i])
            i += 1
        if i == end and end > begin and abs(gap) > 1e-9 * size:
            return family
    return -1


@kernel
def _share_evenly(
    total: float,
    estimate: Noisy,
    own: Column,
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
