"""The whole budget on the leaves (VanillaGauss of Boninsegna & Silvestri, Section 5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow.evaluate.baselines import check_leaves, leaf_mechanism, noisy_leaves, sum_to_depth
from hedgerow.evaluate.cells import Cells
from hedgerow.evaluate.method import budget_in_words
from hedgerow.evaluate.moments import MOST_LAID_OUT
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True, init=False, eq=False)
class LeafNoise:
    """Noise on every possible leaf; coarser counts are sums; nothing is projected.

    Args:
        tree: of the table.
        budget: all spent on the leaves.
        neighbours: the unit of privacy.
        mechanism: the noise.
        name: what the simulation calls it.

    Raises:
        TableError: more leaves than a simulation lays out.
        BudgetError: a budget that the mechanism cannot spend.
    """

    name: str
    budget: Budget
    noise: Mechanism

    def __init__(
        self,
        tree: Tree,
        budget: Budget,
        neighbours: Neighbours,
        mechanism: type[Mechanism],
        name: str = "leaf noise",
    ) -> None:
        check_leaves(tree, MOST_LAID_OUT)
        noise = leaf_mechanism(tree, budget=budget, neighbours=neighbours, mechanism=mechanism)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "noise", noise)

    def facts(self) -> dict[str, str]:
        """Budget and mechanism."""
        return {"budget": budget_in_words(self.budget), "mechanism": self.noise.name}

    def check(self, counts: Counts) -> None:
        """Nothing, if the leaves can be laid out.

        Raises:
            TableError: they cannot.
        """
        check_leaves(counts.tree, MOST_LAID_OUT)

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """All cells of every depth."""
        leaves, tree = noisy_leaves(counts, bits, self.noise), counts.tree
        for depth in range(tree.depth, -1, -1):
            leaves = sum_to_depth(tree, leaves, depth, tree.cuboid(min(depth + 1, tree.depth)))
            yield depth, Cells(None, leaves.ravel())
