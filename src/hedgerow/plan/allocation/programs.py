"""Ko's two convex programs: the least error that a budget buys, the least budget for an error.

Level ℓ has the error g_ℓ(b), in records², when b of the budget goes to it. Ko et al., program (6):

    E(B) = min Σ_ℓ g_ℓ(b_ℓ) subject to Σ_ℓ b_ℓ = B, b ≥ 0,

and program (7): min Σ_ℓ b_ℓ subject to Σ_ℓ g_ℓ(b_ℓ) ≤ τ. Each g_ℓ is strictly convex, falls from
infinity and tends to 0, so both optima are interior and are given by the conditions of Karush, Kuhn
and Tucker alone: -g_ℓ'(b_ℓ) = λ for all ℓ, and the constraint holds with equality.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.declared import frozen
from hedgerow.errors import PlanError
from hedgerow.noise.cell_error import CellError

LARGEST_RESIDUAL = 1e-10
"""How far the conditions may fail, relatively."""

LARGEST_RANGE = 600.0
"""How far ln(-g_ℓ') may differ at equal precision, so that no float overflows on the way."""

_VANISHING = 300.0  # the precision at which errors are exp(-300), near the least that floats hold
_REACHED = 1e-13
_LONGEST_STEP = 2.0
_MOST_STEPS = 200


class LevelCost(Protocol):
    """The error g of one level as a function of its budget."""

    @property
    def sensitivity(self) -> float:
        """The budget that buys a precision of 1."""

    def derivative(self, budget: float, order: int = 0) -> float:
        """Return g (records² times importance), g' < 0 or g'' > 0 at a budget, by the order."""


@frozen(eq=False)
class PriorCells:
    """Σ_k weight_k f(b/Δ, N_k): a level of cells whose counts a prior gives.

    Counts far beyond the noise have all the same error, which is computed once: at Nε = 45, or at
    N = 10σ = 10/√(2ρ), the error and its derivatives are within 1e-15 of their limit.

    Attributes:
        kind: f, the error of one cell.
        counts: N, distinct values, ascending: float64 (values), records.
        weights: how many cells have the value, times their importance: float64 (values).
        sensitivity: Δ, the budget that buys a precision of 1.
    """

    kind: CellError
    counts: Float64
    weights: Float64
    sensitivity: float

    def derivative(self, budget: float, order: int = 0) -> float:
        """Return g, g' or g''; see `LevelCost`."""
        moment = (self.kind.mse, self.kind.mse_slope, self.kind.mse_curvature)[order]
        precision = budget / self.sensitivity
        far = max(45 / precision, 10 / math.sqrt(2 * precision))
        near = int(np.searchsorted(self.counts, far))
        total = self.weights[:near] @ moment(precision, self.counts[:near])
        if near < len(self.counts):
            limit = moment(precision, self.counts[near : near + 1])
            total += self.weights[near:].sum() * limit[0]
        return float(total) / self.sensitivity**order


@frozen
class LargeCounts:
    """w n V (Δ/b)^k: a level of cells whose counts are large against the noise.

    Clipping at 0 then does nothing, and the error is the variance of the noise: 2 (Δ₁/ε)² for
    Laplace (k = 2, V = 2), Δ₂²/(2ρ) for Gaussian noise (k = 1, V = 1/2). Program (6) has the closed
    form b ∝ (w n Δᵏ)^(1/(k+1)), which the solver meets in one step.

    Attributes:
        cost: w n V.
        power: k.
        sensitivity: Δ₁ (ε) or Δ₂² (ρ).
    """

    cost: float
    power: int
    sensitivity: float

    def derivative(self, budget: float, order: int = 0) -> float:
        """Return g, g' or g''; see `LevelCost`."""
        error = self.cost * (self.sensitivity / budget) ** self.power
        factors = 1, -self.power, self.power * (self.power + 1)
        return factors[order] * error / budget**order


@frozen(eq=False)
class Solution:
    """The optimum of program (6).

    Attributes:
        budgets: one a level: float64 (levels).
        multiplier: λ, by how much the error falls with the budget.
        residual: the greatest |-g_ℓ'(b_ℓ)/λ - 1|.
    """

    budgets: Float64
    multiplier: float
    residual: float


def least_error(
    levels: Sequence[LevelCost], budget: float, start: Float64 | None = None
) -> Solution:
    """Return the optimum of program (6).

    Newton's method on u = ln b and ln λ: with h_ℓ(u) = ln(-g_ℓ'(eᵘ)) the condition is
    h_ℓ(u_ℓ) = ln λ, and h_ℓ is nearly linear (exactly so for `LargeCounts`). Each step moves every
    h_ℓ in proportion towards one ln λ, so a short enough one narrows their range; it is halved
    until it does.

    Args:
        levels: at least one.
        budget: B, above 0.
        start: budgets to start at, of any sum; equal precision unless given.
    """
    if start is None:
        start = np.array([level.sensitivity for level in levels])
    budgets = start * (budget / start.sum())
    heights = _heights(levels, budgets)
    if not (np.isfinite(heights).all() and np.ptp(heights) <= LARGEST_RANGE):
        raise PlanError(
            "the costs of the levels' errors differ too much for an optimal allocation; give a "
            "usual budget or target, and importances within a factor of 1e100 of each other"
        )
    for _ in range(_MOST_STEPS):
        width = float(np.ptp(heights))
        if width <= _REACHED:
            break
        step = _newton_step(levels, budgets, heights)
        length = min(1.0, _LONGEST_STEP / float(np.abs(step).max()))
        narrowed = False
        while not narrowed and length > 1e-6:
            moved = budgets * np.exp(length * step)
            moved *= budget / moved.sum()
            new = _heights(levels, moved)
            narrowed = bool(np.ptp(new) <= (1 - length / 4) * width)
            length /= 2
        if not narrowed:  # as narrow as rounding lets it be
            break
        budgets = moved
        heights = new
    multiplier = math.exp((float(heights.max()) + float(heights.min())) / 2)
    residual = math.expm1(float(np.ptp(heights)) / 2)
    if not residual <= LARGEST_RESIDUAL:
        raise PlanError(
            f"the optimal allocation was not found: the optimality conditions fail by "
            f"{residual:.1e}; give importances and a budget nearer to 1"
        )
    return Solution(budgets, multiplier, residual)


def least_budgets(
    levels: Sequence[LevelCost], target: float, largest: float, floors: Float64 | None = None
) -> Float64:
    """Return the optimum of program (7), each level having at least its floor: float64 (levels).

    Without floors it is the optimum of (6) for the B at which E(B) = τ. With them, a level below
    its floor is put there, and the others share what error is left; what they need grows smaller
    thereby, so no level ever leaves its floor again.

    Args:
        levels: at least one.
        target: τ, above 0.
        largest: the greatest budget allowed.
        floors: b_ℓ at least: float64 (levels), 0 or more.
    """
    floors = np.zeros(len(levels)) if floors is None else floors
    budgets = floors.copy()
    free = list(range(len(levels)))
    while free:
        fixed = set(range(len(levels))) - set(free)
        left = target - sum(levels[i].derivative(floors[i]) for i in fixed)
        budgets[free] = _reaching([levels[i] for i in free], left, largest)
        below = [i for i in free if budgets[i] < floors[i]]
        budgets[below] = floors[below]
        if not below:
            break
        free = [i for i in free if i not in below]
    return budgets


def total_error(levels: Sequence[LevelCost], budgets: Float64) -> float:
    """Return Σ_ℓ g_ℓ(b_ℓ), in records² times importance."""
    return sum(
        level.derivative(float(budget)) for level, budget in zip(levels, budgets, strict=True)
    )


def _reaching(levels: Sequence[LevelCost], target: float, largest: float) -> Float64:
    """Return the budgets with E(B) = τ, by Newton's method in ln B within a bracket; E' = -λ."""
    if any(isinstance(level, PriorCells) for level in levels):
        largest = min(largest, _VANISHING * sum(level.sensitivity for level in levels))
    top = math.log(largest)
    best = least_error(levels, largest)
    least = total_error(levels, best.budgets)
    if not least <= target:
        raise PlanError(
            f"no budget up to {largest:,.6g} reaches an error of {target:.6g}; "
            f"the least error there is {least:.6g}, so ask for no less"
        )
    low, high = -math.inf, top
    place = min(math.log(sum(level.sensitivity for level in levels)), top)
    start = None
    for _ in range(_MOST_STEPS):
        best = least_error(levels, math.exp(place), start)
        start = best.budgets
        error = total_error(levels, best.budgets)
        excess = math.log(error / target)
        low, high = (place, high) if excess > 0 else (low, place)
        step = excess * error / (best.multiplier * math.exp(place))
        new = place + max(-_LONGEST_STEP, min(_LONGEST_STEP, step))
        if not low <= new <= high:
            new = (low + high) / 2 if math.isfinite(low) else high - _LONGEST_STEP
        if abs(new - place) <= _REACHED:
            break
        place = new
    return least_error(levels, math.exp(place), start).budgets


def _heights(levels: Sequence[LevelCost], budgets: Float64) -> Float64:
    """Return h_ℓ = ln(-g_ℓ'(b_ℓ))."""
    slopes = [-level.derivative(float(b), 1) for level, b in zip(levels, budgets, strict=True)]
    with np.errstate(divide="ignore"):
        return np.log(slopes)


def _newton_step(levels: Sequence[LevelCost], budgets: Float64, heights: Float64) -> Float64:
    """Return the change of ln b that makes all h_ℓ equal and leaves Σ b, both to first order."""
    curvatures = [level.derivative(float(b), 2) for level, b in zip(levels, budgets, strict=True)]
    falls = budgets * np.array(curvatures) * np.exp(-heights)  # -dh/du
    common = (budgets / falls @ heights) / (budgets / falls).sum()
    step: Float64 = (heights - common) / falls
    return step
