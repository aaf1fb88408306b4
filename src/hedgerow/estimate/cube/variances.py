"""Exact variances of a cube's estimates, before anything is measured.

The covariance of the leaves is C_1 ⊗ … ⊗ C_k, C_a that of axis a alone. So for weights that are a
product, w = w_1 ⊗ … ⊗ w_k over the nodes of any levels,

    Var(wᵀ y) = Π_a w_aᵀ C_a w_a  -  Π_a w_aᵀ K_a w_a,

the second term, where a cuboid is public, being what its exact counts explain: K_a is the part of
C_a that axis a's level of the public cuboid explains (`AxisSquares.explaining`). Every term is in
closed form and takes O(nodes of the axes); for weights that are no product, O(cells that they lie
on). Records² throughout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import Cuboid, Floats

Product = Sequence[tuple[int, Floats]]
"""Weights that are a product: for each axis a level and float64 (its nodes)."""


@dataclass(frozen=True, slots=True)
class CubeVariances:
    """The variances of `hedgerow.estimate.cube.estimates.least_squares`.

    Attributes:
        squares: one an axis.
        public: the cuboid whose counts are known exactly, if any.
    """

    squares: tuple[AxisSquares, ...]
    public: Cuboid | None = None

    def of_cells(self, cuboid: Cuboid) -> Floats:
        """Return the variance of each cell: float64 (cells along each axis)."""
        whole, explained = self.factors(cuboid)
        found = reduce(np.multiply.outer, whole[1:], whole[0].copy())
        if self.public is not None:
            found -= reduce(np.multiply.outer, explained)
        return found

    def factors(self, cuboid: Cuboid) -> tuple[list[Floats], list[Floats]]:
        """Return two lists of one vector an axis: a cell's variance is product less product.

        The second ones are zeros where nothing is public.
        """
        whole = [own.final[k] for own, k in zip(self.squares, cuboid, strict=True)]
        if self.public is None:
            return whole, [np.zeros_like(each) for each in whole]
        levels = zip(self.squares, cuboid, self.public, strict=True)
        return whole, [own.explained(k, exact) for own, k, exact in levels]

    def mean(self, cuboid: Cuboid) -> float:
        """Return the mean variance over all cells of a cuboid."""
        whole, explained = self.factors(cuboid)
        return prod(float(e.mean()) for e in whole) - prod(float(e.mean()) for e in explained)

    def largest(self, cuboid: Cuboid) -> float:
        """Return a bound of the variance of a cell; the largest one where nothing is public.

        Both factors are bounded on their own: the largest of the first less the smallest of the
        second, which bounds their difference.
        """
        whole, explained = self.factors(cuboid)
        bound = prod(float(e.max()) for e in whole) - prod(float(e.min()) for e in explained)
        return max(bound, 0.0)

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products."""
        every = list(zip(self.squares, first, second, strict=True))
        whole = prod(own.covariance(one, other) for own, one, other in every)
        if self.public is None:
            return whole
        return whole - prod(
            own.covariance(own.explaining(*one, exact), own.explaining(*other, exact))
            for (own, one, other), exact in zip(every, self.public, strict=True)
        )

    def of_sum(self, weights: Product) -> float:
        """Return the variance of a sum whose weights are a product, such as all of A × all of B."""
        return max(self.covariance(weights, weights), 0.0)

    def of_weights(self, cuboid: Cuboid, weights: Floats) -> float:
        """Return the variance of any sum of a cuboid's cells.

        Args:
            cuboid: whose cells are summed.
            weights: float64 (cells along each axis).
        """
        found = self._quadratic(cuboid, weights)
        if self.public is not None:
            levels, explaining = list(cuboid), weights
            for axis, (own, exact) in enumerate(zip(self.squares, self.public, strict=True)):
                turned = np.moveaxis(explaining, axis, 0)
                levels[axis], turned = own.explaining(levels[axis], turned, exact)
                explaining = np.moveaxis(turned, 0, axis)
            found -= self._quadratic(tuple(levels), explaining)
        return max(found, 0.0)

    def _quadratic(self, cuboid: Cuboid, weights: Floats) -> float:
        """Return the weights' sum of squares under C_1 ⊗ … ⊗ C_k."""
        found = weights
        for axis, own in enumerate(self.squares):
            turned = np.moveaxis(found, axis, 0)
            found = np.moveaxis(own.covariances(cuboid[axis], turned)[cuboid[axis]], 0, axis)
        return float((weights * found).sum())
