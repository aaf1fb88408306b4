"""A confidential table → leaf counts: found, checked and grouped in one go."""

from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.tables.bounding import bounded_sql, check_units
from hedgerow.tables.database import explained, open_database, private_folder
from hedgerow.tables.domain import CONTRADICTION, OUTSIDE, Match, axis_columns, match_axis, refuse
from hedgerow.tables.order import Codes
from hedgerow.tables.ordered import Ordering
from hedgerow.tables.query import Query
from hedgerow.tables.sources import (
    Source,
    check_codes,
    code_sql,
    described,
    load,
    opened,
    read_areas,
)
from hedgerow.tables.tree import Tree
from hedgerow.tables.whole import whole_count

__all__ = ["Query", "read_areas", "read_leaves"]

Unlisted = tuple[int | None, ...]
Leaves = tuple[Codes, NDArray[np.int64], int | None, Unlisted]


def read_leaves(
    tree: Tree,
    table: Any,
    *,
    count: str | None,
    unit: str | None,
    contributions: int,
    memory: int | None = None,
) -> Leaves:
    """The non-zero leaves of a table, each once, in tree order.

    A record's codes on an axis must be a path of the axis's public list. Where a branch of the
    list stops early, so may the record's codes. A record outside the list goes to the axis's
    ``not_stated`` leaf, if it has one.

    Args:
        tree: the tree. Of each axis the table has all columns, or the deepest alone.
        table: a CSV file (also ``.csv.gz``), a Parquet file, a folder or glob of Parquet files; a
            `Query`; a data frame with the Arrow stream interface, or a dict of columns.
        count: the column with the number of records of a row; None: a row is a record.
        unit: the column that names a record's unit of privacy; None: nothing is bounded.
        contributions: the most records kept of one unit (see `bounding`).
        memory: bytes for reading, half of them for the database before it spills to disk; the leaf
            counts then lie on disk as well. Not given: half of the machine's, and in memory.

    Returns:
        codes: one int32 array (leaves) an axis: leaf numbers; values: int64 (leaves), records;
        before: where contributions are bounded, how many records there were, else None;
        unlisted: of each axis with a ``not_stated`` leaf, how many of the records counted there
        have a code that is not in the list, or none; None of the other axes.

    Raises:
        TableError: no table; a missing column; a count that is no whole number in 0..2⁶⁰; a
            record outside the list, or in contradiction to it; a record without a unit.
        MachineError: out of memory or disk.
    """
    if unit is not None and count is not None:
        raise TableError("unit needs one row a record; leave count out")
    if unit is not None and contributions < 1:
        raise TableError(f"contributions must be at least 1, got {contributions}")
    what = described(table, "the table")
    limit = None if memory is None else memory // 2
    with private_folder() as folder, open_database(limit) as db, opened(db, table, what) as source:
        matches = _prepare(db, tree, source, count, unit)
        with explained(what, "cannot be read to its end"):
            records, before = _records(db, matches, unit, contributions, what)
            ordering = Ordering(
                tree,
                what if count is None else f"{what}: column {count!r}",
                grouped=count is None or _rows(db) > tree.leaves,
                folder=None if memory is None else folder,
            )
            flags = _flags(matches)
            (codes, values), lowest, flagged = ordering.leaves(db, records, [*flags.values()])
            _refuse_lost(db, matches, lowest, what)
            unlisted = dict(zip(flags, flagged, strict=True))
            return codes, values, before, tuple(unlisted.get(a) for a in range(len(matches)))


def _prepare(
    db: duckdb.DuckDBPyConnection, tree: Tree, source: Source, count: str | None, unit: str | None
) -> list[Match]:
    """Make the relation ``codes``: text codes c0, c1, …, the count ``n``, the unit ``unit``."""
    chosen = [axis_columns(axis, source) for axis in tree.axes]
    columns = [column for of_axis in chosen for column in of_axis]
    extra = [column for column in (count, unit) if column is not None]
    if extra and extra[0] in columns:
        raise TableError(f"column {extra[0]!r} of {source.what} is already a level of an axis")
    kinds = load(db, source, [*columns, *extra])
    n, who = "1", "NULL"
    coded = columns if count is not None else [*columns, *extra]
    for column, kind in zip(coded, kinds, strict=False):
        check_codes(source, column, kind)
    if count is not None:
        what = f"{source.what}: column {count!r}"
        n = whole_count(db, f"c{len(columns)}", kinds[-1], what=what)
    if unit is not None:
        who = code_sql(len(columns))
    texts = "".join(f"{code_sql(i)} AS c{i}, " for i in range(len(columns)))
    with explained(source.what, "cannot be read to its end"):
        db.execute(f"CREATE TEMP VIEW codes AS SELECT {texts}{n} AS n, {who} AS unit FROM loaded")
        matches, first = [], 0
        for number, (axis, of_axis) in enumerate(zip(tree.axes, chosen, strict=True)):
            matches.append(match_axis(db, number, axis, of_axis, first))
            first += len(of_axis)
    return matches


def _rows(db: duckdb.DuckDBPyConnection) -> int:
    ((rows,),) = db.execute("SELECT COUNT(*) FROM loaded").fetchall()
    return int(rows)


def _records(
    db: duckdb.DuckDBPyConnection,
    matches: list[Match],
    unit: str | None,
    contributions: int,
    what: str,
) -> tuple[str, int | None]:
    """The SELECT of the leaf numbers and counts of all records, or of those that are kept.

    With it, where contributions are bounded, the number of records before.
    """
    names = [f"leaf{i}" for i in range(len(matches))]
    flags = _flags(matches)
    told = [f"{match.leaf} AS {name}" for match, name in zip(matches, names, strict=True)]
    told += [f"{matches[a].unlisted} AS {flag}" for a, flag in flags.items()]
    found = ", ".join(told)
    records = f"SELECT {found}, n, unit FROM codes {' '.join(match.join for match in matches)}"
    before = None
    if unit is not None:  # every record is checked, also those that bounding drops
        db.execute(f"CREATE TEMP TABLE records AS {records}")
        least = ", ".join(f"min({name})" for name in names)
        ((before, *lowest),) = db.execute(f"SELECT count(*), {least} FROM records").fetchall()
        _refuse_lost(db, matches, [leaf or 0 for leaf in lowest], what)
        check_units(db, f"{what}: column {unit!r}")
        records = f"SELECT *, 1 AS n FROM ({bounded_sql(names, contributions, [*flags.values()])})"
    return records, before


def _flags(matches: list[Match]) -> dict[int, str]:
    """Of each axis with a ``not_stated`` leaf the column that says who is there unlisted."""
    return {a: f"unlisted{a}" for a, match in enumerate(matches) if match.unlisted is not None}


def _refuse_lost(
    db: duckdb.DuckDBPyConnection, matches: list[Match], lowest: list[int], what: str
) -> None:
    for match, least in zip(matches, lowest, strict=True):
        if least < 0:
            refuse(db, match, CONTRADICTION if least == CONTRADICTION else OUTSIDE, what)
