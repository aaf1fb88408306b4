"""A picture: a figure of matplotlib in a file, and the look that all of them share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import polars as pl

from hedgerow.errors import HedgerowError

SUFFIXES = (".png", ".svg", ".pdf")
COLOURS = BLUE, RED, GREEN, PURPLE, OCHRE = "#1b6ca8", "#d1495b", "#3c8d5a", "#8d5fb5", "#c98a1b"


def check_picture(path: Path | None, error: type[HedgerowError]) -> None:
    """Nothing, if a picture can go there, or none is asked for.

    Raises:
        HedgerowError: of the given kind: another suffix, or a folder that is not there.
    """
    if path is None:
        return
    what = f"cannot write the picture {str(path)!r}"
    if path.suffix.lower() not in SUFFIXES:
        raise error(f"{what}: its name must end in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise error(f"{what}: its folder is not there; make it first")


TURNED_LINES = 2
LABELS_WIDTH, LINE_HEIGHT = 330.0, 1.45
"""Points for all labels of one picture's depths side by side; height of a line over its letters."""


@contextmanager
def figure_for(path: Path, size: tuple[float, float], error: type[HedgerowError]) -> Iterator[Any]:
    """A figure to draw on; its file is written when the block ends, and not where it fails.

    Args:
        path: PNG, SVG or PDF.
        size: width and height, inches.
        error: the kind of the room that draws.

    Raises:
        HedgerowError: of that kind: matplotlib is not installed, or the file cannot be written.
    """
    check_picture(path, error)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise error("pictures need matplotlib: pip install 'hedgerow[pictures]'") from None
    figure = Figure(figsize=size, layout="constrained")
    yield figure
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as failure:
        raise error(f"cannot write the picture {str(path)!r}: {failure}") from None


def open_axes(axes: Any, grid: Literal["both", "y"] = "both") -> None:
    """Take the frame off above and to the right, and put a light grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, alpha=0.3)


def label_depths(axes: Any, frame: pl.DataFrame) -> None:
    """Write the cuboids below the depths: columns ``cuboid`` and ``depth`` of the frame.

    Names of three axes or more stand upright, in letters small enough not to touch each other.
    """
    names = [name.replace(" × ", "\n× ") for name in frame["cuboid"]]
    lines = max((name.count("\n") + 1 for name in names), default=1)
    axes.set_xticks(frame["depth"].to_list())
    if lines <= TURNED_LINES:
        axes.set_xticklabels(names, rotation=35, ha="right", fontsize=7)
        return
    letters = min(7.0, LABELS_WIDTH / (LINE_HEIGHT * lines * len(names)))
    axes.set_xticklabels(
        names, rotation=90, ha="center", ma="right", linespacing=1.0, fontsize=letters
    )
