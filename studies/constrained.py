"""The non-negative leaves nearest to all noisy counts of a cube, with dense matrices.

    minimise  Σ_c |M_c - S_c x|² / v_c   over  x ≥ 0,  Σ x = N,

for variances v_c = Π_a v_a(c_a), by the alternating direction method of multipliers (Boyd et al.
2011, Section 5.2). The information is the Kronecker product of one matrix an axis, so it is
diagonal, with any multiple of the identity added, in the product of their eigenvectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import ByCuboid, Float64
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import CubeShape

MOST_STEPS = 2000
CLOSE = 1e-3
"""Records: how far the two sides of the method may be apart in the end."""


@dataclass(frozen=True, slots=True, eq=False)
class Constrained:
    """Two axes with their eigenvectors.

    Attributes:
        squares: the axes' variances.
        vectors: float64 (leaves, leaves) an axis.
        values: float64 (leaves of each): the information's eigenvalues.
    """

    squares: Sequence[AxisSquares]
    vectors: tuple[Float64, Float64]
    values: Float64

    @classmethod
    def of(cls, squares: Sequence[AxisSquares]) -> "Constrained":
        """Return the problem for the variances of a cube over two axes."""
        first, second = (np.linalg.eigh(information(axis)) for axis in squares)
        return cls(squares, (first[1], second[1]), np.outer(first[0], second[0]))

    def nearest(self, noisy: ByCuboid, shape: CubeShape) -> Float64:
        """Return the leaves: float64 (leaves of each axis).

        Args:
            noisy: of every cuboid its noisy counts, the total exact.
            shape: of the cube.
        """
        total = noisy[shape.total].sum()
        pull = np.zeros(shape.shape(shape.finest))
        for cuboid, table in noisy.items():  # S'M/v: each noisy count at all its leaves
            spread = table
            for a, squares in enumerate(self.squares):
                to_leaves = squares.shape.ancestors(squares.shape.depth, cuboid[a])
                spread = np.take(spread, to_leaves, axis=a) / squares.own[cuboid[a]]
            pull += spread
        step = 2 * self.values.min()
        inverse = 1 / (self.values + step)
        flat = self._solve(np.ones_like(pull), inverse)
        inside = np.zeros_like(pull)
        scaled = np.zeros_like(pull)
        for _ in range(MOST_STEPS):
            free = self._solve(pull + step * (inside - scaled), inverse)
            free += flat * ((total - free.sum()) / flat.sum())
            before, inside = inside, np.maximum(free + scaled, 0.0)
            scaled += free - inside
            if max(np.abs(free - inside).max(), np.abs(inside - before).max()) < CLOSE:
                break
        return inside

    def _solve(self, given: Float64, inverse: Float64) -> Float64:
        first, second = self.vectors
        return np.asarray(first @ ((first.T @ given @ second) * inverse) @ second.T)


def information(squares: AxisSquares) -> Float64:
    """Return Σ S'S/v of an axis: float64 (leaves, leaves)."""
    axis = squares.shape
    found = np.zeros((axis.sizes[-1],) * 2)
    for level, variance in enumerate(squares.own):
        ancestors = axis.ancestors(axis.depth, level)
        found += (ancestors[:, None] == ancestors) / variance
    return found
