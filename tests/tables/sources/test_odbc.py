"""Queries over ODBC to SQLite and PostgreSQL, and secrets that stay where they are."""

import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from urllib.parse import urlsplit

import adbc_driver_postgresql.dbapi as adbc
import pytest

from hedgerow import cli, machine
from hedgerow.errors import MachineError, SpecError, TableError
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import Query, read_areas
from hedgerow.tables.sources import odbc
from hedgerow.tables.sources.odbc import is_connection, secrets_of, shown_connection
from hedgerow.tables.tree import Tree
from tests.made import by_code
from tests.parts import (
    DRIVERS_OF_POSTGRESQL,
    ODBC,
    ODBC_OF_POSTGRESQL,
    ODBC_OF_SQLITE,
    SERVER,
    SERVER_URL,
)
from tests.refused import refused, told

TREE = Tree([Axis.from_frame("place", {"county": ["01074", "01075", "2"]}, ["county"])])
HIDDEN = "p}ss;word"
WRITTEN = "{p}}ss;word}"


@pytest.fixture
def connection(tmp_path):
    ODBC_OF_SQLITE.require()
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (county VARCHAR(9), n INTEGER, real DOUBLE, note TEXT)")
        rows = [("01074", 3, 2.0, "a"), ("01075", 4, 2.0, None), ("01074", 5, 2.0, "b")]
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        db.commit()
    return f"odbc://Driver=SQLite3;Database={tmp_path}/t.db;PWD={WRITTEN}"


@pytest.fixture
def arrow_odbc():
    """The library, which cannot even be imported without that of the system."""
    ODBC.require()
    return import_module("arrow_odbc")


def counted(url, sql="SELECT * FROM t", **options):
    return by_code(TREE, Query(url, sql), **options)


def test_a_table_is_read_with_the_types_of_the_database(connection):
    assert counted(connection, count="n") == {"01074": 8, "01075": 4}
    assert counted(connection) == {"01074": 2, "01075": 1}
    assert counted(connection, "SELECT real AS county FROM t") == {"2": 3}
    listed = read_areas(Query(connection, "SELECT county FROM t;"), ["county"], repeated=True)
    assert sorted(listed["county"]) == ["01074", "01075"]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_rows_come_in_batches(connection, rows, monkeypatch):
    monkeypatch.setattr(odbc, "ROWS", rows)
    assert counted(connection, count="n") == {"01074": 8, "01075": 4}


def test_a_missing_code_is_missing(connection):
    with refused("column 'county' lacks a code for some record"):
        counted(connection, "SELECT note AS county FROM t WHERE note IS NULL")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a\\' AS county FROM t",
        "DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "SELECT 1) x; DELETE FROM t --",
    ],
)
def test_a_query_is_one_select_however_the_database_reads_it(connection, sql):
    with pytest.raises(TableError, match="query must be one SELECT"):
        counted(connection, sql)


def test_a_query_stands_in_parentheses_where_nobody_can_write(connection):
    with refused("broke off the query, or does not understand it"):
        counted(connection, "WITH x AS (SELECT 1) DELETE FROM t")
    assert counted(connection, count="n") == {"01074": 8, "01075": 4}


@pytest.mark.parametrize(
    "change",
    [("t.db", "no/t.db"), ("SQLite3", "Nothing"), (WRITTEN, f"{WRITTEN};Timeout=x;UID=someone")],
)
def test_no_message_shows_a_secret(connection, change):
    url = connection.replace(*change)
    query = Query(url, "SELECT nothing FROM t")
    with pytest.raises(TableError) as caught:
        read_areas(query, ["nothing"])
    reached = change[0] == WRITTEN
    words = "broke off the query" if reached else "check the connection string"
    assert words in told(caught.value)
    assert "Database=" in told(caught.value)
    for text in (str(caught.value), str(caught.value.confidential), repr(query), query.place):
        assert HIDDEN not in text
        assert WRITTEN not in text
        assert "someone" not in text


def test_a_driver_that_quotes_the_connection_is_not_quoted(connection, arrow_odbc, monkeypatch):
    def failing(*_, **__):
        raise arrow_odbc.Error.__new__(arrow_odbc.Error)

    def quoted(_):
        return f"no login with {HIDDEN} or {WRITTEN} at {connection.partition('://')[2]}"

    monkeypatch.setattr(arrow_odbc.Error, "__str__", quoted)
    monkeypatch.setattr(arrow_odbc, "connect", failing)
    with pytest.raises(TableError) as caught:
        counted(connection)
    assert caught.value.confidential == "no login with … or … at …"


def test_a_failure_while_rows_arrive_is_told_without_secrets(connection, arrow_odbc, monkeypatch):
    read = arrow_odbc.read_arrow_batches_from_odbc

    class Broken:
        def __init__(self, schema):
            self.schema = schema

        def __iter__(self):
            raise arrow_odbc.Error.__new__(arrow_odbc.Error)

    def breaking(sql, *args, **options):
        reader = read(sql, *args, **options)
        return reader if "1 = 0" in sql else Broken(reader.schema)

    monkeypatch.setattr(arrow_odbc.Error, "__str__", lambda _: f"lost {HIDDEN} of 01074")
    monkeypatch.setattr(arrow_odbc, "read_arrow_batches_from_odbc", breaking)
    with refused("broke off the query") as caught:
        counted(connection)
    assert HIDDEN not in caught.value.confidential
    assert "01074" not in told(caught.value)
    assert "lost … of 01074" in caught.value.confidential


def test_of_a_connection_only_where_the_data_are_is_shown():
    connection = (
        f"DRIVER={{My;Driver}}; server = host,1433 ;Uid=me;Pwd={WRITTEN};Token=t0ken;Trusted"
    )
    assert shown_connection(connection) == "DRIVER={My;Driver};server=host,1433"
    assert "someone" in secrets_of("Driver=x;UID=someone")
    assert {WRITTEN, HIDDEN, "t0ken", connection} <= set(secrets_of(connection))
    assert (
        Query(f"odbc://{connection}", "SELECT 1").place
        == "odbc://DRIVER={My;Driver};server=host,1433"
    )


def test_short_options_do_not_garble_messages_and_short_passwords_are_hidden():
    assert secrets_of("Driver=x;Encrypt=no;PWD=ab") == ["Driver=x;Encrypt=no;PWD=ab", "ab"]


@pytest.mark.parametrize("rest", ["", "secret", "me:secret@host/db", "PWD=secret", "DSN"])
def test_a_url_without_a_connection_string_is_refused_without_showing_it(rest):
    with pytest.raises(TableError, match="must be followed by a connection string") as caught:
        Query(f"odbc://{rest}", "SELECT 1")
    assert "secret" not in str(caught.value)


@ODBC_OF_SQLITE.needed
def test_a_longer_text_than_there_is_room_for_is_refused_and_not_cut(tmp_path):
    with closing(sqlite3.connect(tmp_path / "long.db")) as db:
        db.execute("CREATE TABLE t (county TEXT)")
        db.execute("INSERT INTO t VALUES (?)", ["2" * 5000])
        db.commit()
    with refused("broke off the query"):
        counted(f"odbc://Driver=SQLite3;Database={tmp_path}/long.db")


ABSENT = "libodbc.so.2: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("failure", "kind", "said"),
    [
        (
            ImportError("no arrow_odbc"),
            TableError,
            "needs arrow_odbc: install Hedgerow with its extra 'odbc'",
        ),
        (
            OSError(f"cannot load library '/x/libarrow_odbc.so': {ABSENT}.  Additionally, …"),
            MachineError,
            "libodbc.so.2, which is not installed here; in Debian the package unixodbc has it",
        ),
        (ImportError(ABSENT), MachineError, "needs the system's library libodbc.so.2, which is"),
        (OSError("file too short"), MachineError, "whose libraries cannot be loaded; reinstall"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_named_with_the_way_to_it(
    failure, kind, said, monkeypatch
):
    def absent(_):
        raise failure

    monkeypatch.setattr(machine, "import_module", absent)
    with pytest.raises(kind, match=re.escape(said)) as caught:
        counted("odbc://Driver=SQLite3;PWD=hidden")
    assert "hidden" not in str(caught.value)
    assert caught.value.__context__ is None


PASSWORD = "S3cr3t;w"  # noqa: S105 - of a server for tests
RELEASE = """
[table]
source = "{url}"
query = "SELECT county, n FROM {table}"
count = "n"
[[axis]]
name = "place"
areas = "places.csv"
levels = ["county"]
[privacy]
epsilon = 1
delta = 1e-8
[ledger]
database = "ledger.db"
dataset = "all"
[output]
directory = "out"
"""


@pytest.fixture
def postgresql(tmp_path):
    """A table on a server, its name, and the parts of a connection string to it by a password."""
    SERVER.require()
    ODBC_OF_POSTGRESQL.require()
    name = f"odbc_{sha256(str(tmp_path).encode()).hexdigest()[:12]}"
    place = urlsplit(SERVER_URL)
    with closing(adbc.connect(SERVER_URL)) as db, closing(db.cursor()) as cursor:
        cursor.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        cursor.execute(
            f"CREATE TABLE {name} (county text, padded char(9), whole float8, n numeric(12, 0))"
        )
        cursor.execute(
            f"INSERT INTO {name} VALUES ('01074', '01074', 2, 3), ('01075', '01075', 2, 4)"
        )
        cursor.execute(f"GRANT SELECT ON {name} TO {name}")
        db.commit()
    yield name, {
        "Driver": DRIVERS_OF_POSTGRESQL[0], "Server": place.hostname, "Port": place.port,
        "Database": place.path[1:], "UID": name, "PWD": f"{{{PASSWORD}}}",
    }  # fmt: skip
    with closing(adbc.connect(SERVER_URL)) as db, closing(db.cursor()) as cursor:
        cursor.execute(f"DROP TABLE {name}")
        cursor.execute(f"DROP ROLE {name}")
        db.commit()


def written(parts):
    return "odbc://" + ";".join(f"{key}={value}" for key, value in parts.items())


def test_postgresql_is_read_over_odbc(postgresql):
    table, parts = postgresql
    url = written(parts)
    assert counted(url, f"SELECT county, n FROM {table}", count="n") == {"01074": 3, "01075": 4}
    assert counted(url, f"SELECT TRIM(padded) AS county FROM {table}") == {"01074": 1, "01075": 1}
    assert counted(url, f"SELECT whole AS county FROM {table}") == {"2": 2}
    with refused("look for lost leading zeros, spaces") as caught:
        counted(url, f"SELECT padded AS county FROM {table}")
    assert "the list has '0107" in caught.value.confidential


@pytest.mark.parametrize(
    "change",
    [{"Port": 1}, {"Database": "none"}, {"UID": "somebody"}, {"Driver": "none"}, {"PWD": ""}],
)
def test_no_error_of_postgresql_shows_a_secret(postgresql, change):
    table, parts = postgresql
    sql = f"SELECT nothing FROM {table}"
    words = "check the connection string|does not understand it"
    with pytest.raises(TableError, match=words) as caught:
        read_areas(Query(written(parts | change), sql), ["nothing"])
    everything = "".join(format_exception(caught.value)) + str(caught.value.confidential)
    assert not any(word in everything for word in (PASSWORD, "somebody", f'"{table}"'))


LOST = "SELECT pg_terminate_backend(pg_backend_pid())::text AS county FROM {}"


@pytest.mark.parametrize("over", ["odbc", "adbc"])
def test_a_connection_that_is_lost_is_no_fault_of_the_table(postgresql, over):
    table, parts = postgresql
    url = written(parts) if over == "odbc" else SERVER_URL
    with pytest.raises(MachineError, match="the connection was lost") as caught:
        counted(url, LOST.format(table))
    assert caught.value.exit_code == 1
    with refused("broke off the query"):  # and what a record does to a query is one
        counted(url, f"SELECT county, 1 / (n - 3) AS n FROM {table}", count="n")


def test_a_release_over_odbc_writes_no_secret_anywhere(postgresql, tmp_path, monkeypatch, capsys):
    table, parts = postgresql
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text("county\n01074\n01075\n")
    Path("release.toml").write_text(RELEASE.format(url=written(parts), table=table))
    for command in (
        ["plan", "release.toml"],
        ["ledger", "open", "release.toml", "--rho", "9"],
        ["release", "release.toml"],
        ["compare", "release.toml"],
        ["check", "out"],
    ):
        assert cli.run(command) == 0
    said = "".join(capsys.readouterr())
    files = [path for path in Path().rglob("*") if path.is_file() and path.name != "release.toml"]
    assert len(files) > 5
    for text in (said.encode(), *(path.read_bytes() for path in files)):
        assert PASSWORD.encode() not in text
        assert b"UID=" not in text


@pytest.mark.parametrize(
    "url", ["Driver={x};PWD=secret;Server=tcp://host", "me:secret@host://x", "secret;a://"]
)
def test_what_is_no_url_is_refused_without_showing_its_start(url):
    with pytest.raises(TableError, match="begins with something else") as caught:
        Query(url, "SELECT 1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["Driver={x};Server=h;PWD=secret", "dsn=x;password=secret", "Server = h ; Uid=me;Pwd=secret"],
)
def test_a_connection_string_in_place_of_a_file_is_refused_without_showing_it(text, tmp_path):
    for source in (text, Path(text), tmp_path / text):
        with pytest.raises(TableError, match="write odbc:// before it") as caught:
            Counts.from_frame(TREE, source)
        assert "secret" not in str(caught.value)
    assert not is_connection("data/server=3/driver=4/part.parquet")
    (tmp_path / "release.toml").write_text(RELEASE.format(url=text, table="t"))
    with pytest.raises(SpecError, match="write odbc:// before it") as refusal:
        _ = ReleaseSpec(tmp_path / "release.toml").table.source
    assert "secret" not in str(refusal.value)


PASSWORDS = ["sec ret", "p@ss/secret", "a?secret", "a#secret", "secret%zz", "a:secret@b"]


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_that_is_not_quoted_in_a_url_is_nowhere_in_the_error(password):
    query = Query(f"postgresql://me:{password}@localhost:1/x", "SELECT 1 AS county")
    with pytest.raises(TableError) as caught:
        Counts.from_frame(TREE, query)
    said, error = [query.place, repr(query)], caught.value
    while error is not None:
        said += [str(error), str(getattr(error, "confidential", None))]
        error = error.__cause__ or error.__context__
    for text in said:
        assert not any(part in text for part in (password, "secret", "ss/"))


def test_options_of_a_url_that_hold_secrets_are_hidden(monkeypatch):
    url = "postgresql://localhost/x?sslpassword=hid%20den&pass%77ord=s3cret&application_name=mine"

    def connect(_):
        raise OSError("hid den, hid%20den and s3cret of mine")

    monkeypatch.setattr(adbc, "connect", connect)
    with pytest.raises(TableError) as caught:
        counted(url)
    assert caught.value.confidential == "…, … and … of mine"
    assert caught.value.__context__ is None
