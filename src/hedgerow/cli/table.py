"""`table`: counts, noisy counts or records of a release, as a file or on the terminal."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Option

from hedgerow.cli.areas import AreaCodes, AreaColumn, AreaNames, AreaOptions, Areas
from hedgerow.cli.output_file import (
    TABLES,
    Beside,
    ByLevels,
    Directory,
    QuoteFormulas,
    Wide,
    check_named,
    check_options,
    check_place,
    levels_by,
    write_table,
)
from hedgerow.cli.released import show_records
from hedgerow.cli.terminal import (
    bar,
    escape,
    say,
    show_columns,
    show_heading,
    stage,
    stderr,
    stdout,
    warn_of_contradictions,
    with_names,
)
from hedgerow.columns import aligned
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.pairs import OF, RATIO
from hedgerow.release.answers.questions import sums_of
from hedgerow.release.answers.ratio_question import RatioQuestion
from hedgerow.release.answers.sums import Sums
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
from hedgerow.release.release import Release, read_release
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree
from hedgerow.text import TextByName, visible

FIRST_ROWS = 20
OF_WHICH = (
    "standard_error is the error of estimate, and low to high an interval around it. count is a "
    "whole number, 0 or more, that adds up with the others; so it differs from estimate."
)
APPROXIMATE = (
    "These intervals are approximate, as what lies below counts released as 0 was not measured."
)
OF_RATIO = (
    "ratio is that of the released counts, of being the denominator. low to high holds the true "
    "ratio with a confidence of 95 %, over all cells and not only those listed, from both unbiased "
    "estimates and their covariance. Where the denominator may be 0 it is not bounded, and high "
    "may be missing; where both may be, there is no ratio."
)
OF_RATE = (
    "ratio is the released count, and low to high its interval, divided by a public number (of)."
)
ALONE = ("counts_only", "all_cells", "noisy", "records", "round_to", "suppress_wider")
"""Options that go with counts and with no ratio of theirs."""
UNRELIABLE = "[u]"
"""Stands for a count that is left out, as in the tables of statistical offices."""


@frozen
class Question:
    """The table that the options name.

    Attributes:
        directory: of the release.
        level: a cuboid by its name.
        depth: a depth of a chain by its number.
        by: levels of axes, as they were given.
        counts_only: without errors, so that they need not be computed.
        areas: a lookup of areas of the user's own, which the counts are summed over.
        share: levels of what each count is told as a share of, as they were given.
        rate: a file of public numbers that each count is divided by.
        all_cells: whether cells with a count of 0 are listed, too.
        names: whether names of areas are written; a terminal shows them anyway.
        output: the file that is written; None to show the first rows.
        quote_formulas: whether codes that are formulas get an apostrophe there.
        wide: whether a terminal shows the columns whole.
    """

    directory: Path
    level: str | None
    depth: int | None
    by: list[str]
    counts_only: bool
    areas: AreaOptions
    share: list[str]
    rate: Path | None
    all_cells: bool
    names: bool
    output: Path | None
    quote_formulas: bool
    wide: bool

    def named(self, frame: pl.DataFrame, tree: Tree, lookup: Lookup | None = None) -> pl.DataFrame:
        """Return a table with the names of its areas, where they are asked for or shown."""
        if self.names:
            return tree.with_names(frame if lookup is None else lookup.with_names(frame))
        return with_names(tree, frame, lookup) if self.output is None else frame

    def __post_init__(self) -> None:
        of_plan = (self.level is not None) + (self.depth is not None)
        if self.areas.file is None and of_plan + bool(self.by) != 1:
            raise ReleaseError(
                "name one table: --level, or --depth, or --by AXIS=LEVEL, or --areas"
            )


def table(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Directory,
    level: Annotated[str | None, Option(help="A cuboid by its name in the plan: county.")] = None,
    depth: Annotated[
        int | None,
        Option(help="A depth of a chain by its number, 0: the total."),
        Beside(("level",), "name one table: --level, or --depth; not both"),
    ] = None,
    by: ByLevels = None,
    areas: Annotated[
        Areas,
        Beside(
            ("level", "depth"),
            "--areas goes with --by AXIS=LEVEL of other axes, or alone; leave out --level and "
            "--depth",
        ),
    ] = None,
    area_column: AreaColumn = None,
    area_names: AreaNames = None,
    area_codes: AreaCodes = None,
    share: Annotated[
        list[str] | None,
        Option(
            metavar="AXIS=LEVEL",
            help="Shares of the cell of this level that each is in, with intervals; may be "
            "repeated; or total. With --areas of another area by its code, or total.",
        ),
        Beside(
            ALONE,
            "--share and --rate tell ratios with intervals; leave out what changes "
            "counts: --counts-only, --all, --noisy, --records, --round, --suppress-wider",
        ),
    ] = None,
    rate: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Counts divided by public numbers, with intervals: a CSV or Parquet file with "
            "codes or areas of the table, and a column of numbers.",
        ),
        Beside(
            (*ALONE, "share"),
            "--share and --rate tell ratios with intervals; give one of them, "
            "and leave out what changes counts: --counts-only, --all, --noisy, --records, "
            "--round, --suppress-wider",
        ),
    ] = None,
    counts_only: Annotated[
        bool, Option("--counts-only", help="Without standard errors and intervals.")
    ] = False,
    all_cells: Annotated[
        bool,
        Option(
            "--all", help="Of --level or --depth every measured cell, also those with a count of 0."
        ),
        Beside(
            ("by", "areas"),
            "--all goes with --level or --depth; sums over areas list all areas",
        ),
    ] = False,
    noisy: Annotated[
        bool,
        Option(
            "--noisy",
            help="The noisy counts that were measured, and the variance of their noise.",
        ),
        Beside(
            ("counts_only", "areas", "all_cells", "round_to", "suppress_wider"),
            "--noisy shows noisy counts as they were measured; leave out --counts-only, --areas, "
            "--all, --round and --suppress-wider",
        ),
    ] = False,
    records: Annotated[
        bool,
        Option(
            "--records",
            help="One row a released record: of the released table, or of --level or --depth.",
        ),
        Beside(
            (
                *("by", "areas", "counts_only", "all_cells", "noisy", "round_to"),
                *("suppress_wider", "names"),
            ),
            "--records goes with --level or --depth, or alone for the released table; it shows "
            "codes alone",
        ),
    ] = False,
    round_to: Annotated[
        int | None,
        Option(
            "--round", metavar="N", help="Show counts as the nearest multiple of N, ties upwards."
        ),
    ] = None,
    suppress_wider: Annotated[
        float | None,
        Option(
            metavar="SHARE",
            help="Leave out counts whose interval is wider than this share of the count: 0.5.",
        ),
    ] = None,
    output: Annotated[
        Path | None, Option(help="A CSV or Parquet file. Default: show the first rows.")
    ] = None,
    names: Annotated[
        bool,
        Option("--names", help="Write names of areas, too, which a terminal always shows."),
    ] = False,
    force: Annotated[bool, Option("--force", help="Overwrite the output.")] = False,
    quote_formulas: QuoteFormulas = False,
    wide: Wide = False,
) -> None:
    """Show a table of a release, or write it (CSV or Parquet).

    Columns: the codes; count; the unbiased estimate and its standard_error, which is not that of
    count; low and high, the 95 % interval of the true count; and contradicted: whether the count
    lies outside the intervals that hold for all counts of the table at once, which chance does not
    explain; there use the estimate. Of sums of which survivors alone were measured, estimate and
    interval are approximate, or left out.
    Combinations that are not listed have a count of 0. With --areas one row an area of your own,
    with exact standard errors, also by levels and columns of other axes (--by). With --share or
    --rate instead the ratio of each count and another, or a public number. With --noisy
    instead the noisy_count of each measured cell and its variance: unbiased, and often below 0.
    With --records the codes alone, one row for every record that was counted. --round and
    --suppress-wider change what is shown or written here, never the release. Reads only the release
    directory, at no privacy cost.
    """
    check_options(table, locals())
    if output is not None:
        check_place(output, suffixes=TABLES, force=force)
    presentation = Presentation(round_to, suppress_wider)
    of_areas = AreaOptions(areas, area_column, area_names, area_codes or ())
    if records:
        show_records(directory, level, depth, output, quote_formulas=quote_formulas, wide=wide)
        return
    question = Question(
        directory, level, depth, by or [], counts_only, of_areas, share or [], rate, all_cells,
        names, output, quote_formulas, wide,
    )  # fmt: skip
    if noisy:
        _noisy(question)
    elif question.share or question.rate:
        _ratios(question)
    else:
        _counts(question, presentation)


def _noisy(question: Question) -> None:
    """Write or show noisy counts."""
    with stage("reading the release"), undamaged(question.directory):
        released = read_release(question.directory)
        plan = released.plan
        level = question.level
        if levels := levels_by(plan.tree, question.by):
            sums = Sums(plan, levels)  # or an error that says which there are
            if not sums.is_cuboid:
                raise ReleaseError(
                    "--noisy shows cuboids that were measured, and these columns are none; name "
                    "levels, or ask for sums without --noisy"
                )
            level = plan.tree.name_of(sums.levels)
        frame = released.measurements(level, depth=question.depth)
    note = (
        "noisy counts as they were measured, unbiased; a cell that is not listed was not measured"
    )
    _put(question, plan, question.named(frame, plan.tree), note=note)


def _counts(question: Question, presentation: Presentation) -> None:
    """Write or show counts."""
    with stage("reading the release"), undamaged(question.directory):
        released = read_release(question.directory)
        levels = levels_by(released.plan.tree, question.by)
        bare = question.counts_only and presentation.suppress_wider is None
        lookup = question.areas.lookup(released.plan.tree)
        if lookup is None:
            whole = _frame(released, question, levels, bare=bare)
    sums = Sums(released.plan, levels, lookup)
    if lookup is not None:
        whole = _sums(question, released, sums, bare=bare)
    reasons = _reasons(whole.head(FIRST_ROWS)) if CONTRADICTED in whole.columns else []
    frame = presentation.applied(whole)
    if question.counts_only:
        errors = {ESTIMATE, STANDARD_ERROR, LOW, HIGH, CONTRADICTED}
        frame = frame.select(name for name in frame.columns if name not in errors)
    note = "combinations that are not listed have a count of 0"
    if question.all_cells:
        note = "a cell that is not listed is known to be empty, or was not measured"
    if lookup is not None:
        note = "areas may overlap, so their sums need not be the total"
    named = question.named(frame, released.plan.tree, lookup)
    about = " ".join([OF_WHICH, *_reservations(released.plan, question, sums)])
    _put(question, released.plan, named, note=note, about=about, reasons=reasons)
    notes = [] if lookup is None else lookup.notes(released.plan.tree)
    for sentence in (*notes, *presentation.sentences(frame)):
        say(sentence)
    if CONTRADICTED in whole.columns:
        astray = (whole[COUNT] < whole[LOW]) | (whole[COUNT] > whole[HIGH])
        warn_of_contradictions(whole[CONTRADICTED], int(astray.sum()))
    elif levels or lookup is not None:
        stderr.print(
            "Note: whether these sums contradict their own measurements is not shown; leave out "
            "--counts-only for their estimates"
        )


def _ratios(question: Question) -> None:
    """Write or show shares, ratios of areas, and rates."""
    with stage("reading the release"), undamaged(question.directory):
        released = read_release(question.directory)
        plan = released.plan
        tree = released.plan.tree
        levels = levels_by(tree, question.by)
        lookup = question.areas.lookup(tree)
        if lookup is None and not levels:
            check_named(plan, question.level, question.depth)
            named = None if question.level is None else tree.named(question.level)
            named = tree.cuboid(question.depth or 0) if named is None else named
            levels = dict(Sums.of(plan, named).by)
    words = [] if question.share == ["total"] else question.share
    about = OF_RATIO
    if question.rate is not None:
        ratio = RatioQuestion(levels, question.rate, lookup)
        sums = Sums(plan, levels, lookup)
        about = " ".join([OF_RATE, *_reservations(plan, question, sums)])
    elif lookup is None:
        ratio = RatioQuestion(levels, levels_by(tree, words, "--share"))
    else:
        if len(words) > 1:
            raise ReleaseError("--areas takes one --share: the code of an area, or total")
        ratio = RatioQuestion(levels, words[0] if words else None, lookup)
    with bar("errors of the ratios") as progress, undamaged(question.directory):
        frame = ratio.answered(released.content, USUAL, progress.on_fraction)
    note = "ratios are those of listed counts"
    reasons = ["yes" if flag else "" for flag in frame[CONTRADICTED].head(FIRST_ROWS)]
    named_frame = question.named(frame, tree, lookup)
    _put(question, plan, named_frame, note=note, about=about, reasons=reasons)


def _reservations(plan: Plan, question: Question, sums: Sums) -> Iterator[str]:
    """Yield what else is to be said: that parts were not measured, how wide bounds are."""
    design = plan.design
    named = question.level and plan.tree.named(question.level)
    has_errors = sums.levels in plan.by_levels or design.is_answerable(sums.levels)
    if sums.is_cuboid and not has_errors:
        yield APPROXIMATE
    of_cells = design.carried_noise(named or sums.cuboid).steps
    steps = of_cells if sums.lookup is None else design.steps_of_sums
    if steps is not None and not steps.is_exact:
        yield design.ways


def _sums(question: Question, released: Release, sums: Sums, *, bare: bool) -> pl.DataFrame:
    """Return sums over areas; errors of many take a while."""
    if bare:
        with undamaged(question.directory):
            return sums_of(released.content, sums, None)
    with bar("errors of the sums") as progress, undamaged(question.directory):
        return sums_of(released.content, sums, USUAL, progress.on_fraction)


def _frame(
    released: Release, question: Question, levels: TextByName, *, bare: bool
) -> pl.DataFrame:
    if levels:
        return released.cuboid(None if bare else USUAL, **levels)
    check_named(released.plan, question.level, question.depth)
    return released.level(question.level, depth=question.depth, all=question.all_cells)


def _put(
    question: Question,
    plan: Plan,
    frame: pl.DataFrame,
    *,
    note: str,
    about: str = OF_WHICH,
    reasons: Sequence[str] = (),
) -> None:
    """Write a table, or show its first rows with what they are and what is said about errors.

    Codes stand to the left, numbers to the right, flags with their reasons.
    """
    if question.output is None:
        show_heading(plan)
        head = frame.head(FIRST_ROWS)
        columns = [[_word(name, value) for value in head[name]] for name in head.columns]
        if CONTRADICTED in head.columns:
            columns[head.columns.index(CONTRADICTED)] = list(reasons)
        codes = {i for i, kind in enumerate(head.dtypes) if kind == pl.String}
        rows = zip(*columns, strict=True)
        say(aligned([head.columns, *rows], left=codes, wide=question.wide))
        stdout.print("")
        show_columns(plan, frame.columns, wide=question.wide)
        if any(name in frame.columns and frame[name].count() for name in (ESTIMATE, RATIO)):
            stdout.print(f"{about}\n")
        stdout.print(
            f"{min(len(frame), FIRST_ROWS):,} of {len(frame):,} rows; {note}. "
            "--output FILE.csv writes all rows."
        )
        return
    write_table(frame, question.output, quote_formulas=question.quote_formulas)
    stdout.print(f"{len(frame):,} rows: [bold]{escape(question.output)}[/bold]")


def _reasons(head: pl.DataFrame) -> list[str]:
    """Return of each count how far from its estimate it was moved, if its measurements deny it."""
    apart = ((pl.col(COUNT) - pl.col(ESTIMATE)) / pl.col(STANDARD_ERROR)).alias("apart")
    return [
        f"yes: {abs(apart or 0):,.1f} standard errors {'above' if (apart or 0) > 0 else 'below'}"
        if flag
        else ""
        for flag, apart in head.select(CONTRADICTED, apart).iter_rows()
    ]


def _word(name: str, value: object) -> str:
    if isinstance(value, float) and value and name in {LOW, HIGH}:  # of ratios: outwards
        step = 10.0 ** (floor(log10(abs(value))) - 3)
        return f"{(floor if name == LOW else ceil)(value / step) * step:,.4g}"
    if isinstance(value, float):
        digits = {ESTIMATE: ",.1f", OF: ",.15g"}.get(name, ",.4g")
        return f"{value:{digits}}"
    if value is None:
        return UNRELIABLE if name == COUNT else ""
    if isinstance(value, bool):  # which is an integer, too
        return "yes" if value else ""
    return f"{value:,}" if isinstance(value, int) else visible(str(value))
