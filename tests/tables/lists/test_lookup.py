"""Lookups as publishers ship them: which column is what, and what areas leave out."""

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.tables.lists.areas import names_of
from hedgerow.tables.lists.lookup import Lookup

ZONES = {"lad": ["X", "X", "X", "Y"], "lsoa": ["E01", "E02", "E03", "E04"]}


@pytest.fixture(scope="module")
def tree():
    return hr.Tree([hr.Axis.from_frame("place", ZONES, ["lad", "lsoa"])])


def members(lookup):
    """The codes of each area."""
    codes = ZONES["lsoa"]
    return {
        area: [codes[node] for node in lookup.members(number)]
        for number, area in enumerate(lookup.areas)
    }


def test_columns_of_an_official_lookup_are_told_by_their_headers(tree, tmp_path):
    """As the Office for National Statistics ships them, with a byte order mark."""
    file = tmp_path / "lookup.csv"
    file.write_bytes(
        "\ufeffLSOA21CD,LSOA21NM,PCON25CD,PCON25NM\n"
        "E01,Adur 1,E14A,Worthing\nE02,Adur 2,E14B,Arundel\nE03,Adur 3,E14A,Worthing\n".encode()
    )
    with pytest.raises(hr.TableError, match="has no column of an axis's codes"):
        Lookup.of(tree, file)
    lookup = Lookup.of(tree, file, codes={"LSOA21CD": "lsoa"})
    assert members(lookup) == {"E14A": ["E01", "E03"], "E14B": ["E02"]}
    assert lookup.areas.name == "PCON25CD"
    assert lookup.names.to_list() == ["Worthing", "Arundel"]
    assert lookup.outside == 1
    assert lookup.notes(tree) == [
        "1 of 4 codes of lsoa are in no area, and their records in no sum."
    ]
    frame = pl.DataFrame({"PCON25CD": ["E14B", "E14A"], "count": [1, 2]})
    assert lookup.with_names(frame).rows() == [("E14B", "Arundel", 1), ("E14A", "Worthing", 2)]


@pytest.mark.parametrize(
    "headers", [("seat", "seat_name"), ("PCON_CODE", "PCON_NAME"), ("ward id", "Ward Name")]
)
def test_names_are_the_column_called_like_the_areas(tree, headers):
    code, name = headers
    rows = {"lsoa": ["E01", "E02", "E04"], code: ["a", "b", "a"], name: ["Alpha", None, "Alpha"]}
    lookup = Lookup.of(tree, rows)
    assert (lookup.areas.name, lookup.names.to_list()) == (code, ["Alpha", None])


def test_columns_that_headers_do_not_tell_apart_are_asked_for(tree):
    rows = {"lsoa": ["E01", "E02"], "seat": ["a", "b"], "label": ["Alpha", "Beta"]}
    with pytest.raises(hr.TableError, match=r"say which holds the areas \(column=…, --area-column"):
        Lookup.of(tree, rows)
    assert Lookup.of(tree, rows, "seat").names is None
    assert Lookup.of(tree, rows, "seat", names="label").names.to_list() == ["Alpha", "Beta"]
    with pytest.raises(hr.TableError, match=r"no column of names 'lable'.*did you mean 'label'"):
        Lookup.of(tree, rows, "seat", names="lable")
    with pytest.raises(hr.TableError, match="has no column 'LSOA'"):
        Lookup.of(tree, rows, "seat", codes={"LSOA": "lsoa"})


def test_an_area_has_one_name(tree):
    rows = {"lsoa": ["E01", "E02"], "seat": ["a", "a"], "seat_name": ["Alpha", "Beta"]}
    with pytest.raises(hr.TableError, match="seat 'a' has two names, 'Alpha' and 'Beta'"):
        Lookup.of(tree, rows)


def test_a_column_of_names_stays_where_none_of_the_areas_has_one(tree):
    """Whoever reads a file of sums expects the column, whichever areas the release has."""
    rows = {"lsoa": ["E01", "S01"], "seat": ["a", "s"], "seat_name": [None, "Skye"]}
    lookup = Lookup.of(tree, rows)
    assert lookup.names.to_list() == [None]
    frame = lookup.with_names(pl.DataFrame({"seat": ["a"], "count": [1]}))
    assert frame.schema["seat_name"] == pl.String
    assert frame.rows() == [("a", None, 1)]


def test_names_of_a_level_are_told_from_those_of_all_others_before_they_are_compared(monkeypatch):
    """A list with one column of names for all codes is long, and a level of it short."""
    compared, unique = [], pl.DataFrame.unique
    counted = lambda frame: (compared.append(len(frame)), unique(frame))[1]  # noqa: E731
    monkeypatch.setattr(pl.DataFrame, "unique", counted)
    pairs = pl.DataFrame({"any": [*"abcde", "a"], "called": ["A", "B", None, "D", "E", "A"]})
    names = names_of(pairs, pl.Series("code", ["c", "a"]), "the list")
    assert names.to_list() == [None, "A"]
    assert compared == [2]


def test_areas_elsewhere_are_left_out_and_those_half_known_are_refused(tree):
    rows = {"lsoa": ["E01", "S01", "S02"], "seat": ["a", "s", "s"]}
    lookup = Lookup.of(tree, rows)
    assert members(lookup) == {"a": ["E01"]}
    assert "1 areas of the lookup are left out" in lookup.notes(tree)[1]
    mixed = {"lsoa": ["E01", "S01", "S02"], "seat": ["a", "s", "a"]}
    with pytest.raises(hr.TableError, match=r"1 of its 3 rows .* such as S02 \(area a\)"):
        Lookup.of(tree, mixed)
    nowhere = {"lsoa": ["S01", "S02"], "seat": ["s", "s"]}
    with pytest.raises(hr.TableError, match="2 of its 2 rows have codes that axis 'place'"):
        Lookup.of(tree, nowhere)


def test_repeated_rows_count_once_and_areas_may_overlap(tree):
    rows = {"lsoa": ["E01", "E01", "E01", "E02"], "seat": ["a", "a", "b", "a"]}
    assert members(Lookup.of(tree, rows)) == {"a": ["E01", "E02"], "b": ["E01"]}


def test_a_finer_lookup_collapses_unless_it_splits_a_code(tree):
    oa = ["1", "2", "3", "4", "5"]
    whole = {"oa": oa, "lsoa": ["E01", "E01", "E02", "E03", "E03"], "seat": list("aabbb")}
    assert members(Lookup.of(tree, whole, "seat")) == {"a": ["E01"], "b": ["E02", "E03"]}
    split = {**whole, "seat": list("ababb")}
    with pytest.raises(hr.TableError, match=r"several rows for one code, and E01 is in a and b"):
        Lookup.of(tree, split, "seat")


def test_codes_that_begin_with_those_of_the_release_collapse_unless_they_split_one(tree):
    whole = {"lsoa": ["E01001", "E01002", "E02", "E04001"], "seat": list("aabb")}
    assert members(Lookup.of(tree, whole)) == {"a": ["E01"], "b": ["E02", "E04"]}
    with pytest.raises(hr.TableError, match="E01 is in a and b"):
        Lookup.of(tree, {"lsoa": ["E01001", "E01002", "E01003"], "seat": list("aba")})
    with pytest.raises(hr.TableError, match="E01 is in a and b"):
        Lookup.of(tree, {"lsoa": ["E01001", "E01002"], "seat": list("ab")})


def test_shares_of_codes_are_refused(tree):
    rows = {"lsoa": ["E01", "E01", "E02"], "seat": list("aba"), "afact": ["0.4", "0.6", "1"]}
    with pytest.raises(hr.TableError, match=r"has shares of codes \('afact'\), and E01 is in"):
        Lookup.of(tree, rows, "seat")
    best = {"lsoa": ["E01", "E02"], "seat": list("aa"), "afact": ["0.6", "1"]}
    assert members(Lookup.of(tree, best, "seat")) == {"a": ["E01", "E02"]}


def test_codes_are_those_of_a_level_of_one_axis_by_its_name_in_the_plan():
    """As where people live and work in areas of one list, and the deepest level has a column."""
    home, work = (
        hr.Axis.from_frame(name, ZONES, ["lad", "lsoa"], columns=[f"{name}_lad", f"at_{name}"])
        for name in ("home", "work")
    )
    both = hr.Tree([home, work])
    rows = {"lsoa": ["E01", "E04"], "seat": ["a", "b"]}
    with pytest.raises(hr.TableError, match=r"axes 'home' and 'work'.* COLUMN=home\.lad"):
        Lookup.of(both, rows)
    for said, axis in (("home.lsoa", 0), ("work.lsoa", 1), ("at_work", 1)):
        lookup = Lookup.of(both, rows, codes={"lsoa": said})
        assert (lookup.axis, lookup.level, len(lookup)) == (axis, 2, 2)
    with pytest.raises(hr.TableError, match=r"no such level or column; it .*mean 'work.lsoa'"):
        Lookup.of(both, rows, codes={"lsoa": "work.lsao"})
