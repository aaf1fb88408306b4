"""How much each level of one axis adds to the variance of an estimate, under any noise.

Along one axis the estimate of a node is Σ t M over the axis's measurements M, with the coefficients
t of least squares under the axis's own variances (`hedgerow.estimate.cube.axis_squares`). For two
weighted sums w, w' of nodes write τ(w, w', ℓ) for the sum over the nodes of level ℓ of the products
of their coefficients: with noise of variance v_ℓ their covariance is Σ_ℓ v_ℓ τ(w, w', ℓ), whatever
variances the weights were chosen for. In O(nodes · levels).
"""

from math import isinf

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.estimate.cube.axis_squares import AxisSquares, sums


def coefficients(own: AxisSquares) -> list[Float64]:
    """Return the sums of squared coefficients by level: float64 (nodes, levels) for each level.

    The estimate of a node is Σ t M over the measurements of an axis; here are Σ t² by level.
    """
    return _down(own, subtree_coefficients(own))[0]


def subtree_coefficients(own: AxisSquares) -> list[Float64]:
    """Return those of z, what each node's own subtree says of it: float64 (nodes, levels) each."""
    found = [np.zeros((own.shape.sizes[-1], own.depth + 1))]
    found[0][:, own.depth] = 1.0
    for k in range(own.depth - 1, -1, -1):
        here = own.child_weight(k)[:, None] ** 2 * sums(own.shape, k, found[0])
        here[:, k] += own.own_weight(k) ** 2
        found.insert(0, here)
    return found


def _down(own: AxisSquares, up: list[Float64]) -> tuple[list[Float64], list[Float64]]:
    """Return those of the estimates y, and the coefficient of each node's z in its own y.

    With Z = Σ z over a family below p, h = u_p/S and m the coefficient of z_p in y_p, the rest
    R = y_p - m h Z is independent of the family, and y_c = z_c - q (1 - m h) Z + q R.
    """
    found, within = [up[0]], [np.ones(1)]
    for k in range(1, own.depth + 1):
        parent, q = own.shape.parents(k), own.share[k]
        reached = within[-1] * own.child_weight(k - 1)
        family, above = sums(own.shape, k - 1, up[k]), found[-1]
        lost = q * (1 - reached[parent])
        rest = above - reached[:, None] ** 2 * family
        here = up[k] * ((1 - lost) ** 2 - lost**2)[:, None] + lost[:, None] ** 2 * family[parent]
        found.append(here + q[:, None] ** 2 * rest[parent])
        within.append(1 - lost)
    return found, within


def with_exact(own: AxisSquares, level: int, exact: int) -> tuple[Float64, Float64, Float64]:
    """Return τ of each node with itself, with what explains it, and of that with itself."""
    up = subtree_coefficients(own)
    found, within = _down(own, up)
    if level <= exact:
        return found[level], found[level], found[level]
    gain = own.gain(level, exact)[:, None]
    crossed, reached = found[exact], within[exact]
    for k in range(exact + 1, level + 1):
        parent, q = own.shape.parents(k), own.share[k][:, None]
        reached = reached * own.child_weight(k - 1)  # the coefficient of each child's z above
        family = reached[:, None] * sums(own.shape, k - 1, up[k])
        crossed = reached[parent, None] * up[k] + q * (crossed - family)[parent]
        reached = reached[parent]
    ancestors = own.shape.ancestors(level, exact)
    return found[level], gain * crossed, gain**2 * found[exact][ancestors]


def products(own: AxisSquares, one: tuple[int, Float64], other: tuple[int, Float64]) -> Float64:
    """Return τ of two weighted sums along an axis, by level: float64 (levels)."""
    first, second = own.covariances(*one), own.covariances(*other)
    each = zip(own.own, first, second, strict=True)
    return np.array([0.0 if isinf(v) else float(a @ b) / v**2 for v, a, b in each])
