"""The ledger's SQLite file: its schema, how it is opened, and how its failures are named.

A charge must be on the disk before noise is drawn, and stay there: a rollback journal under
``synchronous = EXTRA``, which also syncs the directory (`docs/proofs/releases.md`, "The ledger's
file"). The file is opened by SQLite alone: any other handle of this process would drop SQLite's
POSIX locks (SQLite: "How To Corrupt An SQLite Database File", 2.2). Hence the ``application_id``.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hedgerow.errors import BudgetError, HedgerowError, MachineError, machine_errors
from hedgerow.machine import check_plain

APPLICATION_ID = 0x48444752  # "HDGR"
VERSION = 3
ID_BYTES = 16
PRIMARY_CODE = 0xFF
OPEN = "hedgerow ledger open FILE --rho …, with the release file as FILE"
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

# CHECK(typeof) and not STRICT: that needs SQLite 3.37, and long-lived servers have older ones.
_TABLES = (
    f"""CREATE TABLE identity (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL CHECK (typeof(id) = 'text' AND length(id) = {2 * ID_BYTES})
)""",
    """CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  dataset TEXT NOT NULL CHECK (typeof(dataset) = 'text' AND dataset <> ''),
  protection TEXT NOT NULL CHECK (typeof(protection) = 'text'),
  measure TEXT NOT NULL CHECK (measure IN ('rho', 'epsilon')),
  cap TEXT NOT NULL CHECK (typeof(cap) = 'text' AND cap <> ''),
  digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND length(digest) = 64),
  UNIQUE (dataset, protection)
)""",
    """CREATE TABLE charge (
  account INTEGER NOT NULL REFERENCES account (id),
  number INTEGER NOT NULL CHECK (typeof(number) = 'integer' AND number >= 1),
  release_id TEXT NOT NULL CHECK (typeof(release_id) = 'text' AND release_id <> ''),
  charged_at TEXT NOT NULL CHECK (typeof(charged_at) = 'text'),
  plan_hash TEXT NOT NULL CHECK (typeof(plan_hash) = 'text' AND length(plan_hash) = 64),
  profile TEXT NOT NULL CHECK (typeof(profile) = 'text'),
  digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND length(digest) = 64),
  PRIMARY KEY (account, number),
  UNIQUE (account, release_id)
)""",
)
_NEVER = tuple(
    f"""CREATE TRIGGER no_{verb.lower()}_of_{table} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"""
    for table in ("identity", "account", "charge")
    for verb in ("UPDATE", "DELETE")
)
# INSERT OR REPLACE deletes without asking the triggers above.
_NEXT = (
    """CREATE TRIGGER one_identity BEFORE INSERT ON identity
WHEN EXISTS (SELECT 1 FROM identity)
BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END""",
    """CREATE TRIGGER next_charge BEFORE INSERT ON charge
WHEN NEW.number <> (SELECT count(*) + 1 FROM charge WHERE account = NEW.account)
  OR EXISTS (SELECT 1 FROM charge WHERE account = NEW.account AND release_id = NEW.release_id)
BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END""",
    """CREATE TRIGGER new_account BEFORE INSERT ON account
WHEN EXISTS (SELECT 1 FROM account WHERE id = NEW.id
  OR (dataset = NEW.dataset AND protection = NEW.protection))
BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END""",
)
_FORM = (*_TABLES, *_NEVER, *_NEXT)


def create_file(path: Path, patience: float) -> None:
    """Make an empty ledger, readable by its owner alone, unless there is one already.

    A run that is killed half-way leaves an empty file, which the next one fills.
    """
    _check_name(path)
    with machine_errors(f"cannot create the ledger {str(path)!r}"), suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    check_plain(path, f"the ledger {str(path)!r}", BudgetError)
    with _connected(path, patience) as connection, transaction(connection):
        if _marks(connection) == (0, 0) and not _form(connection):
            for statement in _FORM:
                connection.execute(statement)
            name = secrets.token_hex(ID_BYTES)
            connection.execute("INSERT INTO identity (one, id) VALUES (1, ?)", (name,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def read_id(connection: sqlite3.Connection, path: Path) -> str:
    """Return the random name that a ledger was given when it was made; its copies share it."""
    rows = connection.execute("SELECT id FROM identity").fetchall()
    if len(rows) != 1:
        raise damaged_ledger(path, "it has lost its name")
    return str(rows[0][0])


@contextmanager
def open_ledger_file(path: Path, patience: float) -> Iterator[sqlite3.Connection]:
    """Open a ledger and check that it is one; closing rolls back what is open."""
    _check_name(path)
    check_plain(path, f"the ledger {str(path)!r}", BudgetError)
    with _connected(path, patience) as connection:
        application, version = _marks(connection)
        if application != APPLICATION_ID:
            raise _no_ledger(path)
        if version != VERSION:
            other = (
                "or a newer one"
                if version > VERSION
                else "or begin a new ledger, whose caps leave out what is spent in this one"
            )
            raise BudgetError(
                f"the ledger {str(path)!r} has the format {version}, and this version of Hedgerow "
                f"reads format {VERSION}; use the version that wrote it, {other}"
            )
        if _form(connection) != set(_FORM):
            raise damaged_ledger(path, "its tables or their guards were changed")
        # An index that lost an entry would hide a charge, and no digest would miss it.
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise damaged_ledger(path, verdict)
        yield connection


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Run a transaction: all or nothing.

    What is read in it is then still so when it commits: two runs cannot both see the last of a
    budget. An error leaves it open, and closing the connection rolls it back.
    """
    connection.execute(f"BEGIN {kind}")
    yield
    connection.execute("COMMIT")


def damaged_ledger(path: Path, why: str) -> MachineError:
    """Return the error for a ledger that cannot be trusted."""
    return MachineError(
        f"the ledger {str(path)!r} is damaged ({why}); nothing can be charged to it: restore a "
        f"copy, and add by hand what was released since"
    )


@contextmanager
def _connected(path: Path, patience: float) -> Iterator[sqlite3.Connection]:
    place = f"{path.absolute().as_uri()}?mode=rw"  # never creates
    try:
        connection = sqlite3.connect(place, uri=True, timeout=patience, isolation_level=None)
        with closing(connection):
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's own cache
            connection.execute("PRAGMA journal_mode = DELETE")
            yield connection
    except sqlite3.Error as error:
        raise _explained(error, path, patience) from error


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _form(connection: sqlite3.Connection) -> set[str]:
    """Return the statements that made the file's tables and triggers, as SQLite keeps them."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {sql for (sql,) in rows}


def _explained(error: sqlite3.Error, path: Path, patience: float) -> HedgerowError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & PRIMARY_CODE
    if code in _LOCKED:
        return MachineError(
            f"the ledger {str(path)!r} was locked by other runs for {patience:g} seconds; "
            f"try again when they have ended"
        )
    if code == sqlite3.SQLITE_CANTOPEN and not os.path.lexists(path):
        return BudgetError(
            f"there is no ledger at {str(path)!r}; create it first, with its cap: {OPEN}"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return _no_ledger(path)
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged_ledger(path, str(error))
    return MachineError(f"cannot use the ledger {str(path)!r}: {error}")


def _check_name(path: Path) -> None:
    if "\0" in str(path):
        raise BudgetError(f"no file can be called {str(path)!r}; name another for the ledger")


def _no_ledger(path: Path) -> BudgetError:
    return BudgetError(f"{str(path)!r} is no Hedgerow ledger; name another file")
