"""Shares at which a cost of mean variances is least: by descent, from variances and their slopes.

Shares are in groups that sum to 1 each: one group of named cuboids, or one an axis of a cube. The
descent is in their logarithms, so that none vanishes.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from hedgerow.arrays import Float64, Int64

SHARPNESS = 1.0, 4.0, 16.0, 64.0, 256.0
"""Exponents of the p-norms that stand in for a maximum, one after the other."""

Cost = Callable[[Float64], tuple[float, Float64]]
"""Of float64 (cuboids): a cost of mean variances, and its derivatives."""


class Means(Protocol):
    """Mean variances by shares, a share of 1 buying 1."""

    @property
    def ends(self) -> Int64:
        """Where the groups of shares begin, but for the first."""

    def variances(self, shares: Float64) -> tuple[Float64, Float64]:
        """Return float64 (cuboids), and their derivatives by shares, (cuboids, shares)."""


def shares_of(means: Means, logs: Float64) -> Float64:
    """Return shares from their logarithms, which count up to a factor in each group."""
    return np.concatenate([softmax(group) for group in np.split(logs, means.ends)])


def by_logs(means: Means, shares: Float64, by_share: Float64) -> Float64:
    """Return derivatives by logarithms of shares, from those by shares: float64 (…, shares)."""
    own = np.split(by_share * shares, means.ends, axis=-1)
    groups = zip(np.split(shares, means.ends), own, strict=True)
    return np.concatenate([o - s * o.sum(axis=-1, keepdims=True) for s, o in groups], axis=-1)


def in_logs(means: Means, cost: Cost) -> Cost:
    """Return the logarithm of a cost of mean variances, by the logarithms of shares."""

    def of_logs(logs: Float64) -> tuple[float, Float64]:
        shares = shares_of(means, logs)
        variances, slope = means.variances(shares)
        found, by_variance = cost(variances)
        return float(np.log(found)), by_logs(means, shares, by_variance @ slope) / found

    return of_logs


def least(
    means: Means, cost: Cost, starts: Iterable[Float64], bounds: tuple[float, float], **options: Any
) -> Float64:
    """Return the shares at which a cost is least, the best of several descents.

    Args:
        means: by shares.
        cost: of the means.
        starts: logarithms of shares to begin with.
        bounds: of logarithms of shares.
        options: of the search.
    """
    of_logs = in_logs(means, cost)
    ends = [
        minimize(of_logs, start, jac=True, bounds=[bounds] * len(start), options=options)
        for start in starts
    ]
    return shares_of(means, min(ends, key=lambda end: float(end.fun)).x)


def norm_of(costs: Float64, sharp: float) -> Cost:
    """Return the p-norm of mean variances, each times its cost; those of cost 0 do not matter."""
    matters = costs > 0

    def norm(variances: Float64) -> tuple[float, Float64]:
        logs = sharp * np.log(variances[matters] * costs[matters])
        slope = np.zeros(len(costs))
        total = float(np.exp(logsumexp(logs) / sharp))
        slope[matters] = total * softmax(logs) / variances[matters]
        return total, slope

    return norm


def weighted(weights: Float64) -> Cost:
    """Return the weighted sum of mean variances, as a cost."""
    return lambda variances: (float(weights @ variances), weights)
