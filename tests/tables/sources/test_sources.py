"""Files, data frames and databases that are no tables, and the machine that fails us."""

import gzip
import sqlite3
import sys
import tempfile
from contextlib import closing, nullcontext
from pathlib import Path

import duckdb
import polars as pl
import pytest

from hedgerow import machine
from hedgerow.errors import MachineError, TableError
from hedgerow.plan.prior import Prior
from hedgerow.spec import other_file
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.lists.public_table import read_public_table
from hedgerow.tables.read import Query, read_areas, read_leaves
from hedgerow.tables.sources import database
from hedgerow.tables.sources import database as query
from hedgerow.tables.sources.database import open_database, translate_duckdb_errors
from hedgerow.tables.sources.files import HEADER_BYTES
from hedgerow.tables.sources.source import as_arrow, open_source
from hedgerow.tables.tree import Tree
from tests.parts import SERVER, SERVER_URL
from tests.refused import refused, told

TREE = Tree([Axis.from_frame("x", {"x": ["a", "b"]}, ["x"])])
NO_TABLE = "is no table: a CSV file must have the same number of fields in every row as in its"
NOT_UTF8 = "is not UTF-8 text (Latin-1 or Windows-1252, perhaps); save it as UTF-8"


def read(table):
    return read_leaves(TREE, table, count="n", unit=None, contributions=1)


def failure(table):
    with pytest.raises(TableError) as caught:
        read(table)
    assert "\n" not in str(caught.value)
    return told(caught.value)


def parquet(path):
    frame = pl.DataFrame({"x": ["a", "b"] * 5000, "n": range(10_000)})
    frame.write_parquet(path, row_group_size=1000)
    return path.read_bytes()


BAD_FILES = {
    "empty.csv": (b"", "is empty; it needs a header row at least"),
    "blank.csv": (b"\n \n", "is empty; it needs a header row at least"),
    "empty.parquet": (b"", "is empty"),
    "short.csv": (b"x,n\na,1\nb\n", NO_TABLE),
    "long.csv": (b"x,n\na,1\nb,2,3\n", NO_TABLE),
    "late.csv": (b"x,n\n" + b"a,1\n" * 100_000 + b"b\n", NO_TABLE),
    "latin.csv": ("x,n\nMünchen,1\n".encode("latin-1"), NOT_UTF8),
    "late-latin.csv": (b"x,n\n" + b"a,1\n" * 400_000 + b"\xfc,1\n", NOT_UTF8),
    "quote.csv": (b'x,n\n"a,1\nb,2\n', NO_TABLE),
    "endings.csv": (b"x,n\na,1\r\nb,2\nc,3\r\n", NO_TABLE),
    "book.xlsx": (b"PK\x03\x04\x14\x00", "is a workbook or an archive; save its sheet as CSV"),
    "book.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1", "is a workbook or an archive"),
    "utf16.csv": ("x,n\na,1\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "is no table: neither CSV nor Parquet"),
    "commas.csv": (b",,,\n1,2,3,4\n", "is no table: its first line is no header"),
    "prose.txt": (b"Dear reader,\nthis is a letter.\n", "has no column 'x'"),
    "noise.parquet": (bytes(range(256)) * 9, "is no table: a damaged or unfinished Parquet file"),
    "magic.parquet": (b"PAR1" + b"\x07" * 99 + b"PAR1", "is no table: a damaged or unfinished"),
    "text.parquet": (b"x,n\na,1\n", "is no table: a damaged or unfinished Parquet file"),
    "noise.csv.gz": (b"\x1f\x8b" + b"\x00\xff" * 40, "cannot be read"),
    "cut.csv.gz": (gzip.compress(b"x,n\n" + b"a,1\n" * 99)[:-12], "cannot be read"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(name, tmp_path):
    content, words = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    message = failure(path)
    assert message.startswith(f"the table {path}")
    assert words in message
    with pytest.raises(TableError) as caught:
        read_areas(path, ["x"])
    assert str(caught.value).startswith(f"the list of areas {path}")


@pytest.mark.parametrize("cut", [3, 40, 3000, -8, -2000])
def test_a_truncated_parquet_file_is_refused(cut, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(path)[:cut])
    assert "is no table: a damaged or unfinished Parquet file" in failure(path)


def test_a_parquet_file_with_damaged_pages_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    content = bytearray(parquet(path))
    content[10:2000] = b"\xff" * 1990
    path.write_bytes(content)
    assert failure(path).startswith(f"the table {path}")


def test_a_ragged_row_stays_inside_the_boundary(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,n\nsecret-code,1,2\n")
    with refused("same number of fields in every row") as caught:
        read(path)
    assert "secret-code" not in told(caught.value)
    assert "secret-code" in str(caught.value.confidential)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("record", ["secret-code,12", "xx,12", "x y,nn"])
def test_a_table_without_a_header_shows_no_record(record, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{record}\nb,3\n")
    assert failure(path) == f"the table {path} has no column 'x'"


@pytest.mark.parametrize("name", ["X", " x", "x_", "X "])
def test_a_column_that_differs_in_capitals_and_gaps_is_told_of(name, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},n\na,1\n")
    assert failure(path) == f"the table {path} has no column 'x'; did you mean {name!r}?"


def test_of_a_public_list_the_nearest_column_is_told(tmp_path):
    path = tmp_path / "wards.csv"
    path.write_text("hospital,wards\na,b\n")
    for repeated, hint in [(False, "; did you mean 'wards'?"), (True, "")]:
        with pytest.raises(TableError) as caught:
            read_areas(path, ["hospital", "ward"], repeated=repeated)
        assert str(caught.value) == f"the list of areas {path} has no column 'ward'{hint}"


def test_a_letter_that_the_start_of_a_file_cuts_is_text_all_the_same(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"xx,n\n" + "ü,1\n".encode() * 300_000)
    with path.open("rb") as file:
        start = file.read(HEADER_BYTES)
    with pytest.raises(UnicodeDecodeError):
        start.decode()
    assert read_areas(path, ["xx"], repeated=True)["xx"].to_list() == ["ü"]


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "no.csv", str(tmp_path / "no*.parquet"), tmp_path / "a" / "b" / "c"):
        assert failure(path) == f"the table {path} does not exist; check its path"


def test_a_folder_needs_parquet_files_of_one_kind(tmp_path):
    assert failure(tmp_path) == f"the table {tmp_path} holds no Parquet file"
    pl.DataFrame({"x": ["a"], "n": [1]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"y": ["a"], "n": [1]}).write_parquet(tmp_path / "2.parquet")
    assert failure(tmp_path).startswith(f"the table {tmp_path}")


def test_a_folder_name_is_a_column_of_text_even_where_there_is_one_folder(tmp_path):
    (tmp_path / "t" / "x=01").mkdir(parents=True)
    pl.DataFrame({"n": [1]}).write_parquet(tmp_path / "t" / "x=01" / "p.parquet")
    assert read_areas(tmp_path / "t", ["x"]).rows() == [("01",)]
    with pytest.raises(TableError, match="has no column 'x'"):
        read_areas(tmp_path / "t" / "x=01" / "p.parquet", ["x"])


def test_quoted_separators_in_a_header_are_not_separators(tmp_path):
    (tmp_path / "t.csv").write_text('"one;two;three",x,n\n1,a,2\n')
    assert read(tmp_path / "t.csv")[1].tolist() == [2]


@pytest.mark.parametrize("table", [None, 7, [1, 2], [["a", 1]], b"t.csv", object()])
def test_what_is_no_data_frame_is_refused(table):
    assert "the table must be a data frame with the Arrow stream interface" in failure(table)


@pytest.mark.parametrize(
    "table", [{"x": ["a"], "n": [1, 2]}, {"x": ["a", 1], "n": [1, 2]}, {"x": 5, "n": [1]}]
)
def test_a_dictionary_that_is_no_table_is_refused(table):
    assert "the table is no table: its columns must have one length" in failure(table)


def test_a_relation_that_fails_on_a_record_does_not_quote_it():
    table = duckdb.sql("SELECT CAST(x AS INT) AS x FROM (VALUES ('1'), ('code7')) v(x)")
    with refused("the table is no table") as caught:
        read_leaves(TREE, table, count=None, unit=None, contributions=1)
    assert "code7" not in str(caught.value)
    assert "code7" in caught.value.confidential


def test_a_lazy_frame_and_an_arrow_table_pass_the_door():
    frame = pl.DataFrame({"x": ["a"]})
    assert as_arrow(frame.lazy(), "it").column_names == ["x"]
    table = frame.to_arrow()
    assert as_arrow(table, "it") is table


# --- databases -----------------------------------------------------------------------------------

HIDDEN = "p%40ss-word"


@pytest.fixture
def sqlite(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (x TEXT, n, y REAL)")
        # SQLite's driver takes types from the first rows: make the late ones differ
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(None, None, None)] * 3000)
        db.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [("a", 1, 1.5), ("a", "2", 2), ("b", 3.0, 1e300)]
        )
        db.commit()
    return f"sqlite:///{tmp_path}/t.db"


def test_types_that_change_down_a_column_do_not_matter(sqlite):
    codes, values, *_ = read(Query(sqlite, "SELECT x, n FROM t WHERE x IS NOT NULL"))
    assert dict(zip(codes[0].tolist(), values.tolist(), strict=True)) == {0: 3, 1: 3}
    late = Query(sqlite, "SELECT coalesce(x, 'a') AS x, coalesce(n, 0) AS n, x AS z FROM t")
    assert read(late)[1].sum() == 6
    areas = read_areas(Query(sqlite, "SELECT x FROM t"), ["x"], repeated=True)
    assert set(areas["x"]) == {None, "a", "b"}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT nothing FROM t", "does not understand the query; it must be one SELECT"),
        ("SELECT x, y FROM t", "has no column 'n'"),
        ("SELECT x, n FROM t", "column 'n' has a row without a value"),
        ("SELECT x, y AS n FROM t WHERE x = 'a'", "column 'n' holds a fraction"),
        ("SELECT x, abs(-9223372036854775807 - (n = 2)) AS n FROM t", "column 'n'"),
    ],
)
def test_a_query_that_fails_says_so_in_one_sentence(sqlite, sql, words):
    message = failure(Query(sqlite, sql))
    assert message.startswith(f"the table at {sqlite}")
    assert words in message


def test_a_database_that_is_none_is_refused_and_not_made(tmp_path):
    missing = f"sqlite:///{tmp_path}/no.db"
    assert (
        failure(Query(missing, "SELECT 1"))
        == f"the table at {missing} does not exist; check its path"
    )
    assert not (tmp_path / "no.db").exists()


@pytest.mark.usefixtures("sqlite")
def test_a_damaged_database_is_a_damaged_table(tmp_path):
    whole = (tmp_path / "t.db").read_bytes()
    for data in (b"no database" * 99, whole[:3000], whole[: len(whole) // 2], whole[:-4096]):
        (tmp_path / "bad.db").write_bytes(data)
        with refused("broke off the query"):
            read(Query(f"sqlite:///{tmp_path}/bad.db", "SELECT x, count(*) AS n FROM t GROUP BY x"))


def test_a_query_that_breaks_off_before_its_first_row_is_no_query_that_is_wrong(tmp_path):
    """SQLite sums a table even where no row is asked for."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (x TEXT, n)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [("a", 2**63 - 1)] * 2)
        db.commit()
    summed = "WITH s AS MATERIALIZED (SELECT x, sum(n) AS n FROM t GROUP BY x) SELECT * FROM s"
    with refused("broke off the query"):
        read(Query(f"sqlite:///{tmp_path}/t.db", summed))


def test_a_query_cannot_write(sqlite, tmp_path):
    before = (tmp_path / "t.db").read_bytes()
    failure(Query(sqlite, "WITH gone AS (SELECT 1) SELECT x FROM t UNION SELECT load_extension(x)"))
    assert (tmp_path / "t.db").read_bytes() == before


def test_a_database_of_another_kind_is_refused_without_its_url():
    for url in (f"mysql://me:{HIDDEN}@host/db", f"me:{HIDDEN}"):
        with pytest.raises(
            TableError, match="must begin with sqlite:///, postgresql:// or odbc://"
        ) as caught:
            Query(url, "SELECT 1")
        assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{HIDDEN}@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=me&password={HIDDEN}",
        f"postgresql://me:{HIDDEN}@127.0.0.1:port/db",
        f"postgresql://m%zz:{HIDDEN}@127.0.0.1:1/db",
        f"postgresql://me:{HIDDEN}@[::1/db",
    ],
)
def test_a_password_is_never_shown(url):
    asked = Query(url, "SELECT 1")
    with pytest.raises(TableError) as caught:
        read(asked)
    assert "cannot be reached; check the URL, the server and the login" in str(caught.value)
    for text in (str(caught.value), str(caught.value.confidential), repr(asked), asked.place):
        assert HIDDEN not in text
        assert "p@ss-word" not in text


def test_a_driver_that_quotes_the_url_is_not_quoted(monkeypatch):
    class Driver:
        Error = ValueError

        @staticmethod
        def connect(url):
            raise ValueError(f"cannot log in with p@ss-word at {url}, or with {HIDDEN}")

    monkeypatch.setattr(machine, "import_module", lambda _: Driver)
    with pytest.raises(TableError, match="cannot be reached") as caught:
        read(Query(f"postgresql://me:{HIDDEN}@host/db", "SELECT 1"))
    said = "cannot log in with … at postgresql://host/db, or with …"
    assert caught.value.confidential == said


def test_a_failure_of_the_machine_while_rows_arrive_is_not_blamed_on_the_database(sqlite):
    asked = Query(sqlite, "SELECT x FROM t")
    with (
        pytest.raises(MachineError, match="the disk is full"),
        query.run_query(asked, "it") as running,
        running.rows([0]),
    ):
        raise MachineError("the disk is full")


def test_a_url_without_a_query_is_refused_without_showing_it():
    for reader in (read, lambda url: read_areas(url, ["x"])):
        with pytest.raises(TableError, match="it needs a query") as caught:
            reader(f"postgresql://me:{HIDDEN}@host/db")
        assert "ss-word" not in str(caught.value)


def test_a_missing_driver_names_the_extra(sqlite, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(machine, "import_module", absent)
    assert "pip install '.[sql]'" in failure(Query(sqlite, "SELECT x, n FROM t"))


@pytest.fixture
def server():
    SERVER.require()
    return SERVER_URL


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 'a' AS x, 1.50 AS n", "column 'n' holds a fraction"),
        ("SELECT 'a' AS x, 'NaN'::float8 AS n", "column 'n' holds NaN"),
        ("SELECT 'a' AS x, NULL::int AS n", "column 'n' has a row without a value"),
        ("SELECT 'a' AS x, 0 - 2::numeric ^ 64 AS n", "column 'n' holds a negative"),
        (
            "SELECT 1.5::float8 AS x, 1 AS n",
            "column 'x' holds fractions, or numbers too long for a float",
        ),
        ("SELECT 'a' AS x, 1 / (i - 2000) AS n FROM generate_series(1, 3000) s(i)", "broke off"),
        ("SELECT nothing", "does not understand the query; it must be one SELECT"),
        ("SELECT 'a' AS x, 1 AS n, 2 AS n", "has 2 columns called 'n'"),
    ],
)
def test_a_postgresql_query_that_fails_says_so_in_one_sentence(server, sql, words):
    assert words in failure(Query(server, sql))


def test_postgresql_types_become_counts_and_codes(server):
    sql = (
        "SELECT 'a'::char(3) AS x, 3::numeric(9, 2) AS n UNION ALL SELECT 'b', 4 "
        "UNION ALL SELECT 'a', 5.00 -- \"it\" ends here"
    )
    codes, values, *_ = read(Query(server, sql))
    assert dict(zip(codes[0].tolist(), values.tolist(), strict=True)) == {0: 8, 1: 4}


def test_a_wrong_password_is_not_shown(server):
    scheme, _, rest = server.partition("://")
    wrong = f"{scheme}://nobody-here:{HIDDEN}@{rest.rpartition('@')[2]}"
    message = failure(Query(wrong, "SELECT 1"))
    assert "cannot be reached" in message
    assert "nobody-here" not in message


# --- the machine --------------------------------------------------------------------------------


def test_temporary_files_are_private_and_go_away(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_database() as db:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        db.execute("SET memory_limit = '60MB'; SET threads = 1")
        db.execute(
            "CREATE TABLE t AS SELECT hash(i) AS a, hash(i + 1) AS b FROM range(6000000) r(i)"
        )
        assert list(folder.iterdir())
        assert db.execute("SELECT current_setting('temp_directory')").fetchall() == [(str(folder),)]
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), open_database():
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_no_room_for_spilling_is_a_failure_of_the_machine():
    with open_database() as db:
        db.execute("SET memory_limit = '40MB'; SET max_temp_directory_size = '1MB'")
        with (
            pytest.raises(MachineError, match="needs more memory than there is") as caught,
            translate_duckdb_errors("the table", "is bad"),
        ):
            db.execute("CREATE TABLE t AS SELECT hash(i) AS a FROM range(20000000) r(i)")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (duckdb.IOException("write: No space left on device"), MachineError, "the disk is full"),
        (duckdb.IOException("Permission denied"), MachineError, "no permission to read it"),
        (duckdb.InvalidInputException("Line: a,b"), TableError, "it is bad"),
    ],
)
def test_failures_of_the_database_are_explained(error, kind, words):
    with pytest.raises(kind) as caught, translate_duckdb_errors("it", "is bad"):
        raise error
    assert words in told(caught.value)
    assert "Line: a,b" not in told(caught.value)


@pytest.mark.parametrize(
    "error", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT")]
)
def test_an_interruption_is_one(error):
    with pytest.raises(KeyboardInterrupt), translate_duckdb_errors("it", "is bad"):
        raise error


def test_other_failures_pass_unexplained():
    with pytest.raises(RuntimeError, match="a bug"), translate_duckdb_errors("it", "is bad"):
        raise RuntimeError("a bug")


def test_no_folder_for_temporary_files_is_a_failure_of_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(MachineError, match="environment variable TMPDIR"):
        read({"x": ["a"], "n": [1]})


def test_a_machine_that_does_not_tell_its_memory_will_do(monkeypatch):
    monkeypatch.setattr(database, "usable_memory", lambda: None)
    with open_database() as db:
        assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_a_file_we_may_not_read_is_a_failure_of_the_machine(monkeypatch, tmp_path):
    (tmp_path / "t.csv").write_text("x,n\n")

    def denied(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(MachineError, match="no permission to read the table"):
        read(tmp_path / "t.csv")


def of_a_machine_with(monkeypatch, memory):
    """Whatever is written to a temporary folder is a failure from now on."""
    for name in ("source", "database"):
        module = sys.modules[f"hedgerow.tables.sources.{name}"]
        monkeypatch.setattr(module, "usable_memory", lambda: memory)
    nowhere = Path("/dev/null/folder")
    monkeypatch.setattr(database, "private_folder", lambda: nullcontext(nowhere))


TOO_LARGE = r"takes more than a quarter of the memory of this machine, which has 0\.\d GB"


def read_list(path):
    return read_areas(path, ["town"])


def read_facts(path):
    return read_public_table(path, {"town": False}, {"n": None}, "the facts")


def read_lookup(path):
    tree = Tree([Axis.from_frame("place", {"town": ["x" * 1000]}, ["town"])])
    return Lookup.of(tree, path, "n", codes={"town": "town"})


def read_noisy(path):
    return other_file._table(path)


def read_prior(path):
    tree = Tree([Axis.from_frame("place", {"town": ["x" * 1000]}, ["town"])])
    return Prior.read(tree, path, count="n", public=True)


READERS = {each.__name__: each for each in (read_list, read_facts, read_lookup, read_noisy)}


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet", "folder", "*.parquet"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.sweep(4)
def test_a_small_public_table_that_stands_for_much_is_refused(tmp_path, monkeypatch, name, reader):
    """A code of 1,000 letters, 20,000 times: 20 MB in 50 kB."""
    path, times = tmp_path / name, 20_000
    codes = pl.DataFrame({"town": ["x" * 1000], "n": [1], "nothing": [None]})
    codes = pl.concat([codes.cast({"nothing": pl.String})] * times)
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(codes.write_csv().encode()))
    else:
        place = path if name == "a.parquet" else tmp_path / "folder" / "a.parquet"
        place.parent.mkdir(exist_ok=True)
        codes.write_parquet(place)
        path = tmp_path / "folder" / "*.parquet" if "*" in name else path
    assert sum(each.stat().st_size for each in tmp_path.rglob("*.*") if each.is_file()) < 100_000
    READERS[reader](path)
    of_a_machine_with(monkeypatch, 80_000_000)
    monkeypatch.setattr(sys.modules["hedgerow.tables.sources.source"], "_rows", None)
    with pytest.raises(TableError, match=TOO_LARGE):
        READERS[reader](path)


@pytest.mark.parametrize("reader", [*READERS, "read_prior"])
def test_a_public_file_that_unpacks_to_very_much_is_written_to_no_disk(
    tmp_path, monkeypatch, reader
):
    """100 MB in 500 kB, on a machine with less: it is refused once the memory for it is full."""
    path = tmp_path / "a.csv.gz"
    rows = (b"x" * 1000 + b",1\n") * 1000
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"town,n\n")
        for _ in range(100):
            file.write(rows)
    assert path.stat().st_size < 1_000_000
    of_a_machine_with(monkeypatch, 120_000_000)
    with pytest.raises(TableError, match=TOO_LARGE):
        {**READERS, "read_prior": read_prior}[reader](path)


@pytest.mark.parametrize("kind", [pl.Binary, pl.List(pl.String), pl.Decimal(38, 0)])
def test_what_becomes_text_counts_by_its_letters(tmp_path, monkeypatch, kind):
    """Bytes, lists and long numbers: little on disk, and no text until they are read."""
    long = {pl.Binary: b"x" * 1000, pl.List(pl.String): ["x" * 1000]}.get(kind, 10**37)
    times = 20_000 if kind != pl.Decimal(38, 0) else 400_000
    table = pl.DataFrame({"town": pl.Series([long], dtype=kind)})
    pl.concat([table] * times).write_parquet(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    of_a_machine_with(monkeypatch, 80_000_000)
    with pytest.raises(TableError, match=TOO_LARGE):
        read_noisy(tmp_path / "a.parquet")


def test_a_prior_of_very_many_codes_is_refused_before_they_become_areas(tmp_path, monkeypatch):
    codes = pl.DataFrame({"county": ["x"] * 400_000, "town": [str(i) for i in range(400_000)]})
    codes.write_parquet(tmp_path / "a.parquet")
    tree = Tree([Axis.from_frame("place", {"county": ["x"], "town": ["1"]}, ["county", "town"])])
    of_a_machine_with(monkeypatch, 4_000_000_000)
    assert Prior.read(tree, tmp_path / "a.parquet", public=True).counts.total == 400_000
    for memory in (50_000_000, 30_000_000):  # told once they are listed, and while they are
        of_a_machine_with(monkeypatch, memory)
        with pytest.raises(TableError, match=f"the prior: .* {TOO_LARGE}"):
            Prior.read(tree, tmp_path / "a.parquet", public=True)


@pytest.mark.parametrize("name", ["folder", "folder/*.parquet", "folder/0.parquet"])
def test_declared_rows_of_parquet_are_counted_before_a_page_is_read(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    pl.DataFrame({"town": ["x"] * 1_000_000, "n": [1] * 1_000_000}).write_parquet(
        tmp_path / "folder" / "0.parquet"
    )
    spoiled = bytearray((tmp_path / "folder" / "0.parquet").read_bytes())
    spoiled[4:60] = bytes(56)
    for number in range(4):
        (tmp_path / "folder" / f"{number}.parquet").write_bytes(spoiled)
    few = name.endswith("0.parquet")
    of_a_machine_with(monkeypatch, 60_000_000 if few else 240_000_000)
    for reader in (read_list, read_facts):
        with pytest.raises(TableError, match=TOO_LARGE):
            reader(tmp_path / name)
    of_a_machine_with(monkeypatch, 4_000_000_000)
    with pytest.raises(TableError, match=r"Parquet|read to its end"):
        read_list(tmp_path / name)


def test_a_list_of_very_many_columns_is_refused_before_a_row_is_read(tmp_path, monkeypatch):
    columns = {f"c{i}": ["a"] for i in range(201)}
    pl.DataFrame(columns).write_csv(tmp_path / "wide.csv")
    assert len(read_areas(tmp_path / "wide.csv", list(columns)[:200])) == 1
    monkeypatch.setattr(sys.modules["hedgerow.tables.sources.source"], "load", None)
    for chosen in (None, list, list(columns)):
        with pytest.raises(TableError, match=r"has 201 columns, and 200 are the most"):
            read_areas(tmp_path / "wide.csv", chosen)
    with pytest.raises(TableError, match="has 201 columns"):
        Axis.from_product("p", [tmp_path / "wide.csv"], ["detail"])


def test_a_database_opens_the_file_that_was_asked_for_and_no_other(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    with open_database() as db, open_source(db, tmp_path / "a.csv", "it") as source:
        source.load([0])
        assert db.execute("FROM loaded").fetchall() == [("1",)]
        for door in ("read_csv('{}/b.csv')", "read_text('{}/b.csv')", "glob('{}/*')"):
            with pytest.raises(duckdb.PermissionException):
                db.execute(f"FROM {door.format(tmp_path)}").fetchall()
        for change in ("SET enable_external_access = true", f"ATTACH '{tmp_path}/c.db'",
                       f"COPY loaded TO '{tmp_path}/c.csv'", "INSTALL httpfs"):  # fmt: skip
            with pytest.raises(duckdb.Error):
                db.execute(change)
