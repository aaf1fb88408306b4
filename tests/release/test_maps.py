"""Shapes of areas in a release: kept in ``domain/``, outside the plan's hash, and checked."""

import json

import geopandas
import polars as pl
import pytest
import shapely

import hedgerow as hr
from hedgerow.errors import HedgerowError, SpecError, TableError
from hedgerow.spec.release_spec import ReleaseSpec
from tests.release.forged import reseal

EVIL = "</script><img src=x onerror=document.title='evil'>"
SIDE = 3
FILE = """
[table]
source = "people.csv"
count = "people"
[[axis]]
name = "place"
levels = ["county", "town"]
areas = "areas.csv"
{}
[privacy]
rho = "1/20"
"""


@pytest.fixture
def folder(tmp_path):
    towns = [f"{EVIL}{x}{y}" for x in range(SIDE) for y in range(SIDE)]
    squares = [shapely.box(x, y, x + 1, y + 1) for x in range(SIDE) for y in range(SIDE)]
    geopandas.GeoDataFrame({"code": towns}, geometry=squares, crs="EPSG:3035").to_file(
        tmp_path / "towns.geojson"
    )
    areas = pl.DataFrame({"county": [f"{EVIL}{t[-2]}" for t in towns], "town": towns})
    areas.write_csv(tmp_path / "areas.csv")
    areas.with_columns(people=pl.Series(range(100, 109))).write_csv(tmp_path / "people.csv")
    return tmp_path


def spec(folder, lines='shapes = "towns.geojson"\nshapes_key = "code"'):
    path = folder / "release.toml"
    path.write_text(FILE.format(lines), encoding="utf-8")
    return ReleaseSpec(path)


def released(folder):
    given = spec(folder)
    tree = given.tree()
    counts = hr.Counts.from_frame(tree, pl.read_csv(folder / "people.csv"), count="people")
    hr.release(counts, given.plan(tree)).write(folder / "out")
    return folder / "out"


def test_shapes_are_kept_and_come_back_and_are_no_part_of_the_hash(folder):
    out = released(folder)
    with_them, without = (spec(folder, each) for each in (*SHAPES, ""))
    plan = with_them.plan(with_them.tree())
    assert plan.hash == without.plan(without.tree()).hash
    assert "domain/place.shapes.json" in json.loads((out / "manifest.json").read_text())["files"]
    again = hr.read_release(out).plan.tree.axes[0]
    own = plan.tree.axes[0]
    assert again.shapes.to_json(again.labels[1]) == own.shapes.to_json(own.labels[1])
    whole = json.loads((out / "domain" / "place.shapes.json").read_text(encoding="utf-8"))
    assert whole["type"] == "Topology"
    assert [each["id"] for each in whole["objects"]["town"]["geometries"]] == own.labels[
        1
    ].to_list()
    assert all(finding.passed for finding in hr.check(out))


SHAPES = ['shapes = "towns.geojson"\nshapes_key = "code"']


def elsewhere(whole):
    """Shapes of other areas."""
    whole["objects"]["town"]["geometries"][0]["id"] = "elsewhere"


def lacking(whole):
    """Shapes of all areas but one."""
    kept = whole["objects"]["town"]["geometries"][4]
    nowhere = {"type": None, "id": kept["id"], "properties": kept["properties"]}
    whole["objects"]["town"]["geometries"][4] = nowhere


def moved(whole):
    """Shapes with one border that runs otherwise: as whole as before."""
    arc = next(arc for arc in whole["arcs"] if len(arc) > 2)
    arc[1][0] += 5
    arc[2][0] -= 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (elsewhere, "has no shapes of this axis's areas"),
        (lacking, "lacks the shapes"),
        (moved, "report.html is not what the files of the release make"),
    ],
)
def test_other_shapes_are_found_by_their_digest_and_else_by_check(folder, change, words):
    """Shapes are not in the plan's hash, but page and shapes of a release belong together."""
    out = released(folder)
    path = out / "domain" / "place.shapes.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    change(whole)
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n"
    path.write_text(text, encoding="utf-8")
    assert any("place.shapes.json" in (each.failure or "") for each in hr.check(out))
    reseal(out)
    (failure,) = [each.failure for each in hr.check(out) if each.failure]
    assert words in failure


def test_a_page_with_another_map_is_found_by_check(folder):
    """Its digest made to fit."""
    out = released(folder)
    page = out / "report.html"
    text = page.read_text(encoding="utf-8")
    for forged in (
        text.replace('"level":2,"geographic":false', '"level":1,"geographic":false'),
        text.replace('<section id="counts">', '<section id="counts"><p>Nobody lives here.</p>'),
        text.replace("const ATLAS_WIDTH = 1000", "const ATLAS_WIDTH = 100"),
        text.replace(text.split('id="shapes-0">')[1].split("<")[0][:8], "AAAAAAAA"),
    ):
        assert forged != text
        page.write_text(forged, encoding="utf-8")
        reseal(out)
        assert [each.failure for each in hr.check(out) if each.failure]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('shapes = "none.geojson"', r"place.*none\.geojson.* does not exist|cannot read"),
        ('shapes = "towns.geojson"', "no column .* name it with shapes_key"),
        ('shapes = "towns.geojson"\nshapes_key = "cod"', "no column 'cod'.*code"),
        ('shapes_key = "code"', "shapes_key goes with shapes"),
        ('shapes = "people.csv"', "confidential table itself"),
        ('shapes = "areas.csv"', "no geometry|cannot be read"),
    ],
)
def test_a_release_file_with_other_shapes_is_refused_with_its_axis(folder, lines, words):
    with pytest.raises((SpecError, TableError), match=words) as refused:
        spec(folder, lines).tree()
    assert isinstance(refused.value, HedgerowError)
    assert "place" in str(refused.value)
