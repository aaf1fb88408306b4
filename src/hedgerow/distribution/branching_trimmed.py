"""The error of a tree without its padded bins: the last node of each level is narrower.

Bins K … K̄ - 1 do not exist, which is the same as knowing that they are empty: the best linear
estimate from more knowledge is never worse (Gauss and Markov), so with the same shares a trimmed
tree is at every cut at least as good as the padded one. Only the *spine*, the last node of each
level, differs from a full node: its last child is itself a spine node, with another variance from
below.

For a node x with the children's variances from below u_c, S = Σ u_c, a cut that weighs the children
with g (1 before the cut, the fraction f inside the child it enters, 0 behind) gives ``g'u/S · x``
plus residuals of variance ``Σ g² u - (g'u)²/S``. So f is passed up, and of the cuts inside a node
their number, Σ f, Σ f² and Σ variance are all that its parent needs.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import kernel


@kernel
def trimmed_mean(
    bins: int,
    branching: NDArray[np.int64],
    coefficients: NDArray[np.float64],
    shares: NDArray[np.float64],
    power: int,
) -> float:
    """The mean over all cuts of the squared error after least squares; units as for shares."""
    levels = len(branching)
    full = 1.0 / shares[levels - 1] ** power  # variance from below of a full node of the level
    spine = full
    number, weight, square, variance = 1.0, 0.0, 0.0, 0.0  # of the cuts in the spine node
    leaves = 1  # below a full node of the level
    inside = 0.0  # mean variance of the cuts in a full node, given its count
    for i in range(levels - 1, -1, -1):
        n = branching[i]
        others = (bins - 1) // leaves % n  # full siblings of the spine node
        total = others * full + spine
        lead = others * full
        variance += number * lead + square * spine
        variance -= (number * lead**2 + 2 * lead * spine * weight + spine**2 * square) / total
        square = (number * lead**2 + 2 * lead * spine * weight + spine**2 * square) / total**2
        weight = (number * lead + spine * weight) / total
        t = (leaves - 1) / 2.0
        tt = (leaves - 1) * (2.0 * leaves - 1) / (6.0 * leaves)
        for j in range(others):
            moment = full * full * (leaves * float(j) * j + 2 * j * t + tt)
            variance += full * (leaves * j + tt) - moment / total + leaves * inside
            square += moment / total**2
            weight += full * (leaves * j + t) / total
        number += float(others) * leaves
        if i > 0:
            inside += coefficients[i] * full
            own = shares[i - 1] ** power
            spine = 1.0 / (own + 1.0 / total)
            full = 1.0 / (own + 1.0 / (n * full))
        leaves *= n
    return variance / bins


@kernel
def trimmed_mean_of_coverings(
    bins: int, branching: NDArray[np.int64], shares: NDArray[np.float64], power: int
) -> float:
    """The mean over all cuts of the squared error of covering sums; units as for shares."""
    leaves = 1
    total = 0.0
    for i in range(len(branching) - 1, -1, -1):
        n = branching[i]
        families = bins // (leaves * n)
        rest = bins - families * leaves * n
        whole = rest // leaves
        siblings = families * leaves * (n * (n - 1) // 2) + leaves * (whole * (whole - 1) // 2)
        siblings += (rest - whole * leaves) * whole
        total += siblings / shares[i] ** power
        leaves *= n
    return total / bins
