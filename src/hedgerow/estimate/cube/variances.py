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

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int64, Integers, Levels, OfCuboids, Sizes
from hedgerow.declared import frozen
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import strips
from hedgerow.estimate.factors import Factors
from hedgerow.limits import MOST_PAIRS

AGREED = 1e-9
"""How far true variances may be from nominal ones, relatively, and still be taken for them."""

CHUNK = 1 << 18
"""Listed cells that are worked on at a time."""


Product = Sequence[tuple[int, Float64]]
"""Weights that are a product: for each axis a level and float64 (its nodes)."""

Groups = Sequence[Float64 | None]
"""Of each axis float64 (nodes, sums): sums that stand in the place of its nodes, if any."""


@frozen(eq=False)
class Factored:
    """Numbers of cells: sums, over combinations of levels, of products over axes.

    Attributes:
        first: float64 (nodes of the first axis, levels of each other one): the sums over its own
            levels.
        others: for each other axis float64 (nodes, levels).
    """

    first: Float64
    others: Sequence[Float64]

    def cells(self, nodes: slice = slice(None)) -> Float64:
        """Return the number of every cell of the first axis's nodes: float64 (nodes of each)."""
        variances = self.first[nodes]
        for each in self.others:  # each takes an axis of levels to a last axis of nodes
            variances = np.tensordot(variances, each, axes=(1, 1))
        return variances

    def at(self, codes: Sequence[Integers]) -> Float64:
        """Return the numbers of listed cells, from each axis's nodes: float64 (cells)."""
        variances = self.first.take(codes[0], axis=0)
        for each, code in zip(self.others, codes[1:], strict=True):
            variances = np.einsum("il,il...->i...", each.take(code, axis=0), variances)
        return variances

    def mean(self) -> float:
        """Return the mean over all cells."""
        others = [each.mean(axis=0, keepdims=True) for each in self.others]
        return float(Factored(self.first.mean(axis=0, keepdims=True), others).cells().item())

    def bound(self) -> float:
        """Return a bound of all cells from above; the largest where there is one level."""
        low = np.ones(())
        high = np.ones(())
        for each in self.others:
            ends = _ends((low, high), each, np.multiply.outer)
            low = ends.min(axis=0)
            high = ends.max(axis=0)
        return float(_ends((low, high), self.first, np.multiply).max(axis=0).sum())


def _ends(
    ranges: FloatPair, factors: Float64, times: Callable[[Float64, Float64], Float64]
) -> Float64:
    """Return the products of the ends of a range and of the factors: float64 (4, …)."""
    each = (factors.min(axis=0), factors.max(axis=0))
    return np.stack([times(a, b) for a in ranges for b in each])


class ByFactors(ABC):
    """The variances of cells that are sums of terms, each a product over axes."""

    has_covariances = True

    @property
    def leading(self) -> int:
        """The axis whose nodes come first in a term; the others follow in their order."""
        return 0

    @abstractmethod
    def factors(self, cuboid: Levels) -> Factors | None:
        """Return the covariance of all cells of a cuboid, row by row; None where it is no product.

        Args:
            cuboid: whose cells.
        """

    @abstractmethod
    def _terms(self, cuboid: Levels, groups: Groups | None = None) -> Sequence[Factored]:
        """Return the signed terms of the variance of a cell, or of a sum over groups of nodes."""

    def of_cells(self, cuboid: Levels, groups: Groups | None = None) -> Float64:
        """Return the variance of each cell: float64 (cells along each axis).

        Args:
            cuboid: whose cells.
            groups: sums that stand in the place of the nodes of axes.
        """
        terms = self._terms(cuboid, groups)
        variances = np.zeros([len(terms[0].first), *map(len, terms[0].others)])
        for slab in strips(variances.shape, CHUNK):
            for term in terms:
                variances[slab] += term.cells(slab)
        return np.ascontiguousarray(
            np.moveaxis(np.maximum(variances, 0.0, out=variances), 0, self.leading)
        )

    def at(self, cuboid: Levels, codes: Sequence[Integers]) -> Float64:
        """Return the variance of listed cells: float64 (cells).

        Args:
            cuboid: by the levels of the squares (levels of single children left out).
            codes: for each axis int (cells): the cell's node.
        """
        terms = self._terms(cuboid)
        variances = np.zeros(len(codes[0]))
        first = codes[self.leading]
        others = [*codes[: self.leading], *codes[self.leading + 1 :]]
        for begin in range(0, len(variances), CHUNK):
            chunk = slice(begin, begin + CHUNK)
            for term in terms:
                variances[chunk] += term.at([code[chunk] for code in (first, *others)])
        return np.maximum(variances, 0.0, out=variances)

    def mean(self, cuboid: Levels) -> float:
        """Return the mean variance over all cells of a cuboid."""
        return max(sum(term.mean() for term in self._terms(cuboid)), 0.0)


@dataclass(frozen=True, eq=False)
class CubeVariances(ByFactors):
    """The variances of `hedgerow.estimate.cube.estimates.least_squares`.

    Attributes:
        squares: one an axis, of the nominal variances.
        public: the cuboid whose counts are known exactly, if any.
        measured: of each cuboid that is measured, the variance of its noise; the nominal ones
            unless given.
    """

    squares: Sequence[AxisSquares]
    public: Levels | None = None
    measured: OfCuboids | None = None

    @property
    def finest(self) -> Levels:
        """The cuboid of the leaves."""
        return tuple(own.depth for own in self.squares)

    @cached_property
    def true(self) -> Float64 | None:
        """The true variances, 0 for what is public or not measured: float64 (levels of each axis).

        None where they are the nominal ones, and everything is in closed form.
        """
        if self.measured is None:
            return None
        is_measured = reduce(np.logical_and.outer, [np.isfinite(own.own) for own in self.squares])
        if self.public is not None:
            is_measured[tuple(slice(exact + 1) for exact in self.public)] = False
        variances = np.zeros(is_measured.shape)
        for cuboid in np.argwhere(is_measured):
            variances[tuple(cuboid)] = self.measured[tuple(cuboid.tolist())]
        nominal = reduce(np.multiply.outer, [own.own for own in self.squares])[is_measured]
        agree = bool((np.abs(variances[is_measured] - nominal) <= AGREED * nominal).all())
        return None if agree else variances

    @property
    def noise(self) -> Float64:
        """What the products of a term's factors are multiplied with: float64 (levels of each)."""
        return np.ones((1,) * len(self.squares)) if self.true is None else self.true

    def factors(self, cuboid: Levels) -> Factors | None:
        """Return the covariance of all cells, row by row; None where it is no product."""
        if self.true is not None:
            return None
        exact = cuboid if self.public is None else self.public
        axes = zip(self.squares, cuboid, exact, strict=True)
        whole, explained = zip(*(own.covariance_factors(k, e) for own, k, e in axes), strict=True)
        terms = [(1.0, Factors.product(whole))]
        if self.public is not None:
            terms.append((-1.0, Factors.product(explained)))
        return Factors.sum(terms)

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell of a cuboid, or a bound of it.

        Nodes of an axis that are alike to 1e-12 count once; where more than `MOST_PAIRS` cells are
        different even so, each term is bounded on its own.
        """
        terms = self._terms(cuboid)
        if self.true is None and self.public is None:
            return terms[0].bound()
        axes = list(zip(*((term.first, *term.others) for term in terms), strict=True))
        kept = [[part[nodes] for part in own] for own in axes for nodes in (_distinct(own),)]
        terms = [Factored(first, others) for first, *others in zip(*kept, strict=True)]
        if prod(len(own[0]) for own in kept) <= MOST_PAIRS:
            return max(float(reduce(np.add, [term.cells() for term in terms]).max()), 0.0)
        return max(sum(term.bound() for term in terms), 0.0)

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products."""
        if self.public is None:
            return self._covariance(first, second)
        one = self._explaining(first)
        other = self._explaining(second)
        crossed = self._covariance(first, other) + self._covariance(one, second)
        return self._covariance(first, second) - crossed + self._covariance(one, other)

    def _terms(self, cuboid: Levels, groups: Groups | None = None) -> list[Factored]:
        """Return the signed terms of the variance of a cell, or of a sum over groups of nodes."""
        signs: Sizes
        exact = cuboid if self.public is None else self.public
        along = groups or [None] * len(cuboid)
        levels = list(zip(self.squares, cuboid, exact, along, strict=True))
        if self.true is None:
            parts = [
                (own.final[k], own.explained(k, e)) if w is None else own.factors(k, e, w)
                for own, k, e, w in levels
            ]
            columns = [tuple(v[:, None] for v in axis) for axis in parts]
            signs = (1, -1)
        else:
            signs = (1, -2, 1)
            columns = [
                own.coefficients(k, e) if w is None else own.coefficients_of(k, e, w)
                for own, k, e, w in levels
            ]
        terms = [self._term(sign, [p[i] for p in columns]) for i, sign in enumerate(signs)]
        return terms[:1] if self.public is None else terms

    def _term(self, sign: int, parts: Sequence[Float64]) -> Factored:
        """Return a signed term, from each axis's factors: float64 (nodes, levels)."""
        return Factored(sign * np.tensordot(parts[0], self.noise, axes=1), parts[1:])

    def _explaining(self, weights: Product) -> Product:
        """Return the sum of the public cuboid's nodes that explains a sum."""
        axes = zip(self.squares, weights, self.public or (), strict=True)
        return [own.explaining(*one, exact) for own, one, exact in axes]

    def _covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums before a public cuboid is known."""
        every = zip(self.squares, first, second, strict=True)
        if self.true is None:
            return prod(own.covariance(one, other) for own, one, other in every)
        return self._term(1, [own.products(a, b)[None, :] for own, a, b in every]).mean()


def nominal_of(squares: Sequence[AxisSquares], cuboid: Levels) -> float:
    """Return the nominal variance of a cuboid's measurements."""
    return prod(float(own.own[k]) for own, k in zip(squares, cuboid, strict=True))


def _distinct(parts: Sequence[Float64]) -> Int64:
    """Return nodes of an axis of which every other one is like some: int64 (nodes kept)."""
    rows = np.hstack([part.reshape(len(part), -1) for part in parts])
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    return np.unique(np.round(rows / scale, 12), axis=0, return_index=True)[1]
