"""What the values of a public list say of its levels: which column is coarser than which."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import gcd
from pathlib import Path

import polars as pl

from hedgerow.arrays import Sizes
from hedgerow.tables.lists.column_names import ColumnName
from hedgerow.text import TextByName, Texts

_MEASURES = {
    *("area", "sqkm", "aland", "awater", "shape", "population", "pop", "count", "total"),
    *("households", "housing", "intptlat", "intptlon"),
    *("lat", "lon", "long", "latitude", "longitude", "x", "y", "easting"),
    *("northing", "eastings", "northings", "objectid", "fid", "uri", "url"),
}
"""Words of columns that are no level: figures, places, addresses."""
_COORDINATES = {
    "x": "y", "easting": "northing", "eastings": "northings", "east": "north", "e": "n",
}  # fmt: skip
_PARENTS = {"parent", "broader"}
BUREAU = {2: "state", 5: "county", 11: "tract", 12: "group", 15: "block"}
"""What the first digits of a GEOID of the Census Bureau are."""
MOST_DEPTHS = 30


@dataclass(frozen=True)
class Nesting:
    """The levels above a column of a list.

    Attributes:
        levels: from coarse to fine, ending with that column. Of each the columns that may be it:
            one, or several that do not nest in each other.
        names: level → the column with its names.
        left_out: columns of codes that are no level, each with the reason.
    """

    levels: tuple[Texts, ...]
    names: TextByName
    left_out: TextByName


@dataclass(frozen=True, eq=False)
class ListShape:
    """A public list whose levels are to be found.

    Attributes:
        path: its file.
        frame: all its columns, as text.
    """

    path: Path
    frame: pl.DataFrame

    @cached_property
    def columns(self) -> tuple[ColumnName, ...]:
        """Its columns; one that is called ``code`` alone has the words of the file's name."""
        own = ColumnName.of(self.path.name.partition(".")[0])
        names = [ColumnName.of(column) for column in self.frame.columns]
        return tuple(
            ColumnName(name.text, own.words, name.kind)
            if not name.words and name.kind == "code"
            else name
            for name in names
        )

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many values each column has."""
        return {column: self.frame[column].n_unique() for column in self.frame.columns}

    @property
    def finest(self) -> str:
        """The column of codes with the most values; one for codes before one that is for none."""
        fitting = [c for c in self.columns if not self.is_measure(c)] or list(self.columns)
        best = max(fitting, key=lambda c: (self.sizes[c.text], c.kind == "code", c.kind is None))
        return best.text

    @property
    def leaf(self) -> str:
        """The column of codes that the deepest level has: of a list of parents, that of codes."""
        return self.parents[0] if self.parents is not None else self.finest

    def column(self, text: str) -> ColumnName:
        """Return a column by its name."""
        return next(column for column in self.columns if column.text == text)

    def levels_above(self, leaf: str) -> Nesting:
        """Return the levels that end with a column: the longest chain of columns that nest.

        Column a is coarser than b where every code of b stands beside one code of a.
        """
        full = self.frame.filter(pl.col(leaf).is_not_null())
        columns = [c for c in self.columns if c.text == leaf or self._may_be_level(c, full, leaf)]
        rows = full.select(c.text for c in columns).unique(leaf, maintain_order=True)
        rows = rows.select(pl.all().rank("dense"))  # numbers are compared faster than texts
        sizes = {c.text: rows[c.text].n_unique() for c in columns}
        own = [c.text for c in columns if sizes[c.text] == sizes[leaf] and c.text != leaf]
        left_out = {
            text: f"has the areas of {leaf}" for text in own if self.column(text).kind == "code"
        }
        groups = list[str]()
        for column in sorted(columns, key=lambda c: c.kind != "code"):
            text = column.text
            if text == leaf or text in own or sizes[text] == 1:
                continue
            twin = next((g for g in groups if sizes[g] == sizes[text] == _pairs(rows, g, text)), "")
            if not twin:
                groups.append(text)
            elif column.kind == "code":
                left_out[text] = f"has the areas of {twin}"
        groups.append(leaf)
        ordered = sorted(groups, key=lambda g: (sizes[g], g == leaf))
        above = {
            b: [a for a in ordered if sizes[a] < sizes[b] and _pairs(rows, a, b) == sizes[b]]
            for b in ordered
        }
        up = dict[str, int]()  # how many columns the longest chain has that ends with each
        for b in ordered:
            up[b] = 1 + max((up[a] for a in above[b]), default=0)
        levels: tuple[Texts, ...] = ((leaf,),)
        for place in range(up[leaf] - 1, 0, -1):  # several where some chains are equally long
            nested = {a for b in levels[0] for a in above[b] if up[a] == place}
            levels = (tuple(g for g in groups if g in nested), *levels)
        chosen = [text for options in levels for text in options]
        left_out |= {g: "does not nest in them" for g in groups if g not in chosen}
        return Nesting(levels, self._names(chosen, full), left_out)

    def _may_be_level(self, column: ColumnName, full: pl.DataFrame, leaf: str) -> bool:
        """Return whether each code of the leaf has one value of a column that may hold codes."""
        text = column.text
        named = column.kind == "name" and any(
            c.words == column.words and c.kind != "name" for c in self.columns
        )
        if named or self.is_measure(column) or full[text].null_count():
            return False
        return _pairs(full, leaf, text) == full[leaf].n_unique()

    def is_measure(self, column: ColumnName) -> bool:
        """Return whether a column is known to hold figures by its name, or by its fractions."""
        if column.kind == "code":
            return False
        if not _MEASURES.isdisjoint(column.words):
            return True
        texts = self.frame[column.text].drop_nulls()
        fractions = texts.str.contains(r"^-?\d+[.,]\d+$")
        numbers = fractions | texts.str.contains(r"^-?\d+$")
        return bool(fractions.any() and numbers.all() and not texts.str.contains(r"^0\d").any())

    def _names(self, levels: Sequence[str], full: pl.DataFrame) -> TextByName:
        """Return level → the column that has one name for each of its codes.

        Names are in a column of names, or in one that is called like the codes without a word for
        codes: ``Ethnic group`` beside ``Ethnic group Code``.
        """
        names = dict[str, str]()
        for level in levels:
            mine = self.column(level)
            words = [mine.words, *([()] if level == levels[-1] else [])]
            for column in self.columns:
                is_name = column.kind == "name" and column.words in words
                is_plain = column.kind is None and mine.kind == "code" and column.words
                fits = is_name or (is_plain and column.words == mine.words)
                fits = fits and column.text != level
                if fits and _pairs(full, level, column.text) == full[level].n_unique():
                    names.setdefault(level, column.text)
        return names

    def name_of(self, code: str) -> str | None:
        """Return the column with a name for each code, if there is one."""
        return self._names([code], self.frame).get(code)

    @cached_property
    def parents(self) -> tuple[str, str, int] | None:
        """The columns of codes and of their parents and the number of depths, or None."""
        for parent in (c.text for c in self.columns if not _PARENTS.isdisjoint(c.words)):
            above = self.frame[parent].drop_nulls().unique()
            for column in self.columns:
                codes = self.frame[column.text]
                whole = self.sizes[column.text] == len(codes) and not codes.null_count()
                if column.text != parent and whole and above.is_in(codes.implode()).all():
                    # how many depths there are; those on a cycle count for none
                    pairs = self.frame.select(code=column.text, parent=parent)
                    level = pairs.filter(pl.col("parent").is_null())
                    depth = 0
                    while len(level) and depth < MOST_DEPTHS:
                        depth += 1
                        level = pairs.join(level.select(parent="code"), on="parent", how="semi")
                    return column.text, parent, depth
        return None

    def lengths(self, column: str) -> Sizes:
        """Return the lengths of codes where each longer one continues a shorter one of the list.

        One length alone, or codes that continue no other: empty.
        """
        codes = self.frame[column].drop_nulls().unique()
        lengths = sorted(codes.str.len_chars().unique().to_list())
        if not 2 <= len(lengths) <= MOST_DEPTHS:
            return ()
        for shorter, longer in pairwise(lengths):
            heads = codes.filter(codes.str.len_chars() == longer).str.head(shorter)
            if not heads.is_in(codes.implode()).all():
                return ()
        return tuple(lengths)

    def bureau_lengths(self, column: str) -> Sizes:
        """Return how many digits each level has of a Census Bureau's GEOID; empty of others."""
        codes = self.frame[column].drop_nulls()
        length = codes.str.len_chars().unique().to_list()
        is_geoid = self.column(column).words in {("geoid",), ("geocode",)}
        if not is_geoid or len(length) != 1 or not codes.str.contains(r"^\d+$").all():
            return ()
        return tuple(n for n in BUREAU if n <= length[0]) if length[0] in BUREAU else ()

    def begin(self, column: str, options: Sequence[str]) -> bool:
        """Return whether codes begin with those of one other column, the only one there may be."""
        if len(options) != 1:
            return False
        begins = pl.col(column).str.starts_with(pl.col(options[0])).all()
        return bool(self.frame.select(begins).item())

    @cached_property
    def coordinates(self) -> tuple[str, str] | None:
        """The two columns of coordinates, or None."""
        by_words = {column.words: column.text for column in self.columns}
        for column in self.columns:
            swapped = tuple(_COORDINATES.get(word, word) for word in column.words)
            if swapped != column.words and swapped in by_words:
                return column.text, by_words[swapped]
        return None

    def grid(self, columns: Sequence[str]) -> int:
        """Return the largest width of squares whose corners all coordinates are; 0 of none."""
        width = 0
        for column in columns:
            numbers = self.frame[column].cast(pl.Float64, strict=False)
            if numbers.null_count() or (numbers % 1 != 0).any() or (numbers.abs() >= 2**53).any():
                return 0
            width = gcd(width, *numbers.cast(pl.Int64).unique().to_list())
        return width


def _pairs(rows: pl.DataFrame, one: str, other: str) -> int:
    """Return how many pairs of values two columns have."""
    return rows.select(one, other).n_unique()
