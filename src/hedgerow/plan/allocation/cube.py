"""Shares over a cube: exact shares of each axis's levels, whose products are those of cuboids.

Cuboid c gets Π_a s_a(c_a), divided by what is measured of it all: 1 less the shares of the public
cuboids. Estimates of a cube are in closed form for such products
(`hedgerow.estimate.cube.estimates`), so every rule here ends in one, but for shares that are given
by cuboid. Nothing here knows more than public facts.

*Optimal.* An importance w_c is, as on a chain, the cost of a squared error of one count. After
estimation (``released``) Σ_c w_c n_c V_c is to be least, V_c being the mean variance of the n_c
cells; where importances are a product and nothing is public, the product of the axes' own optima is
the best of all shares of cuboids, and otherwise the best product is found by descent, which is near
it. Before (``cells``) each noisy count stands for itself and s_c ∝ (w_c n_c)^(1/(1 + power)) is
optimal, a product where importances are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import prod

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.plan.allocation.allocation import (
    PARTS,
    Importance,
    PerLevel,
    Problem,
    Relative,
    importances_by_axis,
    rounded_shares,
)
from hedgerow.plan.allocation.products import axis_shares, level_shares, product_shares
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.joint import shape_of_tree
from hedgerow.tables.tree import Tree

AxisShares = tuple[tuple[Fraction, ...], ...]
"""For each axis one share a level that is not made of only children, coarsest first, the total
included; each axis's sum to 1, and the last is above 0."""

CuboidShares = dict[Levels, Fraction]
"""The shares of the measured cuboids, above 0, summing to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class CubeFacts:
    """The public facts that the shares of a cube depend on; make them with `CubeFacts.of`.

    Attributes:
        tree: the public domain.
        shape: its axes, without levels of only children; cuboids here are numbered by it.
        power: how the variance falls with the share: 1 for noise priced in ρ, 2 in pure ε.
        public: the finest cuboid whose counts are public, if any.
        all_levels: whether every level must be measured, as cells below survivors need it.
    """

    tree: Tree
    shape: CubeShape
    power: int
    public: Levels | None
    all_levels: bool

    @classmethod
    def of(cls, problem: Problem) -> "CubeFacts":
        """Return the facts of a problem whose workload is a cube."""
        shape = shape_of_tree(problem.tree)
        exact = None if problem.public is None else shape.given(problem.public)
        all_levels = isinstance(problem.measure, Survivors)
        return cls(problem.tree, shape, problem.mechanism.price.power, exact, all_levels)

    @property
    def measurable(self) -> list[Levels]:
        """The cuboids that are not public, coarsest first."""
        exact = self.shape.within(self.public)
        return [cuboid for cuboid in self.shape.cuboids() if cuboid not in exact]

    def levels(self, cuboid: Levels) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        return self.shape.first(cuboid)

    def name(self, cuboid: Levels) -> str:
        """Return the name of a cuboid."""
        return self.tree.name_of(self.levels(cuboid))

    def level_names(self, axis: int) -> list[str]:
        """Return the names of the levels of an axis that can be measured, coarsest first."""
        own, shape = self.tree.axes[axis], self.shape.axes[axis]
        given = [shape.first(k) for k in range(shape.depth + 1)]
        return ["total", *(own.levels[k - 1] for k in given[1:])]


def cuboid_shares(facts: CubeFacts, shares: AxisShares) -> CuboidShares:
    """Return the exact shares of cuboids: products, divided by what is measured of it all."""
    measured = 1 - sum_of_public(facts, shares)
    found = {c: prod(s[k] for s, k in zip(shares, c, strict=True)) for c in facts.measurable}
    return {facts.levels(c): Fraction(share) / measured for c, share in found.items() if share}


def sum_of_public(facts: CubeFacts, shares: AxisShares) -> Fraction:
    """Return what the public cuboids would have, were they measured."""
    if facts.public is None:
        return Fraction(0)
    each = (sum(s[: k + 1], Fraction(0)) for s, k in zip(shares, facts.public, strict=True))
    return Fraction(prod(each))


def given_by_axis(facts: CubeFacts, given: Mapping[str, tuple[Fraction, ...]]) -> AxisShares:
    """Return the shares that are given by axis.

    Raises:
        PlanError: an axis that is unknown or missing, or another number of shares than levels.
    """
    names = [axis.name for axis in facts.tree.axes]
    _check_named("shares of", given, names, "the axes are")
    missing = [name for name in names if name not in given]
    if missing:
        raise PlanError(f"shares by axis are missing for {missing[0]!r}")
    for axis, name in enumerate(names):
        levels = facts.level_names(axis)
        if len(given[name]) != len(levels):
            raise PlanError(
                f"axis {name!r} can be measured at {len(levels)} levels ({'; '.join(levels)}), so "
                f"it needs {len(levels)} shares, got {len(given[name])}"
            )
    return tuple(given[name] for name in names)


def given_by_cuboid(facts: CubeFacts, given: Mapping[str, Fraction]) -> CuboidShares:
    """Return the shares that are given by cuboid; cuboids that are not named have none.

    They need be no product over the axes (`hedgerow.plan.tables.PlannedTables`).

    Raises:
        PlanError: a cuboid that is unknown or cannot be measured, or no share for the leaves.
    """
    cuboids = {facts.name(cuboid): cuboid for cuboid in facts.measurable}
    _check_named("share of", given, list(cuboids), "the cuboids that can be measured are")
    shares = {cuboids[name]: share for name, share in given.items() if share}
    if facts.shape.finest not in shares:
        finest = facts.name(facts.shape.finest)
        raise PlanError(f"the share of {finest!r} must be above 0: the leaves have to be measured")
    return {facts.levels(cuboid): share for cuboid, share in shares.items()}


def _check_named(what: str, given: Mapping[str, object], names: list[str], are: str) -> None:
    """Raise a PlanError for a name that is not among some."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise PlanError(f"{what} {str(unknown[0])[:100]!r}: {are} {', '.join(names)}")


def importances_of(facts: CubeFacts, given: Mapping[str, Sequence[float]]) -> list[Float64]:
    """Return importances for the levels of each axis, 1 for the axes that are not named.

    Raises:
        PlanError: an unknown axis, or another number of them than levels.
    """
    names = [axis.name for axis in facts.tree.axes]
    _check_named("importance of", given, names, "the axes are")
    found = []
    for axis, name in enumerate(names):
        levels = facts.level_names(axis)
        numbers = np.array([float(w) for w in given.get(name, [1.0] * len(levels))])
        if len(numbers) != len(levels):
            raise PlanError(
                f"axis {name!r} can be measured at {len(levels)} levels ({'; '.join(levels)}), so "
                f"it needs as many importances, got {len(numbers)}"
            )
        found.append(numbers)
    return found


def importance_factors(facts: CubeFacts, importance: Importance) -> list[Float64] | None:
    """Return the factors of importances that are a product: for each axis float64 (levels).

    Returns:
        None for importances by cuboid.

    Raises:
        PlanError: a list, or importances by axis that do not fit the axes.
    """
    by_axis = importances_by_axis(importance)
    if by_axis is not None:
        return importances_of(facts, by_axis)
    if isinstance(importance, Mapping):
        return None
    if importance is not None and not isinstance(importance, Relative | PerLevel):
        raise PlanError(
            "a cube takes importances by axis, {axis: [...]}, or by cuboid, not as a list"
        )
    power = {type(None): 0.0, PerLevel: -1.0, Relative: 2.0}[type(importance)]
    return [np.array(axis.sizes, dtype=np.float64) ** power for axis in facts.shape.axes]


def cuboid_importances(facts: CubeFacts, importance: Importance) -> dict[Levels, float]:
    """Return the importance of each cuboid that can be measured: of one count's squared error.

    Raises:
        PlanError: they do not fit the cube, or are all 0.
    """
    factors = importance_factors(facts, importance)
    if factors is not None:
        every = np.asarray(reduce(np.multiply.outer, factors))
        return {cuboid: float(every[cuboid]) for cuboid in facts.measurable}
    given = {name: float(w) for name, w in importance.items()}  # type: ignore[union-attr, arg-type]
    cuboids = {facts.name(cuboid): cuboid for cuboid in facts.measurable}
    _check_named("importance of", given, list(cuboids), "the cuboids that can be measured are")
    found = {cuboid: given.get(name, 1.0) for name, cuboid in cuboids.items()}
    if not any(found.values()):
        raise PlanError("importances must not all be 0; give 1 to each cuboid that matters")
    return found


def optimal_shares(
    facts: CubeFacts, importance: Importance, *, released: bool = True
) -> AxisShares:
    """Return the shares of least importance-weighted error.

    Args:
        facts: of the cube.
        importance: the cost of a squared error of one count.
        released: for the error after estimation; otherwise for that of noisy counts.

    Raises:
        PlanError: importances that do not fit; or, for noisy counts, those that are no product, or
            0 for the last level of an axis.
    """
    shape, factors = facts.shape, importance_factors(facts, importance)
    if factors is None or (released and facts.public is not None):
        if not released:
            raise PlanError(
                "importances by cuboid give no product of shares for noisy counts alone: use "
                'objective = "released", or importances by axis'
            )
        each = cuboid_importances(facts, importance)
        largest = max(each.values())
        costs = {c: w / largest * float(shape.cells(c)) for c, w in each.items()}
        return rounded(facts, product_shares(shape, costs, facts.public, power=facts.power))
    weights = [
        w / w.max() * np.array(axis.sizes, dtype=np.float64)
        for w, axis in zip(factors, shape.axes, strict=True)
    ]
    if released:
        axes = zip(shape.axes, weights, strict=True)
        return rounded(facts, [axis_shares(axis, w, power=facts.power) for axis, w in axes])
    if not all(w[-1] for w in weights):
        raise PlanError(
            f"the importance of {facts.name(shape.finest)!r} must be above 0: the leaves have to "
            f'be measured; objective = "released" may give them a small share'
        )
    return rounded(facts, [w ** (1 / (1 + facts.power)) for w in weights])


def even_shares(facts: CubeFacts) -> AxisShares:
    """Return the shares that make the largest mean variance of a measured cuboid least."""
    return rounded(facts, level_shares(facts.shape, facts.public, power=facts.power))


def shares_for_targets(facts: CubeFacts, targets: Mapping[Levels, float]) -> AxisShares:
    """Return the shares that need the least budget to meet targets.

    Args:
        facts: of the cube.
        targets: of each cuboid that has one, the mean variance of its estimates (records²).
    """
    found = level_shares(facts.shape, facts.public, power=facts.power, targets=targets)
    return rounded(facts, found)


def rounded(facts: CubeFacts, shares: Sequence[Float64]) -> AxisShares:
    """Return the shares of each axis in multiples of 1/10,000.

    A share below half of that is none, where a level may stay unmeasured: it would cost more
    than it tells.
    """
    found = []
    for given in shares:
        each = np.asarray(given / given.sum(), dtype=np.float64)
        least = 1 / PARTS if facts.all_levels else 0.0
        kept = np.where(each < 0.5 / PARTS, least, each)
        kept[-1] = max(each[-1], 1 / PARTS)
        found.append(tuple(share or Fraction(0) for share in rounded_shares(kept)))
    return tuple(found)
