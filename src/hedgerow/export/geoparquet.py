"""GeoParquet: one table of a release with the shapes of its areas, which the user brings."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from hedgerow.errors import MachineError, ReleaseError, did_you_mean, machine_errors, shorten
from hedgerow.export.released import library, one_table
from hedgerow.release.release import Release

GEOMETRY = "geometry"
SUFFIXES = (".parquet", ".geoparquet")


@dataclass(frozen=True, slots=True)
class GeoParquet:
    """One table as GeoParquet: the columns of `Release.level`, and a geometry for each row.

    Attributes:
        shapes: a public file of areas that GDAL reads: GeoJSON, GeoPackage, a shapefile, ….
        level: a cuboid by its name in the plan; the released table unless given.
        key: the column of ``shapes`` with the codes; called like the table's unless given.
        column: the table's column with these codes; unless given the one called like ``key``, or
            the last of the table's columns of codes (that ``shapes`` has, where no key is given).

    Example:
        >>> hr.GeoParquet("counties.geojson", level="county", key="GEOID", column="county").key
        'GEOID'
    """

    shapes: str | Path
    level: str | None = None
    key: str | None = None
    column: str | None = None

    def write(self, release: Release, output: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            ReleaseError: another suffix, no such table or column, shapes that cannot be read, two
                shapes of one code, or a code without a shape.
            MachineError: geopandas is missing, or the disk is full.
        """
        if output.suffix.lower() not in SUFFIXES:
            raise ReleaseError(f"the file must end in {' or '.join(SUFFIXES)}, got {output.name!r}")
        library("pyogrio", "geo")
        geopandas = library("geopandas", "geo")
        frame = one_table(release, self.level)
        given = self._read(geopandas)
        codes = [name for name in frame.columns if frame[name].dtype == pl.String]
        column, key = self._columns(codes, [name for name in given.columns if name != GEOMETRY])
        shapes = _shapes(given, key)
        missing = frame.filter(~pl.col(column).is_in(list(shapes)))
        if len(missing):
            raise ReleaseError(
                f"{missing[column].n_unique():,} codes of {column!r} have no shape, such as "
                f"{shorten(missing[column][0], 40)!r}; looked for in {shorten(key, 80)!r} of the "
                f"shapes: name the column with the codes, or a file that has all areas"
            )
        geometry = [shapes[code] for code in frame[column]]
        whole = geopandas.GeoDataFrame(
            frame.to_dict(as_series=False), geometry=geometry, crs=given.crs
        )
        part = output.with_name(f".{os.getpid()}.{output.name}")
        with machine_errors(f"cannot write {str(output)!r}"):
            try:
                whole.to_parquet(part, index=False)
                part.replace(output)
            finally:
                part.unlink(missing_ok=True)

    def _read(self, geopandas: Any) -> Any:
        place = Path(self.shapes)
        if not place.is_file():
            raise ReleaseError(f"there are no shapes in {str(place)!r}")
        try:
            read = geopandas.read_file(place, engine="pyogrio")
        except MemoryError:
            raise MachineError(f"cannot read {str(place)!r}: out of memory") from None
        except Exception as error:  # noqa: BLE001 - GDAL has as many as it has formats
            raise ReleaseError(
                f"the shapes in {str(place)!r} cannot be read ({type(error).__name__}); GeoJSON, "
                f"GeoPackage and shapefiles can"
            ) from None
        if GEOMETRY not in read.columns:
            raise ReleaseError(f"{str(place)!r} has no geometry; name a file of areas")
        return read

    def _columns(self, codes: list[str], given: list[str]) -> tuple[str, str]:
        """Return the column of the table and that of the shapes that have the same codes."""
        for name, there, what in (
            (self.column, codes, "the table has no code column"),
            (self.key, given, "the shapes have no column"),
        ):
            if name is not None and name not in there:
                raise ReleaseError(
                    f"{what} {shorten(name, 80)!r}; there are {shorten(', '.join(there), 300)}"
                    f"{did_you_mean(name, there)}"
                )
        shared = [name for name in codes if name in given]
        column, key = self.column, self.key
        if column is None:
            among = shared if key is None else [key] if key in codes else codes
            column = among[-1] if among else ""
        key = column if key is None else key
        if not column or key not in given:
            raise ReleaseError(
                f"no column of the shapes ({shorten(', '.join(given), 200)}) is called like one "
                f"with codes of the table ({shorten(', '.join(codes), 200)}); name both"
            )
        return column, key


def _shapes(given: Any, key: str) -> dict[str, Any]:
    """Return code → geometry; codes that are whole numbers in the file are read as text."""
    shapes: dict[str, Any] = {}
    for code, shape in zip(given[key], given[GEOMETRY], strict=True):
        if shape is None or str(code) in shapes:
            fault = "no geometry" if shape is None else "two shapes"
            raise ReleaseError(f"the code {shorten(str(code), 40)!r} has {fault} in the shapes")
        shapes[str(code)] = shape
    return shapes
