"""`release_distribution`: the distribution of a numeric column; `Distribution`: what came out.

The column is cut into K bins between public bounds. A tree over the bins, designed for cumulative
counts (`hedgerow.plan.for_distribution`), goes through the same plan, release and manifest as every
other tree: all levels are measured, combined by least squares, and projected from the top down to
whole counts that are not negative and add up. Their sums are a CDF that never falls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from hedgerow.errors import ReleaseError, TableError
from hedgerow.estimate.euclidean import Euclidean
from hedgerow.estimate.intervals import Confidence
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.branching import Cdf, Objective
from hedgerow.plan.depths import All
from hedgerow.plan.for_distribution import ForDistribution
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.privacy.budget import Budget, Epsilon
from hedgerow.privacy.neighbours import Neighbours, Replace
from hedgerow.release.cumulative import Cumulative
from hedgerow.release.manifest import read_manifest
from hedgerow.release.release import Release, check_match, in_memory, read_release, release
from hedgerow.release.stored import stated_plan
from hedgerow.tables.bin_codes import coded_axis, ranges_of
from hedgerow.tables.binned import codes_of_bins
from hedgerow.tables.counts import Counts
from hedgerow.tables.ranges import Ranges
from hedgerow.tables.tree import Tree

Int64 = NDArray[np.int64]
ESTIMATOR = Euclidean(combine=True)
UNIT = "unit"


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a column.

    Attributes:
        rank: q.
        value: where the released CDF, straight within each bin, reaches q.
        low, high: with the confidence asked for, the true quantile is in low … high.
    """

    rank: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CountBetween:
    """How many records have a value in a range.

    Attributes:
        count: released, records; within a bin in proportion.
        low, high: with the confidence asked for, the true count is one of low … high.
    """

    count: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of a numeric column, from a release over its bins.

    Intervals hold for the column as it was released: where values outside the bounds were moved to
    them, of the moved values; where contributions were bounded, of the records that were kept. They
    rest on the best linear unbiased estimates of all noisy counts, whose cumulative counts have the
    variances of `hedgerow.estimate.cumulative_error`, and on the reach of an unmeasured depth in
    `hedgerow.estimate.intervals`. A released count may lie outside its interval, where counts of 0
    leave it no room.

    Attributes:
        plan: of the release.
        release: the counts of every level of the tree.

    Raises:
        TableError: the axis is not numeric.
        ReleaseError: several axes, or a plan that measures survivors alone.
    """

    plan: Plan
    release: Release

    def __post_init__(self) -> None:
        self.cumulative  # noqa: B018 - computed here, so that what is no distribution is refused
        self.ranges  # noqa: B018

    @cached_property
    def ranges(self) -> Ranges:
        """The bins."""
        return ranges_of(self.plan.tree.axes[0])

    @cached_property
    def cumulative(self) -> Cumulative:
        """The counts before each edge."""
        return Cumulative.of_release(self.plan, self.release)

    @property
    def cdf(self) -> pl.DataFrame:
        """The band of 95 % for each bin on its own; see `band`."""
        return self.band(Confidence())

    def band(self, confidence: Confidence) -> pl.DataFrame:
        """The cumulative distribution, with intervals.

        Args:
            confidence: of each bin's interval, or (simultaneous) of all at once.

        Returns:
            One row a bin: ``upper`` (its upper edge), ``count`` (records below that edge; in the
            last row all), ``cdf`` (its part of the released total; 0 if that is 0), ``low`` and
            ``high``, the interval of ``count``, records. Simultaneous intervals never fall.
        """
        found = self.cumulative
        upto = np.arange(1, found.bins + 1)
        low, high = found.between(np.zeros_like(upto), upto, confidence)
        if confidence.simultaneous:  # all hold at once, so each bounds its neighbours
            low = np.maximum.accumulate(low)
            high = np.minimum.accumulate(high[::-1])[::-1]
        count = found.released[1:]
        return pl.DataFrame(
            {
                "upper": self.ranges.edges[1:],
                "count": count,
                "cdf": count / max(found.total, 1),
                "low": low,
                "high": high,
            }
        )

    def quantile(self, q: float, confidence: Confidence | None = None) -> Quantile:
        """The value that a part q of the records does not exceed.

        The true quantile is that of the ⌈qN⌉-th smallest record, in bin j, say; so the true counts
        y_b before cut b have ``y_j < qN <= y_{j+1}``. The interval inverts the band: it spans the
        bins of which that is possible by the intervals of ``y - qN`` at their two cuts, and the bin
        of the value. These intervals need to hold at the cuts j and j + 1 alone, on one side each,
        so pointwise ones of a level are enough for that level; noise at far cuts makes the span
        wider, never wrong. Simultaneous confidence makes it hold for all q at once. With a
        measured total, N is estimated too, and its error is part of that of ``y - qN``.

        Args:
            q: in (0, 1); 0.1 means one tenth.
            confidence: 95 % unless given.

        Raises:
            ReleaseError: q is not in (0, 1), or the released total is 0.
        """
        if not 0 < q < 1:
            raise ReleaseError(f"a quantile's rank must be in (0, 1), got {q}")
        found, edges = self.cumulative, self.ranges.edges
        if found.total == 0:
            raise ReleaseError("the released total is 0; a distribution of nothing has no quantile")
        share = Fraction(str(q))
        wanted = share * found.total
        j = int(np.searchsorted(found.released, max(ceil(wanted), 1))) - 1
        below, inside = int(found.released[j]), int(found.released[j + 1] - found.released[j])
        part = min(float((wanted - below) / inside), 1.0)
        low, high = found.excess(share, confidence or Confidence())
        high[-1], low[0] = 0.0, -1.0  # y - qN: 0 or more at the end, below 0 at the start
        possible = np.append(np.flatnonzero((high[1:] >= 0) & (low[:-1] < 0)), j)
        first, last = int(possible.min()), int(possible.max())
        value = edges[j] + (edges[j + 1] - edges[j]) * part
        return Quantile(float(q), float(value), float(edges[first]), float(edges[last + 1]))

    def count_between(
        self, a: float, b: float, confidence: Confidence | None = None
    ) -> CountBetween:
        """How many records have ``a <= value < b`` (and ``value = b`` at the upper bound).

        Ends that are no edges: the count takes its part of their bins as if values were uniform
        there; the interval runs from the least of the bins that lie inside to the most of those
        that are touched, so it holds however values lie within bins.

        Args:
            a: the lower end; -inf for the lower bound.
            b: the upper end, above a; inf for the upper bound.
            confidence: of this interval; 95 % unless given. Simultaneous: of as many as there are
                bins.

        Raises:
            ReleaseError: a is not below b.
        """
        if not a < b:
            raise ReleaseError(f"count_between needs a below b, got {a} and {b}")
        found, edges = self.cumulative, self.ranges.edges
        ends = np.clip([a, b], edges[0], edges[-1])
        outer, inner = (
            np.searchsorted(edges, ends, side="right") - 1,
            np.searchsorted(edges, ends, side="left"),
        )
        touched, within = (outer[0], inner[1]), (inner[0], max(inner[0], outer[1]))
        first, last = np.array([touched, within]).T
        low, high = found.between(first, last, confidence or Confidence())
        at = np.interp(ends, edges, found.released)
        return CountBetween(round(float(at[1] - at[0])), int(low[1]), int(high[0]))

    def write(self, directory: str | Path) -> None:
        """Write the release; `read_distribution` reads it back.

        Raises:
            ReleaseError: the directory exists.
            MachineError: the disk is full or not writable.
        """
        self.release.write(directory)


def release_distribution(  # noqa: PLR0913 - the door for a column and nothing else
    values: ArrayLike,
    *,
    low: float,
    high: float,
    bins: int,
    budget: Budget,
    neighbours: Neighbours | None = None,
    units: Sequence[Any] | None = None,
    out_of_bounds: str = "refuse",
    name: str = "value",
    directory: str | Path | None = None,
) -> Distribution:
    """The distribution of a confidential column, under a fresh key from the operating system.

    Args:
        values: numbers (values), one a record.
        low: the public lower bound.
        high: the public upper bound.
        bins: K, of equal width; public.
        budget: `Epsilon` (discrete Laplace), or `Rho` or `EpsilonDelta` (discrete Gaussian).
        neighbours: the unit of privacy; `Replace` with one record a unit unless given, so the
            number of records is public. `AddRemove` measures it.
        units: (values): whose record each is. At most `Neighbours.contributions` records of a unit
            are kept (see `hedgerow.tables.bounding`): a unit with more is clipped to as many of
            them, chosen by a hash of its own records; the distribution is that of the kept ones.
        out_of_bounds: ``"clamp"`` moves values outside to the nearest bound, ``"refuse"`` refuses.
        name: of the column, in the release.
        directory: where the release appears, whole or not at all; left out, it stays in memory.

    Raises:
        TableError: bounds, bins or values that break the rules of `Ranges`.
        BudgetError, PlanError: a budget that cannot be spent so.
        ReleaseError: the directory exists.
        MachineError: the disk is full, or the memory.
    """
    ranges = Ranges.equal_width(name, low, high, bins, out_of_bounds=out_of_bounds)
    who = Replace() if neighbours is None else neighbours
    plan = plan_distribution(ranges, budget=budget, neighbours=_with_unit(who, units))
    counts = column_counts(plan, ranges, values, units=units)
    return Distribution(plan, release(counts, plan, estimator=ESTIMATOR, directory=directory))


def plan_distribution(
    ranges: Ranges,
    *,
    budget: Budget,
    neighbours: Neighbours | None = None,
    objective: Objective | None = None,
) -> Plan:
    """The plan of a distribution, from public facts alone: its tree and shares are designed.

    Args:
        ranges: the bins.
        budget: as in `release_distribution`.
        neighbours: as there.
        objective: what the tree is designed for; the CDF unless given.

    Raises:
        BudgetError, PlanError: a budget that cannot be spent so.
    """
    mechanism = DiscreteLaplace if isinstance(budget, Epsilon) else DiscreteGaussian
    allocation = ForDistribution(Cdf() if objective is None else objective)
    branching = allocation.design(ranges.bins, mechanism).branching
    return make_plan(
        Tree([coded_axis(ranges, branching)]),
        budget=budget,
        neighbours=Replace() if neighbours is None else neighbours,
        mechanism=mechanism,
        allocation=allocation,
        measure=All(),
    )


def column_counts(
    plan: Plan, ranges: Ranges, values: ArrayLike, *, units: Sequence[Any] | None = None
) -> Counts:
    """The confidential counts of a column's bins, over the plan's tree.

    Raises:
        TableError: values or units that break the rules.
    """
    (axis,) = plan.tree.axes
    leaves = ranges.bin(values)
    if units is None:
        counts = np.bincount(leaves, minlength=ranges.bins).astype(np.int64)
        return Counts.from_leaves(plan.tree, (np.arange(ranges.bins, dtype=np.int32),), counts)
    if len(units) != len(leaves):
        raise TableError(
            f"range {ranges.name!r}: units and values must have one length; each record needs its "
            "unit"
        )
    table = {axis.columns[-1]: codes_of_bins(axis, leaves), UNIT: pa.array(units)}
    most = plan.neighbours.contributions
    return Counts.from_frame(plan.tree, pa.table(table), unit=UNIT, contributions=most)


def distribution_in_memory(counts: Counts, plan: Plan, *, bits: Bits) -> Distribution:
    """A distribution from given random bits: a seed, in simulations on public tables alone.

    Raises:
        PlanError: the plan is for another domain.
    """
    check_match(counts, plan)
    return Distribution(plan, in_memory(counts, plan, estimator=ESTIMATOR, bits=bits))


def read_distribution(directory: str | Path) -> Distribution:
    """The distribution in a release directory with one numeric axis.

    Raises:
        ReleaseError: there is no release, or it is none of a distribution.
        TableError: its axis is not numeric.
    """
    folder = Path(directory)
    plan = stated_plan(folder, read_manifest(folder))
    return Distribution(plan, read_release(folder))


def _with_unit(who: Neighbours, units: Sequence[Any] | None) -> Neighbours:
    """The promise names the unit where records do."""
    return who if units is None or who.unit is not None else replace(who, unit=UNIT)
