"""An axis: nesting, ragged lists, and each list that is none."""

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from tests.refused import refused

LEVELS = ["region", "province", "town"]
ROWS = [
    ("N", "N1", "N11"),
    ("N", "N1", "N12"),
    ("N", "N2", "N21"),
    ("S", "S1", "S11"),
]


def axis_of(rows, levels=LEVELS, **options):
    return Axis.from_frame(
        "place", pl.DataFrame(rows, schema=levels, orient="row"), levels, **options
    )


@st.composite
def paths(draw, deepest=3):
    """Paths of a random hierarchy with odd codes, unique on each level."""
    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
    codes = iter(draw(st.lists(text, min_size=60, max_size=60, unique=True)))
    found = [()]
    for _ in range(deepest):
        widths = draw(st.lists(st.integers(1, 3), min_size=len(found), max_size=len(found)))
        found = [
            (*path, next(codes)) for path, n in zip(found, widths, strict=True) for _ in range(n)
        ]
    return found


def test_children_are_one_range_and_siblings_stand_in_the_order_of_their_codes():
    axis = axis_of([ROWS[i] for i in (2, 0, 3, 1)])
    assert [list(labels) for labels in axis.labels] == [
        ["N", "S"],
        ["N1", "N2", "S1"],
        ["N11", "N12", "N21", "S11"],
    ]
    assert [list(start) for start in axis.child_start] == [[0, 2], [0, 2, 3], [0, 2, 3, 4]]
    assert list(axis.ancestors(1)) == [0, 0, 0, 1]
    assert list(axis.ancestors(0)) == [0, 0, 0, 0]
    assert list(axis.descendant_start(1, 3)) == [0, 3, 4]
    assert [axis.size(k) for k in range(4)] == [1, 2, 3, 4]


@settings(deadline=None)
@given(paths(2))
def test_every_leaf_has_the_path_it_was_listed_with(rows):
    axis = axis_of(rows, ["a", "b"])
    series = axis.path(2, axis.ancestors(2))
    assert sorted(rows) == list(zip(*series, strict=True))


@pytest.mark.slow
@settings(deadline=None)
@given(paths(), st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert axis_of(rows).digest == axis_of(shuffled).digest


def test_a_branch_that_stops_early_is_continued_by_a_single_child_with_its_code():
    axis = axis_of([*ROWS, ("X", None, None), ("S", "S2", "")])
    assert list(zip(*axis.path(3, axis.ancestors(3)), strict=True)) == [
        *ROWS,
        ("S", "S2", "S2"),
        ("X", "X", "X"),
    ]


def test_path_names_the_columns_of_the_table():
    axis = axis_of(ROWS, columns=["o_region", "o_province", "o_town"])
    assert [s.name for s in axis.path(2, axis.ancestors(2))] == ["o_region", "o_province"]


def test_numbers_become_text_codes():
    axis = Axis.from_frame("age", {"band": [10, 9]}, ["band"])
    assert list(axis.labels[0]) == ["10", "9"]


def test_rows_that_repeat_an_area_count_once():
    again = axis_of([*ROWS, ROWS[0], ROWS[-1]])
    assert again.digest == axis_of(ROWS).digest
    assert again.size(3) == len(ROWS)


def test_a_list_finer_than_its_deepest_level_collapses():
    finer = pl.DataFrame(ROWS, LEVELS, orient="row").with_row_index("street")
    axis = Axis.from_frame("place", finer, LEVELS[:2])
    assert axis.digest == axis_of([row[:2] for row in ROWS], LEVELS[:2]).digest


@pytest.mark.parametrize(
    ("changed", "levels", "options"),
    [
        ([*ROWS, ("S", "S1", "S12")], LEVELS, {}),
        ([*ROWS[:3], ("S", "S1", "S1x")], LEVELS, {}),
        ([*ROWS[:2], ("N", "N1", "N21"), ROWS[3]], LEVELS, {}),
        ([*ROWS[:3], ("N", "S1", "S11")], LEVELS, {}),
        (ROWS, ["region", "province", "place"], {}),
        (ROWS, LEVELS, {"not_stated": "N11"}),
        ([("N", "N1", "N11\u0301"), *ROWS[1:]], LEVELS, {}),
    ],
    ids=["a leaf more", "a code", "a parent", "a grandparent", "a level", "not stated", "accent"],
)
def test_the_digest_changes_with_anything_public(changed, levels, options):
    assert axis_of(changed, levels, **options).digest != axis_of(ROWS).digest


def test_the_digest_tells_apart_codes_that_read_the_same_when_joined():
    assert axis_of([("a", "bc")], ["x", "y"]).digest != axis_of([("ab", "c")], ["x", "y"]).digest
    one, two = [("ab",), ("c",)], [("a",), ("bc",)]
    assert axis_of(one, ["x"]).digest != axis_of(two, ["x"]).digest


def test_the_digest_reads_the_codes_of_a_slice_and_no_more():
    whole = axis_of([("a",), ("b",), ("c",)], ["x"])
    first = pl.Series("x", ["a", "b", "c", "d"])[:3]
    sliced = Axis("place", whole.levels, whole.columns, (first,), whole.child_start)
    assert sliced.digest == whole.digest
    other = pl.Series("x", ["z", "a", "b", "c"])[1:]
    assert Axis("place", ("x",), ("x",), (other,), whole.child_start).digest == whole.digest


@pytest.mark.parametrize(
    "codes", [["é", "e\u0301"], ["ß", "SS"], ["a", "a "], ["İ", "i"], ["٣", "3"], ["a\x00", "a"]]
)
def test_codes_that_only_look_alike_are_two_areas(codes):
    axis = axis_of([(code,) for code in codes], ["x"])
    assert list(axis.labels[0]) == sorted(codes)


def test_codes_stand_in_the_order_of_their_code_points():
    codes = ["z", "Z", "é", "\U0001f600", "\uffee", "10", "9", "01"]
    assert list(axis_of([(code,) for code in codes], ["x"]).labels[0]) == sorted(codes)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "the list of areas of axis 'place' is empty; it needs one row an area"),
        ([*ROWS, (None, "N1", "N19")], "has a row without a 'region'"),
        ([*ROWS, (None, None, None)], "has a row without a 'region'"),
        ([*ROWS, ("S", None, "S19")], "town 'S19' has no province"),
        ([*ROWS, ("S", "N1", "N19")], "province 'N1' has two parents, region 'N' and 'S'"),
        ([*ROWS, ("N", "N2", "S11")], "town 'S11' has two parents, province 'N2' and 'S1'"),
        ([*ROWS, ("N", "N1", None)], "province 'N1' stops early in one row and goes on"),
        ([*ROWS, ("N", None, None)], "region 'N' stops early in one row and goes on"),
    ],
)
def test_a_list_that_is_none_is_refused(rows, words):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(LEVELS, pl.String), orient="row")
    with pytest.raises(TableError) as caught:
        Axis.from_frame("place", frame, LEVELS)
    assert words in str(caught.value)


def test_names_are_checked():
    for name in ("", "a.b", "a/b"):
        with pytest.raises(TableError, match=r"a name without dots|must be a name"):
            Axis.from_frame(name, {"x": ["1"]}, ["x"])
    with pytest.raises(TableError, match="must name each level once, got region, region"):
        Axis.from_frame("p", {"region": ["1"]}, ["region"] * 2)
    with pytest.raises(TableError, match="has 3 levels and 2 columns"):
        axis_of(ROWS, columns=["a", "b"])
    with pytest.raises(TableError, match="has 3 levels and 0 columns"):
        axis_of(ROWS, columns=[])
    with pytest.raises(TableError, match="must name each column once, got a, b, a"):
        axis_of(ROWS, columns=["a", "b", "a"])
    with pytest.raises(TableError, match="needs 1 to 64 levels, got 0"):
        Axis.from_frame("p", {"x": ["1"]}, [])
    with pytest.raises(TableError, match="has no column 'county'; it has region, province, town"):
        Axis.from_frame("p", pl.DataFrame(ROWS, LEVELS, orient="row"), ["region", "county"])


def test_not_stated_must_be_a_leaf_of_the_list():
    assert axis_of(ROWS, not_stated="S11").not_stated == "S11"
    with pytest.raises(TableError, match="not_stated = 'N1' must be one of the town codes"):
        axis_of(ROWS, not_stated="N1")


def test_a_level_is_found_by_name_or_the_known_ones_are_named():
    axis = axis_of(ROWS)
    assert [axis.level_number(level) for level in LEVELS] == [1, 2, 3]
    with pytest.raises(TableError, match="has no level 'county'; it has region, province, town"):
        axis.level_number("county")


def test_an_axis_of_64_levels_is_ordinary_and_65_are_refused():
    levels = [f"l{k}" for k in range(65)]
    row = [tuple(f"c{k}" for k in range(65))]
    axis = axis_of([row[0][:64]], levels[:64])
    assert axis.depth == 64
    assert list(axis.descendant_start(0, 64)) == [0, 1]
    with pytest.raises(TableError, match="needs 1 to 64 levels, got 65"):
        axis_of(row, levels)


def test_a_bare_name_is_no_list_of_levels():
    frame = pl.DataFrame({"chapter": ["A", "B"]})
    with pytest.raises(TableError, match=r"got one name; write levels=\['chapter'\]"):
        Axis.from_frame("disease", frame, levels="chapter")
    with pytest.raises(TableError, match=r"lists of names"):
        Axis.from_frame("disease", frame, levels=["chapter"], columns="chapter")


NO_TABLES = {
    "columns of two lengths": ({"county": ["a", "b"], "town": ["a1"]}, "got length 1"),
    "two types in a column": ({"county": ["a"] * 2, "town": ["a1", 2]}, "got a 'int' object"),
    "two types in pandas": (
        pd.DataFrame({"county": ["a"] * 2, "town": ["a1", 2]}),
        "Conversion failed for column town",
    ),
    "a frame that cannot be computed": (
        pl.LazyFrame({"town": ["a1"]}).select("county", "town"),
        'unable to find column "county"',
    ),
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_a_public_list_in_memory_says_what_is_wrong_with_it(name):
    areas, said = NO_TABLES[name]
    rule = "cannot be computed" if isinstance(areas, pl.LazyFrame) else "is no table"
    with pytest.raises(TableError, match=f"the list of areas of axis 'place' {rule}") as caught:
        Axis.from_frame("place", areas, ["county", "town"])
    assert caught.value.breaks is None
    assert said in caught.value.confidential


@pytest.mark.parametrize("name", NO_TABLES)
def test_the_tables_own_list_in_memory_says_it_on_a_terminal_alone(name):
    """Its other columns are nobody's list."""
    with refused("cannot be computed|is no table"):
        Axis.from_frame("place", NO_TABLES[name][0], ["county", "town"], from_table=True)
