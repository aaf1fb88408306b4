"""`release_distribution`: the distribution of a numeric column, measured under a budget.

The column is cut into K bins between public bounds. A tree over the bins, designed for cumulative
counts, goes through the same plan, release and manifest as every other tree: all levels are
measured, combined by least squares, and projected from the top down to whole counts that are not
negative and add up. Their sums are a CDF that never falls. Where weighted running sums of the bins
promise a smaller error (`hedgerow.distribution.plan`), these are measured instead, and the
nearest CDF of whole counts is released.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from hedgerow.arrays import int64
from hedgerow.distribution.bins import codes_of_bins
from hedgerow.distribution.branching import Objective
from hedgerow.distribution.plan import plan_distribution
from hedgerow.distribution.ranges import Bound, Ranges
from hedgerow.errors import PlanError, TableError, outside_limits, reads_table
from hedgerow.noise.bits import Bits
from hedgerow.plan.cuboids import Measure
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours, Replace
from hedgerow.release.distribution.distribution import Distribution
from hedgerow.release.execution import in_memory, release
from hedgerow.release.preflight import check_match
from hedgerow.tables.counts import Counts

UNIT = "unit"


def release_distribution(  # noqa: PLR0913 - the door for a column and nothing else
    values: ArrayLike,
    *,
    low: Bound,
    high: Bound,
    bins: int,
    budget: Budget,
    neighbours: Neighbours | None = None,
    units: Sequence[Any] | None = None,
    out_of_bounds: str = "clamp",
    name: str = "value",
    objective: Objective | None = None,
    measure: Measure | None = None,
    directory: str | Path | None = None,
) -> Distribution:
    """Release the distribution of a confidential column, under a fresh random key.

    Args:
        values: numbers (values), one a record.
        low: the public lower bound.
        high: the public upper bound.
        bins: K, of equal width; public.
        budget: `Epsilon` (discrete Laplace), or `Rho` or `EpsilonDelta` (discrete Gaussian).
        neighbours: the unit of privacy; `Replace` with one record a unit unless given, so the
            number of records is public. `AddRemove` measures it.
        units: (values): whose record each is. At most `Neighbours.contributions` records of a unit
            are kept (see `hedgerow.tables.read`): a unit with more is clipped to as many of
            them, chosen by a hash of its own records; the distribution is that of the kept ones.
        out_of_bounds: ``"clamp"`` moves values outside to the nearest bound; ``"refuse"`` refuses
            them, which tells whoever sees the refusal that there are some.
        name: of the column, in the release.
        objective: what the tree is designed for: `Cdf` unless given, `AllRanges`, `Quantiles`.
        measure: `All` for a tree, `RunningSums`, or the better of them unless given.
        directory: where the release appears, whole or not at all; left out, it stays in memory.

    Raises:
        TableError: bounds, bins or values that break the rules of `Ranges`.
        BudgetError, PlanError: a budget that cannot be spent so.
        ReleaseError: the directory exists.
        MachineError: the disk is full, or the memory.

    Example:
        >>> ages = [20 + i % 60 for i in range(6000)]
        >>> made = hr.release_distribution(
        ...     ages, low=0, high=100, bins=20, budget=hr.EpsilonDelta("1", "1e-8")
        ... )
        >>> made.cdf["count"][-1]
        6000
    """
    ranges = Ranges.equal_width(name, low, high, bins, out_of_bounds=out_of_bounds)
    who = Replace() if neighbours is None else neighbours
    if units is not None and who.unit is None:
        who = replace(who, unit=UNIT)
    plan = plan_distribution(
        ranges,
        budget=budget,
        neighbours=who,
        objective=objective,
        measure=measure,
    )
    counts = column_counts(plan, ranges, values, units=units)
    return Distribution(release(counts, plan, estimator=plan.design.usual, directory=directory))


@reads_table
def column_counts(
    plan: Plan, ranges: Ranges, values: ArrayLike, *, units: Sequence[Any] | None = None
) -> Counts:
    """Return the confidential counts of a column's bins, over the plan's tree.

    Raises:
        TableError: values or units that break the rules.
        PlanError: a plan that names the unit, and no units.
    """
    (axis,) = plan.tree.axes
    if units is None and plan.neighbours.unit is not None:
        raise PlanError(
            f"the plan protects each {plan.neighbours.unit!r}, who may have several records: say "
            "whose each value is, units=[…]"
        )
    leaves = ranges.bin(values)
    clamps = ranges.out_of_bounds == "clamp"
    moved = ((ranges.name, ranges.outside(values)),) if clamps else ()
    if units is None:
        counts = int64(np.bincount(leaves, minlength=ranges.bins))
        made = Counts.from_leaves(plan.tree, (np.arange(ranges.bins, dtype=np.int32),), counts)
        return replace(made, moved=moved)
    if len(units) != len(leaves):
        raise TableError(
            f"range {ranges.name!r}: units and values must have one length; each record needs its "
            "unit"
        )
    table = {axis.columns[-1]: codes_of_bins(axis, leaves), UNIT: _unit_column(ranges, units)}
    most = plan.neighbours.contributions
    made = Counts.from_frame(plan.tree, pa.table(table), unit=UNIT, contributions=most)
    return replace(made, moved=moved, unit=plan.neighbours.unit)


def _unit_column(ranges: Ranges, units: Sequence[Any]) -> Any:
    """Return the units for PyArrow."""
    try:
        return pa.array(units)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        rule = "units must be all text or all whole numbers of 64 bits"
        raise outside_limits(f"range {ranges.name!r}:", rule, str(error)) from None


def distribution_in_memory(counts: Counts, plan: Plan, *, bits: Bits) -> Distribution:
    """Return a distribution from given random bits: a seed, in simulations on public tables alone.

    Raises:
        PlanError: the plan is for another domain.
    """
    check_match(counts, plan)
    return Distribution(in_memory(counts, plan, estimator=plan.design.usual, bits=bits))
