"""A workbook of Excel: a sheet of notes, and one for each table of a release."""

import re
from collections import ChainMap
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from hedgerow.columns import cut
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.export.released import (
    SHARE,
    SHARE_HIGH,
    SHARE_LOW,
    labels_of,
    one_table,
    shared,
    statements,
    whole_file,
)
from hedgerow.machine import check_suffix, library
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.measurements import ESTIMATE, STANDARD_ERROR
from hedgerow.release.page.words import title
from hedgerow.release.release import Release
from hedgerow.text import Rows, TextByName

MOST_ROWS = (1 << 20) - 1
"""Rows of a sheet below its headings."""
LONGEST_TEXT = 32_767
"""Letters of a cell, those beyond Unicode's first plane twice: UTF-16."""
EXACT = 10**15
"""Whole numbers below have at most 15 digits, which is what Excel shows and keeps of any."""
LONGEST_NAME = 31
NOTES = "Notes"
TAKEN = {NOTES.lower(), "history"}
"""Names that sheets of tables must not have: the second is Excel's own."""

OPTIONS = {
    "constant_memory": True, "use_zip64": True,
    "strings_to_formulas": False, "strings_to_urls": False,
}  # fmt: skip
CREATED = datetime(1980, 1, 1, tzinfo=UTC)
"""In place of now, as in every archive of xlsxwriter: the same release makes the same file."""
FORMATS: dict[str, Any] = {
    "text": {"num_format": "@"},
    "heading": {"num_format": "@", "bold": True, "bottom": 1},
    "notes": {"text_wrap": True, "valign": "top"},
    "whole": {"num_format": "#,##0"},
    ESTIMATE: {"num_format": "#,##0.0"},
    STANDARD_ERROR: {"num_format": "#,##0.00"},
    **{name: {"num_format": "0.0 %"} for name in (SHARE, SHARE_LOW, SHARE_HIGH)},
}
"""A text stays one where somebody edits its cell, whatever it begins with."""
WIDEST, MEASURED = 40, 1_000
"""Letters of the widest column, and rows whose letters are counted."""
Tables = Mapping[str, pl.DataFrame]


@frozen
class Workbook:
    """An Excel workbook (``.xlsx``): a sheet of notes, and one a cuboid with counts and intervals.

    Columns are those of `Release.level`. The notes say what the promise is and between which
    tables, what each column means, and which cuboid each sheet has, as names of sheets are short.
    Codes are texts in every cell, also those that look like numbers or formulas.

    Attributes:
        level: a cuboid by its name in the plan, alone; all of them unless given.
        names: whether names of areas are columns, too: ``COLUMN_name``.
        share: axis = level of the cells that each count is a share of, {} for the total: columns
            ``share``, ``share_low``, ``share_high`` and ``share_contradicted`` (`Release.ratio`) of
            the tables within them.

    Example:
        >>> hr.Workbook(level="county").level
        'county'
    """

    level: str | None = None
    names: bool = False
    share: TextByName | None = None

    def write(self, release: Release, output: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            ReleaseError: another suffix, no such table, or a table that a sheet has no room for.
            MachineError: xlsxwriter is missing, or the disk is full.
        """
        check_suffix(output, [".xlsx"], "the file", ReleaseError)
        xlsxwriter = library("xlsxwriter", "excel")
        plan = release.plan
        chosen = [*plan.cuboids] if self.level is None else [self.level]
        for name in chosen:
            levels = plan.tree.named(name)
            if levels in plan.by_levels:  # before errors are computed
                check_rows(name, len(release.content.nodes[levels]))
        has = shared(plan, chosen, self.share)
        tables = {
            name: one_table(
                release, name, names=self.names, share=self.share if has.get(name) else None
            )
            for name in chosen
        }
        for frame in tables.values():
            check_fits(frame)
        sheets = sheet_names(tables)
        with whole_file(output) as part, TemporaryDirectory(dir=output.parent) as room:
            book = xlsxwriter.Workbook(str(part), OPTIONS | {"tmpdir": room})
            book.set_properties({"title": title(plan), "created": CREATED})
            formats = {name: book.add_format(look) for name, look in FORMATS.items()}
            _write_notes(book.add_worksheet(NOTES), formats, plan, tables, sheets, self.share)
            for name, frame in tables.items():
                _write_table(book.add_worksheet(sheets[name]), formats, frame)
            try:
                book.close()
            except xlsxwriter.exceptions.FileCreateError as failure:
                raise failure.args[0] from None


def check_rows(name: str, rows: int) -> None:
    """Refuse a table that is longer than a sheet."""
    if rows > MOST_ROWS:
        raise ReleaseError(
            f"the table of {name} has {rows:,} rows, and a sheet of Excel has room for "
            f"{MOST_ROWS:,} below its headings; name another with --level, or export a data package"
        )


def check_fits(frame: pl.DataFrame) -> None:
    """Refuse texts that Excel would cut or lose, and whole numbers that it would round."""
    way_out = "export a data package, which holds it as it is"
    for column in frame.select(pl.selectors.string()):
        if (column.str.len_bytes() > LONGEST_TEXT).any():
            raise ReleaseError(
                f"a code or name of column {column.name!r} has more than {LONGEST_TEXT:,} bytes, "
                f"which a cell of Excel has no room for; {way_out}"
            )
        if any(map(is_markup, column.drop_nulls())):
            raise ReleaseError(
                f"a code or name of column {column.name!r} begins with <r> and ends with </r>, "
                f"which would be read as markup of Excel; {way_out}"
            )
        if column.str.contains("\0", literal=True).any():
            raise ReleaseError(
                f"a code or name of column {column.name!r} has a zero character, which Excel does "
                f"not keep; {way_out}"
            )
    for column in frame.select(pl.selectors.integer()):
        if (column.abs() >= EXACT).any():
            raise ReleaseError(
                f"a number of column {column.name!r} has more than 15 digits, which Excel rounds; "
                f"{way_out}"
            )


def is_markup(text: str) -> bool:
    """Return whether xlsxwriter would write a text into the sheet as XML of its own."""
    return text.startswith("<r>") and text.endswith("</r>")


def sheet_names(names: Iterable[str]) -> TextByName:
    """Return for each name of a cuboid one of a sheet: short, allowed, and of no other sheet."""
    of = {}
    used = {*TAKEN}
    for name in names:
        plain = re.sub(r"[\[\]:*?/\\]|[^\0-\uffff]", "_", name)
        number = 1
        free = _short(plain, LONGEST_NAME)
        while free.lower() in used:
            number += 1
            end = f" ({number})"
            free = f"{_short(plain, LONGEST_NAME - len(end))}{end}"
        used.add(free.lower())
        of[name] = free
    return of


def _short(name: str, room: int) -> str:
    """Return a name in so many letters at most, as Excel counts them, and without quotes around."""
    return cut(name, room)[:room].strip("'") or "_"


def _write_notes(
    sheet: Any,
    formats: Mapping[str, Any],
    plan: Plan,
    tables: Tables,
    sheets: TextByName,
    share: TextByName | None,
) -> None:
    """Write what a reader should know: the promise, what columns mean, which sheet has what."""
    finest_first = reversed(list(tables.values()))
    columns = dict.fromkeys(name for frame in finest_first for name in frame.columns)
    labels = ChainMap(*(labels_of(plan, frame, share) for frame in tables.values()))
    blocks: list[Rows] = [
        [(title(plan), "")],
        [("", text) for text in (*statements(plan, share), plan.promise.attacker)],
        [("Column", "What it is"), *((name, labels[name]) for name in columns)],
        [
            ("Sheet", "What it has"),
            *((sheets[name], f"{name}, {len(frame):,} listed") for name, frame in tables.items()),
        ],
    ]
    sheet.set_column(0, 0, LONGEST_NAME)
    sheet.set_column(1, 1, 100)
    number = 0
    for block in blocks:
        for row, words in enumerate(block):
            for column, text in enumerate(words):
                look = formats["heading" if words[0] and not row else "notes"]
                sheet.write_string(number, column, f" {text}" if is_markup(text) else text, look)
            number += 1
        number += 1


def _write_table(sheet: Any, formats: Mapping[str, Any], frame: pl.DataFrame) -> None:
    """Write a table, each cell as what its column holds."""
    sheet.freeze_panes(1, 0)
    sheet.ignore_errors({"number_stored_as_text": "A1:XFD1048576"})
    ways = []
    for number, (name, kind) in enumerate(frame.schema.items()):
        heading = f" {name}" if is_markup(name) else name
        sheet.write_string(0, number, heading, formats["heading"])
        longest = max(len(name), *map(len, frame[name].head(MEASURED).cast(pl.String).drop_nulls()))
        sheet.set_column(number, number, min(longest + 2, WIDEST))
        if kind == pl.String:
            ways.append((sheet.write_string, formats["text"]))
        elif kind == pl.Boolean:
            ways.append((sheet.write_boolean, None))
        else:
            ways.append((sheet.write_number, formats.get(name, formats["whole"])))
    real = pl.selectors.float()
    finite = frame.with_columns(pl.when(real.is_finite()).then(real).name.keep())
    for row, values in enumerate(finite.iter_rows(), start=1):
        for column, (value, (write, look)) in enumerate(zip(values, ways, strict=True)):
            if value is not None:
                write(row, column, value, look)
