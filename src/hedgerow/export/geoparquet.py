"""GeoParquet: one table of a release with the shapes of its areas, which the user brings.

A map needs every area, so counts of 0 are rows, too, with their intervals. Where nothing was
measured of one, as it lies below a count of 0 and the plan measures survivors, it has no interval.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError, did_you_mean, shorten
from hedgerow.export.released import (
    OF_SHARES,
    SHARE,
    labels_of,
    one_table,
    whole_file,
)
from hedgerow.limits import MOST_ROWS_OF_A_MAP
from hedgerow.machine import check_suffix, library
from hedgerow.plan.cuboids import All
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.records import only_table
from hedgerow.release.release import Release
from hedgerow.tables.counts import label_nodes
from hedgerow.tables.tree import Tree, cell_codes
from hedgerow.text import TextByName

GEOMETRY = "geometry"
SUFFIXES = (".parquet", ".geoparquet")


@frozen
class GeoParquet:
    """One table as GeoParquet: the columns of `Release.level`, and a geometry for each row.

    All areas are rows, counts of 0 included. Those that the shapes list without a geometry have
    none, and those of records without an area (``not_stated``) need not be listed there.

    Attributes:
        shapes: a public file of areas: GeoParquet, GeoJSON, GeoPackage or a shapefile.
        level: a cuboid by its name in the plan; the released table unless given.
        key: the column of ``shapes`` with the codes; called like the table's unless given.
        column: the table's column with these codes; unless given the one called like ``key``, or
            the last of the table's columns of codes (that ``shapes`` has, where no key is given).
        names: whether names of areas are columns, too: ``COLUMN_name``.
        listed: whether rows are positive counts alone.
        share: axis = level of the cells that each count is a share of, {} for the total: columns
            ``share``, ``share_low``, ``share_high`` and ``share_contradicted`` (`Release.ratio`).

    Example:
        >>> hr.GeoParquet("counties.geojson", level="county", key="GEOID", column="county").key
        'GEOID'
    """

    shapes: str | Path
    level: str | None = None
    key: str | None = None
    column: str | None = None
    names: bool = False
    listed: bool = False
    share: TextByName | None = None

    def write(self, release: Release, output: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            ReleaseError: another suffix, no such table or column, shapes that cannot be read, two
                shapes of one code, a code without a shape, or more than 2²² rows.
            MachineError: shapely or pyproj is missing, or the disk is full.
        """
        check_suffix(output, SUFFIXES, "the file", ReleaseError)
        library("shapely", "geo")
        library("pyproj", "geo")
        tree = release.plan.tree
        frame = one_table(release, self.level, share=self.share if self.listed else None)
        codes = [name for name in release.plan.tree.every_column if name in frame.columns]
        formats = import_module("hedgerow.tables.maps.formats")
        place = Path(self.shapes)
        if not place.is_file():
            raise ReleaseError(f"there are no shapes in {str(place)!r}")
        given = formats.read_map(place, f"the file of shapes {str(place)!r}", ReleaseError)
        column, key = self._columns(codes, given.names)
        if not self.listed:
            frame = every_row(release, self.level, self.share)
        if self.names:
            frame = tree.with_names(frame)
        if GEOMETRY in frame.columns:
            raise ReleaseError(
                f"the table has a column {GEOMETRY!r} already, where the shapes would be; choose "
                f"a cuboid without it"
            )
        # code → geometry; of rows without a code, which are no area of ours, none. Publishers
        # list areas that are no place ("no usual address") without a geometry: None.
        shapes = {}
        for own, shape in zip(given.codes(key), given.geometry, strict=True):
            if own in shapes:
                raise ReleaseError(f"the code {shorten(own, 40)!r} has two shapes in the shapes")
            if own is not None:
                shapes[own] = shape
        missing = frame.filter(~pl.col(column).is_in(list(shapes) + no_places(tree, column)))
        if len(missing):
            raise ReleaseError(
                f"{missing[column].n_unique():,} codes of {column!r} have no shape, such as "
                f"{shorten(missing[column][0], 40)!r}; looked for in {shorten(key, 80)!r} of the "
                f"shapes: name the column with the codes, or a file that has all areas"
            )
        geometry = [shapes.get(code) for code in frame[column]]
        # a table with a geometry for each row, and what GeoParquet 1.0 says of it
        shapely = import_module("shapely")
        there = [shape for shape in geometry if shape is not None]
        names = {f"{shape.geom_type}{' Z' * shape.has_z}" for shape in there}
        about = {"encoding": "WKB", "geometry_types": sorted(names), "crs": given.crs.to_json()}
        facts = {"version": "1.0.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: about}}
        written = pa.array(shapely.to_wkb(geometry, flavor="iso"), pa.binary())
        table = frame.to_arrow().append_column(GEOMETRY, written)
        labels = {} if self.share is None else labels_of(release.plan, frame, self.share)
        of = {SHARE: f"{labels[SHARE]}. {OF_SHARES}"} if labels else {}
        whole = table.replace_schema_metadata({"geo": json.dumps(facts)} | of)
        with whole_file(output) as part:
            pq.write_table(whole, part)

    def _columns(self, codes: list[str], given: Sequence[str]) -> tuple[str, str]:
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
        column = self.column
        key = self.key
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


def every_row(release: Release, level: str | None, share: TextByName | None = None) -> pl.DataFrame:
    """Return a table with all cells of its cuboid, row by row, counts of 0 included.

    A cell that public facts say is empty is known to be; one below a count of 0 of a plan that
    measures survivors was not measured, and has neither estimate nor interval.

    Raises:
        ReleaseError: there are too many, or unlisted cells of the cuboid have no estimates.
    """
    plan = release.plan
    tree = plan.tree
    levels = (only_table(plan) if level is None else tree.named(level)) or ()
    if (cells := tree.cells(levels)) > MOST_ROWS_OF_A_MAP:
        raise ReleaseError(
            f"a map of {tree.name_of(levels)!r} has {cells:,} rows, and can have "
            f"{MOST_ROWS_OF_A_MAP:,}; "
            f"name a coarser cuboid with --level, or take positive counts alone with --listed"
        )
    every = label_nodes(tree, levels, cell_codes(tree, levels, np.arange(cells)))
    measured = one_table(release, level, all=True, share=share)
    whole = every.join(measured, on=every.columns, how="left", maintain_order="left")
    filled = [pl.col(COUNT, CONTRADICTED).fill_null(0)]
    if isinstance(plan.measure, All):
        filled.append(pl.col(ESTIMATE, STANDARD_ERROR, LOW, HIGH).fill_null(0))
    return whole.with_columns(*filled)


def no_places(tree: Tree, column: str) -> list[str]:
    """Return the codes of a column that stand for records without an area alone."""
    axis = next(axis for axis in tree.axes if column in axis.columns)
    if axis.not_stated is None:
        return []
    level = axis.columns.index(column) + 1
    return axis.labels[level - 1].filter(pl.Series(axis.is_not_stated(level))).to_list()
