"""How the studies of Su et al. draw their curves."""

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
ABOVE: Style = {"loc": "outside upper center", "ncols": 4}
"""Where the lines' names stand, once for all levels."""


def level_panels(xlabel: str, ylabel: str) -> tuple[Figure, dict[Level, Axes]]:
    """A figure, and its panel of each level."""
    figure, axes = panels(4, 2, (2.5, 2.5))
    figure.supxlabel(xlabel)
    figure.supylabel(ylabel)
    for one, level in zip(axes, LEVELS, strict=True):
        one.set_title(level.name)
    return figure, dict(zip(LEVELS, axes, strict=True))
