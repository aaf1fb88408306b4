"""Shares over a cube: exact shares of each axis's levels, whose products are those of cuboids.

Cuboid c gets the share Π_a s_a(c_a), divided by what is measured of it all: 1 less the shares of
the public cuboids. Estimates of a cube are in closed form for such products
(`hedgerow.estimate.workload.product`), so every rule but shares that are given by cuboid ends in
one. A share s buys the variance V/s^power (`hedgerow.noise.price`: power 1 for noise priced in ρ, 2
in pure ε), here with V = 1. The mean variance of a cuboid's estimates is then a product over axes,
less one where a cuboid is public (`hedgerow.estimate.cube.variances`).

*Total measured.* With an importance that is a product too, w_c = Π w_a(c_a), the weighted sum of
mean variances is Π_a (Σ_k w_a(k) V_a(k)): each axis has its own optimum, that of a chain
(`hedgerow.plan.allocation.released`), and for noise priced in ρ their product is the best of *all*
shares of cuboids, product or not (Kiefer's theorem on product designs).

*Public.* A public cuboid and its coarsenings cost nothing, so all shares are divided by
1 - Π_a Σ_{k ≤ e_a} s_a(k). The objective does not factor then; product shares are found together,
and are near-optimal among all.

*Before estimation* each noisy count stands for itself and s_c ∝ (w_c n_c)^(1/(1 + power)) is
optimal, a product where importances are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64, Levels
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import CubeShape, at_level
from hedgerow.plan.allocation.allocation import Problem, of_whole
from hedgerow.plan.allocation.descent import FINE, Means, Part, Sloped, least, weighted
from hedgerow.plan.allocation.released import Along
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.joint import shape_of_tree


@dataclass(frozen=True, eq=False)
class CubeMeans(Means):
    """The mean variances of a cube's cuboids, by the shares of its axes' levels.

    With A_a(k) the mean variance of level k along axis a alone, R_a(k) the same where the true
    counts of the public cuboid's level are known, and C what is measured of all shares,

        V_c = C^power (Π_a A_a(c_a) - Π_a (A_a(c_a) - R_a(c_a))).

    Attributes:
        axes: each by itself.
        cuboids: those that can be measured.
        public: the cuboid whose counts are known exactly, if any.
        power: of the noise.
        all_levels: whether every level must be measured, as cells below survivors need it.
    """

    axes: tuple[Along, ...]
    cuboids: Sequence[Levels]
    public: Levels | None
    power: int
    all_levels: bool = False

    @classmethod
    def of(cls, problem: Problem) -> "CubeMeans":
        """Return those of a problem whose workload is a cube."""
        shape = shape_of_tree(problem.tree)
        public = None if problem.public is None else shape.given(problem.public)
        power, pruned = problem.mechanism.price.power, isinstance(problem.measure, Survivors)
        return cls.over(shape, map(shape.given, problem.cuboids), public, power, all_levels=pruned)

    @classmethod
    def over(
        cls,
        shape: CubeShape,
        cuboids: Iterable[Levels],
        public: Levels | None,
        power: int,
        *,
        all_levels: bool = False,
    ) -> "CubeMeans":
        """Return those of cuboids of a shape."""
        axes = tuple(Along.axis(axis.child_start, power) for axis in shape.axes)
        return cls(axes, [*cuboids], public, power, all_levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return tuple(len(axis.depths) for axis in self.axes)

    @property
    def ends(self) -> Int64:
        """Where the shares of each axis begin, but for the first."""
        return np.cumsum(self.sizes)[:-1]

    @property
    def needed(self) -> Bool:
        """The last level of each axis, or all: bool (shares)."""
        return np.concatenate([axis.needed for axis in self.axes]) | self.all_levels

    @cached_property
    def places(self) -> Int64:
        """Of each cuboid its place among all combinations of levels, row by row."""
        return np.asarray(np.ravel_multi_index(tuple(np.transpose(self.cuboids)), self.sizes))

    def variances(self, shares: Float64) -> Sloped:
        """Return float64 (cuboids), and their derivatives by shares, (cuboids, shares)."""
        each = list(zip(self.axes, np.split(shares, self.ends), strict=True))
        alone, places = [axis.variances(own) for axis, own in each], self.places
        found, slope = (part[places] for part in _products(alone))
        if self.public is None:
            return found, slope
        known = list(zip(each, self.public, strict=True))
        rests = [axis.variances(own, exact) for (axis, own), exact in known]
        told = _products([
            (v - rest, by_share - by_rest)
            for (v, by_share), (rest, by_rest) in zip(alone, rests, strict=True)
        ])  # fmt: skip
        inside = [np.arange(len(own)) <= exact for (_, own), exact in known]
        part, by_part = _products([
            (own[free].sum(keepdims=True), free[None, :].astype(np.float64))
            for (_, own), free in zip(each, inside, strict=True)
        ])  # fmt: skip
        found, slope = np.maximum(found - told[0][places], 0.0), slope - told[1][places]
        cost = 1 - part
        lower = self.power * cost ** (self.power - 1) * found[:, None] * by_part
        return cost**self.power * found, cost**self.power * slope - lower

    def totals(self, importance: Float64) -> Float64:
        """Return what a mean variance costs, 1 for the largest, by levels; 0 where public."""
        cells = reduce(np.multiply.outer, [axis.shapes.sizes for axis in self.axes])
        found = np.zeros(self.sizes)
        found.ravel()[self.places] = importance / importance.max() * cells.ravel()[self.places]
        return found

    def least_total(self, importance: Float64) -> Float64:
        """Return the product shares of least importance-weighted error: float64 (shares).

        Descends from equal shares, and from the optima of single axes for importances summed over
        the others; where importances are a product and nothing is public, these are the optimum.
        """
        totals = self.totals(importance)
        sums = [totals.sum(axis=tuple(a for a in range(totals.ndim) if a != own))
                for own in range(totals.ndim)]  # fmt: skip
        each = zip(self.axes, sums, strict=True)
        alone = np.concatenate([axis.least_total(own / axis.shapes.sizes) for axis, own in each])
        product = reduce(np.multiply.outer, sums) / totals.sum() ** (totals.ndim - 1)
        if self.public is None and np.allclose(product, totals, rtol=1e-9):
            return alone
        cost = weighted(totals.ravel()[self.places])
        return least(self, cost, alone, np.ones(len(alone)), **FINE)

    def apart(self, importance: Float64) -> Float64:
        """Return the shares of least error of noisy counts, each by itself: float64 (shares).

        Raises:
            PlanError: importances are no product.
        """
        totals = self.totals(importance)
        last = tuple(size - 1 for size in self.sizes)
        factors = [
            np.array([totals[at_level(last, axis, k)] for k in range(size)])
            for axis, size in enumerate(self.sizes)
        ]
        finest = totals.ravel()[-1]
        product = reduce(np.multiply.outer, factors) / finest ** (totals.ndim - 1)
        if not np.allclose(product.ravel()[self.places], totals.ravel()[self.places], rtol=1e-9):
            raise PlanError(
                "importances by cuboid give no product of shares for noisy counts alone: use "
                'objective = "released", or importances by axis'
            )
        wanted = (own ** (1 / (1 + self.power)) for own in factors)
        return np.concatenate([own / own.sum() for own in wanted])

    def exact(self, problem: Problem, rounded: list[tuple[Part, ...]]) -> tuple[Part, ...]:
        """Return the products of shares of levels, divided by what is measured of it all."""
        names = (axis.name for axis in problem.tree.axes)
        each = ([share or Fraction(0) for share in own] for own in rounded)
        return of_whole(problem.by_axis("shares", dict(zip(names, each, strict=True))))


def _products(parts: Sequence[Sloped]) -> Sloped:
    """Return the products of all combinations of some numbers, one of each part, in order."""
    slopes = []
    for place in range(len(parts)):
        factors = [part[int(place == i)] for i, part in enumerate(parts)]
        product = np.moveaxis(reduce(np.multiply.outer, factors), place + 1, -1)
        slopes.append(product.reshape(-1, product.shape[-1]))
    values: Float64 = reduce(np.multiply.outer, [value for value, _ in parts])
    return values.ravel(), np.hstack(slopes)
