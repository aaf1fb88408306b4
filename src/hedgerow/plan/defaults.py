"""What a plan is made of unless somebody says: in Python, in a release file, and for `new`.

All cells are measured wherever they fit in memory, and the budget is shared so that the errors of
released counts are least, each cuboid mattering as much as any other.
"""

from contextlib import suppress
from fractions import Fraction
from typing import cast

from hedgerow.errors import EstimateError, PlanError
from hedgerow.plan.allocation.allocation import (
    Allocation,
    Importance,
    PerLevel,
    Problem,
    Uniform,
)
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.cuboids import All, Measure, Survivors, goes_along_spine
from hedgerow.plan.workload import Cube, Workload, tables_of
from hedgerow.tables.tree import Tree

USUAL_IMPORTANCE = PerLevel()
USUAL_ALLOCATION = Optimal(objective="released", importance=USUAL_IMPORTANCE)
"""How the measured cuboids share the budget, where the least error is within reach."""

USUAL_DELTA = "1e-8"
"""The δ that is proposed, and at which ε is told of a budget without one."""

FEW_LEAVES = 1 << 24
"""Leaves up to which all cells are measured, whatever the workload."""


def usual_measure(tree: Tree, workload: Workload) -> Measure:
    """Return what is measured: all cells where they are few, else survivors.

    A cube finds survivors below the margins of two axes; over more it measures all cells. Along a
    spine all cells are measured.
    """
    if goes_along_spine(tree, workload) or (isinstance(workload, Cube) and len(tree.axes) > 2):
        return All()
    return measure_of(sum(map(tree.cells, tables_of(tree, workload.cuboids(tree)))))


def shares_of(
    problem: Problem, allocation: Allocation | None
) -> tuple[Allocation, tuple[Fraction | None, ...]]:
    """Return an allocation, the usual one if there is none, and its shares.

    The usual ones are equal where the least error is beyond reach: with more than 2²⁴ distinct
    subtrees in a depth, 4,096 combinations of levels in named cuboids, or cells beyond a double.
    """
    given = USUAL_ALLOCATION if allocation is None else allocation
    if allocation is not None or not problem.cuboids:
        return given, given.shares(problem) if problem.cuboids else ()
    with suppress(EstimateError, PlanError, OverflowError):
        return given, given.shares(problem)
    return Uniform(), Uniform().shares(problem)


def judged_by(allocation: Allocation) -> Importance:
    """Return what squared errors cost where a plan is judged: as its rule minimised them, if so."""
    minimised = allocation.name in {Optimal.name, "cheapest"}
    if minimised and getattr(allocation, "objective", None) != "largest":
        return cast("Importance", getattr(allocation, "importance", None))
    return USUAL_IMPORTANCE


def measure_of(leaves: int) -> Measure:
    """Return what is measured of so many leaves."""
    return All() if leaves <= FEW_LEAVES else Survivors()
