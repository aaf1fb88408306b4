"""What names of columns and values of public lists say of levels."""

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hedgerow.tables.lists.column_names import ColumnName
from hedgerow.tables.lists.list_match import matches
from hedgerow.tables.lists.list_shape import ListShape


def shape(name="list.csv", **columns):
    return ListShape(Path(name), pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)))


@pytest.mark.parametrize(
    ("column", "listed", "role"),
    [
        ("O_SA2", "SA2_CODE_2021", ("o",)),
        ("homeSa2", "SA2_NAME_2016", ("home",)),
        ("sa2_work", "sa2", ("work",)),
        ("LSOA21CD", "lsoa11nm", ()),
        ("Lower layer Super Output Areas Code", "lsoa21cd", ()),
        ("Output Areas", "oa21cd", ()),
        ("GEOID10", "GEOID20", ()),
        ("SA2_UR", "SA2_MAINCODE_2016", ("ur",)),
        ("SA2_POW", "SA2_CODE21", ("pow",)),
        ("code", "code", ()),
        ("O_SA2", "SA3_CODE_2021", None),
        ("township", "town", None),
        ("code", "name", None),
        ("place of work", "lsoa21cd", None),
        ("long sad old age", "lsoa", ()),  # a guess from names: it is shown, and read by the user
    ],
)
def test_names_are_compared_word_by_word(column, listed, role):
    assert ColumnName.of(column).role(ColumnName.of(listed)) == role


def chains(frame, leaf):
    """All chains of columns that end with the leaf, by brute force."""
    others = [column for column in frame.columns if column != leaf]

    def told(fine, coarse):
        rows = set(frame.select(fine, coarse).rows())
        return len(rows) == frame[fine].n_unique() > frame[coarse].n_unique() > 1

    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            for order in permutations(chosen):
                path = [*order, leaf]
                if all(told(path[i + 1], path[i]) for i in range(size)):
                    yield tuple(path)


@pytest.mark.parametrize("seed", range(25))
def test_levels_are_the_longest_chain_of_columns_that_nest(seed):
    rng = np.random.default_rng(seed)
    leaf = np.arange(24)
    columns = {"leaf": [f"l{i}" for i in leaf]}
    for name in "abcd":
        above = rng.choice([2, 3, 4, 6, 8, 12])
        grouped = leaf // above if rng.random() < 0.7 else rng.integers(0, above, 24)
        columns[name] = [f"{name}{i}" for i in grouped]
    frame = pl.DataFrame(columns)
    every = list(chains(frame, "leaf"))
    longest = max(map(len, every))
    found = ListShape(Path("x.csv"), frame).levels_above("leaf").levels
    assert len(found) == longest
    best = [path for path in every if len(path) == longest]
    places = [set(one) for one in zip(*best, strict=True)]
    for options, place in zip(found, places, strict=True):
        assert set(options) <= place
        for other in place - set(options):  # left out only beside one of the very same areas
            twins = [one for one in options if frame[one].n_unique() == frame[other].n_unique()]
            pairs = [frame.select(one, other).n_unique() for one in twins]
            assert frame[other].n_unique() in pairs


def test_a_column_that_differs_within_an_area_is_no_level():
    areas = shape(town=["a", "a", "b", "c"], street=["w", "x", "y", "z"], ward=["1", "2", "2", "2"])
    assert areas.levels_above("town").levels == (("town",),)


def test_a_coarser_column_beside_the_chain_does_not_cut_it():
    leaf = range(24)
    areas = shape(
        region=[f"r{i // 12}" for i in leaf],
        kind=[f"k{i // 12}{i % 2}" for i in leaf],
        county=[f"c{i // 4}" for i in leaf],
        town=[f"t{i // 2}" for i in leaf],
        block=[f"b{i}" for i in leaf],
    )
    found = areas.levels_above("block")
    assert found.levels == (("region",), ("county",), ("town",), ("block",))
    assert found.left_out == {"kind": "does not nest in them"}


def test_measures_and_names_are_no_levels():
    towns = [f"t{i}" for i in range(8)]
    areas = shape(
        county=["c1", "c2"] * 4,
        town=towns,
        sqkm=["1.5", "2.5"] * 4,
        rate=["0.5", "2"] * 4,
        county_name=["One", "Two"] * 4,
        population=["10", "20"] * 4,
    )
    found = areas.levels_above("town")
    assert (found.levels, found.names) == ((("county",), ("town",)), {"county": "county_name"})


@pytest.mark.parametrize(
    ("codes", "lengths"),
    [
        (["A", "A1", "A11"], (1, 2, 3)),
        (["A", "B1"], ()),  # B1 continues no code
        (["A1", "B1"], ()),
        (["A", "A1", "B1"], ()),
    ],
)
def test_lengths_are_levels_where_every_code_continues_another(codes, lengths):
    assert shape(code=codes).lengths("code") == lengths


def test_digits_of_the_bureau_are_known_for_its_column_alone():
    blocks = ["440010301001000", "440030301001000"]
    assert shape(GEOID20=blocks).bureau_lengths("GEOID20") == (2, 5, 11, 12, 15)
    assert shape(GEOID=[b[:11] for b in blocks]).bureau_lengths("GEOID") == (2, 5, 11)
    assert shape(zone=blocks).bureau_lengths("zone") == ()
    assert shape(GEOID=["44", "44001"]).bureau_lengths("GEOID") == ()


def test_depths_of_parents_end_on_a_cycle():
    assert shape(code=["a", "b", "c"], parent=[None, "a", "b"]).parents == ("code", "parent", 3)
    assert shape(code=["a", "b", "c"], parent=[None, "c", "b"]).parents == ("code", "parent", 1)
    assert shape(code=["a", "b"], parent=[None, "z"]).parents is None


def test_a_grid_is_as_wide_as_all_corners_allow():
    assert shape(x=["-3000", "2000"], y=["500", "0"]).grid(["x", "y"]) == 500
    assert shape(x=["0.5"], y=["1"]).grid(["x", "y"]) == 0


def test_of_columns_of_one_role_the_finest_with_codes_is_matched():
    areas = shape(sa3_code=["1", "1"], sa2_code=["11", "12"], sa2_name=["a", "b"])
    names = ["o_sa3", "o_sa2_name", "o_sa2_code", "d_sa3", "n"]
    found = {match.role: match.columns for match in matches(names, [areas])}
    assert found == {("o",): ("o_sa2_code",), ("d",): ("d_sa3",)}
