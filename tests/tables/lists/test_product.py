"""Product axes: what each level tells, marginals of any columns, and lists that are none."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists import product as product_module

KINDS = {"hhgq": ["101", "0", "501"]}
AGES = {"votingage": ["minor", "adult"]}
RACES = {
    "hispanic": ["h", "h", "n", "n"],
    "cenrace": ["01", "02", "01", "02"],
    "group": ["hispanic", "hispanic", "white", "black"],
}
LISTS = [KINDS, AGES, RACES]
ORDER = ["hhgq", "votingage", "group", "detail"]


def person(lists=LISTS, order=ORDER, **options):
    return Axis.from_product("person", lists, order, **options)


def combinations_of(lists):
    """Every combination of rows, a dict from column to code each."""
    rows = [
        [dict(zip(each, row, strict=True)) for row in zip(*each.values(), strict=True)]
        for each in lists
    ]
    return [{k: v for part in parts for k, v in part.items()} for parts in product(*rows)]


def test_a_level_tells_the_columns_of_its_entry_and_of_those_above():
    axis = person(attribute=True)
    assert axis.levels == tuple(ORDER)
    assert axis.columns == ("hhgq", "votingage", "group", "hispanic", "cenrace")
    assert [axis.columns_of(k) for k in range(5)] == [
        (),
        ("hhgq",),
        ("hhgq", "votingage"),
        ("hhgq", "votingage", "group"),
        axis.columns,
    ]
    assert [axis.size(k) for k in range(5)] == [1, 3, 6, 18, 24]
    assert axis.attribute
    assert not person().attribute


def test_the_leaves_are_all_combinations_sorted_by_the_columns_as_they_are_told():
    axis = person()
    wanted = sorted(tuple(row[c] for c in axis.columns) for row in combinations_of(LISTS))
    assert axis.leaf_frame().rows() == wanted
    assert axis.leaf_frame().columns == list(axis.columns)


@st.composite
def factors(draw):
    """One to three lists of random rows and an order of refinement of all their columns."""
    codes = st.text("ab·1 ", min_size=1, max_size=2)
    lists, columns = [], []
    for number in range(draw(st.integers(1, 3))):
        names = [f"c{number}{i}" for i in range(draw(st.integers(1, 3)))]
        row = st.tuples(*[codes] * len(names))
        rows = draw(st.lists(row, min_size=1, max_size=5, unique=True))
        lists.append(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        columns += names
    left, order = draw(st.permutations(columns)), []
    while left and draw(st.integers(0, 4)):
        count = draw(st.integers(1, min(2, len(left))))
        order.append(" × ".join(left[:count]))
        left = left[count:]
    return lists, [*order, "detail"] if left else order


@settings(max_examples=25)
@given(factors())
def test_every_node_is_one_combination_of_what_its_level_tells(given_lists):
    """Against every combination written out, for the sizes, paths, keys and descendants."""
    lists, order = given_lists
    try:
        axis = person(lists, order)
    except TableError as error:
        assert "joined codes" in str(error)  # noqa: PT017 - only codes with · may clash
        return
    every = combinations_of(lists)
    leaves = axis.leaf_frame().rows()
    for k in range(1, axis.depth + 1):
        told = axis.columns_of(k)
        nodes = sorted({tuple(row[c] for c in told) for row in every})
        assert axis.size(k) == len(nodes)
        path = pl.DataFrame(axis.path(k, np.arange(axis.size(k), dtype=np.int32)))
        assert path.columns == list(told)
        assert path.rows() == axis.keys(k).rows() == nodes
        assert [leaf[: len(told)] for leaf in leaves] == [nodes[j] for j in axis.ancestors(k)]
        assert len(set(axis.labels[k - 1])) == len(nodes)


@settings(max_examples=20)
@given(factors(), st.randoms(use_true_random=False))
def test_parts_number_the_combinations_of_any_columns(given_lists, random):
    lists, order = given_lists
    columns = [column for each in lists for column in each]
    chosen = random.sample(columns, random.randint(1, len(columns)))
    try:
        axis = person(lists, order)
    except TableError:
        return
    frame, number = axis.parts(chosen)
    assert frame.columns == chosen
    assert number.dtype == np.int32
    rows = axis.leaf_frame().select(chosen).rows()
    assert frame.rows() == sorted(set(rows))
    assert [frame.row(n) for n in number] == rows


def test_parts_take_names_of_columns_and_of_levels_with_and_without_the_axis():
    axis = person()
    assert axis.parts(["person.votingage"])[0].columns == ["votingage"]
    assert axis.parts(["detail", "hispanic"])[0].columns == ["hispanic", "cenrace"]
    assert len(axis.parts(["votingage", "cenrace"])[0]) == 4
    areas = {"county": ["A", "A", "B"], "block": ["A1", "A2", "B1"]}
    place = Axis.from_frame("place", areas, ["county", "block"], columns=["co", "bl"])
    frame, number = place.parts(["county"])
    assert (frame.rows(), list(number)) == ([("A",), ("B",)], [0, 0, 1])
    assert place.parts(["place.bl"])[0].rows() == [("A1",), ("A2",), ("B1",)]
    assert place.leaf_frame().columns == ["co", "bl"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["votingagee"], "has no column 'votingagee'; .* did you mean 'votingage'"),
        ([], "name at least one column"),
        ("votingage", "a list of columns"),
        ([3], "has no column 3"),
    ],
)
def test_parts_of_no_such_columns_are_refused(columns, words):
    with pytest.raises(TableError, match=words):
        person().parts(columns)


def test_an_entry_joins_columns_in_any_spelling():
    for entry in ("hispanic × cenrace", "hispanic*cenrace", "hispanic x cenrace"):
        axis = person(order=["hhgq × votingage", entry, "group"])
        assert axis.levels == ("hhgq × votingage", "hispanic × cenrace", "group")
        assert [axis.size(k) for k in range(4)] == [1, 6, 24, 24]


def test_lists_are_read_from_files_as_text(tmp_path):
    pl.DataFrame({"cenrace": ["01", "02"]}).write_csv(tmp_path / "race.csv")
    pl.DataFrame({"age": [1, 2, 3]}).write_parquet(tmp_path / "age.parquet")
    lists = [tmp_path / "race.csv", str(tmp_path / "age.parquet")]
    axis = person(lists, ["age", "cenrace"])
    assert axis.leaf_frame().row(0) == ("1", "01")


@pytest.mark.parametrize(
    ("lists", "order", "words"),
    [
        ([AGES, {**KINDS, "votingage": ["1", "2", "3"]}], ["hhgq"], "two lists .* 'votingage'"),
        (LISTS, ["hhgq", "votingagee", "detail"], "votingagee is no column .* mean 'votingage'"),
        (LISTS, ["hhgq", "detail", "votingage"], "detail is no column"),
        (LISTS, ["hhgq", "votingage", "groupe"], "groupe is no column .* mean 'group'"),
        (LISTS, ["hhgq", "group × hhgq", "detail"], "must name column 'hhgq' once"),
        (LISTS, ["hhgq × hhgq", "detail"], "must name column 'hhgq' once"),
        (LISTS, ["hhgq", "votingage", "group"], "leaves out hispanic, cenrace, .* not told apart"),
        ([AGES], ["votingage", "detail"], "detail is no column"),
        (LISTS, [], "leaves out hhgq"),
        (LISTS, "hhgq", "a list of columns"),
        (LISTS, [3], "must be a name"),
        ([], ["detail"], "at least one list"),
        (KINDS, ["hhgq"], "a list of public lists"),
        ([{"a": []}], ["a"], "list 1 is empty"),
        ([{"a": ["x", None]}], ["a"], "list 1 has a row without a 'a'"),
        ([KINDS, {"a": ["x", "y", "x"], "b": ["1", "1", "1"]}], ["detail"], "x · 1 twice"),
        ([{"a": ["x · y", "x"]}, {"b": ["z", "y · z"]}], ["a", "b"], "joined codes x · y · z"),
        ([{"a": [1.5]}], ["a"], "codes must be text"),
        ([{f"a{i}": list(map(str, range(60)))} for i in range(4)], ["detail"], "12,960,000 leaves"),
    ],
)
def test_what_makes_no_product_is_refused_in_a_sentence(lists, order, words):
    with pytest.raises(TableError, match=words):
        person(lists, order)


def test_the_largest_product_is_the_limit(monkeypatch):
    monkeypatch.setattr(product_module, "MOST_LEAVES_OF_A_PRODUCT", 24)
    assert person().size(4) == 24
    monkeypatch.setattr(product_module, "MOST_LEAVES_OF_A_PRODUCT", 23)
    with pytest.raises(TableError, match="3 × 2 × 4 = 24 leaves, and 23 are the most"):
        person()


def test_the_digest_tells_codes_columns_and_levels_apart():
    rows = person().leaf_frame()
    axes = [
        person(),
        person(attribute=True),
        person(order=["hhgq", "group", "votingage", "detail"]),
        person(order=["hhgq", "votingage", "group × hispanic", "detail"]),
        person(order=["hhgq", "votingage", "group", "rest"]),
        person([{"hhgq": ["100", "0", "501"]}, AGES, RACES]),
    ]
    assert len({axis.digest for axis in axes}) == len(axes)
    again = Axis.from_leaves("person", rows.reverse(), ORDER, (1, 2, 3, 5))
    assert again.digest == person().digest
    flat = Axis.from_frame("a", {"c": ["1", "2"]}, ["c"])
    assert Axis.from_product("a", [{"c": ["1", "2"]}], ["c"]).digest != flat.digest


@pytest.mark.parametrize(
    "told", [(1, 2, 3), (1, 2, 3, 4), (1, 1, 3, 5), (0, 2, 3, 5), (1, 2, 3.0, 5)]
)
def test_levels_that_tell_nothing_more_make_no_axis(told):
    with pytest.raises(TableError, match="each level must tell more columns, and the last all"):
        Axis.from_leaves("person", person().leaf_frame(), ORDER, told)


def test_leaves_that_are_the_same_or_lack_a_code_make_no_axis():
    rows = pl.DataFrame({"a": ["1", "1"], "b": ["x", "x"]})
    with pytest.raises(TableError, match="two leaves have the same codes"):
        Axis.from_leaves("p", rows, ["a", "b"], (1, 2))
    with pytest.raises(TableError, match="two leaves have the same codes"):
        Axis.from_leaves("p", rows.select("a"), ["a"], (1,))
    with pytest.raises(TableError, match="a code in every column"):
        Axis.from_leaves("p", rows.with_columns(b=None), ["a", "b"], (1, 2))
    with pytest.raises(TableError, match="a code in every column"):
        Axis.from_leaves("p", rows.clear(), ["a", "b"], (1, 2))
