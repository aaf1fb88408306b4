"""A picture of errors: those of each release by depth."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from hedgerow.errors import ReleaseError
from hedgerow.picture import COLOURS, figure_for, label_depths, open_axes, scale_errors
from hedgerow.release.directory.manifest import check_outside

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
    """The depths at which a metric was forecast, what it was, and what it is called."""
    if expected is None or metric not in FORECASTS:
        return None
    name, words = FORECASTS[metric]
    known = expected.drop_nulls(name)
    return known["depth"].to_list(), known[name].to_list(), words
