"""The command `table`: the counts of a release as a table, in a file or on the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from hedgerow.cli.output_file import TABLES, QuoteFormulas, check_place, pairs, write_table
from hedgerow.cli.terminal import escape, stage, stderr, stdout, warn_of_contradictions
from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.release.directory.check import Finding
from hedgerow.release.directory.check import check as check_directory
from hedgerow.release.directory.depth_errors import USUAL
from hedgerow.release.directory.manifest import made_by, read_manifest
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, ESTIMATE, HIGH, LOW
from hedgerow.release.directory.stored import undamaged, verified_release
from hedgerow.release.page.report import REPORT, page
from hedgerow.release.release import Release, axis_level, read_release
from hedgerow.text import one_line, visible

# The command `check`: a release directory, verified again from its own files.

NOT_VERIFIED = 3
FIRST_CHECKS = 3
"""Digests, plan and domain: where one of these fails, nothing else can be checked."""


def check(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
) -> None:
    """Re-verify a release directory: digests, plan, sums, whole numbers, measurements, page.

    The exit code is 0 where every check passed, 2 where one failed, and 3 where none failed but
    something could not be verified, such as a page that another version made.
    """
    with stage("checking"):
        found = check_directory(directory)
    for finding in found:
        stdout.print(_told(finding))
    failed = [finding for finding in found if finding.failure]
    if failed:
        rest = "" if len(found) > FIRST_CHECKS else "; the others rest on these and were not made"
        raise ReleaseError(
            f"{len(failed)} of {len(found)} checks failed in {str(directory)!r}{rest}"
        )
    unverified = [finding.what for finding in found if finding.unverified]
    if unverified:
        stdout.print(
            f"{len(found) - len(unverified)} of {len(found)} checks passed, {len(unverified)} not "
            f"verified: {escape('; '.join(unverified))}."
        )
        raise typer.Exit(NOT_VERIFIED)
    stdout.print(f"All {len(found)} checks passed.")


def _told(finding: Finding) -> str:
    """Return a line that says what was found."""
    if finding.passed:
        return f"[green]ok[/green]   {escape(one_line(finding.what))}"
    mark = "[red]FAIL[/red]" if finding.failure else "[yellow]NOT VERIFIED[/yellow]"
    return f"{mark} {escape(one_line(f'{finding.what}: {finding.failure or finding.unverified}'))}"


# The command `report`: the page of a release, written again from its directory.


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    output: Annotated[
        Path | None, typer.Option(help="Where the page goes; else report.html beside DIR.")
    ] = None,
) -> None:
    """Write the page of a release again, from its directory alone; it costs no privacy.

    The release stays as it is: its own report.html is one of the files that the manifest names.
    """
    place = output or _beside(directory)
    check_place(place)
    with stage("writing the page"), undamaged(directory):
        release = verified_release(directory)
        version = made_by(read_manifest(directory))
        text = page(directory, release.plan, release.estimator, version)
    with machine_errors(f"cannot write {str(place)!r}"), place.open("x", encoding="utf-8") as file:
        file.write(text)
    stdout.print(f"Page: [bold]{escape(str(place))}[/bold]")


def _beside(directory: Path) -> Path:
    """Return where a page goes that nobody named a place for."""
    named = directory.resolve()
    return named.with_name(f"{named.name}.{REPORT}")


FIRST_ROWS = 20


def table(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    level: Annotated[
        str | None, typer.Option(help="A depth by the name that the plan shows: county.")
    ] = None,
    depth: Annotated[int | None, typer.Option(help="A depth by its number, 0: the total.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=LEVEL", help="Sums by one level an axis; repeat it for more axes."
        ),
    ] = None,
    counts_only: Annotated[
        bool, typer.Option("--counts-only", help="Without standard errors and intervals.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="A CSV or Parquet file; else the first rows are shown.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    quote_formulas: QuoteFormulas = False,
) -> None:
    """Write the counts of a release as a table (CSV or Parquet), or show its first rows.

    Columns: the codes, count, the unbiased estimate behind it and its standard_error, low and high,
    the 95 % interval of the true count, and contradicted: whether the count lies outside the
    intervals that hold for all counts of the table at once, which chance does not explain; there
    the estimate is the better number. Combinations that are not listed have a count of 0. Reads the
    release directory alone; it costs no privacy.
    """
    if output is not None:
        check_place(output, suffixes=TABLES, force=force)
    levels = pairs(by or [], "--by", "origin=region")
    if (level is not None) + (depth is not None) + bool(levels) != 1:
        raise ReleaseError("name one table: --level, or --depth, or --by AXIS=LEVEL")
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        whole = _frame(released, level, depth, levels, counts_only=counts_only)
    labels = [name for columns in released.columns.values() for name in columns]
    kept = [name for name in whole.columns if name in {*labels, COUNT}]
    found = whole.select(kept) if counts_only else whole
    if output is None:
        _show(found, labels)
    else:
        write_table(found, output, quote_formulas=quote_formulas)
        stdout.print(f"{len(found):,} rows: [bold]{escape(str(output))}[/bold]")
    if CONTRADICTED in whole.columns:
        astray = (whole[COUNT] < whole[LOW]) | (whole[COUNT] > whole[HIGH])
        warn_of_contradictions(whole[CONTRADICTED], int(astray.sum()))
    elif levels:
        stderr.print(
            "Note: nothing says which of these sums their own measurements contradict; without "
            "--counts-only their estimates do"
        )


def _frame(
    released: Release,
    level: str | None,
    depth: int | None,
    levels: dict[str, str],
    *,
    counts_only: bool,
) -> pl.DataFrame:
    if levels:
        return released.cuboid(None if counts_only else USUAL, **levels)
    tree = released.plan.tree
    names = {tree.cuboid_name(t) for t in range(tree.depth + 1)}
    known = None if level is None or level in names else axis_level(tree, level)
    if known is not None:
        raise ReleaseError(
            f"no depth {level!r}; it is a level of axis {known[0]!r}, summed over the others: "
            f"--by {known[0]}={known[1]}"
        )
    return released.level(level, depth=depth)


def _show(found: pl.DataFrame, labels: Sequence[str]) -> None:
    """Return the first rows: codes to the left, numbers to the right."""
    head = found.head(FIRST_ROWS)
    columns = [[_word(name, value) for value in head[name]] for name in head.columns]
    rows = [head.columns, *zip(*columns, strict=True)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head.columns))]
    for row in rows:
        words = (
            word.ljust(width) if name in labels else word.rjust(width)
            for name, word, width in zip(head.columns, row, widths, strict=True)
        )
        stdout.print(escape("  ".join(words).rstrip()))
    stdout.print(
        f"\n{len(head):,} of {len(found):,} rows; what is not listed has a count of 0. "
        f"--output FILE.csv writes them all."
    )


def _word(name: str, value: object) -> str:
    if name == CONTRADICTED:
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.1f}" if name == ESTIMATE else f"{value:,.4g}"
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else visible(str(value))
