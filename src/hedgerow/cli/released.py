"""The commands on a release directory but `table`: `check`, `report` and `estimate`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from typer import Argument, Option

from hedgerow.arrays import Levels
from hedgerow.cli.output_file import (
    Directory,
    Wide,
    check_named,
    check_place,
    write_parts,
)
from hedgerow.cli.terminal import bar, escape, say, stage, stdout
from hedgerow.columns import aligned
from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.registry import ESTIMATORS, read_estimator
from hedgerow.release.accepted import accepted
from hedgerow.release.directory.check import Finding
from hedgerow.release.directory.check import check as check_directory
from hedgerow.release.directory.manifest import REPORT, made_by, read_manifest
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    STANDARD_ERROR,
)
from hedgerow.release.directory.output import check_output
from hedgerow.release.directory.stored import undamaged, verified_release
from hedgerow.release.page.report import page
from hedgerow.release.reestimate.reestimate import (
    RELEASED,
    Estimates,
    estimate_measurements,
    reestimate,
)
from hedgerow.release.release import read_release
from hedgerow.spec.other_file import read_measurements
from hedgerow.text import Json, Texts, one_line, visible

NOT_VERIFIED = 3
NAMED = 5
"""Checks that are named in the first line."""
FIRST_CHECKS = 3
"""Digests, plan and domain: if one of these fails, nothing else can be checked."""


def check(directory: Directory) -> None:
    """Verify a release directory, as far as its files can show.

    Its digests, plan, sums, whole numbers, measurements and page are checked. The exit code is 0 if
    every check passed, 2 if one failed, and 3 if none failed but something could not be verified,
    such as a page made by another version of Hedgerow, or counts made by another version of its
    estimation. Of the plan's criteria it says which are kept, from stated errors alone.
    """
    with stage("checking"):
        findings = check_directory(directory)
    checks = len(findings)
    failed = sum(bool(finding.failure) for finding in findings)
    unverified = [finding.what for finding in findings if finding.unverified]
    if failed:
        stdout.print(f"{failed} of {checks} checks failed.\n")
    elif unverified:
        some = unverified[:NAMED]
        more = len(unverified) - NAMED
        others = f"; and {more:,} more" if more > 0 else ""
        say(
            f"{checks - len(unverified)} of {checks} checks passed, {len(unverified)} not "
            f"verified: {'; '.join(some)}{others}.\n"
        )
    else:
        stdout.print(f"All {checks} checks passed.\n")
    for finding in sorted(findings, key=lambda each: (each.passed, not each.failure)):
        stdout.print(_line(finding))
    if not failed:
        for number, verdict in enumerate(accepted(verified_release(directory)), start=1):
            say(f"\nCriterion {number}: {verdict.criterion!r}. {verdict.sentence}")
    if failed:
        rest = "" if checks > FIRST_CHECKS else "; the others depend on these and were not made"
        raise ReleaseError(f"{failed} of {checks} checks failed in {str(directory)!r}{rest}")
    if unverified:
        raise typer.Exit(NOT_VERIFIED)


def _line(finding: Finding) -> str:
    """Return a finding as a line."""
    if finding.passed:
        return f"[green]ok[/green]   {escape(one_line(finding.what))}"
    mark = "[red]FAIL[/red]" if finding.failure else "[yellow]NOT VERIFIED[/yellow]"
    return f"{mark} {escape(one_line(f'{finding.what}: {finding.failure or finding.unverified}'))}"


def report(
    directory: Directory,
    output: Annotated[
        Path | None, Option(help="Where the page goes. Default: DIR.report.html.")
    ] = None,
) -> None:
    """Write the page of a release again, at no privacy cost.

    It is made from the directory alone. The release is not changed: its own report.html is one of
    the files listed in the manifest.
    """
    place = output or _beside(directory, lambda name: f"{name.name}.{REPORT}")
    check_place(place)
    with stage("writing the page"), undamaged(directory):
        release = verified_release(directory)
        text = page(directory, release.plan, release.estimator, made_by(read_manifest(directory)))
    with machine_errors(f"cannot write {str(place)!r}"), place.open("x", encoding="utf-8") as file:
        file.write(text)
    stdout.print(f"Page: [bold]{escape(place)}[/bold]")


ESTIMATE_HEADINGS = (
    "cuboid", "rows", "total", "mean standard error of estimates", "differs from the release by",
)  # fmt: skip


def estimate(
    source: Annotated[
        Path,
        Argument(metavar="DIR|FILE", help="A release directory, or a measurement file."),
    ],
    method: Annotated[
        str | None,
        Option(help=f"{', '.join(ESTIMATORS)}. Default: euclidean, or isotonic for running sums."),
    ] = None,
    penalty: Annotated[
        float | None,
        Option(help="For sparse: the penalty of a positive count, in variances."),
    ] = None,
    output: Annotated[
        Path | None, Option(help="Where the estimates go. Default: beside the source.")
    ] = None,
    wide: Wide = False,
) -> None:
    """Estimate published noisy counts again, at no privacy cost.

    The results stand beside the released counts. The source is a release directory, which is not
    changed, or a TOML file that describes noisy counts from another source (see
    hedgerow.release.reestimate.external for their layout).
    """
    if method is None:
        method = Euclidean.name
        if source.is_dir():
            method = read_release(source).plan.measure.method
    given: Json = {"method": method, "penalty": penalty}
    estimator = read_estimator({name: value for name, value in given.items() if value is not None})
    place = output or _beside(source, lambda name: f"{name.stem}.{method}")
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
    say(f"\n{estimates.described['claim'].capitalize()}.\n")
    rows = [_estimate_row(estimates, levels) for levels in estimates.frames]
    along = tuple(estimates.frames) == estimates.tree.chain
    headings = "depth" if along else "", *ESTIMATE_HEADINGS
    say(aligned([headings, *rows], wide=wide))
    say(f"\nEstimates: {place}")


def _beside(source: Path, name: Callable[[Path], str]) -> Path:
    """Return the default place of what is made from a source."""
    named = Path(os.path.realpath(source)) if source.name in {"", ".."} else source
    if not named.name:
        raise ReleaseError(f"there is no place beside {str(source)!r}; name one with --output")
    return named.with_name(name(named))


def _estimate_row(estimates: Estimates, levels: Levels) -> Texts:
    tree = estimates.tree
    frame = estimates.frames[levels]
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


FIRST_ROWS = 20


def show_records(
    directory: Path,
    level: str | None,
    depth: int | None,
    output: Path | None,
    *,
    quote_formulas: bool,
    wide: bool,
) -> None:
    """Write the records of a table of a release, or show the first of them."""
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        check_named(released.plan, level, depth, records=True)
        total = released.content.total
        parts = released.records(level, depth=depth)
    if output is None:
        with undamaged(directory):
            _show(next(parts).head(FIRST_ROWS), total, wide=wide)
        return
    with bar("writing the records") as progress, undamaged(directory):

        def written() -> Iterator[pl.DataFrame]:
            """Yield what is written, and tell how much of it has been."""
            done = 0
            for part in parts:
                yield part
                done += len(part)
                progress.on_cells(len(part))
                progress.on_fraction(done / max(1, total))

        write_parts(written(), output, quote_formulas=quote_formulas)
    stdout.print(f"{total:,} rows: [bold]{escape(output)}[/bold]")


def _show(head: pl.DataFrame, total: int, *, wide: bool) -> None:
    rows = [[visible(str(value)) for value in row] for row in head.iter_rows()]
    say(aligned([head.columns, *rows], left=range(len(head.columns)), wide=wide))
    stdout.print(
        f"\n{len(head):,} of {total:,} records; each is a released count written out, nobody "
        f"stands behind it. --output FILE.csv writes all."
    )
