"""Bounding: at most m records a unit, chosen by that unit's own records alone."""

import sqlite3
from collections import Counter
from hashlib import md5

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.distribution.bins import NumericColumn, binned, coded_axis
from hedgerow.errors import TableError
from hedgerow.spark import table as spark_table
from hedgerow.spark.table import SparkTable
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import Query
from hedgerow.tables.tree import Tree
from tests.refused import refused

TREE = Tree(
    [
        Axis.from_frame(name, {name: list(codes)}, [name])
        for name, codes in (("x", "abcd"), ("y", "01"))
    ]
)
few = settings(deadline=None, max_examples=10)
SCHEMA = {"x": pl.String, "y": pl.String, "who": pl.String}
records = st.lists(st.tuples(*map(st.sampled_from, ["abcd", "01", "uvw"])))


def kept(rows, contributions, tree=TREE):
    table = pl.DataFrame(rows, SCHEMA, orient="row")
    counts = Counts.from_frame(tree, table, unit="who", contributions=contributions)
    return Counter({row[:-1]: row[-1] for row in counts.level(tree.depth).rows()})


@few
@given(records, st.integers(1, 4))
def test_each_unit_keeps_its_records_up_to_the_bound(rows, bound):
    alone = [kept([row for row in rows if row[2] == unit], bound) for unit in "uvw"]
    for unit, some in zip("uvw", alone, strict=True):
        own = Counter(row[:2] for row in rows if row[2] == unit)
        assert some.total() == min(bound, own.total())
        assert some <= own
    assert kept(rows, bound) == sum(alone, Counter())


@few
@given(records, records, st.integers(1, 3))
def test_another_unit_changes_nothing_of_what_is_kept(rows, theirs, bound):
    stranger = [(x, y, "stranger") for x, y, _ in theirs]
    added = kept(rows + stranger, bound) - kept(rows, bound)
    assert added == kept(stranger, bound)


@few
@given(records, st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, bound, random):
    assert kept(random.sample(rows, len(rows)), bound) == kept(rows, bound)


def test_every_record_of_a_unit_is_as_likely_to_be_kept():
    # 1,000 units with three records in a and one in b: the chance of b is 1/4; sd 0.0137
    rows = [(x, "0", f"u{i}") for i in range(1000) for x in "aaab"]
    assert abs(kept(rows, 1)["b", "0"] / 1000 - 1 / 4) < 5 * 0.0137


def test_units_do_not_all_prefer_one_leaf():
    rows = [(x, "1", f"u{i}") for i in range(1000) for x in "abcd"]
    found = kept(rows, 1)
    assert all(abs(found[x, "1"] / 1000 - 1 / 4) < 5 * 0.0137 for x in "abcd")


def test_the_choice_is_the_same_for_ever():
    rows = [(x, y, f"u {i}") for i in range(9) for x in "abcdd" for y in "01"]
    expected = Counter()  # of kept records
    for unit in {unit for _, _, unit in rows}:
        own = Counter((x, y) for x, y, who in rows if who == unit)
        # which of the unit's records in that leaf, the leaf's numbers, the unit
        texts = {
            f"{copy} {'abcd'.index(x)} {y} {unit}": (x, y)
            for (x, y), n in own.items()
            for copy in range(1, n + 1)
        }
        chosen = sorted(texts, key=lambda text: md5(text.encode(), usedforsecurity=False).digest())
        expected.update(texts[text] for text in chosen[:3])
    assert kept(rows, 3) == expected


def test_a_number_may_name_the_unit():
    table = pl.DataFrame({"x": ["a", "b"], "y": ["0", "0"], "who": [7, 7]})
    assert Counts.from_frame(TREE, table, unit="who").total == 1


MISSING = ["nan", "NaN", "-nan", "None", "NaT", "<NA>", "NULL", "(null)", "NA", "N/A", "#N/A"]
MISSING += [
    "\\N",
    "nil",
    "<nil>",
    "undefined",
    "n.a.",
    "#N/A N/A",
    "-1.#IND",
    "1.#QNAN",
    "-nan(ind)",
]
MISSING += ["NA_character_", ".a"]


@pytest.mark.parametrize("unit", [None, "", ".", "-", "?", "\u2013", *MISSING])
def test_a_record_without_a_unit_is_refused_however_programs_write_that(unit):
    """All of them as one person would share one bound, and each may have records under an id."""
    with refused("the table: column 'who' lacks the unit of some record"):
        kept([("a", "0", "u"), ("a", "0", unit)], 1)


@pytest.mark.parametrize("kind", ["object", "string", "float64"])
def test_a_unit_that_pandas_misses_is_refused_in_memory_and_in_files(kind, tmp_path):
    who = ["u", None] if kind != "float64" else [17, None]
    frame = pd.DataFrame({"x": ["a", "b"], "y": ["0", "0"], "who": pd.Series(who, dtype=kind)})
    as_text = frame.assign(who=frame["who"].astype(str))
    frame.to_csv(tmp_path / "a.csv", index=False)
    as_text.to_csv(tmp_path / "b.csv", index=False)
    as_text.to_parquet(tmp_path / "c.parquet")
    for table in (frame, as_text, *sorted(tmp_path.iterdir())):
        with refused("column 'who' lacks the unit of some record"):
            Counts.from_frame(TREE, table, unit="who")


REWRITTEN = ["17.0", "17,0", "17.", "+17.00", "1.7E1", "1.7e+01", "1e+16", " 17", "17 ", "17\u00a0"]
REWRITTEN += ["\ufeff17", "Jose\u0301"]
AS_WRITTEN = ["17", "017", "+4917", "-17", "17.5", "1.2.0", "12e5", "A.0", "Jos\u00e9", "1 7", "a"]
AS_WRITTEN += ["Nana", "N", "none-1", "NA7", "0", "nullus", "\u5f35"]


@pytest.mark.parametrize("unit", REWRITTEN)
def test_an_id_that_programs_write_in_several_ways_is_refused_whatever_the_others_are(unit):
    """So nobody is two units, and a refusal tells of the record alone that breaks the rule."""
    for others in ([], [("a", "0", "17")], [("a", "0", "x")]):
        with refused("the table: column 'who' holds an id") as caught:
            kept([*others, ("b", "0", unit)], 1)
        assert "17" not in str(caught.value)
        assert repr(unit) in caught.value.confidential


def test_ids_as_offices_write_them_are_compared_letter_by_letter():
    rows = [("a", "0", unit) for unit in AS_WRITTEN]
    assert kept(rows, 1) == {("a", "0"): len(AS_WRITTEN)}
    assert kept([*rows, *rows], 1) == {("a", "0"): len(AS_WRITTEN)}


@pytest.mark.parametrize("kind", [pl.Int64, pl.Float64, pl.Float32, pl.Decimal(9, 0), pl.String])
def test_a_column_of_floats_holds_whole_ids(kind, tmp_path):
    """A program makes floats of a column for the sake of one missing value, long since dropped."""
    table = pl.DataFrame(
        {"x": ["a"] * 3, "y": ["0"] * 3, "who": pl.Series([17, 17, 18]).cast(kind)}
    )
    assert Counts.from_frame(TREE, table, unit="who").total == 2
    table.write_parquet(tmp_path / "t.parquet")
    assert Counts.from_frame(TREE, tmp_path / "t.parquet", unit="who").total == 2


@pytest.mark.parametrize("form", ["csv", "query", "bins", "executor"])
def test_every_way_into_a_release_refuses_the_same_ids(form, tmp_path):
    table = pl.DataFrame({"x": ["a", "b"], "y": ["0", "1"], "who": ["17", "17.0"]})
    tree, source = TREE, table
    if form == "csv":
        table.write_csv(source := tmp_path / "t.csv")
    elif form == "query":
        with sqlite3.connect(tmp_path / "t.db") as db:
            db.execute("CREATE TABLE t (x, y, who TEXT)")
            db.executemany("INSERT INTO t VALUES (?, ?, ?)", table.rows())
        source = Query(f"sqlite:///{tmp_path / 't.db'}", "SELECT * FROM t")
    elif form == "bins":
        ranges = hr.Ranges.equal_width("n", 0, 8, 4)
        axis = coded_axis(ranges, [2, 2])
        column = NumericColumn("n", ranges, axis)
        source = binned(table.with_columns(n=pl.lit(1.0)), [column], ["who"]).table
        tree = Tree([axis])
    with refused("column 'who' holds an id"):
        if form == "executor":
            work = spark_table._leaf_rows(SparkTable(None, unit="who"), tree, table.columns)
            list(work(iter(table.to_arrow().to_batches())))
        else:
            Counts.from_frame(tree, source, unit="who")


def test_records_are_checked_before_they_are_dropped():
    for x in ("z", None):
        for twin in range(8):
            with refused("'x'"):
                kept([("a", "0", "u"), (x, "0", "u"), ("b", str(twin % 2), "u")], 1)


def test_a_record_of_the_leaf_for_those_outside_the_list_counts_as_one():
    axis = Axis.from_frame("x", {"x": list("abcd")}, ["x"], not_stated="d")
    tree = Tree([axis, TREE.axes[1]])
    assert kept([("z", "0", "u"), (None, "0", "u"), ("q", "0", "v")], 1, tree) == {("d", "0"): 2}


def test_records_outside_the_list_are_told_apart_among_those_that_are_kept():
    axis = Axis.from_frame("x", {"x": list("abcd")}, ["x"], not_stated="d")
    tree = Tree([axis, TREE.axes[1]])
    rows = {"x": ["z", "d", None, "a"], "y": ["0", "0", "1", "0"], "who": ["u", "v", "w", "w"]}
    every = Counts.from_frame(tree, rows, unit="who", contributions=2)
    assert (every.total, every.unlisted) == (4, (2, None))
    one = Counts.from_frame(tree, rows, unit="who", contributions=1)
    at_d = sum(n for x, _, n in one.level(2).rows() if x == "d")
    assert one.unlisted == (at_d - 1, None), "one of those at d says so itself"


def test_units_need_one_row_a_record_and_a_bound():
    table = {"x": ["a"], "y": ["0"], "who": ["u"], "n": [1]}
    with pytest.raises(TableError, match="unit needs one row a record; leave count out"):
        Counts.from_frame(TREE, table, unit="who", count="n")
    with pytest.raises(TableError, match="contributions must be at least 1, got 0"):
        Counts.from_frame(TREE, table, unit="who", contributions=0)
    with pytest.raises(TableError, match="no column 'household'"):
        Counts.from_frame(TREE, table, unit="household")
    with refused("column 'who' holds fractions"):
        Counts.from_frame(TREE, {**table, "who": [0.5]}, unit="who")
