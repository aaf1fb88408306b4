"""How a table tells the leaf of a record, where it does not by one column a level."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from hedgerow.errors import TableError
from hedgerow.tables.codes.rule import Rule
from hedgerow.text import Texts


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
        found = None if self.rule is None else self.rule.sql(level, fields)
        return fields[0] if found is None and level == depth else found


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
