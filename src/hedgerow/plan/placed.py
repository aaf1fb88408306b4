"""Public tables in numbers: nodes of the spine and groups, checked against each other.

*Feasibility.* Bounds are of one group at one node each, and the nodes are a tree, so whole counts
that keep them all exist exactly if, from the finest level up, no group has a larger least count
than its largest, with those of its children added (`hedgerow.estimate.spine.support.Support`).
(Choose the root's count between its bounds; what children may have together is every whole number
from Σ low to Σ high.) With the total N public, N must lie between the sums of the root's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Int64, IntPair, distinct, int64, int64_zeros
from hedgerow.errors import PlanError, did_you_mean
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.support import UNBOUNDED, Bounds, ContradictionError, Support
from hedgerow.limits import MOST_PUBLIC_PLACES
from hedgerow.plan.facts.public_rows import (
    SECTION,
    PublicRows,
    attribute_axes,
    node_numbers,
    shown,
    spine_axis,
)
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

Flags = NDArray[np.bool_]


def combinations(rows: PublicRows, leaves: pl.DataFrame) -> IntPair:
    """Return numbers of combinations of a table's attribute columns: of each leaf, of each row.

    Raises:
        PlanError: a row has a combination of codes that no leaf has.
    """
    names = list(rows.attributes)
    if not names:
        return int64_zeros(len(leaves)), int64_zeros(len(rows.frame))
    every = leaves.select(names)
    different = every.unique(maintain_order=True).with_row_index("")
    of_leaf, of_row = (
        frame.select(names).join(different, on=names, how="left", maintain_order="left")[""]
        for frame in (every, rows.frame)
    )
    if of_row.null_count():
        row = int(of_row.is_null().arg_max() or 0)
        for name in names:
            code = rows.frame[name][row]
            if not (every[name] == code).any():
                raise PlanError(
                    f"{rows.subject}: {name} has no code {shown(code)}"
                    f"{did_you_mean(code, every[name].unique().head(1000))}"
                )
        raise PlanError(f"{rows.subject}: no cell is {rows.cell(row)}")
    return of_leaf.cast(pl.Int64).to_numpy(), of_row.cast(pl.Int64).to_numpy()


@dataclass(frozen=True, eq=False)
class Placed:
    """The rows of a public table in numbers.

    Attributes:
        rows: the table.
        level: of the spine, as the tree numbers it; 0 for none.
        nodes: int64 (rows): nodes of that level.
        of_group: int64 (groups): the combination of the table's attribute columns in each group.
        of_row: int64 (rows): the combination of each row.
    """

    rows: PublicRows
    level: int
    nodes: Int64
    of_group: Int64
    of_row: Int64

    @property
    def is_by_group(self) -> bool:
        """Whether every group is a combination of its own."""
        return len(distinct(self.of_group)) == len(self.of_group)

    @property
    def group(self) -> Int64:
        """The group of each row, where every one is a combination of its own: int64 (rows)."""
        group = np.empty(len(self.of_group), dtype=np.int64)
        group[self.of_group] = np.arange(len(group))
        return group[self.of_row]

    def may_hold(self, size: int) -> Flags:
        """Return which groups the table leaves to which nodes: bool (nodes × groups)."""
        combinations = int(self.of_group.max()) + 1
        listed = np.zeros((size, combinations), dtype=np.bool_)
        listed[self.nodes, self.of_row] = True
        if self.rows.zeros == "listed":
            np.logical_not(listed, out=listed)
        return np.ascontiguousarray(listed[:, self.of_group])


@dataclass(frozen=True, eq=False)
class PlacedTables:
    """Public tables over a tree, before they are checked against each other.

    Attributes:
        spine: the axis.
        axis: the number of the axis that the groups are of, if any.
        tree: the levels of that axis down to the groups.
        leaves: the attribute cells in words.
        group_of: int64 (attribute cells): the group of each.
        tables: what the tables say.
    """

    spine: Axis
    axis: int | None
    tree: AxisShape
    leaves: pl.DataFrame
    group_of: Int64
    tables: tuple[Placed, ...]

    @classmethod
    def of(cls, tree: Tree, rows: Sequence[PublicRows], leaves: pl.DataFrame) -> "PlacedTables":
        """Return the tables in numbers: nodes of the spine, groups of one attribute."""
        spine = spine_axis(tree)
        axis = _group_axis(tree, rows)
        pairs = [combinations(table, leaves) for table in rows]
        shape, group_of = _groups(tree, axis, leaves, [of_leaf for of_leaf, _ in pairs])
        first = np.unique(group_of, return_index=True)[1]
        placed = []
        for table, (of_leaf, of_row) in zip(rows, pairs, strict=True):
            level, nodes = _nodes(spine, table)
            placed.append(Placed(table, level, nodes, of_leaf[first], of_row))
        made = cls(spine, axis, shape, leaves, group_of, tuple(placed))
        made.check_groups()
        return made

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.tree.sizes[-1]

    def check_groups(self) -> None:
        """Raise unless every bound is of one group, and there are not too many."""
        if self.spine.leaves * self.groups > MOST_PUBLIC_PLACES:
            raise PlanError(
                f"{SECTION} tables tell {self.groups:,} groups of attribute cells apart at "
                f"{self.spine.leaves:,} places, more than "
                f"{MOST_PUBLIC_PLACES:,} together; "
                f"list coarser attribute columns, or columns that stand first in the attribute"
            )
        finest = max(self.tables, key=lambda table: len(set(table.of_group.tolist())), default=None)
        for table in self.tables:
            if finest is not None and table.rows.numbers and not table.is_by_group:
                raise PlanError(
                    f"{table.rows.subject}: bounds must be of single groups, and "
                    f"{' × '.join(table.rows.attributes) or 'a row'} has several of the "
                    f"{self.groups:,} that "
                    f"{' × '.join(finest.rows.attributes)} tells apart; bound these"
                )

    @cached_property
    def shape(self) -> AxisShape:
        """The levels of the spine, without those of single children."""
        return AxisShape.of(self.spine.child_start)

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of all tables, as `hedgerow.estimate.spine.support` takes them."""
        return tuple(
            (self.shape.given[t.level], t.nodes, t.group, t.rows.low, t.rows.high)
            for t in self.tables
            if t.rows.numbers
        )

    @property
    def emptying(self) -> list[Placed]:
        """The tables that leave out groups at some places."""
        return [table for table in self.tables if table.level and table.rows.zeros is not None]

    def may_hold(self, widths: Int64) -> Flags:
        """Return which groups every place may have: bool (nodes of the deepest level × groups).

        Args:
            widths: int64 (groups): how many cells of a group rules leave.

        Raises:
            PlanError: no place may have any.
        """
        deepest = self.spine.depth
        may = np.ones((self.spine.size(deepest), self.groups), dtype=np.bool_)
        may &= widths > 0
        for table in self.emptying:
            below = np.diff(self.spine.descendant_start(table.level, deepest))
            own = table.may_hold(self.spine.size(table.level))
            may &= own if table.level == deepest else np.repeat(own, below, axis=0)
        if not may.any():
            raise PlanError(f"{SECTION} facts leave nobody anywhere; correct them")
        return may

    def limits(self, widths: Int64, has: IntPair | None) -> tuple[int, int]:
        """Return the least and the largest number of all records that the bounds allow for.

        Args:
            widths: int64 (groups): how many cells of a group rules leave.
            has: which groups the deepest nodes have; None for all.

        Raises:
            PlanError: no counts keep all bounds.
        """
        try:
            support = Support.of(self.shape, self.tree, widths, has, self.bounds)
        except ContradictionError as error:
            level, node, group = error.row
            if error.high < 0:
                raise self._lost(error, widths) from None
            raise PlanError(
                f"{SECTION} bounds contradict each other: "
                f"{self._name(self.shape.first(level), node, group)} must have at least "
                f"{error.low:,} and at most {error.high:,} records by its own bounds and those of "
                f"its parts; correct them"
            ) from None
        sums = (each[0].sum(dtype=np.float64) for each in (support.low, support.high))
        least, most = (int(min(each, UNBOUNDED)) for each in sums)
        if least == UNBOUNDED:
            raise PlanError(
                f"{SECTION} lower bounds ask for 2**53 records or more together, which no release "
                f"counts; correct them"
            )
        return least, most

    def _lost(self, error: ContradictionError, widths: Int64) -> PlanError:
        """Return the error for a lower bound of a group that its node does not have."""
        level, node, group = error.row
        table, row = next(
            (table, int(row))
            for table in self.tables
            if table.rows.numbers and self.shape.given[table.level] == level
            for row in np.flatnonzero(
                (table.nodes == node) & (table.group == group) & (table.rows.low == error.low)
            )[:1]
        )
        others = " and ".join(other.rows.subject for other in self.emptying)
        by = f"{SECTION} zeros" if widths[group] == 0 else others
        return PlanError(
            f"{table.rows.subject} has {table.rows.at_least} = {error.low:,} for "
            f"{table.rows.cell(row)}, where {by} leaves nobody; correct one of them"
        )

    def _name(self, level: int, node: int, group: int) -> str:
        """Return a group of a node in words."""
        words = ["everything"]
        if level:
            label = self.spine.labels[level - 1][node]
            words = [f"{self.spine.columns[level - 1]} {shown(label)}"]
        leaf = int((self.group_of == group).argmax())
        columns = {name for table in self.tables for name in table.rows.attributes}
        words += [
            f"{name} {shown(self.leaves[name][leaf])}"
            for name in self.leaves.columns
            if name in columns
        ]
        return " × ".join(words)


def _group_axis(tree: Tree, rows: Sequence[PublicRows]) -> int | None:
    """Return the number of the attribute that public tables speak of, place by place."""
    axes = attribute_axes(tree)
    if len(axes) == 1:
        return axes[0]
    columns = {a: set(tree.axes[a].columns) for a in axes}
    named = {name: table for table in rows for name in table.attributes}
    in_tables = [a for a in axes if columns[a] & set(named)]
    if len(in_tables) > 1:
        names = " and ".join(repr(tree.axes[a].name) for a in in_tables[:2])
        last = max(named.items(), key=lambda item: item[0] in columns[in_tables[1]])[1]
        raise PlanError(
            f"{last.subject}: tables with a level of the spine or with bounds may speak of one "
            f"attribute, and those of {SECTION} speak of {names}; make these one axis (product), "
            f"or list the others without places"
        )
    return in_tables[0] if in_tables else None


def _groups(
    tree: Tree, axis: int | None, leaves: pl.DataFrame, numbers: Sequence[Int64]
) -> tuple[AxisShape, Int64]:
    """Return the levels of an axis down to the groups, and the group of every attribute cell.

    Of a single attribute the groups are the nodes of the coarsest level within which no table tells
    cells apart; of one among several its leaves.
    """
    if axis is None:
        return AxisShape.of([]), int64_zeros(len(leaves))
    own = tree.axes[axis]
    axes = attribute_axes(tree)
    if len(axes) > 1:
        level = own.depth
    else:
        level = max((_level_of(own, of_leaf) for of_leaf in numbers), default=0)
    shape = AxisShape.of(own.child_start)
    sizes = [tree.axes[a].leaves for a in axes]
    leaf = np.unravel_index(np.arange(len(leaves)), sizes)[axes.index(axis)]
    return shape.down_to(shape.given[level]), int64(own.ancestors(level)[leaf])


def _level_of(axis: Axis, of_leaf: Int64) -> int:
    """Return the coarsest level no node of which has leaves with different numbers."""
    for level in range(axis.depth):
        start = axis.descendant_start(level, axis.depth)[:-1]
        if np.array_equal(np.minimum.reduceat(of_leaf, start), np.maximum.reduceat(of_leaf, start)):
            return level
    return axis.depth


def _nodes(spine: Axis, table: PublicRows) -> tuple[int, Int64]:
    """Return the level of the spine that a table lists, and the node of each row."""
    if not table.level:
        return 0, int64_zeros(len(table.frame))
    level = spine.columns.index(table.level[0]) + 1
    nodes = node_numbers(spine, level, table.frame[table.level[0]])
    if (nodes < 0).any():
        code = table.frame[table.level[0]][int((nodes < 0).argmax())]
        raise PlanError(
            f"{table.subject}: {table.level[0]} has no code {shown(code)} in the list of axis "
            f"{spine.name!r} (compared letter by letter)"
        )
    return level, nodes
