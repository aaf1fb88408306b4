"""The count column: whole numbers as they stand, never rounded, never wrapped."""

from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import TableError
from hedgerow.limits import LARGEST_LEAF
from hedgerow.tables.axis import Axis
from hedgerow.tables.read import read_leaves
from hedgerow.tables.tree import Tree
from tests.refused import refused, told

TREE = Tree([Axis.from_frame("x", {"x": ["a", "b"]}, ["x"])])


def total(values):
    """The sum over rows that lie in one leaf."""
    codes, sums, *_ = read_leaves(
        TREE,
        {"x": ["a"] * len(values), "n": values},
        count="n",
        unit=None,
        contributions=1,
    )
    assert len(codes[0]) == len(sums) <= 1
    return int(sums.sum())


@pytest.mark.parametrize("signed", ["Int", "UInt"])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integers_of_any_width_are_counts(signed, width):
    assert total(pl.Series([100, 0, 27]).cast(getattr(pl, f"{signed}{width}")).to_arrow()) == 127


@pytest.mark.parametrize(
    "values",
    [
        np.array([12.0, 0.0, -0.0]),
        np.array([12.0, 0.0, -0.0], dtype=np.float32),
        pa.array([Decimal("12.00"), Decimal("0.00")], pa.decimal128(9, 2)),
        pa.array([Decimal(12), Decimal(0)], pa.decimal128(38, 0)),
        pa.array(["12", "0"]).dictionary_encode(),
        ["12", "0"],
        ["+12"],
        ["12.0", "0.00", "-0", "-0.0", ".0"],
        ["12."],
        ["0012", " 0 "],
        [" 12", "000000000000000000000000000000000000000000000"],
    ],
    ids=str,
)
def test_whole_numbers_in_other_clothes_are_counts(values):
    assert total(values) == 12


SEPARATED = [
    "1234567,0",
    "1234567,",
    "1,234,567",
    "1,234,567.00",
    "1.234.567",
    "1.234.567,0",
    "+1 234 567",
    "1\u00a0234\u00a0567",
    "1\u202f234\u202f567,00",
    "1'234'567",
    "1’234’567.0",
    "1234567.000",
]


@pytest.mark.parametrize("value", SEPARATED)
def test_decimal_commas_and_separators_of_thousands_are_read_where_they_mean_one_thing(value):
    assert total([value, "0"]) == 1_234_567


def test_separators_in_a_column_of_categories_are_read_too():
    assert total(pa.array(["1 234", "12,0"]).dictionary_encode()) == 1246


def test_a_number_longer_than_any_type_is_the_largest_with_separators_too():
    assert total([",".join(["999"] * 40)]) == LARGEST_LEAF


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 2**40), max_size=5))
def test_text_and_numbers_say_the_same(values):
    counted = min(sum(values), LARGEST_LEAF)
    assert total([str(v) for v in values]) == total(pa.array(values, pa.int64())) == counted


TEXTS: dict[str, list[str | None]] = {
    "has a row without a value": ["", "  ", None],
    "holds NaN or infinity": ["nan", "NaN", "inf", "-inf", "Infinity"],
    "holds a number with an exponent": ["1e3", "1E3", "1.5e1", "-1e3", ".1e+4"],
    "holds text that is no number": [
        "abc",
        "12,34,567",
        "1,23.5",
        "1 00",
        "1 000'000",
        "0,123,456",
        ",",
        "12a",
        "0x1F",
        "1_000",
        "--1",
        ".",
        "٣",
    ],
    "holds a number such as 1,234 or 1.234, which may be a thousand or a fraction; write counts": [
        "1,000",
        "1.000",
        "12,345",
        "-123.456",
    ],
    "holds a negative number": [
        "-1",
        "-0.5",
        "-12.0",
        "-" + "9" * 41,
    ],
    "holds a fraction": [
        "12,5",
        "0,125",
        "1,2345",
        "1.234,5",
        "12.5",
        "0.5",
        ".5",
        "+0.0000000000000000000000000000000000000000000001",
    ],
}


@pytest.mark.parametrize(
    ("words", "value"), [(words, value) for words, values in TEXTS.items() for value in values]
)
def test_text_that_is_no_count_is_refused_with_its_reason(words, value):
    with refused(f"the table: column 'n' {words}") as caught:
        total(["1", value, "3"])
    if value and len(value) > 2 and words != "holds NaN or infinity":
        assert value not in told(caught.value)
    assert "column" not in str(caught.value)


NUMBERS = [
    ("holds a fraction", [12.5]),
    ("holds a fraction", np.array([0.5], dtype=np.float32)),
    ("holds a fraction", pa.array([Decimal("12.01")], pa.decimal128(9, 2))),
    ("holds a fraction", pa.array([Decimal("0.1")], pa.decimal128(38, 37))),
    ("holds NaN or infinity", [float("nan")]),
    ("holds NaN or infinity", [float("inf")]),
    ("holds NaN or infinity", [float("-inf")]),
    ("holds a negative number", [-1]),
    ("holds a negative number", [-1.0]),
    ("holds a negative number", [-(2**63)]),
    ("holds a negative number", pa.array([Decimal("-0.5")], pa.decimal128(9, 2))),
    ("has a row without a value", [1, None]),
    ("has a row without a value", [1.0, None]),
    ("has a row without a value", pa.nulls(2)),
    ("has a row without a value", pa.array([Decimal(1), None], pa.decimal128(9, 0))),
    ("holds BOOLEAN; counts must be whole numbers", [True]),
    ("holds INTEGER[]; counts must be whole numbers", pa.array([[1]], pa.list_(pa.int32()))),
]


@pytest.mark.parametrize(("words", "values"), NUMBERS, ids=str)
def test_numbers_that_are_no_counts_are_refused_with_their_reason(words, values):
    with pytest.raises(TableError) as caught:
        total(values)
    assert f"the table: column 'n' {words}" in told(caught.value)


LARGE = [
    [2**40],
    [2**40 + 1],
    [2**63 - 1],
    pa.array([2**63], pa.uint64()),
    pa.array([2**64 - 1], pa.uint64()),
    [1e30],
    pa.array([Decimal(10) ** 37], pa.decimal128(38, 0)),
    *([text] for text in (str(2**40 + 1), str(2**64 + 1), "9" * 39, "9" * 400, "9" * 400 + ".0")),
]


@pytest.mark.parametrize("values", LARGE, ids=lambda values: str(values)[:30])
def test_a_larger_number_than_a_leaf_can_hold_counts_as_the_largest(values):
    """It is no reason to refuse the table: who sees the refusal would learn of the number."""
    assert total(values) == LARGEST_LEAF == 2**40


@pytest.mark.parametrize("as_text", [False, True])
def test_a_leaf_is_cut_at_the_limit_whatever_its_rows_add_up_to(as_text):
    def written(values):
        return [str(v) for v in values] if as_text else pa.array(values, pa.uint64())

    for values in ([2**39, 2**39], [2**39, 2**39, 1], [2**39, 2**39 - 1], [2**60] * 20):
        assert total(written(values)) == min(sum(values), LARGEST_LEAF)


@pytest.mark.parametrize("more", [0, 1])
def test_cutting_a_leaf_leaves_the_others_as_they_are(more):
    """So one record more changes one leaf by one or by nothing: what sensitivities rest on."""
    table = {"x": ["a", "b"], "n": [2**40 + more, 7]}
    codes, values, *_ = read_leaves(TREE, table, count="n", unit=None, contributions=1)
    assert values[np.argsort(codes[0])].tolist() == [2**40, 7]


def test_a_fraction_in_csv_is_not_rounded(tmp_path):
    (tmp_path / "t.csv").write_text("x,n\na,12.5\n")
    with refused(r"t\.csv: column 'n' holds a fraction"):
        read_leaves(TREE, tmp_path / "t.csv", count="n", unit=None, contributions=1)
