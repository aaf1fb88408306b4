"""What an attacker can notice, as a figure of a hundred cases."""

import math

from hedgerow.pages.catalogue import Catalogue

_STEP, _RADIUS, _SIDE = 22, 8, 10


def hundred(say: Catalogue, guessed: float, noticed: float, told: str) -> str:
    """Return a hundred circles: those guessed, those noticed beyond that, and the rest, as HTML.

    Args:
        say: the texts of the page.
        guessed: how many of a hundred are noticed by guessing.
        noticed: how many at most with the release, at least as many.
        told: the same in a sentence: HTML.
    """
    circles = "".join(
        _circle(k, min(max(guessed - k, 0.0), 1.0), min(max(noticed - k, 0.0), 1.0))
        for k in range(100)
    )
    size = _STEP * _SIDE
    keys = "".join(
        f'<li><span class="{kind}"></span>{say(f"release.hundred.{kind}")}</li>'
        for kind in ("guessed", "noticed", "hidden")
    )
    return (
        f'<figure class="hundred"><svg viewBox="0 0 {size} {size}" '
        f'aria-hidden="true">{circles}</svg>\n'
        f'<p>{told}</p><ul class="legend">{keys}</ul></figure>'
    )


def _circle(place: int, guessed: float, noticed: float) -> str:
    """Return one circle, filled as far as it is guessed, and further as far as it is noticed."""
    row, column = divmod(place, _SIDE)
    x, y = (_STEP * k + _STEP // 2 for k in (column, row))
    ring = f'<circle cx="{x}" cy="{y}" r="{_RADIUS}"/>'
    return ring + _wedge(x, y, noticed, "noticed") + _wedge(x, y, guessed, "guessed")


def _wedge(x: int, y: int, part: float, kind: str) -> str:
    """Return a part of a disc, from its top clockwise; nothing of no part."""
    if part <= 0:
        return ""
    if part >= 1:
        return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{_RADIUS}"/>'
    angle = 2 * math.pi * part
    end = f"{x + _RADIUS * math.sin(angle):.2f} {y - _RADIUS * math.cos(angle):.2f}"
    arc = f"A{_RADIUS} {_RADIUS} 0 {int(part > 0.5)} 1 {end}"
    return f'<path class="{kind}" d="M{x} {y}V{y - _RADIUS}{arc}Z"/>'
