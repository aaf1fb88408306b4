"""The shares of least cost, and how near they are to the least: one optimiser for all workloads.

A cost is a function of a model's variances (`hedgerow.plan.allocation.means`): a weighted sum, the
largest of them, or a weighted sum while no cell of a cuboid is much less precise than another. The
last two are stood in for by smooth functions, a p-norm and a sum with a penalty of the p-th power,
whose p grows, and which then get multipliers (Bertsekas 1982, exponential penalties): at the end
they have the optimum itself, and the weights of its variances that prove it.

Every proof is the same: where a weighted sum F of variances is convex in the shares, no shares have
less than F - gap, gap = max_t (-∂F/∂s_t) - Σ_t s_t (-∂F/∂s_t) (docs/proofs/shares.md, "Shares of
least error").
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.optimize import brentq, minimize

from hedgerow.arrays import Float64, Int64, WithGradient
from hedgerow.declared import frozen
from hedgerow.plan.allocation.allocation import FINE_PARTS, ByDepth, Problem
from hedgerow.plan.allocation.means import Means
from hedgerow.plan.allocation.objectives import SHARP, Objective, Total

ACCURACY, ROUGH = 1e-10, 1e-3
"""The slopes at which the minimisation stops, in units of the cost: at the end, and before it."""

LEAST_SHARE = 1e-6
"""The least share of all together that must be measured."""

LEAST_PART, MOST_MIXTURES = -14.0, 40
"""The logarithm of the least part of a case in a mixture of two, and how many are tried."""

FEW = 200
"""Shares up to which second derivatives are used."""

TRIED = 3
"""Starting points that are followed where there may be several minima."""

SMALLEST_GAP = 1e-9
"""The smallest gap that is told: smaller ones are rounding errors of doubles."""

UNPROVED = {
    "power": "under a budget in ε errors are not convex in the shares",
    "product": "shares of cuboids are sought among products of levels' shares",
    "uneven": "families of a level are taken to be alike, and they are not",
    "ratio": "the ratio of combined estimates is not convex in the shares",
    "narrowest": "they were chosen for the ratio alone, so near the smallest one",
    "survivors": "where survivors are measured, leaving out other levels may cost less",
    "price": "where units may come, go or move, a share of a cube's total buys more than another",
    "facts": "public facts change which cells there are",
}

Function = Callable[[Float64], WithGradient]


@frozen(eq=False)
class Optimum:
    """Shares before they are rounded, and how near their cost is to the least under wide noise.

    Attributes:
        shares: float64 (shares).
        value: what they cost.
        least: below which no shares are, if that is proved.
        unproved: why it is not, as a key; empty where it is.
    """

    shares: Float64
    value: float
    least: float
    unproved: str

    @property
    def gap(self) -> float | None:
        """How much more they cost than the least at most, relatively: a power of 10, if known."""
        if self.unproved or not 0 < self.least <= self.value * (1 + SMALLEST_GAP):
            return None
        return float(10.0 ** np.ceil(np.log10(max(self.value / self.least - 1, SMALLEST_GAP))))

    def __str__(self) -> str:
        """Return it as a sentence."""
        if self.gap is not None:
            return (
                f"The shares are within {self.gap:.0e} of the least cost under wide noise, before "
                f"they are rounded."
            )
        reason = UNPROVED.get(self.unproved, "the search did not end")
        return f"No better shares were found; that there are none is not proved: {reason}."


@runtime_checkable
class Optimised(Protocol):
    """An allocation whose shares are of least cost."""

    def optimum(self, problem: Problem) -> Optimum | None:
        """Return how near its shares are to the least, if that is asked of it."""


def least(means: Means, objective: Objective, starts: Iterable[Float64]) -> Optimum:
    """Return the shares at which an objective is least, the best of descents from several."""
    lifted = Lifted.of(means, objective)
    begun = [lifted.multiplied(lifted.back(start)) for start in starts]
    if len(begun) > 1:
        begun.sort(key=lambda y: lifted.slopes(y)[0])
    optima = [followed(lifted, y) for y in begun[: 1 if means.is_convex else TRIED]]
    return min(optima, key=lambda each: each.value)


def least_in_cases(
    means: Means, objective: Objective, importance: Float64, cases: Float64
) -> Optimum:
    """Return the shares at which an objective is least where a unit's change is one of two cases.

    The noise is what the dearer case a_k of the shares s needs, so it is F(s) max_k (a_k s)^power
    that is made least; F is of degree -power, so that is F where no case costs more than 1. For any
    mixture a of the cases none has less than F where a s = 1: a problem of one case, whose shares
    are priced. The mixture is sought at which both cases cost the same; where F is not convex there
    may be none, and the best shares that were met on the way are near the least.

    Args:
        means: of a share that costs 1.
        objective: a function of variances.
        importance: for `Means.starts`.
        cases: float64 (1 or 2, cuboids), the first of which may not be 0.
    """
    if len(cases) == 1:
        return least(means, objective, means.starts(importance))
    optima = []

    def excess(log_first: float) -> float:
        """Return by how much the second case is dearer, for a part of the first in the mixture."""
        part = float(np.exp(log_first))
        costs = part * cases[0] + (1 - part) * cases[1]
        priced = means.priced(costs)
        at = least(priced, objective, priced.starts(importance))
        shares, of_cuboids = means.paid(at.shares, costs)
        paid = cases @ of_cuboids
        value = at.value * float(paid.max() / (costs @ of_cuboids)) ** means.power
        optima.append(replace(at, shares=shares, value=value))
        return float(np.log(paid[1] / paid[0]))

    if excess(0.0) > 0 and np.ptp(cases[1] / cases[0]) > 0 and excess(LEAST_PART) < 0:
        brentq(excess, LEAST_PART, 0.0, xtol=1e-12, maxiter=MOST_MIXTURES, disp=False)
    best = min(optima, key=lambda each: each.value)
    proved = (each.least for each in optima if not each.unproved)
    return replace(best, least=max(proved, default=best.least))


def shares_of_least(
    problem: Problem, means: Means, objective: Objective, importance: Float64
) -> ByDepth:
    """Return exact shares of a problem's cuboids at which an objective is least but for rounding.

    Where one case of a unit's change becomes dearer than the other no objective is flat.
    """
    cases = problem.cases
    optimum = least_in_cases(means, objective, importance, cases)
    parts = objective.parts if len(cases) == 1 else FINE_PARTS
    return means.exact(problem, means.rounded(optimum.shares, parts))


def followed(lifted: "Lifted", y: Float64) -> Optimum:
    """Return the best shares on the way from an objective's stand-ins to itself."""
    means = lifted.means
    best = Optimum(y, np.inf, -np.inf, "")
    while True:
        y = replace(lifted, scale=lifted.slopes(y)[0]).least(y)
        shares = lifted.shares(y)
        step = lifted.objective
        variances = means.variances(shares)[0]
        if (value := step.reached(variances)) <= best.value:
            weights = step.weights(variances)
            proved = replace(lifted, objective=Total(weights)).bound(y)
            best = Optimum(shares, value, proved, means.unproved(weights))
        following = step.sharper(variances)
        if following is None:
            return best
        lifted = replace(lifted, objective=following)


@dataclass(frozen=True, eq=False)
class Lifted:
    """An objective over y ≥ 0, whose minima are those on the simplex but for scale.

    With ŷ the shares y makes of each group, F the objective and |y| a group's sum, it is
    F(ŷ) Π |y|^-power / power + Σ |y|, for F scaled to 1: for one group, of which F has degree
    -power, F(y)/power + Σ y (Bertsekas 1982 for such bounds). What must be measured keeps a share
    of 1e-6 in all.

    Attributes:
        group: int64 (shares): the number of each share's group.
        floor: float64 (shares): the least shares.
        scale: of F.
    """

    means: Means
    objective: Objective
    group: Int64
    floor: Float64
    scale: float = 1.0

    @classmethod
    def of(cls, means: Means, objective: Objective) -> "Lifted":
        """Return the one of an objective."""
        needed = means.needed
        sizes = np.diff(means.ends, prepend=0, append=len(needed))
        group = np.repeat(np.arange(len(sizes)), sizes)
        floor = LEAST_SHARE * needed / np.maximum(np.bincount(group, needed), 1)[group]
        return cls(means, objective, group, floor)

    def sums(self, values: Float64) -> Float64:
        """Return the sums over groups, for each share: float64 (shares)."""
        return np.asarray(np.bincount(self.group, values)[self.group], dtype=np.float64)

    def shares(self, y: Float64) -> Float64:
        """Return shares of each group, what is needed at its least or above."""
        return (1 - LEAST_SHARE) * y / self.sums(y) + self.floor

    def back(self, shares: Float64) -> Float64:
        """Return the y of some shares."""
        return np.maximum(shares - self.floor, 0.0)

    def slopes(self, y: Float64) -> WithGradient:
        """Return F, and its derivatives by the shares of each group."""
        value, gradient = self.objective.at(self.means, self.shares(y))
        return value, (1 - LEAST_SHARE) * gradient

    def __call__(self, y: Float64) -> WithGradient:
        """Return the lifted objective, and its derivatives by y."""
        power = self.means.power
        sums = self.sums(y)
        if sums.min() <= 0:
            return np.inf, y
        value, gradient = self.slopes(y)
        unit = self.scale * power * float((np.bincount(self.group, y) ** power).prod())
        value, gradient = value / unit, gradient / unit
        own = self.sums(gradient * y / sums)
        return value + float(y.sum()), (gradient - own - power * value) / sums + 1

    def multiplied(self, y: Float64, times: int = 4) -> Float64:
        """Return shares after a few steps y_t ← y_t (-∂F/∂y_t)^(1/(power+1)).

        The multiplicative algorithm of optimal design (Silvey, Titterington & Torsney 1978), exact
        for separable F: a starting point; no rate or monotonicity is relied on.
        """
        for _ in range(times):
            falls = -self.slopes(y)[1]
            if len(self.means.ends) or falls.min() < 0 or not falls.any():
                break  # it is for one group, and for what falls with every share
            y = y * np.maximum((falls / falls.max()) ** (1 / (self.means.power + 1)), 1e-9)
            y = y / y.sum()
        return y

    def bound(self, y: Float64) -> float:
        """Return what no shares are below, where F is convex, or a product of such over groups.

        None at all: neither those below the floor.
        """
        shares = self.shares(y)
        value, gradient = self.objective.at(self.means, shares)
        if value <= 0 or gradient.max() > 0:  # a weighted sum that grows with a share is not convex
            return -np.inf
        gaps = np.array([
            (-gradient[own]).max() + shares[own] @ gradient[own]
            for own in (self.group == g for g in range(self.group[-1] + 1))
        ])  # fmt: skip
        return float(value * np.maximum(1 - gaps / value, 0.0).prod())

    def least(self, y: Float64) -> Float64:
        """Return a minimum that is found from y."""
        if len(y) <= FEW:
            sharp = self.objective.sharp
            accuracy = ROUGH if 1 < sharp < SHARP else ACCURACY
            return descended(self, y, 1e-5 / sharp**0.5, accuracy)
        roots = np.sqrt(np.maximum(y, 1e-12))  # in whose units curvatures are alike

        def in_roots(z: Float64) -> WithGradient:
            value, gradient = self(z * roots)
            return value, gradient * roots

        end = minimize(
            in_roots, roots, jac=True, bounds=[(0, None)] * len(y), method="L-BFGS-B",
            options={"ftol": 1e-13, "gtol": 1e-9, "maxiter": 500},
        )  # fmt: skip
        return np.asarray(end.x * roots)


def descended(function: Function, y: Float64, size: float, accuracy: float) -> Float64:
    """Return a minimum of a function on y ≥ 0, by projected Newton steps.

    Args:
        function: with its derivatives, of which differences are taken for second ones.
        y: to begin at.
        size: of a difference, relative; less than what the function bends in.
        accuracy: the slopes at which to stop.
    """
    value, gradient = function(y)
    for _ in range(100):
        distance = _distance(y, gradient)
        if distance < accuracy:
            break
        step = _newton_step(function, y, gradient, size)
        for halvings in range(40):
            ahead = np.maximum(y + step / 2**halvings, 0.0)
            ahead_value, slope = function(ahead)
            # At the bottom F is flat to the last bit; there the slopes decide.
            is_level = ahead_value <= value * (1 + 1e-13) and _distance(ahead, slope) < distance / 2
            if is_level or ahead_value <= value + 1e-4 * float(gradient @ (ahead - y)) < value:
                break
        else:
            break
        y = ahead
        value = ahead_value
        gradient = slope
    return y


def _distance(y: Float64, gradient: Float64) -> float:
    """Return the distance of y from a minimum on y ≥ 0: negative slopes, slopes where y > 0."""
    return max(-float(gradient.min()), float(np.abs(gradient * y).max()))


def _newton_step(function: Function, y: Float64, gradient: Float64, size: float) -> Float64:
    """Return the step to the minimum of the quadratic model over what is not held at 0."""
    held = (y <= 1e-9 * y.sum()) & (gradient > 0)
    free = np.flatnonzero(~held)
    hessian = np.empty((len(free), len(free)))
    for row, t in enumerate(free):
        ahead = y.copy()
        ahead[t] += size * max(y[t], 1e-5 * y.sum())
        hessian[row] = (function(ahead)[1] - gradient)[free] / (ahead[t] - y[t])
    curvatures, directions = np.linalg.eigh((hessian + hessian.T) / 2)
    least = 1e-12 * float(np.abs(curvatures).max()) or float(np.abs(gradient).max() / y.sum())
    curvatures = np.maximum(np.abs(curvatures), least)
    step = -y
    step[free] = -directions @ ((directions.T @ gradient[free]) / curvatures)
    # Where hardly any curvature is seen, a step would lead too far for halvings to come back.
    return np.asarray(step * min(1.0, y.sum() / max(float(np.abs(step).max()), 1e-300)))
