"""Shares of the budget as somebody gives them: by depth, axis or cuboid, or by level and query."""

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, cast

from hedgerow.arrays import Levels
from hedgerow.declared import frozen
from hedgerow.errors import PlanError, as_list, did_you_mean, kind_of, shorten
from hedgerow.estimate.cube.shape import fineness, is_within
from hedgerow.plan.allocation.allocation import ByDepth, Problem, of_whole
from hedgerow.plan.prior import Prior
from hedgerow.plan.workload import repeated
from hedgerow.tables.tree import Tree
from hedgerow.text import Exact, exact

FITTING = 'a list of exact numbers, such as ["1/4", "3/4"]'

ByAxis = Mapping[str, tuple[Fraction, ...]]
ByCuboid = Mapping[str, Fraction]


@frozen(init=False)
class Shares:
    """Shares as given; a depth, level or cuboid of share 0 stays unmeasured.

    Args:
        given: along a chain a list, one share for each depth that can be measured, the last above
            0. Of a cube a list by axis: one share for each level that is not made of only
            children, coarsest first, the axis's total included; a cuboid gets the product, divided
            by what is measured of it all. Or one share by cuboid name, those not named having 0;
            of a cube these must be such a product. Exact numbers of at least 0; each list, and all
            shares by name together, sum to exactly 1.

    Raises:
        PlanError: a share is negative, the last of a list is 0, or they do not sum to 1.

    Example:
        >>> hr.Shares(["1/4", "3/4"]).given
        (Fraction(1, 4), Fraction(3, 4))
        >>> hr.Shares({"home": ["1/4", "3/4"], "work": ["1/2", "1/2"]}).given["work"]
        (Fraction(1, 2), Fraction(1, 2))
    """

    name = "shares"
    prior: ClassVar[Prior | None] = None
    given: tuple[Fraction, ...] | ByAxis | ByCuboid

    def __init__(
        self, given: Sequence[Exact] | Mapping[str, Sequence[Exact]] | Mapping[str, Exact]
    ) -> None:
        if not isinstance(given, Mapping):
            shares = _listed("share", as_list("shares", given, FITTING, PlanError))
            object.__setattr__(self, "given", shares)
            return
        lists = {n: list(s) for n, s in given.items() if isinstance(s, list | tuple)}
        if lists and len(lists) < len(given):
            raise PlanError("shares are lists by axis, or single numbers by cuboid, and not both")
        if lists:
            by_axis = {name: _listed(f"share of {name!r}", each) for name, each in lists.items()}
            object.__setattr__(self, "given", by_axis)
            return
        by_cuboid = {n: exact(s, f"share of {n!r}", PlanError) for n, s in given.items()}  # type: ignore[arg-type]
        _check_sum("share", list(by_cuboid.values()))
        object.__setattr__(self, "given", by_cuboid)

    def shares(self, problem: Problem) -> ByDepth:
        """Return one share or None for each of `Problem.cuboids`.

        Raises:
            PlanError: shares that do not fit the cuboids.
        """
        given = self.given
        names = problem.names
        by_axis = None if isinstance(given, tuple) else _by_axis(given)
        if problem.is_named and (isinstance(given, tuple) or by_axis is not None):
            raise PlanError(
                "named cuboids take their shares by name: shares = {"
                f'{json.dumps(names[0], ensure_ascii=False)} = "1/4", ...}}'
            )
        if isinstance(given, tuple):
            if problem.is_cube:
                raise PlanError(
                    "a cube takes its shares by axis: shares = {axis = [...], ...}, each axis's "
                    "total included"
                )
            if len(given) != len(names):
                raise PlanError(
                    f"this plan can measure {len(names)} depths ({'; '.join(names)}), so it "
                    f"needs {len(names)} shares, got {len(given)}"
                )
            return tuple(share or None for share in given)
        if by_axis is not None:
            if not problem.is_cube:
                raise PlanError('shares by axis go with the workload of a cube (cuboids = "cube")')
            return of_whole(problem.by_axis("shares", by_axis))
        by_cuboid = problem.by_name("share", cast("ByCuboid", given))
        for levels in problem.tables:
            if not by_cuboid.get(levels):
                raise PlanError(
                    f"{problem.tree.name_of(levels)!r} needs a share above 0: it is a table, and "
                    "no other cuboid tells its counts"
                )
        return tuple(by_cuboid.get(levels) or None for levels in problem.cuboids)


def _by_axis(given: ByAxis | ByCuboid) -> ByAxis | None:
    """Return the shares if they are lists by axis."""
    listed = {name: shares for name, shares in given.items() if isinstance(shares, tuple)}
    return listed or None


def _listed(subject: str, given: Sequence[Exact]) -> tuple[Fraction, ...]:
    """Return the shares of a list, or raise a PlanError."""
    shares = tuple(exact(s, f"{subject} {i}", PlanError) for i, s in enumerate(given, start=1))
    _check_sum(subject, shares)
    _check_last(subject, shares)
    return shares


def _check_sum(subject: str, shares: Sequence[Fraction]) -> None:
    """Raise a PlanError unless shares are at least 0 and sum to 1."""
    subject = subject.replace("share", "shares", 1)
    for i, share in enumerate(shares, start=1):
        if share < 0:
            raise PlanError(f"{subject} must not be negative, got {share} in place {i}")
    if sum(shares) != 1:
        raise PlanError(f"{subject} must sum to exactly 1, got {sum(shares)}; write thirds as 1/3")


def _check_last(subject: str, shares: Sequence[Fraction]) -> None:
    """Raise a PlanError if the last share is 0."""
    if not shares[-1]:
        raise PlanError(f"the last {subject} must be above 0: the leaves have to be measured")


@frozen(init=False)
class QueryShares:
    """Shares by level and by query: a cuboid gets the product, divided by what is measured in all.

    A *level* is a level of one axis, such as a county; a *query* is a cuboid of the other axes,
    such as ``"hispanic × cenrace"``. Either is called by its levels as a plan shows them, or
    without their axes where only one axis has such a level; ``"total"`` is all of them together.
    Cuboids that are public may be named and are not measured.

    Args:
        levels: the share of each level; they sum to at most 1.
        queries: for each level the shares of its queries, which sum to exactly 1.

    Raises:
        PlanError: a share is negative or no exact number, they do not sum to 1, or a level has
            shares of one kind and not of the other.

    Example:
        >>> sex = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])
        >>> place = hr.Axis.from_frame("place", {"town": ["a", "b", "c"]}, levels=["town"])
        >>> plan = hr.make_plan(
        ...     hr.Tree([place, sex]),
        ...     budget=hr.Rho(1),
        ...     workload=hr.Cuboids(["sex.sex", "place.town", "place.town × sex.sex"]),
        ...     allocation=hr.QueryShares(
        ...         levels={"total": "1/5", "town": "4/5"},
        ...         queries={"total": {"sex": 1}, "town": {"total": "1/4", "sex": "3/4"}},
        ...     ),
        ... )
        >>> [str(plan.cuboids[name].share) for name in ("place.town", "place.town × sex.sex")]
        ['1/5', '3/5']
    """

    name = "shares"
    prior: ClassVar[Prior | None] = None
    levels: Mapping[str, Fraction]
    queries: Mapping[str, Mapping[str, Fraction]]

    def __init__(
        self, levels: Mapping[str, Exact], queries: Mapping[str, Mapping[str, Exact]]
    ) -> None:
        by_level = _exact("levels", levels)
        if sum(by_level.values()) > 1:
            raise PlanError(f"levels: shares sum to {sum(by_level.values())}, which is above 1")
        if not isinstance(queries, Mapping):
            raise PlanError(f"queries are shares of queries by level, got {kind_of(queries)}")
        by_query = {name: _exact(_of(name), each) for name, each in queries.items()}
        for name, each in by_query.items():
            _check_sum(f"{_of(name)}: share", list(each.values()))
        for given, others, words in (
            (by_level, by_query, "a share and no queries; give it some"),
            (by_query, by_level, "queries and no share; add it to levels"),
        ):
            for name in given:
                if name not in others:
                    meant = did_you_mean(name, others)
                    raise PlanError(f"level {name[:100]!r} has {words}{meant}")
        object.__setattr__(self, "levels", by_level)
        object.__setattr__(self, "queries", by_query)

    def shares(self, problem: Problem) -> ByDepth:
        """Return one share or None for each of `Problem.cuboids`, summing to exactly 1.

        Raises:
            PlanError: a level or query that the tree or the workload does not have.
        """
        tree = problem.tree
        shares = {}
        for level, share in self.levels.items():
            for query, part in self.queries[level].items():
                cuboid = _cuboid(tree, level, query)
                if cuboid in shares:
                    raise PlanError(f"{_of(level)}: {tree.name_of(cuboid)!r} has two shares")
                shares[cuboid] = share * part
        every = {*problem.workload.cuboids(tree), *shares}
        again = repeated(tree, sorted(every, key=fineness))
        measured = {
            tree.name_of(cuboid): share
            for cuboid, share in shares.items()
            if problem.public is None or not is_within(again.get(cuboid, cuboid), problem.public)
        }
        whole = sum(measured.values())
        if not whole:
            raise PlanError("levels, queries: what they name is public, or has a share of 0")
        return Shares({name: share / whole for name, share in measured.items()}).shares(problem)


def _of(level: str) -> str:
    return f"queries of {level[:100]!r}"


def _exact(where: str, given: Mapping[str, Exact]) -> dict[str, Fraction]:
    """Return shares as fractions, or raise a PlanError."""
    if not isinstance(given, Mapping) or not given:
        raise PlanError(f'{where} are shares by name, such as {{"county": "1/4"}}')
    shares = {
        n: exact(s, f"{where}: share of {str(n)[:100]!r}", PlanError) for n, s in given.items()
    }
    for name, share in shares.items():
        if share < 0:
            raise PlanError(f"{where}: the share of {name[:100]!r} must not be negative")
    return shares


def _cuboid(tree: Tree, level: str, query: str) -> Levels:
    """Return the cuboid of a query at a level, or raise a PlanError."""
    of_level = _levels(tree, level, "levels")
    of_query = _levels(tree, query, _of(level))
    if sum(map(bool, of_level)) > 1:
        raise PlanError(f"levels: {level[:100]!r} is no level of one axis; make a query of it")
    both = [a.name for a, i, j in zip(tree.axes, of_level, of_query, strict=True) if i and j]
    if both:
        raise PlanError(
            f"{_of(level)}: {query[:100]!r} is of axis {both[0]!r} as the level is; a query is of "
            "the other axes"
        )
    return tuple(map(max, of_level, of_query))


def _levels(tree: Tree, name: str, where: str) -> Levels:
    """Return the cuboid of a name whose levels may stand without their axes."""
    cuboid = tree.named(name)
    if cuboid is not None:
        return cuboid
    levels: dict[str, list[str]] = {}
    for axis in tree.axes:
        for level in axis.levels:
            levels.setdefault(level, []).append(tree.level_name(axis, level))
    full = {way: [way] for ways in levels.values() for way in ways} | levels
    words = re.split(r"\s*[×*]\s*|\s+x\s+", name[:1000])
    for word in words:
        meanings = full.get(word, [])
        if not meanings:
            every = [n for level, ways in levels.items() for n in ([level], ways)[len(ways) > 1]]
            raise PlanError(
                f"{where}: there is no level {shorten(word)!r}; there are "
                f"{', '.join(every)[:300]}{did_you_mean(word, every)}"
            )
        if len(meanings) > 1:
            raise PlanError(f"{where}: several axes have a level {word!r}: {' or '.join(meanings)}")
    cuboid = tree.named(" × ".join(full[word][0] for word in words))
    if cuboid is None:
        raise PlanError(f"{where}: {name[:100]!r} names two levels of one axis")
    return cuboid
