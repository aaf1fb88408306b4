"""The rests of rows along a spine: `RowSquares` for every cell of the detail layout.

Within a group the covariance of the rest e of a node is v E, E being the same at all nodes, so the
rests go up and down the spine as one number would: with u, S and the information w = 1/v of
`hedgerow.estimate.spine.row_squares`,

    up:    z = u (w e + Σ z_child / S)
    down:  x_child = z_child + (u_child / S) (x - Σ z_child)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.part import Part
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import kernel


@dataclass(frozen=True, eq=False)
class Rests:
    """Least squares of rests along a spine.

    Attributes:
        squares: of one number a row.
        variances: float64 (spine levels): v, infinite where a level is not measured.
    """

    squares: RowSquares
    variances: Float64

    @classmethod
    def of(cls, support: Support, variances: Float64) -> "Rests":
        """Return the least squares of rests from the variances of spine levels."""
        own = [np.full(support.groups, 1 / v) for v in variances]
        return cls(RowSquares.of(support, own), variances)

    @property
    def support(self) -> Support:
        """Which nodes have which groups."""
        return self.squares.support

    def up(
        self, part: Part, own: Mapping[int, Float64], below: Float64 | None
    ) -> dict[int, Float64]:
        """Return what the subtrees say: for each level of a part float64, detail layout.

        Args:
            part: a part of the spine.
            own: for each measured level the rests from each node's own tables; overwritten.
            below: for a part that does not reach the deepest level what the parts below tell of
                its last level, detail layout.
        """
        found, here = dict[int, Float64](), self.support
        for level in reversed(part.levels):
            if level == here.spine.depth:
                found[level] = own[level]
                continue
            sums = below if level == part.last else self.sums(part, level, found[level + 1])
            nodes = here.nodes(part, level)
            if sums is None or len(sums) != here.cells(level, nodes):
                raise EstimateError("a part that ends above the deepest level needs what is below")
            found[level] = sums
            if level in own:
                rows = here.rows(level, nodes)
                u, family = self.squares.combined[level][rows], self.squares.family[level][rows]
                weights = u / self.variances[level], u / family
                _blend(self._cells(level, rows), weights, own[level], sums)
                found[level] = own[level]
        return found

    def sums(self, part: Part, level: int, rest: Float64) -> Float64:
        """Return the sums of the children's rests, for each row of a level of a part or its roots.

        Args:
            part: a part of the spine.
            level: a level of the part but the last, or that of its roots.
            rest: float64, detail layout of the next level.
        """
        here = self.support
        rows = here.rows(level, here.nodes(part, level))
        below = here.rows(level + 1, here.nodes(part, level + 1))
        starts = self._cells(level, rows), self._cells(level + 1, below)
        found = np.zeros(int(starts[0][-1]))
        _add_children(here.parent[level + 1][below] - rows.start, starts, rest, found)
        return found

    def down(self, part: Part, rest: Mapping[int, Float64], above: Float64) -> dict[int, Float64]:
        """Return the rests from everything: for each level of a part float64, detail layout.

        Args:
            part: a part of the spine.
            rest: of `up`.
            above: the rests of the roots; for the top those of the spine's root.
        """
        here, first = self.support, max(part.root, 0)
        found = {first: above.copy() if part.is_top else above}
        for level in range(first + 1, part.last + 1):
            rows = here.rows(level, here.nodes(part, level))
            upper = here.rows(level - 1, here.nodes(part, level - 1))
            up = here.parent[level][rows]
            gap = found[level - 1] - self.sums(part, level - 1, rest[level])
            share = self.squares.combined[level][rows] / self.squares.family[level - 1][up]
            starts = self._cells(level - 1, upper), self._cells(level, rows)
            found[level] = np.empty_like(rest[level])
            _move(up - upper.start, starts, share, gap, rest[level], found[level])
        return {level: found[level] for level in part.levels}

    def _cells(self, level: int, rows: slice) -> Int64:
        """Return where the cells of each of some rows begin, from 0: int64 (rows + 1)."""
        return self.support.relative_cells(level, rows)


def told_of(cell: Int64, whole: Float64, rest: Float64) -> Float64:
    """Return row by row its count and then its rests: float64 (rows + cells)."""
    told = np.empty(len(whole) + len(rest))
    at = cell[:-1] + np.arange(len(whole))
    is_rest = np.ones(len(told), dtype=bool)
    is_rest[at] = False
    told[at], told[is_rest] = whole, rest
    return told


def told_apart(cell: Int64, told: Float64) -> tuple[Float64, Float64]:
    """Return the counts and the rests that `told_of` has put together.

    Raises:
        EstimateError: a table of another length.
    """
    rows = len(cell) - 1
    if told.shape != (rows + int(cell[-1]),):
        raise EstimateError(
            f"what parts below say must be {rows + int(cell[-1])} numbers here, got {told.shape}"
        )
    at = cell[:-1] + np.arange(rows)
    is_rest = np.ones(len(told), dtype=bool)
    is_rest[at] = False
    return told[at], told[is_rest]


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
def _add_children(
    parent: Int64, starts: tuple[Int64, Int64], below: Float64, above: Float64
) -> None:
    """Add the cells of each row to its parent's, in order."""
    upper, lower = starts
    for row in range(len(parent)):
        at, width = upper[parent[row]], lower[row + 1] - lower[row]
        for i in range(width):
            above[at + i] += below[lower[row] + i]


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
