"""Allocations: which share of the budget each measured depth gets, from public facts alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from hedgerow.errors import PlanError, listed
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.numerals import Exact, exact
from hedgerow.plan.depths import Measure
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.tables.tree import Tree


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
        """The budget that buys a precision of 1 at a depth: Δ₁ of ε, Δ₂² of ρ."""
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
        """One share for each of `Problem.depths`, summing to exactly 1.

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
            for i, share in enumerate(listed("shares", given, SHARES, PlanError), start=1)
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
        """The given shares.

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
