"""The criteria of a plan, and whether they are kept, in the language of its pages."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from hedgerow.estimate.estimator import Estimator
from hedgerow.pages.catalogue import catalogue
from hedgerow.pages.markup import in_english, items, part, shown, spoken
from hedgerow.plan.criteria.criterion import Criterion, OfQuantile
from hedgerow.plan.criteria.verdict import Verdict, verdicts
from hedgerow.plan.page.protected import units
from hedgerow.plan.plan import Plan
from hedgerow.text import format_percent

NEARLY_ALL = 999
"""In a thousand: what is told of larger chances, which draws tell no better."""


def required(plan: Plan, criterion: Criterion) -> str:
    """Return what a criterion says: text."""
    say = catalogue(plan.description.language)
    levels = criterion.levels(plan.tree)
    cells = Fraction(criterion.cells)
    probability = Fraction(criterion.probability)
    which = "all" if cells == 1 else "part"
    kind = "" if criterion.is_of_counts else type(criterion.within).__name__
    level = plan.label_of(levels)
    if (areas := criterion.lookup(plan.tree)) is not None:
        level = say("criteria.areas", level=level, areas=areas.areas.name)
    return say(
        "criteria.required",
        level=level,
        cells=say(f"criteria.cells.{which}{kind}", part=say.numeral(_figure(100 * cells))),
        bound=_bound(plan, criterion, criterion.amount),
        probability=say.percent(_figure(100 * probability)),
    )


def told(plan: Plan, verdict: Verdict) -> tuple[str, str, str]:
    """Return whether a criterion is kept, as the catalogue calls it and in words, and by how much.

    The chance is rounded down, and the bound up; nothing is said of it where no law is known.
    """
    say = catalogue(plan.description.language)
    key = verdict.kept
    if key == "unknown":
        key = {"yes": "estimates", "no": "near"}.get(verdict.of_estimates, key)
    outcome = say(f"criteria.told.{key}")
    if verdict.law is None:
        return key, outcome, ""
    tenths = min(floor(1000 * (verdict.probability or 0.0)), NEARLY_ALL)
    chance = say.percent(f"{tenths / 10:g}")
    why = key if key == "estimates" or verdict.criterion.is_of_cells else "open"
    more = [say(f"criteria.why.{why}")] if key in {"estimates", "near", "unknown"} else []
    if (within := verdict.within) is not None:
        more.insert(0, say("criteria.reached", bound=_bound(plan, verdict.criterion, within)))
    at_least = "at_least" if verdict.is_bound else "with"
    return key, say(f"criteria.{at_least}", told=outcome, chance=chance), " ".join(more)


def listed(plan: Plan, judged: Sequence[Verdict]) -> str:
    """Return criteria, each beside whether it is kept: HTML."""
    say = catalogue(plan.description.language)
    each = []
    for verdict in judged:
        _, outcome, more = told(plan, verdict)
        english = f"{verdict.why} {verdict.source and f'Sizes: {verdict.source}.'}".strip()
        also = english and f" {in_english(say, english)}"
        words = f"<p>{shown(required(plan, verdict.criterion))}</p>"
        each.append((shown(outcome), f"{words}<small>{shown(more)}{also}</small>"))
    return items(each, "points")


def section(plan: Plan, estimator: Estimator | None = None) -> str:
    """Return the criteria at a plan's own budget: HTML, nothing where there are none."""
    if not plan.accept:
        return ""
    html = spoken(part("hedgerow.plan.page", "criteria.html"), catalogue(plan.description.language))
    return html.replace("$listed", listed(plan, verdicts(plan, estimator=estimator)))


def _bound(plan: Plan, criterion: Criterion, amount: Fraction | float) -> str:
    """Return a bound of a criterion's kind, of so many records or such a part."""
    say = catalogue(plan.description.language)
    own = criterion.within
    words = {name: getattr(own, name) for name in getattr(own, "signed", {}).values()}
    words = {name: each if isinstance(each, int) else str(each) for name, each in words.items()}
    number = say.numeral(_figure(getattr(own, "scale", 1) * amount))
    bound = say(f"criteria.bound.{type(own).__name__}", amount=number, units=units(plan), **words)
    if isinstance(own, OfQuantile) and own.least > 1:
        return say("criteria.large", bound=bound, least=own.least, units=units(plan))
    return bound


def _figure(amount: Fraction | float) -> str:
    """Return a number as it is, or three digits of one that was computed, rounded up."""
    exact = amount if isinstance(amount, Fraction) else format_percent(amount / 100)
    return f"{float(exact):,.10g}"
