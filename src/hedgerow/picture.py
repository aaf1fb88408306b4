"""A picture: a figure of matplotlib in a file, and the look that all of them share.

Rows are read from the top down, names stand beside them, numbers go along the foot. Each series has
a colour and a mark of its own: colours alone are lost on paper and on some eyes.
"""

import io
import math
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError, machine_errors
from hedgerow.machine import check_suffix, library

SUFFIXES = (".png", ".svg", ".pdf")
STARTS = {".png": (b"\x89PNG\r\n",), ".svg": (b"<svg", b"<?xml"), ".pdf": (b"%PDF",)}

INK, MUTE, RULE, GREY, WARNING = "#17211d", "#55605a", "#d3d9d5", "#8b938f", "#a8321a"
COLOURS = GREEN, OCHRE, BLUE, PLUM, NAVY = "#1b5e43", "#cf7a12", "#2f7fc1", "#a1478a", "#15294d"
MARKS = ("o", "s", "D", "^", "v")
"""Colours of series, told apart also by those who confuse red and green; a mark for each."""

_CJK = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Hiragino Sans", "Microsoft YaHei")
"""For letters that DejaVu lacks, which matplotlib brings; no other font of the machine is used."""
_LOOK: dict[Any, Any] = {
    "axes.axisbelow": True, "axes.edgecolor": GREY, "axes.labelcolor": MUTE, "axes.labelsize": 9,
    "axes.linewidth": 0.8, "axes.titlelocation": "left", "axes.titlepad": 10,
    "axes.titlesize": 9.5, "axes.titleweight": "bold", "grid.color": RULE, "grid.linewidth": 0.7,
    "legend.fontsize": 9, "legend.frameon": False, "legend.handletextpad": 0.5,
    "svg.hashsalt": "hedgerow", "text.color": INK, "text.hinting": "none",
    "text.parse_math": False,
    "xtick.color": MUTE, "xtick.labelsize": 8.5, "ytick.color": MUTE, "ytick.labelcolor": INK,
    "ytick.labelsize": 9,
}  # fmt: skip


def check_picture(path: Path | None, error: type[HedgerowError]) -> None:
    """Raise unless a picture can be drawn there, or none is asked for."""
    if path is None:
        return
    subject = f"cannot write the picture {str(path)!r}"
    check_suffix(path, SUFFIXES, f"{subject}: its name", error)
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


Draw = Callable[[Any], None]
"""Draws on a figure of matplotlib."""
Size = tuple[float, float]
"""Width and height, inches."""


def _figure_class(error: type[HedgerowError]) -> Any:
    return library("matplotlib.figure", "pictures", "a picture", error).Figure


@contextmanager
def figure_for(
    path: Path, size: Size, error: type[HedgerowError], *, force: bool = False
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
    with _look(error) as figure_class:
        figure = _blank(figure_class, size)
        yield figure
        try:
            figure.savefig(path, dpi=150, metadata=_undated(path.suffix))
        except (OSError, ValueError) as failure:
            raise error(f"cannot write the picture {str(path)!r}: {failure}") from None


def svg_of(draw: Draw, size: Size, error: type[HedgerowError]) -> bytes | None:
    """Return a picture as an SVG document, for a notebook; None without matplotlib."""
    try:
        _figure_class(error)
    except error:
        return None
    with _look(error) as figure_class:
        figure = _blank(figure_class, size)
        draw(figure)
        return _svg(figure, error).encode()


def figure_of(draw: Draw, size: Size, error: type[HedgerowError]) -> Any:
    """Return a figure of matplotlib, for users to change and save; a notebook shows it as SVG."""
    with _look(error) as figure_class:
        figure = _blank(figure_class, size)
        draw(figure)
        figure.draw_without_rendering()  # its ticks are made now, with this look
    figure._repr_svg_ = partial(_svg, figure, error)
    return figure


def _svg(figure: Any, error: type[HedgerowError]) -> str:
    with _look(error), io.BytesIO() as opened:
        figure.savefig(opened, format="svg", metadata=_undated(".svg"))
        return opened.getvalue().decode()


@contextmanager
def _look(error: type[HedgerowError]) -> Iterator[Any]:
    """Yield the class of figures, with the look of all pictures for as long as one is drawn."""
    figure_class = _figure_class(error)
    from matplotlib import rc_context  # noqa: PLC0415 - an optional extra

    with rc_context(_LOOK | {"font.family": _families("DejaVu Sans")}), _any_letters():
        yield figure_class


@contextmanager
def _any_letters() -> Iterator[None]:
    """Let a text in letters that no font here has be drawn and measured all the same."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _blank(figure_class: Any, size: Size) -> Any:
    figure = figure_class(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08, wspace=0.05)
    return figure


def _families(own: str) -> list[str]:
    """Return a font of matplotlib's own, and those for letters that it lacks."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415 - an optional extra

    there = {font.name for font in fontManager.ttflist}
    return [own, *(family for family in _CJK if family in there)]


def _undated(suffix: str) -> dict[str, None]:
    """Return metadata without the time at which a picture was drawn."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix.lower(), {})


@dataclass(frozen=True)
class Letters:
    """A kind of letters, which the renderer measures.

    Attributes:
        family: a font that matplotlib brings.
        size: points.
        weight: normal or bold.
    """

    family: str
    size: float
    weight: str = "normal"

    @property
    def font(self) -> Any:
        """Return matplotlib's properties of the font."""
        from matplotlib.font_manager import FontProperties  # noqa: PLC0415 - an optional extra

        return FontProperties(family=_families(self.family), size=self.size, weight=self.weight)

    def width_of(self, text: str) -> float:
        """Return how wide a text is drawn, inches; 0 without matplotlib, where none is drawn."""
        try:
            from matplotlib.textpath import TextToPath  # noqa: PLC0415 - an optional extra
        except ImportError:
            return 0.0
        with _any_letters():
            width, _, _ = TextToPath().get_text_width_height_descent(text, self.font, ismath=False)
        return float(width) / 72

    def lines_of(self, text: str, width: float) -> list[str]:
        """Return a text as lines that are no longer than so many inches.

        Lines end between words; within a word that is longer than a line, or whose script has no
        spaces, between any two letters.
        """
        lines = [""]
        for word in text.split():
            whole = not any(map(_is_wide, word)) and self.width_of(word) <= width
            for number, part in enumerate([word] if whole else word):
                joined = f"{lines[-1]} {part}" if lines[-1] and not number else lines[-1] + part
                if lines[-1] and self.width_of(joined) > width:
                    lines.append(part)
                else:
                    lines[-1] = joined
        return [line for line in lines if line]


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in {"W", "F"}


TITLE = Letters("DejaVu Serif", 15, "bold")
LINE, WARNED = Letters("DejaVu Sans", 9.5), Letters("DejaVu Sans", 9.5, "bold")
NAME, PANEL = Letters("DejaVu Sans", 9), Letters("DejaVu Sans", 9.5, "bold")
HEADING_MARGIN = 0.18
"""Inches around a heading."""


def write_heading(figure: Any, title: str, *below: str, warning: str = "") -> None:
    """Make room over what a figure holds, and write a title there.

    Below it stand lines in small letters, the first a warning.
    """
    width, body = figure.get_size_inches()
    parts = [
        (TITLE, 1.3, INK, title), (WARNED, 1.55, WARNING, warning),
        *((LINE, 1.55, MUTE, text) for text in below),
    ]  # fmt: skip
    drawn = [
        (letters, spacing * letters.size / 72, colour, line)
        for letters, spacing, colour, text in parts
        for line in letters.lines_of(text, width - 2 * HEADING_MARGIN)
    ]
    height = body + 2 * HEADING_MARGIN + sum(step for _, step, _, _ in drawn)
    figure.set_size_inches(width, height)
    figure.get_layout_engine().set(rect=(0, 0, 1, body / height))
    top = height - HEADING_MARGIN
    left = HEADING_MARGIN / width
    for letters, step, colour, line in drawn:
        at = top / height if letters is TITLE else (top - 0.04) / height
        figure.text(left, at, line, va="top", fontproperties=letters.font, color=colour)
        top -= step


LONGEST_NAME, NARROW_PANEL, MOST_LINES = 2.6, 2.0, 3
"""Inches of a name on one line, beside rows and over panels; lines of each part of a longer one."""


def row_names(names: Iterable[str]) -> list[str]:
    """Return names as they stand beside rows: long ones on several lines, very long ones cut."""
    return [
        name if NAME.width_of(name) <= LONGEST_NAME else _in_parts(name, NAME, LONGEST_NAME)
        for name in names
    ]


def panel_name(name: str) -> str:
    """Return the name of a cuboid as it stands over a narrow panel, a line for each axis."""
    return _in_parts(name, PANEL, NARROW_PANEL)


def _in_parts(name: str, letters: Letters, width: float) -> str:
    first, *others = name.split(" × ")
    parts = [letters.lines_of(part, width) for part in (first, *(f"× {part}" for part in others))]
    return "\n".join(
        line
        for lines in parts
        for line in (lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "…"])
    )


def rows_height(names: Sequence[str]) -> float:
    """Return how many inches the rows of a picture take, with the axis at their foot."""
    return 0.95 + max(len(names), 2) * row_height(names)


def row_height(names: Sequence[str]) -> float:
    """Return how many inches each row takes."""
    return 0.17 + 0.16 * max((name.count("\n") + 1 for name in names), default=1)


def label_rows(axes: Any, names: Sequence[str], *, written: bool = True) -> None:
    """Make a panel of rows, the first at the top, with their names beside it or without."""
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, pad=9, labelleft=written)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x")
    for row in range(len(names)):
        axes.axhline(row, color=RULE, linewidth=0.5, zorder=0.5)


def open_axes(axes: Any) -> None:
    """Take the frame off above and to the right, and put a light grid behind."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both")


FEWEST_TICKS, MOST_STEPS, NEAR_DECADES = 3, 6, 2


def scale_errors(axes: Any, values: Iterable[float | None]) -> None:
    """Make the axis at the foot logarithmic, with at least three ticks around the values.

    Where some values are 0 the axis begins there and is linear up to its lowest other tick.
    """
    drawn = [value for value in values if value is not None and math.isfinite(value)]
    positive = [value for value in drawn if value > 0]
    ticks = _log_ticks(min(positive), max(positive)) if positive else [1.0]
    if len(positive) < len(drawn) or not positive:
        axes.set_xscale("symlog", linthresh=ticks[0], linscale=0.5)
        axes.set_xlim(0, 1.15 * ticks[-1])
        ticks = [0.0, *ticks]
    else:
        axes.set_xscale("log")
        axes.set_xlim(ticks[0] / 1.15, 1.15 * ticks[-1])
    axes.set_xticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axes.minorticks_off()


def _log_ticks(least: float, most: float) -> list[float]:
    """Return round numbers around the values: 1, 2, 5 where they are near, else powers of ten."""
    low = math.floor(math.log10(least))
    high = math.ceil(math.log10(most))
    if high - low > NEAR_DECADES:
        skip = math.ceil((high - low) / MOST_STEPS)
        return [10.0**power for power in range(low, high + skip, skip)]
    every = [step * 10.0**power for power in range(low - 1, high + 1) for step in (1, 2, 5)]
    first = max(i for i, tick in enumerate(every) if tick <= least)
    last = min(i for i, tick in enumerate(every) if tick >= most)
    return every[min(first, last + 1 - FEWEST_TICKS) : last + 1]


def scale_shares(axes: Any) -> None:
    """Make the axis at the foot one of shares, from 0 to 100 %."""
    axes.set_xlim(-0.03, 1.03)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])


def write_thousands(axis: Any) -> None:
    """Write the numbers of an axis as people do: 200,000."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def power_of_ten(value: float, _: int | None = None) -> str:
    """Return a power of ten as people write it, for the ticks of a logarithmic axis."""
    power = f"{round(math.log10(value))}" if value > 0 else "0"
    return "10" + power.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
