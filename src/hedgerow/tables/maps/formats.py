"""Public files of areas: GeoParquet, GeoJSON, GeoPackage and shapefiles, and nothing else.

A library that opens a map by its content also opens what the content names: the confidential table,
another file, a server. So the format is told here, by the suffix and the first bytes, and each of
the four is read by a reader that knows no other, opens the named file alone (of a shapefile its
declared parts, too), and compares what it is about to make with what a map may have.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.types
import shapely
from shapely.geometry import shape

from hedgerow.declared import frozen
from hedgerow.errors import HedgerowError, MachineError, TableError
from hedgerow.limits import MOST_BYTES_OF_A_MAP, MOST_BYTES_UNPACKED, MOST_VALUES_OF_A_MAP
from hedgerow.machine import check_plain
from hedgerow.tables.maps.geometry import Areas, Crs, NoMap, from_wkb
from hedgerow.tables.maps.geopackage import read_geopackage
from hedgerow.tables.maps.shapefile import read_shapefile
from hedgerow.tables.sources.parquet_pages import bytes_of_chunk
from hedgerow.text import Json

FORMATS = "GeoParquet, GeoJSON, GeoPackage or a shapefile"
MARKS = {b",": 1, b"[": 1, b'"': 1, b"{": 3}
"""Each as often as it may stand for 53 bytes in memory, a third of a point [0.5,0.5]."""
BYTES_A_ROW = 128
"""Of a column in memory, beside what it holds: as Parquet's, as Python's, and as text."""
PACKED = (
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"7z\xbc\xaf",
    b"BZh",
    b"\xfd7zXZ",
    b"(\xb5/\xfd",
)
"""How files of zip, gzip, 7-Zip, bzip2, xz and zstd begin."""


@frozen
class Format:
    """A format of maps.

    Attributes:
        name: what it is called.
        begins: how its files begin, as a pattern.
        read: what reads one.
    """

    name: str
    begins: re.Pattern[bytes]
    read: Callable[[Path], Areas]


def read_map(path: Path, subject: str, fault: type[HedgerowError] = TableError) -> Areas:
    """Return the areas of a public file.

    Args:
        path: of the file.
        subject: how messages name it.
        fault: the error that is raised where it has no shapes or cannot be read.

    Raises:
        MachineError: memory is short, or reading is not permitted.
    """
    if not os.path.lexists(path):
        raise fault(f"{subject} does not exist; check its path")
    check_plain(path, subject, fault)
    with _explained(subject, fault):
        # the format is what both the suffix and the first bytes of the file tell
        if path.stat().st_size > MOST_BYTES_OF_A_MAP:
            raise fault(f"{subject} is larger than 1 GB; simplify it first")
        with path.open("rb") as file:
            start = file.read(100)
        if start.startswith(PACKED) or path.suffix.lower() in {".zip", ".gz", ".shz"}:
            raise fault(f"{subject} is packed; unpack it, and name the file of areas in it")
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise fault(
                f"{subject} cannot be read: it must end in {', '.join(READERS)}; give {FORMATS}"
            )
        if not reader.begins.match(start):
            raise fault(
                f"{subject} cannot be read: it ends in {path.suffix}, and does not begin as "
                f"{reader.name} does; give {FORMATS}"
            )
        areas = reader.read(path)

    def values(name: str) -> Sequence[Any]:
        with _explained(subject, fault):
            return areas.values(name)

    return replace(areas, values=values)


@contextmanager
def _explained(subject: str, fault: type[HedgerowError]) -> Iterator[None]:
    """Turn whatever a damaged file breaks into one sentence."""
    try:
        with np.errstate(invalid="ignore"):  # of coordinates that are no numbers
            yield
    except MemoryError:
        raise MachineError(f"cannot read {subject}: out of memory") from None
    except PermissionError:
        raise MachineError(f"no permission to read {subject}") from None
    except (NoMap, TableError) as error:
        said = str(error) if subject in str(error) else f"{subject} cannot be read: {error}"
        raise fault(said) from None
    except HedgerowError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a library raises
        raise fault(
            f"{subject} cannot be read ({type(error).__name__}); it is damaged, or holds more "
            f"than {FORMATS} may"
        ) from None


def _read_json(path: Path) -> Areas:
    """Return the features of a GeoJSON file; their geometries are made while it is read."""
    content = path.read_bytes()
    if sum(content.count(mark) * times for mark, times in MARKS.items()) > MOST_VALUES_OF_A_MAP:
        raise NoMap(f"it has more than {MOST_VALUES_OF_A_MAP:,} values; simplify it first")
    whole = json.loads(content.decode("utf-8-sig"), object_hook=_geometry)
    match whole:
        case {"type": "FeatureCollection", "features": list(features)}:
            pass
        case {"type": "Feature"}:
            features = [whole]
        case _:
            raise NoMap("it is JSON, but not GeoJSON (RFC 7946) with features")
    geometry = np.empty(len(features), dtype=object)
    rows = []
    for place, feature in enumerate(features):
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            raise NoMap(f"feature {place + 1} is not what GeoJSON calls a Feature")
        here = feature.get("geometry")
        own = feature.get("properties") or {}
        if not (here is None or shapely.is_geometry(here)):
            raise NoMap(f"feature {place + 1} has a geometry that is no area")
        if not isinstance(own, dict):
            raise NoMap(f"feature {place + 1} has properties without names")
        geometry[place] = here
        rows.append({"id": feature["id"], **own} if "id" in feature else own)
    names = tuple(dict.fromkeys(chain.from_iterable(rows)))
    return Areas(names, lambda name: [row.get(name) for row in rows], geometry, _json_crs(whole))


SIMPLE = ("Point", "LineString", "Polygon", "MultiPolygon")


def _geometry(given: Json) -> Any:
    """Return an object of JSON; a geometry in place of one that tells its own."""
    if given.keys() >= {"type", "coordinates"} and given["type"] in SIMPLE:
        return shape(given)
    return given


def _json_crs(whole: Json) -> Crs:
    """Return the coordinate reference system: longitude and latitude, unless an old file says."""
    match whole.get("crs"):
        case {"type": "name", "properties": {"name": str(name)}}:
            code = re.fullmatch(r"(?:urn:ogc:def:crs:)?(EPSG|ESRI|OGC):[\w.]*:?(\w{1,12})", name)
            if code is None or code[1] != "OGC":
                return Crs.of_code(code[1], code[2]) if code else Crs()
    return Crs.of_code("EPSG", "4326")


def _read_parquet(path: Path) -> Areas:
    """Return the rows of a GeoParquet file; a column of codes is read when it is asked for."""
    with path.open("rb") as file:
        about = pq.read_metadata(file)
    stated = (about.metadata or {}).get(b"geo")
    if stated is None:
        raise NoMap(
            'it is Parquet, but not GeoParquet: its metadata have no "geo"; save it as GeoParquet'
        )
    facts = json.loads(stated)
    own = facts["primary_column"]
    column = facts["columns"][own]
    if column.get("encoding") != "WKB":
        raise NoMap("its geometry is not written as WKB; write it so")
    schema = about.schema.to_arrow_schema()
    names = tuple(
        name
        for name in schema.names
        if name != own and not pyarrow.types.is_nested(schema.field(name).type)
    )
    crs = Crs.of_json(column["crs"]) if "crs" in column else Crs.of_code("OGC", "CRS84")
    values = partial(_parquet_column, path)
    return Areas(names, values, from_wkb(values(own)), crs)


def _parquet_column(path: Path, name: str) -> Sequence[Any]:
    """Return a column of a Parquet file whose pages are together no larger than a map may be."""
    with path.open("rb") as file:
        opened = pq.ParquetFile(file)
        about = opened.metadata
        # the only column that is read under the name; fields within others may have it, too
        schema = about.schema
        paths = [schema.column(place).path for place in range(len(schema))]
        read = [place for place, path in enumerate(paths) if f"{path}.".startswith(f"{name}.")]
        is_alone = [paths[place] for place in read] == [name]
        if not is_alone or schema.column(read[0]).max_repetition_level:
            raise NoMap(f"it needs one column {name!r}, of single values; write it so")
        place = read[0]
        size = 0
        for number in range(about.num_row_groups):
            group = about.row_group(number)
            size += group.num_rows * BYTES_A_ROW
            size += bytes_of_chunk(file, group.column(place), group.num_rows, MOST_BYTES_UNPACKED)
        if size > MOST_BYTES_UNPACKED:
            raise NoMap(
                f"its column {name!r} may unpack to {size / 1e9:,.2f} GB; simplify it first"
            )
        values: list[Any] = opened.read(columns=[name]).column(name).to_pylist()
    return values


JSON = Format("GeoJSON", re.compile(rb"(?:\xef\xbb\xbf)?\s*\{"), _read_json)
PARQUET = Format("GeoParquet", re.compile(rb"PAR1"), _read_parquet)
GEOPACKAGE = Format("a GeoPackage", re.compile(rb"SQLite format 3\0"), read_geopackage)
SHAPEFILE = Format("a shapefile", re.compile(rb"\0\0\x27\x0a"), read_shapefile)
READERS = {
    ".parquet": PARQUET,
    ".geoparquet": PARQUET,
    ".geojson": JSON,
    ".json": JSON,
    ".gpkg": GEOPACKAGE,
    ".shp": SHAPEFILE,
}
"""The format for each suffix."""
