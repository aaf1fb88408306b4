"""Error of a release against the truth, by cuboid. Confidential where the table is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Bool, Codes, Int64, Levels
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts, label_nodes
from hedgerow.tables.ordered import Leaves
from hedgerow.tables.tree import Tree
from hedgerow.text import Rows, Texts

HEADINGS_BESIDE_FORECAST = (
    "depth", "cuboid", "max error", "95 % max", "RMSE", "forecast", "ratio", "MAE", "forecast",
    "ratio", "covered", "false positives", "false negatives",
)  # fmt: skip
TRUE = "_true"
"""Ends the name of the column of true counts beside the released ones."""
HEADINGS = ("depth", "cuboid", "max error", "RMSE", "MAE", "false positives", "false negatives")


def error_by_cuboid(counts: Counts, release: Release) -> pl.DataFrame:
    """Return the errors of the released counts of each cuboid, over all possible cells.

    Returns:
        One row a cuboid: ``depth`` (of a chain alone), ``cuboid``, ``cells`` (possible ones),
        ``max_error`` (records),
        ``rmse``, ``mae`` (records), ``false_discovery_rate`` (share of the cells released as
        positive that are truly zero), ``false_negative_rate`` (share of the truly positive cells
        released as zero); the metrics of Boninsegna & Silvestri, Section 5.
    """
    tree, rows = counts.tree, []
    for levels in release.plan.levels:
        codes, values = true_cells(counts, levels)
        truth = label_nodes(tree, levels, codes, **{COUNT: values})
        released = release.level(tree.name_of(levels))
        rows.append(errors_of_cells(tree, levels, *counts_of_both(aligned(truth, released))))
    return with_depths(tree, release.plan.levels, rows)


def error_of_nodes(counts: Counts, nodes: Mapping[Levels, Nodes]) -> pl.DataFrame:
    """Return the frame of `error_by_cuboid` for the survivors of a simulated pass, by cuboid."""
    tree, rows = counts.tree, []
    cuboids = sorted(nodes, key=lambda levels: (sum(levels), levels))
    for levels in cuboids:
        given = _numbered(nodes[levels].codes, nodes[levels].counts)
        true = _numbered(*true_cells(counts, levels))
        rows.append(errors_of_cells(tree, levels, *counts_of_both(aligned(true, given))))
    return with_depths(tree, cuboids, rows)


def true_cells(counts: Counts, levels: Levels) -> Leaves:
    """Return the non-zero cells of a cuboid, on the tree's chain or off it, and their counts."""
    depth = counts.tree.depth_at(levels)
    return counts.cuboid(levels) if depth is None else counts.roll_up(depth)


def _numbered(codes: Codes, values: Int64) -> pl.DataFrame:
    return pl.DataFrame({**{str(i): code for i, code in enumerate(codes)}, COUNT: values})


def with_depths(
    tree: Tree, cuboids: Sequence[Levels], rows: Iterable[Mapping[str, Any]]
) -> pl.DataFrame:
    """Return one row a cuboid, along a chain with its ``depth`` in front."""
    if tuple(cuboids) == tree.chain:
        rows = [{"depth": depth, **row} for depth, row in enumerate(rows)]
    return pl.DataFrame(list(rows))


def error_figures(error: Int64, cells: float) -> dict[str, float]:
    """Return the largest, root mean square and mean error over so many cells, in records."""
    return {
        "max_error": int(np.abs(error).max(initial=0)),
        "rmse": float(np.sqrt(np.square(error.astype(np.float64)).sum() / cells)),
        "mae": float(np.abs(error).sum(dtype=np.float64) / cells),
    }


def errors_of_cells(tree: Tree, levels: Levels, given: Int64, true: Int64) -> dict[str, Any]:
    """Return the metrics of a cuboid from the counts of all cells that either side holds."""
    error, shown, there = given - true, given > 0, true > 0
    cells = tree.cells(levels)
    return {
        "cuboid": tree.name_of(levels),
        "cells": float(cells),
        **error_figures(error, cells),
        "false_discovery_rate": _share(shown & ~there, shown),
        "false_negative_rate": _share(there & ~shown, there),
    }


def error_rows(errors: pl.DataFrame) -> Rows:
    """Return the rows of `error_by_cuboid` in words, under `HEADINGS`; a cube has no depths."""
    return [
        (
            str(row.get("depth", "")),
            row["cuboid"],
            f"{row['max_error']:,}",
            f"{row['rmse']:,.3g}",
            f"{row['mae']:,.3g}",
            f"{row['false_discovery_rate']:.1%}",
            f"{row['false_negative_rate']:.1%}",
        )
        for row in errors.iter_rows(named=True)
    ]


def headings_of(errors: pl.DataFrame, headings: Sequence[str]) -> Texts:
    """Return headings that begin with the depth, which is blank where the frame has none."""
    return ("depth" if "depth" in errors.columns else "", *headings[1:])


def rows_beside_forecast(
    errors: pl.DataFrame, expected: pl.DataFrame, covered: Mapping[str, float | None]
) -> Rows:
    """Return the rows of `error_by_cuboid` with the forecast, under `HEADINGS_BESIDE_FORECAST`.

    ``expected`` is the `hedgerow.plan.forecast.forecast` of the release's own plan; words are empty
    where it is null, and ratios where counts are exact. ``covered`` is the share of the intervals
    of each cuboid that hold the true count (`hedgerow.evaluate.by_size.coverage`).
    """
    rows, of_cuboid = [], {row["cuboid"]: row for row in expected.iter_rows(named=True)}
    for row, measured in zip(error_rows(errors), errors.iter_rows(named=True), strict=True):
        depth, cuboid, largest, *_, discovered, lost = row
        predicted = of_cuboid[cuboid]
        both = (w for name in ("rmse", "mae") for w in _beside(measured[name], predicted[name]))
        bound = "" if predicted["max_95"] is None else f"±{math.ceil(predicted['max_95']):,}"
        held = covered.get(cuboid)
        inside = "" if held is None else f"{held:.1%}"
        rows.append((depth, cuboid, largest, bound, *both, inside, discovered, lost))
    return rows


def _beside(measured: float, expected: float | None) -> tuple[str, str, str]:
    """Return an error, the one that was forecast, and their ratio."""
    if expected is None:
        return f"{measured:,.3g}", "", ""
    ratio = f"{measured / expected:.2f}" if expected > 0 else ""
    return f"{measured:,.3g}", f"{expected:,.3g}", ratio


def aligned(truth: pl.DataFrame, released: pl.DataFrame) -> pl.DataFrame:
    """Return the released cells, and those that the truth holds, with the counts of both."""
    columns = truth.columns[:-1]
    if columns:
        return released.join(truth, on=columns, how="full", suffix=TRUE)
    # the total, which is not listed where it is 0
    total = released.select(pl.col(COUNT).sum(), pl.exclude(COUNT).max())
    return total.with_columns(truth.select(pl.col(COUNT).sum().name.suffix(TRUE)))


def counts_of_both(both: pl.DataFrame) -> tuple[Int64, Int64]:
    """Return released and true counts, cell by cell, of `aligned` frames."""
    given, true = (both[name].fill_null(0).to_numpy() for name in (COUNT, f"{COUNT}{TRUE}"))
    return given, true


def _share(part: Bool, whole: Bool) -> float:
    return float(part.sum() / max(int(whole.sum()), 1))
