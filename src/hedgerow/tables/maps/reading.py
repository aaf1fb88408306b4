"""Shapes of the areas of an axis, from a public file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import shapely

from hedgerow.arrays import Bool, Float64, float64, int64, run_numbers
from hedgerow.declared import frozen
from hedgerow.errors import TableError, did_you_mean, shorten
from hedgerow.limits import MOST_AREAS_SHOWN, MOST_POINTS_GIVEN, MOST_POINTS_SHOWN
from hedgerow.tables.maps.drawn import Rings, shapes_of
from hedgerow.tables.maps.formats import read_map
from hedgerow.tables.maps.geometry import MULTIPOLYGON, POLYGON, Areas
from hedgerow.tables.maps.shapes import GRID, Shapes, Topology

SQUARE_METRES, DECIMALS = 1e6, 6
"""Of a square kilometre, and those that tell a square metre."""


@frozen
class AreaCodes:
    """The codes that shapes are wanted for.

    Attributes:
        columns: for each level what the table calls its codes.
        labels: for each level its codes.
        placeless: for each level bool (nodes): which may be without a shape.
    """

    columns: Sequence[str]
    labels: Sequence[pl.Series]
    placeless: Sequence[Bool]


def read_shapes(path: str | Path, codes: AreaCodes, key: str | None = None) -> Shapes:
    """Return the shapes of the areas of one level: the finest of which the file has all.

    Shapes of other codes are left out.

    Args:
        path: of the file.
        codes: of the axis.
        key: the file's column of codes; that of a level, if not given.

    Raises:
        TableError: the file cannot be read, has no such column, lacks areas, or has shapes that are
            no areas.
        MachineError: a library is missing, or there is not enough memory.
    """
    subject = f"the file of shapes {shorten(str(path), 200)!r}"
    given = read_map(Path(path), subject)
    level, file_codes = _level(given, codes, key, subject)
    shapes = dict(zip(file_codes, given.geometry, strict=True))
    labels = codes.labels
    own = [shapes.get(code) for code in labels[level - 1]]
    for label, one, may_lack in zip(
        labels[level - 1], own, codes.placeless[level - 1], strict=True
    ):
        if one is None and not may_lack:
            raise TableError(f"{shorten(label, 40)!r} has no geometry in {subject}")
        if one is None:
            continue
        of = f"the shape of {shorten(label, 40)!r} in {subject}"
        if shapely.get_type_id(one) not in {POLYGON, MULTIPOLYGON}:
            raise TableError(f"{of} is a {one.geom_type}, not an area")
        if one.is_empty:
            raise TableError(f"{of} is empty")
    every = np.array([one for one in own if one is not None], dtype=object)
    if shapely.get_num_coordinates(every).sum() > MOST_POINTS_GIVEN:
        raise TableError(
            f"{subject} has more than {MOST_POINTS_GIVEN:,} points; simplify it "
            "first, as a map of a page needs far fewer"
        )
    if not np.isfinite(shapely.get_coordinates(every)).all():
        raise TableError(f"{subject} has coordinates that are no numbers")
    if np.abs(shapely.get_coordinates(every)).max(initial=0) > 1e12:
        raise TableError(f"{subject} has coordinates beyond 10^12, which no map has")
    polygons = np.array(own, dtype=object)
    # coordinates are degrees as the file says, or else as they look
    west, south, east, north = shapely.total_bounds(polygons)
    in_degrees = west >= -360 and east <= 360 and south >= -90 and north <= 90
    geographic = bool(in_degrees and given.crs.may_be_geographic)
    # the rings of polygons and multipolygons, None for areas without
    parts, area = shapely.get_parts(polygons, return_index=True)
    rings, polygon = shapely.get_rings(parts, return_index=True)
    points, ring = shapely.get_coordinates(rings, return_index=True)
    closing = np.flatnonzero(np.append(np.diff(ring) > 0, True))
    made = shapes_of(
        level,
        len(own),
        Rings(np.delete(points, closing, axis=0), np.delete(ring, closing), polygon, area),
        simplified,
        geographic=geographic,
    )
    sizes = given.crs.sizes(rings)
    if sizes is None:
        return made
    sizes[np.flatnonzero(np.diff(polygon, prepend=-1) == 0)] *= -1  # holes
    km2: Float64 = np.bincount(area[polygon], sizes, len(own)) / SQUARE_METRES
    return replace(made, km2=km2.clip(0.0).round(DECIMALS))


def simplified(topology: Topology, needed: Bool) -> Topology:
    """Return borders of at most `MOST_POINTS_SHOWN`, simplified no more than that takes.

    Args:
        topology: the borders.
        needed: bool (rings): those without which an area would vanish.

    Raises:
        TableError: there are too many borders.
    """
    owner = run_numbers(topology.arc_start)
    lines = shapely.linestrings(float64(topology.points), indices=owner)
    tolerance = 1.0
    while tolerance <= GRID / 64:
        kept = shapely.simplify(lines, tolerance, preserve_topology=False)
        points, arc = shapely.get_coordinates(kept, return_index=True)
        made = topology.with_points(int64(np.rint(points)), arc, needed)
        if len(made.points) <= MOST_POINTS_SHOWN:
            return made
        tolerance *= 1.5
    raise TableError(
        f"the shapes have {len(topology.points):,} border points, too many to draw even "
        f"simplified; give shapes of a coarser level"
    )


def _level(
    given: Areas, codes: AreaCodes, key: str | None, subject: str
) -> tuple[int, list[str | None]]:
    """Return the finest level of which the file has all codes, and its column of them."""
    there = given.names
    if key is not None and key not in there:
        raise TableError(
            f"{subject} has no column {shorten(key, 80)!r}; it has "
            f"{shorten(', '.join(there), 300)}{did_you_mean(key, there)}"
        )
    if not len(given.geometry):
        raise TableError(f"{subject} is empty; it needs one shape an area")
    lacking = []
    levels = list(enumerate(zip(codes.columns, codes.labels, strict=True), start=1))
    for level, (name, labels) in reversed(levels):
        column = key or next((one for one in (name, labels.name) if one in there), None)
        if column is None:
            continue
        read = given.codes(column)
        file_codes = pl.Series(read, dtype=pl.String)
        is_missing = ~labels.is_in(file_codes.implode()) & ~pl.Series(codes.placeless[level - 1])
        missing = labels.filter(is_missing)
        if missing.is_empty():
            twice = file_codes.filter(
                file_codes.is_duplicated() & file_codes.is_in(labels.implode())
            )
            if len(twice):
                raise TableError(
                    f"{subject} has two shapes of {shorten(twice[0], 40)!r}; it needs one an area"
                )
            if len(labels) > MOST_AREAS_SHOWN:
                raise TableError(
                    f"{subject}: a map has at most {MOST_AREAS_SHOWN:,} areas, and {labels.name!r} "
                    f"has {len(labels):,}; give shapes of a coarser level"
                )
            return level, read
        fault = f"{len(missing):,} of {len(labels):,} codes of {labels.name!r} have no shape"
        lacking.append((len(missing), f"{fault}, such as {shorten(missing[0], 40)!r}"))
    if not lacking:
        raise TableError(
            f"no column of {subject} ({shorten(', '.join(there), 200)}) is called like one of the "
            f"axis ({shorten(', '.join(codes.columns), 200)}); name it with shapes_key"
        )
    raise TableError(f"{subject}: {min(lacking)[1]}; give a file with all areas of one level")
