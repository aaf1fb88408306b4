"""Where a table comes from: files, data frames, queries; all become one relation of text codes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.errors import TableError, did_you_mean, of_public_table
from hedgerow.tables.database import (
    Query,
    RunningQuery,
    open_database,
    run_query,
    sql_identifier,
    translate_duckdb_errors,
)
from hedgerow.tables.files import Relation, open_file

# The door for data frames: anything with the Arrow stream interface, as Polars.

CODE_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)


def as_arrow(frame: Any, subject: str) -> pa.Table:
    """Return the frame as an Arrow table."""
    if isinstance(frame, pl.LazyFrame):
        frame = _collected(frame, subject)
    if isinstance(frame, pa.Table):
        return frame
    if not isinstance(frame, dict) and not hasattr(frame, "__arrow_c_stream__"):
        raise TableError(
            f"{subject} must be a data frame with the Arrow stream interface (Polars, pandas, "
            f"PyArrow, DuckDB), a dict of columns or a file, got {type(frame).__name__}"
        )
    try:
        if isinstance(frame, dict):
            return pa.table(frame)
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(
            f"{subject} is no table: its columns must have one length, and each a type of Arrow's",
            confidential=str(error),
        ) from None


def refused_codes(subject: str, column: str, kind: str) -> str:
    """Return the sentence for a column that cannot hold codes."""
    return (
        f"{subject} column {column!r} holds {kind}; codes must be text or whole numbers "
        f"(write them as text, so that 01001 keeps its zero)"
    )


def _collected(frame: pl.LazyFrame, subject: str) -> pl.DataFrame:
    try:
        return frame.collect()
    except pl.exceptions.PolarsError as error:
        failure = TableError(f"{subject} cannot be computed", confidential=str(error))
    raise failure


def as_codes(frame: pl.DataFrame, columns: list[str], subject: str) -> pl.DataFrame:
    """Return the named columns as text codes; an empty text counts as missing."""
    for column in columns:
        if column not in frame.columns:
            names = ", ".join(frame.columns)
            raise TableError(f"{subject} has no column {column!r}; it has {names}")
        kind = frame.schema[column]
        whole = kind.is_integer() or (isinstance(kind, pl.Decimal) and kind.scale == 0)
        if not (whole or kind in CODE_TYPES):
            raise TableError(refused_codes(subject, column, str(kind)))
    texts = [pl.col(column).cast(pl.String) for column in columns]
    return frame.select(pl.when(text != "").then(text) for text in texts)


def in_order(frame: pl.DataFrame) -> bool:
    """Return whether the rows of text codes ascend, compared by the first column first.

    Where a code is missing the answer may be False for rows that ascend.
    """
    tied = np.ones(max(len(frame) - 1, 0), dtype=bool)
    for column in frame:
        upper, lower = column[:-1], column[1:]
        if (tied & (upper > lower).fill_null(value=True).to_numpy()).any():
            return False
        tied &= upper.eq_missing(lower).to_numpy()
    return True


SQL_CODE_TYPES = {"VARCHAR", "BOOLEAN", "DATE", "UUID", '"NULL"'}


def is_file(source: Any) -> bool:
    """Return whether a source is a path."""
    return isinstance(source, str | PathLike)


def describe_source(source: Any, role: str) -> str:
    """Return how messages name a source: ``the table trips.csv``."""
    if isinstance(source, Query):
        return f"{role} at {source.place}"
    if isinstance(source, str) and "://" in source:  # it may hold a password: never shown
        raise TableError(f"{role} is a database URL; it needs a query: Query(url, sql)")
    return f"{role} {source}" if is_file(source) else role


@dataclass(frozen=True)
class Source:
    """A table whose columns are known.

    Attributes:
        subject: how messages name it.
        names: its columns.
        load: makes the relation ``loaded`` with some columns, by place, called c0, c1, ….
        fractional: columns that hold floats at their origin, though they are loaded as text.
        is_public: it is a public list of areas, no confidential table.
    """

    subject: str
    names: tuple[str, ...]
    load: Callable[[list[int]], None]
    fractional: frozenset[str] = frozenset()
    is_public: bool = False

    def place(self, column: str) -> int:
        """Return the place of a column."""
        times = self.names.count(column)
        if times > 1:
            raise TableError(f"{self.subject} has {times} columns called {column!r}; rename one")
        if not times:
            # A CSV file without a header shows a record here. A column that is called the same but
            # for capitals and gaps is told of all the same: it says no more than the name given.
            columns = (
                f"its columns are {', '.join(self.names)[:500]}{did_you_mean(column, self.names)}"
            )
            same = [name for name in self.names if _letters(name) == _letters(column)]
            suggestion = did_you_mean(column, self.names if self.is_public else same)
            raise TableError(
                f"{self.subject} has no column {column!r}{suggestion}", confidential=columns
            )
        return self.names.index(column)


def _letters(name: str) -> str:
    """Return a name without capitals and gaps."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@contextmanager
def open_source(db: duckdb.DuckDBPyConnection, source: Any, subject: str) -> Iterator[Source]:
    """Open a source for as long as its files and connections are needed."""
    if isinstance(source, Query):
        with run_query(source, subject) as query:
            names = tuple(query.schema.names)
            fractional = frozenset(f.name for f in query.schema if pa.types.is_floating(f.type))
            yield Source(subject, names, lambda places: _load_query(db, query, places), fractional)
    elif is_file(source):
        file = open_file(db, Path(source), subject)
        yield Source(subject, file.names, lambda places: _load_file(db, file, places, subject))
    else:
        table = as_arrow(source, subject)
        names = tuple(table.column_names)
        yield Source(subject, names, lambda places: _load_frame(db, table, places, subject))


def _load_file(
    db: duckdb.DuckDBPyConnection, file: Relation, places: list[int], subject: str
) -> None:
    chosen = ", ".join(f"{file.fields[place]} AS c{i}" for i, place in enumerate(places))
    kind = "VIEW" if file.repeatable else "TABLE"
    with translate_duckdb_errors(subject, file.fault):
        db.execute(f"CREATE TEMP {kind} loaded AS SELECT {chosen} FROM {file.sql}")


def _load_frame(
    db: duckdb.DuckDBPyConnection, table: pa.Table, places: list[int], subject: str
) -> None:
    chosen = table.select(places).rename_columns([f"c{i}" for i in range(len(places))])
    with translate_duckdb_errors(subject, "has a column of a type that cannot be read"):
        db.register("loaded", chosen)
        db.execute("DESCRIBE loaded")


def _load_query(db: duckdb.DuckDBPyConnection, query: RunningQuery, places: list[int]) -> None:
    with (
        query.rows(places) as reader,
        translate_duckdb_errors(query.subject, "broke off the query"),
    ):
        db.register("arriving", reader)
        db.execute("CREATE TEMP TABLE loaded AS FROM arriving")
        db.unregister("arriving")


def load(db: duckdb.DuckDBPyConnection, source: Source, columns: Sequence[str]) -> list[str]:
    """Return the types of some columns, which are now ``loaded`` as c0, c1, …."""
    source.load([source.place(column) for column in columns])
    return [row[1] for row in db.execute("DESCRIBE loaded").fetchall()]


def check_codes(source: Source, column: str, kind: str) -> None:
    """Raise unless a column can hold codes, given its type in DuckDB."""
    whole = kind in SQL_CODE_TYPES or kind.endswith(("INT", "INTEGER"))
    if column in source.fractional or not (whole or kind.endswith(",0)") or kind[:4] == "ENUM"):
        shown = "fractions" if column in source.fractional else kind
        raise TableError(refused_codes(source.subject, column, shown))


def is_number(kind: str) -> bool:
    """Return whether a type in DuckDB is one of numbers."""
    return kind.startswith("DECIMAL") or kind.endswith(("INT", "INTEGER", "DOUBLE", "FLOAT"))


def code_sql(place: int) -> str:
    """Return column ``place`` of ``loaded`` as text; an empty text counts as missing."""
    return f"NULLIF(CAST(c{place} AS VARCHAR), '')"


Choice = Callable[[Sequence[str]], Sequence[str]]
"""What chooses columns from the names of all."""


def read_areas(
    source: Any,
    columns: Sequence[str] | Choice | None,
    *,
    repeated: bool = False,
    numbers: bool = False,
    role: str = "the list of areas",
) -> pl.DataFrame:
    """Read a public list of areas: the named columns, as text (``01001`` keeps its zero).

    Args:
        source: a CSV or Parquet file, a `Query`, or a data frame.
        columns: what to read, or what chooses it from the names of all columns; None: all.
        repeated: the source is a table of records; each combination of codes is wanted once.
        numbers: fractions are read, too, as text.
        role: what messages call it.
    """
    if repeated:  # of a table that may be confidential
        return _listed(source, columns, role, repeated=True, numbers=numbers)
    with of_public_table():
        return _listed(source, columns, role, repeated=False, numbers=numbers)


def _listed(
    source: Any,
    columns: Sequence[str] | Choice | None,
    role: str,
    *,
    repeated: bool,
    numbers: bool,
) -> pl.DataFrame:
    subject = describe_source(source, role)
    with open_database() as db, open_source(db, source, subject) as source_opened:
        areas = replace(source_opened, is_public=not repeated)
        if columns is None or callable(columns):
            columns = areas.names if columns is None else columns(areas.names)
        kinds = load(db, areas, columns)
        for column, kind in zip(columns, kinds, strict=True):
            if not (numbers and is_number(kind)):
                check_codes(areas, column, kind)
        texts = ", ".join(
            f"{code_sql(i)} AS {sql_identifier(name)}" for i, name in enumerate(columns)
        )
        with translate_duckdb_errors(subject, "is no table that can be read to its end"):
            if not repeated:  # a list mostly stands in order as it is
                db.execute("SET preserve_insertion_order = true")
                listed = pl.DataFrame(db.sql(f"SELECT {texts} FROM loaded").to_arrow_table())
                if in_order(listed):
                    return listed
                del listed
            # sorted here, where it is fastest: an axis is made from sorted paths
            distinct = "DISTINCT" if repeated else ""
            ordered = db.sql(f"SELECT {distinct} {texts} FROM loaded ORDER BY ALL")
            return pl.DataFrame(ordered.to_arrow_table())
