"""``report.html``: one page that says what a release is, for those who did not make it.

It is made from the public files of a release directory and its plan alone, and the same directory
gives the same page. It asks for nothing from any network, and a policy within it forbids that.
"""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from string import Template

from hedgerow.errors import BudgetError, ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import (
    BLOCK,
    Document,
    Line,
    Scale,
    attribute,
    document,
    even_ticks,
    items,
    part,
    picture,
    shown,
    spoken,
    table,
)
from hedgerow.plan.page.protected import agreed, among, publisher
from hedgerow.plan.plan import Plan
from hedgerow.privacy.accountant.accountant import SMALLEST_DELTA
from hedgerow.privacy.budget import float_above
from hedgerow.privacy.profile import FALSE_ALARMS
from hedgerow.release.directory.manifest import OTHER_PAGE, REPORT, check_plain
from hedgerow.release.directory.stored import OnDisk
from hedgerow.release.distribution import cumulative
from hedgerow.release.page import levels, words
from hedgerow.release.page.carried import carry_maps, parts_of
from hedgerow.release.page.cuboids import carry
from hedgerow.release.page.levels import CuboidFacts, cuboid_facts
from hedgerow.release.page.words import noticed, unit_of, words_of
from hedgerow.text import format_delta, format_rounded_up, raised

MOST_LETTERS = 12
"""Of a fraction at the head of the page."""
PAGE_ROOM = 1 << 20
"""Bytes by which another machine's page may be larger, twice as large aside."""
SHARED = (
    "blocks.js", "sentences.js", "pictures.js", "bars.js", "grid.js", "keys.js", "search.js",
    "download.js", "listing.js", "places.js",
)  # fmt: skip
_BLOCKS = re.compile(f"(?<={BLOCK[1]})([A-Za-z0-9+/=]+)(?={BLOCK[2]})")
"""What blocks of a page hold, which splits it into pieces beside them and these."""
EXPLORE = "explore.js"
"""The part that shows counts, behind the one that says where the places of a design lead."""
MAPS = ("map_shapes.js", "map_counts.js", "map_scale.js", "map_read.js", "map.js")
"""The parts that draw maps, with what d3-geo and topojson-client give to them."""


def write_report(folder: Path, plan: Plan, estimator: Estimator) -> None:
    """Write ``report.html`` beside the Parquet files of a release, which are closed.

    Raises:
        ReleaseError: the counts do not add up, or are no counts.
    """
    text = page(folder, plan, estimator, version("hedgerow"))
    (folder / REPORT).write_text(text, encoding="utf-8", newline="\n")


def check_report(folder: Path, plan: Plan, estimator: Estimator, made_by: str) -> None:
    """Refuse a page that is not the one that the files make.

    Compressed counts are compared as what they hold, for another machine may deflate otherwise.

    Raises:
        ReleaseError: it is another page.
    """
    made = page(folder, plan, estimator, made_by)
    most = 2 * len(made.encode()) + PAGE_ROOM
    check_plain(folder, folder / REPORT)
    with (folder / REPORT).open("rb") as file:
        given = file.read(most + 1)
    if len(given) > most or not _same_page(made, given.decode("utf-8")):
        raise ReleaseError(OTHER_PAGE)


def page(folder: Path, plan: Plan, estimator: Estimator, made_by: str) -> str:
    """Return the page of a release as HTML.

    Raises:
        ReleaseError: the counts do not add up, or are no counts.
    """
    facts, say = cuboid_facts(folder, plan), words_of(plan)
    is_column = plan.is_chain and words.is_numeric(plan.tree)
    seen = carry(folder, plan, [each.listed for each in facts], numeric=is_column)
    carried, total, title = list(seen.cells), facts[0].total or 0, words.title(plan)
    maps, shapes = carry_maps(plan)
    body = Template(spoken(_part("page.html"), say)).substitute(
        heading=words.in_its_language(plan, title),
        publisher=publisher(plan),
        lead=words.lead(plan, total),
        described=words.described(plan),
        made_by=say("release.foot.made_by", version=attribute(made_by)),
        overview=_overview(plan, facts),
        released=words.released(plan, total),
        promised=words.promised(plan, estimator),
        hundred=in_a_hundred(plan),
        map=spoken(_part("map.html"), say).rstrip() if maps else "",
        map_link=f'<li><a href="#map">{say("map.heading")}</a></li>\n' if maps else "",
        explore=seen.first_counts(),
        carried=levels.carried_words(carried, plan),
        distribution=cumulative.section(OnDisk(folder, plan, estimator)) if is_column else "",
        levels=levels.level_table(plan, facts),
        sizes=levels.size_table(plan, facts),
        contradicted=levels.contradicted_words(plan, facts),
        curves=curves(plan),
        checks=levels.checks(plan, facts, carried),
        cite=words.cited(plan, total, made_by),
    )
    script = "".join(map(_part, (*SHARED, f"{plan.design.key}.js", EXPLORE)))
    style, starts_from = _part("page.css"), seen.facts()
    if maps:
        vendor = part("hedgerow.pages.vendor", "cartography.js")
        script = "".join([vendor, script, *map(_part, MAPS)])
        style += _part("map.css")
        starts_from |= {"maps": maps, "words": say.script("release", "map")}
    blocks = [*seen.blocks, *shapes]
    return document(Document(title, body, style, script, starts_from, blocks, made_by), say)


def _overview(plan: Plan, facts: list[CuboidFacts]) -> str:
    """Return the four facts at the head of the page, and the promise's restriction if any."""
    say, budget = words_of(plan), plan.budget
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    promise = ", ".join(
        f"{letter} = {raised(say.numeral(_short(getattr(budget, name))))}"
        for name, letter in letters.items()
        if name in budget.__slots__
    )
    listed = sum(each.listed for each in facts)
    tables = [(say("release.head.tables"), f"{len(plan.tables)}")] if len(plan.tables) > 1 else []
    return items(
        [
            (shown(words.capital(unit_of(plan))), say.number(facts[0].total or 0)),
            (say("release.head.listed"), say.number(listed)),
            (say(f"release.head.levels_{plan.design.key}"), f"{len(facts)}"),
            *tables,
            (say("release.head.promise"), attribute(promise)),
            *((say("release.promise.agreed"), shown(named)) for named in [agreed(plan)] if named),
        ],
        "overview",
    )


def _same_page(made: str, given: str) -> bool:
    """Return whether two pages are the same, their blocks compared as what they hold."""
    ours, theirs = _BLOCKS.split(made), _BLOCKS.split(given)
    if ours[::2] != theirs[::2]:
        return False
    for one, other in zip(ours[1::2], theirs[1::2], strict=True):
        if one == other:
            continue
        parts = parts_of(one)
        room = 4 * (1 + len(parts)) + sum(map(len, parts))
        if parts_of(other, room) != parts:
            return False
    return True


def _part(name: str) -> str:
    return part("hedgerow.release.page", name)


def _short(value: Fraction) -> str:
    """Return a number exactly, or six digits rounded up where that would be long."""
    exact = f"{float(value):.6g}"
    if Fraction(exact) == value:
        return exact
    return str(value) if len(str(value)) <= MOST_LETTERS else format_rounded_up(value)


# What is promised in pictures and figures: exact, beside what looser statements say.

_STEP, _RADIUS, _SIDE = 22, 8, 10


def in_a_hundred(plan: Plan) -> str:
    """Return what an attacker notices of a hundred differences, as circles: HTML."""
    say, guessed, seen = words_of(plan), 100 * FALSE_ALARMS, 100 * plan.guarantee.power()
    caption = shown(among(plan, say("release.hundred.caption", noticed=noticed(plan))))
    circles = "".join(
        _circle(k, min(max(guessed - k, 0.0), 1.0), min(max(seen - k, 0.0), 1.0))
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
        f'<p>{caption}</p><ul class="legend">{keys}</ul></figure>'
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


LEAST_DELTA = 1e-15
DELTAS = [0.5, 0.3, 0.2, 0.1, 0.05, 0.02, *(10.0**-k for k in range(2, 16))]
LARGEST_EXPONENT = 700.0
ALPHAS = [i / 50 for i in range(51)]
POINTS = 40
ROUND_OFF = 1e-14  # of a few sums of numbers below 1, each a few operations

Pair = tuple[float, float]


def least_missed(pairs: Sequence[Pair], alpha: float) -> float:
    """Return the least type II error at type I error α that pairs (ε, δ) leave, from below.

    Each pair holds in both directions, so T(α) is at least ``1 - δ - e^ε α`` and
    ``e^-ε (1 - δ - α)`` (Dong, Roth & Su 2022, Proposition 3).
    """
    bounds = [0.0]
    for epsilon, delta in pairs:
        bounds.append(1 - delta - math.exp(min(epsilon, LARGEST_EXPONENT)) * alpha)
        bounds.append(math.exp(-epsilon) * (1 - delta - alpha))
    return max(0.0, max(bounds) - ROUND_OFF)


def curves(plan: Plan) -> str:
    """Both pictures with their legend, and the figures that people ask for."""
    say, profile = words_of(plan), plan.guarantee
    try:  # a tight δ takes milliseconds, so each is computed once
        tight = [(epsilon, profile.delta(epsilon)) for epsilon in profile.epsilon_grid(POINTS)]
    except BudgetError:  # it is out of reach
        tight = []
    best, bureau = (
        [(ask(delta), delta) for delta in DELTAS]
        for ask in (profile.zcdp_epsilon, profile.bureau_epsilon)
    )
    pure = profile.pure_epsilon
    loose = best if pure is None else [*best, (float_above(pure), 0.0)]
    word = "exact" if profile.is_exact else "bound"
    note = word if tight else "loose"
    drawn = _price(say, word, tight, best, bureau), _test(plan, word, tight, loose)
    return (
        f"<p>{say(f'release.price.note_{note}')}</p>\n"
        f'<div class="pair">{"".join(drawn)}</div>\n'
        f"{_figures(plan, is_tight=bool(tight))}"
    )


def _exact(say: Catalogue, word: str, points: list[Pair]) -> list[Line]:
    """Return the line of the tight profile, where it is within reach."""
    return [Line("exact", say(f"release.price.{word}"), points)] if points else []


def _price(
    say: Catalogue, word: str, tight: list[Pair], best: list[Pair], bureau: list[Pair]
) -> str:
    lines = [
        Line("dotted", say("release.price.bureau"), bureau),
        Line("dashed", say("release.price.best"), best),
        *_exact(say, word, [(e, d) for e, d in tight if d >= LEAST_DELTA]),
    ]
    last = max(e for line in lines for e, _ in line.points) * 1.02
    powers = [(10.0**-k, f"10<tspan dy='-4' font-size='80%'>−{k}</tspan>") for k in range(3, 16, 3)]
    upwards = say("release.price.delta_axis")
    return picture(
        "price",
        (say("release.price.cost"), say("release.price.cost_told")),
        (
            Scale("ε", 0, last, even_ticks(0, last)),
            Scale(upwards, LEAST_DELTA, 1, [(1, "1"), *powers], log=True),
        ),
        lines,
    )


def _test(plan: Plan, word: str, tight: list[Pair], loose: list[Pair]) -> str:
    say, fifths = words_of(plan), [i / 5 for i in range(6)]
    ticks = [(fifth, say.percent(f"{100 * fifth:.0f}")) for fifth in fifths]
    across, upwards = (
        Scale(say(f"release.price.{key}"), 0, 1, ticks) for key in ("alarms", "missed")
    )
    by_rho, exact = (
        [(alpha, least_missed(pairs, alpha)) for alpha in ALPHAS if pairs]
        for pairs in (loose, tight)
    )
    lines = [
        Line("plain", say("release.price.nothing"), [(0, 1), (1, 0)]),
        Line("dashed", say("release.price.loose"), by_rho),
        *_exact(say, word, exact),
    ]
    caption = among(plan, say("release.price.test_told"))
    return picture("test", (say("release.price.test"), caption), (across, upwards), lines)


def _figures(plan: Plan, *, is_tight: bool) -> str:
    say, profile, rows = words_of(plan), plan.guarantee, []
    is_exact = profile.is_exact and is_tight and min(plan.deltas) >= SMALLEST_DELTA
    for delta in plan.deltas:
        epsilons = (plan.promise.epsilon, profile.zcdp_epsilon, profile.bureau_epsilon)
        figures = [say.numeral(format_rounded_up(ask(delta))) for ask in epsilons]
        rows.append([raised(say.numeral(format_delta(delta))), *figures])
    caption = "table" if is_exact else "table_bound"
    keys = ("exact" if is_exact else "bound", "best_short", "bun_steinke")
    headings = [say(f"release.price.{key}") for key in keys]
    return table(say, say(f"release.price.{caption}"), ["δ", *headings], rows)
