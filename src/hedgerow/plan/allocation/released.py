"""Shares that minimise the error of the released counts: after estimation, not before.

Program (6) of Ko et al. minimises the error of the noisy counts as they are measured. Users see
estimates: least squares (`All`) lets every depth inform all others, projection (`Survivors`)
corrects families by their parents. With importance w_t the objective here is

    F(s) = Σ_t w_t Σ_{nodes of depth t} Var(estimate), subject to s ≥ 0, Σ s = 1,

exact for the tree's real family sizes (`hedgerow.estimate.tree.error`), for continuous variances:
a share s of ρ = 1 buys Δ₂²/(2s), a share s of ε = 1 buys 2(Δ₁/s)². Budgets only scale F.

*Which objective is right.* This one where what is published are the estimates and most counts are
large against the noise, which least squares satisfies always. Program (6) with a prior where
leaves are mostly empty and counts are cut off at 0, for there the error of a cell depends on its
count, which F does not know: in the sparse tables of ``studies/released.py`` projected counts are
up to 3 % worse under ρ than with program (6), and less importance for sparse depths sets that
right. A depth of single children has no importance of its own: give it to its parents' depth.
Program (6) for large counts is F only if depths are used separately.

*Gaussian noise: F is convex.* Let X(s) = Σ_t p_t A_tᵀA_t be the information about the leaves, p_t ∝
s_t the precision and A_t the sums of depth t, restricted to what public counts leave free. The
estimates have covariance X⁻¹ there, so F(s) = tr(W X(s)⁻¹) with W = Σ_t w_t A_tᵀA_t ⪰ 0. X is
linear in s, and Y ↦ tr(W Y⁻¹) is convex on positive definite matrices: its second derivative in
direction H is 2 tr(W Y⁻¹HY⁻¹HY⁻¹) ≥ 0. Projection gives Σ_t D_t/p_t, convex too. Hence, with
g = -∇F, F(s) - F* ≤ max_t g_t - Σ_t s_t g_t, the gap that certifies every result.

*Laplace noise.* p_t ∝ s_t², so the slope at s_t = 0 is 0: under `All` every choice of depths to
measure may have a local minimum of its own. All choices are tried for up to 6 depths, and all that
leave out one or two depths or the coarsest ones for more; the gap then certifies a stationary point
only. Under `Survivors` F is Σ_t D_t Δ₁²/s_t² up to a factor, convex, and certified.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.estimate.tree.error import weighted_variance_and_gradient
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.allocation.simplex import descended, multiplied
from hedgerow.plan.depths import All

Floats = NDArray[np.float64]

LARGEST_GAP = 1e-9
"""How far above its minimum F may be, relatively."""

LEAST_SHARE = 1e-6
"""What depths keep that must be measured: all of them under `Survivors`, the last under `All`."""


def released_shares(problem: Problem, importance: Sequence[float]) -> tuple[float, ...]:
    """Shares that minimise the importance-weighted variance of the released counts.

    Args:
        problem: what can be measured.
        importance: one for each of `Problem.depths`, at least 0: what a squared error of one count
            of that depth costs.

    Returns:
        One for each of `Problem.depths`, summing to 1; 0 for a depth that is better not measured
        (under `All` alone, and never the last).

    Raises:
        PlanError: these are no importances, or no minimum was certified.
        EstimateError: the tree has too many distinct subtrees (under `All` alone).
    """
    return _Objective.of(problem, importance).minimum()


@dataclass(frozen=True, slots=True, eq=False)
class _Objective:
    """F of a problem, as a function of its shares.

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
    weights: Floats
    sensitivities: Floats
    combine: bool
    power: int

    @classmethod
    def of(cls, problem: Problem, importance: Sequence[float]) -> "_Objective":
        given = np.asarray(importance, dtype=np.float64)
        if given.shape != (len(problem.depths),):
            raise PlanError(
                f"this plan can measure {len(problem.depths)} depths "
                f"({'; '.join(problem.cuboids)}), so it needs as many importances, got {given.size}"
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
    def for_large_counts(self) -> Floats:
        """The closed form of program (6) for large counts, without a prior.

        Shares ∝ (w n Δ₂²)^(1/2) under ρ and ∝ (w n Δ₁²)^(1/3) under ε, for n nodes of importance w
        (Ko et al., Section 4).
        """
        chosen = list(self.depths)
        costs = self.weights[chosen] * self.shapes.sizes[chosen] * self.sensitivities
        wanted = costs ** (1 / (self.power + 1))
        shares: Floats = wanted / wanted.sum()
        return shares

    def value(self, shares: Floats) -> tuple[float, Floats]:
        """F and its derivatives by the shares."""
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
        """The shares with the least F."""
        count = len(self.depths)
        if count == 1:
            return (1.0,)
        floor = np.full((count, count), LEAST_SHARE / count)
        if self.combine:
            floor[:-1], floor[-1] = 0.0, LEAST_SHARE
        mixing = (1 - LEAST_SHARE) * np.eye(count) + floor  # its columns sum to 1

        def objective(y: Floats) -> tuple[float, Floats]:
            value, gradient = self.value(mixing @ y)
            return value, mixing.T @ gradient

        ahead = sorted(
            (multiplied(objective, start, self.power) for start in self._starts()),
            key=lambda y: objective(y)[0],
        )
        tries = [descended(objective, y, self.power) for y in ahead[: 1 if self.is_convex else 3]]
        value, gap, y = min(tries, key=lambda found: found[0])
        if not gap <= LARGEST_GAP * value:
            raise PlanError(
                f"no least error after estimation could be certified (the gap is {gap / value:.1e} "
                f"of it); give shares explicitly, or importances that differ less"
            )
        shares = mixing @ y
        return tuple(float(share) for share in shares / shares.sum())

    @property
    def is_convex(self) -> bool:
        return self.power == 1 or not self.combine

    def _starts(self) -> Iterator[Floats]:
        """Where to begin: equal shares, and program (6) for every choice of depths to try."""
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
