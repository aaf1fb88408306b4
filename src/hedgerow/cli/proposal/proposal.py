"""What the header of a table and public lists say of the axes of a new release file."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any

from hedgerow.cli.proposal.proposed_axis import (
    Keys,
    ProposedAxis,
    as_said,
    axis_of_list,
    axis_of_numbers,
    placeholder,
)
from hedgerow.errors import SpecError, TableError
from hedgerow.limits import MOST_FACTOR, MOST_LEAVES_OF_A_PRODUCT
from hedgerow.tables.lists.list_match import Match, matches
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.tables.sources.source import Source
from hedgerow.text import TextByName

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
        self, said: TextByName, named: Mapping[str, ListShape], others: Sequence[ListShape]
    ) -> list[ProposedAxis]:
        """Return all axes.

        Args:
            said: by ``--axis``: columns, numbers of characters, widths, or the bounds of a number.
            named: lists by the name of their axis.
            others: lists without one.
        """
        made = [self._said(name, said[name], named.get(name)) for name in said]
        made += [self._chosen(n, shape, shape.leaf) for n, shape in named.items() if n not in said]
        used = {axis.shape for axis in made}
        for shape in others:
            fitting = [match for match in self.left if match.shape is shape]
            for match in fitting or ([] if shape in used else [_open(shape, shape.leaf)]):
                names = {axis.name for axis in made}
                free = match.name
                number = 1
                while free in names:
                    number += 1
                    free = f"{match.name}_{number}"
                made.append(self._axis(free, match))
        return made

    def _said(self, name: str, given: str, shape: ListShape | None) -> ProposedAxis:
        """Return the axis of ``--axis``."""
        words = given.split(",")
        bounds = _BOUNDS.fullmatch(given)
        if bounds is not None:
            self.source.place(name)
            return axis_of_numbers(name, Decimal(bounds[1]), Decimal(bounds[2]), bounds[3])
        if not all(map(_WHOLE.fullmatch, words)):
            return self._of_columns(name, words, shape)
        # the axis of a code's first characters, or of squares where numbers descend
        numbers = [int(word) for word in words]
        wide = 2 if numbers[0] > numbers[-1] else 1
        fitting = [
            one for one in self.left if shape in {None, one.shape} and len(one.columns) == wide
        ]
        mine = [one for one in fitting if one.is_called(name)] or fitting
        shapes = {one.shape for one in mine} or set(self.shapes)
        if shape is None and len(shapes) != 1:
            raise SpecError(
                f"--axis {name}={given[:60]} needs the public list of its codes: --list {name}=FILE"
            )
        listed = shape or shapes.pop()
        if wide == 2 and not fitting:
            raise TableError(
                f"--axis {name}: the table and {listed.path.name} have no two columns of the same "
                f"names for coordinates, such as x and y"
            )
        return self._chosen(name, listed, listed.leaf, fitting, numbers=numbers)

    def _of_columns(self, name: str, words: Sequence[str], shape: ListShape | None) -> ProposedAxis:
        """Return the axis of columns of the table, or of a list, or of one that a list is for."""
        shapes = self.shapes if shape is None else [shape]
        own = set(words) <= set(self.source.names)
        for match in matches(words, shapes) if own else ():
            if match.columns == tuple(words):
                alike = match.shape, match.role
                self.left = [one for one in self.left if (one.shape, one.role) != alike]
                return self._axis(name, match)
        for listed in shapes:
            if set(words) <= set(listed.frame.columns):
                fitting = [one for one in self.left if one.listed == (words[-1],)]
                levels = words if len(words) > 1 else ()
                return self._chosen(name, listed, words[-1], fitting, levels=levels)
        for column in words:
            self.source.place(column)
        left = {one.shape for one in self.left}
        alone = [one for one in self.shapes if one not in left]
        if shape is None and len(words) == len(alone) == 1:
            (shape,) = alone
        if shape is None:
            return as_said(name, words, name)
        made = self._axis(name, Match(shape, (), (words[-1],), (shape.leaf,)))
        return replace(made, reason=f"{made.reason}; its name does not say so: check that")

    def _chosen(
        self,
        name: str,
        shape: ListShape,
        listed: str,
        among: Sequence[Match] | None = None,
        **parts: Sequence[Any],
    ) -> ProposedAxis:
        """Return the axis of the only match, or of that which a name says; keep it from others.

        Of several, or none, the columns of the table are left open.
        """
        fitting = [one for one in (self.left if among is None else among) if one.shape is shape]
        mine = [one for one in fitting if one.is_called(name)]
        for only in (mine, fitting):
            if len(only) == 1:
                self.left.remove(only[0])
                return self._axis(name, only[0], **parts)
        match = _open(shape, listed)
        if fitting:
            wide = len(fitting[0].columns)
            columns = zip(
                *(one.columns for one in fitting if len(one.columns) == wide), strict=True
            )
            match = replace(fitting[0], columns=tuple(placeholder(*each) for each in columns))
        return self._axis(name, match, **parts)

    def _axis(self, name: str, match: Match, **parts: Sequence[Any]) -> ProposedAxis:
        for column in match.columns:
            if not column.startswith("<"):
                self.source.place(column)  # raises for two of one name
        return axis_of_list(name, match, self.folder, **parts)


def _open(shape: ListShape, listed: str) -> Match:
    """Return the match of a list of which the table has no column by name."""
    return Match(shape, (), (placeholder(f"the table's column of {listed}"),), (listed,))


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
    spine = max(axes, key=lambda axis: max(axis.sizes, default=0), default=None)
    if spine is None or len(spine.sizes) < 3 or spine.sizes[-1] <= FEW_AREAS:
        return axes
    factors = [axis for axis in axes if axis is not spine]
    shapes = [axis.shape for axis in factors if axis.shape and _is_factor(axis, names)]
    rows = [len(shape.frame.unique()) for shape in shapes]
    columns = [
        column
        for shape in shapes
        for column in sorted(shape.frame.columns, key=shape.sizes.__getitem__)
    ]
    if len(shapes) < len(factors) or len(set(columns)) < len(columns):
        return axes
    nests = len(factors) < 2 and all(rows[i] <= one.sizes[-1] for i, one in enumerate(factors))
    if nests or prod(rows) > MOST_LEAVES_OF_A_PRODUCT:
        return axes
    keys: Keys = {
        "name": "attributes" if spine.name != "attributes" else "attribute",
        "attribute": True,
        "product": columns,
        "lists": [os.path.relpath(shape.path, folder) for shape in shapes],
    }
    files = ", ".join(shape.path.name for shape in shapes)
    reason = f"{', '.join(columns)} are the columns of {files}, and do not all nest"
    return [spine, ProposedAxis(keys, reason).sized(folder, table)]


def _is_factor(axis: ProposedAxis, names: Sequence[str]) -> bool:
    """Return whether a list is short, and the table has columns that tell all of its rows apart."""
    shape = axis.shape
    if shape is None or not axis.sizes or "columns" in axis.keys:
        return False
    frame = shape.frame.unique()
    own = [column for column in frame.columns if column in names]
    is_told = len(frame) <= MOST_FACTOR and bool(own) and frame.select(own).n_unique() == len(frame)
    return is_told and not any(map(shape.is_measure, shape.columns))
