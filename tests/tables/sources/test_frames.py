"""Whether rows stand in order, which spares their sorting."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.tables.sources.source import in_order, read_areas

CODES = st.sampled_from(["", "0", "1", "10", "é", "𝄞"])
ROWS = st.lists(st.tuples(CODES, CODES), max_size=6)


def frame(rows):
    return pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")


@given(ROWS, st.booleans())
def test_rows_are_in_order_if_sorting_leaves_them_as_they_are(rows, is_sorted):
    rows = sorted(rows) if is_sorted else rows
    assert in_order(frame(rows)) == (rows == sorted(rows))


def test_rows_without_a_code_are_not_taken_to_be_in_order():
    assert not in_order(frame([(None, "0"), ("0", "0")]))
    assert in_order(frame([("0", None), ("1", "0")]))


@pytest.mark.parametrize("rows", [[("0", "2"), ("1", "1")], [("1", "1"), ("0", "2")]])
def test_a_list_of_areas_comes_in_order_however_it_stands(rows, tmp_path):
    frame(rows).write_parquet(tmp_path / "areas.parquet")
    found = read_areas(tmp_path / "areas.parquet", ["a", "b"])
    assert found.rows() == sorted(rows)
