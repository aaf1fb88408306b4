"""Public files that are not what they are called: maps and lists that name other files and servers.

Each maker writes into a folder of its own and returns the path for the release file. What it names
lies in another folder, where nothing may be opened.
"""

import gzip
import io
import json
import os
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import geopandas
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import shapely

TOWNS = ["a1", "a2", "b1"]
COUNTIES = ["a", "a", "b"]
LIST = {"county": COUNTIES, "town": TOWNS}
SERVER = "http://127.0.0.1:9"
Maker = Callable[[Path, Path], str]
"""Takes its own folder, and the one that is beyond; returns the path that a user would name."""

BOXES = [shapely.box(x, 0, x + 1, 1) for x in range(3)]


def beyond(folder: Path) -> None:
    """What no public file may reach: the confidential table, and files of shapes."""
    folder.mkdir()
    rows = {"county": COUNTIES, "town": TOWNS, "n": [314159, 271828, 161803]}
    pl.DataFrame(rows).write_csv(folder / "people.csv")
    pl.DataFrame(rows).write_parquet(folder / "people.parquet")
    (folder / "areas.geojson").write_bytes(geojson())
    with zipfile.ZipFile(folder / "areas.zip", "w") as packed:
        packed.writestr("areas.geojson", geojson())
    (folder / "areas.geojson.gz").write_bytes(gzip.compress(geojson()))
    (folder / "schema.xsd").write_text("<schema/>")
    with sqlite3.connect(folder / "people.db") as db:
        db.execute("CREATE TABLE people AS SELECT 'a1' AS town, 314159 AS n")
    db.close()


def frame() -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame({"town": TOWNS}, geometry=BOXES, crs="EPSG:3035")


def geojson(**more: object) -> bytes:
    whole = json.loads(frame().to_crs(4326).to_json())
    whole.pop("crs", None)
    return json.dumps(whole | more).encode()


def text(name: str, content: str | bytes) -> Maker:
    """A file of some content, in which BEYOND and SERVER are filled in."""

    def make(folder: Path, other: Path) -> str:
        data = content.encode() if isinstance(content, str) else content
        data = data.replace(b"BEYOND", str(other).encode()).replace(b"SERVER", SERVER.encode())
        (folder / name).write_bytes(data)
        return name

    return make


def path(name: str) -> Maker:
    """A name alone."""
    return lambda _folder, other: name.replace("BEYOND", str(other)).replace("SERVER", SERVER)


def link(name: str, target: str) -> Maker:
    def make(folder: Path, other: Path) -> str:
        (folder / name).symlink_to(other / target if target else folder / name)
        return name

    return make


def pipe(name: str) -> Maker:
    def make(folder: Path, _other: Path) -> str:
        os.mkfifo(folder / name)
        return name

    return make


def zipped(name: str, inner: str, *, twice: bool = False) -> Maker:
    def make(folder: Path, _other: Path) -> str:
        content = geojson()
        for layer in [f"{inner}.zip", inner][0 if twice else 1 :][::-1]:
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as packed:
                packed.writestr(layer, content)
            content = out.getvalue()
        (folder / name).write_bytes(content)
        return name

    return make


VRT = """<OGRVRTDataSource><OGRVRTLayer name="people"><SrcDataSource>BEYOND/people.csv
</SrcDataSource><GeometryField encoding="WKT" field="wkt"/><SrcSQL dialect="sqlite">
SELECT town, 'POLYGON((0 0,1 0,1 '||n||',0 0))' AS wkt FROM people</SrcSQL></OGRVRTLayer>
</OGRVRTDataSource>""".replace("people.csv\n", "people.csv")
WFS = "<OGRWFSDataSource><URL>SERVER/wfs?service=WFS</URL></OGRWFSDataSource>"
GML = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file://BEYOND/people.csv">]>
<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml"
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://ogr.maptools.org/
BEYOND/schema.xsd"><gml:featureMember><ogr:areas fid="1"><ogr:town>&e;</ogr:town><ogr:geometry>
<gml:Polygon><gml:outerBoundaryIs><gml:LinearRing><gml:coordinates>0,0 1,0 1,1 0,0
</gml:coordinates></gml:LinearRing></gml:outerBoundaryIs></gml:Polygon></ogr:geometry></ogr:areas>
</gml:featureMember></ogr:FeatureCollection>"""
KML = """<kml xmlns="http://www.opengis.net/kml/2.2"><Document><NetworkLink><Link>
<href>SERVER/a.kml</href></Link></NetworkLink><Placemark><Polygon/></Placemark></Document></kml>"""
TOPOLOGY = {
    "type": "Topology",
    "arcs": [[[0, 0], [1, 0], [0, 1]]],
    "objects": {"a": {"type": "GeometryCollection", "geometries": []}},
}
STACTA = {
    "type": "Feature",
    "stac_version": "1.0.0",
    "stac_extensions": ["https://stac-extensions.github.io/tiled-assets/v1.0.0/schema.json"],
    "properties": {"tiles:tile_matrix_links": {}, "tiles:tile_matrix_sets": {}},
    "asset_templates": {"a": {"href": "SERVER/{TileMatrix}.tif"}},
}
STAC = {
    "type": "FeatureCollection",
    "stac_version": "1.0.0",
    "features": [
        {
            "type": "Feature",
            "stac_version": "1.0.0",
            "collection": "c",
            "geometry": None,
            "properties": {"town": "a1", "proj:epsg": 4326},
            "assets": {"image": {"href": "SERVER/a.tif"}},
            "links": [{"rel": "next", "href": "SERVER/next"}],
        }
    ],
}
ESRI = {
    "geometryType": "esriGeometryPolygon",
    "exceededTransferLimit": True,
    "spatialReference": {"wkid": 4326},
    "fields": [{"name": "town", "type": "esriFieldTypeString"}],
    "features": [{"attributes": {"town": "a1"}, "geometry": {"rings": [[[0, 0], [1, 1], [1, 0]]]}}],
}


def geopackage(*statements: str, wal: bool = False) -> Maker:
    """A GeoPackage on which somebody has worked with SQL."""

    def make(folder: Path, other: Path) -> str:
        place = folder / "a.gpkg"
        frame().to_file(place, layer="towns")
        if statements:
            db = sqlite3.connect(place)
            db.create_function("ST_IsEmpty", 1, lambda _: 0)
            for name in ("ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY"):
                db.create_function(name, 1, lambda _: 0)
            db.execute("PRAGMA writable_schema = ON")
            for statement in statements:
                db.execute(statement.replace("BEYOND", str(other)))
            db.commit()
            db.close()
        if wal:
            for end in ("-wal", "-journal", "-shm"):
                (folder / f"a.gpkg{end}").write_bytes(
                    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(512)
                )
        return "a.gpkg"

    return make


AS_LAYER = "UPDATE gpkg_contents SET table_name = 'v'"
AS_COLUMN = "UPDATE gpkg_geometry_columns SET table_name = 'v'"


def shapefile(
    without: str = "", links: str = "", prj: str | None = None, cpg: str | None = None
) -> Maker:
    """A shapefile with something odd among its parts."""

    def make(folder: Path, other: Path) -> str:
        frame().to_file(folder / "a.shp")
        if without:
            (folder / f"a{without}").unlink()
        if links:
            (folder / f"a{links}").unlink()
            (folder / f"a{links}").symlink_to(other / "people.csv")
        if prj is not None:
            (folder / "a.prj").write_text(prj.replace("BEYOND", str(other)))
        if cpg is not None:
            (folder / "a.cpg").write_text(cpg)
        for beside in (".qix", ".sbn", ".shp.xml"):
            (folder / f"a{beside}").write_text("not asked for")
        return "a.shp"

    return make


def geoparquet(change: Callable[[dict], None]) -> Maker:
    """GeoParquet whose facts are changed."""

    def make(folder: Path, other: Path) -> str:
        frame().to_parquet(folder / "a.parquet")
        table = pq.read_table(folder / "a.parquet")
        facts = json.loads(table.schema.metadata[b"geo"])
        change(facts)
        said = json.dumps(facts).replace("BEYOND", str(other))
        pq.write_table(table.replace_schema_metadata({"geo": said}), folder / "a.parquet")
        return "a.parquet"

    return make


def _proj(facts: dict) -> None:
    facts["columns"]["geometry"]["crs"] = {"type": "file", "name": "+init=BEYOND/people.csv:a"}


def elsewhere(name: str) -> Maker:
    """Parquet whose footer says that its columns lie in another file."""

    def make(folder: Path, other: Path) -> str:
        kept: list[pq.FileMetaData] = []
        pq.write_table(pa.table(LIST), folder / name, metadata_collector=kept)
        kept[0].set_file_path(str(other / "people.parquet"))
        kept[0].write_metadata_file(str(folder / name))
        return name

    return make


def folder_of(name: str, file: str) -> Maker:
    def make(folder: Path, _other: Path) -> str:
        (folder / name).mkdir()
        (folder / name / file).write_bytes(geojson())
        return name

    return make


HONEST_MAPS: dict[str, Maker] = {
    "GeoJSON": text("a.geojson", geojson()),
    "GeoParquet": geoparquet(lambda _facts: None),
    "GeoPackage": geopackage(),
    "shapefile": shapefile(),
}
PARTS = {"a.shp", "a.shx", "a.dbf", "a.prj", "a.cpg"}

MAPS: dict[str, Maker] = {
    "VRT as GeoJSON": text("a.geojson", VRT),
    "VRT as JSON": text("a.json", VRT),
    "VRT as GeoPackage": text("a.gpkg", VRT),
    "VRT as shapefile": text("a.shp", VRT),
    "VRT as GeoParquet": text("a.parquet", VRT),
    "VRT": text("a.vrt", VRT),
    "WFS as GeoJSON": text("a.geojson", WFS),
    "WFS": text("a.wfs", WFS),
    "GML with a schema as GeoJSON": text("a.geojson", GML),
    "GML with a schema": text("a.gml", GML),
    "KML with links as GeoJSON": text("a.geojson", KML),
    "KML with links": text("a.kml", KML),
    "MapInfo as shapefile": text("a.shp", "!table\n!version 300\nDefinition Table\n  File BEYOND"),
    "vsicurl": path("/vsicurl/SERVER/a.geojson"),
    "vsicurl_streaming": path("/vsicurl_streaming/SERVER/a.geojson"),
    "vsis3": path("/vsis3/bucket/a.geojson"),
    "vsigs": path("/vsigs/bucket/a.geojson"),
    "vsiaz": path("/vsiaz/bucket/a.geojson"),
    "vsizip": path("/vsizip/BEYOND/areas.zip/areas.geojson"),
    "vsizip in braces": path("/vsizip/{BEYOND/areas.zip}/areas.geojson"),
    "vsigzip": path("/vsigzip/BEYOND/areas.geojson.gz"),
    "vsitar": path("/vsitar/BEYOND/areas.tar/areas.geojson"),
    "vsisubfile": path("/vsisubfile/0_1000,BEYOND/areas.geojson"),
    "vsisparse": path("/vsisparse/BEYOND/areas.geojson"),
    "vsicached": path("/vsicached?file=BEYOND/areas.geojson"),
    "vsistdin": path("/vsistdin/"),
    "a server": path("SERVER/a.geojson"),
    "a driver and a server": path("WFS:SERVER/wfs"),
    "a driver and a file": path("GeoJSON:BEYOND/areas.geojson"),
    "a database": path("PG:host=127.0.0.1 port=9"),
    "a file address": path("file://BEYOND/areas.geojson"),
    "zip": zipped("a.zip", "areas.geojson"),
    "zip as shapefile": zipped("a.shp", "areas.geojson"),
    "zip in zip": zipped("a.shp.zip", "areas.geojson", twice=True),
    "gzip as GeoJSON": text("a.geojson", gzip.compress(geojson())),
    "TopoJSON as GeoJSON": text("a.geojson", json.dumps(TOPOLOGY)),
    "ESRI JSON as GeoJSON": text("a.geojson", json.dumps(ESRI)),
    "STAC with assets": text("a.geojson", json.dumps(STAC)),
    "STAC tiles": text("a.json", json.dumps(STACTA)),
    "GeoJSON whose coordinates are told elsewhere": text(
        "a.geojson",
        geojson(crs={"type": "link", "properties": {"href": f"{SERVER}/crs", "type": "proj4"}}),
    ),
    "GeoJSON whose coordinates are told by a file": text(
        "a.geojson",
        geojson(crs={"type": "name", "properties": {"name": "+init=BEYOND/people.csv:a"}}),
    ),
    "GeoPackage with a view as layer": geopackage(
        "CREATE VIEW v AS SELECT fid, geom, town FROM towns", AS_LAYER, AS_COLUMN
    ),
    "GeoPackage with a view over an attached file": geopackage(
        "ATTACH 'BEYOND/people.db' AS p",
        "CREATE VIEW v AS SELECT 1 AS fid, NULL AS geom, town FROM towns",
        "UPDATE sqlite_master SET sql = replace(sql, 'towns', 'p.people') WHERE name = 'v'",
        AS_LAYER,
        AS_COLUMN,
    ),
    "GeoPackage with triggers": geopackage(
        "CREATE TRIGGER t AFTER INSERT ON gpkg_contents BEGIN DELETE FROM towns; END",
        "CREATE TRIGGER u BEFORE UPDATE ON towns BEGIN SELECT load_extension('BEYOND/x'); END",
    ),
    "GeoPackage with a virtual table as layer": geopackage(
        "INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING "
        "VirtualOGR(''BEYOND/people.csv'')')",
        AS_LAYER,
        AS_COLUMN,
    ),
    "GeoPackage with a computed column": geopackage(
        "ALTER TABLE towns ADD COLUMN more AS (zeroblob(1000000000))"
    ),
    "GeoPackage beside journals": geopackage(wal=True),
    "SQLite as GeoPackage": text("a.gpkg", b"SQLite format 3\0" + bytes(4080)),
    "shapefile without its index": shapefile(without=".shx"),
    "shapefile whose table is the table": shapefile(links=".dbf"),
    "shapefile whose coordinates are told by a file": shapefile(prj="+init=BEYOND/people.csv:a"),
    "shapefile whose coordinates are told in PROJ": shapefile(
        prj='PROJCS["x",GEOGCS["y",DATUM["z",SPHEROID["s",1,0]],PRIMEM["g",0],UNIT["d",0.01]],'
        'PROJECTION["custom"],UNIT["m",1],EXTENSION["PROJ4",'
        '"+proj=ob_tran +init=BEYOND/people.csv:a"]]'
    ),
    "shapefile in an odd coding": shapefile(cpg="../../../people"),
    "GeoParquet whose coordinates are told by a file": geoparquet(_proj),
    "GeoParquet that lies elsewhere": elsewhere("a.parquet"),
    "symlink to the table as GeoJSON": link("a.geojson", "people.csv"),
    "symlink to the table as shapefile": link("a.shp", "people.csv"),
    "symlink to the table as GeoParquet": link("a.parquet", "people.parquet"),
    "symlink to itself": link("a.geojson", ""),
    "pipe": pipe("a.geojson"),
    "folder": folder_of("a.gdb", "a00000001.gdbtable"),
    "folder as shapefile": folder_of("a.shp", "a.shp"),
    "standard input": path("/dev/stdin"),
}


def written(name: str, write: Callable[[Path], object]) -> Maker:
    def make(folder: Path, _other: Path) -> str:
        write(folder / name)
        return name

    return make


def _csv(separator: str = ",") -> bytes:
    rows = [separator.join(row) for row in zip(*LIST.values(), strict=True)]
    return "\n".join([separator.join(LIST), *rows, ""]).encode()


def _sqlite(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(county, town)")
    db.execute("CREATE VIEW areas AS SELECT * FROM t")
    db.close()


def _duckdb(path: Path) -> None:
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE VIEW areas AS SELECT 1 AS county, 2 AS town")


def _workbook(path: Path) -> None:
    """A sheet that takes its cells from another file."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("[Content_Types].xml", "<Types/>")
        packed.writestr(
            "xl/externalLinks/_rels/externalLink1.xml.rels",
            '<Relationships><Relationship Target="file:///etc/passwd" TargetMode="External"/>'
            "</Relationships>",
        )


def _tar(path: Path) -> None:
    with tarfile.open(path, "w") as packed:
        member = tarfile.TarInfo("a.csv")
        member.size = len(_csv())
        packed.addfile(member, io.BytesIO(_csv()))


def _lake(folder: Path, other: Path) -> str:
    """A lake of tables: a log that names files elsewhere."""
    log = folder / "lake" / "_delta_log"
    log.mkdir(parents=True)
    added = {"add": {"path": str(other / "people.parquet"), "size": 1, "dataChange": True}}
    (log / f"{0:020}.json").write_text(json.dumps(added))
    return "lake"


def in_partition(folder: Path, _other: Path) -> str:
    (folder / "town=a1").mkdir()
    pl.DataFrame(LIST).write_parquet(folder / "town=a1" / "a.parquet")
    return "town=a1/a.parquet"


ICEBERG = {"format-version": 2, "location": "BEYOND", "snapshots": [{"manifest-list": "BEYOND/x"}]}
SPSS = b"$FL2@(#) SPSS DATA FILE" + bytes(37) + struct.pack("<i", 2) + bytes(200)

HONEST_LISTS: dict[str, Maker] = {
    "CSV": text("a.csv", _csv()),
    "semicolons": text("a.csv", _csv(";")),
    "gzip": text("a.csv.gz", gzip.compress(_csv())),
    "Parquet": written("a.parquet", pl.DataFrame(LIST).write_parquet),
    "Parquet as CSV": written("a.csv", pl.DataFrame(LIST).write_parquet),
}

LISTS: dict[str, Maker] = {
    "CSV as Parquet": text("a.parquet", _csv()),
    "CSV that names files": text(
        "a.csv", "county,town\na,BEYOND/people.csv\na,a1\na,a2\nb,file://BEYOND/people.csv\nb,b1\n"
    ),
    "CSV with formulas": text(
        "a.csv", 'county,town\na,"=HYPERLINK(""SERVER"")"\na,a1\na,a2\nb,b1\n'
    ),
    "CSV with SQL in its header": text(
        "a.csv", "county,town,\"x'}) ; ATTACH 'BEYOND/people.db' AS p; --\"\na,a1,\na,a2,\nb,b1,\n"
    ),
    "a name with SQL": path("a') UNION SELECT * FROM read_csv('BEYOND/people.csv').csv"),
    "a file with SQL in its name": text("a'), read_csv('b.csv", _csv()),
    "a file with a pattern in its name": text("[ab]*.csv", _csv()),
    "a Parquet file with a pattern in its name": written(
        "[ab]?.parquet", pl.DataFrame(LIST).write_parquet
    ),
    "a file in a folder like a partition": in_partition,
    "SQLite as CSV": written("a.csv", _sqlite),
    "SQLite": written("a.sqlite", _sqlite),
    "DuckDB as CSV": written("a.csv", _duckdb),
    "DuckDB as Parquet": written("a.parquet", _duckdb),
    "DuckDB": written("a.duckdb", _duckdb),
    "Parquet that lies elsewhere": elsewhere("a.parquet"),
    "Parquet that lies elsewhere as CSV": elsewhere("a.csv"),
    "JSON": text("a.json", '[{"county": "a", "town": "a1"}]'),
    "JSON as CSV": text("a.csv", '{"county": "a", "$ref": "file://BEYOND/people.csv"}'),
    "lines of JSON": text("a.ndjson", '{"county": "a", "town": "a1"}\n'),
    "workbook": written("a.xlsx", _workbook),
    "workbook as CSV": written("a.csv", _workbook),
    "older workbook": text("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
    "XML with an entity": text("a.csv", GML),
    "XML with an entity as a workbook": text("a.xls", GML),
    "zip": zipped("a.csv.zip", "a.csv"),
    "zip as gzip": zipped("a.csv.gz", "a.csv"),
    "gzip in gzip": text("a.csv.gz", gzip.compress(gzip.compress(_csv()))),
    "zstd as CSV": text("a.csv", b"\x28\xb5\x2f\xfd" + bytes(40)),
    "tar": written("a.tar", _tar),
    "Arrow": written("a.arrow", lambda place: pa.feather.write_feather(pa.table(LIST), place)),
    "ORC": text("a.orc", b"ORC" + bytes(60)),
    "Avro": text("a.avro", b"Obj\x01" + bytes(60)),
    "a lake of tables": _lake,
    "Iceberg": text("a.json", json.dumps(ICEBERG)),
    "SPSS": text("a.sav", SPSS),
    "CSV as SPSS": text("a.sav", _csv()),
    "SPSS as CSV": text("a.csv", SPSS),
    "portable SPSS": text("a.por", b" " * 200 + b"SPSSPORT"),
    "Stata": text("a.dta", b"<stata_dta><header><release>118</release>BEYOND"),
    "SAS": text("a.sas7bdat", bytes(4096)),
    "SAS transport": text(
        "a.xpt", b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!" + bytes(400)
    ),
    "a bucket": path("s3://bucket/people.parquet"),
    "a bucket without slashes": path("s3:bucket/people.parquet"),
    "a server": path("SERVER/people.csv"),
    "a hub": path("hf://datasets/a/people.csv"),
    "a file address": path("file://BEYOND/people.csv"),
    "a file address without slashes": path("file:BEYOND/people.csv"),
    "a home": path("~/people.csv"),
    "a database": path("postgresql://127.0.0.1:9/people"),
    "SQLite by its address": path("sqlite:///BEYOND/people.db"),
    "a connection": path("Driver=SQLite3;Database=BEYOND/people.db"),
    "a pattern of nothing": path("none*/**/*.parquet"),
    "symlink to itself": link("a.csv", ""),
    "pipe": pipe("a.csv"),
    "pipe as Parquet": pipe("a.parquet"),
    "folder": folder_of("a.csv", "a.geojson"),
    "folder of SPSS": folder_of("a.sav", "a.sav"),
    "standard input": path("/dev/stdin"),
}
