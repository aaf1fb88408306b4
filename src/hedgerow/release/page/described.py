"""What the publisher says of the table, on its page: labels, unit, source and notes."""

from typing import Any

from hedgerow.plan.plan import Plan
from hedgerow.release.page.markup import attribute, items, shown
from hedgerow.tables.axis import Axis
from hedgerow.text import visible


def axis_facts(plan: Plan, axis: Axis) -> dict[str, Any]:
    """Return what the page's script calls an axis and its levels."""
    described = plan.description
    facts: dict[str, Any] = {
        "name": visible(described.axis_label(axis)),
        "levels": [visible(described.level_label(axis, level)) for level in axis.levels],
    }
    alone = described.labels_of(plan.tree, axis)
    return facts if alone is None else facts | {"alone": [visible(words) for words in alone]}


def unit_facts(plan: Plan) -> dict[str, str]:
    """Return what the page's script says that counts count, where the publisher says so."""
    return {"unit": visible(plan.description.unit)} if plan.description.unit else {}


def level_labels(plan: Plan, axis: Axis) -> list[str]:
    """Return what readers call the levels of an axis, beside it."""
    return [plan.description.level_label(axis, level) for level in axis.levels]


def in_its_language(plan: Plan, text: str) -> str:
    """Return a text of the publisher's as HTML, marked with its language where that is said."""
    language = plan.description.language
    is_theirs = bool(language) and text != "" and plan.description.title == text
    return f'<span lang="{attribute(language)}">{shown(text)}</span>' if is_theirs else shown(text)


def counted_units(plan: Plan) -> str:
    """Return what the total counts, to stand before it: HTML."""
    return shown(capital(plan.description.unit)) if plan.description.unit else "Records"


def described(plan: Plan) -> str:
    """Return what the publisher says of the table: HTML, nothing where that is nothing."""
    said = plan.description
    given = [("Publisher", said.publisher), ("Period", said.period), ("Licence", said.licence)]
    points = [(term, shown(text)) for term, text in given if text]
    if said.notes:
        points.append(("Notes", "".join(f"<p>{shown(note)}</p>" for note in said.notes)))
    if not points:
        return ""
    text = items(points, "points")
    return f'<div lang="{attribute(said.language)}">{text}</div>' if said.language else text


def capital(words: str) -> str:
    """Return words with a capital letter first."""
    return words[:1].upper() + words[1:]
