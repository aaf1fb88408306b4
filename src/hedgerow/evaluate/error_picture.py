"""A picture of errors: those of each release by depth."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from hedgerow.errors import ReleaseError
from hedgerow.picture import COLOURS, figure_for, label_depths, open_axes
from hedgerow.release.manifest import check_outside


def picture_of_errors(
    errors: Mapping[str, pl.DataFrame], path: Path, *, title: str | None = None
) -> None:
    """Draw maximum error, RMSE and false discoveries by depth, one line a release.

    Args:
        errors: for each name the frame of `hedgerow.evaluate.metrics.error_by_depth`.
        path: PNG, SVG or PDF.
        title: above the picture.

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
            label_depths(axes, next(iter(errors.values())))
            if metric == "false_discovery_rate":
                axes.set_ylim(0, 1)
            else:
                axes.set_yscale("symlog", linthresh=10)
                axes.set_ylim(bottom=0)
            axes.set_title(words, fontsize=10)
            open_axes(axes, grid="y")
        if title is not None:
            figure.suptitle(title)
        if len(errors) > 1:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
