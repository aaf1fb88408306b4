"""Attributes of two levels beside a spine, and the coordinates in which their sums separate.

A cuboid is here a level of the spine and a set B of attributes at their detail, of n_a nodes; all
other attributes are summed up. The full cross of the attributes splits into the spaces
⊗_a (contrasts where a is in R, constants elsewhere), one for each set R, its *residual*.

Householder's reflection H = I - 2uuᵀ/uᵀu, u = 1/√n - e_0, takes the constant 1/√n to e_0 and is its
own inverse: along each attribute it turns a table, in place and in O(cells), into its sum over √n,
first, and n - 1 orthonormal contrasts, under white noise of the same variance. A residual is then a
slice of the table, and its coordinates are those of every cuboid whose B contains R.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, product
from math import prod, sqrt
from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.estimate.cube.axis_squares import lines
from hedgerow.estimate.cube.shape import CubeShape

Axes: TypeAlias = tuple[int, ...]
"""Numbers of attributes, ascending: those of a residual, or at detail in a cuboid."""


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """The attributes beside a spine.

    Attributes:
        shape: of all axes.
        spine: the number of the axis that is none.
        detail: for each axis its deepest level; an axis of level 0 alone is summed up everywhere.
    """

    shape: CubeShape
    spine: int
    detail: Levels

    @property
    def axes(self) -> Axes:
        """Every axis but the spine."""
        return tuple(axis for axis in range(len(self.detail)) if axis != self.spine)

    def of(self, cuboid: Levels) -> Axes:
        """Return the attributes B that a cuboid does not sum up."""
        return tuple(axis for axis in self.axes if cuboid[axis])

    def at_detail(self, cuboid: Levels) -> Levels:
        """Return a cuboid with its attributes at their detail."""
        beside = self.of(cuboid)
        return tuple(self.detail[a] if a in beside else k for a, k in enumerate(cuboid))

    def size(self, axis: int) -> int:
        """Return n, the number of an attribute's nodes at its detail."""
        return self.shape.axes[axis].sizes[self.detail[axis]]

    def spread(self, cuboid: Levels, residual: Axes) -> int:
        """Return Π n over B∖R: the cells of a cuboid over which one of a residual is spread."""
        return prod(self.size(axis) for axis in self.of(cuboid) if axis not in residual)

    def coordinates(self, residual: Axes) -> tuple[int, ...]:
        """Return the shape of a residual's coordinates, one dimension an attribute."""
        return tuple(self.size(axis) - 1 if axis in residual else 1 for axis in self.axes)

    def turn(self, table: Float64, cuboid: Levels) -> Float64:
        """Reflect a table along each attribute at its detail, in place; return it. Twice undoes it.

        Args:
            table: contiguous float64 (cells along each axis).
            cuboid: whose table, or coordinates, it is; all its attributes are at their detail.
        """
        for axis in self.of(cuboid):
            each = lines(table, axis)
            root = sqrt(each.shape[1])
            constant = each.sum(axis=1) / root
            each -= ((constant - each[:, 0]) / (root - 1))[:, None]
            each[:, 0] = constant
        return table

    def part(self, turned: Float64, residual: Axes) -> Float64:
        """Return a residual's slice of a turned table: (nodes of the spine, *coordinates)."""
        kept = [slice(1, None) if axis in residual else slice(0, 1) for axis in self.axes]
        return np.moveaxis(turned, self.spine, 0)[(slice(None), *kept)]

    def factors(self, cuboid: Levels, axis: int) -> Float64:
        """Return an attribute's factors of a cell's variance: float64 (2, nodes).

        With c the cells at detail of a node, c²/n² for residuals without the attribute, and
        c - c²/n for those with it.
        """
        start = self.shape.axes[axis].descendant_start(cuboid[axis], self.detail[axis])
        size = self.size(axis)
        part = np.diff(start) / size
        return np.stack([part**2, size * part * (1 - part)])

    def product_factors(
        self, axis: int, first: tuple[int, Float64], second: tuple[int, Float64]
    ) -> Float64:
        """Return an attribute's factors of the covariance of two sums: float64 (2, 1).

        Args:
            axis: the attribute.
            first: a level and its nodes' weights; w at detail.
            second: likewise; w'. The factors are ΣwΣw'/n² and w·w' - ΣwΣw'/n.
        """
        shape, detail = self.shape.axes[axis], self.detail[axis]
        one, other = (weights[shape.ancestors(detail, k)] for k, weights in (first, second))
        mean, apart = one.mean() * other.mean(), (one - one.mean()) @ (other - other.mean())
        return np.array([[mean], [apart]])


def subsets(axes: Sequence[int]) -> list[Axes]:
    """Return every subset, ascending as binary numbers of which the first axis is the top digit."""
    return [tuple(compress(axes, kept)) for kept in product((False, True), repeat=len(axes))]
