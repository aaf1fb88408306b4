"""Maps of four formats, read as GDAL reads them, and refused before they fill the memory."""

import json
import sqlite3
import struct

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from hedgerow.errors import TableError
from hedgerow.tables.maps import formats, geopackage
from hedgerow.tables.maps.formats import read_map
from hedgerow.tables.maps.geometry import Crs, NoMap, from_wkb

SQUARE = shapely.box(0, 0, 9, 9)
LAKE = shapely.box(3, 3, 6, 6)
SHAPES = [
    SQUARE,
    shapely.Polygon(shapely.box(20, 0, 29, 9).exterior, [shapely.box(23, 3, 26, 6).exterior]),
    shapely.MultiPolygon([shapely.box(23, 3, 26, 6), shapely.box(40, 0, 42, 2)]),
    shapely.MultiPolygon(
        [
            shapely.Polygon(
                shapely.box(50, 0, 59, 9).exterior, [shapely.box(51, 1, 58, 8).exterior]
            ),
            shapely.Polygon(
                shapely.box(52, 2, 57, 7).exterior, [shapely.box(53, 3, 56, 6).exterior]
            ),
            shapely.box(54, 4, 55, 5),
        ]
    ),
    None,
]
NAMES = ["a", "Ærø", "Łódź", "01", None]
NAMED = ["a.geojson", "a.json", "a.gpkg", "a.shp", "a.parquet", "a.GPKG"]


def written(path, shapes=SHAPES, crs="EPSG:3035", **columns):
    frame = geopandas.GeoDataFrame(
        columns or {"name": NAMES, "whole": [1, 2, 3, 4, 5], "share": [0.5, 1, 2, 3, 4]},
        geometry=shapes, crs=crs,
    )  # fmt: skip
    drivers = {".gpkg": "GPKG", ".shp": "ESRI Shapefile"}
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_file(path, driver=drivers.get(path.suffix.lower(), "GeoJSON"))
    return path


def same(one, other):
    return one is other or shapely.equals(one, other)


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
@pytest.mark.parametrize("crs", ["EPSG:3035", "EPSG:4326", "ESRI:54009", None])
@pytest.mark.parametrize("name", NAMED)
def test_a_map_is_what_gdal_makes_of_it(tmp_path, name, crs):
    """Codes, geometries, and the coordinate reference system."""
    path = written(tmp_path / name, crs=crs)
    told = geopandas.read_parquet(path) if name.endswith("t") else geopandas.read_file(path)
    given = read_map(path, "it")
    assert set(given.names) - {"fid"} == set(told.columns) - {"geometry"}
    assert given.codes("name") == NAMES
    assert given.codes("whole") == ["1", "2", "3", "4", "5"]
    assert given.codes("share") == ["0.5", "1", "2", "3", "4"]
    assert all(map(same, given.geometry, told.geometry))
    assert (given.crs.system is None) == (told.crs is None)
    assert told.crs is None or given.crs.system == told.crs
    assert given.crs.may_be_geographic == (told.crs is None or told.crs.is_geographic)


def test_random_islands_and_lakes_of_a_shapefile_are_those_of_gdal(tmp_path):
    rng = np.random.default_rng(20261123)
    shapes = []
    for _ in range(30):
        discs = shapely.buffer(shapely.points(rng.random((12, 2)) * 50), rng.random(12) * 9)
        rings = shapely.difference(discs, shapely.buffer(discs, -1.5))
        shapes.append(shapely.union_all(rings))
    path = written(tmp_path / "a.shp", shapes, name=[str(i) for i in range(30)])
    told = geopandas.read_file(path).geometry
    given = read_map(path, "it").geometry
    parts = list(map(shapely.get_parts, told))
    assert sum(len(shapely.get_rings(each)) > len(each) > 1 for each in parts) > 10
    for one, other in zip(given, told, strict=True):
        assert one.is_valid
        assert one.symmetric_difference(other).area < 1e-9 * other.area
        assert one.area == pytest.approx(other.area)


def test_a_row_that_was_deleted_from_a_shapefile_is_not_there(tmp_path):
    path = written(tmp_path / "a.shp", [SQUARE] * 3, name=["a", "b", "c"])
    table = bytearray((tmp_path / "a.dbf").read_bytes())
    start, size = struct.unpack_from("<HH", table, 8)
    table[start + size : start + size + 1] = b"*"
    (tmp_path / "a.dbf").write_bytes(table)
    given = read_map(path, "it")
    assert given.codes("name") == ["a", "c"]
    assert len(given.geometry) == 2


@pytest.mark.parametrize("coding", ["ISO-8859-1", "1252", "ANSI 1252", "88591", "UTF-8", None])
def test_names_in_a_shapefile_are_read_in_the_coding_that_it_states(tmp_path, coding):
    path = written(tmp_path / "a.shp", [SQUARE], name=["Ærø"])
    table = (tmp_path / "a.dbf").read_bytes()
    if coding != "UTF-8":
        old, new = "Ærø".encode() + b"  ", "Ærø".encode("latin-1") + b"    "
        assert old in table
        (tmp_path / "a.dbf").write_bytes(table.replace(old, new))
    (tmp_path / "a.cpg").unlink()
    if coding is not None:
        (tmp_path / "a.cpg").write_text(coding)
    assert read_map(path, "it").codes("name") == ["Ærø"]


def refused(path, words):
    with pytest.raises(TableError, match=words) as told:
        read_map(path, "the file")
    assert len(str(told.value)) < 400


@pytest.mark.parametrize("begin", formats.PACKED)
@pytest.mark.parametrize("name", ["a.shp", "a.zip", "a.shp.zip", "a.geojson", "a.geojson.gz"])
def test_a_packed_map_is_to_be_unpacked(tmp_path, name, begin):
    (tmp_path / name).write_bytes(begin + bytes(100))
    refused(tmp_path / name, "is packed; unpack it")


def test_a_map_is_told_by_its_name_and_by_its_first_bytes(tmp_path):
    for number, name in enumerate(NAMED[1:5]):
        (tmp_path / str(number)).mkdir()
        content = written(tmp_path / str(number) / name).read_bytes()
        for other in NAMED[1:5]:
            if other != name:
                (tmp_path / other).write_bytes(content)
                refused(tmp_path / other, "does not begin as")
        (tmp_path / "a.txt").write_bytes(content)
        refused(tmp_path / "a.txt", r"must end in \.parquet, .*give GeoParquet")


def changed(path, *statements):
    db = sqlite3.connect(path)
    for name in ("ST_IsEmpty", "ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY"):
        db.create_function(name, 1, lambda _: 0)
    db.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


LAYER = "UPDATE gpkg_contents SET table_name = 'v'"
COLUMN = "UPDATE gpkg_geometry_columns SET table_name = 'v'"
VIEW = "CREATE VIEW v AS SELECT fid, geom, name FROM a"
FORGED = "UPDATE sqlite_master SET type = 'table', rootpage = 3 WHERE name = 'v'"
VIRTUAL = "CREATE VIRTUAL TABLE v USING rtree(id, x0, x1)"


@pytest.mark.parametrize(
    "statements",
    [
        (VIEW, LAYER, COLUMN),
        (VIRTUAL, LAYER, COLUMN),
        (VIEW, FORGED, LAYER, COLUMN),
        (
            "ALTER TABLE gpkg_contents RENAME TO other",
            "CREATE VIEW gpkg_contents AS SELECT * FROM other",
        ),
        ("UPDATE gpkg_contents SET table_name = 'sqlite_master'",
         "UPDATE gpkg_geometry_columns SET table_name = 'sqlite_master', column_name = 'sql'"),
        ("UPDATE gpkg_contents SET table_name = 'json_each'",
         "UPDATE gpkg_geometry_columns SET table_name = 'json_each'"),
    ],
)  # fmt: skip
def test_a_layer_that_is_no_table_is_not_read(tmp_path, statements):
    path = written(tmp_path / "a.gpkg")
    changed(path, *statements)
    refused(
        path, r"a view or a virtual table, and only tables are read|DatabaseError|OperationalError"
    )


def test_what_computes_in_a_geopackage_is_refused(tmp_path):
    """A column whose values are a function's: it would be called for each row."""
    path = written(tmp_path / "a.gpkg")
    changed(path, "ALTER TABLE a ADD COLUMN code AS (hex(zeroblob(500000000)))")
    refused(path, "a column that is computed")


def test_codes_and_shapes_of_a_geopackage_are_of_the_same_rows_whatever_is_indexed(tmp_path):
    """SQLite reads a column from an index of it, where there is one: in the order of its values."""
    path = written(tmp_path / "a.gpkg", SHAPES[:3], name=["c", "b", "a"])
    changed(path, "CREATE INDEX i ON a (name)", "CREATE INDEX j ON a (geom)")
    given = read_map(path, "it")
    assert given.codes("name") == ["c", "b", "a"]
    assert all(map(same, given.geometry, SHAPES[:3]))


def repeated(path, times):
    """A GeoPackage that names its layer often, with statistics that make SQLite sort all pairs."""
    statements = ["CREATE TABLE t AS SELECT value FROM json_each('[1" + ", 1" * (times - 1) + "]')"]
    for name in ("gpkg_contents", "gpkg_geometry_columns"):
        statements += [f"CREATE TABLE o AS SELECT {name}.* FROM {name}, t", f"DROP TABLE {name}",
                       f"ALTER TABLE o RENAME TO {name}",
                       f"CREATE INDEX {name}_i ON {name} (table_name)"]  # fmt: skip
    forged = (
        "INSERT INTO sqlite_stat1 VALUES ('gpkg_contents', 'gpkg_contents_i', '1000000 1'), "
        "('gpkg_geometry_columns', 'gpkg_geometry_columns_i', '1 1')"
    )
    changed(path, *statements, "ANALYZE", "DELETE FROM sqlite_stat1", forged)


def test_a_layer_that_a_geopackage_names_very_often_is_found_at_once(tmp_path, monkeypatch):
    path = written(tmp_path / "a.gpkg")
    repeated(path, 300)
    monkeypatch.setattr(geopackage, "STEPS_AT_ONCE", 10)
    monkeypatch.setattr(geopackage, "MOST_STEPS", 200)
    assert len(read_map(path, "it").geometry) == len(SHAPES)


def test_a_geopackage_is_read_in_bounded_steps(tmp_path, monkeypatch):
    path = written(tmp_path / "a.gpkg", [SQUARE] * 100, name=["a"] * 100)
    monkeypatch.setattr(geopackage, "STEPS_AT_ONCE", 10)
    monkeypatch.setattr(geopackage, "MOST_STEPS", 20)
    refused(path, "OperationalError.*holds more than")


def test_a_geopackage_with_triggers_is_read_and_left_as_it_is(tmp_path):
    path = written(tmp_path / "a.gpkg")
    changed(path, "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END")
    before = path.read_bytes()
    assert read_map(path, "it").codes("name") == NAMES
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.gpkg"]


def nested(depth):
    """Collections in collections, as well-known binary."""
    return struct.pack("<BII", 1, 7, 1) * depth + struct.pack("<BII", 1, 7, 0)


@pytest.mark.parametrize("front", [b"", struct.pack("<BII", 1, 6, 1)])
def test_collections_nested_without_end_do_not_end_the_process(front):
    """GEOS follows them until its stack is full."""
    with pytest.raises(NoMap, match=r"no area"):
        from_wkb([front + nested(1_000_000)])


@pytest.mark.parametrize("flavor", ["iso", "extended"])
@pytest.mark.parametrize("order", [0, 1])
def test_well_known_binary_of_every_kind_is_read(flavor, order):
    shapes = [*SHAPES[:4], *(shapely.force_3d(each, 7) for each in SHAPES[:4]), shapely.Point(1, 2)]
    given = from_wkb([*shapely.to_wkb(shapes, flavor=flavor, byte_order=order), None])
    assert all(map(same, given, [*shapes, None]))


def test_well_known_binary_cut_anywhere_is_refused():
    whole = shapely.to_wkb(SHAPES[3])
    for cut in range(len(whole)):
        with pytest.raises((NoMap, shapely.errors.GEOSException)):
            from_wkb([whole[:cut]])


COLUMNS = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
FACTS = {"geo": json.dumps(COLUMNS)}


def test_a_small_file_that_stands_for_much_is_refused_unread(tmp_path, monkeypatch):
    """20,000 rows of one shape of a megabyte: 60 kB in the file, 20 GB in memory."""
    turn = np.linspace(0, 2 * np.pi, 65_000, endpoint=False)
    disc = shapely.to_wkb(shapely.Polygon(np.column_stack([np.cos(turn), np.sin(turn)])))
    codes = pa.array([str(i) for i in range(20_000)])
    shapes = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array([disc]))
    table = pa.table({"town": codes, "geometry": shapes})
    table = table.replace_schema_metadata(FACTS)
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 2_000_000
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    refused(tmp_path / "a.parquet", r"'geometry' may unpack to 2\d\.\d\d GB")


def geoparquet(path, names, columns):
    """A GeoParquet file of columns that may be called the same."""
    table = pa.Table.from_arrays([pa.array(each) for each in columns], names)
    pq.write_table(table.replace_schema_metadata(FACTS), path)


SINGLE = shapely.to_wkb(SQUARE)
INNER = {"geometry": SINGLE}


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["geometry", "geometry"], [[SINGLE], [SINGLE]]),
        (["geometry", "geometry"], [[INNER], [SINGLE]]),
        (["geometry"], [[INNER]]),
        (["geometry"], [[[SINGLE]]]),
    ],
)
def test_shapes_in_several_columns_of_one_name_are_refused_unread(
    tmp_path, monkeypatch, names, columns
):
    """Only one of them would be measured, and all are read."""
    geoparquet(tmp_path / "a.parquet", names, columns)
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    refused(tmp_path / "a.parquet", "it needs one column 'geometry', of single values")


def test_the_column_that_is_measured_is_the_one_that_is_read(tmp_path, monkeypatch):
    """A field within a column before it is called the same."""
    geoparquet(tmp_path / "a.parquet", ["a", "geometry"], [[{"geometry": None}], [SINGLE]])
    assert same(read_map(tmp_path / "a.parquet", "it").geometry[0], SQUARE)
    monkeypatch.setattr(formats, "MOST_BYTES_UNPACKED", 100)
    refused(tmp_path / "a.parquet", "'geometry' may unpack to")


def test_a_record_of_empty_parts_again_and_again_is_refused(tmp_path):
    """Its parts have no points, and take time all the same."""
    path, parts = written(tmp_path / "a.shp", [SQUARE] * 40, name=["a"] * 40), 1_000
    head = path.read_bytes()[:100]
    record = struct.pack("<i4d2I", 5, 0, 0, 0, 0, parts, 0) + bytes(4 * parts)
    path.write_bytes(head + struct.pack(">2i", 1, len(record) // 2) + record)
    index = (tmp_path / "a.shx").read_bytes()
    (tmp_path / "a.shx").write_bytes(index[:100] + index[100:108] * 40)
    refused(path, "more shapes than its .shp has")


def test_rows_without_shapes_take_memory_too(tmp_path, monkeypatch):
    """A row of a few bits in the file is an object for its shape, and one for its code."""
    monkeypatch.setattr(formats, "MOST_BYTES_UNPACKED", 256_000)
    for rows, count in (("few", 1_000), ("many", 3_000)):
        geoparquet(
            tmp_path / f"{rows}.parquet", ["town", "geometry"], [["a"] * count, [None] * count]
        )
    assert len(read_map(tmp_path / "few.parquet", "it").geometry) == 1_000
    refused(tmp_path / "many.parquet", "'geometry' may unpack to")


def test_shapes_in_a_shapefile_that_are_one_again_and_again_are_refused(tmp_path):
    path = written(tmp_path / "a.shp", [SQUARE] * 40, name=["a"] * 40)
    index = (tmp_path / "a.shx").read_bytes()
    (tmp_path / "a.shx").write_bytes(index[:100] + index[100:108] * 40)
    given = read_map(path, "it")
    assert len(given.geometry) == 40
    (tmp_path / "a.shp").write_bytes((tmp_path / "a.shp").read_bytes()[: 100 + 3 * 136])
    refused(path, "more shapes than its .shp has")


POINT = {"type": "Point", "coordinates": [1, 2]}


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (POINT, "not GeoJSON"),
        ({"type": ["Feature"], "features": []}, "not GeoJSON"),
        ({"type": "FeatureCollection", "features": {}}, "not GeoJSON"),
        ([7], "feature 1 is not what GeoJSON calls a Feature"),
        ([[]], "feature 1 is not what GeoJSON calls a Feature"),
        ([POINT], "feature 1 is not what GeoJSON calls a Feature"),
        ([{"type": ["Feature"]}], "feature 1 is not what GeoJSON calls a Feature"),
        ([{"type": "Feature", "properties": POINT}], "feature 1 has properties without names"),
        ([{"type": "Feature", "properties": [1]}], "feature 1 has properties without names"),
        ([{"type": "Feature", "geometry": {"type": [], "coordinates": 1}}], "that is no area"),
        ([{"type": "Feature", "geometry": 7}], "feature 1 has a geometry that is no area"),
    ],
)
def test_features_that_are_none_are_named(tmp_path, whole, words):
    if isinstance(whole, list):
        whole = {"type": "FeatureCollection", "features": whole}
    (tmp_path / "a.geojson").write_text(json.dumps(whole))
    refused(tmp_path / "a.geojson", words)


def test_a_json_file_with_very_many_values_is_refused_unread(tmp_path, monkeypatch):
    path = written(tmp_path / "a.geojson")
    monkeypatch.setattr(formats, "MOST_VALUES_OF_A_MAP", 50)
    monkeypatch.setattr(formats.json, "loads", None)
    refused(path, "more than 50 values")
    for value in ("{}", '{"":1}', '"ab"', "[1,2]"):
        path.write_text('{"type":[' + ",".join([value] * 17) + "]}")
        refused(path, "more than 50 values")


@pytest.mark.parametrize(
    "text",
    [
        "+init=/tmp/people.csv:a",
        "+proj=longlat +init=x",
        'GEOGCS["a",EXTENSION["PROJ4","+proj=ob_tran +init=x"]]',
        "/etc/passwd",
        "EPSG:4326",
        "",
        "x" * 100_000,
    ],
)
def test_coordinates_that_another_file_tells_are_not_known(text):
    assert Crs.of_text(text).system is None


def codes_of(path):
    """The sentence that refuses a file, or nothing where all its codes are read."""
    try:
        given = read_map(path, "it")
        for name in given.names:
            given.codes(name)
    except TableError as told:
        return str(told)
    return ""


def test_bytes_of_nonsense_are_refused_in_one_sentence(tmp_path):
    """One part of a file after the other, changed at random."""
    rng = np.random.default_rng(20261124)
    for name in ("a.gpkg", "a.shp", "a.parquet"):
        path = written(tmp_path / name, SHAPES[:4], name=NAMES[:4])
        parts = [path, *(path.with_suffix(each) for each in (".shx", ".dbf"))]
        for part in parts if name == "a.shp" else [path]:
            whole = part.read_bytes()
            for _ in range(25):
                bad = bytearray(whole)
                for place in rng.integers(8, min(len(whole), 6_000), 4):
                    bad[place] = rng.integers(0, 256)
                part.write_bytes(bad)
                assert len(codes_of(path)) < 600
            part.write_bytes(whole)
