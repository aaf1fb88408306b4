"""Least squares by dense matrices: the oracle of every way to estimate."""

import numpy as np


class Dense:
    """The best linear unbiased estimates of x: min Σ (y_i - a_i x)² / v_i where b_j x = y_j.

    Of x that is not told the shortest; sums of x that are told do not depend on it.

    Attributes:
        gain: (unknowns, rows): how much each y moves x.
        variances: of the noise (rows).
    """

    def __init__(self, rows, v, variances=None):
        """Weigh rows by variances: of 0 they are exact, infinite ones are not measured.

        The noise has these variances, too, unless others are given.
        """
        told, exact = (v > 0) & (v < np.inf), rows[v == 0]
        _, sizes, basis = np.linalg.svd(exact)
        free = basis[(sizes > 1e-9 * sizes.max(initial=0)).sum() :].T
        precision, self.gain = 1 / np.sqrt(v[told, None]), np.zeros(rows.T.shape)
        inverse = np.linalg.pinv(precision * rows[told] @ free, rcond=1e-11)
        self.gain[:, told] = free @ inverse * precision.T
        start = np.linalg.pinv(exact)
        self.gain[:, v == 0] = start - self.gain @ rows @ start
        self.variances = np.where(told, v if variances is None else variances, 0.0)

    @classmethod
    def of(cls, blocks):
        """From blocks: their rows, the variance of each or of all, and that of the noise."""
        each = zip(*((a, *(v + np.zeros(len(a)) for v in own)) for a, *own in blocks), strict=True)
        return cls(*map(np.concatenate, each))

    @property
    def covariance(self):
        return self.gain * self.variances @ self.gain.T

    def variances_of(self, sums):
        """The variance of each sum of x, from its weights (sums, unknowns)."""
        return (sums @ self.gain) ** 2 @ self.variances


def indicators(group, groups=None):
    """0/1 (groups, members): who is in which group, from the number of each one's."""
    return np.equal.outer(np.arange(1 + max(group) if groups is None else groups), group) * 1.0


def node_sums(child_start):
    """For each depth the 0/1 matrix (nodes, leaves), from the child ranges of all levels."""
    found = [np.eye(child_start[-1][-1] if child_start else 1)]
    for start in child_start[::-1]:
        sizes = np.diff(start)
        alone = np.eye(len(sizes))[:, sizes == 0]  # without children a node is a leaf
        inside = indicators(np.repeat(np.arange(len(sizes)), sizes), len(sizes)) @ found[0]
        found = [np.pad(a, ((0, 0), (0, alone.shape[1]))) for a in found]
        found.insert(0, np.hstack([inside, alone]))
    return found


def of_cuts(dense):
    """The covariance of the sums of x before each cut: none, the first, ... all."""
    size = len(dense.gain)
    cuts = np.tril(np.ones((size + 1, size)), -1)
    return cuts @ dense.covariance @ cuts.T
