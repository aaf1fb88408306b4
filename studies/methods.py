"""Errors of several methods on one public table: in frames, and in a picture of all of them."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.shape import fineness
from hedgerow.evaluate.method import CuboidCounts, Released, align_cells
from hedgerow.evaluate.metrics import errors_of_cells, with_depths
from hedgerow.picture import (
    COLOURS,
    MARKS,
    figure_for,
    label_rows,
    row_names,
    rows_height,
    scale_errors,
    scale_shares,
    write_heading,
)
from hedgerow.release.directory.manifest import check_outside
from hedgerow.tables.counts import Counts

WIDTH = 11.0
METRICS = {
    "rmse": "Typical error (RMSE)",
    "max_error": "Largest error",
    "false_discovery_rate": "Wrongly above 0",
}


def error_of_released(counts: Counts, released: Released) -> pl.DataFrame:
    """Return the frame of `hedgerow.evaluate.metrics.error_by_cuboid` for counts of cuboids.

    Args:
        counts: the truth.
        released: what is compared with it.
    """
    tree = counts.tree
    by_cuboid = dict(released)
    cuboids = sorted(by_cuboid, key=fineness)
    rows = []
    for levels in cuboids:
        true = CuboidCounts.true(counts, levels)
        _, given, exact = align_cells(by_cuboid[levels], true, tree.cells(levels))
        rows.append(errors_of_cells(tree, levels, given, exact))
    return with_depths(tree, cuboids, rows)


def picture_of_methods(
    errors: Mapping[str, pl.DataFrame], path: Path, *, title: str, about: str
) -> None:
    """Draw errors of several releases of one public table, a mark a release, a row a cuboid.

    Args:
        errors: for each name, of five at most, a frame of
            `hedgerow.evaluate.metrics.error_by_cuboid`.
        path: PNG, SVG or PDF, outside every release.
        title: of the table.
        about: what was released how, in a sentence.

    Raises:
        ReleaseError: matplotlib is not installed, or the file cannot be written there.
    """
    check_outside(Path(path), "the picture")
    names = row_names(next(iter(errors.values()))["cuboid"])
    size = WIDTH, rows_height(names) + 0.35
    with figure_for(path, size, ReleaseError) as figure:
        write_heading(figure, title, about)
        panels = figure.subplots(1, 3, width_ratios=(1.2, 1.2, 1))
        for axes, (metric, words) in zip(panels, METRICS.items(), strict=True):
            for (name, frame), colour, mark in zip(errors.items(), COLOURS, MARKS, strict=False):
                axes.plot(
                    frame[metric], range(len(names)), mark, color=colour, mfc="none", mew=1.8,
                    clip_on=False, label=name if axes is panels[0] else None,
                )  # fmt: skip
            if metric == "false_discovery_rate":
                scale_shares(axes)
            else:
                scale_errors(axes, [value for frame in errors.values() for value in frame[metric]])
                axes.set_xlabel("records")
            label_rows(axes, names, written=axes is panels[0])
            axes.set_title(words)
        figure.legend(loc="outside lower left", ncols=5)
