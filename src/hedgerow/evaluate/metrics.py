"""Error of a release against the truth, by depth. Confidential where the table is."""

import numpy as np
import polars as pl

from hedgerow.release.measurements import COUNT
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts

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
        error, found, there = _errors(truth, released, tree.columns(depth))
        cells = tree.nodes(depth)
        rows.append(
            {
                "depth": depth,
                "cuboid": tree.cuboid_name(depth),
                "cells": float(cells),
                "max_error": int(np.abs(error).max(initial=0)),
                "rmse": float(np.sqrt(np.square(error.astype(np.float64)).sum() / cells)),
                "mae": float(np.abs(error).sum(dtype=np.float64) / cells),
                "false_discovery_rate": _share(found & ~there, found),
                "false_negative_rate": _share(there & ~found, there),
            }
        )
    return pl.DataFrame(rows)


def error_rows(errors: pl.DataFrame) -> list[tuple[str, ...]]:
    """The rows of `error_by_depth` in words, under `HEADINGS`."""
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


def _errors(
    truth: pl.DataFrame, released: pl.DataFrame, columns: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Released minus true, released as positive, truly positive; over cells that are either."""
    if columns:
        both = released.join(truth, on=columns, how="full", suffix="_true")
    else:
        both = pl.concat([released, truth.rename({COUNT: f"{COUNT}_true"})], how="horizontal")
    given = both[COUNT].fill_null(0).to_numpy()
    true = both[f"{COUNT}_true"].fill_null(0).to_numpy()
    return given - true, given > 0, true > 0


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / max(int(whole.sum()), 1))
