"""The variances of a whole tree by dense matrices: an oracle for small trees."""

from functools import lru_cache, reduce

import numpy as np

from tests.estimate.dense import Dense, indicators


@lru_cache(maxsize=4)
def node_sums(tree):
    """For each depth the 0/1 matrix (nodes, leaves) that sums leaves to nodes."""
    each = (zip(tree.axes, tree.cuboid(t), strict=True) for t in range(tree.depth + 1))
    return [reduce(np.kron, [indicators(a.ancestors(k)) for a, k in levels]) for levels in each]


def dense_combined(tree, own):
    """The diagonal of the covariance of generalised least squares, by depth."""
    sums = node_sums(tree)
    dense = Dense.of(zip(sums, own, strict=True))
    return [dense.variances_of(a) for a in sums]


def dense_projected(tree, own):
    """The variances of projection from the root down, by the matrix of the errors themselves."""
    sums = node_sums(tree)
    widths = [len(a) for a in sums]
    noise = np.split(np.eye(sum(widths)), np.cumsum(widths)[:-1])
    variances = np.repeat(np.where(np.isinf(own), 0, own), widths)
    errors, above = {}, -1
    for t in np.flatnonzero(np.isfinite(own)):
        errors[t] = noise[t]
        if above >= 0:
            family = (sums[above] @ sums[t].T > 0).astype(float)  # (parents, children)
            spread = family.T / family.sum(axis=1)
            errors[t] = noise[t] + spread @ (errors[above] - family @ noise[t])
        for between in range(above + 1, t):
            errors[between] = (sums[between] @ sums[t].T > 0).astype(float) @ errors[t]
        above = t
    for t in range(above + 1, len(sums)):  # only children take what their parents have
        errors[t] = (sums[t] @ sums[above].T > 0).astype(float) @ errors[above]
    return [errors[t] ** 2 @ variances for t in range(len(sums))]


def dense_gradient(tree, own, weights):
    """d/dp_t tr(W X⁻¹) = -tr(A_t X⁻¹ W X⁻¹ A_tᵀ) where W = Σ w A'A and X = Σ p A'A."""
    sums = node_sums(tree)
    inverse = Dense.of(zip(sums, own, strict=True)).covariance
    whole = inverse @ sum(w * a.T @ a for a, w in zip(sums, weights, strict=True)) @ inverse
    return [-np.trace(a @ whole @ a.T) for a in sums]
