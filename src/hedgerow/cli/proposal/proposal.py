"""What the header of a table and public lists say of the axes of a new release file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any, ClassVar

from hedgerow.cli.proposal.proposed_axis import (
    ProposedAxis,
    axis_of_list,
    grid_axis,
    numeric,
    placeholder,
    product_of,
    toml,
)
from hedgerow.errors import SpecError, TableError
from hedgerow.limits import MOST_FACTOR, MOST_LEAVES_OF_A_PRODUCT
from hedgerow.tables.lists.list_match import Match, is_header, matches
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.tables.sources.source import Source
from hedgerow.text import Texts

FEW_AREAS = 10
"""Areas up to which an axis is no spine."""
_NUMBERS = {"age", "income", "wage", "wages", "salary", "earnings", "rent", "turnover", "duration"}
"""What columns of numbers are often called."""

Bounds = tuple[Decimal, Decimal, int | None]
_NUMBER = r"-?\d+(?:\.\d+)?"
_BOUNDS = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+))?")


@dataclass(frozen=True)
class AxisWords:
    """``--axis NAME=WORDS``: columns, numbers of characters, widths, or the bounds of a number."""

    keys: ClassVar[Mapping[str, Any]] = {}
    name: str
    words: Texts

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of a numeric column, and its bins if they are given."""
        found = _BOUNDS.fullmatch(self.words[0]) if len(self.words) == 1 else None
        if found is None:
            return None
        low, high = Decimal(found[1]), Decimal(found[2])
        if low >= high:
            raise SpecError(f"--axis {self.name}: the lower bound must be below the upper one")
        return low, high, None if found[3] is None else int(found[3])

    @property
    def text(self) -> str:
        """Its section as TOML, with the list of areas to be filled in."""
        areas = f"{self.name}.csv" if not self.name.startswith("<") else "<public list>.csv"
        return (
            f"[[axis]]\n"
            f"name   = {toml(self.name)}\n"
            f"levels = {toml(self.words)}   # from coarse to fine\n"
            f"areas  = {toml(areas)}   # the public list: these columns, one row a "
            f"{self.words[-1]!r}, empty ones too;\n"
            f'#        or "table", if the codes in the table are public\n'
        )

    @property
    def numbers(self) -> tuple[int, ...]:
        """Whole numbers: ascending, characters of a code; descending, widths of squares."""
        if not all(re.fullmatch(r"[1-9]\d{0,14}", word) for word in self.words):
            return ()
        return tuple(map(int, self.words))

    @property
    def is_grid(self) -> bool:
        """Whether its numbers are widths."""
        return len(self.numbers) > 1 and self.numbers[0] > self.numbers[-1]


Proposed = ProposedAxis | AxisWords
"""An axis of a new file: proposed from a list, or as the user says it."""


@dataclass
class Proposer:
    """Axes, one after the other, from what a user says and what headers say.

    Attributes:
        source: the table; of it only the names of columns are used.
        shapes: public lists, each once.
        folder: of the release file.
        taken: columns that are no axis's: counts, units.
    """

    source: Source
    shapes: Sequence[ListShape]
    folder: Path
    taken: Sequence[str]

    def __post_init__(self) -> None:
        names = [name for name in self.source.names if name not in self.taken]
        self.left = matches(names, self.shapes)

    def axes(
        self, said: Sequence[AxisWords], named: Mapping[str, ListShape], others: Sequence[ListShape]
    ) -> list[Proposed]:
        """Return all axes; as said, those that no public list is given for.

        Args:
            said: by ``--axis``.
            named: lists by the name of their axis.
            others: lists without one.
        """
        found = {words.name: self._said(words, named.get(words.name)) for words in said}
        made: list[Proposed] = list(found.values())
        made += [self._named(name, shape) for name, shape in named.items() if name not in found]
        used = {axis.shape.path for axis in made if isinstance(axis, ProposedAxis) and axis.shape}
        for shape in others:
            fitting = self._fitting(shape)
            for match in fitting:
                made.append(self._matched(self._free(match.name, made), match))
            if not fitting and shape.path not in used:
                name = "_".join(shape.column(shape.finest).words) or "place"
                made.append(self._unmatched(self._free(name[:60], made), shape))
        return made

    def _fitting(self, shape: ListShape) -> list[Match]:
        """Return what is left of the columns that have the codes of a list."""
        return [match for match in self.left if match.shape is shape]

    def _free(self, name: str, made: Sequence[Proposed]) -> str:
        """Return a name that no axis has."""
        names, number, free = {axis.name for axis in made}, 1, name
        while free in names:
            number += 1
            free = f"{name}_{number}"
        return free

    def _said(self, words: AxisWords, shape: ListShape | None) -> Proposed:
        """Return the axis of ``--axis``."""
        if words.bounds is not None:
            self.source.place(words.name)
            return numeric(words.name, *words.bounds)
        if words.numbers:
            return self._numbered(words, shape)
        in_table = set(words.words) <= set(self.source.names)
        codes = matches(words.words, self.shapes if shape is None else [shape])
        here = [match for match in codes if in_table and match.columns == words.words]
        shape = shape or next((match.shape for match in here), None)
        if shape is None:
            shape = next((s for s in self.shapes if set(words.words) <= set(s.frame.columns)), None)
        if shape is None and len(words.words) == 1:
            unmatched = [s for s in self.shapes if not any(m.shape is s for m in self.left)]
            shape = unmatched[0] if len(unmatched) == 1 else None
        if shape is None:
            for column in words.words:
                self.source.place(column)
            return words
        return self._of_list(words, shape, here)

    def _of_list(self, words: AxisWords, shape: ListShape, here: Sequence[Match]) -> ProposedAxis:
        """Return the axis of columns of the table, of a list, or of both."""
        if here:
            said = here[0]
            self.left = [m for m in self.left if m.shape is not said.shape or m.role != said.role]
            return self._matched(words.name, said)
        if set(words.words) <= set(shape.frame.columns):
            listed, levels = words.words[-1], words.words if len(words.words) > 1 else ()
            fitting = [m for m in self._fitting(shape) if m.listed == (listed,)]
            match = self._one(words.name, fitting)
            column = placeholder(f"the table's column of {listed}")
            if match is not None:
                self.left.remove(match)
                (column,) = match.columns
            elif fitting:
                column = placeholder(" or ".join(m.columns[0] for m in fitting))
            return axis_of_list(words.name, shape, listed, column, self.folder, levels=levels)
        for column in words.words:
            self.source.place(column)
        listed = shape.leaf
        made = axis_of_list(words.name, shape, listed, words.words[-1], self.folder)
        return replace(made, reason=f"{made.reason}; its name does not say so: check that")

    def _numbered(self, words: AxisWords, shape: ListShape | None) -> ProposedAxis:
        """Return the axis of a code's first characters, or of squares."""
        fitting = [
            match
            for match in self.left
            if (shape is None or match.shape is shape)
            and len(match.columns) == (2 if words.is_grid else 1)
        ]
        match = self._one(words.name, fitting)
        shape = shape or (match.shape if match else None)
        if shape is None and len(self.shapes) == 1:
            (shape,) = self.shapes
        if shape is None:
            raise SpecError(
                f"--axis {words.name}={','.join(words.words)[:60]} needs the public list of its "
                f"codes: --list {words.name}=FILE"
            )
        if match is not None:
            self.left.remove(match)
            return self._of_match(words.name, match, words.numbers)
        if words.is_grid:
            raise TableError(
                f"--axis {words.name}: the table and {shape.path.name} have no two columns of the "
                f"same names for coordinates, such as x and y"
            )
        column = placeholder(f"the table's column of {shape.finest}")
        return axis_of_list(
            words.name, shape, shape.finest, column, self.folder, prefix=words.numbers
        )

    def _one(self, name: str, fitting: Sequence[Match]) -> Match | None:
        """Return the only match, or that of the role which a name says."""
        mine = [m for m in fitting if name in {m.name, "_".join(m.role)}]
        if len(mine) == 1 or len(fitting) == 1:
            return (mine or fitting)[0]
        return None

    def _named(self, name: str, shape: ListShape) -> ProposedAxis:
        """Return the axis of ``--list NAME=FILE``."""
        fitting = self._fitting(shape)
        match = self._one(name, fitting)
        if match is not None:
            self.left.remove(match)
            return self._matched(name, match)
        if not fitting:
            return self._unmatched(name, shape)
        first = fitting[0]
        alike = [m.columns for m in fitting if len(m.columns) == len(first.columns)]
        open_columns = tuple(
            placeholder(" or ".join(columns)) for columns in zip(*alike, strict=True)
        )
        return self._matched(name, replace(first, columns=open_columns))

    def _matched(self, name: str, match: Match) -> ProposedAxis:
        for column in match.columns:
            if not column.startswith("<"):
                self.source.place(column)  # raises for two of one name
        return self._of_match(name, match)

    def _of_match(self, name: str, match: Match, numbers: Sequence[int] = ()) -> ProposedAxis:
        """Return the axis of a match, with the widths or numbers of characters of its levels."""
        shape, listed, columns = match.shape, match.listed, match.columns
        if len(columns) > 1:
            return grid_axis(name, shape, listed, columns, self.folder, numbers)
        return axis_of_list(name, shape, listed[0], columns[0], self.folder, prefix=numbers)

    def _unmatched(self, name: str, shape: ListShape) -> ProposedAxis:
        """Return the axis of a list of which the table has no column by name."""
        column = placeholder(f"the table's column of {shape.leaf}")
        return axis_of_list(name, shape, shape.leaf, column, self.folder)


def with_product(axes: Sequence[Proposed], names: Sequence[str], folder: Path) -> list[Proposed]:
    """Return the axes; those of lists that do not nest become one, beside the largest axis.

    Args:
        axes: all of them, with their sizes.
        names: the columns of the table.
        folder: of the release file.
    """
    proposed = [axis for axis in axes if isinstance(axis, ProposedAxis) and axis.sizes is not None]
    spine = max(proposed, key=_last, default=None)
    factors = [axis for axis in proposed if axis is not spine and _is_factor(axis, names)]
    shapes = [axis.shape for axis in factors if axis.shape is not None]
    columns = [column for shape in shapes for column in shape.frame.columns]
    crossed = any(axis.shape and len(axis.shape.frame.unique()) > _last(axis) for axis in factors)
    alone = len(axes) == len(factors) + 1 and len(set(columns)) == len(columns)
    if not (alone and spine is not None and (len(factors) > 1 or crossed)):
        return list(axes)
    leaves = prod(len(shape.frame.unique()) for shape in shapes)
    if len(spine.sizes or []) < 3 or _last(spine) <= FEW_AREAS or leaves > MOST_LEAVES_OF_A_PRODUCT:
        return list(axes)
    name = "attributes" if spine.name != "attributes" else "attribute"
    return [spine, product_of(shapes, name, folder).sized(folder)]


def _is_factor(axis: ProposedAxis, names: Sequence[str]) -> bool:
    """Return whether a list is short, and the table has columns that tell all of its rows apart."""
    if axis.shape is None or "columns" in axis.keys:
        return False
    if any(axis.shape.is_measure(column) for column in axis.shape.columns):
        return False
    frame = axis.shape.frame.unique()
    own = [column for column in frame.columns if column in names]
    return len(frame) <= MOST_FACTOR and bool(own) and frame.select(own).n_unique() == len(frame)


def _last(axis: ProposedAxis) -> int:
    return (axis.sizes or [0])[-1]


def check_no_record(source: Source, shapes: Sequence[ListShape]) -> None:
    """Raise if the first line of the table has a code of a public list: it may be a record.

    A line with the very name of a list's column is a header all the same: ID is Indonesia, too.
    """
    if any(is_header(source.names, shape) for shape in shapes):
        return
    for shape in shapes:
        for column in shape.columns:
            if column.kind == "name" or shape.is_measure(column):
                continue
            if shape.frame[column.text].is_in(list(source.names)).any():
                raise TableError(
                    f"{source.subject} has a column that is called like a code of "
                    f"{shape.path.name}; if its first line is a record, put a header before it, "
                    f"and if it is a header, rename that column"
                )


def left_over(names: Sequence[str], taken: Sequence[str], axes: Sequence[Proposed]) -> list[str]:
    """Return the columns that belong to no axis, and are neither counts nor the unit."""
    used = {*taken, *(axis.name for axis in axes)}
    for axis in axes:
        if isinstance(axis, AxisWords):
            used.update(axis.words)
        else:
            for key in ("levels", "columns", "product"):
                used.update(axis.keys.get(key, ()))
    return [name for name in names if name not in used]


def numbers_among(names: Sequence[str]) -> list[str]:
    """Return the columns that are called like a number."""
    return [name for name in names if name.casefold() in _NUMBERS]
