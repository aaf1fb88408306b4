"""The command `distribution`: quantiles, counts and the CDF of a release over a numeric column."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape

from hedgerow.estimate.intervals import Confidence
from hedgerow.release.distribution import Distribution, read_distribution
from hedgerow.release.distribution_picture import picture_of_distribution
from hedgerow.terminal import shown, stage

DECILES = tuple(i / 10 for i in range(1, 10))
CDF_ROWS = 20


def distribution(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    quantile: Annotated[
        list[float] | None,
        typer.Option(metavar="Q", help="A rank in (0, 1); may be repeated. Else all deciles."),
    ] = None,
    between: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="A B", help="Count the records from A to below B."),
    ] = None,
    level: Annotated[float, typer.Option(help="The confidence of each interval.")] = 0.95,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the CDF with its band into this file.")
    ] = None,
) -> None:
    """Show the distribution in a release with one numeric axis: quantiles, CDF, intervals.

    Reads the release directory alone; it costs no privacy.
    """
    confidence = Confidence(level)
    with stage("reading the release"):
        found = read_distribution(directory)
    name, total, sure = found.ranges.name, found.cumulative.total, f"{100 * level:g} %"
    exact = "" if found.cumulative.public_total is None else ", a public number"
    shown.print(f"\n[bold]{escape(name)}[/bold]: {total:,} records{exact}\n")
    if total or quantile:
        shown.print(escape(_quantiles(found, quantile or DECILES, confidence, sure)) + "\n")
    if between is not None:
        a, b = between
        count = found.count_between(a, b, confidence)
        shown.print(
            f"From {a:g} to below {b:g}: {count.count:,} records "
            f"({sure} interval {count.low:,} to {count.high:,})\n"
        )
    shown.print(escape(_cdf(found, confidence, sure)))
    if picture is not None:
        picture_of_distribution(found, picture, confidence=confidence)
        shown.print(f"\nPicture: {escape(str(picture))}")


def _quantiles(
    found: Distribution, ranks: Sequence[float], confidence: Confidence, sure: str
) -> str:
    rows = [("quantile", found.ranges.name, f"{sure} interval", "")]
    for q in ranks:
        made = found.quantile(q, confidence)
        rows.append((f"{q:g}", f"{made.value:,.6g}", f"{made.low:,.6g}", f"{made.high:,.6g}"))
    return _to_the_right(rows)


def _cdf(found: Distribution, confidence: Confidence, sure: str) -> str:
    """The CDF at up to twenty edges."""
    band = found.band(confidence)
    steps = min(CDF_ROWS, len(band))
    kept = np.linspace(0, len(band), steps + 1).astype(int)[1:] - 1
    rows = [("below", "records", "cdf", f"{sure} interval", "")]
    rows += [
        (f"{upper:,.6g}", f"{count:,}", f"{cdf:.4f}", f"{low:,}", f"{high:,}")
        for upper, count, cdf, low, high in band[kept.tolist()].iter_rows()
    ]
    return _to_the_right(rows)


def _to_the_right(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(w.rjust(n) for w, n in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
