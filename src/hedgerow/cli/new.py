"""The command `new`: a release file to fill in, from the column names of a table."""

import os
import re
import sys
import tomllib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hedgerow.cli.output_file import pairs
from hedgerow.cli.proposal.proposal import Proposer, check_no_record, with_product
from hedgerow.cli.proposal.proposed_axis import UNKNOWN_AXIS, ProposedAxis, toml
from hedgerow.cli.terminal import escape, say, stderr, stdout
from hedgerow.errors import SpecError, TableError, machine_errors
from hedgerow.limits import MOST_CELLS_PROPOSED
from hedgerow.plan.cuboids import All
from hedgerow.plan.defaults import (
    FEW_LEAVES,
    USUAL_ALLOCATION,
    USUAL_DELTA,
    USUAL_IMPORTANCE,
    measure_of,
)
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.release.directory.manifest import check_outside
from hedgerow.spec.toml_file import to_fill_in
from hedgerow.tables.lists.column_names import count_among, numbers_among, unit_among
from hedgerow.tables.lists.list_match import matches
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.tables.read import read_areas
from hedgerow.tables.sources.database import open_database
from hedgerow.tables.sources.files import share_files
from hedgerow.tables.sources.source import Source, describe_source, open_source
from hedgerow.text import TextByName, check_utf8

URL = r"[\w+]+:/"
"""How a database begins; a path keeps only one slash of a URL's two."""

_KEYS_OF_COLUMNS = ("levels", "columns", "product")
_DISTRIBUTION = """\
[allocation]
method = "distribution"   # minimises the error of cumulative counts

"""
_COUNTS = """\
[allocation]
method     = "{method}"
objective  = "{objective}"   # minimises the error after estimation
importance = "{importance}"     # all levels alike; without it all counts, so mostly the finest

[estimate]
method  = "euclidean"
measure = "{measure}"   # "all": every possible cell; "survivors" where there are more than 2²⁴

"""
_OUTPUT = """\
[output]
directory = "out"        # is created when the release is complete; must not exist

# [describe]             # for readers: shown on the page and in exports
# title = "…"            # what the table shows
# unit  = "…"            # what is counted, such as workers
"""


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
    said = pairs(axis or [], "--axis", "geography=state,county")
    lists = [_named_list(text, table) for text in public or []]
    for path in (table, *(path for _, path in lists)):
        check_utf8(os.path.relpath(path, file.parent), "a file of the release file", SpecError)
    taken = [column for column in (count, unit) if column is not None]
    with open_database() as db, open_source(db, table, describe_source(table, "the table")) as rows:
        _check_columns(rows, taken)
        axes = _propose(rows, said, lists, file.parent, table, taken)
    used = {*taken, *(axis.name for axis in axes)}
    used.update(*(axis.keys.get(key, ()) for axis in axes for key in _KEYS_OF_COLUMNS))
    others = [name for name in rows.names if name not in used]
    hints = numbers_among(others)
    many, who = (None, None) if taken else (count_among(others), unit_among(others))
    *sections, last = _sections_of(axes)
    text = "\n".join([
        f"# A release file for {toml(table.name)}.",
        f"# Next: hedgerow plan {toml(file.name)[1:-1]}\n",
        _table_section(os.path.relpath(table, file.parent), count, unit, who),
        *(axis.text for axis in axes),
        *map(_number_hint, hints),
        *sections,
        _privacy_section(epsilon, delta, unit, most),
        last,
    ])  # fmt: skip
    left = " Replace the placeholders in <…>." if to_fill_in(tomllib.loads(text)) else ""
    with machine_errors(f"cannot write {str(file)!r}"), file.open("xb") as written:
        written.write(text.encode(errors="backslashreplace"))
    say(f"Written: {file}, from the header of {table}.{left}")
    for one in axes:
        if one.reason:
            say(f"  {one.name}: {one.reason}")
    for column in hints:
        say(f"  {column}: a number? --axis {column}=LOW:HIGH makes it an axis")
    if many is not None:
        say(f"  {many}: a number of records? Set count = {toml(many)} in [table]")
    if who is not None:
        say(
            f"  {who}: one person, or other unit, in several rows? To protect each with all its "
            f"rows, set unit = {toml(who)} in [table] and contributions in [privacy] (or run this "
            f"again with --unit {who} --contributions N and another file name); without, each row "
            f"is protected by itself"
        )
    if sys.stderr.isatty():  # a table without a header has a record in its first line
        stderr.print(f"Its columns: {escape(', '.join(map(toml, rows.names)))}")
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
    said: TextByName,
    lists: Sequence[tuple[str | None, Path]],
    folder: Path,
    table: Path,
    taken: Sequence[str],
) -> Sequence[ProposedAxis]:
    """Return the axes that a user, a header and public lists speak of."""
    shapes = {path: ListShape(path, read_areas(path, None, numbers=True)) for _, path in lists}
    for path, shape in shapes.items():
        if shape.frame.is_empty():
            raise TableError(f"the list of areas {path} is empty; it needs one row an area")
    check_no_record(source, [*shapes.values()])
    named = {name: shapes[path] for name, path in lists if name is not None}
    if len(named) < sum(name is not None for name, _ in lists):
        raise SpecError("--list gives an axis twice; give it once")
    others = dict.fromkeys(shapes[path] for name, path in lists if name is None)
    left = matches([name for name in source.names if name not in taken], [*shapes.values()])
    axes = Proposer(source, [*shapes.values()], folder, left).axes(said, named, [*others])
    sized = [axis.sized(folder, table) for axis in axes]
    return with_product(sized, source.names, folder, table) or [UNKNOWN_AXIS]


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


def _table_section(source: str, count: str | None, unit: str | None, may_be: str | None) -> str:
    """Return ``[table]``.

    Args:
        source: the path of the table.
        count: the column of counts.
        unit: the column that tells who is protected.
        may_be: a column that is called like one that does.
    """
    if count is not None:
        rest = f"count  = {toml(count)}   # the number of records of a row\n"
    elif unit is not None:
        rest = f"unit   = {toml(unit)}   # who is protected, with all their records\n"
    else:
        rest = (
            f'# count = "<a column>"   # the number of records of a row; default: 1\n'
            f"# unit  = {toml(may_be or '<a column>')}   # who is protected, if one person may "
            f"have several records\n"
        )
    return f"[table]\nsource = {toml(source)}   # confidential\n{rest}"


def _number_hint(column: str) -> str:
    """Return the comment for a column that is called like a number."""
    return (
        f"# {column} is a number? As an axis of bins between public bounds:\n"
        f"# [[axis]]\n# name = {toml(column)}\n# low  = 0\n# high = 100\n# bins = 100\n"
    )


def _sections_of(axes: Sequence[ProposedAxis]) -> list[str]:
    """Return ``[workload]``, ``[allocation]``, ``[estimate]``, ``[output]``, ``[describe]``.

    A cube over several axes, where its cells fit. All its cells are measured unless there are known
    to be too many; a cube over three axes and more, and an axis beside a spine, measure all.
    """
    if len(axes) == 1 and axes[0].is_numeric:
        return [_DISTRIBUTION + _OUTPUT]
    sizes = [axis.sizes for axis in axes if axis.sizes is not None]
    are_known, leaves = len(sizes) == len(axes), prod(each[-1] for each in sizes)
    whole = prod(map(sum, sizes))
    if len(axes) == 2 and leaves > FEW_LEAVES:
        whole -= leaves  # survivors alone
    fits, sections = whole <= MOST_CELLS_PROPOSED, list[str]()
    if len(axes) > 1 and (fits or not are_known):
        other = '"chain" where the lists of areas are too long for it'
        if are_known:
            other = '"chain": the axes in turns; or a list of those wanted'
        text = f'cuboids = "cube"   # every combination of levels; {other}'
        sections.append(f"[workload]\n{text}\n")
    measure = measure_of(leaves)
    if (are_known and len(axes) > 2 and fits) or any("attribute" in axis.keys for axis in axes):
        measure = All()
    usual = USUAL_ALLOCATION
    given = {"objective": usual.objective, "importance": USUAL_IMPORTANCE.name}
    counts = _COUNTS.format(method=usual.name, measure=measure.name, **given)
    return [*sections, counts + _OUTPUT]


def _privacy_section(epsilon: str | None, delta: str, unit: str | None, most: int | None) -> str:
    """Return ``[privacy]``."""
    given = "<smaller is more private; 1 is usual>" if epsilon is None else epsilon
    kept = toml(f"<most records of one {unit}>" if most is None else most)
    if unit is None:
        who, meant = "a record", "the most records of one person; 1 protects each record by itself"
    else:
        who, meant = "a unit, with its records,", "the most records to keep of each of them"
    return (
        f"[privacy]\n"
        f'neighbours    = "add-remove"   # hides whether {who} is in the table; "replace": '
        f"what is said of it\n"
        f"contributions = {kept}   # {meant}\n"
        f'mechanism     = "discrete-gaussian"\n'
        f"epsilon       = {toml(given)}   # the promise\n"
        f"delta         = {toml(delta)}   # well below 1 over the number of records\n"
    )
