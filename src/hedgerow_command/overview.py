"""What `hedgerow --help` and `--version` show, without importing what the commands need."""

from typing import Annotated

import typer

import hedgerow

COMMANDS = """\
new: Write a release file for a table, to fill in: from its header alone, no value is used.
example: Write a synthetic table, its public list of areas and a release file to try.
plan: Show what a release will measure, the error to expect, and what it promises.
release: Make the release: measure, estimate, write; it appears whole or not at all.
check: Re-verify a release directory: digests, plan, sums, whole numbers, measurements, page.
table: Write the counts of a release as a table (CSV or Parquet), or show its first rows.
distribution: Show the distribution in a release with one numeric axis: quantiles, CDF, intervals.
funds: Share an amount by released counts, and show what each area is due, as an interval.
report: Write the page of a release again, from its directory alone; it costs no privacy.
estimate: Estimate noisy counts again, side by side with what was there; it costs no privacy.
compare: Compare a release with its own table, depth by depth. The figures are CONFIDENTIAL.
simulate: Compare settings on a PUBLIC or synthetic table, by simulated releases.
account: Say what mechanisms used together cost, exactly, beside the loose conversions.
ledger: Keep account of what releases of a dataset have cost.
"""
"""Each command and the first paragraph of its own help, in their order; a test compares them."""


def show() -> None:
    """Show the usage, the options and the commands; ends the process."""
    overview = typer.Typer(
        name="hedgerow", no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )
    overview.callback()(command)
    for line in COMMANDS.splitlines():
        name, _, sentence = line.partition(": ")
        overview.command(name, help=sentence)(_elsewhere)
    overview()


def _version(wanted: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if wanted:
        typer.echo(f"hedgerow {hedgerow.__version__}")
        raise typer.Exit


def command(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Release hierarchical count tables under differential privacy."""


def _elsewhere() -> None:
    """Return the command is in `hedgerow.cli`."""
