"""The command `funds`: an amount shared by released counts, with what is due in intervals."""

from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.markup import escape

from hedgerow.errors import MachineError, ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.funds import Above, Logarithmic, Proportional, Quadratic, Rule, Seats
from hedgerow.evaluate.share_intervals import AMOUNT, DRAWS, SHARE, share_intervals
from hedgerow.plan.describe import aligned
from hedgerow.release.measurements import COUNT, HIGH, LOW
from hedgerow.release.page.markup import visible
from hedgerow.release.release import read_release
from hedgerow.terminal import shown, stage

MOST_SHOWN = 40


class RuleName(StrEnum):
    """The rules by name."""

    PROPORTIONAL = "proportional"
    LOGARITHMIC = "logarithmic"
    QUADRATIC = "quadratic"
    ABOVE = "above"
    ABOVE_EQUALLY = "above-equally"
    SEATS = "seats"


def funds(
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
) -> None:
    """Share an amount by released counts, and show what each area is due, as an interval.

    It reads the release alone and costs no privacy.
    """
    chosen = _rule(rule, threshold)
    _check_output(directory, output)
    with stage("sharing"):
        sure = Confidence(confidence)
        draws = max(DRAWS, ceil(4 / (1 - confidence)))
        found = share_intervals(read_release(directory), level, chosen, amount, sure, draws=draws)
    if output is not None:
        _write(found, output)
    whole = rule is RuleName.SEATS
    rows = [_row(row, whole=whole) for row in found.head(MOST_SHOWN).iter_rows(named=True)]
    shown.print(
        f"\n{amount:,g} shared by {escape(level)}, {rule.value}; {confidence:.0%} intervals"
    )
    shown.print("of what is due by the true counts:\n")
    rows = [tuple(map(visible, row)) for row in rows]  # labels are somebody else's
    shown.print(escape(aligned([("area", COUNT, SHARE, AMOUNT, LOW, HIGH), *rows])))
    if len(found) > MOST_SHOWN:
        shown.print(f"\n{len(found) - MOST_SHOWN:,} more areas; --output writes them all.")
    if output is not None:
        shown.print(f"\nAll areas: {escape(str(output))}")


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


def _check_output(directory: Path, output: Path | None) -> None:
    if output is None:
        return
    if output.suffix not in {".csv", ".parquet"}:
        raise ReleaseError(f"--output must end in .csv or .parquet, got {str(output)!r}")
    if output.exists() or output.is_symlink():
        raise ReleaseError(f"--output {str(output)!r} exists already; name another file")
    if output.resolve().is_relative_to(directory.resolve()):
        raise ReleaseError("--output lies inside the release, which stays as it is; name another")


def _write(found: pl.DataFrame, output: Path) -> None:
    try:
        if output.suffix == ".csv":
            found.write_csv(output)
        else:
            found.write_parquet(output)
    except OSError as error:
        raise MachineError(f"cannot write {str(output)!r}: {error.strerror or error}") from error


def _row(row: dict[str, str | int | float], *, whole: bool) -> tuple[str, ...]:
    """A row in words; the area by its codes, coarsest first."""
    facts = (COUNT, SHARE, AMOUNT, LOW, HIGH)
    area = " ".join(str(value) for name, value in row.items() if name not in facts) or "all"
    number = "{:,.0f}" if whole else "{:,.2f}"
    money = (number.format(row[name]) for name in facts[2:])
    return (area, f"{row[COUNT]:,}", f"{row[SHARE]:.4%}", *money)
