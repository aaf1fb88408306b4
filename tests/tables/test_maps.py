"""Shapes of areas: read from public files, on a grid, every border once."""

import json
import time

import geopandas
import numpy as np
import polars as pl
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.rules import Division
from hedgerow.tables.maps.drawn import unwrapped
from hedgerow.tables.maps.geometry import Crs
from hedgerow.tables.maps.shapes import GRID, Shapes, Topology

SEED = 20260801


def voronoi(count, seed=SEED, crinkle=0):
    """Areas that fill a square between them; their borders have more points where crinkled."""
    points = np.random.default_rng(seed).random((count, 2)) * 100
    cells = shapely.get_parts(
        shapely.voronoi_polygons(shapely.multipoints(points), extend_to=shapely.box(0, 0, 100, 100))
    )
    cells = shapely.intersection(cells, shapely.box(0, 0, 100, 100))
    if crinkle:
        cells = shapely.segmentize(cells, crinkle)
        bend = [(x + 0.05 * np.sin(7 * y), y + 0.05 * np.sin(7 * x)) for x, y in
                shapely.get_coordinates(cells)]  # fmt: skip
        cells = shapely.set_coordinates(cells, np.array(bend))
    return list(cells)


def codes(count):
    return [f"{i:05}" for i in range(count)]


def axis_of(count):
    return Axis.from_frame(
        "place",
        {"county": [f"c{i // 10:04}" for i in range(count)], "town": codes(count)},
        ["county", "town"],
    )


def file_of(folder, geometry, names=None, *, name="shapes.geojson", key="town", crs="EPSG:3035"):
    frame = geopandas.GeoDataFrame(
        {key: codes(len(geometry)) if names is None else names}, geometry=geometry, crs=crs
    )
    path = folder / name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_file(path)
    return path


def drawn(shapes, node):
    """The polygon of an area, put together again from the borders."""
    parts = np.split(shapes.points, shapes.arc_start[1:-1])
    polygons = []
    for polygon in shapes.areas[node]:
        rings = []
        for ring in polygon:
            run = [parts[a][:-1] if a >= 0 else parts[~a][:0:-1] for a in ring]
            rings.append(np.concatenate(run) * shapes.scale + shapes.translate)
        polygons.append(shapely.Polygon(rings[0], rings[1:]))
    return shapely.MultiPolygon(polygons)


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.shp", "a.parquet"])
def test_shapes_are_those_of_the_file_but_for_the_grid(tmp_path, name):
    cells = voronoi(60)
    shapes = axis_of(60).with_shapes(file_of(tmp_path, cells, name=name)).shapes
    assert shapes.level == 2
    assert not shapes.geographic
    for node, cell in enumerate(cells):
        assert drawn(shapes, node).symmetric_difference(cell).area < 0.002 * cell.area + 0.02


def test_every_border_is_kept_once():
    """Every segment of the rings is in one arc, whichever way the rings run it."""
    square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]])
    other = np.array([[2, 0], [4, 0], [4, 2], [2, 2]])
    made = Topology.of(np.concatenate([square, other]), np.repeat([0, 1], 4), 2)
    assert len(made.arc_start) - 1 == 3
    used = np.maximum(made.arcs, ~made.arcs)
    shared = [arc for arc, times in enumerate(np.bincount(used)) if times == 2]
    assert len(shared) == 1
    assert made.points[made.arc_start[shared[0]]].tolist() in ([2, 0], [2, 2])
    assert made.areas_twice.tolist() == [8, 8]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25))
def test_rings_are_put_together_again_from_their_borders(seed, count):
    """Against brute force: each ring's points, in order, whatever meets it."""
    rings = [
        np.rint(shapely.get_coordinates(cell)[:-1] * 5).astype(np.int64)
        for cell in voronoi(count, seed)
    ]
    rings = [ring[(ring != np.roll(ring, 1, axis=0)).any(axis=1)] for ring in rings]
    rings = [ring for ring in rings if len(ring) >= 3]
    owner = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
    made = Topology.of(np.concatenate(rings), owner, len(rings))
    parts = np.split(made.points, made.arc_start[1:-1])
    segments = set()
    for part in parts:
        for one, two in zip(part[:-1].tolist(), part[1:].tolist(), strict=True):
            segment = tuple(sorted((tuple(one), tuple(two))))
            assert segment not in segments
            segments.add(segment)
    for number, ring in enumerate(rings):
        own = made.arcs[made.ring_start[number] : made.ring_start[number + 1]].tolist()
        again = np.concatenate([parts[a][:-1] if a >= 0 else parts[~a][:0:-1] for a in own])
        turns = [np.roll(ring, k, axis=0).tolist() for k in range(len(ring))]
        assert again.tolist() in turns


def test_neighbours_share_their_simplified_border(tmp_path):
    """No gap and no overlap: the areas together are the whole, and none lies on another."""
    cells = voronoi(80, crinkle=0.02)
    shapes = axis_of(80).with_shapes(file_of(tmp_path, cells)).shapes
    every = [drawn(shapes, node) for node in range(80)]
    given_points = sum(len(shapely.get_coordinates(cell)) for cell in cells)
    assert len(shapes.points) < given_points / 8
    whole = shapely.union_all([shapely.make_valid(each) for each in every])
    assert abs(sum(each.area for each in every) - whole.area) < 1e-6 * whole.area


def test_ten_thousand_crinkled_areas_stay_below_three_megabytes(tmp_path):
    axis = axis_of(10_000)
    path = file_of(tmp_path, voronoi(10_000, crinkle=0.1), name="a.parquet")
    before = time.process_time()
    shapes = axis.with_shapes(path).shapes
    text = shapes.to_json(axis.labels[1])
    assert len(text.encode()) < 3_000_000
    assert time.process_time() - before < 60
    assert Shapes.from_json(text, axis.labels, "it").to_json(axis.labels[1]) == text


def test_no_area_vanishes_however_small(tmp_path):
    cells = [shapely.box(0, 0, 1e6, 1e6), shapely.box(2e6, 0, 2e6 + 1e-3, 1e-3)]
    shapes = axis_of(2).with_shapes(file_of(tmp_path, cells)).shapes
    assert drawn(shapes, 1).area > 0
    assert all(shapes.areas)


def test_holes_and_islands_keep_their_places(tmp_path):
    lake = shapely.Polygon(shapely.box(0, 0, 9, 9).exterior, [shapely.box(3, 3, 6, 6).exterior])
    both = shapely.MultiPolygon([shapely.box(3, 3, 6, 6), shapely.box(10, 0, 12, 2)])
    shapes = axis_of(2).with_shapes(file_of(tmp_path, [lake, both])).shapes
    assert [drawn(shapes, node).area for node in range(2)] == pytest.approx([72, 13], rel=1e-3)
    assert len(shapes.arc_start) - 1 == 3


def test_shapes_of_counties_are_taken_where_towns_have_none(tmp_path):
    path = file_of(tmp_path, voronoi(3), ["c0000", "c0001", "c0002"], key="id")
    assert axis_of(30).with_shapes(path, "id").shapes.level == 1


def test_areas_on_both_sides_of_the_date_line_stand_beside_each_other():
    assert unwrapped(np.array([179.0, -179.0, 178.0])).tolist() == [179.0, 181.0, 178.0]
    world = np.arange(-170.0, 171.0, 5)
    assert unwrapped(world).tolist() == world.tolist()


def test_records_that_are_not_stated_need_no_shape(tmp_path):
    axis = Axis.from_frame(
        "place", {"county": ["a", "a", "?"], "town": ["0", "1", "?"]}, ["county", "town"],
        not_stated="?",
    )  # fmt: skip
    shapes = axis.with_shapes(file_of(tmp_path, voronoi(2), ["0", "1"])).shapes
    assert [bool(area) for area in shapes.areas] == [bool(c != "?") for c in axis.labels[1]]


with np.errstate(invalid="ignore"):
    NAN = shapely.Polygon([(0, 0), (1, float("nan")), (1, 1)])
HUGE = shapely.box(0, 0, 1e15, 1)
SAID = {
    "a point": ([shapely.Point(0, 0)] * 3, None, "is a Point, not an area"),
    "nothing": ([], None, "is empty"),
    "an empty shape": ([shapely.Polygon(), *voronoi(2)], None, "is empty"),
    "a missing shape": ([None, *voronoi(2)], None, "'00000' has no geometry"),
    "other codes": (voronoi(3), ["x", "y", "z"], "3 of 3 codes of 'town' have no shape"),
    "a code twice": (voronoi(4), ["00000", "00001", "00002", "00002"], "two shapes"),
    "a far corner": ([HUGE, *voronoi(2)], None, "beyond 10\\^12"),
}


@pytest.mark.parametrize("what", SAID)
def test_a_file_of_anything_else_is_refused_in_one_sentence(tmp_path, what):
    geometry, names, words = SAID[what]
    path = file_of(tmp_path, geometry, names, name="a.parquet")
    with pytest.raises(TableError, match=words) as refused:
        axis_of(3).with_shapes(path)
    assert len(str(refused.value)) < 500


def test_coordinates_that_are_no_numbers_are_refused(tmp_path):
    path = file_of(tmp_path, [NAN, *voronoi(2)], name="a.parquet")
    with pytest.raises(TableError, match="no numbers"):
        axis_of(3).with_shapes(path)


def test_a_file_that_is_none_is_refused(tmp_path):
    for content in (b"", b"{}", b"PAR1PAR1", b"\0" * 4096, b'{"type":"FeatureCollection"'):
        for name in ("a.geojson", "a.parquet", "a.gpkg"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(TableError, match=r"cannot be read|has no|is empty|no column"):
                axis_of(3).with_shapes(tmp_path / name)


def test_a_border_that_crosses_itself_is_drawn_as_it_is(tmp_path):
    """It shows what it encloses; nothing needs a border that does not cross."""
    bow = shapely.Polygon([(0, 0), (4, 3), (4, 0), (0, 2)])
    path = file_of(tmp_path, [bow, *voronoi(2)], name="a.parquet")
    assert all(axis_of(3).with_shapes(path).shapes.areas)


def test_a_border_of_a_million_points_is_simplified(tmp_path):
    turn = np.linspace(0, 2 * np.pi, 1_000_000, endpoint=False)
    round_ = shapely.Polygon(np.column_stack([np.cos(turn), np.sin(turn)]) * 50)
    path = file_of(tmp_path, [round_, *voronoi(2)], name="a.parquet")
    assert len(axis_of(3).with_shapes(path).shapes.points) < 10_000


def test_an_axis_of_several_columns_has_no_shapes(tmp_path):
    axis = Axis.from_product("person", [{"age": ["0", "1"]}, {"sex": ["f", "m"]}], ["age", "sex"])
    with pytest.raises(TableError, match="several columns"):
        axis.with_shapes(file_of(tmp_path, voronoi(2)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    axis = axis_of(30)
    path = file_of(tmp_path_factory.mktemp("kept"), voronoi(30), name="a.parquet")
    return axis, axis.with_shapes(path).shapes.to_json(axis.labels[1])


def first_area(whole):
    return whole["objects"]["town"]["geometries"][0]


def areas(whole):
    return whole["objects"]["town"]["geometries"]


CHANGES = {
    "another code": lambda whole: first_area(whole).update(id="00099"),
    "one area fewer": lambda whole: areas(whole).pop(),
    "a word more": lambda whole: whole.update(bbox=[0, 0, 1, 1]),
    "an arc that is not there": lambda whole: first_area(whole)["arcs"][0][0].append(10**6),
    "an open ring": lambda whole: first_area(whole)["arcs"][0][0].pop(),
    "a point beyond the grid": lambda whole: whole["arcs"][0].__setitem__(0, [2 * GRID + 1, 0]),
    "a point of fractions": lambda whole: whole["arcs"][0].__setitem__(0, [0.5, 0.5]),
    "a scale that is no number": lambda whole: whole["transform"].update(scale=[1.0, float("nan")]),
    "a scale below 0": lambda whole: whole["transform"].update(scale=[-1.0, 1.0]),
    "an arc of one point": lambda whole: whole["arcs"].__setitem__(0, [[1, 1]]),
    "a level that is none": lambda whole: whole.update(objects={"</script>": {"geometries": []}}),
    "an area below 0": lambda whole: first_area(whole)["properties"].update(km2=-1.0),
    "an area that is not told": lambda whole: first_area(whole).pop("properties"),
    "no areas": lambda whole: whole.update(objects={}),
    "arcs that are words": lambda whole: whole.update(arcs="nothing"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_kept_shapes_that_were_changed_are_refused(kept, what):
    axis, text = kept
    whole = json.loads(text)
    CHANGES[what](whole)
    forged = json.dumps(whole, separators=(",", ":")) + "\n"
    assert forged != text
    with pytest.raises(TableError, match="as Hedgerow writes them"):
        Shapes.from_json(forged, axis.labels, "domain/place.shapes.json")


def test_areas_are_as_large_as_they_are_on_the_ground(tmp_path):
    """A cell of 1° × 1° by the equator has 12,309 km² in any coordinates; a hole has none."""
    hole = shapely.box(20.25, 0.25, 20.75, 0.75)
    cells = geopandas.GeoSeries([shapely.box(10, 0, 11, 1), shapely.box(20, 0, 21, 1) - hole])
    for crs in ("EPSG:4326", "EPSG:3857", "EPSG:3035", "EPSG:4807"):
        own = list(cells.set_crs("EPSG:4326").to_crs(crs))
        km2 = axis_of(2).with_shapes(file_of(tmp_path, own, name="a.parquet", crs=crs)).shapes.km2
        assert km2 == pytest.approx([12_308.78, 0.75 * 12_308.78], rel=1e-4), crs
    path = file_of(tmp_path, list(cells), name="a.parquet", crs=None)
    assert axis_of(2).with_shapes(path).shapes.km2 is None


ODD = "GEOGCS['odd',DATUM['odd',SPHEROID['odd',6378137,0.5]],PRIMEM['x',0],UNIT['d',0.0174532925]]"


@pytest.mark.parametrize("system", ["+proj=airy", "+proj=longlat +a=1e300 +b=1e300", ODD])
def test_where_a_system_has_no_way_to_its_globe_areas_have_no_size(system):
    """No fault of a map, which shows them as they are."""
    ring = shapely.LinearRing([(0, 0), (1, 0), (1, 1), (0, 1)])
    assert Crs(pyproj.CRS(system)).sizes(np.array([ring])) is None


def test_kept_shapes_come_back_as_they_were(kept):
    axis, text = kept
    again = Shapes.from_json(text, axis.labels, "it")
    assert again.to_json(axis.labels[1]) == text


def test_shapes_with_many_areas_of_one_level_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.tables.maps.reading.MOST_AREAS_SHOWN", 20)
    with pytest.raises(TableError, match="at most 20 areas"):
        axis_of(30).with_shapes(file_of(tmp_path, voronoi(30)))


def test_is_not_stated_tells_leaves_and_areas_of_them_alone():
    frame = pl.DataFrame({"county": ["a", "a", "?"], "town": ["0", "9", "?"]})
    axis = Axis.from_frame("place", frame, ["county", "town"], not_stated="?")
    for level in (1, 2):
        expected = [code == "?" for code in axis.labels[level - 1]]
        assert axis.is_not_stated(level).tolist() == expected


def grid(places, widths, **options):
    frame = pl.DataFrame(places, schema=["x", "y"], orient="row")
    levels = [f"w{width}" for width in widths]
    return Axis.from_frame("square", frame, levels, rule=Division(widths, ["x", "y"]), **options)


def test_the_squares_of_a_grid_lie_where_their_codes_say():
    places = [(-5, 3), (-1, -1), (12, 7), (19, 19), (0, 0)]
    axis = grid(places, [10, 5])
    for node, code in enumerate(axis.labels[1]):
        x, y = map(int, code.split("_"))
        expected = shapely.box(x, y, x + 5, y + 5)
        off = drawn(axis.shapes, node).symmetric_difference(expected).area
        assert off < 0.01 * expected.area
    assert not axis.shapes.geographic


def test_a_grid_with_very_many_squares_shows_a_coarser_level(monkeypatch):
    monkeypatch.setattr("hedgerow.tables.codes.rules.MOST_AREAS_SHOWN", 10)
    places = [(x, y) for x in range(8) for y in range(8)]
    assert grid(places, [4, 1]).shapes.level == 1
    assert grid(places, [2, 1]).shapes is None


def test_a_code_that_is_no_corner_has_no_place():
    axis = grid([(0, 0), (4, 4)], [4, 1], not_stated="{w4}?")
    places = [bool(area) for area in axis.shapes.areas]
    assert places == ["?" not in code for code in axis.labels[1]]
    line = pl.DataFrame({"x": [1, 7]})
    assert Axis.from_frame("place", line, ["a"], rule=Division([5], "x")).shapes is None


def test_borders_are_simplified_until_there_are_few_enough_points(tmp_path, monkeypatch):
    path = file_of(tmp_path, voronoi(20, crinkle=0.02))
    whole = len(axis_of(20).with_shapes(path).shapes.points)
    monkeypatch.setattr("hedgerow.tables.maps.reading.MOST_POINTS_SHOWN", whole // 3)
    assert len(axis_of(20).with_shapes(path).shapes.points) <= whole // 3
    monkeypatch.setattr("hedgerow.tables.maps.reading.MOST_POINTS_SHOWN", 5)
    with pytest.raises(TableError, match="too many to draw even simplified"):
        axis_of(20).with_shapes(path)


def test_a_very_long_code_is_not_echoed_whole(tmp_path):
    towns = ["x" * 5_000, "b"]
    axis = Axis.from_frame("place", {"town": towns}, ["town"])
    with pytest.raises(TableError, match="1 of 2 codes of 'town' have no shape") as refused:
        axis.with_shapes(file_of(tmp_path, voronoi(1), ["b"]))
    assert "x" * 50 not in str(refused.value)
