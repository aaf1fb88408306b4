"""Models of a workload's errors: the variances of its cuboids by shares, and their derivatives.

Shares are in groups that sum to 1 each: one group along a chain or of named cuboids, or one an axis
of a cube (`hedgerow.plan.allocation.cube_means`). Variances are continuous and of wide noise, a
share s buying 1/s^power times a constant: power 1 for noise priced in ρ, 2 in pure ε. Derivatives
come by reverse differentiation: what a model returns beside its variances turns the derivatives of
any function of them into those by shares, at the cost of a few evaluations. Nothing else differs
between workloads where their shares are optimised (`hedgerow.plan.allocation.optimum`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from hedgerow.arrays import Bool, Float64, FloatPair, Int64, Sizes, WithGradient, int64_zeros
from hedgerow.declared import frozen
from hedgerow.estimate.tree.error import Passes, mean_variances, weighted_variance_and_gradient
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.estimate.workload.even import EvenMeans
from hedgerow.limits import MOST_WHOLE
from hedgerow.plan.allocation.allocation import PARTS, ByDepth, Problem, rounded_shares
from hedgerow.plan.cuboids import All, whole_cuboids
from hedgerow.plan.joint import shape_of_tree

MOST_TRIED = 6
"""Shares that may be 0 up to which every choice of them is tried where several minima may be."""
MOST_IN_PAIRS, MOST_LEFT_OUT = 24, 64
"""Such shares up to which leaving out every two, or every one, of them is tried."""

Back = Callable[[Float64], Float64]
"""Of float64 (variances): turns derivatives by variances into those by shares."""

Part = Fraction | None


class Means(ABC):
    """Variances of a workload's counts by shares: the mean of each cuboid, or one a kind of cell.

    Attributes:
        power: how a variance falls with the share: 1 for noise priced in ρ, 2 in pure ε.
    """

    power: int

    @property
    def ends(self) -> Int64:
        """Where the groups of shares begin, but for the first."""
        return int64_zeros(0)

    @property
    @abstractmethod
    def needed(self) -> Bool:
        """Which shares must be above 0: bool (shares)."""

    @property
    @abstractmethod
    def unit_costs(self) -> Float64:
        """What a share's own counts cost, at a share of 1, all cells together: float64 (shares)."""

    @property
    def is_convex(self) -> bool:
        """Whether weighted sums of variances are convex, so that a descent ends in the least."""
        return self.power == 1

    def unproved(self, weights: Float64) -> str:
        """Return why no gap is proved for weights of variances, as a key; empty where one is."""
        if weights.min() < 0:
            return "ratio"
        return "" if self.is_convex else "power"

    @abstractmethod
    def variances(self, shares: Float64) -> tuple[Float64, Back]:
        """Return the variances, coarsest cuboid first, and what turns derivatives by them back."""

    def total(self, shares: Float64, weights: Float64) -> WithGradient:
        """Return a weighted sum of the variances, and its derivatives by shares."""
        variances, back = self.variances(shares)
        return float(weights @ variances), back(weights)

    @abstractmethod
    def costs(self, importance: Float64) -> Float64:
        """Return what mean variances cost where a squared error of one count costs so much.

        Args:
            importance: float64 (cuboids), the largest being taken as 1.
        """

    def apart(self, importance: Float64) -> Float64:
        """Return the shares of least error of noisy counts, each by itself: float64 (shares).

        They are ∝ (w n V)^(1/(1 + power)) for n cells of importance w and the noise V of a share of
        1: the closed form of program (6) for large counts (Ko et al., Section 4).
        """
        wanted = (importance / importance.max() * self.unit_costs) ** (1 / (1 + self.power))
        return np.asarray(wanted / wanted.sum())

    @abstractmethod
    def priced(self, costs: Float64) -> "Means":
        """Return those where a share of a cuboid costs so much of the budget: float64 (cuboids)."""

    def paid(self, shares: Float64, costs: Float64) -> FloatPair:
        """Return the shares, and those of cuboids, where a share costs 1, of some that are priced.

        Args:
            shares: of what a share of 1 would cost of each cuboid, as `priced` has them.
            costs: float64 (cuboids).
        """
        paid = shares / costs / (shares / costs).sum()
        return paid, paid

    def starts(self, importance: Float64) -> Iterator[Float64]:
        """Yield shares to begin a descent with: equal, of noisy counts alone, and without some.

        In pure ε, where a share buys with its square, it may pay to leave cuboids out: the coarsest
        ones, and every choice of a few are tried.
        """
        count = len(self.needed)
        yield np.full(count, 1 / count)
        closed = np.maximum(self.apart(importance), 1e-3)
        free = np.flatnonzero(~self.needed)
        most = [len(free) <= limit for limit in (MOST_TRIED, MOST_IN_PAIRS, MOST_LEFT_OUT)]
        size = (len(free), 2, 1, 0)[most.index(True) if any(most) else 3]
        left_out = {out for k in range(size + 1) for out in combinations(free, k)}
        left_out |= {tuple(free[:k]) for k in range(len(free) + 1) if size}
        for out in [()] if self.is_convex else sorted(left_out):
            start = closed.copy()
            start[list(out)] = 0.0
            yield start / start.sum()

    def rounded(self, shares: Float64, parts: int = PARTS) -> list[ByDepth]:
        """Return the shares of each group in multiples of 1/10,000, or of other parts.

        A share below half of that is none, where that may be: it would cost more than it tells.
        """
        is_small = (shares < 0.5 / parts) & ~self.needed
        kept = np.where(is_small, 0.0, np.maximum(shares, 1 / parts))
        return [rounded_shares(group, parts) for group in np.split(kept, self.ends)]

    def exact(self, problem: Problem, rounded: list[ByDepth]) -> ByDepth:
        """Return one share or None for each cuboid, summing to exactly 1, from those of groups."""
        del problem
        return rounded[0]


@frozen(eq=False)
class Along(Means):
    """Variances along a chain, or along one axis of a cube; exact for the tree's real families.

    Attributes:
        shapes: of the tree, or classes of its nodes, which no estimate can tell apart.
        depths: those that can be measured; what is above them is public.
        unit: float64 (depths): the variance that a share of 1 buys.
        combine: by least squares; otherwise projected.
        power: 1 where precision ∝ s (ρ), 2 where precision ∝ s² (ε).
        needed: bool (depths): which have to be measured.
        by_class: whether variances are those of one node a class, and not of depths' means.
    """

    shapes: Shapes
    depths: Sizes
    unit: Float64
    combine: bool
    power: int
    needed: Bool
    by_class: bool = False

    @classmethod
    def of(
        cls, problem: Problem, classes: Shapes | None = None, importance: Float64 | None = None
    ) -> "Along":
        """Return those of a chain, of its depths or of classes of nodes.

        Of survivors every depth that matters is measured: what is not listed there has its noisy
        counts. One of no importance need not be, if all below it that would be measured in place of
        survivors' children is of few cells.
        """
        price = problem.mechanism.price
        combine = isinstance(problem.measure, All)
        each = (problem.sensitivity(t) ** price.power for t in problem.depths)
        unit = np.array([*each]) * float(price.variance)
        shapes = classes or Shapes.of(problem.tree)
        matters = np.ones(len(unit)) if importance is None else importance
        needed = _last(len(unit)) if combine else _last(len(unit)) | (matters > 0)
        for t in range(len(unit) - 1, 0, -1):  # what follows t - 1 at the latest has so many cells
            following = problem.depths[t + int(needed[t:].argmax())]
            needed[t - 1] |= not combine and shapes.sizes[following] > MOST_WHOLE
        return cls(shapes, problem.depths, unit, combine, price.power, needed, classes is not None)

    @classmethod
    def axis(cls, shapes: Shapes, power: int, *, by_class: bool = False) -> "Along":
        """Return those of one axis of a cube, whose levels may all be measured."""
        levels = tuple(range(shapes.depth + 1))
        return cls(shapes, levels, np.ones(len(levels)), True, power, _last(len(levels)), by_class)

    @property
    def cells(self) -> Float64:
        """The number of nodes of each depth: float64 (depths)."""
        return self.shapes.sizes[list(self.depths)]

    @property
    def unit_costs(self) -> Float64:
        """What noisy counts of a depth cost, all together: float64 (depths)."""
        return self.cells * self.unit

    def priced(self, costs: Float64) -> "Along":
        """Return those where a share of a depth costs so much: it buys less."""
        return replace(self, unit=self.unit * costs**self.power)

    @property
    def is_convex(self) -> bool:
        """Whether weighted sums of variances are: projected, they are sums of terms D/s^power.

        D depends on which depths are measured.
        """
        return self.power == 1 if self.combine else bool(self.needed.all())

    def unproved(self, weights: Float64) -> str:
        """Return why no gap is proved, as a key: projected variances are sums of D/s^power."""
        if self.combine:
            return Means.unproved(self, weights)
        return "" if np.count_nonzero(~self.needed) <= MOST_TRIED else "survivors"

    @property
    def nodes(self) -> list[Float64]:
        """The number of nodes of each class, or of a whole depth: for each depth an array."""
        if not self.by_class:
            return [np.array([n]) for n in self.cells]
        return [self.shapes.nodes(t) for t in self.depths]

    def costs(self, importance: Float64) -> Float64:
        """Return what mean variances of depths cost: float64 (depths)."""
        return np.asarray(importance / importance.max() * self.cells)

    def own(self, shares: Float64, public: int = -1) -> Float64:
        """Return the variances that shares buy: float64 (T + 1), infinite for a share of 0.

        Args:
            shares: float64 (depths).
            public: the deepest level whose counts are public, if those above all depths are not.
        """
        own = np.full(self.shapes.depth + 1, np.inf)
        with np.errstate(divide="ignore", over="ignore"):
            own[list(self.depths)] = self.unit / shares**self.power
        own[: max(public + 1, self.depths[0])] = 0.0
        return own

    def _by_share(self, by_precision: Float64, shares: Float64) -> Float64:
        """Return derivatives by shares, from those by the precisions of all depths."""
        slope = self.power * shares ** (self.power - 1) / self.unit
        with np.errstate(invalid="ignore"):  # an infinite value has no derivatives
            return by_precision[list(self.depths)] * slope

    def variances(self, shares: Float64, public: int = -1) -> tuple[Float64, Back]:
        """Return the variances of depths' means or of classes, and what turns derivatives back."""
        own = self.own(shares, public)
        if not (self.combine or self.by_class):
            variances = mean_variances(self.shapes, own, combine=False)[list(self.depths)]
            return variances, lambda by: self.total(shares, by, public)[1]
        passes = Passes.of(self.shapes, own, combine=self.combine)
        nodes = self.nodes
        sums = passes.down()
        each = [sums.get(t, np.zeros_like(n)) for t, n in zip(self.depths, nodes, strict=True)]
        if not self.by_class:
            each = [total.sum().reshape(1) for total in each]
        each = [total / n for total, n in zip(each, nodes, strict=True)]
        ends = np.cumsum([n.size for n in nodes])[:-1]

        def back(by: Float64) -> Float64:
            weights = [np.zeros(())] * len(own)
            for t, n, part in zip(self.depths, nodes, np.split(by, ends), strict=True):
                weights[t] = part.reshape(n.shape) / n
            return self._by_share(passes.value_and_gradient(weights, sums)[1], shares)

        return np.concatenate([v.ravel() for v in each]), back

    def total(self, shares: Float64, weights: Float64, public: int = -1) -> WithGradient:
        """Return a weighted sum of mean variances and its derivatives, by one pass for both."""
        if self.by_class:
            return Means.total(self, shares, weights)
        of_depths = np.zeros(self.shapes.depth + 1)
        of_depths[list(self.depths)] = weights / self.cells
        value, gradient = weighted_variance_and_gradient(
            self.shapes, self.own(shares, public), of_depths, combine=self.combine
        )
        return value, self._by_share(gradient, shares)

    def rounded(self, shares: Float64, parts: int = PARTS) -> list[ByDepth]:
        """Return the shares in multiples of 1/10,000 or other parts, one of each above 0."""
        return [rounded_shares(shares, parts)]


def _last(count: int) -> Bool:
    """Return which of so many is the last one: bool (count)."""
    return np.asarray(np.arange(count) == count - 1)


@frozen(eq=False)
class NamedMeans(Means):
    """The mean variances of named cuboids by their shares; make them with `NamedMeans.of`.

    They are in closed form where each family of a level is as large as the others
    (`hedgerow.estimate.workload.even`), and uneven axes are taken to have even ones: shares are
    optimal for such axes, and near it elsewhere.

    Attributes:
        cells: float64 (cuboids): the cells of each that can be measured.
        power: how the variance falls with the share.
        means: the mean variances of estimates, of the cuboids that are measured whole.
        whole: bool (cuboids): which ones these are; the others' estimates are their noisy counts.
        is_even: whether all families of each level are alike.
        unit: float64 (cuboids): the variance that a share of 1 buys, of the largest.
        needed: bool (cuboids): which have to be measured: the tables.
    """

    cells: Float64
    power: int
    means: EvenMeans
    whole: Bool
    is_even: bool
    unit: Float64
    needed: Bool

    @classmethod
    def of(cls, problem: Problem) -> "NamedMeans":
        """Return those of a problem whose workload names its cuboids."""
        tree = problem.tree
        tables = set(problem.tables)
        shape = shape_of_tree(tree, problem.workload.cuboids(tree))
        whole = whole_cuboids(tree, problem.workload, problem.measure, problem.public)
        kept = [shape.given(levels) for levels in problem.cuboids if levels in whole]
        public = None if problem.public is None else shape.given(problem.public)
        families = (np.diff(start) for axis in shape.axes for start in axis.child_start)
        power = problem.mechanism.price.power
        unit = np.array([problem.sensitivity(depth) ** power for depth in problem.depths])
        return cls(
            np.array([float(tree.cells(levels)) for levels in problem.cuboids]),
            power,
            EvenMeans([axis.sizes for axis in shape.axes], kept, public),
            np.array([levels in whole for levels in problem.cuboids]),
            all(np.ptp(each) == 0 for each in families),
            unit / unit.max(),
            np.array([levels in tables or levels not in whole for levels in problem.cuboids]),
        )

    @property
    def unit_costs(self) -> Float64:
        """What noisy counts of a cuboid cost, all together."""
        return self.cells * self.unit

    def priced(self, costs: Float64) -> "NamedMeans":
        """Return those where a share of a cuboid costs so much: it buys less."""
        return replace(self, unit=self.unit * costs**self.power)

    @property
    def nodes(self) -> list[Float64]:
        """The number of cells of each cuboid, which are of one kind: an array each."""
        return [np.array([n]) for n in self.cells]

    def unproved(self, weights: Float64) -> str:
        """Return why no gap is proved, as a key."""
        return Means.unproved(self, weights) or ("" if self.is_even else "uneven")

    def variances(self, shares: Float64) -> tuple[Float64, Back]:
        """Return the mean variance of each cuboid: float64 (cuboids)."""
        precision = shares**self.power / self.unit
        with np.errstate(divide="ignore"):
            variances = 1 / precision
        means, by_precision = self.means.of(precision[self.whole])
        variances[self.whole] = means

        def back(by: Float64) -> Float64:
            slope = np.zeros(len(shares))
            slope[~self.whole] = (-by * variances**2)[~self.whole]
            slope[self.whole] = by_precision(by[self.whole])
            return slope * (self.power * shares ** (self.power - 1) / self.unit)

        return variances, back

    def costs(self, importance: Float64) -> Float64:
        """Return what mean variances of cuboids cost, 1 at most: float64 (cuboids)."""
        costs = importance / importance.max() * self.cells
        return np.asarray(costs / costs.max())
