"""Pictures of errors."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from hedgerow.errors import ReleaseError
from hedgerow.privacy.picture import check_picture

COLOURS = ("#1b6ca8", "#d1495b", "#3c8d5a", "#8d5fb5", "#c98a1b")


def picture_of_errors(
    errors: Mapping[str, pl.DataFrame], path: Path, *, title: str | None = None
) -> None:
    """Draw maximum error, RMSE and false discoveries by depth, one line a release.

    Args:
        errors: for each name the frame of `hedgerow.evaluate.metrics.error_by_depth`.
        path: PNG, SVG or PDF.
        title: above the picture.

    Raises:
        ReleaseError: matplotlib is not installed, or the file cannot be written.
    """
    check_picture(path, ReleaseError)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ReleaseError("pictures need matplotlib: pip install 'hedgerow[pictures]'") from None
    metrics = {
        "max_error": "maximum error (records)",
        "rmse": "RMSE (records)",
        "false_discovery_rate": "false discovery rate",
    }
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    for axes, (metric, words) in zip(figure.subplots(1, 3), metrics.items(), strict=True):
        for colour, (name, frame) in zip(COLOURS, errors.items(), strict=False):
            axes.plot(frame["depth"], frame[metric], "o-", color=colour, label=name)
        labels = next(iter(errors.values()))
        axes.set_xticks(labels["depth"].to_list())
        axes.set_xticklabels(
            [name.replace(" × ", "\n× ") for name in labels["cuboid"]],
            rotation=35, ha="right", fontsize=7,
        )  # fmt: skip
        if metric == "false_discovery_rate":
            axes.set_ylim(0, 1)
        else:
            axes.set_yscale("symlog", linthresh=10)
            axes.set_ylim(bottom=0)
        axes.set_title(words, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    if title is not None:
        figure.suptitle(title)
    if len(errors) > 1:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise ReleaseError(f"cannot write the picture {str(path)!r}: {error}") from None
