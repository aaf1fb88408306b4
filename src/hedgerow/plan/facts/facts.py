"""Public facts: cells that hold nobody, and bounds, from public rules and files.

A fact says which cells of a spine × its attributes are empty, or how many records they have at
least or at most. It is public before anyone opens the confidential table and says nothing of it:
the noise is not measured in empty cells, estimates and whole counts keep to the bounds, and no
promise is restricted (`docs/public-files.md`). Exact counts *of the confidential table* are
invariants (`hedgerow.plan.cuboids.Invariant`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from hedgerow.declared import frozen
from hedgerow.errors import (
    PlanError,
    TableError,
    as_list,
    check_type,
    kind_of,
    shorten,
)
from hedgerow.limits import LARGEST_LEAF
from hedgerow.plan.facts.public_rows import (
    SECTION,
    PublicRows,
    Rest,
    attribute_columns,
    check_ancestors,
    spine_axis,
)
from hedgerow.tables.axis import Axis
from hedgerow.tables.axis_names import LONGEST_LEVEL
from hedgerow.tables.domain import is_column_pointed
from hedgerow.tables.lists.public_table import listed_names, read_public_table
from hedgerow.tables.sources.database import Query
from hedgerow.tables.sources.source import describe_source, is_file
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, Texts, check_name, visible

RESTS: tuple[Rest, ...] = ("unlisted", "listed")
ONE = "hr.Zeros({column: [codes]}) or hr.PublicTable(source, …)"


@frozen(init=False)
class Zeros:
    """Attribute cells that hold nobody by rule, wherever they are: no minors in nursing homes.

    Args:
        codes: attribute column → codes. A cell is empty that has one of the codes of every column.

    Raises:
        PlanError: no column, no code, or names that are none.

    Example:
        >>> hr.Zeros({"hhgq": ["nursing"], "votingage": ["minor"]})
        Zeros(hhgq nursing × votingage minor)
    """

    codes: tuple[tuple[str, Texts], ...]

    def __init__(self, codes: Mapping[str, Sequence[str]]) -> None:
        fitting = 'a table of columns and codes, such as {votingage = ["minor"]}'
        check_type(f"{SECTION} zeros", codes, Mapping, fitting, PlanError)
        if not codes:
            raise PlanError(f"{SECTION} zeros name no column; give {fitting}")
        checked = sorted(_checked_codes(column, each) for column, each in codes.items())
        object.__setattr__(self, "codes", tuple(checked))

    def __repr__(self) -> str:
        return f"Zeros({self.words})"

    @property
    def words(self) -> str:
        """The rule in words."""
        return " × ".join(f"{column} {_listed(codes)}" for column, codes in self.codes)

    def to_dict(self) -> Json:
        """Return the rule as JSON; the same rule has one description."""
        return {"zeros": {column: list(codes) for column, codes in self.codes}}


def _checked_codes(column: object, codes: Any) -> tuple[str, Texts]:
    where = f"{SECTION} zeros:"
    check_name(column, f"{where} a column", LONGEST_LEVEL, PlanError)
    listed = as_list(f"{where} {column}", codes, 'a list of codes, such as ["minor"]', PlanError)
    for code in listed:
        check_name(code, f"{where} a code of {column}", LONGEST_LEVEL, PlanError)
    if not listed:
        raise PlanError(f"{where} {column} has no code; name one, or leave {column} out")
    return str(column), tuple(sorted(set(listed)))


def _listed(codes: Sequence[str]) -> str:
    more = f", … ({len(codes)})" if len(codes) > 3 else ""
    return ", ".join(map(shorten, codes[:3])) + more


@frozen(eq=False, repr=False)
class PublicTable:
    """A public table of cells that hold nobody, or of bounds: kinds of quarters that a block has.

    Its columns are one level of the spine (finer than any other of the spine's that it has),
    attribute columns, or both; and the bounds. Others are left alone. Each cell is listed once.

    Args:
        source: a file, a `Query`, or a data frame.
        zeros: ``"unlisted"``: cells that are not listed hold nobody; ``"listed"``: those that are.
        at_least: the column with the least number of records of a cell; 0, or no value, says
            nothing.
        at_most: the column with the largest number; 2⁴⁰ or more, or no value, says nothing. A
            column that is both has a value in every row.

    Raises:
        PlanError: neither zeros nor bounds, or bounds of cells that hold nobody.

    Example:
        >>> kinds = {"block": ["a", "b"], "hhgq": ["home", "nursing"], "facilities": [0, 2]}
        >>> hr.PublicTable(kinds, zeros="unlisted", at_least="facilities")
        PublicTable(zeros='unlisted', at_least='facilities')
    """

    source: Any
    zeros: Rest | None = None
    at_least: str | None = None
    at_most: str | None = None

    def __post_init__(self) -> None:
        if self.zeros is not None and self.zeros not in RESTS:
            raise PlanError(
                f'{SECTION} zeros must be "unlisted" or "listed" with a source, got '
                f"{kind_of(self.zeros)}"
            )
        for name in ("at_least", "at_most"):
            if getattr(self, name) is not None:
                check_name(getattr(self, name), f"{SECTION} {name}", LONGEST_LEVEL, PlanError)
        if self.zeros is None and not self.numbers:
            raise PlanError(f"{SECTION} a source needs zeros, at_least or at_most, too")
        if self.zeros == "listed" and self.numbers:
            raise PlanError(
                f'{SECTION} zeros = "listed" leaves nobody in the listed cells, so that they have '
                f"no bounds; leave at_least and at_most out"
            )

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in ("zeros", "at_least", "at_most")}
        words = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"PublicTable({words})"

    @property
    def numbers(self) -> dict[str, int | None]:
        """The columns of bounds, and what an empty cell of each stands for; None: nothing."""
        if self.at_least is not None and self.at_least == self.at_most:
            return {self.at_least: None}
        unbounded = {self.at_least: 0, self.at_most: LARGEST_LEAF}
        return {name: number for name, number in unbounded.items() if name is not None}

    def over(self, tree: Tree, number: int) -> "PublicRows":
        """Return the rows of the table, read for a tree; it is the fact of a number 1, 2, ….

        Raises:
            PlanError: see `PublicRows`; or the table cannot be read.
        """
        named = is_file(self.source) or isinstance(self.source, Query)
        role = f"{SECTION} table"
        subject = visible(describe_source(self.source, role)) if named else f"{role} {number}"
        spine = spine_axis(tree)
        attributes = attribute_columns(tree)
        is_pointed = {
            column: is_column_pointed(axis, column) for axis in tree.axes for column in axis.columns
        }
        also = listed_names(tree.axes)
        is_pointed |= {name: is_pointed[column] for name, (_, column) in also.items()}
        try:
            frame = read_public_table(self.source, is_pointed, self.numbers, subject)
        except TableError as error:
            raise PlanError(str(error), confidential=error.confidential) from None
        frame = _as_in_release(frame, also)
        levels = [name for name in spine.columns if name in frame.columns]
        attributes = [name for name in attributes if name in frame.columns]
        if len(levels) > 1:
            check_ancestors(spine, frame, levels, subject)
        own = [*levels[-1:], *attributes]
        frame = frame.select(*own, *self.numbers).sort(own)
        return PublicRows(
            subject,
            frame,
            tuple(levels[-1:]),
            tuple(attributes),
            self.zeros,
            self.at_least,
            self.at_most,
        )


def _as_in_release(frame: pl.DataFrame, also: Mapping[str, tuple[Axis, str]]) -> pl.DataFrame:
    """Return public rows with the columns that lists call otherwise as the release calls them."""
    for name, (axis, column) in also.items():
        if name in frame.columns and column not in frame.columns:
            codes = frame[name]
            if axis.reading is not None and name in axis.reading.columns:
                codes = axis.reading.leaf_codes(codes)
            place = frame.get_column_index(name)
            frame = frame.drop(name).insert_column(place, codes.alias(column))
    return frame


Fact = Zeros | PublicRows
"""A public fact as a plan keeps it."""


Facts = tuple[Fact, ...]


def read_facts(tree: Tree, public: Sequence[Fact | PublicTable]) -> Facts:
    """Return the public facts of a plan, with the rows of public tables read.

    Raises:
        PlanError: the tree has no spine, or a fact is none, or a table cannot be read.
    """
    given = as_list("public", public, f"a list of {ONE}", PlanError)
    for fact in given:
        check_type("a public fact", fact, (Zeros, PublicTable, PublicRows), ONE, PlanError)
    if given:
        spine_axis(tree)
    return tuple(
        fact.over(tree, number) if isinstance(fact, PublicTable) else fact
        for number, fact in enumerate(given, start=1)
    )


def described_facts(
    tree: Tree, described: Sequence[Json], rows_of: Callable[[int], pl.DataFrame]
) -> Facts:
    """Return the facts that `to_dict` of each described.

    Args:
        tree: of the plan.
        described: what a manifest says of them.
        rows_of: returns the rows of the fact at a place, where it is a public table.

    Raises:
        PlanError: the rows say something else than what is described, or are not the tree's.
        KeyError, TypeError: it describes no facts.
    """
    given: list[Zeros | PublicTable] = []
    for place, each in enumerate(described):
        if set(each) == {"zeros"}:
            given.append(Zeros(each["zeros"]))
        else:
            options = {name: each[name] for name in ("zeros", "at_least", "at_most")}
            given.append(PublicTable(rows_of(place), **options))
    facts = read_facts(tree, given)
    if [fact.to_dict() for fact in facts] != list(described):
        raise PlanError("the public facts in domain/ are not those of the plan")
    return facts
