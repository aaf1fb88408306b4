"""Least squares along a spine by dense matrices over all rows of the deepest level: the oracle."""

import numpy as np


def embedding(support, level):
    """0/1 (rows of a level, rows of the deepest level): which sum to which."""
    depth = support.spine.depth
    row = np.arange(len(support.group[depth]))
    for k in range(depth, level, -1):
        row = support.parent[k][row]
    return (row == np.arange(len(support.group[level]))[:, None]).astype(float)


def dense_information(support, information):
    """The information (deepest rows, deepest rows) of all levels' measurements together."""
    total = 0.0
    for level, each in enumerate(information):
        sums = embedding(support, level)
        total = total + sums.T @ by_node(support, level, each) @ sums
    return total


def by_node(support, level, information):
    """The information (rows, rows) of a level: a block a node."""
    group = support.group[level]
    node = np.repeat(np.arange(support.spine.sizes[level]), np.diff(support.start[level]))
    return information[np.ix_(group, group)] * (node[:, None] == node)


def solve(information, h, known=None):
    """The best linear unbiased estimate and its covariance; known is (weights, values).

    Minimise (x - A⁻¹h)ᵀ A (x - A⁻¹h), by the system of Karush, Kuhn and Tucker where w x = t.
    """
    if known is None:
        covariance = np.linalg.inv(information)
        return covariance @ h, covariance
    weights, values = known
    n, m = len(information), len(weights)
    system = np.block([[information, weights.T], [weights, np.zeros((m, m))]])
    inverse = np.linalg.inv(system)
    return inverse[:n, :n] @ h + inverse[:n, n:] @ values, inverse[:n, :n]
