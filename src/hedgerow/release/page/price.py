"""What an attacker learns at most: one figure, and for who asks further its price exactly."""

import math
from collections.abc import Sequence

from hedgerow.errors import BudgetError
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import Line, Scale, even_ticks, picture, table
from hedgerow.plan.page.protected import among, words_of
from hedgerow.plan.plan import Plan
from hedgerow.privacy.accountant.accountant import SMALLEST_DELTA
from hedgerow.privacy.budget import float_above
from hedgerow.privacy.profile import FALSE_ALARMS
from hedgerow.text import format_delta, format_rounded_up, raised

_STEP, _RADIUS, _SIDE = 22, 8, 10


def in_a_hundred(plan: Plan) -> str:
    """Return what an attacker notices of a hundred differences, as circles: HTML."""
    say = words_of(plan)
    guessed = 100 * FALSE_ALARMS
    seen = 100 * plan.guarantee.power()
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
        f'<ul class="legend">{keys}</ul></figure>'
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
    say = words_of(plan)
    profile = plan.guarantee
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
    say = words_of(plan)
    fifths = [i / 5 for i in range(6)]
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
    say = words_of(plan)
    profile = plan.guarantee
    rows = []
    is_exact = profile.is_exact and is_tight and min(plan.deltas) >= SMALLEST_DELTA
    for delta in plan.deltas:
        epsilons = (plan.promise.epsilon, profile.zcdp_epsilon, profile.bureau_epsilon)
        figures = [say.numeral(format_rounded_up(ask(delta))) for ask in epsilons]
        rows.append([raised(say.numeral(format_delta(delta))), *figures])
    caption = "table" if is_exact else "table_bound"
    keys = ("exact" if is_exact else "bound", "best_short", "bun_steinke")
    headings = [say(f"release.price.{key}") for key in keys]
    return table(say, say(f"release.price.{caption}"), ["δ", *headings], rows)
