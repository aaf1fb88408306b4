"""The variances of a whole tree by dense matrices: an oracle for small trees."""

import numpy as np


def node_sums(tree):
    """For each depth the 0/1 matrix (nodes, leaves) that sums leaves to nodes."""
    found = []
    for t in range(tree.depth + 1):
        matrix = np.ones((1, 1))
        for axis, level in zip(tree.axes, tree.cuboid(t), strict=True):
            ancestors = axis.ancestors(level)
            own = (ancestors == np.arange(axis.size(level))[:, None]).astype(float)
            matrix = np.kron(matrix, own)
        found.append(matrix)
    return found


def dense_combined(tree, own):
    """The diagonal of the covariance of generalised least squares, by depth."""
    sums = node_sums(tree)
    public = [t for t, v in enumerate(own) if v == 0]
    free = np.eye(tree.leaves)
    if public:  # what the deepest public counts leave free
        _, s, rows = np.linalg.svd(sums[public[-1]])
        free = rows[len(s) :].T
    information = sum(free.T @ a.T @ a @ free / v for a, v in zip(sums, own, strict=True) if v)
    covariance = free @ np.linalg.inv(information) @ free.T if free.size else 0 * np.eye(len(free))
    return [np.diag(a @ covariance @ a.T) for a in sums]


def dense_projected(tree, own):
    """The variances of projection from the root down, by the matrix of the errors themselves."""
    sums = node_sums(tree)
    widths = [len(a) for a in sums]
    begin = np.append(0, np.cumsum(widths))
    noise = [np.eye(sum(widths))[begin[t] : begin[t + 1]] for t in range(len(sums))]
    variances = np.diag(
        [v if v < np.inf else 0 for v, n in zip(own, widths, strict=True) for _ in range(n)]
    )
    errors, above = {}, -1
    for t in [t for t in range(len(sums)) if own[t] < np.inf]:
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
    return [np.diag(errors[t] @ variances @ errors[t].T) for t in range(len(sums))]


def dense_gradient(tree, own, weights):
    """d/dp_t tr(W X⁻¹) = -tr(A_t X⁻¹ W X⁻¹ A_tᵀ) where W = Σ w A'A and X = Σ p A'A."""
    sums = node_sums(tree)
    inverse = np.linalg.inv(sum(a.T @ a / v for a, v in zip(sums, own, strict=True)))
    whole = inverse @ sum(w * a.T @ a for a, w in zip(sums, weights, strict=True)) @ inverse
    return [-np.trace(a @ whole @ a.T) for a in sums]
