"""A plan: what will be measured with which noise, and what that promises; from public facts."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation import Allocation, Uniform
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.privacy.profile import Profile
from hedgerow.tables.tree import Tree

Noise = DiscreteGaussian | DiscreteLaplace


@dataclass(frozen=True, slots=True)
class Measured:
    """A depth whose counts are measured: each gets noise of ``mechanism``, drawn anew.

    Attributes:
        mechanism: the noise of one count.
        share: of the budget, above 0.
    """

    mechanism: Noise
    share: Fraction

    kind = "measured"


@dataclass(frozen=True, slots=True)
class Public:
    """A depth on whose counts all neighbours agree, so that they are released as they are."""

    kind = "public"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A depth without a measurement of its own: its counts follow from other depths."""

    kind = "unmeasured"


DepthPlan = Measured | Public | Unmeasured


@dataclass(frozen=True, slots=True)
class Invariant:
    """Counts of one level that are public and held exactly (replace neighbours only).

    Attributes:
        axis: the axis.
        level: its level; all other axes at their root.
    """

    axis: str
    level: str


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
            "depths": [_describe_depth(self, t) for t in range(self.tree.depth + 1)],
            "guarantee": self.guarantee.to_dict(),
        }


def make_plan(
    tree: Tree,
    *,
    budget: Budget,
    neighbours: Neighbours | None = None,
    mechanism: type[Noise] = DiscreteGaussian,
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


def describe_tree(tree: Tree) -> dict[str, Any]:
    """Axes and order of refinement as JSON; each axis's codes by their digest."""
    return {
        "axes": [
            {
                "name": axis.name,
                "levels": list(axis.levels),
                "columns": list(axis.columns),
                "sizes": [axis.size(k) for k in range(1, axis.depth + 1)],
                "not_stated": axis.not_stated,
                "sha256": axis.digest,
            }
            for axis in tree.axes
        ],
        "refine": [f"{tree.axes[a].name}.{tree.axes[a].levels[k - 1]}" for a, k in tree.steps],
    }


def _describe_depth(plan: Plan, depth: int) -> dict[str, Any]:
    what = plan.depths[depth]
    described: dict[str, Any] = {
        "depth": depth,
        "cuboid": plan.tree.cuboid_name(depth),
        "cells": plan.tree.nodes(depth),
        "kind": what.kind,
    }
    if isinstance(what, Measured):
        described |= {
            "share": str(what.share),
            "mechanism": what.mechanism.name,
            "parameter": str(what.mechanism.parameter),
        }
    return described
