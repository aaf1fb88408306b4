"""Shares that are a product over the axes, and the weights that follow from them.

Then so are the variances of wide noise, and estimates are those of one axis after the other
(`hedgerow.estimate.workload.product`): with s_a(k) the share of level k of axis a, cuboid c has a
share in proportion to Π_a s_a(c_a). They are read back from the cuboids' shares: s_a(k) is to
s_a(L) as the share of (…, L, k, L, …) is to that of the leaves.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import inf, prod

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.estimate.cube.shape import CubeShape, at_level, is_within
from hedgerow.limits import MOST_PRODUCTS
from hedgerow.noise.loss import precision_of
from hedgerow.noise.mechanisms import Mechanism

AxisFactors = tuple[tuple[Fraction, ...], ...]
"""For each axis the share of each level relative to that of its last one, coarsest first."""


def axis_factors(
    shape: CubeShape, shares: Mapping[Levels, Fraction], public: Levels | None
) -> AxisFactors | None:
    """Return for each axis the share of each level relative to that of its last one.

    Args:
        shape: of the cube.
        shares: of the measured cuboids; those that are missing are public or have none.
        public: the finest public cuboid, if any.

    Returns:
        None where the shares are no product over the axes, or there are too many levels.
    """
    if shape.finest not in shares or prod(axis.depth + 1 for axis in shape.axes) > MOST_PRODUCTS:
        return None
    leaves = shares[shape.finest]
    factors = tuple(
        tuple(
            shares.get(at_level(shape.finest, axis, k), Fraction(0)) / leaves
            for k in range(own.depth + 1)
        )
        for axis, own in enumerate(shape.axes)
    )
    for cuboid in shape.cuboids():
        product = leaves * prod(f[k] for f, k in zip(factors, cuboid, strict=True))
        if not is_within(cuboid, public) and shares.get(cuboid, 0) != product:
            return None
    return factors


def wide_variance(mechanism: Mechanism) -> float:
    """Return the variance of noise of this precision, were it wide: records²."""
    price = mechanism.price
    return float(price.variance / precision_of(mechanism) ** price.power)


def product_variances(
    shape: CubeShape, factors: AxisFactors, leaves: Mechanism, public: Levels | None
) -> list[Float64]:
    """Return for each axis float64 (levels): a cuboid's nominal variance is their product.

    Records² on the first axis, ratios on the others; infinite where nothing is measured.
    """
    power = leaves.price.power
    public_cuboids = shape.within(public)
    by_axis = []
    for axis, (own, levels) in enumerate(zip(shape.axes, factors, strict=True)):
        unit = 1.0 if axis else wide_variance(leaves)
        alone = [at_level(shape.finest, axis, k) for k in range(own.depth + 1)]
        # A level that is public even beside the leaves is never measured: any number will do.
        variances = [
            unit * float(f) ** -power if f else unit if cuboid in public_cuboids else inf
            for f, cuboid in zip(levels, alone, strict=True)
        ]
        by_axis.append(np.array(variances))
    return by_axis
