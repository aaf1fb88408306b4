"""Exact variances of a cube's estimates, before anything is measured. Records² throughout.

*Nominal* variances v_c = Π_a v_a(c_a) give estimates their weights; the noise has the true ones
v*_c. Those of discrete noise are nearly a product: discrete Laplace noise at ε = 1 misses it by
0.3 %, discrete Gaussian noise below σ² = 1 by up to a seventh, above σ² = 4 by less than 1e-9.

*Where true variances are the nominal ones* the covariance of the leaves is C_1 ⊗ … ⊗ C_k, C_a that
of axis a alone. For weights that are a product, w = w_1 ⊗ … ⊗ w_k over the nodes of any levels,

    Var(wᵀ y) = Π_a w_aᵀ C_a w_a  -  Π_a w_aᵀ K_a w_a,

the second term, where a cuboid is public, being what its exact counts explain: K_a is the part of
C_a that axis a's level of the public cuboid explains (`AxisSquares.explaining`).

*Otherwise*, with τ_a of `AxisSquares.coefficients`, it is

    Σ_c v*_c (Π_a τ_a(w, w, c_a) - 2 Π_a τ_a(w, w', c_a) + Π_a τ_a(w', w', c_a)),

w' being the sum of the public cuboid's nodes that explains w; where nothing is public only the
first term stands. So a term is one of factors by node and level, summed over levels by the noise;
in closed form there is one level, of factors that are variances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import shape_of
from hedgerow.estimate.cube.shape import strips
from hedgerow.limits import MOST_PAIRS

AGREED = 1e-9
"""How far true variances may be from nominal ones, relatively, and still be taken for them."""

CHUNK = 1 << 18
"""Listed cells that are worked on at a time."""


Product = Sequence[tuple[int, Float64]]
"""Weights that are a product: for each axis a level and float64 (its nodes)."""

Term = tuple[int, list[Float64]]
"""A signed product: its sign and for each axis float64 (nodes, levels) of factors, whose products
over axes are summed over all combinations of levels, each times its noise."""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class CubeVariances:
    """The variances of `hedgerow.estimate.cube.estimates.least_squares`.

    Attributes:
        squares: one an axis, of the nominal variances.
        public: the cuboid whose counts are known exactly, if any.
        true: float64 (levels of each axis): the true variances, 0 for what is public or not
            measured; None where they are the nominal ones, and everything is in closed form.
    """

    has_covariances: ClassVar[bool] = True
    squares: tuple[AxisSquares, ...]
    public: Levels | None
    true: Float64 | None

    def __init__(
        self,
        squares: Sequence[AxisSquares],
        public: Levels | None = None,
        true: Mapping[Levels, float] | None = None,
    ) -> None:
        """Compare true variances, where given, with the nominal ones.

        Args:
            squares: one an axis, of the nominal variances.
            public: the cuboid whose counts are known exactly, if any.
            true: of each cuboid that is measured, the variance of its noise; the nominal ones
                unless given.
        """
        object.__setattr__(self, "squares", tuple(squares))
        object.__setattr__(self, "public", public)
        object.__setattr__(self, "true", None if true is None else _told(squares, public, true))

    @property
    def noise(self) -> Float64:
        """What the products of a term's factors are multiplied with: float64 (levels of each)."""
        return np.ones((1,) * len(self.squares)) if self.true is None else self.true

    def of_cells(self, cuboid: Levels) -> Float64:
        """Return the variance of each cell: float64 (cells along each axis)."""
        terms = self._terms(cuboid)
        found = np.zeros([len(part) for part in terms[0][1]])
        for slab in strips(found.shape, CHUNK):
            for sign, (first, *others) in terms:
                found[slab] += self._outer(sign, [first[slab], *others])
        return np.maximum(found, 0.0, out=found)

    def at(self, cuboid: Levels, codes: Sequence[NDArray[np.integer]]) -> Float64:
        """Return the variance of listed cells: float64 (cells).

        Args:
            cuboid: by the levels of the squares (levels of single children left out).
            codes: for each axis int (cells): the cell's node.
        """
        found, noise = np.zeros(len(codes[0])), self.noise
        # the sum over levels of the first axis, once for each node
        terms = [(s, [np.tensordot(p[0], noise, axes=1), *p[1:]]) for s, p in self._terms(cuboid)]
        for begin in range(0, len(found), CHUNK):
            chunk = slice(begin, begin + CHUNK)
            for sign, parts in terms:
                cells, *rest = (p.take(c[chunk], axis=0) for p, c in zip(parts, codes, strict=True))
                for part in rest:
                    cells = np.einsum("il,il...->i...", part, cells)
                found[chunk] += sign * cells
        return np.maximum(found, 0.0, out=found)

    def mean(self, cuboid: Levels) -> float:
        """Return the mean variance over all cells of a cuboid."""
        each = ((s, [p.mean(axis=0, keepdims=True) for p in ps]) for s, ps in self._terms(cuboid))
        return max(sum(self._outer(sign, means).item() for sign, means in each), 0.0)

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell of a cuboid, or a bound of it.

        Nodes of an axis that are alike to 1e-12 count once; where more than `MOST_PAIRS` cells are
        different even so, each term is bounded on its own.
        """
        terms = self._terms(cuboid)
        if self.true is None and self.public is None:
            return self._bound(*terms[0])  # of a product it is the largest
        kept = [_distinct(axis) for axis in zip(*(parts for _, parts in terms), strict=True)]
        every = [(s, [p[k] for p, k in zip(parts, kept, strict=True)]) for s, parts in terms]
        if prod(map(len, kept)) <= MOST_PAIRS:
            cells = reduce(np.add, [self._outer(sign, parts) for sign, parts in every])
            return max(float(cells.max()), 0.0)
        return max(sum(self._bound(s, parts) for s, parts in every), 0.0)

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products."""
        if self.public is None:
            return self._covariance(first, second)
        one, other = self._explaining(first), self._explaining(second)
        crossed = self._covariance(first, other) + self._covariance(one, second)
        return self._covariance(first, second) - crossed + self._covariance(one, other)

    def _terms(self, cuboid: Levels) -> list[Term]:
        """Return the signed terms of a cell's variance."""
        signs: tuple[int, ...]
        exact = cuboid if self.public is None else self.public
        levels = list(zip(self.squares, cuboid, exact, strict=True))
        if self.true is None:
            parts = [(own.final[k], own.explained(k, e)) for own, k, e in levels]
            columns, signs = [tuple(v[:, None] for v in axis) for axis in parts], (1, -1)
        else:
            columns, signs = [own.coefficients(k, e) for own, k, e in levels], (1, -2, 1)
        terms = [(sign, [p[i] for p in columns]) for i, sign in enumerate(signs)]
        return terms[:1] if self.public is None else terms

    def _outer(self, sign: int, parts: list[Float64]) -> Float64:
        """Return a signed term at every combination of nodes: float64 (nodes of each axis)."""
        found = sign * self.noise
        for part in parts:  # each takes the first axis of levels to a last axis of nodes
            found = np.tensordot(found, part, axes=(0, 1))
        return found

    def _bound(self, sign: int, parts: list[Float64]) -> float:
        """Return a bound from above of a signed term over all combinations of nodes."""
        low, high = np.ones(()), np.ones(())
        for part in parts:
            least, most = part.min(axis=0), part.max(axis=0)
            ends = np.stack([np.multiply.outer(a, b) for a in (low, high) for b in (least, most)])
            low, high = ends.min(axis=0), ends.max(axis=0)
        return float((self.noise * sign * (high if sign > 0 else low)).sum())

    def _explaining(self, weights: Product) -> Product:
        """Return the sum of the public cuboid's nodes that explains a sum."""
        axes = zip(self.squares, weights, self.public or (), strict=True)
        return [own.explaining(*one, exact) for own, one, exact in axes]

    def _covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums before a public cuboid is known."""
        every = zip(self.squares, first, second, strict=True)
        if self.true is None:
            return prod(own.covariance(one, other) for own, one, other in every)
        return float(self._outer(1, [own.products(a, b)[None, :] for own, a, b in every]).item())


def nominal_of(squares: Sequence[AxisSquares], cuboid: Levels) -> float:
    """Return the nominal variance of a cuboid's measurements."""
    return prod(float(own.own[k]) for own, k in zip(squares, cuboid, strict=True))


def _measured(squares: Sequence[AxisSquares], public: Levels | None) -> Float64:
    """Return whether each cuboid is measured: bool (levels of each axis)."""
    found = np.asarray(reduce(np.logical_and.outer, [np.isfinite(s.own) for s in squares]))
    for cuboid in shape_of(squares).within(public):
        found[cuboid] = False
    return found


def _told(
    squares: Sequence[AxisSquares], public: Levels | None, true: Mapping[Levels, float]
) -> Float64 | None:
    """Return the true variances, or None where they are the nominal ones."""
    measured = _measured(squares, public)
    found = np.zeros(measured.shape)
    for cuboid in zip(*np.nonzero(measured), strict=True):
        found[cuboid] = true[tuple(int(k) for k in cuboid)]
    nominal = reduce(np.multiply.outer, [s.own for s in squares])[measured]
    agree = bool((np.abs(found[measured] - nominal) <= AGREED * nominal).all())
    return None if agree else found


def _distinct(parts: Sequence[Float64]) -> Int64:
    """Return nodes of an axis of which every other one is like some: int64 (nodes kept)."""
    rows = np.hstack(parts)
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    return np.unique(np.round(rows / scale, 12), axis=0, return_index=True)[1]
