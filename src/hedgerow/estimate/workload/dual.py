"""What chains leave out: the rows that tie them to other measurements and to each other.

Each table x_T has its own chain's least squares, with covariance C_T, independent of all others
(`hedgerow.estimate.workload.chains`). Two kinds of rows B x = d + noise of variance D remain:

- a measured cuboid e that is on no chain: S_e x_T = M_e with variance v_e, T any table that refines
  it (which one is all the same: tables agree);
- ties between tables: S_m x_T - S_m x_T' = 0 with variance 0, on their finest common coarsening m.

*Agreement of every two tables is all that there is to ask.* Split the functions of the cells of
the common refinement of all tables into residual spaces V_b, one for each vector b of levels: what
level b_a of every axis a says beyond the level before. The cells of cuboid c span the V_b with b
within c. Tables that agree on their common coarsenings have the same part in V_b wherever two of
them have one; so they are the sums of a joint (signed) table, and least squares over tables that
agree is least squares over joint tables.

*No row follows from others.* Table j is tied to earlier ones on the largest of its common
coarsenings with them; that all earlier ones agree makes it agree with each on what is coarser. Of
the cells of m only those are tied that say something beyond what is public or tied already, the
set X of cuboids closed under coarsening: along an axis let a node be *born* at the coarsest level
of whose node it is the first descendant; a cell is kept unless the vector of its nodes' levels of
birth is in X. (The indicator of a node is that of its ancestor at the level of birth less those of
nodes born later, so modulo the cells of X the kept indicators are a unitriangular image of a
basis.)

The estimates are x + C Bᵀ λ with K λ = d - B x, K = D + B C Bᵀ, and their covariance is
C - C Bᵀ K⁻¹ B C. K is symmetric and positive definite.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from hedgerow.arrays import ByCuboid, Float64, Int64, Levels, OfCuboids
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import (
    AxisShape,
    CubeShape,
    cells_below,
    fineness,
    is_within,
    maximal,
    meet,
)
from hedgerow.estimate.workload.chains import Chain
from hedgerow.estimate.workload.observed import Observed
from hedgerow.estimate.workload.overlap import Layers


@frozen(eq=False)
class Rows:
    """The rows of one cuboid: sums of one table's cells, or the differences of two tables'.

    Attributes:
        cuboid: whose cells are summed.
        variance: of what is measured, 0 for a tie.
        signs: the numbers of one or two chains, each with the sign its table has.
        kept: int64 (rows): which cells have a row, by their place in the cuboid's table.
    """

    cuboid: Levels
    variance: float
    signs: tuple[tuple[int, float], ...]
    kept: Int64

    def __len__(self) -> int:
        return len(self.kept)


@frozen(eq=False)
class Dual:
    """The system K λ = d - B x of all rows, without K.

    Attributes:
        chains: one a table.
        rows: one a cuboid that is measured beside the chains, or tied.
    """

    chains: tuple[Chain, ...]
    rows: tuple[Rows, ...]

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(map(len, self.rows))

    @property
    def variances(self) -> Float64:
        """The diagonal of D: float64 (rows)."""
        return np.repeat([rows.variance for rows in self.rows], [len(r) for r in self.rows])

    def covered(self, multipliers: Float64) -> list[Layers]:
        """Return C Bᵀ λ, for each chain.

        Args:
            multipliers: λ, float64 (rows, vectors).
        """
        vectors = [Layers(chain.shape, chain.table, {}) for chain in self.chains]
        ends = np.cumsum([*map(len, self.rows)])
        for rows, part in zip(self.rows, np.split(multipliers, ends)[:-1], strict=True):
            for number, sign in rows.signs:
                more = {rows.cuboid: self._table(rows, sign * part)}
                vectors[number] = vectors[number].plus(more)
        return [chain.covariance(own) for chain, own in zip(self.chains, vectors, strict=True)]

    def seen(self, tables: Sequence[Layers]) -> Float64:
        """Return B x of the tables of the chains: float64 (rows, vectors)."""
        products = []
        for rows in self.rows:
            total: Float64 | float = 0.0
            for number, sign in rows.signs:
                sums = tables[number].sums(rows.cuboid)
                total = total + sign * sums.reshape(-1, sums.shape[-1])[rows.kept]
            products.append(total)
        return np.concatenate(products)

    def times(self, multipliers: Float64) -> Float64:
        """Return K λ: float64 (rows, vectors)."""
        return self.variances[:, None] * multipliers + self.seen(self.covered(multipliers))

    def gaps(self, noisy: ByCuboid, tables: Sequence[Layers]) -> Float64:
        """Return d - B x: float64 (rows).

        Args:
            noisy: of every cuboid that is measured, its noisy counts.
            tables: x, for each chain its least squares.
        """
        measurements = [
            noisy[rows.cuboid].ravel()[rows.kept] if rows.variance else np.zeros(len(rows))
            for rows in self.rows
        ]
        return np.concatenate(measurements) - self.seen(tables)[:, 0]

    def diagonal(self) -> Float64:
        """Return an approximation of K's diagonal, no less than it: float64 (rows)."""
        diagonal = []
        for rows in self.rows:
            cells = np.full(len(rows), rows.variance)
            for number, _ in rows.signs:
                chain = self.chains[number]
                variances = dict(zip(chain.cuboids, chain.variances, strict=True))
                cells += combined_sums(chain.shape, variances, rows.cuboid).ravel()[rows.kept]
            diagonal.append(cells)
        return np.concatenate(diagonal)

    def _table(self, rows: Rows, multipliers: Float64) -> Float64:
        """Return multipliers as a table of their cuboid, 0 where there is no row."""
        shape = self.chains[0].shape.shape(rows.cuboid)
        table = np.zeros((int(np.prod(shape)), multipliers.shape[1]))
        table[rows.kept] = multipliers
        return table.reshape(*shape, -1)


def dual_of(observed: Observed, chains: tuple[Chain, ...]) -> Dual:
    """Return the rows that chains leave out."""
    on_chains = {cuboid for chain in chains for cuboid in chain.cuboids}
    shape = observed.shape
    tables = [chain.table for chain in chains]
    rows = []
    for cuboid in sorted(set(observed.variances) - on_chains, key=fineness):
        number = next(i for i, table in enumerate(tables) if is_within(cuboid, table))
        every = np.arange(shape.cells(cuboid))
        rows.append(Rows(cuboid, observed.variances[cuboid], ((number, 1.0),), every))
    for number, table in enumerate(tables):
        earlier_sums = [] if observed.public is None else [observed.public]
        for cuboid in maximal(meet(table, other) for other in tables[:number]):
            earlier = next(i for i, other in enumerate(tables) if is_within(cuboid, other))
            kept = _kept(shape, cuboid, earlier_sums)
            if len(kept):
                rows.append(Rows(cuboid, 0.0, ((earlier, 1.0), (number, -1.0)), kept))
            earlier_sums.append(cuboid)
    return Dual(chains, tuple(rows))


def combined_sums(shape: CubeShape, variances: OfCuboids, cuboid: Levels) -> Float64:
    """Return the variance of the weighted mean of all sums of finer measurements to a cell.

    Args:
        shape: how the levels nest.
        variances: of measured cuboids; those that do not refine the cuboid are passed over.
        cuboid: whose cells: float64 (cells along each axis).
    """
    precision = np.zeros(shape.shape(cuboid))
    for finer, variance in variances.items():
        if is_within(cuboid, finer):
            precision += 1 / (variance * cells_below(shape, cuboid, finer))
    return np.divide(1.0, precision, out=precision)


def _kept(shape: CubeShape, cuboid: Levels, earlier_sums: Iterable[Levels]) -> Int64:
    """Return the cells that say something beyond sums that are known: int64 (places)."""
    births = [_births(axis, level) for axis, level in zip(shape.axes, cuboid, strict=True)]
    kept = np.ones(shape.shape(cuboid), bool)
    for other in earlier_sums:
        within = np.ones((), bool)
        for birth, level in zip(births, other, strict=True):
            within = np.logical_and.outer(within, birth <= level)
        kept &= ~within
    return np.flatnonzero(kept)


def _births(axis: AxisShape, level: int) -> Int64:
    """Return the coarsest level of whose node each node is the first descendant: int64 (nodes)."""
    births = np.full(axis.sizes[level], level)
    for k in range(level, -1, -1):
        births[axis.descendant_start(k, level)[:-1]] = k
    return births
