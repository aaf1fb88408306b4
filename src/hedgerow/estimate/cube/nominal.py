"""Exact variances of estimates whose weights were chosen for other noise than there is.

Estimates of a cube in closed form need variances that are a product over axes. Those of discrete
noise are nearly that: of discrete Laplace noise at ε = 1 to 0.3 %, of discrete Gaussian noise below
σ² = 1 to a seventh. Then *nominal* variances that are a product give the weights, estimates stay
unbiased, and their variance under the true ones v*_c is stated exactly. Write τ_a(w, w', ℓ) for the
sum over the nodes of level ℓ of the products of their coefficients in wᵀy and w'ᵀy along axis a. A
weighted sum with weights that are a product has the variance

    Σ_c v*_c (Π_a τ_a(w, w, c_a) - 2 Π_a τ_a(w, w', c_a) + Π_a τ_a(w', w', c_a)),

w' being the sum of the public cuboid's nodes that explains w (`AxisSquares.explaining`); where
nothing is public only the first term stands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf, prod

import numpy as np

from hedgerow.estimate.cube.axis_squares import AxisSquares, sums
from hedgerow.estimate.cube.estimates import public_cuboids, shape_of
from hedgerow.estimate.cube.shape import Cuboid, Floats
from hedgerow.estimate.cube.variances import Product


@dataclass(frozen=True, slots=True, init=False)
class NominalVariances:
    """The variances of `least_squares` under nominal weights and true variances.

    Attributes:
        squares: one an axis, of the nominal variances.
        public: the cuboid whose counts are known exactly, if any.
        true: float64 (levels of each axis): the true variances, 0 for what is public or unmeasured.
    """

    squares: tuple[AxisSquares, ...]
    public: Cuboid | None
    true: Floats

    def __init__(
        self,
        squares: Sequence[AxisSquares],
        true: Mapping[Cuboid, float],
        public: Cuboid | None = None,
    ) -> None:
        shape = shape_of(squares)
        exact, found = public_cuboids(shape, public), np.zeros([s.depth + 1 for s in squares])
        for cuboid in shape.cuboids():
            unmeasured = any(isinf(s.own[k]) for s, k in zip(squares, cuboid, strict=True))
            if cuboid not in exact and not unmeasured:
                found[cuboid] = true[cuboid]
        object.__setattr__(self, "squares", tuple(squares))
        object.__setattr__(self, "public", public)
        object.__setattr__(self, "true", found)

    def of_cells(self, cuboid: Cuboid) -> Floats:
        """Return the variance of each cell: float64 (cells along each axis)."""
        terms = self._terms(cuboid)
        return sum(sign * self._weighted(parts) for sign, parts in terms)  # type: ignore[return-value]

    def mean(self, cuboid: Cuboid) -> float:
        """Return the mean variance over all cells of a cuboid."""
        whole = np.zeros(())
        for sign, parts in self._terms(cuboid):
            whole = whole + sign * self._weighted([p.mean(axis=0, keepdims=True) for p in parts])
        return float(whole.sum())

    def weights(self, cuboid: Cuboid) -> Floats:
        """Return the derivatives of `mean` by each true variance: float64 (levels of each axis)."""
        found = np.zeros_like(self.true)
        for sign, parts in self._terms(cuboid):
            each = [p.mean(axis=0) for p in parts]
            term = each[0]
            for other in each[1:]:
                term = np.multiply.outer(term, other)
            found += sign * term
        return np.where(self.true > 0, found, 0.0)

    def of_sum(self, weights: Product) -> float:
        """Return the variance of a sum whose weights are a product."""
        pairs: list[tuple[Product, Product, int]] = [(weights, weights, 1)]
        if self.public is not None:
            axes = zip(self.squares, weights, self.public, strict=True)
            other: Product = [own.explaining(*one, exact) for own, one, exact in axes]
            pairs += [(weights, other, -2), (other, other, 1)]
        found = 0.0
        for one, other, sign in pairs:
            parts = [
                _products(own, a, b)[None, :]
                for own, a, b in zip(self.squares, one, other, strict=True)
            ]
            found += sign * float(self._weighted(parts).item())
        return max(found, 0.0)

    def _terms(self, cuboid: Cuboid) -> list[tuple[int, list[Floats]]]:
        """Return the signed terms of the formula, each float64 (nodes, levels) for each axis."""
        if self.public is None:
            return [(1, [coefficients(s)[k] for s, k in zip(self.squares, cuboid, strict=True)])]
        levels = zip(self.squares, cuboid, self.public, strict=True)
        parts = [_with_exact(own, k, exact) for own, k, exact in levels]
        return [(sign, [p[i] for p in parts]) for i, sign in enumerate((1, -2, 1))]

    def _weighted(self, parts: list[Floats]) -> Floats:
        """Return Σ_c v*_c Π_a parts_a[node, c_a]: float64 (nodes of each axis)."""
        found = self.true
        for part in parts:  # each takes the first axis of levels to a last axis of nodes
            found = np.tensordot(found, part, axes=(0, 1))
        return found


def coefficients(own: AxisSquares) -> list[Floats]:
    """Return the sums of squared coefficients by level: float64 (nodes, levels) for each level.

    The estimate of a node is Σ t M over the measurements of an axis; here are Σ t² by level.
    """
    return _down(own, _up(own))[0]


def mean_weights(own: AxisSquares, importance: Floats) -> Floats:
    """Return Σ_k importance_k times the mean of `coefficients` over level k: float64 (levels)."""
    parts = coefficients(own)
    each = [w * p.mean(axis=0) for w, p in zip(importance, parts, strict=True)]
    found: Floats = np.sum(each, axis=0)
    return found


def _up(own: AxisSquares) -> list[Floats]:
    """Return the sums of `coefficients` for z, what each node's own subtree says of it."""
    found = [np.zeros((own.shape.sizes[-1], own.depth + 1))]
    found[0][:, own.depth] = 1.0
    for k in range(own.depth - 1, -1, -1):
        here = own.child_weight(k)[:, None] ** 2 * sums(own.shape, k, found[0])
        here[:, k] += own.own_weight(k) ** 2
        found.insert(0, here)
    return found


def _down(own: AxisSquares, up: list[Floats]) -> tuple[list[Floats], list[Floats]]:
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


def _with_exact(own: AxisSquares, level: int, exact: int) -> tuple[Floats, Floats, Floats]:
    """Return τ of each node with itself, with what explains it, and of that with itself."""
    up = _up(own)
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


def _products(own: AxisSquares, one: tuple[int, Floats], other: tuple[int, Floats]) -> Floats:
    """Return τ of two weighted sums along an axis, by level: float64 (levels)."""
    first, second = own.covariances(*one), own.covariances(*other)
    each = zip(own.own, first, second, strict=True)
    return np.array([0.0 if isinf(v) else float(a @ b) / v**2 for v, a, b in each])


def product_of(own: Sequence[AxisSquares], cuboid: Cuboid) -> float:
    """Return the nominal variance of a cuboid's measurements."""
    return prod(float(s.own[k]) for s, k in zip(own, cuboid, strict=True))
