"""Tables as text, with columns that fit a terminal.

Where a table is wider than `WIDTH`, blank columns are left out, headings go over several lines, and
names and codes are cut, but no figure is. What still has no room stands below in another table,
beside the names again or the numbers of the rows.
"""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.cells import cell_len, set_cell_size

WIDTH, GAP = 80, 2
"""Columns of a terminal, of which a letter of East Asia takes two, and those between two words."""
NAMES, FEWEST = 24, 8
"""Letters that the names of a row keep between them, and that each keeps."""
LONGEST_WORD, MOST_LINES = 10, 4
"""Letters of a word of a heading, and its lines."""
LONGEST = 2_000
"""Letters that are looked at either end of a name or code, which may have any number."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: above it.
        words: of the rows.
        letters: how many a name or code keeps; None for figures, which are never cut.
    """

    heading: str
    words: Sequence[str]
    letters: int | None

    @property
    def whole(self) -> int:
        """How wide it is."""
        return _widest([self.heading, *self.words])

    @cached_property
    def least(self) -> int:
        """How wide it must be: words that differ still do where they are cut."""
        longest = _widest(self.words)
        heading = _widest(part.rstrip() for part in _parts_of(self.heading))
        different = len(set(self.words))
        fewest = longest if self.letters is None else min(self.letters, longest)
        rooms = range(fewest, min(longest, WIDTH))  # a table may quote codes of any length
        enough = (room for room in rooms if len({cut(x, room) for x in self.words}) == different)
        return max(next(enough, longest), min(heading, LONGEST_WORD))

    def lines(self, width: int) -> list[str]:
        """Return heading and rows in so many letters, the heading at the foot of `MOST_LINES`."""
        heading = [""]
        for part in _parts_of(self.heading):
            joined = heading[-1] + part
            if heading[-1] and cell_len(joined.rstrip()) > width:
                heading.append(part)
            else:
                heading[-1] = joined
        if len(heading) > MOST_LINES:
            heading[MOST_LINES - 1 :] = ["…"]
        above = [""] * (MOST_LINES - len(heading))
        words = [cut(word.rstrip(), width) for word in [*above, *heading, *self.words]]
        spaces = [" " * (width - cell_len(word)) for word in words]
        pairs = (spaces, words) if self.letters is None else (words, spaces)
        return [first + second for first, second in zip(*pairs, strict=True)]


def aligned(
    rows: Sequence[Sequence[str]],
    left: Container[int] = (1,),
    *,
    keys: int | None = None,
    wide: bool = False,
) -> str:
    """Return a table as text: figures to the right, names and codes to the left.

    Args:
        rows: the headings first.
        left: columns of names and codes. In tables by depth the second column is the cuboid.
        keys: how many columns stand in each part, where one table is too wide. Default: all up to
            the first figures.
        wide: whether the table is whole, however wide it is.
    """
    cells = [*zip(*rows, strict=True)]
    keys = keys or next((i for i in range(1, len(cells)) if i not in left), len(cells))
    letters = max(FEWEST, NAMES // max(sum(i in left for i in range(keys)), 1))
    columns = [
        Column(heading, words, letters if i in left else None)
        for i, (heading, *words) in enumerate(cells)
    ]
    if wide or _sum(column.whole for column in columns) <= WIDTH:
        return _text(columns, [column.whole for column in columns])
    columns = [
        column
        for i, column in enumerate(columns)
        if i < keys or any(column.words) or not column.words
    ]
    first = columns[:keys]
    others = columns[keys:]
    most = max((GAP + column.least for column in others), default=0)
    if _least(first) > min(WIDTH // 2, WIDTH - most):
        # too wide to be said again: rows go by their numbers
        first = [Column("", [f"{row:,}" for row in range(1, len(rows))], None)]
        room = WIDTH - GAP - first[0].whole
        others = [
            each
            if each.letters is None
            else replace(each, words=[cut(word, room) for word in each.words])
            for each in columns
        ]
    parts: list[list[Column]] = []
    for column in others:
        if not parts or _least([*first, *parts[-1], column]) > WIDTH:
            parts.append([])
        parts[-1].append(column)
    spare = WIDTH - max((_least([*first, *part]) for part in parts), default=_least(first))
    names = _widened(first, spare)
    texts = []
    for part in parts or [[]]:
        room = WIDTH - _sum([*names, *(column.least for column in part)])
        texts.append(_text([*first, *part], [*names, *_widened(part, room)]))
    return "\n\n".join(texts)


def _text(columns: Sequence[Column], widths: Sequence[int]) -> str:
    """Return columns beside each other."""
    lines = (column.lines(width) for column, width in zip(columns, widths, strict=True))
    text = "\n".join((" " * GAP).join(row).rstrip() for row in zip(*lines, strict=True))
    return text.lstrip("\n")


def _widened(columns: Sequence[Column], spare: int) -> list[int]:
    """Return the widths of columns that take what room is to spare, the first ones first."""
    widths = []
    for column in columns:
        more = min(max(column.whole - column.least, 0), max(spare, 0))  # a figure may be wider
        widths.append(column.least + more)
        spare -= more
    return widths


def _sum(widths: Iterable[int]) -> int:
    """Return how wide columns of some widths are together."""
    return sum(width + GAP for width in widths) - GAP


def _least(columns: Iterable[Column]) -> int:
    return _sum(column.least for column in columns)


def _widest(words: Iterable[str]) -> int:
    return max(map(cell_len, words), default=0)


def _parts_of(heading: str) -> list[str]:
    """Return the parts of a heading between which a line may end."""
    return re.findall(r"(?:[^ _:–-]| (?=\W|\d))+(?:[ _:–-]|$)|[ _:–-]", heading)


def cut(word: str, room: int) -> str:
    """Return a name or code in so many letters, with an ellipsis before its end.

    Of the names of cuboids every axis keeps its first letter, and every level something.
    """
    if len(word) <= max(LONGEST, room) and cell_len(word) <= room:
        return word
    parts = word[:LONGEST].split(" × ")
    if len(parts) > 1:
        named = [part.split(".", 1) if part[:1].isalpha() else [part] for part in parts]
        levels = [".".join([*(axis[:1] for axis in axes), level]) for *axes, level in named]
        for each in range(room, 2, -1):
            shorter = " × ".join(cut(level, each) for level in levels)
            if cell_len(shorter) <= room:
                return shorter
    end = (room - 1) // 3
    beginning = set_cell_size(word[:LONGEST], room - 1 - end).rstrip()
    ending = set_cell_size(word[: -LONGEST - 1 : -1], end)[::-1].lstrip()
    return f"{beginning}…{ending}"
