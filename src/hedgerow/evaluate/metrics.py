"""Error of a release against the truth, by depth. Confidential where the table is."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Int64
from hedgerow.errors import ReleaseError
from hedgerow.picture import COLOURS, figure_for, label_depths, open_axes, scale_errors
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.manifest import check_outside
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Levels, Tree

HEADINGS_BESIDE_FORECAST = (
    "depth", "cuboid", "max error", "95 % max", "RMSE", "forecast", "ratio", "MAE", "forecast",
    "ratio", "false positives", "false negatives",
)  # fmt: skip
HEADINGS = ("depth", "cuboid", "max error", "RMSE", "MAE", "false positives", "false negatives")


def error_by_depth(counts: Counts, release: Release) -> pl.DataFrame:
    """Return the errors of the released counts of each depth, over all possible cells.

    Returns:
        One row a depth: ``depth``, ``cuboid``, ``cells`` (possible ones), ``max_error`` (records),
        ``rmse``, ``mae`` (records), ``false_discovery_rate`` (share of the cells released as
        positive that are truly zero), ``false_negative_rate`` (share of the truly positive cells
        released as zero); the metrics of Boninsegna & Silvestri, Section 5.
    """
    tree = counts.tree
    rows = []
    for depth in range(tree.depth + 1):
        truth, released = counts.level(depth), release.level(depth=depth)
        rows.append(errors_of_cells(tree, depth, *_aligned(truth, released, tree.columns(depth))))
    return pl.DataFrame(rows)


def error_of_nodes(counts: Counts, nodes: Mapping[Levels, Nodes]) -> pl.DataFrame:
    """Return the frame of `error_by_depth` for the survivors of a simulated pass, by cuboid."""
    tree, rows = counts.tree, []
    for depth, levels in enumerate(tree.chain):
        true, given = (
            pl.DataFrame({**{str(i): code for i, code in enumerate(codes)}, COUNT: values})
            for codes, values in (
                counts.roll_up(depth),
                (nodes[levels].codes, nodes[levels].counts),
            )
        )
        rows.append(errors_of_cells(tree, depth, *_aligned(true, given, true.columns[:-1])))
    return pl.DataFrame(rows)


def errors_of_cells(tree: Tree, depth: int, given: Int64, true: Int64) -> dict[str, Any]:
    """Return the metrics of a depth from the counts of all cells that either side holds."""
    error, shown, there = given - true, given > 0, true > 0
    cells = tree.nodes(depth)
    return {
        "depth": depth,
        "cuboid": tree.cuboid_name(depth),
        "cells": float(cells),
        "max_error": int(np.abs(error).max(initial=0)),
        "rmse": float(np.sqrt(np.square(error.astype(np.float64)).sum() / cells)),
        "mae": float(np.abs(error).sum(dtype=np.float64) / cells),
        "false_discovery_rate": _share(shown & ~there, shown),
        "false_negative_rate": _share(there & ~shown, there),
    }


def error_rows(errors: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the rows of `error_by_depth` in words, under `HEADINGS`."""
    return [
        (
            str(row["depth"]),
            row["cuboid"],
            f"{row['max_error']:,}",
            f"{row['rmse']:,.3g}",
            f"{row['mae']:,.3g}",
            f"{row['false_discovery_rate']:.1%}",
            f"{row['false_negative_rate']:.1%}",
        )
        for row in errors.iter_rows(named=True)
    ]


def rows_beside_forecast(errors: pl.DataFrame, expected: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the rows of `error_by_depth` with the forecast, under `HEADINGS_BESIDE_FORECAST`.

    ``expected`` is the `hedgerow.plan.forecast.forecast` of the release's own plan; words are empty
    where it is null, and ratios where counts are exact.
    """
    rows = []
    for row, predicted in zip(error_rows(errors), expected.iter_rows(named=True), strict=True):
        depth, cuboid, largest, *_, discovered, lost = row
        measured = errors.row(int(depth), named=True)
        both = (w for name in ("rmse", "mae") for w in _beside(measured[name], predicted[name]))
        bound = "" if predicted["max_95"] is None else f"±{math.ceil(predicted['max_95']):,}"
        rows.append((depth, cuboid, largest, bound, *both, discovered, lost))
    return rows


def _beside(measured: float, expected: float | None) -> tuple[str, str, str]:
    """Return an error, the one that was forecast, and their ratio."""
    if expected is None:
        return f"{measured:,.3g}", "", ""
    ratio = f"{measured / expected:.2f}" if expected > 0 else ""
    return f"{measured:,.3g}", f"{expected:,.3g}", ratio


def _aligned(
    truth: pl.DataFrame, released: pl.DataFrame, columns: list[str]
) -> tuple[Int64, Int64]:
    """Return released and true counts, cell by cell, over the cells that either frame holds."""
    if not columns:  # the total, which is not listed where it is 0
        given, true = (np.array([frame[COUNT].sum()], np.int64) for frame in (released, truth))
        return given, true
    both = released.join(truth, on=columns, how="full", suffix="_true")
    given, true = (both[name].fill_null(0).to_numpy() for name in (COUNT, f"{COUNT}_true"))
    return given, true


def _share(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> float:
    return float(part.sum() / max(int(whole.sum()), 1))


FORECAST = "#4a4f55"
FORECASTS = {"max_error": ("max_95", "forecast: 95 % bound"), "rmse": ("rmse", "forecast")}


def picture_of_errors(
    errors: Mapping[str, pl.DataFrame],
    path: Path,
    *,
    title: str | None = None,
    expected: pl.DataFrame | None = None,
) -> None:
    """Draw maximum error, RMSE and false discoveries by depth, one line a release.

    ``errors`` holds a frame of `error_by_depth` for each name; ``expected`` is the forecast of the
    plan of all releases, drawn dashed.
    """
    check_outside(Path(path), "the picture")
    metrics = {
        "max_error": "maximum error (records)",
        "rmse": "RMSE (records)",
        "false_discovery_rate": "false discovery rate",
    }
    with figure_for(path, (12, 4.2), ReleaseError) as figure:
        for axes, (metric, words) in zip(figure.subplots(1, 3), metrics.items(), strict=True):
            for colour, (name, frame) in zip(COLOURS, errors.items(), strict=False):
                axes.plot(frame["depth"], frame[metric], "o-", color=colour, label=name)
            predicted = _forecast(expected, metric)
            if predicted is not None:
                depths, values, name = predicted
                axes.plot(depths, values, "s--", color=FORECAST, mfc="none", label=name)
            label_depths(axes, next(iter(errors.values())))
            if metric == "false_discovery_rate":
                axes.set_ylim(0, 1)
            else:
                drawn = [value for frame in errors.values() for value in frame[metric]]
                scale_errors(axes, drawn if predicted is None else [*drawn, *predicted[1]])
            if predicted is not None:
                axes.legend(frameon=False, fontsize=8)
            axes.set_title(words, fontsize=10)
            open_axes(axes, grid="y")
        if title is not None:
            figure.suptitle(title)
        if len(errors) > 1 and expected is None:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)


def _forecast(
    expected: pl.DataFrame | None, metric: str
) -> tuple[list[int], list[float], str] | None:
    """Return the depths at which a metric was forecast, its values, and its name."""
    if expected is None or metric not in FORECASTS:
        return None
    column, name = FORECASTS[metric]
    rows = expected.drop_nulls(column)
    return rows["depth"].to_list(), rows[column].to_list(), name
