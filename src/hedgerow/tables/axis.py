"""An axis: one hierarchy of nested levels, from a public list of areas."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.arrays import Bool, Int32, Int64, IntArrays, Sizes, int32
from hedgerow.errors import (
    TableError,
    as_list,
    did_you_mean,
    kind_of,
    of_public_table,
)
from hedgerow.machine import library
from hedgerow.tables.axis_names import check_axis_name, check_entries, check_names
from hedgerow.tables.code_column import CodeColumn
from hedgerow.tables.codes.rule import ByParent, Reading, Rule, by_parent, called, with_own_leaves
from hedgerow.tables.lists.areas import Given, Names, complete, insert_names, nest, read_names
from hedgerow.tables.lists.product import (
    Order,
    Product,
    combinations,
    distinct_rows,
    nest_product,
)
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.tables.sources.source import as_arrow, as_codes, read_areas
from hedgerow.text import Texts


@dataclass(frozen=True, eq=False)
class Axis:
    """A hierarchy of nested levels: geography, origin, age band, diagnosis.

    Level 0 is everything (one node, unnamed); level k in 1..L is ``levels[k - 1]``. The nodes of a
    level are numbered so that the children of a node, and so its leaves, are one range; siblings
    stand in the order of their codes.

    Attributes:
        name: of the axis.
        levels: L names, coarsest first.
        columns: what the table and the release call the levels, one name a level; of a product
            axis the columns of its lists, in the order in which the levels tell them.
        labels: for each level 1..L the codes of its nodes, each once; of a product axis the codes
            of all columns that the level tells, joined.
        child_start: for each level k in 0..L-1, int64 (nodes of level k, and one): the children of
            node j are the nodes ``child_start[k][j] .. child_start[k][j + 1]`` of level k + 1.
        not_stated: the leaf that takes records whose code is not in the list, if any; with a level
            in braces, the leaf of each of its areas, as in ``"{state}9"``.
        from_table: the list was taken from the table itself and is declared public; the promise
            then says that it reveals which codes the table holds.
        attribute: it stands beside the spine, the one axis that is cut into jobs.
        product: of a product axis what each level tells (see `from_product`); else None.
        names: of the nodes of each level, from the public list, for people; no part of the plan or
            its hash either.
        shapes: of the areas of one level, for maps: from a public file, or squares of a `Division`;
            no part of the plan or its hash either.
        reading: how a table tells the leaf of a record, where it does not by ``columns``: it is no
            part of the public domain, so none of the plan or its hash.

    Example:
        >>> areas = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
        >>> hr.Axis.from_frame("place", areas, levels=["state", "county"])
        Axis(place: 2 state, 3 county)
    """

    name: str
    levels: Texts
    columns: Texts
    labels: tuple[pl.Series, ...]
    child_start: IntArrays
    not_stated: str | None = None
    from_table: bool = False
    attribute: bool = False
    product: Product | None = None
    reading: Reading | None = None
    names: Names = ()
    shapes: Shapes | None = None

    def __post_init__(self) -> None:
        check_names(self.name, self.levels, self.columns, self._column_ends)
        by_area = self.not_stated_by_parent
        if by_area is not None:
            reading = self.reading
            if reading is not None and not reading.code(by_area.level, self.depth, reading.columns):
                raise self.untold_parent(by_area, reading.columns[-1])
            areas = self.labels[by_area.level - 1]
            codes = by_area.codes(areas)
            listed = codes.is_in(self.labels[-1].implode())
            if listed.all():
                below = self.ancestors(by_area.level)[self.not_stated_leaves]
                listed = pl.Series(below == np.arange(len(areas)))
            if not listed.all():
                missing = codes.filter(~listed)[0]
                raise TableError(
                    f"axis {self.name!r}: not_stated = {self.not_stated!r} needs the leaf "
                    f"{missing!r} "
                    f"below its own {self.levels[by_area.level - 1]}"
                )
        elif self.not_stated is not None and not (self.labels[-1] == self.not_stated).any():
            raise TableError(
                f"axis {self.name!r}: not_stated = {self.not_stated!r} must be one of the "
                f"{self.levels[-1]} codes of the public list"
            )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{self.size(k + 1):,} {level}" for k, level in enumerate(self.levels))
        return f"Axis({self.name}: {sizes})"

    @classmethod
    def from_frame(  # noqa: PLR0913 - the public constructor
        cls,
        name: str,
        areas: Any,
        levels: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        rule: Rule | None = None,
        names: Given | None = None,
        not_stated: str | None = None,
        from_table: bool = False,
        attribute: bool = False,
    ) -> "Axis":
        """Return an axis from a public list of areas, one row a leaf.

        Rows that repeat the same codes count once, so a list may be finer than its deepest level. A
        row may stop early (its deeper codes missing): that branch is continued by a single child
        with the same code down to the deepest level.

        Args:
            name: of the axis.
            areas: a data frame with one column a level, or with the columns of a rule.
            levels: the columns of ``areas``, coarsest first; of a rule, names for the levels.
            columns: what the table calls them; by default the same names. One name alone is the
                table's column of the deepest level, or of the code of a rule: the list tells the
                rest.
            rule: how codes tell their levels: `Prefix`, `Parents` or `Division`.
            names: the column of ``areas`` with names of the deepest level, or level → column; with
                a rule, the column with the names of all codes. They are shown beside codes.
            not_stated: the leaf for records outside the list; without it they are an error. With a
                level in braces (``"{state}9"``) each of its areas has such a leaf, which is added
                where the list has none, for records of which that area is known.
            from_table: the list is the table's own, declared public.
            attribute: whether the axis stands beside a spine.

        Raises:
            TableError: a missing column or code, an area with two parents.
        """
        if isinstance(levels, str) or isinstance(columns, str):
            raise TableError(
                f"axis {name!r}: levels and columns are lists of names, coarsest first, got one "
                f"name; write levels=[{(levels if isinstance(levels, str) else levels[-1])!r}]"
            )
        levels = tuple(levels)
        check_names(name, levels, levels)
        subject = f"the list of areas of axis {name!r}"
        with nullcontext() if from_table else of_public_table():
            frame = pl.DataFrame(as_arrow(areas, subject))
        own, reading = called(levels, columns, rule, frame.columns, subject)
        check_names(name, levels, own)
        if rule is None:
            codes = as_codes(frame, list(levels), subject)
        else:
            codes = rule.paths(frame, levels, subject)
            deeper = rule.deeper(frame, levels, subject)
            reading = None if reading is None else replace(reading, deeper=deeper)
        rows = paths = complete(codes, subject)
        by_area = by_parent(not_stated, levels, f"axis {name!r}")
        if by_area is not None:
            paths = with_own_leaves(paths, by_area, subject)
        labels, child_start = nest(paths, subject)
        named = read_names(names, rule, frame, rows, labels, subject)
        return cls(
            name, levels, own, labels, child_start, not_stated, from_table, attribute,
            reading=reading, names=named, shapes=None if rule is None else rule.shapes(labels),
        )  # fmt: skip

    @classmethod
    def from_product(
        cls, name: str, lists: Sequence[Any], product: Sequence[str], *, attribute: bool = False
    ) -> "Axis":
        """Return the axis of all combinations of the rows of public lists.

        A record is found by its codes in the lists' columns, which the table must have under the
        same names; a column that the others tell (the group that a race belongs to) may be left
        out there.

        Args:
            name: of the axis.
            lists: data frames or CSV or Parquet files, one row a leaf of its factor, all columns
                codes.
            product: the order of refinement, one entry a level: a column, or several joined by ×.
                A last name that is no column, such as ``"detail"``, stands for all that are left.
            attribute: whether the axis stands beside a spine.

        Raises:
            TableError: a list that is none, a column in two lists, an entry that is no column, a
                column that is told twice or never, or more than 2²¹ leaves.

        Example:
            >>> race = {"race": ["1", "2", "3"], "group": ["a", "b", "b"]}
            >>> lists = [{"age": ["minor", "adult"]}, race]
            >>> person = hr.Axis.from_product("person", lists, ["age", "group", "detail"])
            >>> person
            Axis(person: 2 age, 4 group, 6 detail)
            >>> person.columns_of(2)
            ('age', 'group')
        """
        check_axis_name(name)
        subject = f"axis {name!r}"
        fitting = "a list of public lists, one a factor"
        if isinstance(lists, Mapping) or hasattr(lists, "__arrow_c_stream__"):
            raise TableError(f"{subject}: lists must be {fitting}, got one; write [list]")
        given = as_list(f"{subject}: lists", lists, fitting, TableError)
        order = as_list(f"{subject}: product", product, "a list of columns", TableError)
        check_entries(name, order)
        frames = [
            read_areas(each, None, role=f"list {number} of {subject}")
            for number, each in enumerate(given, start=1)
        ]
        leaves = combinations(frames, subject)
        ordered = Order.of(order, leaves.columns, subject)
        leaves = leaves.select(ordered.columns)
        return cls.from_leaves(
            name, leaves, ordered.levels, ordered.column_ends, attribute=attribute
        )

    @classmethod
    def from_leaves(
        cls,
        name: str,
        leaves: pl.DataFrame,
        levels: Sequence[str],
        column_ends: Sequence[int],
        *,
        attribute: bool = False,
    ) -> "Axis":
        """Return the product axis whose `leaf_frame` has the rows of a frame, in any order.

        Args:
            name: of the axis.
            leaves: text codes, one row a leaf, the columns in the order in which they are told.
            levels: L names, coarsest first.
            column_ends: for each level how many columns it and the levels above it tell.
            attribute: whether the axis stands beside a spine.

        Raises:
            TableError: no leaf, two leaves with the same codes, or names that none can have.
        """
        columns, levels, column_ends = tuple(leaves.columns), tuple(levels), tuple(column_ends)
        check_names(name, levels, columns, column_ends)
        subject = f"axis {name!r}"
        if leaves.is_empty() or leaves.null_count().sum_horizontal()[0]:
            raise TableError(f"{subject} needs leaves, each with a code in every column")
        labels, child_start, product = nest_product(leaves, levels, column_ends, subject)
        return cls(name, levels, columns, labels, child_start, attribute=attribute, product=product)

    @property
    def not_stated_by_parent(self) -> ByParent | None:
        """The rule of ``not_stated`` that has a level in braces."""
        return by_parent(self.not_stated, self.levels, f"axis {self.name!r}")

    @property
    def not_stated_leaves(self) -> Int32:
        """The leaves that take records outside the list: int32, one, one an area, or none."""
        rule = self.not_stated_by_parent
        codes = pl.Series([self.not_stated])
        if self.not_stated is None:
            return np.zeros(0, dtype=np.int32)
        if rule is not None:
            codes = rule.codes(self.labels[rule.level - 1])
        number = np.arange(self.leaves, dtype=np.int32)
        return codes.replace_strict(self.labels[-1], number, default=None).to_numpy()

    def is_not_stated(self, level: int) -> Bool:
        """Return which nodes of a level stand for records outside the list alone: bool (nodes)."""
        above = self.ancestors(level)
        size = self.size(level)
        own = np.bincount(above[self.not_stated_leaves], minlength=size)
        return np.asarray(own == np.bincount(above, minlength=size))

    def with_shapes(self, path: str | Path, key: str | None = None) -> "Axis":
        """Return the axis with the shapes of its areas, for maps.

        Coarser areas are drawn as the sum of those below them.

        Args:
            path: of a public file with all areas of one level: GeoParquet, GeoJSON, GeoPackage or
                a shapefile.
            key: its column of codes; by default the one called like a level or its column.

        Raises:
            TableError: the file cannot be read, lacks areas, or has shapes that are no areas.
            MachineError: shapely or pyproj is missing.
        """
        if self.product is not None:
            raise TableError(f"axis {self.name!r} is made of several columns, and has no shapes")
        library("shapely", "geo", "a map")
        reading = import_module("hedgerow.tables.maps.reading")
        placeless = [self.is_not_stated(level) for level in range(1, self.depth + 1)]
        codes = reading.AreaCodes(self.columns, self.labels, placeless)
        return replace(self, shapes=reading.read_shapes(path, codes, key))

    def untold_parent(self, rule: ByParent, column: str) -> TableError:
        """Return the error for a column that does not tell the parent of an unlisted code."""
        return TableError(
            f"axis {self.name!r}: not_stated = {self.not_stated!r} needs to know the "
            f"{self.levels[rule.level - 1]} of a record whose code is not in the list, and the "
            f"column {column!r} alone does not tell it; give the table all columns of the axis, or "
            f"use prefix or divide"
        )

    @property
    def _column_ends(self) -> Sizes | None:
        """Of a product axis how many columns each level and those above it tell."""
        return None if self.product is None else self.product.column_ends

    def columns_in(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are among some names, in their order."""
        return [column for column in self.columns if column in names]

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return self.size(self.depth)

    @property
    def depth(self) -> int:
        """The number of levels below everything."""
        return len(self.levels)

    @property
    def sizes(self) -> Sizes:
        """How many nodes each level has, 0 … L."""
        return tuple(map(self.size, range(self.depth + 1)))

    def size(self, level: int) -> int:
        """Return the number of nodes of a level; level 0 has one."""
        return 1 if level == 0 else len(self.labels[level - 1])

    def level_number(self, level: str) -> int:
        """Return the number 1..L of a level given by name.

        Raises:
            TableError: no such level.
        """
        if level not in self.levels:
            raise TableError(
                f"axis {self.name!r} has no level {level!r}; it has {', '.join(self.levels)}"
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

    def nodes_above(self, level: int, given: int, nodes: Int32 | Int64) -> Int32:
        """Return the nodes of a level to which nodes of another belong: int32 (nodes).

        The level is coarser than the given one, or all in between are of single children.
        """
        if level >= given:  # of single children, which have their parents' numbers
            return nodes.astype(np.int32, copy=False)
        below = np.diff(self.descendant_start(level, given))
        return np.repeat(np.arange(len(below), dtype=np.int32), below)[nodes]

    def columns_of(self, level: int) -> Texts:
        """Return the columns that a level and the levels above it tell."""
        end = level if self.product is None or level == 0 else self.product.column_ends[level - 1]
        return self.columns[:end]

    def _words(self, level: int) -> tuple[pl.Series, ...]:
        """Return the codes of a level's nodes in the columns that it is the first to tell."""
        if self.product is None:
            return (self.labels[level - 1].alias(self.columns[level - 1]),)
        return self.product.words[len(self.columns_of(level - 1)) : len(self.columns_of(level))]

    def keys(self, level: int) -> pl.DataFrame:
        """Return the codes that tell the nodes of a level apart, one row a node.

        They are those of the level's own column; of a product axis, of all columns that it tells.
        """
        return self.paths(level) if self.product else pl.DataFrame(self._words(level))

    def with_names(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table with the names of this axis's areas behind their codes."""
        if self.product is None:
            for column, codes, names in zip(self.columns, self.labels, self.names, strict=False):
                frame = insert_names(frame, column, codes, names)
        return frame

    def names_of(self, level: int) -> pl.Series | None:
        """Return the names of the nodes of a level, missing where there is none.

        Returns:
            One text a node; None of a level of which the list names no node.
        """
        return self.names[level - 1] if self.names and level else None

    def leaf_frame(self) -> pl.DataFrame:
        """Return all codes of the leaves: one row a leaf, one column for each of ``columns``."""
        return self.paths(self.depth)

    def paths(self, level: int) -> pl.DataFrame:
        """Return the codes of all nodes of a level and of their ancestors, one row a node."""
        return pl.DataFrame(self.path(level, np.arange(self.size(level), dtype=np.int32)))

    def parts(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Int32]:
        """Return the combinations of codes in some columns, and which of them each leaf has.

        Args:
            columns: in any order; a level stands for the columns that it is the first to tell, and
                ``axis.`` may stand before each.

        Returns:
            combinations: one row each, the columns as given, sorted by the first, then the next;
            number: int32 (leaves), the row of each leaf's combination.

        Raises:
            TableError: no column, or one that the axis does not have.

        Example:
            >>> lists = [{"sex": ["f", "m"]}, {"age": ["old", "young"]}]
            >>> person = hr.Axis.from_product("person", lists, ["sex", "detail"])
            >>> combinations, number = person.parts(["age"])
            >>> combinations["age"].to_list(), number.tolist()
            (['old', 'young'], [0, 1, 0, 1])
        """
        chosen = dict[str, None]()  # each once
        for given in as_list("columns", columns, "a list of columns", TableError):
            bare = given.removeprefix(f"{self.name}.") if isinstance(given, str) else given
            if bare in self.columns:
                chosen[bare] = None
            elif bare in self.levels:
                level = self.levels.index(bare) + 1
                chosen |= dict.fromkeys(self.columns_of(level)[len(self.columns_of(level - 1)) :])
            else:
                raise TableError(
                    f"axis {self.name!r} has no column {kind_of(given)}; it has "
                    f"{', '.join(self.columns)}{did_you_mean(bare, self.columns)}"
                )
        if not chosen:
            raise TableError(f"axis {self.name!r}: name at least one column")
        return distinct_rows(self.leaf_frame().select(list(chosen)))

    def path(self, level: int, nodes: Int32) -> list[pl.Series]:
        """Return the codes of nodes of a level and of their ancestors, coarsest first."""
        series = []
        for k in range(level, 0, -1):
            series += [words.gather(nodes) for words in reversed(self._words(k))]
            nodes = self._parents(k, nodes)
        return series[::-1]

    def _parents(self, level: int, nodes: Int32) -> Int32:
        above = np.searchsorted(self.child_start[level - 1], nodes, side="right") - 1
        return int32(above)

    @cached_property
    def _columns(self) -> list[list[CodeColumn]]:
        return [list(map(CodeColumn.of, self._words(k + 1))) for k in range(self.depth)]

    def kinds(self, level: int) -> list[pa.DataType]:
        """Return the types of the columns of Arrow that `rows` returns."""
        return [column.kind for columns in self._columns[:level] for column in columns]

    def rows(self, level: int, nodes: Int32) -> list[pa.Array]:
        """Return the columns of Arrow with what `path` says of nodes, of which there is one."""
        columns = []
        first = nodes.min()
        here = np.arange(first, nodes.max() + 1, dtype=np.int32)
        place = nodes - first
        for k in range(level, 0, -1):
            columns += [column.rows(here, place) for column in reversed(self._columns[k - 1])]
            here = self._parents(k, here)
        return columns[::-1]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names, codes and nesting: two axes with one digest are the same domain."""
        kind = (self.attribute, self._column_ends) if self.attribute or self._column_ends else ()
        facts = (self.name, self.levels, self.not_stated, self.from_table, *kind)
        whole = hashlib.sha256(repr(facts).encode())

        def add(block: bytes) -> None:
            whole.update(len(block).to_bytes(8, "little"))
            whole.update(block)

        for level, start in enumerate(self.child_start, start=1):
            for words in self._words(level):
                add(words.str.len_bytes().cast(pl.Int64).to_numpy().tobytes())
                add(bytes(pa.array(words.to_arrow(), pa.large_string()).buffers()[2] or b""))
            add(start.tobytes())
        return whole.hexdigest()
