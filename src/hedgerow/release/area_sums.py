"""What is summed: cells of a released table over areas of one axis, by groups of the others'.

Areas are no level of an axis and may overlap. Beside them stand levels of the other axes, or
columns of attributes; an axis that is not named is summed over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_CELLS_SUMMED, MOST_SUMS
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import sums_of_cells
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import columns_among, label_columns
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.lookup import Lookup


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """The nodes of a level of an axis in groups, which sums are by.

    Attributes:
        level: of the axis, the coarsest that tells the groups apart; 0 where it is summed over.
        codes: of each group, a row each; without columns where it is summed over.
        number: int64 (nodes of the level): the group of each.
    """

    level: int
    codes: pl.DataFrame
    number: Int64

    @classmethod
    def of(cls, axis: Axis, named: str | None) -> "Beside":
        """Return those of a level, or of columns joined by ×.

        Raises:
            TableError: the axis has no such column.
        """
        if named is None:
            return cls(0, pl.DataFrame({"": [None]}), np.zeros(1, dtype=np.int64))
        if named in axis.levels:
            level = axis.level_number(named)
            every = np.arange(axis.size(level), dtype=np.int32)
            return cls(level, pl.DataFrame(axis.path(level, every)), every.astype(np.int64))
        columns = columns_among(axis, named)
        told = (k for k in range(1, axis.depth + 1) if set(columns) <= set(axis.columns_of(k)))
        level = next(told, axis.depth)
        codes, of_leaf = axis.parts(columns)
        number = np.empty(axis.size(level), dtype=np.int64)
        number[axis.ancestors(level)] = of_leaf
        return cls(level, codes, number)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def is_one_to_one(self) -> bool:
        """Whether each node is a group of its own."""
        return len(self.codes) == len(self.number)

    def labels(self, groups: Int64) -> list[pl.Series]:
        """Return the codes of groups, a column each."""
        return [column for column in self.codes[groups].get_columns() if column.name]


@dataclass(frozen=True, eq=False)
class AreaSums:
    """Sums over areas of one axis, by levels or columns of the others.

    Attributes:
        plan: of the release.
        lookup: the areas.
        by: axis = level, or columns of an attribute; those that are not named are summed over.

    Raises:
        ReleaseError: no such axis or level, that of the areas, or too many sums.
        TableError: no such column.
    """

    plan: Plan
    lookup: Lookup
    by: Mapping[str, str]

    def __post_init__(self) -> None:
        axis = self.plan.tree.axes[self.lookup.axis]
        label_columns(self.plan, self.by)  # or an error that says which there are
        if axis.name in self.by:
            raise ReleaseError(
                f"the areas are made of axis {axis.name!r}, so sums cannot be by one of its "
                f"levels, too; name levels of the other axes"
            )
        nodes = axis.size(self.lookup.level)
        if len(self.lookup) * self.cells > MOST_SUMS or nodes * self.cells > MOST_CELLS_SUMMED:
            raise ReleaseError(
                f"sums over {len(self.lookup):,} areas of {nodes:,} nodes by {self.cells:,} "
                f"combinations are too many; name coarser levels beside the areas, or fewer areas"
            )

    @cached_property
    def beside(self) -> tuple[Beside, ...]:
        """What stands beside the areas, of each axis; their own is summed over."""
        return tuple(Beside.of(axis, self.by.get(axis.name)) for axis in self.plan.tree.axes)

    @property
    def levels(self) -> Levels:
        """The cuboid whose cells are summed."""
        levels = [beside.level for beside in self.beside]
        levels[self.lookup.axis] = self.lookup.level
        return tuple(levels)

    @property
    def sizes(self) -> list[int]:
        """How many groups each axis has beside the areas: 1 for that of the areas."""
        return [len(beside) for beside in self.beside]

    @property
    def cells(self) -> int:
        """How many combinations of the other axes' groups there are."""
        return int(np.prod(self.sizes, dtype=object))

    def labels(self) -> list[pl.Series]:
        """Return the area and the codes beside it of each sum, a column each."""
        many = len(self.lookup)
        columns = [self.lookup.areas[np.repeat(np.arange(many), self.cells)]]
        groups = np.unravel_index(np.tile(np.arange(self.cells), many), self.sizes)
        for beside, group in zip(self.beside, groups, strict=True):
            columns += beside.labels(group)
        return columns

    def split(self, codes: Sequence[NDArray[np.integer]]) -> tuple[Int64, Int64]:
        """Return of cells the node on the areas' axis, and the number of the combination beside."""
        own = codes[self.lookup.axis].astype(np.int64)
        groups = [
            np.zeros_like(own) if axis == self.lookup.axis else beside.number[code]
            for axis, (beside, code) in enumerate(zip(self.beside, codes, strict=True))
        ]
        return own, np.ravel_multi_index(tuple(groups), self.sizes).astype(np.int64)

    def counts(self, content: Content) -> Int64:
        """Return the sums of released counts: int64 (areas, cells beside)."""
        table, tree, levels = self.table(), self.plan.tree, self.levels
        numbers, sums = sums_of_cells(tree, levels, table, content.listed(table))
        shape = [axis.size(level) for axis, level in zip(tree.axes, levels, strict=True)]
        found = np.zeros((shape[self.lookup.axis], self.cells), dtype=np.int64)
        np.add.at(found, self.split(np.unravel_index(numbers, shape)), sums)
        return np.asarray(self.lookup.sums(found), dtype=np.int64)

    def of_table(self, table: Float64) -> Float64:
        """Return the sums of a table: float64 (areas, cells beside) of (cells of each axis)."""
        for axis, beside in enumerate(self.beside):
            if axis != self.lookup.axis and not beside.is_one_to_one:
                each = np.moveaxis(table, axis, 0)
                sums = np.zeros((len(beside), *each.shape[1:]))
                np.add.at(sums, beside.number, each)
                table = np.moveaxis(sums, 0, axis)
        table = np.moveaxis(table, self.lookup.axis, 0)
        return np.asarray(self.lookup.sums(table.reshape(len(table), self.cells)))

    def table(self) -> Levels:
        """Return a released table whose cells are summed, or raise a ReleaseError."""
        table = self.plan.table_of(self.levels)
        if table is None:
            raise ReleaseError(
                f"areas by {self.plan.tree.name_of(self.levels)} are no sums of what was released: "
                f"{' and '.join(map(self.plan.tree.name_of, self.plan.tables))}; name levels "
                f"beside the areas that one of these tables has"
            )
        return table
