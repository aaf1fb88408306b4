"""What the header of a table and public lists say of the axes of a new release file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from pathlib import Path

from hedgerow.cli.proposal.proposed_axis import (
    ProposedAxis,
    axis_as_said,
    axis_of_list,
    axis_of_numbers,
    axis_of_product,
    placeholder,
)
from hedgerow.errors import SpecError, TableError
from hedgerow.limits import MOST_FACTOR, MOST_LEAVES_OF_A_PRODUCT
from hedgerow.tables.lists.list_match import Match, is_header
from hedgerow.tables.lists.list_match import matches as matches_of
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.tables.sources.source import Source

FEW_AREAS = 10
"""Areas up to which an axis is no spine."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_BOUNDS = re.compile(rf"({_NUMBER}):({_NUMBER})(?::(\d+))?")
_WHOLE = re.compile(r"[1-9]\d{0,14}")


@dataclass
class Proposer:
    """Axes, one after the other, from what a user says and what headers say.

    Attributes:
        source: the table; of it only the names of columns are used.
        shapes: public lists, each once.
        folder: of the release file.
        left: columns of the table that are called like those of a list, and are no axis's yet.
    """

    source: Source
    shapes: Sequence[ListShape]
    folder: Path
    left: list[Match]

    def axes(
        self, said: Mapping[str, str], named: Mapping[str, ListShape], others: Sequence[ListShape]
    ) -> list[ProposedAxis]:
        """Return all axes.

        Args:
            said: by ``--axis``: columns, numbers of characters, widths, or the bounds of a number.
            named: lists by the name of their axis.
            others: lists without one.
        """
        made = [self._said(name, said[name].split(","), named.get(name)) for name in said]
        for name, shape in named.items():
            if name not in said:
                fitting = self._fitting(shape)
                made.append(self._axis(name, self._chosen(name, fitting, shape, shape.leaf)))
        used = {axis.shape for axis in made}
        for shape in others:
            fitting = self._fitting(shape)
            if not fitting and shape not in used:
                fitting = [_open(shape, shape.leaf)]
            for match in fitting:
                made.append(self._axis(_free(match.name, made), match))
        return made

    def _fitting(self, shape: ListShape) -> list[Match]:
        """Return what is left of the columns that have the codes of a list."""
        return [match for match in self.left if match.shape is shape]

    def _said(self, name: str, words: Sequence[str], shape: ListShape | None) -> ProposedAxis:
        """Return the axis of ``--axis``."""
        bounds = _BOUNDS.fullmatch(",".join(words))
        if bounds is not None:
            low, high = Decimal(bounds[1]), Decimal(bounds[2])
            if low >= high:
                raise SpecError(f"--axis {name}: the lower bound must be below the upper one")
            self.source.place(name)
            return axis_of_numbers(name, low, high, int(bounds[3]) if bounds[3] else None)
        if all(map(_WHOLE.fullmatch, words)):
            # the axis of a code's first characters, or of squares where numbers descend
            numbers = [int(word) for word in words]
            listed = shape
            is_grid = len(numbers) > 1 and numbers[0] > numbers[-1]
            fitting = [
                match
                for match in self.left
                if listed in {None, match.shape} and len(match.columns) == (2 if is_grid else 1)
            ]
            mine = [match for match in fitting if match.is_called(name)] or fitting
            shapes = {match.shape for match in mine} or set(self.shapes)
            if listed is None and len(shapes) == 1:
                (listed,) = shapes
            if listed is None:
                raise SpecError(
                    f"--axis {name}={','.join(map(str, numbers))[:60]} needs the public list of "
                    f"its codes: --list {name}=FILE"
                )
            if is_grid and not fitting:
                raise TableError(
                    f"--axis {name}: the table and {listed.path.name} have no two columns of the "
                    f"same names for coordinates, such as x and y"
                )
            match = self._chosen(name, fitting, listed, listed.leaf)
            return self._axis(name, match, numbers=numbers)
        return self._of_columns(name, words, shape)

    def _of_columns(self, name: str, words: Sequence[str], shape: ListShape | None) -> ProposedAxis:
        """Return the axis of columns of the table, or of a list, or of one that a list is for."""
        shapes = self.shapes if shape is None else [shape]
        if set(words) <= set(self.source.names):
            for match in matches_of(words, shapes):
                if match.columns == tuple(words):
                    alike = (match.shape, match.role)
                    self.left = [one for one in self.left if (one.shape, one.role) != alike]
                    return self._axis(name, match)
        of_list = next((one for one in shapes if set(words) <= set(one.frame.columns)), None)
        if of_list is not None:
            *above, listed = words
            fitting = [one for one in self._fitting(of_list) if one.listed == (listed,)]
            match = self._chosen(name, fitting, of_list, listed)
            return self._axis(name, match, levels=words if above else ())
        for column in words:
            self.source.place(column)
        alone = [one for one in self.shapes if not self._fitting(one)]
        if shape is None and len(words) == len(alone) == 1:
            (shape,) = alone
        if shape is None:
            return axis_as_said(name, words, f"{name}.csv")
        made = self._axis(name, Match(shape, (), (words[-1],), (shape.leaf,)))
        return replace(made, reason=f"{made.reason}; its name does not say so: check that")

    def _chosen(self, name: str, fitting: Sequence[Match], shape: ListShape, listed: str) -> Match:
        """Return the only match or that which a name says, and keep it from others.

        Of several, or none, the columns of the table are left open.
        """
        mine = [match for match in fitting if match.is_called(name)]
        if len(mine) == 1 or len(fitting) == 1:
            (match,) = mine if len(mine) == 1 else fitting
            self.left.remove(match)
            return match
        if not fitting:
            return _open(shape, listed)
        first = fitting[0]
        alike = [match.columns for match in fitting if len(match.columns) == len(first.columns)]
        columns = [placeholder(" or ".join(each)) for each in zip(*alike, strict=True)]
        return replace(first, columns=tuple(columns))

    def _axis(
        self,
        name: str,
        match: Match,
        *,
        levels: Sequence[str] = (),
        numbers: Sequence[int] = (),
    ) -> ProposedAxis:
        for column in match.columns:
            if not column.startswith("<"):
                self.source.place(column)  # raises for two of one name
        return axis_of_list(name, match, self.folder, levels=levels, numbers=numbers)


def _open(shape: ListShape, listed: str) -> Match:
    """Return the match of a list of which the table has no column by name."""
    return Match(shape, (), (placeholder(f"the table's column of {listed}"),), (listed,))


def _free(name: str, made: Sequence[ProposedAxis]) -> str:
    """Return a name that no axis has."""
    names, number, free = {axis.name for axis in made}, 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    return free


def with_product(
    axes: Sequence[ProposedAxis], names: Sequence[str], folder: Path, table: Path
) -> Sequence[ProposedAxis]:
    """Return the axes; those of lists that do not nest become one, beside the largest axis.

    Args:
        axes: all of them, with their sizes.
        names: the columns of the table.
        folder: of the release file.
        table: the confidential one.
    """
    spine = max(axes, key=lambda axis: axis.last, default=None)
    if spine is None or len(spine.sizes or ()) < 3 or spine.last <= FEW_AREAS:
        return axes
    factors = [axis for axis in axes if axis is not spine]
    shapes = [axis.shape for axis in factors if axis.shape and _is_factor(axis, names)]
    rows = [len(shape.frame.unique()) for shape in shapes]
    columns = [column for shape in shapes for column in shape.frame.columns]
    if len(shapes) < len(factors) or len(set(columns)) < len(columns):
        return axes
    nests = len(factors) < 2 and all(n <= axis.last for n, axis in zip(rows, factors, strict=True))
    if nests or prod(rows) > MOST_LEAVES_OF_A_PRODUCT:
        return axes
    name = "attributes" if spine.name != "attributes" else "attribute"
    return [spine, axis_of_product(name, shapes, folder).sized(folder, table)]


def _is_factor(axis: ProposedAxis, names: Sequence[str]) -> bool:
    """Return whether a list is short, and the table has columns that tell all of its rows apart."""
    if axis.shape is None or axis.sizes is None or "columns" in axis.keys:
        return False
    if any(map(axis.shape.is_measure, axis.shape.columns)):
        return False
    frame = axis.shape.frame.unique()
    own = [column for column in frame.columns if column in names]
    return len(frame) <= MOST_FACTOR and bool(own) and frame.select(own).n_unique() == len(frame)


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
