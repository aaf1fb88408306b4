"""What shares are chosen for: costs of variances, and smooth functions that stand in for them.

A p-norm stands in for the largest cost, and a sum with a penalty of the p-th power for one within a
bound; p grows, and then multipliers make the stand-ins exact (`hedgerow.plan.allocation.optimum`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, softmax

from hedgerow.arrays import Float64, FloatPair, Int64, WithGradient
from hedgerow.plan.allocation.allocation import FINE_PARTS, PARTS
from hedgerow.plan.allocation.means import Means

SHARP, STEP, SHARPEST = 256.0, 4.0, 2.0**14
"""The exponent at which multipliers begin, by what it grows on the way there, and the last one."""

CLOSE, MOST_ROUNDS = 5e-7, 20
"""How near multipliers come to the optimum, and how often they are changed at most."""

LOST = 500.0
"""The logarithm of penalties beyond which a bound is taken to be out of reach."""


class Objective(ABC):
    """What is made least: a function of variances, or a smooth one that stands in for it.

    Attributes:
        sharp: the exponent of the one that stands in.
        parts: shares are multiples of one of so many: of few where it is flat at its least, and
            rounding costs next to nothing.
    """

    sharp: float = 1.0
    parts = FINE_PARTS

    def at(self, means: Means, shares: Float64) -> WithGradient:
        """Return the smooth function, and its derivatives by shares."""
        variances, back = means.variances(shares)
        value, slope = self.smooth(variances)
        return value, back(slope)

    @abstractmethod
    def smooth(self, variances: Float64) -> WithGradient:
        """Return the smooth function of variances, and its derivatives by them."""

    @abstractmethod
    def reached(self, variances: Float64) -> float:
        """Return what is made least; infinite where a bound is not kept."""

    @abstractmethod
    def sharper(self, variances: Float64) -> "Objective | None":
        """Return the next function to make least, from the last one's minimum; None at the end."""

    @abstractmethod
    def weights(self, variances: Float64) -> Float64:
        """Return weights whose sum of variances nowhere exceeds what is made least."""


@dataclass(frozen=True, eq=False)
class Total(Objective):
    """A weighted sum of variances.

    Attributes:
        costs: float64 (variances).
    """

    parts = PARTS
    costs: Float64

    def at(self, means: Means, shares: Float64) -> WithGradient:
        """Return the sum, and its derivatives by shares."""
        return means.total(shares, self.costs)

    def smooth(self, variances: Float64) -> WithGradient:
        """Return the sum, and its derivatives."""
        return self.reached(variances), self.costs

    def reached(self, variances: Float64) -> float:
        """Return the sum."""
        return float(self.costs @ variances)

    def sharper(self, variances: Float64) -> None:
        """Return None: nothing stands in for it."""

    def weights(self, variances: Float64) -> Float64:
        """Return the costs."""
        del variances
        return self.costs


@dataclass(frozen=True, eq=False)
class Largest(Objective):
    """The largest variance, each times its cost; its p-norm stands in for it.

    Attributes:
        costs: float64 (variances), at least 0; 0 for those that do not matter.
        sharp: p.
        logs: float64 (variances): the logarithms of multipliers.
    """

    costs: Float64
    sharp: float = 1.0
    logs: Float64 | float = 0.0
    rounds: int = 0

    def _terms(self, variances: Float64) -> Float64:
        with np.errstate(divide="ignore"):
            return self.logs + self.sharp * np.log(self.costs * variances)

    def smooth(self, variances: Float64) -> WithGradient:
        """Return the p-norm, and its derivatives."""
        terms = self._terms(variances)
        norm = float(np.exp(logsumexp(terms) / self.sharp))
        return norm, norm * softmax(terms) / variances

    def reached(self, variances: Float64) -> float:
        """Return the largest."""
        return float((self.costs * variances).max())

    def sharper(self, variances: Float64) -> "Largest | None":
        """Return a sharper norm, or one with other multipliers; None where there is no gap."""
        if self.sharp < SHARP:
            return replace(self, sharp=STEP * self.sharp)
        least = float(self.weights(variances) @ variances)
        terms = self._terms(variances)
        if self.rounds >= MOST_ROUNDS or self.reached(variances) <= least * (1 + CLOSE):
            return None
        sharp = min(2 * self.sharp, SHARPEST)
        return replace(self, sharp=sharp, logs=terms - logsumexp(terms), rounds=self.rounds + 1)

    def weights(self, variances: Float64) -> Float64:
        """Return multipliers as weights of the costs, which sum to 1."""
        weights = softmax(self._terms(variances)) / variances
        return np.asarray(weights / (weights[self.costs > 0] / self.costs[self.costs > 0]).sum())


@dataclass(frozen=True, eq=False)
class Within(Objective):
    """A weighted sum, while the variances of a cuboid differ by less than a ratio.

    With h and l multipliers of the larger and the smaller ones, a cuboid c has the penalty
    P_c = Σ_k h_k V_k^p Σ_k l_k (r V_k)^-p, and F (1 + ΣP/p) stands in for F. Without costs the
    largest ratio itself is made least, and (ΣP)^(1/p) stands in for it.

    Attributes:
        costs: float64 (variances); None to make the ratio least.
        bound: the logarithm of the ratio.
        chosen: int64: the variances that may differ, cuboid by cuboid: above 0 in any plan.
        first: int64 (cuboids): where those of each cuboid begin.
        slack: by how much the bound is below the one that is asked for, for which a gap is proved.
    """

    costs: Float64 | None
    bound: float
    chosen: Int64
    first: Int64
    slack: float = 0.0
    sharp: float = 1.0
    high: Float64 | float = 0.0
    low: Float64 | float = 0.0
    rounds: int = 0

    def log_ratio(self, variances: Float64) -> float:
        """Return the largest ln(largest / least) of a cuboid."""
        logs = np.log(variances[self.chosen])
        if not len(logs):
            return 0.0
        spread = np.maximum.reduceat(logs, self.first) - np.minimum.reduceat(logs, self.first)
        return float(spread.max())

    def _ends(self, variances: Float64) -> FloatPair:
        logs = self.sharp * np.log(variances[self.chosen])
        return self.high + logs, self.low - logs - self.sharp * self.bound

    def _penalties(self, variances: Float64) -> FloatPair:
        """Return ln P of each cuboid, and its derivatives by p times the logs of variances."""
        penalty = np.zeros(len(self.first))
        slope = np.zeros(len(self.chosen))
        times = np.diff(self.first, append=len(self.chosen))
        for sign, terms in zip((1, -1), self._ends(variances), strict=True):
            most = np.maximum.reduceat(terms, self.first)
            shown = np.exp(terms - np.repeat(most, times))
            sums = np.add.reduceat(shown, self.first)
            penalty = penalty + most + np.log(sums)
            slope = slope + sign * shown / np.repeat(sums, times)
        return penalty, slope

    def _pairs(self, variances: Float64) -> WithGradient:
        """Return ln ΣP, and its derivatives by p times the logarithms of chosen variances."""
        penalty, slope = self._penalties(variances)
        most = penalty.max()
        shown = np.exp(penalty - most)  # SciPy's own sums of so few numbers take ten times as long
        whole = shown.sum()
        times = np.diff(self.first, append=len(self.chosen))
        return float(most + np.log(whole)), slope * np.repeat(shown / whole, times)

    def smooth(self, variances: Float64) -> WithGradient:
        """Return F (1 + ΣP/p), or (ΣP)^(1/p), and its derivatives."""
        whole, by_logs = self._pairs(variances)
        slope = np.zeros(len(variances))
        slope[self.chosen] = by_logs / variances[self.chosen]
        if self.costs is None:
            norm = float(np.exp(whole / self.sharp))
            return norm, norm * slope
        total = float(self.costs @ variances)
        penalty = float(np.exp(min(whole, LOST)))
        more = 1 + penalty / self.sharp
        return total * more, self.costs * more + total * penalty * slope

    def reached(self, variances: Float64) -> float:
        """Return the sum, infinite where the bound is missed; or the ratio."""
        ratio = self.log_ratio(variances)
        if self.costs is None:
            return ratio
        return float(self.costs @ variances) if ratio <= self.bound + CLOSE else np.inf

    def sharper(self, variances: Float64) -> "Within | None":
        """Return a sharper penalty, or other multipliers; None where nothing changes any more."""
        if self.sharp < SHARP:
            return replace(self, sharp=STEP * self.sharp)
        whole, by_logs = self._pairs(variances)
        ratio = self.log_ratio(variances)
        high, low = self._ends(variances)
        if self.costs is None:  # the mean ratio, by the multipliers, is near the largest
            is_done = ratio <= float(by_logs @ np.log(variances[self.chosen])) + CLOSE
            high, low = high - whole / 2, low - whole / 2
        else:
            total = float(self.costs @ variances)
            kept = replace(self, slack=0.0)
            least = float(kept.weights(variances) @ variances)
            is_done = ratio <= self.bound + CLOSE and abs(total - least) <= CLOSE * total
            is_done |= whole > LOST  # out of reach
        if is_done or self.rounds >= MOST_ROUNDS:
            return None
        sharp = min(2 * self.sharp, SHARPEST)
        return replace(self, sharp=sharp, high=high, low=low, rounds=self.rounds + 1)

    def weights(self, variances: Float64) -> Float64:
        """Return the costs, and multipliers of what is too large less r times what is too small."""
        weights = np.zeros(len(variances))
        values = variances[self.chosen]
        if self.costs is None or not len(values):
            return weights if self.costs is None else self.costs
        penalty, slope = self._penalties(variances)
        times = np.diff(self.first, append=len(values))
        total = float(self.costs @ variances)
        each = total * np.exp(penalty - np.logaddexp(0, logsumexp(penalty) - np.log(self.sharp)))
        larger = np.maximum(slope, 0) * np.repeat(each, times) / values
        both = np.repeat(np.add.reduceat(larger, self.first), times)
        weights[self.chosen] = larger - np.exp(self.bound + self.slack) * both * np.maximum(
            -slope, 0
        )
        return weights + self.costs
