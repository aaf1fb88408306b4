"""Numeric columns of tables become bin codes, whatever the table is and says its numbers in."""

import sqlite3
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from hedgerow.distribution.bins import NumericColumn, binned, coded_axis
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import TableError
from hedgerow.tables.sources.database import Query
from tests.refused import told

RANGES = Ranges("paid", [0, 0.1, 0.3, 1], "refuse")
COLUMN = NumericColumn("amount", RANGES, coded_axis(RANGES, (3,)))
CODES = ["0 [0, 0.1)", "1 [0.1, 0.3)", "2 [0.3, 1]"]
WANTED = sorted(zip(CODES, "abc", strict=True))
VALUES = {"amount": [0.05, 0.1, 0.3], "who": ["a", "b", "c"]}


def pairs(table):
    found = binned(table, [COLUMN], ["who", "elsewhere"]).table
    assert found.column_names == ["who", "paid_bin"]
    return sorted(pl.DataFrame(found).select("paid_bin", "who").cast(pl.String).rows())


def test_floats_decimals_and_text_that_say_one_number_have_one_bin(tmp_path):
    assert pairs(VALUES) == WANTED
    assert pairs(VALUES | {"amount": [Decimal("0.05"), Decimal("0.10"), Decimal("0.30")]}) == WANTED
    pl.DataFrame(VALUES).write_csv(tmp_path / "paid.csv")
    assert pairs(tmp_path / "paid.csv") == WANTED
    pl.DataFrame(VALUES).write_parquet(tmp_path / "paid.parquet")
    assert pairs(tmp_path / "paid.parquet") == WANTED


def test_a_query_is_a_table(tmp_path):
    with sqlite3.connect(tmp_path / "paid.db") as db:
        db.execute("CREATE TABLE paid (amount REAL, who TEXT)")
        db.executemany("INSERT INTO paid VALUES (?, ?)", zip(*VALUES.values(), strict=True))
    db.close()
    assert pairs(Query(f"sqlite:///{tmp_path / 'paid.db'}", "SELECT * FROM paid")) == WANTED


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt64, pl.Float32], ids=str)
def test_every_type_of_number_is_read(kind):
    amount = pl.Series([0, 1, 1]).cast(kind)
    found = binned({"amount": amount.to_arrow()}, [COLUMN], []).table
    assert pl.DataFrame(found)["paid_bin"].cast(pl.String).to_list() == [CODES[0], *CODES[2:] * 2]


def test_rows_stay_together():
    rng = np.random.default_rng(1)
    amount = rng.random(300_000)
    names = [str(b) for b in RANGES.bin(amount)]
    found = pl.DataFrame(binned({"amount": amount, "who": names}, [COLUMN], ["who"]).table)
    assert (found["paid_bin"].cast(pl.String).str.slice(0, 1) == found["who"]).all()


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ([0.1, None], "missing values"),
        (["0.1", " "], "missing values"),
        (["0.1", "nan"], "missing values"),
        (["0.1", "inf"], "outside the public bounds"),
        (["0.1", "0.1 EUR"], "holds text that is no number"),
        ([True, False], "holds BOOLEAN; a numeric axis needs numbers"),
        ([[1.0], [2.0]], "a numeric axis needs numbers"),
        ([0.1, 1.5], "outside the public bounds 0 to 1"),
    ],
    ids=["null", "blank", "nan", "inf", "words", "truth", "lists", "outside"],
)
def test_what_has_no_bin_is_refused(amount, message):
    with pytest.raises(TableError) as caught:
        binned({"amount": amount}, [COLUMN], [])
    assert message in told(caught.value)
    assert "1.5" not in told(caught.value)
    assert "EUR" not in told(caught.value)
