"""An axis that `hedgerow new` proposes: the keys of its section, and how they were found."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.spec.axis_section import AxisSection, listed_axis, numeric_axis, product_axis
from hedgerow.tables.lists.list_shape import BUREAU, ListShape, Nesting
from hedgerow.text import TextByName

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
        reason: how it was found, for the terminal and a comment.
        shape: the public list, if there is one.
        sizes: how many areas each level has; None where that is not known yet.
    """

    keys: Mapping[str, Any]
    reason: str
    shape: ListShape | None = None
    sizes: list[int] | None = field(default=None)

    @property
    def name(self) -> str:
        """What the axis is called."""
        return str(self.keys["name"])

    @property
    def is_numeric(self) -> bool:
        """Whether it is a numeric column."""
        return "bins" in self.keys

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to fill in."""
        texts = [text for value in self.keys.values() for text in _texts(value)]
        return not any(text.startswith("<") for text in texts)

    @property
    def text(self) -> str:
        """The section as TOML."""
        width = max(map(len, self.keys))
        lines = [f"# {comment(self.reason)}", "[[axis]]"]
        for key, value in self.keys.items():
            said = f"   # {_COMMENTS[key]}" if key in _COMMENTS else ""
            lines.append(f"{key:<{width}} = {toml(value)}{said}")
        return "\n".join(lines) + "\n"

    def sized(self, folder: Path) -> "ProposedAxis":
        """Return it with the number of areas of each level, where its lists can be read.

        What is wrong with a list, `hedgerow plan` will explain.
        """
        if not self.is_whole:
            return self
        section = AxisSection.model_validate(self.keys)
        try:
            if section.is_product:
                axis = product_axis(section, folder)
            elif section.is_numeric:
                axis = numeric_axis(section, DiscreteGaussian)
            else:
                axis = listed_axis(section, folder / section.areas)
        except HedgerowError:
            return self
        sizes = [axis.size(level) for level in range(axis.depth + 1)]
        return ProposedAxis(self.keys, self.reason, self.shape, sizes)


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


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return list(map(str, value.values()))
    return [str(one) for one in value] if isinstance(value, Sequence) else []


def axis_of_list(
    name: str,
    shape: ListShape,
    listed: str,
    column: str,
    folder: Path,
    *,
    levels: Sequence[str] = (),
    prefix: Sequence[int] = (),
) -> ProposedAxis:
    """Return the axis whose deepest codes are in a column of a public list.

    Args:
        name: of the axis.
        shape: the list.
        listed: its column.
        column: what the table calls it.
        folder: of the release file.
        levels: the list's columns, where they are known.
        prefix: the characters of each level, where they are known.
    """
    names: str | TextByName | None
    rule, notes = ({}, "") if levels else _rule(name, shape, listed, prefix)
    if rule:
        chosen, own, names = rule.pop("levels"), listed, shape.name_of(listed)
    else:
        nesting = shape.levels_above(listed)
        options = [(level,) for level in levels] or nesting.levels
        chosen = [one[0] if len(one) == 1 else placeholder(" or ".join(one)) for one in options]
        own, names = chosen[-1], _names(nesting.names, chosen)
        notes = "" if levels else _left_out(nesting)
    keys: Keys = {
        "name": name,
        "levels": chosen,
        **({} if column == own else {"columns": [column]}),
        "areas": os.path.relpath(shape.path, folder),
        **rule,
        **({"names": names} if names else {}),
    }
    if column.startswith("<"):
        why = f"the name of no column of the table says that it holds {listed} of {shape.path.name}"
        reason = f"{why}; --axis {name}=COLUMN does"
    else:
        reason = f"{column} is {listed} of {shape.path.name}"
    return ProposedAxis(keys, reason + notes, shape)


def _names(found: Mapping[str, str], levels: Sequence[str]) -> str | TextByName:
    """Return the columns of names as a release file has them: that of the last level alone."""
    names = {level: found[level] for level in levels if level in found}
    return names[levels[-1]] if list(names) == [levels[-1]] else names


def _rule(name: str, shape: ListShape, listed: str, prefix: Sequence[int]) -> tuple[Keys, str]:
    """Return the keys of a list whose codes tell their levels, and how that was found."""
    code = {} if listed == "code" else {"code": listed}
    if prefix:
        levels = [f"{name}_{n}" for n in prefix]
        return {"levels": levels, "prefix": list(prefix), **code}, ""
    if shape.parents is not None and shape.parents[0] == listed:
        _, parent, depths = shape.parents
        levels = [f"{name}_{depth}" for depth in range(1, depths + 1)] or [name]
        return {"levels": levels, "parent": parent, **code}, f", and {parent} its parent"
    digits = shape.bureau_lengths(listed)
    above = shape.levels_above(listed).levels[:-1]
    if above and not (digits and not all(shape.begin(listed, one) for one in above)):
        return {}, ""
    if digits:
        levels = [BUREAU[n] for n in digits]
        said = f", whose first digits are {', '.join(levels)}"
        return {"levels": levels, "prefix": list(digits), **code}, said
    if lengths := shape.lengths(listed):
        said = (
            f", where each code continues one of fewer characters ({', '.join(map(str, lengths))})"
        )
        levels = [f"{name}_{n}" for n in lengths]
        return {"levels": levels, "prefix": list(lengths), **code}, said
    return {}, ""


def _left_out(nesting: Nesting) -> str:
    """Return what of the list's columns is no level, as the end of a sentence."""
    said = [f"{text} {why}" for text, why in list(nesting.left_out.items())[:5]]
    open_places = [options for options in nesting.levels if len(options) > 1]
    said += [f"choose {' or '.join(options)}, which do not nest" for options in open_places]
    return f"; {'; '.join(said)}" if said else ""


def grid_axis(
    name: str,
    shape: ListShape,
    listed: Sequence[str],
    columns: Sequence[str],
    folder: Path,
    divide: Sequence[int] = (),
) -> ProposedAxis:
    """Return the axis of squares; without widths, of 100, 10 and 1 times those of the list."""
    width = 0 if divide else shape.grid(listed)
    widths = list(divide) or [width * n for n in (100, 10, 1) if width > 1]
    found = f", all multiples of {width}" if width > 1 else ""
    keys: Keys = {
        "name": name,
        "levels": [f"{name}_{n}" for n in widths] or [placeholder("a name a width")],
        **({} if list(columns) == list(listed) else {"columns": list(columns)}),
        "areas": os.path.relpath(shape.path, folder),
        "divide": widths or [placeholder("widths such as 10000, 1000")],
        "code": list(listed),
    }
    reason = f"{' and '.join(columns)} are {' and '.join(listed)} of {shape.path.name}{found}"
    return ProposedAxis(keys, reason, shape)


def numeric(name: str, low: Decimal, high: Decimal, bins: int | None) -> ProposedAxis:
    """Return the axis of a numeric column; without a number of bins, of one a whole number."""
    whole = low == low.to_integral_value() and high == high.to_integral_value()
    width = int(high - low)
    many = bins or (width if whole and 0 < width <= 1000 else 1000)
    bounds = [int(bound) if whole else bound for bound in (low, high)]
    keys = {"name": name, "low": bounds[0], "high": bounds[1], "bins": many}
    return ProposedAxis(keys, f"{name} is a number from {low} to {high}")


def product_of(shapes: Sequence[ListShape], name: str, folder: Path) -> ProposedAxis:
    """Return the axis of all combinations of the rows of several lists, beside a spine."""
    product = [
        c for shape in shapes for c in sorted(shape.frame.columns, key=shape.sizes.__getitem__)
    ]
    paths = [shape.path for shape in shapes]
    keys: Keys = {
        "name": name,
        "attribute": True,
        "product": product,
        "lists": [os.path.relpath(path, folder) for path in paths],
    }
    files = ", ".join(path.name for path in paths)
    reason = f"{', '.join(product)} are the columns of {files}, and do not all nest"
    return ProposedAxis(keys, reason)
