"""Levels of nested grids, by the coordinates of a place."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import TableError
from hedgerow.limits import LARGEST_DOUBLE
from hedgerow.tables.codes.rule import Rule, in_short, whole_numbers
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.tables.maps.squares import squares
from hedgerow.text import Texts


@dataclass(frozen=True)
class Division(Rule):
    """Levels are the squares of nested grids: coordinates, divided by widths and rounded down.

    The code of a square is its lower corner, its coordinates joined by ``_``: that of ``(4321500,
    3210700)`` in a grid of 1,000 is ``4321000_3210000``. Coordinates are rounded down to whole
    numbers first, also below 0.

    Args:
        widths: of the squares of each level, whole numbers; each divides the one before it.
        code: the list's columns of coordinates, one or more.

    Raises:
        TableError: widths that do not divide each other.

    Example:
        >>> grid = {"x": [4321500, 4329500], "y": [3210700, 3210700]}
        >>> rule = hr.Division([100_000, 1_000], code=["x", "y"])
        >>> square = hr.Axis.from_frame("square", grid, ["km100", "km1"], rule=rule)
        >>> square, square.labels[1].to_list()
        (Axis(square: 1 km100, 2 km1), ['4321000_3210000', '4329000_3210000'])
    """

    numeric: ClassVar[bool] = True
    widths: tuple[int, ...]
    code: str | Texts | None = None

    def __init__(self, widths: Sequence[int], code: str | Sequence[str] | None = None) -> None:
        numbers = whole_numbers(widths, "divide", "the width of each level's squares")
        if any(upper % lower or upper == lower for upper, lower in pairwise(numbers)):
            raise TableError(
                f"divide: each width must be a multiple of the next, from coarse to fine, got "
                f"{in_short(numbers)}"
            )
        object.__setattr__(self, "widths", numbers)
        given = code if code is None or isinstance(code, str) else tuple(code)
        if given in {(), ""} or (isinstance(given, tuple) and len(set(given)) < len(given)):
            raise TableError("divide: code must name each column of coordinates once")
        object.__setattr__(self, "code", given)

    def paths(self, areas: pl.DataFrame, levels: Sequence[str], subject: str) -> pl.DataFrame:
        """Return the lower corners of the squares of each place; see `Rule.paths`."""
        self.check_levels(self.widths, levels, "divide")
        names = self.code_columns(areas.columns, levels, subject)
        places = [_coordinate(areas, name, subject) for name in names]
        columns = []
        for level, width in zip(levels, self.widths, strict=True):
            corners = [pl.Series(place - place % width).cast(pl.String) for place in places]
            code = pl.select(pl.concat_str(corners, separator="_")).to_series()
            columns.append(code.alias(level))
        return pl.DataFrame(columns).unique(maintain_order=True)

    def shapes(self, labels: Sequence[pl.Series]) -> Shapes | None:
        """Return squares, of two coordinates; see `Rule.shapes`."""
        return squares(labels, self.widths)

    def sql(self, level: int, fields: Sequence[str]) -> str:
        """Return the SQL of a lower corner; see `Rule.sql`."""
        width = self.widths[level - 1]
        corners = []
        for each in fields:
            real = f"TRY_CAST({each} AS DOUBLE)"
            whole = f"TRY_CAST(FLOOR({real}) AS BIGINT)"
            place = f"(CASE WHEN ABS({real}) < {LARGEST_DOUBLE} THEN {whole} END)"
            corners.append(f"CAST({place} - (({place} % {width}) + {width}) % {width} AS VARCHAR)")
        return " || '_' || ".join(corners)


def _coordinate(areas: pl.DataFrame, name: str, subject: str) -> Int64:
    """Return the whole numbers below coordinates: int64 (rows)."""
    if name not in areas.columns:
        raise TableError(f"{subject} has no column {name!r}; it has {', '.join(areas.columns)}")
    if areas.is_empty():
        raise TableError(f"{subject} is empty; it needs one row an area")
    column = areas[name]
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    text = column.str.strip_chars() if column.dtype == pl.String else column
    known = column.dtype.is_numeric() or column.dtype == pl.String
    numbers = text.cast(pl.Float64, strict=False) if known else pl.Series([None], dtype=pl.Float64)
    fits = numbers.is_not_null() & (numbers.abs() < LARGEST_DOUBLE)
    if not fits.fill_null(value=False).all():
        raise TableError(
            f"{subject}: column {name!r} must have a number in every row, below 2^53; write "
            f"1234.5, with a point and without separators of thousands"
        )
    floored: Int64 = np.floor(numbers.to_numpy()).astype(np.int64)
    return floored
