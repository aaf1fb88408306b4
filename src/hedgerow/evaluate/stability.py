"""Noise on the positive leaves, small ones dropped (SH of Boninsegna & Silvestri, Section 5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow.errors import BudgetError
from hedgerow.evaluate.baselines import stability_histogram
from hedgerow.evaluate.cells import Cells
from hedgerow.evaluate.method import budget_in_words
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.privacy.budget import Budget, EpsilonDelta
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.tables.counts import Counts


@dataclass(frozen=True, slots=True, eq=False)
class StabilityHistogram:
    """The stability histogram; coarser counts are sums of what is left.

    `stability_histogram` gives (ε, δ) for one record replaced, which moves two leaves. One record
    added or removed moves one, at half of both, so there it is run at (2ε, 2δ).

    Attributes:
        budget: all spent on the leaves.
        neighbours: the unit of privacy, one record.
        name: what the simulation calls it.

    Raises:
        BudgetError: no (ε, δ) budget, or units of several records.
    """

    budget: Budget
    neighbours: Neighbours
    name: str = "stability histogram"

    def __post_init__(self) -> None:
        if self.neighbours.contributions != 1:
            raise BudgetError("the stability histogram protects units of one record alone")
        self.doubled()

    def doubled(self) -> EpsilonDelta:
        """The budget of `stability_histogram`: for one record replaced."""
        if not isinstance(self.budget, EpsilonDelta):
            raise BudgetError("the stability histogram needs a budget of epsilon with delta")
        times = 2 if isinstance(self.neighbours, AddRemove) else 1
        return EpsilonDelta(times * self.budget.epsilon, times * self.budget.delta)

    def facts(self) -> dict[str, str]:
        """Budget and mechanism."""
        return {"budget": budget_in_words(self.budget), "mechanism": DiscreteLaplace.name}

    def check(self, counts: Counts) -> None:
        """Nothing: it can release any table."""

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """What is left at every depth."""
        left = stability_histogram(counts, bits, budget=self.doubled())
        for depth in range(counts.tree.depth + 1):
            yield depth, Cells.true(left, depth)
