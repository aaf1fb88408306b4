"""What a reader sees on the page of a release: tables by heading, pictures in their own units.

Nothing here knows how the page is made. A picture's scales are read off its ticks, and its lines
are told apart by the legend below it.
"""

import math
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br"}
UNSEEN = {"script", "style"}


@dataclass
class Element:
    """An element of a page; ``inside`` holds elements and text in order."""

    tag: str
    attributes: dict[str, str]
    inside: list = field(default_factory=list)

    def all(self, tag, **attributes):
        """Every element within of this name whose attributes hold these words."""
        return [
            one
            for one in self.walk()
            if one.tag == tag
            and all(words in one.attributes.get(name, "") for name, words in attributes.items())
        ]

    def walk(self):
        for one in self.inside:
            if isinstance(one, Element):
                yield one
                yield from one.walk()

    @property
    def text(self):
        """What is read, without scripts within."""
        parts = [
            one if isinstance(one, str) else one.text
            for one in self.inside
            if isinstance(one, str) or one.tag not in UNSEEN
        ]
        return " ".join("".join(parts).split())

    @property
    def classes(self):
        return set(self.attributes.get("class", "").split())


class _Parser(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open = [Element("page", {})]
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        made = Element(tag, dict(attributes))
        self.open[-1].inside.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.open[-1].inside.append(data)


def read(text):
    """The whole page as one element."""
    return _Parser(text).open[0]


@dataclass(frozen=True)
class Table:
    """One table: its caption, and for each row the cells by their headings."""

    caption: str
    rows: list[dict[str, Element]]

    def column(self, heading):
        """The text of every cell below a heading."""
        return [row[heading].text for row in self.rows]


def tables(page):
    """All tables of a page, by the beginning of their captions."""
    found = {}
    for table in page.all("table"):
        (caption,) = table.all("caption")
        (head,) = table.all("thead")
        (body,) = table.all("tbody")
        headings = [cell.text for cell in head.all("th")]
        assert len(set(headings)) == len(headings), headings
        rows = [
            dict(zip(headings, [one for one in row.walk() if one.tag in {"th", "td"}], strict=True))
            for row in body.all("tr")
        ]
        found[caption.text] = Table(caption.text, rows)
    return found


def table(page, caption):
    """The one table whose caption begins so."""
    (found,) = [one for name, one in tables(page).items() if name.startswith(caption)]
    return found


@dataclass(frozen=True)
class Scale:
    """Where values stand on one axis of a picture: the ticks, and what lies between them."""

    title: str
    ticks: list[tuple[float, float]]  # place in the picture, value
    log: bool

    @classmethod
    def of(cls, title, ticks):
        """Linear or of powers, whichever the ticks keep; they must keep one."""
        for log in (False, True):
            if log and min(value for _, value in ticks) <= 0:
                break
            made = cls(title, ticks, log)
            if all(abs(made.place(value) - place) < 0.11 for place, value in ticks):
                return made
        raise AssertionError(f"the ticks of {title!r} are on no scale: {ticks}")

    @property
    def rises(self):
        """Whether greater values have greater places."""
        return self._line()[2] > 0

    def _line(self):
        (a, first), (b, last) = self.ticks[0], self.ticks[-1]
        if self.log:
            first, last = math.log10(first), math.log10(last)
        return a, first, (b - a) / (last - first)

    def place(self, value):
        a, first, slope = self._line()
        return a + slope * ((math.log10(value) if self.log else value) - first)

    def value(self, place):
        a, first, slope = self._line()
        found = first + (place - a) / slope
        return 10**found if self.log else found

    def about(self, place):
        """The least and the greatest value that may be meant by a place with one decimal."""
        return sorted((self.value(place - 0.12), self.value(place + 0.12)))


@dataclass(frozen=True)
class Point:
    """Of a line: the least and greatest value of either axis that it may stand for."""

    x: list[float]
    y: list[float]

    @property
    def middle(self):
        return (self.x[0] + self.x[1]) / 2, (self.y[0] + self.y[1]) / 2


@dataclass(frozen=True)
class Picture:
    """A picture: its scales, its lines and areas by the words of its legend."""

    x: Scale
    y: Scale
    lines: dict[str, list[Point]]
    bands: dict[str, list[Point]]


def picture(page, caption):
    """The one picture under a caption."""
    (figure,) = [
        one
        for one in page.all("figure")
        if any(words.text.startswith(caption) for words in one.all("figcaption"))
    ]
    drawing = next(one for one in figure.all("svg") if one.attributes.get("role") == "img")
    x, y = _scales(drawing)
    assert x.rises
    assert not y.rises, "greater values stand higher, where places are smaller"
    names = {}
    for item in figure.all("ul", **{"class": "legend"})[0].all("li"):
        (sample,) = item.all("line")
        names[frozenset(sample.classes)] = item.text
    assert len(set(names.values())) == len(names)
    lines = {names[frozenset(one.classes)]: _points(one, x, y) for one in drawing.all("polyline")}
    bands = {
        names[frozenset({"line", *(f"{name}-key" for name in one.classes)})]: _points(one, x, y)
        for one in drawing.all("polygon")
    }
    assert len(lines) + len(bands) == len(names), "each line has its name in the legend"
    return Picture(x, y, lines, bands)


def _scales(drawing):
    (grid,) = drawing.all("g", **{"class": "grid"})
    ticks, titles, ruled = {"x": [], "y": []}, [], None
    ruled_lines = [one.attributes for one in grid.all("line")]
    across = {(one["x1"], one["x2"]) for one in ruled_lines if one["y1"] == one["y2"]}
    up = {(one["y1"], one["y2"]) for one in ruled_lines if one["x1"] == one["x2"]}
    frame = {axis: sorted(map(float, *ends)) for axis, ends in (("x", across), ("y", up))}
    for one in [*drawing.all("polyline"), *drawing.all("polygon")]:
        for pair in one.attributes["points"].split():
            for axis, place in zip("xy", pair.split(","), strict=True):
                assert frame[axis][0] - 0.1 <= float(place) <= frame[axis][1] + 0.1
    width, height = map(float, drawing.attributes["viewbox"].split()[2:])
    assert 0 < frame["x"][0] < frame["x"][1] < width
    assert 0 < frame["y"][0] < frame["y"][1] < height
    for one in grid.inside:
        if one.tag == "line":
            across = one.attributes["x1"] == one.attributes["x2"]
            ruled = ("x", one.attributes["x1"]) if across else ("y", one.attributes["y1"])
        elif "title" in one.classes:
            titles.append((("transform" in one.attributes), one.text))
        else:
            axis, place = ruled
            assert abs(float(one.attributes[axis]) - float(place)) < 0.01
            ticks[axis].append((float(place), number(one.text)))
    named = {"y" if turned else "x": words for turned, words in titles}
    for axis, found in ticks.items():
        assert all(frame[axis][0] - 0.1 <= place <= frame[axis][1] + 0.1 for place, _ in found)
    return Scale.of(named["x"], ticks["x"]), Scale.of(named["y"], ticks["y"])


def _points(one, x, y):
    pairs = (pair.split(",") for pair in one.attributes["points"].split())
    return [Point(x.about(float(across)), y.about(float(up))) for across, up in pairs]


def number(words):
    """A number as the page writes it: 1,234.5, 20 %, 10−3 for a power of ten."""
    plain = words.replace(",", "").strip()
    if power := re.fullmatch(r"10−(\d+)", plain):
        return 10.0 ** -int(power[1])
    if part := re.fullmatch(r"(\S+) %", plain):
        return float(part[1]) / 100
    return float(plain)


def between(low, high):
    """An interval as the page writes it."""
    return f"{low:,} to {high:,}" if low else f"at most {high:,}"


def ends(words):
    """The ends of an interval as the page writes it."""
    low, high = words.replace("at most ", "0 to ").split(" to ")
    return int(number(low)), int(number(high))


def unraised(words: str) -> float:
    """Return the number that 10⁻⁸ or 3 · 10⁻⁸ stands for."""
    digits, _, power = words.rpartition("10⁻")
    power = "".join(str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(digit)) for digit in power)
    return float(f"{digits.removesuffix(' · ') or 1}e-{power}")
