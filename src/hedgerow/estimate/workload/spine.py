"""Least squares of any cuboids over one spine and attributes of two levels: exact, in O(cells).

*Where it applies.* One axis, the *spine*, is measured at any levels; every other axis, an
*attribute*, at its total and at one finer level, its detail, of n_a nodes. A cuboid is then a level
l of the spine and a set B of attributes at their detail.

*Residuals.* A cuboid (l, B) sums the full cross of a node of level l by S with

    SᵀS = ⊗_a (I where a is in B, 11ᵀ elsewhere),   I = J + (I - J),   11ᵀ = n_a J,   J = 11ᵀ/n_a.

All these commute: each acts as a number on each of the spaces ⊗_a (contrasts where a is in R,
constants elsewhere), one for each set R of attributes, its *residual*: the number is Π_{a ∉ B} n_a
where R ⊆ B, and 0 elsewhere. Sums along the spine do not mix coordinates, so the information of all
cuboids falls into one block for each coordinate of each residual, and least squares into as many
problems along the spine alone. A cuboid tells the coordinates of R ⊆ B, summed over all other
attributes, with the variance v Π_{a ∈ B∖R} n_a; several at one level combine by inverse variance,
and a public cuboid tells them exactly. `AxisSquares` solves it, down to the deepest level at which
R is told: what lies below does not occur in any table.

*Cells.* The estimate of a cuboid is the sum of its residuals, each spread evenly over B∖R, and
these have no covariance. With w_a the weights of a sum over the detail of a, and V_R the variance
of a coordinate at a node of the spine,

    Var = Σ_{R ⊆ B} V_R Π_{a ∈ R} (|w_a|² - (Σ w_a)²/n_a) Π_{a ∉ R} (Σ w_a)²/n_a²,

which for cells at detail is Σ_R V_R Π_R (1 - 1/n_a) Π_{B∖R} 1/n_a².

Source: Xiao, He, Zhang and Kifer (2023) separate marginals into residuals in this way; that a spine
does not mix them is shown above.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf, prod, sqrt

import numpy as np

from hedgerow.arrays import ByCuboid, Float64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares, combine_levels, spread_levels
from hedgerow.estimate.cube.shape import join, summed
from hedgerow.estimate.cube.variances import ByFactors, Factored, Product
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.residuals import Axes, Beside, subsets
from hedgerow.limits import MOST_RESIDUALS


@dataclass(frozen=True, eq=False)
class SpineSolver(Solver, ByFactors):
    """The estimates and variances of cuboids over one spine; see `Solver` for the methods.

    Attributes:
        observed: what is measured.

    Raises:
        EstimateError: two axes or more are measured at several levels.
    """

    observed: Observed

    def __post_init__(self) -> None:
        """Solve every residual's problem along the spine."""
        self.squares  # noqa: B018 - made once

    @cached_property
    def beside(self) -> Beside:
        """The attributes beside the spine."""
        spine = _spine(self.observed)
        if spine is None:
            raise EstimateError(
                "two axes or more are measured at a level between the total and their finest one; "
                "this solver takes one such axis"
            )
        return Beside(self.observed.shape, spine, _deepest(self.observed))

    @cached_property
    def told(self) -> Mapping[Axes, Mapping[Levels, float]]:
        """For each residual the cuboids that tell it and the variance of a coordinate, records²."""
        tables = self.observed.tables
        residuals = {r for table in tables for r in subsets(self.beside.of(table))}
        return {residual: self._told(residual) for residual in sorted(residuals)}

    @cached_property
    def squares(self) -> Mapping[Axes, AxisSquares]:
        """For each residual least squares along the spine."""
        return {residual: self._squares(each) for residual, each in self.told.items()}

    @staticmethod
    def fits(observed: Observed) -> bool:
        """Return whether all axes but one at most occur at their total and one finer level.

        Beyond `MOST_RESIDUALS` sets of attributes they do not fit either.
        """
        spine = _spine(observed)
        if spine is None:
            return False
        attributes = [len(table) - table.count(0) - (table[spine] > 0) for table in observed.tables]
        return sum(1 << number for number in attributes) <= MOST_RESIDUALS

    is_exact = True

    @property
    def words(self) -> str:
        """How it estimates, and what its variances are, in a sentence for users."""
        return (
            "Cuboids are estimated exactly, along one axis for each combination of the others; "
            "their errors are exact."
        )

    def estimates(self, tables: ByCuboid, wanted: Iterable[Levels]) -> dict[Levels, Float64]:
        """Return the estimates of the wanted cuboids: float64 (cells along each axis), records.

        What is public is returned as it was given, summed.

        Args:
            tables: of every measured cuboid its noisy counts, and of the public one its true
                counts: float64 (cells along each axis). They are not changed.
            wanted: of which cuboids.

        Raises:
            EstimateError: a cuboid is not answerable; a table is missing or of another shape.
        """
        observed, beside, shape = self.observed, self.beside, self.observed.shape
        found, made = dict[Levels, Float64](), dict[Levels, Float64]()
        for cuboid in dict.fromkeys(wanted):
            self._check(cuboid)
            if (known := observed.public) is not None and observed.is_public(cuboid):
                found[cuboid] = summed(shape, self._copied(tables, known), known, cuboid)
            else:
                made[cuboid] = np.zeros(shape.shape(beside.at_detail(cuboid)))
        told = {cuboid for each in self.told.values() for cuboid in each} if made else ()
        turned = {cuboid: beside.turn(self._copied(tables, cuboid), cuboid) for cuboid in told}
        for residual in self.squares:
            if into := [cuboid for cuboid in made if set(residual) <= set(beside.of(cuboid))]:
                levels = self._levels(residual, turned)
                for cuboid in into:
                    even = levels[cuboid[beside.spine]] / sqrt(beside.spread(cuboid, residual))
                    beside.part(made[cuboid], residual)[...] = even
        for cuboid, table in made.items():
            there = beside.at_detail(cuboid)
            found[cuboid] = summed(shape, beside.turn(table, there), there, cuboid)
        return found

    def variances_of(self, cuboid: Levels) -> "SpineSolver":
        """Return itself: all estimates rest on the same counts."""
        del cuboid
        return self

    @property
    def leading(self) -> int:
        """The spine."""
        return self.beside.spine

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell; attributes' nodes that are alike count once."""
        (found,) = self._terms(cuboid)
        others = [np.unique(each, axis=0) for each in found.others]
        return float(Factored(found.first, others).cells().max())

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products over axes.

        Raises:
            EstimateError: one of them is no sum of a table's cells.
        """
        cuboids = [tuple(level for level, _ in each) for each in (first, second)]
        for cuboid in cuboids:
            self._check(cuboid)
        both = [a for a in self.beside.of(cuboids[0]) if cuboids[1][a]]
        factors = {a: self.beside.product_factors(a, first[a], second[a]) for a in self.beside.axes}
        along = first[self.beside.spine], second[self.beside.spine]
        columns = np.array([self.squares[r].covariance(*along) for r in subsets(both)])
        found = Factored(columns.reshape(1, *(2,) * len(both)), [factors[a].T for a in both])
        alone = prod(float(each[0, 0]) for a, each in factors.items() if a not in both)
        return found.mean() * alone

    def _terms(self, cuboid: Levels) -> list[Factored]:
        """Return the variances of cells by their factors.

        V_R stands at 1 for residuals with an attribute, at 0 for those without.
        """
        self._check(cuboid)
        axes, level = self.beside.of(cuboid), cuboid[self.beside.spine]
        columns = np.stack([self.squares[r].final[level] for r in subsets(axes)], axis=-1)
        factors = [
            self.beside.factors(cuboid, axis).T if axis in axes else np.ones((1, 1))
            for axis in self.beside.axes
        ]
        first = columns.reshape(-1, *(each.shape[1] for each in factors))
        return [Factored(first, factors)]

    def _told(self, residual: Axes) -> dict[Levels, float]:
        """Return the cuboids that tell a residual and with which variance; 0 is exactly."""
        known, beside, inside = self.observed.public, self.beside, set(residual)
        told = {
            cuboid: variance * beside.spread(cuboid, residual)
            for cuboid, variance in self.observed.variances.items()
            if inside <= set(beside.of(cuboid))
        }
        if known is None or not inside <= set(beside.of(known)):
            return told
        spine = beside.spine
        return {c: v for c, v in told.items() if c[spine] > known[spine]} | {known: 0.0}

    def _squares(self, told: Mapping[Levels, float]) -> AxisSquares:
        """Return least squares along the spine, down to the deepest level that is told."""
        spine, public = self.beside.spine, None
        depth = max(cuboid[spine] for cuboid in told)
        own = np.full(depth + 1, inf)
        for cuboid, variance in told.items():
            level = cuboid[spine]
            if variance:
                own[level] = 1 / (1 / own[level] + 1 / variance)
            else:
                own[level], public = 0.0, level
        return AxisSquares.of(self.observed.shape.axes[spine].down_to(depth), own, public=public)

    def _levels(self, residual: Axes, turned: ByCuboid) -> list[Float64]:
        """Return a residual's estimates at each level: float64 (nodes, *coordinates)."""
        beside, squares = self.beside, self.squares[residual]
        levels = [np.zeros((n, *beside.coordinates(residual))) for n in squares.shape.sizes]
        for cuboid, variance in self.told[residual].items():
            level = cuboid[beside.spine]
            weight = squares.own[level] / variance if variance else 1.0
            weight *= sqrt(beside.spread(cuboid, residual))  # a coordinate is a sum over √(Π n)
            levels[level] += weight * beside.part(turned[cuboid], residual)
        combine_levels(squares, levels, 0)
        spread_levels(squares, levels, 0)
        return levels

    def _copied(self, tables: ByCuboid, cuboid: Levels) -> Float64:
        """Return a contiguous copy of the table of a cuboid, once it is checked."""
        return self.observed.shape.checked(cuboid, tables.get(cuboid)).copy()

    def _check(self, cuboid: Levels) -> None:
        """Raise unless a cuboid is the sum of a table's cells."""
        if not self.observed.is_answerable(cuboid):
            raise EstimateError(f"cuboid {cuboid} is no sum of a table's cells")


def _levels_of(observed: Observed) -> list[set[int]]:
    """Return for each axis the levels at which it is measured or public."""
    public = () if observed.public is None else (observed.public,)
    return [set(levels) for levels in zip(*observed.variances, *public, strict=True)]


def _deepest(observed: Observed) -> Levels:
    """Return for each axis the deepest level that occurs."""
    public = () if observed.public is None else (observed.public,)
    return reduce(join, (*observed.variances, *public))


def _spine(observed: Observed) -> int | None:
    """Return the axis with most nodes that can be the spine, or None."""
    sizes = observed.shape.shape(_deepest(observed))
    middle = {a for a, levels in enumerate(_levels_of(observed)) if levels - {0, max(levels)}}
    able = [a for a in range(len(sizes)) if not middle - {a}]
    return max(able, key=lambda a: sizes[a], default=None)
