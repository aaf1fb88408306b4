"""Workloads: the set of cuboids that a plan measures.

A *cuboid* is one level of each axis. Each cuboid of the workload has a share of the budget, a noise
stream, a file and a row in the forecast of its own. Which cuboids these are is public: it follows
from the tree and the workload alone.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Protocol

from hedgerow.arrays import CuboidList, Levels, OtherCuboids
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError, PlanError, as_list, check_type, kind_of, nearest
from hedgerow.estimate.cube.shape import fineness, is_within, maximal
from hedgerow.estimate.workload.lattice import closure
from hedgerow.limits import MOST_CUBOIDS
from hedgerow.tables.tree import Tree
from hedgerow.text import Texts


class AnyWorkload(Protocol):
    """What a plan is asked to measure: any object that names cuboids of a tree.

    A plan keeps it as one of the three kinds of `Workload`, which say more.
    """

    def named(self, tree: Tree) -> Iterable[Levels]:
        """Return the cuboids to measure; the counts of the others follow from them."""


@frozen
class Chain:
    """The cuboids of the tree's own chain, depth by depth: each refines one axis of the one before.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> list(hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Chain()).cuboids)
        ['total', 'bins_4', 'bin']
    """

    name = "chain"
    noun = "a chain"  # what sentences call it
    fewer = "insert a level"  # how a user asks for less of it

    def cuboids(self, tree: Tree) -> CuboidList:
        """Return the cuboid of each depth, coarsest first."""
        return tree.chain

    def named(self, tree: Tree) -> CuboidList:
        """Return the same."""
        return tree.chain

    def described(self) -> str:
        """Return its name."""
        return self.name


@frozen
class Cube:
    """Every combination of levels of the axes. Over one axis it is the same as `Chain`.

    Example:
        >>> sex = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])
        >>> place = hr.Axis.from_frame("place", {"town": ["a", "b", "c"]}, levels=["town"])
        >>> tree = hr.Tree([place, sex])
        >>> list(hr.make_plan(tree, budget=hr.Rho(1), workload=hr.Cube()).cuboids)
        ['total', 'sex.sex', 'place.town', 'place.town × sex.sex']
    """

    name = "cube"
    noun = "a cube"
    fewer = 'use cuboids = "chain"'

    def cuboids(self, tree: Tree) -> CuboidList:
        """Return every combination of levels, ordered by how many levels they are below the total.

        Raises:
            PlanError: there are more than 4,096.
        """
        levels = tree.level_numbers
        if prod(map(len, levels)) > MOST_CUBOIDS:
            raise PlanError(
                f"a cube over these axes has {prod(map(len, levels)):,} cuboids, and more than "
                f"{MOST_CUBOIDS:,} are not measured at once: give the axes fewer levels, or use "
                f'cuboids = "chain"'
            )
        return tuple(sorted(product(*levels), key=fineness))

    def named(self, tree: Tree) -> CuboidList:
        """Return the same."""
        return self.cuboids(tree)

    def described(self) -> str:
        """Return its name."""
        return self.name


@frozen(init=False)
class Cuboids:
    """The cuboids that are named, alone or beside the chain.

    They are measured, and estimated together with the chain's where it is there too. What they have
    in common is released beside them: for ``county × sex`` and ``county × age`` the counts of
    ``county``, which both add up to. A cuboid that no other one refines is a released *table*;
    there may be several, and what is not a sum of one of them is not answered.

    Args:
        given: names of cuboids as a plan shows them: ``"county"`` over one axis,
            ``"origin.region × destination.region"`` over several (an x or * will do for the ×).
        chain: whether the cuboids of the tree's own chain are measured too.

    Raises:
        PlanError: no list of names, or no name at all.

    Example:
        >>> sex = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])
        >>> place = hr.Axis.from_frame("place", {"town": ["a", "b", "c"]}, levels=["town"])
        >>> tree = hr.Tree([place, sex])
        >>> margins = hr.Cuboids(["place.town", "sex.sex"])
        >>> hr.make_plan(tree, budget=hr.Rho(1), workload=margins).cuboids["total"]
        Unmeasured()
        >>> list(hr.make_plan(tree, budget=hr.Rho(1), workload=margins).cuboids)
        ['total', 'sex.sex', 'place.town']
    """

    name = "named"
    noun = "a workload of named cuboids"
    fewer = "name fewer cuboids"
    given: Texts
    chain: bool

    def __init__(self, given: Sequence[str], chain: bool = False) -> None:  # noqa: FBT001, FBT002
        fitting = 'a list of names, such as ["origin.region", "destination.region"]'
        names = as_list("cuboids", given, fitting, PlanError)
        for name in names:
            check_type("the name of a cuboid", name, str, "text", PlanError)
        check_type("chain", chain, bool, "true or false", PlanError)
        if not names:
            raise PlanError('name at least one cuboid, or use cuboids = "chain"')
        object.__setattr__(self, "given", tuple(names))
        object.__setattr__(self, "chain", chain)

    def cuboids(self, tree: Tree) -> CuboidList:
        """Return the named ones and all that some of them have in common, the total included.

        Raises:
            PlanError: a name that is none of the tree, or is given twice; too many.
        """
        try:
            return closure(self.named(tree))
        except EstimateError as error:
            raise PlanError(str(error)) from None

    def named(self, tree: Tree) -> CuboidList:
        """Return the cuboids that are named, and those of the chain if they are wanted too."""
        cuboids = dict.fromkeys(tree.chain if self.chain else ())
        named = dict[Levels, None]()
        for name in self.given:
            levels = _named(tree, name)
            if levels in named:
                raise PlanError(f"cuboid {tree.name_of(levels)!r} is named twice")
            named[levels] = None
        return tuple(sorted(cuboids | named, key=fineness))

    def described(self) -> list[str]:
        """Return the names."""
        return list(self.given)


def _named(tree: Tree, name: str) -> Levels:
    """Return the cuboid of a name."""
    levels = tree.named(name)
    if levels is None:
        meant = cuboid_like(tree, name)
        suggestion = "" if meant is None else f"; did you mean {tree.name_of(meant)!r}?"
        raise PlanError(
            f"no cuboid is called {name[:100]!r}; put levels together with ×, one an axis, of "
            f"{', '.join(_level_names(tree))}{suggestion}"
        )
    return levels


def _level_names(tree: Tree) -> list[str]:
    """Return the levels of all axes as names of cuboids have them."""
    return [tree.level_name(axis, level) for axis in tree.axes for level in axis.levels]


def cuboid_like(tree: Tree, name: str) -> Levels | None:
    """Return the cuboid that a wrong name may mean: levels without axes, or with a typo."""
    levels_of = _level_names(tree)
    ends = [level.rpartition(".")[2] for level in levels_of]
    words = re.split(r"\s*[×*,]\s*|\s+x\s+", name[:1000])
    meanings = [
        levels_of[ends.index(word)] if ends.count(word) == 1 else nearest(word, levels_of, 0.8)
        for word in words
    ]
    levels = tree.named(" × ".join(map(str, meanings)))
    return levels if levels and any(levels) else None


Workload = Chain | Cube | Cuboids
"""Which cuboids a plan measures, releases and forecasts, as it keeps them.

Each has the ``name`` that manifests give it, and ``cuboids(tree)``: all of them, each after those
that are coarser.
"""

WORKLOADS: dict[str, AnyWorkload] = {kind.name: kind for kind in (Chain(), Cube())}
"""By the name that a release file gives them, and a manifest if a plan keeps them as they are."""


def workload_for(tree: Tree, workload: AnyWorkload | None) -> Workload:
    """Return the workload as a plan keeps it: a chain unless given, and each set in one way.

    The cube over one axis is a chain; cuboids that make up the chain or the cube are these; those
    of any other workload, registered or not, are named as the tree does and the chain's are among
    them, so that what is the same has one hash.

    Raises:
        PlanError: it is none, or names cuboids that the tree does not have.
    """
    if workload is None or (isinstance(workload, Cube) and len(tree.axes) == 1):
        return Chain()
    if isinstance(workload, type) or not hasattr(workload, "named"):
        raise PlanError(
            f"a workload must be Chain(), Cube() or Cuboids([…]), got {kind_of(workload)}"
        )
    if isinstance(workload, Chain | Cube):
        return workload
    cuboids = [*workload.named(tree)]
    every = tree.level_numbers
    for levels in cuboids:
        fits = isinstance(levels, tuple) and len(levels) == len(every)
        if not fits or not all(k in own for own, k in zip(every, levels, strict=True)):
            raise PlanError(
                f"workload {kind_of(workload)} names {levels!r}, which is no cuboid here"
            )
    named = sorted(set(cuboids), key=fineness)
    if set(named) == set(tree.chain):
        return Chain()
    if len(named) == prod(map(len, every)):
        return Cube()
    return Cuboids([tree.name_of(levels) for levels in named])


def workload_of(described: str | Sequence[str]) -> AnyWorkload:
    """Return the workload whose ``described`` this is.

    Raises:
        KeyError: it describes none.
    """
    return WORKLOADS[described] if isinstance(described, str) else Cuboids(described)


def tables_of(tree: Tree, cuboids: Iterable[Levels]) -> CuboidList:
    """Return the cuboids that no other one refines, each the coarsest that has its cells."""
    every = tuple(cuboids)
    again = repeated(tree, every)
    return tuple(sorted(maximal(again.get(k, k) for k in maximal(every)), key=fineness))


def repeated(tree: Tree, cuboids: Sequence[Levels]) -> OtherCuboids:
    """Return the cuboids that have the cells of a coarser one, and the coarsest such one of each.

    There some axis stands at a level of only children, so measuring it would tell nothing new.
    """
    sizes = [axis.sizes for axis in tree.axes]
    alike: dict[Levels, list[Levels]] = {}  # by the sizes along each axis
    copies = {}
    for levels in cuboids:  # coarser ones come first
        key = tuple(own[k] for own, k in zip(sizes, levels, strict=True))
        others = alike.setdefault(key, [])
        coarsest = next((other for other in others if is_within(other, levels)), None)
        if coarsest is None:
            others.append(levels)
        else:
            copies[levels] = coarsest
    return copies
