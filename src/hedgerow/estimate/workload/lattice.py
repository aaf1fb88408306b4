"""Which cuboids a workload's counts are settled at, from coarse to fine; which sums they keep; how.

*Elements.* A workload's cuboids are completed by their common coarsenings (componentwise minimum).
Every element but the total lies below its *lower covers*, the finest of the elements that it
refines. Where the componentwise maximum of two covers of c is not c itself, it becomes an element
too, until there is no such pair. No other maxima do: one that is not measured would hold the cells
below it to sums that are known worse than by these cells.

*Groups.* Let c have the lower covers b_1 … b_r, with m = min b_i. For i ≠ j the maximum of b_i and
b_j is c. So on every axis at most one cover is below c, and where m is, exactly one, at m's level:
the axes on which c and m differ fall into *groups*, one a cover. (So the minima of subsets of the
covers are distinct, and elements.) On the other axes, the *batch*, all agree.

With one cover c is a family below each of its cells. With two, the cells of c below one cell of
each, m's cell above both, are one full block: nodes of group 1 times nodes of group 2, whose row
and column sums are settled and have one total, as both covers keep m's. Such a block is always
feasible. With more covers, at most two keep their sums exactly, since three need not admit a table.

*Which two* is found by `hedgerow.estimate.workload.kept_sums`. What the tables keep, through what
they keep, are their sums; the other elements are targets alone, and in the end summed up from them.

*Settling.* Estimates are unbiased, but negative and fractional; to cut them off at 0 and sum them
up loses what the margins know. So elements are settled in the order of refinement. The total is
rounded; families are projected as those of a tree are; blocks are independent of each other, and a
margin of 0 leaves its cells out (`hedgerow.estimate.cube.blocks`, `hedgerow.estimate.cube.targets`
for the sums that are targets). In the end every element is the sum of every table that refines it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations

import numpy as np

from hedgerow.arrays import ByCuboid, CuboidList, Float64, Int64, IntTables, Levels
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.blocks import Blocks
from hedgerow.estimate.cube.shape import (
    CubeShape,
    fineness,
    is_within,
    is_within_any,
    join,
    maximal,
    meet,
    summed,
)
from hedgerow.estimate.cube.targets import settle_with_targets
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.workload.fold import AxisWeights, Fold
from hedgerow.estimate.workload.kept_sums import agreeing_covers, kept_covers
from hedgerow.limits import LARGEST_REAL_COUNT, MOST_CUBOIDS_SETTLED, MOST_ELEMENTS, MOST_SEARCHED


def closure(cuboids: Iterable[Levels]) -> CuboidList:
    """Return the smallest set with these cuboids and the total that has all common coarsenings.

    The common coarsening of two cuboids is their componentwise minimum.

    Returns:
        The cuboids by the sum of their levels, then by their levels: coarse before fine.

    Raises:
        EstimateError: no cuboid, cuboids of different axes, or a closure of more than
            `MOST_CUBOIDS_SETTLED`.
    """
    named = _checked(cuboids)
    closed: set[Levels] = {(0,) * len(named[0])}
    for cuboid in named:
        closed |= {cuboid} | {meet(cuboid, other) for other in closed}
        if len(closed) > MOST_CUBOIDS_SETTLED:
            raise EstimateError(
                f"the cuboids have more than {MOST_CUBOIDS_SETTLED} common "
                "coarsenings; name fewer cuboids"
            )
    return tuple(sorted(closed, key=fineness))


@frozen(eq=False)
class Lattice:
    """What is settled, and below what; `Lattice.of` makes it. The head of this module explains it.

    Attributes:
        tables: the elements that no other one refines, sorted.
        elements: all of them, each after all that are coarser.
        covers: of each element the lower covers, by the first axis of their groups.
        exact: of each element the covers whose sums it keeps: two at most, or all where the counts
            are public. Where there are two of more, the other covers are targets; where one of
            more, the others play no part.
        kept: the elements whose settled counts are the tables' sums.
    """

    tables: CuboidList
    elements: CuboidList
    covers: Mapping[Levels, CuboidList]
    exact: Mapping[Levels, CuboidList]
    kept: frozenset[Levels]

    @classmethod
    def of(
        cls,
        cuboids: Iterable[Levels],
        tables: Iterable[Levels],
        *,
        public: Levels | None = None,
    ) -> "Lattice":
        """Return the lattice of a workload.

        Args:
            cuboids: its cuboids.
            tables: those of which every cuboid is a coarsening.
            public: a cuboid whose counts, and so those of its coarsenings, are given: tables keep
                its sums as far as they have them, and its coarsenings keep all of theirs.

        Raises:
            KeptSumsError: a cuboid would have to keep more sums than it can.
            EstimateError: cuboids of different axes or in no table, or too many.
        """
        tops = maximal(_checked(tables))
        public_tops = [] if public is None else [public]
        named = _checked([*cuboids, *tops, *public_tops])
        if outside := [c for c in named if c not in public_tops and not is_within_any(c, tops)]:
            raise EstimateError(f"cuboid {outside[0]} is a coarsening of no table")
        covers = _needed({meet(c, table) for table in tops for c in named}, tops)
        elements = tuple(sorted(covers, key=fineness))
        wanted = {t: {meet(t, c) for c in (*tops, *public_tops)} for t in tops}
        given = frozenset(c for c in elements if is_within(c, public))
        exact = kept_covers(elements, covers, wanted, given)
        kept = frozenset(exact)
        for element in elements:
            if element not in exact:
                exact[element] = agreeing_covers(covers[element], exact)
        return cls(tops, elements, covers, exact, kept)


def _checked(cuboids: Iterable[Levels]) -> list[Levels]:
    """Return the cuboids once each and sorted; raise unless they are some, of the same axes."""
    distinct = sorted(set(cuboids))
    if not distinct or len({len(cuboid) for cuboid in distinct}) > 1:
        raise EstimateError("a closure needs at least one cuboid, and all must have the same axes")
    return distinct


def _too_many() -> EstimateError:
    return EstimateError(
        f"the cuboids, their common coarsenings and refinements are more than {MOST_ELEMENTS}; "
        "name fewer cuboids"
    )


def _needed(inside: set[Levels], tops: Sequence[Levels]) -> dict[Levels, CuboidList]:
    """Return the elements with their lower covers.

    Args:
        inside: what cuboids have in common with tables, the tables among it.
        tops: the tables.
    """
    steps = {table: _steps([c for c in inside if is_within(c, table)]) for table in tops}
    total = (0,) * len(tops[0])
    table_of = dict[Levels, Levels]()
    for table in tops:
        table_of |= dict.fromkeys(_joins(steps[table], total), table)
        if len(table_of) > MOST_ELEMENTS:
            raise _too_many()
    elements = _with_minima({total}, inside)
    while len(elements) < min(len(table_of), MOST_SEARCHED):
        covers = {c: maximal(e for e in elements if e != c and is_within(e, c)) for c in elements}
        apart = {
            join(*two)
            for c, below in covers.items()
            for two in combinations(below, 2)
            if join(*two) != c
        }
        if not apart:
            return covers
        elements = _with_minima(elements, apart)
    return {element: _covers(element, steps[table]) for element, table in table_of.items()}


def _with_minima(elements: set[Levels], more: Iterable[Levels]) -> set[Levels]:
    """Return the closure under minima of a closed set and more cuboids."""
    closed = set(elements)
    for cuboid in more:
        closed |= {cuboid} | {meet(cuboid, other) for other in closed}
    return closed


def _steps(inside: Sequence[Levels]) -> list[Levels]:
    """Return for each level that cuboids have, the least of their lattice that has it or a finer.

    Every element is a maximum of such ones, and all maxima of them are elements.
    """
    steps = set()
    for axis in range(len(inside[0])):
        for level in {c[axis] for c in inside if c[axis]}:
            steps.add(reduce(meet, [c for c in inside if c[axis] >= level]))
    return sorted(steps)


def _joins(steps: Sequence[Levels], total: Levels) -> set[Levels]:
    """Return all maxima of some cuboids, the total of none."""
    maxima = {total}
    for step in steps:
        maxima |= {join(step, other) for other in maxima}
        if len(maxima) > MOST_ELEMENTS:
            raise _too_many()
    return maxima


def _covers(cuboid: Levels, steps: Sequence[Levels]) -> CuboidList:
    """Return the lower covers of an element.

    What is coarser along an axis has one finest element, the maximum of all such ones; every cover
    is that of some axis.
    """
    total = (0,) * len(cuboid)
    inside = [step for step in steps if is_within(step, cuboid)]
    finest = {
        reduce(join, (step for step in inside if step[axis] < level), total)
        for axis, level in enumerate(cuboid)
        if level
    }
    return maximal(finest)  # sorted, which is by the first axis of their groups


def settle(
    shape: CubeShape,
    lattice: Lattice,
    estimates: ByCuboid,
    exact: IntTables | None = None,
    weights: AxisWeights | None = None,
) -> IntTables:
    """Return whole counts, none negative, each element the sum of every table that refines it.

    Args:
        shape: how the levels nest.
        lattice: what is settled.
        estimates: of each element whose counts are not known, float64 (cells along each axis),
            records: unbiased.
        exact: true counts of cuboids; those of their coarsenings are their sums.
        weights: the factors of the variances of estimates; ones unless given.

    Returns:
        For every element int64 (cells along each axis), records.

    Raises:
        EstimateError: estimates are missing or of another shape; counts are known of a cuboid whose
            sums the lattice does not keep.
    """
    counts = settle_in_order(shape, lattice, estimates, exact, weights)
    for element in reversed(lattice.elements):
        if element not in lattice.kept:
            finer = [c for c, covers in lattice.covers.items() if element in covers]
            least = min(finer, key=lambda c: (shape.cells(c), c))
            counts[element] = summed(shape, counts[least], least, element)
    return counts


def settle_in_order(
    shape: CubeShape,
    lattice: Lattice,
    estimates: ByCuboid,
    exact: IntTables | None = None,
    weights: AxisWeights | None = None,
) -> IntTables:
    """Return the counts as they are settled, targets before they are summed up: see `settle`."""
    counts: IntTables = {}
    for element in lattice.elements:
        exact_cuboid = next((c for c in exact or () if is_within(element, c)), None)
        if exact_cuboid is None:
            table = shape.checked(element, estimates.get(element))
            counts[element] = _settled(shape, lattice, element, table, counts, weights)
        elif element in lattice.kept:
            counts[element] = summed(shape, (exact or {})[exact_cuboid], exact_cuboid, element)
        else:
            raise EstimateError(
                f"true counts of cuboid {element} are known, but tables do not keep its sums"
            )
    return counts


def _settled(
    shape: CubeShape,
    lattice: Lattice,
    cuboid: Levels,
    table: Float64,
    coarse: IntTables,
    of_axis: AxisWeights | None,
) -> Int64:
    """Return the counts of an element, by how many covers it has."""
    kept = lattice.exact[cuboid]
    every = lattice.covers[cuboid]
    if not every:
        value = min(max(0, round(float(table.item()))), LARGEST_REAL_COUNT)
        return np.full(table.shape, value, dtype=np.int64)
    targets = tuple(c for c in every if c not in kept) if len(kept) == 2 else ()
    fold = Fold(shape, cuboid, (*kept, *targets))
    upward = fold.fold(table)
    weights = fold.weights(of_axis)
    starts = fold.starts
    sums = [fold.fold(coarse[cover], i) for i, cover in enumerate(fold.covers)]
    if targets:
        margins = dict(enumerate(sums))
        counts = settle_with_targets(upward, weights, margins, dict(enumerate(starts)))
    elif len(sums) == 2:
        pair = (weights[0], weights[1])
        below = (starts[0], starts[1])
        counts = Blocks.of_cuboid(pair, below).settle(upward, (sums[1], sums[0]))
    else:
        counts = Euclidean().project(upward, starts[0], sums[0], weights[0])
    return fold.unfold(counts)
