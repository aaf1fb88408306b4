"""Least squares of any cuboids over one spine and attributes of two levels: exact, in O(cells).

*Where it applies.* One axis, the *spine*, is measured at any levels; every other axis, an
*attribute*, at its total and at one finer level, its detail, of n_a nodes. A cuboid is then a level
l of the spine and a set B of attributes at their detail.

*Residuals.* A cuboid (l, B) sums the full cross of the attributes at a node of level l by a matrix
that acts as a number on each of its residuals R (`hedgerow.estimate.cube.residuals`). Sums along
the spine do not mix coordinates, so the information of all cuboids falls into one block for each
coordinate of each residual, and least squares into as many problems along the spine alone. A cuboid
tells the coordinates of all R ⊆ B with the precision Π_{a ∉ B} n_a / v; precisions at one level add
up, and a public cuboid tells them exactly. `AxisSquares` solves it, down to the deepest level at
which R is told: what lies below does not occur in any table.

*Cells.* The estimate of a cuboid is the sum of its residuals, which have no covariance. With w_a
the weights of a sum over the detail of a, ones where the cuboid sums a up, and V_R the variance of
a coordinate at a node of the spine,

    Var = Σ_{R ⊆ B} V_R Π_{a ∈ R} (|w_a|² - (Σ w_a)²/n_a) Π_{a ∉ R} (Σ w_a)²/n_a,

which for cells at detail is Σ_R V_R Π_R (1 - 1/n_a) Π_{B∖R} 1/n_a Π_{a ∉ B} n_a.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf, sqrt

import numpy as np
from scipy.sparse import csr_array, eye_array

from hedgerow.arrays import ByCuboid, Float64, Levels, OfCuboids, Tables, float64
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares, combine_levels, spread_levels
from hedgerow.estimate.cube.residuals import Residuals, part, subsets, turn
from hedgerow.estimate.cube.shape import (
    AxisShape,
    CubeShape,
    at_level,
    is_within,
    join,
    meet,
    summed,
)
from hedgerow.estimate.cube.variances import ByFactors, Factored, Groups, Product
from hedgerow.estimate.factors import Factors
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.limits import MOST_RESIDUALS

MOST_CROSSED = 1 << 1000
"""Cells of the cross of all attributes and the spine: precisions are its multiples, in floats."""


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
    def spine(self) -> int:
        """The axis of several levels."""
        if (spine := _spine(self.observed)) is None:
            raise EstimateError(
                "two axes or more are measured at a level between the total and their finest one; "
                "this solver takes one such axis"
            )
        return spine

    @cached_property
    def shape(self) -> CubeShape:
        """The axes down to the deepest levels that occur."""
        return self.observed.shape.down_to(_deepest(self.observed))

    @cached_property
    def residuals(self) -> Residuals:
        """Those of the attributes, all axes but the spine."""
        sizes = self.shape.shape(self.shape.finest)
        axes = tuple(axis for axis in range(len(sizes)) if axis != self.spine)
        return Residuals(axes, tuple(sizes[axis] for axis in axes))

    @cached_property
    def precisions(self) -> Mapping[Levels, OfCuboids]:
        """For each residual the cuboids that tell it, and with which precision, records⁻²."""
        marginals = map(self.residuals.marginal, self.observed.tables)
        every = {residual for marginal in marginals for residual in subsets(marginal)}
        return {residual: self._precisions(residual) for residual in sorted(every)}

    @cached_property
    def squares(self) -> Mapping[Levels, AxisSquares]:
        """For each residual least squares along the spine."""
        return {residual: self._squares(each) for residual, each in self.precisions.items()}

    @staticmethod
    def fits(observed: Observed) -> bool:
        """Return whether all axes but one at most occur at their total and one finer level.

        Beyond `MOST_RESIDUALS` sets of attributes, or a full cross of `MOST_CROSSED` cells, they do
        not fit either.
        """
        spine = _spine(observed)
        if spine is None:
            return False
        attributes = [len(table) - table.count(0) - (table[spine] > 0) for table in observed.tables]
        crossed = observed.shape.cells(_deepest(observed))
        residuals = sum(1 << number for number in attributes)
        return residuals <= MOST_RESIDUALS and crossed <= MOST_CROSSED

    is_exact = True

    @property
    def words(self) -> str:
        """How it estimates, and what its variances are, in a sentence for users."""
        return (
            "Cuboids are estimated exactly, along one axis for each combination of the others; "
            "their errors are exact."
        )

    def estimates(self, tables: ByCuboid, wanted: Iterable[Levels]) -> Tables:
        """Return the estimates of the wanted cuboids: float64 (cells along each axis), records.

        What is public is returned as it was given, summed.

        Args:
            tables: of every measured cuboid its noisy counts, and of the public one its true
                counts: float64 (cells along each axis). They are not changed.
            wanted: of which cuboids.

        Raises:
            EstimateError: a cuboid is not answerable; a table is missing or of another shape.
        """
        observed = self.observed
        here = self.residuals
        public = self.observed.public
        estimates = Tables()
        made = Tables()
        for cuboid in dict.fromkeys(wanted):
            self._check(cuboid)
            if public is not None and observed.is_public(cuboid):
                exact = observed.shape.checked(public, tables.get(public)).copy()
                estimates[cuboid] = summed(observed.shape, exact, public, cuboid)
            else:
                nodes = self.shape.axes[self.spine].sizes[cuboid[self.spine]]
                made[cuboid] = np.zeros((nodes, *here.shape(here.marginal(cuboid))))
        turned = {c: self._turned(tables, c) for c in observed.cuboids} if made else {}
        for residual in self.squares:
            if into := [cuboid for cuboid in made if is_within(residual, here.marginal(cuboid))]:
                levels = self._levels(residual, turned)
                for cuboid in into:
                    own = levels[cuboid[self.spine]] * sqrt(here.spread(cuboid))
                    part(made[cuboid], residual)[...] = own
        turned.clear()
        for cuboid in list(made):
            rows = np.moveaxis(turn(made.pop(cuboid)), 0, self.spine)
            there = [
                axis.depth if k else 0 for axis, k in zip(self.shape.axes, cuboid, strict=True)
            ]
            detail = at_level(tuple(there), self.spine, cuboid[self.spine])
            estimates[cuboid] = summed(self.shape, np.ascontiguousarray(rows), detail, cuboid)
        return estimates

    def variances_of(self, cuboid: Levels) -> "SpineSolver":
        """Return itself: all estimates rest on the same counts."""
        del cuboid
        return self

    @property
    def leading(self) -> int:
        """The spine."""
        return self.spine

    def factors(self, cuboid: Levels) -> Factors:
        """Return the covariance of all cells of a cuboid, row by row.

        Of each residual R the spine's own, ⊗ over attributes I - 11ᵀ/n in R and 11ᵀ/n outside it,
        both summed to the cuboid's nodes.
        """
        self._check(cuboid)
        here = self.residuals
        terms = []
        for residual in subsets(here.marginal(cuboid)):
            own = self.squares[residual]
            axes = []
            attributes = iter(zip(here.axes, residual, strict=True))
            for axis, level in enumerate(cuboid):
                if axis == self.spine:
                    axes.append(own.covariance_factors(level, own.depth)[0])
                else:
                    _, inside = next(attributes)
                    axes.append(_attribute(self.shape.axes[axis], level, is_inside=bool(inside)))
            terms.append((1.0, Factors.product(axes)))
        return Factors.sum(terms)

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell; attributes' nodes that are alike count once."""
        (factored,) = self._terms(cuboid)
        others = [np.unique(each, axis=0) for each in factored.others]
        return float(Factored(factored.first, others).cells().max())

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products over axes.

        Raises:
            EstimateError: one of them is no sum of a table's cells.
        """
        cuboids = [tuple(level for level, _ in each) for each in (first, second)]
        for cuboid in cuboids:
            self._check(cuboid)
        along = first[self.spine], second[self.spine]
        factors = [self._crossed(a, first[a], second[a]) for a in self.residuals.axes]
        return self._summed(meet(*cuboids), lambda own: own.covariance(*along), factors).mean()

    def _terms(self, cuboid: Levels, groups: Groups | None = None) -> list[Factored]:
        """Return the variances of cells, or of sums over groups of nodes, by their factors."""
        self._check(cuboid)
        along = list(zip(cuboid, groups or [None] * len(cuboid), strict=True))
        level, of_spine = along[self.spine]
        factors = [
            self._squared(axis, k) if w is None else self._crossed(axis, (k, w), (k, w))
            for axis in self.residuals.axes
            for k, w in [along[axis]]
        ]
        return [
            self._summed(
                cuboid,
                lambda own: (
                    own.final[level]
                    if of_spine is None
                    else own.factors(level, own.depth, of_spine)[0]
                ),
                factors,
            )
        ]

    def _summed(
        self,
        cuboid: Levels,
        along: Callable[[AxisSquares], Float64 | float],
        factors: Sequence[Float64],
    ) -> Factored:
        """Return the sum over the residuals R of a cuboid of V_R Π factors.

        Args:
            cuboid: of the sums, or what is common to both.
            along: V_R at nodes of the spine, or of a sum over them.
            factors: for each attribute float64 (sums, 2): those where it is not in R, and where it
                is.
        """
        marginal = self.residuals.marginal(cuboid)
        columns = [along(self.squares[residual]) for residual in subsets(marginal)]
        others = [each[:, : 1 + here] for each, here in zip(factors, marginal, strict=True)]
        first = np.stack(columns, axis=-1).reshape(-1, *(each.shape[1] for each in others))
        return Factored(first, others)

    def _squared(self, axis: int, level: int) -> Float64:
        """Return an attribute's factors of a cell's variance: float64 (nodes, 2).

        With c the cells at detail of a node, c²/n and c - c²/n.
        """
        own = self.shape.axes[axis]
        size = own.sizes[-1]
        share = np.diff(own.descendant_start(level, own.depth)) / size
        return size * np.stack([share**2, share * (1 - share)], axis=1)

    def _crossed(
        self, axis: int, first: tuple[int, Float64], second: tuple[int, Float64]
    ) -> Float64:
        """Return an attribute's factors of the covariance of two sums: float64 (sums, 2).

        With w, w' the weights at detail, ΣwΣw'/n and w·w' - ΣwΣw'/n.
        """
        own = self.shape.axes[axis]
        one, other = (weights[own.ancestors(own.depth, k)] for k, weights in (first, second))
        mean = one.mean(axis=0)
        mean_of_other = other.mean(axis=0)
        apart = ((one - mean) * (other - mean_of_other)).sum(axis=0)
        factors = np.stack([own.sizes[-1] * mean * mean_of_other, apart], axis=-1)
        return factors.reshape(-1, 2)

    def _precisions(self, residual: Levels) -> OfCuboids:
        """Return the cuboids that tell a residual and with which precision; inf is exactly."""
        noise = self.observed.variances
        public = self.observed.public
        if public is not None and is_within(residual, self.residuals.marginal(public)):
            above = public[self.spine]
            spine = self.spine
            noise = {c: v for c, v in noise.items() if c[spine] > above} | {public: 0.0}
        return self.residuals.precisions(residual, noise)

    def _squares(self, precisions: OfCuboids) -> AxisSquares:
        """Return least squares along the spine, down to the deepest level that is measured."""
        depth = max(cuboid[self.spine] for cuboid in precisions)
        precision = np.zeros(depth + 1)
        for cuboid, each in precisions.items():
            precision[cuboid[self.spine]] += each
        exact = [level for level, each in enumerate(precision) if each == inf]
        with np.errstate(divide="ignore"):
            own = 1 / precision
        axis = self.shape.axes[self.spine].down_to(depth)
        return AxisSquares.of(axis, own, public=max(exact, default=None))

    def _turned(self, tables: ByCuboid, cuboid: Levels) -> Float64:
        """Return the coordinates of a copy of a table, once it is checked: rows along the spine."""
        table = self.observed.shape.checked(cuboid, tables.get(cuboid))
        return turn(np.moveaxis(table, self.spine, 0).copy(order="C"))

    def _levels(self, residual: Levels, turned: ByCuboid) -> list[Float64]:
        """Return a residual's estimates at each level: float64 (nodes, *coordinates)."""
        here = self.residuals
        squares = self.squares[residual]
        levels = [np.zeros((n, *here.coordinates(residual))) for n in squares.shape.sizes]
        for cuboid, precision in self.precisions[residual].items():
            level = cuboid[self.spine]
            weight = 1.0 if precision == inf else squares.own[level] * precision
            levels[level] += weight / sqrt(here.spread(cuboid)) * part(turned[cuboid], residual)
        combine_levels(squares, levels, 0)
        spread_levels(squares, levels, 0)
        return levels

    def _check(self, cuboid: Levels) -> None:
        """Raise unless a cuboid is the sum of a table's cells."""
        if not self.observed.is_answerable(cuboid):
            raise EstimateError(f"cuboid {cuboid} is no sum of a table's cells")


def _attribute(axis: AxisShape, level: int, *, is_inside: bool) -> Factors:
    """Return I - 11ᵀ/n, or 11ᵀ/n, over an attribute's n nodes at detail, summed to a level's."""
    size = axis.sizes[-1]
    sums = float64(np.diff(axis.descendant_start(level, axis.depth)))
    mean = Factors(csr_array(sums[:, None]), np.array([1 / size]))
    if not is_inside:
        return mean
    return Factors.sum([(1.0, Factors(eye_array(len(sums), format="csr"), sums)), (-1.0, mean)])


def _deepest(observed: Observed) -> Levels:
    """Return for each axis the deepest level that occurs."""
    return reduce(join, observed.cuboids)


def _spine(observed: Observed) -> int | None:
    """Return the axis with most nodes that can be the spine, or None."""
    deepest = _deepest(observed)
    sizes = observed.shape.shape(deepest)
    middle = {
        axis
        for cuboid in observed.cuboids
        for axis, level in enumerate(cuboid)
        if 0 < level < deepest[axis]
    }
    able = [axis for axis in range(len(sizes)) if not middle - {axis}]
    return max(able, key=lambda axis: sizes[axis], default=None)
