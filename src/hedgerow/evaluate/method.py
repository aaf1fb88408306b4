"""What a simulation compares: anything that makes counts of a table with given random bits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hedgerow.arrays import Int64
from hedgerow.errors import PlanError, TableError
from hedgerow.estimate.estimator import Estimator
from hedgerow.kernels import kernel
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Budget, Epsilon, Rho
from hedgerow.release.descent.jobs import LocalEngine
from hedgerow.release.descent.outline import by_depth
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.distribution.running_sums import pass_of
from hedgerow.release.preflight import check_combines, check_public_total
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Codes, Tree

# Cells of a depth by number, and two lists of them side by side.
#
# The possible cells of a depth are numbered in row-major order over its axes. A list of cells is
# sparse (ascending numbers with their values, all others being 0) or holds all of them.


MOST_NUMBERED = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Counts of a depth.

    Attributes:
        number: int64 (cells), ascending: which cells; None for all possible ones.
        values: int64 (cells), records.
    """

    number: Int64 | None
    values: Int64

    @classmethod
    def of(cls, tree: Tree, depth: int, codes: Codes, values: Int64) -> "Cells":
        """Return the cells of some nodes of a depth, in whatever order."""
        shape = shape_of(tree, depth)
        number = np.zeros(len(values), dtype=np.int64)
        for code, size in zip(codes, shape, strict=True):
            number = number * size + code
        if (number[1:] > number[:-1]).all():
            return cls(number, values)
        order = np.argsort(number)
        return cls(number[order], values[order])

    @classmethod
    def true(cls, counts: Counts, depth: int) -> "Cells":
        """Return the true counts of a depth that are not 0."""
        return cls.of(counts.tree, depth, *counts.roll_up(depth))

    def laid_out(self, cells: int) -> Int64:
        """Return the counts of all possible cells: int64 (cells)."""
        if self.number is None:
            return self.values
        every = np.zeros(cells, dtype=np.int64)
        every[self.number] = self.values
        return every


def shape_of(tree: Tree, depth: int) -> tuple[int, ...]:
    """Return how many nodes each axis has at a depth."""
    return tuple(
        axis.size(level) for axis, level in zip(tree.axes, tree.cuboid(depth), strict=True)
    )


def check_numbered(tree: Tree) -> None:
    """Refuse a tree whose cells 64-bit numbers do not count.

    Raises:
        TableError: more than 2⁶² leaves.
    """
    if tree.leaves > MOST_NUMBERED:
        raise TableError(
            f"a simulation numbers all possible cells, and the tree has {tree.leaves:,} leaves, "
            f"more than 2**62; leave out a level"
        )


def side_by_side(one: Cells, other: Cells, cells: int) -> tuple[Int64 | None, Int64, Int64]:
    """Return numbers and both values of the cells that either list holds.

    Args:
        one: a list.
        other: a list.
        cells: how many are possible.

    Returns:
        int64 (cells) each; the numbers are None where the values are those of all possible cells.
    """
    if one.number is None or other.number is None:
        return None, one.laid_out(cells), other.laid_out(cells)
    number = np.empty(len(one.number) + len(other.number), dtype=np.int64)
    values = np.zeros((2, len(number)), dtype=np.int64)
    found = _merge(one.number, one.values, other.number, other.values, number, values)
    return number[:found], values[0, :found], values[1, :found]


@kernel
def _merge(
    a: Int64, a_values: Int64, b: Int64, b_values: Int64, number: Int64, values: Int64
) -> int:
    """Write both ascending lists side by side; how many cells there are."""
    i = 0
    j = 0
    found = 0
    while i < len(a) or j < len(b):
        first = i < len(a) and (j >= len(b) or a[i] <= b[j])
        second = j < len(b) and (i >= len(a) or b[j] <= a[i])
        if first:
            number[found] = a[i]
            values[0, found] = a_values[i]
            i += 1
        if second:
            number[found] = b[j]
            values[1, found] = b_values[j]
            j += 1
        found += 1
    return found


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
        """Raise unless the method can release such a table.

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
        """Return all of `FACTS`."""
        return {
            "budget": budget_in_words(self.budget or self.plan.budget),
            "mechanism": self.plan.mechanism.name,
            "allocation": self.plan.allocation,
            "measure": self.plan.measure.name,
            "estimator": self.estimator.name,
        }

    def check(self, counts: Counts) -> None:
        """Raise unless the plan is one for the table's tree.

        Raises:
            PlanError: it is one for another tree (see `hedgerow.evaluate.forecast.plan_over`).
            EstimateError: the table has too many records for the estimator.
        """
        if self.plan.tree is not counts.tree and self.plan.tree.digest != counts.tree.digest:
            raise PlanError("the plan is one for another tree than the table's; make it over that")
        check_public_total(counts.unwrapped_total, self.plan)

    def released(self, counts: Counts, bits: Bits) -> Iterator[tuple[int, Cells]]:
        """Return the survivors of every depth."""
        tree, source = counts.tree, Drawn(counts, self.plan, bits)
        run = pass_of(self.plan, source, self.estimator)
        if isinstance(run, Pass):
            run = replace(run, engine=LocalEngine(1))
        nodes, _ = by_depth(run.results())
        for depth, here in nodes.items():
            yield depth, Cells.of(tree, depth, here.codes, here.counts)


def budget_in_words(budget: Budget) -> str:
    """``ε = 1, δ = 1e-08``, ``ρ = 0.5`` or ``ε = 1``."""
    if isinstance(budget, Rho):
        return f"ρ = {float(budget.rho):g}"
    epsilon = f"ε = {float(budget.epsilon):g}"
    return epsilon if isinstance(budget, Epsilon) else f"{epsilon}, δ = {float(budget.delta):g}"
