"""`export --as datapackage`: valid for Frictionless, and equal to the Parquet files."""

import json
import shutil
import sys

import frictionless
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import MachineError, ReleaseError

KINDS = {"string": pl.String, "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}


@pytest.fixture(params=["flows", "places", "named"])
def out(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def package(out, tmp_path):
    hr.export(out, tmp_path / "package", hr.DataPackage())
    return tmp_path / "package"


def described(package):
    return json.loads((package / "datapackage.json").read_text())


@pytest.mark.filterwarnings("ignore")  # of the library's own
def test_a_data_package_is_valid_for_frictionless(package):
    report = frictionless.validate(str(package / "datapackage.json"))
    assert report.valid, report.flatten(["title", "message"])
    assert report.stats["tasks"] == len(described(package)["resources"])


@pytest.mark.filterwarnings("ignore")
def test_frictionless_finds_a_code_that_is_in_no_list(package):
    """So that its keys are known to be looked at."""
    resource = next(r for r in described(package)["resources"] if r["path"].startswith("domain/"))
    file = package / resource["path"]
    file.write_text(file.read_text().replace("\n1\n", "\nx\n", 1))
    report = frictionless.validate(str(package / "datapackage.json"))
    assert "foreign-key" in {kind for [kind] in report.flatten(["type"])}


def test_its_tables_are_those_of_the_release(out, package):
    release = hr.read_release(out)
    tables = [r for r in described(package)["resources"] if r["path"].startswith("counts/")]
    assert len(tables) == len(release.plan.levels)
    for levels, resource in zip(release.plan.levels, tables, strict=True):
        kinds = {f["name"]: KINDS[f["type"]] for f in resource["schema"]["fields"]}
        read = pl.read_csv(package / resource["path"], schema=kinds)
        wanted = release.level(release.plan.tree.name_of(levels))
        assert read.equals(wanted)
        stored = pl.read_parquet(out / "counts" / f"cuboid={'-'.join(map(str, levels))}.parquet")
        assert read.drop("contradicted").equals(stored)


def test_it_says_what_the_publisher_says(flows, tmp_path):
    hr.export(flows, tmp_path / "p", hr.DataPackage())
    found = described(tmp_path / "p")
    assert found["title"] == "Journeys to work — 2021"
    assert found["unit"] == "workers"
    assert found["licenses"] == [{"name": "CC-BY-4.0", "title": "CC BY 4.0"}]
    assert found["contributors"][0]["title"] == "Office of Statistics"
    plan = hr.read_release(flows).plan
    assert str(plan.promise) in found["description"]
    assert found["plan_sha256"] == plan.hash
    titles = {f["name"]: f["title"] for r in found["resources"] for f in r["schema"]["fields"]}
    assert titles["home state"] == "State of residence"
    assert titles["home.sa2"] == "Place of residence: sa2"
    assert titles["count"] == "Count (workers)"


def test_nothing_is_overwritten_or_put_into_a_release(flows, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(ReleaseError, match="exists already"):
        hr.export(flows, tmp_path / "there", hr.DataPackage())
    with pytest.raises(ReleaseError, match="lies within the release"):
        hr.export(flows, flows / "package", hr.DataPackage())
    with pytest.raises(ReleaseError, match="lies within the release"):
        hr.export(flows, flows / "a.sav", hr.StatisticsFile())
    assert not (flows / "a.sav").exists()
    with pytest.raises(ReleaseError, match="the directory does not exist"):
        hr.export(flows, tmp_path / "no" / "package", hr.DataPackage())


def test_what_a_killed_export_left_is_to_be_removed_and_no_release_to_resume(flows, tmp_path):
    (tmp_path / "p.staging" / "content").mkdir(parents=True)
    with pytest.raises(ReleaseError, match="is in the way; move it"):
        hr.export(flows, tmp_path / "p", hr.DataPackage())
    for name in ("lock", "release.key", "staging.json"):  # of a release
        (tmp_path / "p.staging" / name).touch()
    with pytest.raises(ReleaseError, match=r"an unfinished release .*--resume"):
        hr.export(flows, tmp_path / "p", hr.DataPackage())


def test_a_release_whose_files_were_changed_is_not_exported(flows, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(flows, copy)
    counts = copy / "counts" / "cuboid=1-1.parquet"
    pl.read_parquet(counts).with_columns(pl.col("count") + 1).write_parquet(counts)
    with pytest.raises(ReleaseError, match=r"counts/cuboid=1-1\.parquet was changed after"):
        hr.export(copy, tmp_path / "p", hr.DataPackage())
    (copy / "counts" / "more").touch()
    with pytest.raises(ReleaseError, match=r"is not in the manifest|was changed"):
        hr.export(copy, tmp_path / "p.sav", hr.StatisticsFile())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy"]


def test_a_missing_library_is_named_with_its_extra(flows, tmp_path, monkeypatch):
    for name in ("frictionless", "pyreadstat", "pysdmx.io", "shapely"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MachineError, match=r"frictionless: .* pip install '\.\[datapackage\]'"):
        hr.export(flows, tmp_path / "p", hr.DataPackage())
    with pytest.raises(MachineError, match=r"pyreadstat: .* pip install '\.\[stats\]'"):
        hr.export(flows, tmp_path / "p.sav", hr.StatisticsFile())
    with pytest.raises(MachineError, match=r"pysdmx: .* pip install '\.\[sdmx\]'"):
        hr.export(flows, tmp_path / "s", hr.Sdmx())
    with pytest.raises(MachineError, match=r"shapely: .* pip install '\.\[geo\]'"):
        hr.export(flows, tmp_path / "g.parquet", hr.GeoParquet(tmp_path))
    assert not list(tmp_path.iterdir())


def test_names_are_a_list_of_their_own_with_a_key_to_the_codes(named, tmp_path):
    hr.export(named, tmp_path / "package", hr.DataPackage())
    resources = {each["name"]: each for each in described(tmp_path / "package")["resources"]}
    names = resources["place.sa2.names"]
    read = pl.read_csv(tmp_path / "package" / names["path"], infer_schema=False)
    assert read.columns == ["sa2", "sa2_name"]
    assert dict(read.iter_rows())["1"] == 'Le "Port" </script>'
    assert "999" not in read["sa2"]
    assert names["schema"]["primaryKey"] == ["sa2"]
    assert names["schema"]["foreignKeys"][0]["reference"]["resource"] == "place.sa2"
    assert [field["title"] for field in names["schema"]["fields"]] == ["sa2", "sa2: name"]
    assert "sa2_name" not in pl.read_csv(tmp_path / "package" / "domain" / "place.sa2.csv").columns
