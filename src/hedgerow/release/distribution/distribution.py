"""`Distribution`: quantiles, counts of ranges and the CDF of a released numeric column."""

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import int64, rises
from hedgerow.declared import frozen
from hedgerow.distribution.bins import ranges_of
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.picture import (
    GREEN,
    figure_for,
    figure_of,
    open_axes,
    write_heading,
    write_thousands,
)
from hedgerow.plan.picture import title_of, unit_of
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.distribution.cumulative import RANK, Cumulative, Quantile
from hedgerow.release.release import Release, read_release


@frozen
class CountBetween:
    """How many records have a value in a range.

    Attributes:
        count: released, records; within a bin in proportion.
        low, high: with the confidence asked for, the true count is one of low … high.

    Example:
        >>> ages = [20 + i % 60 for i in range(6000)]
        >>> made = hr.release_distribution(
        ...     ages, low=0, high=100, bins=20, budget=hr.EpsilonDelta("1", "1e-8")
        ... )
        >>> working_age = made.count_between(18, 65)
        >>> working_age.low <= working_age.high
        True
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
    variances of `hedgerow.distribution.cut_error`, and on the reach of an unmeasured depth
    in `hedgerow.estimate.intervals`. A released count may lie outside its interval, where counts of
    0 leave it no room.

    Attributes:
        release: the counts of every level of the tree.

    Raises:
        TableError: the axis is not numeric.
        ReleaseError: several axes, or a plan that measures survivors alone.

    Example:
        >>> ages = [20 + i % 60 for i in range(6000)]
        >>> made = hr.release_distribution(
        ...     ages, low=0, high=100, bins=20, budget=hr.EpsilonDelta("1", "1e-8")
        ... )
        >>> made
        Distribution(value: 6,000 records released, 20 bins from 0 to 100)
        >>> made.cdf.columns
        ['upper', 'count', 'cdf', 'low', 'high']
    """

    release: Release

    def __post_init__(self) -> None:
        self.cumulative  # noqa: B018 - computed here, so that what is no distribution is refused
        self.ranges  # noqa: B018

    def __repr__(self) -> str:
        edges = self.ranges.edges
        return (
            f"Distribution({self.ranges.name}: {self.cumulative.total:,} records released, "
            f"{self.cumulative.bins:,} bins from {edges[0]:.15g} to {edges[-1]:.15g})"
        )

    @property
    def plan(self) -> Plan:
        """The plan of the release."""
        return self.release.plan

    @cached_property
    def ranges(self) -> Ranges:
        """The bins."""
        return ranges_of(self.plan.tree.axes[0])

    @cached_property
    def cumulative(self) -> Cumulative:
        """The counts before each edge."""
        return Cumulative.of_release(self.release.content)

    @property
    def cdf(self) -> pl.DataFrame:
        """The band of 95 % for each bin on its own; see `band`."""
        return self.band(Confidence())

    def band(self, confidence: Confidence) -> pl.DataFrame:
        """Return the cumulative distribution, with intervals.

        Args:
            confidence: of each bin's interval, or (simultaneous) of all at once.

        Returns:
            One row a bin: ``upper`` (its upper edge), ``count`` (records below that edge; in the
            last row all), ``cdf`` (its part of the released total; 0 if that is 0), ``low`` and
            ``high``, the interval of ``count``, records. Simultaneous intervals never fall.
        """
        names = "count", "cdf", "low", "high"
        columns = dict(zip(names, self.cumulative.band(confidence), strict=True))
        return pl.DataFrame({"upper": self.ranges.edges[1:], **columns})

    def quantile(self, q: float, confidence: Confidence | None = None) -> Quantile:
        """Return the value that a part q of the records does not exceed.

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
        return self.cumulative.quantile(RANK(q), confidence or Confidence())

    def count_between(
        self, a: float, b: float, confidence: Confidence | None = None
    ) -> CountBetween:
        """Return how many records have ``a <= value < b`` (and ``value = b`` at the upper bound).

        Ends that are no edges: the count takes its part of their bins as if values were uniform
        there; the interval runs from the least of the bins that lie inside to the most of those
        that are touched, so it holds however values lie within bins. Values that were moved to a
        bound count as that bound: they are in the outermost bins, and none is outside the bounds.
        The last bin is closed, so a range from the upper bound on touches it.

        Args:
            a: the lower end; -inf for the lower bound.
            b: the upper end, above a; inf for the upper bound.
            confidence: of this interval; 95 % unless given. Simultaneous: of as many as there are
                bins.

        Raises:
            ReleaseError: a is not below b.
        """
        counted = self.cumulative.count_between(a, b, confidence or Confidence())
        return CountBetween(*map(int, counted))

    def plot(self, confidence: Confidence | None = None) -> Any:
        """Return the picture of ``hedgerow distribution --picture``, a figure of matplotlib.

        Args:
            confidence: of the intervals, 95 % for each edge unless given.

        Raises:
            ReleaseError: matplotlib is not installed.

        Example:
            >>> ages = [20 + i % 60 for i in range(6000)]
            >>> made = hr.release_distribution(ages, low=0, high=100, bins=20, budget=hr.Rho(1))
            >>> made.plot().axes[0].get_ylabel()
            'share of records below'
        """
        return figure_of(partial(_draw, self, confidence or Confidence()), SIZE, ReleaseError)

    def write(self, directory: str | Path) -> None:
        """Write the release; `read_distribution` reads it back.

        Raises:
            ReleaseError: the directory exists.
            MachineError: the disk is full or not writable.
        """
        self.release.write(directory)


def read_distribution(directory: str | Path) -> Distribution:
    """Return the distribution in a release directory with one numeric axis.

    Raises:
        ReleaseError: there is no release, it is damaged, or it is none of a distribution.
        TableError: its axis is not numeric.
        MachineError: it may not be read.

    Example:
        >>> ages = [20 + i % 60 for i in range(6000)]
        >>> made = hr.release_distribution(
        ...     ages, low=0, high=100, bins=20, budget=hr.EpsilonDelta("1", "1e-8")
        ... )
        >>> made.write("out")
        >>> hr.read_distribution("out").cdf.equals(made.cdf)
        True
    """
    folder = Path(directory)
    made = Distribution(read_release(folder))
    with undamaged(folder):
        (leaves,) = made.release.content.nodes[made.plan.tree.finest].codes
    if not rises(leaves):
        raise ReleaseError(
            f"{str(folder)!r} is damaged: bins are listed twice or out of order; run hedgerow check"
        )
    return made


# A picture of a distribution: its CDF with the band of its intervals.

MOST_POINTS = 4_000


SIZE = (8, 4.4)
"""Inches."""


def picture_of_distribution(
    distribution: Distribution, path: Path, *, confidence: Confidence | None = None
) -> None:
    """Draw the released CDF at the bins' edges, and the interval at each of them.

    Raises:
        ReleaseError: matplotlib is not installed, or the file cannot be written.
    """
    with figure_for(path, SIZE, ReleaseError) as figure:
        _draw(distribution, confidence or Confidence(), figure)


def _draw(distribution: Distribution, confidence: Confidence, figure: Any) -> None:
    """Draw it on a figure."""
    band = distribution.band(confidence)
    kept = np.unique(int64(np.linspace(0, len(band) - 1, min(len(band), MOST_POINTS))))
    total = max(distribution.cumulative.total, 1)
    x = np.append(distribution.ranges.low, band["upper"].to_numpy()[kept])
    low, cdf, high = (
        np.append(0.0, band[name].to_numpy()[kept] / total) for name in ("low", "count", "high")
    )
    unit = unit_of(distribution.plan)
    below = f"Released share of {unit} below each value, with its interval."
    name = distribution.ranges.name
    write_heading(figure, title_of(distribution.plan, f"Distribution of {name}"), below)
    axes = figure.subplots()
    kind = "all edges at once" if confidence.simultaneous else "each edge"
    axes.fill_between(
        x, low, np.minimum(high, 1.05), alpha=0.25, lw=0, color=GREEN,
        label=f"{100 * confidence.coverage:g} % interval ({kind})",
    )  # fmt: skip
    axes.plot(x, cdf, color=GREEN, lw=1.3, label="released")
    axes.set(xlabel=name, ylabel=f"share of {unit} below", ylim=(0, 1.02))
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "20", "40", "60", "80", "100 %"])
    write_thousands(axes.xaxis)
    axes.set_xlim(x[0], x[-1])
    axes.legend(loc="lower right")
    open_axes(axes)
