"""Cuboids that are every combination of some levels, with variances that are a product over axes.

Then everything is a Kronecker product: `hedgerow.estimate.cube.estimates` in O(cells), whatever the
axes. A level that does not occur has an infinite variance.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Levels
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import least_squares
from hedgerow.estimate.cube.shape import at_level, is_within
from hedgerow.estimate.cube.sums import summed
from hedgerow.estimate.cube.variances import AGREED, CubeVariances, Product
from hedgerow.estimate.workload.observed import Observed

MOST_LEVELS = 4096
"""Combinations of levels up to which cuboids may be such a product."""


class ProductSolver:
    """Least squares along one axis after the other; see the module.

    Attributes:
        observed: what is measured.
    """

    is_exact = has_covariances = True
    words = "estimated together exactly, along one axis after the other"

    def __init__(self, observed: Observed) -> None:
        factors = axis_variances(observed)
        if factors is None:
            raise ValueError("the variances are no product over the axes")
        self.observed = observed
        axes = zip(observed.shape.axes, factors, strict=True)
        self._squares = tuple(AxisSquares(axis, own) for axis, own in axes)
        self._variances = CubeVariances(self._squares, observed.public)

    @classmethod
    def fits(cls, observed: Observed) -> bool:
        """Return whether the cuboids are such a product."""
        return axis_variances(observed) is not None

    def rehearse(self) -> None:
        """Do nothing: a closed form can always be had."""

    def estimates(
        self, tables: Mapping[Levels, Float64], wanted: Iterable[Levels]
    ) -> dict[Levels, Float64]:
        """Return the estimates of the wanted cuboids."""
        shape, public = self.observed.shape, self.observed.public
        every: dict[Levels, Float64] = {}
        for cuboid in shape.cuboids():
            if public is not None and is_within(cuboid, public):
                every[cuboid] = summed(shape, tables[public], public, cuboid).copy()
            elif cuboid in self.observed.variances:
                every[cuboid] = tables[cuboid].copy()
            else:
                every[cuboid] = np.zeros(shape.shape(cuboid))
        least_squares(self._squares, every, public)
        return {cuboid: every[cuboid] for cuboid in wanted}

    def mean(self, cuboid: Levels) -> float:
        """Return the mean variance over all cells of a cuboid."""
        return self._variances.mean(cuboid)

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell of a cuboid, or a bound of it."""
        return self._variances.largest(cuboid)

    def of_cells(self, cuboid: Levels) -> Float64:
        """Return the variance of each cell: float64 (cells along each axis)."""
        return self._variances.of_cells(cuboid)

    def at(self, cuboid: Levels, codes: Sequence[NDArray[np.integer]]) -> Float64:
        """Return the variance of listed cells: float64 (cells)."""
        return self._variances.at(cuboid, codes)

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products over axes."""
        return self._variances.covariance(first, second)


def axis_variances(observed: Observed) -> list[Float64] | None:
    """Return the factors of the variances: for each axis float64 (levels); None if there are none.

    The finest cuboid must be measured, with every combination of the levels at which it is coarser
    along one axis alone; levels within the public cuboid may have any factor. There may be
    `MOST_LEVELS` combinations of levels.
    """
    shape, variances = observed.shape, observed.variances
    finest = shape.finest
    if finest not in variances or prod(axis.depth + 1 for axis in shape.axes) > MOST_LEVELS:
        return None
    known = shape.within(observed.public)
    factors = []
    for axis, own in enumerate(shape.axes):
        alone = [at_level(finest, axis, k) for k in range(own.depth + 1)]
        of_levels = [
            variances.get(c, 1.0 if c in known else inf) / (variances[finest] if axis else 1.0)
            for c in alone
        ]
        factors.append(np.array(of_levels))
    for cuboid in product(*(range(axis.depth + 1) for axis in shape.axes)):
        wanted = prod(float(own[k]) for own, k in zip(factors, cuboid, strict=True))
        given = variances.get(cuboid, inf)
        alike = given == wanted if inf in {given, wanted} else abs(given - wanted) <= AGREED * given
        if cuboid not in known and not alike:
            return None
    return factors
