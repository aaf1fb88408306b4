"""The methods that Hedgerow is compared with: noise without a hierarchy, and papers' settings."""

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels, some_of
from hedgerow.declared import frozen
from hedgerow.errors import BudgetError, PlanError, TableError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.evaluate.method import (
    CuboidCounts,
    Released,
    Setting,
    budget_text,
    check_tree,
    of_leaves,
    sum_to_cuboid,
)
from hedgerow.limits import MOST_CELLS_OF_RUNS
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from hedgerow.plan.allocation.allocation import Allocation, Uniform
from hedgerow.plan.cuboids import Invariant, Measured, Public, Survivors
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho, rho_within
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.release.descent.layouts import EveryCell
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, TextByName


def check_leaves(tree: Tree) -> None:
    """Raise a TableError if a tree has too many leaves to put noise on all of them."""
    if tree.leaves > MOST_CELLS_OF_RUNS:
        raise TableError(
            f"noise on all {tree.leaves:,} cells would fill the memory; at most "
            f"2**{MOST_CELLS_OF_RUNS.bit_length() - 1} are possible"
        )


def _noisy_cells(counts: Counts, levels: Levels, noise: Mechanism, bits: Bits) -> Int64:
    """Return all cells of a cuboid with noise: int64 (cells)."""
    layout = EveryCell(counts.tree, levels)
    noisy = np.empty(layout.cells, dtype=np.int64)
    noise.draw(bits.stream(*levels), 0, noisy)
    layout.add(noisy, counts)
    return noisy


@frozen(eq=False)
class LeafNoise:
    """The whole budget on the leaves; coarser counts are sums; nothing is projected.

    VanillaGauss of Boninsegna & Silvestri, Section 5.
    """

    tree: Tree
    budget: Budget
    neighbours: Neighbours
    mechanism: type[Mechanism]
    name: str = "leaf noise"
    noise: Mechanism = field(init=False)

    def __post_init__(self) -> None:
        check_leaves(self.tree)
        changes = [self.neighbours.changes(self.tree.depth)]
        worst = self.neighbours.is_worst
        profile = calibrate(self.mechanism, self.budget, [Fraction(1)], changes, is_worst=worst)
        object.__setattr__(self, "noise", profile.uses[0].noise)

    def facts(self) -> TextByName:
        """Return budget and mechanism."""
        return {"budget": budget_text(self.budget), "mechanism": self.noise.name}

    def check(self, counts: Counts) -> None:
        """Raise a TableError if the table has too many leaves."""
        check_leaves(counts.tree)

    def released(self, counts: Counts, bits: Bits) -> Released:
        """Yield all cells of every cuboid."""
        tree = counts.tree
        given = counts.tree.finest
        leaves = _noisy_cells(counts, given, self.noise, bits).reshape(tree.sizes(given))
        for levels in reversed(tree.chain):
            leaves, given = sum_to_cuboid(tree, leaves, levels, given), levels
            yield levels, CuboidCounts(None, leaves.ravel())


def stability_histogram(counts: Counts, bits: Bits, *, budget: EpsilonDelta) -> Counts:
    """Return the leaves whose noisy count is large, with noise on the positive ones alone.

    SH of Boninsegna et al., Section 5: a positive count gets discrete Laplace noise of scale 2/ε
    and is dropped below 1 + 2 ln(2/δ)/ε. One record replaced moves two leaves by 1. A leaf that is
    positive on both sides costs ε/2. One that is positive on one side only has the count 1 there
    and shows with a chance of at most q^(2 ln(2/δ)/ε)/(1 + q) < δ/2, q = exp(-ε/2). Together (ε, δ)
    for one record a unit and a public total, which is not used. Coarser cells are sums and miss
    what was dropped.
    """
    noise = DiscreteLaplace(2 / budget.epsilon)
    cut = stability_cut(budget)
    noisy = np.empty(len(counts.values), dtype=np.int64)
    noise.draw(bits.stream(*counts.tree.finest), 0, noisy)
    noisy += counts.values
    kept = noisy >= cut
    return Counts(counts.tree, some_of(counts.codes, kept), noisy[kept])


def stability_cut(budget: EpsilonDelta) -> int:
    """Return the least count in a stability histogram: 1 + 2 ln(2/δ)/ε, rounded up (records)."""
    return math.ceil(1 + 2 * math.log(2 / budget.delta) / budget.epsilon)


@frozen(eq=False)
class StabilityHistogram:
    """The stability histogram; coarser counts are sums of what is left.

    `stability_histogram` gives (ε, δ) for one record replaced, which moves two leaves. One record
    added or removed moves one, at half of both, so there it is run at (2ε, 2δ).

    Raises:
        BudgetError: no (ε, δ) budget, or units of several records.
    """

    budget: Budget
    neighbours: Neighbours
    name: str = "stability histogram"

    def __post_init__(self) -> None:
        if self.neighbours.contributions != 1:
            raise BudgetError("the stability histogram protects units of one record alone")
        self.for_one_replaced()

    def for_one_replaced(self) -> EpsilonDelta:
        """Return the budget of `stability_histogram`."""
        if not isinstance(self.budget, EpsilonDelta):
            raise BudgetError("the stability histogram needs a budget of epsilon with delta")
        times = 2 if isinstance(self.neighbours, AddRemove) else 1
        return EpsilonDelta(times * self.budget.epsilon, times * self.budget.delta)

    def facts(self) -> TextByName:
        """Return budget and mechanism."""
        return {"budget": budget_text(self.budget), "mechanism": DiscreteLaplace.name}

    def check(self, counts: Counts) -> None:
        """Accept any table."""

    def released(self, counts: Counts, bits: Bits) -> Released:
        """Return what is left of every cuboid."""
        return of_leaves(stability_histogram(counts, bits, budget=self.for_one_replaced()))


@frozen(eq=False)
class IndependentNoise:
    """The noisy counts of all nodes as they are: unbiased, sometimes negative, not consistent.

    A cuboid that has the cells of a coarser one repeats its counts, a public one is exact. Whether
    the plan measures survivors does not matter.

    Raises:
        PlanError: a cuboid with cells of its own is not measured.
        TableError: too many leaves.
    """

    plan: Plan
    name: str = "independent noise"

    def __post_init__(self) -> None:
        tree = self.plan.tree
        check_leaves(tree)
        for levels, what in self.plan.by_levels.items():
            if not (isinstance(what, Measured | Public) or levels in self.plan.repeats):
                name = tree.name_of(levels)
                raise PlanError(f"independent noise needs a measurement of {name!r}")

    def facts(self) -> TextByName:
        """Return all but measure and estimator."""
        return {
            "budget": budget_text(self.plan.budget),
            "mechanism": self.plan.mechanism.name,
            "allocation": self.plan.allocation,
        }

    def check(self, counts: Counts) -> None:
        """Raise a PlanError unless the plan is one for the table's tree."""
        check_tree(self.plan, counts)

    def released(self, counts: Counts, bits: Bits) -> Released:
        """Yield the noisy counts of every cuboid."""
        for levels in self.plan.levels:
            source = self.plan.repeats.get(levels, levels)
            noise = self.plan.noise.get(source)
            given = CuboidCounts.true(counts, levels)
            if noise is not None:
                given = CuboidCounts(None, _noisy_cells(counts, source, noise, bits))
            yield levels, given


@frozen
class Clipped:
    """The ℓ2 projection of noisy counts that were clipped at 0 first (Ko et al., program (8)).

    Minimise ``Σ (y_i - max(0, x_i))²`` over integers ``y >= 0`` with ``Σ y = c`` in each family.
    """

    name = "clipped-euclidean"

    def to_dict(self) -> Json:
        """Return its name, which no manifest can hold."""
        return {"method": self.name}

    def project(
        self,
        noisy: Int64 | Float64,
        family_start: Int64,
        totals: Int64,
        variance: float | Float64 | None = None,
    ) -> Int64:
        """Return the consistent counts, int64 (cells); see `Euclidean.project`."""
        clipped = np.maximum(noisy, 0)
        return Euclidean().project(clipped, family_start, totals, variance)


def boninsegna(
    tree: Tree,
    budget: Budget,
    neighbours: Neighbours,
    invariants: Sequence[Invariant] = (),
    name: str = "Boninsegna",
) -> Setting:
    """Return InfTDA (Boninsegna & Silvestri, Algorithm 3): equal σ², Chebyshev, survivors.

    An (ε, δ) budget becomes ρ by the loose ε = ρ + 2√(ρ ln(1/δ)); pure ε is refused.
    """
    spent = budget
    if isinstance(budget, EpsilonDelta):
        spent = Rho(rho_within(budget.epsilon, budget.delta))
    plan = make_plan(
        tree, budget=spent, neighbours=neighbours, mechanism=DiscreteGaussian,
        allocation=Uniform(), measure=Survivors(), invariants=invariants,
    )  # fmt: skip
    return Setting(name, plan, Chebyshev(), budget)


def ko(
    tree: Tree,
    budget: Budget,
    neighbours: Neighbours,
    allocation: Allocation,
    invariants: Sequence[Invariant] = (),
    name: str = "Ko",
) -> Setting:
    """Return Ko et al.: Laplace noise, clipped at 0, then the ℓ2 projection from the top down.

    Of an (ε, δ) budget it spends ε and leaves δ. The noise is discrete Laplace, for the counts are
    whole. Children of nodes that were released as 0 are 0 whatever their noise, so survivors
    alone are measured.
    """
    spent = Epsilon(budget.epsilon) if isinstance(budget, EpsilonDelta) else budget
    plan = make_plan(
        tree, budget=spent, neighbours=neighbours, mechanism=DiscreteLaplace,
        allocation=allocation, measure=Survivors(), invariants=invariants,
    )  # fmt: skip
    return Setting(name, plan, Clipped(), budget)
