"""Allocations: which share of the budget each measured depth gets, from public facts alone."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import reduce
from math import inf
from operator import mul
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from hedgerow.arrays import CuboidList, Float64, Levels, Numbers, Sizes, float64
from hedgerow.declared import Real, frozen
from hedgerow.errors import PlanError, as_list, check_type, kind_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Invariant, Measure, measurable, public_cuboid
from hedgerow.plan.prior import Prior
from hedgerow.plan.workload import Chain, Cube, Cuboids, Workload, tables_of
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.calibrate import norm_of
from hedgerow.privacy.neighbours import Neighbours, in_case
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

Number = TypeVar("Number", float, Fraction)
ByDepth = tuple[Fraction | None, ...]
"""For each cuboid of a plan its share of the budget; None where nothing is measured."""


@frozen
class Problem:
    """The public facts that an allocation may look at.

    Attributes:
        tree: the public domain.
        neighbours: the unit of privacy; its shifts say how much noise a share buys at a depth.
        mechanism: the noise.
        budget: what all depths together may cost.
        measure: whether all cells are measured or survivors alone.
        cuboids: those that can be measured, coarsest first: neither public nor with the cells of
            a coarser one. The last of them must be measured.
        workload: which they are of.
        public: the finest cuboid whose counts are public, with all its coarsenings.
    """

    tree: Tree
    neighbours: Neighbours
    mechanism: type[Mechanism]
    budget: Budget
    measure: Measure
    cuboids: CuboidList
    workload: Workload = field(default_factory=Chain)
    public: Levels | None = None

    @classmethod
    def of(
        cls,
        tree: Tree,
        workload: Workload,
        neighbours: Neighbours,
        mechanism: type[Mechanism],
        budget: Budget,
        measure: Measure,
        invariants: Sequence[Invariant],
    ) -> "Problem":
        """Return the problem of a plan.

        Raises:
            PlanError: an impossible invariant.
        """
        cuboids = tuple(measurable(tree, workload, neighbours, invariants))
        public = public_cuboid(tree, workload, neighbours, invariants)
        return cls(tree, neighbours, mechanism, budget, measure, cuboids, workload, public)

    @property
    def is_cube(self) -> bool:
        """Whether the cuboids are every combination of levels."""
        return isinstance(self.workload, Cube)

    @property
    def is_named(self) -> bool:
        """Whether the cuboids are those that somebody named."""
        return isinstance(self.workload, Cuboids)

    @property
    def names(self) -> list[str]:
        """The names of the cuboids."""
        return [self.tree.name_of(levels) for levels in self.cuboids]

    @property
    def noun(self) -> str:
        """What its cuboids are called."""
        return "depths" if isinstance(self.workload, Chain) else "cuboids"

    @property
    def tables(self) -> list[Levels]:
        """Those that must be measured: no other one tells their cells."""
        tables = tables_of(self.tree, self.workload.cuboids(self.tree))
        return [levels for levels in tables if levels in self.cuboids]

    def by_name(self, what: str, given: Mapping[str, Number]) -> dict[Levels, Number]:
        """Return numbers by cuboid that are given by name.

        Args:
            what: they are: a share, an importance or a target.
            given: the numbers.

        Raises:
            PlanError: a cuboid that is unknown or cannot be measured, or is named twice.
        """
        possible = set(self.cuboids)
        by_levels = {}
        for name, number in given.items():
            levels = self.tree.named(name) if isinstance(name, str) else None
            if levels is None or levels not in possible:
                more = "; to measure another, name it in [workload]" if self.is_named else ""
                raise PlanError(
                    f"{what} of {kind_of(name)}: the {self.noun} that can be measured are "
                    f"{', '.join(self.names)}{more}"
                )
            if levels in by_levels:
                raise PlanError(f"cuboid {self.tree.name_of(levels)!r} has two {what}s")
            by_levels[levels] = number
        return by_levels

    def by_axis(
        self, what: str, given: Mapping[str, Sequence[Number]], otherwise: Number | None = None
    ) -> list[Number]:
        """Return for each cuboid of a cube the product of its levels' numbers.

        Args:
            what: they are: shares or importances.
            given: by axis, one a level that can be measured, coarsest first.
            otherwise: of levels whose axis is not named; there must be none unless given.

        Raises:
            PlanError: an axis that is unknown or missing, or another number of them than levels.
        """
        names = self.tree.axis_names
        for name in given:
            if name not in names:
                raise PlanError(f"{what} of {str(name)[:100]!r}: the axes are {', '.join(names)}")
        factors = []
        for axis in self.tree.axes:
            levels = levels_apart(axis)
            numbers = given.get(axis.name)
            if numbers is None:
                if otherwise is None:
                    raise PlanError(f"{what} by axis are missing for {axis.name!r}")
                numbers = [otherwise] * len(levels)
            if len(numbers) != len(levels):
                named = "; ".join("total" if not k else axis.levels[k - 1] for k in levels)
                raise PlanError(
                    f"axis {axis.name!r} can be measured at {len(levels)} levels ({named}), so it "
                    f"needs {len(levels)} {what}, got {len(numbers)}"
                )
            factors.append(dict(zip(levels, numbers, strict=True)))
        return [
            reduce(mul, (own[k] for own, k in zip(factors, levels, strict=True)))
            for levels in self.cuboids
        ]

    @property
    def depths(self) -> Sizes:
        """The depths of a chain that can be measured."""
        return tuple(map(sum, self.cuboids))

    @property
    def cases(self) -> Float64:
        """What a share of each cuboid costs in each case of a unit's change: (cases, cuboids).

        Of what it costs at worst, which is 1.
        """
        norm = norm_of(self.mechanism.price)
        changes = [self.neighbours.changes(depth) for depth in self.depths]
        cases = np.array([
            [float(norm(in_case(own, case)) / max(map(norm, own))) for own in changes]
            for case in range(max(map(len, changes)))
        ])  # fmt: skip
        is_worst = (cases >= cases.max(axis=0)).all(axis=1)  # whichever cuboids are measured
        return cases[is_worst][:1] if is_worst.any() else cases

    def sensitivity(self, depth: int) -> float:
        """Return the budget that buys a precision of 1 at a depth: Δ₁ of ε, Δ₂² of ρ."""
        return float(max(map(norm_of(self.mechanism.price), self.neighbours.changes(depth))))


def levels_apart(axis: Axis) -> list[int]:
    """Return the levels of an axis, the total included, that are not made of only children."""
    return [k for k in range(axis.depth + 1) if not k or axis.size(k) > axis.size(k - 1)]


class Allocation(Protocol):
    """A rule that divides the budget among depths.

    Where one unit cannot change all depths by their worst case at once (`Neighbours.changes` has
    several cases), all noise is less by one factor, and shares say how depths compare.
    """

    @property
    def name(self) -> str:
        """The name in a release file."""

    @property
    def prior(self) -> Prior | None:
        """The public table that the shares are computed from; a release refuses its own table."""

    def shares(self, problem: Problem) -> ByDepth:
        """Return one share for each of `Problem.cuboids`, summing to exactly 1.

        Returns:
            Above 0, or None for a cuboid that stays unmeasured (never the last one).
        """


@frozen
class Uniform:
    """Equal shares for all depths that can be measured.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> [str(s) for s in hr.make_plan(tree, budget=hr.Rho(1), allocation=hr.Uniform()).shares]
        ['1/3', '1/3', '1/3']
    """

    name = "uniform"
    prior: ClassVar[Prior | None] = None

    def shares(self, problem: Problem) -> ByDepth:
        """Return 1/n for each cuboid."""
        return (Fraction(1, len(problem.cuboids)),) * len(problem.cuboids)


@frozen
class Relative:
    """Relative errors: the squared error of a count N costs 1/max(N, 1)².

    N is the prior's. Without one it is the mean count of the depth, total/n for n nodes, so that
    the cost is n², the unknown total² being common to all depths.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> allocation = hr.Optimal(importance=hr.Relative())
        >>> hr.make_plan(tree, budget=hr.Rho(1), allocation=allocation).allocation
        'optimal'
    """

    name = "relative"


@frozen
class PerLevel:
    """The same importance for every depth: each of its n nodes costs 1/n.

    This minimises the sum of the depths' mean squared errors. With importance 1 for all counts the
    few coarse ones hardly matter beside the many fine ones.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> allocation = hr.Optimal(importance=hr.PerLevel())
        >>> sum(hr.make_plan(tree, budget=hr.Rho(1), allocation=allocation).shares)
        Fraction(1, 1)
    """

    name = "levels"


LARGEST_IMPORTANCE = 1e50
"""The largest importance, and the inverse of the least above 0: nothing overflows on the way."""
IMPORTANCE = Real("an importance", 0, inf, PlanError, "0 is for a level that does not matter")
_IN_RANGE = f"must be 0, or from {1 / LARGEST_IMPORTANCE:g} to {LARGEST_IMPORTANCE:g}"

ByAxis = Mapping[str, Sequence[float]]
Importance = Sequence[float] | Mapping[str, float] | ByAxis | Relative | PerLevel | None
"""The cost of a squared error of one count: one number a measurable depth, coarsest first; or some
by cuboid name, and 1 for the others; or, of a cube, one a level of some axes, whose products are
those of cuboids; or `Relative` or `PerLevel`; None: 1 for all."""


def checked_importance(importance: Importance) -> Importance:
    """Return importances as floats, or raise a PlanError unless they are numbers of at least 0.

    They must be of usual sizes, not all 0 in a list, and by axis or by cuboid, not both.
    """
    if importance is None or isinstance(importance, Relative | PerLevel):
        return importance
    if not isinstance(importance, Mapping):
        fitting = "numbers, Relative() or PerLevel()"
        given = as_list("importance", importance, fitting, PlanError)
        numbers = tuple(map(_importance, given))
        if not any(numbers):
            raise PlanError("importances must not all be 0; give 1 to each level that matters")
        return numbers
    for name in importance:
        check_type("the name of an importance", name, str, "text", PlanError)
    is_list = {isinstance(each, list | tuple) for each in importance.values()}
    if len(is_list) > 1:
        raise PlanError("importances are lists by axis, or single numbers by cuboid, and not both")
    each: Callable[[Any], object] = _importance if False in is_list else checked_importance
    return cast("Importance", {name: each(given) for name, given in importance.items()})


def _importance(given: object) -> float:
    """Return one importance."""
    number = IMPORTANCE(given)
    if number and not 1 / LARGEST_IMPORTANCE <= number <= LARGEST_IMPORTANCE:
        raise PlanError(f"importances {_IN_RANGE}, got {number:g}")
    return number


def importances_by_axis(importance: Importance) -> ByAxis | None:
    """Return the importances if they are lists by axis, and None if they are anything else."""
    if not isinstance(importance, Mapping):
        return None
    is_listed = importance and all(isinstance(n, tuple) for n in importance.values())
    return cast("ByAxis", importance) if is_listed else None


def importances(problem: Problem, importance: Importance, prior: Prior | None = None) -> Float64:
    """Return the mean cost of a squared error of one count of each cuboid: float64 (cuboids).

    Args:
        problem: whose cuboids.
        importance: of `checked_importance`.
        prior: a public table, if there is one.

    Raises:
        PlanError: importances that do not fit the workload or are all 0, products that are too
            large or small, or a prior with other levels.
    """
    if prior is not None:
        prior.check_fits(problem.tree)
    if importance is None:
        return np.ones(len(problem.cuboids))
    if isinstance(importance, PerLevel | Relative):
        return np.array(_by_size(problem, importance, prior))
    by_axis = importances_by_axis(importance)
    if by_axis is not None:
        if not problem.is_cube:
            raise PlanError(
                'importances by axis go with the workload of a cube (cuboids = "cube"); give them '
                f"by name: {_by_name_in_toml(problem)}"
            )
        numbers = problem.by_axis("importances", by_axis, 1.0)
    elif isinstance(importance, Mapping):
        given = problem.by_name("importance", cast("Mapping[str, float]", importance))
        numbers = [given.get(levels, 1.0) for levels in problem.cuboids]
    else:
        numbers = [*_listed(problem, importance)]
    if not any(numbers):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")
    for number in filter(None, numbers):
        if not 1 / LARGEST_IMPORTANCE <= number <= LARGEST_IMPORTANCE:
            raise PlanError(f"products of importances {_IN_RANGE}, got {number:g}")
    return float64(numbers)


def _by_size(problem: Problem, importance: PerLevel | Relative, prior: Prior | None) -> list[float]:
    """Return importances that follow from the number of cells, or from a prior's counts."""
    cells = [float(problem.tree.cells(levels)) for levels in problem.cuboids]
    if isinstance(importance, PerLevel):
        return [1 / n for n in cells]
    if prior is None:
        return [n**2 for n in cells]
    costs = []
    for t, n in zip(problem.depths, cells, strict=True):
        counts, times = prior.values(t, int(n))
        costs.append(float(times @ np.maximum(float64(counts), 1) ** -2) / n)
    return costs


def _listed(problem: Problem, given: Sequence[float]) -> Sequence[float]:
    """Return importances that are given as a list, which a chain alone takes."""
    names = problem.names
    if problem.is_cube:
        raise PlanError(
            "a cube takes importances by axis, {axis: [...]}, or by cuboid, not as a list"
        )
    if problem.is_named:
        raise PlanError(
            "named cuboids take their importances by name, not as a list: "
            f"{_by_name_in_toml(problem)}"
        )
    if len(given) != len(names):
        raise PlanError(
            f"this plan can measure {len(names)} depths ({'; '.join(names)}), so it needs as "
            f"many importances, got {len(given)}"
        )
    return given


def _by_name_in_toml(problem: Problem) -> str:
    return f"importance = {{{json.dumps(problem.names[0], ensure_ascii=False)} = 10}}"


def of_whole(shares: Sequence[Fraction]) -> ByDepth:
    """Return shares divided by what they are in all; None for 0."""
    whole = sum(shares, Fraction(0))
    return tuple(share / whole or None for share in shares)


PARTS = 10_000
"""Computed shares are multiples of 1/10,000, which people can read and which price quickly."""

FINE_PARTS = 10**6
"""Or of this, where what is made least is not flat at its least: finer ones take long to price."""


def rounded_shares(shares: Numbers, parts: int = PARTS) -> ByDepth:
    """Return shares in multiples of 1/10,000, or other parts, that sum to exactly 1; None for 0.

    By largest remainders: each positive share gets one part, and of the rest what it is due.
    """
    given = np.asarray(shares, dtype=np.float64)
    positive = given > 0
    due = np.where(positive, np.maximum(given / given.sum() * parts, 1), 0.0)
    spare = due - positive
    due = positive + spare * ((parts - positive.sum()) / max(spare.sum(), 1e-300))
    numerators = np.floor(due).astype(int)
    behind = np.argsort(numerators - due, kind="stable")
    numerators[behind[: parts - numerators.sum()]] += 1
    return tuple(Fraction(int(n), parts) if n else None for n in numerators)
