"""Which settled sums each element of a lattice keeps, so that tables keep what they must.

An element keeps the sums of one lower cover or of two: three margins need not admit a table. Covers
p and q may both be kept where each keeps the cover min(p, q) of both. A cuboid *descends* to itself
and to what those that it keeps descend to, at last the total. Every table must descend to what it
has in common with another table, and to what is public.

From fine to coarse, each element that a table descends to takes the first pair of covers, in the
order of axes, below which all lies that is asked of it; then min(p, q) is asked of p and of q, and
the rest of whichever refines it. Where an element cannot hold all that is asked of it, the choices
before it are revised, the last ones first. Only levels decide: public facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

from hedgerow.arrays import CuboidList, Levels
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import is_within, is_within_any, maximal, meet

MOST_STEPS = 4096
"""Choices that are revised at most."""

Needs = dict[Levels, set[Levels]]
"""Of cuboids, what each must descend to."""

Covers = CuboidList


class KeptSumsError(EstimateError):
    """Raised where a cuboid cannot keep all settled sums that it must.

    Attributes:
        cuboid: that has to keep them.
        sums: the cuboids whose settled counts its own would have to sum to.
    """

    def __init__(self, cuboid: Levels, sums: Sequence[Levels]) -> None:
        """Say which cuboids it is about."""
        super().__init__(
            f"cuboid {cuboid} cannot keep the sums of {', '.join(map(str, sums))} all exactly: "
            "three margins need not admit a table; leave one out of what tables have in common"
        )
        self.cuboid = cuboid
        self.sums = tuple(sums)


def kept_covers(
    elements: Sequence[Levels],
    covers: Mapping[Levels, Covers],
    needs: Needs,
    given: frozenset[Levels],
) -> dict[Levels, Covers]:
    """Return the covers that are kept by each element that a table descends to.

    Args:
        elements: of the lattice, each after all that are coarser.
        covers: the lower covers of each.
        needs: of each table what it must descend to.
        given: elements whose true counts are known, with all that are coarser: they keep all.

    Raises:
        KeptSumsError: none were found that descend to what they must.
    """
    search = _Search(elements[::-1], covers, given)
    kept = search.run(needs)
    if kept is None:
        raise search.stuck[0]
    return kept


@frozen
class _Search:
    """A search for the covers that are kept, from the finest element on.

    Attributes:
        order: the elements, fine before coarse.
        covers: the lower covers of each.
        given: elements whose true counts are known.
        stuck: of the first element that could keep nothing, why.
    """

    order: Sequence[Levels]
    covers: Mapping[Levels, Covers]
    given: frozenset[Levels]
    stuck: list[KeptSumsError] = field(default_factory=list)

    def run(self, needs: Needs) -> dict[Levels, Covers] | None:
        """Return what each element keeps that is asked for something; None if none is found."""
        path: list[tuple[int, Iterator[tuple[Covers, Needs]]]] = []
        kept: dict[Levels, Covers] = {}
        begin = 0
        for _ in range(len(self.order) + MOST_STEPS):
            left = range(begin, len(self.order))
            at = next((i for i in left if self.order[i] in needs), None)
            if at is None:
                return {self.order[i]: kept[self.order[i]] for i, _ in path}
            path.append((at, self._branches(self.order[at], needs)))
            while (step := next(path[-1][1], None)) is None:
                path.pop()
                if not path:
                    return None
            begin = path[-1][0] + 1
            kept[self.order[begin - 1]], needs = step
        return None

    def _branches(self, element: Levels, needs: Needs) -> Iterator[tuple[Covers, Needs]]:
        """Yield what an element may keep, and all that is asked then of it and others."""
        is_given = element in self.given
        sums = needs[element]
        yielded = False
        stuck = (element, sums)
        every = self.covers[element]
        for some in [every] if is_given else _choices(every):
            if not (is_given or _can_keep(some, sums - {element})):
                continue
            more = {c: needs.get(c, set()) | each for c, each in _needs_of(some, sums).items()}
            over = next((c for c in more if not self._has_choice(c, more[c])), None)
            if over is None:
                yielded = True
                yield some, needs | more
            else:
                stuck = over, more[over]
        if not (yielded or self.stuck):
            self.stuck.append(KeptSumsError(stuck[0], maximal(stuck[1] - {stuck[0]})))

    def _has_choice(self, element: Levels, sums: set[Levels]) -> bool:
        """Return whether an element can hold all sums that are asked of it."""
        every = self.covers[element]
        return element in self.given or any(
            _can_keep(some, sums - {element}) for some in _choices(every)
        )


def _choices(covers: Covers) -> Iterator[Covers]:
    """Yield what an element may keep, the best first: two covers, one, or none where none is."""
    yield from combinations(covers, 2)
    yield from combinations(covers, min(1, len(covers)))


def _can_keep(covers: Covers, sums: Iterable[Levels]) -> bool:
    return all(is_within_any(each, covers) for each in sums)


def _needs_of(covers: Covers, sums: Iterable[Levels]) -> Needs:
    """Return what is asked of covers, and of what two of them have in common, to keep some sums."""
    needs: Needs = {cover: set() for cover in covers}
    if len(covers) == 2:
        common = meet(*covers)
        needs = {cover: {common} for cover in covers} | {common: set()}
        for each in sums:
            holder = next((c for c in (common, *covers) if is_within(each, c)), None)
            if holder is not None:
                needs[holder].add(each)
    elif len(covers) == 1:
        needs[covers[0]] |= {each for each in sums if is_within(each, covers[0])}
    return needs


def agreeing_covers(covers: Covers, exact: Mapping[Levels, Covers]) -> Covers:
    """Return the first covers that agree on what they have in common."""
    for some in _choices(covers):
        if len(some) < 2 or all(meet(*some) in descend(cover, exact) for cover in some):
            return some
    return ()


def descend(cuboid: Levels, exact: Mapping[Levels, Covers]) -> frozenset[Levels]:
    """Return a cuboid and all whose settled counts its own sum to, by the covers that are kept."""
    cuboids = {cuboid}
    left = [cuboid]
    while left:
        new = set(exact[left.pop()]) - cuboids
        cuboids |= new
        left += new
    return frozenset(cuboids)
