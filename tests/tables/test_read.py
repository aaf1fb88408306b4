"""Records → leaves: every kind of source, the public list, and what does not fit it."""

import sqlite3
from collections import Counter
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import adbc_driver_postgresql.dbapi as postgresql
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import Query, read_areas, read_leaves
from hedgerow.tables.tree import Tree
from tests.made import random_axis, random_tree
from tests.parts import SERVER, SERVER_URL
from tests.refused import refused, told

LEVELS = ["region", "province", "town"]
AREAS = [
    ("01", "011", "0111"),
    ("01", "011", "0112"),
    ("01", "012", "0121"),
    ("02", "021", "0211"),
    ("09", "099", "0999"),
]
ROWS = [
    ("01", "011", "0112", 5),
    ("02", "021", "0211", 7),
    ("01", "011", "0111", 0),
    ("01", "011", "0112", 3),
    ("01", "012", "0121", 1),
]
EXPECTED = {("01", "011", "0112"): 8, ("01", "012", "0121"): 1, ("02", "021", "0211"): 7}
DATA = Path(__file__).parents[3] / "shared" / "data"


def frame_of(rows, columns=None):
    return pl.DataFrame(rows, schema=columns or [*LEVELS, "n"], orient="row")


def places(**options):
    return Axis.from_frame("place", frame_of(AREAS, LEVELS), LEVELS, **options)


def tree_of(**options):
    return Tree([places(**options)])


def counted(table, *, tree=None, count="n", **options):
    """Counts by path."""
    tree = tree or tree_of()
    found = Counts.from_frame(tree, table, count=count, **options).level(tree.depth)
    return {row[:-1]: row[-1] for row in found.rows()}


def as_csv(folder):
    frame_of(ROWS).write_csv(folder / "t.csv")
    return folder / "t.csv"


def as_zipped_csv(folder):
    frame_of(ROWS).write_csv(folder / "t.csv.gz", compression="gzip")
    return str(folder / "t.csv.gz")


def as_semicolons(folder):
    text = frame_of(ROWS).write_csv(separator=";", line_terminator="\r\n", quote_style="always")
    (folder / "t.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return folder / "t.txt"


def as_parquet(folder):
    frame_of(ROWS).write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def as_parquet_called_otherwise(folder):
    frame_of(ROWS).write_parquet(folder / "we[i]rd*'s.data")
    return folder / "we[i]rd*'s.data"


def as_folder(folder):
    for region, part in frame_of(ROWS).group_by("region"):
        (folder / "t" / f"region={region[0]}").mkdir(parents=True)
        part.drop("region").write_parquet(folder / "t" / f"region={region[0]}" / "p.parquet")
    return folder / "t"


def as_glob(folder):
    frame_of(ROWS[:2]).write_parquet(folder / "t1.parquet")
    frame_of(ROWS[2:]).write_parquet(folder / "t2.parquet")
    return str(folder / "t*.parquet")


def as_sqlite(folder):
    with closing(sqlite3.connect(folder / "a b?.db")) as db:
        db.execute("CREATE TABLE t (region TEXT, province TEXT, town TEXT, n NUMERIC)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
        db.commit()
    return Query(f"sqlite:///{folder}/a b%3F.db", "SELECT * FROM t; ")


def as_postgresql(folder):
    table = f"hedgerow_{sha256(str(folder).encode()).hexdigest()[:12]}"  # tests run side by side
    SERVER.require()
    with closing(postgresql.connect(SERVER_URL)) as db, closing(db.cursor()) as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute(
            f"CREATE TABLE {table} (region char(2), province text, town varchar, n numeric(9, 2))"
        )
        rows = ", ".join(f"('{a}', '{b}', '{c}', {n})" for a, b, c, n in ROWS)
        cursor.execute(f"INSERT INTO {table} VALUES {rows}")
        db.commit()
    return Query(SERVER_URL, f"WITH x AS (SELECT * FROM {table}) SELECT * FROM x -- all")


SOURCES = {
    "csv": as_csv,
    "csv.gz": as_zipped_csv,
    "csv with ; BOM quotes CRLF": as_semicolons,
    "parquet": as_parquet,
    "parquet without suffix": as_parquet_called_otherwise,
    "folder": as_folder,
    "glob": as_glob,
    "sqlite": as_sqlite,
    "postgresql": as_postgresql,
    "polars": lambda _: frame_of(ROWS),
    "lazy": lambda _: frame_of(ROWS).lazy(),
    "categorical": lambda _: frame_of(ROWS).with_columns(pl.col(LEVELS).cast(pl.Categorical)),
    "pandas": lambda _: frame_of(ROWS).to_pandas(),
    "pyarrow": lambda _: frame_of(ROWS).to_arrow(),
    "stream": lambda _: frame_of(ROWS).to_arrow().to_reader(),
    "dict": lambda _: frame_of(ROWS).to_dict(as_series=False),
    "arrays": lambda _: {
        k: np.array(v) for k, v in frame_of(ROWS).to_dict(as_series=False).items()
    },
}


each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@each_source
def test_every_kind_of_source_gives_the_same_counts(source, tmp_path):
    assert counted(source(tmp_path)) == EXPECTED


@each_source
def test_every_kind_of_source_may_be_one_row_a_record(source, tmp_path):
    assert counted(source(tmp_path), count=None) == {
        ("01", "011", "0111"): 1,
        ("01", "011", "0112"): 2,
        ("01", "012", "0121"): 1,
        ("02", "021", "0211"): 1,
    }


@each_source
def test_a_public_list_of_every_kind_keeps_its_zeros(source, tmp_path):
    areas = read_areas(source(tmp_path), ["region", "town"], repeated=True)
    assert areas.schema == {"region": pl.String, "town": pl.String}
    assert sorted(areas.rows()) == sorted({(a, c) for a, _, c, _ in ROWS})


def test_a_list_of_areas_keeps_what_it_repeats_and_lacks():
    areas = read_areas({"a": ["1", "1", None, ""], "b": [7, 7, 8, 9]}, ["a", "b"])
    assert sorted(areas.rows(), key=str) == [("1", "7"), ("1", "7"), (None, "8"), (None, "9")]


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_random_tables_are_grouped_like_a_dictionary(seed, axes, deepest_alone):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, axes)
    size = 30
    codes = [rng.integers(0, axis.size(3), size).astype(np.int32) for axis in tree.axes]
    values = rng.integers(0, 5, size)
    columns = [s for axis, code in zip(tree.axes, codes, strict=True) for s in axis.path(3, code)]
    if deepest_alone:
        columns = [s for s in columns if s.name.endswith("level3")]
    table = pl.DataFrame([*columns, pl.Series("n", values)])
    found, sums, *_ = read_leaves(tree, table, count="n", unit=None, contributions=1)
    expected = Counter()
    for *leaf, n in zip(*codes, values.tolist(), strict=True):
        expected[tuple(leaf)] += n
    listed = list(zip(*found, strict=True))
    assert len(set(listed)) == len(listed)
    assert dict(zip(listed, sums, strict=True)) == {k: n for k, n in expected.items() if n}
    assert all(code.dtype == np.int32 for code in found)


@pytest.mark.parametrize("rows", [[], [(*AREAS[0], 0), (*AREAS[3], 0)]], ids=["empty", "zero"])
def test_a_table_without_records_is_fine(rows, tmp_path):
    schema = {**dict.fromkeys(LEVELS, pl.String), "n": pl.Int64}
    frame = pl.DataFrame(rows, schema, orient="row")
    frame.write_csv(tmp_path / "t.csv")
    for table in (frame, tmp_path / "t.csv"):
        codes, values, *_ = read_leaves(tree_of(), table, count="n", unit=None, contributions=1)
        assert (len(codes), codes[0].size, values.size) == (1, 0, 0)
    if not rows:
        assert counted(frame.with_columns(who=pl.lit("")), count=None, unit="who") == {}


def test_columns_may_be_called_otherwise_in_the_table():
    tree = tree_of(columns=["a b", 'q"x', "Δ"])
    assert counted(frame_of(ROWS, ["a b", 'q"x', "Δ", "n"]), tree=tree) == EXPECTED


def test_names_that_differ_in_case_are_two_columns(tmp_path):
    frame = frame_of(ROWS).with_columns(pl.lit("x").alias("TOWN"), pl.lit(9).alias("N"))
    frame.write_csv(tmp_path / "t.csv")
    assert counted(frame) == EXPECTED
    assert counted(tmp_path / "t.csv") == EXPECTED


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt64, pl.Decimal(5, 0)])
def test_whole_numbers_are_codes(kind):
    tree = Tree([Axis.from_frame("x", {"x": ["7", "12"]}, ["x"])])
    table = pl.DataFrame({"x": pl.Series([7, 12, 7]).cast(kind)})
    assert counted(table, tree=tree, count=None) == {("7",): 2, ("12",): 1}


def test_odd_text_survives_as_code():
    odd = [
        "é",
        "e\u0301",
        " a",
        "a ",
        "a\nb",
        'a"b',
        "a,b",
        "'",
        "\U0001f600",
        "NULL",
        "NA",
        "a\x00b",
    ]
    tree = Tree([Axis.from_frame("x", {"x": odd}, ["x"])])
    assert counted({"x": odd}, tree=tree, count=None) == {(code,): 1 for code in odd}


def test_odd_text_survives_in_csv(tmp_path):
    odd = ["é", "e\u0301", " a", "a ", "a\nb", 'a"b', "a,b", "'", "NULL", "NA", "007", "1e5"]
    tree = Tree([Axis.from_frame("x", {"x": odd}, ["x"])])
    pl.DataFrame({"x": odd, "y": odd}).write_csv(tmp_path / "t.csv")
    assert counted(tmp_path / "t.csv", tree=tree, count=None) == {(code,): 1 for code in odd}
    assert sorted(read_areas(tmp_path / "t.csv", ["x"])["x"]) == sorted(odd)


# --- the public list -------------------------------------------------------------------------

BAD_RECORDS = {
    "an unknown town": (("01", "011", "0119"), "column 'town' holds a code that is not in the pub"),
    "all unknown": (("55", "555", "5555"), "column 'town' holds a code that is not in the public"),
    "a missing town": (("01", "011", None), "column 'town' lacks a code for some record"),
    "an empty town": (("01", "011", ""), "column 'town' lacks a code for some record"),
    "a missing province": (("01", None, "0111"), "column 'province' lacks a code"),
    "a missing region": ((None, "011", "0111"), "column 'region' lacks a code for some record"),
    "a branch of an unknown one": (("01", None, None), "column 'province' lacks a code"),
}
CONTRADICTIONS = {
    "another province": ("01", "012", "0111"),
    "another region": ("02", "011", "0111"),
    "an unknown province": ("01", "019", "0111"),
    "an unknown region": ("77", "011", "0111"),
    "both": ("02", "021", "0111"),
    "a missing region and another province": (None, "012", "0111"),
}


@pytest.mark.parametrize(("codes", "words"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_a_record_outside_the_list_is_refused_without_showing_its_code(codes, words):
    with refused(words) as caught:
        counted(frame_of([*ROWS, (*codes, 1)]))
    message = told(caught.value)
    assert "not_stated" in message
    for code in filter(None, codes):
        assert code not in message
        assert repr(code) in str(caught.value.confidential)


ALIKE = {
    "lost zeros": ("111", "; the list has '0111'"),
    "spaces": (" 0111 ", "; the list has '0111'"),
    "another number": ("119", ""),
}


@pytest.mark.parametrize(("code", "hint"), ALIKE.values(), ids=ALIKE)
def test_which_area_is_called_alike_is_told_in_confidence_alone(code, hint):
    """The sentence for logs is the same whether one is: which area it is tells of the table."""
    with refused("look for lost leading zeros, spaces, capitals") as caught:
        counted(frame_of([(code, 1)], ["town", "n"]))
    assert f"(the record has town {code!r}{hint})" in caught.value.confidential
    assert "0111" not in str(caught.value)


@pytest.mark.parametrize("codes", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
@pytest.mark.parametrize("not_stated", [None, "0999"])
def test_a_known_leaf_under_another_parent_is_always_refused(codes, not_stated):
    with refused(r"known 'town' under another parent \(region, province\)") as caught:
        counted(frame_of([*ROWS, (*codes, 1)]), tree=tree_of(not_stated=not_stated))
    message = told(caught.value)
    assert "public list of axis 'place'" in message
    for code in filter(None, codes):
        assert code not in message
        assert repr(code) in str(caught.value.confidential)


@pytest.mark.parametrize("codes", [codes for codes, _ in BAD_RECORDS.values()], ids=BAD_RECORDS)
def test_a_record_outside_the_list_goes_to_the_leaf_for_it(codes):
    table = frame_of([*ROWS, (*codes, 4), ("09", "099", "0999", 2)])
    found = counted(table, tree=tree_of(not_stated="0999"))
    assert found == {**EXPECTED, ("09", "099", "0999"): 6}


STATED = [*ROWS, ("09", "099", "0999", 3), ("09", "099", "0999", 4)]
UNLISTED = [("01", "011", "0119", 5), ("01", "011", "0119", 6), (None, None, None, 2)]


@pytest.mark.parametrize("many", [1, 40], ids=["sorted", "grouped"])
def test_records_that_are_not_stated_are_told_from_those_outside_the_list(many):
    tree = tree_of(not_stated="0999")
    rows = many * (STATED + UNLISTED)
    found = Counts.from_frame(tree, frame_of(rows), count="n")
    assert found.unlisted == (13 * many,)
    at_the_leaf = found.level(3).filter(pl.col("town") == "0999")["count"].item()
    assert at_the_leaf == many * (7 + 13 + EXPECTED.get(("09", "099", "0999"), 0))
    only_listed = Counts.from_frame(tree, frame_of(many * STATED), count="n")
    assert only_listed.unlisted == (0,)
    assert Counts.from_frame(tree_of(), frame_of(ROWS), count="n").unlisted == (None,)


def test_a_record_of_no_weight_must_fit_the_list_too():
    with refused("not in the public list"):
        counted(frame_of([*ROWS, ("01", "011", "0119", 0)]))


def test_the_deepest_column_alone_is_enough():
    table = frame_of(ROWS).select("town", "n")
    assert counted(table) == EXPECTED
    with refused("column 'town' holds a code"):
        counted(pl.concat([table, frame_of([("0119", 1)], ["town", "n"])]))


def test_each_axis_may_have_its_columns_or_its_deepest_alone():
    ends = [
        places(columns=["region", "province", "town"]),
        random_axis(np.random.default_rng(1), "b"),
    ]
    leaf = ends[1].labels[-1][0]
    table = frame_of(ROWS).with_columns(pl.lit(leaf).alias("b_level3"))
    assert sum(counted(table, tree=Tree(ends)).values()) == 16


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["region", "town", "n"], "no column 'province' (axis 'place' needs all of region, provin"),
        (["province", "town", "n"], "no column 'region'"),
        (["region", "province", "n"], "no column 'town'"),
        (["n"], "no column 'town'"),
        (["region", "province", "town"], "no column 'n'"),
    ],
)
def test_anything_between_names_the_missing_column(columns, words):
    with pytest.raises(TableError) as caught:
        counted(frame_of(ROWS).select(columns))
    assert words in str(caught.value)


def test_what_columns_there_are_is_told_on_a_terminal_alone():
    """The first line of a CSV file without a header is a record."""
    table = frame_of(ROWS).rename({"town": "Town"}).with_columns(secret=pl.lit(1))
    with pytest.raises(TableError, match="no column 'town'") as caught:
        counted(table)
    assert str(caught.value).startswith("the table has no column 'town'; did you mean 'Town'? (")
    assert "secret" in str(caught.value.confidential)
    with pytest.raises(TableError, match="no column 'town'") as caught:
        counted(table.rename({"Town": "towns"}))
    assert "towns" not in str(caught.value)
    assert "did you mean 'towns'?" in str(caught.value.confidential)
    with pytest.raises(TableError, match=r"no column 'trips' *$"):
        counted(frame_of(ROWS), count="trips")


def test_a_column_called_twice_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("region,province,town,town,n\n")
    with pytest.raises(TableError, match="2 columns called 'town'; rename one"):
        counted(tmp_path / "t.csv")
    table = pa.table([["1"], ["2"]], names=["n", "n"])
    with pytest.raises(TableError, match="no column 'town'"):
        counted(table)


def test_a_column_has_one_use():
    with pytest.raises(TableError, match="'town' of the table is already a level"):
        counted(frame_of(ROWS), count="town")
    with pytest.raises(TableError, match="'town' of the table is already a level"):
        counted(frame_of(ROWS), count=None, unit="town")


@pytest.mark.parametrize(
    "values",
    [[[1], [2]], [b"1", b"2"], pl.Series([1, 2]).cast(pl.Datetime)],
    ids=["lists", "bytes", "times"],
)
def test_codes_must_be_text_or_whole_numbers(values):
    table = pl.DataFrame({"x": values})
    tree = Tree([Axis.from_frame("x", {"x": ["1", "2"]}, ["x"])])
    with pytest.raises(TableError, match=r"column 'x' holds .*; codes must be text or whole numbe"):
        counted(table, tree=tree, count=None)
    with pytest.raises(TableError, match=r"column 'x' holds .*; codes must be text or whole numbe"):
        read_areas(table, ["x"])
    with pytest.raises(TableError, match=r"column 'x' holds .*; codes must be text or whole numbe"):
        Axis.from_frame("x", table, ["x"])


# --- branches that stop early ------------------------------------------------------------------


def ragged(**options):
    rows = [
        ("A", "A1", "a11"),
        ("A", "A2", None),
        ("B", None, None),
        ("C", "C", "C"),
        ("C", "C", "C2"),
        ("D", "X", "D"),
        ("?", None, None),
    ]
    return Tree([Axis.from_frame("x", frame_of(rows, LEVELS), LEVELS, **options)])


def test_a_record_may_stop_where_the_branch_of_the_list_does():
    rows = [
        ("A", "A1", "a11", 1),
        ("A", "A2", None, 2),
        ("A", "A2", "A2", 4),
        ("B", None, "", 8),
        ("B", "B", None, 16),
        ("B", "B", "B", 32),
        ("C", "C", "C", 64),
        ("C", "C", "C2", 128),
    ]
    assert counted(frame_of(rows), tree=ragged()) == {
        ("A", "A1", "a11"): 1,
        ("A", "A2", "A2"): 6,
        ("B", "B", "B"): 56,
        ("C", "C", "C"): 64,
        ("C", "C", "C2"): 128,
    }


@pytest.mark.parametrize(
    "codes",
    [
        ("A", None, None),
        ("A", "A1", None),
        ("C", "C", None),
        ("C", None, None),
        ("B", None, "B"),
        ("D", None, None),
    ],
    ids=str,
)
def test_a_record_that_stops_where_the_branch_goes_on_is_outside_the_list(codes):
    with refused("lacks a code for some record"):
        counted(frame_of([(*codes, 1)]), tree=ragged())
    found = counted(frame_of([(*codes, 1)]), tree=ragged(not_stated="?"))
    assert found == {("?", "?", "?"): 1}


@pytest.mark.parametrize("codes", [("A", "B", None), ("C", "A2", None), ("A", "A1", "A2")], ids=str)
def test_a_branch_that_stops_early_under_another_parent_is_refused(codes):
    for not_stated in (None, "?"):
        with refused("under another parent"):
            counted(frame_of([(*codes, 1)]), tree=ragged(not_stated=not_stated))


# --- real tables --------------------------------------------------------------------------------

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the real tables are not here")


@needs_data
def test_a_real_census_agrees_with_polars():
    source = DATA / "census_us_block" / "wa_2010.parquet"
    levels = ["state", "county", "tract", "block_group", "block"]
    axis = Axis.from_frame("geography", read_areas(source, levels), levels)
    counts = Counts.from_frame(Tree([axis]), source, count="pop")
    frame = pl.read_parquet(source).with_columns(pl.col(levels).cast(pl.String))
    for depth in range(1, 6):
        expected = frame.group_by(levels[:depth]).agg(pl.col("pop").sum().cast(pl.Int64))
        expected = expected.filter(pl.col("pop") > 0).sort(levels[:depth]).rows()
        assert counts.level(depth).rows() == expected


@needs_data
@pytest.mark.parametrize(
    ("folder", "levels"),
    [
        ("od_italy_province_2011", ["area", "region", "province"]),
        ("od_uk_lad_2011", ["nuts1", "nuts2", "lad"]),
    ],
)
def test_a_real_table_of_trips_agrees_with_polars(folder, levels):
    source, ends = DATA / folder / "od.parquet", []
    for end in "od":
        areas = read_areas(DATA / folder / "geo.parquet", levels)
        columns = [f"{end}_{level}" for level in levels]
        ends.append(Axis.from_frame(end, areas, levels, columns=columns))
    tree = Tree(ends, ["d", "o"])
    counts = Counts.from_frame(tree, source, count="count")
    frame = pl.read_parquet(source)
    assert counts.total == frame["count"].sum()
    for depth in range(1, 7):
        names = tree.columns(depth)
        codes = [pl.col(name).cast(pl.String) for name in names]
        expected = frame.group_by(codes).agg(pl.col("count").sum().cast(pl.Int64))
        assert sorted(counts.level(depth).rows()) == sorted(
            expected.filter(pl.col("count") > 0).select(*names, "count").rows()
        )


def test_a_lazy_frame_that_fails_does_not_quote_the_table():
    lazy = pl.LazyFrame({"town": ["SECRET"]}).with_columns(pl.col("town").cast(pl.Int64))
    with refused("cannot be computed") as caught:
        counted(lazy)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None
