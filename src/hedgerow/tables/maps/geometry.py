"""What every reader of maps returns: areas, their codes, and where they lie."""

import json
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from hedgerow.arrays import Array, Float64
from hedgerow.limits import MOST_CRS
from hedgerow.machine import library
from hedgerow.text import Json, Texts

POLYGON, MULTIPOLYGON = 3, 6
"""The numbers of areas, in well-known binary and in shapely."""
SINGLE = {1, 2, POLYGON, MULTIPOLYGON}
QUARTER_TURN, DUST = 90.0, 1e-9
"""The farthest latitude, in degrees, and what rounding adds to one."""
Z, M, SRID = 0x80000000, 0x40000000, 0x20000000


class NoMap(Exception):  # noqa: N818 - the sentence within another
    """What a file has that no map has: the end of a sentence."""


@dataclass(frozen=True)
class Crs:
    """A coordinate reference system as a file states it, if it states one that is known.

    Attributes:
        system: of pyproj; None where it is not known.
    """

    system: Any = None

    @classmethod
    def of_code(cls, authority: str, code: str) -> "Crs":
        """Return the system that an authority has under a code."""
        return cls._made(lambda crs: crs.from_authority(authority, code))

    @classmethod
    def of_text(cls, text: str) -> "Crs":
        """Return the system of well-known text, never one that another file defines."""
        if len(text) > MOST_CRS or re.search(r"\binit\s*=", text, re.IGNORECASE):
            return cls()

        def made(crs: Any) -> Any:
            system = crs.from_wkt(text)
            authority = system.to_authority()  # in full, where a shapefile has the names alone
            return system if authority is None else crs.from_authority(*authority)

        return cls._made(made)

    @classmethod
    def of_json(cls, given: Json | None) -> "Crs":
        """Return the system of PROJJSON."""
        if given is None or len(json.dumps(given)) > MOST_CRS:
            return cls()
        return cls._made(lambda crs: crs.from_json_dict(dict(given)))

    @classmethod
    def _made(cls, make: Callable[[Any], Any]) -> "Crs":
        pyproj = library("pyproj", "geo", "a map")
        try:
            system = make(pyproj.CRS)
            return cls(None if system.is_engineering else system)  # "undefined", in full
        except pyproj.exceptions.CRSError:
            return cls()

    @property
    def may_be_geographic(self) -> bool:
        """Whether coordinates are degrees, as far as the file says."""
        return self.system is None or bool(self.system.is_geographic)

    def sizes(self, rings: Array) -> Float64 | None:
        """Return what rings enclose on the ellipsoid: float64 (rings), square metres.

        Corners are joined by the shortest lines on it, geodesics.

        Args:
            rings: object (rings): of shapely.

        Returns:
            None where the system is not known, or has no way back to its globe, or a corner is
            nowhere on it.
        """
        globe = None if self.system is None else self.system.geodetic_crs
        if globe is None or not (self.system.is_geographic or self.system.is_projected):
            return None
        pyproj = library("pyproj", "geo", "a map")
        points, ring = shapely.get_coordinates(rings, return_index=True)
        factor = globe.axis_info[0].unit_conversion_factor  # radians; some are in gons
        ends = np.flatnonzero(np.diff(ring)) + 1
        try:
            # to the datum that it has, so that no file of shifts between datums is looked for
            to_globe = pyproj.Transformer.from_crs(self.system, globe, always_xy=True)
            east, north = np.degrees(np.array(to_globe.transform(*points.T)) * factor)
            if not (np.isfinite(east) & (np.abs(north) < QUARTER_TURN + DUST)).all():
                return None
            geod, north = globe.get_geod(), north.clip(-QUARTER_TURN, QUARTER_TURN)
            each = zip(np.split(east, ends), np.split(north, ends), strict=True)
            found = np.array([abs(geod.polygon_area_perimeter(*one)[0]) for one in each])
        except (pyproj.exceptions.ProjError, OverflowError):
            return None
        return found if np.isfinite(found).all() else None

    def to_json(self) -> Json | None:
        """Return PROJJSON; None of a system that is not known."""
        return None if self.system is None else self.system.to_json_dict()


@dataclass(frozen=True, eq=False)
class Areas:
    """Areas of a file, row by row.

    Attributes:
        names: of the columns that may hold codes.
        values: returns those of a column.
        geometry: object (areas): of shapely; None where an area has none.
        crs: of the coordinates.
    """

    names: Texts
    values: Callable[[str], Sequence[Any]]
    geometry: Array
    crs: Crs

    def codes(self, name: str) -> list[str | None]:
        """Return the codes of a column as text; None where one is missing.

        Whole numbers are floats in some formats, and in others where an area has none.
        """
        return [_code(value) for value in self.values(name)]


def _code(value: Any) -> str | None:
    if isinstance(value, float):
        return None if value != value else str(int(value) if value.is_integer() else value)  # noqa: PLR0124 - no number is NaN
    return None if value is None else str(value)


def from_wkb(values: Iterable[bytes | None]) -> Array:
    """Return geometries of well-known binary: points, lines and areas.

    GEOS follows collections in collections until the stack ends, and the process with it; so what
    is no simple geometry is refused here.

    Raises:
        NoMap: one is none.
    """
    given = np.array([*values, None], dtype=object)[:-1]
    for value in given:
        if value is not None:
            try:
                kind, _, at = _head(value, 0)
                if kind not in SINGLE:
                    raise NoMap("it has a geometry that is no area")
                if kind == MULTIPOLYGON:
                    (parts,) = struct.unpack_from(_order(value, 0) + "I", value, at)
                    at += 4
                    for _ in range(parts):
                        at = _end_of_polygon(value, at)
            except struct.error:
                raise NoMap("it has a geometry that breaks off") from None
    made: Array = shapely.from_wkb(given)
    return made


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the kind of the geometry at a place, its numbers a point, and where it goes on."""
    (word,) = struct.unpack_from(_order(data, at) + "I", data, at + 1)
    kind = word & ~(Z | M | SRID)
    sizes = {0: 2, 1: 3, 2: 3, 3: 4}.get(kind // 1000, 0) + bool(word & Z) + bool(word & M)
    return kind % 1000, sizes, at + (9 if word & SRID else 5)


def _order(data: bytes, at: int) -> str:
    return "<" if data[at : at + 1] == b"\1" else ">"


def _end_of_polygon(data: bytes, at: int) -> int:
    order = _order(data, at)
    kind, numbers, at = _head(data, at)
    if kind != POLYGON:
        raise NoMap("it has an area of parts that are no areas")
    (rings,) = struct.unpack_from(order + "I", data, at)
    at += 4
    for _ in range(rings):
        (points,) = struct.unpack_from(order + "I", data, at)
        at += 4 + points * numbers * 8
    return at
