"""Connection strings of ODBC, without their secrets, and the rows of a query over it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pyarrow as pa

SHOWN = {"driver", "dsn", "server", "servername", "host", "port", "database", "dbq"}
"""The keys of a connection string that messages may show; all others may hold a secret."""

LONGEST_TEXT = 4096
"""Bytes of a text in columns without a length of their own; a longer one is an error."""

ROWS = 1 << 16

SECRET = re.compile("pwd|pass|secret|token|key", re.IGNORECASE)
"""What the names of options that hold a secret have in them."""

_BARE = re.compile(
    r"(?:^|[;/])\s*(?:driver|dsn|server|servername|host|uid|pwd|password|user id)\s*=[^;]*;"
    r"|;\s*(?:driver|dsn|server|servername|host|uid|pwd|password|user id)\s*=",
    re.IGNORECASE,
)
_PART = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)(?:;|$)")


_LOST = re.compile(r"[^\n]*'SQL\w+':\nState: (08|57P0[123])")
"""How a driver's words begin where the connection has gone; what it quotes comes later."""


def is_connection(text: str) -> bool:
    """Return whether a text that should name a file is a connection string, without odbc://.

    Example:
        >>> is_connection("Driver={PostgreSQL};Server=host;PWD=secret"), is_connection("a;b=1.csv")
        (True, False)
    """
    return _BARE.search(text) is not None


def shown_connection(connection: str) -> str:
    """Return the parts of a connection string that say where the data are.

    Example:
        >>> shown_connection("Driver={PostgreSQL};Server=host;UID=me;PWD={a;b}")
        'Driver={PostgreSQL};Server=host'
    """
    return ";".join(f"{k}={v}" for k, v in _parts(connection) if k.lower() in SHOWN)


def secrets_of(connection: str) -> list[str]:
    """Return what a message must not repeat of a connection string, as written and as meant."""
    hidden = [
        value
        for key, value in _parts(connection)
        # "no" or "1" of another option would be found in any word
        if key.lower() not in SHOWN and (len(value) > 3 or SECRET.search(key))
    ]
    meant = [v[1:-1].replace("}}", "}") for v in hidden if v.startswith("{")]
    return [connection, *sorted((v for v in [*hidden, *meant] if v), key=len, reverse=True)]


def _parts(connection: str) -> list[tuple[str, str]]:
    return [(match[1], match[2].strip()) for match in _PART.finditer(connection)]


@dataclass(frozen=True)
class OdbcRows:
    """The rows of a SELECT.

    Attributes:
        library: arrow_odbc.
        connection: the connection string.
        select: a query in parentheses, which can therefore only read.
        clean: returns an error's text without secrets.
        failed: what the driver has said of rows that did not come.
    """

    library: ModuleType
    connection: str = field(repr=False)
    select: str
    clean: Callable[[BaseException], str]
    failed: list[str] = field(default_factory=list, repr=False)

    @property
    def is_lost(self) -> bool:
        """Whether the connection has gone, as far as the driver's code says."""
        return any(map(_LOST.match, self.failed))

    def schema(self) -> pa.Schema:
        """Return the columns; no row is sent."""
        return self._read("WHERE 1 = 0").schema

    def reader(self, fields: list[int]) -> pa.RecordBatchReader:
        """Return some columns, called c0, c1, …, batch by batch."""
        batches = self._read("")
        names = [f"c{i}" for i in range(len(fields))]
        schema = pa.schema(
            [batches.schema.field(n).with_name(c) for n, c in zip(fields, names, strict=True)]
        )

        def chosen() -> Iterator[pa.RecordBatch]:
            try:
                for batch in batches:
                    yield pa.RecordBatch.from_arrays(
                        [batch.column(n) for n in fields], schema=schema
                    )
            except self.library.Error as error:
                self.failed.append(str(error))
                message = self.clean(error)
            else:
                return
            raise OSError(message)

        return pa.RecordBatchReader.from_batches(schema, chosen())

    def _read(self, condition: str) -> Any:
        try:
            return self.library.read_arrow_batches_from_odbc(
                f"SELECT * FROM {self.select} {condition}",
                self.connection,
                batch_size=ROWS,
                max_text_size=LONGEST_TEXT,
                falliable_allocations=True,
            )
        except self.library.Error as error:
            self.failed.append(str(error))
            raise
