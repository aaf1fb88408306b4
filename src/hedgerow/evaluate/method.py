"""The methods that a simulation compares: each releases a table with given random bits."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Protocol

import numpy as np

from hedgerow.arrays import Codes, Int64, Levels, among, int64_zeros, rises
from hedgerow.declared import frozen
from hedgerow.errors import PlanError, TableError
from hedgerow.estimate.cube.shape import sum_along
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.metrics import true_cells
from hedgerow.limits import MOST_NUMBERED
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Budget, Epsilon, Rho
from hedgerow.release.descent.jobs import LocalEngine, LocalJobs
from hedgerow.release.descent.nodes import Nodes, NodesOf, by_cuboid, sums_of_cells
from hedgerow.release.descent.source import Drawn
from hedgerow.release.passes import pass_of
from hedgerow.release.preflight import check_estimator, check_public_total
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_codes, cell_numbers
from hedgerow.text import TextByName


@frozen(eq=False)
class CuboidCounts:
    """Counts of a cuboid: sparse (all other cells being 0) or dense.

    Attributes:
        number: int64 (cells), ascending: the row-major numbers of the cells over its axes;
            None for all possible ones.
        values: int64 (cells), records; float64 where estimates of all cells are compared.
        withheld: int64, ascending: the numbers of the cells that are published without a count,
            which is 0 in ``values``, as it is for whoever adds up the others.
    """

    number: Int64 | None
    values: Int64
    withheld: Int64 = field(default_factory=lambda: int64_zeros(0))

    @classmethod
    def of(cls, tree: Tree, levels: Levels, codes: Codes, values: Int64) -> "CuboidCounts":
        """Return some cells of a cuboid, in whatever order."""
        number = cell_numbers(tree, levels, codes)
        if rises(number):
            return cls(number, values)
        order = np.argsort(number)
        return cls(number[order], values[order])

    @classmethod
    def true(cls, counts: Counts, levels: Levels) -> "CuboidCounts":
        """Return the true counts of a cuboid that are not 0."""
        return cls.of(counts.tree, levels, *true_cells(counts, levels))

    def summed(self, tree: Tree, levels: Levels, given: Levels) -> "CuboidCounts":
        """Return the counts of a cuboid from these, of the ``given`` one."""
        if self.number is None:
            sums = sum_to_cuboid(tree, self.values.reshape(tree.sizes(given)), levels, given)
            return CuboidCounts(None, sums.ravel())
        nodes = Nodes.exact(cell_codes(tree, given, self.number), self.values)
        return CuboidCounts(*sums_of_cells(tree, levels, given, nodes))

    @property
    def numbers(self) -> Int64:
        """The numbers of the cells, of all possible ones where none are listed: int64 (cells)."""
        return np.arange(len(self.values)) if self.number is None else self.number

    def at(self, number: Int64) -> Int64:
        """Return the counts of some cells by their numbers: int64 (numbers)."""
        if self.number is None:
            return self.values[number]
        place, is_there = among(self.number, number)
        return np.where(is_there, np.append(self.values, 0)[place], 0)

    def dense(self, cells: int) -> Int64:
        """Return the counts of all possible cells: int64 (cells)."""
        if self.number is None:
            return self.values
        every = int64_zeros(cells)
        every[self.number] = self.values
        return every

    def plus(self, other: "CuboidCounts", cells: int) -> "CuboidCounts":
        """Return the sums with others, dense where that takes less memory; dense ones in place."""
        if self.number is None:
            self.values[... if other.number is None else other.number] += other.values
            return self
        number, one, two = align_cells(self, other, cells)
        both = CuboidCounts(number, one + two)
        is_sparse = number is None or 2 * len(number) < cells
        return both if is_sparse else CuboidCounts(None, both.dense(cells))


Counted = Mapping[Levels, CuboidCounts]


def sum_to_cuboid(tree: Tree, table: Int64, levels: Levels, given: Levels) -> Int64:
    """Return the counts of a cuboid from those of the ``given`` one: int64, a dimension an axis."""
    for i, (axis, level, finer) in enumerate(zip(tree.axes, levels, given, strict=True)):
        table = sum_along(table, i, axis.descendant_start(min(level, finer), finer))
    return table


def check_numbered(tree: Tree) -> None:
    """Raise a TableError if a tree has more than 2⁶² leaves, too many to number."""
    if tree.leaves > MOST_NUMBERED:
        raise TableError(
            f"a simulation numbers all possible cells, and the tree has {tree.leaves:,} leaves, "
            f"more than 2**62; leave out a level"
        )


def align_cells(
    one: CuboidCounts, other: CuboidCounts, cells: int
) -> tuple[Int64 | None, Int64, Int64]:
    """Return the numbers of the cells that either holds, and both values: int64 (cells) each.

    The numbers are None where the values are those of all possible cells.
    """
    if one.number is None or other.number is None:
        return None, one.dense(cells), other.dense(cells)
    number, place = np.unique(np.append(one.number, other.number), return_inverse=True)
    values = int64_zeros((2, len(number)))
    values[0, place[: len(one.number)]] = one.values
    values[1, place[len(one.number) :]] = other.values
    return number, values[0], values[1]


Released = Iterable[tuple[Levels, CuboidCounts]]
"""Each cuboid with its counts."""


def of_nodes(tree: Tree, nodes: NodesOf) -> Released:
    """Return the listed counts of each cuboid."""
    return ((k, CuboidCounts.of(tree, k, here.codes, here.counts)) for k, here in nodes.items())


def of_leaves(counts: Counts) -> Released:
    """Return the sums of a table of leaves by each cuboid of its chain."""
    return ((levels, CuboidCounts.true(counts, levels)) for levels in counts.tree.chain)


class Releasing(Protocol):
    """Whatever can release a table again and again."""

    def released(self, counts: Counts, bits: Bits) -> Released:
        """Return each cuboid that is released once with its counts; pure, and thread-safe.

        The leaves are among them, or, where cuboids are named, the tables of `table_of`.
        """


class Method(Releasing, Protocol):
    """One way to release a table; `Setting` is Hedgerow's, baselines are the others."""

    @property
    def name(self) -> str:
        """The name, unique within a simulation."""

    def facts(self) -> TextByName:
        """Return further columns in words: some of `FACTS`."""

    def check(self, counts: Counts) -> None:
        """Raise a HedgerowError unless the method can release such a table."""


def table_of(method: Releasing, tree: Tree, levels: Levels) -> Levels | None:
    """Return a cuboid that a method releases and whose counts sum to those of another, if any.

    It is that of the leaves, unless the method has a plan of other tables.
    """
    plan = getattr(method, "plan", None)
    return plan.table_of(levels) if isinstance(plan, Plan) else tree.finest


def check_tree(plan: Plan, counts: Counts) -> None:
    """Raise a PlanError unless the plan is one for the table's tree."""
    if plan.tree is not counts.tree and plan.tree.digest != counts.tree.digest:
        raise PlanError("the plan is one for another tree than the table's; make it over that")


FACTS = ("budget", "mechanism", "allocation", "measure", "estimator")
"""The columns of `Method.facts`."""


@frozen(eq=False)
class Setting:
    """Hedgerow's pass under a plan.

    Attributes:
        name: its name in the simulation.
        plan: over the table's own tree.
        estimator: from noisy counts to consistent ones.
        budget: the budget to show where the plan's own was derived from it; None for the plan's.
        workers: threads of one release.

    Raises:
        EstimateError: the estimator cannot use what the plan measures.
    """

    name: str
    plan: Plan
    estimator: Estimator
    budget: Budget | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        check_estimator(self.estimator, self.plan)

    def facts(self) -> TextByName:
        """Return all of `FACTS`."""
        return {
            "budget": budget_text(self.budget or self.plan.budget),
            "mechanism": self.plan.mechanism.name,
            "allocation": self.plan.allocation,
            "measure": self.plan.measure.name,
            "estimator": self.estimator.name,
        }

    def check(self, counts: Counts) -> None:
        """Raise unless the plan is for the table's tree, and the estimator for its records."""
        check_tree(self.plan, counts)
        check_public_total(counts.unwrapped_total, self.plan)

    def released(self, counts: Counts, bits: Bits) -> Released:
        """Return the survivors of every cuboid."""
        source = Drawn(counts, self.plan, bits)
        alone = LocalJobs(LocalEngine(self.workers))
        run = pass_of(self.plan, source, self.estimator, runner=alone)
        nodes, _ = by_cuboid(run.results())
        return of_nodes(counts.tree, nodes)


def budget_text(budget: Budget) -> str:
    """Return ``ε = 1, δ = 1e-08``, ``ρ = 0.5`` or ``ε = 1``."""
    if isinstance(budget, Rho):
        return f"ρ = {float(budget.rho):g}"
    epsilon = f"ε = {float(budget.epsilon):g}"
    return epsilon if isinstance(budget, Epsilon) else f"{epsilon}, δ = {float(budget.delta):g}"
