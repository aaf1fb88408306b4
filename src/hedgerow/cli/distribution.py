"""The command `distribution`: quantiles, counts and CDF along a numeric axis, by place."""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from typer import Option

from hedgerow.arrays import Float64
from hedgerow.cli.areas import AreaCodes, AreaColumn, AreaNames, AreaOptions, Areas
from hedgerow.cli.output_file import (
    TABLES,
    ByLevels,
    Directory,
    Picture,
    Wide,
    check_options,
    check_picture_place,
    check_place,
    levels_by,
    write_table,
)
from hedgerow.cli.terminal import escape, say, stage, stdout
from hedgerow.columns import aligned
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.distribution.distribution import picture_of_distribution, read_distribution
from hedgerow.release.distribution.places import Distributions, Where
from hedgerow.release.release import read_release
from hedgerow.text import visible

DECILES = tuple(i / 10 for i in range(1, 10))
FIRST_ROWS = 20
FEWEST_DIGITS = 6


def distribution(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Directory,
    quantile: Annotated[
        list[float] | None,
        Option(
            metavar="Q",
            help="A rank in (0, 1); may be repeated. Default: all deciles, by place the median.",
        ),
    ] = None,
    between: Annotated[
        tuple[float, float] | None,
        Option(metavar="A B", help="Count the records from A to below B."),
    ] = None,
    by: ByLevels = None,
    areas: Areas = None,
    area_column: AreaColumn = None,
    area_names: AreaNames = None,
    area_codes: AreaCodes = None,
    axis: Annotated[
        str | None, Option(help="The numeric axis. Default: the only one of the release.")
    ] = None,
    cdf: Annotated[
        bool, Option("--cdf", help="Show the records below each edge of each place, too.")
    ] = False,
    level: Annotated[
        float, Option("--confidence", "--level", help="Confidence of each interval.")
    ] = 0.95,
    picture: Picture = None,
    output: Annotated[
        Path | None,
        Option(help="A CSV or Parquet file for all rows of --cdf or --between, or else quantiles."),
    ] = None,
    wide: Wide = False,
) -> None:
    """Show quantiles and CDF of a numeric axis, with intervals.

    Of all records, or by place: by levels of other axes (--by), or areas of your own (--areas).
    Reads only the release directory, at no privacy cost.
    """
    check_options(distribution, locals())
    confidence = Confidence(level)
    check_picture_place(picture, ReleaseError)
    if output is not None:
        check_place(output, suffixes=TABLES)
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        tree = released.plan.tree
        is_one = not (by or areas)
        lookup = AreaOptions(areas, area_column, area_names, area_codes or ()).lookup(tree)
        where: Where = {"by": levels_by(tree, by or []), "areas": lookup}
        told = Distributions.of(released.content, axis, where)
        ranks = quantile or (DECILES if is_one else (0.5,))
        quantiles = told.quantiles(ranks, confidence)
        counts = None if between is None else told.count_between(*between, confidence)
        below = told.cdf(confidence) if cdf or is_one else None
        if picture is not None:
            if len(tree.axes) > 1:
                raise ReleaseError("--picture draws a column that was released alone; leave it out")
            picture_of_distribution(read_distribution(directory), picture, confidence=confidence)
    if output is not None:
        frame = below if cdf and below is not None else quantiles if counts is None else counts
        write_table(frame, output)
        stdout.print(f"{len(frame):,} rows: [bold]{escape(output)}[/bold]")
        return
    exact = ", a public number" if told.cumulative.known.all() else ""
    what = f"{told.cumulative.total:,} records{exact}" if is_one else f"{told.sums.many:,} places"
    stdout.print(f"\n[bold]{escape(told.axis.name)}[/bold]: {what}")
    percent = f"{100 * level:g} %"
    _show(quantiles.drop("count") if is_one else quantiles, told, percent, wide=wide)
    if between is not None and counts is not None:
        said = f"\nFrom {between[0]:.15g} to below {between[1]:.15g}:"
        count, low, high = counts.row(0)[-3:]
        if is_one:
            said += f" {count:,} records ({percent} interval {low:,} to {high:,})"
        stdout.print(said)
        if not is_one:
            _show(counts, told, percent, wide=wide)
    if below is not None:
        _show(below, told, percent, wide=wide)
    if picture is not None:
        stdout.print(f"\nPicture: {escape(picture)}")


def _show(frame: pl.DataFrame, told: Distributions, percent: str, *, wide: bool) -> None:
    """Show rows of a frame: the first places, or of one place some that are evenly spread."""
    many = min(len(frame), FIRST_ROWS)
    rows = np.arange(many)
    if told.sums.many == 1:
        rows = np.linspace(0, len(frame), many + 1).astype(int)[1:] - 1
    headings = {"value": told.axis.name, "upper": "below", "count": "records"}
    headings |= {"low": f"{percent} interval", "high": "", "whole_axis": ""}
    forms = {"cdf": ".4f", "quantile": "g"}
    edge = f",.{_digits(told.cumulative.edges)}g"

    def word(name: str, value: object) -> str:
        if isinstance(value, bool):
            return "whole axis" if value else ""
        if isinstance(value, int | float):
            return format(value, "," if isinstance(value, int) else forms.get(name, edge))
        return visible(str(value or ""))

    words = [[word(name, value) for value in frame[rows][name]] for name in frame.columns]
    names = [headings.get(name, name) for name in frame.columns]
    codes = {i for i, kind in enumerate(frame.dtypes) if kind == pl.String}
    table = [names, *zip(*words, strict=True)]
    say("\n" + aligned(table, left=codes, wide=wide))
    if many < len(frame) and told.sums.many > 1:
        stdout.print(f"{many} of {len(frame):,} rows; --output FILE.csv writes all.")


def _digits(edges: Float64) -> int:
    """Return how many significant digits tell neighbouring edges apart, 6 to 17.

    Numbers of at most x differ in d digits where they are more than ``10^(1 - d) x`` apart.
    """
    with np.errstate(over="ignore"):
        gaps = np.log10(np.diff(edges))
    sizes = np.log10(np.maximum(np.abs(edges[1:]), np.abs(edges[:-1])))
    return int(np.clip(np.floor((sizes - gaps).max()) + 2, FEWEST_DIGITS, 17))
