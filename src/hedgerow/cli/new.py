"""The command `new`: a release file to fill in, from the names of a table's columns."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.output_file import pairs, refuse_within_a_release
from hedgerow.cli.terminal import escape, stderr, stdout
from hedgerow.errors import SpecError, TableError, machine_errors
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.tables.database import open_database
from hedgerow.tables.sources import Source, describe_source, open_source

USUAL_DELTA = "1e-8"


def new(  # noqa: PLR0913, PLR0917 - the options of a command
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="The confidential table: CSV or Parquet.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the release file goes.")
    ] = Path("release.toml"),
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN,…",
            help="A hierarchy and its columns, coarsest first: geography=state,county. Repeatable.",
        ),
    ] = None,
    count: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Holds the number of records of a row.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Names who is protected: person_id.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The promise: ε.")] = None,
    delta: Annotated[str, typer.Option(help="Its δ.")] = USUAL_DELTA,
    contributions: Annotated[
        int | None, typer.Option(metavar="N", help="The most records of one --unit that count.")
    ] = None,
) -> None:
    """Write a release file for a table, to fill in: from its header alone, no value is used."""
    if re.match(r"[\w+]+:/", str(table)):  # a path has only one of its strokes left
        raise SpecError(
            "hedgerow new reads the header of a CSV or Parquet file; for a database give one, such "
            "as an empty table with the query's columns, then write its URL as source and add query"
        )
    if count is not None and unit is not None:
        raise SpecError("--unit needs a table with one row a record; leave --count out")
    EpsilonDelta("1" if epsilon is None else epsilon, delta)
    most = contributions if contributions is not None or unit is not None else 1
    if most is not None:
        AddRemove(most, unit=unit)
    axes = {
        name: columns.split(",")
        for name, columns in pairs(axis or [], "--axis", "geography=state,county").items()
    }
    if file.exists() or file.is_symlink():
        raise SpecError(f"{str(file)!r} exists already; name another file")
    refuse_within_a_release(file, "the file")
    with (
        open_database() as db,
        open_source(db, table, describe_source(table, "the table")) as source,
    ):
        _check_columns(source, [*axes.values(), [c for c in (count, unit) if c is not None]])
        names = source.names
    text = "\n".join([
        _head(table, file),
        _table_section(os.path.relpath(table, file.parent), count, unit),
        *(_axis_section(name, columns) for name, columns in _or_unknown(axes).items()),
        _privacy_section(epsilon, delta, unit, most),
        _END,
    ])  # fmt: skip
    with machine_errors(f"cannot write {str(file)!r}"), file.open("xb") as written:
        written.write(text.encode(errors="backslashreplace"))
    is_whole = axes and epsilon is not None and most is not None
    left = "" if is_whole else " Fill in what stands in <…>."
    stdout.print(f"Written: {escape(str(file))}, from the header of {escape(str(table))}.{left}")
    if sys.stderr.isatty():  # a table without a header has a record in its first line
        stderr.print(f"Its columns: {escape(', '.join(map(_toml, names)))}")
    stdout.print(f"Next: [bold]hedgerow plan {escape(str(file))}[/bold]")


def _check_columns(source: Source, used: Sequence[Sequence[str]]) -> None:
    """Refuse columns that are not there, and a header that looks like a record.

    Raises:
        TableError: the column, or the rule; never what a first line without a header holds.
    """
    if any(_is_number(name) for name in source.names):
        raise TableError(
            f"{source.subject} has a column that is called by a number; if its first line is a "
            f"record, put a header before it"
        )
    for columns in used:
        for column in columns:
            source.place(column)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _or_unknown(axes: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    return axes or {"<a name, such as geography>": ["<coarsest column>", "<finest column>"]}


def _toml(text: str) -> str:
    """Return a text in TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _head(table: Path, file: Path) -> str:
    return (
        f"# A release file for {_toml(table.name)}.\n"
        f"# Next: hedgerow plan {_toml(file.name)[1:-1]}\n"
    )


def _table_section(source: str, count: str | None, unit: str | None) -> str:
    lines = ["[table]", f"source = {_toml(source)}   # confidential"]
    if count is not None:
        lines.append(f"count  = {_toml(count)}   # the number of records of a row")
    elif unit is not None:
        lines.append(f"unit   = {_toml(unit)}   # who is protected, with all their records")
    else:
        lines += [
            '# count = "<a column>"   # the number of records of a row; without it a row is one',
            '# unit  = "<a column>"   # who is protected, where somebody may have several records',
        ]
    return "\n".join(lines) + "\n"


def _axis_section(name: str, columns: Sequence[str]) -> str:
    is_known = not name.startswith("<")
    areas = f"{name}.csv" if is_known else "<public list>.csv"
    return (
        f"[[axis]]\n"
        f"name   = {_toml(name)}\n"
        f"levels = [{', '.join(map(_toml, columns))}]   # from coarse to fine\n"
        f"areas  = {_toml(areas)}   # the public list: these columns, one row a {columns[-1]!r}, "
        f"empty ones too;\n"
        f'#        where the codes in the table are public: "table"\n'
    )


def _privacy_section(epsilon: str | None, delta: str, unit: str | None, most: int | None) -> str:
    given = "<smaller is more private; 1 is usual>" if epsilon is None else epsilon
    kept = _toml(f"<most records of one {unit}>") if most is None else str(most)
    which = "records that are kept of each of them" if unit is not None else "records of one person"
    return (
        f"[privacy]\n"
        f'neighbours    = "add-remove"   # hides whether somebody is in the table; "replace": '
        f"what they say\n"
        f"contributions = {kept}   # the most {which}\n"
        f'mechanism     = "discrete-gaussian"\n'
        f"epsilon       = {_toml(given)}   # the promise\n"
        f"delta         = {_toml(delta)}   # well below 1 over the number of records\n"
    )


_END = """\
[allocation]
method     = "optimal"
objective  = "released"   # the error after estimation is least
importance = "levels"     # of all levels alike; leave out: of all counts alike, so of the finest

[estimate]
method  = "euclidean"
measure = "all"          # every possible cell; "survivors" where there are too many

[output]
directory = "out"        # appears when the release is complete; must not exist
"""
