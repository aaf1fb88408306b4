"""Files of shapes of every kind: drawn, or refused in one sentence without controls."""

import json
import os

import geopandas
import numpy as np
import polars as pl
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.commands import ended_well, ran, write
from tests.hostile.mutations import csv

EVIL = "</script><img src=x onerror=document.title='evil'>\x1b[2J"
TOWNS = ["a1", "a2", "b1"]
BOXES = [shapely.box(x, 0, x + 1, 1) for x in range(3)]
FILE = """
[table]
source = "people.csv"
[[axis]]
name = "place"
levels = ["county", "town"]
areas = "areas.csv"
shapes = {}
shapes_key = "town"
[privacy]
rho = "1/20"
"""


def planned(folder, name, content=None):
    """The exit code of a plan with this file of shapes, and what was printed."""
    areas = {"county": [town[0] for town in TOWNS], "town": TOWNS}
    write(
        folder,
        {
            "areas.csv": csv(areas),
            "people.csv": csv(areas),
            "release.toml": FILE.format(json.dumps(name)).encode(),
            **({} if content is None else {name: content}),
        },
    )
    code, out, err = ended_well(folder, "plan", folder / "release.toml")
    assert not set(out + err) & set("\x1b\r\u202e")
    assert len(err) < 1_000
    return code, err


def made(folder, geometry, towns=None):
    frame = geopandas.GeoDataFrame(
        {"town": TOWNS if towns is None else towns}, geometry=geometry, crs="EPSG:3035"
    )
    frame.to_parquet(folder / "a.parquet")
    return planned(folder, "a.parquet")


def round_(points):
    turn = np.linspace(0, 2 * np.pi, points, endpoint=False)
    return shapely.Polygon(np.column_stack([np.cos(turn), np.sin(turn)]) * 1e5)


def jagged(points):
    """A border that crosses itself everywhere."""
    return shapely.Polygon(np.random.default_rng(20260901).random((points, 2)))


with np.errstate(invalid="ignore"):
    NAN = shapely.Polygon([(0, 0), (1, float("nan")), (1, 1)])
    ENDLESS = shapely.Polygon([(0, 0), (1, float("inf")), (1, 1)])
REFUSED = {
    "beyond every map": [shapely.box(0, 0, 1e300, 1), *BOXES[1:]],
    "no number": [NAN, *BOXES[1:]],
    "without an end": [ENDLESS, *BOXES[1:]],
    "points": [shapely.Point(0, 0)] * 3,
    "lines": [shapely.LineString([(0, 0), (1, 1)])] * 3,
    "a collection": [shapely.GeometryCollection(BOXES)] * 3,
    "empty shapes": [shapely.Polygon()] * 3,
    "none at all": [None] * 3,
}
DRAWN = {
    "a million points": [round_(1_000_000), *BOXES[1:]],
    "crossing itself": [jagged(200), *BOXES[1:]],
    "one on another": [BOXES[0]] * 3,
    "flat": [shapely.Polygon([(0, 0), (1, 1), (2, 2)]), *BOXES[1:]],
    "with heights": [shapely.force_3d(box, 7) for box in BOXES],
    "as small as floats are": [shapely.box(0, 0, 5e-324, 5e-324), *BOXES[1:]],
    "very far from each other": [shapely.box(1e11, 0, 1e11 + 1, 1), *BOXES[1:]],
    "all in one point": [shapely.box(5, 5, 5, 5)] * 3,
}


@pytest.mark.parametrize("what", REFUSED)
def test_shapes_that_no_map_has_are_refused_in_one_sentence(tmp_path, what):
    code, err = made(tmp_path, REFUSED[what])
    assert code == 2
    assert "a.parquet" in err


@pytest.mark.parametrize("what", DRAWN)
@pytest.mark.sweep(3)
def test_shapes_that_are_only_odd_are_drawn_and_pass_their_check(tmp_path, what):
    assert made(tmp_path, DRAWN[what])[0] == 0
    code, out, err = ran("release", tmp_path / "release.toml")
    assert code == 0, out + err
    code, out, err = ran("check", tmp_path / "out")
    assert code == 0, out + err


def test_codes_of_other_areas_are_refused_and_never_echoed_whole(tmp_path):
    for towns in ([EVIL] * 3, [f"{EVIL * 100}{i}" for i in range(3)], ["a1", "a2", None]):
        code, err = made(tmp_path, BOXES, towns)
        assert code == 2
        assert "b1" in err or "codes of" in err


def test_a_file_without_areas_is_refused(tmp_path):
    empty = geopandas.GeoDataFrame({"town": pl.Series([], dtype=pl.String).to_list()}, geometry=[])
    empty.to_parquet(tmp_path / "a.parquet")
    code, err = planned(tmp_path, "a.parquet")
    assert code == 2
    assert "is empty" in err or "no geometry" in err


NOWHERE = [
    "missing.gpkg",
    "../" * 9 + "dev/zero",
    "http://127.0.0.1:9/a.geojson",
    "a\x1bb.gpkg",
    "",
]


@pytest.mark.parametrize("name", NOWHERE)
def test_a_path_that_leads_nowhere_is_refused(tmp_path, name):
    assert planned(tmp_path, name)[0] == 2


def test_a_very_large_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.tables.maps.formats.MOST_BYTES_OF_A_MAP", 1_000)
    code, err = planned(tmp_path, "a.geojson", b"x" * 1_001)
    assert code == 2
    assert "larger than 1 GB" in err


def test_shapes_with_very_many_points_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.tables.maps.reading.MOST_POINTS_GIVEN", 10)
    code, err = made(tmp_path, BOXES)
    assert code == 2
    assert "more than 10 points" in err


def test_a_folder_or_a_pipe_is_no_file_of_shapes(tmp_path):
    (tmp_path / "folder.gpkg").mkdir()
    assert planned(tmp_path, "folder.gpkg")[0] == 2
    other = tmp_path / "other"
    other.mkdir()
    os.mkfifo(tmp_path / "pipe.geojson")
    write(other, {"areas.csv": csv({"county": ["a"], "town": ["a1"]}), "people.csv": b"town\na1\n",
                  "release.toml": FILE.format('"../pipe.geojson"').encode()})  # fmt: skip
    code, _, err = ran("plan", other / "release.toml")
    assert code == 2
    assert "pipe.geojson" in err


FEATURES = [
    {
        "type": "Feature",
        "properties": {"town": town},
        "geometry": json.loads(shapely.to_geojson(box)),
    }
    for town, box in zip(TOWNS, BOXES, strict=True)
]
GEOJSON = json.dumps({"type": "FeatureCollection", "features": FEATURES}).encode()
NESTED = b'{"type":"FeatureCollection","features":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def test_json_nested_without_end_is_refused(tmp_path):
    assert planned(tmp_path, "a.geojson", NESTED)[0] == 2


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_bytes_of_nonsense_end_in_a_plan_or_in_one_sentence(tmp_path, data):
    where = data.draw(st.integers(0, len(GEOJSON) - 1))
    length = data.draw(st.integers(0, 30))
    content = GEOJSON[:where] + data.draw(st.binary(max_size=30)) + GEOJSON[where + length :]
    assert planned(tmp_path, "a.geojson", content)[0] in {0, 2}
