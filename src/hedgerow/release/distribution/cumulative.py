"""Cumulative counts of a release over one numeric axis: released, estimated, and how sure.

A page shows them as a picture.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from hedgerow.arrays import (
    Bool,
    Float64,
    FloatPair,
    FloatTriple,
    Int64,
    IntPair,
    IntTriple,
    float64,
    int64,
    int64_zeros,
    run_of,
)
from hedgerow.declared import Real, frozen
from hedgerow.distribution.bins import ranges_of
from hedgerow.distribution.cut_error import CutErrors
from hedgerow.distribution.plan import cumulative_error
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import Line, Scale, even_ticks, picture, shown, table
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.page.protected import words_of
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content
from hedgerow.text import as_double

RANK = Real("a quantile's rank", 0, 1, ReleaseError, ends="()")


@frozen
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
    """The counts before the edges 0 … K of a numeric axis, of a column alone or of many places.

    `released` are sums of released counts, which are not negative. `estimate` are the best linear
    unbiased estimates from all noisy counts (`hedgerow.estimate.tree.least_squares`); intervals
    rest on these, so a released count may lie outside its interval. Of many places everything has a
    first dimension more, shown as …

    Attributes:
        edges: float64 (K + 1): where bins begin and end.
        released: int64 (…, K + 1), records.
        estimate: float64 (…, K + 1), records.
        error: the variances of the estimates and of their differences.
        errors: what else is known of their errors: cuts sum many draws, as sums off the tree do.
        known: bool (…): whether the number of all records is public.
    """

    edges: Float64
    released: Int64
    estimate: Float64
    error: CutErrors
    errors: CuboidErrors
    known: Bool

    @classmethod
    def of_release(cls, release: Content) -> "Cumulative":
        """From the noisy counts of a release of a column alone, and its plan.

        Raises:
            TableError: the axis is not numeric.
            ReleaseError: the plan has several axes, measures survivors alone, or holds the counts
                of a level public.
        """
        plan = release.plan
        _check(plan)
        bins = plan.tree.finest
        edges = ranges_of(plan.tree.axes[0]).edges
        every = answers_of(plan).cells(release.stored, [bins])[bins]
        released = int64_zeros(plan.tree.leaves + 1)
        estimate = np.zeros(len(released))
        if len(every):  # nothing is measured below a public total of 0
            released[1:] = np.cumsum(every.counts)
            estimate[1:] = np.cumsum(every.estimate)
        errors = CuboidErrors.of_sums(plan, plan.tree.leaves, int(released[-1]))
        known = np.array(errors.total is not None)
        return cls(edges, released, estimate, cumulative_error(plan), errors, known)

    @property
    def bins(self) -> int:
        """K."""
        return len(self.edges) - 1

    @property
    def total(self) -> int:
        """The released number of records, of all places."""
        return int(self.released[..., -1].sum())

    def as_place(self) -> "Cumulative":
        """Return a column alone as the one place that it is."""
        return replace(self, released=self.released[None], estimate=self.estimate[None])

    def at_once(self, cells: int) -> "Cumulative":
        """Return the same where simultaneous intervals are so many."""
        return replace(self, errors=replace(self.errors, cells=cells))

    def between(self, first: Int64, last: Int64, confidence: Confidence) -> IntPair:
        """Return lowest and highest counts of ``first <= bin < last``: int64 (…, ranges), records.

        Args:
            first: int64 (ranges), 0 … K.
            last: int64 (ranges), first … K.
            confidence: of one interval, or of as many as `errors` has cells.
        """
        estimate = self.estimate[..., last] - self.estimate[..., first]
        variance = self.error.between(first, last)
        low, high = self.errors.interval(estimate.ravel(), variance.ravel(), confidence)
        return low.reshape(estimate.shape), high.reshape(estimate.shape)

    def before(self, confidence: Confidence) -> IntPair:
        """Return lowest and highest counts before the edges 0 … K: as `between`."""
        cuts = np.arange(self.bins + 1)
        return self.between(np.zeros_like(cuts), cuts, confidence)

    def band(self, confidence: Confidence) -> tuple[Int64, Float64, Int64, Int64]:
        """Return counts below the upper edges, their parts of the total, lowest and highest counts.

        Simultaneous intervals never fall.

        Returns:
            (…, K) each.
        """
        low, high = (each[..., 1:] for each in self.before(confidence))
        if confidence.simultaneous:  # all hold at once, so each bounds its neighbours
            low = np.maximum.accumulate(low, axis=-1)
            high = np.minimum.accumulate(high[..., ::-1], axis=-1)[..., ::-1]
        counts = self.released[..., 1:]
        return counts, counts / np.maximum(counts[..., -1:], 1), low, high

    def count_between(self, a: float, b: float, confidence: Confidence) -> IntTriple:
        """Return how many records have ``a <= value < b``, and lowest and highest numbers of them.

        As `Distribution.count_between`.

        Returns:
            int64 (…) each.

        Raises:
            ReleaseError: a is not below b.
        """
        a, b = (as_double(end, "a range's end", ReleaseError) for end in (a, b))
        if not a < b:
            raise ReleaseError(f"count_between needs a below b, got {a} and {b}")
        edges = self.edges
        ends = np.clip([a, b], edges[0], edges[-1])
        outer = run_of(edges, ends)
        inner = np.searchsorted(edges, ends)
        if a <= edges[-1]:  # the last bin is closed
            outer[0] = min(outer[0], self.bins - 1)
        # of the bins that are touched, and of those that lie inside
        first, last = np.array([[outer[0], inner[0]], [inner[1], max(inner[0], outer[1])]])
        low, high = self.between(first, last, confidence)
        at = np.apply_along_axis(partial(np.interp, ends, edges), -1, self.released)
        counts = int64(np.round(at[..., 1] - at[..., 0]))
        return counts, np.minimum(low[..., 1], high[..., 0]), high[..., 0]

    def excess(self, share: Fraction, confidence: Confidence) -> FloatPair:
        """Return where ``y_b - share · T`` lies, for the cuts 0 … K: float64 (…, K + 1), records.

        y_b is the true count before cut b and T the true total. Where T is known it is
        ``y_b - ⌈share · T⌉``, of which whole numbers alone are possible, with the same sign.
        """
        part = float(share)
        total = self.released[..., -1:]
        estimate = self.estimate - part * self.estimate[..., -1:]
        reach = self.errors.half_width(self.error.excess(part), confidence)
        known = self.known[..., None]
        if not known.any():
            return estimate - reach, estimate + reach
        ranks = -(-total.astype(object) * share.numerator // share.denominator)
        low, high = (float64(each - ranks) for each in self.before(confidence))
        return np.where(known, low, estimate - reach), np.where(known, high, estimate + reach)

    def quantiles(self, q: float, confidence: Confidence) -> FloatTriple:
        """Return what a part q of the records does not exceed, and the interval of the true value.

        The interval spans the bins in which the true quantile can be by the intervals of
        ``y - qN`` at their two cuts, each of which has its own variance, and the bin of the value
        (`Distribution.quantile` says why they cover as often as they say). Bins that are possible
        need not be neighbours: it is their hull. Where no records were released there is no value,
        and the interval is the whole axis.

        Args:
            q: in (0, 1).
            confidence: of one interval, or of all cuts of all places at once.

        Returns:
            float64 (…) each: the value, NaN where there is none; where the interval begins and
            where it ends.
        """
        share = Fraction(str(q))
        released = self.released
        edges = self.edges
        total = released[..., -1:].astype(object)  # exact, however long q is
        wanted = total * share.numerator
        below = share.denominator
        ranks = int64(np.maximum(-(-wanted // below), 1))
        j = np.minimum((released < ranks).sum(axis=-1, keepdims=True), self.bins) - 1
        before, behind = (
            np.take_along_axis(released, cut, -1).astype(object) for cut in (j, j + 1)
        )
        inside = np.maximum(behind - before, 1) * below
        part = np.minimum(float64((wanted - before * below) / inside), 1.0)
        low, high = self.excess(share, confidence)
        high[..., -1], low[..., 0] = 0.0, -1.0  # y - qN: 0 or more at the end, below 0 at the start
        possible = (high[..., 1:] >= 0) & (low[..., :-1] < 0)
        possible |= (np.arange(self.bins) == j) | (total == 0)
        first = np.argmax(possible, axis=-1)
        last = self.bins - np.argmax(possible[..., ::-1], axis=-1)
        value = np.where(total == 0, np.nan, edges[j] + (edges[j + 1] - edges[j]) * part)
        return value[..., 0], edges[first], edges[last]

    def quantile(self, q: float, confidence: Confidence) -> Quantile:
        """Return what a part q of the records of a column alone does not exceed: as `quantiles`.

        Raises:
            ReleaseError: the released total is 0.
        """
        if self.total == 0:
            raise ReleaseError("the released total is 0; a distribution of nothing has no quantile")
        return Quantile(float(q), *map(float, self.quantiles(q, confidence)))


def _check(plan: Plan) -> None:
    if len(plan.tree.axes) != 1:
        names = ", ".join(plan.tree.axis_names)
        raise ReleaseError(
            f"a distribution is of one numeric axis, and this release has {names}; ask the release "
            'for quantiles(AXIS, [0.5], place="…"), cdf(…) or count_between(…)'
        )
    if isinstance(plan.measure, Survivors):
        raise ReleaseError(
            "a distribution needs a release that measured all nodes or running sums (measure = "
            '"all" or "running-sums" in [estimate]); this one measured survivors alone'
        )
    if not plan.has_depths:
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
        cumulative: its counts before each edge, of a column alone or of one place.
        ranges: its bins.
        say: the texts of the page.
    """

    cumulative: Cumulative
    ranges: Ranges
    say: Catalogue

    def quartiles(self) -> str:
        """Return the median and the quartiles with their intervals: HTML."""
        say = self.say
        lower, median, upper = (
            self.cumulative.quantile(q, Confidence()) for q in (0.25, 0.5, 0.75)
        )
        others = "\n".join(
            f"<div><dt>{say(f'release.script.{key}')}</dt>"
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
        return self.say.numeral(f"{value:,.{self.ranges.decimals}f}")

    def _between(self, of: Quantile) -> str:
        low = self._value(of.low)
        high = self._value(of.high)
        return self.say("script.from_to", low=low, high=high)

    def section(self) -> str:
        """Return the distribution in a picture, and in figures: HTML."""
        cumulative = self.cumulative
        say = self.say
        ranges = self.ranges
        bins = cumulative.bins
        edges = ranges.edges.tolist()
        low, high = (each.ravel() for each in cumulative.before(Confidence()))
        released = cumulative.released.ravel()
        part = released / cumulative.total
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
                say.number(int(released[i])),
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
    return Shown(cumulative, ranges_of(plan.tree.axes[0]), words_of(plan))
