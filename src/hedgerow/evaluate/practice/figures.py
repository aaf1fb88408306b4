"""The figures of one table under several methods, a column a method. Confidential as the table is.

Errors are means over the cells above 0: where most cells are empty, and offices leave them so, a
mean over all of them says how many are empty.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from hedgerow.arrays import Bool, Levels
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import fineness
from hedgerow.evaluate.method import (
    Counted,
    CuboidCounts,
    Method,
    Released,
    check_numbered,
    of_nodes,
)
from hedgerow.evaluate.practice.attack import SUMS, Targets, is_withheld
from hedgerow.evaluate.practice.practice import refinements
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts
from hedgerow.text import Rows, TextByName

PUBLISHED = "Mean error of the numbers published"
ADDED = "Mean error of sums of the finest published cells"
USE = "Of what is published"
FOUND = "Counts of 1 to 9 that an attacker's guess hits"
MOST_SHOWN = 8

Figure = tuple[str, str, float]
"""A group of figures, the name in it, and the value: records, or a share in the last two groups."""


@frozen(eq=False)
class OneRelease:
    """A release that was made, as a method that makes it whatever the bits."""

    release: Release
    name: str = "Hedgerow"

    @property
    def plan(self) -> Plan:
        """Its plan."""
        return self.release.plan

    def facts(self) -> TextByName:
        """Return nothing: the release says it."""
        return {}

    def check(self, counts: Counts) -> None:
        """Accept the table, which is its own."""

    def released(self, counts: Counts, _bits: Bits) -> Released:
        """Return the released counts."""
        return of_nodes(counts.tree, self.release.content.nodes)


@frozen(eq=False)
class Table:
    """A table, and what of it is published and looked at.

    Attributes:
        counts: the table.
        published: of the published cuboids the true counts.
        sums: of other cuboids and these, each a level of one axis, the true counts; the published
            table that they are sums of.
        targets: what an attacker wants to know.
    """

    counts: Counts
    published: Counted
    sums: Mapping[Levels, tuple[CuboidCounts, Levels]]
    targets: Targets

    @classmethod
    def of(cls, counts: Counts, plan: Plan) -> "Table":
        """Return the table with what a plan publishes."""
        tree = counts.tree
        published = {k: CuboidCounts.true(counts, k) for k in sorted(plan.levels, key=fineness)}
        named = ({axis.name: level} for axis in tree.axes for level in axis.levels)
        tables = {k: plan.table_of(k) for k in map(tree.cuboid_of, ({}, *named))}
        sums = {
            k: (CuboidCounts.true(counts, k), table)
            for k, table in tables.items()
            if table is not None and tree.cells(table) > tree.cells(k)
        }
        return cls(counts, published, sums, Targets.of(counts, published))

    def figures(self, method: Method, bits: Bits) -> Iterator[Figure]:
        """Yield the figures of one release of the table by a method."""
        tree = self.counts.tree
        released = dict(method.released(self.counts, bits))
        for levels in _some(self.published):
            given = released[levels]
            true = self.published[levels]
            has_number = ~is_withheld(given, true.numbers)
            yield PUBLISHED, tree.name_of(levels), _mean_error(given, true, has_number)
        for levels in _some(self.sums):
            true, table = self.sums[levels]
            given = released[table].summed(tree, levels, table)
            yield ADDED, tree.name_of(levels), _mean_error(given, true)
        yield USE, "totals that do not add up", self._apart(released)
        yield USE, "cells without a number", self._blank(released)
        yield USE, "shown above 0, truly 0", self._false(released)
        yield FOUND, "saying the commonest", self.targets.commonest()
        yield FOUND, "from the published number", self.targets.published(released)
        yield FOUND, "from tables' differences", self.targets.differenced(released)
        yield FOUND, f"from {2 * SUMS} sums to order", self.targets.to_order(method, released, bits)

    def _apart(self, released: Counted) -> float:
        """Return the share of totals above 0 that are not published as their cells' sum.

        Of those that have a number, as all their cells have.
        """
        tree = self.counts.tree
        apart = []
        for coarse, fine in refinements([*self.published]):
            number = self.published[coarse].numbers
            whole = released[coarse]
            cells = released[fine]
            blanks = CuboidCounts(cells.withheld, np.ones_like(cells.withheld))
            parts, missing = (
                each.summed(tree, coarse, fine).at(number) for each in (cells, blanks)
            )
            has_numbers = ~is_withheld(whole, number) & (missing == 0)
            apart.append((whole.at(number) != parts)[has_numbers])
        return _share(apart)

    def _blank(self, released: Counted) -> float:
        """Return the share of the cells above 0 that have no number."""
        return _share(
            [is_withheld(released[k], true.numbers) for k, true in self.published.items()]
        )

    def _false(self, released: Counted) -> float:
        """Return the share of the cells with a number above 0 that are truly 0."""
        shown = [released[k].numbers[released[k].values > 0] for k in self.published]
        truths = self.published.values()
        return _share([true.at(cells) == 0 for cells, true in zip(shown, truths, strict=True)])


def _some(cuboids: Mapping[Levels, object]) -> list[Levels]:
    """Return all cuboids, or of many an even choice from the first to the last."""
    every = [*cuboids]
    chosen = np.unique(np.linspace(0, len(every) - 1, min(len(every), MOST_SHOWN)).round())
    return [every[int(i)] for i in chosen]


def _mean_error(given: CuboidCounts, true: CuboidCounts, some: Bool | slice = slice(None)) -> float:
    """Return the mean absolute error of cells above 0, or of some of them; NaN of none."""
    errors = np.abs(given.at(true.numbers) - true.values)[some]
    return float(errors.mean()) if len(errors) else np.nan


def _share(parts: Sequence[Bool]) -> float:
    """Return the share of the cells of which something is true; NaN of none."""
    cells = np.concatenate([np.empty(0, dtype=np.bool_), *parts])
    return float(cells.mean()) if len(cells) else np.nan


def beside(
    counts: Counts,
    methods: Sequence[Method],
    plan: Plan,
    bits: Callable[[int], Bits],
    runs: int = 1,
) -> pl.DataFrame:
    """Return the figures of a table under several methods, means over their releases.

    Args:
        counts: the table.
        methods: the columns.
        plan: which cuboids are published.
        bits: of each run 0..runs-1, the same under all methods.
        runs: releases of each method.

    Returns:
        One row a figure: ``group``, ``figure``, ``is_share``, and a column a method: a mean
        absolute error (records), or a share; null where the table has no such cells.
    """
    check_numbered(counts.tree)
    for method in methods:
        method.check(counts)
    table = Table.of(counts, plan)
    columns = {}
    names = []
    for method in methods:
        figures = [[*table.figures(method, bits(run))] for run in range(runs)]
        names = [(group, figure) for group, figure, _ in figures[0]]
        columns[method.name] = np.mean([[row[2] for row in each] for each in figures], 0).tolist()
    frame = pl.DataFrame(names, schema=["group", "figure"], orient="row").with_columns(
        is_share=pl.col("group").is_in([USE, FOUND])
    )
    return frame.with_columns(pl.Series(k, v).fill_nan(None) for k, v in columns.items())


def beside_rows(frame: pl.DataFrame, group: str) -> Rows:
    """Return a group of `beside` in words: figures down, methods across."""
    names = frame.columns[3:]
    rows = frame.filter(pl.col("group") == group).to_dicts()
    return [
        ("", "", *names),
        *(
            ("", row["figure"], *(in_words(row[k], is_share=row["is_share"]) for k in names))
            for row in rows
        ),
    ]


def in_words(value: float | None, *, is_share: bool) -> str:
    """Return a figure as people write it."""
    if value is None:
        return "-"
    return f"{value:.1%}" if is_share else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
