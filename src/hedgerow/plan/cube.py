"""The cube of a plan: its axes' weights, its noise, and the variances of what it estimates.

The estimates of a cube are exact where the variances of its cuboids are a product over the axes
(`hedgerow.estimate.cube.estimates`), so the shares of cuboids must be one: with s_a(k) the share of
level k of axis a, cuboid c has a share in proportion to Π_a s_a(c_a). They are read back from the
cuboids' shares: s_a(k) is to s_a(L) as the share of (…, L, k, L, …) is to that of the leaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, prod

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import public_cuboids
from hedgerow.estimate.cube.shape import CubeShape, Cuboid
from hedgerow.plan.depths import CuboidPlan, Measured
from hedgerow.tables.tree import Levels, Tree


@dataclass(frozen=True, eq=False)
class PlannedCube:
    """What a plan decides for a cube, in the estimate room's terms.

    There levels of only children are left out; `levels` translates. Nothing here is confidential.

    Attributes:
        shape: how the levels nest.
        squares: for each axis its weights; a cuboid's nominal variance is their product, records².
        noise: for each measured cuboid the variance of one noisy count, records².
        public: the finest cuboid whose counts are public, if any.
    """

    shape: CubeShape
    squares: tuple[AxisSquares, ...]
    noise: Mapping[Cuboid, float]
    public: Cuboid | None

    @classmethod
    def of(
        cls, tree: Tree, by_levels: Mapping[Levels, CuboidPlan], public: Levels | None
    ) -> "PlannedCube":
        """Return the cube of a plan.

        Args:
            tree: the public domain.
            by_levels: what is done at each cuboid.
            public: the finest public one.

        Raises:
            PlanError: the shares are not a product over the axes.
        """
        shape = cube_shape(tree)
        measured = {
            shape.given(levels): what
            for levels, what in by_levels.items()
            if isinstance(what, Measured)
        }
        shares = {cuboid: what.share for cuboid, what in measured.items()}
        exact = None if public is None else shape.given(public)
        factors = axis_factors(shape, shares, exact)
        leaves = measured[shape.finest].mechanism
        power, squares = leaves.price.power, []
        for axis, (own, levels) in enumerate(zip(shape.axes, factors, strict=True)):
            unit = leaves.noise_variance if axis == 0 else 1.0
            variances = [unit * float(f) ** -power if f else inf for f in levels]
            squares.append(AxisSquares(own, np.array(variances)))
        noise = {cuboid: what.mechanism.noise_variance for cuboid, what in measured.items()}
        return cls(shape, tuple(squares), noise, exact)

    def levels(self, cuboid: Cuboid) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        return tuple(axis.first(k) for axis, k in zip(self.shape.axes, cuboid, strict=True))


def cube_shape(tree: Tree) -> CubeShape:
    """Return how the levels of a tree's axes nest."""
    return CubeShape.of([[np.asarray(s, np.int64) for s in axis.child_start] for axis in tree.axes])


def axis_factors(
    shape: CubeShape, shares: Mapping[Cuboid, Fraction], public: Cuboid | None
) -> list[list[Fraction]]:
    """Return for each axis the share of each level relative to that of its last one.

    Args:
        shape: of the cube.
        shares: of the measured cuboids; those that are missing are public or have none.
        public: the finest public cuboid, if any.

    Raises:
        PlanError: the shares are not a product over the axes.
    """
    finest = shape.finest
    leaves = shares[finest]
    factors = []
    for a, axis in enumerate(shape.axes):
        alone = [(*finest[:a], k, *finest[a + 1 :]) for k in range(axis.depth + 1)]
        factors.append([shares.get(cuboid, Fraction(0)) / leaves for cuboid in alone])
    exact = public_cuboids(shape, public)
    for cuboid in shape.cuboids():
        product = leaves * prod(f[k] for f, k in zip(factors, cuboid, strict=True))
        if cuboid not in exact and shares.get(cuboid, 0) != product:
            raise PlanError(
                "the shares of a cube's cuboids must be a product of shares of the axes' levels, "
                "which its estimates rest on; give shares by axis: shares = {axis = [...], ...}"
            )
    return factors
