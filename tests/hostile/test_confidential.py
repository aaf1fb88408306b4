"""What a confidential table holds is not told outside, whichever way reading it fails."""

import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import traceback
import zlib
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

import hedgerow as hr
from hedgerow.errors import OUTSIDE, HedgerowError
from hedgerow.release import execution
from hedgerow.tables import read
from hedgerow.tables.read import read_areas
from tests.hostile.commands import ran, write
from tests.hostile.mutations import csv, toml
from tests.parts import ODBC_OF_SQLITE

MARK = "Zq7W"
REFUSED = f"Error: the table {OUTSIDE}"
SECRET, NUMBER = f"{MARK}-secret", 987_650_123
ROWS = 90
PLACES = {"town": ["t1", "t2"]}


def records(n=ROWS, **columns):
    """A table with one record per row."""
    return {"town": ["t1"] * n, "n": ["1"] * n, "who": [f"{MARK}{i}" for i in range(n)], **columns}


def changed(column, value, at=57):
    """The table with one value changed, in a row of its own."""
    table = records()
    table[column] = [value if i == at else given for i, given in enumerate(table[column])]
    return {"table.csv": csv(table)}


def spoiled_parquet():
    """A Parquet file with a page of garbage."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(records()), sink, compression="none", use_dictionary=False)
    data = bytearray(sink.getvalue().to_pybytes())
    start = data.index(b"t1")
    data[start - 4 : start + 200] = b"\xff" * 204
    return bytes(data)


def cut_gz(at=-6):
    return gzip.compress(csv(records()))[:at]


def wrong_checksum():
    packed = bytearray(gzip.compress(csv(records())))
    packed[-8] ^= 1
    return bytes(packed)


TABLE = csv(records())
FILES = {
    "unknown code": changed("town", SECRET),
    "no code": changed("town", ""),
    "alike code": changed("town", "T1"),
    "negative count": changed("n", f"-{NUMBER}"),
    "fraction": changed("n", f"{NUMBER}.5"),
    "NaN count": changed("n", "NaN"),
    "infinite count": changed("n", "inf"),
    "text count": changed("n", SECRET),
    "exponent": changed("n", f"{NUMBER}e2"),
    "no count": changed("n", ""),
    "short row": {"table.csv": TABLE + f"{SECRET},1\n".encode()},
    "long row": {"table.csv": TABLE + f"t1,1,{SECRET},x\n".encode()},
    "open quote": {"table.csv": TABLE + f't1,1,"{SECRET}\n'.encode()},
    "latin": {"table.csv": TABLE + f"t1,1,{SECRET}é\n".encode("latin-1")},
    "late latin": {"table.csv": TABLE * 60_000 + f"t1,1,{SECRET}é\n".encode("latin-1")},
    "zero byte": {"table.csv": TABLE + f"t1,1,{SECRET}\0\n".encode()},
    "header of a record": {"table.csv": f"t1,1,{SECRET}\n".encode() * 9},
    "cut gz": {"table.csv": cut_gz()},
    "gz of another checksum": {"table.csv": wrong_checksum()},
    "gz of noise": {"table.csv": cut_gz(40) + SECRET.encode() * 9},
    "bad page": {"table.csv": spoiled_parquet()},
    "cut parquet": {"table.csv": spoiled_parquet()[:-30]},
}
SPEC = {
    "table": {"source": "table.csv", "count": "n"},
    "axis": [{"name": "place", "levels": ["town"], "areas": "places.csv"}],
    "privacy": {"rho": "1/20"},
    "output": {"directory": "out"},
}


def with_prior():
    spec = {**SPEC, "allocation": {"method": "optimal"}}
    spec["allocation"]["prior"] = {"source": "copy.csv", "count": "n", "public": True}
    return spec, {"table.csv": TABLE, "copy.csv": TABLE}


def with_prior_of_numbers():
    """Its file has the ages that the table has, which become bins."""
    spec, _ = with_prior()
    ages = {"name": "age", "low": 0, "high": 100, "bins": 4}
    table = csv(records(age=[str(age) for age in range(ROWS)]))
    return {**spec, "axis": [*SPEC["axis"], ages]}, {"table.csv": table, "copy.csv": table}


def numeric(value, **axis):
    spec = {**SPEC, "table": {"source": "table.csv"}}
    given = {"name": "age", "low": 0, "high": 100, "bins": 4, "out_of_bounds": "refuse", **axis}
    spec["axis"] = [given]
    rows = [5.0] * ROWS
    ages = [str(x) for x in rows[:57]] + [value] + [str(x) for x in rows[57:]]
    return spec, {"table.csv": csv({"age": ages})}


def with_unit(value):
    return {**SPEC, "table": {"source": "table.csv", "unit": "who"}}, changed("who", value)


def public_total():
    """Under replace neighbours the number of records is public, and too large; no cell is told."""
    spec = {**SPEC, "privacy": {"rho": "1/20", "neighbours": "replace"}}
    return spec, changed("n", str(2**40))


CASES = {
    **{name: (SPEC, files) for name, files in FILES.items()},
    "value out of range": numeric(str(NUMBER)),
    "value that is a word": numeric(SECRET),
    "value that is missing": numeric(""),
    "value that is NaN": numeric("nan"),
    "value that is endless": numeric("inf"),
    "record without a unit": with_unit(""),
    "id as programs rewrite it": with_unit(f"{NUMBER}.0"),
    "id with a blank behind it": with_unit(f"{SECRET} "),
}


def tells_nothing(said, files):
    """Neither a value nor a place, a length or a checksum of a table, in any way to write it."""
    assert MARK not in said
    table = files["table.csv"]
    try:
        whole = gzip.decompress(table)
    except (OSError, EOFError, zlib.error):
        whole = table
    numbers = {NUMBER, ROWS, ROWS + 1, ROWS + 2, 57, 58, 59, len(table), len(whole)}
    for data in (table, whole, csv(records())):
        for checksum in (zlib.crc32(data), zlib.adler32(data)):
            numbers |= {checksum, checksum - 2**32}
            assert f"{checksum:x}" not in said.lower()
    assert not {str(number) for number in numbers} & set(re.findall(r"-?\d+", said))


@pytest.mark.parametrize("command", ["release", "compare"])
@pytest.mark.parametrize("name", CASES)
def test_a_refusal_in_a_log_says_no_more_than_that_it_is_one(tmp_path, name, command):
    spec, files = CASES[name]
    write(tmp_path, {"places.csv": csv(PLACES), **files, "release.toml": toml(spec).encode()})
    if command == "compare":  # with a release of another table
        good = spec["axis"][0].get("low") is None
        write(tmp_path, {"good.csv": csv(records()) if good else csv({"age": ["5"]})})
        other = {**spec, "table": {**spec["table"], "source": "good.csv"}}
        other.pop("allocation", None)
        write(tmp_path, {"other.toml": toml(other).encode()})
        assert ran("release", tmp_path / "other.toml")[0] == 0
    code, out, err = ran(command, tmp_path / "release.toml")
    assert (code, out) == (2, "")
    (sentence,) = [line for line in err.splitlines() if line.startswith("Error: ")]
    header = name == "header of a record"
    assert sentence == REFUSED or (header and "has no column" in sentence), sentence
    tells_nothing((out + err).replace(str(tmp_path), ""), files)


@pytest.mark.parametrize("made", [with_prior, with_prior_of_numbers])
def test_a_log_says_nothing_of_a_prior_that_has_the_counts_of_the_table(tmp_path, made):
    """Else whoever names a prior learns whether it is the table."""
    said = {}
    for name in ("own", "other"):
        spec, files = made()
        others = files["copy.csv"].splitlines()[-1] + b"\n" if name == "other" else b""
        files = {**files, "places.csv": csv(PLACES), "copy.csv": files["copy.csv"] + others}
        write(tmp_path, {**files, "release.toml": toml(spec).encode()})
        code, _, err = ran("release", tmp_path / "release.toml")
        said[name] = code, err
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert said["own"] == said["other"]
    assert said["own"][0] == 0


def test_all_refusals_of_one_table_read_the_same(tmp_path):
    """So that nobody learns from a log which rule a table breaks: all of it, not the sentence."""
    logs = set()
    for name, (spec, files) in CASES.items():
        if name != "header of a record":  # a public fact: the column that is not there
            write(tmp_path, {"places.csv": csv(PLACES), **files})
            write(tmp_path, {"release.toml": toml(spec).encode()})
            logs.add(ran("release", tmp_path / "release.toml"))
    ((code, _, log),) = logs
    assert code == 2
    assert REFUSED in log


def test_another_table_than_the_one_begun_with_is_refused_in_the_same_words(tmp_path, monkeypatch):
    write(tmp_path, {"places.csv": csv(PLACES), "table.csv": TABLE})
    write(tmp_path, {"release.toml": toml(SPEC).encode()})
    with monkeypatch.context() as killed:
        killed.setattr(execution, "write_manifest", stopped)
        assert ran("release", tmp_path / "release.toml")[0] == 130
    logs = set()
    for table in (csv(records(ROWS - 1)), cut_gz(), FILES["unknown code"]["table.csv"]):
        write(tmp_path, {"table.csv": table})
        logs.add(ran("release", tmp_path / "release.toml", "--resume"))
    ((code, _, log),) = logs
    assert code == 2
    assert REFUSED in log
    write(tmp_path, {"table.csv": TABLE})
    assert ran("release", tmp_path / "release.toml", "--resume")[0] == 0


def stopped(*_args, **_options):
    raise KeyboardInterrupt


def chain(error, seen=None):
    """An error, and all that hang on it."""
    seen = {} if seen is None else seen
    if error is not None and id(error) not in seen:
        seen[id(error)] = error
        chain(error.__cause__, seen)
        chain(error.__context__, seen)
    return [*seen.values()]


def left_behind(error):
    """What of an error others may write down: words, what they are of, and variables of frames."""
    for each in chain(error):
        yield from (str(each), repr(each.args), repr(getattr(each, "object", "")))
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if "hedgerow" in Path(frame.f_code.co_filename).parts:
                yield from map(repr, frame.f_locals.values())


def stored(tmp_path, kind):
    """A table with a secret that cannot be read, wherever it is stored."""
    path = tmp_path / "table.csv"
    if kind in FILES:
        write(tmp_path, FILES[kind])
        return path
    if kind == "sav":
        path = tmp_path / "t.sav"
        pyreadstat.write_sav(pl.DataFrame({"town": [SECRET], "n": [1]}), str(path))
        return path
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (town VARCHAR(99), n VARCHAR(99))")
        db.executemany("INSERT INTO t VALUES (?, ?)", [("t1", "1"), ("t1", SECRET)])
        db.commit()
    place = f"{tmp_path}/t.db"
    url = f"odbc://Driver=SQLite3;Database={place}" if "odbc" in kind else f"sqlite:///{place}"
    # each record goes into a text, which a sum that overflows is made of
    sql = "SELECT town, abs(-9223372036854775807 - (n <> '1')) AS n FROM t"
    return hr.Query(url, sql if "breaks" in kind else "SELECT town, n FROM t")


OVER_ODBC = [
    pytest.param(kind, marks=ODBC_OF_SQLITE.needed) for kind in ("odbc", "odbc breaks off")
]


@pytest.mark.parametrize("kind", [*FILES, "sav", "sqlite", "sqlite breaks off", *OVER_ODBC])
def test_nothing_of_a_table_hangs_on_the_error_that_refuses_it(tmp_path, kind):
    tree = hr.Tree([hr.Axis.from_frame("place", PLACES, ["town"])])
    readers = [lambda table: hr.Counts.from_frame(tree, table, count="n")]
    if "odbc" not in kind and "sav" not in kind:
        readers.append(lambda table: read_areas(table, ["town", "n"], repeated=True))
    errors, table = [], stored(tmp_path, kind)
    for reader in readers:
        try:
            reader(table)
        except HedgerowError as error:
            errors.append(error)
    assert errors
    for refusal in errors:
        assert f"Error: {refusal}" == REFUSED or kind == "header of a record"
        for text in left_behind(refusal):
            assert MARK not in text
            assert str(NUMBER) not in text


TABLES = {
    "a word among numbers": {"town": ["t1", "t1"], "n": [1, SECRET]},
    "a mapping among words": {"town": ["t1", {SECRET: 1}], "n": [1, 1]},
    "a letter that is none": {"town": ["t1", f"{MARK}\udcff"], "n": [1, 1]},
    "a number too large": {"town": ["t1", "t1"], "n": [1, 10**40 + NUMBER]},
    "a query that breaks off": pl.LazyFrame({"town": ["t1", SECRET], "n": ["1", SECRET]}).select(
        "town", pl.col("n").cast(pl.Int64)
    ),
    "a relation that breaks off": f"SELECT 't1' AS town, CAST('{SECRET}' AS INT) AS n",
    "a column of objects": pd.DataFrame({"town": ["t1", (SECRET,)], "n": [1, 1]}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_frame_with_a_record_that_is_none_is_refused_in_the_same_words(kind):
    tree = hr.Tree([hr.Axis.from_frame("place", PLACES, ["town"])])
    table = TABLES[kind]
    with pytest.raises(HedgerowError) as caught:
        hr.Counts.from_frame(tree, duckdb.sql(table) if isinstance(table, str) else table)
    assert f"Error: {caught.value}" == REFUSED
    (alone,) = chain(caught.value)
    assert alone is caught.value


@pytest.mark.parametrize("given", [["7", SECRET], [7, [SECRET]], [7.0, None, float("nan")]])
def test_a_column_with_a_value_that_is_no_number_is_refused_in_the_same_words(given):
    column = {"low": 0, "high": 9, "bins": 3, "budget": hr.Rho(1)}
    for units in (None, [SECRET, 7, None][: len(given)]):
        with pytest.raises(HedgerowError) as caught:
            hr.release_distribution(given if units is None else [7.0] * len(units), **column,
                                    **({} if units is None else {"units": units}))  # fmt: skip
        assert f"Error: {caught.value}" == REFUSED
        (alone,) = chain(caught.value)
        assert alone is caught.value


def test_a_library_that_nobody_foresaw_to_fail_is_a_refusal_too(tmp_path, monkeypatch):
    """Whatever it says, and whether it fails, may depend on the table."""
    write(tmp_path, {"places.csv": csv(PLACES), "table.csv": TABLE})
    write(tmp_path, {"release.toml": toml(SPEC).encode()})

    def failing(*_args, **_options):
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(read, "match_axis", failing)
    code, _, log = ran("release", tmp_path / "release.toml")
    assert code == 2
    assert REFUSED in log
    assert MARK not in log


def test_a_python_error_says_what_is_wrong_in_confidence_alone(tmp_path):
    write(tmp_path, {"places.csv": csv(PLACES), **FILES["unknown code"]})
    axis = hr.Axis.from_frame("place", PLACES, ["town"])
    with pytest.raises(HedgerowError) as caught:
        hr.Counts.from_frame(hr.Tree([axis]), tmp_path / "table.csv", count="n")
    assert MARK not in str(caught.value)
    assert SECRET in caught.value.confidential
    assert "town" not in str(caught.value)


@pytest.mark.parametrize("rows", ["bad type", "failing"])
def test_a_query_that_fails_tells_nothing_of_its_rows(tmp_path, rows):
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (town TEXT, n)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [("t1", 1)] * ROWS + [(SECRET, SECRET)])
        db.commit()
    query = "SELECT town, n FROM t"
    if rows == "failing":
        query = "SELECT town, abs(-9223372036854775807 - (n <> 1)) AS n FROM t"
    table = {"source": "sqlite:///t.db", "query": query, "count": "n"}
    spec = {**SPEC, "table": table}
    write(tmp_path, {"places.csv": csv(PLACES), "release.toml": toml(spec).encode()})
    code, out, err = ran("release", tmp_path / "release.toml")
    assert (code, out) == (2, "")
    tells_nothing((out + err).replace(str(tmp_path), ""), {"table.csv": TABLE})


@ODBC_OF_SQLITE.needed
@pytest.mark.parametrize("rows", ["fine", "bad type"])
def test_a_table_over_odbc_tells_neither_its_rows_nor_its_password(tmp_path, rows):
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (town VARCHAR(20), n VARCHAR(20))")
        last = ("t2", "1") if rows == "fine" else (SECRET, SECRET)
        db.executemany("INSERT INTO t VALUES (?, ?)", [("t1", "1")] * ROWS + [last])
        db.commit()
    source = f"odbc://Driver=SQLite3;Database={tmp_path}/t.db;UID=user-77;PWD={SECRET}"
    spec = {**SPEC, "table": {"source": source, "query": "SELECT town, n FROM t", "count": "n"}}
    write(tmp_path, {"places.csv": csv(PLACES), "release.toml": toml(spec).encode()})
    code, out, err = ran("release", tmp_path / "release.toml")
    assert code == (0 if rows == "fine" else 2), err
    written = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert bool(written) == (rows == "fine")
    for text in [(out + err).encode(), *written]:
        assert MARK.encode() not in text
        assert b"user-77" not in text


@pytest.mark.parametrize("suffix", ["sav", "dta", "xpt"])
def test_a_file_of_a_statistics_program_tells_nothing_of_its_rows(tmp_path, suffix):
    table = pl.DataFrame({**records(), "n": [1] * ROWS})
    writer = {"sav": "write_sav", "dta": "write_dta", "xpt": "write_xport"}[suffix]
    spec = {**SPEC, "table": {"source": f"t.{suffix}", "count": "n"}}
    write(tmp_path, {"places.csv": csv(PLACES), "release.toml": toml(spec).encode()})
    said = set()
    for spoiled in (
        pl.when(pl.int_range(pl.len()) == 57).then(pl.lit(SECRET)).otherwise("town").alias("town"),
        (pl.col("n") + 0.5).alias("n"),
        (pl.col("n") - 2).alias("n"),
    ):
        path = tmp_path / f"t.{suffix}"
        getattr(pyreadstat, writer)(table.with_columns(spoiled), str(path))
        code, out, err = ran("release", tmp_path / "release.toml")
        assert (code, out) == (2, "")
        assert MARK not in err
        said.add(err)
    path.write_bytes(path.read_bytes()[:900])
    code, _, err = ran("release", tmp_path / "release.toml")
    assert code == 2
    assert said == {err}


def test_values_out_of_range_and_counts_too_large_are_released_without_a_word(tmp_path):
    spec, files = numeric(str(NUMBER))
    del spec["axis"][0]["out_of_bounds"]
    write(tmp_path, {**files, "release.toml": toml(spec).encode()})
    code, out, err = ran("release", tmp_path / "release.toml")
    assert code == 0, err
    assert str(NUMBER) not in out + err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "outside the public" not in json.dumps(manifest)
    (tmp_path / "two").mkdir()
    files = changed("n", str(2**70 + NUMBER))
    write(tmp_path / "two", {"places.csv": csv(PLACES), **files})
    write(tmp_path / "two", {"release.toml": toml(SPEC).encode()})
    code, out, err = ran("release", tmp_path / "two" / "release.toml")
    assert code == 0, err
    assert str(2**70) not in out + err


def test_where_the_number_of_records_is_public_a_table_too_large_is_refused_in_words(tmp_path):
    spec, files = public_total()
    write(tmp_path, {"places.csv": csv(PLACES), **files, "release.toml": toml(spec).encode()})
    code, _, err = ran("release", tmp_path / "release.toml")
    assert code == 2
    assert "must have fewer than 2**40" in err
    tells_nothing(err.replace(str(tmp_path), ""), files)


def test_a_process_that_logs_says_nothing_either(tmp_path):
    """As a cron job has it: standard error is a file, colours are forced."""
    write(tmp_path, {"places.csv": csv(PLACES), **FILES["gz of another checksum"]})
    write(tmp_path, {"release.toml": toml(SPEC).encode()})
    command = [sys.executable, "-m", "hedgerow.cli", "release", str(tmp_path / "release.toml")]
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            command, stdout=log, stderr=log, check=False, env={**os.environ, "FORCE_COLOR": "1"}
        )
    assert done.returncode == 2
    said = (tmp_path / "log").read_text().replace(str(tmp_path), "")
    tells_nothing(re.sub(r"\x1b\[[0-9;]*m", "", said), FILES["gz of another checksum"])


def test_the_markers_are_there_to_be_found(tmp_path):
    """On a terminal they are shown: the checks above look for what a failure would have said."""
    seen = 0
    axis = hr.Axis.from_frame("place", PLACES, ["town"])
    for name, files in FILES.items():
        write(tmp_path, files)
        try:
            hr.Counts.from_frame(hr.Tree([axis]), tmp_path / "table.csv", count="n")
        except HedgerowError as error:
            seen += MARK in str(error.confidential)
        else:
            raise AssertionError(name)
    assert seen >= 4
    write(tmp_path, FILES["gz of another checksum"])
    with pytest.raises(HedgerowError) as caught:
        hr.Counts.from_frame(hr.Tree([axis]), tmp_path / "table.csv", count="n")
    assert f"{zlib.crc32(csv(records())):x}" in caught.value.confidential
