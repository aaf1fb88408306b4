"""Shares of the budget as somebody gives them: by depth, by axis of a cube, or by cuboid."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hedgerow.errors import PlanError, as_list
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.allocation.cube import CubeFacts, cuboid_shares, given_by_axis, given_by_cuboid
from hedgerow.plan.allocation.named import given_by_name
from hedgerow.plan.prior import Prior
from hedgerow.text import Exact, exact

FITTING = 'a list of exact numbers, such as ["1/4", "3/4"]'

ByAxis = Mapping[str, tuple[Fraction, ...]]
ByCuboid = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True, init=False)
class Shares:
    """Shares as given; a depth, level or cuboid of share 0 stays unmeasured.

    Args:
        given: along a chain a list, one share for each depth that can be measured, the last above
            0. Of a cube a list by axis: one share for each level that is not made of only
            children, coarsest first, the axis's total included; a cuboid gets the product, divided
            by what is measured of it all. Or one share by cuboid name, those not named having 0;
            of a cube these must be such a product. Exact numbers of at least 0; each list, and all
            shares by name together, sum to exactly 1.

    Raises:
        PlanError: a share is negative, the last of a list is 0, or they do not sum to 1.

    Example:
        >>> hr.Shares(["1/4", "3/4"]).given
        (Fraction(1, 4), Fraction(3, 4))
        >>> hr.Shares({"home": ["1/4", "3/4"], "work": ["1/2", "1/2"]}).given["work"]
        (Fraction(1, 2), Fraction(1, 2))
    """

    name: ClassVar[str] = "shares"
    prior: ClassVar[Prior | None] = None
    given: tuple[Fraction, ...] | ByAxis | ByCuboid

    def __init__(
        self, given: Sequence[Exact] | Mapping[str, Sequence[Exact]] | Mapping[str, Exact]
    ) -> None:
        if not isinstance(given, Mapping):
            shares = _listed("share", as_list("shares", given, FITTING, PlanError))
            object.__setattr__(self, "given", shares)
            return
        lists = {n: list(s) for n, s in given.items() if isinstance(s, list | tuple)}
        if lists and len(lists) < len(given):
            raise PlanError("shares are lists by axis, or single numbers by cuboid, and not both")
        if lists:
            by_axis = {name: _listed(f"share of {name!r}", each) for name, each in lists.items()}
            object.__setattr__(self, "given", by_axis)
            return
        found = {n: exact(s, f"share of {n!r}", PlanError) for n, s in given.items()}  # type: ignore[arg-type]
        _check_sum("share", list(found.values()))
        object.__setattr__(self, "given", found)

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return one share or None for each of `Problem.cuboids`.

        Raises:
            PlanError: shares that do not fit the cuboids.
        """
        if problem.is_cube:
            facts, given = CubeFacts.of(problem), self.given
            if isinstance(given, tuple):
                raise PlanError(
                    "a cube takes its shares by axis: shares = {axis = [...], ...}, each axis's "
                    "total included"
                )
            by_axis = _by_axis(given)
            if by_axis is None:
                return problem.in_order(given_by_cuboid(facts, given))  # type: ignore[arg-type]
            return problem.in_order(cuboid_shares(facts, given_by_axis(facts, by_axis)))
        if problem.is_named:
            named = self.given
            if isinstance(named, tuple) or _by_axis(named) is not None:
                raise PlanError(
                    "named cuboids take their shares by name: shares = {"
                    f'{json.dumps(problem.names[0], ensure_ascii=False)} = "1/4", ...}}'
                )
            return given_by_name(problem, named)  # type: ignore[arg-type]
        return self._along_a_chain(problem)

    def _along_a_chain(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return the shares of the depths that can be measured."""
        names, given = problem.names, self.given
        if not isinstance(given, tuple):
            if _by_axis(given) is not None:
                raise PlanError('shares by axis go with the workload of a cube (cuboids = "cube")')
            unknown = [name for name in given if name not in names]
            if unknown:
                raise PlanError(
                    f"share of {unknown[0][:100]!r}: the depths that can be measured are "
                    f"{', '.join(names)}"
                )
            given = tuple(Fraction(given.get(name, 0)) for name in names)  # type: ignore[arg-type]
            _check_last("share", given)
        if len(given) != len(names):
            raise PlanError(
                f"this plan can measure {len(names)} depths ({'; '.join(names)}), so it "
                f"needs {len(names)} shares, got {len(given)}"
            )
        return tuple(share or None for share in given)


def _by_axis(given: ByAxis | ByCuboid) -> ByAxis | None:
    """Return the shares if they are lists by axis."""
    listed = {name: shares for name, shares in given.items() if isinstance(shares, tuple)}
    return listed or None


def _listed(subject: str, given: Sequence[Exact]) -> tuple[Fraction, ...]:
    """Return the shares of a list, or raise a PlanError."""
    shares = tuple(exact(s, f"{subject} {i}", PlanError) for i, s in enumerate(given, start=1))
    _check_sum(subject, shares)
    _check_last(subject, shares)
    return shares


def _check_sum(subject: str, shares: Sequence[Fraction]) -> None:
    """Raise a PlanError unless shares are at least 0 and sum to 1."""
    subject = subject.replace("share", "shares", 1)
    for i, share in enumerate(shares, start=1):
        if share < 0:
            raise PlanError(f"{subject} must not be negative, got {share} in place {i}")
    if sum(shares) != 1:
        raise PlanError(f"{subject} must sum to exactly 1, got {sum(shares)}; write thirds as 1/3")


def _check_last(subject: str, shares: Sequence[Fraction]) -> None:
    """Raise a PlanError if the last share is 0."""
    if not shares[-1]:
        raise PlanError(f"the last {subject} must be above 0: the leaves have to be measured")
