"""A product axis: the leaves are all combinations of the rows of public lists.

Its levels do not nest by a code of their own, as counties in states do: each tells some more of the
lists' columns, in an order that the planner chooses. With lists of sex (f, m) and of age (band,
year) the order ``sex, band, detail`` makes levels of 2, 2 × bands and 2 × years nodes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Int32, IntArrays, Sizes, int32, int64, int64_zeros
from hedgerow.errors import TableError, did_you_mean, nearest, shorten
from hedgerow.limits import MOST_LEAVES_OF_A_PRODUCT
from hedgerow.tables.lists.areas import level_starts
from hedgerow.text import Texts

BETWEEN_CODES = " · "
"""Stands between the codes of a node where they are shown as one."""
USUAL_REST = "detail"

_JOINS = re.compile(r"\s*[×*]\s*|\s+x\s+")


@dataclass(frozen=True, eq=False)
class Product:
    """What the levels of a product axis tell of its columns.

    Attributes:
        column_ends: for each level 1..L how many columns it and the levels above it tell;
            ascending, and all of them at last.
        words: for each column its code at each node of the level that is the first to tell it.
    """

    column_ends: Sizes
    words: tuple[pl.Series, ...]


@dataclass(frozen=True)
class Order:
    """The order in which the levels of a product axis tell its columns.

    Attributes:
        levels: L names.
        columns: in the order in which they are told.
        column_ends: for each level 1..L how many columns it and the levels above it tell.
    """

    levels: Texts
    columns: Texts
    column_ends: Sizes

    @classmethod
    def of(cls, product: Sequence[str], columns: Sequence[str], subject: str) -> "Order":
        """Return the order that a planner writes.

        Args:
            product: one entry a level: a column, or several joined by × (an x or * will do). A last
                entry that is no column stands for all columns that are left.
            columns: of the lists, each once.
            subject: how messages name the axis.

        Raises:
            TableError: an entry that is no column, a column that is told twice or never.
        """
        levels = []
        order = []
        ends = []
        for place, entry in enumerate(product, start=1):
            left = [column for column in columns if column not in order]
            parts = [entry] if entry in columns else _JOINS.split(entry)
            unknown = [part for part in parts if part not in columns]
            # a name for the columns that are left, and no misspelt one
            may_be_rest = place == len(product) and left and unknown == parts
            if may_be_rest and (entry == USUAL_REST or nearest(entry, left) is None):
                levels.append(entry)
                order += left
            else:
                if unknown:
                    raise TableError(
                        f"{subject}: product: {shorten(unknown[0])} is no column of its lists"
                        f"{did_you_mean(unknown[0], columns)}; they have {', '.join(columns)} (a "
                        f'last name that is none of them, such as "{USUAL_REST}", stands for all '
                        f"that are left)"
                    )
                twice = [part for i, part in enumerate(parts) if part in order or part in parts[:i]]
                if twice:
                    raise TableError(f"{subject}: product must name column {twice[0]!r} once")
                levels.append(" × ".join(parts))
                order += parts
            ends.append(len(order))
        left = [column for column in columns if column not in order]
        if left:
            raise TableError(
                f"{subject}: product leaves out {', '.join(left)}, so that leaves are not told "
                f'apart; end it with "{USUAL_REST}", which stands for all columns that are left'
            )
        return cls(tuple(levels), tuple(order), tuple(ends))


def combinations(lists: Sequence[pl.DataFrame], subject: str) -> pl.DataFrame:
    """Return all combinations of the rows of lists, one row each, in no order.

    Args:
        lists: text codes, one row a leaf of its factor.
        subject: how messages name the axis.

    Raises:
        TableError: a list that is none, a column of two lists, or more than
            `MOST_LEAVES_OF_A_PRODUCT`.
    """
    if not lists:
        raise TableError(f"{subject} needs at least one list")
    seen = set()
    for number, listed in enumerate(lists, start=1):
        where = f"{subject}: list {number}"
        if listed.is_empty() or not listed.columns:
            raise TableError(f"{where} is empty; it needs one row a code")
        gaps = [column for column in listed.columns if listed[column].null_count()]
        if gaps:
            raise TableError(f"{where} has a row without a {gaps[0]!r}; every row needs one")
        repeated = listed.is_duplicated()
        if repeated.any():
            row = shorten(BETWEEN_CODES.join(listed.filter(repeated).row(0)))
            raise TableError(f"{where} has the row {row} twice; list each once")
        shared = [column for column in listed.columns if column in seen]
        if shared:
            raise TableError(f"{subject}: two lists have a column {shared[0]!r}; rename one")
        seen.update(listed.columns)
    leaves = prod(map(len, lists))
    if leaves > MOST_LEAVES_OF_A_PRODUCT:
        sizes = " × ".join(f"{len(listed):,}" for listed in lists)
        raise TableError(
            f"{subject} has {sizes} = {leaves:,} leaves, and {MOST_LEAVES_OF_A_PRODUCT:,} are the "
            f"most; shorten a list, or make it an axis of its own"
        )
    whole = lists[0]
    for listed in lists[1:]:
        whole = whole.join(listed, how="cross")
    return whole


def nest_product(
    leaves: pl.DataFrame, levels: Sequence[str], column_ends: Sequence[int], subject: str
) -> tuple[tuple[pl.Series, ...], IntArrays, Product]:
    """Return labels and child ranges of every level, and what each tells.

    Args:
        leaves: text codes, one row a leaf, the columns in the order in which they are told.
        levels: L names.
        column_ends: for each level how many columns it and the levels above it tell.
        subject: how messages name the axis.

    Raises:
        TableError: two leaves, or the joined codes of two nodes, are the same.
    """
    leaves = leaves.sort(leaves.columns)
    labels = []
    words = list[pl.Series]()
    child_start = []
    starts = level_starts(leaves, column_ends)
    for name, count, (start, children) in zip(levels, column_ends, starts, strict=True):
        nodes = leaves[start].select(leaves.columns[:count])
        label = nodes.select(pl.concat_str(pl.all(), separator=BETWEEN_CODES).alias(name))[name]
        if count > 1 and label.n_unique() < len(label):
            twice = shorten(label.filter(label.is_duplicated())[0])
            raise TableError(
                f"{subject}: two nodes of level {name!r} have the joined codes {twice}; change one"
            )
        child_start.append(children)
        labels.append(label)
        words += nodes.get_columns()[len(words) :]
    if len(start) < len(leaves):
        raise TableError(f"{subject}: two leaves have the same codes")
    return tuple(labels), tuple(child_start), Product(tuple(column_ends), tuple(words))


def distinct_rows(frame: pl.DataFrame) -> tuple[pl.DataFrame, Int32]:
    """Return the distinct rows of text codes, sorted, and which of them each row is: int32."""
    number = int64_zeros(len(frame))
    for column in frame:  # renumbered each time, so that no product of sizes can overflow
        code = int64(column.rank("dense").to_numpy())
        number = np.unique(number * (len(frame) + 1) + code, return_inverse=True)[1]
    return frame[np.unique(number, return_index=True)[1]], int32(number)
