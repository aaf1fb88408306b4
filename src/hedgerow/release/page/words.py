"""What was released and promised, in words for people who are no mathematicians."""

from collections.abc import Sequence

import numpy as np

from hedgerow.distribution.bins import ranges_of
from hedgerow.errors import ReleaseError, TableError
from hedgerow.estimate.cube.shape import maximal
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.cuboids import (
    All,
    Measure,
    Measured,
    Public,
    RunningSums,
    Summed,
    Survivors,
    Unmeasured,
)
from hedgerow.plan.known import facts_in_words
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import Cube
from hedgerow.release.directory.stored import OnDisk
from hedgerow.release.distribution.cumulative import Cumulative
from hedgerow.release.page.described import capital, level_labels
from hedgerow.release.page.markup import (
    Line,
    Scale,
    attribute,
    even_ticks,
    items,
    joined,
    legend,
    picture,
    shown,
    table,
)
from hedgerow.release.page.promise import Priced, figure
from hedgerow.tables.lists.product import BETWEEN_CODES
from hedgerow.tables.tree import Tree

# The distribution of a numeric column in a release: its CDF, with the band of its intervals.

MOST_POINTS = 400
MOST_ROWS = 20


def is_numeric(tree: Tree) -> bool:
    """Return whether a tree is of one numeric axis, whose codes say their ranges."""
    axis = tree.axes[0]
    if len(tree.axes) > 1 or " [" not in axis.labels[-1][0]:
        return False
    try:
        ranges_of(axis)
    except TableError:
        return False
    return True


def distribution(release: OnDisk) -> str | None:
    """Return the CDF of a numeric release as HTML; None where it has no band (see `Cumulative`)."""
    try:
        cumulative = Cumulative.of_release(release)
    except ReleaseError:
        return None
    ranges = ranges_of(release.plan.tree.axes[0])
    if cumulative.total == 0:
        return None
    upto = np.arange(cumulative.bins + 1)
    low, high = cumulative.between(np.zeros_like(upto), upto, Confidence())
    part = np.stack([cumulative.released, low, high]) / cumulative.total
    kept = np.unique(
        np.linspace(0, cumulative.bins, min(cumulative.bins + 1, MOST_POINTS)).astype(int)
    )
    edges = ranges.edges
    line = Line("exact", "released", [(float(edges[i]), float(part[0, i])) for i in kept])
    band = [
        (float(edges[i]), min(float(part[1, i]), 1.0), min(float(part[2, i]), 1.0)) for i in kept
    ]
    first, last = float(edges[0]), float(edges[-1])
    drawn = picture(
        "cdf",
        f"The part of the records below each value of {ranges.name}, rising from 0 to 1, with a "
        "band of 95 % intervals. The table below gives figures.",
        Scale(ranges.name, first, last, even_ticks(first, last)),
        Scale("part of the records below", 0, 1, [(i / 5, f"{20 * i} %") for i in range(6)]),
        [line],
        band=band,
    )
    rows = [
        [
            f"{edges[i]:,.10g}",
            f"{cumulative.released[i]:,}",
            f"{100 * part[0, i]:.2f} %",
            f"{low[i]:,} to {high[i]:,}" if low[i] < high[i] else "exact",
        ]
        for i in np.unique(np.linspace(0, cumulative.bins, MOST_ROWS + 1).astype(int))[1:]
    ]
    figures = table(
        f"Records below a value of {shown(ranges.name)}",
        ["Below", "Records", "Part", "95 % interval of the records"],
        rows,
    )
    return (
        "<figure><figcaption>How many records lie below each value</figcaption>\n"
        f"{drawn}\n{legend([line, Line('band-key', '95 % interval at each edge', [])])}</figure>"
        f"\n{figures}\n<p>Quantiles with intervals: <code>hedgerow distribution DIR</code>.</p>"
    )


ALPHA = 0.05
MOST_TABLES = 3
"""In the title of a page."""
MOST_NAMED = 12
"""Combinations of levels in a sentence; a table has all."""


def title(plan: Plan) -> str:
    """Return what is counted by what: text."""
    axes, described = plan.tree.axes, plan.description
    if described.title:
        return described.title
    if is_numeric(plan.tree):
        return f"Distribution of {described.axis_label(axes[0])}"
    what = capital(described.unit) if described.unit else "Counts"
    if len(plan.tables) > 1:
        names = [plan.label_of(levels) for levels in plan.tables]
        return f"{what} by {joined([*names[:MOST_TABLES], *_more(names[MOST_TABLES:])])}"
    if len(axes) == 1:
        return f"{what} by {joined(level_labels(plan, axes[0]))}"
    return f"{what} by {' × '.join(map(described.axis_label, axes))}"


def released(plan: Plan, total: int) -> str:
    """Return what was released, in one paragraph of HTML."""
    finest, said = map(max, zip(*plan.tables, strict=True)), plan.description
    lists = [
        f"{shown(said.axis_label(axis))} "
        f"({joined([shown(level) for level in level_labels(plan, axis)[:k]])})"
        for axis, k in zip(plan.tree.axes, finest, strict=True)
        if k
    ]
    if is_numeric(plan.tree):
        (axis,) = plan.tree.axes
        name, bins = shown(said.axis_label(axis)), axis.size(axis.depth)
        lists = [f"{name}, in {bins:,} ranges and groups of them"]
    units = shown(said.unit) if said.unit else "records"
    record = "A record is one thing that the table counts, such as a person or a trip. "
    if said.unit:
        record = f"Where the privacy terms below say “record”, they mean one of these {units}. "
    exact = "a public number" if plan.public is not None else "measured with noise"
    added = (
        "at every level they add up to the count above them"
        if plan.is_chain
        else "those of every combination of levels add up to those of all coarser ones"
        if isinstance(plan.workload, Cube)
        else "those of every released combination of levels add up to those of all coarser ones"
    )
    listing = "is not listed" if len(plan.tables) == 1 else "its table does not list"
    return (
        f"<p>This page describes counts of <strong>{total:,}</strong> {units} ({exact}), by "
        f"{joined(lists)}. {record}Counts are whole numbers, none is negative, and {added}. "
        f"What {listing} has a count of 0.{_labels(plan)}</p>{_tables(plan)}"
    )


def _labels(plan: Plan) -> str:
    """Return which columns the labels of product axes list: HTML."""
    said = plan.description
    told = (
        f" Labels of {shown(said.axis_label(axis))} list "
        f"{shown(BETWEEN_CODES.join(said.level_label(axis, k) for k in axis.columns))}, as far as "
        "their level goes."
        for axis in plan.tree.axes
        if axis.product is not None
    )
    return "".join(told)


def _tables(plan: Plan) -> str:
    """Return which tables were released of several, and what holds between them: HTML."""
    if len(plan.tables) == 1:
        return ""
    tree, tables = plan.tree, plan.tables
    pairs = [(one, other) for i, one in enumerate(tables) for other in tables[:i]]
    shared = {tuple(map(min, *both)) for both in pairs}
    common = [shown(plan.label_of(levels)) for levels in maximal(shared) if tree.cells(levels) > 1]
    joint = shown(plan.label_of(tuple(map(max, *pairs[0]))))
    return (
        f"\n<p>{len(tables)} tables were released: "
        f"{joined([shown(plan.label_of(levels)) for levels in tables])}. They agree on everything "
        f"that they have in common: what they tell of {joined(common) or 'the total'} is the same. "
        f"No joint table was made: counts that need levels of several tables at once, such as "
        f"{joint}, are not in this release.</p>"
    )


def promised(plan: Plan, estimator: Estimator, priced: Priced) -> str:
    """Return the promise, point by point."""
    return items(
        [
            ("Who is protected", _who(plan)),
            ("From whom", _FROM_WHOM),
            ("How well", _how_well(plan, priced)),
            ("What is public", _public(plan)),
            ("What is not hidden", _not_hidden(plan)),
            ("How the counts were made", _made(plan, estimator)),
        ],
        "points",
    )


def restricted(plan: Plan) -> list[tuple[str, str]]:
    """Return the restriction of a promise that holds between some tables alone, if it does."""
    agreed = [
        f"the list of {r.axis}" if r.level is None else f"{r.axis}.{r.level}"
        for r in plan.protection.restrictions
    ]
    return [("Only between tables that agree on", shown(joined(agreed)))] if agreed else []


def cited(plan: Plan, total: int, version: str) -> str:
    """Return how to name this release in a text."""
    said = plan.description
    source = ", ".join(part for part in (said.publisher, said.period) if part)
    line = (
        f"{f'{source}: ' if source else ''}{title(plan)}: {total:,} {said.unit or 'records'}, "
        f"released under differential privacy with Hedgerow "
        f"{version}. {plan.promise} Plan SHA-256: {plan.hash}."
    )
    return (
        f"<p>Name the {'' if said.publisher else 'publisher and the '}date of publication, and "
        "the release as</p>\n"
        f'<blockquote class="cite">{shown(line)}</blockquote>\n'
        "<p>The plan’s hash stands for everything that was decided beforehand: "
        "levels, noise, shares and promise. It is in <code>manifest.json</code>, with the digest "
        "of every file. This page holds no date of its own.</p>"
    )


_FROM_WHOM = (
    "From everyone who sees any part of this release, the noisy counts included, whatever they "
    "know already and however long they compute. Nothing that is done with the release afterwards "
    "weakens the promise; further releases from the same table add to its cost."
)


_MEASURED: dict[Measure, str] = {
    Survivors(): "the counts below what was released as positive, level by level",
    All(): "all possible counts of each measured level",
    RunningSums(): "weighted running sums of all ranges",
}


def _who(plan: Plan) -> str:
    text = shown(plan.neighbours.describe())
    m, unit = plan.neighbours.contributions, plan.neighbours.unit
    if unit is not None:
        text += f" Each {shown(unit)} counts with at most {m:,} record{'s' if m > 1 else ''}."
    elif m > 1:
        text += f" That no unit has more than {m:,} records is the publisher’s statement."
    return text


def _how_well(plan: Plan, priced: Priced) -> str:
    noticed = figure(priced.detection(ALPHA))
    return (
        f"{shown(str(plan.promise))} In plain words: someone has two tables that "
        f"differ in one protected unit and agree on all that is public, and must tell which of "
        f"them this release was made from. "
        f"If 5 % false alarms are accepted, the difference is noticed at most {noticed} of the "
        f"time; without the release, by guessing, it would be 5 %."
    )


def _public(plan: Plan) -> str:
    exact = [plan.label_of(k) for k, what in plan.by_levels.items() if isinstance(what, Public)]
    what = f"Exact counts, released without noise: {joined([shown(name) for name in exact])}. "
    return (
        (what if exact else "No count is public: every one carries noise, the total too. ")
        + "Declared public are also the lists of areas or ranges (<code>domain/</code>), this "
        f"plan, its noise and its hash.{_facts(plan)}"
    )


def _facts(plan: Plan) -> str:
    """Return what public files and rules say, and that it costs nothing: HTML."""
    if plan.known is None:
        return ""
    each = "".join(f"<li>{shown(words)}</li>" for words in facts_in_words(plan.tree, plan.facts))
    return (
        " So are facts from public files and rules (<code>domain/public/</code>):"
        f"<ul>{each}</ul>{plan.known.words} They say nothing of the confidential table: they cost "
        "nothing, and do not restrict the promise."
    )


def _not_hidden(plan: Plan) -> str:
    restriction = plan.protection.restriction
    restricted_to = "" if restriction is None else f"{shown(restriction)} "
    return restricted_to + (
        "What is true of many: a release is there to tell how the counts are spread, and what "
        "follows from that about people like you holds whether or not you are in the table."
    )


def _made(plan: Plan, estimator: Estimator) -> str:
    every = [(plan.label_of(levels), what) for levels, what in plan.by_levels.items()]
    measured = [name for name, what in every if isinstance(what, Measured | Summed)]
    idle = [name for name, what in every if isinstance(what, Unmeasured)]
    noise = plan.mechanism.name.replace("-", " ").title()
    what = f"{noise} noise, drawn exactly on the whole numbers, was added to"
    levels = "levels" if plan.is_chain else "combinations of levels (cuboids)"
    which = _MEASURED[plan.measure] if plan.is_chain else _measured_cells(plan)
    parts = [f"{what} {which}, at {len(measured)} of {len(every)} {levels}."]
    if idle:
        names = _few([shown(name) for name in idle])
        parts.append(f"Not measured, as they follow from others: {names}.")
    if not plan.is_chain:
        parts.append(shown(plan.joint.words))
    chosen = {k: v for k, v in estimator.to_dict().items() if k != "method"}
    how = ", ".join(f"{k} {v}" for k, v in chosen.items() if v is not None)
    named = attribute(estimator.name + (f" ({how})" if how else ""))
    parts.append(
        f"The estimator <em>{named}</em> made of what was measured whole numbers that add up. "
        "What was measured is in <code>measurements/</code>, noise included, and can be estimated "
        "again at no cost in privacy."
    )
    return " ".join(parts)


def _measured_cells(plan: Plan) -> str:
    """Return which counts of which cuboids carry noise of their own: HTML."""
    names = {levels: shown(plan.label_of(levels)) for levels in plan.measured}
    below = _few([name for levels, name in names.items() if not plan.is_whole(levels)])
    whole = _few([name for levels, name in names.items() if plan.is_whole(levels)])
    which = "those of which every coarser count was released as positive"
    if isinstance(plan.workload, Cube):
        return "all possible counts" + (f" (of {below}, {which})" if below else "")
    if not below:
        return f"all possible counts of {whole}"
    return f"all possible counts of {whole} (and of {below}, {which})"


def _few(names: Sequence[str]) -> str:
    """Return some of the names in words, and how many there are besides."""
    return joined([*names[:MOST_NAMED], *_more(names[MOST_NAMED:])])


def _more(left: Sequence[str]) -> list[str]:
    return [f"{len(left)} more"] if left else []
