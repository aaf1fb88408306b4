"""Least-squares estimates of sums of leaves that are no nodes, and covariances of nodes.

Below a parent p, `least_squares.distribute_down` gives a child c the estimate y_c = a_c y_p + r_c
with a_c = u_c / S, u being the family's combined variances (records²) and S their sum. The
residuals r are uncorrelated with everything outside p's subtree, so variances of sums add up family
by family from the leaves up, and covariances need the lowest common ancestor alone:
`docs/proofs/variances.md`, "Sums and covariances on a tree".
"""

from collections.abc import Iterable, Sequence
from math import inf, nan

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_vector
from hedgerow.estimate.tree.layers import Estimate, Estimates, Layer, check_length, start_of
from hedgerow.estimate.tree.least_squares import downward, upward
from hedgerow.kernels import kernel, run_range


def covariance(
    layers: Sequence[Layer],
    nodes: Sequence[tuple[int, int]],
    combined: Sequence[Estimates] | None = None,
) -> Float64:
    """Return the covariance matrix (records²) of the estimates of some nodes.

    C is that of `least_squares`; a sum of nodes with coefficients k has the variance ``k @ C @ k``.
    After one upward pass it takes O(families on the way) a node and O(depth) a pair.
    """
    combined = upward(layers) if combined is None else combined
    paths = [_path(layers, depth, index) for depth, index in nodes]
    # Depth by depth, of each node's ancestor there: D C Dᵀ, D being the shares, and in a family
    # u_c [c = d] - u_c u_d / S. A path that has ended stays: a share of 1, in no family (NaN).
    matrix = np.full((len(nodes), len(nodes)), combined[0][1][0])
    for t in range(1, len(layers)):
        steps = [
            _step(start_of(layers[t]), combined[t][1], *path[t - 1 : t + 1])
            if t < len(path)
            else (nan, nan, 0.0, 1.0, 0.0)
            for path in paths
        ]
        above, here, u, share, residual = np.array(steps).reshape(-1, 5).T
        wide = np.where(u[:, None] <= u, share, share[:, None])
        within = np.where(above[:, None] == above, -_times(wide, np.minimum(u[:, None], u)), 0.0)
        with np.errstate(invalid="ignore"):  # of what is not identified, which is refused below
            own = np.where(here[:, None] == here, residual, within)
            matrix = _times(np.outer(share, share), matrix) + own
    for (depth, index), variance in zip(nodes, np.diag(matrix), strict=True):
        if variance == inf:
            raise EstimateError(
                f"the measurements do not identify node {index} of depth {depth}: its variance is "
                "infinite; leave it out, or ask for an ancestor"
            )
    return matrix


def _path(layers: Sequence[Layer], depth: int, index: int) -> list[int]:
    """Return the ancestors of a node, from the root down to itself."""
    if not 0 <= depth < len(layers) or not 0 <= index < layers[depth].nodes:
        raise EstimateError(f"the tree has no node {index} at depth {depth}")
    path = [index]
    for t in range(depth, 0, -1):
        path.append(int(np.searchsorted(start_of(layers[t]), path[-1], side="right")) - 1)
    return path[::-1]


def _step(
    family_start: Int64, combined: Float64, parent: int, child: int
) -> tuple[int, int, float, float, float]:
    """Return parent and child, and of the child u, a and Var(r)."""
    begin, end = family_start[parent : parent + 2]
    u = float(combined[child])
    rest = float(combined[begin:child].sum() + combined[child + 1 : end].sum())
    if u == inf:  # Alone with an infinite variance it is what the others leave; else unknown.
        return parent, child, u, 1.0, rest
    if u + rest in {0.0, inf}:
        return parent, child, u, 0.0, u
    share = u / (u + rest)
    return parent, child, u, share, rest * share if u > rest else u * (rest / (u + rest))


def _times(share: Float64, variance: Float64) -> Float64:
    """Return the product; of what is not identified a share of 0 takes nothing."""
    return share * np.where(share, variance, 0.0)


Pairs = tuple[Int64, Int64, Float64]
"""Node, group and g of each pair, by node."""


def sums_of_leaves(layers: Sequence[Layer], partitions: Iterable[Int64], many: int) -> Estimate:
    """Return the best linear unbiased estimate, and its variance, of each group of leaves.

    Args:
        layers: the tree, as in `least_squares`; its leaves are the nodes of the last layer.
        partitions: int64 (leaves) each: the number of each leaf's group, -1 for none. Groups that
            overlap stand in several of them, and no group in two.
        many: how many groups there are.
    """
    combined = upward(layers)
    leaves = downward(layers, combined)[-1].estimate
    estimate, variance = np.zeros((2, many))
    for each in partitions:
        groups = np.where(each < 0, many, each)
        of = np.flatnonzero(np.bincount(groups)[:many])
        variance[of] = variance_of_sums(layers, groups, combined)[of]
        estimate += np.bincount(groups, leaves, minlength=many + 1)[:many]
    return Estimate(estimate, variance)


def variance_of_sums(
    layers: Sequence[Layer],
    groups: Int64,
    combined: Sequence[Estimates] | None = None,
) -> Float64:
    """Return the variance of each group's least-squares estimate: float64 (groups), records².

    It is infinite for a group that the measurements do not identify. Takes O(nodes).

    Args:
        layers: as in `sums_of_leaves`.
        groups: int64 (leaves): the number of each leaf's group, 0 up to the largest.
        combined: what `upward` returned for these layers, to spare that pass.
    """
    combined = upward(layers) if combined is None else combined
    check_vector("groups", groups, np.int64)
    check_length("groups", groups, layers[-1].nodes)
    if len(groups) and groups.min() < 0:
        raise EstimateError(f"groups are numbered from 0, got {groups.min()}")
    variance = np.zeros(int(groups.max(initial=-1)) + 1)
    pairs: Pairs = np.arange(len(groups)), groups, np.ones(len(groups))
    for layer, (_, own) in zip(layers[:0:-1], combined[:0:-1], strict=True):
        pairs = climb(pairs, own, start_of(layer), variance)
    _, group, weight = pairs
    at_root = combined[0][1][0]
    for_root = np.bincount(group, weight, minlength=len(variance))
    touched = for_root != 0  # of a root that is not identified a weight of 0 takes nothing
    variance[touched] += for_root[touched] ** 2 * at_root
    return variance


def climb(pairs: Pairs, own: Float64, family_start: Int64, variance: Float64) -> Pairs:
    """Return the pairs of the depth above, and add the families' residuals to the variances."""
    node, group, weight = pairs
    start = np.searchsorted(node, family_start)
    above = np.empty(len(node), np.int64), np.empty(len(node), np.int64), np.empty(len(node))
    written = _climb_families((node, group, weight, start), own, family_start, above, variance)
    return above[0][:written], above[1][:written], above[2][:written]


@kernel
def _climb_families(
    pairs: tuple[Int64, Int64, Float64, Int64],
    own: Float64,
    family_start: Int64,
    above: Pairs,
    variance: Float64,
) -> int:
    """Write the pairs of all parents, and return how many there are."""
    # Pairs first .. written are those of this family's parent, one a group; mean holds Σ g u until
    # `_share_from_above` makes it g_p. place[group] is the group's pair in this family, or -1.
    node, group, weight, start = pairs
    parents, members, mean = above
    seen = np.zeros(len(node))  # the sum of the finite u of a family's children in a group
    unknown = np.zeros(len(node), dtype=np.int64)  # how many of them have an infinite u
    place = np.full(len(variance), -1)
    written = 0
    for family in range(len(family_start) - 1):
        finite, infinite = _sums_of_family(own, family_start[family], family_start[family + 1])
        first = written
        for j in run_range(start, family):
            i = place[group[j]]
            if i < 0:
                i = written
                place[group[j]] = i
                parents[i] = family
                members[i] = group[j]
                mean[i] = 0.0
                seen[i] = 0.0
                unknown[i] = 0
                written += 1
            # Σ g u over what the family has of the group, and Σ u.
            u = own[node[j]]
            if u == np.inf:
                unknown[i] += 1
            else:
                seen[i] += u
                mean[i] += weight[j] * u
        for i in range(first, written):
            # g_p = Σ g u / S. Children that the group does not have add g_p² u each; if some of the
            # unknown are its own and some are not, nothing tells it.
            mean[i] = _share_from_above(mean[i], unknown[i], finite, infinite)
            variance[members[i]] += mean[i] * mean[i] * max(finite - seen[i], 0.0)
            if 0 < unknown[i] < infinite:
                variance[members[i]] = np.inf
        # u (g - g_p)² of its own children.
        for j in run_range(start, family):
            u = own[node[j]]
            if u < np.inf:
                variance[group[j]] += u * (weight[j] - mean[place[group[j]]]) ** 2
        for j in run_range(start, family):
            place[group[j]] = -1
        written = _without_zeros(above, first, written)
    return written


@kernel
def _sums_of_family(own: Float64, begin: int, end: int) -> tuple[float, int]:
    """Return the sum of the finite u, and how many are infinite."""
    finite = 0.0
    infinite = 0
    for c in range(begin, end):
        # Infinite ones are counted apart: their parts of each other would be NaN.
        if own[c] == np.inf:
            infinite += 1
        else:
            finite += own[c]
    return finite, infinite


@kernel
def _share_from_above(weighted: float, unknown: int, finite: float, infinite: int) -> float:
    """Return the g of a parent from Σ g u over its children in the group."""
    # What is infinite takes all of the correction. Of a family whose own u are all 0 there is none.
    if infinite > 0:
        return 1.0 if unknown == infinite else 0.0
    return weighted / finite if finite > 0.0 else 0.0


@kernel
def _without_zeros(above: Pairs, first: int, last: int) -> int:
    """Return the end of the pairs once those of this family with g = 0 are dropped."""
    parents, members, mean = above
    # In place: what is written is never ahead of what is read.
    for i in range(first, last):
        if mean[i] != 0.0:
            parents[first], members[first], mean[first] = parents[i], members[i], mean[i]
            first += 1
    return first
