"""Noise on every node of every depth, and nothing done about it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import PlanError, TableError
from hedgerow.evaluate.cells import Cells
from hedgerow.evaluate.method import budget_in_words
from hedgerow.evaluate.moments import MOST_LAID_OUT
from hedgerow.noise.bits import Bits
from hedgerow.plan.depths import Measured, Public
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.steps import Refinement
from hedgerow.tables.counts import Counts


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
        """All but measure and estimator."""
        return {
            "budget": budget_in_words(self.plan.budget),
            "mechanism": self.plan.mechanism.name,
            "allocation": self.plan.allocation,
        }

    def check(self, counts: Counts) -> None:
        """Nothing, if the plan is one for the table's tree.

        Raises:
            PlanError: it is one for another.
        """
        if self.plan.tree.digest != counts.tree.digest:
            raise PlanError("the plan is one for another tree than the table's; make it over that")

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """The noisy counts of every depth."""
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
