"""Rings of areas, brought onto a grid with every border once."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import (
    Bool,
    Float64,
    Int64,
    IntPair,
    distinct,
    int64,
    int64_zeros,
    starts_among,
    starts_of,
)
from hedgerow.tables.maps.shapes import GRID, Polygons, Shapes, Topology, following

FULL_TURN = 360.0
SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
"""Its corners, in steps from the lower left one."""

Simplify = Callable[[Topology, Bool], Topology]
"""Takes borders, and bool (rings): those without which an area would vanish."""


@dataclass(frozen=True, eq=False)
class Rings:
    """The rings of polygons of areas, each in full.

    Attributes:
        points: float64 (points, 2), ring by ring; the first of a ring is not repeated.
        ring: int64 (points), ascending: the ring of each.
        polygon: int64 (rings), ascending: the polygon of each, its outer ring first.
        area: int64 (polygons), ascending: the area of each.
    """

    points: Float64
    ring: Int64
    polygon: Int64
    area: Int64


def shapes_of(
    level: int, areas: int, rings: Rings, simplify: Simplify, *, geographic: bool
) -> Shapes:
    """Return the simplified shapes of the areas of a level.

    Neighbours share a border where they have the same points on the grid, of which the longer side
    has 2¹⁵ steps. Rings that vanish on it are left out, but no area is.

    Args:
        level: of the axis.
        areas: how many there are.
        rings: of those that have a shape.
        simplify: the borders.
        geographic: whether points are in degrees.

    Raises:
        TableError: there are too many borders.
    """
    where = rings.points
    if geographic:
        where = np.column_stack([unwrapped(where[:, 0]), where[:, 1]])
    translate = where.min(axis=0)
    scale = float(np.ptp(where, axis=0).max()) / GRID or 1.0
    steps = int64(np.rint((where - translate) / scale))
    owner = rings.area[rings.polygon]
    points, ring = _on_grid(steps, rings.ring, owner, areas)
    keeps = distinct(ring)
    topology = Topology.of(points, np.searchsorted(keeps, ring), len(keeps))
    largest = _largest(np.abs(topology.areas_twice), owner[keeps], areas)
    needed = np.isin(np.arange(len(keeps)), largest)
    topology, polygons = _polygons(simplify(topology, needed), keeps, rings, areas)
    corner = (float(translate[0]), float(translate[1]))
    return Shapes(
        level, geographic, (scale, scale), corner, topology.points, topology.arc_start, polygons
    )


def unwrapped(longitudes: Float64) -> Float64:
    """Return longitudes so that areas on both sides of the date line stand beside each other."""
    if not len(longitudes) or np.ptp(longitudes) <= FULL_TURN / 2:
        return longitudes
    every = distinct(longitudes)
    gaps = np.diff(every)
    if gaps.max() <= FULL_TURN - np.ptp(every):
        return longitudes
    return np.where(longitudes <= every[np.argmax(gaps)], longitudes + FULL_TURN, longitudes)


def _on_grid(points: Int64, ring: Int64, area: Int64, areas: int) -> IntPair:
    """Return rings without repeated points; one of each area that would vanish is a small square.

    Returns:
        points: int64 (points, 2).
        ring: int64 (points), ascending: the ring of each; rings without any have vanished.
    """
    rings = len(area)
    start = starts_among(ring, rings)
    before = np.arange(-1, len(ring) - 1)
    before[start[:-1]] = start[1:] - 1
    differs = (points != points[before]).any(axis=1)
    points, ring = points[differs], ring[differs]
    # twice the area of each ring: int64 (rings); 0 for those with fewer than 3 points
    begin = starts_among(ring, rings)
    after = following(begin)
    x = points[:, 0]
    y = points[:, 1]
    cross = x * y[after] - x[after] * y
    sums = int64_zeros(rings)
    np.add.at(sums, ring, cross)
    size = np.abs(sums)
    largest = _largest(size, area, areas)
    lost = largest[(largest >= 0) & (size[np.maximum(largest, 0)] == 0)]
    is_kept = (size > 0)[ring]
    corner = int64_zeros((rings, 2))
    corner[ring[::-1]] = points[::-1]
    added = (corner[lost][:, None, :] + SQUARE).reshape(-1, 2)
    points = np.concatenate([points[is_kept], added])
    ring = np.concatenate([ring[is_kept], np.repeat(lost, len(SQUARE))])
    order = np.argsort(ring, kind="stable")
    return points[order], ring[order]


def _largest(size: Int64, area: Int64, areas: int) -> Int64:
    """Return the largest ring of each area; -1 where it has none."""
    order = np.lexsort((size, area))
    largest = np.full(areas, -1, dtype=np.int64)
    largest[area[order]] = order
    return largest


def _polygons(
    topology: Topology, keeps: Int64, rings: Rings, areas: int
) -> tuple[Topology, tuple[Polygons, ...]]:
    """Return the polygons of each area, and the borders that they have, numbered anew.

    Of the rings those that have not vanished, the outer one of a polygon first.
    """
    outer = np.flatnonzero(np.diff(rings.polygon, prepend=-1) > 0)
    is_there = topology.areas_twice != 0
    is_there &= np.isin(outer, keeps[is_there])[rings.polygon[keeps]]
    size = np.diff(topology.ring_start)
    arcs = topology.arcs[np.repeat(is_there, size)]
    used, new = np.unique(np.maximum(arcs, ~arcs), return_inverse=True)
    arcs = np.where(arcs >= 0, new, ~new)
    runs = np.split(topology.points, topology.arc_start[1:-1])
    parts = [runs[i] for i in used.tolist()]
    topology = replace(topology, points=np.concatenate(parts), arc_start=starts_of(parts))
    of_polygon = dict[int, list[tuple[int, ...]]]()
    each = np.split(arcs, np.cumsum(size[is_there])[:-1])
    for polygon, ring in zip(rings.polygon[keeps[is_there]].tolist(), each, strict=True):
        of_polygon.setdefault(polygon, []).append(tuple(ring.tolist()))
    made: list[list[tuple[tuple[int, ...], ...]]] = [[] for _ in range(areas)]
    for polygon, own in of_polygon.items():
        made[int(rings.area[polygon])].append(tuple(own))
    return topology, tuple(map(tuple, made))
