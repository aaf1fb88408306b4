"""An axis that `hedgerow new` proposes: the keys of its section, and how they were found."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError, SpecError
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.spec.axis_section import AxisSection, public_axis
from hedgerow.spec.toml_file import to_fill_in, toml
from hedgerow.tables.lists.list_match import Match
from hedgerow.tables.lists.list_shape import BUREAU, ListShape
from hedgerow.tables.sources.files import share_files
from hedgerow.text import Texts

_COMMENTS = {
    "levels": "from coarse to fine",
    "columns": "what the table calls it",
    "areas": "the public list",
    "prefix": "the characters of the code that each level has",
    "parent": "the list's column of parents",
    "divide": "the width of the squares of each level",
    "code": "the list's column of codes",
    "names": "shown beside codes",
    "low": "public bounds, chosen without looking at the table",
    "bins": "of equal width",
    "product": "each level tells one more column",
    "lists": "public lists, one a factor",
}
_NO_LIST = """the public list: these columns, one row a {}, empty ones too;
#        or "table", if the codes in the table are public"""

Keys = dict[str, Any]
"""The keys of a section, in order."""


@dataclass(frozen=True)
class ProposedAxis:
    """One ``[[axis]]`` of a new file.

    Attributes:
        keys: its keys, in order.
        reason: how it was found, for the terminal and a comment; empty where the user says it all.
        shape: the public list, if there is one yet.
        sizes: how many areas each level has; empty where that is not known yet.
    """

    keys: Keys
    reason: str = ""
    shape: ListShape | None = None
    sizes: Sequence[int] = ()

    @property
    def name(self) -> str:
        """What the axis is called."""
        return str(self.keys["name"])

    @property
    def text(self) -> str:
        """The section as TOML."""
        width = max(map(len, self.keys))
        lines = ["[[axis]]"]
        if self.reason:
            reason = toml(self.reason)[1:-1]  # which ends no comment
            lines.insert(0, "# " + reason.replace('\\"', '"').replace("\\\\", "\\"))
        for key, value in self.keys.items():
            said = _COMMENTS.get(key, "")
            if key == "areas" and not self.reason:
                said = _NO_LIST.format(repr(self.keys["levels"][-1]))
            lines.append(f"{key:<{width}} = {toml(value)}{said and f'   # {said}'}")
        return "\n".join(lines) + "\n"

    def sized(self, folder: Path, table: Path) -> "ProposedAxis":
        """Return it with the number of areas of each level, where its lists can be read.

        The confidential table is none, whatever it is called. What is wrong with a list,
        `hedgerow plan` will explain.
        """
        areas = self.keys.get("areas")
        if to_fill_in(self.keys) or (areas and share_files(folder / areas, table)):
            return self
        section = AxisSection.model_validate(self.keys)
        try:
            axis = public_axis(section, folder, DiscreteGaussian)
        except HedgerowError:
            return self
        return replace(self, sizes=axis.sizes)


def placeholder(*words: str) -> str:
    """Return what stands for a value that is to be filled in: one of some words."""
    return re.sub("[<>]", "", " or ".join(words)).join("<>")


def as_said(name: str, levels: Sequence[str], areas: str) -> ProposedAxis:
    """Return the axis of columns of the table, whose public list is still to be made."""
    return ProposedAxis({"name": name, "levels": levels, "areas": f"{areas}.csv"})


UNKNOWN_AXIS = as_said(
    "<a name, such as geography>", ["<coarsest column>", "<finest column>"], "<public list>"
)


def axis_of_list(
    name: str,
    match: Match,
    folder: Path,
    *,
    levels: Sequence[str] = (),
    numbers: Sequence[int] = (),
) -> ProposedAxis:
    """Return the axis whose deepest codes are in columns of a public list.

    Args:
        name: of the axis.
        match: the columns of the list, and what the table calls them.
        folder: of the release file.
        levels: the list's columns, where they are known.
        numbers: the characters of each level's code, or the widths of squares, where known.
    """
    shape = match.shape
    listed = match.listed
    columns = match.columns
    own_keys, note = _squares(name, match, numbers) if len(listed) > 1 else ({}, "")
    if not own_keys and not levels:
        own_keys, note = _rule(name, shape, listed[0], numbers)
        names = shape.name_of(listed[0]) if own_keys else None
        own_keys |= {} if not own_keys or listed[0] == "code" else {"code": listed[0]}
        own_keys |= {} if names is None else {"names": names}
    if not own_keys:
        own_keys, note = _nested(shape, listed[0], levels)
    keys: Keys = {
        "name": name,
        "levels": own_keys.pop("levels"),
        **({} if columns == listed else {"columns": list(columns)}),
        "areas": os.path.relpath(shape.path, folder),
        **own_keys,
    }
    codes = f"{' and '.join(listed)} of {shape.path.name}"
    reason = f"{' and '.join(columns)} {'is' if len(columns) == 1 else 'are'} {codes}"
    if len(columns) == 1 and columns[0].startswith("<"):
        why = f"the name of no column of the table says that it holds {codes}"
        reason = f"{why}; --axis {name}=COLUMN does"
    return ProposedAxis(keys, reason + note, shape)


def _squares(name: str, match: Match, numbers: Sequence[int]) -> tuple[Keys, str]:
    """Return the keys of squares; without widths, of 100, 10 and 1 times those of the list."""
    width = 0 if numbers else match.shape.grid(match.listed)
    widths = list(numbers) or [width * n for n in (100, 10, 1) if width > 1]
    keys: Keys = {
        "levels": [f"{name}_{n}" for n in widths] or [placeholder("a name a width")],
        "divide": widths or [placeholder("widths such as 10000, 1000")],
        "code": list(match.listed),
    }
    return keys, f", all multiples of {width}" if width > 1 else ""


def _nested(shape: ListShape, listed: str, levels: Sequence[str]) -> tuple[Keys, str]:
    """Return the columns that are levels above another, and how they were found."""
    nesting = shape.levels_above(listed)
    places: Sequence[Texts] = [(level,) for level in levels] or nesting.levels
    chosen = [one[0] if len(one) == 1 else placeholder(*one) for one in places]
    named = {level: nesting.names[level] for level in chosen if level in nesting.names}
    own = named[listed] if list(named) == [listed] else named
    said = [f"{text} {why}" for text, why in list(nesting.left_out.items())[:5]]
    said += [f"choose {' or '.join(one)}, which do not nest" for one in places if len(one) > 1]
    note = "" if levels else "; ".join(["", *said])
    return {"levels": chosen, **({"names": own} if own else {})}, note


def _rule(name: str, shape: ListShape, listed: str, numbers: Sequence[int]) -> tuple[Keys, str]:
    """Return the keys of a list whose codes tell their levels, if so, and how that was found."""
    if not numbers and shape.parents is not None and shape.parents[0] == listed:
        _, parent, depths = shape.parents
        levels = [f"{name}_{depth}" for depth in range(1, depths + 1)] or [name]
        return {"levels": levels, "parent": parent}, f", and {parent} its parent"
    digits = () if numbers else shape.bureau_lengths(listed)
    lengths = digits or numbers
    note = ""
    if not numbers:
        above = shape.levels_above(listed).levels[:-1]
        if above and not (digits and not all(shape.begin(listed, one) for one in above)):
            return {}, ""
        lengths = digits or shape.lengths(listed)
        shorter = f"fewer characters ({', '.join(map(str, lengths))})"
        note = f", where each code continues one of {shorter}"
    levels = [BUREAU[n] if digits else f"{name}_{n}" for n in lengths]
    if digits:
        note = f", whose first digits are {', '.join(levels)}"
    return ({"levels": levels, "prefix": list(lengths)}, note) if lengths else ({}, note)


def axis_of_numbers(name: str, low: Decimal, high: Decimal, bins: str | None) -> ProposedAxis:
    """Return the axis of a numeric column; without a number of bins, of one a whole number."""
    if low >= high:
        raise SpecError(f"--axis {name}: the lower bound must be below the upper one")
    whole = low % 1 == high % 1 == 0
    width = int(high - low)
    many = int(bins or (width if whole and width <= 1000 else 1000))
    first, last = (int(bound) if whole else bound for bound in (low, high))
    keys = {"name": name, "low": first, "high": last, "bins": many}
    return ProposedAxis(keys, f"{name} is a number from {low} to {high}")
