"""Shapefiles of areas: borders (.shp, .shx), the table beside them (.dbf), and where they lie.

(Environmental Systems Research Institute: Shapefile Technical Description, 1998; dBASE III.)
"""

import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from hedgerow.arrays import Array, int64
from hedgerow.errors import TableError
from hedgerow.limits import MOST_BYTES_UNPACKED
from hedgerow.machine import check_plain
from hedgerow.tables.maps.geometry import Areas, Crs, NoMap
from hedgerow.text import Texts

HEADER = 100
"""Bytes before the records of .shp and .shx."""
PARTS, EMPTY = 44, 12
"""Bytes of a record before its sizes: its own header of 8, its kind, bounds; of one without."""
NOTHING, AREAS = 0, {5, 15, 25}
"""Kinds of shapes: none, and polygons, flat or with heights or measures after the points."""
FIELD, LAST_FIELD = 32, b"\r"
"""Bytes that describe a field of the table, and what follows the last."""
NUMBERS = b"NF"
CODINGS = {"65001": "utf-8", "88591": "latin-1"}
AT_ONCE, MOST_NESTED = 256, 1_000_000
"""Holes that are looked for together; outer rings that may be found around all of an area's."""


def read_shapefile(path: Path) -> Areas:
    """Return the areas of a shapefile.

    Raises:
        NoMap: a part is missing, they do not fit each other, or it has other shapes.
    """
    borders, index, table = (_part(path, suffix) for suffix in (".shp", ".shx", ".dbf"))
    if borders is None or index is None or table is None:
        raise NoMap("a shapefile needs its .shx and its .dbf beside its .shp, of the same name")
    starts = np.frombuffer(index, ">i4", (len(index) - HEADER) // 4, HEADER)[::2]
    names, kinds, rows = _rows(table)
    if len(starts) != len(rows):
        raise NoMap(f"its .dbf has {len(rows):,} rows for {len(starts):,} shapes")
    kept = rows["deleted"] != b"*"
    shapes = []
    left = len(borders)
    for start in (int64(starts) * 2)[kept].tolist():
        rings, size = _rings(borders, start)
        left -= size
        if left < 0:  # records of the index that are the same ones again
            raise NoMap("its .shx names more shapes than its .shp has")
        shapes.append(None if rings is None else _polygons(rings))
    # the name of the coding of a table's texts, as a .cpg states it
    stated_name = (_part(path, ".cpg") or b"").decode("ascii", "replace").strip()
    number = re.sub(r"\D", "", stated_name)
    is_named = stated_name.lower().startswith("utf") or not number
    stated = _part(path, ".prj")
    coding = stated_name or None if is_named else CODINGS.get(number, f"cp{number}")

    def values(name: str) -> Sequence[Any]:
        place = names.index(name)
        return [_value(each, kinds[place], coding) for each in rows[f"f{place}"][kept].tolist()]

    geometry = np.array([*shapes, None], dtype=object)[:-1]
    crs = Crs() if stated is None else Crs.of_text(stated.decode("utf-8", "replace").strip())
    return Areas(names, values, geometry, crs)


def _part(path: Path, suffix: str) -> bytes | None:
    """Return the content of a part of a shapefile, None where there is none."""
    for name in (path.with_suffix(suffix), path.with_suffix(suffix.upper())):
        if name.exists():
            check_plain(name, f"its {suffix}", TableError)
            if name.stat().st_size > MOST_BYTES_UNPACKED:
                raise NoMap(f"its {suffix} is larger than 0.6 GB; simplify it first")
            return name.read_bytes()
    return None


def _rings(borders: bytes, start: int) -> tuple[list[NDArray[np.float64]] | None, int]:
    """Return the rings of a record, float64 (points, 2) each, and how many bytes it has at least.

    Of a record without a shape: None.
    """
    (kind,) = struct.unpack_from("<i", borders, start + 8)
    if kind == NOTHING:
        return None, EMPTY
    if kind not in AREAS:
        raise NoMap("it has points or lines, and needs areas")
    parts, points = struct.unpack_from("<2I", borders, start + PARTS)
    at = start + PARTS + 8
    end = at + 4 * parts + 16 * points
    if end > len(borders):
        raise NoMap("it has a shape that breaks off")
    first = np.frombuffer(borders, "<i4", parts, at)
    where = np.frombuffer(borders, "<f8", 2 * points, at + 4 * parts).reshape(-1, 2)
    if parts == 0 or first[0] != 0 or (np.diff(first) < 0).any() or first[-1] > points:
        raise NoMap("it has a shape whose parts do not follow each other")
    return [ring for ring in np.split(where, first[1:]) if len(ring) >= 3], end - start


def _polygons(rings: list[NDArray[np.float64]]) -> Any:
    """Return the area of some rings: outer ones turn right, and holes left."""
    if not rings:
        return shapely.Polygon()
    lines = np.array([shapely.LinearRing(ring) for ring in rings])
    is_hole = shapely.is_ccw(lines)
    if is_hole[0]:  # written the other way round
        is_hole = ~is_hole
    outers = shapely.polygons(lines[~is_hole])
    holes = lines[is_hole]
    owner = _owners(outers, holes)
    holes, owner = holes[np.argsort(owner, kind="stable")], np.sort(owner)
    own = np.split(holes, np.searchsorted(owner, np.arange(len(outers))))
    parts = [
        shapely.Polygon(outer.exterior, list(inner))
        for outer, inner in zip(outers, own[1:], strict=True)
    ]
    parts += list(shapely.polygons(own[0]))
    return parts[0] if len(parts) == 1 else shapely.multipolygons(parts)


def _owners(outers: Array, holes: Array) -> NDArray[np.int64]:
    """Return the least outer ring around each hole: int64 (holes); -1 where there is none."""
    owner = np.full(len(holes), 0 if len(outers) == 1 else -1)
    if len(outers) == 1 or not len(holes):
        return owner
    tree = shapely.STRtree(outers)
    sizes = shapely.area(outers)
    pairs = 0
    own = shapely.area(shapely.polygons(holes))
    for begin in range(0, len(holes), AT_ONCE):
        corners = shapely.get_point(holes[begin : begin + AT_ONCE], 0)
        hole, outer = tree.query(corners, predicate="intersects")
        pairs += len(hole)
        if pairs > MOST_NESTED:
            raise NoMap("it has an area of which too many rings lie on one another")
        fits = sizes[outer] >= own[hole + begin]
        order = np.argsort(-sizes[outer[fits]], kind="stable")  # the least one is written last
        owner[hole[fits][order] + begin] = outer[fits][order]
    return owner


def _rows(table: bytes) -> tuple[Texts, bytes, Array]:
    """Return the fields of a .dbf, their kinds, and its rows: ``deleted``, ``f0``, ``f1``, …."""
    count, start, size = struct.unpack_from("<IHH", table, 4)
    fields = [table[at : at + FIELD] for at in range(FIELD, start - 1, FIELD)]
    ends = [place for place, field in enumerate(fields) if field.startswith(LAST_FIELD)]
    fields = fields[: ends[0]] if ends else fields
    names = tuple(
        field[:11].partition(b"\0")[0].decode("utf-8", "replace").strip() for field in fields
    )
    kinds = [("deleted", "S1"), *((f"f{i}", f"S{field[16]}") for i, field in enumerate(fields))]
    row = np.dtype(kinds)
    if row.itemsize != size or start + count * size > len(table):
        raise NoMap("its .dbf is not as long as it says")
    return (
        names,
        b"".join(field[11:12] for field in fields),
        np.frombuffer(table, row, count, start),
    )


def _value(given: bytes, kind: int, coding: str | None) -> Any:
    """Return what a field holds; None where it is empty."""
    try:
        text = given.decode(coding or "utf-8").strip(" \0")
    except (UnicodeDecodeError, LookupError):
        text = given.decode("latin-1").strip(" \0")
    if kind in NUMBERS and "." in text:
        return float(text)
    return text or None
