"""`Release`: what came out of a plan and a table, for those outside too."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from hedgerow.declared import Whole
from hedgerow.errors import ReleaseError, kind_of
from hedgerow.estimate.factors import Factors
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_BOOTSTRAPPED
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.joint_errors import cells_with_errors
from hedgerow.release.answers.pairs import check_names
from hedgerow.release.answers.questions import (
    answers_of,
    counts_of,
    cuboid_of,
    noisy_table,
    sums_of,
)
from hedgerow.release.answers.ratio_question import RatioQuestion
from hedgerow.release.answers.ratios import area_numbers, pairs_of_areas
from hedgerow.release.answers.sums import Sums
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.directory.measurements import COUNT, ESTIMATE
from hedgerow.release.directory.stored import Content, verified_release
from hedgerow.release.distribution.places import Distributions, Where
from hedgerow.release.naming import named_cuboid
from hedgerow.release.records import ROWS_AT_ONCE, only_table, records_of
from hedgerow.release.shown import ShownCounts
from hedgerow.tables.counts import label_nodes
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.text import TextByName

SHOWN_ROWS = 12
ROWS = Whole("rows", 1, inf, ReleaseError)
DRAWS = Whole("draws", 1, inf, ReleaseError)
SEED = Whole("a seed", 0, inf, ReleaseError)


@dataclass(frozen=True)
class Release:
    """A release: counts that are non-negative integers and add up at every level.

    Attributes:
        content: in memory or in a directory.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"))
        >>> release = hr.release(counts, plan)
        >>> (release.level("town")["count"].sum() == release.level("county")["count"].sum())
        True
        >>> release.cuboid(place="county").shape
        (2, 7)
        >>> release.measurements("town").columns
        ['county', 'town', 'noisy_count', 'variance']
        >>> pl.concat(release.records()).group_by("county").len("count").sort("county").equals(
        ...     release.cuboid(None, place="county").cast({"count": pl.UInt32})
        ... )
        True
    """

    content: Content = field(repr=False)

    def __repr__(self) -> str:
        return f"Release({', '.join(self.plan.cuboids)}; {self.content.total:,} records released)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what `show` does of its own accord."""
        return self.show()._repr_html_()

    @property
    def plan(self) -> Plan:
        """The plan that was executed: tree, cuboids, guarantee."""
        return self.content.plan

    @property
    def columns(self) -> dict[str, list[str]]:
        """The label columns of each axis, in the order in which its levels tell them."""
        return {axis.name: list(axis.columns) for axis in self.plan.tree.axes}

    def level(
        self,
        level: str | None = None,
        *,
        depth: int | None = None,
        confidence: Confidence | None = None,
        all: bool = False,  # noqa: A002 - the word that users look for
    ) -> pl.DataFrame:
        """Return the released counts of one cuboid of the plan, with their errors.

        Args:
            level: its name as the plan shows it, such as ``"county"``, or
                ``"origin.region × destination.region"`` (an x or * will do for the ×); or
            depth: along a chain its number, 0 being everything.
            confidence: of the intervals, 95 % for each of them unless given.
            all: list every measured node, also those with a count of 0 (up to 2²⁷ of them; see
                `hedgerow.release.answers.questions`).

        Returns:
            One row a node with a positive count, in tree order: its codes under the table's own
            column names, ``count`` (records), the unbiased ``estimate`` below it and its
            ``standard_error``, and ``low`` and ``high``: with the given confidence, over all
            measured nodes and not only those listed, the true count is one of low..high (see
            `hedgerow.estimate.intervals`). The count itself may lie outside by chance; where it is
            ``contradicted``, that is no chance: it lies outside the intervals that hold for all
            cells of the cuboid at once (see `hedgerow.release.directory.cuboid_errors`), and the
            estimate is the better number. A node that is not listed has a count of 0.

        Raises:
            ReleaseError: no such cuboid, or a confidence that is a bare number.
        """
        check_confidence(confidence)
        levels = named_cuboid(self.plan, level, depth)
        return counts_of(self.content, levels, confidence, all_cells=all)

    def show(
        self,
        level: str | None = None,
        *,
        rows: int = SHOWN_ROWS,
        confidence: Confidence | None = None,
    ) -> ShownCounts:
        """Return the largest counts of a cuboid, as a notebook shows them.

        Args:
            level: its name, as in `level`; the first one below the total unless given.
            rows: at most so many counts.
            confidence: of the intervals, 95 % for each of them unless given.

        Returns:
            A table with intervals, a word on how reliable each count is (*firm*: its interval ends
            within a tenth of it; *rough*: within half of it; *mostly noise* beyond), a picture
            where matplotlib is installed, and the promise; `str` gives it as text, and ``frame``
            is the frame.

        Raises:
            ReleaseError: no such cuboid, no rows, or a confidence that is a bare number.
        """
        ROWS(rows)
        if level is None:
            finer = [levels for levels in self.plan.levels if any(levels)]
            level = self.plan.tree.name_of((finer or self.plan.levels)[0])
        every = self.level(level, confidence=confidence)
        largest = every.sort(COUNT, descending=True, maintain_order=True).head(rows)
        sure = confidence or USUAL
        levels = named_cuboid(self.plan, level, None)
        words = f"{100 * sure.coverage:g} %" + (
            " for all at once" if sure.simultaneous else " each"
        )
        return ShownCounts(self.plan, levels, largest, len(every), words)

    def plot(
        self,
        level: str | None = None,
        *,
        rows: int = SHOWN_ROWS,
        confidence: Confidence | None = None,
    ) -> Any:
        """Return the picture of the counts that `show` gives: a figure of matplotlib.

        Raises:
            ReleaseError: as `show`, or matplotlib is not installed.

        Example:
            >>> towns = {"town": ["a", "b"], "people": [900, 3000]}
            >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["town"])])
            >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"))
            >>> release = hr.release(hr.Counts.from_frame(tree, towns, count="people"), plan)
            >>> release.plot("town").savefig("towns.png")
        """
        return self.show(level, rows=rows, confidence=confidence).plot()

    def cuboid(self, confidence: Confidence | None = USUAL, /, **levels: str) -> pl.DataFrame:
        """Return the released counts by any choice of one level an axis, with their errors.

        Args:
            confidence: of the intervals, 95 % for each of them unless given; None for the counts
                alone, which is cheap whatever the size of the release.
            levels: axis = level; an axis that is not named is summed over. Of a release along a
                spine an attribute may also be given a column that is no level, such as
                ``person="hispanic"``, or several, ``person="hispanic × cenrace"``. The name of a
                level gives all columns that it tells; ``person="person.votingage"`` its own alone.

        Returns:
            One row a combination with a positive count, sorted by its codes: these, ``count``,
            ``estimate``, ``standard_error``, ``low``, ``high`` and ``contradicted``. Of a cuboid of
            the plan, and so of all of a cube, they are those of `level`; of others they are sums
            of a released table that contains them: see `hedgerow.release.answers.questions`, which
            says where intervals are wider than they need be, and what they assume where the plan
            measures survivors alone: there all five (``estimate`` to ``contradicted``) are null for
            sums of which too much may lie below counts of 0. Errors are those of ``estimate``, not
            of ``count``. Sums by columns of attributes have the exact errors of the same sums of
            estimates, whether these follow the attribute's levels or not.

        Raises:
            TableError: no such column of an attribute.
            ReleaseError: no such axis or level; no released table that contains the cuboid; or no
                errors of it, as its table was measured at survivors, or has too many noisy counts.
        """
        check_confidence(confidence)
        return cuboid_of(self.content, levels, confidence)

    def areas(
        self,
        lookup: Any,
        *,
        column: str | None = None,
        names: str | None = None,
        codes: TextByName | None = None,
        by: TextByName | None = None,
        confidence: Confidence | None = USUAL,
    ) -> pl.DataFrame:
        """Return sums over areas of your own, such as constituencies or catchments.

        Args:
            lookup: a data frame or a file: a column of codes of one axis, called as
                in the release, of whichever level, and a column of areas. Areas may overlap, and
                need not cover everything.
            column: that holds the areas, where the lookup has others.
            names: the column of their names, which is put behind the areas as ``COLUMN_name``;
                unless given, names are left out.
            codes: column of the lookup → level or column of the release whose codes it has, where
                it is called otherwise: ``{"LSOA21CD": "lsoa"}``.
            by: axis = level of the other axes, or columns of an attribute, as in `cuboid`; axes
                that are not named are summed over.
            confidence: of the intervals; None for counts alone.

        Returns:
            One row an area (and combination of ``by``), whether its count is 0 or not: the area,
            the codes of ``by``, ``count``, and of the same cells' estimates the unbiased
            ``estimate``, its exact ``standard_error``, ``low``, ``high`` and ``contradicted``, as
            `cuboid` has them (`hedgerow.release.answers.questions`).

        Raises:
            TableError: no lookup of an axis; a code that it does not have; no such level.
            ReleaseError: no released table has the cells, or their errors are unknown, as
                survivors alone were measured, or take too long.
        """
        check_confidence(confidence)
        areas = Lookup.of(self.plan.tree, lookup, column, names=names, codes=codes)
        frame = sums_of(self.content, Sums(self.plan, by or {}, areas), confidence)
        return frame if names is None else areas.with_names(frame)

    def ratio(  # noqa: PLR0913 - the parts of one question
        self,
        numerator: TextByName | str | None = None,
        denominator: TextByName | str | Any | None = None,
        *,
        areas: Any = None,
        column: str | None = None,
        codes: TextByName | None = None,
        by: TextByName | None = None,
        confidence: Confidence = USUAL,
        all: bool = False,  # noqa: A002 - as in `level`
    ) -> pl.DataFrame:
        """Return shares of a parent or of a category, ratios of areas, and rates.

        Args:
            numerator: axis = level, as `cuboid` takes them; with ``areas`` the code of one, or None
                for each.
            denominator: axis = level of cells that contain those of the numerator, {} for all
                records; with ``areas`` the code of one, or None for all of the axis. Or a data
                frame or file of public numbers: codes of the numerator, and a column of numbers
                above 0.
            areas: of your own, as `areas` takes them, with ``column`` and ``codes``.
            column: that holds the areas.
            codes: column → level or column of the release.
            by: with ``areas``, axis = level of the other axes.
            confidence: of the sets, 95 % for each of them unless given; where it is simultaneous,
                all of them hold at once, as rankings need it.
            all: list cells with a count of 0, too, of shares.

        Returns:
            One row a cell with a positive count, or an area: its codes, ``count``, ``of`` (the
            denominator), their ``ratio``, and ``low`` to ``high``, which holds the true ratio with
            the given confidence, over all cells and not only those listed
            (`hedgerow.estimate.ratios`): from the joint law of both unbiased estimates, shares cut
            to 0..1. Where the denominator may be 0, the set is not ``bounded``, and ``high`` may be
            null; where both may be 0, there is no ratio. It is ``contradicted`` where the released
            ratio lies outside the sets that hold for all cells at once.

        Raises:
            TableError: no such column, area or code; or no public number for a row.
            ReleaseError: no such level, the denominator does not contain the numerator, or errors
                are unknown.

        Example:
            >>> import polars as pl
            >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
            >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
            >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
            >>> counts = hr.Counts.from_frame(tree, people, count="people")
            >>> budget = hr.EpsilonDelta("1", "1e-8")
            >>> release = hr.release(counts, hr.make_plan(tree, budget=budget))
            >>> shares = release.ratio({"place": "town"}, {"place": "county"})
            >>> shares.columns
            ['county', 'town', 'count', 'of', 'ratio', 'low', 'high', 'bounded', 'contradicted']
        """
        sure = sure_of(confidence)
        if areas is None:
            if not isinstance(numerator, Mapping):
                raise ReleaseError(
                    'name the levels of the numerator, ratio({"place": "town"}, {"place": '
                    '"county"}), or give areas'
                )
            question = RatioQuestion(numerator, denominator)
        else:
            lookup = Lookup.of(self.plan.tree, areas, column, codes=codes)
            question = RatioQuestion(by or {}, denominator, lookup, numerator)
        return question.answered(self.content, sure, all_cells=all)

    def difference(
        self,
        first: str,
        second: str,
        areas: Any,
        *,
        column: str | None = None,
        codes: TextByName | None = None,
        by: TextByName | None = None,
        confidence: Confidence = USUAL,
    ) -> pl.DataFrame:
        """Return by how much the count of one area is above that of another.

        Args:
            first: the code of an area.
            second: of another.
            areas: of your own, as `areas` takes them.
            column: that holds the areas.
            codes: column → level or column of the release.
            by: axis = level of the other axes.
            confidence: of the intervals.

        Returns:
            One row a combination of ``by``: the first area, its codes, and of the difference
            ``count``, ``estimate``, ``standard_error``, ``low``, ``high`` and ``contradicted``, as
            `areas` has them. Where the interval holds 0, no difference can be told.

        Raises:
            TableError: no such column, area or code.
            ReleaseError: errors are unknown, or take too long.

        Example:
            >>> import polars as pl
            >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
            >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
            >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
            >>> counts = hr.Counts.from_frame(tree, people, count="people")
            >>> budget = hr.EpsilonDelta("1", "1e-8")
            >>> release = hr.release(counts, hr.make_plan(tree, budget=budget))
            >>> sides = {"town": ["a1", "a2", "b1"], "side": ["north", "south", "north"]}
            >>> bool(release.difference("south", "north", sides)["low"][0] > 0)
            True
        """
        sure = sure_of(confidence)
        lookup = Lookup.of(self.plan.tree, areas, column, codes=codes)
        pairs = area_numbers(lookup, first, second)
        return pairs_of_areas(self.content, by or {}, lookup, pairs).differences(sure)

    def quantiles(
        self,
        axis: str,
        ranks: Sequence[float],
        *,
        confidence: Confidence = USUAL,
        **where: Unpack[Where],
    ) -> pl.DataFrame:
        """Return quantiles of a numeric axis by place, such as median incomes of tracts.

        Args:
            axis: the numeric axis.
            ranks: in (0, 1), such as [0.5]; 0.1 means one tenth.
            confidence: of each interval; where it is simultaneous, all of the frame hold at once,
                by the union bound.
            where: the places, all records together unless given: ``place="tract"``, a level of
                another axis, or ``"tract × sex"``; ``by={"place": "tract"}``, also of columns of an
                attribute, as `cuboid` takes them; and ``areas=`` of your own, as `areas` takes
                them, with ``column``, ``names`` and ``codes``.

        Returns:
            One row a place and rank, of empty places, too: the place's codes, ``quantile`` (the
            rank), ``value`` (where its released counts, spread evenly within bins, reach it; null
            where the released count is 0), ``low`` and ``high``: with the given confidence, the
            true quantile, the ⌈qN⌉-th smallest of a place's N records, is in low … high; ``count``
            (released records), and ``whole_axis``, where the interval tells nothing. Intervals are
            made of whole bins, the finest of which errors are known: of all x where the unbiased
            estimate of (1 - q) N(≤ x) - q N(> x) is within its own half width of 0, by the joint
            covariance; and of what lies between, where these are not one interval.

        Raises:
            TableError: no such column, area or code.
            ReleaseError: no such axis, level or rank; no released table has the bins of these
                places, or their errors are unknown, or take too long.

        Example:
            >>> towns = {"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]}
            >>> place = hr.Axis.from_frame("place", towns, levels=["county", "town"])
            >>> ranges = hr.Ranges.equal_width("income", 0, 800, 8)
            >>> tree = hr.Tree([place, hr.numeric_axis(ranges, [2, 4])])
            >>> bins = tree.axes[1].labels[-1]  # the codes of bins, in order
            >>> people = {"town": ["a1", "b1"] * 300, "income_bin": [bins[1], bins[5]] * 300}
            >>> plan = hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Cube())
            >>> release = hr.release(hr.Counts.from_frame(tree, people), plan)
            >>> release.quantiles("income", [0.5], place="county").columns
            ['county', 'quantile', 'value', 'low', 'high', 'count', 'whole_axis']
        """
        sure = sure_of(confidence)
        return Distributions.of(self.content, axis, where).quantiles(ranks, sure)

    def cdf(
        self,
        axis: str,
        *,
        confidence: Confidence = USUAL,
        **where: Unpack[Where],
    ) -> pl.DataFrame:
        """Return the cumulative distribution along a numeric axis by place.

        Args:
            axis: the numeric axis.
            confidence: of each interval; where it is simultaneous, all of the frame hold at once.
            where: the places, as in `quantiles`.

        Returns:
            One row a place and bin: the place's codes, ``upper`` (the upper edge of the bin),
            ``count`` (released records below it), ``cdf`` (their part of all records of the place;
            0 where there are none), ``low`` and ``high``: the interval of the true count.

        Raises:
            TableError, ReleaseError: as `quantiles`.

        Example:
            >>> towns = {"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]}
            >>> place = hr.Axis.from_frame("place", towns, levels=["county", "town"])
            >>> ranges = hr.Ranges.equal_width("income", 0, 800, 8)
            >>> tree = hr.Tree([place, hr.numeric_axis(ranges, [2, 4])])
            >>> bins = tree.axes[1].labels[-1]  # the codes of bins, in order
            >>> people = {"town": ["a1", "b1"] * 300, "income_bin": [bins[1], bins[5]] * 300}
            >>> plan = hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Cube())
            >>> release = hr.release(hr.Counts.from_frame(tree, people), plan)
            >>> release.cdf("income", place="town").shape
            (24, 7)
        """
        sure = sure_of(confidence)
        return Distributions.of(self.content, axis, where).cdf(sure)

    def count_between(
        self,
        axis: str,
        a: float,
        b: float,
        *,
        confidence: Confidence = USUAL,
        **where: Unpack[Where],
    ) -> pl.DataFrame:
        """Return how many records of each place have ``a <= value < b`` along a numeric axis.

        Args:
            axis: the numeric axis.
            a: the lower end; -inf for the lower bound.
            b: the upper end, above a; inf for the upper bound, which is inside.
            confidence: of each interval; where it is simultaneous, all of the frame hold at once.
            where: the places, as in `quantiles`.

        Returns:
            One row a place: its codes, ``count`` (released records; within a bin in proportion),
            ``low`` and ``high``: the interval of the true count, however values lie within bins.

        Raises:
            TableError, ReleaseError: as `quantiles`, or a is not below b.

        Example:
            >>> towns = {"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]}
            >>> place = hr.Axis.from_frame("place", towns, levels=["county", "town"])
            >>> ranges = hr.Ranges.equal_width("income", 0, 800, 8)
            >>> tree = hr.Tree([place, hr.numeric_axis(ranges, [2, 4])])
            >>> bins = tree.axes[1].labels[-1]  # the codes of bins, in order
            >>> people = {"town": ["a1", "b1"] * 300, "income_bin": [bins[1], bins[5]] * 300}
            >>> plan = hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Cube())
            >>> release = hr.release(hr.Counts.from_frame(tree, people), plan)
            >>> release.count_between("income", 0, 350, place="town").columns
            ['county', 'town', 'count', 'low', 'high']
        """
        sure = sure_of(confidence)
        return Distributions.of(self.content, axis, where).count_between(a, b, sure)

    def draws(self, level: str, n: int, *, seed: int = 0) -> pl.DataFrame:
        """Return joint draws of the errors of a cuboid's estimates, for those who model counts.

        Errors of a release have a known law, whatever the true counts, so that anyone may draw
        them: their randomness is made from the seed and the released counts, never from the key of
        the release. Draws of two levels are not joint. A model that is fitted to ``estimate -
        error_1``, ``estimate - error_2``, … and to the estimates tells what the noise of the
        release adds to its own errors: estimates are unbiased, released counts are not quite.

        Args:
            level: a cuboid of the plan by its name, of which counts were measured.
            n: how many draws.
            seed: a whole number; of one cuboid the same seed gives the same draws.

        Returns:
            One row a measured cell, listed or not, as ``level(all=True)`` has them: its codes,
            ``count``, ``estimate``, and ``error_1`` to ``error_n``, records. Noise of the cells
            themselves is drawn exactly, that of the counts below them by a normal law of the same
            variance: of few counts under narrow or Laplace noise tails are lighter than they
            should be (`hedgerow.release.answers.joint_errors`).

        Raises:
            ReleaseError: no such cuboid, or nothing tells of its cells together.

        Example:
            >>> import polars as pl
            >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
            >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
            >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
            >>> counts = hr.Counts.from_frame(tree, people, count="people")
            >>> budget = hr.EpsilonDelta("1", "1e-8")
            >>> release = hr.release(counts, hr.make_plan(tree, budget=budget))
            >>> release.draws("town", 2).columns
            ['county', 'town', 'count', 'estimate', 'error_1', 'error_2']
        """
        DRAWS(n)
        SEED(seed)
        levels = named_cuboid(self.plan, level, None)
        cells, joint, _ = cells_with_errors(self.content, levels)
        if len(cells) * n > MOST_BOOTSTRAPPED:
            raise ReleaseError(
                f"{len(cells):,} cells with {n:,} draws fill the memory; ask for fewer draws, or "
                "for a coarser level"
            )
        digest = hashlib.sha256(cells.counts.tobytes()).hexdigest()  # of what is released
        words = f"draws/{self.plan.hash}/{levels}/{digest}/{seed}"
        errors = np.zeros((n, len(cells))) if joint is None else joint(n, words)
        columns = {COUNT: cells.counts, ESTIMATE: cells.estimate} | {
            f"error_{k}": each for k, each in enumerate(errors, 1)
        }
        check_names(self.plan.tree.columns_of(levels), columns)
        return label_nodes(self.plan.tree, levels, cells.codes, **columns)

    def covariance(self, level: str) -> tuple[pl.DataFrame, Factors]:
        """Return the covariance of a cuboid's estimates, for those who model counts.

        The error of a linear function of the estimates, such as the coefficients of a regression,
        follows from it; the noise of a release is not independent from cell to cell, so that usual
        standard errors are wrong.

        Args:
            level: a cuboid of the plan by its name.

        Returns:
            One row a measured cell, listed or not: its codes, ``count`` and ``estimate``; and in
            the same order the covariance (records²) as sparse factors: ``factors.times(x)`` is C x,
            ``factors.dense()`` is C.

        Raises:
            ReleaseError: no such cuboid; or its covariance has no sparse factors, as cuboids are
                named whose axes nest in several ways, or noise is narrow: `draws` tells its errors.

        Example:
            >>> import numpy as np
            >>> import polars as pl
            >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
            >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
            >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
            >>> counts = hr.Counts.from_frame(tree, people, count="people")
            >>> budget = hr.EpsilonDelta("1", "1e-8")
            >>> plan = hr.make_plan(tree, budget=budget, measure=hr.All())
            >>> cells, factors = hr.release(counts, plan).covariance("town")
            >>> variance_of_total = factors.times(np.ones(3)).sum()
            >>> bool(np.isclose(variance_of_total, factors.dense().sum()))
            True
        """
        levels = named_cuboid(self.plan, level, None)
        plan = self.plan
        answers = answers_of(plan)
        cells = answers.cells(self.content.stored, [levels]).get(levels)
        factors = None if cells is None else answers.factors(self.content, levels, cells)
        if cells is None or factors is None:
            raise ReleaseError(
                f"the covariance of {plan.tree.name_of(levels)} has no sparse factors here; ask "
                f"for draws of its errors: release.draws({plan.tree.name_of(levels)!r}, 1000)"
            )
        columns = {COUNT: cells.counts, ESTIMATE: cells.estimate}
        return label_nodes(plan.tree, levels, cells.codes, **columns), factors

    def records(
        self, level: str | None = None, *, depth: int | None = None, rows: int = ROWS_AT_ONCE
    ) -> Iterator[pl.DataFrame]:
        """Yield the released table as records: one row each, some at a time, at no privacy cost.

        Nobody stands behind a row: it is a released count written out. Memory is bounded by
        ``rows``, not by the release.

        Args:
            level: the cuboid, as in `level`; the released table unless given; or
            depth: along a chain its number.
            rows: in a frame at most.

        Yields:
            Frames with the cuboid's code columns, in tree order; at least one, which may be empty.
            Each combination of codes has as many rows as its count, so that sums of records are
            those of the release.

        Raises:
            ReleaseError: no such cuboid; several released tables and none named; or counts that
                are none, or do not sum to the release's total, as the files are damaged.
        """
        if level is None and depth is None:
            levels = only_table(self.plan)
        else:
            levels = named_cuboid(self.plan, level, depth)
        return records_of(self.content, levels, rows)

    def measurements(self, level: str | None = None, *, depth: int | None = None) -> pl.DataFrame:
        """Return the noisy counts of a measured cuboid: unbiased, before anything was estimated.

        Along a chain these are the children of the survivors above it. Of a cube or named cuboids
        they are all cells, along a spine but for those that public facts rule out; or, of survivors
        alone, those below positive margins (`hedgerow.estimate.cube.survivors`).

        Args:
            level: its name, as in `level`; or
            depth: along a chain its number.

        Returns:
            One row a measured cell: its codes under the table's own column names, ``noisy_count``
            (records, often below 0) and the ``variance`` of its noise (records²); along a chain in
            tree order, else row by row in the order of ``domain/``.

        Raises:
            ReleaseError: no such cuboid, or it was not measured, or running sums of it were.
        """
        return noisy_table(self.content, named_cuboid(self.plan, level, depth))

    def write(self, directory: str | Path) -> None:
        """Write a release directory; it appears whole or not at all.

        Raises:
            ReleaseError: the directory exists.
            MachineError: the disk is full or not writable.
        """
        self.content.write(Path(directory))


def sure_of(confidence: Confidence | None) -> Confidence:
    """Return a confidence, 95 % unless given; see `check_confidence`."""
    check_confidence(confidence)
    return confidence or USUAL


def check_confidence(confidence: object) -> None:
    """Raise unless it is a confidence: a level of the table, or a bare number, is none.

    Raises:
        ReleaseError: it is neither a confidence nor None.
    """
    if confidence is not None and not isinstance(confidence, Confidence):
        raise ReleaseError(
            f"a confidence is Confidence(0.99), got {kind_of(confidence)}; levels are named by "
            f'their axes: cuboid(origin="region")'
        )


def read_release(directory: str | Path) -> Release:
    """Return the release in a directory, whose plan is verified on the way (see `check`).

    Raises:
        ReleaseError: there is none, or its plan is not what its manifest says.
        MachineError: it may not be read.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"))
        >>> hr.release(counts, plan).write("out")
        >>> hr.read_release("out").plan.hash == plan.hash
        True
    """
    return Release(verified_release(Path(directory)))
