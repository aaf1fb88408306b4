"""Ratios and differences of sums: shares of a parent or of a category, rates, one area and another.

*Two sums over nodes of one axis*, by the same cells of the others, have estimates from the same
noisy counts, and so a covariance, which follows from variances of sums over areas. With A' what the
first has alone, and B' what the second has alone,

    Var(A - B) = Var(A' - B') = 2 Var(A') + 2 Var(B') - Var(A' and B' together),
    Cov(A, B) = (Var(A) + Var(B) - Var(A - B)) / 2,

where a part without nodes has no variance. So whatever a plan measures, the sums that it can tell
(`hedgerow.release.answers.sums`) tell their ratios, too.

*Other pairs*, that differ along several axes or whose areas are too large, and sums where survivors
alone were measured: the estimates of both are told one by one. Noisy counts as they are, of two
cuboids, are independent, and a public count has no error; of others nothing is known of the
correlation, and the widest set is told (`hedgerow.estimate.ratios`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from hedgerow.arrays import Int64, IntPair, int64_zeros, starts_of
from hedgerow.declared import check_known, frozen
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_SUMS
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.pairs import Pairs, Side
from hedgerow.release.answers.questions import answers_of, every_cell
from hedgerow.release.answers.sums import Groups, Sums
from hedgerow.release.descent.jobs import OnFraction, tell_nobody
from hedgerow.release.directory.measurements import COUNT, ESTIMATE, STANDARD_ERROR
from hedgerow.release.directory.stored import Content
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import cell_numbers
from hedgerow.text import TextByName

MOST_MEMBERS = 1 << 22
"""Nodes of all cells together whose covariances are found; larger ones get the widest sets."""
MOST_HELD = 1 << 26
"""Nodes of all sets together: half a gigabyte."""


@frozen(eq=False)
class SetPairs:
    """Pairs of sets of one axis's nodes, as areas, with the sets that tell their covariance.

    Attributes:
        sums: over all of these sets.
        pairs: int64 (pairs, 5): of each pair the first set and the second by their numbers, what
            either has alone, and both of these together; -1 for a set without nodes.
    """

    sums: Sums
    pairs: Int64

    @classmethod
    def of(
        cls, plan: Plan, by: TextByName, where: tuple[int, int],
        sets: Iterable[IntPair],
    ) -> "SetPairs":  # fmt: skip
        """Return pairs of sets: each int64 (nodes) of an axis's level, ascending.

        Raises:
            ReleaseError: they are too many.
        """
        members = list[Int64]()
        numbers = dict[bytes, int]()

        def number(nodes: Int64) -> int:
            if not len(nodes):
                return -1
            found = numbers.setdefault(nodes.tobytes(), len(members))
            if found == len(members):
                members.append(nodes)
            return found

        pairs = list[list[int]]()
        held = 0
        is_in = np.zeros((2, plan.tree.axes[where[0]].size(where[1])), dtype=np.bool_)
        for first, second in sets:
            is_in[0, first] = is_in[1, second] = True
            alone = first[~is_in[1, first]], second[~is_in[0, second]]
            is_in[:, first] = is_in[:, second] = False
            both = np.union1d(*alone) if all(map(len, alone)) else alone[0][:0]
            held += sum(map(len, (first, *alone, both)))
            if held > MOST_HELD:
                raise ReleaseError(
                    f"pairs of areas that have more than {MOST_HELD:,} codes together are too "
                    f"many; name fewer areas, or a lookup of coarser codes"
                )
            pairs.append(list(map(number, (first, second, *alone, both))))
        start = starts_of(members)
        areas = pl.Series("area", map(str, range(len(members))), dtype=pl.String)
        lookup = Lookup(*where, areas, start, np.concatenate(members))
        return cls(Sums(plan, by, lookup), np.array(pairs))

    @property
    def are_shares(self) -> bool:
        """Whether each second set has all that the first has."""
        return bool((self.pairs[:, 2] < 0).all())

    def answered(self, content: Content, on_fraction: OnFraction) -> Pairs:
        """Return what a release says of the pairs by cells of the other axes, pair by pair.

        Raises:
            ReleaseError: errors of these sums are unknown, or take too long.
        """
        answers = answers_of(content.plan)
        answers.check_columns(self.sums)
        answers.check_areas(self.sums)
        _, counts, estimate, variance, errors = answers.answer(content, self.sums, on_fraction)
        every = Side(counts, estimate, variance, errors)
        cells = np.arange(self.sums.cells)
        first, second = (
            every.take((areas[:, None] * len(cells) + cells).ravel())
            for areas in self.pairs[:, :2].T
        )
        by_area = variance.reshape(-1, len(cells))
        own, other, both = (
            np.where(areas[:, None] < 0, 0.0, by_area[areas]).ravel()
            for areas in self.pairs[:, 2:].T
        )
        apart = np.where((own > 0) & (other > 0), 2 * (own + other) - both, own + other)
        covariance = (first.variance + second.variance - apart) / 2
        labels = pl.DataFrame({"pair": np.arange(len(covariance))})
        return Pairs(labels, first, second, covariance, self.are_shares, len(covariance))


def pairs_of_areas(
    content: Content,
    by: TextByName,
    lookup: Lookup,
    pairs: Sequence[tuple[int, int | None]],
    on_fraction: OnFraction = tell_nobody,
) -> Pairs:
    """Return pairs of areas, by cells of the other axes.

    Args:
        content: the release.
        by: axis = level, or columns of an attribute.
        lookup: the areas.
        pairs: two areas by their numbers each, or an area and None for all of the axis.
        on_fraction: told how much is done.

    Raises:
        ReleaseError: errors of these sums are unknown, or take too long.
    """
    plan = content.plan
    own = Sums(content.plan, by, lookup)
    every = np.arange(own.area_nodes)
    sets = [
        (lookup.members(one), every if other is None else lookup.members(other))
        for one, other in pairs
    ]
    answered = SetPairs.of(plan, by, (lookup.axis, lookup.level), sets).answered(
        content, on_fraction
    )
    firsts = np.array([first for first, _ in pairs])
    return answered.labelled(
        own.labelled((firsts[:, None] * own.cells + np.arange(own.cells)).ravel())
    )


def pairs_of_levels(
    content: Content,
    numerator: TextByName,
    denominator: TextByName,
    on_fraction: OnFraction = tell_nobody,
    *,
    all_cells: bool = False,
) -> Pairs:
    """Return the cells of a cuboid with a positive count, each with that of a coarser one it is in.

    Args:
        content: the release.
        numerator: axis = level, or columns of an attribute.
        denominator: the same of what contains it.
        on_fraction: told how much is done.
        all_cells: also those with a count of 0.

    Raises:
        ReleaseError: a cell of the numerator is in none, or in several, of the denominator's; or
            no errors of them are known.
    """
    plan = content.plan
    fine = Sums(plan, numerator)
    coarse = Sums(plan, denominator)
    above = [
        _above(axis, *both)
        for axis, *both in zip(plan.tree.axes, fine.groups, coarse.groups, strict=True)
    ]
    apart = [a for a, each in enumerate(above) if len(each) > coarse.groups[a].many]
    nested = _nested(fine, coarse.groups[apart[0]], apart[0]) if len(apart) == 1 else None
    if nested is not None:
        answered = nested.answered(content, on_fraction)
        cells = np.arange(fine.cells).reshape(len(nested.pairs), *nested.sums.sizes)
        pairs = answered.take(np.moveaxis(cells, 0, apart[0]).ravel())  # row by row of `fine`
        listed = np.flatnonzero(all_cells | (pairs.first.counts > 0))
        first, second = (
            side.of_plan(content, sums)
            for side, sums in ((pairs.first, fine), (pairs.second, coarse))
        )
        pairs = replace(pairs, first=first, second=second)
        return pairs.take(listed).labelled(fine.labelled(listed))
    (numbers, first), (of, second) = (
        _alone(content, sums, on_fraction, all_cells=all_cells) for sums in (fine, coarse)
    )
    listed = np.flatnonzero(all_cells | (first.counts > 0))
    numbers, first = numbers[listed], first.take(listed)
    codes = np.unravel_index(numbers, fine.sizes)
    nodes = tuple(node[code] for node, code in zip(above, codes, strict=True))
    wanted = np.ravel_multi_index(nodes, coarse.sizes)
    place = np.minimum(np.searchsorted(of, wanted), max(len(of) - 1, 0))
    if not np.array_equal(of[place] if len(of) else of, wanted):
        raise ReleaseError(f"some cells of {plan.tree.name_of(coarse.levels)} are not listed")
    second = second.take(place)
    is_raw = first.errors.noise.raw and second.errors.noise.raw
    covariance = np.full(len(numbers), 0.0 if is_raw else np.nan) if apart else first.variance
    labels = fine.labelled(numbers)
    return Pairs(labels, first, second, covariance, are_shares=True, cells=fine.cells)


def area_numbers(
    lookup: Lookup, first: str | None, second: str | None
) -> list[tuple[int, int | None]]:
    """Return pairs of areas by their numbers, from their names.

    Args:
        lookup: the areas.
        first: None for each of them.
        second: None for all of the axis.

    Raises:
        ReleaseError: no such area.
    """
    areas = lookup.areas.to_list()
    for name in (first, second):
        if name is not None:
            check_known(name, areas, "area", ReleaseError)
    firsts = range(len(areas)) if first is None else [areas.index(first)]
    return [(one, None if second is None else areas.index(second)) for one in firsts]


def _finest(axis: Axis, fine: Groups, coarse: Groups) -> tuple[int, IntPair]:
    """Return the finer of two levels, and of its nodes both groups: int64 (nodes)."""
    level = max(fine.level, coarse.level)
    nodes = np.arange(axis.size(level))
    inside, outside = (
        each.number[axis.nodes_above(each.level, level, nodes)] for each in (fine, coarse)
    )
    return level, (inside, outside)


def _above(axis: Axis, fine: Groups, coarse: Groups) -> Int64:
    """Return of each group the coarser one that contains it: int64 (groups).

    Raises:
        ReleaseError: one is in several.
    """
    _, (inside, outside) = _finest(axis, fine, coarse)
    above = int64_zeros(fine.many)
    above[inside] = outside
    if (above[inside] != outside).any():
        raise ReleaseError(
            f"of axis {axis.name!r} the denominator tells more than the numerator does; a share is "
            f"of a cell that contains it: name a coarser level there, or leave the axis out"
        )
    return above


def _nested(fine: Sums, coarse: Groups, axis: int) -> SetPairs | None:
    """Return each group of an axis beside the one that contains it; None where they are too many.

    Nor where errors of sums over such sets are unknown, or take too long.
    """
    plan = fine.plan
    own = fine.groups[axis]
    along = fine.plan.tree.axes[axis]
    level, (inside, outside) = _finest(along, own, coarse)
    groups = _members(inside, own.many)
    containing = _members(outside, coarse.many)
    sets = [(nodes, containing[outside[nodes[0]]]) for nodes in groups]
    cells = fine.cells // own.many
    if sum(len(whole) for _, whole in sets) > MOST_MEMBERS or 3 * len(sets) * cells > MOST_SUMS:
        return None
    by = {name: each for name, each in fine.by.items() if name != along.name}
    pairs = SetPairs.of(plan, by, (axis, level), sets)
    return pairs if answers_of(plan).fault_of_areas(pairs.sums) is None else None


def _members(number: Int64, many: int) -> list[Int64]:
    """Return the nodes of each group: int64 (its nodes), ascending."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.searchsorted(number[order], np.arange(1, many)))


def _alone(
    content: Content, sums: Sums, on_fraction: OnFraction, *, all_cells: bool
) -> tuple[Int64, Side]:
    """Return the numbers of the listed or of all sums of a cuboid, and what is told of them.

    Returns:
        Numbers, ascending.

    Raises:
        ReleaseError: no errors of them are known.
    """
    plan = content.plan
    answers = answers_of(content.plan)
    is_planned = sums.is_cuboid and sums.levels in plan.by_levels
    if all_cells and not is_planned:
        raise ReleaseError(
            f"{plan.tree.name_of(sums.levels)} is no table of the plan, so cells that are not "
            f"listed have no ratio here; ask for the listed ones alone"
        )
    if is_planned:
        levels = sums.levels
        errors = content.errors(sums.levels)
        nodes = every_cell(content, levels) if all_cells else content.nodes[levels]
        frame = content.told(levels, nodes) if all_cells else content.counts(levels)
        numbers = cell_numbers(plan.tree, levels, nodes.codes)
        counts, estimate, error = (frame[k].to_numpy() for k in (COUNT, ESTIMATE, STANDARD_ERROR))
        order = np.argsort(numbers)
        return numbers[order], Side(counts, estimate, error**2, errors).take(order)
    answers.check_columns(sums)
    answers.check_sums(content, sums)
    numbers, counts, estimate, variance, errors = answers.answer(content, sums, on_fraction)
    if errors.allowance is not None:
        raise ReleaseError(
            f"errors of {plan.tree.name_of(sums.levels)} are approximate, as survivors alone were "
            f"measured, and a ratio of it has none; name levels of the plan: "
            f"{', '.join(plan.cuboids)}"
        )
    return numbers, Side(counts, estimate, variance, errors)
