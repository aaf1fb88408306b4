"""What an office accepts: how far counts may be off, of how many cells, with what probability.

A criterion says that with at least a *probability* at least a share of the *cells* of a cuboid are
*within* a bound of their true counts: P(#{i: |c_i - N_i| ≤ w_i} ≥ k) ≥ p, k = ⌈cells · n⌉ of n
cells. It is about all cells together, so that standard errors alone cannot tell it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar, TypeAlias

from hedgerow.arrays import Levels
from hedgerow.declared import Rational, Whole
from hedgerow.errors import PlanError, as_list, check_type
from hedgerow.limits import LARGEST_COUNT
from hedgerow.plan.prior import Prior, check_prior
from hedgerow.tables.tree import Tree
from hedgerow.text import Exact, Json, one_line

PART = Rational("a part of a count", 0, 1, PlanError, "1 % is 1/100", ends="()")
RECORDS = Rational("within", 0, LARGEST_COUNT, PlanError, ends="(]")
CELLS = Rational("cells", 0, 1, PlanError, "the share of the cells that must keep it", ends="(]")
PROBABILITY = Rational("probability", 0, 1, PlanError, ends="()")
LEAST = Whole("from", 1, LARGEST_COUNT, PlanError, "counts from this size on must keep it")
EXPECTED = Whole("records", 1, LARGEST_COUNT, PlanError, "the expected number of records")


@dataclass(frozen=True, slots=True, init=False)
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

    part: Fraction
    least: int

    def __init__(self, part: Exact, *, least: int) -> None:
        object.__setattr__(self, "part", PART(part))
        object.__setattr__(self, "least", LEAST(least))

    def __repr__(self) -> str:
        return f"{percent(self.part)} of counts from {self.least:,}"

    def to_dict(self) -> Json:
        """Return the bound as JSON."""
        return {"of_count": str(self.part), "from": self.least}


@dataclass(frozen=True, slots=True, init=False)
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

    part: Fraction

    def __init__(self, part: Exact) -> None:
        object.__setattr__(self, "part", PART(part))

    def __repr__(self) -> str:
        return f"{percent(self.part)} of records"

    def to_dict(self) -> Json:
        """Return the bound as JSON."""
        return {"of_records": str(self.part)}


Within: TypeAlias = Fraction | OfCount | OfRecords
"""A number of records; or a part of each count, or of all records."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
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
    cells: Fraction
    probability: Fraction
    records: int | None
    sizes: Prior | None = field(compare=False)
    usual: ClassVar[Fraction] = Fraction(19, 20)

    def __init__(
        self,
        cuboid: str,
        within: Exact | OfCount | OfRecords,
        *,
        cells: Exact = 1,
        probability: Exact = usual,
        records: int | None = None,
        sizes: Prior | None = None,
    ) -> None:
        check_type("the cuboid of a criterion", cuboid, str, 'a name such as "county"', PlanError)
        check_prior(sizes)
        bound = within if isinstance(within, OfCount | OfRecords) else RECORDS(within)
        if isinstance(bound, Fraction) and not (records is None and sizes is None):
            raise PlanError("a bound in records needs neither records nor sizes; leave them out")
        for name, value in (
            ("cuboid", cuboid),
            ("within", bound),
            ("cells", CELLS(cells)),
            ("probability", PROBABILITY(probability)),
            ("records", None if records is None else EXPECTED(records)),
            ("sizes", sizes),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        which = "all" if self.cells == 1 else f"{percent(self.cells)} of"
        return (
            f"{which} {one_line(self.cuboid)} within {bound_in_words(self.within)}, with "
            f"probability {float(self.probability):g}"
        )

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

    def least_cells(self, cells: int) -> int:
        """Return k, how many of so many cells must keep the bound."""
        return ceil(self.cells * cells)

    def to_dict(self) -> Json:
        """Return the criterion as JSON, exact numbers as text: what is signed of it."""
        within = self.within
        bound = {"records": str(within)} if isinstance(within, Fraction) else within.to_dict()
        expected = {} if self.records is None else {"expected": self.records}
        return {
            "cuboid": self.cuboid,
            "within": bound,
            "cells": str(self.cells),
            "probability": str(self.probability),
            **expected,
        }


def read_criterion(described: Mapping[str, Any]) -> Criterion:
    """Return the criterion that `Criterion.to_dict` describes.

    Raises:
        PlanError: no criterion can be made of it.
        KeyError, TypeError: it does not describe one.
    """
    given = described["within"]
    within: Any = given.get("records")
    if "of_count" in given:
        within = OfCount(given["of_count"], least=given["from"])
    elif "of_records" in given:
        within = OfRecords(given["of_records"])
    return Criterion(
        described["cuboid"],
        within,
        cells=described["cells"],
        probability=described["probability"],
        records=described.get("expected"),
    )


def checked_criteria(tree: Tree, given: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria, or raise a PlanError for what is none, or names no cuboid of the tree."""
    fitting = 'Criterion("county", 100)'
    criteria = as_list("accept", given, f"a list such as [{fitting}]", PlanError)
    for each in criteria:
        check_type("a criterion", each, Criterion, fitting, PlanError)
        each.levels(tree)
    return tuple(criteria)


def bound_in_words(within: Within) -> str:
    """Return a bound in words."""
    return f"{float(within):,.6g} records" if isinstance(within, Fraction) else repr(within)


def percent(part: Fraction) -> str:
    """Return a part of a whole in per cent."""
    return f"{float(100 * part):g} %"
