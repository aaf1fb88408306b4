"""The distributions of a numeric axis by place: what `Release.quantiles` and its like ask for.

A *place* is a cell of levels of the other axes, or an area of a user's own. Its counts before each
edge are sums of cells of a released table, whose estimates have a joint covariance: of the counts
before an edge, of those behind it and of all, y, N - y and N, the variances follow as those of any
sums do (`hedgerow.release.answers.sums`), and tell that of

    y - qN = (1 - q) y - q (N - y):   (1 - q) Var(y) + q Var(N - y) - q (1 - q) Var(N).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Array, Float64, Int64
from hedgerow.declared import check_known
from hedgerow.distribution.bins import numeric_axes
from hedgerow.errors import ReleaseError, as_list
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_CUTS, MOST_WORK_OF_SUMS
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.answers import Answers
from hedgerow.release.answers.pairs import check_names
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.sums import Groups, Sums
from hedgerow.release.descent.jobs import OnFraction, tell_nobody
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content
from hedgerow.release.distribution.cumulative import RANK, Cumulative
from hedgerow.release.naming import meant_levels
from hedgerow.tables.lists.lookup import Lookup


@dataclass(frozen=True, eq=False)
class Places:
    """The places whose distributions along a numeric axis are wanted.

    Attributes:
        plan: of the release.
        axis: the number of the numeric axis.
        by: levels of the other axes, or columns of attributes.
        lookup: the areas, if any.

    Raises:
        ReleaseError: the numeric axis is among those of the places; or no table of the release has
            the bins of all places with errors that are known.
    """

    plan: Plan
    axis: int
    by: Mapping[str, str]
    lookup: Lookup | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        axis: str | None,
        place: str | None,
        by: Mapping[str, str] | None,
        lookup: Lookup | None = None,
    ) -> "Places":
        """Return the places that a user names.

        Args:
            plan: of the release.
            axis: the numeric axis; the only one unless given.
            place: a level of another axis, such as ``"tract"``, or ``"tract × sex"``.
            by: axis = level, or columns of an attribute.
            lookup: areas.

        Raises:
            ReleaseError: no such axis or level.
        """
        tree = plan.tree
        numeric = numeric_axes(tree.axes)
        if not numeric:
            names = ", ".join(each.name for each in tree.axes)
            raise ReleaseError(
                f"quantiles need an axis of bins (low, high and bins, or edges, in its [[axis]]), "
                f"and this release has none: its axes are {names}"
            )
        if axis is None:
            if len(numeric) > 1:
                raise ReleaseError(f"name one of the numeric axes: {', '.join(numeric)}")
            (axis,) = numeric
        check_known(axis, numeric, "numeric axis", ReleaseError)
        levels = {} if place is None else meant_levels(tree, place)
        if levels is None:
            others = [level for a in tree.axes if a.name != axis for level in a.levels]
            check_known(place, others, "level", ReleaseError)
        number = [each.name for each in tree.axes].index(axis)
        return cls(plan, number, {**(levels or {}), **(by or {})}, lookup)

    def __post_init__(self) -> None:
        name = self.plan.tree.axes[self.axis].name
        if name in self.by or (self.lookup is not None and self.lookup.axis == self.axis):
            raise ReleaseError(
                f"{name!r} is the axis whose distribution is wanted, so places cannot be made of "
                f"it; name levels of the other axes"
            )
        if not self.is_column:
            self.bins  # noqa: B018 - refused here if there are none

    @cached_property
    def answers(self) -> Answers[Any]:
        """What tells of cells of the release."""
        return answers_of(self.plan)

    @cached_property
    def sums(self) -> Sums:
        """All records of each place."""
        return Sums(self.plan, self.by, self.lookup)

    @cached_property
    def bins(self) -> Sums:
        """The bins of each place: the finest of which errors are known."""
        axis, faults = self.plan.tree.axes[self.axis], list[ReleaseError]()
        for level in reversed(axis.levels):
            sums = Sums(self.plan, {**self.by, axis.name: level}, self.lookup)
            try:
                cuboid = sums.cuboid
            except ReleaseError as error:
                faults.append(error)
                continue
            if self.answers.design.is_answerable(cuboid):
                self.answers.check_columns(sums)
                return sums
            cells = self.plan.tree.name_of(cuboid)
            faults.append(
                ReleaseError(
                    f"quantiles of {axis.name} need every cell of {cells} measured, and here noise "
                    f'decides which are; a plan with measure = "all" in [estimate] has them'
                )
            )
        raise faults[0]

    @property
    def level(self) -> int:
        """Of the numeric axis, whose nodes are the bins."""
        return self.bins.levels[self.axis]

    @cached_property
    def edges(self) -> Float64:
        """Where bins begin and end: float64 (K + 1)."""
        axis = self.plan.tree.axes[self.axis]
        edges = numeric_axes([axis])[axis.name].edges
        return np.asarray(edges[axis.descendant_start(self.level, axis.depth)])

    def within(self, first: int, last: int) -> Sums:
        """Return of each place the bins outside a range, and those in it: ``first <= k < last``."""
        name, k = self.plan.tree.axes[self.axis].name, np.arange(len(self.edges) - 1)
        own = {name: Groups.apart(self.level, (first <= k) & (k < last))}
        return Sums(self.plan, self.by, self.lookup, own)

    def by_place(self, sums: Sums, values: Array) -> Array:
        """Return what sums have, a row a place and a column a bin or group of them."""
        each = values.reshape(-1, *sums.sizes)
        return np.moveaxis(each, 1 + self.axis, -1).reshape(self.sums.many, -1)

    @property
    def is_column(self) -> bool:
        """Whether there is no other axis: a column alone is one place."""
        return len(self.plan.tree.axes) == 1

    def check(self, content: Content) -> None:
        """Raise a ReleaseError if the distributions are too many, or take too long."""
        noisy, cuts = content.noisy_cells, len(self.edges) - 1
        work = self.answers.work(self.within(0, 1), noisy) * cuts
        cells = self.sums.many * cuts
        if cells > MOST_CUTS or noisy > self.answers.most_noisy or work > MOST_WORK_OF_SUMS:
            raise ReleaseError(
                f"the distributions of {self.sums.many:,} places over {cuts:,} bins would take too "
                f"long, with {noisy:,} noisy counts; name coarser levels or fewer areas"
            )


@dataclass(frozen=True, eq=False)
class PlaceErrors:
    """The variances of estimated counts of bins, by place: float64 (places, …), records².

    Attributes:
        places: whose bins.
        content: the release.
        before: (places, K + 1): of the counts before each edge.
        behind: (places, K + 1): of the counts behind each edge.
    """

    places: Places
    content: Content
    before: Float64
    behind: Float64

    @classmethod
    def of(cls, places: Places, content: Content, on_fraction: OnFraction) -> "PlaceErrors":
        """Return those of all edges."""
        cuts = [places.within(0, last) for last in range(1, len(places.edges))]
        each = places.answers.each_variances(content, cuts, on_fraction)
        parts = [places.by_place(*pair) for pair in zip(cuts, each, strict=True)]
        table = np.stack(parts, axis=-1)  # (places, behind or before, edges from the second on)
        none = np.zeros((len(table), 1))
        before = np.hstack([none, table[:, 1]])
        return cls(places, content, before, np.hstack([before[:, -1:], table[:, 0]]))

    @property
    def total(self) -> Float64:
        """Of all records of a place: (places, 1)."""
        return self.before[:, -1:]

    def between(self, first: Int64, last: Int64) -> Float64:
        """Return the variances of counts of bins ``first <= bin < last``: (places, ranges)."""
        variance = self.before[:, last]
        inner = np.flatnonzero(first > 0)
        ranges = [self.places.within(int(first[i]), int(last[i])) for i in inner]
        each = self.places.answers.each_variances(self.content, ranges, tell_nobody)
        for i, sums, own in zip(inner, ranges, each, strict=True):
            variance[:, i] = self.places.by_place(sums, own)[:, 1]
        return variance

    def excess(self, share: float) -> Float64:
        """Return the variances of ``y_b - share · T`` for the cuts 0 … K: (places, K + 1)."""
        both = (1 - share) * self.before + share * self.behind
        return np.maximum(both - share * (1 - share) * self.total, 0.0)


@dataclass(frozen=True, eq=False)
class Distributions:
    """The distributions of a numeric axis in a release, by place.

    Frames have a row for each place, one after the other, and each rank or edge: its codes, or the
    area, come first.

    Attributes:
        places: in their order.
        cumulative: the counts of each before each edge.
    """

    places: Places
    cumulative: Cumulative

    @classmethod
    def of(
        cls, content: Content, places: Places, on_fraction: OnFraction = tell_nobody
    ) -> "Distributions":
        """Return those of a release; on_fraction is told how far it is.

        Raises:
            ReleaseError: they are too many, take too long, or have no intervals.
        """
        plan = places.plan
        if places.is_column:
            return cls(places, Cumulative.of_release(content).as_place())
        places.check(content)
        told = (places.by_place(places.bins, k) for k in places.answers.every(content, places.bins))
        released, estimate = (np.cumsum(np.pad(each, ((0, 0), (1, 0))), axis=1) for each in told)
        error = PlaceErrors.of(places, content, on_fraction)
        errors = CuboidErrors.of_sums(plan, released[:, 1:].size, content.total)
        known = error.before[:, -1] == 0
        return cls(places, Cumulative(places.edges, released, estimate, error, errors, known))

    def quantiles(self, ranks: Sequence[float], confidence: Confidence) -> pl.DataFrame:
        """Return quantiles, as `Release.quantiles` does."""
        wanted = [RANK(q) for q in as_list("ranks", ranks, "a list, such as [0.5]", ReleaseError)]
        if not wanted:
            raise ReleaseError("quantiles need at least one rank, such as 0.5")
        at_once = self.cumulative.at_once(len(wanted) * len(self.cumulative.released))
        told = zip(*(at_once.quantiles(q, confidence) for q in wanted), strict=True)
        value, low, high = (np.stack(each, axis=-1) for each in told)
        edges, total = at_once.edges, at_once.released[:, -1:]
        frame = self._labelled(
            quantile=np.broadcast_to(wanted, value.shape),
            value=value,
            low=low,
            high=high,
            count=np.broadcast_to(total, value.shape),
            whole_axis=(low == edges[0]) & (high == edges[-1]),
        )
        return frame.with_columns(pl.col("value").fill_nan(None))

    def cdf(self, confidence: Confidence) -> pl.DataFrame:
        """Return counts below each upper edge, as `Release.cdf` does."""
        counts, *others = self.cumulative.band(confidence)
        upper = np.broadcast_to(self.cumulative.edges[1:], counts.shape)
        names = "count", "cdf", "low", "high"
        return self._labelled(upper=upper, **dict(zip(names, (counts, *others), strict=True)))

    def count_between(self, a: float, b: float, confidence: Confidence) -> pl.DataFrame:
        """Return counts between two values, as `Release.count_between` does."""
        at_once = self.cumulative.at_once(len(self.cumulative.released))
        told = zip(("count", "low", "high"), at_once.count_between(a, b, confidence), strict=True)
        return self._labelled(**{name: each[:, None] for name, each in told})

    def _labelled(self, **columns: Array) -> pl.DataFrame:
        """Return a frame of tables: (places, rows of a place) each."""
        places, rows = next(iter(columns.values())).shape
        flat = {name: each.ravel() for name, each in columns.items()}
        check_names(self.places.sums.labelled(np.arange(0)).columns, flat)
        frame = self.places.sums.labelled(np.repeat(np.arange(places), rows), **flat)
        lookup = self.places.lookup
        return frame if lookup is None or lookup.names is None else lookup.with_names(frame)
