"""What a hierarchy is compared with: the same budget spent without one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from hedgerow.arrays import Int64
from hedgerow.errors import BudgetError, TableError
from hedgerow.evaluate.method import Cells, budget_in_words
from hedgerow.evaluate.moments import MOST_LAID_OUT
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from hedgerow.privacy.budget import Budget, EpsilonDelta
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree

MOST_CELLS = 1 << 31
CHUNK_CELLS = 1 << 22


def leaf_noise(
    counts: Counts,
    bits: Bits,
    *,
    budget: Budget,
    neighbours: Neighbours,
    mechanism: type[Mechanism] = DiscreteGaussian,
) -> Int64:
    """Noise on every possible leaf, the whole budget at once (VanillaGauss of Boninsegna et al.).

    Args:
        counts: the truth.
        bits: where random words come from.
        budget: all spent on the leaves.
        neighbours: the unit of privacy.
        mechanism: the noise.

    Returns:
        int64, one dimension an axis (its leaves): noisy counts, which may be negative. Coarser
        cells are sums (`sum_to_depth`), with the noise of all their leaves.

    Raises:
        TableError: more possible leaves than 2³¹: noise on all of them fills the memory.
    """
    check_leaves(counts.tree, MOST_CELLS)
    noise = leaf_mechanism(counts.tree, budget=budget, neighbours=neighbours, mechanism=mechanism)
    return noisy_leaves(counts, bits, noise)


def check_leaves(tree: Tree, most: int) -> None:
    """Refuse to lay out all leaves of a tree that has too many.

    Raises:
        TableError: more than ``most``.
    """
    if tree.leaves > most:
        raise TableError(
            f"leaf noise lays out all {tree.leaves:,} cells; 2**{most.bit_length() - 1} are "
            f"possible"
        )


def leaf_mechanism(
    tree: Tree, *, budget: Budget, neighbours: Neighbours, mechanism: type[Mechanism]
) -> Mechanism:
    """Return the noise of one leaf where the whole budget goes to the leaves.

    Raises:
        BudgetError: a budget that the mechanism cannot spend.
    """
    changes = [neighbours.changes(tree.depth)]
    worst = neighbours.is_worst
    profile = calibrate(mechanism, budget, [Fraction(1)], changes, is_worst=worst)
    return profile.uses[0].noise


def noisy_leaves(counts: Counts, bits: Bits, noise: Mechanism) -> Int64:
    """Return the counts of all leaves with noise: int64, one dimension an axis."""
    tree = counts.tree
    shape = tuple(axis.size(axis.depth) for axis in tree.axes)
    noisy = np.empty(prod(shape), dtype=np.int64)
    stream = bits.stream(tree.depth)
    for start in range(0, len(noisy), CHUNK_CELLS):
        noise.draw(stream, start, noisy[start : start + CHUNK_CELLS])
    noisy[np.ravel_multi_index(counts.codes, shape)] += counts.values
    return noisy.reshape(shape)


def stability_histogram(counts: Counts, bits: Bits, *, budget: EpsilonDelta) -> Counts:
    """Return the leaves whose noisy count is large, noise being put on the positive ones alone.

    SH of Boninsegna et al., Section 5: a positive count gets discrete Laplace noise of scale 2/ε
    and is dropped below 1 + 2 ln(2/δ)/ε. One record replaced moves two leaves by 1. A leaf that is
    positive on both sides costs ε/2. One that is positive on one side only has the count 1 there
    and shows with a chance of at most q^(2 ln(2/δ)/ε)/(1 + q) < δ/2, q = exp(-ε/2). Together (ε, δ)
    for one record a unit and a public total, which is not used.

    Args:
        counts: the truth.
        bits: where random words come from; the i-th positive leaf takes the i-th draw.
        budget: all spent on the leaves.

    Returns:
        What is left, all above 0, over the same tree. Coarser cells are sums (`Counts.roll_up`) and
        miss what was dropped.
    """
    noise, cut = DiscreteLaplace(2 / budget.epsilon), stability_cut(budget)
    noisy = np.empty(len(counts.values), dtype=np.int64)
    noise.draw(bits.stream(counts.tree.depth), 0, noisy)
    noisy += counts.values
    kept = noisy >= cut
    return Counts(counts.tree, tuple(code[kept] for code in counts.codes), noisy[kept])


def stability_cut(budget: EpsilonDelta) -> int:
    """The least count that a stability histogram shows: 1 + 2 ln(2/δ)/ε, rounded up (records)."""
    return math.ceil(1 + 2 * math.log(2 / budget.delta) / budget.epsilon)


def sum_to_depth(
    tree: Tree, leaves: Int64, depth: int, given: tuple[int, ...] | None = None
) -> Int64:
    """Return the counts of a depth from those of finer cells: one dimension an axis (its nodes).

    Args:
        tree: the tree.
        leaves: int64, one dimension an axis.
        depth: of the sums.
        given: the level of each axis that ``leaves`` stands at; its leaves unless given.
    """
    given = tuple(axis.depth for axis in tree.axes) if given is None else given
    levels = zip(tree.axes, tree.cuboid(depth), given, strict=True)
    for i, (axis, level, finer) in enumerate(levels):
        if level < finer:
            start = axis.descendant_start(level, finer)[:-1]
            leaves = np.add.reduceat(leaves, start, axis=i)
    return leaves


# The whole budget on the leaves (VanillaGauss of Boninsegna & Silvestri, Section 5).


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
        """Raise unless the leaves can be laid out.

        Raises:
            TableError: they cannot.
        """
        check_leaves(counts.tree, MOST_LAID_OUT)

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """Return all cells of every depth."""
        leaves, tree = noisy_leaves(counts, bits, self.noise), counts.tree
        for depth in range(tree.depth, -1, -1):
            leaves = sum_to_depth(tree, leaves, depth, tree.cuboid(min(depth + 1, tree.depth)))
            yield depth, Cells(None, leaves.ravel())


# Noise on the positive leaves, small ones dropped (SH of Boninsegna & Silvestri, Section 5).


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
        """Return the budget of `stability_histogram`: for one record replaced."""
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
        """Return what is left at every depth."""
        left = stability_histogram(counts, bits, budget=self.doubled())
        for depth in range(counts.tree.depth + 1):
            yield depth, Cells.true(left, depth)
