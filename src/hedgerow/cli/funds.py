"""The command `funds`: an amount shared by released counts, with what is due in intervals."""

from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.output_file import TABLES, QuoteFormulas, check_place, write_table
from hedgerow.cli.terminal import escape, stage, stdout, warn_of_contradictions
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.funds import Above, Logarithmic, Proportional, Quadratic, Rule, Seats
from hedgerow.evaluate.share_intervals import AMOUNT, DRAWS, SHARE, least_draws, share_intervals
from hedgerow.plan.describe import aligned
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, ESTIMATE, HIGH, LOW
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.release import read_release
from hedgerow.text import visible

MOST_SHOWN = 40


class RuleName(StrEnum):
    """The rules by name."""

    PROPORTIONAL = "proportional"
    LOGARITHMIC = "logarithmic"
    QUADRATIC = "quadratic"
    ABOVE = "above"
    ABOVE_EQUALLY = "above-equally"
    SEATS = "seats"


def funds(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    level: Annotated[str, typer.Option(help="Whose areas share, such as county.")],
    amount: Annotated[float, typer.Option(help="What is shared; of seats, how many.")],
    rule: Annotated[
        RuleName, typer.Option(help="How: by what weight, above which count, or in whole seats.")
    ] = RuleName.PROPORTIONAL,
    threshold: Annotated[
        int | None, typer.Option(help="Of above: areas with more records than this share.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of each interval.")] = 0.95,
    output: Annotated[
        Path | None, typer.Option(help="Write all areas into this file (CSV or Parquet).")
    ] = None,
    quote_formulas: QuoteFormulas = False,
) -> None:
    """Share an amount by released counts, and show what each area is due, as an interval.

    It reads the release alone and costs no privacy.
    """
    chosen = _rule(rule, threshold)
    if output is not None:
        check_place(output, suffixes=TABLES)
    sure = Confidence(confidence)
    draws = max(DRAWS, ceil(4 / (1 - confidence)), least_draws(sure))
    with stage("sharing"), undamaged(directory):
        found = share_intervals(read_release(directory), level, chosen, amount, sure, draws=draws)
    if output is not None:
        write_table(found, output, quote_formulas=quote_formulas)
    whole = rule is RuleName.SEATS
    rows = [_row(row, whole=whole) for row in found.head(MOST_SHOWN).iter_rows(named=True)]
    stdout.print(
        f"\n{amount:,g} shared by {escape(level)}, {rule.value}; {confidence:.0%} intervals"
    )
    stdout.print("of what is due by the true counts:\n")
    rows = [tuple(map(visible, row)) for row in rows]  # labels are somebody else's
    headings = ("area", COUNT, ESTIMATE, SHARE, AMOUNT, LOW, HIGH, CONTRADICTED)
    stdout.print(escape(aligned([headings, *rows])))
    if len(found) > MOST_SHOWN:
        stdout.print(f"\n{len(found) - MOST_SHOWN:,} more areas; --output writes them all.")
    if output is not None:
        stdout.print(f"\nAll areas: {escape(str(output))}")
    warn_of_contradictions(found[CONTRADICTED])


def _rule(name: RuleName, threshold: int | None) -> Rule:
    by_count = name in {RuleName.ABOVE, RuleName.ABOVE_EQUALLY}
    if by_count and threshold is None:
        raise ReleaseError(f"--rule {name.value} needs --threshold, a number of records")
    if not by_count and threshold is not None:
        raise ReleaseError(f"--threshold is for --rule above, not for {name.value}")
    match name:
        case RuleName.PROPORTIONAL:
            return Proportional()
        case RuleName.LOGARITHMIC:
            return Logarithmic()
        case RuleName.QUADRATIC:
            return Quadratic()
        case RuleName.SEATS:
            return Seats()
        case _:
            return Above(threshold or 0, equally=name is RuleName.ABOVE_EQUALLY)


def _row(row: dict[str, str | int | float], *, whole: bool) -> tuple[str, ...]:
    """Return a row in words; the area by its codes, coarsest first."""
    facts = (COUNT, ESTIMATE, SHARE, AMOUNT, LOW, HIGH, CONTRADICTED)
    area = " ".join(str(value) for name, value in row.items() if name not in facts) or "all"
    number = "{:,.0f}" if whole else "{:,.2f}"
    money = (number.format(row[name]) for name in (AMOUNT, LOW, HIGH))
    flag = "yes" if row[CONTRADICTED] else ""
    return (area, f"{row[COUNT]:,}", f"{row[ESTIMATE]:,.1f}", f"{row[SHARE]:.4%}", *money, flag)
