"""What the publisher says of the table, on its page: labels, unit, source and notes."""

from collections.abc import Sequence
from typing import Any

from hedgerow.pages.catalogue import Catalogue, catalogue
from hedgerow.pages.markup import attribute, items, shown, table
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.page.intervals import choices, percent
from hedgerow.tables.axis import Axis
from hedgerow.text import visible


def words_of(plan: Plan) -> Catalogue:
    """Return the texts of the page of a plan, in the language of its description."""
    return catalogue(plan.description.language)


def unit_of(plan: Plan) -> str:
    """Return what counts count, in the plural: text."""
    return plan.description.unit or words_of(plan)("release.records")


def counted(say: Catalogue, count: int, estimate: int | None) -> str:
    """Return a count as HTML, below it the estimate of one that its measurements contradict."""
    if estimate is None:
        return say.number(count)
    small = say("release.contradicted", estimate=estimate)
    return f'{say.number(count)}<small class="doubt">{small}</small>'


def first_table(
    say: Catalogue, name: str, columns: Sequence[str], rows: list[list[str]], every: int
) -> str:
    """Return the first counts of a cuboid as a table, for readers without scripts.

    Args:
        say: the texts of the page.
        name: of the cuboid, HTML.
        columns: the keys of those behind the counts.
        rows: of cells, HTML.
        every: how many counts the cuboid lists.
    """
    key = "release.first.list" if len(rows) == every else "release.first.part"
    sure = percent(USUAL)
    headings = [name, say("script.count"), *(say(f"script.{key}", sure=sure) for key in columns)]
    return table(say, say(key, name=name, rows=len(rows), every=every), headings, rows)


def between(say: Catalogue, low: int, high: int) -> str:
    """Return an interval in words."""
    return (
        say("script.at_most", high=high) if low == 0 else say("script.from_to", low=low, high=high)
    )


def axis_facts(plan: Plan, axis: Axis) -> dict[str, Any]:
    """Return what the page's script calls an axis and its levels."""
    described = plan.description
    facts: dict[str, Any] = {
        "name": visible(described.axis_label(axis)),
        "levels": [visible(described.level_label(axis, level)) for level in axis.levels],
    }
    alone = described.labels_of(plan.tree, axis)
    return facts if alone is None else facts | {"alone": [visible(words) for words in alone]}


def unit_facts(plan: Plan) -> dict[str, Any]:
    """Return what the page's script says that counts count, and the texts that it says it in."""
    words = words_of(plan).script("release")
    return {"unit": visible(unit_of(plan)), "words": words, "sure": choices()}


def level_labels(plan: Plan, axis: Axis) -> list[str]:
    """Return what readers call the levels of an axis, beside it."""
    return [plan.description.level_label(axis, level) for level in axis.levels]


def in_its_language(plan: Plan, text: str) -> str:
    """Return a text of the publisher's as HTML, marked with its language where that is said."""
    language = plan.description.language
    is_theirs = bool(language) and text != "" and plan.description.title == text
    return f'<span lang="{attribute(language)}">{shown(text)}</span>' if is_theirs else shown(text)


def publisher(plan: Plan) -> str:
    """Return who answers for the release: HTML, nothing where nobody is named."""
    named = plan.description.publisher
    return f"<b>{shown(named)}</b>" if named else ""


def counted_units(plan: Plan) -> str:
    """Return what the total counts, to stand before it: HTML."""
    return shown(capital(unit_of(plan)))


def described(plan: Plan) -> str:
    """Return what the publisher says of the table: HTML, nothing where that is nothing."""
    said = plan.description
    say = words_of(plan)
    given = {"publisher": said.publisher, "period": said.period, "licence": said.licence}
    points = [
        (say(f"release.described.{term}"), shown(text)) for term, text in given.items() if text
    ]
    if said.notes:
        points.append(
            (
                say("release.described.notes"),
                "".join(f"<p>{shown(note)}</p>" for note in said.notes),
            )
        )
    if not points:
        return ""
    text = items(points, "points")
    return f'<div lang="{attribute(said.language)}">{text}</div>' if said.language else text


def capital(words: str) -> str:
    """Return words with a capital letter first."""
    return words[:1].upper() + words[1:]
