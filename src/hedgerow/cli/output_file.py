"""Options that commands share, and the files that options name: never overwritten unasked."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, get_args

import polars as pl
from typer import Argument, Option

from hedgerow.cli.terminal import warn
from hedgerow.declared import frozen
from hedgerow.errors import (
    HedgerowError,
    ReleaseError,
    SpecError,
    did_you_mean,
    shorten,
)
from hedgerow.export.released import whole_file as whole_place
from hedgerow.export.released import write_parts as write_parquet
from hedgerow.machine import check_free, check_suffix
from hedgerow.picture import check_picture, would_be_lost
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.manifest import check_outside
from hedgerow.release.naming import meant_levels
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.text import TextByName, Texts

TABLES = (".csv", ".parquet")

ReleaseFile = Annotated[Path, Argument(metavar="FILE", help="The release file (TOML).")]
Directory = Annotated[Path, Argument(metavar="DIR", help="A release directory.")]
Picture = Annotated[Path | None, Option(help="Draw it into this file (PNG, SVG or PDF).")]

ByLevels = Annotated[
    list[str] | None,
    Option(
        metavar="AXIS=LEVEL",
        help="The cuboid of one level of an axis; may be repeated for more axes. Of attributes "
        "beside a spine also a column alone, such as hispanic, or several of them.",
    ),
]

Wide = Annotated[
    bool, Option("--wide", help="Show tables whole. Default: names cut to fit 80 columns.")
]

QuoteFormulas = Annotated[
    bool,
    Option(
        "--quote-formulas",
        help="In CSV, put an apostrophe before codes that a spreadsheet would run as formulas (= + "
        "- @, tab, new line). Default: write them unchanged, with a warning. Numbers stay numbers.",
    ),
]


@frozen
class Beside:
    """An option that excludes others, or needs one of them; declared beside it.

    Attributes:
        others: by their names in Python.
        sentence: the error.
        needed: whether one of the others is needed.
    """

    others: Texts
    sentence: str
    needed: bool = False


def check_options(command: Callable[..., None], given: Mapping[str, object]) -> None:
    """Raise a ReleaseError for an option that does not go with others as it declares.

    Args:
        command: whose options they are.
        given: its arguments, by their names in Python.
    """
    said = {name for name, value in given.items() if value not in (None, []) and value is not False}
    for name, annotation in inspect.get_annotations(command).items():
        for rule in get_args(annotation)[1:] if name in said else ():
            if isinstance(rule, Beside) and said.isdisjoint(rule.others) is rule.needed:
                raise ReleaseError(rule.sentence)


def levels_by(tree: Tree, words: Sequence[str], option: str = "--by") -> TextByName:
    """Return axis → level, or columns joined by ×, of a repeated option, ``--by``.

    A word without = is a level or a column of some axis, with or without the axis
    (``place.county``); of attributes that are a product a column alone, so that ``votingage`` is
    by voting age and not by all that its level tells.

    Raises:
        SpecError: no axis has such a level or column, or several have.
    """
    levels = pairs([word for word in words if "=" in word], option, "origin=region")
    for word in words:
        if "=" in word:
            continue
        axes = [axis for axis in tree.axes if word in _names(axis)]
        if len(axes) != 1:
            which = " and ".join(axis.name for axis in axes)
            every = sorted({name for axis in tree.axes for name in _names(axis) if "." not in name})
            fault = f"{which} have it" if axes else "no axis has such a level or column"
            there = f", or one of {shorten(', '.join(every), 300)}{did_you_mean(word, every)}"
            instead = f"write {option} AXIS=LEVEL{'' if axes else there}"
            raise SpecError(f"{option} {shorten(word)}: {fault}; {instead}")
        axis = axes[0]
        name = word.removeprefix(f"{axis.name}.")
        is_level = name in axis.levels and axis.columns_of(axis.level_number(name)) == (name,)
        column = name if is_level or axis.product is None else f"{axis.name}.{name}"
        levels[axis.name] = f"{levels[axis.name]} × {column}" if axis.name in levels else column
    return levels


def check_named(plan: Plan, level: str | None, depth: int | None, *, records: bool = False) -> None:
    """Raise a ReleaseError with the command's way out if a plan has no such level or depth."""
    if depth is not None and not plan.has_depths:
        raise ReleaseError(
            f"{plan.workload.noun} has no depths; name a cuboid: "
            f"--level {plan.tree.name_of(plan.levels[1])!r}, or --by AXIS=LEVEL"
        )
    meant = None if level is None else meant_levels(plan.tree, level)
    if meant and plan.tree.cuboid_of(meant) not in plan.by_levels:
        sums = " ".join(f"--by {axis}={name}" for axis, name in meant.items())
        way_out = f"for sums over the other axes write {sums}"
        if records:
            way_out += " without --records, or take the released table's records: --records alone"
        raise ReleaseError(f"no cuboid {level!r} is in the plan; {way_out}")
    if meant is None and any(level in axis.columns for axis in plan.tree.axes):
        raise ReleaseError(f"no cuboid {level!r}; for sums by this column write --by {level}")


def _names(axis: Axis) -> set[str]:
    """Return what a level or column of an axis may be called."""
    names = {*axis.levels, *axis.columns}
    return names | {f"{axis.name}.{name}" for name in names}


def pairs(words: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Return name → value of a repeated option NAME=VALUE, or raise a SpecError."""
    values = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise SpecError(f"{option} takes NAME=VALUE such as {example}, got {word!r}")
        if name in values:
            raise SpecError(f"{option} gives {name!r} twice; give it once")
        values[name] = value
    return values


def check_place(
    place: Path,
    *,
    suffixes: Sequence[str] = (),
    force: bool | None = None,
    option: str = "--output",
) -> None:
    """Raise a ReleaseError unless a command may write a file there.

    Args:
        place: the file.
        suffixes: the allowed ones; any where empty.
        force: whether it may be overwritten; None where the command has no ``--force``.
        option: that names it.
    """
    where = f"{option} {str(place)!r}"
    if suffixes:
        check_suffix(place, suffixes, where, ReleaseError)
    if place.is_dir() or not (force and os.path.lexists(place)):
        way_out = "name another file" + ("" if force is None else ", or add --force")
        check_free(place, where, ReleaseError, way_out)
    check_outside(place, option)


def check_picture_place(
    picture: Path | None, error: type[HedgerowError], *, force: bool | None = None
) -> None:
    """Raise unless ``--picture`` may go there, or none is asked for.

    Where the command has no ``--force`` (None), only a picture of the same kind may be overwritten.
    Within a release no picture may go, as it may tell of the table.
    """
    check_picture(picture, error)
    if picture is None:
        return
    check_outside(picture, "--picture")
    if force is not None:
        check_place(picture, force=force, option="--picture")
    elif would_be_lost(picture):
        raise ReleaseError(
            f"--picture {str(picture)!r}: the file exists and is not a "
            f"{picture.suffix[1:].upper()} picture; name another file"
        )


@contextmanager
def whole_file(place: Path) -> Iterator[BinaryIO]:
    """Open a file to fill that then takes its place, or leaves nothing where the block fails."""
    with whole_place(place) as part, part.open("xb") as file:
        yield file


def write_table(frame: pl.DataFrame, place: Path, *, quote_formulas: bool = False) -> None:
    """Write a frame as CSV or Parquet, by the suffix of its place, atomically: `write_parts`."""
    write_parts([frame], place, quote_formulas=quote_formulas)


def write_parts(
    parts: Iterable[pl.DataFrame], place: Path, *, quote_formulas: bool = False
) -> None:
    """Write frames of the same columns, at least one, below each other, atomically.

    Texts that a spreadsheet would run as formulas (`FORMULA`) are written into a CSV file
    unchanged, with a warning, so that they still match the lists they come from; or with an
    apostrophe before them. No number is a formula.
    """
    if place.suffix.lower() != ".csv":
        with whole_file(place) as file:
            write_parquet(file, parts)
        return
    changed = 0
    with whole_file(place) as file:
        for number, part in enumerate(parts):
            # the frame with an apostrophe before every text that is a formula, its headings too
            text = pl.selectors.string()
            safe = part.with_columns(
                pl.when(_runs(text)).then("'" + text).otherwise(text).name.keep()
            )
            headings = {name: f"'{name}" for name in part.columns if re.match(FORMULA, name)}
            written = safe.rename(headings)
            # how many texts of a frame have an apostrophe in another, its headings too
            headers = list(zip(part.columns, written.columns, strict=True))
            many = sum(
                int((part[before] != written[after]).sum())
                for before, after in headers
                if part[before].dtype == pl.String
            )
            changed += many + (not number) * sum(before != after for before, after in headers)
            (written if quote_formulas else part).write_csv(file, include_header=not number)
    if not quote_formulas:
        _warn(changed, place, "--quote-formulas puts an apostrophe before them, Parquet keeps them")


def warn_of_formulas(place: Path) -> None:
    """Warn of texts in the CSV files of a folder that a spreadsheet would run."""
    formulas = 0
    for path in sorted(place.rglob("*.csv")):
        texts = pl.scan_csv(path, infer_schema=False)
        names = texts.collect_schema().names()
        formulas += sum(re.match(FORMULA, name) is not None for name in names)
        formulas += texts.select(pl.sum_horizontal(_runs(pl.all()).sum())).collect().item() or 0
    _warn(formulas, place, "import them as text, or take hedgerow table with --quote-formulas")


def _warn(many: int, place: Path, way_out: str) -> None:
    if many:
        warn(
            f"{many:,} codes or names in {place} begin "
            f"like formulas (= + - @, tab or a new line), which a spreadsheet runs when it opens "
            f"the file; {way_out}"
        )


FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""The start of a text that spreadsheets take for a formula."""

NUMBER = r"^[+-]?[0-9][0-9 ]*([.,][0-9]+)?([eE][+-]?[0-9]+)?$"
"""A text that they take for a number, such as the code -9, which runs nothing."""


def _runs(text: pl.Expr) -> pl.Expr:
    """Return whether a spreadsheet takes a text for a formula."""
    return text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
