"""What can be measured of a tree, from public facts: which depths, and by which measure.

A depth is public if all neighbours agree on its counts, and then so are all coarser ones; a depth
of single children says nothing that its parents do not. The others can be measured.
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.estimate.running_sums import MOST_BINS
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.depths import All, Invariant, Measure
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.privacy.promise import Protection, Restriction
from hedgerow.tables.tree import Tree

MOST_CELLS = 1 << 32
"""Cells that `All` measures at most: a noisy count takes eight bytes in memory and on disk."""


def measurable_depths(
    tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]
) -> list[int]:
    """The depths that are neither public nor made of single children."""
    first = public_depth(tree, neighbours, invariants) + 1
    return [t for t in range(first, tree.depth + 1) if _says_something(tree, t)]


def public_depth(tree: Tree, neighbours: Neighbours, invariants: Sequence[Invariant]) -> int:
    """The deepest public depth; -1 if not even the total is public.

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
    """Whether some family of a depth has a second child."""
    if depth == 0:
        return True
    axis, level = tree.steps[depth - 1]
    return bool((np.diff(tree.axes[axis].child_start[level - 1]) > 1).any())


def _depth_of(tree: Tree, invariant: Invariant) -> int:
    """The depth whose counts an invariant publishes."""
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
