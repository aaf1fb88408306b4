"""Levels that are the first characters of a code."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from hedgerow.errors import TableError
from hedgerow.tables.codes.rule import Rule, every_code, in_short, whole_numbers
from hedgerow.tables.sources.source import as_codes


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

    characters: tuple[int, ...]
    code: str | None = None

    def __init__(self, characters: Sequence[int], code: str | None = None) -> None:
        numbers = whole_numbers(characters, "prefix", "the number of characters of each level")
        if any(a >= b for a, b in pairwise(numbers)):
            raise TableError(f"prefix must ascend, from coarse to fine, got {in_short(numbers)}")
        object.__setattr__(self, "characters", numbers)
        object.__setattr__(self, "code", code)

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
