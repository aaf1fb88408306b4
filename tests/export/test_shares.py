"""`export --share`: shares of each format are those of `Release.ratio`, with what they mean."""

import json

import openpyxl
import polars as pl
import pyarrow.parquet as pq
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

import hedgerow as hr
from hedgerow.export.released import OF_SHARES, SHARES

NAME = "home.sa2 × work.state"
BY, OF = {"home": "sa2", "work": "state"}, {"home": "state"}


def workbook(folder, file):
    hr.export(folder, file.with_suffix(".xlsx"), hr.Workbook(level=NAME, share=OF))
    notes, sheet = openpyxl.load_workbook(file.with_suffix(".xlsx")).worksheets
    first, *rows = sheet.iter_rows(values_only=True)
    words = [str(row[1]) for row in notes.iter_rows(values_only=True)]
    labels = {row[0]: row[1] for row in notes.iter_rows(values_only=True)}
    return pl.DataFrame(rows, schema=list(first), orient="row"), labels, words


def statistics_file(folder, file):
    hr.export(folder, file.with_suffix(".sav"), hr.StatisticsFile(level=NAME, share=OF))
    rows, about = pyreadstat.read_sav(file.with_suffix(".sav"))
    frame = pl.DataFrame({name: rows[name].to_numpy() for name in rows.columns})
    return frame, about.column_names_to_labels, [" ".join(about.notes)]


def data_package(folder, file):
    hr.export(folder, file, hr.DataPackage(share=OF))
    facts = json.loads((file / "datapackage.json").read_text(encoding="utf-8"))
    (table,) = (one for one in facts["resources"] if one["name"] == "counts-2-1")
    labels = {field["name"]: field["title"] for field in table["schema"]["fields"]}
    schema = dict.fromkeys(list(labels)[:3], pl.String)
    coarse = next(one for one in facts["resources"] if one["name"] == "counts-1-0")
    assert not {*SHARES.values()} & {field["name"] for field in coarse["schema"]["fields"]}
    return (
        pl.read_csv(file / table["path"], schema_overrides=schema),
        labels,
        [facts["description"]],
    )


@pytest.mark.parametrize("form", [workbook, statistics_file, data_package])
def test_shares_are_those_of_the_release_and_say_what_they_are(form, flows, tmp_path):
    found, labels, words = form(flows, tmp_path / "a")
    release = hr.read_release(flows)
    wanted = release.ratio(BY, OF).select(*SHARES).rename(SHARES).cast(pl.Float64)
    assert len(wanted) == len(release.level(NAME)) > 0
    assert_frame_equal(found.select(*SHARES.values()).cast(pl.Float64), wanted, rel_tol=1e-14)
    assert labels["share"] == "Share of its home.state"
    assert "95 %" in labels["share_low"]
    assert any(OF_SHARES in text for text in words)


def test_areas_of_a_map_have_shares_counts_of_0_included(named, tmp_path):
    codes = hr.read_release(named).level("sa2", all=True)["sa2"]
    shape = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    shapes = tmp_path / "areas.geojson"
    areas = [{"type": "Feature", "properties": {"sa2": code}, "geometry": shape} for code in codes]
    text = json.dumps({"type": "FeatureCollection", "features": areas})
    shapes.write_text(text, encoding="utf-8")
    hr.export(named, tmp_path / "a.parquet", hr.GeoParquet(shapes, level="sa2", share={}))
    found = pl.from_arrow(pq.read_table(tmp_path / "a.parquet").drop_columns("geometry"))
    wanted = hr.read_release(named).ratio({"place": "sa2"}, {}, all=True)
    assert len(found) == len(wanted)
    both = found.join(wanted, on="sa2")
    assert both["share"].equals(both["ratio"])
    assert both["share_low"].equals(both["low_right"])


def test_the_command_writes_shares_or_says_why_not(run, flows, tmp_path):
    command = "export", flows, "--as", "xlsx", "--output", tmp_path / "a.xlsx", "--share"
    assert run(*command, "total")[0] == 0
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    heads = {sheet.title: [cell.value for cell in sheet[1]] for sheet in book.worksheets[1:]}
    assert {title for title, names in heads.items() if "share" not in names} == {"total"}
    (tmp_path / "a.xlsx").unlink()
    for options, words in {
        ("home=sa2", "--level", "home.state"): "no table here tells more than home.sa2",
        ("total", "--level", "total"): "no table here tells more than total",
        ("total", "--level", "home.stat"): "no cuboid 'home.stat'",
        ("home=town",): "no level of axis 'home' is called 'town'",
    }.items():
        code, _, err = run(*command, *options)
        assert (code, words in " ".join(err.split())) == (2, True), err
        assert not (tmp_path / "a.xlsx").exists()
    code, _, err = run("export", flows, "--as", "sdmx", "--output", tmp_path / "b", *command[-1:],
                       "total")  # fmt: skip
    assert (code, "sdmx has no --share" in " ".join(err.split())) == (2, True)


def test_a_column_of_an_attribute_tells_less_than_its_level(places, tmp_path):
    form = hr.Workbook(level="person.detail", share={"person": "sex"})
    hr.export(places, tmp_path / "a.xlsx", form)
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").worksheets[1]
    first, *rows = sheet.iter_rows(values_only=True)
    shares = [row[first.index("share")] for row in rows]
    wanted = hr.read_release(places).ratio({"person": "detail"}, {"person": "sex"})["ratio"]
    assert shares == pytest.approx(wanted.to_list(), rel=1e-14)
