"""An allocation under which no cell of a cuboid is much less precise than another.

What a cell's variance is depends on how many siblings, cousins and ancestors' siblings its nodes
have: on their classes (`hedgerow.plan.allocation.fairness`). Shares are sought at which the largest
ratio of two variances of a cuboid is least, then those of least mean variances under the bound, by
sequential quadratic programming in the logarithms of shares. Pairs of classes enter as constraints
when a solution breaks them, so that few ever do, and each is smooth.

*A chain measured from survivors.* Variances are linear in those of the measurements, so a bound of
ratios is a cone there, and the optimum is global: docs/proofs.md, "Fair shares". *A cube.*
Estimates are combined: a variance is a product over the axes, less what a public cuboid explains
(`hedgerow.estimate.cube.variances`). No optimum is proved: what is returned keeps the bound, which
is verified, the best of several starts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from math import inf, log, prod
from typing import ClassVar

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.errors import PlanError
from hedgerow.limits import MOST_KINDS
from hedgerow.plan.allocation.allocation import (
    PARTS,
    Problem,
    checked_importance,
    importances,
)
from hedgerow.plan.allocation.descent import (
    Cost,
    by_logs,
    in_logs,
    logs_of,
    settled,
    shares_of,
    weighted,
)
from hedgerow.plan.allocation.fairness import Classes, variances
from hedgerow.plan.allocation.products import CubeMeans
from hedgerow.plan.allocation.released import Along
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.joint import shape_of_tree
from hedgerow.plan.prior import Prior
from hedgerow.text import as_double

SLACKS = 1e-3, 4e-3, 1.6e-2
"""By how much the logarithm of the ratio stays below the bound before shares are rounded."""

NINE_DIGITS, LITTLE = 10**9, 1e-6
"""The parts that shares along a chain are rounded to, and how much below the bound these stay."""

CLOSE = 1e-9
"""By how much the logarithm of a ratio of another pair may exceed those of the pairs so far."""

MOST_ROUNDS = 60
"""How often pairs are added to those that must keep the bound."""


@dataclass(frozen=True, slots=True)
class Fair:
    """The least mean variance at which no node is ``ratio`` times less precise than another.

    At each depth the largest variance of a node is at most ``ratio`` times the least above 0. Along
    a chain for noise measured from survivors, where variances are those of large counts; of a cube
    for ``All``, where they are those of the estimates under wide noise, and the least mean variance
    is not proved.

    Attributes:
        ratio: at least 1.
        importance: the weight of each measurable depth's mean variance; equal unless given. A
            cube's cuboids have equal ones.

    Raises:
        PlanError: a ratio below 1, or importance that is negative or nowhere above 0.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 50, 5).axis([2, 3])])
        >>> plan = hr.make_plan(
        ...     tree, budget=hr.Rho(1), allocation=hr.Fair(1.25), measure=hr.Survivors()
        ... )
        >>> bool(hr.fairness(plan)["ratio"].max() <= 1.25)
        True
    """

    name: ClassVar[str] = "fair"
    prior: ClassVar[Prior | None] = None
    ratio: float
    importance: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        ratio = as_double(self.ratio, "a ratio of variances", PlanError)
        if not 1 <= ratio < inf:
            raise PlanError(f"a ratio of variances must be at least 1 and finite, got {ratio:g}")
        object.__setattr__(self, "ratio", ratio)
        object.__setattr__(self, "importance", checked_importance(self.importance))

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return shares as `fair_shares`."""
        if problem.is_named:
            raise PlanError(
                "fair shares are for a chain or a cube; of named cuboids "
                'method = "optimal" with objective = "largest" makes the errors of cuboids alike'
            )
        if problem.is_cube and self.importance is not None:
            raise PlanError("fair shares of a cube count its cuboids alike: no importance")
        return fair_shares(problem, self.ratio, self.importance)


def fair_shares(
    problem: Problem, ratio: float, importance: Sequence[float] | None = None
) -> tuple[Fraction | None, ...]:
    """Return the shares of `Fair`, one a cuboid that can be measured.

    Raises:
        PlanError: cells are measured for which the variances are not known, too many of them are
            different, or no shares were found that keep the ratio.
    """
    weights = importances(problem, importance)
    kinds = Kinds.of(problem)
    means, least = kinds.means, kinds.least()
    reached = kinds.log_ratio(least)
    if reached > log(ratio):
        raise PlanError(
            f"no shares were found that keep the cells of every cuboid within {ratio:g} times the "
            f"variance of each other; the smallest ratio found is {np.exp(reached):.6g}"
        )
    slacks, parts = (SLACKS, PARTS) if problem.is_cube else ((LITTLE,), NINE_DIGITS)
    for slack in slacks:
        shares = kinds.within(max(log(ratio) - slack, reached), least, weights)
        found = means.rounded(shares, parts)
        each = np.array([float(share or 0) for group in found for share in group])
        if kinds.log_ratio(each) <= log(ratio):
            return means.exact(problem, found)
    raise PlanError(
        f"shares in steps of 1/{parts:,} do not keep a ratio of {ratio:g}, so near the smallest "
        f"one found, {np.exp(reached):.6g}; allow a little more"
    )


def least_ratio(problem: Problem) -> float:
    """Return the smallest ratio that shares were found to reach."""
    kinds = Kinds.of(problem)
    return float(np.exp(kinds.log_ratio(kinds.least())))


@dataclass(frozen=True, eq=False)
class Kinds:
    """The cells of cuboids that may differ in variance: one node of each kind, level by level.

    Attributes:
        means: by shares.
        classes: of the nodes of each axis, or of those of a chain.
    """

    means: Along | CubeMeans
    classes: tuple[Classes, ...]

    @classmethod
    def of(cls, problem: Problem) -> "Kinds":
        """Return those of a problem.

        Raises:
            PlanError: variances of what is measured are not known, or too many are different.
        """
        pruned = isinstance(problem.measure, Survivors)
        if pruned == problem.is_cube:
            raise PlanError(
                'fair shares of a cube need measure = "all": what survivors add depends on the '
                "counts"
                if problem.is_cube
                else 'fair shares need measure = "survivors"; where all nodes are measured use '
                "another allocation and look at the fairness of the plan"
            )
        if pruned:
            return cls(Along.of(problem), (Classes.of(problem.tree, subtrees=False),))
        axes = shape_of_tree(problem.tree).axes
        classes = tuple(Classes.along(axis.child_start) for axis in axes)
        most = (max(len(level.nodes) for level in own.levels[0]) for own in classes)
        if prod(most) > MOST_KINDS:
            raise PlanError(
                "fair shares of a cube are for trees whose families are alike enough: here more "
                f"than {MOST_KINDS:,} cells of a cuboid may differ in variance"
            )
        return cls(CubeMeans.of(problem), classes)

    def _all(self, shares: Float64) -> list[Float64]:
        """Return the variances of the kinds of each cuboid, records² where a share of 1 buys 1."""
        means = self.means
        if isinstance(means, Along):
            own = means.own(shares)[list(means.depths)]
            return [rows @ own for rows in self._rows]

        def along(levels: Sequence[int]) -> list[list[Float64]]:
            """Return the variances of each axis's classes, some levels being public, or none."""
            each = enumerate(zip(np.split(shares, means.ends), levels, strict=True))
            return [self._of_axis(axis, tuple(own.tolist()), exact) for axis, (own, exact) in each]

        terms = [along([-1] * len(means.axes))]
        if means.public is not None:
            both = zip(terms[0], along(means.public), strict=True)
            terms.append([list(map(np.subtract, whole, rest)) for whole, rest in both])
        return [
            reduce(np.subtract, [
                reduce(np.multiply.outer, [own[k] for own, k in zip(parts, cuboid, strict=True)])
                for parts in terms
            ])
            for cuboid in means.cuboids
        ]  # fmt: skip

    @cached_property
    def _of_axis(self) -> Callable[[int, tuple[float, ...], int], list[Float64]]:
        """What returns the variances of an axis's classes: for each level float64 (classes).

        Differences move the shares of one axis at a time, so that the others' are known.
        """
        means = self.means
        assert isinstance(means, CubeMeans)  # noqa: S101 - of a cube

        @lru_cache(maxsize=32)
        def of_axis(axis: int, shares: tuple[float, ...], public: int) -> list[Float64]:
            own = means.axes[axis].own(np.array(shares), public)
            return variances(self.classes[axis], own, combine=True)

        return of_axis

    @cached_property
    def _rows(self) -> list[Float64]:
        """Of each depth of a chain the distinct rows of coefficients of variances: V = c·v."""
        assert isinstance(self.means, Along)  # noqa: S101 - of a chain
        depths = list(self.means.depths)
        own = np.ones((len(depths) + 1, self.classes[0].depth + 1))
        own[:, : depths[0]] = 0.0
        own[1:, depths] += np.eye(len(depths))
        each = [variances(self.classes[0], row, combine=False) for row in own]
        every = (np.stack([at.ravel() for at in depth], -1) for depth in zip(*each, strict=True))
        return [np.unique((at[:, 1:] - at[:, :1]).round(14), axis=0) for at in every]

    @cached_property
    def _pairs(self) -> set[tuple[int, int]]:
        """The pairs of kinds that have to keep the bound, so far."""
        return set()

    @cached_property
    def _above(self) -> list[Bool]:
        """Which kinds of each cuboid have a variance above 0, whatever the shares."""
        equal = shares_of(self.means, np.zeros(len(self.means.needed)))
        return [each > 1e-9 * max(each.max(), 1e-300) for each in self._all(equal)]

    def logs(self, shares: Float64) -> list[Float64]:
        """Return the logarithms of the variances above 0, of each cuboid that has any."""
        both = zip(self._all(shares), self._above, strict=True)
        return [np.log(each[above]) for each, above in both if above.any()]

    def _slopes(self, shares: Float64) -> Float64:
        """Return the derivatives of `logs` along a chain, one behind the other, by log shares."""
        means = self.means
        assert isinstance(means, Along)  # noqa: S101 - of a chain
        own = means.own(shares)[list(means.depths)]
        both = zip(self._rows, self._above, strict=True)
        parts = np.concatenate([rows[above] for rows, above in both]) * own
        by_share = -means.power * parts / parts.sum(axis=1, keepdims=True) / shares
        return by_logs(means, shares, by_share)

    def log_ratio(self, shares: Float64) -> float:
        """Return the largest ln(largest / least above 0) of a cuboid."""
        return max(float(np.ptp(each)) for each in self.logs(shares))

    def least(self) -> Float64:
        """Return the shares of the smallest largest ratio that were found."""
        starts = self._starts(np.zeros(len(self.means.needed)))
        tried = (logs for start in starts for logs in (start, self._settled(start)))
        found = [shares_of(self.means, logs) for logs in tried]
        return min(found, key=self.log_ratio)

    def within(self, bound: float, feasible: Float64, weights: Float64) -> Float64:
        """Return the shares of least weighted mean variances, within a bound, that were found."""
        error, best = in_logs(self.means, weighted(weights)), logs_of(self.means, feasible)
        least = np.inf
        for start in self._starts(best):
            logs = self._settled(start, error, bound)
            value = error(logs)[0]
            if self.log_ratio(shares_of(self.means, logs)) <= bound + LITTLE and value < least:
                best, least = logs, value
        return shares_of(self.means, best)

    def _settled(self, start: Float64, cost: Cost | None = None, bound: float = 0.0) -> Float64:
        """Return `settled` logarithms, all pairs of kinds keeping the bound."""
        logs, pairs = start, self._pairs
        for _ in range(MOST_ROUNDS):
            first = 0
            for each in self.logs(shares_of(self.means, logs)):
                pairs.add((first + int(each.argmax()), first + int(each.argmin())))
                first += len(each)
            high, low = np.transpose(sorted(pairs))

            def ratios(x: Float64, high: Int64 = high, low: Int64 = low) -> Float64:
                every = np.concatenate(self.logs(shares_of(self.means, x)))
                return np.asarray(every[high] - every[low])

            def slopes(x: Float64, high: Int64 = high, low: Int64 = low) -> Float64:
                every = self._slopes(shares_of(self.means, x))
                return np.asarray(every[high] - every[low])

            by_differences = isinstance(self.means, CubeMeans)
            logs = settled(ratios, start, cost, bound, None if by_differences else slopes)
            reached = max(bound, float(ratios(logs).max()))
            if self.log_ratio(shares_of(self.means, logs)) <= reached + CLOSE:
                break
        return logs

    def _starts(self, first: Float64) -> Iterator[Float64]:
        """Yield logarithms of shares to begin at; of a cube also equal ones, more at the leaves."""
        yield first
        if isinstance(self.means, CubeMeans):
            last = np.concatenate([np.eye(n)[-1] for n in self.means.sizes])
            yield from (more * last for more in (0, 2, -2) if more or first.any())
