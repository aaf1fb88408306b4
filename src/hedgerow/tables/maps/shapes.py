"""Shapes of the areas of one level of an axis, as TopoJSON keeps them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import TableError
from hedgerow.limits import MOST_AREAS_SHOWN
from hedgerow.tables.maps.topology import following, starts_of

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
    """

    level: int
    geographic: bool
    scale: tuple[float, float]
    translate: tuple[float, float]
    points: Int64
    arc_start: Int64
    areas: tuple[Polygons, ...]

    def to_json(self, labels: pl.Series) -> str:
        """Return the shapes as TopoJSON, each with its code.

        Args:
            labels: the codes of the level.
        """
        steps = np.diff(self.points, axis=0, prepend=0)
        steps[self.arc_start[:-1]] = self.points[self.arc_start[:-1]]
        geometries = [
            {"type": "MultiPolygon", "id": code, "arcs": area}
            if area
            else {"type": None, "id": code}
            for code, area in zip(labels, self.areas, strict=True)
        ]
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
                    tuple(tuple(_arc(arc) for arc in ring) for ring in polygon)
                    for polygon in each.get("arcs", [])
                )
                for each in given
            )
            parts = [np.array(arc, dtype=np.int64).reshape(-1, 2) for arc in whole["arcs"]]
            made = cls(
                level,
                whole["coordinates"] == "geographic",
                _pair(whole["transform"]["scale"]),
                _pair(whole["transform"]["translate"]),
                np.concatenate([np.cumsum(part, axis=0) for part in parts]),
                starts_of(parts),
                areas,
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
        arcs = np.array([arc for ring in rings for arc in ring], dtype=np.int64)
        size = np.fromiter(map(len, rings), np.int64, len(rings))
        count = len(self.arc_start) - 1
        if (size == 0).any() or not ((arcs < count) & (~arcs < count)).all():
            raise ValueError
        own, backwards = np.maximum(arcs, ~arcs), arcs < 0
        low, high = self.points[self.arc_start[own]], self.points[self.arc_start[own + 1] - 1]
        begin = np.where(backwards[:, None], high, low)
        end = np.where(backwards[:, None], low, high)
        if not (begin[following(np.cumsum(np.append(0, size)))] == end).all():
            raise ValueError


def _arc(given: Any) -> int:
    if type(given) is not int:
        raise TypeError
    return given


def _pair(given: Any) -> tuple[float, float]:
    one, other = given
    if not (type(one) is type(other) is float and isfinite(one) and isfinite(other)):
        raise TypeError
    return one, other
