"""The rows of a public table, in words, and how its columns meet those of a tree."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.arrays import Int64, int32, int64_zeros
from hedgerow.errors import PlanError, shorten
from hedgerow.estimate.spine.support import UNBOUNDED
from hedgerow.limits import LARGEST_LEAF
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, Texts, visible

SECTION = "[[public]]"
Rest = Literal["unlisted", "listed"]
"""Which cells of a public table hold nobody: those that it does not list, or those that it does."""
SPINE = (
    f'{SECTION} goes with cuboids = "cube" or a list, and attribute = true on every axis but one: '
    "public facts speak of the cells beside a spine"
)


@dataclass(frozen=True, eq=False, repr=False)
class PublicRows:
    """The rows of a public table, in words: those of its columns that say something of a tree.

    Attributes:
        subject: how messages name it.
        frame: sorted: the columns of ``level`` and ``attributes`` in the tree's order, as text,
            then those of bounds, int64.
        level: the column of the spine, if any.
        attributes: the attribute columns.
        zeros: which cells hold nobody; see `hedgerow.plan.facts.facts.PublicTable`.
        at_least: the column of least counts.
        at_most: the column of largest counts.

    Raises:
        PlanError: a cell that is listed twice, or a lower bound above the upper one.
    """

    subject: str
    frame: pl.DataFrame
    level: Texts
    attributes: Texts
    zeros: Rest | None
    at_least: str | None
    at_most: str | None

    def __post_init__(self) -> None:
        codes = self.frame.select(self.columns)
        same = np.ones(max(len(codes) - 1, 0), dtype=bool)
        for column in codes:
            same &= (column[1:] == column[:-1]).to_numpy()
        if same.any():
            raise PlanError(
                f"{self.subject} lists {self.cell(int(same.argmax()))} twice; each cell needs one "
                f"row (its columns here are {', '.join(self.columns)})"
            )
        wrong = np.flatnonzero(self.low > self.high)
        if len(wrong):
            at = int(wrong[0])
            raise PlanError(
                f"{self.subject}: {self.cell(at)} has {self.at_least} = {self.low[at]:,}, "
                f"above {self.at_most} = {self.high[at]:,}"
            )

    def __repr__(self) -> str:
        return f"PublicRows({self.words})"

    @property
    def columns(self) -> Texts:
        """The columns of codes."""
        return (*self.level, *self.attributes)

    @property
    def numbers(self) -> Texts:
        """The columns of bounds, each once."""
        return tuple(self.frame.columns[len(self.columns) :])

    @property
    def words(self) -> str:
        """The rows in words."""
        return f"{len(self.frame):,} rows by {' × '.join(self.columns)}"

    def cell(self, row: int) -> str:
        """Return the cell of a row in words."""
        return " × ".join(f"{name} {shown(self.frame[name][row])}" for name in self.columns)

    @property
    def low(self) -> Int64:
        """The least counts: int64 (rows), records."""
        if self.at_least is None:
            return int64_zeros(len(self.frame))
        return self.frame[self.at_least].to_numpy()

    @property
    def high(self) -> Int64:
        """The largest counts: int64 (rows), records; `UNBOUNDED` for none."""
        if self.at_most is None:
            return np.full(len(self.frame), UNBOUNDED, dtype=np.int64)
        given = self.frame[self.at_most].to_numpy()
        return np.where(given < LARGEST_LEAF, given, UNBOUNDED)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the names of the columns and the sorted rows, in words and numbers."""
        whole = hashlib.sha256(repr(tuple(self.frame.columns)).encode())
        for column in self.frame:
            if column.dtype == pl.Int64:
                blocks = [column.to_numpy().astype("<i8").tobytes()]
            else:
                lengths = column.str.len_bytes().cast(pl.Int64).to_numpy().astype("<i8")
                text = pa.array(column.to_arrow(), pa.large_string()).buffers()[2] or b""
                blocks = [lengths.tobytes(), bytes(text)]
            for block in blocks:
                whole.update(len(block).to_bytes(8, "little"))
                whole.update(block)
        return whole.hexdigest()

    def to_dict(self) -> Json:
        """Return what the rows say as JSON, the rows themselves by their digest."""
        return {
            "columns": list(self.columns),
            "zeros": self.zeros,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "rows": len(self.frame),
            "sha256": self.digest,
        }


def spine_axis(tree: Tree) -> Axis:
    """Return the axis that is no attribute.

    Raises:
        PlanError: there is none, or no attribute beside it; or it is a product of columns.
    """
    if tree.spine is None:
        raise PlanError(SPINE)
    spine = tree.axes[tree.spine]
    if spine.product is not None:
        raise PlanError(
            f"{SECTION} needs a hierarchy for its spine, and axis {spine.name!r} is a product"
        )
    return spine


def attribute_axes(tree: Tree) -> list[int]:
    """Return the numbers of the axes beside the spine."""
    return [a for a in range(len(tree.axes)) if a != tree.spine]


def attribute_columns(tree: Tree) -> list[str]:
    """Return the columns of the attributes, axis by axis."""
    axes = (tree.axes[a] for a in attribute_axes(tree))
    return [column for axis in axes for column in axis.columns]


def node_numbers(axis: Axis, level: int, codes: pl.Series) -> Int64:
    """Return the nodes of a level that have some codes: int64 (codes), -1 for no such node."""
    nodes = pl.DataFrame({"code": axis.labels[level - 1]}).with_row_index("node")
    matches = pl.DataFrame({"code": codes}).join(
        nodes, on="code", how="left", maintain_order="left"
    )
    return matches["node"].cast(pl.Int64).fill_null(-1).to_numpy()


def shown(code: str) -> str:
    """Return a code as messages show it."""
    return repr(shorten(visible(code)))


def check_ancestors(axis: Axis, frame: pl.DataFrame, levels: list[str], subject: str) -> None:
    """Raise unless the deepest of some levels' codes stand below the others."""
    deepest = axis.columns.index(levels[-1]) + 1
    nodes = node_numbers(axis, deepest, frame[levels[-1]])
    is_node = nodes >= 0
    for label in axis.path(deepest, int32(nodes[is_node])):
        given = frame[label.name].filter(pl.Series(is_node)) if label.name in levels else label
        if not (wrong := label != given).any():
            continue
        at = int(wrong.arg_max() or 0)
        code = frame[levels[-1]].filter(pl.Series(is_node))[at]
        raise PlanError(
            f"{subject}: {levels[-1]} {shown(code)} lies in {label.name} {shown(label[at])} and "
            f"not in {shown(given[at])}"
        )
