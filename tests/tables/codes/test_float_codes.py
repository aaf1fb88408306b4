"""Codes that a program wrote as floats, and the mark that begins a file: read or refused."""

import gzip
import sqlite3
from contextlib import closing

import polars as pl
import pytest

from hedgerow.distribution.bins import NumericColumn, binned, coded_axis
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import TableError
from hedgerow.plan.facts.facts import PublicTable, read_facts
from hedgerow.plan.prior import Prior
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.rules import Division, Prefix
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import Query, read_areas
from hedgerow.tables.sources.database import open_database
from hedgerow.tables.sources.source import Source, coded
from hedgerow.tables.tree import Tree
from tests.made import by_code
from tests.refused import refused, told

LIST = {"state": ["7", "7", "8"], "county": ["74", "75", "80"]}
LEVELS = ["state", "county"]
RULE = "holds fractions, or numbers too long for a float; codes must be text or whole numbers"


def tree(areas=None, **options):
    return Tree([Axis.from_frame("place", LIST if areas is None else areas, LEVELS, **options)])


def counted(table, of=None):
    return by_code(of or tree(), table)


def as_file(folder, text):
    (folder / "t.csv").write_text(text)
    return folder / "t.csv"


def as_floats(folder):
    frame = pl.DataFrame({"state": [7.0, 7.0, 8.0], "county": [74.0, 74.0, 80.0]})
    frame.write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def as_pandas(folder):
    del folder
    frame = pl.DataFrame({"state": [7, 7, 8], "county": [74, 74, 80]}).to_pandas()
    return frame.astype("float64")


def as_real(folder):
    with closing(sqlite3.connect(folder / "t.db")) as db:
        db.execute("CREATE TABLE t (state REAL, county REAL)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(7, 74), (7, 74), (8, 80)])
        db.commit()
    return Query(f"sqlite:///{folder}/t.db", "SELECT * FROM t")


FLOATS = {
    "csv": lambda folder: as_file(folder, "state,county\n7.0,74.0\n7.0,74.0\n8.0,80.0\n"),
    "csv by row": lambda folder: as_file(folder, "state,county\n7,74.0\n7.0,74\n8.0,80.0\n"),
    "decimal commas": lambda folder: as_file(folder, "state;county\n7;74,0\n7,0;74\n8;80\n"),
    "parquet": as_floats,
    "pandas": as_pandas,
    "sqlite": as_real,
    "float32": lambda folder: pl.read_parquet(as_floats(folder)).cast(pl.Float32),
}


@pytest.mark.parametrize("source", FLOATS.values(), ids=FLOATS)
def test_whole_floats_are_codes_of_a_table(source, tmp_path):
    assert counted(source(tmp_path)) == {"74": 2, "80": 1}


@pytest.mark.parametrize("name", [name for name in FLOATS if name != "csv by row"])
def test_whole_floats_are_codes_of_a_public_list(name, tmp_path):
    if name == "decimal commas":  # of a list all codes of a column must be written so
        source = as_file(tmp_path, "state;county\n7,0;74,0\n8,0;80,0\n")
    else:
        source = FLOATS[name](tmp_path)
    listed = read_areas(source, LEVELS, repeated=True)
    assert sorted(listed.rows()) == [("7", "74"), ("8", "80")]
    if isinstance(source, pl.DataFrame):
        axis = Axis.from_frame("place", source, LEVELS, from_table=True)
        assert axis.labels[-1].to_list() == ["74", "80"]


def test_a_list_written_as_floats_fits_a_table_that_is_not(tmp_path):
    written = as_file(tmp_path, "state,county\n7.0,74.0\n7.0,75.0\n8.0,80.0\n")
    of = tree(read_areas(written, LEVELS))
    assert counted({"state": ["7", "8"], "county": ["74", "80"]}, of) == {"74": 1, "80": 1}


def test_a_list_in_a_data_frame_may_be_written_as_floats_too():
    written = {"state": ["7.0", "7.0", "8.0"], "county": ["74.0", "75.0", "80.0"]}
    assert Axis.from_frame("place", written, LEVELS).labels[-1].to_list() == ["74", "75", "80"]


def test_whole_floats_are_codes_that_a_rule_divides():
    written = {"GEOID": ["1101.0", "1202.0"]}
    blocks = Axis.from_frame("place", written, ["state", "block"], rule=Prefix([2, 4]))
    assert blocks.labels[1].to_list() == ["1101", "1202"]
    for codes in ([1101.0, 1202.0], ["1101.0", "1202"]):
        assert counted({"GEOID": codes}, Tree([blocks])) == {"1101": 1, "1202": 1}
    for points in (["250.0", "250.1"], ["250.0"]):
        causes = Axis.from_frame(
            "cause", {"icd": ["250.1", "250.0"]}, ["a", "b"], rule=Prefix([3, 5])
        )
        assert counted({"icd": points}, Tree([causes])) == dict.fromkeys(points, 1)


def test_coordinates_may_be_fractions_all_the_same():
    squares = Axis.from_frame("grid", {"x": [10.5, 20.0]}, ["s"], rule=Division([10], code="x"))
    assert counted({"x": [15.5, 29.0]}, Tree([squares])) == {"10": 1, "20": 1}


def test_a_missing_value_beside_floats_is_no_code():
    for missing in (None, float("nan")):
        table = {"state": [7.0, 8.0], "county": [74.0, missing]}
        with refused("column 'county' lacks a code for some record"):
            counted(table)
        assert counted(table, tree(not_stated="80")) == {"74": 1, "80": 1}


@pytest.mark.parametrize(
    "values",
    [
        [74.5, 80.0],
        [float("inf"), 1.0],
        [2.0**53, 1.0],
        [-(2.0**53), 1.0],
        pl.Series([2.0**24], dtype=pl.Float32),
    ],
    ids=["fraction", "infinity", "double", "negative", "float"],
)
def test_floats_that_are_no_whole_numbers_are_refused(values):
    table = pl.DataFrame({"county": values})
    of = Tree([Axis.from_frame("place", {"county": ["74", "80"]}, ["county"])])
    with refused(f"the table: column 'county' {RULE}") as caught:
        counted(table, of)
    assert "74.5" not in told(caught.value)
    with pytest.raises(TableError, match=f"column 'county' {RULE}"):
        read_areas(table, ["county"])
    with pytest.raises(TableError, match=f"column 'county' {RULE}"):
        Axis.from_frame("place", table, ["county"])


def test_floats_that_a_database_sends_as_text_are_floats_all_the_same():
    source = Source("the table", ("county",), lambda _: None, frozenset({"county"}))
    with open_database() as db:
        db.execute("CREATE TEMP TABLE loaded AS SELECT unnest(['7.4e1', '75', '']) AS c0")
        (text,) = coded(db, source, ["county"], ["VARCHAR"])
        found = db.execute(f"SELECT {text} FROM loaded ORDER BY 1").fetchall()
        assert found == [("74",), ("75",), (None,)]
        db.execute("INSERT INTO loaded VALUES ('74.5')")
        with refused(f"column 'county' {RULE}"):
            coded(db, source, ["county"], ["VARCHAR"])


def test_large_whole_floats_are_written_out():
    largest = 2**53 - 1
    of = Tree([Axis.from_frame("place", {"county": [str(largest), "-5", "0"]}, ["county"])])
    table = {"county": [float(largest), -5.0, -0.0]}
    assert counted(table, of) == {str(largest): 1, "-5": 1, "0": 1}
    single = pl.Series("county", [2.0**24 - 1], dtype=pl.Float32)
    of = Tree([Axis.from_frame("place", {"county": [str(2**24 - 1)]}, ["county"])])
    assert counted(pl.DataFrame(single), of) == {str(2**24 - 1): 1}


def test_a_classification_with_points_keeps_them():
    codes = ["250.0", "250.1", "001"]
    of = Tree([Axis.from_frame("cause", {"icd": codes}, ["icd"])])
    assert counted({"icd": codes}, of) == dict.fromkeys(sorted(codes), 1)
    with refused("column 'icd' holds a code that is not in"):
        counted({"icd": ["250"]}, of)


def test_of_a_table_each_record_is_read_for_itself():
    """So one record, whatever its code is, changes no other's: what sensitivities rest on."""
    of = tree(not_stated="80")
    one = {"county": ["74.0", "75"]}
    for other in ("74.5", "x", "75.0", "", "007.0"):
        counts = counted({"county": [*one["county"], other]}, of)
        assert counts["74"] == 1
        assert sum(counts.values()) == 3


@pytest.mark.parametrize(
    "code", ["074.0", "74.00", "74.", "+74.0", "7e1", "74.0 ", "1,234.0", "A.0"]
)
def test_what_no_program_writes_for_a_whole_number_stays_as_it_is(code):
    with refused("column 'county' holds a code that is not in the public list"):
        counted({"county": [code]})


def test_a_zero_that_a_float_lost_is_told_of():
    of = Tree([Axis.from_frame("place", {"county": ["01001", "02001"]}, ["county"])])
    for table in ({"county": ["1001.0"]}, {"county": [1001.0]}):
        with refused("look for lost leading zeros") as caught:
            counted(table, of)
        assert "the list has '01001'" in caught.value.confidential


def test_whole_floats_are_units():
    table = {"county": ["74"] * 3, "who": [1.0, 1.0, 2.0]}
    assert Counts.from_frame(tree(), table, unit="who", contributions=1).total == 2
    with refused("column 'who' lacks the unit"):
        Counts.from_frame(tree(), {**table, "who": [1.0, 1.0, None]}, unit="who", contributions=1)


def test_floats_are_codes_of_a_prior(tmp_path):
    prior = Prior.read(tree(), FLOATS["csv"](tmp_path), public=True)
    assert prior.counts.total == 3
    assert prior.counts.tree.axes[0].labels[-1].to_list() == ["74", "80"]


def test_floats_and_separators_are_read_in_public_facts(tmp_path):
    axes = [
        Axis.from_frame("place", LIST, LEVELS),
        Axis.from_frame("cause", {"icd": ["1.0", "1.5"]}, ["icd"], attribute=True),
    ]
    source = as_file(tmp_path, "county;icd;most\n74,0;1.0;1.234.567\n75,0;1.5;12,0\n")
    (rows,) = read_facts(Tree(axes), [PublicTable(source, at_most="most")])
    assert rows.frame.rows() == [("74", "1.0", 1_234_567), ("75", "1.5", 12)]


def test_a_numeric_column_beside_codes_that_are_floats_is_binned(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (county REAL, age REAL)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(74, 1.5), (80, 3)])
        db.commit()
    ranges = Ranges.equal_width("age", 0, 4, 2)
    numeric = NumericColumn("age", ranges, coded_axis(ranges, [2]))
    asked = Query(f"sqlite:///{tmp_path}/t.db", "SELECT * FROM t")
    made = binned(asked, [numeric], ["county"])
    assert counted(made.table.select(["county"])) == {"74": 1, "80": 1}


# --- the mark that begins a file ------------------------------------------------------------------


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_a_byte_order_mark_is_no_letter_of_the_first_column(quoted, packed, tmp_path):
    frame = pl.DataFrame({"county": ["74", "80"], "state": ["7", "8"]})
    text = frame.write_csv(quote_style="always" if quoted else "necessary")
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    content = b"\xef\xbb\xbf" + text.encode()
    if packed:
        content = gzip.compress(content)
    path.write_bytes(content)
    assert counted(path) == {"74": 1, "80": 1}
    assert read_areas(path, ["county"])["county"].to_list() == ["74", "80"]


def test_a_byte_order_mark_that_a_program_kept_in_a_name_is_dropped(tmp_path):
    frame = pl.DataFrame({"\ufeffcounty": ["74", "80"], "state": ["7", "8"]})
    frame.write_parquet(tmp_path / "t.parquet")
    for table in (frame, frame.to_pandas(), tmp_path / "t.parquet"):
        assert counted(table) == {"74": 1, "80": 1}
        assert read_areas(table, ["state", "county"]).columns == ["state", "county"]
    assert Axis.from_frame("place", frame, ["county"]).labels[0].to_list() == ["74", "80"]


def test_a_separator_of_thousands_without_quotes_is_told_of(tmp_path):
    path = as_file(tmp_path, "county,n\n74,1,234\n")
    with refused(r"quotes around a field with a separator or a line break in it \(1,234 has one\)"):
        counted(path)
