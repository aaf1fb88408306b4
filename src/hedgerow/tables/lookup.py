"""Areas of a user's own: which nodes of an axis belong to which, as a public lookup says.

Constituencies, health areas, catchments: areas that are no level, and may overlap. A lookup is a
table with a column of an axis's codes (of any of its levels) and a column of areas, one row a pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Int64
from hedgerow.errors import TableError, did_you_mean, of_public_table, shorten
from hedgerow.tables.axis import Axis
from hedgerow.tables.database import open_database
from hedgerow.tables.sources import describe_source, open_source, read_areas
from hedgerow.tables.tree import TAKEN, Tree
from hedgerow.text import visible

ROLE = "the lookup of areas"
NODE = "\0node"
"""A column beside those of codes, which cannot be called that."""


@dataclass(frozen=True, eq=False, repr=False)
class Lookup:
    """Which nodes of a level belong to which areas.

    Attributes:
        axis: the number of the axis.
        level: whose nodes are listed.
        areas: their codes, sorted, under the name of their column.
        start: int64 (areas + 1): where each one's nodes begin.
        nodes: int64 (pairs): the nodes of each area, ascending.

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

    def __len__(self) -> int:
        return len(self.areas)

    @classmethod
    def of(cls, tree: Tree, source: Any, column: str | None = None) -> "Lookup":
        """Read a lookup.

        Args:
            tree: whose axes.
            source: a CSV or Parquet file, a `hedgerow.tables.read.Query`, or a data frame.
            column: that holds the areas; where it is not given, the only one that is no level's.

        Raises:
            TableError: no column of an axis, or of several; no column of areas, or several; a code
                that the axis does not have; no row at all.
        """
        subject = describe_source(source, ROLE)
        with of_public_table(), open_database() as db, open_source(db, source, subject) as opened:
            names = list(opened.names)
        number, level, codes = _level_in(tree, names, subject)
        column = _area_column(tree, names, codes, column, subject)
        rows = read_areas(source, [*codes, column], role=ROLE).drop_nulls(column).unique()
        axis = tree.axes[number]
        keys = axis.keys(level)
        domain = keys.rename(dict(zip(keys.columns, codes, strict=True))).with_row_index(NODE)
        found = rows.join(domain, on=codes, how="left")
        _check_codes(found, codes, axis, level, subject)
        found = found.sort(column, NODE)
        areas = found[column].unique(maintain_order=True)
        begin = found[column].search_sorted(areas).to_numpy().astype(np.int64)
        nodes = found[NODE].to_numpy().astype(np.int64)
        return cls(number, level, areas, np.append(begin, len(nodes)), nodes)

    def members(self, area: int) -> Int64:
        """Return the nodes of an area: int64 (its nodes), ascending."""
        return self.nodes[self.start[area] : self.start[area + 1]]

    def sums(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of a table's rows by area: (areas, …) of (nodes of the level, …)."""
        return np.add.reduceat(table[self.nodes], self.start[:-1], axis=0)

    def partitions(self, nodes: int) -> list[Int64]:
        """Return areas in groups that do not overlap, each as the area of every node.

        Args:
            nodes: how many the level has.

        Returns:
            For each group int64 (nodes): the area of each node, -1 for none.
        """
        found: list[Int64] = []
        for area in range(len(self)):
            members = self.members(area)
            free = next((each for each in found if (each[members] < 0).all()), None)
            if free is None:
                free = np.full(nodes, -1, dtype=np.int64)
                found.append(free)
            free[members] = area
        return found


def _level_in(tree: Tree, names: Sequence[str], subject: str) -> tuple[int, int, list[str]]:
    """Return the axis, its deepest level that a table has the codes of, and their columns."""
    found = [
        (number, *deepest)
        for number, axis in enumerate(tree.axes)
        if (deepest := _deepest_in(axis, names)) is not None
    ]
    if len(found) != 1:
        every = [column for axis in tree.axes for column in axis.columns]
        which = " and ".join(repr(tree.axes[number].name) for number, *_ in found)
        fault = f"has codes of the axes {which}" if found else "has no column of an axis's codes"
        raise TableError(
            f"{subject} {fault}; it needs those of one axis, in a column that is called as in the "
            f"release ({shorten(', '.join(every), 200)}); its columns are "
            f"{shorten(', '.join(names), 200)}"
        )
    return found[0]


def _deepest_in(axis: Axis, names: Sequence[str]) -> tuple[int, list[str]] | None:
    for level in range(axis.depth, 0, -1):
        codes = list(axis.keys(level).columns)
        if set(codes) <= set(names):
            return level, codes
        if axis.product is None and axis.levels[level - 1] in names:
            return level, [axis.levels[level - 1]]
    return None


def _area_column(
    tree: Tree, names: Sequence[str], codes: Sequence[str], given: str | None, subject: str
) -> str:
    known = {*codes, *(name for axis in tree.axes for name in (*axis.columns, *axis.levels))}
    others = [name for name in names if name not in known]
    if given is not None and given not in others:
        raise TableError(
            f"{subject} has no column of areas {shorten(given)!r}; beside levels it has "
            f"{shorten(', '.join(others), 200) or 'none'}{did_you_mean(given, others)}"
        )
    if given is None and len(others) != 1:
        raise TableError(
            f"{subject} has {len(others)} columns beside those of the axis"
            + (f" ({shorten(', '.join(others), 200)}); say which holds the areas (column=…, "
               f"--area-column)" if others else "; it needs one with the areas")
        )  # fmt: skip
    column = others[0] if given is None else given
    if column in TAKEN:
        raise TableError(
            f"{subject}: areas cannot be called {column!r}, as a release's columns are"
        )
    return column


def _check_codes(
    found: pl.DataFrame, codes: Sequence[str], axis: Axis, level: int, subject: str
) -> None:
    if found.is_empty():
        raise TableError(f"{subject} has no row with an area")
    unknown = found.filter(pl.col(NODE).is_null())
    if len(unknown):
        first = " × ".join(visible(str(code)) for code in unknown.select(codes).row(0))
        raise TableError(
            f"{subject}: {len(unknown):,} of its {len(found):,} rows have codes that axis "
            f"{axis.name!r} does not have at level {axis.levels[level - 1]}, such as "
            f"{shorten(first)}; correct them, or leave those rows out"
        )
