"""The command `new`: a release file to fill in, from the column names of a table."""

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hedgerow.cli.output_file import check_place, pairs
from hedgerow.cli.proposal.proposal import Proposer, with_product
from hedgerow.cli.proposal.proposed_axis import UNKNOWN_AXIS, ProposedAxis
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
from hedgerow.spec.toml_file import to_fill_in, toml
from hedgerow.tables.lists.column_names import count_among, numbers_among, unit_among
from hedgerow.tables.lists.list_match import is_header, matches
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.tables.read import read_areas
from hedgerow.tables.sources.database import open_database
from hedgerow.tables.sources.files import share_files
from hedgerow.tables.sources.source import Source, describe_source, open_source
from hedgerow.text import TextByName, check_utf8

URL = r"[\w+]+:/"
"""How a database begins; a path keeps only one slash of a URL's two."""

_FILE = """\
# A release file for {table}.
# Next: hedgerow plan {next}

[table]
source = {source}   # confidential
{counted}
{axes}{workload}[privacy]
neighbours    = "add-remove"   # hides whether {who} is in the table; "replace": what is said of it
contributions = {most}   # {kept}
mechanism     = "discrete-gaussian"
epsilon       = {epsilon}   # the promise
delta         = {delta}   # well below 1 over the number of records

{estimated}[output]
directory = "out"        # is created when the release is complete; must not exist

# [describe]             # for readers: shown on the page and in exports
# title = "…"            # what the table shows
# unit  = "…"            # what is counted, such as workers
"""
_COUNT = "count  = {}   # the number of records of a row\n"
_UNIT = "unit   = {}   # who is protected, with all their records\n"
_NEITHER = """\
# count = "<a column>"   # the number of records of a row; default: 1
# unit  = {}   # who is protected, if one person may have several records
"""
_HINT = """\
# {} is a number? As an axis of bins between public bounds:
# [[axis]]
# name = {}
# low  = 0
# high = 100
# bins = 100

"""
_CUBE = """\
[workload]
cuboids = "cube"   # every combination of levels; "chain"{}

"""
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
    """Write a release file to fill in, from a table's header.

    Public lists that are named are read whole, and no value of the table.
    """
    most = contributions if contributions is not None or unit is not None else 1
    if re.match(URL, str(table)):
        raise SpecError(
            "hedgerow new reads the header of a CSV or Parquet file; for a database give one, such "
            "as an empty table with the query's columns, then write its URL as source and add query"
        )
    if count is not None and unit is not None:
        raise SpecError("--unit needs a table with one row a record; leave --count out")
    check_place(file, option="FILE")
    EpsilonDelta(epsilon or "1", delta)
    if most is not None:
        AddRemove(most, unit=unit)
    said = pairs(axis or [], "--axis", "geography=state,county")
    lists = [_named_list(text, table) for text in public or []]
    for path in (table, *(path for _, path in lists)):
        check_utf8(os.path.relpath(path, file.parent), "a file of the release file", SpecError)
    taken = [column for column in (count, unit) if column is not None]
    with open_database() as db, open_source(db, table, describe_source(table, "the table")) as rows:
        axes = _propose(rows, said, lists, file.parent, table, taken)
    used = {*taken, *(one.name for one in axes)}
    for one in axes:
        used.update(*(one.keys.get(key, ()) for key in ("levels", "columns", "product")))
    others = [name for name in rows.names if name not in used]
    hints = numbers_among(others)
    may_count, may_be = (None, None) if taken else (count_among(others), unit_among(others))
    counted = _NEITHER if not taken else _UNIT if count is None else _COUNT
    who = "a record", "the most records of one person; 1 protects each record by itself"
    if unit is not None:
        who = "a unit, with its records,", "the most records to keep of each of them"
    workload, estimated = _sections(axes)
    text = _FILE.format(
        table=toml(table.name),
        next=toml(file.name)[1:-1],
        source=toml(os.path.relpath(table, file.parent)),
        counted=counted.format(toml(count or unit or may_be or "<a column>")),
        axes="".join([f"{one.text}\n" for one in axes] + [_HINT.format(c, toml(c)) for c in hints]),
        workload=workload,
        who=who[0],
        most=toml(f"<most records of one {unit}>" if most is None else most),
        kept=who[1],
        epsilon=toml(epsilon or "<smaller is more private; 1 is usual>"),
        delta=toml(delta),
        estimated=estimated,
    )
    left = " Replace the placeholders in <…>." if to_fill_in(tomllib.loads(text)) else ""
    with machine_errors(f"cannot write {str(file)!r}"), file.open("xb") as written:
        written.write(text.encode(errors="backslashreplace"))
    say(f"Written: {file}, from the header of {table}.{left}")
    for line in _notes(axes, hints, may_count, may_be):
        say(f"  {line}")
    if sys.stderr.isatty():  # a table without a header has a record in its first line
        stderr.print(f"Its columns: {escape(', '.join(map(toml, rows.names)))}")
    stdout.print(f"Next: [bold]hedgerow plan {escape(file)}[/bold]")


def _notes(
    axes: Sequence[ProposedAxis], numbers: Sequence[str], may_count: str | None, may_be: str | None
) -> Iterator[str]:
    """Yield how axes were found, and what else columns may be by their names."""
    for axis in axes:
        if axis.reason:
            yield f"{axis.name}: {axis.reason}"
    for column in numbers:
        yield f"{column}: a number? --axis {column}=LOW:HIGH makes it an axis"
    if may_count is not None:
        yield f"{may_count}: a number of records? Set count = {toml(may_count)} in [table]"
    if may_be is not None:
        yield (
            f"{may_be}: one person, or other unit, in several rows? To protect each with all its "
            f"rows, set unit = {toml(may_be)} in [table] and contributions in [privacy] (or run "
            f"this again with --unit {may_be} --contributions N and another file name); without, "
            f"each row is protected by itself"
        )


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
    if any(map(_is_number, source.names)):
        raise TableError(
            f"{source.subject} has a column whose name is a number; if its first line is a record, "
            f"put a header before it"
        )
    for column in taken:
        source.place(column)
    by_path = {path: ListShape(path, read_areas(path, None, numbers=True)) for _, path in lists}
    for path, shape in by_path.items():
        if shape.frame.is_empty():
            raise TableError(f"the list of areas {path} is empty; it needs one row an area")
    shapes = [*by_path.values()]
    _check_no_record(source, shapes)
    names = [name for name, _ in lists if name is not None]
    if len(set(names)) < len(names):
        raise SpecError("--list gives an axis twice; give it once")
    left = matches([name for name in source.names if name not in taken], shapes)
    named = {name: by_path[path] for name, path in lists if name is not None}
    others = dict.fromkeys(by_path[path] for name, path in lists if name is None)
    axes = Proposer(source, shapes, folder, left).axes(said, named, [*others])
    axes = sorted(axes, key=lambda axis: "bins" in axis.keys)  # numbers stand beside places
    sized = [axis.sized(folder, table) for axis in axes]
    return with_product(sized, source.names, folder, table) or [UNKNOWN_AXIS]


def _check_no_record(source: Source, shapes: Sequence[ListShape]) -> None:
    """Raise if the first line of the table has a code of a public list: it may be a record.

    A line with the very name of a list's column is a header all the same: ID is Indonesia, too.
    The message never quotes a first line that is not a header.
    """
    if any(is_header(source.names, shape) for shape in shapes):
        return
    for shape in shapes:
        codes = [c for c in shape.columns if c.kind != "name" and not shape.is_measure(c)]
        if any(shape.frame[column.text].is_in(list(source.names)).any() for column in codes):
            raise TableError(
                f"{source.subject} has a column that is called like a code of {shape.path.name}; "
                f"if its first line is a record, put a header before it, and if it is a header, "
                f"rename that column"
            )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _sections(axes: Sequence[ProposedAxis]) -> tuple[str, str]:
    """Return ``[workload]``, and ``[allocation]`` with ``[estimate]``.

    A cube over several axes, where its cells fit. All its cells are measured unless there are known
    to be too many; a cube over three axes and more, and an axis beside a spine, measure all.
    """
    if [*axes[0].keys][-1:] == ["bins"] and len(axes) == 1:
        return "", _DISTRIBUTION
    sizes = [axis.sizes for axis in axes if axis.sizes]
    are_known = len(sizes) == len(axes)
    leaves = prod(each[-1] for each in sizes)
    whole = prod(map(sum, sizes)) - (leaves if len(axes) == 2 and leaves > FEW_LEAVES else 0)
    fits = whole <= MOST_CELLS_PROPOSED
    workload = ""
    if len(axes) > 1 and (fits or not are_known):
        chain = ": the axes in turns; or a list of those wanted"
        workload = _CUBE.format(
            chain if are_known else " where the lists of areas are too long for it"
        )
    is_all = (are_known and len(axes) > 2 and fits) or any("attribute" in a.keys for a in axes)
    return workload, _COUNTS.format(
        method=USUAL_ALLOCATION.name,
        objective=USUAL_ALLOCATION.objective,
        importance=USUAL_IMPORTANCE.name,
        measure=(All() if is_all else measure_of(leaves)).name,
    )
