"""Error of a release against the truth, by cuboid and by the size of the true count.

Confidential where the table is: how many cells have which size follows from the true counts, too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from hedgerow.arrays import FloatPair, Int64, Levels, float64
from hedgerow.errors import ReleaseError
from hedgerow.release.directory.measurements import COUNT, HIGH, LOW
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts, label_nodes
from hedgerow.tables.ordered import Leaves
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, Rows, Texts

HEADINGS_BESIDE_FORECAST = (
    "depth", "cuboid", "RMSE", "forecast", "ratio", "MAE", "forecast", "ratio", "max error",
    "95 % max", "covered", "false positives", "false negatives",
)  # fmt: skip
TRUE = "_true"
"""The column of true counts beside the released ones."""
HEADINGS = ("depth", "cuboid", "RMSE", "MAE", "max error", "false positives", "false negatives")


def error_by_cuboid(counts: Counts, release: Release) -> pl.DataFrame:
    """Return the errors of the released counts of each cuboid, over all possible cells.

    Returns:
        One row a cuboid: ``depth`` (of a chain alone), ``cuboid``, ``cells`` (possible ones),
        ``rmse``, ``mae``, ``max_error`` (records), ``false_discovery_rate`` (share of the cells
        released as positive that are truly zero), ``false_negative_rate`` (share of the truly
        positive cells released as zero); the metrics of Boninsegna & Silvestri, Section 5.
    """
    tree = counts.tree
    rows = []
    for levels in release.plan.levels:
        both = beside_truth(counts, levels, release.level(tree.name_of(levels)))
        rows.append(errors_of_cells(tree, levels, both[COUNT].to_numpy(), both[TRUE].to_numpy()))
    return with_depths(tree, release.plan.levels, rows)


def true_cells(counts: Counts, levels: Levels) -> Leaves:
    """Return the non-zero cells of a cuboid, on the tree's chain or off it, and their counts."""
    depth = counts.tree.depth_at(levels)
    return counts.cuboid(levels) if depth is None else counts.roll_up(depth)


def with_depths(tree: Tree, cuboids: Sequence[Levels], rows: Iterable[Json]) -> pl.DataFrame:
    """Return one row a cuboid, along a chain with its ``depth`` in front."""
    if tuple(cuboids) == tree.chain:
        rows = [{"depth": depth, **row} for depth, row in enumerate(rows)]
    return pl.DataFrame(list(rows))


def errors_of(given: Int64, true: Int64, cells: float) -> dict[str, float]:
    """Return the errors of counts over so many cells; those that neither side holds are 0.

    ``rmse``, ``mae`` and ``max_error`` (records); ``false_discovery_rate``: the share of the cells
    released as positive that are truly 0; ``false_negative_rate``: the share of the truly positive
    cells that are not released as positive (Boninsegna & Silvestri, Section 5).
    """
    error = np.abs(given - true)
    shown = given > 0
    there = true > 0
    return {
        "rmse": math.sqrt(np.square(float64(error)).sum() / cells),
        "mae": float(error.sum(dtype=np.float64) / cells),
        "max_error": error.max(initial=0).item(),
        "false_discovery_rate": float((shown & ~there).sum() / max(int(shown.sum()), 1)),
        "false_negative_rate": float((there & ~shown).sum() / max(int(there.sum()), 1)),
    }


def errors_of_cells(tree: Tree, levels: Levels, given: Int64, true: Int64) -> Json:
    """Return the metrics of a cuboid from the counts of all cells that either side holds."""
    cells = float(tree.cells(levels))
    return {"cuboid": tree.name_of(levels), "cells": cells, **errors_of(given, true, cells)}


def error_rows(errors: pl.DataFrame) -> Rows:
    """Return the rows of `error_by_cuboid` in words, under `HEADINGS`; a cube has no depths."""
    return [
        (
            str(row.get("depth", "")),
            row["cuboid"],
            f"{row['rmse']:,.3g}",
            f"{row['mae']:,.3g}",
            f"{row['max_error']:,}",
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
    of each cuboid that hold the true count (`hedgerow.evaluate.metrics.coverage`).
    """
    rows = []
    of_cuboid = {row["cuboid"]: row for row in expected.iter_rows(named=True)}
    for row, measured in zip(error_rows(errors), errors.iter_rows(named=True), strict=True):
        depth, cuboid, _, _, largest, discovered, lost = row
        predicted = of_cuboid[cuboid]
        both = (w for name in ("rmse", "mae") for w in _beside(measured[name], predicted[name]))
        bound = "" if predicted["max_95"] is None else f"±{math.ceil(predicted['max_95']):,}"
        held = covered.get(cuboid)
        inside = "" if held is None else f"{held:.1%}"
        rows.append((depth, cuboid, *both, largest, bound, inside, discovered, lost))
    return rows


def _beside(measured: float, expected: float | None) -> tuple[str, str, str]:
    """Return an error, the one that was forecast, and their ratio."""
    if expected is None:
        return f"{measured:,.3g}", "", ""
    ratio = f"{measured / expected:.2f}" if expected > 0 else ""
    return f"{measured:,.3g}", f"{expected:,.3g}", ratio


def beside_truth(counts: Counts, levels: Levels, released: pl.DataFrame) -> pl.DataFrame:
    """Return the released cells of a cuboid, and those that the truth holds, with both counts."""
    codes, values = true_cells(counts, levels)
    truth = label_nodes(counts.tree, levels, codes, **{TRUE: values})
    if columns := truth.columns[:-1]:
        both = released.join(truth, on=columns, how="full")
    else:  # the total, which is not listed where it is 0
        total = released.select(pl.col(COUNT).sum(), pl.exclude(COUNT).max())
        both = total.with_columns(truth.select(pl.col(TRUE).sum()))
    return both.with_columns(pl.col(COUNT, TRUE).fill_null(0))


SCHEMA = {"cuboid": pl.String, "least": pl.Int64, "most": pl.Int64, "cells": pl.Float64,
          "rmse": pl.Float64, "mae": pl.Float64, "max_error": pl.Int64,
          "intervals": pl.Int64, "held": pl.Int64}  # fmt: skip
MOST_CELLS, MOST_NOISY = 1 << 22, 1 << 23
"""Cells of a cuboid, and noisy counts of a release, whose intervals are made: a minute's work."""
Ends = FloatPair
HIGHEST_POWER = 18
"""The last band begins at 10¹⁸: counts are below 2⁶³."""


def errors_by_size(counts: Counts, release: Release) -> pl.DataFrame:
    """Return the errors of the released counts by the size of the true ones, over all cells.

    Returns:
        One row a cuboid and band of true counts that has any cells: ``cuboid``; ``least`` and
        ``most`` of the band (0, 1 to 9, 10 to 99, …; records); ``cells`` (possible ones); ``rmse``,
        ``mae``, ``max_error`` (records); ``intervals``: how many of the cells have a 95 %
        interval, listed or not; and ``held``: in how many of these the true count is. Both are
        null for a cuboid where the intervals of cells that are not listed cannot be had, as those
        of listed cells alone hold the truth less often or more often than 95 % by selection.
    """
    rows = [
        {"cuboid": counts.tree.name_of(levels), **row}
        for levels in release.plan.levels
        for row in _bands(*_cells(counts, release, levels), counts.tree.cells(levels))
    ]
    return pl.from_dicts(rows, schema=SCHEMA)


def _cells(counts: Counts, release: Release, levels: Levels) -> tuple[Int64, Int64, Ends | None]:
    """Return true and released counts of the cells that either side holds, and their intervals.

    Intervals are NaN where a cell has none; they are None where only listed cells have them.
    """
    released, is_whole = _released(release, levels)
    both = beside_truth(counts, levels, released)
    low, high = (both[end].cast(pl.Float64).fill_null(np.nan).to_numpy() for end in (LOW, HIGH))
    return both[TRUE].to_numpy(), both[COUNT].to_numpy(), (low, high) if is_whole else None


def _released(release: Release, levels: Levels) -> tuple[pl.DataFrame, bool]:
    """Return all cells of a cuboid, and True; or those that are listed, some of many, and False."""
    tree = release.plan.tree
    name = tree.name_of(levels)
    cells = tree.cells(levels)
    listed = release.level(name)
    if len(listed) == cells:
        return listed, True
    if cells <= MOST_CELLS and release.content.noisy_cells <= MOST_NOISY:
        try:
            return release.level(name, all=True), True
        except ReleaseError:  # it has no estimates of its own
            pass
    return listed, False


def _bands(true: Int64, given: Int64, ends: Ends | None, possible: int) -> Iterator[Json]:
    """Yield the errors of each band that has cells, from 0 up."""
    starts = np.array([0, *(10**k for k in range(HIGHEST_POWER + 1))])
    band = np.searchsorted(starts, true, side="right") - 1
    cells = float64(np.bincount(band, minlength=len(starts)))
    cells[0] += float(possible) - len(true)  # truly 0, and released so
    for number in np.flatnonzero(cells).tolist():
        within = band == number
        held = {}
        most = None if number > HIGHEST_POWER else int(starts[number + 1]) - 1
        if ends is not None:
            low, high = (end[within] for end in ends)
            inside = (low <= true[within]) & (true[within] <= high)  # never without an interval
            held = {"intervals": int((~np.isnan(low)).sum()), "held": int(inside.sum())}
        many = float(cells[number])
        figures = errors_of(given[within], true[within], many)
        yield {"least": int(starts[number]), "most": most, "cells": many, **figures, **held}


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


def _word(row: Json | None, what: str) -> str:
    if row is None:
        return ""
    if what == "held":
        return f"{row['held'] / row['intervals']:.1%}" if row["intervals"] else ""
    return f"{row[what]:,.0f}" if what == "cells" else f"{row[what]:,.3g}"
