"""The command `new`: a release file to fill in, from the column names of a table."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hedgerow.cli.output_file import pairs
from hedgerow.cli.proposal.proposal import (
    AxisWords,
    Proposed,
    Proposer,
    check_no_record,
    left_over,
    numbers_among,
    with_product,
)
from hedgerow.cli.proposal.proposed_axis import ProposedAxis, toml
from hedgerow.cli.proposal.template import (
    UNKNOWN_AXIS,
    last_sections,
    number_hint,
    privacy_section,
    table_section,
    workload_sections,
)
from hedgerow.cli.terminal import escape, say, stderr, stdout
from hedgerow.errors import SpecError, TableError, machine_errors
from hedgerow.plan.defaults import USUAL_DELTA
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.release.directory.manifest import check_outside
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.column_names import count_among, unit_among
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.tables.read import read_areas
from hedgerow.tables.sources.database import open_database
from hedgerow.tables.sources.files import share_files
from hedgerow.tables.sources.source import Source, describe_source, open_source
from hedgerow.text import check_utf8

URL = r"[\w+]+:/"
"""How a database begins; a path keeps only one slash of a URL's two."""


def new(  # noqa: PLR0913, PLR0917 - the options of a command
    table: Annotated[
        Path, Argument(metavar="TABLE", help="The confidential table: CSV or Parquet.")
    ],
    file: Annotated[Path, Argument(metavar="FILE", help="Where the release file goes.")] = Path(
        "release.toml"
    ),
    axis: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=COLUMN,…",
            help="A hierarchy and its columns, coarsest first: geography=state,county. With a "
            "--list, one column of the table or columns of the list, or numbers: place=2,5,11 for "
            "the first characters of a code, square=10000,1000 for squares. age=0:100 is a numeric "
            "column from 0 to 100. Repeatable.",
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        Option(
            "--list",
            metavar="[NAME=]FILE",
            help="A public list of codes; axes are proposed from its columns and codes. With a "
            "name, that of its axis. Repeatable.",
        ),
    ] = None,
    count: Annotated[
        str | None, Option(metavar="COLUMN", help="The number of records of each row.")
    ] = None,
    unit: Annotated[
        str | None, Option(metavar="COLUMN", help="Who is protected, such as person_id.")
    ] = None,
    epsilon: Annotated[str | None, Option(help="The ε of the privacy promise.")] = None,
    delta: Annotated[str, Option(help="The δ of the privacy promise.")] = USUAL_DELTA,
    contributions: Annotated[
        int | None, Option(metavar="N", help="The most records of one --unit to keep.")
    ] = None,
) -> None:
    """Write a release file to fill in, from the header of a table and public lists.

    No value of the table is read.
    """
    most = contributions if contributions is not None or unit is not None else 1
    _check(table, file, count, unit)
    EpsilonDelta("1" if epsilon is None else epsilon, delta)
    if most is not None:
        AddRemove(most, unit=unit)
    given = pairs(axis or [], "--axis", "geography=state,county")
    said = [AxisWords(name, tuple(columns.split(","))) for name, columns in given.items()]
    lists = [_named_list(text, table) for text in public or []]
    for path in (table, *(path for _, path in lists)):
        check_utf8(os.path.relpath(path, file.parent), "a file of the release file", SpecError)
    subject = describe_source(table, "the table")
    taken = [column for column in (count, unit) if column is not None]
    with open_database() as db, open_source(db, table, subject) as source:
        _check_columns(source, taken)
        axes = _propose(source, said, lists, file.parent, taken)
    sizes = [_sizes(one, file.parent, table) for one in axes]
    others = left_over(source.names, taken, axes)
    hints = numbers_among(others)
    many, who = (None, None) if taken else (count_among(others), unit_among(others))
    head = f"# A release file for {toml(table.name)}."
    text = "\n".join([
        f"{head}\n# Next: hedgerow plan {toml(file.name)[1:-1]}\n",
        table_section(os.path.relpath(table, file.parent), count, unit, may_be=who),
        *(one.text for one in axes or [AxisWords(*UNKNOWN_AXIS)]),
        *map(number_hint, hints),
        *workload_sections(sizes),
        privacy_section(epsilon, delta, unit, most),
        last_sections(
            sizes,
            is_distribution=len(axes) == 1 and "bins" in axes[0].keys,
            has_attributes=any("attribute" in one.keys for one in axes),
        ),
    ])  # fmt: skip
    with machine_errors(f"cannot write {str(file)!r}"), file.open("xb") as written:
        written.write(text.encode(errors="backslashreplace"))
    proposed = [one for one in axes if isinstance(one, ProposedAxis)]
    is_whole = axes and epsilon is not None and most is not None
    is_whole = is_whole and all(one.is_whole for one in proposed)
    left = "" if is_whole else " Replace the placeholders in <…>."
    say(f"Written: {file}, from the header of {table}.{left}")
    for one in proposed:
        say(f"  {one.name}: {one.reason}")
    for column in hints:
        name = escape(column)
        stdout.print(f"  {name}: a number? --axis {name}=LOW:HIGH makes it an axis")
    if many is not None:
        say(f"  {many}: a number of records? Set count = {toml(many)} in [table]")
    if who is not None:
        question = (
            f"  {who}: one person, or other unit, in several rows? To protect each with all its "
            f"rows, set unit = {toml(who)} in [table] and contributions in [privacy] (or run this "
            f"again with --unit {who} --contributions N and another file name); without, each row "
            f"is protected by itself"
        )
        say(question)
    if sys.stderr.isatty():  # a table without a header has a record in its first line
        stderr.print(f"Its columns: {escape(', '.join(map(toml, source.names)))}")
    stdout.print(f"Next: [bold]hedgerow plan {escape(file)}[/bold]")


def _check(table: Path, file: Path, count: str | None, unit: str | None) -> None:
    """Raise unless the table can be a file, and the release file is new and outside releases."""
    if re.match(URL, str(table)):
        raise SpecError(
            "hedgerow new reads the header of a CSV or Parquet file; for a database give one, such "
            "as an empty table with the query's columns, then write its URL as source and add query"
        )
    if count is not None and unit is not None:
        raise SpecError("--unit needs a table with one row a record; leave --count out")
    if file.exists() or file.is_symlink():
        raise SpecError(f"{str(file)!r} exists already; name another file, or remove it")
    if not file.parent.is_dir():
        raise SpecError(f"{str(file)!r}: the directory does not exist; create it")
    check_outside(file, "the file")


def _named_list(text: str, table: Path) -> tuple[str | None, Path]:
    """Return the axis and the file of ``--list``, which is no part of the table."""
    before, equals, after = text.partition("=")
    name, path = (before, Path(after)) if equals and not Path(text).exists() else (None, Path(text))
    if re.match(URL, str(path)):
        raise SpecError("--list names a file, not a database; export the list first")
    if share_files(path, table):
        raise SpecError(
            "--list is the confidential table itself; name a public list, with one row an area"
        )
    return name, path


def _propose(
    source: Source,
    said: Sequence[AxisWords],
    lists: Sequence[tuple[str | None, Path]],
    folder: Path,
    taken: Sequence[str],
) -> list[Proposed]:
    """Return the axes that a user, a header and public lists speak of."""
    shapes = {path: ListShape(path, read_areas(path, None, numbers=True)) for _, path in lists}
    for path, shape in shapes.items():
        if shape.frame.is_empty():
            raise TableError(f"the list of areas {path} is empty; it needs one row an area")
    check_no_record(source, [*shapes.values()])
    proposer = Proposer(source, [*shapes.values()], folder, taken)
    named = {name: shapes[path] for name, path in lists if name is not None}
    if len(named) < sum(name is not None for name, _ in lists):
        raise SpecError("--list gives an axis twice; give it once")
    others = dict.fromkeys(shapes[path] for name, path in lists if name is None)
    axes = proposer.axes(said, named, [*others])
    sized = [one.sized(folder) if isinstance(one, ProposedAxis) else one for one in axes]
    return with_product(sized, source.names, folder)


def _check_columns(source: Source, used: Sequence[str]) -> None:
    """Raise a TableError if a column is missing or the header looks like a record.

    The message never quotes a first line that is not a header.
    """
    if any(map(_is_number, source.names)):
        raise TableError(
            f"{source.subject} has a column whose name is a number; if its first line is a record, "
            f"put a header before it"
        )
    for column in used:
        source.place(column)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _sizes(one: Proposed, folder: Path, table: Path) -> list[int] | None:
    """Return the number of areas of each level of an axis; None where there is no list yet.

    The confidential table is none, whatever it is called.
    """
    if isinstance(one, ProposedAxis):
        return one.sizes
    path = folder / f"{one.name}.csv"
    if not path.is_file() or path.samefile(table):
        return None
    try:
        areas = Axis.from_frame("axis", read_areas(path, one.words), one.words)
    except TableError:  # which `plan` will explain
        return None
    return [areas.size(level) for level in range(areas.depth + 1)]
