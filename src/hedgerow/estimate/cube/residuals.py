"""Attributes of two levels, and the coordinates in which their sums separate.

Beside a node of a spine stands a row of cells, the combinations of the finest nodes of k
attributes, of n_a nodes each. A *marginal* sums up all attributes but those of a set B; its sums
S_B satisfy

    S_BᵀS_B = ⊗_a (I where a is in B, 11ᵀ = n_a J elsewhere),   I = J + (I - J),   J = 11ᵀ/n_a.

All these commute: each acts as one number on each *residual*, the space ⊗_a (contrasts where a is
in R, constants elsewhere), one for each set R: Π_{a ∉ B} n_a where R ⊆ B, and 0 elsewhere.

Householder's reflection H = I - 2uuᵀ/uᵀu, u = 1/√n - e_0, takes the constant 1/√n to e_0 and is its
own inverse: along each attribute it turns a table, in place and in O(cells), into its sum over √n,
first, and n - 1 orthonormal contrasts, under white noise of the same variance. A residual is then a
slice of the table (`part`). The coordinates of a marginal's own table are those of all R ⊆ B, times
√(Π_{a ∉ B} n_a): noise of the variance v tells each with the precision Π_{a ∉ B} n_a / v.

Sets of attributes are vectors of 1, in it, and 0, as the levels of a cuboid are: R ⊆ B where R is
within B.

Source: Xiao, He, Zhang and Kifer (2023) separate marginals into residuals in this way; that a spine
does not mix them is shown in `hedgerow.estimate.workload.spine`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, prod, sqrt

import numpy as np

from hedgerow.arrays import Array, Float64, Int32, Int64, Levels, OfCuboids, Sizes, int64
from hedgerow.estimate.cube.shape import is_within
from hedgerow.kernels import kernel, over_families


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of some attributes, and what cuboids tell of them.

    Attributes:
        axes: the numbers of the attributes among the axes of cuboids.
        sizes: n_a of each, the nodes of its finest level.
    """

    axes: Sizes
    sizes: Sizes

    @property
    def width(self) -> int:
        """The number of cells of a row, W."""
        return prod(self.sizes)

    @cached_property
    def every(self) -> list[Levels]:
        """Every residual, and every marginal."""
        return subsets((1,) * len(self.axes))

    def marginal(self, cuboid: Levels) -> Levels:
        """Return the attributes that a cuboid does not sum up."""
        return tuple(int(cuboid[axis] > 0) for axis in self.axes)

    def shape(self, marginal: Levels) -> Sizes:
        """Return the number of cells of a marginal along each attribute."""
        return tuple(n if here else 1 for n, here in zip(self.sizes, marginal, strict=True))

    def coordinates(self, residual: Levels) -> Sizes:
        """Return the number of coordinates of a residual along each attribute."""
        return tuple(n - 1 if here else 1 for n, here in zip(self.sizes, residual, strict=True))

    def spread(self, cuboid: Levels) -> int:
        """Return Π n_a over the attributes that a cuboid sums up."""
        return prod(n for axis, n in zip(self.axes, self.sizes, strict=True) if not cuboid[axis])

    def precisions(self, residual: Levels, noise: OfCuboids) -> OfCuboids:
        """Return the cuboids that tell a residual's coordinates, and with which precision each.

        Args:
            residual: one of them.
            noise: of each measured cuboid the variance, records²; 0 where counts are exact.
        """
        return {
            cuboid: self.spread(cuboid) / variance if variance else inf
            for cuboid, variance in noise.items()
            if is_within(residual, self.marginal(cuboid))
        }

    def apart(self, coordinates: Float64) -> list[Float64]:
        """Return of rows of coordinates, (rows, *sizes), those of each residual: flat."""
        return [part(coordinates, residual).ravel() for residual in self.every]

    def joined(self, coordinates: Sequence[Float64]) -> Float64:
        """Return rows of coordinates, (rows, *sizes), from those of each residual."""
        rows = len(coordinates[0])  # of the constants, one a row
        table = np.empty((rows, *self.sizes))
        for residual, each in zip(self.every, coordinates, strict=True):
            part(table, residual)[...] = each.reshape(rows, *self.coordinates(residual))
        return table

    @property
    def extents(self) -> Int64:
        """The sizes as int64 (k), as `turn_rows` takes them."""
        return int64(self.sizes)

    @cached_property
    def runs(self) -> tuple[Int64, Int32]:
        """Where runs of coordinates of one residual begin, int64 (runs + 1), and which it is."""
        number = np.empty((1, *self.sizes), dtype=np.int32)
        for which, residual in enumerate(self.every):
            part(number, residual)[...] = which
        begins = np.flatnonzero(np.diff(number.ravel(), prepend=-1))
        return np.append(begins, self.width), number.ravel()[begins]

    @cached_property
    def sum_place(self) -> Int32:
        """The cell to which each cell adds in each marginal, of all marginals' cells: (2ᵏ, W)."""
        place = np.empty((len(self.every), *self.sizes), dtype=np.int32)
        begin = 0
        for which, marginal in enumerate(self.every):
            shape = self.shape(marginal)
            place[which] = np.arange(begin, begin + prod(shape)).reshape(shape)
            begin += prod(shape)
        return place.reshape(len(place), -1)


def subsets(marginal: Levels) -> list[Levels]:
    """Return every set within one, ascending as binary numbers of which the first digit is top."""
    return list(product(*(range(here + 1) for here in marginal)))


def part(coordinates: Array, residual: Levels) -> Array:
    """Return a residual's own coordinates of those of rows: (rows, those along each attribute)."""
    kept = (slice(1, None) if here else slice(1) for here in residual)
    return coordinates[(slice(None), *kept)]


def within(coordinates: Array, marginal: Levels) -> Array:
    """Return the coordinates of all residuals within a marginal, in its own table's order."""
    kept = (slice(None) if here else slice(1) for here in marginal)
    return coordinates[(slice(None), *kept)]


def turn(table: Float64) -> Float64:
    """Reflect rows along each attribute, in place, and return them. Twice undoes it.

    Args:
        table: contiguous float64 (rows, cells along each attribute, or 1 where it is summed up).
    """
    extents = int64([n for n in table.shape[1:] if n > 1])
    rows = table.reshape(len(table), prod(table.shape[1:]))
    starts = np.arange(len(rows) + 1) * rows.shape[1]
    over_families(lambda first, last: turn_rows(rows[first:last], extents), starts)
    return table


@kernel
def turn_rows(table: Float64, extents: Int64) -> None:
    """Reflect each row of a table along each attribute, in place.

    Args:
        table: float64 (rows, cells).
        extents: int64: the sizes of the attributes, each 2 or more, whose product is the number of
            cells.
    """
    for row in table:
        stride = len(row)
        for n in extents:
            block, stride = stride, stride // n
            root = sqrt(n)
            for first in range(0, len(row), block):
                if n == 2:  # the sum and the difference, over √2
                    for i in range(first, first + stride):
                        one = row[i]
                        other = row[i + stride]
                        row[i] = (one + other) / root
                        row[i + stride] = (one - other) / root
                    continue
                for i in range(first, first + stride):
                    # The Householder reflection that swaps (1, …, 1)/√n and the first unit vector.
                    # It is its own inverse, and keeps variances, as it is orthogonal.
                    total = 0.0
                    for j in range(i, i + block, stride):
                        total += row[j]
                    constant = total / root
                    change = (constant - row[i]) / (root - 1)
                    for j in range(i, i + block, stride):
                        row[j] -= change
                    row[i] = constant
