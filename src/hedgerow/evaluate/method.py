"""What a simulation compares: anything that makes counts of a table with given random bits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from hedgerow.errors import PlanError
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.cells import Cells
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Budget, Epsilon, Rho
from hedgerow.release.descent.local import LocalEngine
from hedgerow.release.descent.results import gathered
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.distribution.running_sums import pass_of
from hedgerow.release.refusals import check_combines, check_public_total
from hedgerow.tables.counts import Counts


class Method(Protocol):
    """One way to release a table; `Setting` is Hedgerow's, baselines are the others."""

    @property
    def name(self) -> str:
        """What a simulation calls it; no two of its methods share one."""
        ...

    def facts(self) -> dict[str, str]:
        """Further columns in words: some of `FACTS`."""
        ...

    def check(self, counts: Counts) -> None:
        """Nothing, if the method can release such a table.

        Raises:
            HedgerowError: it cannot.
        """
        ...

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """Each depth 0..T once, and its released counts.

        It must be safe to run on several threads at once, and depend on its arguments alone.
        """
        ...


FACTS = ("budget", "mechanism", "allocation", "measure", "estimator")
"""What `Method.facts` may tell."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Hedgerow's pass under a plan.

    Attributes:
        name: what the simulation calls it.
        plan: over the table's own tree.
        estimator: from noisy counts to consistent ones.
        budget: what it is compared at, where the plan's own budget is another (one that follows
            from it); None for the plan's.

    Raises:
        EstimateError: the estimator cannot use what the plan measures.
    """

    name: str
    plan: Plan
    estimator: Estimator
    budget: Budget | None = None

    def __post_init__(self) -> None:
        check_combines(self.estimator, self.plan)

    def facts(self) -> dict[str, str]:
        """All of `FACTS`."""
        return {
            "budget": budget_in_words(self.budget or self.plan.budget),
            "mechanism": self.plan.mechanism.name,
            "allocation": self.plan.allocation,
            "measure": self.plan.measure.name,
            "estimator": self.estimator.name,
        }

    def check(self, counts: Counts) -> None:
        """Nothing, if the plan is one for the table's tree.

        Raises:
            PlanError: it is one for another tree (see `hedgerow.evaluate.forecast.plan_over`).
            EstimateError: the table has too many records for the estimator.
        """
        if self.plan.tree is not counts.tree and self.plan.tree.digest != counts.tree.digest:
            raise PlanError("the plan is one for another tree than the table's; make it over that")
        check_public_total(counts.unwrapped_total, self.plan)

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """The survivors of every depth."""
        tree, source = counts.tree, Drawn(counts, self.plan, bits)
        run = pass_of(self.plan, source, self.estimator)
        if isinstance(run, Pass):
            run = replace(run, engine=LocalEngine(1))
        nodes, _ = gathered(run.results())
        for depth, here in nodes.items():
            yield depth, Cells.of(tree, depth, here.codes, here.counts)


def budget_in_words(budget: Budget) -> str:
    """``ε = 1, δ = 1e-08``, ``ρ = 0.5`` or ``ε = 1``."""
    if isinstance(budget, Rho):
        return f"ρ = {float(budget.rho):g}"
    epsilon = f"ε = {float(budget.epsilon):g}"
    return epsilon if isinstance(budget, Epsilon) else f"{epsilon}, δ = {float(budget.delta):g}"
