"""A confidential table → leaf counts: found, checked and grouped in one go."""

from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.tables.bounding import bounded_sql, check_units
from hedgerow.tables.database import explained, open_database
from hedgerow.tables.domain import CONTRADICTION, OUTSIDE, Match, axis_columns, match_axis, refuse
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
from hedgerow.tables.whole import MAX_TOTAL, check_total, whole_count

__all__ = ["Query", "read_areas", "read_leaves"]

Leaves = tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]


def read_leaves(
    tree: Tree, table: Any, *, count: str | None, unit: str | None, contributions: int
) -> Leaves:
    """The non-zero leaves of a table, each once, in any order.

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

    Returns:
        codes: one int32 array (leaves) an axis: leaf numbers; values: int64 (leaves), records.

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
    with open_database() as db, opened(db, table, what) as source:
        matches = _prepare(db, tree, source, count, unit)
        with explained(what, "cannot be read to its end"):
            leaves = _group(db, matches, unit, contributions, what)
    check_total(leaves[1], f"{what}: column {count!r}")
    return leaves


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


def _group(
    db: duckdb.DuckDBPyConnection,
    matches: list[Match],
    unit: str | None,
    contributions: int,
    what: str,
) -> Leaves:
    names = [f"leaf{i}" for i in range(len(matches))]
    found = ", ".join(f"{match.leaf} AS {name}" for match, name in zip(matches, names, strict=True))
    records = f"SELECT {found}, n, unit FROM codes {' '.join(match.join for match in matches)}"
    if unit is not None:  # every record is checked, also those that bounding drops
        db.execute(f"CREATE TEMP TABLE records AS {records}")
        least = ", ".join(f"min({name})" for name in names)
        (lowest,) = db.execute(f"SELECT {least} FROM records").fetchall()
        _refuse_lost(db, matches, [leaf or 0 for leaf in lowest], what)
        check_units(db, f"{what}: column {unit!r}")
        records = f"SELECT *, 1 AS n FROM ({bounded_sql(names, contributions)})"
    # a sum beyond the limit is cut to just beyond it, for `check_total` to see
    total = f"CAST(LEAST(SUM(n), {MAX_TOTAL + 1}) AS BIGINT) AS n"
    leaves = ", ".join(names)
    grouped = db.sql(f"SELECT {leaves}, {total} FROM ({records}) GROUP BY {leaves}")
    arrow = grouped.to_arrow_table()
    codes = tuple(arrow.column(name).to_numpy().astype(np.int32, copy=False) for name in names)
    values = arrow.column("n").to_numpy()
    _refuse_lost(db, matches, [int(code.min(initial=0)) for code in codes], what)
    some = values > 0
    return tuple(code[some] for code in codes), values[some]


def _refuse_lost(
    db: duckdb.DuckDBPyConnection, matches: list[Match], lowest: list[int], what: str
) -> None:
    for match, least in zip(matches, lowest, strict=True):
        if least < 0:
            refuse(db, match, CONTRADICTION if least == CONTRADICTION else OUTSIDE, what)
