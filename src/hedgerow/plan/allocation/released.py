"""Shares that minimise the error of the released counts: after estimation, not before.

With importance w_t the objective is

    F(s) = Σ_t w_t Σ_{nodes of depth t} Var(estimate), subject to s ≥ 0, Σ s = 1,

exact for the tree's real family sizes (`hedgerow.estimate.tree.error`), for continuous variances:
a share s of ρ = 1 buys Δ₂²/(2s), a share s of ε = 1 buys 2(Δ₁/s)². Budgets only scale F. Every
result is certified by a duality gap, global where F is convex: docs/proofs.md, "Shares for released
counts".
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.errors import PlanError
from hedgerow.estimate.tree.error import weighted_variance_and_gradient
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.plan.allocation.allocation import PARTS, Problem, rounded_shares
from hedgerow.plan.allocation.descent import Means, Part, Sloped
from hedgerow.plan.cuboids import All

ACCURACY = 1e-11
"""The slopes at which the minimisation stops, in units of F."""

Function = Callable[[Float64], tuple[float, Float64]]


def multiplied(objective: Function, y: Float64, power: int, times: int = 8) -> Float64:
    """Return y after a few steps y_t ← y_t (-∂F/∂y_t)^(1/(power+1)), exact for separable F.

    The multiplicative algorithm of optimal design (Silvey, Titterington & Torsney 1978): a starting
    point; no rate or monotonicity is relied on.
    """
    for _ in range(times):
        y = y * np.maximum(-objective(y)[1], 0.0) ** (1 / (power + 1))
        y = y / y.sum()
    return y


def descended(objective: Function, y: Float64, power: int) -> tuple[float, float, Float64]:
    """Return a stationary point of F on the simplex by projected Newton steps: (F, gap, y).

    The gap is max_t (-∂F/∂y_t) - Σ_t y_t (-∂F/∂y_t): no convex F is lower than F - gap anywhere.

    F has degree -power, so its minima on the simplex are, but for scale, those of F/power + Σy on
    y ≥ 0 (Bertsekas 1982 for such bounds). Second derivatives are differences of the gradient.
    """
    scale = objective(y)[0]

    def lifted(y: Float64) -> tuple[float, Float64]:
        value, gradient = objective(y)
        return value / scale / power + y.sum(), gradient / scale / power + 1

    value, gradient = lifted(y)
    for _ in range(100):
        distance = _distance(y, gradient)
        if distance < ACCURACY:
            break
        step = _newton_step(lifted, y, gradient)
        for halvings in range(40):
            ahead = np.maximum(y + step / 2**halvings, 0.0)
            ahead_value, slope = lifted(ahead)
            # At the bottom F is flat to the last bit; there the slopes decide.
            is_level = ahead_value <= value * (1 + 1e-13) and _distance(ahead, slope) < distance / 2
            if is_level or ahead_value <= value + 1e-4 * float(gradient @ (ahead - y)) < value:
                break
        else:
            break
        y, value, gradient = ahead, ahead_value, slope
    y = y / y.sum()
    value, gradient = objective(y)
    return value, float((-gradient).max() + y @ gradient), y


def _distance(y: Float64, gradient: Float64) -> float:
    """Return the distance of y from a minimum on y ≥ 0: negative slopes, slopes where y > 0."""
    return max(-float(gradient.min()), float(np.abs(gradient * y).max()))


def _newton_step(lifted: Function, y: Float64, gradient: Float64) -> Float64:
    """Return the step to the minimum of the quadratic model over what is not held at 0."""
    held = (y <= 1e-9 * y.sum()) & (gradient > 0)
    free = np.flatnonzero(~held)
    hessian = np.empty((len(free), len(free)))
    for row, t in enumerate(free):
        ahead = y.copy()
        ahead[t] += 1e-5 * max(y[t], 1e-5 * y.sum())
        hessian[row] = (lifted(ahead)[1] - gradient)[free] / (ahead[t] - y[t])
    curvatures, directions = np.linalg.eigh((hessian + hessian.T) / 2)
    curvatures = np.maximum(np.abs(curvatures), 1e-12 * np.abs(curvatures).max())
    step = -y
    step[free] = -directions @ ((directions.T @ gradient[free]) / curvatures)
    return step


LARGEST_GAP = 1e-9
"""The largest relative distance of F from its minimum."""

LEAST_SHARE = 1e-6
"""The least share of depths that must be measured: all under `Survivors`, the last under `All`."""


@dataclass(frozen=True, slots=True, eq=False)
class Along(Means):
    """Mean variances along a chain, or along one axis of a cube.

    Attributes:
        shapes: of the tree.
        depths: those that can be measured; what is above them is public.
        costs: float64 (depths): the variance that a share of 1 buys.
        combine: by least squares; otherwise projected.
        power: 1 where precision ∝ s (ρ), 2 where precision ∝ s² (ε): F has degree -power.
    """

    shapes: Shapes
    depths: tuple[int, ...]
    costs: Float64
    combine: bool
    power: int

    @classmethod
    def of(cls, problem: Problem) -> "Along":
        """Return those of a chain."""
        price, combine = problem.mechanism.price, isinstance(problem.measure, All)
        each = (problem.sensitivity(t) ** price.power for t in problem.depths)
        costs = np.array([*each]) * float(price.variance)
        return cls(Shapes.of(problem.tree), problem.depths, costs, combine, price.power)

    @classmethod
    def axis(cls, child_start: Sequence[Int64], power: int) -> "Along":
        """Return those of one axis, from the child ranges of its levels."""
        levels = range(len(child_start) + 1)
        return cls(Shapes.along(child_start), tuple(levels), np.ones(len(levels)), True, power)

    @property
    def needed(self) -> Bool:
        """The last one, and all where estimates are projected: bool (depths)."""
        return np.array([not self.combine] * (len(self.depths) - 1) + [True])

    def own(self, shares: Float64, public: int = -1) -> Float64:
        """Return the variances that shares buy: float64 (T + 1), infinite for a share of 0.

        Args:
            shares: float64 (depths).
            public: the deepest level whose counts are public, if those above all depths are not.
        """
        own = np.full(self.shapes.depth + 1, np.inf)
        with np.errstate(divide="ignore", over="ignore"):
            own[list(self.depths)] = self.costs / shares**self.power
        own[: max(public + 1, self.depths[0])] = 0.0
        return own

    def total(self, shares: Float64, weights: Float64, public: int = -1) -> tuple[float, Float64]:
        """Return F and its derivatives by the shares, for float64 (T + 1) weights."""
        value, gradient = weighted_variance_and_gradient(
            self.shapes, self.own(shares, public), weights, combine=self.combine
        )
        slope = self.power * shares ** (self.power - 1) / self.costs
        with np.errstate(invalid="ignore"):  # an infinite value has no derivatives
            return value, gradient[list(self.depths)] * slope

    def variances(self, shares: Float64, public: int = -1) -> Sloped:
        """Return float64 (depths), and their derivatives by shares, (depths, depths)."""
        alone = np.diag(1 / self.shapes.sizes)[list(self.depths)]
        each = [self.total(shares, weights, public) for weights in alone]
        return np.array([value for value, _ in each]), np.array([slope for _, slope in each])

    def weights(self, importance: Float64) -> Float64:
        """Return importances of depths as weights of all: float64 (T + 1), 1 for the largest."""
        weights = np.zeros(self.shapes.depth + 1)
        weights[list(self.depths)] = importance / importance.max()
        return weights

    def apart(self, importance: Float64) -> Float64:
        """Return the closed form of program (6) for large counts, without a prior.

        Shares ∝ (w n Δ₂²)^(1/2) under ρ and ∝ (w n Δ₁²)^(1/3) under ε, for n nodes of importance w
        (Ko et al., Section 4).
        """
        costs = (self.weights(importance) * self.shapes.sizes)[list(self.depths)] * self.costs
        wanted = costs ** (1 / (self.power + 1))
        shares: Float64 = wanted / wanted.sum()
        return shares

    def least_total(self, importance: Float64) -> Float64:
        """Return the shares with the least F; 0 for a depth that is better not measured.

        Raises:
            PlanError: no least F could be certified.
        """
        count, weights = len(self.depths), self.weights(importance)
        if count == 1:
            return np.ones(1)
        floor = np.full((count, count), LEAST_SHARE / count)
        if self.combine:
            floor[:-1], floor[-1] = 0.0, LEAST_SHARE
        mixing = (1 - LEAST_SHARE) * np.eye(count) + floor  # its columns sum to 1

        def objective(y: Float64) -> tuple[float, Float64]:
            value, gradient = self.total(mixing @ y, weights)
            return value, mixing.T @ gradient

        ahead = sorted(
            (multiplied(objective, start, self.power) for start in self.tried(importance)),
            key=lambda y: objective(y)[0],
        )
        tries = [descended(objective, y, self.power) for y in ahead[: 1 if self.is_convex else 3]]
        value, gap, y = min(tries, key=lambda result: result[0])
        if not gap <= LARGEST_GAP * value:
            raise PlanError(
                f"no least error after estimation could be certified (the gap is {gap / value:.1e} "
                f"of it); give shares explicitly, or importances that differ less"
            )
        shares = mixing @ y
        return np.asarray(shares / shares.sum())

    @property
    def is_convex(self) -> bool:
        """Whether F is, so that any descent ends in its minimum."""
        return self.power == 1 or not self.combine

    def tried(self, importance: Float64) -> Iterator[Float64]:
        """Yield starting points: equal shares, and program (6) for each choice of depths to try."""
        count = len(self.depths)
        yield np.full(count, 1 / count)
        closed = np.maximum(self.apart(importance), 1e-3)
        if self.is_convex:
            yield closed / closed.sum()
            return
        left_out = {tuple(range(k)) for k in range(count)}
        for k in range(count if count <= 6 else 3):
            left_out.update(combinations(range(count - 1), k))
        for out in sorted(left_out):
            start = closed.copy()
            start[list(out)] = 0.0
            yield start / start.sum()

    def rounded(self, shares: Float64, parts: int = PARTS) -> list[tuple[Part, ...]]:
        """Return the shares in multiples of 1/10,000 or other parts, one of each above 0."""
        return [rounded_shares(shares, parts)]
