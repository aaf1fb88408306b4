"""The commands on the directory of a cube."""

import math
import shutil
from pathlib import Path

import polars as pl
import pytest

from hedgerow.release.release import read_release

CUBE = '\n[workload]\ncuboids = "cube"\n'
PAIRS = "origin.region × destination.province"


@pytest.fixture
def folder(cube_of_trips, tmp_path):
    return Path(shutil.copytree(cube_of_trips, tmp_path / "trips"))


@pytest.mark.parametrize(
    ("named", "choice"),
    [
        (("--level", PAIRS), {"origin": "region", "destination": "province"}),
        (("--level", PAIRS.replace("×", "x")), {"origin": "region", "destination": "province"}),
        (("--by", "origin=region", "--by", "destination=province"), None),
        (("--by", "destination=municipality"), {"destination": "municipality"}),
    ],
    ids=["name", "typed", "by", "margin"],
)
def test_a_table_of_any_cuboid_has_intervals(succeeds, folder, tmp_path, named, choice):
    choice = choice or {"origin": "region", "destination": "province"}
    file = tmp_path / "x.parquet"
    succeeds("table", folder / "out", *named, "--output", file)
    found = pl.read_parquet(file)
    wanted = read_release(folder / "out").cuboid(**choice)
    assert found.select(sorted(found.columns)).equals(wanted.select(sorted(found.columns)))
    assert (found["low"] <= found["high"]).all()
    succeeds("table", folder / "out", *named, "--counts-only", "--output", file, "--force")
    assert pl.read_parquet(file)["count"].sum() == wanted["count"].sum()


REFUSED = {
    "a depth": (("table", "out", "--depth", "2"), "a cube has no depths; name a cuboid: --level"),
    "no cuboid": (("table", "out", "--level", "origin.regoin"), "did you mean 'origin.region'?"),
    "an axis's level": (("table", "out", "--level", "region"), "mean 'origin.region'?"),
    "another method": (
        ("estimate", "out", "--method", "sparse"),
        "anything else is for cuboids",
    ),
    "no level": (("funds", "out", "--by", "origin=regoin", "--amount", "3"), "is called 'regoin'"),
    "no axis": (("funds", "out", "--by", "o=region", "--amount", "3"), "no axis is called 'o'"),
    "nothing": (("funds", "out", "--amount", "3"), "name one cuboid: --level, or --by AXIS=LEVEL"),
    "both": (
        ("funds", "out", "--amount", "3", "--level", "total", "--by", "origin=region"),
        "name one cuboid",
    ),
    "no area": (("funds", "out", "--level", "hospital", "--amount", "3"), "no level is called"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_on_a_cube_is_refused_in_one_sentence(
    refuses, folder, monkeypatch, name
):
    monkeypatch.chdir(folder)
    arguments, message = REFUSED[name]
    before = sorted(folder.rglob("*"))
    refuses(message, *arguments)
    assert sorted(folder.rglob("*")) == before


def test_funds_are_shared_by_a_margin_of_a_cube(succeeds, folder, tmp_path):
    tables = []
    for named in (("--level", "origin.province"), ("--by", "origin=province")):
        file = tmp_path / f"{named[0][2:]}.parquet"
        said = succeeds("funds", folder / "out", *named, "--amount", "100", "--output", file)
        assert "100 shared by origin.province" in said
        tables.append(pl.read_parquet(file))
    assert tables[0].equals(tables[1])
    counts = read_release(folder / "out").cuboid(origin="province")["count"]
    assert math.isclose(tables[0]["amount"].sum(), 100)
    assert tables[0].filter(pl.col("count") > 0)["count"].to_list() == counts.to_list()


def test_noisy_counts_of_a_cube_are_estimated_again(succeeds, folder, tmp_path):
    place = tmp_path / "again"
    method = "--method", "least-squares"
    said = succeeds("estimate", folder / "out", *method, "--output", place, "--wide")
    assert "Best linear unbiased estimates" in said
    assert PAIRS in said
    assert len(list(place.glob("cuboid=*.parquet"))) == 16
    found = pl.read_parquet(place / "cuboid=1-2.parquet")
    listed = read_release(folder / "out").level(PAIRS)
    assert found.filter(pl.col("released") > 0)["released"].to_list() == listed["count"].to_list()
    said = succeeds("estimate", folder / "out", "--output", tmp_path / "own")
    differences = [line.split()[-3] for line in said.splitlines() if line.endswith("on average")]
    assert differences == ["0"] * 16, "its own method makes the release again"


def test_a_cube_is_compared_with_its_table_cuboid_by_cuboid(succeeds, folder, tmp_path):
    picture = tmp_path / "e.svg"
    said = succeeds("compare", folder / "release.toml", "--picture", picture, "--wide")
    names = list(read_release(folder / "out").plan.cuboids)
    rows = [line.strip() for line in said.splitlines()]
    assert all(any(row.startswith(f"{name}  ") for row in rows) for name in names)
    fitted = succeeds("compare", folder / "release.toml")
    assert fitted.count("o.munic…ity × d.munic…ity  ") == 2, "a part without its names says nothing"
    assert picture.exists()


@pytest.mark.parametrize("command", ["check", "account"])
def test_a_directory_of_a_cube_is_verified_and_priced(succeeds, folder, command):
    succeeds(command, folder / "out")


def test_the_page_of_a_cube_is_written_again(succeeds, folder):
    succeeds("report", folder / "out")
    assert (folder / "out.report.html").exists()


def test_a_chain_and_a_cube_are_simulated_beside_each_other(succeeds, folder):
    file = folder / "simulate.toml"
    file.write_text(
        '[simulate]\npublic = true\nrelease = "release.toml"\nworkloads = ["chain", "cube"]\n'
        'allocations = ["uniform"]\nmeasures = ["all"]\nestimators = ["euclidean"]\n'
        'baselines = []\n[simulate.table]\nsource = "public.parquet"\ncount = "trips"\n'
    )
    trips = pl.read_parquet(folder / "trips.parquet")
    trips.with_columns(trips=pl.col("trips") * 2 + 1).write_parquet(folder / "public.parquet")
    output = folder / "errors.parquet"
    said = succeeds("simulate", file, "--runs", "3", "--show", "rmse", "--output", output, "--wide")
    assert "15  origin.municipality × destination.municipality" in said
    errors = pl.read_parquet(output)
    assert errors["setting"].unique(maintain_order=True).to_list() == [
        "chain, uniform, all, euclidean", "cube, uniform, all, euclidean (own)",
    ]  # fmt: skip
    assert "depth" not in errors.columns
    outflow = errors.filter(pl.col("cuboid") == "origin.municipality")["rmse"]
    assert outflow[1] < outflow[0] / 2, "what a cube is for"


def test_the_usual_settings_of_a_cube_are_all_possible(succeeds, folder):
    text = (folder / "release.toml").read_text()
    (folder / "release.toml").write_text(
        f'{text}\n[simulate]\npublic = true\nmeasures = ["all"]\nbaselines = []\n'
    )
    said = succeeds("simulate", folder / "release.toml", "--runs", "3", "--show", "rmse")
    assert "Left out" not in said


def test_noisy_counts_from_elsewhere_are_no_cube(refuses, folder):
    pl.DataFrame({"a": ["x"], "noisy_count": [1.0], "variance": [1.0]}).write_csv(folder / "n.csv")
    areas = "".join(
        f'[[axis]]\nname = "{name}"\nlevels = ["region", "province", "municipality"]\n'
        f'columns = ["{name[0]}_region", "{name[0]}_province", "{name[0]}_municipality"]\n'
        f'areas = "municipalities.parquet"\n'
        for name in ("origin", "destination")
    )
    file = folder / "m.toml"
    file.write_text(areas + '[[measurement]]\nlevel = "destination.province"\nsource = "n.csv"\n')
    refuses("estimated along one chain of cuboids", "estimate", file)
