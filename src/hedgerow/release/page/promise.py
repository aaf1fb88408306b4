"""The promise of a release in pictures and figures: exact, beside what looser statements say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow.errors import BudgetError
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import Line, Scale, even_ticks, legend, picture, table
from hedgerow.picture import (
    GREEN,
    GREY,
    OCHRE,
    figure_for,
    open_axes,
    power_of_ten,
    write_heading,
)
from hedgerow.plan.page.protected import among
from hedgerow.plan.plan import Plan
from hedgerow.privacy.accountant.accountant import SMALLEST_DELTA
from hedgerow.privacy.budget import EpsilonDelta, Rho, float_above
from hedgerow.privacy.profile import Profile
from hedgerow.release.page.described import words_of
from hedgerow.text import format_delta, format_rounded_up, raised

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


# A picture of a profile: δ(ε) and the trade-off curve, beside the loose figures.

EXACT, LOOSE = GREEN, OCHRE


def epsilon_grid(profile: Profile, points: int = 60) -> list[float]:
    """ε from 0 to where δ(ε) is below 1e-15, for tables and pictures."""
    last = profile.epsilon("1e-15")
    if not math.isfinite(last):
        last = 2 * profile.epsilon("0.5") + 10
    return [float(epsilon) for epsilon in np.linspace(0, max(last, 1e-3), points)]


def picture_of_profile(
    profile: Profile, path: Path, stated: str, title: str = "What the guarantee says"
) -> None:
    """Draw ε against δ, tight and by the loose conversions, and the trade-off curve.

    Raises:
        BudgetError: matplotlib is not installed, or the file cannot be written.
    """
    heading = title, stated
    with figure_for(path, (11, 4.2), BudgetError) as figure:
        write_heading(figure, *heading)
        curve, trade = figure.subplots(1, 2)
        grid = epsilon_grid(profile)
        curve.semilogy(
            grid,
            [max(profile.delta(e), 1e-18) for e in grid],
            color=EXACT,
            label="exact" if profile.is_exact else "proved bound",
        )
        if profile.rho is not None:
            deltas = np.logspace(-15, -2, 30)
            for label, style, ask in (
                ("from ρ, optimally", "--", profile.zcdp_epsilon),
                ("from ρ, Bun & Steinke", ":", profile.bureau_epsilon),
            ):
                curve.semilogy(
                    [ask(float(d)) for d in deltas], deltas, style, color=LOOSE, label=label
                )
        curve.set(xlabel="ε", ylabel="δ(ε)", ylim=(1e-15, 1))
        curve.yaxis.set_major_formatter(power_of_ten)
        curve.legend()
        alphas = np.linspace(0, 1, 51)
        trade.plot(alphas, profile.tradeoff_curve(alphas.tolist()), color=EXACT)
        trade.plot([0, 1], [1, 0], color=GREY, linewidth=0.8)
        trade.set(
            xlabel="type I error α", ylabel="least type II error T(α)", xlim=(0, 1), ylim=(0, 1)
        )
        for axes in (curve, trade):
            open_axes(axes)


LEAST_DELTA = 1e-15
DELTAS = [0.5, 0.3, 0.2, 0.1, 0.05, 0.02, *(10.0**-k for k in range(2, 16))]
LARGEST_EXPONENT = 700.0
ALPHAS = [i / 50 for i in range(51)]
POINTS = 40
ROUND_OFF = 1e-14  # of a few sums of numbers below 1, each a few operations

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Priced:
    """What a release costs: pairs (ε, δ) that it satisfies, each list of them a line.

    Attributes:
        tight: of the profile of the composition; empty where it is out of reach.
        is_exact: whether that is exact, and not a bound (see `Profile.is_exact`).
        best: from ρ, by the best known conversion.
        bureau: from ρ, as the US Census Bureau states it.
        pure: (ε, 0) where a pure ε holds.
    """

    tight: tuple[Pair, ...]
    is_exact: bool
    best: tuple[Pair, ...]
    bureau: tuple[Pair, ...]
    pure: tuple[Pair, ...]

    @classmethod
    def of(cls, profile: Profile) -> "Priced":
        """Return those of a composition; a tight δ takes milliseconds, so each is computed once."""
        try:
            tight = tuple((e, profile.delta(e)) for e in epsilon_grid(profile, POINTS))
        except BudgetError:
            tight = ()
        best, bureau = (
            tuple((ask(delta), delta) for delta in DELTAS)
            for ask in (profile.zcdp_epsilon, profile.bureau_epsilon)
        )
        pure = profile.pure_epsilon
        exactly = () if pure is None else ((float_above(pure), 0.0),)
        return cls(tight, profile.is_exact, best, bureau, exactly)

    @property
    def word(self) -> str:
        """The key of what the tight lines are called."""
        return "release.price.exact" if self.is_exact else "release.price.bound"

    @property
    def loose(self) -> tuple[Pair, ...]:
        """What ρ and a pure ε alone promise."""
        return self.best + self.pure


def keeps_budget(plan: Plan) -> bool:
    """Return whether the cost of the plan's noise, computed again, is within its budget.

    ε(δ) is rounded up by as much as 1e-9 of itself, which is allowed for.
    """
    profile, budget = plan.guarantee, plan.budget
    if isinstance(budget, EpsilonDelta):
        return profile.epsilon(budget.delta) <= float(budget.epsilon) * (1 + 1e-8)
    cost = profile.rho if isinstance(budget, Rho) else profile.pure_epsilon
    return cost is not None and cost <= (budget.rho if isinstance(budget, Rho) else budget.epsilon)


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


def curves(plan: Plan, priced: Priced) -> str:
    """Both pictures with their legend, and the figures that people ask for."""
    say = words_of(plan)
    told = among(plan, say("release.price.test_told"))
    note = ("note_exact" if priced.is_exact else "note_bound") if priced.tight else "note_loose"
    return (
        f"<p>{say(f'release.price.{note}')}</p>\n"
        f'<div class="pair">{_price(say, priced)}{_test(say, priced, told)}</div>\n'
        f"{_figures(plan, priced)}"
    )


def _price(say: Catalogue, priced: Priced) -> str:
    lines = [
        Line("dotted", say("release.price.bureau"), priced.bureau),
        Line("dashed", say("release.price.best"), priced.best),
    ]
    if priced.tight:
        seen = [(e, d) for e, d in priced.tight if d >= LEAST_DELTA]
        lines.append(Line("exact", say(priced.word), seen))
    last = max(e for line in lines for e, _ in line.points) * 1.02
    x = Scale("ε", 0, last, even_ticks(0, last))
    powers = [(10.0**-k, f"10<tspan dy='-4' font-size='80%'>−{k}</tspan>") for k in range(3, 16, 3)]
    y = Scale(say("release.price.delta_axis"), LEAST_DELTA, 1, [(1, "1"), *powers], log=True)
    drawn = picture(
        "price",
        say("release.price.cost_told"),
        x,
        y,
        lines,
    )
    return (
        f"<figure><figcaption>{say('release.price.cost')}</figcaption>\n{drawn}\n"
        f"{legend(lines[::-1])}</figure>"
    )


def _test(say: Catalogue, priced: Priced, told: str) -> str:
    lines = [
        Line("plain", say("release.price.nothing"), [(0, 1), (1, 0)]),
        Line("dashed", say("release.price.loose"), _tested(priced.loose)),
    ]
    if priced.tight:
        lines.append(Line("exact", say(priced.word), _tested(priced.tight)))
    ticks = [(i / 5, say.percent(str(20 * i))) for i in range(6)]
    x = Scale(say("release.price.alarms"), 0, 1, ticks)
    y = Scale(say("release.price.missed"), 0, 1, ticks)
    drawn = picture(
        "test",
        told,
        x,
        y,
        lines,
    )
    return (
        f"<figure><figcaption>{say('release.price.test')}"
        f"</figcaption>\n{drawn}\n{legend(lines[::-1])}</figure>"
    )


def _tested(pairs: Sequence[Pair]) -> list[Pair]:
    return [(alpha, least_missed(pairs, alpha)) for alpha in ALPHAS]


def _figures(plan: Plan, priced: Priced) -> str:
    say, profile, rows = words_of(plan), plan.guarantee, []
    is_exact = priced.is_exact and priced.tight and min(plan.deltas) >= SMALLEST_DELTA
    for delta in plan.deltas:
        asked = (plan.promise.epsilon, profile.zcdp_epsilon, profile.bureau_epsilon)
        figures = [say.numeral(format_rounded_up(ask(delta))) for ask in asked]
        rows.append([raised(say.numeral(format_delta(delta))), *figures])
    caption = say("release.price.table" if is_exact else "release.price.table_bound")
    first = say("release.price.exact" if is_exact else "release.price.bound")
    others = [say("release.price.best_short"), say("release.price.bun_steinke")]
    return table(say, caption, ["δ", first, *others], rows)
