"""Codes of bins: they say their ranges, stand in order, and read back as the same edges."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.distribution.bins import coded_axis, ranges_of
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from tests.made import fixed_axis

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_codes_say_number_and_range():
    axis = coded_axis(Ranges.equal_width("x", -1, 1.5, 5, out_of_bounds="refuse"), (2, 3))
    assert axis.labels[0].to_list() == ["0 [-1, 0.5)", "3 [0.5, 1.5]"]
    assert axis.labels[1][4] == "4 [1, 1.5]"
    axis = coded_axis(Ranges.equal_width("x", -1, 1.5, 5, out_of_bounds="clamp"), (2, 3))
    assert axis.labels[0].to_list() == ["0 [-1 or less, 0.5)", "3 [0.5, 1.5 or more]"]
    assert axis.labels[1].to_list()[:2] == ["0 [-1 or less, -0.5)", "1 [-0.5, 0)"]


@given(st.lists(finite, min_size=3, max_size=40, unique=True), st.sampled_from(["clamp", "refuse"]))
def test_edges_read_back_as_they_were(edges, outside):
    ranges = Ranges("x", np.sort(np.array(edges) + 0.0), outside)
    axis = coded_axis(ranges, (ranges.bins,))
    found = ranges_of(axis)
    assert found.edges.tolist() == ranges.edges.tolist()
    assert found.out_of_bounds == outside
    assert axis.labels[0].is_sorted()


def test_the_domain_reads_back_as_the_same_axis():
    axis = coded_axis(Ranges.equal_width("x", 0, 1, 997), (10, 10, 10))
    leaves = np.arange(997, dtype=np.int32)
    listed = pl.DataFrame(axis.path(3, leaves))
    names = dict(zip(axis.columns, axis.levels, strict=True))
    again = Axis.from_frame("x", listed.rename(names), axis.levels, columns=axis.columns)
    assert again.digest == axis.digest


def test_other_edges_are_another_domain():
    one = coded_axis(Ranges.equal_width("x", 0, 1, 9), (3, 3))
    other = coded_axis(Ranges.equal_width("x", 0, 1 + 1e-15, 9), (3, 3))
    assert one.digest != other.digest


def test_a_hierarchy_is_no_numeric_column():
    with pytest.raises(TableError, match="axis 'a' is no numeric column"):
        ranges_of(fixed_axis("a", 3))


def test_ranges_that_do_not_join_are_refused():
    codes = pl.DataFrame({"bin": ["0 [0, 1)", "1 [2, 3]"]})
    with pytest.raises(TableError, match="do not join"):
        ranges_of(Axis.from_frame("x", codes, ["bin"]))
