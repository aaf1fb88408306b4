"""How the studies of Su et al. draw their curves."""

from collections.abc import Callable
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.su.census import LEVELS, Level

Style = dict[str, Any]

BUREAU: Style = {"color": "#D55E00", "linestyle": "-", "linewidth": 1.6}
EXACT: Style = {"color": "#0072B2", "linestyle": "-", "linewidth": 1.6}
REDUCED: Style = {"color": "black", "linestyle": "--", "linewidth": 1.4}
PEER: Style = {"color": "#009E73", "linestyle": ":", "linewidth": 2.0}
PAPER: Style = {"color": "black", "linestyle": "none", "marker": "x", "markersize": 6}


def eight_panels(draw: Callable[[Axes, Level], None], xlabel: str, ylabel: str) -> Figure:
    """A panel a level, the lines' names once above all."""
    figure, panels = plt.subplots(2, 4, figsize=(10, 5), layout="constrained")
    for axes, level in zip(panels.flat, LEVELS, strict=True):
        draw(axes, level)
        axes.set_title(level.name, fontsize=9)
        axes.tick_params(labelsize=7)
    for axes in panels[1]:
        axes.set_xlabel(xlabel, fontsize=9)
    for axes in panels[:, 0]:
        axes.set_ylabel(ylabel, fontsize=9)
    lines, names = panels[0, 1].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=4, fontsize=9, frameon=False)
    return figure
