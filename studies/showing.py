"""How studies and benchmarks draw."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from studies.page import PAGES

mpl.rcParams.update({
    "figure.constrained_layout.use": True, "legend.frameon": False, "legend.fontsize": 8,
    "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "axes.labelsize": 9, "grid.alpha": 0.3,
    "xtick.labelsize": 8, "ytick.labelsize": 8,
})  # fmt: skip

UNIFORM, OPTIMUM, OWN = "#D55E00", "#0072B2", "#009E73"
LEVEL_COLOURS = ("#56B4E9", "#E69F00", "#0072B2")

PAPER: dict[str, Any] = {
    "color": "black",
    "linestyle": "none",
    "marker": "x",
    "markersize": 8,
    "zorder": 5,
}
PALETTE = 64
"""Colours of a picture: a third of the size of one in full colour."""


def panels(
    columns: int = 1,
    rows: int = 1,
    size: tuple[float, float] = (3.7, 3.3),
    colours: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels of a size in inches, row by row; colours that lines take in turn."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False
    )
    for one in axes.flat if colours else ():
        one.set_prop_cycle(color=colours)
    return figure, list(axes.flat)


def bars(
    axes: Axes,
    names: Sequence[str],
    heights: Mapping[str, Sequence[float]],
    styles: Sequence[Mapping[str, Any]],
    **ticks: Any,
) -> None:
    """Bars beside each other, a group a name and in each one of every series."""
    width = 0.8 / len(heights)
    for k, ((label, values), style) in enumerate(zip(heights.items(), styles, strict=True)):
        places = np.arange(len(names)) + width * (k - (len(heights) - 1) / 2)
        axes.bar(places, values, 0.95 * width, color=style["color"], label=label)
    axes.set_xticks(range(len(names)), names, **ticks)


def save(figure: Figure, name: str, dpi: int = 100, folder: Path = PAGES, **legend: Any) -> str:
    """Write a picture; returns its file name.

    Where no panel has a legend, the lines of the first that has names are told in it, or as
    ``legend`` says beside all panels.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not any(axes.get_legend() or axes.figure.legends for axes in figure.axes):
        named = [axes for axes in figure.axes if axes.get_legend_handles_labels()[1]]
        if legend:
            figure.legend(*named[0].get_legend_handles_labels(), **legend)
        elif named:
            named[0].legend()
    drawn, path = BytesIO(), folder / f"{name}.png"
    figure.savefig(drawn, dpi=dpi)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(PALETTE).save(path, optimize=True)
    return path.name
