"""The rows beside the chains by a dense factor: estimates and exact variances.

With K = L Lᵀ and H = C Bᵀ L⁻ᵀ, the covariance of the estimates is C - H Hᵀ. Each column of H is a
vector over the cells of every table; as C Bᵀ is, it is kept as tables of coarser cuboids
(`hedgerow.estimate.workload.chains`), so that

    Var(S_c x) = diag(S_c C S_cᵀ) - Σ_j (S_c H_j)²

takes as many steps as the cells of c times the rows, whatever the table. Over c's cells each of
H's tables, divided by the table's cells in a cell of c, is spread from what it has in common with
c. They are added up before anything is squared: where a chain has measured a sum far better than
its parts, tables are far larger than their sum, and their products far larger still.
"""

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from hedgerow.arrays import Float64, Int64, Levels, Tables
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import (
    cells_below,
    fineness,
    is_within,
    join,
    spread,
)
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.workload.dual import Dual
from hedgerow.estimate.workload.overlap import Layers
from hedgerow.kernels import kernel, over_families

CHUNK = 1 << 22
"""Numbers that are worked on at a time: columns times cells."""


@frozen(eq=False)
class DenseDual:
    """K's factor, and H.

    Attributes:
        dual: the system.
        factor: L, float64 (rows, rows), lower triangular.
        halves: for each chain H, a vector a row.
    """

    dual: Dual
    factor: Float64
    halves: tuple[Layers, ...]

    @classmethod
    def of(cls, dual: Dual) -> "DenseDual":
        """Return the factor of a system.

        Raises:
            EstimateError: variances are too far apart.
        """
        kernel, covered = _columns(dual)
        try:
            factor = cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise EstimateError(
                "the variances of a workload are too far apart for its least squares in floats"
            ) from None
        for table in (table for half in covered for table in half.parts.values()):
            cells = table.reshape(-1, dual.size)
            for rows in _blocks(len(cells), dual.size):  # in place: H takes the place of C Bᵀ
                part = cells[rows].T
                cells[rows] = solve_triangular(factor, part, lower=True, check_finite=False).T
        return cls(dual, factor, tuple(covered))

    def solve(self, gaps: Float64) -> Float64:
        """Return λ of K λ = gaps: float64 (rows)."""
        return np.asarray(cho_solve((self.factor, True), gaps, check_finite=False))

    def explained(self, number: int, cuboid: Levels) -> Float64:
        """Return what the rows take off the variance of each cell: float64 (its cells).

        Args:
            number: of a chain whose table refines the cuboid.
            cuboid: whose cells.
        """
        half = self.halves[number]
        shape = half.shape
        means = half.means(cuboid)
        for at in sorted(means, key=fineness):
            if finer := next((e for e in means if e != at and is_within(at, e)), None):
                means[finer] = means[finer] + spread(shape, means.pop(at), at, finer)
        if not means:  # no row is of this chain's table
            return np.zeros(shape.shape(cuboid))
        means = dict(sorted(means.items(), reverse=True))  # the last along the last axes
        at = reduce(join, means)
        begins = np.cumsum([0, *map(shape.cells, means)])
        vectors = np.concatenate([mean.reshape(-1, self.dual.size) for mean in means.values()])
        places = np.stack([
            spread(shape, np.arange(*each).reshape(shape.shape(d)), d, at).ravel()
            for d, each in zip(means, pairwise(begins), strict=True)
        ])  # fmt: skip
        lengths = np.empty(shape.cells(at))
        over_families(
            lambda first, last: squared_sums(vectors, places, first, last, lengths),
            np.arange(len(lengths) + 1) * self.dual.size,
        )
        squares = spread(shape, lengths.reshape(shape.shape(at)), at, cuboid)
        return squares * cells_below(shape, cuboid, half.table) ** 2

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products."""
        i, one = self._placed(first)
        j, other = self._placed(second)
        covariance = -np.sum(self.halves[i].products(one) * self.halves[j].products(other))
        if i == j:
            covariance += self.dual.chains[i].covariance(one).products(other).item()
        return float(covariance)

    def _placed(self, weights: Product) -> tuple[int, Layers]:
        """Return a chain whose table refines a sum's cells, and the weights of these."""
        cuboid = tuple(level for level, _ in weights)
        number = number_of(self.dual, cuboid)
        parts = {cuboid: reduce(np.multiply.outer, [nodes for _, nodes in weights])[..., None]}
        return number, Layers(self.halves[number].shape, self.halves[number].table, parts)


def number_of(dual: Dual, cuboid: Levels) -> int:
    """Return the number of the smallest table that refines a cuboid.

    Raises:
        EstimateError: none does.
    """
    numbers = [i for i, chain in enumerate(dual.chains) if is_within(cuboid, chain.table)]
    if not numbers:
        raise EstimateError(f"cuboid {cuboid} is no sum of a table's cells, so it has no estimate")
    return min(numbers, key=lambda i: dual.chains[i].shape.cells(dual.chains[i].table))


def kept_cells(dual: Dual) -> int:
    """Return how many numbers H has for each row."""
    every = {(i, rows.cuboid) for rows in dual.rows for i, _ in rows.signs}
    every |= {(i, chain.last) for i, chain in enumerate(dual.chains) if chain.last is not None}
    return sum(dual.chains[i].shape.cells(cuboid) for i, cuboid in every)


def _columns(dual: Dual) -> tuple[Float64, list[Layers]]:
    """Return K, and C Bᵀ for each chain, a vector a row of B."""
    kernel = np.empty((dual.size, dual.size))
    whole: list[Tables] = [{} for _ in dual.chains]
    for columns in _blocks(dual.size, kept_cells(dual)):
        units = np.zeros((dual.size, columns.stop - columns.start))
        units[np.arange(columns.start, columns.stop), np.arange(units.shape[1])] = 1
        covered = dual.covered(units)
        kernel[:, columns] = dual.variances[:, None] * units + dual.seen(covered)
        for target, parts in zip(whole, covered, strict=True):
            for cuboid, table in parts.parts.items():
                if cuboid not in target:
                    target[cuboid] = np.empty((*table.shape[:-1], dual.size))
                target[cuboid][..., columns] = table
    each = zip(dual.chains, whole, strict=True)
    return kernel, [Layers(chain.shape, chain.table, parts) for chain, parts in each]


@kernel
def squared_sums(vectors: Float64, places: Int64, first: int, last: int, lengths: Float64) -> None:
    """Write the squared length of a sum of vectors, for each cell of a run.

    The vectors of a cell are added up before they are squared: where noise is far apart they are
    long and their sum is short, and of |a|² + |b|² + 2 a·b no digit would be left. Four sums side
    by side do not wait for each other.

    Args:
        vectors: float64 (vectors, size).
        places: int64 (vectors of a cell, cells): which they are.
        first: of the cells.
        last: the cell behind them.
        lengths: float64 (cells), where it is written.
    """
    last_one = len(places) - 1
    size = vectors.shape[1]
    column = np.zeros(size)  # the sum of all but the last, which cells side by side often share
    whole = size - size % 4
    for cell in range(first, last):
        is_new = cell == first
        for one in range(last_one):
            is_new |= places[one, cell] != places[one, cell - 1]
        if is_new:
            column[:] = 0.0
            for one in range(last_one):
                column += vectors[places[one, cell]]
        own = vectors[places[last_one, cell]]
        a = b = c = d = 0.0
        for i in range(0, whole, 4):
            a += (column[i] + own[i]) ** 2
            b += (column[i + 1] + own[i + 1]) ** 2
            c += (column[i + 2] + own[i + 2]) ** 2
            d += (column[i + 3] + own[i + 3]) ** 2
        for i in range(whole, size):
            a += (column[i] + own[i]) ** 2
        lengths[cell] = a + b + (c + d)


def _blocks(number: int, size: int) -> Iterator[slice]:
    """Yield ranges of columns or rows of a size that hold some numbers."""
    step = max(1, CHUNK // max(size, 1))
    return (slice(begin, min(begin + step, number)) for begin in range(0, number, step))
