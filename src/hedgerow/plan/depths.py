"""What a plan says of one depth: three types, so that nothing unmeasured passes for exact."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hedgerow.errors import PlanError, kind_of
from hedgerow.estimate.running_sums import MOST_BINS
from hedgerow.noise.mechanisms import Mechanism, check_registered
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.privacy.promise import Protection, Restriction
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True)
class Measured:
    """A depth whose counts are measured: each gets noise of ``mechanism``, drawn anew.

    Attributes:
        mechanism: the noise of one count.
        share: of the budget, above 0; relative to the other depths' (see `Plan.price_of_a_share`).
    """

    mechanism: Mechanism
    share: Fraction

    kind = "measured"


@dataclass(frozen=True, slots=True)
class Summed:
    """A depth of which weighted running sums are measured: each gets noise, drawn anew.

    Attributes:
        mechanism: the noise of one sum, in units of the sums.
        share: of the budget, above 0; relative to the other depths' (see `Plan.price_of_a_share`).
        scale: of the weights, public: a sum in records is one of these divided by it.
    """

    mechanism: Mechanism
    share: Fraction
    scale: int

    kind = "summed"


@dataclass(frozen=True, slots=True)
class Public:
    """A depth on whose counts all neighbours agree, so that they are released as they are."""

    kind = "public"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A depth without a measurement of its own: its counts follow from other depths."""

    kind = "unmeasured"


@dataclass(frozen=True, slots=True)
class Invariant:
    """Counts of one level that are public and held exactly (replace neighbours only).

    Attributes:
        axis: the axis.
        level: its level; all other axes at their root.
    """

    axis: str
    level: str


@dataclass(frozen=True, slots=True)
class Survivors:
    """Measure the children of nodes that were released as positive, depth by depth.

    Nothing depends on the number of possible cells. What survives depends on its own noise, so
    sums of survivors are biased and depths are not combined.
    """

    name = "survivors"


@dataclass(frozen=True, slots=True)
class All:
    """Measure every node of every measured depth, which combining depths needs."""

    name = "all"


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Measure weighted running sums of the bins of one numeric axis, not the bins themselves.

    For cumulative counts under Gaussian noise: see `hedgerow.estimate.running_sums`.
    """

    name = "running-sums"


DepthPlan = Measured | Summed | Public | Unmeasured
Measure = Survivors | All | RunningSums
MEASURES: dict[str, Measure] = {kind.name: kind for kind in (Survivors(), All(), RunningSums())}
"""By the name that a release file and a manifest give them."""


# What the parts of a plan must be: objects such as ``All()``, not names or classes of them.


def check_parts(tree: object, neighbours: object, mechanism: object, measure: object) -> None:
    """Refuse what is no part of a plan: ``measure="all"`` would pass for survivors.

    Raises:
        PlanError: another kind of thing; the message names one that fits.
        NoiseError: a mechanism that is not complete, or by whose name no plan could be read.
    """
    if not isinstance(tree, Tree):
        refuse_kind("a plan's tree", "Tree([axis, …])", tree)
    if not isinstance(neighbours, Neighbours):
        refuse_kind("neighbours", "AddRemove() or Replace()", neighbours)
    if isinstance(mechanism, type) and hasattr(mechanism, "draw"):
        check_registered(mechanism)
    else:
        refuse_kind("a mechanism", "the class DiscreteGaussian or DiscreteLaplace", mechanism)
    if not isinstance(measure, Measure):
        refuse_kind("measure", "All(), Survivors() or RunningSums()", measure)


def check_allocation(allocation: object) -> None:
    """Refuse a name or a class in place of an allocation.

    Raises:
        PlanError: it is one, or something else without shares.
    """
    if isinstance(allocation, type) or not hasattr(allocation, "shares"):
        refuse_kind("an allocation", "Uniform() or Optimal()", allocation)


def refuse_kind(what: str, fitting: str, given: object) -> None:
    """Say what would fit, and what was given.

    Raises:
        PlanError: always.
    """
    raise PlanError(f"{what} must be {fitting}, got {kind_of(given)}")


# What can be measured of a tree, from public facts: which depths, and by which measure.
#
# A depth is public if all neighbours agree on its counts, and then so are all coarser ones; a depth
# of single children says nothing that its parents do not. The others can be measured.

MOST_CELLS = 1 << 32
"""Cells that `All` measures at most: a noisy count takes eight bytes in memory and on disk."""


def measurable_depths(
    tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]
) -> list[int]:
    """Return the depths that are neither public nor made of single children."""
    first = public_depth(tree, neighbours, invariants) + 1
    return [t for t in range(first, tree.depth + 1) if _says_something(tree, t)]


def public_depth(tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]) -> int:
    """Return the deepest public depth; -1 if not even the total is public.

    Raises:
        PlanError: an invariant on which neighbours need not agree, or that is no depth of the tree.
    """
    deepest = 0 if neighbours.total_is_public else -1
    if invariants and not neighbours.total_is_public:
        raise PlanError(
            "invariants need replace neighbours and units with exactly as many records as "
            "contributions says: otherwise one unit changes the total, so neighbours would not "
            "agree on the invariant counts"
        )
    return max([deepest, *(_depth_of(tree, invariant) for invariant in invariants)])


def protection(tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]) -> Protection:
    """Who is protected, and what neighbours agree on: invariants, and lists that the table gave.

    Of the invariants of an axis the finest level is named: coarser counts are sums of its own.

    Raises:
        PlanError: as `public_depth`.
    """
    public_depth(tree, neighbours, invariants)
    restrictions = []
    for axis in tree.axes:
        levels = [axis.level_number(i.level) for i in invariants if i.axis == axis.name]
        exact = [axis.levels[max(levels) - 1]] if levels else []
        listed = [None] if axis.from_table else []
        restrictions += [Restriction(axis.name, what, axis.digest) for what in [*exact, *listed]]
    return Protection(neighbours, tuple(restrictions))


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


def check_running_sums(tree: Tree, mechanism: type[Mechanism], measured: Sequence[int]) -> None:
    """Refuse running sums of what is not the bins of one numeric axis under Gaussian noise.

    Args:
        tree: the domain.
        mechanism: the noise.
        measured: the depths that get a share.

    Raises:
        PlanError: more than one axis or level, too few or too many bins, another mechanism, or a
            share for the total.
    """
    rule = 'measure = "running-sums" '
    if len(tree.axes) != 1 or tree.depth != 1:
        raise PlanError(rule + "is for a table of one axis with one level, the bins")
    if not 2 <= tree.leaves <= MOST_BINS:
        raise PlanError(f'{rule}is for 2 to 2^16 bins, got {tree.leaves:,}; use measure = "all"')
    if mechanism.price.norm != 2:
        raise PlanError(rule + "goes with discrete Gaussian noise")
    if list(measured) != [1]:
        raise PlanError(
            rule + "leaves the total unmeasured, which the sums hold: use the allocation "
            '"distribution"'
        )


def _says_something(tree: Tree, depth: int) -> bool:
    """Return whether some family of a depth has a second child."""
    if depth == 0:
        return True
    axis, level = tree.steps[depth - 1]
    return bool((np.diff(tree.axes[axis].child_start[level - 1]) > 1).any())


def _depth_of(tree: Tree, invariant: Invariant) -> int:
    """Return the depth whose counts an invariant publishes."""
    numbers = {axis.name: i for i, axis in enumerate(tree.axes)}
    if invariant.axis not in numbers:
        raise PlanError(f"invariant: no axis {invariant.axis!r}; the axes are {', '.join(numbers)}")
    wanted = [0] * len(tree.axes)
    axis = numbers[invariant.axis]
    wanted[axis] = tree.axes[axis].level_number(invariant.level)
    for t in range(tree.depth + 1):
        if tree.cuboid(t) == tuple(wanted):
            return t
    raise PlanError(
        f"invariant {invariant.axis}.{invariant.level} is not a depth of this tree; put "
        f"its axis down to that level first in refine "
        f"(the depths are {', '.join(tree.cuboid_name(t) for t in range(tree.depth + 1))})"
    )
