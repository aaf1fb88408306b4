"""What was released and promised, in words for people who are no mathematicians."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import isinf

from hedgerow.distribution.bins import numeric_axes
from hedgerow.estimate.cube.shape import maximal
from hedgerow.estimate.estimator import Estimator
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import attribute, in_english, items, shown
from hedgerow.plan.criteria.verdict import Verdict
from hedgerow.plan.cuboids import CuboidPlan, Public, Unmeasured
from hedgerow.plan.facts.constraints import facts_in_words
from hedgerow.plan.page.accepted import listed
from hedgerow.plan.page.protected import among, not_hidden, one, protected, units, words_of
from hedgerow.plan.plan import Plan
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.product import BETWEEN_CODES
from hedgerow.tables.tree import Tree
from hedgerow.text import format_delta, format_percent, format_rounded_up

SHORT = 8
"""Digits of a hash that people compare."""
MOST_TABLES = 3
"""In the title of a page."""
MOST_NAMED = 12
"""Combinations of levels in a sentence; a table has all."""


def numeric_axis(tree: Tree) -> int | None:
    """Return the last axis of a tree whose codes say their ranges, by its number, if any does."""
    known = numeric_axes([axis for axis in tree.axes if " [" in axis.labels[-1][0]])
    return max((i for i, axis in enumerate(tree.axes) if axis.name in known), default=None)


def is_numeric(tree: Tree) -> bool:
    """Return whether a tree is of one numeric axis, whose codes say their ranges."""
    return len(tree.axes) == 1 and numeric_axis(tree) is not None


def level_labels(plan: Plan, axis: Axis) -> list[str]:
    """Return what readers call the levels of an axis, beside it."""
    return [plan.description.level_label(axis, level) for level in axis.levels]


def in_its_language(plan: Plan, text: str) -> str:
    """Return a text of the publisher's as HTML, marked with its language where that is said."""
    language = plan.description.language
    is_theirs = bool(language) and text != "" and plan.description.title == text
    return f'<span lang="{attribute(language)}">{shown(text)}</span>' if is_theirs else shown(text)


def capital(words: str) -> str:
    """Return words with a capital letter first."""
    return words[:1].upper() + words[1:]


def title(plan: Plan) -> str:
    """Return what is counted by what: text."""
    say = words_of(plan)
    axes = plan.tree.axes
    described = plan.description
    if described.title:
        return described.title
    if is_numeric(plan.tree):
        return say("release.title.distribution", name=described.axis_label(axes[0]))
    what = capital(described.unit) if described.unit else say("release.title.counts")
    if len(plan.tables) > 1:
        by = _few(say, [plan.label_of(levels) for levels in plan.tables], MOST_TABLES)
    elif len(axes) == 1:
        by = say.joined(level_labels(plan, axes[0]))
    else:
        by = " × ".join(map(described.axis_label, axes))
    return say("release.title.by", what=what, by=by)


def dated(plan: Plan) -> str:
    """Return when the counts are of, and the beginning of the plan's hash: HTML."""
    period = plan.description.period
    parts = [
        *([shown(period)] if period else []),
        f"{words_of(plan)('release.head.plan')} <code>{plan.hash[:SHORT]}</code>",
    ]
    return " ".join(f"<span>{each}</span>" for each in parts)


def promise(plan: Plan) -> str:
    """Return what an attacker learns at most, in one figure: HTML."""
    sentence = words_of(plan)("release.promise.noticed", one=one(plan), noticed=noticed(plan))
    unbroken = among(plan, sentence).replace(" %", "\N{NO-BREAK SPACE}%")
    return f'<p class="big">{shown(unbroken)}</p>'


def promise_heading(plan: Plan) -> str:
    """Return what the promise is about: HTML."""
    return shown(words_of(plan)("release.promise.heading", one=one(plan)))


def released(plan: Plan, total: int) -> str:
    """Return what was released, in one paragraph of HTML."""
    finest = map(max, zip(*plan.tables, strict=True))
    said = plan.description
    say = words_of(plan)
    lists = [
        f"{shown(said.axis_label(axis))} "
        f"({say.joined([shown(level) for level in level_labels(plan, axis)[:k]])})"
        for axis, k in zip(plan.tree.axes, finest, strict=True)
        if k
    ]
    if is_numeric(plan.tree):
        (axis,) = plan.tree.axes
        name = shown(said.axis_label(axis))
        bins = axis.leaves
        lists = [say("release.what.ranges", name=name, bins=bins)]
    counted = shown(units(plan))
    parts = [
        say(
            "release.what.counts_exact" if plan.public is not None else "release.what.counts_noisy",
            total=total, units=counted, by=say.joined(lists),
        ),
        say("release.what.record_is" if said.unit else "release.what.record", units=counted),
        say(f"release.what.add_up_{plan.workload.name}"),
        say("release.what.unlisted" if len(plan.tables) == 1 else "release.what.unlisted_tables"),
    ]  # fmt: skip
    return f"<p>{' '.join(parts)}{_labels(plan)}</p>{_tables(plan)}"


def _labels(plan: Plan) -> str:
    """Return which columns the labels of product axes list: HTML."""
    said = plan.description
    say = words_of(plan)
    sentences = (
        say(
            "release.what.labels",
            axis=shown(said.axis_label(axis)),
            columns=shown(BETWEEN_CODES.join(said.level_label(axis, k) for k in axis.columns)),
        )
        for axis in plan.tree.axes
        if axis.product is not None
    )
    return "".join(f" {words}" for words in sentences)


def _tables(plan: Plan) -> str:
    """Return which tables were released of several, and what holds between them: HTML."""
    if len(plan.tables) == 1:
        return ""
    say = words_of(plan)
    tree = plan.tree
    tables = plan.tables
    pairs = [(each, other) for i, each in enumerate(tables) for other in tables[:i]]
    shared = {tuple(map(min, *both)) for both in pairs}
    common = [shown(plan.label_of(levels)) for levels in maximal(shared) if tree.cells(levels) > 1]
    joint = shown(plan.label_of(tuple(map(max, *pairs[0]))))
    sentence = say(
        "release.what.tables",
        number=len(tables),
        tables=say.joined([shown(plan.label_of(levels)) for levels in tables]),
        common=say.joined(common) or say("release.what.the_total"),
        joint=joint,
    )
    return f"\n<p>{sentence}</p>"


def promised(plan: Plan) -> str:
    """Return who is protected from whom, and what is not, point by point."""
    say = words_of(plan)
    reservation = not_hidden(plan)
    points = {
        "who": _who(plan),
        "from_whom": say("release.promise.from_everyone"),
        "public": _public(plan),
        "not_hidden": (f"{shown(reservation)} " if reservation else "")
        + say("release.promise.true_of_many"),
    }
    return items([(say(f"release.promise.{key}"), text) for key, text in points.items()], "points")


def stated_in_full(plan: Plan) -> str:
    """Return the guarantee with its parameters, its neighbours and its restrictions: HTML."""
    return f"<p>{shown(stated(plan))}</p>"


def cited(plan: Plan, total: int, version: str) -> str:
    """Return how to name this release in a text."""
    say = words_of(plan)
    said = plan.description
    source = ", ".join(part for part in (said.publisher, said.period) if part)
    line = say(
        "release.cite.line",
        source=f"{source}: " if source else "",
        title=title(plan),
        total=total,
        units=units(plan),
        version=version,
        promise=stated(plan),
        hash=plan.hash,
    )
    return (
        f"<p>{say('release.cite.name' if said.publisher else 'release.cite.name_publisher')}</p>\n"
        f'<blockquote class="cite">{shown(line)}</blockquote>\n'
        f"<p>{say('release.cite.hash')}</p>"
    )


def source(plan: Plan) -> str:
    """Return what is named behind a count that is quoted: text."""
    say = words_of(plan)
    said = plan.description
    named = [title(plan), said.publisher, said.period, f"{say('release.head.plan')} {plan.hash}"]
    return ", ".join(filter(None, named))


def stated(plan: Plan) -> str:
    """Return the whole promise in sentences, as `hedgerow.privacy.promise.Promise` does: text."""
    say = words_of(plan)
    profile = plan.guarantee
    budget = plan.promise.budget
    pure = profile.pure_epsilon
    rho = profile.rho
    costs = []
    if pure is not None or rho is not None:
        key, spent = ("pure", pure) if pure is not None else ("rho", rho)
        costs.append(say(f"release.promise.{key}", cost=_rounded_up(say, spent or Fraction(0))))
    if budget is not None:
        epsilon = plan.promise.epsilon(budget.delta)
        shown_delta = say.numeral(format_delta(budget.delta))
        costs.append(
            say("release.promise.no_epsilon", delta=shown_delta)
            if isinf(epsilon)
            else say("release.promise.epsilon", cost=_rounded_up(say, epsilon), delta=shown_delta)
        )
    costs_said = say("release.promise.satisfies", costs=say("list.last").join(costs))
    cost = among(plan, costs_said, again=True)
    return " ".join(filter(None, [protected(plan), cost, not_hidden(plan)]))


def _rounded_up(say: Catalogue, value: Fraction | float) -> str:
    return say.numeral(format_rounded_up(value))


def criteria(plan: Plan, verdicts: Sequence[Verdict]) -> str:
    """Return whether the release keeps its criteria: HTML, nothing where there are none."""
    if not verdicts:
        return ""
    say = words_of(plan)
    unsized = [replace(verdict, source="") for verdict in verdicts]
    heading = say("criteria.heading")
    told = say("criteria.released")
    return f'\n<h3 id="criteria">{heading}</h3>\n{listed(plan, unsized)}\n<p>{told}</p>'


def _who(plan: Plan) -> str:
    say = words_of(plan)
    text = shown(protected(plan))
    m = plan.neighbours.contributions
    unit = plan.neighbours.unit
    if unit is not None:
        text += f" {say('release.promise.each', n=m, unit=shown(unit))}"
    elif m > 1:
        text += f" {say('release.promise.no_more', n=m)}"
    return text


def noticed(plan: Plan) -> str:
    """Return how often one unit's change is noticed at most, as a percentage rounded up."""
    percent = words_of(plan).percent(format_percent(plan.guarantee.power()))
    return percent.replace(" ", "\N{NO-BREAK SPACE}")


def _public(plan: Plan) -> str:
    say = words_of(plan)
    exact = say.joined(_of_kind(plan, Public))
    what = say("release.public.exact", names=exact) if exact else say("release.public.none")
    return f"{what} {say('release.public.declared')}{_facts(plan)}"


def _of_kind(plan: Plan, kind: type[CuboidPlan]) -> list[str]:
    """Return the names of the cuboids of one kind: HTML."""
    every = plan.by_levels.items()
    return [shown(plan.label_of(levels)) for levels, what in every if isinstance(what, kind)]


def _facts(plan: Plan) -> str:
    """Return what public files and rules say, and that it costs nothing: HTML."""
    constraints = plan.constraints
    if constraints is None:
        return ""
    say = words_of(plan)
    each = "".join(
        f"<li>{in_english(say, words)}</li>" for words in facts_in_words(plan.tree, plan.facts)
    )
    together = say("release.public.together", open=constraints.open_cells, cells=constraints.cells)
    return f" {say('release.public.facts')}<ul>{each}</ul>{together} {say('release.public.free')}"


def made(plan: Plan, estimator: Estimator) -> str:
    """Return how the counts were made, and what their publisher says of them: HTML."""
    say = words_of(plan)
    idle = _of_kind(plan, Unmeasured)
    key = f"release.made.{plan.mechanism.name}"
    noise = say(key) if key in say.texts else plan.mechanism.name.replace("-", " ")
    measured = {False: list[str](), True: list[str]()}
    for levels in plan.measured:
        measured[plan.is_whole(levels)].append(shown(plan.label_of(levels)))
    below, whole = (_few(say, names) for names in measured.values())
    place = shown(plan.label_of(plan.levels[-2:][0]))
    which = say(f"release.made.{plan.design.noised}", whole=whole, below=below, place=place)
    parts = [
        say(
            f"release.made.{plan.design.key}",
            noise=noise, which=which, measured=len(plan.measured), every=len(plan.levels),
        )
    ]  # fmt: skip
    if idle:
        parts.append(say("release.made.idle", names=_few(say, idle)))
    parts.append(in_english(say, plan.design.ways))
    chosen = {k: v for k, v in estimator.to_dict().items() if k != "method"}
    how = ", ".join(f"{k} {v}" for k, v in chosen.items() if v is not None)
    named = attribute(estimator.name + (f" ({how})" if how else ""))
    parts.append(say("release.made.estimator", name=named))
    return f"<p>{' '.join(parts)}</p>{_notes(plan)}"


def _notes(plan: Plan) -> str:
    """Return the publisher's notes and licence: HTML, nothing where there are none."""
    said = plan.description
    say = words_of(plan)
    notes = "".join(f"<p>{shown(note)}</p>" for note in said.notes)
    licence = f"<p>{say('release.described.licence')}: {shown(said.licence)}</p>"
    text = notes + (licence if said.licence else "")
    return f'<div lang="{attribute(said.language)}">{text}</div>' if said.language else text


def _few(say: Catalogue, names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return some of the names in words, and how many there are besides."""
    more = [say("release.more", number=len(names) - most)] if len(names) > most else []
    return say.joined([*names[:most], *more])
