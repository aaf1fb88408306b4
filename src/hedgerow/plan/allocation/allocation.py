"""Allocations: which share of the budget each measured depth gets, from public facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from numbers import Real
from typing import ClassVar, Protocol

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import PlanError, as_list, kind_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.depths import Measure
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.tables.tree import Tree
from hedgerow.text import Exact, exact


@dataclass(frozen=True, slots=True)
class Problem:
    """What an allocation may look at: public facts alone.

    Attributes:
        tree: the public domain.
        neighbours: the unit of privacy; its shifts say how much noise a share buys at a depth.
        mechanism: the noise.
        budget: what all depths together may cost.
        measure: whether all nodes are measured or survivors alone.
        depths: the depths that can be measured, coarsest first: neither public nor made of single
            children. The last of them must be measured.
    """

    tree: Tree
    neighbours: Neighbours
    mechanism: type[Mechanism]
    budget: Budget
    measure: Measure
    depths: tuple[int, ...]

    @property
    def cuboids(self) -> list[str]:
        """The names of the depths."""
        return [self.tree.cuboid_name(t) for t in self.depths]

    def sensitivity(self, depth: int) -> float:
        """Return the budget that buys a precision of 1 at a depth: Δ₁ of ε, Δ₂² of ρ."""
        if self.mechanism.price.norm == 1:
            return float(self.neighbours.l1_sensitivity(depth))
        return float(self.neighbours.l2_sensitivity_squared(depth))


class Allocation(Protocol):
    """A rule that shares the budget out.

    Rules take the costs of depths to add up to the budget. Where one unit cannot change all depths
    by their worst at once (`Neighbours.changes` has several cases) they add up to more: all noise
    is then less by one factor, and the shares keep their proportions. What is the best for added
    costs is near the best there, and need not be it.
    """

    @property
    def name(self) -> str:
        """What a release file calls it."""

    @property
    def prior(self) -> Prior | None:
        """The public table that the shares follow from, so that a release can refuse its own."""

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return one share for each of `Problem.depths`, summing to exactly 1.

        Returns:
            Above 0, or None for a depth that stays unmeasured (never the last one).
        """


@dataclass(frozen=True, slots=True)
class Uniform:
    """Equal shares for all depths that can be measured."""

    prior: ClassVar[Prior | None] = None

    @property
    def name(self) -> str:
        """``uniform``."""
        return "uniform"

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """1/n each."""
        return (Fraction(1, len(problem.depths)),) * len(problem.depths)


SHARES = 'a list of exact numbers, such as ["1/4", "3/4"]'


@dataclass(frozen=True, slots=True, init=False)
class Shares:
    """Shares as given, one for each depth that can be measured; 0 leaves it unmeasured.

    Args:
        given: exact numbers of at least 0, the last above 0, that sum to exactly 1.

    Raises:
        PlanError: they are not.
    """

    prior: ClassVar[Prior | None] = None
    given: tuple[Fraction, ...]

    def __init__(self, given: Sequence[Exact]) -> None:
        fractions = tuple(
            exact(share, f"share {i}", PlanError)
            for i, share in enumerate(as_list("shares", given, SHARES, PlanError), start=1)
        )
        for i, share in enumerate(fractions, start=1):
            if share < 0:
                raise PlanError(f"shares must not be negative, got {share} in place {i}")
        if sum(fractions) != 1:
            raise PlanError(
                f"shares must sum to exactly 1, got {sum(fractions)}; write thirds as 1/3"
            )
        if not fractions[-1]:
            raise PlanError("the last share must be above 0: the leaves have to be measured")
        object.__setattr__(self, "given", fractions)

    @property
    def name(self) -> str:
        """``shares``."""
        return "shares"

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return the given shares.

        Raises:
            PlanError: there are more or fewer of them than depths.
        """
        wanted = len(problem.depths)
        if len(self.given) != wanted:
            raise PlanError(
                f"this plan can measure {wanted} depths ({'; '.join(problem.cuboids)}), so it "
                f"needs {wanted} shares, got {len(self.given)}"
            )
        return tuple(share or None for share in self.given)


# Importance: what a squared error of one count costs, by level.


@dataclass(frozen=True, slots=True)
class Relative:
    """Relative errors: the squared error of a count N costs 1/max(N, 1)².

    N is the prior's. Without one the mean count of the depth stands for it, total/n for n nodes, so
    that the cost is n², the unknown total² being common to all depths.
    """


@dataclass(frozen=True, slots=True)
class PerLevel:
    """Every depth the same, however many nodes it has: n of them cost 1/n each.

    What is minimised is then the sum of the depths' mean squared errors. With importance 1 for all
    counts the few coarse ones hardly matter beside the many fine ones.
    """


Importance = Sequence[float] | Mapping[str, float] | Relative | PerLevel | None
"""What a squared error of one count costs: one number a measurable depth, coarsest first; or some
by the cuboid's name, and 1 for the others; or `Relative` or `PerLevel`; None: 1 for all."""


def check_importance(importance: Importance) -> None:
    """Raise unless the numbers are importances.

    Raises:
        PlanError: one below 0 or not finite, or all 0.
    """
    if importance is None or isinstance(importance, Relative | PerLevel):
        return
    numbers = importance.values() if isinstance(importance, Mapping) else importance
    given = as_list("importance", numbers, "numbers, Relative() or PerLevel()", PlanError)
    for number in given:
        if not isinstance(number, Real):
            raise PlanError(f"an importance must be a number, got {kind_of(number)}")
        if not isfinite(number) or number < 0:
            raise PlanError(
                f"importances must be finite and 0 or more, got {number:g}; 0 says that a level "
                f"does not matter"
            )
    if not isinstance(importance, Mapping) and not any(given):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")


def importances(
    problem: Problem, importance: Sequence[float] | Mapping[str, float] | PerLevel | None
) -> Float64:
    """Return one number for each of `Problem.depths`: float64 (depths).

    Raises:
        PlanError: too many or too few, or a cuboid that is none of these depths.
    """
    names = problem.cuboids
    if importance is None:
        return np.ones(len(names))
    if isinstance(importance, PerLevel):
        return 1 / np.array([problem.tree.nodes(t) for t in problem.depths], dtype=np.float64)
    if isinstance(importance, Mapping):
        unknown = [name for name in importance if name not in names]
        if unknown:
            raise PlanError(
                f"importance of {unknown[0]!r}: the depths that can be measured are "
                f"{', '.join(names)}"
            )
        numbers = [float(importance.get(name, 1)) for name in names]
    else:
        numbers = [float(number) for number in importance]
        if len(numbers) != len(names):
            raise PlanError(
                f"this plan can measure {len(names)} depths ({'; '.join(names)}), so it needs as "
                f"many importances, got {len(numbers)}"
            )
    if not any(numbers):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")
    return np.array(numbers)


def mean_importances(problem: Problem, importance: Importance, prior: Prior | None) -> list[float]:
    """Return the mean cost of a squared error of one count, one for each of `Problem.depths`.

    Raises:
        PlanError: importances or a prior that do not fit.
    """
    if prior is not None:
        prior.check_fits(problem.tree)
    if not isinstance(importance, Relative):
        return [float(number) for number in importances(problem, importance)]
    nodes = [problem.tree.nodes(t) for t in problem.depths]
    if prior is None:
        return [float(n) ** 2 for n in nodes]
    found = []
    for t, n in zip(problem.depths, nodes, strict=True):
        counts, times = prior.values(t, n)
        found.append(float(times @ np.maximum(counts.astype(np.float64), 1) ** -2) / n)
    return found
