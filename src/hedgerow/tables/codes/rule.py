"""What all rules of code lists have in common, and how a table's codes are read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import polars as pl

from hedgerow.arrays import Sizes
from hedgerow.declared import frozen
from hedgerow.errors import TableError, as_list, did_you_mean, kind_of
from hedgerow.limits import LARGEST_DOUBLE
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.text import Texts


@dataclass(frozen=True)
class Rule(ABC):
    """How a code tells all its levels.

    Attributes:
        numeric: its columns hold numbers, and no codes.
    """

    numeric = False

    def code_columns(self, names: Sequence[str], levels: Sequence[str], subject: str) -> Texts:
        """Return the columns of a list that hold its codes.

        Where none is named: the column called like the deepest level, one called ``code``, or the
        only one.

        Raises:
            TableError: there is none of these.
        """
        given: str | Sequence[str] | None = getattr(self, "code", None)
        if given is not None:
            return (given,) if isinstance(given, str) else tuple(given)
        for name in (levels[-1], "code"):
            if name in names:
                return (name,)
        if len(names) == 1:
            return (names[0],)
        raise TableError(
            f"{subject} has no column {levels[-1]!r}; say which of its columns holds the codes "
            f'(code = "…"): {", ".join(names)[:500]}'
        )

    def of_columns(self, columns: Sequence[str]) -> "Rule":
        """Return the rule for a list whose codes are in other columns."""
        code = columns[0] if len(columns) == 1 else tuple(columns)
        made = copy(self)
        object.__setattr__(made, "code", code)
        return made

    def list_columns(self, names: Sequence[str], levels: Sequence[str], subject: str) -> Texts:
        """Return all columns of a list that the rule reads."""
        return self.code_columns(names, levels, subject)

    @abstractmethod
    def paths(self, areas: pl.DataFrame, levels: Sequence[str], subject: str) -> pl.DataFrame:
        """Return the codes of the leaves at each level: one column a level, missing below the last.

        Raises:
            TableError: a column or code that does not fit.
        """

    def deeper(
        self,
        areas: pl.DataFrame,  # noqa: ARG002 - most rules have none
        levels: Sequence[str],  # noqa: ARG002
        subject: str,  # noqa: ARG002
    ) -> pl.DataFrame | None:
        """Return codes of the list below its leaves: ``code``, and the ``leaf`` above; or None."""
        return None

    def leaf_codes(self, codes: pl.Series) -> pl.Series:
        """Return the codes of the leaves that codes of the one column belong to."""
        return codes

    def shapes(
        self,
        labels: Sequence[pl.Series],  # noqa: ARG002 - most codes tell no place
    ) -> Shapes | None:
        """Return the shapes that the codes of each level tell; or None."""
        return None

    @abstractmethod
    def sql(self, level: int, fields: Sequence[str]) -> str | None:
        """Return the SQL of a record's code at a level 1..L from its code columns, as text.

        None where the columns do not tell it.
        """

    def check_levels(self, numbers: Sequence[int], levels: Sequence[str], key: str) -> None:
        """Raise unless there is one number a level."""
        if len(numbers) != len(levels):
            raise TableError(
                f"{key} needs one number a level ({', '.join(levels)}), got {len(numbers)}"
            )


def whole_numbers(given: Sequence[int], key: str, fitting: str) -> Sizes:
    """Return positive whole numbers, or raise."""
    numbers = as_list(key, given, f"a list of whole numbers, {fitting}", TableError)
    for number in numbers:
        if type(number) is not int or not 0 < number < LARGEST_DOUBLE:
            raise TableError(
                f"{key} must be whole numbers above 0, {fitting}, got {kind_of(number)}"
            )
    return tuple(numbers)


def in_short(numbers: Sequence[int]) -> str:
    """Return numbers as messages show them."""
    return ", ".join(map(str, numbers))[:100]


def every_code(codes: pl.DataFrame, name: str, subject: str) -> pl.Series:
    """Return a column in which every row has a code, or raise."""
    if codes.is_empty():
        raise TableError(f"{subject} is empty; it needs one row an area")
    if codes[name].null_count():
        raise TableError(f"{subject} has a row without a {name!r}; every area needs one")
    return codes[name]


@dataclass(frozen=True)
class Reading:
    """How a table tells the leaf of a record, where it does not by one column a level.

    Attributes:
        columns: of the table.
        rule: what finds the code in them; None: the one column holds it.
        own: how many of the axis's columns, the last ones, are called as the user said.
        deeper: codes below the leaves; see `Rule.deeper`.
    """

    columns: Texts
    rule: Rule | None = None
    own: int = 0
    deeper: pl.DataFrame | None = field(default=None, compare=False, repr=False)

    @property
    def numeric(self) -> bool:
        """Whether the columns hold numbers, and no codes."""
        return self.rule is not None and self.rule.numeric

    def leaf_codes(self, codes: pl.Series) -> pl.Series:
        """Return the codes of the leaves that codes of the one column belong to."""
        if self.deeper is not None:
            return codes.replace(self.deeper["code"], self.deeper["leaf"])
        return codes if self.rule is None else self.rule.leaf_codes(codes)

    def code(self, level: int, depth: int, fields: Sequence[str]) -> str | None:
        """Return the SQL of a record's code at a level of an axis; None where it is not told."""
        sql = None if self.rule is None else self.rule.sql(level, fields)
        return fields[0] if sql is None and level == depth else sql


def called(
    levels: Texts,
    columns: Sequence[str] | None,
    rule: Rule | None,
    of_list: Sequence[str],
    subject: str,
) -> tuple[Texts, Reading | None]:
    """Return what a release calls the levels, and how the table tells them.

    Args:
        levels: their names.
        columns: as the user gave them, if at all: one a level, or those of the code alone.
        rule: of the list, if any.
        of_list: the columns of the list; the table's code is called like the list's by default.
        subject: how messages name the list.
    """
    given = None if columns is None else tuple(columns)
    if rule is None:
        if given is None or len(given) == len(levels):
            return levels if given is None else given, None
        if len(given) == 1:
            return (*levels[:-1], *given), Reading(given, own=1)
        return given, None  # which check_names refuses
    codes = rule.code_columns(of_list, levels, subject)
    given = codes if given is None else given
    if len(given) != len(codes):
        raise TableError(
            f"{subject}: columns must name the table's own for {', '.join(codes)[:200]}, got "
            f"{len(given)} names; the rule tells the levels"
        )
    return levels, Reading(given, rule)


_IN_BRACES = re.compile(r"\{([^{}]*)\}")


@frozen
class ByParent:
    """A code for each area of a level: ``"{state}9"`` is ``"NSW9"`` in ``"NSW"``.

    Attributes:
        before, after: what stands around the area's code.
        level: 1..L−1, whose areas they are.
    """

    before: str
    level: int
    after: str

    def codes(self, areas: pl.Series) -> pl.Series:
        """Return the code that stands for what is not stated in each area of the level."""
        return self.before + areas + self.after


def by_parent(not_stated: str | None, levels: Sequence[str], subject: str) -> ByParent | None:
    """Return the rule of a text with a level in braces; None of one code, or none.

    Raises:
        TableError: several braces, or what is in them is no level above the deepest.
    """
    if not_stated is None or not (names := _IN_BRACES.findall(not_stated)):
        return None
    above = list(levels[:-1])
    if len(names) > 1 or names[0] not in above:
        raise TableError(
            f"{subject}: not_stated may have one level above {levels[-1]} in braces "
            f"({', '.join(above) or 'there is none'}), got "
            f"{', '.join(map(repr, names))[:100]}{did_you_mean(names[0], above)}"
        )
    before, _, after = not_stated.partition(f"{{{names[0]}}}")
    return ByParent(before, above.index(names[0]) + 1, after)


def with_own_leaves(paths: pl.DataFrame, rule: ByParent, subject: str) -> pl.DataFrame:
    """Return the paths of leaves with one more in each area of a level, where there is none yet.

    Such a leaf hangs from its area alone: the levels between have its code.

    Raises:
        TableError: an area of these levels has that code and other leaves.
    """
    names = paths.columns
    uppers = paths.select(names[: rule.level]).unique(maintain_order=True)
    code = rule.codes(uppers[names[rule.level - 1]])
    for between in names[rule.level : -1]:
        genuine = paths.filter(
            pl.col(between).is_in(code.implode()) & (pl.col(between) != pl.col(names[-1]))
        )
        if not genuine.is_empty():
            raise TableError(
                f"{subject}: not_stated makes the code {genuine[between][0][:80]!r}, which is that "
                f"of a {between} with areas of its own; choose another"
            )
    added = uppers.with_columns([code.alias(name) for name in names[rule.level :]])
    added = added.filter(~code.is_in(paths[names[-1]].implode()))
    return pl.concat([paths, added]) if len(added) else paths
