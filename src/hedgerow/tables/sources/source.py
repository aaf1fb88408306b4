"""Where a table comes from: files, data frames, queries; all become one relation of text codes."""

import os
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.errors import (
    TableError,
    did_you_mean,
    of_public_table,
    outside_limits,
    reads_table,
)
from hedgerow.limits import MOST_COLUMNS_OF_A_LIST
from hedgerow.machine import usable_memory
from hedgerow.tables.codes.float_codes import (
    EXACT,
    FRACTIONS,
    fraction_sql,
    has_fraction,
    unpointed,
    whole_codes,
    whole_sql,
)
from hedgerow.tables.sources.database import (
    BROKE_OFF,
    Database,
    NoRoomError,
    OpenQuery,
    Query,
    open_database,
    run_query,
    sql_identifier,
    translate_duckdb_errors,
)
from hedgerow.tables.sources.files import Relation, open_file, without_mark
from hedgerow.tables.sources.odbc import is_connection
from hedgerow.tables.sources.statistics_file import StoredStatistics, is_statistics_file
from hedgerow.text import Texts

# The door for data frames: anything with the Arrow stream interface, as Polars.

CODE_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)


def as_arrow(frame: Any, subject: str) -> pa.Table:
    """Return the frame as an Arrow table, without the byte order mark of its first name."""
    table = _arrow(frame, subject)
    names = without_mark(table.column_names)
    return table if list(names) == table.column_names else table.rename_columns(names)


def _arrow(frame: Any, subject: str) -> pa.Table:
    if isinstance(frame, pl.LazyFrame):
        try:
            frame = frame.collect()
        except pl.exceptions.PolarsError as error:
            raise outside_limits(subject, "cannot be computed", str(error)) from None
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
    except (pa.ArrowException, duckdb.Error, OverflowError, TypeError, ValueError) as error:
        rule = "is no table: its columns must have one length, and each a type of Arrow's"
        raise outside_limits(subject, rule, str(error)) from None


CODES = "codes must be text or whole numbers (write them as text, so that 01001 keeps its zero)"


def refused_codes(subject: str, column: str, kind: str) -> str:
    """Return the sentence for a column that cannot hold codes."""
    return f"{subject} column {column!r} holds {kind}; {CODES}"


def as_codes(frame: pl.DataFrame, columns: list[str], subject: str) -> pl.DataFrame:
    """Return public columns as text codes; an empty text counts as missing, ``74.0`` as 74."""
    for column in columns:
        if column not in frame.columns:
            raise TableError(
                f"{subject} has no column {column!r}; it has {', '.join(frame.columns)}"
            )
        kind = frame.schema[column]
        whole = kind.is_integer() or (isinstance(kind, pl.Decimal) and kind.scale == 0)
        if not (whole or kind in CODE_TYPES or kind.is_float()):
            raise TableError(refused_codes(subject, column, str(kind)))
        if kind.is_float() and has_fraction(frame[column]):
            raise TableError(refused_codes(subject, column, FRACTIONS))
    texts = [
        pl.lit(whole_codes(frame[column])).alias(column)
        if frame.schema[column].is_float()
        else pl.col(column).cast(pl.String)
        for column in columns
    ]
    codes = frame.select(pl.when(text != "").then(text) for text in texts)
    return codes.with_columns(map(unpointed, codes))


def in_order(frame: pl.DataFrame) -> bool:
    """Return whether the rows of text codes ascend, compared by the first column first.

    Where a code is missing the answer may be False for rows that ascend.
    """
    tied = np.ones(max(len(frame) - 1, 0), dtype=bool)
    for column in frame:
        upper = column[:-1]
        lower = column[1:]
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
    if is_file(source) and is_connection(os.fspath(source)):
        raise TableError(
            f"{role} is a connection string of ODBC; write odbc:// before it, in a query: "
            f"Query(url, sql)"
        )
    return f"{role} {source}" if is_file(source) else role


BYTES_A_TEXT = 16
"""In memory, beside its letters."""
LONGEST_NUMBER = 40
"""Letters of a number, date or UUID that is made text, at most."""
SHORT = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME", "BOOLEAN", "UUID",
    "INTERVAL",
)  # fmt: skip
"""How the types begin whose values have so few letters; of others all letters are counted."""


@dataclass(frozen=True)
class Source:
    """A table whose columns are known.

    Attributes:
        subject: how messages name it.
        names: its columns.
        load: makes the relation ``loaded`` with some columns, by place, called c0, c1, ….
        floats: columns that hold floats at their origin, though they are loaded as text.
        is_public: it is a public list of areas, no confidential table.
    """

    subject: str
    names: Texts
    load: Callable[[list[int]], None]
    floats: frozenset[str] = frozenset()
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
def open_source(db: Database, source: Any, subject: str) -> Iterator[Source]:
    """Open a source for as long as its files and connections are needed.

    Another kind of file that DuckDB reads is a branch behind `open_file`. Any other is a branch
    here, and a class like `StoredStatistics`. A cluster reads its files itself
    (`hedgerow.spark.table.read_files`).
    """
    if isinstance(source, Query):
        with run_query(source, subject) as query:
            names = tuple(query.schema.names)
            floats = frozenset(f.name for f in query.schema if pa.types.is_floating(f.type))
            yield Source(subject, names, lambda places: _load_query(db, query, places), floats)
    elif is_file(source) and is_statistics_file(source):
        stored = StoredStatistics.open(Path(source).absolute(), subject)
        yield Source(subject, stored.names, lambda places: _load_chunks(db, stored, places))
    elif is_file(source):
        file = open_file(db, Path(source), subject)
        yield Source(subject, file.names, lambda places: _load_file(db, file, places, subject))
    else:
        table = as_arrow(source, subject)
        names = tuple(table.column_names)
        yield Source(subject, names, lambda places: _load_frame(db, table, places, subject))


@contextmanager
def open_table(
    source: Any, subject: str, *, public: bool, memory: int | None = None
) -> Iterator[tuple[Database, Source]]:
    """Open a source in a database of its own.

    What a public table holds has to fit the memory, however small its file is: nothing of it is
    written to temporary files, and a few bytes may unpack to what would fill any disk.

    Args:
        source: the table.
        subject: how messages name it.
        public: anyone may see it, so its errors name the rule that it breaks.
        memory: bytes for the database; not given: half of the machine's.

    Raises:
        TableError: a public table does not fit the memory, or it is no table.
    """
    try:
        with (
            of_public_table() if public else nullcontext(),
            open_database(memory, spills=not public) as db,
            open_source(db, source, subject) as opened,
        ):
            yield db, replace(opened, is_public=public)
    except NoRoomError:
        if public:
            raise _too_large(subject) from None
        raise


class TooLargeError(TableError):
    """A public table that does not fit the memory."""


def _too_large(subject: str) -> TooLargeError:
    usable = usable_memory()
    there = "" if usable is None else f", which has {usable / 1e9:,.1f} GB"
    return TooLargeError(
        f"{subject} takes more than a quarter of the memory of this machine{there}, the most that "
        f"a public table may; leave out rows and columns that are not needed (of a table of "
        f"records, count those of each cell), or use a larger machine"
    )


def check_fits(db: Database, kinds: Sequence[str], subject: str, relation: str = "loaded") -> None:
    """Raise unless the rows of a public table fit the memory beside the axes made from them.

    Of Parquet the number of rows is declared, in however many files; no page is read for it.

    Args:
        db: where they are loaded.
        kinds: the types of their columns, c0, c1, ….
        subject: how messages name the table.
        relation: that has the rows.

    Raises:
        TableError: they take more than a quarter of it.
    """
    usable = usable_memory()
    is_short = [kind.startswith(SHORT) and not kind.endswith("]") for kind in kinds]
    long = (i for i, short in enumerate(is_short) if not short)
    lengths = [f"coalesce(strlen(c{i}::VARCHAR), 0)" for i in long]
    size = 0
    a_row = len(kinds) * BYTES_A_TEXT + (len(kinds) - len(lengths)) * LONGEST_NUMBER
    for each in (f"count(*) * {a_row}", f"sum({' + '.join(lengths) or 0})"):
        with translate_duckdb_errors(subject, "is no table that can be read to its end"):
            rows = db.execute(f"SELECT {each} FROM {relation}").fetchall()
        size += rows[0][0] or 0
        if usable is not None and size > usable // 4:
            raise _too_large(subject)


def _load_file(db: Database, file: Relation, places: list[int], subject: str) -> None:
    chosen = ", ".join(f"{file.fields[place]} AS c{i}" for i, place in enumerate(places))
    kind = "VIEW" if file.repeatable else "TABLE"
    with translate_duckdb_errors(subject, file.fault):
        db.execute(f"CREATE TEMP {kind} loaded AS SELECT {chosen} FROM {file.sql}")


def _load_chunks(db: Database, file: StoredStatistics, places: list[int]) -> None:
    with translate_duckdb_errors(file.subject, "cannot be read to its end"):
        db.register("arriving", file.schema(places).empty_table())
        db.execute("CREATE TEMP TABLE loaded AS FROM arriving")
        for chunk in file.chunks(places):
            db.register("arriving", chunk)
            db.execute("INSERT INTO loaded FROM arriving")
        db.unregister("arriving")


def _load_frame(db: Database, table: pa.Table, places: list[int], subject: str) -> None:
    chosen = table.select(places).rename_columns([f"c{i}" for i in range(len(places))])
    with translate_duckdb_errors(subject, "has a column of a type that cannot be read"):
        db.register("loaded", chosen)
        db.execute("DESCRIBE loaded")


def _load_query(db: Database, query: OpenQuery, places: list[int]) -> None:
    with (
        query.rows(places) as reader,
        translate_duckdb_errors(query.subject, BROKE_OFF),
    ):
        db.register("arriving", reader)
        db.execute("CREATE TEMP TABLE loaded AS FROM arriving")
        db.unregister("arriving")


def load(db: Database, source: Source, columns: Sequence[str]) -> list[str]:
    """Return the types of some columns, which are now ``loaded`` as c0, c1, …."""
    source.load([source.place(column) for column in columns])
    return [row[1] for row in db.execute("DESCRIBE loaded").fetchall()]


def coded(
    db: Database,
    source: Source,
    columns: Sequence[str],
    kinds: Sequence[str],
    numbers: Container[str] = (),
) -> list[str]:
    """Return the SQL of columns c0, c1, … of ``loaded`` as text; an empty text counts as missing.

    Args:
        db: where they are loaded.
        source: whose columns they are.
        columns: what it calls them.
        kinds: their types in DuckDB.
        numbers: those that may hold fractions, for they are coordinates.

    Raises:
        TableError: a column that cannot hold codes: of another type, or with fractions.
    """
    return [
        _text(f"c{i}")
        if column in numbers
        and (kind.startswith("DECIMAL") or kind.endswith(("INT", "INTEGER", "DOUBLE", "FLOAT")))
        else _coded(db, source, column, f"c{i}", kind)
        for i, (column, kind) in enumerate(zip(columns, kinds, strict=True))
    ]


def _coded(db: Database, source: Source, column: str, field: str, kind: str) -> str:
    if column in source.floats or kind in EXACT:
        number = float_sql(source, column, field)
        fraction = fraction_sql(number, kind if kind in EXACT else "DOUBLE")
        with translate_duckdb_errors(source.subject, "cannot be read to its end"):
            rows = db.execute(f"SELECT 1 FROM loaded WHERE {fraction} LIMIT 1").fetchall()
        if rows:
            raise outside_limits(source.subject, f"holds {FRACTIONS}; {CODES}", column=column)
        return whole_sql(number)
    whole = kind.endswith(("INT", "INTEGER", ",0)"))
    if not (whole or kind in SQL_CODE_TYPES or kind[:4] == "ENUM"):
        raise TableError(refused_codes(source.subject, column, kind))
    return _text(field)


def _text(field: str) -> str:
    return f"NULLIF(CAST({field} AS VARCHAR), '')"


def float_sql(source: Source, column: str, field: str) -> str:
    """Return the SQL of a column as it is, or as the floats that it holds at its origin."""
    return f"TRY_CAST({field} AS DOUBLE)" if column in source.floats else field


Choice = Callable[[Sequence[str]], Sequence[str]]
"""What chooses columns from the names of all."""


def read_areas(
    source: Any,
    columns: Sequence[str] | Choice | None,
    *,
    repeated: bool = False,
    public: bool | None = None,
    numbers: bool | Container[str] | Choice = False,
    role: str = "the list of areas",
) -> pl.DataFrame:
    """Read a public list of areas: the named columns, as text (``01001`` keeps its zero).

    Args:
        source: a file, a `Query`, or a data frame.
        columns: what to read, or what chooses it from the names of all columns; None: all.
        repeated: the source is a table of records; each combination of codes is wanted once.
        public: anyone may see it. Not given: of a table of records, that is not so.
        numbers: whether, or in which columns, fractions are read, too, as text, or what chooses
            these from the names of all columns.
        role: what messages call it.
    """
    public = not repeated if public is None else public
    read = _listed if public else reads_table(_listed)
    return read(source, columns, role, repeated=repeated, public=public, numbers=numbers)


def _listed(
    source: Any,
    columns: Sequence[str] | Choice | None,
    role: str,
    *,
    repeated: bool,
    public: bool,
    numbers: bool | Container[str] | Choice,
) -> pl.DataFrame:
    subject = describe_source(source, role)
    with open_table(source, subject, public=public) as (db, areas):
        if columns is None or callable(columns):
            columns = areas.names if columns is None else columns(areas.names)
        if len(columns) > MOST_COLUMNS_OF_A_LIST:
            raise TableError(
                f"{subject} has {len(columns):,} columns, and {MOST_COLUMNS_OF_A_LIST} are the "
                f"most that are read; leave out those that tell no areas"
            )
        if callable(numbers):
            numbers = numbers(areas.names)
        kinds = load(db, areas, columns)
        if not repeated:
            check_fits(db, kinds, subject)
        if isinstance(numbers, bool):
            numbers = columns if numbers else ()
        codes = coded(db, areas, columns, kinds, numbers)
        texts = ", ".join(f"{code} AS c{i}" for i, code in enumerate(codes))
        named = ", ".join(f"c{i} AS {sql_identifier(name)}" for i, name in enumerate(columns))
        with translate_duckdb_errors(subject, "is no table that can be read to its end"):
            if repeated:
                db.execute(f"CREATE TEMP TABLE listed AS SELECT DISTINCT {texts} FROM loaded")
                if public:
                    check_fits(db, ["VARCHAR"] * len(codes), subject, "listed")
            else:  # a list mostly stands in order as it is
                db.execute("SET preserve_insertion_order = true")
                db.execute(f"CREATE TEMP VIEW listed AS SELECT {texts} FROM loaded")
                listed = _rows(db, f"SELECT {named} FROM listed")
                if in_order(listed):
                    return listed
                del listed
            # sorted here, where it is fastest: an axis is made from sorted paths
            return _rows(db, f"SELECT {named} FROM listed ORDER BY ALL")


def _rows(db: Database, select: str) -> pl.DataFrame:
    """Return rows of codes, without the ``.0`` that a whole column has."""
    rows = pl.DataFrame(db.sql(select).to_arrow_table())
    return rows.with_columns(map(unpointed, rows))
