"""Errors of a release by the size of the true count, and how often its intervals hold the truth.

Confidential where the table is: how many cells have which size follows from the true counts.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Bool, Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.evaluate.metrics import aligned, counts_of_both, error_figures, true_cells
from hedgerow.release.directory.measurements import COUNT, HIGH, LOW
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts, label_nodes
from hedgerow.text import Rows

SCHEMA = {"cuboid": pl.String, "least": pl.Int64, "most": pl.Int64, "cells": pl.Float64,
          "mae": pl.Float64, "rmse": pl.Float64, "max_error": pl.Int64,
          "intervals": pl.Int64, "held": pl.Int64}  # fmt: skip
MOST_CELLS, MOST_NOISY = 1 << 22, 1 << 23
"""Cells of a cuboid, and noisy counts of a release, whose intervals are made: a minute's work."""
HIGHEST_POWER = 18
"""The last band begins at 10¹⁸: counts are below 2⁶³."""


def errors_by_size(counts: Counts, release: Release) -> pl.DataFrame:
    """Return the errors of the released counts by the size of the true ones, over all cells.

    Returns:
        One row a cuboid and band of true counts that has any cells: ``cuboid``; ``least`` and
        ``most`` of the band (0, 1 to 9, 10 to 99, …; records); ``cells`` (possible ones); ``mae``,
        ``rmse``, ``max_error`` (records); ``intervals``: how many of the cells have a 95 %
        interval, listed or not; and ``held``: in how many of these the true count is. Both are
        null for a cuboid where the intervals of cells that are not listed cannot be had, as those
        of listed cells alone hold the truth less often or more often than 95 % by selection.
    """
    rows = [
        {"cuboid": counts.tree.name_of(levels), **row}
        for levels in release.plan.levels
        for row in _bands(*_cells(counts, release, levels), counts.tree.cells(levels))
    ]
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def _cells(
    counts: Counts, release: Release, levels: Levels
) -> tuple[Int64, Int64, tuple[Float64, Float64] | None]:
    """Return true and released counts of the cells that either side holds, and their intervals.

    Intervals are NaN where a cell has none; they are None where only listed cells have them.
    """
    tree = counts.tree
    codes, values = true_cells(counts, levels)
    truth = label_nodes(tree, levels, codes, **{COUNT: values})
    released, is_whole = _released(release, levels)
    both = aligned(truth, released)
    given, true = counts_of_both(both)
    ends = [both[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in (LOW, HIGH)]
    return true, given, (ends[0], ends[1]) if is_whole else None


def _released(release: Release, levels: Levels) -> tuple[pl.DataFrame, bool]:
    """Return all cells of a cuboid, and True; or those that are listed, some of many, and False."""
    tree = release.plan.tree
    name, cells = tree.name_of(levels), tree.cells(levels)
    listed = release.level(name)
    if len(listed) == cells:
        return listed, True
    if cells <= MOST_CELLS and release.content.noisy_cells <= MOST_NOISY:
        try:
            return release.level(name, all=True), True
        except ReleaseError:  # it has no estimates of its own
            pass
    return listed, False


def _bands(
    true: Int64, given: Int64, ends: tuple[Float64, Float64] | None, possible: int
) -> Iterator[dict[str, Any]]:
    """Yield the errors of each band that has cells, from 0 up."""
    starts = np.array([0, *(10**k for k in range(HIGHEST_POWER + 1))])
    band = np.searchsorted(starts, true, side="right") - 1
    unlisted = float(possible) - len(true)  # truly 0, and released so
    for number in range(len(starts)):
        within = band == number
        cells = float(within.sum()) + (unlisted if number == 0 else 0.0)
        if not cells:
            continue
        error = (given - true)[within]
        last = number == HIGHEST_POWER + 1
        yield {
            "least": int(starts[number]),
            "most": None if last else int(starts[number + 1]) - 1,
            "cells": cells,
            **error_figures(error, cells),
            **({} if ends is None else _held(true[within], ends[0][within], ends[1][within])),
        }


def _held(true: Int64, low: Float64, high: Float64) -> dict[str, int]:
    inside: Bool = (low <= true) & (true <= high)  # never where there is no interval
    return {"intervals": int((~np.isnan(low)).sum()), "held": int(inside.sum())}


def coverage(by_size: pl.DataFrame) -> dict[str, float | None]:
    """Return for each cuboid the share of its intervals that hold the true count, if known."""
    sums = by_size.group_by("cuboid", maintain_order=True).agg(
        pl.col("held").sum(), pl.col("intervals").sum()
    )
    return {cuboid: held / made if made else None for cuboid, held, made in sums.rows()}


def band_name(least: int, most: int | None) -> str:
    """Return a band of counts as people write it."""
    if least == most:
        return f"{least:,}"
    return f"{least:,} and more" if most is None else f"{least:,}–{most:,}"


def size_rows(by_size: pl.DataFrame, what: str) -> Rows:
    """Return one figure as rows of text: cuboids down, sizes of the true count across.

    Args:
        by_size: a frame of `errors_by_size`.
        what: ``cells``, ``mae`` or ``held``, which is a share of the intervals; where there is no
            cell or interval the word is empty.
    """
    bands = by_size.select("least", "most").unique().sort("least").rows()
    of = {(row["cuboid"], row["least"]): row for row in by_size.iter_rows(named=True)}
    heading = ("", "true count", *(band_name(*band) for band in bands))
    cuboids: Sequence[str] = by_size["cuboid"].unique(maintain_order=True).to_list()
    return [heading] + [
        ("", cuboid, *(_word(of.get((cuboid, least)), what) for least, _ in bands))
        for cuboid in cuboids
    ]


def _word(row: dict[str, Any] | None, what: str) -> str:
    if row is None:
        return ""
    if what == "held":
        return f"{row['held'] / row['intervals']:.1%}" if row["intervals"] else ""
    return f"{row[what]:,.0f}" if what == "cells" else f"{row[what]:,.3g}"
