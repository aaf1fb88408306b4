"""Allocations: which share of the budget each measured depth gets, from public facts alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from numbers import Real
from typing import ClassVar, Protocol

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import PlanError, as_list, kind_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Invariant, Measure, measurable, public_cuboid
from hedgerow.plan.prior import Prior
from hedgerow.plan.workload import Chain, Cube, Cuboids, Workload
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True)
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
    cuboids: tuple[Levels, ...]
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

    def in_order(self, shares: Mapping[Levels, Fraction]) -> tuple[Fraction | None, ...]:
        """Return the share of each cuboid, None for those that have none."""
        return tuple(shares.get(levels) for levels in self.cuboids)

    @property
    def depths(self) -> tuple[int, ...]:
        """The depths of a chain that can be measured."""
        return tuple(map(sum, self.cuboids))

    def sensitivity(self, depth: int) -> float:
        """Return the budget that buys a precision of 1 at a depth: Δ₁ of ε, Δ₂² of ρ."""
        if self.mechanism.price.norm == 1:
            return float(self.neighbours.l1_sensitivity(depth))
        return float(self.neighbours.l2_sensitivity_squared(depth))


class Allocation(Protocol):
    """A rule that divides the budget among depths.

    Rules assume that the costs of depths add up to the budget. Where one unit cannot change all
    depths by their worst case at once (`Neighbours.changes` has several cases), all noise is less
    by one factor and the shares keep their proportions, so optimal shares are only nearly optimal.
    """

    @property
    def name(self) -> str:
        """The name in a release file."""

    @property
    def prior(self) -> Prior | None:
        """The public table that the shares are computed from; a release refuses its own table."""

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return one share for each of `Problem.cuboids`, summing to exactly 1.

        Returns:
            Above 0, or None for a cuboid that stays unmeasured (never the last one).
        """


@dataclass(frozen=True, slots=True)
class Uniform:
    """Equal shares for all depths that can be measured.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> [str(s) for s in hr.make_plan(tree, budget=hr.Rho(1), allocation=hr.Uniform()).shares]
        ['1/3', '1/3', '1/3']
    """

    name: ClassVar[str] = "uniform"
    prior: ClassVar[Prior | None] = None

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return 1/n for each cuboid."""
        return (Fraction(1, len(problem.cuboids)),) * len(problem.cuboids)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


ByAxis = Mapping[str, Sequence[float]]
Importance = Sequence[float] | Mapping[str, float] | ByAxis | Relative | PerLevel | None
"""The cost of a squared error of one count: one number a measurable depth, coarsest first; or some
by cuboid name, and 1 for the others; or, of a cube, one a level of some axes, whose products are
those of cuboids; or `Relative` or `PerLevel`; None: 1 for all."""


def check_importance(importance: Importance) -> None:
    """Raise a PlanError unless all are finite, at least 0, and one is above 0."""
    if importance is None or isinstance(importance, Relative | PerLevel):
        return
    if (by_axis := importances_by_axis(importance)) is not None:
        for each in by_axis.values():
            check_importance(each)
        return
    numbers = importance.values() if isinstance(importance, Mapping) else importance
    given = as_list("importance", numbers, "numbers, Relative() or PerLevel()", PlanError)
    for number in given:
        if not isinstance(number, Real):
            raise PlanError(f"an importance must be a number, got {kind_of(number)}")
        if not isfinite(number) or number < 0:
            raise PlanError(
                f"importances must be finite and 0 or more, got {number:g}; 0 is for a level that "
                f"does not matter"
            )
    if not isinstance(importance, Mapping) and not any(given):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")


def importances_by_axis(importance: Importance) -> ByAxis | None:
    """Return the importances if they are lists by axis, and None if they are anything else."""
    if not isinstance(importance, Mapping):
        return None
    listed = {name: n for name, n in importance.items() if isinstance(n, list | tuple)}
    return listed if listed and len(listed) == len(importance) else None


def importances(
    problem: Problem, importance: Sequence[float] | Mapping[str, float] | ByAxis | PerLevel | None
) -> Float64:
    """Return one number for each of `Problem.depths`: float64 (depths), or raise a PlanError."""
    names = problem.names
    if importances_by_axis(importance) is not None:
        raise PlanError(
            'importances by axis go with the workload of a cube (cuboids = "cube"); give them by '
            f"name: importance = {{{json.dumps(names[0], ensure_ascii=False)} = 10}}"
        )
    if importance is None:
        return np.ones(len(names))
    if isinstance(importance, PerLevel):
        cells = [problem.tree.cells(levels) for levels in problem.cuboids]
        return 1 / np.array(cells, dtype=np.float64)
    if isinstance(importance, Mapping):
        numbers = _by_name(problem, importance)
    else:
        if problem.is_named:
            raise PlanError(
                "named cuboids take their importances by name, not as a list: importance = {"
                f"{json.dumps(names[0], ensure_ascii=False)} = 10}}"
            )
        numbers = [float(number) for number in importance]
        if len(numbers) != len(names):
            raise PlanError(
                f"this plan can measure {len(names)} depths ({'; '.join(names)}), so it needs as "
                f"many importances, got {len(numbers)}"
            )
    if not any(numbers):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")
    return np.array(numbers)


def _by_name(problem: Problem, given: Mapping[str, object]) -> list[float]:
    """Return the importances that are given by name, 1 for the others."""
    found = dict.fromkeys(problem.cuboids, 1.0)
    for name, number in given.items():
        levels = problem.tree.named(name)
        if levels not in found:
            kind = "depths" if isinstance(problem.workload, Chain) else "cuboids"
            raise PlanError(
                f"importance of {name[:100]!r}: the {kind} that can be measured are "
                f"{', '.join(problem.names)}"
            )
        found[levels] = float(number)  # type: ignore[arg-type]
    return list(found.values())


def mean_importances(problem: Problem, importance: Importance, prior: Prior | None) -> list[float]:
    """Return the mean cost of a squared error of one count, for each of `Problem.depths`."""
    if prior is not None:
        prior.check_fits(problem.tree)
    if not isinstance(importance, Relative):
        return [float(number) for number in importances(problem, importance)]
    nodes = [problem.tree.nodes(t) for t in problem.depths]
    if prior is None:
        return [float(n) ** 2 for n in nodes]
    costs = []
    for t, n in zip(problem.depths, nodes, strict=True):
        counts, times = prior.values(t, n)
        costs.append(float(times @ np.maximum(counts.astype(np.float64), 1) ** -2) / n)
    return costs


PARTS = 10_000
"""Computed shares are multiples of 1/10,000, which people can read and which price quickly."""


def rounded_shares(shares: Sequence[float] | Float64) -> tuple[Fraction | None, ...]:
    """Return shares in multiples of 1/10,000 that sum to exactly 1; None for 0.

    By largest remainders: each positive share gets one part, and of the rest what it is due.
    """
    given = np.asarray(shares, dtype=np.float64)
    positive = given > 0
    due = np.where(positive, np.maximum(given / given.sum() * PARTS, 1), 0.0)
    spare = due - positive
    due = positive + spare * ((PARTS - positive.sum()) / max(spare.sum(), 1e-300))
    parts = np.floor(due).astype(int)
    behind = np.argsort(parts - due, kind="stable")
    parts[behind[: PARTS - parts.sum()]] += 1
    return tuple(Fraction(int(n), PARTS) if n else None for n in parts)
