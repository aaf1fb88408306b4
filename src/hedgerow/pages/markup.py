"""A page: one HTML document that asks for nothing from any network, and the markup in it.

Text that anyone may have written passes through `shown` or `attribute`. The content policy lets run
the one script and the one style that are the page's own, by their hashes.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from hedgerow.declared import frozen
from hedgerow.pages.catalogue import USUAL, Catalogue
from hedgerow.text import Json, visible


def shown(words: str) -> str:
    """Return text as HTML, isolated so that its direction does not turn what stands around it."""
    return f"<bdi>{attribute(words)}</bdi>"


def attribute(words: str) -> str:
    """Return text as HTML or as the value of an attribute in quotes."""
    return escape(visible(words), quote=True)


def in_english(say: Catalogue, words: str) -> str:
    """Return what a plan says of itself, which it does in English: HTML."""
    return shown(words) if say.language == USUAL else f'<span lang="{USUAL}">{shown(words)}</span>'


def data(value: Any) -> str:
    """Return JSON that may stand within a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def table(
    say: Catalogue,
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: int = 1,
) -> str:
    """Return a table with a caption; its first column heads its rows.

    On a narrow window each row becomes a few lines, every cell behind its column's heading.

    Args:
        say: the texts of the page.
        caption: HTML.
        headings: of the columns, HTML.
        rows: of cells, HTML.
        words: how many of the first columns hold words, which stand to the left.
    """
    head = "".join(
        f'<th scope="col"{"" if i < words else _NUMBER}>{cell}</th>'
        for i, cell in enumerate(headings)
    )
    plain = [_TAG.sub(" ", cell) for cell in headings]
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(
            f'<td data-of="{plain[i]}"{"" if i < words else _NUMBER}>{cell}</td>'
            for i, cell in enumerate(row[1:], start=1)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{say("table.scrolls")}">\n'
        f"<table><caption><span>{caption}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def corner(down: str, across: str) -> str:
    """Return the heading of a matrix's first column: what its rows and its columns are, HTML."""
    return f"{down} ↓<br>{across} →"


def items(pairs: Sequence[tuple[str, str]], kind: str) -> str:
    """Return a list of terms and their descriptions, both HTML."""
    inner = "\n".join(
        f"<div><dt>{term}</dt><dd>{description}</dd></div>" for term, description in pairs
    )
    return f'<dl class="{kind}">\n{inner}\n</dl>'


_NUMBER = ' class="n"'
_TAG = re.compile(r"<[^>]*>")


# Line pictures as SVG: they scale, print, follow the colours of the page and have a text.

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 28, 12, 44


@frozen
class Line:
    """One line: a style of the page's (``exact``, ``dashed``, …), its name, its points."""

    style: str
    name: str
    points: Sequence[tuple[float, float]]


@frozen
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
    captions: tuple[str, str],
    scales: tuple[Scale, Scale],
    lines: Sequence[Line],
    band: Sequence[tuple[float, float, float]] = (),
    band_key: Sequence[Line] = (),
) -> str:
    """Return a figure: an SVG with a caption and a legend, in which the last line comes first.

    Args:
        name: of the picture, for its identifiers.
        captions: above it, HTML; and for those who do not see it, text.
        scales: across and upwards.
        lines: that are drawn, the last one above the others.
        band: places across, each with a low and a high end.
        band_key: what the legend says of that.
    """
    x, y = scales

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
    keys = (
        '<li><svg class="key" viewBox="0 0 34 10" aria-hidden="true">'
        f'<line class="line {line.style}" x1="1" y1="5" x2="33" y2="5"/></svg>'
        f"{attribute(line.name)}</li>"
        for line in (*lines[::-1], *band_key)
    )
    return (
        f"<figure><figcaption>{captions[0]}</figcaption>\n"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{name}-text">'
        f'<title id="{name}-text">{attribute(captions[1])}</title>\n' + "\n".join(drawn) + "</svg>"
        f'\n<ul class="legend">{"".join(keys)}</ul></figure>'
    )


def even_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round values between two, some six of them, with their words."""
    rough = (high - low) / 6
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


STYLES = ("base.css",)
SCRIPTS = ("words.js", "numbers.js", "reliability.js")
"""Of every page, before its own."""

BLOCK = ('<script type="text/plain" id="', '">', "</script>")
"""What stands before the name of a block of text, between the two, and behind them."""

_KEY = re.compile(r"\{\{([\w.]+)\}\}")


@frozen
class Document:
    """What a page is made of.

    Attributes:
        title: of the window; plain text.
        body: HTML.
        style: CSS, behind `STYLES`.
        script: JavaScript, behind `SCRIPTS`; all of it shares one scope, which nothing else sees.
        facts: JSON that the script starts from.
        blocks: names and texts that the script reads when it needs them; base64.
        made_by: the version of Hedgerow.
    """

    title: str
    body: str
    style: str
    script: str
    facts: Json
    blocks: Sequence[tuple[str, str]]
    made_by: str


def document(made: Document, say: Catalogue) -> str:
    """Return a page as HTML."""
    style = "".join(part("hedgerow.pages", name) for name in STYLES) + made.style
    scripts = "".join(part("hedgerow.pages", name) for name in SCRIPTS) + made.script
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    return Template(part("hedgerow.pages", "frame.html")).substitute(
        language=say.language,
        title=attribute(made.title),
        version=attribute(made.made_by),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        body=made.body,
        facts=data(made.facts),
        blocks="\n".join(
            f"{BLOCK[0]}{name}{BLOCK[1]}{text}{BLOCK[2]}" for name, text in made.blocks
        ),
    )


def part(package: str, name: str) -> str:
    """Return a file of a package of pages."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def spoken(template: str, say: Catalogue) -> str:
    """Return a template with the texts of the catalogue in place of ``{{their.keys}}``."""
    return _KEY.sub(lambda key: say(key[1]), template)


def _hash(text: str) -> str:
    """Return the hash by which the page's policy knows its own style and script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
