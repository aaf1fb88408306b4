"""The settings of the papers, as they state them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import PlanError, TableError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.evaluate.method import Cells, Setting, budget_in_words
from hedgerow.evaluate.moments import MOST_LAID_OUT
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation.allocation import Uniform
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.depths import Invariant, Measured, Public
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho, rho_within
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.release.descent.steps import Refinement
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree

# Noise on every node of every depth, and nothing done about it.


@dataclass(frozen=True, slots=True, eq=False)
class IndependentNoise:
    """The noisy counts of all nodes as they are: unbiased, negative at times, not adding up.

    A depth of single children repeats the counts above it, a public one is exact.

    Attributes:
        plan: which depth gets which noise; whether it measures survivors does not matter.
        name: what the simulation calls it.

    Raises:
        PlanError: a depth with families of several children is not measured.
        TableError: more leaves than a simulation lays out.
    """

    plan: Plan
    name: str = "independent noise"

    def __post_init__(self) -> None:
        self._check_size(self.plan.tree.leaves)
        tree = self.plan.tree
        for depth, what in enumerate(self.plan.depths):
            single = depth > 0 and Refinement.of(tree, depth).single
            if not (isinstance(what, Measured | Public) or single):
                name = tree.cuboid_name(depth)
                raise PlanError(f"independent noise needs a measurement of {name!r}")

    def facts(self) -> dict[str, str]:
        """Return all but measure and estimator."""
        return {
            "budget": budget_in_words(self.plan.budget),
            "mechanism": self.plan.mechanism.name,
            "allocation": self.plan.allocation,
        }

    def check(self, counts: Counts) -> None:
        """Raise unless the plan is one for the table's tree.

        Raises:
            PlanError: it is one for another.
        """
        if self.plan.tree.digest != counts.tree.digest:
            raise PlanError("the plan is one for another tree than the table's; make it over that")

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """Return the noisy counts of every depth."""
        found = Cells.true(counts, 0)
        for depth, what in enumerate(self.plan.depths):
            if isinstance(what, Measured):
                noisy = np.empty(counts.tree.nodes(depth), dtype=np.int64)
                what.mechanism.draw(bits.stream(depth), 0, noisy)
                true = Cells.true(counts, depth)
                noisy[true.number] += true.values
                found = Cells(None, noisy)
            elif isinstance(what, Public):
                found = Cells.true(counts, depth)
            yield depth, found

    @staticmethod
    def _check_size(leaves: int) -> None:
        if leaves > MOST_LAID_OUT:
            raise TableError(
                f"independent noise lays out all {leaves:,} cells; {MOST_LAID_OUT:,} are possible"
            )


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
        noisy: Int64 | Float64,
        family_start: Int64,
        totals: Int64,
        variance: float | Float64 | None = None,
    ) -> Int64:
        """Return the consistent counts, int64 (cells); see `Euclidean.project`."""
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
