"""`export --as geoparquet`: read back by geopandas, equal to the Parquet files and the shapes."""

import json

import geopandas
import polars as pl
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError

CODES = ["101", "1", "=2+3", "Straße <7&8>"]


def written(folder, codes, key="SA2", extra=None):
    """A GeoJSON file of squares, one a code."""
    features = [
        {
            "type": "Feature",
            "properties": {key: code, "people": 10**6} | (extra or {}),
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[i, 0], [i + 1, 0], [i + 1, 1], [i, 1], [i, 0]]],
            },
        }
        for i, code in enumerate(codes)
    ]
    file = folder / "areas.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return file


def test_a_file_read_back_equals_the_table_and_the_shapes(flows, tmp_path):
    shapes = written(tmp_path, CODES[::-1])
    file = tmp_path / "flows.parquet"
    level = "home.sa2 × work.state"
    hr.export(flows, file, hr.GeoParquet(shapes, level, key="SA2", column="home.sa2"))
    read = geopandas.read_parquet(file)
    wanted = hr.read_release(flows).level(level)
    assert pl.from_pandas(read.drop(columns="geometry")).equals(wanted)
    given = geopandas.read_file(shapes).set_index("SA2").geometry
    for code, shape in zip(read["home.sa2"], read.geometry, strict=True):
        assert shape.equals(given[code])
    assert read.crs == "EPSG:4326"
    assert b"geo" in pq.read_schema(file).metadata
    assert "people" not in read.columns
    assert sorted(path.name for path in tmp_path.iterdir()) == ["areas.geojson", "flows.parquet"]


def test_a_column_that_both_have_is_found_by_its_name(places, tmp_path):
    hr.export(
        places, tmp_path / "a.parquet",
        hr.GeoParquet(written(tmp_path, CODES, "sa2", {"state": "x"}), "place.sa2"),
    )  # fmt: skip
    assert len(geopandas.read_parquet(tmp_path / "a.parquet")) == 4
    hr.export(
        places, tmp_path / "b.parquet",
        hr.GeoParquet(written(tmp_path, CODES), "place.sa2", key="SA2"),
    )  # fmt: skip
    assert geopandas.read_parquet(tmp_path / "b.parquet")["sa2"].tolist() == (
        hr.read_release(places).level("place.sa2")["sa2"].to_list()
    )


@pytest.mark.parametrize(
    ("codes", "options", "sentence"),
    [
        (CODES[1:], {"key": "SA2", "column": "home.sa2"}, r"1 codes of 'home.sa2' have no shape"),
        ([*CODES, "101"], {"key": "SA2", "column": "home.sa2"}, r"'101' has two shapes"),
        (CODES, {}, "no column of the shapes .* is called like one with codes of the table"),
        (CODES, {"key": "SA3"}, r"the shapes have no column 'SA3'.*did you mean 'SA2'"),
        (CODES, {"key": "SA2", "column": "sa2"}, "the table has no code column 'sa2'"),
        (CODES, {"level": "total"}, "no column of the shapes"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(flows, tmp_path, codes, options, sentence):
    form = hr.GeoParquet(written(tmp_path, codes), **{"level": "home.sa2", **options})
    with pytest.raises(ReleaseError, match=sentence):
        hr.export(flows, tmp_path / "a.parquet", form)
    assert [path.name for path in tmp_path.iterdir()] == ["areas.geojson"]


def test_files_that_hold_no_shapes_are_refused(flows, tmp_path):
    for name, text in (("no.geojson", "{}"), ("list.csv", "SA2\n101\n"), ("there.not", None)):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(ReleaseError, match=r"cannot be read|no geometry|no shapes in"):
            hr.export(flows, tmp_path / "a.parquet", hr.GeoParquet(tmp_path / name, key="SA2"))
    with pytest.raises(ReleaseError, match=r"must end in \.parquet"):
        hr.export(flows, tmp_path / "a.json", hr.GeoParquet(written(tmp_path, CODES)))


def test_the_command_asks_for_shapes(run, flows, tmp_path):
    file = tmp_path / "a.parquet"
    code, _, err = run("export", flows, "--as", "geoparquet", "--output", file)
    assert (code, "needs --shapes FILE" in err) == (2, True)
    shapes = written(tmp_path, CODES)
    words = ["--shapes", shapes, "--key", "SA2", "--column", "work.sa2", "--level", "work.sa2"]
    assert run("export", flows, "--as", "geoparquet", "--output", file, *words)[0] == 0
    assert len(geopandas.read_parquet(file)) == 4
    code, _, err = run("export", flows, "--as", "sdmx", "--output", tmp_path / "x", *words[:2])
    assert (code, "sdmx has no --shapes, which is for geoparquet" in err) == (2, True)
