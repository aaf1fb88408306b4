"""The rests of rows along a spine: `RowSquares` for every cell of the detail layout.

Within a group the covariance of the rest e of a node is v E, E being the same at all nodes, so the
rests go up and down the spine as one number would: with u, S and the information w = 1/v of
`hedgerow.estimate.spine.row_squares`,

    up:    z = u (w e + Σ z_child / S)
    down:  x_child = z_child + (u_child / S) (x - Σ z_child)
"""

from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.estimate.spine.coupled import Elimination
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Part, Support, starts_within
from hedgerow.kernels import kernel


@dataclass(frozen=True, eq=False)
class Rests(Elimination):
    """Least squares of rests along a spine: tables are float64, detail layout.

    Attributes:
        support: which nodes have which groups.
        squares: of one number a row.
        variances: float64 (spine levels): v, infinite where a level is not measured.
    """

    support: Support
    squares: RowSquares
    variances: Float64

    @classmethod
    def of(cls, support: Support, variances: Float64) -> "Rests":
        """Return the least squares of rests from the variances of spine levels."""
        own = [np.full(support.groups, 1 / v) for v in variances]
        return cls(support, RowSquares.of(support, own), variances)

    def starts(self, level: int, rows: slice, table: Float64) -> Int64:
        """Return where the cells of each of some rows begin, from 0: int64 (rows + 1)."""
        del table
        return starts_within(self.support.cell[level], rows)

    def combined(self, level: int, nodes: range, own: Float64, sums: Float64 | None) -> Float64:
        """Return z of some nodes from their own tables' rests, which are overwritten."""
        if sums is not None:
            rows = self.support.rows(level, nodes)
            u, family = self.squares.combined[level][rows], self.squares.family[level][rows]
            weights = u / self.variances[level], u / family
            _blend(self.starts(level, rows, own), weights, own, sums)
        return own

    def step(self, part: Part, level: int, z: Float64, above: Float64) -> Float64:
        """Return the rests of one level of a part from everything."""
        here = self.support
        rows, upper = here.part_rows(part, level), here.part_rows(part, level - 1)
        up = here.parent[level][rows]
        gap = above - self.sums(part, level - 1, z)
        share = self.squares.combined[level][rows] / self.squares.family[level - 1][up]
        starts = self.starts(level - 1, upper, gap), self.starts(level, rows, z)
        found = np.empty_like(z)
        _move(up - upper.start, starts, share, gap, z, found)
        return found


@kernel
def add_gains(group: Int32, gains: tuple[Int64, Float64], x: Float64, table: Float64) -> None:
    """Add to each cell of a table its gain times the number of its row, in place.

    Args:
        group: int32 (rows).
        gains: where each group's cells begin, int64 (groups + 1), and each cell's gain.
        x: float64 (rows), records.
        table: float64, detail layout of the rows.
    """
    offset, gain = gains
    at = 0
    for row in range(len(group)):
        for i in range(offset[group[row]], offset[group[row] + 1]):
            table[at] += gain[i] * x[row]
            at += 1


@kernel
def _blend(cell: Int64, weights: tuple[Float64, Float64], own: Float64, sums: Float64) -> None:
    """Write the weighted sum of what a row and its children say over the former."""
    for row in range(len(cell) - 1):
        a, b = weights[0][row], weights[1][row]
        for i in range(cell[row], cell[row + 1]):
            own[i] = a * own[i] + b * sums[i]


@kernel
def _move(
    parent: Int64,
    starts: tuple[Int64, Int64],
    share: Float64,
    gap: Float64,
    rest: Float64,
    found: Float64,
) -> None:
    """Write the rests of each row, moved by its share of its parent's gap."""
    upper, lower = starts
    for row in range(len(parent)):
        at, q = upper[parent[row]], share[row]
        for i in range(lower[row + 1] - lower[row]):
            found[lower[row] + i] = rest[lower[row] + i] + q * gap[at + i]
