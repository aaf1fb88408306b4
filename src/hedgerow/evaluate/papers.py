"""The settings of the papers, as they state them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.evaluate.method import Setting
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation.allocation import Uniform
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.depths import Invariant
from hedgerow.plan.plan import make_plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.privacy.zcdp import rho_within
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True)
class Clipped:
    """The ℓ2 projection of noisy counts that were cut off at 0 first (Ko et al., program (8)).

    Minimise ``Σ (y_i - max(0, x_i))²`` over integers ``y >= 0`` with ``Σ y = c`` in each family.
    """

    name: ClassVar[str] = "clipped-euclidean"
    combine: ClassVar[bool | None] = False

    def to_dict(self) -> dict[str, Any]:
        """Its name; no manifest knows it."""
        return {"method": self.name}

    def project(
        self,
        noisy: NDArray[np.int64] | NDArray[np.float64],
        family_start: NDArray[np.int64],
        totals: NDArray[np.int64],
        variance: float | NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """The consistent counts, int64 (cells); see `Euclidean.project`."""
        return Euclidean(combine=False).project(
            np.maximum(noisy, 0), family_start, totals, variance
        )


def boninsegna(
    tree: Tree,
    budget: Budget,
    neighbours: Neighbours,
    invariants: Sequence[Invariant] = (),
    name: str = "Boninsegna",
) -> Setting:
    """InfTDA (Boninsegna & Silvestri, Algorithm 3): equal σ² at all depths, Chebyshev, survivors.

    An (ε, δ) budget becomes ρ by the loose ε = ρ + 2√(ρ ln(1/δ)).

    Raises:
        BudgetError: pure ε, which discrete Gaussian noise cannot spend.
    """
    spent = budget
    if isinstance(budget, EpsilonDelta):
        spent = Rho(rho_within(budget.epsilon, budget.delta))
    plan = make_plan(
        tree,
        budget=spent,
        neighbours=neighbours,
        mechanism=DiscreteGaussian,
        allocation=Uniform(),
        invariants=invariants,
    )
    return Setting(name, plan, Chebyshev(), budget)


def ko(
    tree: Tree,
    budget: Budget,
    neighbours: Neighbours,
    allocation: Uniform | Optimal,
    invariants: Sequence[Invariant] = (),
    name: str = "Ko",
) -> Setting:
    """Ko et al.: Laplace noise, cut off at 0, then the ℓ2 projection from the top down.

    Of an (ε, δ) budget it spends ε and leaves δ. The noise is discrete Laplace, for the counts are
    whole. Children of nodes that were released as 0 are 0 whatever their noise, so survivors
    alone are measured.

    Args:
        tree: of the table.
        budget: with an ε.
        neighbours: the unit of privacy.
        allocation: `Uniform`, or `Optimal` with ``objective="cells"``, perhaps with a prior.
        invariants: public levels.
        name: what the simulation calls it.

    Raises:
        BudgetError: a budget without ε.
    """
    spent = Epsilon(budget.epsilon) if isinstance(budget, EpsilonDelta) else budget
    plan = make_plan(
        tree,
        budget=spent,
        neighbours=neighbours,
        mechanism=DiscreteLaplace,
        allocation=allocation,
        invariants=invariants,
    )
    return Setting(name, plan, Clipped(), budget)


def ko_optimal(prior: Prior | None = None) -> Optimal:
    """Ko's optimal allocation; without a prior all counts count as large."""
    return Optimal(prior=prior, objective="cells")
