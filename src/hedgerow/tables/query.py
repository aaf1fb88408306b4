"""A query to a database, read through ADBC. No message ever holds a password."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

import pyarrow as pa

from hedgerow.errors import HedgerowError, TableError, check_kind, shortened
from hedgerow.tables.one_select import POSTGRESQL, SQLITE, one_select

DRIVERS = {
    "sqlite": "adbc_driver_sqlite",
    "postgresql": "adbc_driver_postgresql",
    "postgres": "adbc_driver_postgresql",
}
READINGS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "postgres": POSTGRESQL}
READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
}
READ_ONLY["postgres"] = READ_ONLY["postgresql"]


@dataclass(frozen=True)
class Query:
    """The rows that a SELECT returns.

    Attributes:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://…``; never
            shown, for it may hold a password.
        sql: one SELECT.

    Raises:
        TableError: a URL of another kind, or a query that is not one SELECT.
    """

    url: str = field(repr=False)
    sql: str

    def __post_init__(self) -> None:
        check_kind("a database URL", self.url, str, "a text", TableError)
        check_kind("a query", self.sql, str, "a text, one SELECT", TableError)
        if self.scheme not in DRIVERS:
            raise TableError(
                "a database URL must begin with sqlite:/// or postgresql://; "
                f"got one that begins with {shortened(self.scheme or 'something else')!r}"
            )
        one_select(self.sql, READINGS[self.scheme])

    @property
    def scheme(self) -> str:
        """What the URL begins with."""
        return self.url.partition("://")[0] if "://" in self.url else ""

    @property
    def place(self) -> str:
        """The URL without user, password and parameters."""
        if self.scheme == "sqlite":
            return self.url.partition("?")[0]
        parts = _split(self.url)
        return f"{self.scheme}://{parts.hostname or ''}{parts.path}" if parts else self.scheme


@contextmanager
def running(query: Query, what: str) -> Iterator["Running"]:
    """The query's columns and, on request, its rows; the connection is closed afterwards.

    Raises:
        TableError: the driver is not installed, no such database, a query it does not understand.
    """
    driver = _driver(query)
    with _no_secrets(query, what, "cannot be reached; check the URL, the server and the login"):
        connection = driver.connect(_address(query, what))
    with closing(connection), closing(connection.cursor()) as cursor:
        one = one_select(query.sql, READINGS[query.scheme])
        select = f"({one}\n) AS selected"  # \n: it may end in a comment
        with _no_secrets(query, what, "does not understand the query; it must be one SELECT"):
            cursor.execute(READ_ONLY[query.scheme])
            connection.commit()
            cursor.execute(f"SELECT * FROM {select} LIMIT 0")
            with cursor.fetch_record_batch() as nothing:
                schema = nothing.schema
        yield Running(query, what, cursor, select, schema)


@dataclass(frozen=True)
class Running:
    """A query whose columns are known.

    Attributes:
        schema: its columns.
    """

    query: Query
    what: str
    cursor: Any
    select: str
    schema: pa.Schema

    @contextmanager
    def rows(self, fields: list[int]) -> Iterator[pa.RecordBatchReader]:
        """Some columns as text, in order, called c0, c1, …; a missing value is an empty text.

        Text, because NUMERIC has no Arrow type and SQLite no column types at all; never NULL,
        because SQLite's driver takes a column's type from its first rows.
        """
        names = ['"' + self.schema.names[i].replace('"', '""') + '"' for i in fields]
        texts = ", ".join(f"COALESCE(CAST({n} AS TEXT), '') AS c{i}" for i, n in enumerate(names))
        with _no_secrets(self.query, self.what, "broke off the query"):
            self.cursor.execute(f"SELECT {texts} FROM {self.select}")
            reader = self.cursor.fetch_record_batch()
            with reader:
                yield reader


def _driver(query: Query) -> ModuleType:
    try:
        return import_module(f"{DRIVERS[query.scheme]}.dbapi")
    except ImportError:
        raise TableError(
            f"reading from a {query.scheme} database needs the extra packages of "
            f"hedgerow[sql]; install them with: pip install 'hedgerow[sql]'"
        ) from None


def _address(query: Query, what: str) -> str:
    if query.scheme != "sqlite":
        return query.url
    path = Path(unquote(query.place.removeprefix("sqlite:///")))
    if not path.is_file():  # SQLite would make an empty database
        raise TableError(f"{what} does not exist; check its path")
    return f"file:{quote(str(path.absolute()))}?mode=ro"


@contextmanager
def _no_secrets(query: Query, what: str, sentence: str) -> Iterator[None]:
    """The driver's failures as ours; its words, less the password, stay confidential."""
    try:
        yield
    except HedgerowError:
        raise
    except (pa.ArrowException, OSError, _errors(query)) as error:
        said = str(error).replace(query.url, query.place)
        for secret in _secrets(query):
            said = said.replace(secret, "…")
        raise TableError(f"{what} {sentence}", confidential=said) from None


def _errors(query: Query) -> type[Exception]:
    found: type[Exception] = _driver(query).Error
    return found


def _split(url: str) -> SplitResult | None:
    """The parts of a URL, or None where it has none."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.password
    except ValueError:
        return None
    return parts


def _secrets(query: Query) -> list[str]:
    """The password as written and as meant."""
    parts = _split(query.url)
    if parts is None:
        return [query.url.partition("://")[2]]
    written = [parts.password or ""]
    written += [p.partition("=")[2] for p in parts.query.split("&") if p.startswith("password=")]
    return [text for word in written if word for text in (word, unquote(word))]
