import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import TableError
from hedgerow.tables.tree import Tree
from tests.refused import refused, told

SECRET = 987654.125


def ten():
    return Ranges.equal_width("income", 0, 100, 10, out_of_bounds="refuse")


def test_bins_are_half_open_and_the_last_is_closed():
    values = [0, 9.999, 10, 10.001, np.nextafter(20, 0), 20, 90, 99.9, 100]
    found = ten().bin(values)
    assert found.dtype == np.int32
    assert list(found) == [0, 0, 1, 1, 1, 2, 9, 9, 9]


@given(
    st.floats(-1e9, 1e9),
    st.floats(1e-3, 1e9),
    st.integers(2, 300),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
def test_a_value_lies_between_the_edges_of_its_bin(low, width, bins, places):
    ranges = Ranges.equal_width("x", low, low + width, bins)
    assert (ranges.low, ranges.high, ranges.bins) == (low, low + width, bins)
    inside = np.minimum(low + width * np.array(places), ranges.high)
    values = np.concatenate([inside, ranges.edges])
    found = ranges.bin(values)
    assert (ranges.edges[found] <= values).all()
    behind = values < ranges.edges[found + 1]
    assert (behind | ((found == bins - 1) & (values == ranges.high))).all()
    assert list(found[len(inside) :]) == [*range(bins), bins - 1]


def test_a_decimal_written_like_an_edge_opens_its_bin():
    ranges = Ranges("x", [i / 10 for i in range(11)])
    assert list(ranges.bin([float(f"0.{i}") for i in range(10)])) == list(range(10))


def test_the_bounds_are_edges_exactly():
    """In doubles -0.4 + (1.2 - -0.4) is not 1.2."""
    ranges = Ranges.equal_width("x", -0.4, 1.2, 7)
    assert (ranges.low, ranges.high) == (-0.4, 1.2)
    assert list(ranges.bin([-0.4, 1.2])) == [0, 6]


@pytest.mark.parametrize(
    ("low", "high", "bins"),
    [
        (0, 200_000, 1000),
        (0.1, 0.9, 8),
        (Fraction(1, 3), Decimal("0.9"), 7),
        (-0.7, 1e22, 9),
        (0.0, 1e308, 3),
        (0, 1e-310, 7),
        (np.float64(-0.3), np.int64(5), 53),
    ],
    ids=["incomes", "tenths", "exact", "wide", "huge", "tiny", "numpy"],
)
def test_edges_of_equal_width_are_the_doubles_nearest_to_them(low, high, bins):
    exact = (int, Fraction, Decimal)
    first, last = (Fraction(b if isinstance(b, exact) else repr(float(b))) for b in (low, high))
    wanted = [float(first + (last - first) * i / bins) for i in range(bins + 1)]
    assert Ranges.equal_width("x", low, high, bins).edges.tolist() == wanted


def test_a_value_on_an_edge_of_equal_width_opens_its_bin():
    """In doubles 200000·(17/1000) is not 3400."""
    ranges = Ranges.equal_width("income", 0, 200_000, 1000)
    assert list(ranges.bin(np.arange(1000) * 200)) == list(range(1000))


def test_public_edges_need_not_be_even():
    ranges = Ranges("age", [0, 18, 65, 120])
    assert list(ranges.bin([17, 18, 64.5, 65, 120])) == [0, 1, 1, 2, 2]


def test_values_outside_are_clamped_and_refused_only_if_asked_for():
    values = [-5, 50, SECRET]
    clamping = Ranges.equal_width("income", 0, 100, 10)
    assert clamping.out_of_bounds == Ranges("x", [0, 1, 2]).out_of_bounds == "clamp"
    assert list(clamping.bin(values)) == [0, 5, 9]
    assert list(clamping.bin([-1.0, -2.0])) == [0, 0]
    assert list(clamping.bin([1e300, 101])) == [9, 9]
    assert list(clamping.bin([-np.inf, np.inf])) == [0, 9]
    assert clamping.outside([-1, 0, 100, 101, np.inf]) == 3
    with refused("values outside the public bounds 0 to 100"):
        ten().bin(values)
    for outside in (np.nextafter(0, -1), np.nextafter(100, 101)):
        with refused("values outside"):
            ten().bin([outside])


def test_no_values_have_no_bins():
    assert ten().bin([]).dtype == np.int32
    assert len(ten().bin(np.empty(0))) == 0


@pytest.mark.parametrize("kind", [list, np.array, pl.Series], ids=["list", "numpy", "polars"])
def test_columns_of_any_kind_are_binned(kind):
    assert list(ten().bin(kind([1, 55]))) == [0, 5]
    assert list(ten().bin(kind([1.5, 55.0]))) == [0, 5]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([SECRET, float("nan")], "missing values (NaN or null)"),
        (pl.Series([SECRET, None]), "missing values (NaN or null)"),
        ([SECRET, float("inf")], "outside the public bounds"),
        ([SECRET, -float("inf")], "outside the public bounds"),
        ([SECRET], "outside the public bounds"),
        ([str(SECRET), "x"], "one list of numbers"),
        ([[SECRET], [SECRET]], "one list of numbers"),
        ([SECRET, [SECRET]], "one list of numbers"),
        (pl.Series([str(SECRET)]), "one list of numbers"),
        ([True, False], "one list of numbers"),
        (SECRET, "one list of numbers"),
    ],
)
def test_values_that_have_no_bin_are_refused_without_being_shown(values, words):
    with pytest.raises(TableError) as caught:
        ten().bin(values)
    assert words in told(caught.value)
    shown = "".join(traceback.format_exception(caught.value, limit=0))
    assert "987654" not in shown


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Ranges.equal_width("x", 5, 1, 10), "low must be below high"),
        (lambda: Ranges.equal_width("x", 5, 5, 10), "low = 5 and high = 5"),
        (lambda: Ranges.equal_width("x", float("nan"), 5, 10), "low must be below high"),
        (lambda: Ranges.equal_width("x", 0, float("inf"), 10), "low must be below high"),
        (lambda: Ranges.equal_width("x", -1.7e308, 1.7e308, 10), "low must be below high"),
        (lambda: Ranges.equal_width("x", 0, 1, 1), "from 2 to 2^20, got 1"),
        (lambda: Ranges.equal_width("x", 0, 1, 2.5), "got 2.5"),  # type: ignore[arg-type]
        (lambda: Ranges.equal_width("x", 0, 1, True), "from 2 to 2^20, got True"),
        (lambda: Ranges.equal_width("x", 1, 1 + 1e-15, 100), "narrower than doubles"),
        (lambda: Ranges.equal_width("x", "low", 1, 9), "must be numbers"),  # type: ignore[arg-type]
        (lambda: Ranges.equal_width("x", 0, 10**400, 9), "must be numbers"),
        (lambda: Ranges("x", [0, 1]), "from 2 to 2^20, got 1"),
        (lambda: Ranges("x", [0, 2, 2, 3]), "edge 1 is 2 and edge 2 is 2"),
        (lambda: Ranges("x", [0, 2, 1]), "edge 1 is 2 and edge 2 is 1"),
        (lambda: Ranges("x", [0, 1, float("inf")]), "edges must be finite"),
        (lambda: Ranges("x", [0, float("nan"), 2]), "edges must be finite"),
        (lambda: Ranges("x", [[0, 1, 2]]), "one list of numbers"),
        (lambda: Ranges("x", [0, 1, 2], "drop"), "'clamp' or 'refuse', got 'drop'"),
        (lambda: ten().axis([]), "at least 2, got []"),
        (lambda: ten().axis([5, 1, 2]), "at least 2, got [5, 1, 2]"),
        (lambda: ten().axis([3, 3]), "make 9 leaves, fewer than the 10 bins"),
        (lambda: ten().axis([2, 5, 2]), "one node of the first level covers all 10 bins"),
    ],
)
def test_what_is_no_range_is_refused(make, words):
    with pytest.raises(TableError) as caught:
        make()
    assert words in str(caught.value)


def test_edges_cannot_be_changed_from_outside():
    edges = np.array([0.0, 1, 2])
    ranges = Ranges("x", edges)
    edges[1] = 5
    assert ranges.edges[1] == 1
    with pytest.raises(ValueError, match="read-only"):
        ranges.edges[1] = 5


def test_an_axis_has_the_nodes_that_cover_bins_and_no_others():
    axis = ten().axis([2, 3, 2])
    assert axis.levels == ("bins_6", "bins_2", "bin")
    assert axis.columns == ("income_bins_6", "income_bins_2", "income_bin")
    assert [list(labels) for labels in axis.labels] == [
        ["0", "6"],
        ["0", "2", "4", "6", "8"],
        [str(i) for i in range(10)],
    ]
    assert [list(start) for start in axis.child_start] == [[0, 2], [0, 3, 5], [0, 2, 4, 6, 8, 10]]


@given(st.integers(2, 400), st.lists(st.integers(2, 7), min_size=1, max_size=5))
def test_the_axis_is_the_one_that_its_list_of_areas_makes(bins, factors):
    while np.prod(factors) < bins:
        factors = [*factors, 3]
    while np.prod(factors[1:]) >= bins:
        factors = factors[1:]
    axis = Ranges.equal_width("x", 0, 1, bins).axis(factors)
    leaves = np.arange(bins, dtype=np.int32)
    paths = axis.path(axis.depth, leaves)
    listed = pl.DataFrame([p.alias(level) for p, level in zip(paths, axis.levels, strict=True)])
    again = type(axis).from_frame("x", listed, axis.levels, columns=axis.columns)
    assert again.digest == axis.digest
    assert list(axis.labels[-1]) == sorted(axis.labels[-1])
    assert Tree([axis]).leaves == bins
    for start in axis.child_start:
        assert (np.diff(start) >= 1).all()


def test_a_million_bins_are_ordinary():
    axis = Ranges.equal_width("x", 0, 1, 1_000_000).axis([18, 15, 13, 15, 19])
    assert axis.size(axis.depth) == 1_000_000
    assert axis.labels[-1][1_000] == "001000"


def test_masked_values_are_missing_values():
    ranges = Ranges.equal_width("x", 0, 10, 5)
    assert ranges.bin(np.ma.masked_array([1, 9], mask=[False, False])).tolist() == [0, 4]
    with refused("missing values"):
        ranges.bin(np.ma.masked_array([1, 9], mask=[False, True]))
