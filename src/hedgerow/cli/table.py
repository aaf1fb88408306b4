"""`table`: counts, noisy counts or records of a release, as a file or on the terminal."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from hedgerow.cli.described import show_columns, show_heading
from hedgerow.cli.output_file import (
    TABLES,
    AreaColumn,
    Areas,
    ByLevels,
    Directory,
    QuoteFormulas,
    check_place,
    levels_by,
    write_table,
)
from hedgerow.cli.records import show_records
from hedgerow.cli.terminal import escape, stage, stderr, stdout, warn_of_contradictions
from hedgerow.errors import ReleaseError, TableError
from hedgerow.plan.describe import aligned
from hedgerow.plan.plan import Plan
from hedgerow.release.cuboid import levels_of
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.presentation import Presentation
from hedgerow.release.release import Release, label_columns, meant_levels, read_release
from hedgerow.release.spine.answers import is_off_tree
from hedgerow.text import visible

FIRST_ROWS = 20
UNRELIABLE = "[u]"
"""Stands for a count that is left out, as in the tables of statistical offices."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The table that the options name.

    Attributes:
        level: a cuboid by its name.
        depth: a depth of a chain by its number.
        by: levels of axes, as they were given.
        counts_only: without errors, so that they need not be computed.
        areas: a file of areas of the user's own, which the counts are summed over.
        area_column: of that file.
        all_cells: whether cells with a count of 0 are listed, too.
        names: whether names of areas are written; a terminal shows them anyway.
    """

    level: str | None
    depth: int | None
    by: list[str]
    counts_only: bool
    areas: Path | None = None
    area_column: str | None = None
    all_cells: bool = False
    names: bool = False

    def named(self, frame: pl.DataFrame, released: Release, output: Path | None) -> pl.DataFrame:
        """Return a table with the names of its areas, where they are asked for or shown."""
        tree = released.plan.tree
        if self.names:
            return tree.with_names(frame)
        if output is None:
            with suppress(TableError):  # a column called like that is there: codes are enough
                return tree.with_names(frame)
        return frame

    def __post_init__(self) -> None:
        if self.all_cells and (self.by or self.areas is not None):
            raise ReleaseError("--all goes with --level or --depth; sums over areas list all areas")
        of_plan = (self.level is not None) + (self.depth is not None)
        if self.areas is None and self.area_column is not None:
            raise ReleaseError("--area-column names a column of the file of --areas; give that too")
        if self.areas is not None and of_plan:
            raise ReleaseError(
                "--areas goes with --by AXIS=LEVEL of other axes, or alone; leave out --level and "
                "--depth"
            )
        if self.areas is None and of_plan + bool(self.by) != 1:
            raise ReleaseError(
                "name one table: --level, or --depth, or --by AXIS=LEVEL, or --areas"
            )


def table(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Directory,
    level: Annotated[
        str | None, typer.Option(help="A cuboid by its name in the plan: county.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="A depth of a chain by its number, 0: the total.")
    ] = None,
    by: ByLevels = None,
    areas: Areas = None,
    area_column: AreaColumn = None,
    counts_only: Annotated[
        bool, typer.Option("--counts-only", help="Without standard errors and intervals.")
    ] = False,
    all_cells: Annotated[
        bool,
        typer.Option(
            "--all", help="Of --level or --depth every measured cell, also those with a count of 0."
        ),
    ] = False,
    noisy: Annotated[
        bool,
        typer.Option(
            "--noisy",
            help="The noisy counts that were measured, and the variance of their noise.",
        ),
    ] = False,
    records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="One row a released record: of the released table, or of --level or --depth.",
        ),
    ] = False,
    round_to: Annotated[
        int | None,
        typer.Option(
            "--round", metavar="N", help="Show counts as the nearest multiple of N, ties upwards."
        ),
    ] = None,
    suppress_wider: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Leave out counts whose interval is wider than this share of the count: 0.5.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A CSV or Parquet file. Default: show the first rows.")
    ] = None,
    names: Annotated[
        bool,
        typer.Option("--names", help="Write names of areas, too, which a terminal always shows."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    quote_formulas: QuoteFormulas = False,
) -> None:
    """Write the counts of a release as a table (CSV or Parquet), or show its first rows.

    Columns: the codes; count; the unbiased estimate and its standard_error; low and high, the 95 %
    interval of the true count; and contradicted: whether the count lies outside the intervals that
    hold for all counts of the table at once, which chance does not explain; there use the estimate.
    Combinations that are not listed have a count of 0. With --areas one row an area of your own,
    with exact standard errors, also by levels of other axes (--by). With --noisy instead the
    noisy_count of each measured cell and its variance: unbiased, and often below 0. With --records
    the codes alone, one row for every record that was counted. --round and --suppress-wider change
    what is shown or written here, never the release. Reads only the release directory, at no
    privacy cost.
    """
    if output is not None:
        check_place(output, suffixes=TABLES, force=force)
    presentation = Presentation(round_to, suppress_wider)
    if records:
        other = counts_only or noisy or presentation.changes or areas or area_column or all_cells
        if by or other or names or (level is not None and depth is not None):
            raise ReleaseError(
                "--records goes with --level or --depth, or alone for the released table; it "
                "shows codes alone"
            )
        show_records(directory, level, depth, output, quote_formulas=quote_formulas)
        return
    if noisy and (counts_only or presentation.changes or areas or all_cells):
        raise ReleaseError(
            "--noisy shows noisy counts as they were measured; leave out --counts-only, --areas, "
            "--all, --round and --suppress-wider"
        )
    asked = Asked(level, depth, by or [], counts_only, areas, area_column, all_cells, names)
    if noisy:
        _noisy(directory, asked, output, quote_formulas=quote_formulas)
    else:
        _counts(directory, asked, presentation, output, quote_formulas=quote_formulas)


def _noisy(directory: Path, asked: Asked, output: Path | None, *, quote_formulas: bool) -> None:
    """Write or show noisy counts."""
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        plan, level = released.plan, asked.level
        if levels := levels_by(plan.tree, asked.by):
            label_columns(plan, levels)  # or an error that says which there are
            if is_off_tree(plan, levels):
                raise ReleaseError(
                    "--noisy shows cuboids that were measured, and these columns are none; name "
                    "levels, or ask for sums without --noisy"
                )
            level = plan.tree.name_of(levels_of(plan.tree, levels))
        frame = released.measurements(level, depth=asked.depth)
    _put(
        plan, asked.named(frame, released, output), output, quote_formulas=quote_formulas,
        note="noisy counts as they were measured, unbiased; a cell that is not listed was not "
        "measured",
    )  # fmt: skip


def _counts(
    directory: Path,
    asked: Asked,
    presentation: Presentation,
    output: Path | None,
    *,
    quote_formulas: bool,
) -> None:
    """Write or show counts."""
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        levels = levels_by(released.plan.tree, asked.by)
        bare = asked.counts_only and presentation.suppress_wider is None
        whole = _frame(released, asked, levels, bare=bare)
    frame = presentation.applied(whole)
    if asked.counts_only:
        errors = {ESTIMATE, STANDARD_ERROR, LOW, HIGH, CONTRADICTED}
        frame = frame.select(name for name in frame.columns if name not in errors)
    note = "combinations that are not listed have a count of 0"
    if asked.all_cells:
        note = "a cell that is not listed is known to be empty, or was not measured"
    if asked.areas is not None:
        note = "areas may overlap, so their sums need not be the total"
    named = asked.named(frame, released, output)
    _put(released.plan, named, output, quote_formulas=quote_formulas, note=note)
    for sentence in presentation.sentences(frame):
        stdout.print(escape(sentence))
    if CONTRADICTED in whole.columns:
        astray = (whole[COUNT] < whole[LOW]) | (whole[COUNT] > whole[HIGH])
        warn_of_contradictions(whole[CONTRADICTED], int(astray.sum()))
    elif levels or asked.areas is not None:
        stderr.print(
            "Note: whether these sums contradict their own measurements is not shown; leave out "
            "--counts-only for their estimates"
        )


def _frame(released: Release, asked: Asked, levels: dict[str, str], *, bare: bool) -> pl.DataFrame:
    if asked.areas is not None:
        return released.areas(
            asked.areas, column=asked.area_column, by=levels, confidence=None if bare else USUAL
        )
    if levels:
        return released.cuboid(None if bare else USUAL, **levels)
    plan, level, depth = released.plan, asked.level, asked.depth
    if depth is not None and not plan.is_chain:
        raise ReleaseError(
            f"{plan.workload.noun} has no depths; name a cuboid: "
            f"--level {plan.tree.name_of(plan.levels[1])!r}, or --by AXIS=LEVEL"
        )
    meant = None if level is None else meant_levels(plan.tree, level)
    if meant and levels_of(plan.tree, meant) not in plan.by_levels:
        sums = " ".join(f"--by {axis}={name}" for axis, name in meant.items())
        raise ReleaseError(
            f"no cuboid {level!r} is in the plan; for sums over the other axes write {sums}"
        )
    if meant is None and any(level in axis.columns for axis in plan.tree.axes):
        raise ReleaseError(f"no cuboid {level!r}; for sums by this column write --by {level}")
    return released.level(level, depth=depth, all=asked.all_cells)


def _put(
    plan: Plan, frame: pl.DataFrame, output: Path | None, *, note: str, quote_formulas: bool
) -> None:
    """Write a table, or show its first rows with what they are."""
    if output is None:
        labels = [name for name, kind in frame.schema.items() if kind == pl.String]
        show_heading(plan)
        _show(frame, labels)
        stdout.print("")
        show_columns(plan, frame.columns)
        stdout.print(
            f"{min(len(frame), FIRST_ROWS):,} of {len(frame):,} rows; {note}. "
            "--output FILE.csv writes all rows."
        )
        return
    write_table(frame, output, quote_formulas=quote_formulas)
    stdout.print(f"{len(frame):,} rows: [bold]{escape(str(output))}[/bold]")


def _show(frame: pl.DataFrame, labels: Sequence[str]) -> None:
    """Print the first rows: codes to the left, numbers to the right."""
    head = frame.head(FIRST_ROWS)
    columns = [[_word(name, value) for value in head[name]] for name in head.columns]
    rows = [head.columns, *zip(*columns, strict=True)]
    stdout.print(
        escape(aligned(rows, left={i for i, name in enumerate(head.columns) if name in labels}))
    )


def _word(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.1f}" if name == ESTIMATE else f"{value:,.4g}"
    if value is None:
        return UNRELIABLE if name == COUNT else ""
    return f"{value:,}" if isinstance(value, int) else visible(str(value))
