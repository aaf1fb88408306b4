"""How the studies of Su et al. draw their curves."""

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from studies.showing import panels
from studies.su.census import LEVELS, Level

Style = dict[str, Any]

BUREAU: Style = {"color": "#D55E00", "linestyle": "-", "linewidth": 1.6}
EXACT: Style = {"color": "#0072B2", "linestyle": "-", "linewidth": 1.6}
REDUCED: Style = {"color": "black", "linestyle": "--", "linewidth": 1.4}
PEER: Style = {"color": "#009E73", "linestyle": ":", "linewidth": 2.0}


def eight_panels(draw: Callable[[Axes, Level], None], xlabel: str, ylabel: str) -> Figure:
    """A panel a level, the lines' names once above all."""
    figure, axes = panels(4, 2, (2.5, 2.5))
    for one, level in zip(axes, LEVELS, strict=True):
        draw(one, level)
        one.set_title(level.name)
    figure.supxlabel(xlabel)
    figure.supylabel(ylabel)
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure
