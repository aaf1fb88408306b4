"""The commands on a release directory: `check`, `report`, `table` and `estimate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from hedgerow.cli.output_file import (
    TABLES,
    ByLevels,
    Directory,
    QuoteFormulas,
    check_place,
    levels_by,
    write_table,
)
from hedgerow.cli.records import show_records
from hedgerow.cli.terminal import escape, stage, stderr, stdout, warn_of_contradictions
from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.registry import ESTIMATORS, read_estimator
from hedgerow.plan.describe import aligned
from hedgerow.release.cuboid import levels_of
from hedgerow.release.directory.check import Finding
from hedgerow.release.directory.check import check as check_directory
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.directory.manifest import made_by, read_manifest
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.output import check_output
from hedgerow.release.directory.stored import undamaged, verified_release
from hedgerow.release.page.report import REPORT, page
from hedgerow.release.preflight import usual_method
from hedgerow.release.reestimate.reestimate import (
    RELEASED,
    Estimates,
    estimate_measurements,
    reestimate,
)
from hedgerow.release.release import Release, meant_levels, read_release
from hedgerow.spec.measurement_file import read_measurements
from hedgerow.tables.tree import Levels
from hedgerow.text import one_line, visible

NOT_VERIFIED = 3
FIRST_CHECKS = 3
"""Digests, plan and domain: if one of these fails, nothing else can be checked."""


def check(directory: Directory) -> None:
    """Verify a release directory: digests, plan, sums, whole numbers, measurements, page.

    The exit code is 0 if every check passed, 2 if one failed, and 3 if none failed but something
    could not be verified, such as a page made by another version.
    """
    with stage("checking"):
        findings = check_directory(directory)
    for finding in findings:
        stdout.print(_line(finding))
    checks, failed = len(findings), sum(bool(finding.failure) for finding in findings)
    if failed:
        rest = "" if checks > FIRST_CHECKS else "; the others depend on these and were not made"
        raise ReleaseError(f"{failed} of {checks} checks failed in {str(directory)!r}{rest}")
    unverified = [finding.what for finding in findings if finding.unverified]
    if unverified:
        stdout.print(
            f"{checks - len(unverified)} of {checks} checks passed, {len(unverified)} not "
            f"verified: {escape('; '.join(unverified))}."
        )
        raise typer.Exit(NOT_VERIFIED)
    stdout.print(f"All {checks} checks passed.")


def _line(finding: Finding) -> str:
    """Return a finding as a line."""
    if finding.passed:
        return f"[green]ok[/green]   {escape(one_line(finding.what))}"
    mark = "[red]FAIL[/red]" if finding.failure else "[yellow]NOT VERIFIED[/yellow]"
    return f"{mark} {escape(one_line(f'{finding.what}: {finding.failure or finding.unverified}'))}"


def report(
    directory: Directory,
    output: Annotated[
        Path | None, typer.Option(help="Where the page goes. Default: DIR.report.html.")
    ] = None,
) -> None:
    """Write the page of a release again, from its directory alone, at no privacy cost.

    The release is not changed: its own report.html is one of the files listed in the manifest.
    """
    name = directory.resolve()
    place = output or name.with_name(f"{name.name}.{REPORT}")
    check_place(place)
    with stage("writing the page"), undamaged(directory):
        release = verified_release(directory)
        version = made_by(read_manifest(directory))
        text = page(directory, release.plan, release.estimator, version)
    with machine_errors(f"cannot write {str(place)!r}"), place.open("x", encoding="utf-8") as file:
        file.write(text)
    stdout.print(f"Page: [bold]{escape(str(place))}[/bold]")


FIRST_ROWS = 20


def table(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Directory,
    level: Annotated[
        str | None, typer.Option(help="A cuboid by its name in the plan: county.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="A depth of a chain by its number, 0: the total.")
    ] = None,
    by: ByLevels = None,
    counts_only: Annotated[
        bool, typer.Option("--counts-only", help="Without standard errors and intervals.")
    ] = False,
    records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="One row a released record: of the released table, or of --level or --depth.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="A CSV or Parquet file. Default: show the first rows.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    quote_formulas: QuoteFormulas = False,
) -> None:
    """Write the counts of a release as a table (CSV or Parquet), or show its first rows.

    Columns: the codes; count; the unbiased estimate and its standard_error; low and high, the 95 %
    interval of the true count; and contradicted: whether the count lies outside the intervals that
    hold for all counts of the table at once, which chance does not explain; there use the estimate.
    Combinations that are not listed have a count of 0. With --records the codes alone, one row for
    every record that was counted. Reads only the release directory, at no privacy cost.
    """
    if output is not None:
        check_place(output, suffixes=TABLES, force=force)
    if records:
        if by or counts_only or (level is not None and depth is not None):
            raise ReleaseError(
                "--records goes with --level or --depth, or alone for the released table; it "
                "shows codes alone"
            )
        show_records(directory, level, depth, output, quote_formulas=quote_formulas)
        return
    if (level is not None) + (depth is not None) + bool(by) != 1:
        raise ReleaseError("name one table: --level, or --depth, or --by AXIS=LEVEL")
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        levels = levels_by(released.plan.tree, by or [])
        whole = _frame(released, level, depth, levels, counts_only=counts_only)
    labels = [name for columns in released.columns.values() for name in columns]
    kept = [name for name in whole.columns if name in {*labels, COUNT}]
    frame = whole.select(kept) if counts_only else whole
    if output is None:
        _show(frame, labels)
    else:
        write_table(frame, output, quote_formulas=quote_formulas)
        stdout.print(f"{len(frame):,} rows: [bold]{escape(str(output))}[/bold]")
    if CONTRADICTED in whole.columns:
        astray = (whole[COUNT] < whole[LOW]) | (whole[COUNT] > whole[HIGH])
        warn_of_contradictions(whole[CONTRADICTED], int(astray.sum()))
    elif levels:
        stderr.print(
            "Note: whether these sums contradict their own measurements is not shown; leave out "
            "--counts-only for their estimates"
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
    plan = released.plan
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
    if meant is None and any(level in axis.columns for axis in plan.tree.axes):
        raise ReleaseError(f"no cuboid {level!r}; for sums by this column write --by {level}")
    return released.level(level, depth=depth)


def _show(frame: pl.DataFrame, labels: Sequence[str]) -> None:
    """Print the first rows: codes to the left, numbers to the right."""
    head = frame.head(FIRST_ROWS)
    columns = [[_word(name, value) for value in head[name]] for name in head.columns]
    rows = [head.columns, *zip(*columns, strict=True)]
    stdout.print(
        escape(aligned(rows, left={i for i, name in enumerate(head.columns) if name in labels}))
    )
    stdout.print(
        f"\n{len(head):,} of {len(frame):,} rows; combinations that are not listed have a count of "
        f"0. --output FILE.csv writes all rows."
    )


def _word(name: str, value: object) -> str:
    if name == CONTRADICTED:
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.1f}" if name == ESTIMATE else f"{value:,.4g}"
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


ESTIMATE_HEADINGS = (
    "cuboid", "rows", "total", "mean standard error", "differs from the release by",
)  # fmt: skip


def estimate(
    source: Annotated[
        Path,
        typer.Argument(metavar="DIR|FILE", help="A release directory, or a measurement file."),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(ESTIMATORS)}. Default: euclidean, or isotonic for running sums."
        ),
    ] = None,
    penalty: Annotated[
        float | None,
        typer.Option(help="For sparse: the penalty of a positive count, in variances."),
    ] = None,
    combine: Annotated[
        bool | None,
        typer.Option("--combine/--no-combine", help="Whether to combine depths first."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where the estimates go. Default: beside the source.")
    ] = None,
) -> None:
    """Re-estimate published noisy counts, beside the released ones, at no privacy cost.

    The source is a release directory, which is not changed, or a TOML file that describes noisy
    counts from another source (see hedgerow.release.reestimate.external for their layout).
    """
    if method is None:
        method = Euclidean.name
        if source.is_dir():
            method = usual_method(read_release(source).plan.measure)
    given: dict[str, Any] = {"method": method, "penalty": penalty, "combine": combine}
    estimator = read_estimator({name: value for name, value in given.items() if value is not None})
    place = output or _beside(source, method)
    try:
        check_output(place)
    except ReleaseError as error:
        raise ReleaseError(str(error).replace("[output] directory", "--output", 1)) from None
    with stage("estimating"):
        estimates = (
            reestimate(source, estimator)
            if source.is_dir()
            else estimate_measurements(read_measurements(source), estimator)
        )
    estimates.write(place)
    stdout.print(f"\n{escape(estimates.described['claim'].capitalize())}.\n")
    rows = [_estimate_row(estimates, levels) for levels in estimates.frames]
    along = tuple(estimates.frames) == estimates.tree.chain
    headings = ("depth" if along else "", *ESTIMATE_HEADINGS)
    stdout.print(escape(aligned([headings, *rows])))
    stdout.print(f"\nEstimates: {escape(str(place))}")


def _beside(source: Path, method: str) -> Path:
    """Return the default place of estimates."""
    named = source.resolve() if source.name in {"", ".."} else source
    if not named.name:
        raise ReleaseError(f"there is no place beside {str(source)!r}; name one with --output")
    return named.with_name(f"{named.stem}.{method}")


def _estimate_row(estimates: Estimates, levels: Levels) -> tuple[str, ...]:
    tree, frame = estimates.tree, estimates.frames[levels]
    value = COUNT if COUNT in frame.columns else ESTIMATE
    differs = ""
    if RELEASED in frame.columns:
        difference = _mean((frame[value] - frame[RELEASED]).abs())
        differs = f"{difference:,.3g} on average"
    return (
        str(sum(levels)) if tuple(estimates.frames) == tree.chain else "",
        tree.name_of(levels),
        f"{len(frame):,}",
        f"{frame[value].sum():,.0f}",
        f"{_mean(frame[STANDARD_ERROR]):,.4g}",
        differs,
    )


def _mean(values: pl.Series) -> float:
    numbers = values.drop_nulls().to_numpy()
    return float(numbers.mean()) if len(numbers) else 0.0
