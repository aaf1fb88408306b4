"""SPSS, Stata and SAS files: one table of a release, with labels of its columns."""

from pathlib import Path
from typing import Any

import polars as pl

from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.export.released import (
    labels_of,
    one_table,
    plain_names,
    statements,
    whole_file,
)
from hedgerow.machine import check_suffix, library
from hedgerow.release.page.words import title
from hedgerow.release.release import Release
from hedgerow.text import TextByName

EXACT = 1 << 53
"""Whole numbers below are exact in these formats, which store doubles."""

LONGEST_VALUE = 120
"""Bytes of a value's label in SPSS."""

TAKEN = {
    *("all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"),
    *("byte", "double", "float", "if", "in", "int", "long", "strl", "using"),
}
"""Words that SPSS or Stata keep for themselves."""


@frozen
class Limits:
    """What a format has room for.

    Attributes:
        writer: the function of pyreadstat.
        name: letters of a column's name.
        label, title: bytes of a column's label and of the file's.
        code: bytes of a text.
        notes: whether the file has room for notes.
    """

    writer: str
    name: int
    label: int
    title: int
    code: int
    notes: bool = False


FILES = {
    ".sav": Limits("write_sav", 64, 255, 64, 32_767, notes=True),
    ".dta": Limits("write_dta", 32, 80, 80, 2_045),
    ".xpt": Limits("write_xport", 32, 40, 40, 200),
}


@frozen
class StatisticsFile:
    """One table as a file of SPSS (``.sav``), Stata (``.dta``) or SAS (``.xpt``), by its suffix.

    Columns are those of `Release.level`, with the publisher's labels; names that these programs
    do not allow are made plain. SPSS files have the promise and the notes, too, and show names of
    areas for their codes (as value labels, which the others have not for text).

    Attributes:
        level: a cuboid by its name in the plan; the released table unless given.
        names: whether names of areas are columns, too: ``COLUMN_name``.
        share: axis = level of the cells that each count is a share of, {} for the total: columns
            ``share``, ``share_low``, ``share_high`` and ``share_contradicted`` (`Release.ratio`).

    Example:
        >>> hr.StatisticsFile(level="county").level
        'county'
    """

    level: str | None = None
    names: bool = False
    share: TextByName | None = None

    def write(self, release: Release, output: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            ReleaseError: another suffix, no such table, or codes or counts that the format cannot
                hold as they are.
            MachineError: pyreadstat is missing, or the disk is full.
        """
        check_suffix(output, FILES, "the file", ReleaseError)
        limits = FILES[output.suffix.lower()]
        frame = one_table(release, self.level, names=self.names, share=self.share)
        check_fits(frame, limits, output.suffix)
        names = plain_names(frame.columns, limits.name, TAKEN)
        labels = labels_of(release.plan, frame, self.share)
        given: dict[str, Any] = {
            "file_label": _cut(title(release.plan), limits.title),
            "column_labels": [_cut(labels[name], limits.label) for name in frame.columns],
        }
        if limits.notes:
            given["note"] = [
                _cut(line, 80) for line in _lines(statements(release.plan, self.share))
            ]
            # for each plain column of codes what its codes are called: code → name
            coded = frame.select(
                column for column in release.plan.tree.every_column if column in frame.columns
            )
            value_labels = {}
            for column in coded.columns:
                named = release.plan.tree.with_names(
                    coded.select(column).unique(maintain_order=True)
                )
                if len(named.columns) > 1:
                    pairs = named.drop_nulls().rows()
                    value_labels[names[column]] = {
                        code: _cut(name, LONGEST_VALUE) for code, name in pairs
                    }
            given["variable_value_labels"] = value_labels
        pyreadstat = library("pyreadstat", "stats")
        with whole_file(output) as part:
            plain = frame.rename(names).with_columns(pl.selectors.boolean().cast(pl.Int8))
            getattr(pyreadstat, limits.writer)(plain, str(part), **given)


def check_fits(frame: pl.DataFrame, limits: Limits, suffix: str) -> None:
    """Refuse what the format would store as something else, or not at all.

    Raises:
        ReleaseError: no rows, texts that would be cut or changed, or whole numbers from 2⁵³ on.
    """
    if frame.is_empty():
        raise ReleaseError("the table lists no counts; there is nothing to export")
    way_out = "export a data package, which holds it as it is"
    for column in frame.select(pl.selectors.string()):
        lost = (column == "") | column.str.ends_with(" ") | column.str.contains("\0", literal=True)
        if lost.any():
            raise ReleaseError(
                f"a code of column {column.name!r} is empty, ends with a space or has a zero "
                f"character, which a {suffix} file does not keep; {way_out}"
            )
        if (column.str.len_bytes() > limits.code).any():
            raise ReleaseError(
                f"a code of column {column.name!r} has more than {limits.code:,} bytes, which a "
                f"{suffix} file has no room for; {way_out}"
            )
    for column in frame.select(pl.selectors.integer()):
        if (column.abs() >= EXACT).any():
            raise ReleaseError(
                f"a number of column {column.name!r} is too large for a {suffix} file, which is "
                f"exact below 2^53; {way_out}"
            )


def _cut(text: str, most: int) -> str:
    """Return as much of a text as so many bytes hold."""
    if len(text.encode()) <= most:
        return text
    return text.encode()[: most - 3].decode(errors="ignore") + "…"


def _lines(sentences: list[str]) -> list[str]:
    """Return sentences as lines of at most 80 bytes, broken between words where possible."""
    lines = []
    for sentence in sentences:
        line = ""
        for word in sentence.split():
            longer = f"{line} {word}".strip()
            if line and len(longer.encode()) > 80:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines
