"""The planning page: one HTML document without a network, from public facts alone."""

from collections.abc import Sequence
from fractions import Fraction
from string import Template

import numpy as np

from hedgerow.arrays import Float64, FloatPair, float64
from hedgerow.declared import frozen
from hedgerow.estimate.estimator import Estimator
from hedgerow.noise.envelope import NormalEnvelope
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import Document, attribute, document, part, shown, spoken, table
from hedgerow.plan.allocation.allocation import levels_apart
from hedgerow.plan.cost import off_the_chain
from hedgerow.plan.cuboids import Measured, Survivors
from hedgerow.plan.forecast import forecast
from hedgerow.plan.page import accepted
from hedgerow.plan.page.judged import least_of
from hedgerow.plan.page.points import Budgets, Division, points_of
from hedgerow.plan.page.protected import (
    among,
    has_list_of_table,
    not_hidden,
    one,
    protected,
    publisher,
    units,
    words_of,
)
from hedgerow.plan.page.solver import solver_of
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import EpsilonDelta, float_above, value_of
from hedgerow.privacy.ledger.records import Standing
from hedgerow.tables.axis import Axis
from hedgerow.text import Json, format_rounded_up, visible

SCRIPTS = ("solver.js", "accountant.js", "points.js", "signing.js", "criteria.js", "page.js")
CONFIDENCE_MISS = 0.05
LARGE, MIDDLING, SMALL = 100_000, 1_000, 50
"""Counts that stand for the coarsest level, for the finest and for those between, if none knows."""
MOST_ROWS = 120
TICKS = ("0.001", "0.01", "0.1", "0.2", "0.5", "1", "2", "5", "10")
PERCENT = 5
WORTH_SAYING = 1.5
"""How many times an error must have been forecast too high for the page to say so."""


@frozen
class Simulated:
    """What came out where a public table was released in trial, with the plan's own shares.

    Attributes:
        budgets: ε, or ρ; ascending; the plan's own is among them.
        errors: for each of them by cuboid the RMSE and the mean absolute error (records).
        runs: how many releases there were of each budget.
    """

    budgets: tuple[Fraction, ...]
    errors: tuple[dict[str, tuple[float, float]], ...]
    runs: int


def planning_page(
    plan: Plan,
    made_by: str,
    *,
    standing: Standing | None = None,
    simulated: Simulated | None = None,
    estimator: Estimator | None = None,
) -> str:
    """Return the page on which somebody decides on a plan's budget, as HTML.

    It holds nothing but public facts; with an account also what is spent, and is then marked
    internal. Of where the table lies it knows nothing.

    Args:
        plan: of the release file.
        made_by: the version of Hedgerow.
        standing: where the account of the table stands.
        simulated: errors of simulated releases of a public table.
        estimator: what makes counts whole; the plan's usual one unless given.

    Raises:
        BudgetError: the release has no price in the account.
    """
    say = words_of(plan)
    least = least_of(plan)
    budgets = Budgets.of(plan) if least is None else Budgets.of(plan).including(value_of(least))
    facts = _facts(plan, say, standing, budgets, estimator) | {"trials": _trials(plan, simulated)}
    title = plan.description.title or " × ".join(map(plan.description.axis_label, plan.tree.axes))
    body = Template(spoken(part("hedgerow.plan.page", "page.html"), say)).substitute(
        publisher=publisher(plan),
        kicker=say("planning.kicker_of_table" if has_list_of_table(plan) else "planning.kicker"),
        heading=shown(title),
        about=_about(plan, say),
        criteria=accepted.section(plan, estimator),
        sizes=say(f"planning.worth.{'prior' if facts['isReal'] else 'examples'}"),
        privacy=say("planning.privacy", one=attribute(one(plan))),
        promise=" ".join(
            shown(sentence) for sentence in (protected(plan), not_hidden(plan)) if sentence
        ),
        accuracy=_accuracy(say, facts["rows"], facts["rows"][facts["last"]]),
        division=" ".join(say(f"planning.division.{key}") for key in _divisions(plan, facts)),
        errors=_errors(say),
        simulated="" if simulated is None else _simulated(plan, say, simulated),
        ledger="" if standing is None else _ledger(say, standing),
        made_by=say("planning.made_by", version=attribute(made_by)),
    )
    script = "".join(part("hedgerow.plan.page", name) for name in SCRIPTS)
    window = f"{say('planning.before')} {visible(title)}"
    style = part("hedgerow.plan.page", "page.css")
    return document(Document(window, body, style, script, facts, (), made_by), say)


def _divisions(plan: Plan, facts: Json) -> list[str]:
    """Return what is said of the division of the budget, and of sums that have no part in it."""
    pruned = plan.is_chain and isinstance(plan.measure, Survivors)
    is_off_chain = pruned and next(off_the_chain(plan.tree), None) is not None
    return [facts["solver"]["kind"], *(["beside"] if is_off_chain else [])]


def _facts(
    plan: Plan,
    say: Catalogue,
    standing: Standing | None,
    budgets: Budgets,
    estimator: Estimator | None,
) -> Json:
    """Return what the page's script starts from."""
    solver = solver_of(plan)
    points = points_of(plan, budgets, estimator, is_fixed=solver["kind"] == "fixed")
    rows = [_row(plan, say, place) for place in range(len(plan.levels))][:MOST_ROWS]
    open_rows = [row for row in rows if row["place"] not in solver["public"]]
    is_real = _give_sizes(plan, open_rows)
    words = say.script("planning")
    listed = [str(share) for share in plan.possible_shares.values()]
    ticks = {float(text) for text in TICKS}
    for division in points["divisions"]:
        division["listed"] = listed
    for each in (points, *points["divisions"]):
        each["chosen"] = " ".join(say(f"planning.chosen.{key}") for key in each["chosen"])
    return {
        "words": words | {key: among(plan, str(words[key])) for key in ("learn", "noticed")},
        "solver": solver,
        "points": points,
        "rows": rows,
        "axes": [_axis(plan, axis, say) for axis in plan.tree.axes],
        "form": "list" if plan.is_chain else "names",
        "named": [name for name, what in plan.cuboids.items() if isinstance(what, Measured)],
        "last": open_rows[-1]["place"],
        "shown": _shown(open_rows),
        "isReal": is_real,
        "quantile": _quantile(plan),
        "one": visible(one(plan)),
        "units": visible(units(plan)),
        "efficiency": _efficiency(plan),
        "ticks": [i for i, value in enumerate(points["values"]) if value in ticks],
        "ledger": None if standing is None else _account(plan, standing, budgets),
    }


def _efficiency(plan: Plan) -> Json | None:
    """Return the least weighted error at ρ = 1/2 and the weights by place; None where unknown."""
    efficiency = plan.efficiency
    if efficiency.value is None:
        return None
    weights = [efficiency.weights.get(name, 0.0) for name in plan.cuboids]
    return {"least": efficiency.least, "weights": weights}


def _shown(rows: Sequence[Json]) -> list[tuple[int, int]]:
    """Return levels, each with a count, that stand at the head: a coarse one to the finest.

    Where one level alone carries noise, it stands there with counts of three sizes.
    """
    below = _several(rows)
    if len(below) == 1:
        return [(below[0]["place"], count) for count in below[0]["counts"]]
    few = {0: below[0], len(below) // 2: below[len(below) // 2], len(below) - 1: below[-1]}
    return [(row["place"], row["count"]) for row in few.values()]


def _several(rows: Sequence[Json]) -> list[Json]:
    """Return the levels of more than one count, or all where there is none."""
    return [row for row in rows if row["cells"] > 1] or list(rows)


def _quantile(plan: Plan) -> float:
    """Return how many standard deviations a 95 % interval reaches (`Confidence.half_width`)."""
    used = [use.noise.envelope for use in plan.guarantee.uses]
    each = (envelope.quantile(CONFIDENCE_MISS) for envelope in used)
    return max(NormalEnvelope(1.0).quantile(CONFIDENCE_MISS), *each)


def _axis(plan: Plan, axis: Axis, say: Catalogue) -> Json:
    """Return an axis with the levels that can have a share: those that are not of only children."""
    described = plan.description
    kept = (axis.levels[k - 1] for k in levels_apart(axis)[1:])
    labels = [visible(described.level_label(axis, level)) for level in kept]
    name = visible(described.axis_label(axis))
    return {"key": axis.name, "name": name, "levels": [say("planning.total"), *labels]}


def _row(plan: Plan, say: Catalogue, place: int) -> Json:
    levels = plan.levels[place]
    label = visible(plan.label_of(levels)) if any(levels) else say("planning.total")
    return {"place": place, "label": label, "cells": plan.tree.cells(levels), "count": MIDDLING}


def _give_sizes(plan: Plan, rows: Sequence[Json]) -> bool:
    """Give levels that carry noise a count that is typical of them, and return whether it is known.

    An earlier, public table tells the median of those above 0 at each depth of a chain.
    """
    known = {}
    for row in rows:
        row["counts"] = [LARGE, MIDDLING, SMALL]
        if plan.prior is None or not plan.is_chain:
            continue
        counts, times = _sizes(plan.prior, sum(plan.levels[row["place"]]))
        if len(counts):
            large, typical, small = (_quantile_of(counts, times, q) for q in (0.9, 0.5, 0.1))
            known[row["place"]] = typical
            row["counts"] = sorted({large, typical, small}, reverse=True)
            row["sizes"] = _histogram(counts, times)
    for row in (rows[0], *_several(rows)[:1]):
        row["count"] = LARGE
    rows[-1]["count"] = SMALL
    for row in rows:
        row["count"] = known.get(row["place"], row["count"])
    return len(known) == len(rows)


def _sizes(prior: Prior, depth: int) -> FloatPair:
    """Return the counts above 0 of a depth, and how many nodes have each."""
    counts, times = prior.values(depth, 0)
    return float64(counts[counts > 0]), float64(times[counts > 0])


def _quantile_of(counts: Float64, times: Float64, part: float) -> int:
    """Return a count that so many are at most, to two digits."""
    order = np.cumsum(times)
    count = counts[int(np.searchsorted(order, part * order[-1]))]
    return max(1, int(float(f"{count:.2g}")))


def _histogram(counts: Float64, times: Float64) -> list[list[float]]:
    """Return counts on an even scale of logarithms and how many there are about each."""
    logs = np.log10(counts)
    edges = np.arange(np.floor(8 * logs.min()), np.ceil(8 * logs.max()) + 2) / 8
    numbers, _ = np.histogram(logs, edges, weights=times)
    middles = 10 ** ((edges[:-1] + edges[1:]) / 2)
    return [[float(f"{m:.4g}"), float(n)] for m, n in zip(middles, numbers, strict=True)]


def _about(plan: Plan, say: Catalogue) -> str:
    """Return what will be counted, in a line: HTML."""
    cells = sum(map(plan.tree.cells, plan.levels))
    facts = [say("planning.about", n=cells, units=attribute(units(plan)))]
    if plan.description.period:
        facts.append(attribute(plan.description.period))
    return " ".join(f"<span>{fact}</span>" for fact in facts)


def _accuracy(say: Catalogue, rows: Sequence[Json], usual: Json) -> str:
    options = "".join(
        f'<option value="{row["place"]}"{" selected" if row is usual else ""}>'
        f"{attribute(row['label'])}</option>"
        for row in rows
    )
    return say(
        "planning.accuracy",
        level=f'<select id="level" aria-label="{say("planning.field.level")}">{options}</select>',
        count=f'<input id="count" type="number" min="1" step="10" value="{MIDDLING}" '
        f'aria-label="{say("planning.field.count")}">',
        percent=f'<input id="within" class="few" type="number" min="0.1" step="0.5" '
        f'value="{PERCENT}" aria-label="{say("planning.field.within")}">',
        need='<b id="need"></b>',
        use=f'<button type="button" id="use">{say("planning.use")}</button>',
    )


def _errors(say: Catalogue) -> str:
    """Return the table of errors that the page fills: one row a level."""
    head = "".join(
        f'<th scope="col"{more}>{say(f"planning.statistics.{key}")}</th>'
        for key, more in (
            ("level", ""),
            *((key, ' class="n"') for key in ("rmse", "off", "within")),
            ("tried", ' class="n" id="tried"'),
        )
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{say("table.scrolls")}"><table>'
        f"<caption>{say('planning.statistics.caption')}</caption>"
        f'<thead><tr>{head}</tr></thead><tbody id="errors"></tbody></table></div>'
    )


def _simulated(plan: Plan, say: Catalogue, simulated: Simulated) -> str:
    """Return what came out at the plan's own budget beside what was expected."""
    errors = simulated.errors[simulated.budgets.index(value_of(plan.budget))]
    expected = dict(forecast(plan).select("cuboid", "rmse").iter_rows())
    rows = []
    for levels, name in zip(plan.levels, plan.cuboids, strict=True):
        if name in errors and (forecasted := expected[name]):
            times = forecasted / max(errors[name][0], 1e-9)
            label = plan.label_of(levels) if any(levels) else say("planning.total")
            numbers = [f"{number:,.3g}" for number in (forecasted, errors[name][0])]
            too_high = say("planning.simulated.times", times=say.numeral(f"{times:,.2g}"))
            cells = [say.numeral(number) for number in numbers]
            rows.append([shown(label), *cells, too_high if times >= WORTH_SAYING else ""])
    keys = ("level", "expected", "found", "apart")
    headings = [say(f"planning.simulated.{key}") for key in keys]
    return table(say, say("planning.simulated.caption", n=simulated.runs), headings, rows)


def _trials(plan: Plan, simulated: Simulated | None) -> Json | None:
    """Return the mean absolute errors of trials, for each row at each of their budgets."""
    if simulated is None:
        return None
    names = list(plan.cuboids)
    return {
        "values": [float(budget) for budget in simulated.budgets],
        "errors": [
            [each[name][1] if name in each else None for each in simulated.errors] for name in names
        ],
    }


def _account(plan: Plan, standing: Standing, budgets: Budgets) -> Json:
    """Return where an account stands, and how often a release fits under its cap.

    That is counted in the ledger's own fractions where the cost is known for certain: of the file's
    own division, at its own budget or, where the budget is no (ε, δ), at every one. What others
    cost, the page computes.
    """
    account = standing.account
    exact = {budgets.own: account.cost(plan.guarantee)}  # raises where there is no price
    left = account.amount - standing.spent
    if not isinstance(plan.budget, EpsilonDelta):
        own = Division("own", plan, None, keeps=True)
        exact = {i: account.cost(own.profile(value)) for i, value in enumerate(budgets.values)}
    return {
        "symbol": account.symbol,
        "cap": float(account.amount),
        "spent": float_above(standing.spent),
        "times": {place: max(0, left // cost) for place, cost in exact.items()},
    }


def _ledger(say: Catalogue, standing: Standing) -> str:
    account = standing.account
    rows = [
        [
            shown(charge.release_id[:12]),
            charge.at.date().isoformat(),
            say.numeral(format_rounded_up(float_above(account.cost(charge.profile)))),
        ]
        for charge in standing.charges
    ]
    headings = [say(f"planning.ledger.{key}") for key in ("release", "charged", "cost")]
    charges = table(say, say("planning.ledger.charges"), headings, rows) if rows else ""
    template = Template(spoken(part("hedgerow.plan.page", "ledger.html"), say))
    return template.substitute(charges=charges)
