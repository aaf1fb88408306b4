"""What an office accepts: how far counts may be off, of how many cells, with what probability.

A criterion says that with at least a *probability* at least a share of the *cells* of a cuboid are
*within* a bound of their true counts: P(#{i: |c_i - N_i| ≤ w_i} ≥ k) ≥ p, k = ⌈cells · n⌉ of n
cells. It is about all cells together, so that standard errors alone cannot tell it. In place of the
count of a cell may stand that of an area of the office's own, a share of another count, or a
quantile of a numeric axis (`hedgerow.plan.criteria.items`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, ClassVar, TypeAlias

from hedgerow.arrays import Levels
from hedgerow.declared import Rational, Whole, check_fields, check_known, frozen
from hedgerow.errors import PlanError, as_list, check_type
from hedgerow.estimate.cube.shape import is_within
from hedgerow.limits import LARGEST_COUNT
from hedgerow.plan.prior import Prior, check_prior
from hedgerow.tables.codes.ranges import edges_of
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree
from hedgerow.text import Exact, Json, one_line

SMALL, TINY = Fraction(1, 10**9), Fraction(1, 10**100)
PART = Rational("a part of a count", SMALL, 1, PlanError, "1 % is 1/100")
RECORDS = Rational("within", SMALL, LARGEST_COUNT, PlanError, ends="[]")
DISTANCE = Rational("the distance of a quantile", TINY, LARGEST_COUNT, PlanError, ends="[]")
RANK = Rational("the rank of a quantile", 0, 1, PlanError, ends="()")
CELLS = Rational("cells", 0, 1, PlanError, "the share of the cells that must keep it", ends="(]")
PROBABILITY = Rational(
    "probability",
    Fraction(1, 10**6),
    1 - Fraction(1, 10**6),
    PlanError,
    ends="[]",
)
LEAST = Whole("from", 1, LARGEST_COUNT, PlanError, "counts from this size on must keep it")
EXPECTED = Whole("records", 1, LARGEST_COUNT, PlanError, "the expected number of records")


class Bound:
    """A bound of other things than a number of records: its `part` is the number.

    Attributes:
        signed: its other fields, by what they are called in what is signed.
        texts: those of them that are names.
        scale: what the number is multiplied with where it is read.
        noun: what it is of, in words behind that.
    """

    __slots__ = ()
    part: Exact
    signed: ClassVar[Mapping[str, str]] = {}
    texts: ClassVar[Sequence[str]] = ()
    scale: ClassVar[int] = 100
    noun: ClassVar[str]

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.texts:
            check_type(
                f"{type(self).__name__}: {name}", getattr(self, name), str, "a name", PlanError
            )

    def __repr__(self) -> str:
        return self.words(float(self.part))

    def words(self, amount: float) -> str:
        """Return a bound of the same kind in words."""
        fields = {name: getattr(self, name) for name in self.signed.values()}
        noun = self.noun.format(**fields).removesuffix(" from 1")
        return one_line(f"{figure(self.scale * amount)}{noun}")


@frozen(repr=False)
class OfCount(Bound):
    """A bound that is a part of each cell's true count, of cells from a size on.

    Args:
        part: of the count: 1/100 for 1 %.
        least: the size, in records, from which on counts must keep it.

    Raises:
        PlanError: a part that is not between 0 and 1, or no size of at least 1.

    Example:
        >>> hr.OfCount("0.01", least=1000)
        1 % of counts from 1,000
    """

    part: Annotated[Exact, PART]
    least: Annotated[int, LEAST] = field(kw_only=True)
    signed: ClassVar[Mapping[str, str]] = {"from": "least"}
    noun: ClassVar[str] = " % of counts from {least:,}"


@frozen(repr=False)
class OfRecords(Bound):
    """A bound that is a part of all records of the table.

    Args:
        part: of the records: 1/200 for 0.5 %.

    Raises:
        PlanError: a part that is not between 0 and 1.

    Example:
        >>> hr.OfRecords("0.005")
        0.5 % of records
    """

    part: Annotated[Exact, PART]
    noun: ClassVar[str] = " % of records"


@frozen(repr=False)
class OfShare(Bound):
    """A bound of how far the ratio of each count to another one may be off.

    Args:
        part: by which a ratio may be off: 1/200 for 0.5 points.
        of: the cuboid of the cells that contain those of the criterion, and whose counts theirs are
            divided by: ``"state"``, or ``"total"`` for all records.
        least: the size of these, in records, from which on it must be kept.

    Raises:
        PlanError: a part that is not between 0 and 1, or no size of at least 1.

    Example:
        >>> hr.OfShare("0.005", "state")
        0.5 points of its share of state
    """

    part: Annotated[Exact, PART]
    of: str
    least: Annotated[int, LEAST] = field(default=1, kw_only=True)
    signed: ClassVar[Mapping[str, str]] = {"from": "least", "share": "of"}
    texts: ClassVar[Sequence[str]] = ("of",)
    noun: ClassVar[str] = " points of its share of {of} from {least:,}"


@frozen(repr=False)
class OfQuantile(Bound):
    """A bound of how far a quantile of a numeric axis may be off, by cells of the other axes.

    Args:
        part: the distance, in units of the axis.
        axis: its name.
        rank: of the quantile, 1/2 for the median.
        least: the size, in records, from which on cells must keep it.

    Raises:
        PlanError: no distance above 0, no rank between 0 and 1, or no size of at least 1.

    Example:
        >>> hr.OfQuantile(500, "income", least=200)
        500 of the quantile 1/2 of income from 200
    """

    part: Annotated[Exact, DISTANCE]
    axis: str
    rank: Annotated[Exact, RANK] = Fraction(1, 2)
    least: Annotated[int, LEAST] = field(default=1, kw_only=True)
    signed: ClassVar[Mapping[str, str]] = {"axis": "axis", "rank": "rank", "from": "least"}
    texts: ClassVar[Sequence[str]] = ("axis",)
    scale: ClassVar[int] = 1
    noun: ClassVar[str] = " of the quantile {rank} of {axis} from {least:,}"

    @property
    def ratio(self) -> tuple[int, int]:
        """The rank as two whole numbers."""
        return Fraction(self.rank).as_integer_ratio()

    def place(self, tree: Tree) -> tuple[int, int]:
        """Return the number of the axis and its finest level, or raise unless it is numeric."""
        names = [axis.name for axis in tree.axes]
        check_known(self.axis, names, "axis", PlanError)
        number = names.index(self.axis)
        edges_of(tree.axes[number])
        return number, tree.axes[number].depth


BOUNDS = {kind.__name__: kind for kind in (OfCount, OfRecords, OfShare, OfQuantile)}
Within: TypeAlias = Exact | Bound
"""A number of records; or a bound of another kind."""


@frozen(repr=False)
class Criterion:
    """That with a probability a share of the cells of a cuboid are within a bound of the truth.

    Args:
        cuboid: its name, as the plan has it; beside areas and quantiles of the other axes.
        within: a number of records; a part of each count (`OfCount`), or of all records
            (`OfRecords`); of shares (`OfShare`) or quantiles (`OfQuantile`).
        cells: the share of the cells that must keep it.
        probability: with which they all must.
        records: the expected number of records of the table, if it is known: a bound that is a part
            of counts or of records needs it, or sizes.
        sizes: a public table that tells how large counts are; that of the plan's allocation unless
            given. It is no part of what is signed. Shares and quantiles need it.
        areas: of the office's own, in place of cells of one axis: a column of codes and one of
            areas, a row a pair, as `Release.areas` takes them.

    Raises:
        PlanError: a number outside its range, sizes that are no prior, or areas without columns.

    Example:
        >>> hr.Criterion("county", 100, cells="0.95")
        95 % of county within 100 records, with probability 0.95
    """

    cuboid: str
    within: Within
    cells: Annotated[Exact, CELLS] = field(default=Fraction(1), kw_only=True)
    probability: Annotated[Exact, PROBABILITY] = field(default=Fraction(19, 20), kw_only=True)
    records: Annotated[int | None, EXPECTED] = field(default=None, kw_only=True)
    sizes: Prior | None = field(default=None, kw_only=True, compare=False)
    areas: Mapping[str, Sequence[str]] | None = field(default=None, kw_only=True, hash=False)
    lookups: dict[str, Lookup] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        check_type("the cuboid of a criterion", self.cuboid, str, 'a name: "county"', PlanError)
        check_prior(self.sizes)
        kinds = (Mapping, type(None))
        fitting = '{"town": ["a", …], "clinic": ["p", …]}'
        check_type("the areas of a criterion", self.areas, kinds, fitting, PlanError)
        for codes in (self.areas or {}).values():
            if not all(isinstance(code, str) for code in codes):
                raise PlanError(f"the areas of a criterion must be columns of texts, as {fitting}")
        check_fields(self)
        if not isinstance(self.within, Bound):
            object.__setattr__(self, "within", RECORDS(self.within))
            if self.records is not None or self.sizes is not None:
                raise PlanError("a bound in records needs neither records nor sizes; leave it out")

    def __repr__(self) -> str:
        which = "all" if self.cells == 1 else f"{percent(self.cells)} of"
        by = f" by areas ({one_line(', '.join(sorted(self.areas)))})" if self.areas else ""
        return (
            f"{which} {one_line(self.cuboid)}{by} within {self.bound(float(self.amount))}, with "
            f"probability {float(self.probability):g}"
        )

    @property
    def amount(self) -> Fraction:
        """The bound's number: of records, or the part."""
        return Fraction(self.within.part if isinstance(self.within, Bound) else self.within)

    @property
    def is_of_counts(self) -> bool:
        """Whether it is about counts, whose bounds grow as errors do."""
        return not isinstance(self.within, OfShare | OfQuantile)

    @property
    def is_of_cells(self) -> bool:
        """Whether it is about the counts of the cells of its own cuboid."""
        return self.is_of_counts and self.areas is None

    def bound(self, amount: float) -> str:
        """Return a bound of the same kind in words."""
        within = self.within
        return within.words(amount) if isinstance(within, Bound) else f"{figure(amount)} records"

    def least(self, cells: int) -> int:
        """Return how many of so many cells must keep it."""
        return ceil(Fraction(self.cells) * cells)

    def levels(self, tree: Tree) -> Levels:
        """Return the cuboid that is named, or raise a PlanError where there is none."""
        return named(tree, self.cuboid, "cuboid")

    def lookup(self, tree: Tree) -> Lookup | None:
        """Return the areas, or raise a TableError for such as a tree does not have."""
        if self.areas is None:
            return None
        if tree.digest not in self.lookups:
            self.lookups[tree.digest] = Lookup.of(tree, self.areas)
        return self.lookups[tree.digest]

    def needed(self, tree: Tree) -> Levels:
        """Return the coarsest cuboid that tells of it, or raise for what a tree does not have.

        Raises:
            PlanError: no such cuboid or axis, or one that areas or quantiles take.
            TableError: no such areas, or an axis without bins.
        """
        own = self.levels(tree)
        within = self.within
        taken = []
        if (areas := self.lookup(tree)) is not None:
            taken.append((areas.axis, areas.level))
        if isinstance(within, OfQuantile):
            taken.append(within.place(tree))
        if isinstance(within, OfShare):
            of = named(tree, within.of, "share")
            if not is_within(of, own) or (of == own and areas is None):
                raise PlanError(f"share: {one_line(self.cuboid)} must be finer than what it is of")
        levels = list(own)
        for axis, level in taken:
            if levels[axis]:
                name = tree.axes[axis].name
                raise PlanError(f"cuboid: {name} is taken; name levels of other axes, or total")
            levels[axis] = level
        return tuple(levels)

    def to_dict(self) -> Json:
        """Return the criterion as JSON, exact numbers as text: what is signed of it."""
        described: Json = {name: str(getattr(self, name)) for name in _TEXTS}
        described |= {"within": str(self.amount), "of": type(self.within).__name__}
        if isinstance(within := self.within, Bound):
            for key, name in within.signed.items():
                value = getattr(within, name)
                described[key] = str(value) if isinstance(value, Fraction) else value
        if self.areas is not None:
            described["areas"] = {name: list(codes) for name, codes in self.areas.items()}
        return described if self.records is None else described | {"records": self.records}


_TEXTS = ("cuboid", "cells", "probability")


def named(tree: Tree, name: str, what: str) -> Levels:
    """Return the cuboid of a name, or raise a PlanError where there is none."""
    levels = tree.named(name)
    if levels is None:
        fitting = ", ".join(map(tree.name_of, tree.chain))
        raise PlanError(
            f"{what}: the tree has no {one_line(name)!r}; name levels of its axes, such as "
            f"{fitting}"
        )
    return levels


def read_criterion(described: Mapping[str, Any]) -> Criterion:
    """Return the criterion that `Criterion.to_dict` describes.

    Raises:
        PlanError: no criterion can be made of it.
        KeyError, TypeError: it does not describe one.
    """
    within: Any = described["within"]
    if (kind := BOUNDS.get(described["of"])) is not None:
        within = kind(within, **{name: described[key] for key, name in kind.signed.items()})
    options = {name: described[name] for name in ("cells", "probability")}
    options |= {name: described.get(name) for name in ("records", "areas")}
    return Criterion(described["cuboid"], within, **options)


def checked_criteria(tree: Tree, given: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria, or raise a PlanError for what is none, or names no cuboid of the tree."""
    fitting = 'Criterion("county", 100)'
    criteria = as_list("accept", given, f"a list such as [{fitting}]", PlanError)
    for each in criteria:
        check_type("a criterion", each, Criterion, fitting, PlanError)
        each.needed(tree)
    return tuple(criteria)


def percent(part: Exact) -> str:
    """Return a part of a whole in per cent."""
    return f"{float(100 * Fraction(part)):g} %"


def figure(number: float) -> str:
    """Return a number to four digits, and whole ones in full."""
    return f"{number:,.0f}" if number == round(number) or number >= 1e4 else f"{number:.4g}"
