"""Code lists as publishers ship them: levels by prefix, by parent, by division; one leaf column."""

import time
from datetime import date
from typing import cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import TableError
from hedgerow.plan.prior import Prior
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.rules import Division, Parents, Prefix
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.made import by_code
from tests.refused import refused

BLOCKS = ["010010201001000", "010010201001001", "010010201002000", "020130001001000"]
PLACES = ["state", "county", "tract", "group"]
PREFIX = Prefix([2, 5, 11, 12], code="GEOID")
TOWNS = {"region": ["N", "N", "S"], "town": ["a", "b", "c"]}


def leaves(axis):
    return axis.leaf_frame().rows()


def counted(axis, table, **options):
    return by_code(Tree([axis]), table, **options)


# One column of the deepest level


def test_the_deepest_column_alone_is_enough_whatever_else_the_table_has():
    axis = Axis.from_frame("place", TOWNS, ["region", "town"], columns=["T"])
    assert axis.columns == ("region", "T")
    table = {"T": ["a", "c", "c"], "region": ["S", "?", None]}
    assert counted(axis, table) == {"a": 1, "c": 2}
    with pytest.raises(TableError, match="has no column 'T'"):
        counted(axis, {"town": ["a"]})


def test_two_axes_from_one_list_have_columns_of_their_own():
    home, work = (
        Axis.from_frame(name, TOWNS, ["region", "town"], columns=[column])
        for name, column in (("home", "O_TOWN"), ("work", "D_TOWN"))
    )
    tree = Tree([home, work])
    assert tree.columns(tree.depth) == ["home_region", "O_TOWN", "work_region", "D_TOWN"]
    counts = Counts.from_frame(tree, {"O_TOWN": ["a", "a"], "D_TOWN": ["c", "c"]})
    assert counts.level(tree.depth).rows() == [("N", "a", "S", "c", 2)]
    assert Tree([home]).columns(2) == ["region", "O_TOWN"]
    clash = Axis.from_frame("work", TOWNS, ["region", "town"], columns=["O_TOWN"])
    with pytest.raises(TableError, match="two axes share a column called 'O_TOWN'"):
        Tree([home, clash])


# Prefixes


def test_the_levels_of_a_prefix_are_the_first_characters():
    axis = Axis.from_frame("place", {"GEOID": BLOCKS}, PLACES, rule=PREFIX)
    assert axis.columns == tuple(PLACES)
    assert leaves(axis) == [
        ("01", "01001", "01001020100", "010010201001"),
        ("01", "01001", "01001020100", "010010201002"),
        ("02", "02013", "02013000100", "020130001001"),
    ]


def test_codes_of_the_table_are_cut_as_those_of_the_list():
    axis = Axis.from_frame("place", {"GEOID": BLOCKS}, PLACES, rule=PREFIX)
    table = {"GEOID": [*BLOCKS, "010010201002", "010010201002999"]}
    assert counted(axis, table) == {"010010201001": 2, "010010201002": 3, "020130001001": 1}
    other = Axis.from_frame("place", {"GEOID": BLOCKS}, PLACES, rule=PREFIX, columns=["block"])
    assert counted(other, {"block": BLOCKS[:1], "state": ["?"]}) == {"010010201001": 1}


def test_a_shorter_code_ends_early_and_a_heading_is_no_leaf():
    codes = ["A", "A0", "A00", "A00.1", "A01", "B", "B9", "B95.01"]
    axis = Axis.from_frame("cause", {"code": codes}, ["a", "b", "c"], rule=Prefix([1, 3, 5]))
    assert set(leaves(axis)) == {
        ("A", "A0", "A0"),
        ("A", "A00", "A00.1"),
        ("A", "A01", "A01"),
        ("B", "B9", "B9"),
        ("B", "B95", "B95.0"),
    }
    assert counted(axis, {"code": ["A01", "B95.07", "A00.1"]}) == {"A00.1": 1, "A01": 1, "B95.0": 1}


@given(st.lists(st.text("01", min_size=1, max_size=5), min_size=1))
def test_any_codes_nest_by_prefix(codes):
    axis = Axis.from_frame("p", {"code": codes}, ["a", "b"], rule=Prefix([1, 3]))
    cut = {code[:3] for code in codes}
    assert set(axis.labels[-1]) == {
        code for code in cut if len(code) > 1 or not any(len(c) > 1 and c[0] == code for c in cut)
    }
    assert all(fine.startswith(coarse) for coarse, fine in leaves(axis))


# Parents


CAUSES = {
    "code": ["A1", "A", "A2", "B", "A11", "A12", "A111"],
    "parent": ["A", None, "A", "", "A1", "A1", "A11"],
}


def test_the_levels_of_parents_are_depths():
    axis = Axis.from_frame("cause", CAUSES, ["x", "y", "z"], rule=Parents("parent"))
    assert set(leaves(axis)) == {
        ("A", "A1", "A11"), ("A", "A1", "A12"), ("A", "A2", "A2"), ("B", "B", "B")
    }  # fmt: skip
    deeper = Axis.from_frame("cause", CAUSES, list("wxyz"), rule=Parents("parent"))
    assert ("A", "A1", "A11", "A111") in leaves(deeper)
    assert counted(axis, {"code": ["A12", "B", "B"]}) == {"A12": 1, "B": 2}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("a", None), ("b", "c"), ("c", "b")], "'b' is its own parent, or among those"),
        ([("a", None), ("b", "b")], "'b' is its own parent"),
        ([("a", None), ("b", "a"), ("b", None)], "code 'b' has two parents, 'a' and none"),
        ([("a", None), ("b", "x")], "the parent 'x' of 'b' has no row"),
        ([("a", None), (None, "a")], "has a row without a 'code'"),
        ([("a", None), ("b", None)], "no code has 1 others above it"),
        ([], "is empty"),
    ],
)
def test_parents_that_are_no_tree_are_refused(rows, words):
    frame = pl.DataFrame(rows, {"code": pl.String, "parent": pl.String}, orient="row")
    with pytest.raises(TableError, match=words):
        Axis.from_frame("cause", frame, ["x", "y"], rule=Parents("parent"))


def test_a_long_chain_of_parents_is_no_cycle():
    codes = [f"{i:03}" for i in range(300)]
    frame = {"code": codes, "parent": [None, *codes[:-1]]}
    axis = Axis.from_frame("cause", frame, ["x", "y"], rule=Parents("parent"))
    assert leaves(axis) == [("000", "001")]


# Division


GRID = Division([100, 10], code=["x", "y"])


def test_the_levels_of_a_division_are_lower_corners():
    points = {"x": [4, 14, -1, 99.9], "y": [0, 109, -100, 9.99]}
    axis = Axis.from_frame("square", points, ["km100", "km10"], rule=GRID)
    assert leaves(axis) == [
        ("-100_-100", "-10_-100"),
        ("0_0", "0_0"),
        ("0_0", "90_0"),
        ("0_100", "10_100"),
    ]
    table = {"x": [4.5, -0.5, -10.0], "y": [9, -95.0, -91]}
    assert counted(axis, table) == {"0_0": 1, "-10_-100": 2}
    text = {"x": ["4", "9.999"], "y": ["0", "1e0"]}
    assert counted(axis, text) == {"0_0": 2}
    assert counted(axis, text | {"x": [4, 5], "n": [7, 8]}, count="n") == {"0_0": 15}


@settings(max_examples=40)
@given(st.lists(st.floats(-1e15, 1e15) | st.integers(-(1 << 53) + 1, (1 << 53) - 1), min_size=1))
def test_list_and_table_divide_alike(places):
    numbers = [float(place) for place in places]
    rule = Division([700, 7], code="x")
    axis = Axis.from_frame("square", {"x": numbers}, ["coarse", "fine"], rule=rule)
    found = counted(axis, {"x": numbers})
    expected = {}
    for number in numbers:
        corner = str(int(number // 1) // 7 * 7)
        expected[corner] = expected.get(corner, 0) + 1
    assert found == expected


@pytest.mark.parametrize("place", [None, "", "x", float("nan"), float("inf"), 1e16, -1e300])
def test_a_place_that_is_no_number_is_refused(place):
    kind = pl.String if isinstance(place, str) else pl.Float64
    wrong = pl.DataFrame({"x": pl.Series([place], dtype=kind), "y": [1]})
    with pytest.raises(TableError, match="column 'x' must have a number in every row"):
        Axis.from_frame("square", wrong, ["km100", "km10"], rule=GRID)
    axis = Axis.from_frame("square", {"x": [1], "y": [1]}, ["km100", "km10"], rule=GRID)
    with pytest.raises(TableError, match="damaged or outside its declared limits"):
        counted(axis, wrong)


# What a rule must be


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Prefix([5, 2]), "prefix must ascend, from coarse to fine, got 5, 2"),
        (lambda: Prefix([2, 2]), "prefix must ascend"),
        (lambda: Prefix([0, 2]), "prefix must be whole numbers above 0"),
        (lambda: Prefix([True]), "prefix must be whole numbers above 0"),
        (lambda: Prefix(cast("list[int]", "25")), "prefix must be a list of whole numbers"),
        (lambda: Division([10, 4]), "each width must be a multiple of the next"),
        (lambda: Division([10, 10]), "each width must be a multiple of the next"),
        (lambda: Division([10], code=["x", "x"]), "code must name each column of coordinates once"),
        (lambda: Division([10], code=[]), "code must name each column of coordinates once"),
    ],
)
def test_a_rule_that_is_none_is_refused(make, words):
    with pytest.raises(TableError, match=words):
        make()


@pytest.mark.parametrize(
    ("rule", "columns", "words"),
    [
        (Prefix([2]), None, "prefix needs one number a level"),
        (Division([9]), None, "divide needs one number a level"),
        (Prefix([2, 3], code="c"), None, "has no column 'c'"),
        (Division([9, 3], code="c"), None, "has no column 'c'"),
        (Parents("p"), None, "has no column 'p'"),
        (Parents("town"), None, "'town' cannot hold codes and parents"),
        (Prefix([2, 3]), ["a", "b"], "must name the table's own for town, got 2 names"),
    ],
)
def test_a_rule_that_does_not_fit_the_list_is_refused(rule, columns, words):
    with pytest.raises(TableError, match=words):
        Axis.from_frame("place", TOWNS, ["region", "town"], rule=rule, columns=columns)


def test_where_no_column_is_named_the_codes_are_found_by_name():
    levels, rule = ["state", "county"], Prefix([1, 2])
    for columns in (["x", "county"], ["code", "x"], ["geo"]):
        frame = {column: ["01", "02"] if column != "x" else ["?", "?"] for column in columns}
        assert Axis.from_frame("p", frame, levels, rule=rule).size(2) == 2
    with pytest.raises(TableError, match="has no column 'county'; say which of its columns holds"):
        Axis.from_frame("p", {"a": ["01"], "b": ["01"]}, levels, rule=rule)


def test_a_code_that_is_not_in_the_list_is_told_on_a_terminal_alone():
    axis = Axis.from_frame("place", {"GEOID": BLOCKS}, PLACES, rule=PREFIX)
    with pytest.raises(TableError) as caught:
        counted(axis, {"GEOID": ["777770000000000"]})
    assert "77777" not in str(caught.value)
    assert "GEOID '777770000000000'" in caught.value.confidential


def test_coordinates_of_categories_are_their_numbers_and_what_is_no_number_is_refused():
    frame = pl.DataFrame({"x": pl.Series(["500", "70"], dtype=pl.Categorical)})
    axis = Axis.from_frame("p", frame, ["a"], rule=Division([10], "x"))
    assert axis.labels[0].sort().to_list() == ["500", "70"]
    for values in ([b"1"], [[1]], [{"a": 1}], [date(2021, 8, 10)], [True]):
        with pytest.raises(TableError, match="column 'x' must have a number in every row"):
            Axis.from_frame("p", {"x": values}, ["a"], rule=Division([10], "x"))
    with pytest.raises(TableError, match="is no table"):
        Axis.from_frame("p", {"x": [10**30, 1]}, ["a"], rule=Division([10], "x"))


# What is not stated, by parent


AREAS = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"], "town": ["A11", "A21", "B11"]}
STATES = ["state", "county", "town"]


def by_state(table, not_stated="{state}9", **options):
    axis = Axis.from_frame("place", AREAS, STATES, not_stated=not_stated, **options)
    counts = Counts.from_frame(Tree([axis]), table)
    codes = axis.labels[-1].gather(counts.codes[0])
    return dict(zip(codes, counts.values.tolist(), strict=True)), counts.unlisted


def test_an_unknown_code_counts_in_its_own_state():
    table = {
        "state": ["A", "A", "B", "B", "A"],
        "county": ["A1", "A1", None, "B7", "A9"],
        "town": ["A11", "?", None, "B77", "A9"],
    }
    table["county"][4] = "A9"
    assert by_state(table) == ({"A11": 1, "A9": 2, "B9": 2}, (3,))


def test_such_leaves_hang_from_their_area_and_are_added_once():
    axis = Axis.from_frame("place", AREAS, STATES, not_stated="{county}-")
    assert ("A", "A1", "A1-") in leaves(axis)
    assert axis.size(3) == 6
    again = Axis.from_frame("place", axis.leaf_frame(), STATES, not_stated="{county}-")
    assert again.digest == axis.digest
    listed = AREAS | {"town": ["A9", "A21", "B11"]}
    axis = Axis.from_frame("place", listed, STATES, not_stated="{state}9")
    assert leaves(axis)[0] == ("A", "A1", "A9")
    with pytest.raises(TableError, match="needs the leaf 'B9' below its own state"):
        Axis.from_frame("place", AREAS | {"town": ["B9", "A", "B"]}, STATES, not_stated="{state}9")


@pytest.mark.parametrize("state", ["C", None])
def test_an_unknown_code_in_an_unknown_state_is_refused(state):
    with pytest.raises(TableError, match="outside its declared limits"):
        by_state({"state": [state], "county": ["A1"], "town": ["?"]})


def test_a_parent_that_contradicts_the_list_is_refused():
    table = {"state": ["B"], "county": ["A1"], "town": ["?"]}
    with pytest.raises(TableError, match="outside its declared limits"):
        by_state(table, "{county}9")
    assert by_state(table | {"state": ["A"]}, "{county}9")[0] == {"A19": 1}


def test_the_parent_is_known_by_prefix_and_by_division_too():
    axis = Axis.from_frame("p", {"GEOID": BLOCKS}, PLACES, rule=PREFIX, not_stated="{county}?")
    assert counted(axis, {"GEOID": ["02013999", "010010201001000"]}) == {
        "02013?": 1,
        "010010201001": 1,
    }
    grid = {"x": [4], "y": [4]}
    axis = Axis.from_frame("p", grid, ["a", "b"], rule=GRID, not_stated="{a} else")
    assert counted(axis, {"x": [5, 55], "y": [1, 55.5]}) == {"0_0": 1, "0_0 else": 1}


@pytest.mark.parametrize("options", [{"columns": ["town"]}, {}])
def test_the_parent_must_be_known_from_the_columns_of_the_table(options):
    with pytest.raises(TableError, match="the column 'town' alone does not tell it"):
        by_state({"town": ["A11"]}, **options)


@pytest.mark.parametrize("text", ["{town}9", "{stat}9", "{state}{county}", "{}"])
def test_not_stated_names_one_level_above_the_deepest(text):
    with pytest.raises(TableError, match="not_stated may have one level above town in braces"):
        Axis.from_frame("place", AREAS, STATES, not_stated=text)


# Priors


@pytest.mark.parametrize(
    ("axis", "table", "sizes"),
    [
        (Axis.from_frame("p", TOWNS, ["region", "town"]), {"town": ["a", "c"]}, (2, 3)),
        (
            Axis.from_frame("p", TOWNS, ["region", "town"], columns=["T"]),
            {"T": ["a"], "town": ["?"]},
            (2, 3),
        ),
        (
            Axis.from_frame("p", {"town": ["aa", "b"]}, ["region", "town"], rule=Prefix([1, 2])),
            {"town": ["xyz", "xx", "xyy"]},
            (1, 2),
        ),
        (
            Axis.from_frame("p", {"x": [1], "y": [1]}, ["a", "b"], rule=GRID),
            {"x": [1.5, 200, 1], "y": [1, 1.5, 2]},
            (2, 2),
        ),
    ],
)
def test_a_prior_may_have_leaf_codes_alone(axis, table, sizes):
    prior = Prior.read(Tree([axis]), table, public=True)
    (own,) = prior.counts.tree.axes
    assert (own.size(1), own.size(2)) == sizes
    assert prior.counts.total == len(next(iter(table.values())))
    prior.check_fits(Tree([axis]))


def test_a_code_of_a_prior_that_the_list_lacks_is_named():
    axis = Axis.from_frame("p", TOWNS, ["region", "town"])
    with pytest.raises(TableError, match=r"the prior: .* a code that is not in the public list"):
        Prior.read(Tree([axis]), {"town": ["z"]}, public=True)


def test_codes_below_the_last_level_count_at_the_leaf_above_them():
    causes = {
        "code": ["I", "A00", "A00.1", "A00.11", "A01", "II", "B00", "B00.9"],
        "parent": [None, "I", "A00", "A00.1", "I", None, "II", "B00"],
    }
    axis = Axis.from_frame("c", causes, ["chapter", "category"], rule=Parents("parent", "code"))
    codes = ["A00.11", "A00.1", "A00", "A01", "B00.9", "B00.9"]
    for column in ({"code": codes}, {"code": [*codes, "A00"], "n": [1] * 6 + [0]}):
        counts = Counts.from_frame(Tree([axis]), column, count="n" if len(column) > 1 else None)
        assert counts.values.tolist() == [3, 1, 2]
    assert axis.labels[-1].to_list() == ["A00", "A01", "B00"]
    for code in ("A00.2", "I"):  # neither in the list nor a leaf: nothing is cut
        with refused("holds a code that is not in the public list"):
            Counts.from_frame(Tree([axis]), {"code": [code]})


def test_a_parent_that_no_table_can_tell_is_refused_when_planned():
    causes = {"code": ["A", "A1", "A9", "A19"], "parent": [None, "A", "A1", "A9"]}
    for options in ({"not_stated": "{x}9"}, {"not_stated": "A9"}):
        with pytest.raises(TableError, match=r"'code' alone does not tell it|must be one of the y"):
            Axis.from_frame("c", causes, ["x", "y"], rule=Parents("parent", "code"), **options)
    with pytest.raises(TableError, match="'town' alone does not tell it"):
        Axis.from_frame("place", AREAS, STATES, columns=["town"], not_stated="{state}9")


def test_a_genuine_code_between_is_no_code_for_what_is_not_stated():
    for counties in (["A9", "A2", "B1"], ["A1", "A2", "A9"]):
        listed = AREAS | {"county": counties}
        with pytest.raises(TableError, match="makes the code 'A9', which is that of a county with"):
            Axis.from_frame("place", listed, STATES, not_stated="{state}9")
    listed = {"GEOID": ["0109911", "01001"]}
    with pytest.raises(TableError, match="makes the code '01099'"):
        Axis.from_frame(
            "p", listed, STATES, rule=Prefix([2, 5, 7], "GEOID"), not_stated="{state}099"
        )


def depths_of(up):
    """By walking: the codes above each, itself last."""
    found = {}
    for code in up:
        path = [code]
        while up[path[0]] is not None:
            path.insert(0, up[path[0]])
        found[code] = path
    return found


def test_codes_below_the_leaves_count_at_the_leaf_above_however_deep():
    rng = np.random.default_rng(8)
    up = {"0": None} | {str(i): str(max(0, i - int(rng.integers(1, 4)))) for i in range(1, 60)}
    axis = Axis.from_frame(
        "c", {"c": [*up], "p": [*up.values()]}, ["x", "y", "z"], rule=Parents("p", "c")
    )
    deeper = dict(axis.reading.deeper.iter_rows())
    assert deeper == {c: path[2] for c, path in depths_of(up).items() if len(path) > 3}
    assert max(map(len, depths_of(up).values())) > 20
    many = pl.select(pl.int_range(200_000).cast(pl.String).alias("c")).to_series()
    begun = time.process_time()  # a step a depth took minutes
    axis = Axis.from_frame("c", {"c": many, "p": many.shift(1)}, ["x", "y"], rule=Parents("p", "c"))
    assert time.process_time() - begun < 30
    assert axis.reading.deeper["leaf"].unique().to_list() == ["1"]


# Names


NAMED = AREAS | {"state_nm": ["Avon", "Avon", ""], "nm": ["Ash", "Beech", None]}


def names(axis):
    return [None if n is None else n.to_list() for n in axis.names]


def test_names_are_of_the_deepest_level_or_of_those_named():
    axis = Axis.from_frame("p", NAMED, STATES, names="nm", not_stated="{state}9")
    assert names(axis) == [None, None, ["Ash", "Beech", None, None, None]]
    both = {"state": "state_nm", "town": "nm"}
    axis = Axis.from_frame("p", NAMED, STATES, names=both, columns=["T"])
    assert names(axis) == [["Avon", None], None, ["Ash", "Beech", None]]
    frame = pl.DataFrame({"state": ["B", "A"], "T": ["B11", "A21"], "count": [1, 2]})
    named = Tree([axis]).with_names(frame)
    assert named.columns == ["state", "state_name", "T", "T_name", "count"]
    assert named.rows() == [("B", None, "B11", None, 1), ("A", "Avon", "A21", "Beech", 2)]
    assert axis.digest == Axis.from_frame("p", AREAS, STATES, columns=["T"]).digest


def test_with_parents_or_a_prefix_names_are_those_of_all_codes():
    causes = CAUSES | {"title": [f"Title {code}" for code in CAUSES["code"]]}
    axis = Axis.from_frame("c", causes, ["x", "y"], rule=Parents("parent"), names="title")
    assert names(axis)[0] == ["Title A", "Title B"]
    assert names(axis)[1] == ["Title A1", "Title A2", "Title B"]
    codes = {"code": ["A", "A00", "B10"], "title": ["a", "b", "c"]}
    axis = Axis.from_frame("c", codes, ["x", "y"], rule=Prefix([1, 3]), names="title")
    assert names(axis) == [["a", None], ["b", "c"]]


@pytest.mark.parametrize(
    ("given", "rule", "words"),
    [
        ("no", None, "has no column 'no'"),
        ({"stat": "nm"}, None, "'stat', which is no level .* did you mean 'state'"),
        ({"state": "town"}, None, "state 'A' has two names, 'A11' and 'A21'; each code needs one"),
        ({"town": "nm"}, Prefix([1, 2, 3]), "names is the one column with the names of all codes"),
    ],
)
def test_names_that_do_not_fit_are_refused(given, rule, words):
    with pytest.raises(TableError, match=words):
        Axis.from_frame("p", NAMED, STATES, names=given, rule=rule)


def test_names_never_take_the_place_of_a_column():
    axis = Axis.from_frame("p", NAMED, STATES, names="nm")
    with pytest.raises(TableError, match="has a column 'town_name' already"):
        Tree([axis]).with_names(pl.DataFrame({"town": ["A11"], "town_name": ["x"]}))
