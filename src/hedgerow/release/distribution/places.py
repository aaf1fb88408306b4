"""The distributions of a numeric axis by place: what `Release.quantiles` and its like tell.

A *place* is a cell of levels of the other axes, or an area of a user's own. Its counts before each
edge are sums of cells of a released table, whose estimates have a joint covariance: of the counts
before an edge, of those behind it and of all, y, N - y and N, the variances follow as those of any
sums do (`hedgerow.release.answers.sums`), and tell that of

    y - qN = (1 - q) y - q (N - y):   (1 - q) Var(y) + q Var(N - y) - q (1 - q) Var(N).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
import polars as pl

from hedgerow.arrays import Array, Float64, Int64
from hedgerow.declared import check_known
from hedgerow.distribution.bins import numeric_axes
from hedgerow.errors import ReleaseError, as_list
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_CUTS, MOST_WORK_OF_SUMS
from hedgerow.release.answers.answers import Answers
from hedgerow.release.answers.pairs import check_names
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.sums import Groups, Sums
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content
from hedgerow.release.distribution.cumulative import RANK, Cumulative
from hedgerow.release.naming import meant_levels
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.text import TextByName


class Where(TypedDict, total=False):
    """By which places a distribution is wanted: as `Release.quantiles` takes them."""

    place: str | None
    by: TextByName | None
    areas: Any
    column: str | None
    names: str | None
    codes: TextByName | None


@dataclass(frozen=True, eq=False)
class Distributions:
    """The distributions of a numeric axis in a release, by place.

    Frames have a row for each place, one after the other, and each rank or edge: its codes, or the
    area, come first.

    Attributes:
        content: the release.
        number: that of the numeric axis.
        sums: all records of each place.

    Raises:
        ReleaseError: places are made of the numeric axis.
    """

    content: Content
    number: int
    sums: Sums

    @classmethod
    def of(cls, content: Content, axis: str | None, where: Where) -> "Distributions":
        """Return those that a user names.

        Args:
            content: the release.
            axis: the numeric axis; the only one unless given.
            where: the places.

        Raises:
            TableError: no lookup of areas.
            ReleaseError: no such axis or level.
        """
        for key in where:
            check_known(key, Where.__annotations__, "way to name places", ReleaseError)
        tree = content.plan.tree
        lookup = where.get("areas")
        place = where.get("place")
        numeric = [*numeric_axes(tree.axes)]
        names = tree.axis_names
        if not numeric:
            raise ReleaseError(
                "a distribution is of an axis of bins (low, high and bins, or edges, in its "
                f"[[axis]]), and the axes of this release are {', '.join(names)}"
            )
        if axis is None and len(numeric) > 1:
            raise ReleaseError(f"name one of the numeric axes: {', '.join(numeric)}")
        axis = axis or numeric[0]
        check_known(axis, numeric, "numeric axis", ReleaseError)
        levels = {} if place is None else meant_levels(tree, place)
        if levels is None:
            check_known(place, [k for a in tree.axes for k in a.levels], "level", ReleaseError)
        if lookup is not None and not isinstance(lookup, Lookup):
            names_of = where.get("names")
            codes = where.get("codes")
            lookup = Lookup.of(tree, lookup, where.get("column"), names=names_of, codes=codes)
        sums = Sums(content.plan, {**(levels or {}), **(where.get("by") or {})}, lookup)
        return cls(content, names.index(axis), sums)

    def __post_init__(self) -> None:
        lookup = self.sums.lookup
        name = self.axis.name
        if name in self.sums.by or (lookup is not None and lookup.axis == self.number):
            raise ReleaseError(
                f"{name!r} is the axis whose distribution is wanted, so places cannot be made of "
                f"it; name levels of the other axes"
            )

    @property
    def axis(self) -> Axis:
        """The numeric axis."""
        return self.content.plan.tree.axes[self.number]

    @cached_property
    def answers(self) -> Answers[Any]:
        """What tells of cells of the release."""
        return answers_of(self.content.plan)

    @cached_property
    def bins(self) -> Sums:
        """The bins of each place: the finest of which errors are known."""
        own = self.sums
        faults = []
        for level in reversed(self.axis.levels):
            bins = Sums(own.plan, {**own.by, self.axis.name: level}, own.lookup)
            try:
                if self.answers.design.is_answerable(bins.cuboid):
                    return bins
                cells = own.plan.tree.name_of(bins.cuboid)
                fault = f"need every cell of {cells} measured, and here noise decides which are"
                advice = 'a plan with measure = "all" in [estimate] has them'
                faults.append(ReleaseError(f"distributions {fault}; {advice}"))
            except ReleaseError as error:
                faults.append(error)
        raise faults[0]

    def within(self, first: int, last: int) -> Sums:
        """Return of each place the bins outside a range, and those in it: ``first <= k < last``."""
        level = self.bins.levels[self.number]
        own = self.sums
        k = np.arange(self.axis.size(level))
        groups = {self.axis.name: Groups.apart(level, (first <= k) & (k < last))}
        return Sums(own.plan, own.by, own.lookup, groups)

    def _by_place(self, sums: Sums, values: Array) -> Array:
        """Return what sums have, a row a place and a column a bin or group of them."""
        each = values.reshape(-1, *sums.sizes)
        return np.moveaxis(each, 1 + self.number, -1).reshape(self.sums.many, -1)

    @cached_property
    def cumulative(self) -> Cumulative:
        """The counts before each edge, a row a place.

        Raises:
            ReleaseError: no released table has the bins of these places, or their errors are
                unknown, or take too long.
        """
        if len(self.content.plan.tree.axes) == 1:
            return Cumulative.of_release(self.content).as_place()
        axis = self.axis
        level = self.bins.levels[self.number]
        self.answers.check_columns(self.bins)
        noisy = self.content.noisy_cells
        cuts = axis.size(level)
        work = self.answers.work(self.within(0, 1), noisy) * cuts
        cells = self.sums.many * cuts
        if cells > MOST_CUTS or noisy > self.answers.most_noisy or work > MOST_WORK_OF_SUMS:
            raise ReleaseError(
                f"distributions of {self.sums.many:,} places over {cuts:,} bins would take too "
                f"long, with {noisy:,} noisy counts; name coarser levels or fewer areas"
            )
        edges = numeric_axes([axis])[axis.name].edges[axis.descendant_start(level, axis.depth)]
        told = (self._by_place(self.bins, k) for k in self.answers.every(self.content, self.bins))
        counts, estimate = (np.cumsum(np.pad(each, ((0, 0), (1, 0))), axis=1) for each in told)
        errors = CuboidErrors.of_sums(self.content.plan, cells, self.content.total)
        error = self.answers.cut_errors(self.content, self.sums, self.number) or self
        known = error.excess(0.0)[:, -1] == 0
        return Cumulative(edges, counts, estimate, error, errors, known)

    # --- variances ------------------------------------------------------------------------------

    def _variances(self, first: Sequence[int], last: Sequence[int]) -> Float64:
        """Return those of counts outside ranges of bins, and in them: (places, 2, ranges)."""
        each = [self.within(*ends) for ends in zip(first, last, strict=True)]
        variances = self.answers.each_variances(self.content, each)
        pairs = zip(each, variances, strict=True)
        return np.stack([self._by_place(*pair) for pair in pairs], axis=-1)

    @cached_property
    def _cuts(self) -> Float64:
        """Those of counts behind each edge, and before it: (places, 2, K + 1)."""
        ends = range(1, self.axis.size(self.bins.levels[self.number]) + 1)
        behind = self._variances([0] * len(ends), ends)
        return np.concatenate([behind[:, ::-1, -1:], behind], axis=-1)

    def between(self, first: Int64, last: Int64) -> Float64:
        """Return the variances of counts of bins ``first <= bin < last``: (places, ranges)."""
        variance = self._cuts[:, 1, last]
        inner = first > 0
        if inner.any():
            ends = first[inner].tolist(), last[inner].tolist()
            variance[:, inner] = self._variances(*ends)[:, 1]
        return variance

    def excess(self, share: float) -> Float64:
        """Return the variances of ``y_b - share · T`` for the cuts 0 … K: (places, K + 1)."""
        behind = self._cuts[:, 0]
        before = self._cuts[:, 1]
        both = (1 - share) * before + share * behind
        return np.maximum(both - share * (1 - share) * before[:, -1:], 0.0)

    # --- frames ---------------------------------------------------------------------------------

    def quantiles(self, ranks: Sequence[float], confidence: Confidence) -> pl.DataFrame:
        """Return quantiles, as `Release.quantiles` does."""
        wanted = [RANK(q) for q in as_list("ranks", ranks, "a list, such as [0.5]", ReleaseError)]
        if not wanted:
            raise ReleaseError("quantiles need at least one rank, such as 0.5")
        own = self.cumulative.at_once(len(wanted) * self.sums.many)
        told = zip(*(own.quantiles(q, confidence) for q in wanted), strict=True)
        value, low, high = (np.stack(each, axis=-1) for each in told)
        return self._labelled(
            quantile=np.array([wanted]),
            value=value,
            low=low,
            high=high,
            count=own.released[:, -1:],
            whole_axis=(low == own.edges[0]) & (high == own.edges[-1]),
        ).with_columns(pl.col("value").fill_nan(None))

    def cdf(self, confidence: Confidence) -> pl.DataFrame:
        """Return counts below each upper edge, as `Release.cdf` does."""
        counts, part, low, high = self.cumulative.band(confidence)
        upper = self.cumulative.edges[None, 1:]
        return self._labelled(upper=upper, count=counts, cdf=part, low=low, high=high)

    def count_between(self, a: float, b: float, confidence: Confidence) -> pl.DataFrame:
        """Return counts between two values, as `Release.count_between` does."""
        own = self.cumulative.at_once(self.sums.many)
        count, low, high = (each[:, None] for each in own.count_between(a, b, confidence))
        return self._labelled(count=count, low=low, high=high)

    def _labelled(self, **columns: Array) -> pl.DataFrame:
        """Return a frame of tables, (places, rows of a place) each, or one of these for all."""
        shape = np.broadcast_shapes(*(each.shape for each in columns.values()))
        flat = {name: np.broadcast_to(each, shape).ravel() for name, each in columns.items()}
        check_names(self.sums.labelled(np.arange(0)).columns, flat)
        frame = self.sums.labelled(np.repeat(np.arange(shape[0]), shape[1]), **flat)
        lookup = self.sums.lookup
        return frame if lookup is None or lookup.names is None else lookup.with_names(frame)
