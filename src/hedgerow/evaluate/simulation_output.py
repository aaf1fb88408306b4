"""The results of a simulation as text, as a labelled file, and as a picture."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import cycle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.evaluate.error_picture import Marks, marks_of
from hedgerow.evaluate.simulate import METRICS
from hedgerow.picture import (
    COLOURS,
    GREY,
    MUTE,
    figure_for,
    label_rows,
    panel_name,
    write_heading,
)
from hedgerow.text import Rows, TextByName

SHARES = tuple(name for name in METRICS if name.endswith("rate") or name.startswith("relative"))
"""Metrics that are shown as percentages."""

WORDS = {
    "rmse": "RMSE (records)",
    "cumulative_rmse": "RMSE of cumulative counts (records)",
    "max_error": "Maximum error (records)",
    "mae": "Mean absolute error (records)",
    "bias2": "Bias² (records²)",
    "variance": "Variance (records²)",
    "false_discovery_rate": "False discovery rate",
    "false_negative_rate": "False negative rate",
    "total_variation": "Total variation distance",
    "seconds": "Seconds a run",
    **{
        name: f"Relative error of counts from {name.removeprefix('relative_error_')}".replace(
            "_", " "
        )
        for name in METRICS
        if name.startswith("relative_error")
    },
}
"""Metric → its heading."""

NOTICE = (
    "Simulation on a public or synthetic table under a seed. Not a release: anyone can draw the "
    "noise again, so it protects nobody."
)


def metric_rows(errors: pl.DataFrame, metric: str) -> Rows:
    """Return one metric: settings by cuboid, ± the Monte Carlo error, * at a cuboid's least.

    Cuboids go by their numbers in `legend`; a setting that does not answer one has a dash there.
    """
    cuboids = list(enumerate(errors["cuboid"].unique(maintain_order=True)))
    if metric == "seconds":  # of a run, which is all cuboids
        cuboids = cuboids[-1:]
    value = pl.col(metric)
    ranges = errors.group_by("cuboid").agg(value.min().alias("least"), value.max().alias("most"))
    marked = metric != "bias2"  # of which the least is no better than one near 0
    least = {each: low if marked and low != high else None for each, low, high in ranges.rows()}
    rows: Rows = [
        ("", "setting", *(str(number) if metric != "seconds" else "" for number, _ in cuboids))
    ]
    for (name,), part in errors.group_by(["setting"], maintain_order=True):
        of = {row["cuboid"]: row for row in part.iter_rows(named=True)}
        if metric == "seconds":
            of = {each: next(iter(of.values())) for _, each in cuboids}
        words = [_word(of[c], metric, least[c]) if c in of else "-" for _, c in cuboids]
        rows.append(("", str(name), *words))
    return rows


def _word(row: Mapping[str, float | None], metric: str, least: float | None) -> str:
    value = row[metric]
    error = row[f"{metric}_error"]
    if value is None or error is None:
        return "-"
    mark = "*" if value == least and (value or error) else " "
    if metric in SHARES:
        return f"{value:.1%} ±{error:.1%}{mark}"
    digits = _digits(value, error)
    return f"{value:,.{digits}f} ±{error:,.{digits}f}{mark}" if error else f"{value:,.4g} {mark}"


def _digits(value: float, error: float) -> int:
    """Return the decimals for two digits of the error, or three of a more certain value."""
    sizes = [x for x in (error, abs(value) / 10) if x > 0 and math.isfinite(x)]
    return min(max(0, 1 - math.floor(math.log10(min(sizes)))), 9) if sizes else 0


def write_simulation(errors: pl.DataFrame, file: BinaryIO, facts: Mapping[str, object]) -> None:
    """Write the results as Parquet; its metadata (key ``hedgerow``) says that it is simulated."""
    described = json.dumps({"kind": "simulation", "notice": NOTICE, **facts}, ensure_ascii=False)
    table = errors.to_arrow().replace_schema_metadata({"hedgerow": described})
    pq.write_table(table, file)


def legend(errors: pl.DataFrame) -> Rows:
    """Return what the numbers of cuboids mean: along a chain they are depths."""
    cuboids = errors.select("cuboid", "cells").unique(maintain_order=True).iter_rows()
    numbered = [(str(t), name, f"{cells:,.0f}") for t, (name, cells) in enumerate(cuboids)]
    return [("", "cuboid", "cells"), *numbered]


DRAWN_METRICS = ("rmse", "max_error", "false_discovery_rate")
MOST_PANELS = 6
MANY_SETTINGS = 30
NARROWEST = 7.2
DRAWN = "Bars are two Monte Carlo standard errors either way."
WIDE, MANY_DECADES = 4, 100
"""Ratios of largest to least from which an axis is logarithmic, and has ticks at powers of ten."""


@frozen
class TableWords:
    """What a picture calls a table.

    Attributes:
        title: of the table.
        unit: what a count counts, in the plural.
        labels: what readers call its cuboids, by their names.
    """

    title: str = ""
    unit: str = "records"
    labels: TextByName = field(default_factory=dict)


TABLE = TableWords()
Colours = dict[str | None, str]
"""Of each estimator, and of methods without one."""


def picture_of_simulation(
    errors: pl.DataFrame,
    path: Path,
    *,
    words: TableWords = TABLE,
    about: str = "",
    metrics: Sequence[str] = DRAWN_METRICS,
    force: bool = False,
) -> None:
    """Draw some metrics of all settings, a panel a cuboid.

    Bars are two Monte Carlo standard errors either way, colours estimators, squares ``measure =
    "all"``; methods without projection are grey. What every projection gets right is left out;
    of many cuboids six are drawn, and of more than 30 settings the first metric alone. With
    ``force`` a file that is not a picture is replaced.

    Args:
        errors: the frame of `hedgerow.evaluate.simulate.simulate`.
        path: PNG, SVG or PDF.
        words: of the table.
        about: what was simulated, in a sentence.
        metrics: those that are drawn.
        force: whether any file there is replaced.

    Raises:
        ReleaseError: matplotlib is not installed, or the file cannot be written.
    """
    names = errors["setting"].unique(maintain_order=True).to_list()
    metrics = metrics if len(names) <= MANY_SETTINGS else metrics[:1]
    estimators = errors["estimator"].drop_nulls().unique(maintain_order=True)
    colours: Colours = {None: GREY, **dict(zip(estimators, cycle(COLOURS), strict=False))}
    cuboids = _cuboids(errors)
    heading = words.title or "Settings compared", f"{about} {DRAWN}".strip()
    size = max(3.2 + 2.0 * len(cuboids), NARROWEST), len(metrics) * (1.25 + 0.19 * len(names)) + 0.5
    with figure_for(path, size, ReleaseError, force=force) as figure:
        write_heading(figure, *heading)
        grid = figure.subplots(len(metrics), len(cuboids), squeeze=False, sharey=True)
        for metric, row in zip(metrics, grid, strict=True):
            whole_run = metric == "seconds"
            for cuboid, axes in zip(cuboids, row, strict=True):
                if whole_run and axes is not row[0]:
                    axes.set_visible(False)
                    continue
                _draw(axes, errors.filter(pl.col("cuboid") == cuboid), metric, (names, colours))
                label_rows(axes, names, written=axes is row[0])
                name = "" if whole_run else panel_name(words.labels.get(cuboid, cuboid))
                axes.set_title(name, fontsize=8, fontweight="normal", color=MUTE)
            measured = WORDS[metric].replace("records", words.unit)
            row[0].text(
                -0.03, 1.0, f"{measured}\n", transform=row[0].transAxes, ha="right", va="bottom",
                fontsize=9.5, fontweight="bold",
            )  # fmt: skip
        marks = _legend(colours, errors)
        figure.legend(*marks, loc="outside lower left", ncols=6)


def _cuboids(errors: pl.DataFrame) -> list[str]:
    """Return up to six cuboids where projected counts are wrong, from the first to the last."""
    wrong = errors.filter(pl.col("rmse") > 0)
    planned = wrong.filter(pl.col("estimator").is_not_null())
    some = next((rows for rows in (planned, wrong) if len(rows)), errors.tail(1))
    wanted = set(some["cuboid"])
    every = [each for each in errors["cuboid"].unique(maintain_order=True) if each in wanted]
    chosen = np.unique(np.linspace(0, len(every) - 1, min(MOST_PANELS, len(every))).round())
    return [every[int(i)] for i in chosen]


def _draw(axes: Any, part: pl.DataFrame, metric: str, look: tuple[list[str], Colours]) -> None:
    """Draw a metric of a cuboid: each setting that has one at its own place."""
    from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: PLC0415 - optional

    values, bars = (
        part[column].cast(pl.Float64).to_numpy() * times
        for column, times in ((metric, 1), (f"{metric}_error", 2))
    )
    names, colours = look
    rows = enumerate(part.select("setting", "estimator", "measure").rows())
    for row, (setting, estimator, measure) in rows:
        marker = "s" if measure == "all" else "o"
        colour = colours[estimator]
        axes.errorbar(
            values[row], names.index(setting), xerr=bars[row], color=colour, markersize=4.5,
            marker=marker, elinewidth=1.2,
        )  # fmt: skip
    finite = np.isfinite(values)  # a relative error is missing where no count has its size
    least, most = (values[finite].min(), values[finite].max()) if finite.any() else (0, 0)
    if metric.endswith("_rate"):
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"])
    elif least > 0 and most > WIDE * least:
        axes.set_xscale("log")
        steps = (1, 3) if most < MANY_DECADES * least else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
        axes.minorticks_off()
    elif least >= 0 and most > 0:
        axes.set_xlim(0, 1.08 * np.nanmax(values + bars))


def _legend(colours: Colours, errors: pl.DataFrame) -> Marks:
    looks = {
        estimator or "no projection": {"marker": "o", "color": colour}
        for estimator, colour in colours.items()
        if estimator is not None or errors["estimator"].null_count()
    }
    if (errors["measure"] == "all").any():
        looks["all nodes measured"] = {"marker": "s", "color": "black"}
    return marks_of(looks)
