"""The command `new`: a release file to fill in, from the column names of a table."""

import json
import os
import re
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.output_file import pairs
from hedgerow.cli.terminal import escape, stderr, stdout
from hedgerow.errors import SpecError, TableError, machine_errors
from hedgerow.plan.cuboids import FEW_LEAVES
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.release.directory.manifest import check_outside
from hedgerow.tables.axis import Axis
from hedgerow.tables.database import open_database
from hedgerow.tables.read import read_areas
from hedgerow.tables.sources import Source, describe_source, open_source

USUAL_DELTA = "1e-8"
UNKNOWN_AXIS = {"<a name, such as geography>": ["<coarsest column>", "<finest column>"]}


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
        str | None, typer.Option(metavar="COLUMN", help="The number of records of each row.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Who is protected, such as person_id.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The ε of the privacy promise.")] = None,
    delta: Annotated[str, typer.Option(help="The δ of the privacy promise.")] = USUAL_DELTA,
    contributions: Annotated[
        int | None, typer.Option(metavar="N", help="The most records of one --unit to keep.")
    ] = None,
) -> None:
    """Write a release file to fill in, from the header of a table; no value is read."""
    most = contributions if contributions is not None or unit is not None else 1
    _check(table, file, count, unit)
    EpsilonDelta("1" if epsilon is None else epsilon, delta)
    if most is not None:
        AddRemove(most, unit=unit)
    axes = {
        name: columns.split(",")
        for name, columns in pairs(axis or [], "--axis", "geography=state,county").items()
    }
    subject = describe_source(table, "the table")
    with open_database() as db, open_source(db, table, subject) as source:
        _check_columns(source, [*axes.values(), [c for c in (count, unit) if c is not None]])
        names = source.names
    sizes = [_areas(file.parent / f"{name}.csv", columns, table) for name, columns in axes.items()]
    head = f"# A release file for {_toml(table.name)}."
    text = "\n".join([
        f"{head}\n# Next: hedgerow plan {_toml(file.name)[1:-1]}\n",
        _table_section(os.path.relpath(table, file.parent), count, unit),
        *(_axis_section(name, columns) for name, columns in (axes or UNKNOWN_AXIS).items()),
        *_workload_sections(sizes),
        _privacy_section(epsilon, delta, unit, most),
        _END.format(measure=_measure(sizes)),
    ])  # fmt: skip
    with machine_errors(f"cannot write {str(file)!r}"), file.open("xb") as written:
        written.write(text.encode(errors="backslashreplace"))
    is_whole = axes and epsilon is not None and most is not None
    left = "" if is_whole else " Replace the placeholders in <…>."
    stdout.print(f"Written: {escape(str(file))}, from the header of {escape(str(table))}.{left}")
    if sys.stderr.isatty():  # a table without a header has a record in its first line
        stderr.print(f"Its columns: {escape(', '.join(map(_toml, names)))}")
    stdout.print(f"Next: [bold]hedgerow plan {escape(str(file))}[/bold]")


def _check(table: Path, file: Path, count: str | None, unit: str | None) -> None:
    """Raise unless the table can be a file, and the release file is new and outside releases."""
    if re.match(r"[\w+]+:/", str(table)):  # a path keeps only one slash of a URL's two
        raise SpecError(
            "hedgerow new reads the header of a CSV or Parquet file; for a database give one, such "
            "as an empty table with the query's columns, then write its URL as source and add query"
        )
    if count is not None and unit is not None:
        raise SpecError("--unit needs a table with one row a record; leave --count out")
    if file.exists() or file.is_symlink():
        raise SpecError(f"{str(file)!r} exists already; name another file")
    check_outside(file, "the file")


def _check_columns(source: Source, used: Sequence[Sequence[str]]) -> None:
    """Raise a TableError if a column is missing or the header looks like a record.

    The message never quotes a first line that is not a header.
    """
    if any(_is_number(name) for name in source.names):
        raise TableError(
            f"{source.subject} has a column whose name is a number; if its first line is a record, "
            f"put a header before it"
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


def _toml(text: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table_section(source: str, count: str | None, unit: str | None) -> str:
    lines = ["[table]", f"source = {_toml(source)}   # confidential"]
    if count is not None:
        lines.append(f"count  = {_toml(count)}   # the number of records of a row")
    elif unit is not None:
        lines.append(f"unit   = {_toml(unit)}   # who is protected, with all their records")
    else:
        lines += [
            '# count = "<a column>"   # the number of records of a row; default: 1',
            '# unit  = "<a column>"   # who is protected, if one person may have several records',
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
        f'#        or "table", if the codes in the table are public\n'
    )


MOST_WHOLE_CELLS = 1 << 27
"""Cells of a cube that are held in memory at once where a new file proposes it: 3 GB."""


def _areas(path: Path, columns: Sequence[str], table: Path) -> list[int] | None:
    """Return the number of areas of each level of a public list; None where there is none yet.

    The confidential table is none, whatever it is called.
    """
    if not path.is_file() or path.samefile(table):
        return None
    try:
        areas = Axis.from_frame("axis", read_areas(path, columns), columns)
    except TableError:  # which `plan` will explain
        return None
    return [areas.size(level) for level in range(areas.depth + 1)]


def _workload_sections(sizes: Sequence[list[int] | None]) -> list[str]:
    """Return ``[workload]`` with a cube over several axes, where its cells fit."""
    known = [size for size in sizes if size is not None]
    if len(sizes) < 2:
        return []
    if len(known) < len(sizes):
        why = 'every combination of levels; "chain" where the lists of areas are too long for it'
    elif _fits(known):
        why = 'every combination of levels; "chain": the axes in turns; or a list of those wanted'
    else:
        return []
    return [f'[workload]\ncuboids = "cube"   # {why}\n']


def _fits(sizes: Sequence[Sequence[int]]) -> bool:
    """Return whether the cells that a cube measures whole are few enough."""
    whole = prod(map(sum, sizes))
    if len(sizes) == 2 and prod(size[-1] for size in sizes) > FEW_LEAVES:
        whole -= prod(size[-1] for size in sizes)  # survivors alone
    return whole <= MOST_WHOLE_CELLS


def _measure(sizes: Sequence[list[int] | None]) -> str:
    """Return what is measured: all cells unless there are known to be too many.

    A cube over three axes and more measures all cells.
    """
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes) > 2 and _fits(known):
        return "all"
    return "survivors" if prod(size[-1] for size in known) > FEW_LEAVES else "all"


def _privacy_section(epsilon: str | None, delta: str, unit: str | None, most: int | None) -> str:
    given = "<smaller is more private; 1 is usual>" if epsilon is None else epsilon
    kept = _toml(f"<most records of one {unit}>") if most is None else str(most)
    records = "records to keep of each of them" if unit is not None else "records of one person"
    return (
        f"[privacy]\n"
        f'neighbours    = "add-remove"   # hides whether a person is in the table; "replace": '
        f"their values\n"
        f"contributions = {kept}   # the most {records}\n"
        f'mechanism     = "discrete-gaussian"\n'
        f"epsilon       = {_toml(given)}   # the promise\n"
        f"delta         = {_toml(delta)}   # well below 1 over the number of records\n"
    )


_END = """\
[allocation]
method     = "optimal"
objective  = "released"   # minimises the error after estimation
importance = "levels"     # all levels alike; without it all counts, so mostly the finest level

[estimate]
method  = "euclidean"
measure = "{measure}"   # "all": every possible cell; "survivors" where there are too many

[output]
directory = "out"        # is created when the release is complete; must not exist
"""
