"""A picture of a forecast: the expected error of each depth, and its share of the budget."""

from pathlib import Path

import polars as pl

from hedgerow.errors import PlanError
from hedgerow.picture import (
    BLUE,
    GREEN,
    OCHRE,
    PURPLE,
    RED,
    figure_for,
    label_depths,
    open_axes,
    scale_errors,
)

COLOURS = {"max_95": RED, "noise_sd": PURPLE, "rmse": BLUE, "mae": GREEN}
WORDS = {
    "max_95": "maximum, 95 %",
    "noise_sd": "noise of one count (sd)",
    "rmse": "RMSE",
    "mae": "mean absolute error",
}


def picture_of_forecast(frame: pl.DataFrame, path: Path, *, title: str | None = None) -> None:
    """Draw the expected errors, the shares and the empty cells seen above 0.

    Args:
        frame: of `hedgerow.plan.forecast.forecast`. What it does not know is left out.
        path: PNG, SVG or PDF.
        title: above the picture.

    Raises:
        PlanError: matplotlib is not installed, or the file cannot be written.
    """
    with figure_for(path, (11, 4.6), PlanError) as figure:
        errors, percent = figure.subplots(1, 2)
        for name, colour in COLOURS.items():
            known = frame.drop_nulls(name)
            errors.plot(known["depth"], known[name], "o-", color=colour, label=WORDS[name])
        scale_errors(errors, (value for name in COLOURS for value in frame[name]))
        errors.set_title("expected error (records)", fontsize=10)
        percent.bar(
            frame["depth"], 100 * frame["share"].fill_null(0), color="#c9d6df", label="share"
        )
        known = frame.drop_nulls("false_positive_share")
        percent.plot(
            known["depth"], 100 * known["false_positive_share"], "o-", color=OCHRE,
            label="empty cells with a noisy count above 0",
        )  # fmt: skip
        percent.set_ylim(0, 100)
        percent.set_title("share, empty cells seen above 0 (%)", fontsize=10)
        for axes in (errors, percent):
            label_depths(axes, frame)
            axes.legend(frameon=False, fontsize=8)
            open_axes(axes, grid="y")
        if title is not None:
            figure.suptitle(title)
