"""What stands beside areas: of each other axis the nodes of a level, or the codes of columns."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.release.naming import columns_among
from hedgerow.tables.axis import Axis


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
