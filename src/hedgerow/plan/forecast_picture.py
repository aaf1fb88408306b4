"""A picture of a forecast: the expected error of each depth, and its share of the budget."""

from pathlib import Path

import polars as pl

from hedgerow.errors import PlanError
from hedgerow.privacy.picture import check_picture

COLOURS = {"max_95": "#d1495b", "noise_sd": "#8d5fb5", "rmse": "#1b6ca8", "mae": "#3c8d5a"}
WORDS = {
    "max_95": "maximum, 95 %",
    "noise_sd": "noise of one count (sd)",
    "rmse": "RMSE",
    "mae": "mean absolute error",
}


def picture_of_forecast(frame: pl.DataFrame, path: Path, *, title: str | None = None) -> None:
    """Draw the expected errors, the shares of the budget and the empty cells seen above 0.

    Args:
        frame: of `hedgerow.plan.forecast.forecast`. What it does not know is left out.
        path: PNG, SVG or PDF.
        title: above the picture.

    Raises:
        PlanError: matplotlib is not installed, or the file cannot be written.
    """
    check_picture(path, PlanError)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise PlanError("pictures need matplotlib: pip install 'hedgerow[pictures]'") from None
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    errors, percent = figure.subplots(1, 2)
    for name, colour in COLOURS.items():
        known = frame.drop_nulls(name)
        errors.plot(known["depth"], known[name], "o-", color=colour, label=WORDS[name])
    errors.set_yscale("symlog", linthresh=1)
    errors.set_ylim(bottom=0)
    errors.set_title("expected error (records)", fontsize=10)
    percent.bar(frame["depth"], 100 * frame["share"].fill_null(0), color="#c9d6df", label="share")
    known = frame.drop_nulls("false_positive_share")
    percent.plot(
        known["depth"], 100 * known["false_positive_share"], "o-", color="#c98a1b",
        label="empty cells with a noisy count above 0",
    )  # fmt: skip
    percent.set_ylim(0, 100)
    percent.set_title("share of the budget, empty cells seen above 0 (%)", fontsize=10)
    for axes in (errors, percent):
        axes.set_xticks(frame["depth"].to_list())
        axes.set_xticklabels(
            [name.replace(" × ", "\n× ") for name in frame["cuboid"]],
            rotation=35, ha="right", fontsize=7,
        )  # fmt: skip
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    if title is not None:
        figure.suptitle(title)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise PlanError(f"cannot write the picture {str(path)!r}: {error}") from None
