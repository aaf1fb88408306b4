"""Workloads: the set of cuboids that a plan measures.

A *cuboid* is one level of each axis. Each cuboid of the workload has a share of the budget, a noise
stream, a file and a row in the forecast of its own. Which cuboids these are is public: it follows
from the tree and the workload alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar, Protocol

from hedgerow.errors import PlanError
from hedgerow.tables.tree import Levels, Tree

MOST_CUBOIDS = 4096
"""Cuboids of a cube at most: each is a file, and a use in the accountant's composition."""


class Workload(Protocol):
    """Which cuboids of a tree a plan measures, releases and forecasts."""

    @property
    def name(self) -> str:
        """The name in a release file and a manifest."""

    def cuboids(self, tree: Tree) -> tuple[Levels, ...]:
        """Return the cuboids, each after all of them that are coarser; the leaves are the last.

        Raises:
            PlanError: the tree has none that fit.
        """


@dataclass(frozen=True, slots=True)
class Chain:
    """The cuboids of the tree's own chain, depth by depth: each refines one axis of the one before.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> list(hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Chain()).cuboids)
        ['total', 'bins_4', 'bin']
    """

    name: ClassVar[str] = "chain"

    def cuboids(self, tree: Tree) -> tuple[Levels, ...]:
        """Return the cuboid of each depth, coarsest first."""
        return tuple(tree.cuboid(depth) for depth in range(tree.depth + 1))


@dataclass(frozen=True, slots=True)
class Cube:
    """Every combination of levels of the axes. Over one axis it is the same as `Chain`.

    Example:
        >>> sex = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])
        >>> place = hr.Axis.from_frame("place", {"town": ["a", "b", "c"]}, levels=["town"])
        >>> tree = hr.Tree([place, sex])
        >>> list(hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Cube()).cuboids)
        ['total', 'sex.sex', 'place.town', 'place.town × sex.sex']
    """

    name: ClassVar[str] = "cube"

    def cuboids(self, tree: Tree) -> tuple[Levels, ...]:
        """Return every combination of levels, ordered by how many levels they are below the total.

        Raises:
            PlanError: there are more than 4,096.
        """
        levels = [range(axis.depth + 1) for axis in tree.axes]
        if prod(map(len, levels)) > MOST_CUBOIDS:
            raise PlanError(
                f"a cube over these axes has {prod(map(len, levels)):,} cuboids, and more than "
                f"{MOST_CUBOIDS:,} are not measured at once: give the axes fewer levels, or use "
                f'cuboids = "chain"'
            )
        return tuple(sorted(product(*levels), key=lambda each: (sum(each), each)))


WORKLOADS: dict[str, Workload] = {kind.name: kind for kind in (Chain(), Cube())}
"""By the name that a release file and a manifest give them."""


def workload_for(tree: Tree, workload: Workload | None) -> Workload:
    """Return the workload, a chain unless given; the cube over one axis is a chain."""
    if workload is None or (isinstance(workload, Cube) and len(tree.axes) == 1):
        return Chain()
    return workload


def is_within(levels: Levels, other: Levels) -> bool:
    """Return whether a cuboid is another one or one of its coarsenings."""
    return all(a <= b for a, b in zip(levels, other, strict=True))


def repeated(tree: Tree, cuboids: Sequence[Levels]) -> dict[Levels, Levels]:
    """Return the cuboids that have the cells of a coarser one, and the coarsest such one of each.

    There some axis stands at a level of only children, so measuring it would tell nothing new.
    """
    alike: dict[int, list[Levels]] = {}
    found = {}
    for levels in cuboids:  # coarser ones come first
        others = alike.setdefault(tree.cells(levels), [])
        coarsest = next((other for other in others if is_within(other, levels)), None)
        if coarsest is None:
            others.append(levels)
        else:
            found[levels] = coarsest
    return found
