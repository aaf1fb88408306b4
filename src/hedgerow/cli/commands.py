"""The application with all commands, and how it ends: exit codes and error sentences."""

import codecs
import errno
import io
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, cast

import typer
from typer import Argument, Option

from hedgerow import __version__
from hedgerow.cli.beside import Methods, show_beside
from hedgerow.cli.distribution import distribution
from hedgerow.cli.export import export
from hedgerow.cli.funds import funds
from hedgerow.cli.new import new
from hedgerow.cli.output_file import (
    Beside,
    Picture,
    ReleaseFile,
    Wide,
    check_options,
    check_picture_place,
)
from hedgerow.cli.plan import plan, show_plan, warn_of
from hedgerow.cli.privacy import account, ledgers, warn_of_other_accounts
from hedgerow.cli.released import check, estimate, report
from hedgerow.cli.simulate import simulate
from hedgerow.cli.table import table
from hedgerow.cli.terminal import (
    PLAIN,
    bar,
    escape,
    in_plain_letters,
    kept,
    moved,
    not_stated,
    report_reading,
    say,
    say_files,
    show_heading,
    show_levels,
    stage,
    stderr,
    stdout,
    warn_of_copies,
)
from hedgerow.columns import aligned
from hedgerow.declared import check_known
from hedgerow.errors import (
    HedgerowError,
    MachineError,
    PlanError,
    ReleaseError,
    SpecError,
    presentable,
)
from hedgerow.evaluate.accepted import OUTSIDE, in_fact
from hedgerow.evaluate.error_picture import picture_of_errors
from hedgerow.evaluate.metrics import HEADINGS_BESIDE_FORECAST as ERROR_HEADINGS
from hedgerow.evaluate.metrics import (
    coverage,
    error_by_cuboid,
    errors_by_size,
    headings_of,
    rows_beside_forecast,
    size_rows,
)
from hedgerow.evaluate.practice.figures import OneRelease
from hedgerow.evaluate.practice.strategies import methods_of, read_strategies
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.examples import EXAMPLES, SIZES
from hedgerow.examples.redistricting import PRODUCTION, write_redistricting
from hedgerow.plan.forecast import forecast
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.output import Unfinished, check_output
from hedgerow.release.execution import release as make_release
from hedgerow.release.preflight import (
    check_estimator,
    check_memory,
    copies_of_the_table,
    read_memory,
)
from hedgerow.release.release import Release, read_release
from hedgerow.spark.driver import release_on_spark
from hedgerow.spark.session import SparkEngine
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.tables.counts import Counts
from hedgerow.text import check_utf8, one_line

app = typer.Typer(
    name="hedgerow",
    help="Release hierarchical count tables under differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

STOPPED = 130
MISNAMED = {
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG,
}  # fmt: skip
"""Errors of the operating system about a path that the user gave, which are bad input."""
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
ENDED = {128 + number for number in SIGNALS}
KEPT = "stopped; an unfinished release is kept beside its output directory: finish it with --resume"

COMPARED = (
    "In records. 95 % max, forecast: of the plan (hedgerow plan); ratio: the measured error over "
    "the forecast. The forecast leaves out rounding and clipping at 0: where most counts are 0 the "
    "ratio is below 1, and where cells are few a single release varies about its forecast. "
    "covered: the share of the 95 % intervals that hold the true count, those of cells released as "
    "0 too; blank where these cannot be had."
)
BY_SIZE = {
    "cells": "Cells",
    "mae": "Mean absolute error of the released counts",
    "held": "Share of the 95 % intervals that hold the true count",
}


def _version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def hedgerow(
    version: Annotated[
        bool,
        Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Release hierarchical count tables under differential privacy."""


def example(
    kind: Annotated[str, Argument(metavar="KIND", help=" or ".join(EXAMPLES))],
    directory: Annotated[Path, Argument(metavar="DIR", help="The directory to write it to.")],
    size: Annotated[
        str | None,
        Option(
            help="small (the default), or national (the size of a country); of redistricting "
            "state (the default), nation or small."
        ),
    ] = None,
) -> None:
    """Write a synthetic table, its areas and a release file."""
    check_known(kind, EXAMPLES, "example", SpecError)
    check_utf8(directory, "the directory", SpecError)
    size = size or SIZES[kind][0]
    task = f"writing the {size} {kind} example"
    if kind == "redistricting":
        with bar(task) as progress:
            file = write_redistricting(directory, size, progress.on_fraction)
        also = escape(file.with_name(PRODUCTION))
        stdout.print(f"The marginals and shares of the 2020 census: [bold]{also}[/bold]")
    else:
        with stage(task):
            file = EXAMPLES[kind](directory, size)
    stdout.print(f"Next: [bold]hedgerow plan {escape(file)}[/bold]")


def release(
    file: ReleaseFile,
    resume: Annotated[
        bool, Option("--resume", help="Finish an interrupted run, with the same noise.")
    ] = False,
    discard: Annotated[
        bool,
        Option(
            "--discard",
            help="Delete an interrupted run and start again: its charge stays in the ledger, and "
            "the new run is charged too.",
        ),
        Beside(("resume",), "--resume and --discard exclude each other"),
    ] = False,
    expect_plan: Annotated[
        str | None,
        Option(metavar="SHA256", help="Run only the plan with this hash."),
    ] = None,
    memory: Annotated[
        str | None,
        Option(metavar="SIZE", help="Memory target, e.g. 4GB. Default: all available."),
    ] = None,
    wide: Wide = False,
) -> None:
    """Run the release; output is written atomically."""
    check_options(release, locals())
    unfinished = Unfinished.RESUME if resume else Unfinished.REFUSE
    unfinished = Unfinished.DISCARD if discard else unfinished
    limit = None if memory is None else read_memory(memory)
    spec = ReleaseSpec(file)
    check_output(spec.output, unfinished)
    with stage("reading the lists of areas"):
        estimator = spec.estimator
        made = spec.plan(spec.tree())
    warn_of(made, spec)
    check_estimator(estimator, made)
    if spec.spark is None:
        check_memory(made, limit)
    elif limit is not None:
        raise SpecError("--memory is for this machine; on Spark its own settings limit memory")
    with stage("checking that estimates can be made"):
        made.design.rehearse()
    if expect_plan is not None and expect_plan != made.hash:
        raise PlanError(f"this file's plan has the hash {made.hash}, not {expect_plan}")
    charging = spec.charging
    if charging is not None and unfinished is not Unfinished.RESUME:
        charging.check(made)
    options: dict[str, Any] = {
        "charging": charging, "unfinished": unfinished, "estimator": estimator,
        "directory": spec.output,
    }  # fmt: skip
    run = _released_on_spark if spec.spark is not None else _released_here
    released = int(run(spec, made, options, limit).level("total")["count"].sum())
    stdout.print(f"\n[bold]Released {released:,} records into {escape(spec.output)}[/bold]")
    show_plan(made, wide=wide)
    if charging is not None:
        warn_of_other_accounts(charging.ledger, {charging.dataset})
        say(charging.standing(made).describe())
    stdout.print(f"Next: [bold]hedgerow check {escape(spec.output)}[/bold]")


def _released_here(
    spec: ReleaseSpec, made: Plan, options: dict[str, Any], limit: int | None
) -> Release:
    # One line in a log, and the notes behind it: where it ends, and so why, is confidential.
    with bar("reading the table, measuring and estimating") as progress:
        counts = spec.table.counts(made.tree, limit)
        released = make_release(counts, made, progress=progress, **options)
    report_reading(counts)
    with suppress(KeyboardInterrupt):  # the release is complete: comparing alone is stopped
        warn_of_copies(lambda: _copies(spec, made, counts))
    return released


def _copies(spec: ReleaseSpec, made: Plan, counts: Counts) -> Iterator[str]:
    """Yield what public files say exactly as the confidential table does, a clause each."""
    if spec.allocation.is_own_prior(made.tree, counts):
        yield "the prior has exactly the counts of the table"
    for number in spec.own_sizes(made.tree, counts):
        yield f"the sizes of criterion {number} are exactly the counts of the table"
    yield from copies_of_the_table(counts, made)


def _released_on_spark(
    spec: ReleaseSpec, made: Plan, options: dict[str, Any], _limit: int | None
) -> Release:
    with ExitStack() as stack:
        with stage("starting Spark"):
            session = stack.enter_context(cast("SparkEngine", spec.spark).session())
        # One line in a log, as where it ends is confidential.
        progress = stack.enter_context(bar("reading the table, measuring and estimating on Spark"))
        table = spec.table.on_spark(session, made.tree)
        return release_on_spark(table, made, progress=progress, **options)


def compare(
    file: ReleaseFile,
    picture: Picture = None,
    beside: Methods = None,
    wide: Wide = False,
) -> None:
    """Compare a release with its table: errors are CONFIDENTIAL.

    For people who may see the table: exact errors reveal true counts. Publish them only if the
    table is public or synthetic. It counts, too, how many cells keep the plan's criteria: what is
    done because of that is outside the promise.

    Beside the release --beside shows what rounding, suppression and cell keys would make of the
    table, with keys that anyone can draw again: nothing of that may be published either.
    """
    check_picture_place(picture, ReleaseError)
    strategies = None if beside is None else read_strategies(beside)
    spec = ReleaseSpec(file)
    released = read_release(spec.output)
    with stage("reading the table"):
        counts = spec.table.counts(spec.tree())
    with stage("comparing"):
        errors = error_by_cuboid(counts, released)
        by_size = errors_by_size(counts, released)
        expected = forecast(released.plan)
        covered = coverage(by_size)
    bounding = kept(counts)
    if bounding is not None:
        say(f"The release {bounding}; the errors below leave out what was dropped.\n")
    for confidential, _ in not_stated(counts) + moved(counts):
        say(f"{confidential}\n")
    show_heading(released.plan)
    stdout.print("Error of the released counts against the truth (confidential):\n")
    rows = [headings_of(errors, ERROR_HEADINGS), *rows_beside_forecast(errors, expected, covered)]
    say(aligned(rows, wide=wide))
    stdout.print("")
    show_levels(released.plan, wide=wide)
    stdout.print(f"{COMPARED}\n")
    for what, heading in BY_SIZE.items():
        stdout.print(f"{heading}, by the size of the true count (confidential):\n")
        say(f"{aligned(size_rows(by_size, what), wide=wide)}\n")
    if released.plan.accept:
        stdout.print("Criteria, by the truth (confidential):\n")
        for sentence in (*in_fact(counts, released), OUTSIDE):
            say(f"{sentence}\n")
    if strategies is not None:
        own = OneRelease(released)
        methods = methods_of(strategies, own.plan)
        show_beside(counts, own, methods, seeded_bits, "confidential", wide=wide)
    if picture is not None:
        picture_of_errors(released.plan, errors, picture, expected=expected, covered=covered)
    say_files({"Picture": picture})


for command in (
    *(new, example, plan, release, check, table, distribution, funds, report, estimate),
    *(export, compare, simulate, account),
):  # in the order in which they are met, as in `hedgerow_command.overview.COMMANDS`
    app.command()(command)
app.add_typer(ledgers, name="ledger", no_args_is_help=True)


def main() -> None:
    """Run the command that the process was started with."""
    codecs.register_error(PLAIN, in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)
    for number in SIGNALS:
        signal.signal(number, _end)
    sys.exit(run())


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End as Ctrl-C does, so that temporary files of the table go away."""
    sys.exit(128 + number)


def run(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code of a command; print every failure as one sentence, no traceback."""
    try:
        code = _command(app)(arguments, standalone_mode=False) or 0
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except SystemExit as end:
        if end.code in ENDED:
            _print_error(_stopped(arguments))
        raise
    except BaseException as error:  # noqa: BLE001 - whatever an unforeseen one says may quote the table
        return _explain(error)
    if code == STOPPED:
        _print_error(_stopped(arguments))
    return int(code)


@cache
def _command(of: typer.Typer) -> Any:
    """Return what runs an application, made once: from its functions Typer makes it each time."""
    return typer.main.get_command(of)


def _stopped(arguments: Sequence[str] | None) -> str:
    """Return what is left of a command that was stopped: of a release what it has begun."""
    given = sys.argv[1:] if arguments is None else arguments
    return KEPT if [*given[:1]] == ["release"] else "stopped"


def _explain(error: BaseException) -> int:
    """Print an error as one sentence; return the exit code."""
    if isinstance(error, HedgerowError):
        _print_error(str(error), error.confidential)
        return error.exit_code
    if isinstance(error, MemoryError):
        _print_error("out of memory")
    elif isinstance(error, OSError):
        _print_error(f"{error.filename or 'the machine'}: {error.strerror or type(error).__name__}")
        return HedgerowError.exit_code if error.errno in MISNAMED else MachineError.exit_code
    elif hasattr(error, "format_message"):  # usage errors of click and typer
        # a usage error of Typer without its words for types
        message = error.format_message()
        message = re.sub("Input should be a valid integer.*", "must be a whole number", message)
        _print_error(re.sub("Input should be a valid number.*", "must be a number", message))
        return int(getattr(error, "exit_code", 2))
    else:
        _print_bug(error)
    return MachineError.exit_code


def _print_error(sentence: str, confidential: str | None = None) -> None:
    with suppress(OSError):  # the terminal may have gone, or a log be full
        stderr.print(f"[red]Error:[/red] {escape(one_line(presentable(sentence)))}")
        if confidential and sys.stderr.isatty():
            stderr.print(f"[dim]Confidential: {escape(one_line(confidential))}[/dim]")


def _print_bug(error: BaseException) -> None:
    """Print where it broke, but not its message, which may quote the confidential table."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    _print_error(
        f"internal error, please report it: {type(error).__name__} at "
        f"{Path(where.filename).name}:{where.lineno}"
    )
    if sys.stderr.isatty():
        stderr.print(escape("".join(traceback.format_exception(error))), style="dim")
