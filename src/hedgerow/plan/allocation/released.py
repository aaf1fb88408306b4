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

from hedgerow.arrays import Float64
from hedgerow.errors import PlanError
from hedgerow.estimate.tree.error import weighted_variance_and_gradient
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.plan.allocation.allocation import Problem
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


def released_shares(problem: Problem, importance: Sequence[float]) -> tuple[float, ...]:
    """Return shares that minimise the importance-weighted variance of the released counts.

    Args:
        problem: what can be measured.
        importance: one for each of `Problem.depths`, at least 0: what a squared error of one count
            of that depth costs.

    Returns:
        One for each of `Problem.depths`, summing to 1; 0 for a depth that is better not measured
        (under `All` alone, and never the last).
    """
    return Released.of(problem, importance).minimum()


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """F of a chain, as a function of its shares.

    Attributes:
        shapes: of the tree.
        depths: of the problem.
        weights: one a depth 0..T: the importance.
        sensitivities: one a depth of the problem: Δ₂² (ρ) or Δ₁² (ε).
        combine: by least squares; otherwise projected.
        power: 1 where precision ∝ s (ρ), 2 where precision ∝ s² (ε): F has degree -power.
    """

    shapes: Shapes
    depths: tuple[int, ...]
    weights: Float64
    sensitivities: Float64
    combine: bool
    power: int

    @classmethod
    def of(cls, problem: Problem, importance: Sequence[float]) -> "Released":
        """Return the objective of a chain."""
        given = np.asarray(importance, dtype=np.float64)
        if given.shape != (len(problem.depths),):
            raise PlanError(
                f"this plan can measure {len(problem.depths)} depths "
                f"({'; '.join(problem.names)}), so it needs as many importances, got {given.size}"
            )
        if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
            raise PlanError(
                f"importances must be 0 or more and not all 0, got {list(importance)}; "
                f"give 1 to each level that matters"
            )
        weights = np.zeros(problem.tree.depth + 1)
        weights[list(problem.depths)] = given / given.max()
        power = problem.mechanism.price.power
        sensitivities = np.array([problem.sensitivity(t) ** power for t in problem.depths])
        combine = isinstance(problem.measure, All)
        shapes = Shapes.of(problem.tree)
        return cls(shapes, problem.depths, weights, sensitivities, combine, power)

    @property
    def for_large_counts(self) -> Float64:
        """The closed form of program (6) for large counts, without a prior.

        Shares ∝ (w n Δ₂²)^(1/2) under ρ and ∝ (w n Δ₁²)^(1/3) under ε, for n nodes of importance w
        (Ko et al., Section 4).
        """
        chosen = list(self.depths)
        costs = self.weights[chosen] * self.shapes.sizes[chosen] * self.sensitivities
        wanted = costs ** (1 / (self.power + 1))
        shares: Float64 = wanted / wanted.sum()
        return shares

    def value(self, shares: Float64) -> tuple[float, Float64]:
        """Return F and its derivatives by the shares."""
        unit = 2.0 if self.power == 1 else 0.5  # 1/variance = 2s/Δ₂² or s²/(2Δ₁²)
        precision = unit * shares**self.power / self.sensitivities
        slope = self.power * unit * shares ** (self.power - 1) / self.sensitivities
        own = np.full(len(self.weights), np.inf)
        own[: self.depths[0]] = 0.0
        with np.errstate(divide="ignore"):
            own[list(self.depths)] = 1 / precision
        value, gradient = weighted_variance_and_gradient(
            self.shapes, own, self.weights, combine=self.combine
        )
        with np.errstate(invalid="ignore"):  # an infinite value has no derivatives
            return value, gradient[list(self.depths)] * slope

    def minimum(self) -> tuple[float, ...]:
        """Return the shares with the least F."""
        count = len(self.depths)
        if count == 1:
            return (1.0,)
        floor = np.full((count, count), LEAST_SHARE / count)
        if self.combine:
            floor[:-1], floor[-1] = 0.0, LEAST_SHARE
        mixing = (1 - LEAST_SHARE) * np.eye(count) + floor  # its columns sum to 1

        def objective(y: Float64) -> tuple[float, Float64]:
            value, gradient = self.value(mixing @ y)
            return value, mixing.T @ gradient

        ahead = sorted(
            (multiplied(objective, start, self.power) for start in self._starts()),
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
        return tuple(float(share) for share in shares / shares.sum())

    @property
    def is_convex(self) -> bool:
        """Whether F is, so that any descent ends in its minimum."""
        return self.power == 1 or not self.combine

    def _starts(self) -> Iterator[Float64]:
        """Yield starting points: equal shares, and program (6) for each choice of depths to try."""
        count = len(self.depths)
        yield np.full(count, 1 / count)
        closed = np.maximum(self.for_large_counts, 1e-3)
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
