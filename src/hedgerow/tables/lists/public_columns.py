"""What public tables may call the columns of an axis: as the release's table does, or as its list.

A prior, a simulated table or a table of facts is seldom made for the release, and public; so its
columns are looked for under both names. The confidential table has the columns that the user named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedgerow.errors import TableError, shorten
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.reading import Reading
from hedgerow.tables.sources.source import describe_source, open_table
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
    found = []
    for axis in axes:
        others = {name for other in axes if other is not axis for name in _names(other)}
        if axis.name in own:
            ways = [_told_by(axis, tuple(own[axis.name]))]
        else:
            ways = [axis, *_as_listed(axis, others)]
        fitting = next((way for way in ways if _has_codes(names, way)), None)
        if fitting is None:
            raise _no_codes(ways[0], names, subject, hint)
        found.append(fitting)
    return found


def listed_names(axes: Sequence[Axis]) -> dict[str, tuple[Axis, str]]:
    """Return further names of columns, each with the axis and the column of it that is meant."""
    found = dict[str, tuple[Axis, str]]()
    for axis in axes:
        taken = {name for other in axes if other is not axis for name in _names(other)}
        taken |= set(axis.columns)
        if axis.product is not None:
            continue
        for level, column in zip(axis.levels, axis.columns, strict=True):
            found |= {} if level in taken else {level: (axis, column)}
        reading = axis.reading
        if reading is not None and len(reading.columns) == 1 and reading.columns[0] not in taken:
            found[reading.columns[0]] = axis, axis.columns[-1]
    return found


def _names(axis: Axis) -> set[str]:
    """Return all names under which a table may have codes of an axis."""
    if axis.product is not None:
        return set(axis.columns)
    return {*axis.columns, *axis.levels, *(axis.reading.columns if axis.reading else ())}


def _as_listed(axis: Axis, taken: set[str]) -> Iterator[Axis]:
    """Yield the axis with the columns that its list may have called it by."""
    if axis.product is not None:
        return
    code = None if axis.reading is None else getattr(axis.reading.rule, "code", None)
    of_rule = () if code is None else (code,) if isinstance(code, str) else tuple(code)
    alone = () if len(of_rule) > 1 else (axis.columns[-1:], axis.levels[-1:])
    for columns in (axis.columns, axis.levels, of_rule, *alone):
        if columns and taken.isdisjoint(columns):
            yield _told_by(axis, columns)


def _told_by(axis: Axis, columns: Texts) -> Axis:
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
    present = [column for column in axis.columns if column in names]
    if axis.reading is not None:
        return set(axis.reading.columns) <= set(names)
    return len(present) == axis.depth or present == [axis.columns[-1]]


def _no_codes(axis: Axis, names: Sequence[str], subject: str, hint: str) -> TableError:
    columns = axis.columns if axis.reading is None else axis.reading.columns
    missing = next(column for column in reversed(columns) if column not in names)
    needed = ", ".join(columns)
    if axis.reading is None and axis.depth > 1:
        needed += f", or {columns[-1]} alone"
    return TableError(
        f"{subject} has no column {missing!r}; of axis {axis.name!r} it needs {needed}, or the "
        f"same under the names of the list; if they are called otherwise, "
        f"{hint.replace('AXIS', axis.name)}",
        confidential=f"its columns are {shorten(', '.join(names), 500)}",
    )
