"""A plan: what will be measured with which noise, and what that promises; from public facts."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.noise.mechanisms import DiscreteGaussian, Mechanism
from hedgerow.plan.allocation import Allocation, Uniform
from hedgerow.plan.depths import DepthPlan, Invariant, Measured, Public, Unmeasured
from hedgerow.plan.describe import describe_depth, describe_tree, plan_table
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.privacy.profile import Profile
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs to know but the table. Make one with `make_plan`.

    Attributes:
        tree: the public domain and the order of refinement.
        neighbours: the unit of privacy.
        budget: what may be spent.
        allocation: the name of the rule that shared it out.
        depths: for each depth 0..T `Measured`, `Public` or `Unmeasured`.
        invariants: what is public by declaration.
        guarantee: the composition of all measurements.
    """

    tree: Tree
    neighbours: Neighbours
    budget: Budget
    allocation: str
    depths: tuple[DepthPlan, ...]
    invariants: tuple[Invariant, ...]
    guarantee: Profile

    @property
    def public_depth(self) -> int:
        """The deepest public depth; -1 if not even the total is public."""
        return sum(isinstance(depth, Public) for depth in self.depths) - 1

    @property
    def restriction(self) -> str | None:
        """How invariants restrict the neighbours that the guarantee speaks of, in a sentence."""
        if not self.invariants:
            return None
        names = " and ".join(f"{i.axis}.{i.level}" for i in self.invariants)
        return (
            f"The guarantee holds between tables that agree on the counts of {names}, which are "
            f"published exactly; it does not hide anything that these counts give away."
        )

    def __str__(self) -> str:
        return plan_table(self.tree, self.depths)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan in canonical JSON, to sign off."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON: public facts only, exact numbers as text."""
        return {
            "tree": describe_tree(self.tree),
            "neighbours": {
                "relation": self.neighbours.name,
                "contributions": self.neighbours.contributions,
                "total_is_public": self.neighbours.total_is_public,
            },
            "budget": {
                "kind": type(self.budget).__name__,
                **{name: str(getattr(self.budget, name)) for name in self.budget.__slots__},
            },
            "allocation": self.allocation,
            "invariants": [f"{i.axis}.{i.level}" for i in self.invariants],
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
        invariants: levels whose counts are public (`Replace` only).

    Raises:
        PlanError: an invariant that cannot be, or a tree with nothing to measure.
        BudgetError: a budget that the mechanism cannot spend.
    """
    neighbours = AddRemove() if neighbours is None else neighbours
    allocation = Uniform() if allocation is None else allocation
    public_depth = _public_depth(tree, neighbours, invariants)
    measured = [t for t in range(public_depth + 1, tree.depth + 1) if _says_something(tree, t)]
    if not measured:
        raise PlanError(
            "this plan measures nothing: every depth is public or has single children only"
        )
    shares = allocation.shares([tree.cuboid_name(t) for t in measured])
    shifts = [neighbours.shifts(t) for t in measured]
    guarantee = calibrate(mechanism, budget, shares, shifts)
    depths: list[DepthPlan] = [Public()] * (public_depth + 1)
    depths += [Unmeasured()] * (tree.depth - public_depth)
    for t, use, share in zip(measured, guarantee.uses, shares, strict=True):
        depths[t] = Measured(use.mechanism, share)
    return Plan(
        tree, neighbours, budget, allocation.name, tuple(depths), tuple(invariants), guarantee
    )


def _public_depth(tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]) -> int:
    """The deepest public depth, -1 if the total is not public."""
    deepest = 0 if neighbours.total_is_public else -1
    if invariants and neighbours.name != "replace":
        raise PlanError(
            "invariants need replace neighbours: with add-remove, adding one record changes the "
            "invariant counts, so no two neighbours would agree on them"
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
