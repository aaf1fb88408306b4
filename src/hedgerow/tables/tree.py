"""A tree: an order of refinement over one or several axes, a chain of cuboids."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, CuboidList, Int64, Levels, Sizes, int32, int64, int64_zeros, runs
from hedgerow.errors import TableError, as_list, check_type
from hedgerow.tables.axis import Axis
from hedgerow.text import TextByName

TAKEN = {
    "count", "noisy_count", "released", "estimate", "standard_error", "low", "high", "variance",
    "contradicted", "suppressed", "rounded_to",
}  # fmt: skip
"""Columns of a release's own, which no level can have."""


Steps = tuple[tuple[int, int], ...]
"""The axis that each step refines, and the level that it refines it to."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A chain of cuboids, each refining one axis of the one before.

    Depth 0 is everything; at depth t axis ``steps[t - 1][0]`` is refined to level
    ``steps[t - 1][1]``. A node of depth t is one code an axis; its children are one axis's child
    range and are never stored.

    Args:
        axes: the axes.
        refine: axis names, to alternate them level by level (an axis that has no level left drops
            out); or every step as ``"axis.level"``; left out, the axes alternate as they stand.
            Where there are attributes, those that alternate come below the whole spine.

    Two axes may be made from one list: columns that both have, and that nobody named, begin with
    the name of the axis, as in ``home_state``.

    Raises:
        TableError: an unknown name, a level out of order, two axes with a column in common;
            attributes, but not exactly one axis that is none.

    Example:
        >>> sex = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])
        >>> areas = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
        >>> place = hr.Axis.from_frame("place", areas, levels=["state", "county"])
        >>> hr.Tree([place, sex], refine=["place.state", "sex.sex", "place.county"]).depth
        3
    """

    axes: tuple[Axis, ...]
    steps: Steps

    def __init__(self, axes: Sequence[Axis], refine: Sequence[str] | None = None) -> None:
        if isinstance(axes, Axis):
            raise TableError("a tree takes a list of axes, got one axis; write Tree([axis])")
        given = as_list("the axes of a tree", axes, "a list of axes", TableError)
        for axis in given:
            fitting = "Axis.from_frame(…)"
            check_type("an axis of a tree", axis, Axis, fitting, TableError)
        # the axes, with the name of the axis before columns that two have and nobody named
        times = Counter(column for axis in given for column in axis.columns)

        def renamed(axis: Axis) -> Axis:
            if axis.reading is None or all(times[column] == 1 for column in axis.columns):
                return axis
            free = axis.columns[: axis.depth - axis.reading.own]
            new = [f"{axis.name}_{column}" if times[column] > 1 else column for column in free]
            return replace(axis, columns=(*new, *axis.columns[len(new) :]))

        object.__setattr__(self, "axes", tuple(map(renamed, given)))
        self._check_axes()
        names = self.axis_names
        fitting = 'a list of names, or of steps such as "axis.level"'
        refine = names if refine is None else as_list("refine", refine, fitting, TableError)
        for entry in refine:
            check_type("an entry of refine", entry, str, "a name", TableError)
        steps = self._alternate(refine) if set(refine) <= set(names) else self._listed(refine)
        object.__setattr__(self, "steps", steps)

    def __repr__(self) -> str:
        names = ", ".join(map(self.name_of, self.chain))
        return f"Tree({names}; {self.leaves:,} leaves)"

    def with_axes(self, axes: Sequence[Axis]) -> "Tree":
        """Return the tree of other axes that have the same names and levels."""
        return Tree(axes, [f"{axes[a].name}.{axes[a].levels[k - 1]}" for a, k in self.steps])

    def _check_axes(self) -> None:
        if not self.axes:
            raise TableError("a tree needs at least one axis")
        names = self.axis_names
        spines = [axis.name for axis in self.axes if not axis.attribute]
        if len(spines) < len(names) and len(spines) != 1:
            raise TableError(
                f"beside attributes there must be one axis that is none, the spine, got "
                f"{' and '.join(map(repr, spines)) or 'attributes alone'}; set attribute = true "
                f"for all axes but one"
            )
        columns = self.every_column
        taken = TAKEN.intersection(columns)
        if taken:
            raise TableError(
                f"a level cannot have a column called {min(taken)!r}: releases have one of their "
                f"own; rename it (columns = [...])"
            )
        for kind, words in (("the name", names), ("a column called", columns)):
            twice = [word for word in words if words.count(word) > 1]
            if twice:
                raise TableError(
                    f"two axes share {kind} {twice[0]!r}; give each its own (columns = [...])"
                )

    @property
    def _numbers(self) -> dict[str, int]:
        """The number of each axis by its name."""
        return {axis.name: i for i, axis in enumerate(self.axes)}

    def _alternate(self, order: list[str]) -> Steps:
        numbers = self._numbers
        if sorted(order) != sorted(numbers):
            raise TableError(
                f"refine must name every axis once ({', '.join(numbers)}), got {', '.join(order)}"
            )
        spine = self.spine
        deepest = max(axis.depth for axis in self.axes)
        first = () if spine is None else range(1, self.axes[spine].depth + 1)
        others = [numbers[name] for name in order if numbers[name] != spine]
        return (
            *((spine or 0, level) for level in first),
            *(
                (axis, level)
                for level in range(1, deepest + 1)
                for axis in others
                if level <= self.axes[axis].depth
            ),
        )

    def _listed(self, refine: list[str]) -> Steps:
        numbers = self._numbers
        reached = [0] * len(self.axes)
        steps = []
        for entry in refine:
            name, _, level = entry.partition(".")
            if name not in numbers or not level:
                raise TableError(
                    f"refine: {entry!r} does not fit; name every axis once, or every step as "
                    f'"axis.level"; the axes are {", ".join(numbers)}'
                )
            axis = numbers[name]
            number = self.axes[axis].level_number(level)
            if number != reached[axis] + 1:
                due = self.axes[axis].levels[reached[axis] :]
                raise TableError(
                    f"refine: {entry!r} is out of order; next for axis {name!r} is "
                    f"{due[0] if due else 'nothing'!r}"
                )
            reached[axis] = number
            steps.append((axis, number))
        for whole, number in zip(self.axes, reached, strict=True):
            if number < whole.depth:
                raise TableError(f"refine leaves out '{whole.name}.{whole.levels[number]}'")
        return tuple(steps)

    @property
    def spine(self) -> int | None:
        """The number of the one axis that is no attribute; None where no axis is an attribute."""
        if not any(axis.attribute for axis in self.axes):
            return None
        return next(a for a, axis in enumerate(self.axes) if not axis.attribute)

    @property
    def is_spine_first(self) -> bool:
        """Whether all levels of the spine come first: below a node of it the leaves are a slice."""
        spine = self.spine
        if spine is None:
            return False
        return all(axis == spine for axis, _ in self.steps[: self.axes[spine].depth])

    @property
    def depth(self) -> int:
        """T, the depth of the leaves."""
        return len(self.steps)

    def cuboid(self, depth: int) -> Levels:
        """Return the level of each axis at a depth 0..T."""
        if not 0 <= depth <= self.depth:
            raise TableError(f"depth must be between 0 and {self.depth}, got {depth}")
        levels = [0] * len(self.axes)
        for axis, level in self.steps[:depth]:
            levels[axis] = level
        return tuple(levels)

    @cached_property
    def chain(self) -> CuboidList:
        """The cuboids of the depths 0..T."""
        return tuple(map(self.cuboid, range(self.depth + 1)))

    @property
    def finest(self) -> Levels:
        """The cuboid of the leaves."""
        return self.cuboid(self.depth)

    def depth_at(self, levels: Levels) -> int | None:
        """Return the depth whose cuboid it is; None for one off the chain."""
        depth = sum(levels)
        return depth if depth <= self.depth and self.chain[depth] == levels else None

    def cuboid_name(self, depth: int) -> str:
        """Return a depth in words: ``total``, ``county``, ``origin.region × age.band``."""
        return self.name_of(self.cuboid(depth))

    def name_of(self, levels: Levels) -> str:
        """Return a cuboid in words, on the chain or off it."""
        return " × ".join(self.level_name(*each) for each in self.split(levels)) or "total"

    def level_name(self, axis: Axis, level: str) -> str:
        """Return what a level is called in the names of cuboids."""
        return level if len(self.axes) == 1 else f"{axis.name}.{level}"

    def split(self, levels: Levels) -> list[tuple[Axis, str]]:
        """Return the axes that a cuboid is not summed over, and the level of each."""
        each = zip(self.axes, levels, strict=True)
        return [(axis, axis.levels[level - 1]) for axis, level in each if level]

    def cuboid_of(self, levels: TextByName) -> Levels:
        """Return the cuboid of axis → level, which is summed over the others.

        Raises:
            TableError: no such level.
        """
        return tuple(
            axis.level_number(levels[axis.name]) if axis.name in levels else 0 for axis in self.axes
        )

    @property
    def axis_names(self) -> list[str]:
        """What the axes are called."""
        return [axis.name for axis in self.axes]

    @property
    def every_column(self) -> list[str]:
        """The columns of codes of all levels, axis by axis."""
        return [column for axis in self.axes for column in axis.columns]

    @property
    def level_numbers(self) -> list[range]:
        """The numbers of each axis's levels, 0 for all of it together."""
        return [range(axis.depth + 1) for axis in self.axes]

    def named(self, name: str) -> Levels | None:
        """Return the cuboid of a name as `name_of` gives it; None where it is the name of none.

        Levels may stand in any order, and an x or * for the ×.
        """
        if name == "total":
            return (0,) * len(self.axes)
        numbers = {
            self.level_name(axis, level): (a, k)
            for a, axis in enumerate(self.axes)
            for k, level in enumerate(axis.levels, start=1)
        }
        for words in (name.split(" × "), re.split(r"\s*[×*]\s*|\s+x\s+", name)):
            parts = [numbers.get(word) for word in _levels_of(words, numbers)]
            places = dict(part for part in parts if part is not None)
            if len(places) == len(parts):
                return tuple(places.get(a, 0) for a in range(len(self.axes)))
        return None

    def columns(self, depth: int) -> list[str]:
        """Return the table's columns that label the nodes of a depth."""
        return self.columns_of(self.cuboid(depth))

    def with_names(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table with the names of areas behind their codes: ``COLUMN_name``.

        Raises:
            TableError: it has a column called like that.
        """
        for axis in self.axes:
            frame = axis.with_names(frame)
        return frame

    def columns_of(self, levels: Levels) -> list[str]:
        """Return the table's columns that label the cells of a cuboid."""
        return [
            column
            for axis, level in zip(self.axes, levels, strict=True)
            for column in axis.columns_of(level)
        ]

    def nodes(self, depth: int) -> int:
        """Return the number of possible nodes of a depth (a Python integer: it may exceed 2⁶³)."""
        return self.cells(self.cuboid(depth))

    def sizes(self, levels: Levels) -> Sizes:
        """Return how many nodes each axis has in a cuboid."""
        return tuple(axis.size(level) for axis, level in zip(self.axes, levels, strict=True))

    def cells(self, levels: Levels) -> int:
        """Return the number of possible cells of a cuboid (a Python integer)."""
        return prod(self.sizes(levels))

    @property
    def leaves(self) -> int:
        """The number of possible leaves."""
        return self.nodes(self.depth)

    def depth_of(self, level: str) -> int:
        """Return the depth of a level or cuboid by name: ``"county"`` or ``"origin.region"``.

        Raises:
            TableError: no depth is called that.
        """
        names = list(map(self.name_of, self.chain))
        if level not in names:
            depths = ", ".join(map(repr, names))
            raise TableError(f"the tree has no depth {level!r}; its depths are {depths}")
        return names.index(level)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the axes' digests, their columns and the order of refinement."""
        parts = [(axis.digest, axis.columns) for axis in self.axes]
        return hashlib.sha256(repr((parts, self.steps)).encode()).hexdigest()


def _levels_of(words: list[str], names: Iterable[str]) -> list[str]:
    """Return words that stood between × signs, joined again where a level has such a name."""
    joined = [name.split(" × ") for name in names if " × " in name]
    levels, first = [], 0
    while first < len(words):
        lengths = [len(parts) for parts in joined if words[first : first + len(parts)] == parts]
        last = first + max(lengths, default=1)
        levels.append(" × ".join(words[first:last]))
        first = last
    return levels


# Tree order: words that sort leaves so that every subtree is one contiguous slice.

WORD_BITS = 63


def word_depths(tree: Tree) -> list[int]:
    """Return where the key of a leaf is cut into words: depths 0 = d₀ < d₁ < … = T.

    A refinement takes as many bits as its largest family needs, fewer than 32; a word has 63.
    """
    cuts, bits = [0], 0
    for depth in range(1, tree.depth + 1):
        more = _bits(tree, depth)
        if bits + more > WORD_BITS:
            cuts.append(depth - 1)
            bits = 0
        bits += more
    return [*cuts, tree.depth]


def _bits(tree: Tree, depth: int) -> int:
    axis, level = tree.steps[depth - 1]
    return (int(np.diff(tree.axes[axis].child_start[level - 1]).max()) - 1).bit_length()


def leaf_words(tree: Tree, number: int) -> list[Int64]:
    """Return what a leaf of one axis adds to each word of its cells: int64 (its leaves).

    A cell's key is, refinement by refinement, the place of its node among its siblings. That place
    is a matter of the refined axis alone, so a word is a sum over the axes.
    """
    axis = tree.axes[number]
    words = []
    for upper, lower in pairwise(word_depths(tree)):
        word = int64_zeros(axis.leaves)
        shift = 0
        for depth in range(lower, upper, -1):
            refined, level = tree.steps[depth - 1]
            if refined == number:
                start = axis.child_start[level - 1]
                word |= runs(0, np.diff(start))[axis.ancestors(level)] << shift
            shift += _bits(tree, depth)
        words.append(word)
    return words


def tree_rank(tree: Tree, codes: Codes) -> list[Int64]:
    """Return the words of the leaves' keys in tree order, most significant first.

    Args:
        tree: the tree.
        codes: one int32 array (leaves) an axis: leaf numbers on that axis.

    Returns:
        int64 arrays (leaves). Comparing them lexicographically compares leaves in tree order.
    """
    if len(tree.axes) == 1:
        return [int64(codes[0])]
    words = []
    for number, code in enumerate(codes):
        for i, word in enumerate(leaf_words(tree, number)):
            if number == 0:
                words.append(word[code])
            elif word.any():
                words[i] += word[code]
    return words


def cell_numbers(tree: Tree, levels: Levels, codes: Codes) -> Int64:
    """Return the number of each cell of a cuboid, row by row: int64 (cells).

    Args:
        tree: the tree.
        levels: the cuboid.
        codes: one int32 array (cells) an axis: its nodes at the cuboid's levels.
    """
    number = int64_zeros(len(codes[0]))
    for axis, level, code in zip(tree.axes, levels, codes, strict=True):
        number *= axis.size(level)
        number += code
    return number


def cell_codes(tree: Tree, levels: Levels, numbers: Int64) -> Codes:
    """Return the nodes of cells by their numbers: one int32 array (cells) an axis."""
    codes = np.unravel_index(numbers, tree.sizes(levels))
    return tuple(int32(code) for code in codes)


def cells_above(tree: Tree, levels: Levels, finer: Levels, codes: Codes) -> Codes:
    """Return the cells of a cuboid that cells of a finer one belong to, single children aside."""
    axes = zip(tree.axes, levels, finer, codes, strict=True)
    return tuple(axis.nodes_above(level, given, code) for axis, level, given, code in axes)


def nodes_along(tree: Tree) -> Iterator[tuple[Codes, Int64]]:
    """Yield the nodes of each depth in tree order, and how many children each has: int64 (nodes).

    The leaves have none. What is yielded is made when it is wanted.
    """
    codes = [np.zeros(1, dtype=np.int32) for _ in tree.axes]
    for refined, level in tree.steps:
        first = np.asarray(tree.axes[refined].child_start[level - 1], dtype=np.int64)
        children = np.diff(first)[codes[refined]]
        eldest = first[codes[refined]]
        yield tuple(codes), children
        codes = [np.repeat(code, children) for code in codes]
        codes[refined] = int32(runs(eldest, children))
    yield tuple(codes), np.zeros(len(codes[0]), dtype=np.int64)
