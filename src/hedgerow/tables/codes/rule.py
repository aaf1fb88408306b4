"""Public code lists as their publishers ship them: rules that make levels of one list's codes.

A rule gives each code of the list its path of levels, and the same rule finds the path of a code in
the table: by its first characters (`Prefix`), by the parent that the list names (`Parents`), or by
integer division of coordinates (`Division`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from hedgerow.errors import TableError, as_list, kind_of
from hedgerow.limits import LARGEST_DOUBLE
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.text import Texts


@dataclass(frozen=True)
class Rule(ABC):
    """How a code tells all its levels.

    Attributes:
        numeric: its columns hold numbers, and no codes.
    """

    numeric: ClassVar[bool] = False

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


def whole_numbers(given: Sequence[int], key: str, fitting: str) -> tuple[int, ...]:
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
