"""What a plan is made of unless somebody says: in Python, in a release file, and for `new`.

All cells are measured wherever they are few, on whatever machine, and the budget is shared so that
the mean variances of estimates are least, before these are made whole counts, each cuboid mattering
as much as any other. A plan says what was chosen so, and why: its `chosen` are keys of the
catalogue of texts.
"""

from contextlib import suppress
from typing import cast

from hedgerow.errors import EstimateError, PlanError
from hedgerow.plan.allocation.allocation import (
    Allocation,
    ByDepth,
    Importance,
    PerLevel,
    Problem,
    Uniform,
)
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Measure, RunningSums, Survivors, goes_along_spine
from hedgerow.plan.workload import Cube, Workload, tables_of
from hedgerow.tables.tree import Tree
from hedgerow.text import Texts

USUAL_IMPORTANCE = PerLevel()
USUAL_ALLOCATION = Optimal(objective="released", importance=USUAL_IMPORTANCE)
"""How the measured cuboids share the budget, where the least error is within reach."""

USUAL_DELTA = "1e-8"
"""The δ that is proposed, and at which ε is told of a budget without one."""

FEW_LEAVES = 1 << 24
"""Leaves up to which all cells are measured, whatever the workload."""


def measure_for(tree: Tree, workload: Workload, measure: Measure | None) -> tuple[Measure, Texts]:
    """Return what is measured, all cells if nobody says and they are few, and why, as keys.

    Else survivors: a cube finds them below the margins of two axes; over more it measures all
    cells. Along a spine all cells are measured.
    """
    if measure is not None:
        return measure, ()
    usual = measure_of(sum(map(tree.cells, tables_of(tree, workload.cuboids(tree)))))
    if isinstance(usual, All):
        return usual, ("measure_few",)
    if goes_along_spine(tree, workload):
        return All(), ("measure_spine",)
    if isinstance(workload, Cube) and len(tree.axes) > 2:
        return All(), ("measure_cube",)
    return usual, ("measure_many",)


def shares_of(problem: Problem, allocation: Allocation | None) -> tuple[Allocation, ByDepth, Texts]:
    """Return an allocation, the usual one if there is none, its shares, and what to say of them.

    The usual ones are equal where the least error is beyond reach: with more than 2²⁴ distinct
    subtrees in a depth, 4,096 combinations of levels in named cuboids, or cells beyond a double.
    Of running sums the bins have all.
    There is nothing to say where less than two cuboids share.
    """
    given = USUAL_ALLOCATION if allocation is None else allocation
    if not problem.cuboids:
        return given, (), ()
    if allocation is None and isinstance(problem.measure, RunningSums):
        given = allocation = Shares({problem.tree.name_of(problem.tree.finest): 1})
    is_shared = len(problem.cuboids) > 1
    if allocation is not None:
        by_count = allocation.name == Optimal.name and judged_by(allocation) is None
        return given, given.shares(problem), ("shares_by_count",) * (is_shared and by_count)
    with suppress(EstimateError, PlanError, OverflowError):
        return given, given.shares(problem), ("shares_least",) * is_shared
    return Uniform(), Uniform().shares(problem), ("shares_equal",) * is_shared


def judged_by(allocation: Allocation) -> Importance:
    """Return what squared errors cost where a plan is judged: as its rule minimised them, if so."""
    minimised = allocation.name in {Optimal.name, "cheapest"}
    if minimised and getattr(allocation, "objective", None) != "largest":
        return cast("Importance", getattr(allocation, "importance", None))
    return USUAL_IMPORTANCE


def measure_of(leaves: int) -> Measure:
    """Return what is measured of so many leaves."""
    return All() if leaves <= FEW_LEAVES else Survivors()
