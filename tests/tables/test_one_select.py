"""A query is one SELECT, whichever way its database reads it."""

import os
import sqlite3
from contextlib import closing, suppress

import pytest

from hedgerow.engines.spark_table import jdbc_query
from hedgerow.errors import TableError
from hedgerow.tables.one_select import ANY, POSTGRESQL, SQLITE, one_select
from hedgerow.tables.query import Query, running

EVERY = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "any": ANY}
GOOD = [
    "SELECT 1",
    " select a from t where b = 'x;y)' ; ",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "(SELECT 1) UNION (SELECT 2)",
    "VALUES (1), (2)",
    "SELECT 1 -- ; )",
    "-- told first\nSELECT 1",
    "SELECT /* ); */ 1",
    'SELECT "a;)" FROM t',
    "SELECT 'it''s (not'",
    "SELECT a /* it's */ FROM t -- isn't it",
]
HOSTILE = [
    "",
    ";",
    "SELECT 1) AS x; ATTACH 'new.db' AS y; --",
    "SELECT 1) AS x; DROP TABLE t; SELECT (1",
    "SELECT 1) UNION (SELECT 2",
    "SELECT 1)",
    "SELECT (1",
    "SELECT 1; SELECT 2",
    "SELECT 1;;",
    "; SELECT 1",
    "SELECT 'a",
    'SELECT "a',
    "SELECT 1 /* no end",
    "SELECT 1 /*! ; DROP TABLE t */",
    "SELECT 1 /* a */ ) AS x; DROP TABLE t; -- */",
    "SELECT q'[']' ) ; DROP TABLE t --'",
    "SELECT 1 \0",
    "PRAGMA writable_schema = 1",
    "ATTACH 'new.db' AS y",
    "INSERT INTO t VALUES (1)",
    "DELETE FROM t RETURNING x",
    "CREATE TABLE u (x int)",
    "COPY t TO '/tmp/x'",
    "EXPLAIN SELECT 1",
]
HIDDEN = [  # where a text ends is a matter of who reads it
    r"SELECT '\') AS x; DROP TABLE t; --'",
    r"SELECT 'a\'') AS x; DROP TABLE t; --'",
    "SELECT $$ ' $$ ) AS x; DROP TABLE t; --'",
    "SELECT /* /* */ ' */ ) AS x; DROP TABLE t; --'",
    "SELECT [a]]'b] ) ; DROP TABLE t --'",
    "SELECT [']) ; DROP TABLE t --']'",
    "SELECT `'`) ; DROP TABLE t --'",
    "SELECT 1 # '\n ) ; DROP TABLE t --'",
    "SELECT 1 --' \n ) AS x; DROP TABLE t --'",
    "SELECT 1 --1 ' \r ) AS x; DROP TABLE t --'",
    "SELECT 2--'\n) AS x; DROP TABLE t; --'",
]


@pytest.mark.parametrize("readings", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("sql", GOOD)
def test_one_select_stays_as_it_is_but_for_a_semicolon_at_its_end(sql, readings):
    assert one_select(sql, readings) == sql.strip().removesuffix(";").strip()


@pytest.mark.parametrize("readings", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("sql", HOSTILE)
def test_anything_else_is_refused_and_not_quoted(sql, readings):
    with pytest.raises(TableError, match="query must be one SELECT") as caught:
        one_select(sql, readings)
    assert "DROP" not in str(caught.value)


@pytest.mark.parametrize("sql", HIDDEN)
def test_what_some_database_takes_for_more_than_one_is_refused_where_it_is_unknown(sql):
    with pytest.raises(TableError, match="query must be one SELECT"):
        one_select(sql, ANY)


@pytest.mark.parametrize(
    ("readings", "sql"),
    [
        (SQLITE, "SELECT [a)b;] FROM t"),
        (SQLITE, r"SELECT '\' FROM t"),
        (SQLITE, "SELECT `;` /* /* */"),
        (POSTGRESQL, "SELECT $a$ ; ) ' $a$, $$)$$"),
        (POSTGRESQL, "SELECT a[1] /* /* ; */ ) */ FROM t"),
        (POSTGRESQL, "SELECT price$ FROM t"),
    ],
)
def test_what_a_known_database_reads_as_one_is_one(readings, sql):
    assert one_select(sql, readings) == sql


def test_the_hostile_ones_do_harm_where_nobody_refuses_them(tmp_path):
    """SQLite runs what stands behind a closed parenthesis, so that they are worth refusing."""
    (closes,) = [sql for sql in HOSTILE if "new.db" in sql and sql.startswith("SELECT")]
    sql = closes.replace("new.db", str(tmp_path / "new.db"))
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        with pytest.raises(sqlite3.OperationalError):  # what is left behind the statements
            db.executescript(f"SELECT * FROM ({sql}\n) AS selected")
        assert "y" in [name for _, name, _ in db.execute("PRAGMA database_list")]


@pytest.mark.parametrize("url", ["sqlite:///t.db", "postgresql://host/db"])
def test_a_query_that_is_not_one_select_is_refused_when_it_is_made(url):
    with pytest.raises(TableError, match="query must be one SELECT"):
        Query(url, "SELECT 1; SELECT 2")


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('a')")
    return path


@pytest.mark.parametrize("sql", HOSTILE + HIDDEN)
def test_a_hostile_query_leaves_sqlite_as_it_was(database, tmp_path, sql):
    pytest.importorskip("adbc_driver_sqlite")
    before = sorted(tmp_path.iterdir()), database.read_bytes()
    sql = sql.replace("new.db", str(tmp_path / "new.db"))
    with (
        suppress(TableError),  # one that SQLite reads as one SELECT may run
        running(Query(f"sqlite:///{database}", sql), "it") as query,
        query.rows([0]) as rows,
    ):
        rows.read_all()
    assert (sorted(tmp_path.iterdir()), database.read_bytes()) == before


def test_the_connection_itself_cannot_write(database):
    """Even if a statement came through."""
    pytest.importorskip("adbc_driver_sqlite")
    with running(Query(f"sqlite:///{database}", "SELECT x FROM t"), "it") as query:
        query.cursor.execute(f"ATTACH '{database}2' AS y")
        for sql in ("DELETE FROM t", "CREATE TABLE y.u (x int)"):
            with pytest.raises(Exception, match="readonly database"):
                query.cursor.execute(sql)


@pytest.mark.parametrize("sql", HOSTILE + HIDDEN)
def test_over_jdbc_a_query_is_one_select_for_every_database(sql):
    with pytest.raises(TableError, match="query must be one SELECT"):
        jdbc_query("jdbc:oracle:thin:@host", sql)


def test_over_jdbc_a_query_may_end_in_a_comment():
    assert jdbc_query("jdbc:postgresql://host/db", "SELECT 1 -- one") == "SELECT 1 -- one\n"
    assert jdbc_query("jdbc:postgresql://host/db", "SELECT $$;$$") == "SELECT $$;$$\n"
    with pytest.raises(TableError):
        jdbc_query("jdbc:mysql://host/db", "SELECT $$;$$")


@pytest.fixture
def server():
    url = os.environ.get("HEDGEROW_TEST_POSTGRES")
    if not url:
        pytest.skip("HEDGEROW_TEST_POSTGRES is not set to the URL of a PostgreSQL server")
    pytest.importorskip("adbc_driver_postgresql")
    return url


WRITING = [
    "WITH gone AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM gone",
    "SELECT 1 AS x INTO hedgerow_never",
    "SELECT set_config('transaction_read_only', 'off', false) AS x",
    "SELECT 1 AS x FROM pg_class FOR UPDATE",
]


@pytest.mark.parametrize("sql", HOSTILE + WRITING)
def test_a_hostile_query_is_refused_before_or_by_postgresql(server, sql):
    with (
        pytest.raises(TableError),
        running(Query(server, sql), "it") as query,
        query.rows([0]) as rows,
    ):
        rows.read_all()


def test_a_query_to_postgresql_runs_in_a_transaction_that_only_reads(server):
    sql = "SELECT current_setting('transaction_read_only') AS x"
    with running(Query(server, sql), "it") as query, query.rows([0]) as rows:
        assert rows.read_all()[0].to_pylist() == ["on"]
