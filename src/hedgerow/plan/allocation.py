"""Allocations: which share of the budget each measured depth gets, from public facts alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from hedgerow.errors import PlanError
from hedgerow.noise.numerals import Exact, exact


class Allocation(Protocol):
    """A rule that shares the budget out."""

    @property
    def name(self) -> str:
        """What a release file calls it."""

    def shares(self, measured: Sequence[str]) -> tuple[Fraction, ...]:
        """One share a measured depth, above 0, summing to exactly 1.

        Args:
            measured: the cuboid names of the measured depths, coarsest first.
        """


@dataclass(frozen=True, slots=True)
class Uniform:
    """Equal shares for all measured depths."""

    @property
    def name(self) -> str:
        """``uniform``."""
        return "uniform"

    def shares(self, measured: Sequence[str]) -> tuple[Fraction, ...]:
        """1/n each."""
        return (Fraction(1, len(measured)),) * len(measured)


@dataclass(frozen=True, slots=True, init=False)
class Shares:
    """Shares as given, one a measured depth.

    Args:
        given: exact numbers above 0 that sum to exactly 1.

    Raises:
        PlanError: they are not.
    """

    given: tuple[Fraction, ...]

    def __init__(self, given: Sequence[Exact]) -> None:
        fractions = tuple(
            exact(share, f"share {i}", PlanError) for i, share in enumerate(given, start=1)
        )
        for i, share in enumerate(fractions, start=1):
            if share <= 0:
                raise PlanError(f"shares must be above 0, got {share} in place {i}")
        if sum(fractions) != 1:
            raise PlanError(
                f"shares must sum to exactly 1, got {sum(fractions)}; write thirds as 1/3"
            )
        object.__setattr__(self, "given", fractions)

    @property
    def name(self) -> str:
        """``shares``."""
        return "shares"

    def shares(self, measured: Sequence[str]) -> tuple[Fraction, ...]:
        """The given shares.

        Raises:
            PlanError: there are more or fewer of them than measured depths.
        """
        if len(self.given) != len(measured):
            raise PlanError(
                f"this plan measures {len(measured)} depths ({'; '.join(measured)}), so it needs "
                f"{len(measured)} shares, got {len(self.given)}"
            )
        return self.given
