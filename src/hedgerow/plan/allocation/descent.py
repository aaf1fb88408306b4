"""Shares at which a cost of mean variances is least: by descent, from variances and their slopes.

Shares are in groups that sum to 1 each: one group along a chain or of named cuboids, or one an axis
of a cube. The descent is in their logarithms, so that none vanishes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.plan.allocation.allocation import PARTS, Problem, rounded_shares

SHARPNESS = 1.0, 4.0, 16.0, 64.0, 256.0
"""Exponents of the p-norms that stand in for a maximum, one after the other."""

SMALLEST, BOUNDS = -14.0, (-25.0, 3.0)
"""Logarithms of shares, up to a factor: the smallest to begin at, and those that are tried."""

FEW = 200
"""Shares up to which a maximum itself is made least, after its stand-ins."""

FINE = {"ftol": 1e-13, "gtol": 1e-9}
"""When a descent stops whose end is what is wanted."""

Sloped = tuple[Float64, Float64]
"""Numbers, and beside each its derivatives by shares: a last dimension more."""

Cost = Callable[[Float64], tuple[float, Float64]]
"""Of float64 (cuboids): a cost of mean variances, and its derivatives."""

Part = Fraction | None


class Means(ABC):
    """Mean variances of the cuboids that can be measured, by shares, a share of 1 buying 1."""

    power: int
    """How the variance falls with the share: 1 for noise priced in ρ, 2 in pure ε."""

    @property
    def ends(self) -> Int64:
        """Where the groups of shares begin, but for the first."""
        return np.zeros(0, dtype=np.int64)

    @property
    @abstractmethod
    def needed(self) -> Bool:
        """Which shares must be above 0: bool (shares)."""

    @abstractmethod
    def variances(self, shares: Float64) -> Sloped:
        """Return float64 (cuboids), and their derivatives by shares, (cuboids, shares)."""

    @abstractmethod
    def least_total(self, importance: Float64) -> Float64:
        """Return the shares of least importance-weighted error of estimates: float64 (shares).

        Args:
            importance: float64 (cuboids): the cost of a squared error of one count.
        """

    @abstractmethod
    def apart(self, importance: Float64) -> Float64:
        """Return the shares of least error of noisy counts, each by itself: float64 (shares)."""

    def starts(self, shares: Float64) -> Iterable[Float64]:
        """Yield shares to begin a descent with: some that are given, and perhaps others."""
        yield shares

    def rounded(self, shares: Float64, parts: int = PARTS) -> list[tuple[Part, ...]]:
        """Return the shares of each group in multiples of 1/10,000, or of other parts.

        A share below half of that is none, where that may be: it would cost more than it tells.
        """
        is_small = (shares < 0.5 / parts) & ~self.needed
        kept = np.where(is_small, 0.0, np.maximum(shares, 1 / parts))
        return [rounded_shares(group, parts) for group in np.split(kept, self.ends)]

    def exact(self, problem: Problem, rounded: list[tuple[Part, ...]]) -> tuple[Part, ...]:
        """Return one share or None for each cuboid, summing to exactly 1, from those of groups."""
        del problem
        return rounded[0]


def shares_of(means: Means, logs: Float64) -> Float64:
    """Return shares from their logarithms, which count up to a factor in each group."""
    return np.concatenate([softmax(group) for group in np.split(logs, means.ends)])


def logs_of(means: Means, shares: Float64) -> Float64:
    """Return the logarithms of shares to begin at, 0 for the largest of each group."""
    groups = (group / group.max() for group in np.split(shares, means.ends))
    return np.asarray(np.log(np.maximum(np.concatenate([*groups]), np.exp(SMALLEST))))


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


def least(means: Means, cost: Cost, *starts: Float64, **options: float) -> Float64:
    """Return the shares at which a cost is least, the best of descents from several shares."""
    of_logs = in_logs(means, cost)
    ends = [
        minimize(of_logs, logs, jac=True, bounds=[BOUNDS] * len(logs), options=options)
        for start in starts
        for logs in (logs_of(means, each) for each in means.starts(start))
    ]
    return shares_of(means, min(ends, key=lambda end: float(end.fun)).x)


def least_largest(means: Means, costs: Float64) -> Float64:
    """Return the shares that make the largest mean variance, each times its cost, least.

    Where shares can make them so, all are then alike. Minimises a smooth stand-in of the maximum,
    the p-norm, that is sharpened step by step; then, of few shares, the maximum itself.

    Args:
        means: by shares.
        costs: float64 (cuboids), at least 0, 0 for those that do not matter.
    """
    shares, matters = np.ones(len(means.needed)), costs > 0
    for sharp in SHARPNESS:
        shares = least(means, _norm_of(costs, sharp), shares)

    def values(logs: Float64) -> Sloped:
        found = shares_of(means, logs)
        variances, slope = means.variances(found)
        slopes = by_logs(means, found, slope[matters] / variances[matters, None])
        return np.log(variances[matters] * costs[matters]), slopes

    if len(shares) > FEW:
        return shares
    logs = logs_of(means, shares)
    better = settled(lambda x: values(x)[0], logs, slopes=lambda x: values(x)[1])
    return shares_of(means, min((logs, better), key=lambda x: float(values(x)[0].max())))


def settled(
    values: Callable[[Float64], Float64],
    start: Float64,
    cost: Cost | None = None,
    most: float = 0.0,
    slopes: Callable[[Float64], Float64] | None = None,
) -> Float64:
    """Return the logarithms at which a cost is least while no value is above a bound.

    By sequential quadratic programming.

    Args:
        values: of logarithms.
        start: logarithms.
        cost: of logarithms; without one the largest of the values is made least.
        most: the bound.
        slopes: derivatives of the values; by differences unless given.
    """
    last = np.append(np.zeros(len(start)), 1.0)

    def aim(x: Float64) -> tuple[float, Float64]:
        if cost is None:
            return float(x[-1]), last
        found, slope = cost(x[:-1])
        return found, np.append(slope, 0.0)

    limit = {"type": "ineq", "fun": lambda x: x[-1] - values(x[:-1])}
    if slopes is not None:
        limit["jac"] = lambda x: np.insert(-slopes(x[:-1]), len(start), 1.0, axis=1)
    bound = float(values(start).max()) if cost is None else most
    return np.asarray(
        minimize(
            aim,
            np.append(start, bound),
            jac=True,
            constraints=limit,
            bounds=[*[BOUNDS] * len(start), (None, None) if cost is None else (most, most)],
            method="SLSQP",
            options={"ftol": 1e-9 if slopes is None else 1e-12, "maxiter": 300},
        ).x[:-1]
    )


def _norm_of(costs: Float64, sharp: float) -> Cost:
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
