"""The cells of several attributes of two levels, and the coordinates in which their sums separate.

Below a group stand the combinations of the finest nodes of k attributes, of n_a nodes each, which
are W = Π n_a cells, row-major. A *marginal* sums up all attributes but those of a set B; its sums
S_B satisfy S_BᵀS_B = ⊗_a (I where a is in B, 11ᵀ elsewhere). All these commute; each acts as one
number on each *residual*, the space ⊗_a (contrasts where a is in R, constants elsewhere):

    S_BᵀS_B = Σ_{R ⊆ B} Π_{a ∉ B} n_a · (projection on R).

Householder's reflection along each attribute (`turn`) takes a table to orthonormal coordinates of
which each belongs to one residual; it is its own inverse, and those of a marginal's own table are
the coordinates of all R ⊆ B, times √(Π_{a ∉ B} n_a).

Sets of attributes are numbers: of k attributes, bit k-1-a stands for attribute a.

Source: as `hedgerow.estimate.workload.residuals`, which has the formulas on whole axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.kernels import kernel


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals and marginals of some attributes.

    Attributes:
        sizes: n_a of each attribute, 2 or more.
    """

    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of residuals, 2ᵏ, and of marginals."""
        return 1 << len(self.sizes)

    @property
    def width(self) -> int:
        """The number of cells, W."""
        return prod(self.sizes)

    def members(self, number: int) -> list[int]:
        """Return the attributes of a set, ascending."""
        last = len(self.sizes) - 1
        return [a for a in range(last + 1) if number >> (last - a) & 1]

    def marginal(self, axes: Sequence[int], cuboid: Levels) -> int:
        """Return the set of attributes that a cuboid does not sum up: those on some axes."""
        return sum((cuboid[a] > 0) << i for i, a in enumerate(reversed(axes)))

    def size(self, marginal: int) -> int:
        """Return the number of cells of a marginal."""
        return prod(self.sizes[a] for a in self.members(marginal))

    def spread(self, marginal: int) -> int:
        """Return Π n_a over the attributes that a marginal sums up."""
        return self.width // self.size(marginal)

    @cached_property
    def extents(self) -> Int64:
        """The sizes as int64 (k), as `turn` takes them."""
        return np.array(self.sizes, dtype=np.int64)

    def extents_of(self, marginal: int) -> Int64:
        """Return the sizes of a marginal's own attributes, as `turn` takes them."""
        return self.extents[self.members(marginal)]

    @cached_property
    def residual(self) -> Int32:
        """The residual of each coordinate: int32 (W)."""
        found = np.zeros(self.sizes, dtype=np.int32)
        for number, index in enumerate(np.indices(self.sizes)):
            found += (index > 0) << (len(self.sizes) - 1 - number)
        return found.ravel()

    @cached_property
    def columns(self) -> list[Int64]:
        """The coordinates of each residual: int64, ascending."""
        return [np.flatnonzero(self.residual == each) for each in range(self.count)]

    def apart(self, table: Float64) -> list[Float64]:
        """Return the coordinates of each residual of a table of coordinates, (rows, W): flat."""
        return [table[:, columns].ravel() for columns in self.columns]

    def joined(self, coordinates: Sequence[Float64]) -> Float64:
        """Return the table of coordinates that falls into these: float64 (rows, W)."""
        rows = len(coordinates[0])  # of the constants, one a row
        found = np.empty((rows, self.width))
        for columns, each in zip(self.columns, coordinates, strict=True):
            found[:, columns] = each.reshape(-1, len(columns))
        return found

    def within(self, marginal: int) -> Int64:
        """Return where the coordinates of a marginal's own table are among all: int64 (cells)."""
        return np.flatnonzero((self.residual & ~np.int32(marginal)) == 0)

    @cached_property
    def sum_place(self) -> Int32:
        """The cell to which each cell adds in each marginal, of all marginals' cells: (2ᵏ, W)."""
        index = np.indices(self.sizes).reshape(len(self.sizes), self.width)
        found, begin = np.zeros((self.count, self.width), dtype=np.int32), 0
        for marginal, size in enumerate(map(self.size, range(self.count))):
            for a in self.members(marginal):
                found[marginal] = found[marginal] * self.sizes[a] + index[a]
            found[marginal] += begin
            begin += size
        return found

    @cached_property
    def runs(self) -> tuple[Int64, Int32]:
        """Where runs of coordinates of one residual begin, int64 (runs + 1), and their residual."""
        begins = np.flatnonzero(np.diff(self.residual, prepend=-1))
        return np.append(begins, self.width), self.residual[begins]

    def turned(self, table: Float64) -> Float64:
        """Return the coordinates of a table, or the table of coordinates: float64 (rows, W)."""
        found = np.array(table, dtype=np.float64, order="C")
        turn(found, self.extents)
        return found


@kernel
def turn(table: Float64, extents: Int64) -> None:
    """Reflect each row of a table along each attribute, in place.

    Args:
        table: float64 (rows, cells).
        extents: int64: the sizes of the attributes, whose product is the number of cells.
    """
    for row in table:  # twice undoes it
        stride = len(row)
        for n in extents:
            block, stride = stride, stride // n
            root = sqrt(n)
            for first in range(0, len(row), block):
                if n == 2:  # the sum and the difference, over √2
                    for i in range(first, first + stride):
                        one, other = row[i], row[i + stride]
                        row[i] = (one + other) / root
                        row[i + stride] = (one - other) / root
                    continue
                for i in range(first, first + stride):
                    total = 0.0
                    for j in range(i, i + block, stride):
                        total += row[j]
                    constant = total / root
                    change = (constant - row[i]) / (root - 1)
                    for j in range(i, i + block, stride):
                        row[j] -= change
                    row[i] = constant
