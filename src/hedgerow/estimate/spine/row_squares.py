"""Least squares along a spine of each group by itself: one number a row.

Write, for a row (a node and one of its groups) and from its own subtree alone, z for its best
estimate, u for the variance of z, w for the information of its own measurements (an inverse
variance, 0 where its level is not measured), h = w · observation, and S = Σ u over the rows of the
same group at the node's children:

    up:    u = 1 / (w + 1/S),  z = u (h + Σ z_child / S)           (at the deepest level u = 1/w)
    down:  x_child = z_child + (u_child / S) (x - Σ z_child)       (at the root x = z)

This is `hedgerow.estimate.cube.axis_squares` where each group has a spine of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.support import Support


@dataclass(frozen=True, eq=False)
class RowSquares:
    """The weights and variances of each row of a spine by itself.

    Attributes:
        support: which nodes have which groups.
        combined: for each spine level float64 (rows): u.
        family: for each spine level but the last float64 (rows): S.
        is_exact: whether the rows of the root are known exactly.
    """

    support: Support
    combined: tuple[Float64, ...]
    family: tuple[Float64, ...]
    is_exact: bool = False

    @classmethod
    def of(
        cls, support: Support, own: Sequence[Float64], *, is_exact: bool = False
    ) -> "RowSquares":
        """Return the least squares of each row, from the information of measurements.

        Args:
            support: which nodes have which groups.
            own: for each spine level float64 (groups): w, from 0 on; above 0 at the deepest level.
            is_exact: whether the rows of the root are known exactly.

        Raises:
            EstimateError: a negative or infinite information, or none at the deepest level.
        """
        used = support.group[0]
        if not all(np.isfinite(each[used]).all() and (each[used] >= 0).all() for each in own):
            raise EstimateError("the information of a measurement must be a number from 0 on")
        if (own[-1][used] == 0).any():
            raise EstimateError("every group must be measured at the deepest level of the spine")
        combined, family = [1 / own[-1][support.group[-1]]], list[Float64]()
        for level in range(support.spine.depth - 1, -1, -1):
            rows, info = len(support.group[level]), own[level][support.group[level]]
            below = np.bincount(support.parent[level + 1], combined[0], minlength=rows)
            family.insert(0, below.astype(np.float64))
            combined.insert(0, np.where(info > 0, 1 / (info + 1 / family[0]), family[0]))
        return cls(support, tuple(combined), tuple(family), is_exact)

    @cached_property
    def final(self) -> tuple[Float64, ...]:
        """The variance of each row's estimate from everything: for each level float64 (rows)."""
        found = [self.combined[0] * (0.0 if self.is_exact else 1.0)]
        for level in range(1, self.support.spine.depth + 1):
            up, u = self.support.parent[level], self.combined[level]
            q = u / self.family[level - 1][up]
            found.append(u * (1 - q) + q * q * found[-1][up])
        return tuple(found)

    def times_combined(self, level: int, nodes: range, table: Float64) -> Float64:
        """Return u times a table of the rows of some nodes: float64 (rows, coordinates)."""
        return self.combined[level][self.support.rows(level, nodes), None] * table

    def over_family(self, level: int, nodes: range, table: Float64) -> Float64:
        """Return a table of the rows of some nodes over S: float64 (rows, coordinates)."""
        return table / self.family[level][self.support.rows(level, nodes), None]
