"""The synthetic redistricting file: facilities and people agree, margins are those of a census."""

import tomllib
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from hedgerow.errors import SpecError
from hedgerow.examples import redistricting, redistricting_nation
from hedgerow.examples.files import families_by
from hedgerow.examples.redistricting import (
    LEVEL_SHARES,
    PRODUCTION,
    REDISTRICTING_SIZES,
    RHO,
    cuboid_of,
    queries_of,
    rho_of,
    write_redistricting,
)
from hedgerow.examples.redistricting_nation import (
    CENRACE,
    GROUPS,
    KINDS,
    RedistrictingSize,
)
from hedgerow.plan.cuboids import Measured
from hedgerow.spec.release_spec import ReleaseSpec

SIZE = REDISTRICTING_SIZES["state"]
AREAS = ["state", "county", "tract", "block_group", "block"]
WIDTHS = (2, 5, 11, 12, 15)
THREE = RedistrictingSize(3, 9, 60, 170, 5_000, 200_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_redistricting(tmp_path_factory.mktemp("state"), "state").parent


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Three states, as the nation has 51."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(redistricting.REDISTRICTING_SIZES, "nation", THREE)
        return write_redistricting(tmp_path_factory.mktemp("nation"), "nation").parent


@pytest.fixture(params=["folder", "several"])
def either(request):
    return request.getfixturevalue(request.param)


def table(folder, name):
    return pl.read_parquet(folder / f"{name}.parquet")


def toml(folder, name):
    return tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))


def with_groups(folder):
    races = pl.read_csv(folder / "race.csv")
    return table(folder, "people").join(races, on=["hispanic", "cenrace"], how="left")


each_name_and_size = pytest.mark.parametrize(
    ("name", "size"), [("folder", SIZE), ("several", THREE)]
)


@each_name_and_size
def test_areas_are_a_tree_of_the_stated_size(request, name, size):
    areas = table(request.getfixturevalue(name), "areas")
    counted = [areas[level].n_unique() for level in AREAS]
    assert counted == [size.states, size.counties, size.tracts, size.block_groups, size.blocks]
    assert areas.height == size.blocks
    for level, width in zip(AREAS, WIDTHS, strict=True):
        assert (areas[level].str.len_chars() == width).all()
    for parent, child in pairwise(AREAS):
        assert areas.select(pl.col(child).str.starts_with(pl.col(parent)).all()).item()
    assert areas.group_by("tract").agg(pl.col("block_group").n_unique())["block_group"].max() <= 9


def test_families_are_as_large_as_codes_allow_at_most():
    sizes = np.bincount(families_by(np.random.default_rng(1), np.arange(1.0, 21), 150, 9))
    assert sizes.sum() == 150
    assert (sizes >= 1).all()
    assert sizes.max() == 9


@each_name_and_size
def test_everybody_is_counted_once_in_a_listed_block(request, name, size):
    folder = request.getfixturevalue(name)
    people, areas = table(folder, "people"), table(folder, "areas")
    assert people["count"].sum() == size.people
    assert people["count"].min() > 0
    assert people.select(pl.exclude("count")).is_unique().all()
    assert people.join(areas, on="block", how="anti").is_empty()
    assert people["block"].is_sorted()
    for column in ("hhgq", "votingage", "hispanic", "cenrace"):
        assert set(people[column]) <= set(pl.read_csv(folder / f"{column}.csv")[column])


def test_people_live_where_there_is_a_facility_and_never_fewer_than_facilities(either):
    found = table(either, "people").group_by("block", "hhgq").agg(pl.col("count").sum())
    listed = table(either, "facilities")
    assert listed.select("block", "hhgq").is_unique().all()
    assert listed["facilities"].min() > 0
    assert found.join(listed, on=["block", "hhgq"], how="anti").is_empty()
    joined = listed.join(found, on=["block", "hhgq"], how="left").fill_null(0)
    homes = joined["hhgq"] == "household"
    assert (joined["people_at_least"] == joined["facilities"].set(homes, 0)).all()
    assert (joined["count"] >= joined["people_at_least"]).all()
    assert (joined.filter(homes)["count"] == 0).any(), "homes may be empty"


def test_nobody_in_a_nursing_home_is_a_minor(either):
    minors = table(either, "people").filter(votingage="minor")
    assert minors.filter(hhgq="nursing").is_empty()
    assert not minors.filter(hhgq="juvenile").is_empty()


def test_margins_are_those_of_a_census(folder):
    people, blocks = with_groups(folder), table(folder, "areas").height
    total = people["count"].sum()

    def share(**kept):
        return people.filter(**kept)["count"].sum() / total

    sizes = people.group_by("block").agg(pl.col("count").sum())["count"]
    assert len(sizes) / blocks == pytest.approx(0.61, abs=0.001)
    assert sizes.max() > 20 * sizes.mean() > 28 * sizes.median(), "a long tail"
    assert 0.19 < share(votingage="minor") < 0.25
    assert 0.01 < share(group="two or more") < 0.06
    assert set(people["hhgq"]) == set(KINDS)
    assert set(people["group"]) == set(GROUPS)
    assert people["cenrace"].n_unique() > 50
    in_quarters = people.filter(pl.col("hhgq") != "household")
    assert 0.01 < in_quarters["count"].sum() / total < 0.05
    assert in_quarters["block"].n_unique() < 0.03 * blocks


def test_races_vary_by_county_and_more_by_tract(folder):
    people = with_groups(folder)

    def spread(width):
        code = pl.col("block").str.head(width)
        black = pl.col("count").filter(pl.col("group") == "black").sum() / pl.col("count").sum()
        return people.group_by(code).agg(black)["count"].std()

    assert 0.02 < spread(5) < spread(11)


def test_lists_name_every_value_and_its_group(folder):
    race = pl.read_csv(folder / "race.csv")
    assert race.height == 126
    assert len(CENRACE) == race["cenrace"].n_unique() == 63
    assert race.filter(hispanic="yes")["group"].unique().to_list() == ["hispanic"]
    several = race.filter(pl.col("cenrace").str.contains("+", literal=True), hispanic="no")
    assert several.height == 57
    assert several["group"].unique().to_list() == ["two or more"]
    one = race.filter(~pl.col("cenrace").str.contains("+", literal=True), hispanic="no")
    assert (one["group"] == one["cenrace"]).all()
    kinds = pl.read_csv(folder / "hhgq.csv")["inst"].value_counts().sort("count")
    assert kinds["count"].to_list() == [1, 3, 4]


@pytest.mark.parametrize("name", ["folder", "several"])
def test_every_query_of_the_production_has_its_own_rho(request, name):
    """ρ × level share × query share, whatever is left out as public or above a single state."""
    file = toml(request.getfixturevalue(name), "production")
    levels, queries = file["allocation"]["levels"], file["allocation"]["queries"]
    assert sorted(levels) == sorted(set(LEVEL_SHARES) - ({"total"} if name == "folder" else set()))
    public = Fraction(0)
    if name == "folder":
        public = Fraction(levels["state"]) * Fraction(queries["state"]["total"])
    spent = sum(map(Fraction, levels.values())) - public
    assert Fraction(file["privacy"]["rho"]) / spent == RHO
    for level, share in levels.items():
        assert Fraction(share) == Fraction(LEVEL_SHARES[level], 4099)
        assert {q: Fraction(s) for q, s in queries[level].items()} == queries_of(level)
    assert len(file["workload"]["cuboids"]) == (65 if name == "several" else 54)
    assert Fraction(toml(request.getfixturevalue(name), "release")["privacy"]["rho"]) == rho_of(
        several=name == "several"
    )


@pytest.mark.parametrize("size", ["small", "nation"])
def test_every_query_of_the_production_has_the_variance_of_2020(tmp_path, monkeypatch, size):
    """σ² is 1 over ρ and both shares, exactly; what is public is not measured."""
    monkeypatch.setitem(redistricting.REDISTRICTING_SIZES, "nation", THREE)
    spec = ReleaseSpec(write_redistricting(tmp_path / size, size).with_name(PRODUCTION))
    plan = spec.plan(spec.tree())
    measured = {n: what for n, what in plan.cuboids.items() if isinstance(what, Measured)}
    is_nation = size == "nation"
    expected = {
        cuboid_of(level, query): 1 / (RHO * Fraction(LEVEL_SHARES[level], 4099) * share)
        for level in list(LEVEL_SHARES)[0 if is_nation else 1 :]
        for query, share in queries_of(level).items()
        if is_nation or (level, query) != ("state", "total")
    }
    assert {name: what.mechanism.sigma2 for name, what in measured.items()} == expected
    assert len(expected) == (65 if is_nation else 54)
    assert plan.guarantee.rho == Fraction(spec.file.privacy.rho)
    assert plan.guarantee.rho == RHO or not is_nation


def test_sizes_are_a_small_one_a_state_and_a_nation(tmp_path):
    with pytest.raises(SpecError, match='small, state or nation, got "county"'):
        write_redistricting(tmp_path / "x", "county")
    nation = REDISTRICTING_SIZES["nation"]
    assert (nation.states, nation.counties, nation.people) == (51, 3_143, 331_449_281)
    assert nation.blocks > 8_000_000


def test_where_the_shares_are_from_is_said_beside_them(folder):
    source = "uscensusbureau/DAS_2020_Redistricting_Production_Code"
    _, shares = (folder / PRODUCTION).read_text(encoding="utf-8").split("[allocation]")
    assert source in shares.splitlines()[0]


def test_progress_is_told_as_people_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(redistricting_nation, "ROWS_AT_ONCE", 1000)
    told = []
    write_redistricting(tmp_path, "small", told.append)
    rows = table(tmp_path, "facilities")["block"].n_unique()
    assert 2 <= len(told) <= rows // 1000 + 1
    assert told == sorted(told)
    assert told[-1] == 1


def test_the_same_files_are_written_again(several, tmp_path, monkeypatch):
    monkeypatch.setitem(redistricting.REDISTRICTING_SIZES, "nation", THREE)
    again = write_redistricting(tmp_path / "again", "nation").parent
    assert sorted(path.name for path in again.iterdir()) == sorted(
        path.name for path in several.iterdir()
    )
    for path in again.iterdir():
        assert path.read_bytes() == (several / path.name).read_bytes(), path.name
