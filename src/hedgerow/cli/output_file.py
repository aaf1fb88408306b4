"""The file that an option names: outside every release, never overwritten unasked, and whole."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import polars as pl
import typer

from hedgerow.cli.terminal import escape, stderr
from hedgerow.errors import HedgerowError, ReleaseError, SpecError, machine_errors
from hedgerow.picture import check_picture, would_be_lost
from hedgerow.release.directory.manifest import check_outside

# Options that are given as NAME=VALUE, and may be repeated.


def pairs(words: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Name → value, in the order in which they were given.

    Args:
        words: what was given for the option.
        option: its name, for the error's sentence.
        example: a word that it takes.

    Raises:
        SpecError: a word without its name or value, or a name that is given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise SpecError(f"{option} takes words such as {example}, got {word!r}")
        if name in found:
            raise SpecError(f"{option} gives {name!r} twice; give it once")
        found[name] = value
    return found


TABLES = (".csv", ".parquet")

QuoteFormulas = Annotated[
    bool,
    typer.Option(
        "--quote-formulas",
        help="In CSV, put an apostrophe before codes that a spreadsheet would run as formulas (= + "
        "- @, tab, new line), so that it shows them; else they are written as they are, with a "
        "warning. Numbers stay numbers.",
    ),
]


def check_place(
    place: Path,
    *,
    suffixes: Sequence[str] = (),
    force: bool | None = None,
    option: str = "--output",
) -> None:
    """Raise unless a command may write a file there.

    Args:
        place: the file.
        suffixes: those that it may have; none given, any.
        force: whether it may be overwritten; None where the command knows no ``--force``.
        option: that names it.

    Raises:
        ReleaseError: it has another suffix, it exists, or its folder is not there or a release's.
    """
    where = f"{option} {str(place)!r}"
    if suffixes and place.suffix.lower() not in suffixes:
        raise ReleaseError(f"{where} must end in {' or '.join(suffixes)}")
    if place.is_dir() or ((place.exists() or place.is_symlink()) and not force):
        way_out = "name another file" + ("" if force is None else ", or add --force")
        raise ReleaseError(f"{where} exists already; {way_out}")
    if not place.parent.is_dir():
        raise ReleaseError(f"{where}: the directory does not exist; create it")
    refuse_within_a_release(place, option)


def refuse_within_a_release(place: Path, option: str = "--output") -> None:
    """Raise if a file or folder there would be one more in a release, which stays as it is.

    Raises:
        ReleaseError: a folder above it is a release.
    """
    check_outside(place, option)


def check_picture_place(
    picture: Path | None, error: type[HedgerowError], *, force: bool | None = None
) -> None:
    """Raise unless ``--picture`` may go there, or none is asked for.

    Args:
        picture: the file.
        error: the kind of the room that draws.
        force: whether any file may be overwritten; None where the command knows no ``--force``:
            then a picture may, of the kind that its name tells.

    Raises:
        HedgerowError: of the given kind: another suffix, a folder that is not there, no matplotlib.
        ReleaseError: what exists there may not be overwritten, or its folder is a release's, where
            a picture may tell of the table.
    """
    check_picture(picture, error)
    if picture is None:
        return
    refuse_within_a_release(picture, "--picture")
    if force is not None:
        check_place(picture, force=force, option="--picture")
    elif would_be_lost(picture):
        raise ReleaseError(
            f"--picture {str(picture)!r} exists already and is no {picture.suffix[1:].upper()} "
            f"picture; name another file"
        )


@contextmanager
def whole_file(place: Path) -> Iterator[BinaryIO]:
    """Return a file to fill that then takes its place, or leaves nothing where the block fails.

    Raises:
        MachineError: the disk is full or not writable.
    """
    part = place.with_name(f".{place.name}.{os.getpid()}")
    with machine_errors(f"cannot write {str(place)!r}"):
        try:
            with part.open("xb") as file:
                yield file
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def write_table(found: pl.DataFrame, place: Path, *, quote_formulas: bool = False) -> None:
    """Write a frame as CSV or Parquet, by the suffix of its place; whole or not at all.

    Codes and names that a spreadsheet would run as formulas (`FORMULA`) are written into a CSV file
    as they are, with a warning, so that they still match the lists they come from; or with an
    apostrophe before them. Columns of numbers are not concerned: no number is a formula.

    Args:
        found: the frame.
        place: a file that ends in one of `TABLES`.
        quote_formulas: whether such texts get an apostrophe.

    Raises:
        MachineError: the disk is full or not writable.
    """
    if place.suffix.lower() != ".csv":
        with whole_file(place) as file:
            found.write_parquet(file)
        return
    written = _quoted(found)
    changed = sum(
        int((found[old] != written[new]).sum())
        for old, new in zip(found.columns, written.columns, strict=True)
        if found[old].dtype == pl.String
    ) + sum(old != new for old, new in zip(found.columns, written.columns, strict=True))
    with whole_file(place) as file:
        (written if quote_formulas else found).write_csv(file)
    if changed and not quote_formulas:
        stderr.print(
            f"[yellow]Warning:[/yellow] {changed:,} codes or names in {escape(str(place))} begin "
            f"like formulas (= + - @, tab or a new line), which a spreadsheet runs when it opens "
            f"the file; --quote-formulas puts an apostrophe before them, Parquet keeps them as text"
        )


FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""What a text begins with that spreadsheets take for a formula."""

NUMBER = r"^[+-]?[0-9][0-9 ]*([.,][0-9]+)?$"
"""A text that they take for a number, such as the code -9: it runs nothing."""


def _quoted(found: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with an apostrophe before every text that is a formula, its headings too."""
    text = pl.selectors.string()
    runs = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    safe = found.with_columns(pl.when(runs).then("'" + text).otherwise(text).name.keep())
    headings = {name: f"'{name}" for name in found.columns if re.match(FORMULA, name)}
    return safe.rename(headings)
