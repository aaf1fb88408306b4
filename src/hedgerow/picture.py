"""A picture: a figure of matplotlib in a file, and the look that all of them share."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import polars as pl

from hedgerow.errors import HedgerowError, machine_errors

SUFFIXES = (".png", ".svg", ".pdf")
COLOURS = BLUE, RED, GREEN, PURPLE, OCHRE = "#1b6ca8", "#d1495b", "#3c8d5a", "#8d5fb5", "#c98a1b"


STARTS = {".png": (b"\x89PNG\r\n",), ".svg": (b"<svg", b"<?xml"), ".pdf": (b"%PDF",)}


def check_picture(path: Path | None, error: type[HedgerowError]) -> None:
    """Raise unless a picture can be drawn there, or none is asked for."""
    if path is None:
        return
    subject = f"cannot write the picture {str(path)!r}"
    if path.suffix.lower() not in SUFFIXES:
        raise error(f"{subject}: its name must end in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise error(f"{subject}: the directory does not exist; create it")
    _figure_class(error)


def would_be_lost(path: Path) -> bool:
    """Return whether something is there that is no picture of the kind that the suffix tells."""
    if not path.exists() and not path.is_symlink():
        return False
    if not path.is_file():
        return True
    with machine_errors(f"cannot read {str(path)!r}"), path.open("rb") as opened:
        start = opened.read(1000)
    return not start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(STARTS[path.suffix.lower()])


def _figure_class(error: type[HedgerowError]) -> Any:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise error("pictures need matplotlib: pip install 'hedgerow[pictures]'") from None
    return Figure


TURNED_LINES = 2
FEWEST_TICKS, MOST_STEPS, NEAR_DECADES = 3, 9, 3
LABELS_WIDTH, LINE_HEIGHT = 330.0, 1.45
"""Points for all labels of one picture's depths side by side; height of a line over its letters."""


@contextmanager
def figure_for(
    path: Path, size: tuple[float, float], error: type[HedgerowError], *, force: bool = False
) -> Iterator[Any]:
    """Yield a figure to draw on; write its file when the block ends without an error.

    Args:
        path: PNG, SVG or PDF; a picture of this kind is replaced.
        size: width and height, inches.
        error: the kind of the room that draws.
        force: whether any other file is replaced too.
    """
    path = Path(path)
    check_picture(path, error)
    if not force and would_be_lost(path):
        raise error(
            f"cannot write the picture {str(path)!r}: the file exists and is not an image; name "
            f"another file"
        )
    figure = _figure_class(error)(figsize=size, layout="constrained")
    yield figure
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as failure:
        raise error(f"cannot write the picture {str(path)!r}: {failure}") from None


def open_axes(axes: Any, grid: Literal["both", "y"] = "both") -> None:
    """Take the frame off above and to the right, and put a light grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, alpha=0.3)


def scale_errors(axes: Any, values: Iterable[float | None]) -> None:
    """Make the upright axis logarithmic, with at least three ticks around the values.

    Where some values are 0 the axis begins there and is linear up to its lowest other tick.
    """
    drawn = [value for value in values if value is not None and math.isfinite(value)]
    positive = [value for value in drawn if value > 0]
    ticks = _log_ticks(min(positive), max(positive)) if positive else [1.0]
    if len(positive) < len(drawn) or not positive:
        axes.set_yscale("symlog", linthresh=ticks[0], linscale=0.5)
        axes.set_ylim(0, 1.15 * ticks[-1])
        ticks = [0.0, *ticks]
    else:
        axes.set_yscale("log")
        axes.set_ylim(ticks[0] / 1.15, 1.15 * ticks[-1])
    axes.set_yticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axes.minorticks_off()


def _log_ticks(least: float, most: float) -> list[float]:
    """Return round numbers around the values: 1, 2, 5 where they are near, else powers of ten."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    if high - low > NEAR_DECADES:
        skip = math.ceil((high - low) / MOST_STEPS)
        return [10.0**power for power in range(low, high + skip, skip)]
    every = [step * 10.0**power for power in range(low - 1, high + 1) for step in (1, 2, 5)]
    first = max(i for i, tick in enumerate(every) if tick <= least)
    last = min(i for i, tick in enumerate(every) if tick >= most)
    return every[min(first, last + 1 - FEWEST_TICKS) : last + 1]


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
