"""Any set of measured cuboids: best linear unbiased estimates of all, tables that agree.

Minimises Σ_c ‖M_c - S_c x‖² / v_c over the cells x of all tables that agree on their common
coarsenings and with what is public. Along one chain a table this is two passes
(`hedgerow.estimate.workload.chains`); what the chains leave out are rows of a second system
(`hedgerow.estimate.workload.dual`), solved by a dense factor where that is small enough, and then
variances are exact; by conjugate gradients otherwise, and then they are upper bounds. They are
bounds beside a factor, too, where noise is so far apart (`EXACT`) that what the rows take off a
chain's variances leaves nothing but rounding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hedgerow.arrays import ByCuboid, Float64, Integers, Levels, Tables
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import cells_below, spread, summed
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.workload.bounds import bounds, least_mean
from hedgerow.estimate.workload.chains import chains_of
from hedgerow.estimate.workload.dense import DenseDual, kept_cells, number_of
from hedgerow.estimate.workload.dual import Dual, dual_of
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.overlap import Layers
from hedgerow.estimate.workload.spine import SpineSolver
from hedgerow.limits import MOST_CACHED, MOST_CELLS_OF_TABLES, MOST_DENSE, MOST_EXACT, MOST_KEPT

FARTHEST = 1e20
"""The largest ratio of two variances; from some 1e27 on, floats lose estimates unnoticed."""

EXACT = float(1 << 36)
"""The largest ratio of two variances up to which a factor tells those of estimates: to three digits
there, and to as many more as the ratio is smaller."""

RESIDUAL = 1e-9
"""The residual of the system, relative to its right side, at which gradients stop."""

MOST_STEPS = 1_000
"""Steps after which gradients are given up."""

GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, are spread out evenly."""


@dataclass(frozen=True, eq=False)
class GeneralSolver(Solver):
    """Least squares over any measured cuboids.

    Attributes:
        observed: what is measured.
        dual: the chains, and the rows that they leave out.
        is_dense: whether these are few enough for a dense factor.
        is_exact: whether there is one that tells variances; if not, they are upper bounds.
    """

    observed: Observed
    dual: Dual
    is_dense: bool
    is_exact: bool
    _cache: dict[Levels, tuple[Levels, Float64]] = field(default_factory=dict)
    _figures: dict[Levels, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, observed: Observed) -> "GeneralSolver":
        """Return the solver of any measured cuboids.

        Raises:
            EstimateError: they have more than `MOST_CELLS_OF_TABLES` cells.
        """
        shape = observed.shape
        if (cells := sum(map(shape.cells, observed.variances))) > MOST_CELLS_OF_TABLES:
            raise EstimateError(
                f"cuboids are estimated together up to {MOST_CELLS_OF_TABLES:,} measured cells, "
                f"and these have {cells:,}; leave out cuboids or levels"
            )
        apart = max(observed.variances.values()) / min(observed.variances.values())
        if apart > FARTHEST:
            raise EstimateError(
                "the variances of a workload are too far apart for its least squares in floats: "
                f"at most {FARTHEST:.0e} times one another; give small shares more, or none"
            )
        dual = dual_of(observed, chains_of(observed))
        work = dual.size * sum(map(shape.cells, observed.tables))
        few = dual.size <= MOST_DENSE and work <= MOST_EXACT
        is_dense = few and dual.size * kept_cells(dual) <= MOST_KEPT
        return cls(observed, dual, is_dense, is_dense and (apart <= EXACT or not dual.size))

    @cached_property
    def dense(self) -> DenseDual | None:
        """The rows' factor, if they are few enough."""
        return DenseDual.of(self.dual) if self.is_dense else None

    @property
    def bytes_held(self) -> int:
        """The memory that the dense factor takes, if there is one."""
        dense = self.dense
        if dense is None:
            return 0
        return dense.factor.nbytes + sum(t.nbytes for h in dense.halves for t in h.parts.values())

    @property
    def words(self) -> str:
        """How it estimates, and what its variances are, in a sentence for users."""
        way = f"along a chain for each table and with {self.dual.size:,} sums beside them"
        if not self.dual.size:
            way = "along one chain of nested cuboids"
        if self.is_exact or not self.dual.size:
            return f"Cuboids are estimated exactly, {way}; their errors are exact."
        if self.is_dense:
            return (
                f"Cuboids are estimated exactly, {way}; as noise is far apart, standard errors "
                f"are upper bounds{self._how_wide}."
            )
        return (
            f"Cuboids are estimated to a residual of {RESIDUAL:.0e} by conjugate gradients, "
            f"{way}; standard errors are upper bounds{self._how_wide}."
        )

    @property
    def _how_wide(self) -> str:
        """By how much at most they are above the exact ones, in a clause that follows."""
        least = {c: least_mean(self.observed, c) for c in self.observed.variances}
        above = [(self.mean(c) / low) ** 0.5 - 1 for c, low in least.items() if low > 0]
        if not above:
            return ", how far above the exact ones is not known"
        whole = len(above) == len(least)
        which = "each" if whole else f"{len(above):,} of {len(least):,}"
        percent = f"{100 * max(above):.2g}" if max(above) < 1 else f"{100 * max(above):,.0f}"
        return (
            f", and over {which} of the measured cuboids their root mean square is at most "
            f"{percent} % above that of the exact ones"
        ).replace("each of the measured cuboids", "each measured cuboid")

    def rehearse(self) -> None:
        """Raise an EstimateError unless estimates can be had, whatever the counts.

        The factor is made, or gradients reach their residual in half of the steps that they may
        take, for a right side that is spread out evenly.
        """
        if self.is_dense:
            self.dense  # noqa: B018 - made once
        elif self.dual.size:
            spread_out = np.modf(np.arange(1, self.dual.size + 1) * GOLDEN)[0] - 0.5
            gaps = spread_out * np.sqrt(self.dual.diagonal())
            conjugate_gradients(self.dual, gaps, MOST_STEPS // 2)

    def estimates(self, tables: ByCuboid, wanted: Iterable[Levels]) -> Tables:
        """Return the estimates of the wanted cuboids: float64 (cells along each axis), records.

        Args:
            tables: of every measured cuboid its noisy counts, and of the public one its true
                counts: float64 (cells along each axis). They are not changed.
            wanted: of which cuboids.

        Raises:
            EstimateError: a cuboid that no table refines, a table that is missing or of another
                shape, or gradients that do not reach their residual.
        """
        self._check(tables)
        solved = self._solved(tables)
        shape = self.observed.shape
        public = self.observed.public
        estimates = {}
        for cuboid in wanted:
            number = number_of(self.dual, cuboid)
            if public is not None and self.observed.is_public(cuboid):
                estimates[cuboid] = np.array(summed(shape, tables[public], public, cuboid))
            else:
                estimates[cuboid] = solved[number].sums(cuboid)[..., 0]
        return estimates

    def variances_of(self, cuboid: Levels) -> "GeneralSolver":
        """Return itself: all estimates rest on the same counts."""
        del cuboid
        return self

    def mean(self, cuboid: Levels) -> float:
        """Return the mean variance over all cells of a cuboid."""
        return self._figures_of(cuboid)[0]

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell of a cuboid, or a bound of it."""
        return self._figures_of(cuboid)[1]

    def of_cells(self, cuboid: Levels) -> Float64:
        """Return the variance of each cell: float64 (cells along each axis)."""
        coarse, variances = self._variances(cuboid)
        return np.array(spread(self.observed.shape, variances, coarse, cuboid))

    def at(self, cuboid: Levels, codes: Sequence[Integers]) -> Float64:
        """Return the variance of listed cells: float64 (cells).

        Args:
            cuboid: whose cells.
            codes: for each axis int (cells): the cell's node.
        """
        coarse, variances = self._variances(cuboid)
        each = zip(self.observed.shape.axes, cuboid, coarse, codes, strict=True)
        return variances[tuple(a.ancestors(k, above)[code] for a, k, above, code in each)]

    @property
    def has_covariances(self) -> bool:
        """Whether a dense factor tells variances, and so covariances of sums without iteration."""
        return self.is_exact

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products over axes.

        Raises:
            EstimateError: variances are not exact, or no table refines a sum's cells.
        """
        if self.dense is None:
            raise EstimateError("covariances of so large a workload are unknown")
        if not self.is_exact:
            raise EstimateError("covariances are unknown where noise is so far apart")
        return self.dense.covariance(first, second)

    def _check(self, tables: ByCuboid) -> None:
        """Raise unless every table is there, of its shape."""
        for cuboid in sorted(self.observed.cuboids):
            self.observed.shape.checked(cuboid, tables.get(cuboid))

    def _solved(self, tables: ByCuboid) -> list[Layers]:
        """Return the estimates of each chain's table."""
        shape = self.observed.shape
        public = self.observed.public
        solved = []
        for chain in self.dual.chains:
            own = {c: tables[c][..., None] for c in chain.cuboids if c in tables}
            noisy = Layers(shape, chain.table, {chain.table: own.pop(chain.table)})
            if public is not None:
                root = summed(shape, tables[public], public, chain.cuboids[0])
                own[chain.cuboids[0]] = root[..., None]
            solved.append(chain.estimates(noisy, own))
        if not self.dual.size:
            return solved
        gaps = self.dual.gaps(tables, solved)
        if self.dense is not None:
            multipliers = self.dense.solve(gaps)
        else:
            multipliers = conjugate_gradients(self.dual, gaps, MOST_STEPS)
        covered = self.dual.covered(multipliers[:, None])
        return [one.plus(more.parts) for one, more in zip(solved, covered, strict=True)]

    def _figures_of(self, cuboid: Levels) -> tuple[float, float]:
        """Return the mean and the largest variance."""
        if cuboid not in self._figures:
            coarse, variances = self._variances(cuboid)
            weights = cells_below(self.observed.shape, coarse, cuboid)
            mean = float((weights * variances).sum() / weights.sum())
            self._figures[cuboid] = mean, float(variances.max())
        return self._figures[cuboid]

    def _variances(self, cuboid: Levels) -> tuple[Levels, Float64]:
        """Return variances that are alike below the cells of a coarser cuboid, and which it is."""
        if cuboid not in self._cache:
            pair = self._computed(cuboid)
            if pair[1].size > MOST_CACHED:
                return pair
            self._cache[cuboid] = pair
        return self._cache[cuboid]

    def _computed(self, cuboid: Levels) -> tuple[Levels, Float64]:
        """Return the same, not looked up."""
        number = number_of(self.dual, cuboid)
        shape = self.observed.shape
        chain = self.dual.chains[number]
        if self.observed.is_public(cuboid):
            return shape.total, np.zeros((1,) * len(cuboid))
        if self.dense is None or not self.is_exact:
            return bounds(self.observed, cuboid)
        coarse, variances = chain.variances_of(cuboid)
        if not self.dual.size:
            return coarse, variances
        variances = spread(shape, variances, coarse, cuboid) - self.dense.explained(number, cuboid)
        return cuboid, np.maximum(variances, 0.0)


def conjugate_gradients(dual: Dual, gaps: Float64, most: int) -> Float64:
    """Return λ of K λ = gaps.

    Each step goes over the cells of all cuboids but the tables. Both sides are divided by the
    roots of (nearly) K's diagonal, so that rows of all units count alike. No row follows
    from others, so the residual falls as far as is asked, however large the counts are whose
    differences the right side is.

    Args:
        dual: the system.
        gaps: the right side, float64 (rows).
        most: steps at most, such as `MOST_STEPS`.

    Raises:
        EstimateError: the residual is not reached.
    """
    scale = 1 / np.sqrt(dual.diagonal())
    multipliers = np.zeros(len(gaps))
    residual = gaps * scale
    direction = residual.copy()
    squared = float(residual @ residual)
    enough = RESIDUAL**2 * squared
    for _ in range(most):
        if squared <= enough:
            return multipliers * scale
        image = dual.times((direction * scale)[:, None])[:, 0] * scale
        length = squared / float(direction @ image)
        multipliers += length * direction
        residual -= length * image
        before, squared = squared, float(residual @ residual)
        direction *= squared / before
        direction += residual
    raise EstimateError(
        f"the estimates of this workload do not settle within {most:,} steps; "
        "variances that are less far apart, or fewer cuboids, help"
    )


def solver_of(observed: Observed) -> Solver:
    """Return the solver of a workload: a closed form where there is one, by public facts alone.

    Raises:
        EstimateError: the workload is too large for iteration, and nothing else does.
    """
    return SpineSolver(observed) if SpineSolver.fits(observed) else GeneralSolver.of(observed)
