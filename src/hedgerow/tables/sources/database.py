"""The private database: DuckDB in memory, where a confidential table is grouped once."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

import duckdb
import pyarrow as pa

from hedgerow.errors import (
    HedgerowError,
    MachineError,
    TableError,
    check_type,
    outside_limits,
    shorten,
)
from hedgerow.kernels import core_count
from hedgerow.machine import library, usable_memory
from hedgerow.tables.sources.odbc import SECRET, OdbcRows, secrets_of, shown_connection
from hedgerow.tables.sources.one_select import ANY, POSTGRESQL, SQLITE, one_select

Database = duckdb.DuckDBPyConnection
"""DuckDB in memory."""

NOT_UTF8 = "is not UTF-8 text (Latin-1 or Windows-1252, perhaps); save it as UTF-8"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder for temporary files that only we can read; remove it afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="hedgerow-"))
    except OSError as error:
        raise MachineError(
            f"cannot make a folder for temporary files in {tempfile.gettempdir()} "
            f"({error.strerror}); name another in the environment variable TMPDIR"
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise MachineError(
            f"cannot remove {str(folder)!r}, which may hold parts of the table; remove it, and "
            f"name another place for temporary files in the environment variable TMPDIR"
        )


class NoRoomError(MachineError):
    """What a database has to hold fits neither memory nor temporary files."""


@contextmanager
def open_database(memory: int | None = None, *, spills: bool = True) -> Iterator[Database]:
    """Open a database in memory that spills to a private folder, removed afterwards, or nowhere."""
    with private_folder() if spills else nullcontext("") as folder:
        settings: dict[str, Any] = {
            "temp_directory": str(folder),
            "threads": core_count(),
            "preserve_insertion_order": False,
            # nothing is fetched from the network behind the user's back
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        usable = usable_memory()  # unknown, DuckDB decides
        if memory is None and usable is not None:  # the rest is for the axes and the leaf counts
            memory = usable // 2
        if memory is not None:
            settings["memory_limit"] = f"{memory}B"
        with closing(duckdb.connect(":memory:", config=settings)) as db:
            if db.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
                # Ours is the only one. In a notebook without widgets it is off and cannot be set.
                db.execute("SET enable_progress_bar = false")
            yield db


@contextmanager
def translate_duckdb_errors(subject: str, sentence: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours; its words may quote the table and stay confidential."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise NoRoomError(
            f"{subject} needs more memory than there is, and the temporary files in "
            f"{tempfile.gettempdir()} have no more room; free some, or name another place in "
            f"the environment variable TMPDIR"
        ) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise MachineError(f"the disk is full: no room to read {subject}") from None
        if "Permission denied" in str(error):
            raise MachineError(f"no permission to read {subject}") from None
        rule = NOT_UTF8 if "This file is not utf-8 encoded" in str(error) else sentence
        said = str(error).partition("\nPossible fixes:")[0]  # these are for DuckDB's own options
        raise outside_limits(subject, rule, said) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise


def sql_identifier(name: str) -> str:
    """Return an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(text: str) -> str:
    """Return a text in SQL."""
    return "'" + text.replace("'", "''") + "'"


# A query to a database, read through ADBC or ODBC. No message ever holds a password.

ODBC = "odbc"
UNCLEAR = "the URL has no clear parts; in a user or a password write @ / ? # as %40 %2F %3F %23"
DRIVERS = {
    "sqlite": "adbc_driver_sqlite.dbapi",
    "postgresql": "adbc_driver_postgresql.dbapi",
    "postgres": "adbc_driver_postgresql.dbapi",
    ODBC: "arrow_odbc",
}
READINGS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "postgres": POSTGRESQL, ODBC: ANY}
READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
}
READ_ONLY["postgres"] = READ_ONLY["postgresql"]
BROKE_OFF = "broke off the query"
LOST = "the connection was lost while the query ran; try again"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")


@dataclass(frozen=True)
class Query:
    """The rows that a SELECT returns.

    Attributes:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://…``; or
            ``odbc://`` and a connection string of ODBC (``odbc://Driver={…};Server=…``); never
            shown, for it may hold a password.
        sql: one SELECT.

    Raises:
        TableError: a URL of another kind, or a query that is not one SELECT.

    Example:
        >>> query = hr.Query("postgresql://me:secret@host/trips", "SELECT * FROM trips")
        >>> query.place
        'postgresql://host/trips'
    """

    url: str = field(repr=False)
    sql: str

    def __post_init__(self) -> None:
        check_type("a database URL", self.url, str, "a text", TableError)
        check_type("a query", self.sql, str, "a text, one SELECT", TableError)
        if self.scheme not in DRIVERS:
            # what stands before :// of no URL may be a connection string with a password
            given = repr(shorten(self.scheme)) if _SCHEME.match(self.scheme) else "something else"
            raise TableError(
                "a database URL must begin with sqlite:///, postgresql:// or odbc://; "
                f"got one that begins with {given}"
            )
        if self.scheme == ODBC and not self.place.removeprefix("odbc://"):
            raise TableError(
                "odbc:// must be followed by a connection string that names a Driver, DSN or "
                "Server, such as odbc://Driver={PostgreSQL};Server=host;Database=trips"
            )
        one_select(self.sql, READINGS[self.scheme])

    @property
    def scheme(self) -> str:
        """What the URL begins with."""
        return self.url.partition("://")[0] if "://" in self.url else ""

    @property
    def connection(self) -> str:
        """What follows ``://``: over ODBC the connection string."""
        return self.url.partition("://")[2]

    @property
    def place(self) -> str:
        """The URL without user, password and parameters."""
        if self.scheme == ODBC:
            return f"odbc://{shown_connection(self.connection)}"
        if self.scheme == "sqlite":
            return self.url.partition("?")[0]
        parts = _split(self.url)
        return f"{self.scheme}://{parts.hostname or ''}{parts.path}" if parts else self.scheme


@dataclass(frozen=True)
class OpenQuery:
    """A query whose columns are known.

    Attributes:
        subject: how messages name it.
        schema: its columns.
        rows: gives, within a ``with``, some columns by their places, called c0, c1, ….
    """

    subject: str
    schema: pa.Schema
    rows: Callable[[list[int]], AbstractContextManager[pa.RecordBatchReader]]


@contextmanager
def run_query(query: Query, subject: str) -> Iterator[OpenQuery]:
    """Run a query: its columns and, on request, its rows; then close the connection."""
    driver = _driver(query)
    # in parentheses a query cannot write: neither SELECT … INTO nor WITH … DELETE may stand there
    one = f"({one_select(query.sql, READINGS[query.scheme])}\n)"  # \n: it may end in a comment
    if query.scheme == ODBC:
        yield _over_odbc(query, subject, driver, f"{one} selected")  # Oracle has no AS here
        return
    with _no_secrets(query, subject, "cannot be reached; check the URL, the server and the login"):
        connection = driver.connect(_address(query, subject))
    with closing(connection), closing(connection.cursor()) as cursor:
        select = f"{one} AS selected"

        def lost() -> bool:
            """Return whether the connection is gone: what a record does to a query leaves it."""
            try:
                connection.rollback()
            except Exception:  # noqa: BLE001 - in whichever words
                return True
            return False

        with _reading(query, subject, lost):
            cursor.execute(READ_ONLY[query.scheme])
            connection.commit()
            if query.scheme == "sqlite":  # of a damaged file this is what fails
                cursor.execute("SELECT 1 FROM sqlite_schema LIMIT 0")
        with _no_secrets(query, subject, "does not understand the query; it must be one SELECT"):
            # read without being run: what fails then is of no record
            if query.scheme == "sqlite":
                cursor.execute(f"EXPLAIN SELECT * FROM {select}")
            else:
                cursor.adbc_prepare(f"SELECT * FROM {select}")
        with _reading(query, subject, lost):  # even of no rows a database may sum the table
            cursor.execute(f"SELECT * FROM {select} LIMIT 0")
            with cursor.fetch_record_batch() as nothing:
                schema = nothing.schema

        @contextmanager
        def rows(fields: list[int]) -> Iterator[pa.RecordBatchReader]:
            """Yield some columns as text; a missing value is an empty text.

            Text, because NUMERIC has no Arrow type and SQLite no column types at all; never NULL,
            because SQLite's driver takes a column's type from its first rows.
            """
            names = enumerate(sql_identifier(schema.names[i]) for i in fields)
            texts = ", ".join(f"COALESCE(CAST({n} AS TEXT), '') AS c{i}" for i, n in names)
            with _reading(query, subject, lost):
                cursor.execute(f"SELECT {texts} FROM {select}")
                with cursor.fetch_record_batch() as reader:
                    yield reader

        yield OpenQuery(subject, schema, rows)


def _over_odbc(query: Query, subject: str, driver: Any, select: str) -> OpenQuery:
    odbc = OdbcRows(driver, query.connection, select, lambda e: _without_secrets(query, e))

    @contextmanager
    def rows(fields: list[int]) -> Iterator[pa.RecordBatchReader]:
        with _reading(query, subject, lambda: odbc.is_lost):
            yield odbc.reader(fields)

    sentence = "cannot be reached; check the connection string, the server and the login"
    with _no_secrets(query, subject, sentence):
        driver.connect(query.connection)
    # Over ODBC nothing tells a query that is wrong from one that broke off at a record.
    with _reading(query, subject, lambda: odbc.is_lost, f"{BROKE_OFF}, or does not understand it"):
        return OpenQuery(subject, odbc.schema(), rows)


def _driver(query: Query) -> Any:
    extra = "odbc" if query.scheme == ODBC else "sql"
    return library(DRIVERS[query.scheme], extra, f"reading a database ({query.scheme})", TableError)


def _address(query: Query, subject: str) -> str:
    if query.scheme != "sqlite":
        return query.url
    path = Path(unquote(query.place.removeprefix("sqlite:///")))
    if not path.is_file():  # SQLite would make an empty database
        raise TableError(f"{subject} does not exist; check its path")
    return f"file:{quote(str(path.absolute()))}?mode=ro"


@contextmanager
def _no_secrets(query: Query, subject: str, sentence: str) -> Iterator[None]:
    """Turn the driver's errors into ours; its words, without the password, stay confidential."""
    try:
        yield
    except HedgerowError:
        raise
    except (pa.ArrowException, OSError, _driver(query).Error) as error:
        text = _without_secrets(query, error)
        raise TableError(f"{subject} {sentence}", confidential=text) from None


@contextmanager
def _reading(
    query: Query, subject: str, lost: Callable[[], bool], rule: str = BROKE_OFF
) -> Iterator[None]:
    """Turn what fails once a query runs into the refusal of a table, or a connection that is gone.

    A record may be the reason (a division by 0), and no code of a database tells for certain.
    """
    try:
        with _no_secrets(query, subject, rule):
            yield
    except TableError as error:
        if lost():
            raise MachineError(f"{subject}: {LOST}", confidential=error.confidential) from None
        if error.breaks:
            raise
        raise outside_limits(subject, rule, error.confidential) from None


def _without_secrets(query: Query, error: BaseException) -> str:
    if query.scheme not in {ODBC, "sqlite"} and _split(query.url) is None:
        return UNCLEAR
    text = str(error).replace(query.url, query.place)
    for secret in _secrets(query):
        text = text.replace(secret, "…")
    return text


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL; None where it has none, or where a password may be in several."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.password
    except ValueError:
        return None
    return None if "@" in parts.path + parts.query + parts.fragment else parts


def _secrets(query: Query) -> list[str]:
    """Return the password as written and as meant."""
    if query.scheme == ODBC:
        return secrets_of(query.connection)
    parts = _split(query.url)
    if parts is None:
        return [query.url.partition("://")[2]]
    written = [parts.password or ""]
    options = [option.partition("=") for option in parts.query.split("&")]
    written += [value for key, _, value in options if SECRET.search(unquote(key))]
    return [text for word in written if word for text in (word, unquote(word))]
