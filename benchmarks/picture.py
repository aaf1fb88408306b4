"""How benchmarks draw."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.page import PAGES
from studies.boninsegna import pictures
from studies.showing import plain

OURS, OTHER, THIRD, FOURTH = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
COLOURS: Sequence[str] = (OURS, OTHER, THIRD, FOURTH)


def panels(columns: int, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row."""
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        plain(one)
        one.tick_params(labelsize=8)
    return figure, list(axes.flat)


def save(figure: Figure, name: str) -> str:
    """Write a picture of the page; its file name."""
    PAGES.mkdir(parents=True, exist_ok=True)
    return pictures.save(figure, PAGES / f"{name}.png", dpi=100)
