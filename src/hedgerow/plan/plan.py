"""A plan: what will be measured with which noise, and what that promises; from public facts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.estimate.running_sums import MOST_BINS, Strategy
from hedgerow.noise.mechanisms import MECHANISMS, DiscreteGaussian, Mechanism
from hedgerow.noise.numerals import exact
from hedgerow.plan.allocation import Allocation, Problem, Uniform
from hedgerow.plan.depths import (
    MEASURES,
    All,
    DepthPlan,
    Invariant,
    Measure,
    Measured,
    Public,
    RunningSums,
    Summed,
    Survivors,
    Unmeasured,
)
from hedgerow.plan.describe import describe_depth, describe_tree, plan_table
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Change, Neighbours, Replace
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.zcdp import rho_within
from hedgerow.tables.tree import Tree

MOST_CELLS = 1 << 32
"""Cells that `All` measures at most: a noisy count takes eight bytes in memory and on disk."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs to know but the table. Make one with `make_plan`.

    Attributes:
        tree: the public domain and the order of refinement.
        neighbours: the unit of privacy.
        budget: what may be spent.
        mechanism: the noise.
        allocation: the name of the rule that shared the budget out.
        shares: for each depth 0..T its share of the budget, None where it is not measured.
        invariants: what is public by declaration.
        measure: all nodes of a measured depth, or those below survivors alone.
        prior: the public table that the allocation rests on, if any; no part of what is signed.
        base: of a plan that was read: the 1/(2ρ) that its (ε, δ) budget was calibrated to, which is
            verified and not sought again.

    Raises:
        PlanError: an invariant that cannot be, a share for a depth that is public or made of
            single children, none for the deepest of the others, or more cells to measure than
            2³².
        BudgetError: a budget that the mechanism cannot spend, or shares that are no shares.
    """

    tree: Tree
    neighbours: Neighbours
    budget: Budget
    mechanism: type[Mechanism]
    allocation: str
    shares: tuple[Fraction | None, ...]
    invariants: tuple[Invariant, ...]
    measure: Measure
    base: Fraction | None = None
    prior: Prior | None = None

    def __post_init__(self) -> None:
        possible = measurable_depths(self.tree, self.neighbours, self.invariants)
        if not possible:
            raise PlanError(
                "this plan measures nothing: every depth is public or has single children only"
            )
        given = [t for t, share in enumerate(self.shares) if share is not None]
        fits = len(self.shares) == self.tree.depth + 1 and set(given) <= set(possible)
        if not fits or possible[-1] not in given:
            raise PlanError(
                f"shares can be given for the depths {possible} and must be for the last of them, "
                f"got shares for {given}"
            )
        check_size(self.tree, self.measure)
        if isinstance(self.measure, RunningSums):
            self._check_sums(given)
        self.guarantee  # noqa: B018 - computed here, so that an invalid plan cannot exist

    @cached_property
    def public_depth(self) -> int:
        """The deepest public depth; -1 if not even the total is public."""
        return _public_depth(self.tree, self.neighbours, self.invariants)

    @cached_property
    def guarantee(self) -> Profile:
        """The composition of all measurements, coarsest first."""
        measured = [t for t, share in enumerate(self.shares) if share is not None]
        shares = [share for share in self.shares if share is not None]
        shifts = [self._change(t) for t in measured]
        worst = self.neighbours.is_worst and not isinstance(self.measure, RunningSums)
        return calibrate(
            self.mechanism, self.budget, shares, shifts, is_worst=worst, base=self.base
        )

    @property
    def strategy(self) -> Strategy:
        """The weights of the running sums, where these are measured."""
        return Strategy.of(self.tree.nodes(self.tree.depth))

    def _change(self, depth: int) -> Change:
        """What one unit changes of the measurements of a depth."""
        if not isinstance(self.measure, RunningSums):
            return self.neighbours.shifts(depth)
        columns = self.strategy
        return self.neighbours.norm_of_columns(columns.column_squared, columns.distance_squared)

    def _check_sums(self, given: list[int]) -> None:
        rule = 'measure = "running-sums" '
        if len(self.tree.axes) != 1 or self.tree.depth != 1:
            raise PlanError(rule + "is for a table of one axis with one level, the bins")
        if not 2 <= self.tree.leaves <= MOST_BINS:
            raise PlanError(
                f'{rule}is for 2 to 2^16 bins, got {self.tree.leaves:,}; use measure = "all"'
            )
        if self.mechanism is not DiscreteGaussian:
            raise PlanError(rule + "goes with discrete Gaussian noise")
        if given != [1]:
            raise PlanError(
                rule + "leaves the total unmeasured, which the sums hold: use the allocation "
                '"distribution"'
            )

    @property
    def deltas(self) -> list[Fraction]:
        """The δ at which the price is shown: the budget's own, and usual ones."""
        own = {self.budget.delta} if isinstance(self.budget, EpsilonDelta) else set()
        return sorted(own | {Fraction(1, 10**k) for k in (6, 8, 10)}, reverse=True)

    @cached_property
    def saved(self) -> Fraction | None:
        """The share of the noise variance that the loose conversion would have added in vain."""
        guarantee = self.guarantee
        if not isinstance(self.budget, EpsilonDelta) or guarantee.rho is None:
            return None
        if not guarantee.is_worst:
            return None
        return 1 - rho_within(self.budget.epsilon, self.budget.delta) / guarantee.rho

    @cached_property
    def depths(self) -> tuple[DepthPlan, ...]:
        """For each depth 0..T `Measured`, `Public` or `Unmeasured`."""
        uses = iter(self.guarantee.uses)
        return tuple(
            Public()
            if t <= self.public_depth
            else Unmeasured()
            if share is None
            else Summed(next(uses).noise, share, self.strategy.scale)
            if isinstance(self.measure, RunningSums)
            else Measured(next(uses).noise, share)
            for t, share in enumerate(self.shares)
        )

    @property
    def restriction(self) -> str | None:
        """What the guarantee does not hide, where something is public by declaration."""
        told = []
        if self.invariants:
            names = " and ".join(f"{i.axis}.{i.level}" for i in self.invariants)
            told.append(
                f"The guarantee holds between tables that agree on the counts of {names}, which "
                f"are published exactly; it does not hide anything that these counts give away."
            )
        lists = [axis.name for axis in self.tree.axes if axis.from_table]
        if lists:
            told.append(
                f"The list of areas of {' and '.join(lists)} was taken from the table itself and "
                f"declared public; the guarantee does not hide which codes the table holds."
            )
        return " ".join(told) or None

    def __repr__(self) -> str:
        depths = ", ".join(self.tree.cuboid_name(t) for t in range(self.tree.depth + 1))
        satisfied = self.guarantee.statement(who="satisfies").removesuffix(".")
        return f"Plan({depths}; {satisfied}; print() shows its table)"

    def __str__(self) -> str:
        return plan_table(self.tree, self.depths)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan in canonical JSON, to sign off."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON: public facts only, exact numbers as text; see `read_plan`."""
        return {
            "tree": describe_tree(self.tree),
            "neighbours": {
                "relation": self.neighbours.name,
                "contributions": self.neighbours.contributions,
                "unit": self.neighbours.unit,
                "total_is_public": self.neighbours.total_is_public,
            },
            "budget": {
                "kind": type(self.budget).__name__,
                **{name: str(getattr(self.budget, name)) for name in self.budget.__slots__},
            },
            "mechanism": self.mechanism.name,
            "allocation": self.allocation,
            "measure": self.measure.name,
            "invariants": [{"axis": i.axis, "level": i.level} for i in self.invariants],
            "depths": [describe_depth(self.tree, t, what) for t, what in enumerate(self.depths)],
            "guarantee": self.guarantee.to_dict(),
        }


def make_plan(
    tree: Tree,
    *,
    budget: Budget,
    neighbours: Neighbours | None = None,
    mechanism: type[Mechanism] = DiscreteGaussian,
    allocation: Allocation | None = None,
    measure: Measure | None = None,
    invariants: Sequence[Invariant] = (),
) -> Plan:
    """The plan of a release, from public facts alone.

    The total is public where all neighbours agree on it, and measured otherwise. An invariant makes
    its depth and all coarser ones public. A depth at which no family has a second child says
    nothing that its parents do not, so it is left unmeasured and costs nothing.

    Args:
        tree: the public domain.
        budget: `Rho` or `EpsilonDelta` for the discrete Gaussian, `Epsilon` for discrete Laplace.
        neighbours: the unit of privacy; `AddRemove` with one contribution unless given.
        mechanism: the noise.
        allocation: how the measured depths share the budget; equally unless given.
        measure: `Survivors` unless given; `All` lets estimators combine depths.
        invariants: levels whose counts are public (`Replace` with exact contributions only).

    Raises:
        PlanError: an invariant that cannot be, or a tree with nothing to measure.
        BudgetError: a budget that the mechanism cannot spend.
    """
    neighbours = AddRemove() if neighbours is None else neighbours
    allocation = Uniform() if allocation is None else allocation
    measure = Survivors() if measure is None else measure
    depths = tuple(measurable_depths(tree, neighbours, invariants))
    check_size(tree, measure)
    problem = Problem(tree, neighbours, mechanism, budget, measure, depths)
    shares = dict(zip(depths, allocation.shares(problem) if depths else (), strict=True))
    every = tuple(shares.get(t) for t in range(tree.depth + 1))
    name, invariants = allocation.name, tuple(invariants)
    return Plan(
        tree,
        neighbours,
        budget,
        mechanism,
        name,
        every,
        invariants,
        measure,
        prior=allocation.prior,
    )


def check_size(tree: Tree, measure: Measure) -> None:
    """Refuse to measure all nodes of a tree that has too many.

    Raises:
        PlanError: more than 2³² leaves.
    """
    if isinstance(measure, All) and tree.leaves > MOST_CELLS:
        raise PlanError(
            f"measuring all nodes would draw noise for {tree.leaves:,} leaves, more than "
            f'2**32; measure survivors alone (measure = "survivors")'
        )


def measurable_depths(
    tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]
) -> list[int]:
    """The depths that are neither public nor made of single children."""
    first = _public_depth(tree, neighbours, invariants) + 1
    return [t for t in range(first, tree.depth + 1) if _says_something(tree, t)]


def read_plan(tree: Tree, described: Mapping[str, Any]) -> Plan:
    """The plan that `Plan.to_dict` describes, over a tree that must be its own.

    Everything that follows from something else (noise, guarantee) is computed again, so a
    description that contradicts itself does not come back as it was. Of noise that was calibrated
    to an (ε, δ) budget it is verified that it keeps it.

    Raises:
        PlanError, BudgetError: no plan can be made of it.
        KeyError, TypeError: it is no description of a plan.
    """
    who, budget = described["neighbours"], described["budget"]
    options: dict[str, Any] = {"contributions": who["contributions"], "unit": who["unit"]}
    if who["relation"] == Replace().name:
        options["exactly"] = who["total_is_public"]
    kind = {kind.__name__: kind for kind in (Rho, EpsilonDelta, Epsilon)}[budget["kind"]]
    return Plan(
        tree,
        (Replace if "exactly" in options else AddRemove)(**options),
        kind(*(budget[name] for name in kind.__slots__)),
        {kind.name: kind for kind in MECHANISMS}[described["mechanism"]],
        described["allocation"],
        tuple(
            exact(t["share"], "share", PlanError) if "share" in t else None
            for t in described["depths"]
        ),
        tuple(Invariant(i["axis"], i["level"]) for i in described["invariants"]),
        MEASURES[described["measure"]],
        1 / (2 * exact(described["guarantee"]["rho"], "rho", PlanError))
        if kind is EpsilonDelta
        else None,
    )


def _public_depth(tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]) -> int:
    """The deepest public depth, -1 if the total is not public."""
    deepest = 0 if neighbours.total_is_public else -1
    if invariants and not neighbours.total_is_public:
        raise PlanError(
            "invariants need replace neighbours and units with exactly as many records as "
            "contributions says: otherwise one unit changes the total, so neighbours would not "
            "agree on the invariant counts"
        )
    for invariant in invariants:
        numbers = {axis.name: i for i, axis in enumerate(tree.axes)}
        if invariant.axis not in numbers:
            raise PlanError(
                f"invariant: no axis {invariant.axis!r}; the axes are {', '.join(numbers)}"
            )
        wanted = [0] * len(tree.axes)
        axis = numbers[invariant.axis]
        wanted[axis] = tree.axes[axis].level_number(invariant.level)
        found = [t for t in range(tree.depth + 1) if tree.cuboid(t) == tuple(wanted)]
        if not found:
            raise PlanError(
                f"invariant {invariant.axis}.{invariant.level} is not a depth of this tree; put "
                f"its axis down to that level first in refine "
                f"(the depths are {', '.join(tree.cuboid_name(t) for t in range(tree.depth + 1))})"
            )
        deepest = max(deepest, found[0])
    return deepest


def _says_something(tree: Tree, depth: int) -> bool:
    """Whether some family of a depth has a second child."""
    if depth == 0:
        return True
    axis, level = tree.steps[depth - 1]
    return bool((np.diff(tree.axes[axis].child_start[level - 1]) > 1).any())
