"""Shapes of areas as TopoJSON keeps them: borders that areas share, once each.

Rings of grid points are cut where borders meet.
A point is a junction where other than two segments end. Between junctions every ring that has one
segment of a border has all of it, so any segment names its border (its *arc*), and whatever is done
to an arc is done to the areas on both sides.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import (
    Bool,
    Float64,
    Int64,
    IntPair,
    distinct,
    int64,
    run_starts,
    run_sums,
    runs,
    starts_among,
    starts_of,
)
from hedgerow.errors import TableError
from hedgerow.limits import MOST_AREAS_SHOWN
from hedgerow.text import Json


@dataclass(frozen=True, eq=False)
class Topology:
    """Arcs, and the rings that they make.

    Attributes:
        points: int64 (points, 2): arc by arc, of whole steps, both ends included.
        arc_start: int64 (arcs + 1): where each arc begins among the points.
        arcs: int64: ring by ring the arcs that make it: i forwards, ~i backwards.
        ring_start: int64 (rings + 1): where each ring begins among them.
    """

    points: Int64
    arc_start: Int64
    arcs: Int64
    ring_start: Int64

    @classmethod
    def of(cls, points: Int64, ring: Int64, rings: int) -> "Topology":
        """Return the topology of closed rings.

        Args:
            points: int64 (points, 2), at least 0: ring by ring; the first of a ring is not
                repeated, and no two that follow each other are the same.
            ring: int64 (points), ascending: the ring of each.
            rings: how many there are; each has a point.
        """
        start = starts_among(ring, rings)
        size = np.diff(start)
        key = int64(np.unique(points[:, 0] << 31 | points[:, 1], return_inverse=True)[1])
        after = following(start)
        joint = _junctions(key, key[after])
        # where each ring is to begin: at a junction; else at its least point, as its twin
        rank = np.where(joint, key - (1 << 62), key)
        at = np.flatnonzero(rank == np.repeat(np.minimum.reduceat(rank, start[:-1]), size))
        # the points of all rings in order, each ring turned to begin at a point of its own
        place = runs(at[np.searchsorted(at, start[:-1])] - start[:-1], size)
        order = np.repeat(start[:-1], size) + place % np.repeat(size, size)
        key, joint, points, ring = key[order], joint[order], points[order], ring[order]
        edge = _edges(key, key[after])
        is_first = joint.copy()
        is_first[start[:-1]] = True
        first = np.flatnonzero(is_first)
        name = np.minimum.reduceat(edge, first)
        # which way each arc runs the segment that names it
        where = np.flatnonzero(edge == np.repeat(name, np.diff(np.append(first, len(edge)))))
        forwards = (key < key[after])[where[np.searchsorted(where, first)]]
        _, kept, arc = np.unique(name, return_index=True, return_inverse=True)
        same = forwards == forwards[kept][arc]
        end = np.append(first[1:], len(key))
        return cls(
            *_pieces(points, after, first[kept], end[kept]),
            int64(np.where(same, arc, ~arc)),
            starts_among(ring[first], rings),
        )

    @property
    def areas_twice(self) -> Int64:
        """Twice the area of each ring in steps², negative where it turns right: int64 (rings)."""
        x = self.points[:, 0]
        y = self.points[:, 1]
        cross = np.append(x[:-1] * y[1:] - x[1:] * y[:-1], 0)
        cross[self.arc_start[1:] - 1] = 0
        of_arc = run_sums(cross, self.arc_start)
        signed = np.where(self.arcs >= 0, 1, -1) * of_arc[np.maximum(self.arcs, ~self.arcs)]
        return run_sums(signed, self.ring_start)

    def with_points(self, points: Int64, arc: Int64, needed: Bool) -> "Topology":
        """Return the same rings along other points of their arcs, whose ends are the same.

        Args:
            points: int64 (points, 2).
            arc: int64 (points), ascending: the arc of each.
            needed: bool (rings): which keep their arcs as they are where they would vanish.
        """
        start = starts_among(arc, len(self.arc_start) - 1)
        made = replace(self, points=points, arc_start=start)
        gone = np.repeat(needed & (made.areas_twice == 0), np.diff(self.ring_start))
        own = np.split(self.points, self.arc_start[1:-1])
        parts = np.split(points, start[1:-1])
        for whole in distinct(np.maximum(self.arcs, ~self.arcs)[gone]).tolist():
            parts[whole] = own[whole]
        return replace(made, points=np.concatenate(parts), arc_start=starts_of(parts))


def following(start: Int64) -> Int64:
    """Return the place of the next point in the ring of each, of rings that begin at places."""
    after = np.arange(1, start[-1] + 1)
    filled = np.diff(start) > 0
    after[start[1:][filled] - 1] = start[:-1][filled]
    return after


def _edges(one: Int64, other: Int64) -> Int64:
    """Return the number of each segment, whichever way it is run: int64 (segments)."""
    pair = np.minimum(one, other) << 31 | np.maximum(one, other)  # of numbers of points
    return int64(np.unique(pair, return_inverse=True)[1])


def _junctions(key: Int64, following: Int64) -> Bool:
    """Return at which points of the rings other than two segments end."""
    _, once = np.unique(_edges(key, following), return_index=True)
    place, degree = np.unique(np.concatenate([key[once], following[once]]), return_counts=True)
    return np.asarray(degree[np.searchsorted(place, key)] != 2)


def _pieces(points: Int64, after: Int64, first: Int64, end: Int64) -> IntPair:
    """Return the points of some runs, each with the point after it, and where each begins."""
    size = end - first + 1
    start = run_starts(size)
    at = runs(first, size)
    at[start[1:] - 1] = after[end - 1]
    return points[at], start


GRID = 1 << 15
"""Steps of the longer side: of a country on a whole screen, each is a thirtieth of a pixel."""


Polygons = tuple[tuple[tuple[int, ...], ...], ...]
"""Of an area: polygons, the rings of each, the arcs of each ring; empty where it has no place."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """The shapes of all areas of one level; coarser levels are made of them.

    Attributes:
        level: 1, 2, …, of the axis.
        geographic: whether coordinates are degrees of longitude and latitude.
        scale, translate: a point (i, j) stands at ``(i, j) · scale + translate``.
        points, arc_start: the borders, once each (`Topology`): int64.
        areas: the polygons of each node of the level.
        km2: float64 (nodes): the true size of each, on the ground; 0 where it has no place. None
            where the file does not say where on Earth its coordinates are.
    """

    level: int
    geographic: bool
    scale: tuple[float, float]
    translate: tuple[float, float]
    points: Int64
    arc_start: Int64
    areas: tuple[Polygons, ...]
    km2: Float64 | None = None

    def to_json(self, labels: pl.Series) -> str:
        """Return the shapes as TopoJSON, each with its code.

        Args:
            labels: the codes of the level.
        """
        steps = np.diff(self.points, axis=0, prepend=0)
        steps[self.arc_start[:-1]] = self.points[self.arc_start[:-1]]
        geometries: list[Json] = [
            {"type": "MultiPolygon", "id": code, "arcs": area}
            if area
            else {"type": None, "id": code}
            for code, area in zip(labels, self.areas, strict=True)
        ]
        if self.km2 is not None:
            for one, size in zip(geometries, self.km2.tolist(), strict=True):
                one["properties"] = {"km2": size}
        whole = {
            "type": "Topology",
            "coordinates": "geographic" if self.geographic else "projected",
            "transform": {"scale": self.scale, "translate": self.translate},
            "objects": {labels.name: {"type": "GeometryCollection", "geometries": geometries}},
            "arcs": [part.tolist() for part in np.split(steps, self.arc_start[1:-1])],
        }
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str, labels: Sequence[pl.Series], subject: str) -> "Shapes":
        """Return the shapes that `to_json` wrote.

        Args:
            text: that it wrote.
            labels: of each level of the axis its codes.
            subject: how messages name the file.

        Raises:
            TableError: it wrote none like it, or of other areas.
        """
        fault = TableError(f"{subject} has no shapes of this axis's areas as Hedgerow writes them")
        try:
            whole = json.loads(text)
            (name,) = whole["objects"]
            (level,) = [k for k, codes in enumerate(labels, start=1) if codes.name == name]
            given = whole["objects"][name]["geometries"]
            areas = tuple(
                tuple(
                    tuple(tuple(map(_arc, ring)) for ring in polygon)
                    for polygon in each.get("arcs", [])
                )
                for each in given
            )
            sizes = [each["properties"]["km2"] for each in given if "properties" in each]
            parts = [int64(arc).reshape(-1, 2) for arc in whole["arcs"]]
            made = cls(
                level,
                whole["coordinates"] == "geographic",
                _pair(whole["transform"]["scale"]),
                _pair(whole["transform"]["translate"]),
                np.concatenate([np.cumsum(part, axis=0) for part in parts]),
                starts_of(parts),
                areas,
                np.array([_size(each) for each in sizes]) if sizes else None,
            )
            made.check()
            same = made.to_json(labels[level - 1]) == text
        except TableError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError, AttributeError):
            raise fault from None
        if not same:
            raise fault
        return made

    def check(self) -> None:
        """Raise unless points lie on the grid and rings are closed.

        Raises:
            ValueError: they do not.
        """
        if len(self.areas) > MOST_AREAS_SHOWN or (np.diff(self.arc_start) < 2).any():
            raise ValueError
        if not ((self.points >= 0) & (self.points <= 2 * GRID)).all() or min(self.scale) <= 0:
            raise ValueError
        rings = [ring for area in self.areas for polygon in area for ring in polygon]
        arcs = int64([arc for ring in rings for arc in ring])
        size = np.fromiter(map(len, rings), np.int64, len(rings))
        count = len(self.arc_start) - 1
        if (size == 0).any() or not ((arcs < count) & (~arcs < count)).all():
            raise ValueError
        own = np.maximum(arcs, ~arcs)
        backwards = arcs < 0
        low = self.points[self.arc_start[own]]
        high = self.points[self.arc_start[own + 1] - 1]
        begin = np.where(backwards[:, None], high, low)
        end = np.where(backwards[:, None], low, high)
        if not (begin[following(np.cumsum(np.append(0, size)))] == end).all():
            raise ValueError


def _arc(given: Any) -> int:
    if type(given) is not int:
        raise TypeError
    return given


def _size(given: Any) -> float:
    if type(given) is not float or not 0 <= given < inf:
        raise TypeError
    return given


def _pair(given: Any) -> tuple[float, float]:
    one, other = given
    if not (type(one) is type(other) is float and isfinite(one) and isfinite(other)):
        raise TypeError
    return one, other
