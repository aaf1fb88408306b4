"""Cumulative counts of a release over one numeric axis: released, estimated, and how sure.

A page shows them as a picture.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log10

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.distribution.bins import ranges_of
from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.plan import cumulative_error
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.estimate.running_sums import Decoded
from hedgerow.pages.catalogue import Catalogue, catalogue
from hedgerow.pages.markup import Line, Scale, even_ticks, picture, shown, table
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a column.

    Attributes:
        rank: q.
        value: where the released CDF, straight within each bin, reaches q.
        low, high: with the confidence asked for, the true quantile is in low … high.

    Example:
        >>> ages = [20 + i % 60 for i in range(6000)]
        >>> made = hr.release_distribution(
        ...     ages, low=0, high=100, bins=20, budget=hr.EpsilonDelta("1", "1e-8")
        ... )
        >>> median = made.quantile(0.5)
        >>> median.low <= median.value <= median.high
        True
    """

    rank: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Cumulative:
    """The counts before the edges 0 … K of a numeric axis.

    `released` are sums of released counts, which are not negative. `estimate` are the best linear
    unbiased estimates from all noisy counts (`hedgerow.estimate.tree.least_squares`); intervals
    rest on these, so a released count may lie outside its interval.

    Attributes:
        released: int64 (K + 1), records.
        estimate: float64 (K + 1), records.
        error: the variances of the estimates and of their differences.
        errors: what else is known of their errors: cuts sum many draws, as sums off the tree do.
    """

    released: Int64
    estimate: Float64
    error: CutError | Decoded
    errors: CuboidErrors

    @classmethod
    def of_release(cls, release: Content) -> "Cumulative":
        """From the noisy counts of a release and its plan.

        Raises:
            ReleaseError: the plan has several axes, measures survivors alone, or holds the counts
                of a level public.
        """
        plan = release.plan
        _check(plan)
        bins = plan.tree.finest
        every = answers_of(plan).cells(release.stored, [bins])[bins]
        released = np.zeros(plan.tree.leaves + 1, dtype=np.int64)
        estimate = np.zeros(len(released))
        if len(every):  # nothing is measured below a public total of 0
            released[1:], estimate[1:] = np.cumsum(every.counts), np.cumsum(every.estimate)
        errors = CuboidErrors.of_sums(plan, plan.tree.leaves, int(released[-1]))
        return cls(released, estimate, cumulative_error(plan), errors)

    @property
    def bins(self) -> int:
        """K."""
        return len(self.released) - 1

    @property
    def total(self) -> int:
        """The released number of records."""
        return int(self.released[-1])

    def between(self, first: Int64, last: Int64, confidence: Confidence) -> tuple[Int64, Int64]:
        """Return lowest and highest counts of ``first <= bin < last``: int64 (ranges), records.

        Args:
            first: int64 (ranges), 0 … K.
            last: int64 (ranges), first … K.
            confidence: of one interval, or of as many as there are bins.
        """
        estimate = self.estimate[last] - self.estimate[first]
        return self.errors.interval(estimate, self.error.between(first, last), confidence)

    def before(self, confidence: Confidence) -> tuple[Int64, Int64]:
        """Return lowest and highest counts before the edges 0 … K: as `between`."""
        cuts = np.arange(self.bins + 1)
        return self.between(np.zeros_like(cuts), cuts, confidence)

    def excess(self, share: Fraction, confidence: Confidence) -> tuple[Float64, Float64]:
        """Return where ``y_b - share · T`` lies, for the cuts 0 … K: two float64 (K + 1), records.

        y_b is the true count before cut b and T the true total. Where T is public it is
        ``y_b - ⌈share · T⌉``, of which whole numbers alone are possible, with the same sign.
        """
        if self.errors.total is not None:
            low, high = self.before(confidence)
            rank = ceil(share * self.errors.total)
            return (low - rank).astype(np.float64), (high - rank).astype(np.float64)
        part = float(share)
        estimate = self.estimate - part * self.estimate[-1]
        reach = self.errors.half_width(self.error.excess(part), confidence)
        return estimate - reach, estimate + reach

    def quantile(self, q: float, edges: Float64, confidence: Confidence) -> Quantile:
        """Return what a part q of the records does not exceed, as `Distribution.quantile`.

        Args:
            q: in (0, 1).
            edges: float64 (K + 1): where the bins begin and end.
            confidence: of its interval.

        Raises:
            ReleaseError: the released total is 0.
        """
        if self.total == 0:
            raise ReleaseError("the released total is 0; a distribution of nothing has no quantile")
        share = Fraction(str(q))
        wanted = share * self.total
        j = int(np.searchsorted(self.released, max(ceil(wanted), 1))) - 1
        below, inside = int(self.released[j]), int(self.released[j + 1] - self.released[j])
        part = min(float((wanted - below) / inside), 1.0)
        low, high = self.excess(share, confidence)
        high[-1], low[0] = 0.0, -1.0  # y - qN: 0 or more at the end, below 0 at the start
        possible = np.append(np.flatnonzero((high[1:] >= 0) & (low[:-1] < 0)), j)
        first, last = int(possible.min()), int(possible.max())
        value = edges[j] + (edges[j + 1] - edges[j]) * part
        return Quantile(float(q), float(value), float(edges[first]), float(edges[last + 1]))


def _check(plan: Plan) -> None:
    if len(plan.tree.axes) != 1:
        names = ", ".join(axis.name for axis in plan.tree.axes)
        raise ReleaseError(
            f"a distribution is of one numeric axis, and this release has {names}; sum over the "
            "others with cuboid(...)"
        )
    if isinstance(plan.measure, Survivors):
        raise ReleaseError(
            "a distribution needs a release that measured all nodes or running sums (measure = "
            '"all" or "running-sums" in [estimate]); this one measured survivors alone'
        )
    if plan.design.depth_of(plan.levels[0]) is None:
        raise ReleaseError(
            "cumulative counts have intervals where all depths of a tree are measured; these "
            'cuboids were named: release them with cuboids = "chain"'
        )
    if plan.public_depth > 0:
        raise ReleaseError(
            f"the counts of {plan.tree.cuboid_name(plan.public_depth)} are public in this release; "
            "a distribution with intervals needs all levels below the total measured"
        )


MOST_POINTS, MOST_ROWS = 400, 20
"""Of the picture on a page, and of the table below it."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A distribution as its page shows it.

    Attributes:
        cumulative: its counts before each edge.
        ranges: its bins.
        say: the texts of the page.
    """

    cumulative: Cumulative
    ranges: Ranges
    say: Catalogue

    def quartiles(self) -> str:
        """Return the median and the quartiles with their intervals: HTML."""
        say, edges = self.say, self.ranges.edges
        lower, median, upper = (
            self.cumulative.quantile(q, edges, Confidence()) for q in (0.25, 0.5, 0.75)
        )
        others = "\n".join(
            f"<div><dt>{say(f'release.distribution.{key}')}</dt>"
            f"<dd><strong>{self._value(each.value)}</strong> {self._between(each)}</dd></div>"
            for key, each in (("lower", lower), ("upper", upper))
        )
        return (
            f"<div>\n<h2>{say('release.distribution.median')}</h2>\n"
            f'<p class="figure"><strong>{self._value(median.value)}</strong> '
            f"{shown(self.ranges.name)}</p>\n"
            f'<p class="interval"><span class="told">{self._between(median)}</span> '
            f"{say('script.interval', sure='95')}</p>\n</div>\n"
            f'<dl class="beside">{others}\n<div><dt>{say("release.distribution.records")}</dt>'
            f"<dd><strong>{say.number(self.cumulative.total)}</strong></dd></div></dl>"
        )

    def _value(self, value: float) -> str:
        """Return a value with as many digits as the width of a bin allows."""
        digits = max(0, ceil(-log10(float(np.diff(self.ranges.edges).min()))))
        return self.say.numeral(f"{value:,.{digits}f}")

    def _between(self, of: Quantile) -> str:
        low, high = self._value(of.low), self._value(of.high)
        return self.say("script.from_to", low=low, high=high)

    def section(self) -> str:
        """Return the distribution in a picture, and in figures: HTML."""
        cumulative, say, ranges = self.cumulative, self.say, self.ranges
        bins, edges = cumulative.bins, ranges.edges.tolist()
        low, high = cumulative.before(Confidence())
        part = cumulative.released / cumulative.total
        under, over = np.minimum(np.stack([low, high]) / cumulative.total, 1.0)
        kept, listed = (
            np.unique(np.linspace(0, bins, min(bins, most) + 1).astype(int))
            for most in (MOST_POINTS - 1, MOST_ROWS)
        )
        points = [(edges[i], part[i]) for i in kept]
        fifths = [(i / 5, say.percent(str(20 * i))) for i in range(6)]
        drawn = picture(
            "cdf",
            (
                say("release.distribution.caption"),
                say("release.distribution.told", name=ranges.name),
            ),
            (
                Scale(ranges.name, edges[0], edges[-1], even_ticks(edges[0], edges[-1])),
                Scale(say("release.distribution.part_axis"), 0, 1, fifths),
            ),
            [Line("exact", say("release.distribution.released"), points)],
            [(edges[i], under[i], over[i]) for i in kept],
            [Line("band-key", say("release.distribution.band"), [])],
        )
        rows = [
            [
                say.numeral(f"{edges[i]:,.10g}"),
                say.number(int(cumulative.released[i])),
                say.between(int(low[i]), int(high[i])) if low[i] < high[i] else say("script.exact"),
            ]
            for i in listed[1:]
        ]
        figures = table(
            say,
            say("release.distribution.table", name=shown(ranges.name)),
            [say(f"release.distribution.{key}") for key in ("below", "records", "interval")],
            rows,
        )
        folded = f"<summary>{say('release.distribution.figures')}</summary>{figures}"
        return (
            f'<section id="distribution">\n<h2>{say("release.distribution.heading")}</h2>\n'
            f"{drawn}\n<details>{folded}\n<p>{say('release.distribution.quantiles')}</p></details>"
            "\n</section>"
        )


def shown_in(release: Content) -> Shown | None:
    """Return the distribution of a numeric release for its page; None where it has no band.

    Args:
        release: over one numeric axis (see `Cumulative.of_release`).
    """
    plan = release.plan
    try:
        cumulative = Cumulative.of_release(release)
    except ReleaseError:
        return None
    if cumulative.total == 0:
        return None
    return Shown(cumulative, ranges_of(plan.tree.axes[0]), catalogue(plan.description.language))
