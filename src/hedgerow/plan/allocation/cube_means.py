"""Shares over a cube: exact shares of each axis's levels, whose products are those of cuboids.

Cuboid c gets the share Π_a s_a(c_a), divided by what is measured of it all: 1 less the shares of
the public cuboids. Estimates of a cube are in closed form for such products
(`hedgerow.estimate.workload.product`), so every rule but shares that are given by cuboid ends in
one. The variance of a cell is then a product over axes, less one where a cuboid is public
(`hedgerow.estimate.cube.variances`).

*Total measured.* With an importance that is a product too, w_c = Π w_a(c_a), the weighted sum of
mean variances is Π_a (Σ_k w_a(k) V_a(k)): each axis has its own optimum, that of a chain, and for
noise priced in ρ their product is the best of *all* shares of cuboids, product or not (Kiefer's
theorem on product designs).

*Public.* A public cuboid and its coarsenings cost nothing, so all shares are divided by
1 - Π_a Σ_{k ≤ e_a} s_a(k). The objective does not factor then; product shares are found together,
and are near-optimal among all.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np

from hedgerow.arrays import Bool, Float64, FloatPair, Int64, IntPair, Levels, Sizes
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import CubeShape, at_level
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.plan.allocation.allocation import ByDepth, Problem, of_whole
from hedgerow.plan.allocation.means import Along, Back, Means, NamedMeans
from hedgerow.plan.allocation.objectives import Total
from hedgerow.plan.allocation.optimum import least
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.joint import shape_of_tree


@dataclass(frozen=True, eq=False)
class CubeMeans(Means):
    """The variances of a cube's cuboids, by the shares of its axes' levels.

    With A_a(k) the variance of level k along axis a alone, of the mean or of a class of nodes,
    R_a(k) the same where the true counts of the public cuboid's level are known, and C what is
    measured of all shares,

        V_c = C^power (Π_a A_a(c_a) - Π_a (A_a(c_a) - R_a(c_a))).

    Attributes:
        axes: each by itself.
        cuboids: those that can be measured.
        public: the cuboid whose counts are known exactly, if any.
        power: of the noise.
        survivors: by shares of cuboids, if survivors are measured: every level is then.
        costs_of: a share of the total, and of any other cuboid.
    """

    axes: tuple[Along, ...]
    cuboids: Sequence[Levels]
    public: Levels | None
    power: int
    survivors: NamedMeans | None = None
    costs_of: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, problem: Problem, classes: Sequence[Shapes] | None = None) -> "CubeMeans":
        """Return those of a problem whose workload is a cube, of means or of classes of nodes."""
        shape = shape_of_tree(problem.tree)
        public = None if problem.public is None else shape.given(problem.public)
        pruned = isinstance(problem.measure, Survivors)
        means = cls.over(
            shape,
            map(shape.given, problem.cuboids),
            public,
            problem.mechanism.price.power,
            classes=classes,
        )
        return replace(means, survivors=NamedMeans.of(problem)) if pruned else means

    @classmethod
    def over(
        cls,
        shape: CubeShape,
        cuboids: Iterable[Levels],
        public: Levels | None,
        power: int,
        *,
        classes: Sequence[Shapes] | None = None,
    ) -> "CubeMeans":
        """Return those of cuboids of a shape."""
        each = classes or [Shapes.along(axis.child_start) for axis in shape.axes]
        by_class = classes is not None
        axes = tuple(Along.axis(shapes, power, by_class=by_class) for shapes in each)
        return cls(axes, [*cuboids], public, power)

    @property
    def sizes(self) -> Sizes:
        """The number of levels of each axis."""
        return tuple(len(axis.depths) for axis in self.axes)

    @property
    def ends(self) -> Int64:
        """Where the shares of each axis begin, but for the first."""
        return np.cumsum(self.sizes)[:-1]

    @property
    def needed(self) -> Bool:
        """The last level of each axis, or all: bool (shares)."""
        return np.concatenate([axis.needed for axis in self.axes]) | bool(self.survivors)

    @property
    def unit_costs(self) -> Float64:
        """The nodes of each level of an axis: float64 (shares)."""
        return np.concatenate([axis.unit_costs for axis in self.axes])

    @cached_property
    def nodes(self) -> list[Float64]:
        """The number of cells of each kind, or of the whole, of each cuboid."""
        every = self._outer([np.concatenate([n.ravel() for n in a.nodes]) for a in self.axes])
        return np.split(every.ravel()[self._places[0]], self._places[1])

    @cached_property
    def _places(self) -> IntPair:
        """Where the variances of cuboids are among all products, and where each cuboid's begin."""
        numbers = np.full(self.sizes, -1)
        numbers[tuple(np.transpose(self.cuboids))] = np.arange(len(self.cuboids))
        levels = [np.repeat(range(len(a.depths)), [n.size for n in a.nodes]) for a in self.axes]
        of = numbers[np.ix_(*levels)].ravel()
        places = np.argsort(of, kind="stable")[np.count_nonzero(of < 0) :]
        return places, np.flatnonzero(np.diff(of[places])) + 1

    @cached_property
    def _inside(self) -> list[Float64]:
        """Which levels of each axis are public, but for those beside which nothing is measured.

        What these would get is lost, so that they get nothing.
        """
        used = _margins(self._table(np.ones(len(self.cuboids))))
        public = self.public or ()
        each = zip(used, public, strict=True)
        return [np.where(np.arange(len(n)) <= k, n > 0, False) * 1.0 for n, k in each]

    @staticmethod
    def _outer(factors: Sequence[Float64]) -> Float64:
        return reduce(np.multiply.outer, factors)

    def variances(self, shares: Float64) -> tuple[Float64, Back]:
        """Return the variances of cuboids or of their kinds of cells; derivatives by all levels."""
        own = np.split(shares, self.ends)
        variances, back = (self._of_all if self.survivors is None else self._of_survivors)(own)
        of_total, of_others = self.costs_of
        inside = [(np.arange(len(s)) == 0) * 1.0 for s in own]
        if self.public is not None:
            inside = self._inside
            of_total = 0.0
        parts = np.array([s @ free for s, free in zip(own, inside, strict=True)])
        less = of_others - of_total
        cost = of_others - less * float(parts.prod())

        def back_with_cost(by: Float64) -> Float64:
            lower = less * self.power * cost ** (self.power - 1) * float(by @ variances)
            each = [
                lower * float(np.delete(parts, axis).prod()) * free
                for axis, free in enumerate(inside)
            ]
            return np.asarray(cost**self.power * back(by) - np.concatenate(each))

        return cost**self.power * variances, back_with_cost

    def _of_survivors(self, own: Sequence[Float64]) -> tuple[Float64, Back]:
        """Return the variances, were products of levels' shares those of cuboids."""
        assert self.survivors is not None  # noqa: S101 - as it is asked for
        variances, by_cuboid = self.survivors.variances(self._products(own))

        def back(by: Float64) -> Float64:
            table = self._table(by_cuboid(by))
            return np.concatenate([_contracted(table, own, axis) for axis in range(len(own))])

        return variances, back

    def _products(self, own: Sequence[Float64]) -> Float64:
        """Return the products of levels' shares for each cuboid."""
        return np.asarray(self._outer(own)[tuple(np.transpose(self.cuboids))])

    def _of_all(self, own: Sequence[Float64]) -> tuple[Float64, Back]:
        """Return the variances by exact shares, were products of levels' those of cuboids."""
        places = self._places[0]
        alone, backs = zip(
            *(axis.variances(s) for axis, s in zip(self.axes, own, strict=True)), strict=True
        )
        terms = [alone]
        rest_backs = [*backs]
        if self.public is not None:
            public_axes = zip(self.axes, own, self.public, strict=True)
            rests, of_rests = zip(
                *(axis.variances(s, k) for axis, s, k in public_axes), strict=True
            )
            terms.append(tuple(map(np.subtract, alone, rests)))
            rest_backs = [*of_rests]
        products = [self._outer(factors) for factors in terms]
        variances = np.maximum(reduce(np.subtract, [p.ravel()[places] for p in products]), 0.0)

        def back(by: Float64) -> Float64:
            table = np.zeros(products[0].shape)
            table.ravel()[places] = by
            by_factors = [
                [_contracted(table, factors, axis) for axis in range(len(factors))]
                for factors in terms
            ]
            slopes = []
            for axis in range(len(own)):
                by_alone = by_factors[0][axis]
                slope = 0.0
                if self.public is not None:
                    by_rest = by_factors[1][axis]
                    by_alone, slope = by_alone - by_rest, rest_backs[axis](by_rest)
                slopes.append(slope + backs[axis](by_alone))
            return np.concatenate(slopes)

        return variances, back

    def costs(self, importance: Float64) -> Float64:
        """Return what mean variances of cuboids cost: float64 (cuboids)."""
        cells = np.array([each.sum() for each in self.nodes])
        return np.asarray(importance / importance.max() * cells)

    def _table(self, costs: Float64) -> Float64:
        """Return costs of cuboids by the levels of all axes; 0 where public."""
        table = np.zeros(self.sizes)
        table[tuple(np.transpose(self.cuboids))] = costs
        return table

    def unproved(self, weights: Float64) -> str:
        """Return why no gap is proved, as a key: costs that are no product, or a public cuboid."""
        if len(weights) > len(self.cuboids):
            return "ratio"
        sums = _margins(self._table(weights))
        total = float(weights.sum())
        product = self._outer(sums) / total ** (len(sums) - 1)
        is_product = np.allclose(product, self._table(weights), rtol=1e-12, atol=0)
        is_whole = self.public is None and is_product and len({*self.costs_of}) == 1
        is_whole = is_whole and self.survivors is None
        return Means.unproved(self, weights) or ("" if is_whole else "product")

    def priced(self, costs: Float64) -> "CubeMeans":
        """Return those where the total, the first cuboid, costs otherwise than all others."""
        return replace(self, costs_of=(float(costs[0]), float(costs[-1])))

    def paid(self, shares: Float64, costs: Float64) -> FloatPair:
        """Return the shares of levels, and of cuboids, where a share costs 1."""
        del costs
        return shares, self._products(np.split(shares, self.ends))

    def starts(self, importance: Float64) -> Iterator[Float64]:
        """Yield the optima of single axes, for costs summed over the others, and equal shares.

        Where importances are a product and nothing is public, the first are the optimum.
        """
        costs = self.costs(importance)
        axes = [replace(axis, by_class=False) for axis in self.axes]
        each = zip(axes, _margins(self._table(costs)), strict=True)
        equal = np.concatenate([np.full(n, 1 / n) for n in self.sizes])
        alone = np.concatenate([
            least(axis, Total(sums), axis.starts(sums / axis.cells)).shares for axis, sums in each
        ])  # fmt: skip
        yield alone if self.public is None else (alone + equal) / 2
        if self.axes[0].by_class or self.unproved(costs):
            yield equal

    def apart(self, importance: Float64) -> Float64:
        """Return the shares of least error of noisy counts, each by itself: float64 (shares).

        They are a product where importances are, and optimal even where a cuboid is public.

        Raises:
            PlanError: importances are no product.
        """
        totals = self._table(self.costs(importance))
        last = tuple(n - 1 for n in self.sizes)
        factors = [
            np.array([totals[at_level(last, axis, k)] for k in range(size)])
            for axis, size in enumerate(self.sizes)
        ]
        product = self._outer(factors) / totals[last] ** (totals.ndim - 1)
        is_whole = self._table(np.ones(len(self.cuboids))) > 0
        if not np.allclose(product[is_whole], totals[is_whole], rtol=1e-9):
            raise PlanError(
                "importances by cuboid give no product of shares for noisy counts alone: use "
                'objective = "released", or importances by axis'
            )
        wanted = (own ** (1 / (1 + self.power)) for own in factors)
        return np.concatenate([own / own.sum() for own in wanted])

    def exact(self, problem: Problem, rounded: list[ByDepth]) -> ByDepth:
        """Return the products of shares of levels, divided by what is measured of it all."""
        names = problem.tree.axis_names
        each = ([share or Fraction(0) for share in own] for own in rounded)
        return of_whole(problem.by_axis("shares", dict(zip(names, each, strict=True))))


def _contracted(table: Float64, factors: Sequence[Float64], axis: int) -> Float64:
    """Return the sums of a table times a factor along each axis but one, over all of these."""
    sums = np.moveaxis(table, axis, 0)
    for factor in (*factors[:axis], *factors[axis + 1 :])[::-1]:  # the last axis that is left
        sums = sums @ factor
    return sums


def _margins(table: Float64) -> list[Float64]:
    """Return the sums of a table along each axis, over all others."""
    every = range(table.ndim)
    return [table.sum(axis=tuple(a for a in every if a != axis)) for axis in every]
