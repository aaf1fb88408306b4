"""Rules that make levels of one list's codes: first characters, parents, nested squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from hedgerow.arrays import Int64, int64
from hedgerow.errors import TableError
from hedgerow.limits import LARGEST_DOUBLE, MOST_AREAS_SHOWN
from hedgerow.tables.codes.rule import Rule, every_code, in_short, whole_numbers
from hedgerow.tables.maps.drawn import SQUARE, Rings, shapes_of
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.tables.sources.source import as_codes
from hedgerow.text import Texts


@dataclass(frozen=True)
class Prefix(Rule):
    """Levels are the first characters of a code: state, county and tract of a census block.

    A code that is shorter ends at the level where it does; one that is longer counts as its first
    characters, in the list and in the table. A code that others continue is a heading, no leaf.

    Args:
        characters: how many each level has, ascending, one number a level.
        code: the list's column of codes; see `Rule.code_columns`.

    Raises:
        TableError: numbers that do not ascend.

    Example:
        >>> blocks = {"GEOID": ["010010201", "010030101", "020130001"]}
        >>> hr.Axis.from_frame("place", blocks, ["state", "county"], rule=hr.Prefix([2, 5]))
        Axis(place: 2 state, 3 county)
    """

    characters: Sequence[int]
    code: str | None = None

    def __post_init__(self) -> None:
        numbers = whole_numbers(self.characters, "prefix", "the number of characters of each level")
        if any(a >= b for a, b in pairwise(numbers)):
            raise TableError(f"prefix must ascend, from coarse to fine, got {in_short(numbers)}")
        object.__setattr__(self, "characters", numbers)

    def paths(self, areas: pl.DataFrame, levels: Sequence[str], subject: str) -> pl.DataFrame:
        """Return the first characters of each code; see `Rule.paths`."""
        self.check_levels(self.characters, levels, "prefix")
        (name,) = self.code_columns(areas.columns, levels, subject)
        codes = every_code(as_codes(areas, [name], subject), name, subject)
        length = codes.str.len_chars()
        columns, shorter = [], 0
        for level, n in zip(levels, self.characters, strict=True):
            reached = pl.select(pl.when(length > shorter).then(codes.str.head(n))).to_series()
            columns.append(reached.alias(level))
            shorter = n
        paths = pl.DataFrame(columns).unique(maintain_order=True)
        for upper, lower in pairwise(paths.columns):  # a heading ends where another goes on
            further = paths.filter(pl.col(lower).is_not_null())[upper].unique()
            heading = pl.col(lower).is_null() & pl.col(upper).is_in(further.implode())
            paths = paths.filter(~heading.fill_null(value=False))
        return paths

    def leaf_codes(self, codes: pl.Series) -> pl.Series:
        """Return the first characters of codes; see `Rule.leaf_codes`."""
        return codes.str.head(self.characters[-1])

    def sql(self, level: int, fields: Sequence[str]) -> str:
        """Return the SQL of the first characters; see `Rule.sql`."""
        return f"LEFT({fields[0]}, {self.characters[level - 1]})"


@dataclass(frozen=True)
class Parents(Rule):
    """Each row of the list names the parent of its code; the first level has none.

    Levels are depths. A code without children ends at its level; codes below the last level are no
    leaves, and a record that has one counts at the leaf above it.

    Args:
        parent: the list's column of parents.
        code: its column of codes; see `Rule.code_columns`.

    Example:
        >>> causes = {"code": ["A", "A1", "A2", "B"], "parent": [None, "A", "A", None]}
        >>> hr.Axis.from_frame("cause", causes, ["chapter", "cause"], rule=hr.Parents("parent"))
        Axis(cause: 2 chapter, 3 cause)
    """

    parent: str
    code: str | None = None

    def list_columns(self, names: Sequence[str], levels: Sequence[str], subject: str) -> Texts:
        """Return the columns of codes and parents."""
        return (*self.code_columns(names, levels, subject), self.parent)

    def paths(self, areas: pl.DataFrame, levels: Sequence[str], subject: str) -> pl.DataFrame:
        """Return the ancestors of each leaf; see `Rule.paths`."""
        return _climb(*self._up(areas, levels, subject), levels, subject)

    def deeper(
        self, areas: pl.DataFrame, levels: Sequence[str], subject: str
    ) -> pl.DataFrame | None:
        """Return the codes below the last level, each with its ancestor there."""
        rows, up = self._up(areas, levels, subject)
        depth = _depths(up)[:-1]
        below = node = np.flatnonzero(depth > len(levels))
        further = depth[below] - len(levels)
        far = up
        while further.any():  # each round doubles the stride
            node = np.where(further % 2 == 1, far[node], node)
            further, far = further // 2, far[far]
        codes = rows["code"]
        return pl.DataFrame({"code": codes.gather(below), "leaf": codes.gather(node)})

    def _up(
        self, areas: pl.DataFrame, levels: Sequence[str], subject: str
    ) -> tuple[pl.DataFrame, Int64]:
        """Return rows of a code and its parent, and the row of each parent; see `_parents`."""
        (name,) = self.code_columns(areas.columns, levels, subject)
        if self.parent == name:
            raise TableError(f"{subject}: column {name!r} cannot hold codes and parents")
        rows = as_codes(areas, [name, self.parent], subject).unique(maintain_order=True)
        codes = every_code(rows, name, subject)
        if codes.is_duplicated().any():
            twice = rows.filter(codes.is_duplicated())
            twice = twice.filter(twice[name] == twice[name][0])
            parents = " and ".join("none" if p is None else repr(p) for p in twice[self.parent])
            raise TableError(f"{subject}: {name} {twice[name][0]!r} has two parents, {parents}")
        rows = rows.rename({name: "code", self.parent: "parent"})
        return rows, _parents(rows, subject)

    def sql(self, level: int, fields: Sequence[str]) -> str | None:  # noqa: ARG002 - the code is no path
        """Return nothing: a code alone does not tell its parents."""
        return None


def _parents(rows: pl.DataFrame, subject: str) -> Int64:
    """Return the row of each row's parent, one past the last for none: int64 (rows + 1)."""
    numbered = rows.with_row_index("number")
    matches = numbered.join(
        numbered.select(parent="code", up="number"), on="parent", how="left", maintain_order="left"
    )
    lost = matches.filter(pl.col("parent").is_not_null() & pl.col("up").is_null())
    if not lost.is_empty():
        raise TableError(
            f"{subject}: the parent {lost['parent'][0]!r} of {lost['code'][0]!r} has no row; add "
            f"one, and leave its parent empty if it is the first level"
        )
    top = len(rows)
    return np.append(int64(matches["up"].fill_null(top).to_numpy()), top)


def _climb(rows: pl.DataFrame, up: Int64, levels: Sequence[str], subject: str) -> pl.DataFrame:
    """Return the paths of the leaves of rows of a code and its parent."""
    top = len(rows)
    depth = _depths(up)[:-1]
    if (depth < 0).any():
        code = rows["code"][int((depth < 0).argmax())]
        raise TableError(f"{subject}: {code!r} is its own parent, or among those of its parents")
    has_children = np.bincount(up[:-1], minlength=top + 1)[:-1] > 0
    kept = depth <= len(levels)
    node = np.flatnonzero(kept & (~has_children | (depth == len(levels))))
    columns = {}
    for k, level in reversed(list(enumerate(levels, start=1))):
        here = depth[node] == k
        place = pl.Series(np.where(here, node, 0))
        columns[level] = pl.select(
            pl.when(pl.Series(here)).then(rows["code"].gather(place))
        ).to_series()
        node = np.where(here, up[node], node)
    if columns[levels[-1]].null_count() == len(node):
        raise TableError(
            f"{subject}: no code has {len(levels) - 1} others above it; name one level a depth"
        )
    return pl.DataFrame({level: columns[level] for level in levels})


def _depths(up: Int64) -> Int64:
    """Return how many steps each node is below the top, the last one; −1 where it is on a cycle."""
    top = len(up) - 1
    depth = np.full(len(up), -1, dtype=np.int64)
    far = up.copy()
    steps = np.ones(len(up), dtype=np.int64)
    steps[top] = 0
    for _ in range(max(1, int(top).bit_length() + 1)):  # each round doubles the stride
        steps = steps + steps[far]
        far = far[far]
    depth[far == top] = steps[far == top]
    return depth


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

    numeric = True
    widths: Sequence[int]
    code: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        code = self.code
        numbers = whole_numbers(self.widths, "divide", "the width of each level's squares")
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
    is_readable = column.dtype.is_numeric() or column.dtype == pl.String
    numbers = (
        text.cast(pl.Float64, strict=False) if is_readable else pl.Series([None], dtype=pl.Float64)
    )
    fits = numbers.is_not_null() & (numbers.abs() < LARGEST_DOUBLE)
    if not fits.fill_null(value=False).all():
        raise TableError(
            f"{subject}: column {name!r} must have a number in every row, below 2^53; write "
            f"1234.5, with a point and without separators of thousands"
        )
    return int64(np.floor(numbers.to_numpy()))
