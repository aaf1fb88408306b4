"""The synthetic tables are what their release files say, whole and the same every time."""

import tomllib
from dataclasses import replace
from decimal import Decimal
from itertools import islice, pairwise

import numpy as np
import polars as pl
import pytest

from hedgerow.errors import SpecError
from hedgerow.examples import EXAMPLES
from hedgerow.examples.census import CENSUS_SIZES, SEXES, age_names, write_census
from hedgerow.examples.commuting import COMMUTING_SIZES, write_commuting
from hedgerow.export.released import write_parts

GEOGRAPHY = ["state", "county", "tract", "block"]
PLACES = ["region", "province", "municipality"]
LEVELS = [*PLACES, "locality", "section"]
ENDS = [f"{end}_{level}" for end in "od" for level in PLACES]


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    return write_census(tmp_path_factory.mktemp("census"), "small")


@pytest.fixture(scope="module")
def commuting(tmp_path_factory):
    return write_commuting(tmp_path_factory.mktemp("commuting"), "small")


def read(release_file, name):
    return pl.read_parquet(release_file.parent / name)


def parsed(release_file):
    text = release_file.read_text(encoding="utf-8")
    return tomllib.loads(text, parse_float=Decimal)


def assert_one_parent_each(areas, levels):
    for parent, child in pairwise(levels):
        assert areas.select(parent, child).unique().height == areas[child].n_unique()


def assert_census_is_sound(areas, people, size):
    counted = [areas[level].n_unique() for level in GEOGRAPHY]
    assert counted == [size.states, size.counties, size.tracts, size.blocks]
    assert areas.height == size.blocks
    assert_one_parent_each(areas, GEOGRAPHY)
    for level, width in zip(GEOGRAPHY, (2, 5, 11, 15), strict=True):
        assert areas[level].dtype == pl.String
        assert (areas[level].str.len_chars() == width).all()
    for parent, child in pairwise(GEOGRAPHY):
        assert areas.select(pl.col(child).str.starts_with(pl.col(parent)).all()).item()
    assert people["population"].sum() == size.population
    assert people["population"].min() > 0
    assert people.join(areas, on=GEOGRAPHY, how="anti").is_empty()
    assert people["block"].n_unique() == people.height
    assert 0.38 < 1 - people.height / areas.height < 0.42


def assert_commuting_is_sound(areas, trips, size):
    counted = [areas[level].n_unique() for level in PLACES]
    assert counted == [size.regions, size.provinces, size.municipalities]
    assert areas.height == size.municipalities
    assert_one_parent_each(areas, PLACES)
    assert areas.select(pl.col("municipality").str.starts_with(pl.col("province")).all()).item()
    assert trips.columns == [*ENDS, "trips"]
    assert trips.height == size.pairs
    assert trips.select("o_municipality", "d_municipality").is_unique().all()
    assert trips["trips"].sum() == size.trips
    assert trips["trips"].min() == 1
    assert trips["o_municipality"].n_unique() == size.municipalities
    for end in "od":
        named = areas.rename({level: f"{end}_{level}" for level in PLACES})
        assert trips.join(named, on=named.columns, how="anti").is_empty()


def assert_near_places_attract(table):
    trips = table["trips"].to_numpy()
    at_home = (table["o_municipality"] == table["d_municipality"]).to_numpy()
    in_province = (table["o_province"] == table["d_province"]).to_numpy()
    stays, nearby = (trips[rows].sum() / trips.sum() for rows in (at_home, in_province))
    assert at_home.sum() == table["o_municipality"].n_unique()
    assert 0.4 < stays < 0.6
    assert nearby > stays + 0.05
    assert (trips == 1).mean() > 0.2
    assert trips.max() > 50 * trips.mean()


def test_a_small_census_is_a_tree_with_people_in_it(census):
    areas, people = read(census, "areas.parquet"), read(census, "population.parquet")
    assert_census_is_sound(areas, people, CENSUS_SIZES["small"])
    sizes = people["population"].to_numpy()
    assert sizes.max() > 10 * sizes.mean() > 15 * np.median(sizes)


def test_families_of_a_census_are_uneven(census):
    blocks = read(census, "areas.parquet").group_by("tract").len()["len"].to_numpy()
    assert 2 * blocks.min() < np.median(blocks) < blocks.max() / 2


def test_leading_zeros_stay(census):
    assert read(census, "areas.parquet")["state"][0] == "01"


def test_small_commuting_covers_its_list_of_places(commuting):
    areas, trips = read(commuting, "municipalities.parquet"), read(commuting, "trips.parquet")
    assert_commuting_is_sound(areas, trips, COMMUTING_SIZES["small"])
    assert_near_places_attract(trips)


def test_the_census_file_says_what_is_there(census):
    written = parsed(census)
    assert census.name == "release.toml"
    assert written["table"] == {"source": "population.parquet", "count": "population"}
    (axis,) = written["axis"]
    assert axis == {"name": "geography", "levels": GEOGRAPHY, "areas": "areas.parquet"}
    assert read(census, axis["areas"]).columns == GEOGRAPHY
    assert read(census, "population.parquet").columns == [*GEOGRAPHY, "population"]
    assert written["privacy"] == {
        "neighbours": "add-remove",
        "contributions": 1,
        "mechanism": "discrete-gaussian",
        "epsilon": 1,
        "delta": Decimal("1e-10"),
    }


def test_the_commuting_file_says_what_is_there(commuting):
    written = parsed(commuting)
    assert written["table"] == {"source": "trips.parquet", "count": "trips"}
    assert [axis["name"] for axis in written["axis"]] == ["origin", "destination"]
    for axis in written["axis"]:
        assert axis["levels"] == read(commuting, axis["areas"]).columns == PLACES
    assert [column for axis in written["axis"] for column in axis["columns"]] == ENDS
    assert written["tree"] == {"refine": ["destination", "origin"]}
    assert written["privacy"]["neighbours"] == "replace"
    assert written["privacy"]["delta"] == Decimal("1e-8")


@pytest.mark.parametrize("kind", ["census", "commuting"])
def test_both_files_leave_the_same_choices_to_a_newcomer(kind, tmp_path):
    written = parsed(EXAMPLES[kind](tmp_path, "small"))
    assert written["allocation"] == {"method": "uniform"}
    assert written["estimate"] == {"method": "euclidean", "measure": "survivors"}
    assert written["output"] == {"directory": "out"}


def test_the_incomes_file_says_what_is_there(tmp_path):
    made = EXAMPLES["incomes"](tmp_path, "small")
    written, table = parsed(made), read(made, "incomes.parquet")
    assert written["table"] == {"source": "incomes.parquet"}
    (axis,) = written["axis"]
    assert axis["name"] in table.columns
    assert axis["low"] <= table["income"].min() < table["income"].median() < axis["high"]
    assert table["income"].max() > axis["high"], "some are clamped"
    assert len(table) == table["household"].n_unique() == 20_000
    assert written["allocation"] == {"method": "distribution"}
    assert written["estimate"] == {"method": "euclidean", "measure": "all"}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_same_example_is_the_same_twice(kind, tmp_path):
    for name in ("once", "twice"):
        EXAMPLES[kind](tmp_path / name, "small")
    once, twice = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("once", "twice")
    )
    assert len(once) == {"incomes": 2, "redistricting": 10}.get(kind, 3)
    assert once == twice


@pytest.mark.parametrize("kind", EXAMPLES)
def test_nothing_is_overwritten(kind, tmp_path):
    (tmp_path / "release.toml").write_text("mine")
    with pytest.raises(SpecError, match="exists and is not overwritten"):
        EXAMPLES[kind](tmp_path, "small")
    assert [path.name for path in tmp_path.iterdir()] == ["release.toml"]
    assert (tmp_path / "release.toml").read_text() == "mine"


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_unknown_size_is_refused_before_anything_is_made(kind, tmp_path):
    with pytest.raises(SpecError, match=r'small.* nation.*, got "huge"'):
        EXAMPLES[kind](tmp_path / "new", "huge")
    assert not (tmp_path / "new").exists()


def assert_sections_are_sound(made, size):
    areas, trips = read(made, "sections.parquet"), read(made, "trips.parquet")
    counted = [areas[level].n_unique() for level in LEVELS]
    numbers = [size.regions, size.provinces, size.municipalities]
    assert counted == [*numbers, size.localities, size.sections]
    assert_one_parent_each(areas, LEVELS)
    assert trips.columns == [*(f"{end}_{level}" for end in "od" for level in LEVELS), "trips"]
    assert trips["trips"].sum() == size.trips
    assert trips["trips"].min() == 1
    assert trips.select("o_section", "d_section").is_unique().all()
    for end in "od":
        named = areas.rename({level: f"{end}_{level}" for level in LEVELS})
        assert trips.join(named, on=named.columns, how="anti").is_empty()
    return trips


def assert_crossed_census_is_sound(made, size):
    areas, people = read(made, "areas.parquet"), read(made, "people.parquet")
    counted = [areas[level].n_unique() for level in GEOGRAPHY]
    assert counted == [size.states, size.counties, size.tracts, size.blocks]
    assert read(made, "ages.parquet")["age"].to_list() == sorted(age_names())
    assert len(age_names()) == 23
    assert read(made, "sexes.parquet")["sex"].to_list() == SEXES
    assert people.columns == ["block", "age", "sex", "people"]
    assert people["people"].sum() == size.population
    assert (people["people"] > 0).all()
    assert people.select("block", "age", "sex").is_unique().all()
    assert people.join(areas, on="block", how="anti").is_empty()
    assert set(people["age"].unique()) == set(age_names())
    return people


def test_sections_lie_below_the_municipalities(monkeypatch, tmp_path):
    size = replace(COMMUTING_SIZES["small"], localities=400, sections=3_000)
    monkeypatch.setitem(COMMUTING_SIZES, "tiny", size)
    monkeypatch.setattr("hedgerow.examples.commuting.TRIPS_A_BLOCK", 9_000)
    made = write_commuting(tmp_path, "tiny")
    trips = assert_sections_are_sound(made, size)
    assert 10_000 < trips.height < 50_000
    axes = parsed(made)["axis"]
    assert [axis["levels"] for axis in axes] == [LEVELS] * 2
    assert [*axes[0]["columns"], *axes[1]["columns"], "trips"] == trips.columns


def test_a_crossed_census_has_people_by_age_and_sex(monkeypatch, tmp_path):
    monkeypatch.setitem(CENSUS_SIZES, "tiny", replace(CENSUS_SIZES["small"], crossed=True))
    made = write_census(tmp_path, "tiny")
    people = assert_crossed_census_is_sound(made, CENSUS_SIZES["small"])
    by_sex = people.group_by("sex").agg(pl.col("people").sum())["people"]
    assert abs(by_sex[0] - by_sex[1]) < 0.01 * by_sex.sum()
    assert [axis["levels"] for axis in parsed(made)["axis"]] == [GEOGRAPHY, ["age"], ["sex"]]


@pytest.mark.slow
def test_sections_of_a_nation_have_fourteen_million_flows(monkeypatch, tmp_path):
    """By a fourteenth of the trips: pairs of municipalities share no flow, so flows add up."""
    size = COMMUTING_SIZES["sections"]

    def write_some(path, every):
        write_parts(path, islice(every, 1))

    monkeypatch.setattr("hedgerow.examples.commuting.write_parts", write_some)
    made = write_commuting(tmp_path, "sections")
    counted = read(made, "trips.parquet")["trips"].sum()
    assert 0.05 < counted / size.trips < 0.1
    trips = assert_sections_are_sound(made, replace(size, trips=counted))
    assert 13.5e6 < trips.height * (size.trips / counted) < 15.5e6
    assert size.sections**2 > 1.3e11


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "taken").touch()
    with pytest.raises(SpecError, match="must be a directory"):
        write_census(tmp_path / "taken", "small")


def test_a_tenth_of_the_tracts_of_a_national_census_is_sound(monkeypatch, tmp_path):
    """As many blocks a tract, and counties a state, as in the whole nation: codes have room."""
    nation = CENSUS_SIZES["national"]
    assert nation.blocks == 8_000_000
    tenth = replace(nation, tracts=nation.tracts // 10, blocks=nation.blocks // 10)
    monkeypatch.setitem(CENSUS_SIZES, "tenth", tenth)
    made = write_census(tmp_path, "tenth")
    assert_census_is_sound(read(made, "areas.parquet"), read(made, "population.parquet"), tenth)


@pytest.mark.slow
def test_national_commuting_has_the_trips_of_2011(tmp_path):
    made = write_commuting(tmp_path, "national")
    areas, trips = read(made, "municipalities.parquet"), read(made, "trips.parquet")
    assert (areas.height, trips.height) == (8_092, 500_000)
    assert trips["trips"].sum() == 28_805_440
    assert_commuting_is_sound(areas, trips, COMMUTING_SIZES["national"])
    assert_near_places_attract(trips)
