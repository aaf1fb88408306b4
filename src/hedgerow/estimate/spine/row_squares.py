"""Least squares along a spine of each group by itself: one number a row.

Write, for a row (a node and one of its groups) and from its own subtree alone, z for its best
estimate, u for the variance of z, w for the information of its own measurements (an inverse
variance, 0 where its level is not measured), h = w · observation, and S = Σ u over the rows of the
same group at the node's children:

    up:    u = 1 / (w + 1/S),  z = u (h + Σ z_child / S)           (at the deepest level u = 1/w)
    down:  x_child = z_child + (u_child / S) (x - Σ z_child)       (at the root x = z)

This is `hedgerow.estimate.cube.axis_squares` where each group has a spine of its own.

*Over some nodes.* A child's estimate is q x + r, q = u_child / S, and residuals of different
families are uncorrelated: so a sum over children is B x, B = Σ q over those that are in it, and a
residual of the family of the variance Σ u (b - B)², b being 1 in the sum and 0 beside it. Families
are added up from the level of the nodes to the root.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.support import Support, run_starts, starts_within


@dataclass(frozen=True, eq=False)
class RowSquares:
    """The weights and variances of each row of a spine by itself.

    Attributes:
        support: which nodes have which groups.
        combined: for each spine level float64 (rows): u.
        family: for each spine level but the last float64 (rows): S.
        is_exact: whether the rows of the root are known exactly.
    """

    dimensions: ClassVar[int] = 1
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

    def combined_matrices(self, level: int, nodes: range) -> tuple[Int64, Float64]:
        """Return C of some nodes as matrices, u on the diagonal: where each begins, and entries."""
        rows = starts_within(self.support.start[level], nodes)
        sizes = np.diff(rows)
        start, node = run_starts(sizes**2), np.repeat(np.arange(len(sizes)), sizes)
        found, place = np.zeros(int(start[-1])), np.arange(rows[-1]) - rows[node]
        own = self.combined[level][self.support.rows(level, nodes)]
        found[start[node] + place * (sizes[node] + 1)] = own
        return start, found

    def final_matrices(self, level: int) -> tuple[Int64, Float64]:
        """Return that there are no matrices, and the variances of rows in their place."""
        return np.zeros(0, dtype=np.int64), self.final[level]

    def over(self, level: int, nodes: Int64) -> Float64:
        """Return the variances of the sum of estimates over some nodes: float64 (groups).

        It takes the nodes, their ancestors and the siblings of both, whatever else the spine has.

        Args:
            level: of the spine.
            nodes: int64 (nodes), ascending, each once.
        """
        support = self.support
        row = support.listed_rows(level, nodes)
        group = support.group[level][row]
        share, found = np.ones(len(row)), np.zeros(support.groups)
        for above in range(level - 1, -1, -1):
            u = self.combined[above + 1][row]
            up, place = np.unique(support.parent[above + 1][row], return_inverse=True)
            family = self.family[above][up]
            own = np.bincount(place, u * share, minlength=len(up)) / family
            left = np.maximum(family - np.bincount(place, u, minlength=len(up)), 0.0)
            found += np.bincount(group, u * (share - own[place]) ** 2, minlength=len(found))
            row, share, group = up, own, support.group[above][up]
            found += np.bincount(group, left * own**2, minlength=len(found))
        found += np.bincount(group, share**2 * self.final[0][row], minlength=len(found))
        return found
