"""What is summed: cells of a released table, by groups of its axes' nodes and over areas of one.

A sum is by a level of each axis or by columns of an attribute; an axis that is not named is summed
over. In place of the groups of one axis may stand areas of a user's own, which are no level and may
overlap. So cuboids, columns and areas are sums of one kind, numbered area by area, then row by row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import (
    Array,
    Bool,
    Codes,
    Int32,
    Int64,
    IntPair,
    IntTriple,
    Levels,
    among,
    distinct,
    int32,
    int64,
)
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.shape import is_within, meet
from hedgerow.limits import MOST_CELLS_SUMMED, MOST_SUMS
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import columns_among, is_off_tree, label_columns
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import cells_above
from hedgerow.text import TextByName


@frozen(eq=False)
class Groups:
    """The nodes of a level of an axis in groups, which sums are by.

    Attributes:
        level: of the axis, the coarsest that tells the groups apart; 0 where it is summed over.
        number: int64 (nodes of the level): the group of each.
        many: how many groups there are.
        labels: returns the codes of groups, a column each; none where the axis is summed over.
    """

    level: int
    number: Int64
    many: int
    labels: Callable[[Int32], list[pl.Series]]

    @classmethod
    def of(cls, axis: Axis, named: str | None) -> "Groups":
        """Return those of a level, or of columns joined by ×.

        Raises:
            TableError: the axis has no such column.
        """
        if named is None or named in axis.levels:
            level = 0 if named is None else axis.level_number(named)
            size = axis.size(level)
            return cls(level, np.arange(size), size, partial(axis.path, level))
        columns = columns_among(axis, named)
        telling = (k for k in range(1, axis.depth + 1) if set(columns) <= set(axis.columns_of(k)))
        level = next(telling, axis.depth)
        codes, of_leaf = axis.parts(columns)
        number = np.empty(axis.size(level), dtype=np.int64)
        number[axis.ancestors(level)] = of_leaf
        return cls(level, number, len(codes), lambda groups: codes[groups].get_columns())

    @classmethod
    def apart(cls, level: int, is_in: Bool) -> "Groups":
        """Return the nodes that are not in something, and those that are: bool (nodes)."""
        return cls(level, int64(is_in), 2, lambda _: [])


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums by levels or columns of the axes, and over areas of one.

    Attributes:
        plan: of the release.
        by: axis = level, or columns of an attribute; those that are not named are summed over.
        lookup: the areas, if any.
        own: groups of an axis's nodes in the place of a level's, by the name of the axis.

    Raises:
        ReleaseError: no such axis or level, that of the areas, or too many sums over areas.
        TableError: no such column.
    """

    plan: Plan
    by: TextByName
    lookup: Lookup | None = None
    own: Mapping[str, Groups] = field(default_factory=dict)

    def __post_init__(self) -> None:
        label_columns(self.plan, self.by)  # or an error that says which there are
        if self.lookup is None:
            return
        axis = self.plan.tree.axes[self.lookup.axis]
        if axis.name in self.by:
            raise ReleaseError(
                f"the areas are made of axis {axis.name!r}, so sums cannot be by one of its "
                f"levels, too; name levels of the other axes"
            )
        nodes = self.area_nodes
        if self.many > MOST_SUMS or nodes * self.cells > MOST_CELLS_SUMMED:
            raise ReleaseError(
                f"sums over {len(self.lookup):,} areas of {nodes:,} nodes by {self.cells:,} "
                f"combinations are too many; name coarser levels beside the areas, or fewer areas"
            )

    @classmethod
    def of(cls, plan: Plan, levels: Levels) -> "Sums":
        """Return the cells of a cuboid."""
        return cls(plan, {axis.name: level for axis, level in plan.tree.split(levels)})

    @cached_property
    def groups(self) -> tuple[Groups, ...]:
        """Of each axis; that of the areas is summed over."""
        return tuple(
            self.own.get(axis.name) or Groups.of(axis, self.by.get(axis.name))
            for axis in self.plan.tree.axes
        )

    @property
    def levels(self) -> Levels:
        """The cuboid whose cells are summed."""
        levels = [each.level for each in self.groups]
        if self.lookup is not None:
            levels[self.lookup.axis] = self.lookup.level
        return tuple(levels)

    @property
    def sizes(self) -> list[int]:
        """How many groups each axis has: 1 for that of the areas."""
        return [each.many for each in self.groups]

    @property
    def cells(self) -> int:
        """How many combinations of groups there are: of each area, if there are any."""
        return prod(self.sizes)

    @property
    def many(self) -> int:
        """How many sums there are."""
        return self.cells if self.lookup is None else self.cells * len(self.lookup)

    @property
    def area_nodes(self) -> int:
        """How many nodes areas are made of; 0 where there are none."""
        areas = self.lookup
        return 0 if areas is None else self.plan.tree.axes[areas.axis].size(areas.level)

    @property
    def is_cuboid(self) -> bool:
        """Whether the sums are the cells of `levels`."""
        return self.lookup is None and not self.own and not is_off_tree(self.plan, self.by)

    def labelled(self, numbers: Int64, **columns: NDArray[np.generic]) -> pl.DataFrame:
        """Return sums with their areas and codes, a column each, before columns of their own."""
        area, cell = np.divmod(numbers, self.cells)
        columns_before = [] if self.lookup is None else [self.lookup.areas[area]]
        for each, code in zip(self.groups, np.unravel_index(cell, self.sizes), strict=True):
            columns_before += each.labels(int32(code))
        return pl.DataFrame(
            [*columns_before, *(pl.Series(name, data) for name, data in columns.items())]
        )

    @cached_property
    def keys(self) -> list[Int64]:
        """For each axis what its nodes add to the key of a cell of `levels`: int64 (nodes).

        A key is the number of the sum; where there are areas, as if each node were one of them.
        """
        areas = None if self.lookup is None else self.lookup.axis
        return [
            np.arange(axis.size(level)) * self.cells
            if a == areas
            else groups.number * prod(self.sizes[a + 1 :])
            for a, (axis, level, groups) in enumerate(
                zip(self.plan.tree.axes, self.levels, self.groups, strict=True)
            )
        ]

    def key(self, cuboid: Levels, codes: Codes) -> Int64:
        """Return the keys of cells of a finer cuboid: int64 (cells)."""
        above = cells_above(self.plan.tree, self.levels, cuboid, codes)
        return np.asarray(sum(key[code] for key, code in zip(self.keys, above, strict=True)))

    def numbers(self, keys: Int64) -> Int64:
        """Return the numbers of the sums that cells are in, ascending; of areas all."""
        return distinct(keys) if self.lookup is None else np.arange(self.many)

    def counted(self, content: Content) -> IntPair:
        """Return the numbers of sums and their released counts.

        Of areas all, others where the count is above 0: int64 (sums) both, by number.
        """
        tree = self.plan.tree
        levels = self.levels
        holding = (each for each in self.plan.levels if is_within(levels, each))
        nodes = content.nodes[cuboid := min(holding, key=tree.cells, default=self.table())]
        return self.added(cuboid, nodes)[1:]

    def added(self, cuboid: Levels, nodes: Nodes) -> IntTriple:
        """Return of cells of a finer cuboid the keys, and of the sums numbers and counts."""
        keys = self.key(cuboid, nodes.codes)
        totals = Totals.of(self, self.numbers(keys), np.int64)
        totals.add(keys, nodes.counts)
        return keys, totals.numbers, totals.sums

    def table(self) -> Levels:
        """Return the smallest released table whose cells are summed, or raise a ReleaseError."""
        plan = self.plan
        levels = self.levels
        table = plan.table_of(levels)
        if table is not None:
            return table
        name = plan.tree.name_of(levels)
        tables = " and ".join(map(plan.tree.name_of, plan.tables))
        if self.lookup is None:
            several = "tables are" if len(plan.tables) > 1 else "table is"
            raise ReleaseError(
                f"{name} is no sum of what was released: the released {several} {tables}; ask for "
                f"a cuboid that one of them contains, or name this one in [workload] of a new "
                f"release"
            )
        raise ReleaseError(
            f"areas by {name} are no sums of what was released: {tables}; name levels beside the "
            f"areas that one of these tables has"
        )

    @property
    def cuboid(self) -> Levels:
        """The cuboid of that table which has the cells that are summed."""
        return meet(self.levels, self.table())


@frozen(eq=False)
class Totals:
    """Sums that cells are added to as they come.

    Attributes:
        of_what: the sums.
        numbers: int64 (sums), ascending: those that are wanted.
        held: of each of them, and of others; or of the nodes that areas are made of.
    """

    of_what: Sums
    numbers: Int64
    held: Array

    @classmethod
    def of(cls, sums: Sums, numbers: Int64, kind: type[np.generic] = np.float64) -> "Totals":
        """Return sums of nothing."""
        held = sums.area_nodes * sums.cells or len(numbers) + 1
        return cls(sums, numbers, np.zeros(held, dtype=kind))

    def add(self, keys: Int64, values: Array) -> None:
        """Add values of cells, each once."""
        if self.of_what.lookup is None:
            place, there = among(self.numbers, keys)
            keys = np.where(there, place, len(self.numbers))
        np.add.at(self.held, keys, values)

    @property
    def sums(self) -> Array:
        """What was added up: (sums)."""
        if (lookup := self.of_what.lookup) is None:
            return self.held[:-1]
        return lookup.sums(self.held.reshape(-1, self.of_what.cells)).ravel()[self.numbers]
