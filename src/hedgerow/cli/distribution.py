"""The command `distribution`: quantiles, counts and the CDF of a release over a numeric column."""

from typing import Annotated

import numpy as np
from typer import Option

from hedgerow.arrays import Float64
from hedgerow.cli.output_file import Directory, Picture, Wide, check_picture_place
from hedgerow.cli.terminal import escape, stage, stdout
from hedgerow.columns import aligned
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.distribution.distribution import picture_of_distribution, read_distribution
from hedgerow.text import Rows

DECILES = tuple(i / 10 for i in range(1, 10))
CDF_ROWS = 20
FEWEST_DIGITS = 6


def distribution(
    directory: Directory,
    quantile: Annotated[
        list[float] | None,
        Option(metavar="Q", help="A rank in (0, 1); may be repeated. Default: all deciles."),
    ] = None,
    between: Annotated[
        tuple[float, float] | None,
        Option(metavar="A B", help="Count the records from A to below B."),
    ] = None,
    level: Annotated[
        float, Option("--confidence", "--level", help="Confidence of each interval.")
    ] = 0.95,
    picture: Picture = None,
    wide: Wide = False,
) -> None:
    """Show quantiles and CDF of a numeric axis, with intervals.

    It is the only axis of its release. Reads only the release directory, at no privacy cost.
    """
    confidence = Confidence(level)
    check_picture_place(picture, ReleaseError)
    with stage("reading the release"):
        released = read_distribution(directory)
    name, total, percent = released.ranges.name, released.cumulative.total, f"{100 * level:g} %"
    exact = "" if released.cumulative.errors.total is None else ", a public number"
    form = f",.{_digits(released.ranges.edges)}g"
    parts = [f"\n[bold]{escape(name)}[/bold]: {total:,} records{exact}\n"]
    if total or quantile:
        rows: Rows = [("quantile", name, f"{percent} interval", "")]
        for q in quantile or DECILES:
            made = released.quantile(q, confidence)
            rows.append((f"{q:g}", *(format(x, form) for x in (made.value, made.low, made.high))))
        parts.append(escape(aligned(rows, left=(), wide=wide)) + "\n")
    if between is not None:
        a, b = between
        count = released.count_between(a, b, confidence)
        parts.append(
            f"From {a:.15g} to below {b:.15g}: {count.count:,} records "
            f"({percent} interval {count.low:,} to {count.high:,})\n"
        )
    band = released.band(confidence)
    shown = np.linspace(0, len(band), min(CDF_ROWS, len(band)) + 1).astype(int)[1:] - 1
    rows = [("below", "records", "cdf", f"{percent} interval", "")]
    rows += [
        (format(upper, form), f"{count:,}", f"{cdf:.4f}", f"{low:,}", f"{high:,}")
        for upper, count, cdf, low, high in band[shown.tolist()].iter_rows()
    ]
    parts.append(escape(aligned(rows, left=(), wide=wide)))
    if picture is not None:
        picture_of_distribution(released, picture, confidence=confidence)
        parts.append(f"\nPicture: {escape(picture)}")
    for part in parts:
        stdout.print(part)


def _digits(edges: Float64) -> int:
    """Return how many significant digits tell neighbouring edges apart, 6 to 17.

    Numbers of at most x differ in d digits where they are more than ``10^(1 - d) x`` apart.
    """
    with np.errstate(over="ignore"):
        gaps = np.log10(np.diff(edges))
    sizes = np.log10(np.maximum(np.abs(edges[1:]), np.abs(edges[:-1])))
    return int(np.clip(np.floor((sizes - gaps).max()) + 2, FEWEST_DIGITS, 17))
