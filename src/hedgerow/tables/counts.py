"""Counts: the sparse leaf counts of a table in tree order. Confidential."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import TableError, check_kind, outside_limits
from hedgerow.tables.order import Codes, tree_rank
from hedgerow.tables.read import read_leaves
from hedgerow.tables.tree import Tree
from hedgerow.tables.whole import LARGEST_LEAF


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
    """

    tree: Tree
    codes: Codes
    values: NDArray[np.int64]
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
        values: NDArray[np.int64],
        *,
        contributions: int | None = None,
        before: int | None = None,
        most: int = LARGEST_LEAF,
    ) -> "Counts":
        """Counts from leaves in any order; a leaf may appear more than once.

        Of a leaf with more than ``most`` records these are counted.

        Raises:
            TableError: a negative count.
        """
        if len(values) and int(values.min()) < 0:
            raise outside_limits("the table", "has a negative count; counts must be 0 or more")
        values = np.minimum(values, most)
        keep = values > 0
        if not keep.all():
            codes, values = tuple(code[keep] for code in codes), values[keep]
        words = tree_rank(tree, codes)
        if not _increases(words):
            order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
            codes, values = tuple(code[order] for code in codes), values[order]
            codes, values = _merge(codes, values)
            values = np.minimum(values, most)
        return cls(tree, codes, values, contributions, before)

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
        """Counts of a table: a data frame, a CSV or Parquet file, or a `Query` to a database.

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
        check_kind("the tree of a table", tree, Tree, "Tree([axis, …])", TableError)
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

    def node_codes(self, depth: int) -> Codes:
        """For each non-zero leaf its node at a depth: one int32 array (leaves) an axis."""
        return tuple(
            code if level == axis.depth else axis.ancestors(level)[code]
            for axis, code, level in zip(
                self.tree.axes, self.codes, self.tree.cuboid(depth), strict=True
            )
        )

    def roll_up(self, depth: int) -> tuple[Codes, NDArray[np.int64]]:
        """The non-zero nodes of a depth in tree order, and their true counts.

        Returns:
            codes: one int32 array (nodes) an axis; counts: int64 (nodes), records.
        """
        return _merge(self.node_codes(depth), self.values)

    def level(self, depth: int) -> pl.DataFrame:
        """The true counts of a depth with their labels. Confidential: for tests and evaluation."""
        codes, values = self.roll_up(depth)
        return labelled(self.tree, depth, codes, count=values)


def _increases(words: list[NDArray[np.int64]]) -> bool:
    return len(words) == 1 and bool((words[0][1:] > words[0][:-1]).all())


def _merge(codes: Codes, values: NDArray[np.int64]) -> tuple[Codes, NDArray[np.int64]]:
    """Sum neighbours with equal codes."""
    if not len(values):
        return codes, values
    changed = np.ones(len(values), dtype=bool)
    changed[1:] = False
    for code in codes:
        changed[1:] |= code[1:] != code[:-1]
    if changed.all():
        return codes, values
    start = np.flatnonzero(changed)
    return tuple(code[start] for code in codes), np.add.reduceat(values, start)


def labelled(
    tree: Tree, depth: int, codes: Codes, **columns: NDArray[Any] | pl.Series
) -> pl.DataFrame:
    """Nodes of a depth with their codes in words, under the table's own column names.

    Args:
        tree: the tree.
        depth: of the nodes.
        codes: one int32 array (nodes) an axis.
        columns: further columns (nodes), which stand behind the labels.
    """
    series = []
    for axis, code, level in zip(tree.axes, codes, tree.cuboid(depth), strict=True):
        series += axis.path(level, code)
    return pl.DataFrame([*series, *(pl.Series(name, data) for name, data in columns.items())])
