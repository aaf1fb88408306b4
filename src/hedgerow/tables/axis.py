"""An axis: one hierarchy of nested levels, from a public list of areas."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.arrays import Int32, Int64
from hedgerow.errors import TableError, did_you_mean
from hedgerow.tables.sources import as_arrow, as_codes, in_order
from hedgerow.text import check_name

MAX_LEVELS = 64
LARGEST_SIZE = (1 << 31) - 1
"""Nodes of a level: they are numbered in 32 bits."""
LONGEST_NAME = 100
"""Of an axis, in bytes: a file is called by it."""
LONGEST_LEVEL = 500
"""Of a level or column, in bytes."""


@dataclass(frozen=True, eq=False)
class Axis:
    """A hierarchy of nested levels: geography, origin, age band, diagnosis.

    Level 0 is everything (one node, unnamed); level k in 1..L is ``levels[k - 1]``. The nodes of a
    level are numbered so that the children of a node, and so its leaves, are one range; siblings
    stand in the order of their codes.

    Attributes:
        name: of the axis.
        levels: L names, coarsest first.
        columns: L names: what the table and the release call the levels.
        labels: for each level 1..L the codes of its nodes.
        child_start: for each level k in 0..L-1, int64 (nodes of level k, and one): the children of
            node j are the nodes ``child_start[k][j] .. child_start[k][j + 1]`` of level k + 1.
        not_stated: the leaf that takes records whose code is not in the list, if any.
        from_table: the list was taken from the table itself and is declared public; the promise
            then says that it reveals which codes the table holds.

    Example:
        >>> areas = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
        >>> hr.Axis.from_frame("place", areas, levels=["state", "county"])
        Axis(place: 2 state, 3 county)
    """

    name: str
    levels: tuple[str, ...]
    columns: tuple[str, ...]
    labels: tuple[pl.Series, ...]
    child_start: tuple[Int64, ...]
    not_stated: str | None = None
    from_table: bool = False
    attribute: bool = False

    def __post_init__(self) -> None:
        check_names(self.name, self.levels, self.columns)
        if self.not_stated is not None and not (self.labels[-1] == self.not_stated).any():
            raise TableError(
                f"axis {self.name!r}: not_stated = {self.not_stated!r} must be one of the "
                f"{self.levels[-1]} codes of the public list"
            )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{self.size(k + 1):,} {level}" for k, level in enumerate(self.levels))
        return f"Axis({self.name}: {sizes})"

    @classmethod
    def from_frame(
        cls,
        name: str,
        areas: Any,
        levels: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        not_stated: str | None = None,
        from_table: bool = False,
    ) -> "Axis":
        """Return an axis from a public list of areas, one row a leaf.

        A row may stop early (its deeper codes missing): that branch is continued by a single child
        with the same code down to the deepest level.

        Args:
            name: of the axis.
            areas: a data frame with one column a level.
            levels: the columns of ``areas``, coarsest first.
            columns: what the table calls them; by default the same names.
            not_stated: the leaf for records outside the list; without it they are an error.
            from_table: the list is the table's own, declared public; its rows may repeat an area.

        Raises:
            TableError: a missing column or code, an area with two parents, an area listed twice.
        """
        if isinstance(levels, str) or isinstance(columns, str):
            raise TableError(
                f"axis {name!r}: levels and columns are lists of names, coarsest first, got one "
                f"name; write levels=[{(levels if isinstance(levels, str) else levels[-1])!r}]"
            )
        levels = tuple(levels)
        columns = levels if columns is None else tuple(columns)
        check_names(name, levels, columns)
        subject = f"the list of areas of axis {name!r}"
        codes = as_codes(pl.DataFrame(as_arrow(areas, subject)), list(levels), subject)
        paths = _complete(codes, subject)
        labels, child_start = _nest(paths, subject, repeated=from_table)
        return cls(name, levels, columns, labels, child_start, not_stated, from_table)

    @property
    def depth(self) -> int:
        """The number of levels below everything."""
        return len(self.levels)

    def leaf_frame(self) -> pl.DataFrame:
        """Return one row a leaf: its codes, coarsest level first."""
        return pl.DataFrame(self.path(self.depth, np.arange(self.size(self.depth), dtype=np.int32)))

    def size(self, level: int) -> int:
        """Return the number of nodes of a level; level 0 has one."""
        return 1 if level == 0 else len(self.labels[level - 1])

    def level_number(self, level: str) -> int:
        """Return the number 1..L of a level given by name.

        Raises:
            TableError: no such level.
        """
        if level not in self.levels:
            levels = ", ".join(self.levels)
            raise TableError(
                f"axis {self.name!r} has no level {level!r}; it has {levels}"
                f"{did_you_mean(level, self.levels)}"
            )
        return self.levels.index(level) + 1

    def descendant_start(self, level: int, deeper: int) -> Int64:
        """Return where descendants begin: int64 (nodes of ``level`` + 1), nodes of ``deeper``."""
        start = np.arange(self.size(level) + 1, dtype=np.int64)
        for k in range(level, deeper):
            start = self.child_start[k][start]
        return start

    def ancestors(self, level: int) -> Int32:
        """Return for each leaf its ancestor at a level: int32 (leaves)."""
        leaves = np.diff(self.descendant_start(level, self.depth))
        return np.repeat(np.arange(self.size(level), dtype=np.int32), leaves)

    def nodes_above(self, level: int, given: int, nodes: Int32) -> Int32:
        """Return the nodes of a level to which nodes of another belong: int32 (nodes).

        The level is coarser than the given one, or all in between are of single children.
        """
        found: Int32 = self.ancestors(level)[self.descendant_start(given, self.depth)[nodes]]
        return found

    def path(self, level: int, nodes: Int32) -> list[pl.Series]:
        """Return the codes of nodes of a level and of their ancestors, coarsest first."""
        series = []
        for k in range(level, 0, -1):
            series.append(self.labels[k - 1].gather(nodes).alias(self.columns[k - 1]))
            nodes = (np.searchsorted(self.child_start[k - 1], nodes, side="right") - 1).astype(
                np.int32
            )
        return series[::-1]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names, codes and nesting: two axes with one digest are the same domain."""
        whole = hashlib.sha256(
            repr((self.name, self.levels, self.not_stated, self.from_table)).encode()
        )
        for labels, start in zip(self.labels, self.child_start, strict=True):
            lengths = labels.str.len_bytes().cast(pl.Int64).to_numpy()
            text = pa.array(labels.to_arrow(), pa.large_string()).buffers()[2] or b""
            for block in (lengths.tobytes(), bytes(text), start.tobytes()):
                whole.update(len(block).to_bytes(8, "little"))
                whole.update(block)
        return whole.hexdigest()


def check_names(name: str, levels: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Raise unless the names can be those of an axis, its levels and columns."""
    check_name(name, "an axis's name", LONGEST_NAME, TableError)
    if not set(name).isdisjoint("./\\"):
        raise TableError(f"an axis needs a name without dots and slashes, got {name!r}")
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise TableError(f"axis {name!r} needs 1 to {MAX_LEVELS} levels, got {len(levels)}")
    if len(columns) != len(levels):
        raise TableError(
            f"axis {name!r} has {len(levels)} levels and {len(columns)} columns; "
            f"name one column a level"
        )
    for names, kind in ((levels, "level"), (columns, "column")):
        for each in names:
            check_name(each, f"axis {name!r}: a {kind}", LONGEST_LEVEL, TableError)
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise TableError(f"axis {name!r} must name each {kind} once, got {', '.join(names)}")


def _complete(codes: pl.DataFrame, subject: str) -> pl.DataFrame:
    """Return every path down to the last level: a branch that stops early repeats its last code."""
    if codes.is_empty():
        raise TableError(f"{subject} is empty; it needs one row an area")
    names = codes.columns
    if codes[names[0]].null_count():
        raise TableError(f"{subject} has a row without a {names[0]!r}; every area needs one")
    for upper, lower in pairwise(names):
        orphan = codes.filter(pl.col(upper).is_null() & pl.col(lower).is_not_null())
        if not orphan.is_empty():
            raise TableError(f"{subject}: {lower} {orphan[lower][0]!r} has no {upper}")
    if not any(codes[name].null_count() for name in names):
        return codes
    for upper, lower in pairwise(names):
        stops = codes.filter(pl.col(lower).is_null())[upper].unique()
        both = codes.filter(pl.col(lower).is_not_null() & pl.col(upper).is_in(stops.implode()))
        if not both.is_empty():
            raise TableError(
                f"{subject}: {upper} {both[upper][0]!r} stops early in one row and goes on to "
                f"{lower} {both[lower][0]!r} in another"
            )
        codes = codes.with_columns(pl.coalesce(lower, upper).alias(lower))
    return codes


def _nest(
    paths: pl.DataFrame, subject: str, *, repeated: bool
) -> tuple[tuple[pl.Series, ...], tuple[Int64, ...]]:
    """Return labels and child ranges of every level from the paths of the leaves."""
    names = paths.columns
    if repeated:
        paths = paths.unique()
    if not in_order(paths):
        paths = paths.sort(names)
    changed = np.zeros(len(paths), dtype=bool)
    changed[0] = True
    upper_start = np.array([0, len(paths)])
    labels, child_start = [], []
    for k, name in enumerate(names):
        column = paths[name]
        changed[1:] |= (column[1:] != column[:-1]).to_numpy()
        start = np.flatnonzero(changed)
        level = column.gather(start).alias(name)
        ascends = (level[1:] > level[:-1]).all()  # then all differ, and none need be looked up
        if not ascends and level.n_unique() < len(level):
            _name_two_parents(paths, names[k - 1 : k + 1], level, subject)
        child_start.append(np.searchsorted(start, upper_start).astype(np.int64))
        upper_start = np.append(start, len(paths))
        labels.append(level)
    if len(start) < len(paths):
        twice = paths[names[-1]].gather(np.flatnonzero(~changed))[0]
        raise TableError(f"{subject} lists {names[-1]} {twice!r} twice; each area needs one row")
    return tuple(labels), tuple(child_start)


def _name_two_parents(
    paths: pl.DataFrame, names: list[str], level: pl.Series, subject: str
) -> None:
    """Say which area has two parents (level 1 cannot: everything is its one parent)."""
    upper, lower = names
    area = level.filter(level.is_duplicated())[0]
    parents = paths.filter(pl.col(lower) == area)[upper].unique().sort()
    if len(parents) < 2:  # the parents' own codes were found unique before
        raise TableError(f"{subject} lists {lower} {area!r} twice")
    raise TableError(
        f"{subject}: {lower} {area!r} has two parents, {upper} {parents[0]!r} and {parents[1]!r}; "
        f"each area needs one (make codes unique, for example by putting the parent's code first)"
    )
