"""What an office accepts: how far counts may be off, of how many cells, with what probability.

A criterion says that with at least a *probability* at least a share of the *cells* of a cuboid are
*within* a bound of their true counts: P(#{i: |c_i - N_i| ≤ w_i} ≥ k) ≥ p, k = ⌈cells · n⌉ of n
cells. It is about all cells together, so that standard errors alone cannot tell it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, TypeAlias

from hedgerow.arrays import Levels
from hedgerow.declared import Rational, Whole, check_fields
from hedgerow.errors import PlanError, as_list, check_type
from hedgerow.limits import LARGEST_COUNT
from hedgerow.plan.prior import Prior, check_prior
from hedgerow.tables.tree import Tree
from hedgerow.text import Exact, Json, one_line

PART = Rational("a part of a count", 0, 1, PlanError, "1 % is 1/100", ends="()")
RECORDS = Rational("within", 0, LARGEST_COUNT, PlanError, ends="(]")
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


@dataclass(frozen=True, slots=True, repr=False)
class OfCount:
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

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"{percent(self.part)}{self.noun}"

    @property
    def noun(self) -> str:
        """What it is a part of, in words behind a figure."""
        return f" of counts from {self.least:,}"


@dataclass(frozen=True, slots=True, repr=False)
class OfRecords:
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
    noun = " of records"

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"{percent(self.part)}{self.noun}"


Within: TypeAlias = Exact | OfCount | OfRecords
"""A number of records; or a part of each count, or of all records."""


@dataclass(frozen=True, slots=True, repr=False)
class Criterion:
    """That with a probability a share of the cells of a cuboid are within a bound of the truth.

    Args:
        cuboid: its name, as the plan has it.
        within: a number of records; a part of each count (`OfCount`), or of all records
            (`OfRecords`).
        cells: the share of the cells that must keep it.
        probability: with which they all must.
        records: the expected number of records of the table, if it is known: a bound that is a part
            of counts or of records needs it, or sizes.
        sizes: a public table that tells how large counts are; that of the plan's allocation unless
            given. It is no part of what is signed.

    Raises:
        PlanError: a number outside its range, or sizes that are no prior.

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

    def __post_init__(self) -> None:
        check_type("the cuboid of a criterion", self.cuboid, str, 'a name: "county"', PlanError)
        check_prior(self.sizes)
        check_fields(self)
        if not isinstance(self.within, OfCount | OfRecords):
            object.__setattr__(self, "within", RECORDS(self.within))
            if self.records is not None or self.sizes is not None:
                raise PlanError("a bound in records needs neither records nor sizes; leave it out")

    def __repr__(self) -> str:
        which = "all" if self.cells == 1 else f"{percent(self.cells)} of"
        return (
            f"{which} {one_line(self.cuboid)} within {self.bound(float(self.amount))}, with "
            f"probability {float(self.probability):g}"
        )

    @property
    def amount(self) -> Fraction:
        """The bound's number: of records, or the part."""
        within = self.within
        return Fraction(within.part if isinstance(within, OfCount | OfRecords) else within)

    def bound(self, amount: float) -> str:
        """Return a bound of the same kind in words."""
        if isinstance(self.within, OfCount | OfRecords):
            return f"{figure(100 * amount)} %{self.within.noun}"
        return f"{figure(amount)} records"

    def least(self, cells: int) -> int:
        """Return how many of so many cells must keep it."""
        return ceil(Fraction(self.cells) * cells)

    def levels(self, tree: Tree) -> Levels:
        """Return the cuboid that is named, or raise a PlanError where there is none."""
        levels = tree.named(self.cuboid)
        if levels is None:
            fitting = ", ".join(map(tree.name_of, tree.chain))
            raise PlanError(
                f"cuboid: the tree has no {one_line(self.cuboid)!r}; name levels of its axes, such "
                f"as {fitting}"
            )
        return levels

    def to_dict(self) -> Json:
        """Return the criterion as JSON, exact numbers as text: what is signed of it."""
        described: Json = {name: str(getattr(self, name)) for name in _TEXTS}
        described |= {"within": str(self.amount), "of": type(self.within).__name__}
        if isinstance(self.within, OfCount):
            described["from"] = self.within.least
        return described if self.records is None else described | {"records": self.records}


_TEXTS = ("cuboid", "cells", "probability")


def read_criterion(described: Mapping[str, Any]) -> Criterion:
    """Return the criterion that `Criterion.to_dict` describes.

    Raises:
        PlanError: no criterion can be made of it.
        KeyError, TypeError: it does not describe one.
    """
    within: Any = described["within"]
    if "from" in described:
        within = OfCount(within, least=described["from"])
    elif described["of"] == OfRecords.__name__:
        within = OfRecords(within)
    options = {name: described[name] for name in ("cells", "probability")}
    return Criterion(described["cuboid"], within, records=described.get("records"), **options)


def checked_criteria(tree: Tree, given: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria, or raise a PlanError for what is none, or names no cuboid of the tree."""
    fitting = 'Criterion("county", 100)'
    criteria = as_list("accept", given, f"a list such as [{fitting}]", PlanError)
    for each in criteria:
        check_type("a criterion", each, Criterion, fitting, PlanError)
        each.levels(tree)
    return tuple(criteria)


def percent(part: Exact) -> str:
    """Return a part of a whole in per cent."""
    return f"{float(100 * Fraction(part)):g} %"


def figure(number: float) -> str:
    """Return a number to four digits, and whole ones in full."""
    return f"{number:,.0f}" if number == round(number) or number >= 1e4 else f"{number:.4g}"
