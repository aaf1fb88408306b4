"""`export --as geoparquet`: read back by geopandas, equal to the Parquet files and the shapes."""

import json
import sys

import geopandas
import polars as pl
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from tests.made import plain_plan

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
    level = "home.state × work.sa2"
    hr.export(flows, file, hr.GeoParquet(shapes, level, key="SA2", column="work.sa2"))
    read = geopandas.read_parquet(file)
    wanted = hr.read_release(flows).level(level, all=True)
    assert pl.from_pandas(read.drop(columns="geometry")).equals(wanted)
    listed = tmp_path / "listed.parquet"
    form = hr.GeoParquet(shapes, level, key="SA2", column="work.sa2", listed=True)
    hr.export(flows, listed, form)
    wanted = hr.read_release(flows).level(level)
    read_listed = geopandas.read_parquet(listed).drop(columns="geometry")
    assert pl.from_pandas(read_listed).equals(wanted)
    listed.unlink()
    given = geopandas.read_file(shapes).set_index("SA2").geometry
    for code, shape in zip(read["work.sa2"], read.geometry, strict=True):
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


def test_a_map_has_every_area_with_its_interval_and_names_where_asked(named, tmp_path):
    file = tmp_path / "a.parquet"
    hr.export(named, file, hr.GeoParquet(written(tmp_path, CODES), key="SA2", names=True))
    read = geopandas.read_parquet(file)
    assert read["sa2"].tolist() == ["1", "101", "999", "=2+3", "Straße <7&8>"]
    assert read["sa2_name"].tolist()[:2] == ['Le "Port" </script>', "Goulburn"]
    empty = read.set_index("sa2").loc["Straße <7&8>"]
    assert (empty["low"], empty["high"] > 0) == (0, True)
    wanted = hr.read_release(named).level("sa2", all=True)
    found = pl.from_pandas(read.drop(columns=["geometry", "state_name", "sa2_name"]))
    assert found.equals(wanted)
    assert read.geometry.isna().tolist() == [False, False, True, False, False]
    fewer = written(tmp_path, ["1", "101", CODES[3]])
    with pytest.raises(ReleaseError, match=r"1 codes of 'sa2' have no shape.*'=2\+3'"):
        hr.export(named, tmp_path / "b.parquet", hr.GeoParquet(fewer, key="SA2"))


@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()])
def test_an_area_below_a_count_of_0_has_an_interval_only_where_it_was_measured(tmp_path, measure):
    areas = {"state": ["A", "A", "B", "B"], "SA2": CODES}
    tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["state", "SA2"])])
    table = {"state": ["A"], "SA2": CODES[:1], "people": [100]}
    plan = plain_plan(tree, budget=hr.Rho(500), measure=measure)
    hr.release(hr.Counts.from_frame(tree, table, count="people"), plan).write(tmp_path / "out")
    form = hr.GeoParquet(written(tmp_path, CODES))
    hr.export(tmp_path / "out", tmp_path / "a.parquet", form)
    read = geopandas.read_parquet(tmp_path / "a.parquet").set_index("SA2").loc[CODES]
    assert read["count"].tolist() == [100, 0, 0, 0]
    known = measure == hr.All()
    assert read["high"].notna().tolist() == [True, True, known, known]
    assert not read["contradicted"].any()


def test_an_area_that_the_publisher_lists_without_a_geometry_has_none(flows, tmp_path):
    """As Australia lists "no usual address"."""
    shapes = written(tmp_path, CODES)
    given = json.loads(shapes.read_text())
    given["features"][1]["geometry"] = None
    shapes.write_text(json.dumps(given))
    form = hr.GeoParquet(shapes, "home.sa2", key="SA2", column="home.sa2")
    hr.export(flows, tmp_path / "a.parquet", form)
    read = geopandas.read_parquet(tmp_path / "a.parquet").set_index("home.sa2")
    assert read.geometry.isna().loc[CODES].tolist() == [False, True, False, False]
    wanted = hr.read_release(flows).level("home.sa2", all=True)
    assert read["count"].tolist() == wanted["count"].to_list()


def numbered(tmp_path, column="sa2"):
    """A release of areas 1 and 2."""
    tree = hr.Tree([hr.Axis.from_frame("place", {column: ["1", "2"]}, levels=[column])])
    table = pl.DataFrame({column: ["1", "2"], "n": [500, 900]})
    counts = hr.Counts.from_frame(tree, table, count="n")
    hr.release(counts, plain_plan(tree, budget=hr.Rho(50))).write(tmp_path / "out")
    return tmp_path / "out"


def test_whole_codes_are_known_beside_shapes_without_a_code(tmp_path):
    """Which make floats of them; "nan" is no code."""
    out = numbered(tmp_path)
    for codes in ([1, 2, None, None], [1.0, 2.0], ["1", "2", None, None]):
        place = tmp_path / "s.parquet"
        hr.export(out, place, hr.GeoParquet(written(tmp_path, codes), key="SA2"))
        assert geopandas.read_parquet(place).geometry.notna().all()
        place.unlink()


def test_codes_in_a_column_called_like_the_shapes_are_not_lost(tmp_path):
    out = numbered(tmp_path, "geometry")
    with pytest.raises(ReleaseError, match="has a column 'geometry' already"):
        hr.export(out, tmp_path / "s.parquet", hr.GeoParquet(written(tmp_path, [1, 2]), key="SA2"))


def test_a_map_of_too_many_rows_is_refused_unless_positive_counts_are_asked_for(
    named, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys.modules["hedgerow.export.geoparquet"], "MOST_ROWS_OF_A_MAP", 4)
    shapes = written(tmp_path, CODES)
    with pytest.raises(ReleaseError, match=r"has 5 rows, and can have 4; .*--listed"):
        hr.export(named, tmp_path / "a.parquet", hr.GeoParquet(shapes, key="SA2"))
    hr.export(named, tmp_path / "a.parquet", hr.GeoParquet(shapes, key="SA2", listed=True))
    assert (geopandas.read_parquet(tmp_path / "a.parquet")["count"] > 0).all()


def test_shapes_are_read_from_geoparquet_whatever_their_column_is_called(flows, tmp_path):
    given = geopandas.read_file(written(tmp_path, CODES)).rename_geometry("outline")
    given.to_parquet(tmp_path / "areas.parquet")
    form = hr.GeoParquet(tmp_path / "areas.parquet", key="SA2", column="work.sa2")
    hr.export(flows, tmp_path / "a.parquet", form)
    outlines = given.set_index("SA2").geometry
    made = geopandas.read_parquet(tmp_path / "a.parquet")
    assert len(made)
    for code, shape in zip(made["work.sa2"], made.geometry, strict=True):
        assert shape.equals(outlines[code])


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
    code, _, err = run("export", flows, "--as", "csv", "--output", tmp_path / "x.csv")
    assert (code, "hedgerow table writes CSV and Parquet files" in err) == (2, True)
    code, _, err = run("export", flows, "--as", "sdmx", "--output", tmp_path / "x", *words[:2])
    assert (code, "sdmx has no --shapes, which is for geoparquet" in err) == (2, True)
