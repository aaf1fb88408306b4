"""How studies draw."""

from typing import Any, Literal

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.page import PAGES

UNIFORM, OPTIMUM, OWN = "#D55E00", "#0072B2", "#009E73"
LEVEL_COLOURS = ("#56B4E9", "#E69F00", "#0072B2")
PAPER: dict[str, Any] = {
    "color": "black",
    "linestyle": "none",
    "marker": "x",
    "markersize": 8,
    "zorder": 5,
}


def plain(axes: Axes, lines: Literal["both", "y"] = "both") -> None:
    """A light grid, and no frame above and on the right."""
    axes.grid(axis=lines, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def panels(columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.7 * columns, 3.3 * rows), layout="constrained", squeeze=False
    )
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=8)
        one.title.set_fontsize(10)
    return figure, list(axes.flat)


def save(figure: Figure, slug: str, dpi: int = 100) -> str:
    """Write the picture of a study; returns its file name."""
    PAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PAGES / f"{slug}.png", dpi=dpi)
    plt.close(figure)
    return f"{slug}.png"
