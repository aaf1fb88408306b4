"""Squares of nested grids as shapes: their codes say where they lie."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from hedgerow.limits import MOST_AREAS_SHOWN
from hedgerow.tables.maps.drawn import SQUARE, Rings, shapes_of
from hedgerow.tables.maps.shapes import Shapes


def squares(labels: Sequence[pl.Series], widths: Sequence[int]) -> Shapes | None:
    """Return the squares of the finest level that a map can have; None where there is none.

    Args:
        labels: of each level its codes: lower corners, ``x_y``; others have no place.
        widths: of the squares of each level.
    """
    for level in range(len(labels), 0, -1):
        corner = labels[level - 1].str.extract_groups(r"^(?<x>-?\d{1,16})_(?<y>-?\d{1,16})$")
        places = corner.struct.unnest().cast(pl.Float64).fill_null(float("nan"))
        corners = places.to_numpy()  # of codes that are none, no numbers
        there = np.flatnonzero(~np.isnan(corners[:, 0]))
        if len(corners) <= MOST_AREAS_SHOWN and len(there):
            square = SQUARE * widths[level - 1]
            points = (corners[there][:, None, :] + square).reshape(-1, 2)
            number = np.arange(len(there))
            rings = Rings(points, np.repeat(number, len(SQUARE)), number, there)
            return shapes_of(level, len(corners), rings, lambda it, _needed: it, geographic=False)
    return None
