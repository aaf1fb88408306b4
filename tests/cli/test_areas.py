"""`table --areas` and `plan --areas`: sums over areas of one's own, by columns, with names."""

import json

import polars as pl
import pytest

import hedgerow as hr
from hedgerow import cli
from hedgerow.cli.table import _word

FILE = """
[table]
source = "people.csv"
count  = "people"

[[axis]]
name   = "place"
levels = ["county", "town"]
areas  = "places.csv"

[[axis]]
name      = "person"
product   = ["sex", "race"]
lists     = ["sexes.csv", "races.csv"]
attribute = true

[privacy]
rho = "1/20"

[workload]
cuboids = "cube"
"""
LOOKUP = """TOWN21CD,TOWN21NM,WARD22CD,WARD22NM
a1,Alton,w1,West
a2,Aston,w1,West
b1,Bury,w2,East
a2,Aston,w2,East
z9,Elsewhere,w9,Far
"""
COLUMNS = ["--area-codes", "TOWN21CD=town"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release along a spine, and a lookup as publishers ship them."""
    folder = tmp_path_factory.mktemp("areas")
    places = pl.DataFrame({"county": list("aabb"), "town": ["a1", "a2", "b1", "b2"]})
    sexes, races = pl.DataFrame({"sex": ["f", "m"]}), pl.DataFrame({"race": ["1", "2", "3"]})
    people = places.join(sexes, how="cross").join(races, how="cross")
    people = people.with_columns(people=50 + pl.int_range(pl.len()) * 7 % 23)
    for name, frame in (
        ("places", places), ("sexes", sexes), ("races", races), ("people", people),
    ):  # fmt: skip
        frame.write_csv(folder / f"{name}.csv")
    (folder / "two.csv").write_text("town,people\na1,5\na1,6\n")
    (folder / "wards.csv").write_text(LOOKUP, encoding="utf-8-sig")
    file = folder / "release.toml"
    file.write_text(FILE)
    assert cli.run(["release", str(file)]) == 0
    return folder


@pytest.mark.parametrize("by", [(), ("race",), ("sex", "race"), ("person=sex",)])
def test_the_plan_forecasts_the_errors_of_areas_by_columns_that_the_table_states(
    succeeds, made, tmp_path, by
):
    options = ["--areas", made / "wards.csv", *COLUMNS, *(f"--by={each}" for each in by)]
    file = tmp_path / "wards.parquet"
    out = succeeds("plan", made / "release.toml", *options, "--json")
    planned = pl.DataFrame(json.loads(out)["areas"])
    succeeds("table", made / "out", *options, "--names", "--output", file)
    found = pl.read_parquet(file)
    labels = ["WARD22CD", "WARD22CD_name", *(each.removeprefix("person=") for each in by)]
    assert planned.columns == [*labels, "standard_error_of_estimate"]
    assert found.columns[: len(labels)] == labels
    assert found.select(labels).equals(planned.select(labels))
    assert (found["standard_error"] / planned["standard_error_of_estimate"] - 1).abs().max() < 1e-9
    assert len(found) == 2 * {(): 1, ("race",): 3, ("sex", "race"): 6, ("person=sex",): 2}[by]


def test_names_of_areas_are_shown_and_written_on_demand_alone(succeeds, made, tmp_path):
    options = ["--areas", made / "wards.csv", *COLUMNS]
    out = succeeds("table", made / "out", *options)
    assert out.splitlines()[0].split()[:3] == ["WARD22CD", "WARD22CD_name", "count"]
    assert out.splitlines()[1].split()[:2] == ["w1", "West"]
    said = " ".join(out.split())
    assert "1 of 4 codes of town are in no area, and their records in no sum." in said
    assert "1 areas of the lookup are left out: the release has none of their codes." in said
    succeeds("table", made / "out", *options, "--output", tmp_path / "x.csv")
    assert pl.read_csv(tmp_path / "x.csv").columns[:2] == ["WARD22CD", "count"]
    said = " ".join(succeeds("plan", made / "release.toml", *options).split())
    assert "w1 West" in said
    assert "1 of 4 codes of town are in no area" in said


def test_sums_are_rounded_and_left_out_like_counts(succeeds, made, tmp_path):
    options = ["--areas", made / "wards.csv", *COLUMNS, "--by", "race"]
    codes, by = {"TOWN21CD": "town"}, {"person": "person.race"}
    whole = hr.read_release(made / "out").areas(made / "wards.csv", codes=codes, by=by)
    ratio = (whole["high"] - whole["low"]) / whole["count"]
    share = round(ratio.median(), 4)
    file, wide = tmp_path / "x.parquet", ratio > share
    more = ["--round", "5", "--suppress-wider", share, "--output", file]
    succeeds("table", made / "out", *options, *more)
    shown = pl.read_parquet(file)
    assert 0 < wide.sum() < len(wide)
    assert shown["suppressed"].equals(wide, check_names=False)
    assert shown.filter(~pl.col("suppressed"))["count"].to_list() == [
        (count + 2) // 5 * 5 for count in whole.filter(~wide)["count"]
    ]
    assert shown.select("low", "high").equals(whole.select("low", "high"))


REFUSED = {
    "plan, by": (("plan", "release.toml", "--by", "race"), "--by goes with --areas, whose sums"),
    "plan, names": (
        ("plan", "release.toml", "--area-names", "x"),
        "--area-names names a column",
    ),
    "codes": (
        ("table", "out", "--level", "place.town", "--area-codes", "a=b"),
        "--area-codes nam",
    ),
    "no pair": (("table", "out", "--areas", "wards.csv", "--area-codes", "a"), "takes NAME=VALUE"),
    "headers": (("table", "out", "--areas", "wards.csv"), "has no column of an axis's codes"),
    "own axis": (
        ("table", "out", "--areas", "wards.csv", *COLUMNS, "--by", "county"),
        "made of axis 'place', so sums cannot be by one of its levels, too",
    ),
    "no column": (
        ("plan", "release.toml", "--areas", "wards.csv", *COLUMNS, "--by", "rase"),
        "did you mean 'race'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_over_areas_is_refused_with_the_way_out(refuses, made, monkeypatch, name):
    monkeypatch.chdir(made)
    arguments, message = REFUSED[name]
    refuses(message, *arguments)


def test_shares_and_rates_are_shown_and_written_as_python_tells_them(succeeds, made, tmp_path):
    release, file = hr.read_release(made / "out"), tmp_path / "x.parquet"
    people = tmp_path / "population.csv"
    people.write_text("town,people\na1,1000\na2,2000\nb1,500.5\nb2,90\n")
    lookup = {"areas": made / "wards.csv", "codes": {"TOWN21CD": "town"}}
    wards = ["--areas", made / "wards.csv", *COLUMNS]
    towns, county = {"place": "town"}, {"place": "county"}
    for options, told in (
        (["--by", "town", "--share", "county"], release.ratio(towns, county)),
        (["--by", "town", "--by", "sex", "--share", "town"],
         release.ratio(towns | {"person": "sex"}, towns)),
        (["--by", "town", "--share", "total"], release.ratio(towns, {})),
        ([*wards, "--share", "w1"], release.ratio(None, "w1", **lookup)),
        ([*wards, "--share", "total"], release.ratio(**lookup)),
        (["--by", "town", "--rate", people], release.ratio(towns, people)),
    ):  # fmt: skip
        succeeds("table", made / "out", *options, "--output", file, "--force")
        assert pl.read_parquet(file).equals(told)
    out = succeeds("table", made / "out", "--by", "town", "--share", "county")
    assert out.splitlines()[0].split()[-6:] == [
        "of",
        "ratio",
        "low",
        "high",
        "bounded",
        "contradicted",
    ]
    assert "low to high holds the true ratio with a confidence of 95 %" in " ".join(out.split())


def test_ratios_beside_what_they_do_not_go_with_are_refused(refuses, made):
    share = ["table", made / "out", "--by", "town", "--share", "county"]
    refuses("tell ratios with intervals; leave out what changes counts", *share, "--round", "5")
    refuses("tell ratios with intervals; give one of them", *share, "--rate", made / "people.csv")
    refuses("--share towns: no axis has such a level", *share[:-1], "towns")
    refuses(
        "the denominator tells more than the numerator",
        *share[:-3],
        "county",
        *share[-2:-1],
        "town",
    )
    wards = ["table", made / "out", "--areas", made / "wards.csv", *COLUMNS]
    refuses("--areas takes one --share", *wards, "--share", "w1", "--share", "w2")
    refuses("no area is called 'w9'", *wards, "--share", "w9")
    refuses("has several rows for one town", *share[:-2], "--rate", made / "two.csv")


def test_ends_of_ratios_are_rounded_outwards_on_a_terminal():
    assert [_word("low", 0.123456), _word("high", 0.123456)] == ["0.1234", "0.1235"]
    assert [_word("low", 0.0), _word("high", 1.0), _word("of", 331449281.0)] == [
        *("0", "1"), "331,449,281",
    ]  # fmt: skip
