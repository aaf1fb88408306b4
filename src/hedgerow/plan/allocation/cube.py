"""Shares over a cube: exact shares of each axis's levels, whose products are those of cuboids.

Cuboid c gets Π_a s_a(c_a), divided by what is measured of it all: 1 less the shares of the public
cuboids. Estimates of a cube are exact for such products (`hedgerow.estimate.cube.estimates`), so
every rule here ends in one. Nothing here knows more than public facts.

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
from typing import Literal

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import PlanError, as_list
from hedgerow.estimate.cube.estimates import public_cuboids
from hedgerow.estimate.cube.shape import CubeShape, Cuboid
from hedgerow.estimate.cube.shares import (
    axis_shares,
    level_shares,
    mean_variances,
    product_shares,
)
from hedgerow.plan.allocation.allocation import PARTS, rounded_shares
from hedgerow.tables.tree import Levels, Tree
from hedgerow.text import Exact, exact

AxisShares = tuple[tuple[Fraction, ...], ...]
"""For each axis one share a level that is not made of only children, coarsest first, the total
included; each axis's sum to 1, and the last is above 0."""

CuboidShares = dict[Levels, Fraction]
"""The shares of the measured cuboids, above 0, summing to 1."""

BY_AXIS = 'a list of exact numbers for each axis, such as ["0.1", "0.4", "0.5"]'


@dataclass(frozen=True, slots=True, eq=False)
class CubeFacts:
    """The public facts that the shares of a cube depend on; make them with `CubeFacts.of`.

    Attributes:
        tree: the public domain.
        shape: its axes, without levels of only children; cuboids here are numbered by it.
        power: how the variance falls with the share: 1 for noise priced in ρ, 2 in pure ε.
        public: the finest cuboid whose counts are public, if any.
        all_levels: whether every level must be measured, as whole counts from survivors need it.
    """

    tree: Tree
    shape: CubeShape
    power: int
    public: Cuboid | None
    all_levels: bool

    @classmethod
    def of(
        cls, tree: Tree, *, power: int, public: Levels | None = None, all_levels: bool = False
    ) -> "CubeFacts":
        """Return the facts of a tree and a public cuboid, given by the levels of its axes."""
        starts = [[np.asarray(s, np.int64) for s in axis.child_start] for axis in tree.axes]
        shape = CubeShape.of(starts)
        exact = None if public is None else shape.given(public)
        return cls(tree, shape, power, exact, all_levels)

    @property
    def measurable(self) -> list[Cuboid]:
        """The cuboids that are not public, coarsest first."""
        exact = public_cuboids(self.shape, self.public)
        return [cuboid for cuboid in self.shape.cuboids() if cuboid not in exact]

    def levels(self, cuboid: Cuboid) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        return tuple(axis.first(k) for axis, k in zip(self.shape.axes, cuboid, strict=True))

    def name(self, cuboid: Cuboid) -> str:
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


def uniform_shares(facts: CubeFacts) -> AxisShares:
    """Return equal shares: all measured cuboids get the same."""
    levels = [axis.depth + 1 for axis in facts.shape.axes]
    return tuple((Fraction(1, n),) * n for n in levels)


def given_by_axis(facts: CubeFacts, given: Mapping[str, Sequence[Exact]]) -> AxisShares:
    """Return the shares that are given by axis.

    Raises:
        PlanError: an axis that is unknown or missing, another number of shares than levels, or
            shares that are negative, do not sum to 1 or leave the last level without.
    """
    names = [axis.name for axis in facts.tree.axes]
    _check_named("shares of", given, names, "the axes are")
    missing = [name for name in names if name not in given]
    if missing:
        raise PlanError(f"shares by axis are missing for {missing[0]!r}: give {BY_AXIS}")
    return tuple(_of_axis(facts, axis, given[name]) for axis, name in enumerate(names))


def _of_axis(facts: CubeFacts, axis: int, given: Sequence[Exact]) -> tuple[Fraction, ...]:
    """Return the shares of one axis, or raise a PlanError."""
    name, levels = facts.tree.axes[axis].name, facts.level_names(axis)
    listed = as_list(f"shares of {name!r}", given, BY_AXIS, PlanError)
    if len(listed) != len(levels):
        raise PlanError(
            f"axis {name!r} can be measured at {len(levels)} levels ({'; '.join(levels)}), so it "
            f"needs {len(levels)} shares, got {len(listed)}"
        )
    named = zip(listed, levels, strict=True)
    shares = tuple(exact(s, f"share of {name}.{k}", PlanError) for s, k in named)
    if min(shares) < 0:
        raise PlanError(f"shares must not be negative, got {min(shares)} for axis {name!r}")
    if sum(shares) != 1:
        raise PlanError(
            f"the shares of axis {name!r} must sum to exactly 1, got {sum(shares)}; write thirds "
            f"as 1/3"
        )
    if not shares[-1]:
        raise PlanError(f"the last share of axis {name!r} must be above 0: leaves are measured")
    if facts.all_levels and not all(shares):
        raise PlanError(
            f"axis {name!r} has a share of 0, and survivors are found level by level: give every "
            f'level a share, or measure = "all"'
        )
    return shares


def given_by_cuboid(facts: CubeFacts, given: Mapping[str, Exact]) -> CuboidShares:
    """Return the shares that are given by cuboid; cuboids that are not named have none.

    Raises:
        PlanError: a cuboid that is unknown or cannot be measured; shares that are negative or do
            not sum to 1; or that are no product over the axes, as the estimates need them.
    """
    cuboids = {facts.name(cuboid): cuboid for cuboid in facts.measurable}
    _check_named("share of", given, list(cuboids), "the cuboids that can be measured are")
    shares = {cuboids[n]: exact(s, f"share of {n!r}", PlanError) for n, s in given.items()}
    for name, cuboid in cuboids.items():
        if shares.get(cuboid, 0) < 0:
            raise PlanError(f"shares must not be negative, got {shares[cuboid]} for {name!r}")
    if sum(shares.values()) != 1:
        raise PlanError(
            f"shares must sum to exactly 1, got {sum(shares.values())}; write thirds as 1/3"
        )
    finest = facts.shape.finest
    leaves = shares.get(finest)
    if not leaves:
        raise PlanError(f"the share of {facts.name(finest)!r} must be above 0: it is the leaves")
    alone = [
        [shares.get((*finest[:a], k, *finest[a + 1 :]), Fraction(0)) / leaves for k in range(n + 1)]
        for a, n in enumerate(finest)
    ]
    for name, cuboid in cuboids.items():
        product = leaves * prod(f[k] for f, k in zip(alone, cuboid, strict=True))
        if shares.get(cuboid, 0) != product:
            raise PlanError(
                f"the shares of a cube must be a product of shares of levels, and that of {name!r} "
                f"would be {product}: give shares by axis, or importances by cuboid"
            )
    return {facts.levels(cuboid): share for cuboid, share in shares.items() if share}


def _check_named(what: str, given: Mapping[str, object], names: list[str], are: str) -> None:
    """Raise a PlanError for a name that is not among some."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise PlanError(f"{what} {str(unknown[0])[:100]!r}: {are} {', '.join(names)}")


Objective = Literal["cells", "released"]


def importances_by_axis(facts: CubeFacts, given: Mapping[str, Sequence[float]]) -> list[Float64]:
    """Return importances for the levels of each axis, 1 for the axes that are not named.

    Raises:
        PlanError: an unknown axis, another number of them than levels, or all 0 for an axis.
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
        if not numbers.any():
            raise PlanError(
                f"the importances of axis {name!r} must not all be 0; give 1 to each level that "
                f"matters"
            )
        found.append(numbers)
    return found


def powers_of_cells(facts: CubeFacts, power: float) -> list[Float64]:
    """Return importances that are a power of the number of cells, for the levels of each axis."""
    return [np.array(axis.sizes, dtype=np.float64) ** power for axis in facts.shape.axes]


def optimal_shares(
    facts: CubeFacts, importance: Sequence[Float64], objective: Objective
) -> AxisShares:
    """Return the shares of least importance-weighted error, importances being a product.

    Args:
        facts: of the cube.
        importance: for each axis float64 (levels): the cost of a squared error of one count is
            their product; at least 0.
        objective: ``released`` for the error after estimation, ``cells`` for that of noisy counts.

    Raises:
        PlanError: the last level of an axis has the importance 0 (``cells``).
    """
    weights = [
        w / w.max() * np.array(axis.sizes, dtype=np.float64)
        for w, axis in zip(importance, facts.shape.axes, strict=True)
    ]
    if objective == "cells":
        if not all(w[-1] for w in weights):
            raise PlanError(
                f"the importance of {facts.name(facts.shape.finest)!r} must be above 0: the leaves "
                f'have to be measured; objective = "released" may give them a small share'
            )
        return _rounded(facts, [w ** (1 / (1 + facts.power)) for w in weights])
    if facts.public is None:
        each = zip(facts.shape.axes, weights, strict=True)
        return _rounded(facts, [axis_shares(axis, w, power=facts.power) for axis, w in each])
    every = np.asarray(reduce(np.multiply.outer, weights))
    by_cuboid = {cuboid: float(every[cuboid]) for cuboid in facts.measurable}
    return _rounded(facts, product_shares(facts.shape, by_cuboid, facts.public, power=facts.power))


def optimal_shares_by_cuboid(facts: CubeFacts, given: Mapping[str, float]) -> AxisShares:
    """Return the product shares of least error after estimation for importances by cuboid.

    Args:
        facts: of the cube.
        given: cuboid name → the cost of a squared error of one count; 1 for the others.

    Raises:
        PlanError: an unknown cuboid, or importances that are all 0.
    """
    cuboids = {facts.name(cuboid): cuboid for cuboid in facts.measurable}
    _check_named("importance of", given, list(cuboids), "the cuboids that can be measured are")
    each = {c: float(given.get(n, 1)) * facts.shape.cells(c) for n, c in cuboids.items()}
    if not any(each.values()):
        raise PlanError("importances must not all be 0; give 1 to each cuboid that matters")
    return _rounded(facts, product_shares(facts.shape, each, facts.public, power=facts.power))


def even_shares(facts: CubeFacts) -> AxisShares:
    """Return the shares that make the largest mean variance of a measured cuboid least."""
    return _rounded(facts, level_shares(facts.shape, facts.public, power=facts.power))


def cheapest_shares(facts: CubeFacts, targets: Mapping[str, float]) -> tuple[AxisShares, float]:
    """Return the shares that need the least budget to meet targets, and what it has to buy.

    Args:
        facts: of the cube.
        targets: cuboid name → the root of the mean squared error of its estimates, in records,
            above 0.

    Returns:
        The shares, and how small a variance (records²) all of the budget, spent on one count, has
        to buy: it scales with 1/ρ, or 1/ε².

    Raises:
        PlanError: no target, or one of an unknown cuboid.
    """
    cuboids = {facts.name(cuboid): cuboid for cuboid in facts.measurable}
    _check_named("target of", targets, list(cuboids), "the cuboids that can be measured are")
    if not targets:
        raise PlanError("give a target of a cuboid")
    wanted = {cuboids[name]: rmse**2 for name, rmse in targets.items()}
    found = level_shares(facts.shape, facts.public, power=facts.power, targets=wanted)
    shares = _rounded(facts, found)
    means = mean_variances(facts.shape, as_floats(shares), facts.public, power=facts.power)
    return shares, min(target / means[cuboid] for cuboid, target in wanted.items())


def as_floats(shares: AxisShares) -> list[Float64]:
    """Return the shares of each axis as float64 (levels)."""
    return [np.array([float(s) for s in each]) for each in shares]


def _rounded(facts: CubeFacts, shares: Sequence[Float64]) -> AxisShares:
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
