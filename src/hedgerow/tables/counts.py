"""Counts: the sparse leaf counts of a table in tree order. Confidential."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Array, Codes, Int64, Levels, float64, rises, row_by_row, some_of
from hedgerow.errors import TableError, check_type, outside_limits
from hedgerow.limits import LARGEST_LEAF
from hedgerow.tables.ordered import Leaves, Sums, merge_equal
from hedgerow.tables.read import read_leaves
from hedgerow.tables.tree import Tree, tree_rank


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """The non-zero leaves of a table, in tree order: every subtree is one contiguous slice.

    Attributes:
        tree: the tree.
        codes: one int32 array (non-zero leaves) an axis: leaf numbers on that axis.
        values: int64 (non-zero leaves), records, 1 to `LARGEST_LEAF`.
        contributions: where contributions were bounded, the most records kept of one unit.
        before: where they were, the number of records that the table had, kept or not.
        unlisted: of each axis with a ``not_stated`` leaf, how many of the records counted there
            have a code that is not in the list, or none; None where that is not known.
        moved: by numeric axis how many values outside its bounds were moved to the nearest one.
        unit: where contributions were bounded, the column that named the units, if it is known.

    Example:
        >>> tree = hr.Tree([hr.Axis.from_frame("town", {"town": ["a", "b"]}, levels=["town"])])
        >>> table = {"town": ["a", "a"], "trips": [3, 4]}
        >>> counts = hr.Counts.from_frame(tree, table, count="trips")
        >>> counts, counts.total
        (Counts(confidential), 7)
    """

    tree: Tree
    codes: Codes
    values: Int64
    contributions: int | None = None
    before: int | None = None
    unlisted: tuple[int | None, ...] = ()
    moved: tuple[tuple[str, int], ...] = ()
    unit: str | None = None

    @classmethod
    def from_leaves(
        cls,
        tree: Tree,
        codes: Codes,
        values: Int64,
        *,
        contributions: int | None = None,
        before: int | None = None,
    ) -> "Counts":
        """Return counts from leaves in any order; a leaf may appear more than once.

        Of a leaf with more than `LARGEST_LEAF` records these are counted. What is counted is
        ``min(x, LARGEST_LEAF)`` of all x records of the leaf, in whichever rows they come: a row is
        cut before it is added, which changes no such minimum, and the sum saturates. So a function
        of the multiset of rows; see `hedgerow.limits.LARGEST_LEAF` for why it is stable.

        Raises:
            TableError: a negative count.
        """
        if len(values) and int(values.min()) < 0:
            raise outside_limits("the table", "has a negative count; counts must be 0 or more")
        keep = values > 0
        if not keep.all():
            codes, values = some_of(codes, keep), values[keep]
        values = np.minimum(values, LARGEST_LEAF)
        codes, values = _ordered(tree, codes, values, _saturated)
        return cls(tree, codes, values, contributions, before)

    @classmethod
    def from_nodes(
        cls, tree: Tree, codes: Codes, values: Int64, contributions: int | None = None
    ) -> "Counts":
        """Return counts of nodes, given by their first leaves in any order, with repetition.

        Nothing is cut or refused, as the leaves below were cut before they were added: sums wrap,
        as those of `roll_up` do. A node whose sum wraps to 0 is kept.
        """
        codes, values = _ordered(tree, codes, values, np.add.reduceat)
        return cls(tree, codes, values, contributions)

    @classmethod
    def from_frame(
        cls,
        tree: Tree,
        table: Any,
        *,
        count: str | None = None,
        unit: str | None = None,
        contributions: int = 1,
        memory: int | None = None,
    ) -> "Counts":
        """Return counts of a table: a data frame, a file, or a `Query`.

        Args:
            tree: the tree; its axes' columns must be in the table (all of an axis's, or its
                deepest alone).
            table: the records, or pre-aggregated rows.
            count: the column with the number of records of a row; left out, a row is a record.
            unit: the column that names the unit of privacy of a record; at most ``contributions``
                records of a unit are kept.
            contributions: the most records of one unit; needs ``unit``.
            memory: bytes for reading: what the database needs above half of them goes to temporary
                files, and so do the leaf counts, which are then read a page at a time.

        Raises:
            TableError: a column or code that does not fit, a count that is none; see
                `hedgerow.tables.read.read_leaves`.
        """
        check_type("the tree of a table", tree, Tree, "Tree([axis, …])", TableError)
        codes, values, before, unlisted = read_leaves(
            tree, table, count=count, unit=unit, contributions=contributions, memory=memory
        )
        bound = contributions if unit is not None else None
        return cls(tree, codes, values, bound, before, unlisted, unit=unit)

    def __repr__(self) -> str:
        return "Counts(confidential)"

    @property
    def total(self) -> int:
        """The number of records that are counted."""
        return int(self.values.sum())

    @property
    def unwrapped_total(self) -> float:
        """The number of records that are counted, however many: exact below 2⁵³."""
        return float(self.values.sum(dtype=np.float64))

    def node_codes(self, depth: int) -> Codes:
        """Return for each non-zero leaf its node at a depth: one int32 array (leaves) an axis."""
        return self._codes_at(self.tree.cuboid(depth))

    def _codes_at(self, levels: Levels) -> Codes:
        return tuple(
            code if level == axis.depth else axis.ancestors(level)[code]
            for axis, code, level in zip(self.tree.axes, self.codes, levels, strict=True)
        )

    def roll_up(self, depth: int) -> Leaves:
        """Return the non-zero nodes of a depth in tree order, and their true counts.

        Sums of 2^23 full leaves wrap. Noise is added modulo 2⁶⁴ as well, so that is post-processing
        of the true noisy count.

        Returns:
            codes: one int32 array (nodes) an axis; counts: int64 (nodes), records.
        """
        return merge_equal(self.node_codes(depth), self.values, np.add.reduceat)

    def cuboid(self, levels: Levels) -> Leaves:
        """Return the non-zero cells of any cuboid row by row, and their true counts.

        Returns:
            codes: one int32 array (cells) an axis, sorted by the first axis, then by the next;
            counts: int64 (cells), records.
        """
        ordered, order = row_by_row(self._codes_at(levels))
        return merge_equal(ordered, self.values[order], np.add.reduceat)

    def by_first_axis(self) -> "Counts":
        """Return the same leaves in the order of the first axis, within it as they were.

        Not in tree order, unless the tree refines the first axis first: subtrees are no slices.
        """
        code = self.codes[0]
        if bool((code[1:] >= code[:-1]).all()):
            return self
        order = np.argsort(code, kind="stable")
        return replace(self, codes=some_of(self.codes, order), values=self.values[order])

    def level(self, depth: int) -> pl.DataFrame:
        """Return the true counts of a depth with labels. Confidential: for tests and evaluation."""
        codes, values = self.roll_up(depth)
        return label_nodes(self.tree, self.tree.cuboid(depth), codes, count=values)


def _ordered(tree: Tree, codes: Codes, values: Int64, sums: Sums) -> Leaves:
    """Return leaves in tree order, each once."""
    words = tree_rank(tree, codes)
    if len(words) == 1 and rises(words[0]):
        return codes, values
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
    return merge_equal(some_of(codes, order), values[order], sums)


def _saturated(values: Int64, start: Int64) -> Int64:
    """Return the sums of groups up to `LARGEST_LEAF`, of values of at least 0; never wrapped.

    Doubles hold each sum below 2⁵³ exactly and never fall when something is added, so they tell
    which groups reach the limit; the others' sums fit.
    """
    full = np.add.reduceat(float64(values), start) >= LARGEST_LEAF
    return np.where(full, LARGEST_LEAF, np.add.reduceat(values, start))


def label_nodes(
    tree: Tree, levels: Levels, codes: Codes, **columns: Array | pl.Series
) -> pl.DataFrame:
    """Return cells of a cuboid with their codes in words, under the table's own column names.

    Args:
        tree: the tree.
        levels: the cuboid.
        codes: one int32 array (cells) an axis.
        columns: further columns (cells), which stand behind the labels.
    """
    series = []
    for axis, code, level in zip(tree.axes, codes, levels, strict=True):
        series += axis.path(level, code)
    return pl.DataFrame([*series, *(pl.Series(name, data) for name, data in columns.items())])
