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
from hedgerow.evaluate.baselines import sum_to_depth
from hedgerow.picture import COLOURS, figure_for, label_depths, open_axes, scale_errors
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.manifest import check_outside
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Codes, Tree

HEADINGS_BESIDE_FORECAST = (
    "depth", "cuboid", "max error", "95 % max", "RMSE", "forecast", "ratio", "MAE", "forecast",
    "ratio", "false positives", "false negatives",
)  # fmt: skip
HEADINGS = ("depth", "cuboid", "max error", "RMSE", "MAE", "false positives", "false negatives")


def error_by_depth(counts: Counts, release: Release) -> pl.DataFrame:
    """How far the released counts of each depth are from the true ones, over all possible cells.

    Args:
        counts: the truth.
        release: what was released.

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
        rows.append(_row(tree, depth, *_aligned(truth, released, tree.columns(depth))))
    return pl.DataFrame(rows)


def error_of_nodes(counts: Counts, nodes: Mapping[int, Nodes]) -> pl.DataFrame:
    """Return the frame of `error_by_depth` for the survivors of a simulated pass.

    Args:
        counts: the truth.
        nodes: by depth, as `hedgerow.release.descent.outline.by_depth` gives them.
    """
    tree = counts.tree
    rows = []
    for depth in range(tree.depth + 1):
        codes, values = counts.roll_up(depth)
        true = _coded(codes, values)
        both = _coded(nodes[depth].codes, nodes[depth].counts).join(
            true, on=true.columns[:-1], how="full", suffix="_true"
        )
        columns = (both[name].fill_null(0).to_numpy() for name in (COUNT, f"{COUNT}_true"))
        rows.append(_row(tree, depth, *columns))
    return pl.DataFrame(rows)


def _coded(codes: Codes, values: Int64) -> pl.DataFrame:
    named = {str(axis): code for axis, code in enumerate(codes)}
    return pl.DataFrame({**named, COUNT: values})


def error_of_leaves(counts: Counts, leaves: Int64) -> pl.DataFrame:
    """The frame of `error_by_depth` for an estimate of every possible leaf, summed to each depth.

    Args:
        counts: the truth.
        leaves: int64, one dimension an axis (its leaves), as `leaf_noise` gives them.
    """
    tree = counts.tree
    truth = np.zeros_like(leaves)
    truth[counts.codes] = counts.values
    rows = []
    for depth in range(tree.depth + 1):
        given, true = (sum_to_depth(tree, table, depth).ravel() for table in (leaves, truth))
        rows.append(_row(tree, depth, given, true))
    return pl.DataFrame(rows)


def _row(tree: Tree, depth: int, given: Int64, true: Int64) -> dict[str, Any]:
    """Return the metrics of a depth from the counts of all cells that either side holds."""
    error, found, there = given - true, given > 0, true > 0
    cells = tree.nodes(depth)
    return {
        "depth": depth,
        "cuboid": tree.cuboid_name(depth),
        "cells": float(cells),
        "max_error": int(np.abs(error).max(initial=0)),
        "rmse": float(np.sqrt(np.square(error.astype(np.float64)).sum() / cells)),
        "mae": float(np.abs(error).sum(dtype=np.float64) / cells),
        "false_discovery_rate": _share(found & ~there, found),
        "false_negative_rate": _share(there & ~found, there),
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
    """Return the rows of `error_by_depth` with what was forecast, under `HEADINGS_BESIDE_FORECAST`.

    Args:
        errors: of `error_by_depth`.
        expected: of `hedgerow.plan.forecast.forecast`: of the release's own plan. Where it does not
            know an error, words are empty; so is a ratio where it knows the counts to be exact.
    """
    rows = []
    for row, wanted in zip(error_rows(errors), expected.iter_rows(named=True), strict=True):
        depth, cuboid, largest, *_, discovered, lost = row
        measured = errors.row(int(depth), named=True)
        both = (word for name in ("rmse", "mae") for word in _beside(measured[name], wanted[name]))
        bound = wanted["max_95"]
        told = "" if bound is None else f"±{math.ceil(bound):,}"
        rows.append((depth, cuboid, largest, told, *both, discovered, lost))
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
    """Released and true counts, cell by cell, over the cells that either holds."""
    if not columns:  # the total, which is not listed where it is 0
        given, true = (np.array([frame[COUNT].sum()], np.int64) for frame in (released, truth))
        return given, true
    both = released.join(truth, on=columns, how="full", suffix="_true")
    given, true = (both[name].fill_null(0).to_numpy() for name in (COUNT, f"{COUNT}_true"))
    return given, true


def _share(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> float:
    return float(part.sum() / max(int(whole.sum()), 1))


# A picture of errors: those of each release by depth.

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

    Beside them, dashed, the errors that the plan forecast, where that is known.

    Args:
        errors: for each name the frame of `hedgerow.evaluate.metrics.error_by_depth`.
        path: PNG, SVG or PDF.
        title: above the picture.
        expected: of `hedgerow.plan.forecast.forecast`, for a plan of all releases.

    Raises:
        ReleaseError: matplotlib is not installed, the file cannot be written, or it would lie in a
            release, which everybody may read.
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
            known = _forecast(expected, metric)
            if known is not None:
                depths, values, words_of_it = known
                axes.plot(depths, values, "s--", color=FORECAST, mfc="none", label=words_of_it)
            label_depths(axes, next(iter(errors.values())))
            if metric == "false_discovery_rate":
                axes.set_ylim(0, 1)
            else:
                drawn = [value for frame in errors.values() for value in frame[metric]]
                scale_errors(axes, drawn if known is None else [*drawn, *known[1]])
            if known is not None:
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
    """Return the depths at which a metric was forecast, what it was, and what it is called."""
    if expected is None or metric not in FORECASTS:
        return None
    name, words = FORECASTS[metric]
    known = expected.drop_nulls(name)
    return known["depth"].to_list(), known[name].to_list(), words
