"""An axis that `hedgerow new` proposes: the keys of its section, and how they were found."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.spec.axis_section import AxisSection, public_axis
from hedgerow.spec.toml_file import to_fill_in
from hedgerow.tables.lists.list_match import Match
from hedgerow.tables.lists.list_shape import BUREAU, ListShape
from hedgerow.tables.sources.files import share_files

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

Keys = dict[str, Any]
"""The keys of a section, in order."""


@dataclass(frozen=True)
class ProposedAxis:
    """One ``[[axis]]`` of a new file.

    Attributes:
        keys: its keys, in order.
        reason: how it was found, for the terminal and a comment; empty where the user says it all.
        shape: the public list, if there is one yet.
        sizes: how many areas each level has; None where that is not known yet.
    """

    keys: Mapping[str, Any]
    reason: str = ""
    shape: ListShape | None = None
    sizes: Sequence[int] | None = None

    @property
    def name(self) -> str:
        """What the axis is called."""
        return str(self.keys["name"])

    @property
    def is_numeric(self) -> bool:
        """Whether it is a numeric column."""
        return "bins" in self.keys

    @property
    def last(self) -> int:
        """How many leaves it has; 0 where that is not known yet."""
        return (self.sizes or [0])[-1]

    @property
    def text(self) -> str:
        """The section as TOML."""
        width = max(map(len, self.keys))
        comments, lines = dict(_COMMENTS), ["[[axis]]"]
        if self.reason:
            lines.insert(0, f"# {comment(self.reason)}")
        else:  # there is no list yet
            comments["areas"] = (
                f"the public list: these columns, one row a {self.keys['levels'][-1]!r}, empty "
                f'ones too;\n#        or "table", if the codes in the table are public'
            )
        for key, value in self.keys.items():
            said = f"   # {comments[key]}" if key in comments else ""
            lines.append(f"{key:<{width}} = {toml(value)}{said}")
        return "\n".join(lines) + "\n"

    def sized(self, folder: Path, table: Path) -> "ProposedAxis":
        """Return it with the number of areas of each level, where its lists can be read.

        The confidential table is none, whatever it is called. What is wrong with a list,
        `hedgerow plan` will explain.
        """
        areas = folder / self.keys.get("areas", "")
        if to_fill_in(self.keys) or ("areas" in self.keys and share_files(areas, table)):
            return self
        section = AxisSection.model_validate(self.keys)
        try:
            axis = public_axis(section, folder, DiscreteGaussian)
        except HedgerowError:
            return self
        return replace(self, sizes=[axis.size(level) for level in range(axis.depth + 1)])


def toml(value: Any) -> str:
    """Return a text, number, list or table as TOML."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml(key)} = {toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml, value))}]"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def comment(text: str) -> str:
    """Return a text that ends no comment."""
    return toml(text)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def placeholder(words: str) -> str:
    """Return what stands for a value that is to be filled in."""
    return f"<{words.replace('>', '').replace('<', '')}>"


def axis_as_said(name: str, levels: Sequence[str], areas: str) -> ProposedAxis:
    """Return the axis of columns of the table, whose public list is still to be made."""
    return ProposedAxis({"name": name, "levels": levels, "areas": areas})


UNKNOWN_AXIS = axis_as_said(
    "<a name, such as geography>", ["<coarsest column>", "<finest column>"], "<public list>.csv"
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
    shape, listed, columns = match.shape, match.listed, match.columns
    if len(listed) > 1:
        # squares; without widths, of 100, 10 and 1 times those of the list
        width = 0 if numbers else shape.grid(listed)
        widths = list(numbers) or [width * n for n in (100, 10, 1) if width > 1]
        told: Keys = {
            "levels": [f"{name}_{n}" for n in widths] or [placeholder("a name a width")],
            "divide": widths or [placeholder("widths such as 10000, 1000")],
            "code": list(listed),
        }
        note = f", all multiples of {width}" if width > 1 else ""
    else:
        told, note = _levels(name, shape, listed[0], levels, numbers)
    keys: Keys = {
        "name": name,
        "levels": told.pop("levels"),
        **({} if columns == listed else {"columns": list(columns)}),
        "areas": os.path.relpath(shape.path, folder),
        **told,
    }
    codes = f"{' and '.join(listed)} of {shape.path.name}"
    if len(columns) == 1 and columns[0].startswith("<"):
        why = f"the name of no column of the table says that it holds {codes}"
        reason = f"{why}; --axis {name}=COLUMN does"
    else:
        reason = f"{' and '.join(columns)} {'is' if len(columns) == 1 else 'are'} {codes}"
    return ProposedAxis(keys, reason + note, shape)


def _levels(
    name: str, shape: ListShape, listed: str, levels: Sequence[str], numbers: Sequence[int]
) -> tuple[Keys, str]:
    """Return the keys that tell the levels above a column, and how they were found."""
    rule, note = ({}, "") if levels else _rule(name, shape, listed, numbers)
    if rule:
        names = shape.name_of(listed)
        code = {} if listed == "code" else {"code": listed}
        return {**rule, **code, **({"names": names} if names else {})}, note
    nesting = shape.levels_above(listed)
    places = [(level,) for level in levels] or nesting.levels
    chosen = [one[0] if len(one) == 1 else placeholder(" or ".join(one)) for one in places]
    named = {level: nesting.names[level] for level in chosen if level in nesting.names}
    own = named[listed] if list(named) == [listed] else named
    said = [f"{text} {why}" for text, why in list(nesting.left_out.items())[:5]]
    said += [f"choose {' or '.join(one)}, which do not nest" for one in places if len(one) > 1]
    note = "; ".join(["", *said]) if not levels else ""
    return {"levels": chosen, **({"names": own} if own else {})}, note


def _rule(name: str, shape: ListShape, listed: str, numbers: Sequence[int]) -> tuple[Keys, str]:
    """Return the keys of a list whose codes tell their levels, if so, and how that was found."""
    if not numbers and shape.parents is not None and shape.parents[0] == listed:
        _, parent, depths = shape.parents
        levels = [f"{name}_{depth}" for depth in range(1, depths + 1)] or [name]
        return {"levels": levels, "parent": parent}, f", and {parent} its parent"
    if numbers:
        return {"levels": [f"{name}_{n}" for n in numbers], "prefix": list(numbers)}, ""
    digits, above = shape.bureau_lengths(listed), shape.levels_above(listed).levels[:-1]
    if above and not (digits and not all(shape.begin(listed, one) for one in above)):
        return {}, ""
    lengths = digits or shape.lengths(listed)
    levels = [BUREAU[n] if digits else f"{name}_{n}" for n in lengths]
    said = f", where each code continues one of fewer characters ({', '.join(map(str, lengths))})"
    if digits:
        said = f", whose first digits are {', '.join(levels)}"
    return ({"levels": levels, "prefix": list(lengths)} if lengths else {}), said


def axis_of_numbers(name: str, low: Decimal, high: Decimal, bins: int | None) -> ProposedAxis:
    """Return the axis of a numeric column; without a number of bins, of one a whole number."""
    whole = low == low.to_integral_value() and high == high.to_integral_value()
    width = int(high - low)
    many = bins or (width if whole and 0 < width <= 1000 else 1000)
    bounds = [int(bound) if whole else bound for bound in (low, high)]
    keys = {"name": name, "low": bounds[0], "high": bounds[1], "bins": many}
    return ProposedAxis(keys, f"{name} is a number from {low} to {high}")


def axis_of_product(name: str, shapes: Sequence[ListShape], folder: Path) -> ProposedAxis:
    """Return the axis of all combinations of the rows of several lists, beside a spine."""
    product = [
        c for shape in shapes for c in sorted(shape.frame.columns, key=shape.sizes.__getitem__)
    ]
    keys: Keys = {
        "name": name,
        "attribute": True,
        "product": product,
        "lists": [os.path.relpath(shape.path, folder) for shape in shapes],
    }
    files = ", ".join(shape.path.name for shape in shapes)
    return ProposedAxis(
        keys, f"{', '.join(product)} are the columns of {files}, and do not all nest"
    )
