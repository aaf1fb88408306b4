"""Public tables: what they may call the columns of an axis, and their rows.

A prior, a simulated table or a table of facts is seldom made for the release, and public; so its
columns are looked for under both names, the release's own and its list's. The confidential table
has the columns that the user named.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from hedgerow.errors import TableError, shorten
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.float_codes import unpointed_sql
from hedgerow.tables.codes.rule import Reading
from hedgerow.tables.ordered import whole_count
from hedgerow.tables.sources.database import sql_identifier, translate_duckdb_errors
from hedgerow.tables.sources.source import (
    check_fits,
    coded,
    describe_source,
    in_order,
    load,
    open_table,
)
from hedgerow.text import Texts


def columns_in(source: Any, role: str) -> Texts:
    """Return the names of a source's columns; no row is read."""
    with open_table(source, describe_source(source, role), public=True) as (_, opened):
        return opened.names


def as_called(
    axes: Sequence[Axis],
    names: Sequence[str],
    subject: str,
    *,
    given: Mapping[str, Sequence[str]] | None = None,
    hint: str = "rename them there",
) -> list[Axis]:
    """Return axes with the columns by which a public table tells the leaf of a record.

    An axis's own columns come first, then its levels, as its list calls them, and at last the
    column of the list's codes alone; names that another axis has, too, are nobody's.

    Args:
        axes: of the release, without numeric ones.
        names: the columns of the public table.
        subject: how messages name it.
        given: for some axes the columns that the user named: all, or that of the leaf codes.
        hint: what to do where no column is found; AXIS stands for the axis.

    Raises:
        TableError: an axis that the table has no codes of, or columns that fit no axis.
    """
    own = dict(given or {})
    fitting_axes = []
    for own_axis in axes:
        axis = own_axis
        ways = [own_axis, *_as_listed(own_axis, _names_of_others(own_axis, axes))]
        if axis.name in own:
            axis = _renamed(axis, tuple(own[axis.name]))
            ways = [axis]
        fitting = next((way for way in ways if _has_codes(names, way)), None)
        if fitting is None:
            columns = axis.columns if axis.reading is None else axis.reading.columns
            missing = next(column for column in reversed(columns) if column not in names)
            needed = ", ".join(columns)
            if axis.reading is None and axis.depth > 1:
                needed += f", or {columns[-1]} alone"
            raise TableError(
                f"{subject} has no column {missing!r}; of axis {axis.name!r} it needs {needed}, or "
                f"the same under the names of the list; if they are called otherwise, "
                f"{hint.replace('AXIS', axis.name)}",
                confidential=f"its columns are {shorten(', '.join(names), 500)}",
            )
        fitting_axes.append(fitting)
    return fitting_axes


def listed_names(axes: Sequence[Axis]) -> dict[str, tuple[Axis, str]]:
    """Return further names of columns, each with the axis and the column of it that is meant."""
    by_name = dict[str, tuple[Axis, str]]()
    for axis in axes:
        taken = _names_of_others(axis, axes) | set(axis.columns)
        if axis.product is not None:
            continue
        for level, column in zip(axis.levels, axis.columns, strict=True):
            by_name |= {} if level in taken else {level: (axis, column)}
        reading = axis.reading
        if reading is not None and len(reading.columns) == 1 and reading.columns[0] not in taken:
            by_name[reading.columns[0]] = axis, axis.columns[-1]
    return by_name


def names_of(axes: Iterable[Axis]) -> set[str]:
    """Return all names under which a table may have codes of axes."""
    names = set[str]()
    for axis in axes:
        names.update(axis.columns)
        if axis.product is None:
            names.update(axis.levels, axis.reading.columns if axis.reading else ())
    return names


def _names_of_others(axis: Axis, axes: Sequence[Axis]) -> set[str]:
    return names_of(other for other in axes if other is not axis)


def _as_listed(axis: Axis, taken: set[str]) -> Iterator[Axis]:
    """Yield the axis with the columns that its list may have called it by."""
    if axis.product is not None:
        return
    code = None if axis.reading is None else getattr(axis.reading.rule, "code", None)
    of_rule = () if code is None else (code,) if isinstance(code, str) else tuple(code)
    alone = () if len(of_rule) > 1 else (axis.columns[-1:], axis.levels[-1:])
    for columns in (axis.columns, axis.levels, of_rule, *alone):
        if columns and taken.isdisjoint(columns):
            yield _renamed(axis, columns)


def _renamed(axis: Axis, columns: Texts) -> Axis:
    """Return the axis with the columns of all its levels, or with those of its codes.

    Raises:
        TableError: neither as many as it has levels, nor as tell a code.
    """
    reading = axis.reading
    if axis.product is not None:
        if columns == axis.columns:
            return axis
        raise TableError(f"axis {axis.name!r} is a product; its columns are called as in its lists")
    if reading is not None and reading.rule is not None and len(columns) == len(reading.columns):
        return replace(axis, reading=replace(reading, columns=columns))
    if len(columns) == axis.depth:
        return replace(axis, columns=columns, reading=None)
    if len(columns) == 1 and (reading is None or reading.rule is None):
        return replace(axis, reading=Reading(columns, own=0))
    raise TableError(
        f"columns of axis {axis.name!r}: name one a level ({', '.join(axis.levels)}), or that of "
        f"the deepest alone, got {len(columns)}"
    )


def _has_codes(names: Sequence[str], axis: Axis) -> bool:
    if axis.product is not None:  # which of its columns are needed depends on its lists
        return True
    present = axis.columns_in(names)
    if axis.reading is not None:
        return set(axis.reading.columns) <= set(names)
    return len(present) == axis.depth or present == [axis.columns[-1]]


def read_public_table(
    source: Any, is_pointed: Mapping[str, bool], numbers: Mapping[str, int | None], subject: str
) -> pl.DataFrame:
    """Read a public table: the columns of codes that are known, and some of whole numbers.

    Args:
        source: a file, a `hedgerow.tables.read.Query`, or a data frame.
        is_pointed: columns that hold codes, where the table has them, and whether the codes of
            their axis end in ``.0`` themselves; others are left alone.
        numbers: columns that must be there, of whole numbers from 0 on; and what an empty cell of
            each stands for, None where each row needs a number.
        subject: how messages name it.

    Returns:
        The codes as text (``01001`` keeps its zero), in the table's order of columns, then the
        numbers as int64, at most `hedgerow.limits.LARGEST_LEAF`; sorted by the codes.

    Raises:
        TableError: no such table or column, no known column, no row; a row without a code, or
            with anything but a whole number from 0 on; more than a quarter of the memory.
    """
    with open_table(source, subject, public=True) as (db, table):
        codes = [name for name in dict.fromkeys(table.names) if name in is_pointed]
        for name in numbers:
            if name in codes:
                raise TableError(f"{subject}: column {name!r} holds codes, and no numbers")
        if not codes:
            raise TableError(
                f"{subject} has no column of an axis, whose cells it could speak of; its columns "
                f"are {', '.join(table.names)[:500]}"
            )
        kinds = load(db, table, [*codes, *numbers])
        check_fits(db, kinds, subject)
        chosen = [
            f"{text if is_pointed[name] else unpointed_sql(text)} AS {sql_identifier(name)}"
            for name, text in zip(codes, coded(db, table, codes, kinds[: len(codes)]), strict=True)
        ]
        for i, (name, empty) in enumerate(numbers.items(), start=len(codes)):
            number = whole_count(db, f"c{i}", kinds[i], subject=subject, name=name, empty=empty)
            chosen.append(f"{number} AS {sql_identifier(name)}")
        with translate_duckdb_errors(subject, "is no table that can be read to its end"):
            db.execute("SET preserve_insertion_order = true")
            rows = pl.DataFrame(db.sql(f"SELECT {', '.join(chosen)} FROM loaded").to_arrow_table())
    if rows.is_empty():
        raise TableError(f"{subject} has no row")
    for name in codes:
        if rows[name].null_count():
            raise TableError(f"{subject} has a row without a {name!r}; every row needs one")
    return rows if in_order(rows.select(codes)) else rows.sort(codes, maintain_order=True)
