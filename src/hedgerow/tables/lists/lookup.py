"""Areas of a user's own: which nodes of an axis belong to which, as a public lookup says.

Constituencies, health areas, catchments: areas that are no level, and may overlap. A lookup is a
table with a column of an axis's codes (of any of its levels) and a column of areas, one row a pair,
as publishers ship them: with columns of names, with areas elsewhere, and with more rows than pairs.

*What is refused.* An area of which the axis has some codes and not all; and parts of one code (rows
of a finer list, shares) in several areas, as nothing is known of parts. Where codes of a level all
have one length, longer codes are parts of those that they begin with. Areas of which the axis has
no code at all are left out, and counted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Array, Int64, int64, run_sums
from hedgerow.errors import TableError, shorten
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.areas import insert_names, names_of
from hedgerow.tables.lists.lookup_columns import LookupColumns
from hedgerow.tables.sources.source import describe_source, read_areas
from hedgerow.tables.tree import Tree
from hedgerow.text import TextByName, visible

ROLE = "the lookup of areas"
NODE, FINER = "\0node", "\0finer"
"""Columns beside those of the lookup, which cannot be called that."""


@dataclass(frozen=True, eq=False, repr=False)
class Lookup:
    """Which nodes of a level belong to which areas.

    Attributes:
        axis: the number of the axis.
        level: whose nodes are listed.
        areas: their codes, sorted, under the name of their column.
        start: int64 (areas + 1): where each one's nodes begin.
        nodes: int64 (pairs): the nodes of each area, ascending.
        names: of the areas, missing where one has none; None where the lookup has no names.
        outside: how many nodes of the level are in no area.
        elsewhere: how many areas were left out, as the axis has none of their codes.

    Example:
        >>> place = {"county": ["A", "A", "B"], "town": ["A1", "A2", "B1"]}
        >>> tree = hr.Tree([hr.Axis.from_frame("place", place, levels=["county", "town"])])
        >>> lookup = Lookup.of(tree, {"town": ["A2", "B1", "B1"], "clinic": ["p", "p", "q"]})
        >>> lookup.areas.to_list(), lookup.members(0).tolist()
        (['p', 'q'], [1, 2])
    """

    axis: int
    level: int
    areas: pl.Series
    start: Int64
    nodes: Int64
    names: pl.Series | None = None
    outside: int = 0
    elsewhere: int = 0

    def __len__(self) -> int:
        return len(self.areas)

    @classmethod
    def of(
        cls,
        tree: Tree,
        source: Any,
        column: str | None = None,
        *,
        names: str | None = None,
        codes: TextByName | None = None,
    ) -> "Lookup":
        """Read a lookup.

        Args:
            tree: whose axes.
            source: a file, a `hedgerow.tables.read.Query`, or a data frame.
            column: that holds the areas; where it is not given, the only one that is left.
            names: the column of their names; where it is not given, the one called like ``column``
                with another ending, if there is one.
            codes: column of the lookup → column or level of the release whose codes it has, for
                columns that are called otherwise.

        Raises:
            TableError: no column of an axis, or of several; no column of areas, or several; a code
                that the axis does not have; an area with two names; a code that is split between
                areas; no row at all.
        """
        subject = describe_source(source, ROLE)

        def columns_of(headers: Sequence[str]) -> LookupColumns:
            return LookupColumns.of(tree, headers, column, names, codes or {}, subject)

        def without_codes(headers: Sequence[str]) -> list[str]:
            columns = columns_of(headers)
            return [header for header in headers if header not in {*columns.codes, columns.area}]

        read = read_areas(source, None, numbers=without_codes, role=ROLE)
        layout = columns_of(read.columns)
        number = layout.axis
        level = layout.level
        own = list(layout.codes)
        column = layout.area
        names = layout.names
        every = read.drop_nulls(column).unique()
        axis = tree.axes[number]
        every = _collapsed(every, own, axis, level)
        keys = axis.keys(level)
        domain = keys.rename(dict(zip(keys.columns, own, strict=True))).with_row_index(NODE)
        # areas that the axis has; of none may it have some of the codes alone
        placed = every.join(domain, on=own, how="left")
        if placed.is_empty():
            raise TableError(f"{subject} has no row with an area")
        inside = placed.filter(pl.col(NODE).is_not_null())
        unknown = placed.filter(pl.col(NODE).is_null())
        mixed = unknown if inside.is_empty() else unknown.join(inside, on=column, how="semi")
        if len(mixed):
            first = mixed.sort(own)
            shown = " × ".join(visible(str(code)) for code in first.select(own).row(0))
            raise TableError(
                f"{subject}: {len(mixed):,} of its {len(placed):,} rows have codes that axis "
                f"{axis.name!r} does not have at level {axis.levels[level - 1]}, such as "
                f"{shorten(shown)} (area {shorten(visible(str(first[column][0])))}); correct "
                f"them, or leave those rows out"
            )
        _check_split(inside, own, column, subject)
        pairs = inside.select(column, NODE).unique().sort(column, NODE)
        areas = pairs[column].unique(maintain_order=True)
        begin = int64(pairs[column].search_sorted(areas).to_numpy())
        nodes = int64(pairs[NODE].to_numpy())
        called = None if names is None else names_of(inside.select(column, names), areas, subject)
        outside = axis.size(level) - pairs[NODE].n_unique()
        elsewhere = every[column].n_unique() - len(areas)
        start = np.append(begin, len(nodes))
        return cls(number, level, areas, start, nodes, called, outside, elsewhere)

    def rows(self, tree: Tree) -> dict[str, list[str]]:
        """Return the pairs of codes and areas by column, as `of` reads them, without names."""
        codes = tree.axes[self.axis].keys(self.level)[self.nodes]
        areas = self.areas.gather(np.repeat(np.arange(len(self)), np.diff(self.start)))
        return codes.with_columns(areas).to_dict(as_series=False)

    def with_names(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table with the names of areas behind their codes: ``COLUMN_name``.

        Raises:
            TableError: it has a column called like that.
        """
        return insert_names(frame, self.areas.name, self.areas, self.names)

    def notes(self, tree: Tree) -> list[str]:
        """Return what the areas leave out, in sentences for people; all of it is public."""
        axis = tree.axes[self.axis]
        said = []
        if self.outside:
            said.append(
                f"{self.outside:,} of {axis.size(self.level):,} codes of "
                f"{axis.levels[self.level - 1]} are in no area, and their records in no sum."
            )
        if self.elsewhere:
            said.append(
                f"{self.elsewhere:,} areas of the lookup are left out: the release has none of "
                f"their codes."
            )
        return said

    def members(self, area: int) -> Int64:
        """Return the nodes of an area: int64 (its nodes), ascending."""
        return self.nodes[self.start[area] : self.start[area + 1]]

    def sums(self, table: Array) -> Array:
        """Return the sums of a table's rows by area: (areas, …) of (nodes of the level, …)."""
        return run_sums(table[self.nodes], self.start)

    def partitions(self, nodes: int) -> list[Int64]:
        """Return areas in groups that do not overlap, each as the area of every node.

        Args:
            nodes: how many the level has.

        Returns:
            For each group int64 (nodes): the area of each node, -1 for none.
        """
        groups: list[Int64] = []
        taken = np.zeros((nodes, 1), dtype=np.uint64)  # of each node a bit a group that has it
        for area in range(len(self)):
            members = self.members(area)
            words = np.bitwise_or.reduce(taken[members], axis=0)
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            free = int(np.argmin(bits)) if not bits.all() else len(bits)
            if free == len(bits):
                taken = np.hstack([taken, np.zeros_like(taken)])
            if free == len(groups):
                groups.append(np.full(nodes, -1, dtype=np.int64))
            groups[free][members] = area
            taken[members, free // WORD] |= np.uint64(1 << free % WORD)
        return groups


WORD = 64
"""Bits of a word."""
_SHARE = re.compile(
    r"(?:^|[^a-z])(?:weights?|shares?|proportions?|percent(?:age)?|fractions?|ratios?|a?fact)"
    r"(?:$|[^a-z])",
    re.IGNORECASE,
)
"""What headers say of columns with shares of a code."""


def _collapsed(every: pl.DataFrame, codes: Sequence[str], axis: Axis, level: int) -> pl.DataFrame:
    """Return a finer lookup at a level whose codes all have one length: its codes begin with them.

    The codes as they were stand in a column of their own, so that split ones are found.
    """
    labels = axis.labels[level - 1]
    lengths = labels.str.len_chars()
    if len(codes) > 1 or axis.product is not None or lengths.n_unique() > 1:
        return every
    code = pl.col(codes[0])
    length = int(lengths[0])
    begins = code.str.head(length).is_in(labels.implode())
    finer = begins & (code.str.len_chars() > length) & ~code.is_in(labels.implode())
    collapsed = pl.when(finer).then(code.str.head(length)).otherwise(code)
    return every.with_columns(code.alias(FINER), collapsed.alias(codes[0]))


def _check_split(inside: pl.DataFrame, codes: Sequence[str], column: str, subject: str) -> None:
    """Raise if a lookup has parts of codes, or shares of them, and puts one into several areas."""
    pairs = inside.select(*codes, column, NODE).unique()
    several = pairs.filter(pairs[NODE].is_duplicated()).sort(*codes, column)
    others = [name for name in inside.columns if name not in {*codes, column, NODE, FINER}]
    shares = [name for name in others if _SHARE.search(name)]
    parts = FINER in inside.columns and (inside[FINER] != inside[codes[0]]).any()
    if several.is_empty() or not (parts or shares or len(pairs) < len(inside)):
        return
    code = shorten(" × ".join(visible(str(code)) for code in several.select(codes).row(0)))
    areas = several.filter(several[NODE] == several[NODE][0])[column]
    into = shorten(" and ".join(visible(str(area)) for area in areas))
    why = f"has shares of codes ({shares[0]!r})" if shares else "has several rows for one code"
    differ = f" without {shorten(', '.join(others), 100)}" if others else ""
    raise TableError(
        f"{subject} {why}, and {code} is in {into}: the release knows nothing of its parts, and a "
        f"sum takes whole codes; give each code the area that fits best, or, if it belongs to each "
        f"area as a whole, give one row for each code and area{differ}"
    )
