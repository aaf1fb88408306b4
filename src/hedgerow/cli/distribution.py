"""The command `distribution`: quantiles, counts and the CDF of a release over a numeric column."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hedgerow.arrays import Float64
from hedgerow.cli.output_file import check_picture_place
from hedgerow.cli.terminal import escape, stage, stdout
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.distribution.distribution import (
    Distribution,
    picture_of_distribution,
    read_distribution,
)

DECILES = tuple(i / 10 for i in range(1, 10))
CDF_ROWS = 20
FEWEST_DIGITS = 6


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
    level: Annotated[
        float, typer.Option("--confidence", "--level", help="Of each interval.")
    ] = 0.95,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the CDF with its band into this file.")
    ] = None,
) -> None:
    """Show the distribution in a release with one numeric axis: quantiles, CDF, intervals.

    Reads the release directory alone; it costs no privacy.
    """
    confidence = Confidence(level)
    check_picture_place(picture, ReleaseError)
    with stage("reading the release"):
        found = read_distribution(directory)
    name, total, sure = found.ranges.name, found.cumulative.total, f"{100 * level:g} %"
    exact = "" if found.cumulative.public_total is None else ", a public number"
    parts = [f"\n[bold]{escape(name)}[/bold]: {total:,} records{exact}\n"]
    if total or quantile:
        parts.append(escape(_quantiles(found, quantile or DECILES, confidence, sure)) + "\n")
    if between is not None:
        a, b = between
        count = found.count_between(a, b, confidence)
        parts.append(
            f"From {a:.15g} to below {b:.15g}: {count.count:,} records "
            f"({sure} interval {count.low:,} to {count.high:,})\n"
        )
    parts.append(escape(_cdf(found, confidence, sure)))
    if picture is not None:
        picture_of_distribution(found, picture, confidence=confidence)
        parts.append(f"\nPicture: {escape(str(picture))}")
    for part in parts:
        stdout.print(part)


def _quantiles(
    found: Distribution, ranks: Sequence[float], confidence: Confidence, sure: str
) -> str:
    form = f",.{_digits(found.ranges.edges)}g"
    rows = [("quantile", found.ranges.name, f"{sure} interval", "")]
    for q in ranks:
        made = found.quantile(q, confidence)
        value, low, high = (format(x, form) for x in (made.value, made.low, made.high))
        rows.append((f"{q:g}", value, low, high))
    return _to_the_right(rows)


def _cdf(found: Distribution, confidence: Confidence, sure: str) -> str:
    """Return the CDF at up to twenty edges."""
    band, form = found.band(confidence), f",.{_digits(found.ranges.edges)}g"
    steps = min(CDF_ROWS, len(band))
    kept = np.linspace(0, len(band), steps + 1).astype(int)[1:] - 1
    rows = [("below", "records", "cdf", f"{sure} interval", "")]
    rows += [
        (format(upper, form), f"{count:,}", f"{cdf:.4f}", f"{low:,}", f"{high:,}")
        for upper, count, cdf, low, high in band[kept.tolist()].iter_rows()
    ]
    return _to_the_right(rows)


def _digits(edges: Float64) -> int:
    """Return how many significant digits tell neighbouring edges apart, 6 to 17.

    Numbers of at most x differ in d digits where they are more than ``10^(1 - d) x`` apart.
    """
    with np.errstate(over="ignore"):
        gaps = np.log10(np.diff(edges))
    sizes = np.log10(np.maximum(np.abs(edges[1:]), np.abs(edges[:-1])))
    return int(np.clip(np.floor((sizes - gaps).max()) + 2, FEWEST_DIGITS, 17))


def _to_the_right(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(w.rjust(n) for w, n in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
