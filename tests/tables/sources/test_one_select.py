"""A query is one SELECT, whichever way its database reads it."""

import sqlite3
from contextlib import closing, suppress

import adbc_driver_sqlite.dbapi
import duckdb
import pytest

from hedgerow.errors import TableError
from hedgerow.spark.table import jdbc_query
from hedgerow.tables.sources.database import Query, run_query
from hedgerow.tables.sources.one_select import ANY, POSTGRESQL, SQLITE, one_select
from tests.parts import SERVER, SERVER_URL

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
    "SELECT a.x, b.y FROM t AS a LEFT JOIN u AS b ON a.i = b.i AND (b.y > 1 OR b.y IS NULL)",
    "SELECT * FROM t JOIN u USING (i) CROSS JOIN (SELECT max(x) AS m FROM v) AS w",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
    "SELECT x, row_number() OVER (PARTITION BY a ORDER BY b DESC) AS r FROM t",
    "SELECT sum(x) FILTER (WHERE x > 0) OVER w FROM t WINDOW w AS (ORDER BY d ROWS 3 PRECEDING)",
    "SELECT CASE WHEN x = '' THEN 'none' ELSE x END FROM t WHERE a IN ('b', 'c''d', 'e')",
    "SELECT 'said \"so\"', 'a--b', 'a/*b', 'https://x.org/#y', 'US$ 5', 'a {b} c'",
    "SELECT '12:30', 'a@b.c'",
    'SELECT "a ""b"" c" AS "d.e" FROM "s"."t"',
    "SELECT 'Zürich', 'Øl', '東京', '€ 5', 'می‌شود', 'l’eau'",
    "SELECT '😀' AS größe FROM \"Städte\" AS städte",
    "SELECT größe, 価格 FROM straße",
    "SELECT x::text, y::numeric(10, 2), z::varchar(3)[] FROM t",
    "SELECT CAST(x AS NUMERIC(10, 2)), DATE '2020-01-01', X'00ff' FROM t",
    "SELECT j -> 'a' ->> 'b', json_extract(j, '$.a[0]') FROM t",
    "SELECT x FROM t WHERE x LIKE 'C:\\dir\\%' OR x LIKE '10\\%' OR x LIKE '5!%' ESCAPE '!'",
    "SELECT U&'d\\0061t', N'text', E'a\\tb', B'01' FROM t",
    "SELECT -1 - -2, 3 * 4 / 5 % 6, 'a' || 'b' FROM t WHERE x <> 1 AND y != 2",
    "SELECT x /* one */ , /* two\n lines */ y -- three\n FROM t\n-- end",
    "SELECT\tx\r\nFROM t\r\n",
    "SELECT x FROM t WHERE y BETWEEN 1 AND 2 GROUP BY x HAVING count(*) > 1 ORDER BY 1 LIMIT 5",
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
DOUBTFUL = {  # no uniform reading is right: for every dialect that is named
    r"SELECT E'\'', '\') AS x; DROP TABLE t; SELECT * FROM (SELECT 1 --'": "postgresql any",
    r"SELECT U&'\'', E'\') AS x; DROP TABLE t; SELECT * FROM (SELECT 1 --'": "postgresql any",
    r"SELECT N'\'', '\') AS x; DROP TABLE t; SELECT * FROM (SELECT 1 --'": "postgresql any",
    r'SELECT "\"", E"\") AS x; DROP TABLE t; SELECT * FROM (SELECT 1 --"': "postgresql any",
    r"SELECT `\`', `) AS x; DROP TABLE t; --'``": "any",
    "SELECT $a(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT @a(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT :a(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT #a(') ) AS x; DROP TABLE t; --')": "sqlite",
    "SELECT $a::b(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT :::b(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT @€(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT $a$b(') ) AS x; DROP TABLE t; --')": "sqlite any",
    "SELECT 1 AS €$$) AS x; DROP TABLE t; --$$": "postgresql",
    "SELECT $€$'$€$) AS x; DROP TABLE t; --'": "postgresql any",
    "SELECT $a€$'$a€$) AS x; DROP TABLE t; --'": "postgresql any",
    "SELECT $1$'$1$) AS x; DROP TABLE t; --'": "any",
    "SELECT 1 AS a٣$$'$$) AS x; DROP TABLE t; --'": "postgresql any",
    "SELECT 1$$'$$) AS x; DROP TABLE t; --'": "postgresql any",
    "SELECT $$a$$$$'$$) AS x; DROP TABLE t; --'": "postgresql any",
    "SELECT 1 /*M! ) AS x; DROP TABLE t; SELECT * FROM (SELECT 1 */": "sqlite postgresql any",
    "SELECT 1 /*m!100100 ) AS x; DROP TABLE t; SELECT (1 */": "sqlite postgresql any",
    "SELECT 1 /*T![x] ) AS x; DROP TABLE t; SELECT * FROM (SELECT 1 */": "sqlite postgresql any",
    "SELECT q'[']' ) ; DROP TABLE t --'": "any",
    "SELECT nq'(')' ) ; DROP TABLE t --'": "any",
    "SELECT 1q'[']' ) AS x; DROP TABLE t; --'": "any",
    "SELECT '${hiveconf:x}'": "sqlite postgresql any",
    "SELECT '''a'b''' ) AS x; DROP TABLE t; --'": "any",
    'SELECT """a"b""" ) AS x; DROP TABLE t; --"': "any",
    "SELECT ‘'’ ) AS x; DROP TABLE t; --'": "any",
    "SELECT “'” ) AS x; DROP TABLE t; --'": "any",
    "SELECT 1 // '\n ) AS x; DROP TABLE t; --'": "any",
    "SELECT 1 { ' } ) AS x; DROP TABLE t; --'": "any",
    "SELECT 1 --\x0b'\n": "sqlite postgresql any",
    "SELECT 1 -- \u2028 ) AS x; DROP TABLE t; --": "sqlite postgresql any",
    "SELECT 1 -- \x85 ) AS x; DROP TABLE t; --": "sqlite postgresql any",
    "SELECT 1 -- \x0c ) AS x; DROP TABLE t; --": "sqlite postgresql any",
    "SELECT 1 --\xa0) AS x; DROP TABLE t; --": "sqlite postgresql any",
    "SELECT 1 -- \x1a ) AS x; DROP TABLE t; --": "sqlite postgresql any",
    "SELECT '\ud800'": "sqlite postgresql any",
}


@pytest.mark.parametrize("dialect", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("sql", GOOD)
def test_one_select_stays_as_it_is_but_for_a_semicolon_at_its_end(sql, dialect):
    assert one_select(sql, dialect) == sql.strip().removesuffix(";").strip()


@pytest.mark.parametrize("dialect", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("sql", HOSTILE)
def test_anything_else_is_refused_and_not_quoted(sql, dialect):
    with pytest.raises(TableError, match="query must be one SELECT") as caught:
        one_select(sql, dialect)
    assert "DROP" not in str(caught.value)


@pytest.mark.parametrize("sql", HIDDEN)
def test_what_some_database_takes_for_more_than_one_is_refused_where_it_is_unknown(sql):
    with pytest.raises(TableError, match="query must be one SELECT"):
        one_select(sql, ANY)


@pytest.mark.parametrize(
    ("name", "sql"), [(name, sql) for sql, names in DOUBTFUL.items() for name in names.split()]
)
def test_what_a_database_may_read_either_way_is_refused(name, sql):
    with pytest.raises(TableError, match="query must be one SELECT") as caught:
        one_select(sql, EVERY[name])
    assert "DROP" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sql", "change"),
    [
        ("postgresql", r"SELECT 'it\'s'", "no backslash directly before a quote"),
        ("sqlite", "SELECT @a(x)", "no parenthesis directly after a name that begins with"),
        ("postgresql", "SELECT $é$a$é$", "only ASCII letters in its tag"),
        ("any", "SELECT $$a$$", "write texts between single quotes"),
        ("any", "SELECT 1 /*M! */", "begin no comment with"),
        ("any", "SELECT q'[a]'", "write texts as"),
        ("sqlite", "SELECT\xa01", "use no blanks but spaces"),
    ],
)
def test_a_refusal_says_what_to_change(name, sql, change):
    with pytest.raises(TableError, match=change):
        one_select(sql, EVERY[name])


def _wrapped(sql):
    return f"SELECT * FROM ({sql}\n) AS selected"


@pytest.mark.parametrize(
    "sql", [sql for sql, names in DOUBTFUL.items() if "(')" in sql and "sqlite" in names]
)
def test_sqlite_runs_what_is_behind_a_variable(sql):
    """Independently of our reading: the table is gone, so these are worth refusing."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE t (x)")
        with pytest.raises(sqlite3.OperationalError):  # what is left behind the statements
            db.executescript(_wrapped(sql))
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


DUCKDB_RUNS = [
    r"SELECT E'\'', '\') AS x; DROP TABLE t; SELECT * FROM (SELECT 1 --'",
    "SELECT 1 AS €$$) AS x; DROP TABLE t; --$$",
    "SELECT $€$'$€$) AS x; DROP TABLE t; --'",
    "SELECT $a€$'$a€$) AS x; DROP TABLE t; --'",
]


@pytest.mark.parametrize("sql", DUCKDB_RUNS)
def test_duckdb_runs_what_is_behind_an_escape_or_a_tag(sql):
    assert sql in DOUBTFUL
    with closing(duckdb.connect()) as db:
        db.execute("CREATE TABLE t (x INT)")
        try:
            db.execute(
                _wrapped(sql if "FROM (SELECT" in sql else f"{sql}\n; SELECT * FROM (SELECT 1")
            )
        finally:
            assert db.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (SQLITE, "SELECT [a)b;] FROM t"),
        (SQLITE, r"SELECT '\' FROM t"),
        (SQLITE, "SELECT `;` /* /* */"),
        (POSTGRESQL, "SELECT $a$ ; ) ' $a$, $$)$$"),
        (POSTGRESQL, "SELECT a[1] /* /* ; */ ) */ FROM t"),
        (POSTGRESQL, "SELECT price$ FROM t"),
        (POSTGRESQL, "SELECT x FROM t WHERE x IN ('q', 'nq')"),
        (POSTGRESQL, "SELECT $$abc$$, $x$a$y$b$x$, $1"),
        (
            POSTGRESQL,
            "SELECT j #> '{a,b}' #>> '{c}', j @> '{\"a\": 1}', j ? 'k', j ?| '{a}' FROM t",
        ),
        (POSTGRESQL, "SELECT (j #> '{a}') FROM t WHERE x ~ '^a\\d+$'"),
        (SQLITE, r"SELECT x FROM t WHERE x LIKE '10\%' ESCAPE '\'"),
        (SQLITE, "SELECT x FROM t WHERE x = @a OR x = :b OR x = $c"),
        (ANY, "SELECT `a b`, [c d], a[1], {'k': 1} FROM t"),
    ],
)
def test_what_a_known_database_reads_as_one_is_one(dialect, sql):
    assert one_select(sql, dialect) == sql


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


@pytest.mark.parametrize("sql", [*HOSTILE, *HIDDEN, *DOUBTFUL])
def test_a_hostile_query_leaves_sqlite_as_it_was(database, tmp_path, sql):
    before = sorted(tmp_path.iterdir()), database.read_bytes()
    sql = sql.replace("new.db", str(tmp_path / "new.db"))
    with (
        suppress(TableError),  # one that SQLite reads as one SELECT may run
        run_query(Query(f"sqlite:///{database}", sql), "it") as query,
        query.rows([0]) as rows,
    ):
        rows.read_all()
    assert (sorted(tmp_path.iterdir()), database.read_bytes()) == before


def test_the_connection_itself_cannot_write(database, monkeypatch):
    """Even if a statement came through: neither the table nor, of the same user, another file."""
    opened, connect = [], adbc_driver_sqlite.dbapi.connect

    def kept(*address):
        opened.append(connect(*address))
        return opened[-1]

    monkeypatch.setattr(adbc_driver_sqlite.dbapi, "connect", kept)
    with run_query(Query(f"sqlite:///{database}", "SELECT x FROM t"), "it"):
        (connection,) = opened
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"ATTACH 'file:{database}2' AS y")
            for sql in ("DELETE FROM t", "CREATE TABLE y.u (x int)"):
                with pytest.raises(adbc_driver_sqlite.dbapi.Error, match="readonly database"):
                    cursor.execute(sql)
            # and should a statement lift that, the file is open to be read alone
            cursor.execute("PRAGMA query_only = OFF")
            with pytest.raises(adbc_driver_sqlite.dbapi.Error, match="readonly database"):
                cursor.execute("DELETE FROM t")


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
    SERVER.require()
    return SERVER_URL


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
        run_query(Query(server, sql), "it") as query,
        query.rows([0]) as rows,
    ):
        rows.read_all()


def test_a_query_to_postgresql_runs_in_a_transaction_that_only_reads(server):
    sql = "SELECT current_setting('transaction_read_only') AS x"
    with run_query(Query(server, sql), "it") as query, query.rows([0]) as rows:
        assert rows.read_all()[0].to_pylist() == ["on"]
