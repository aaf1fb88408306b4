"""Line pictures as SVG: they scale, print, follow the colours of the page and have a text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hedgerow.release.page.markup import attribute

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 28, 12, 44


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a style of the page's (``exact``, ``dashed``, …), its name, its points."""

    style: str
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis of a picture.

    Attributes:
        title: what it measures.
        low, high: its ends.
        ticks: values with their words.
        log: whether it counts powers.
    """

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def picture(
    name: str,
    described: str,
    x: Scale,
    y: Scale,
    lines: Sequence[Line],
    *,
    band: Sequence[tuple[float, float, float]] = (),
) -> str:
    """An SVG.

    Args:
        name: an identifier within the page.
        described: what it shows, for those who do not see it.
        x: the axis below.
        y: the axis to the left.
        lines: what is drawn, later ones above.
        band: an area of (x, low, high) below the lines.
    """

    def spot(a: float, b: float) -> str:
        across = LEFT + x.place(a) * (WIDTH - LEFT - RIGHT)
        return f"{across:.1f},{HEIGHT - BOTTOM - y.place(b) * (HEIGHT - TOP - BOTTOM):.1f}"

    drawn = [_grid(x, y, spot)]
    if band:
        edge = [spot(a, low) for a, low, _ in band] + [spot(a, high) for a, _, high in band[::-1]]
        drawn.append(f'<polygon class="band" points="{" ".join(edge)}"/>')
    drawn += [
        f'<polyline class="line {line.style}" points="{" ".join(spot(*p) for p in line.points)}"/>'
        for line in lines
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{name}-text">'
        f'<title id="{name}-text">{attribute(described)}</title>\n' + "\n".join(drawn) + "</svg>"
    )


def legend(lines: Sequence[Line]) -> str:
    """The styles of the lines with their names."""
    rows = (
        '<li><svg class="key" viewBox="0 0 34 10" aria-hidden="true">'
        f'<line class="line {line.style}" x1="1" y1="5" x2="33" y2="5"/></svg>'
        f"{attribute(line.name)}</li>"
        for line in lines
    )
    return f'<ul class="legend">{"".join(rows)}</ul>'


def even_ticks(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Round values between two, with their words."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return [(value, f"{value:,.6g}") for value in values]


def _grid(x: Scale, y: Scale, spot: Callable[[float, float], str]) -> str:
    parts = ['<g class="grid" aria-hidden="true">']
    for value, words in x.ticks:
        across = spot(value, y.low).split(",")[0]
        parts.append(
            f'<line x1="{across}" x2="{across}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text x="{across}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{words}</text>'
        )
    for value, words in y.ticks:
        up = spot(x.low, value).split(",")[1]
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up}" y2="{up}"/>'
            f'<text x="{LEFT - 7}" y="{up}" dy="4" text-anchor="end">{words}</text>'
        )
    parts.append(
        f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" '
        f'text-anchor="middle">{attribute(x.title)}</text>'
        f'<text class="title" transform="translate(13 {(HEIGHT - BOTTOM + TOP) / 2:.0f}) '
        f'rotate(-90)" text-anchor="middle">{attribute(y.title)}</text></g>'
    )
    return "".join(parts)
