"""Tables of a release by level: what was measured, what is listed, which error to expect."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels, int64_zeros, sums_before
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_ROWS_OF_A_PAGE
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import corner, shown, table
from hedgerow.plan.cuboids import CuboidPlan, Public
from hedgerow.plan.forecast import forecast
from hedgerow.plan.page.protected import words_of
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import EpsilonDelta, Rho, value_of
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    counts_file,
    counts_layout,
)
from hedgerow.release.directory.parquet_file import Layout, read_batches, rows_of
from hedgerow.release.shown import RELIABLE
from hedgerow.text import Json

# What the files of counts say of each cuboid, read piece by piece: sums, sizes, errors.


ROWS_A_PIECE = 1 << 18
CLASSES = 19
"""Sizes of counts by their number of digits."""

RELIABILITY = ("firm", "rough", "noise")
"""How far a count may be off: within 10 % of it, within half of it, or beyond."""
MOST_SURE, BAR = 7, 160
"""Cuboids whose reliability is not folded; pixels of a bar."""
LEAST_PERCENT = 0.01
"""Of a relative error; a smaller one is only said to be below it."""


@dataclass(frozen=True, eq=False)
class CuboidFacts:
    """What the file of one cuboid says.

    Attributes:
        listed: how many counts it lists.
        total: their sum, records; None where there are too many to read.
        number: int64 (19): how many counts have 1, 2, … digits.
        relative: float64 (19): the sum of their standard errors, each over its count.
        contradicted: how many counts their own measurements contradict, of those that were read.
        sure: int64 (3): how many are firm, rough, and mostly noise.
    """

    listed: int
    total: int | None
    number: Int64
    relative: Float64
    contradicted: int = 0
    sure: Int64 = field(default_factory=lambda: int64_zeros(len(RELIABILITY)))


def reliability(count: Int64, low: Int64, high: Int64) -> Int64:
    """Return how far counts may be off, by the farther ends of their intervals: `RELIABILITY`."""
    reach = np.maximum(high - count, count - low)
    beyond: Int64 = np.searchsorted(list(RELIABLE.values()), reach / count)
    return beyond


def cuboid_facts(folder: Path, plan: Plan) -> list[CuboidFacts]:
    """Return for each cuboid what its file says.

    Raises:
        ReleaseError: counts that are not above 0, intervals that are none, public counts that are
            not exact, or cuboids that do not sum to the same total.
    """
    every = []
    whole: int | None = None
    for levels, what in plan.by_levels.items():
        errors = CuboidErrors.of(plan, levels, whole)
        layout = counts_layout(plan.tree, levels)
        is_public = isinstance(what, Public)
        every.append(_facts(folder, counts_file(levels), layout, errors, is_public=is_public))
        whole = every[0].total
    for levels, facts in zip(plan.levels, every, strict=True):
        if facts.total is not None and facts.total != every[0].total:
            raise ReleaseError(f"the counts in {counts_file(levels)} do not sum to the total")
    return every


def _facts(
    folder: Path, name: str, layout: Layout, errors: CuboidErrors, *, is_public: bool
) -> CuboidFacts:
    number = int64_zeros(CLASSES)
    relative = np.zeros(CLASSES)
    total = 0
    contradicted = 0
    sure = int64_zeros(len(RELIABILITY))
    columns = [COUNT, ESTIMATE, STANDARD_ERROR, LOW, HIGH]
    listed = rows_of(folder, name, layout)
    if listed > MOST_ROWS_OF_A_PAGE:
        return CuboidFacts(listed, None, number, relative)
    for piece in read_batches(folder, name, layout, columns, ROWS_A_PIECE):
        count, estimate, error, low, high = (piece[column].to_numpy() for column in columns)
        if (count <= 0).any() or (low < 0).any() or (high < low).any():
            raise ReleaseError(f"{name} has a count or an interval that is none")
        if is_public and not (np.array_equal(low, high) and np.array_equal(low, count)):
            raise ReleaseError(f"{name} is public, but some counts are not exact")
        total += int(count.sum())
        contradicted += int(errors.contradicted(count, estimate, error**2).sum())
        digits = np.searchsorted(10 ** np.arange(1, CLASSES), count, side="right")
        number += np.bincount(digits, minlength=CLASSES)
        relative += np.bincount(digits, error / count, CLASSES)
        sure += np.bincount(reliability(count, low, high), minlength=len(RELIABILITY))
    return CuboidFacts(listed, total, number, relative, contradicted, sure)


def sure_table(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return for each cuboid how many of its counts are firm, rough and mostly noise."""
    say = words_of(plan)
    rows = []
    for levels, each in zip(plan.levels, facts, strict=True):
        if each.total:
            figures = [say.number(number) for number in each.sure.tolist()]
            rows.append([shown(plan.label_of(levels)), *figures, _bar(each.sure)])
    if not rows:
        return f"<p>{say('release.sizes.none')}</p>"
    words = (say(f"script.{key}") for key in RELIABILITY)
    headings = [say("release.levels.level"), *words, say("release.sure.part")]
    few = rows[:MOST_SURE]
    more = rows[MOST_SURE:]
    caption = say("release.sure.caption")
    first = table(say, caption, headings, few)
    rest = say("release.sure.more", n=len(more))
    folded = f"<details><summary>{rest}</summary>{table(say, rest, headings, more)}</details>"
    return f'<div class="sures">{first}{folded if more else ""}</div>'


def _bar(sure: Int64) -> str:
    """Return parts of a whole side by side, for those who see them: SVG."""
    ends = sums_before(sure) * (BAR / sure.sum())
    parts = (
        f'<rect class="{key}" x="{first:.1f}" width="{last - first:.1f}" height="14"/>'
        for key, first, last in zip(RELIABILITY, ends, ends[1:], strict=False)
    )
    drawn = "".join(parts)
    return f'<svg class="bar3" viewBox="0 0 {BAR} 14" aria-hidden="true">{drawn}</svg>'


def level_table(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return for every cuboid its noise, share and expected error; of two axes also in pairs."""
    say = words_of(plan)
    rows = []
    expected = forecast(plan).to_dicts()
    for row, listed, planned in zip(expected, facts, plan.by_levels.items(), strict=True):
        levels, what = planned
        name = shown(plan.label_of(levels))
        depth = plan.design.depth_of(levels)
        noise = row["noise"] and f'<span class="together">{say.numeral(row["noise"])}</span>'
        rows.append(
            [
                name if depth is None else f'<span class="depth">{depth}</span> {name}',
                say.number(plan.design.open_cells(levels)),
                say.number(listed.listed),
                noise or _kind(say, what),
                _share(say, row, "–"),
                _error(say, row["noise_sd"]),
                _error(say, row["rmse"]),
                "–" if row["max_95"] is None else say.number(ceil(row["max_95"])),
                "–" if listed.total is None else say.number(listed.contradicted),
            ]
        )
    is_paired = len(plan.tree.axes) == 2 and not plan.is_chain
    possible = "possible_facts" if plan.facts else "possible"
    share = "share" if plan.price_of_a_share == 1 else "share_beside"
    after = ("noise_sd", "rmse", "max_95", "contradicted")
    headings = [
        say(f"release.levels.{key}")
        for key in ("level", possible, "listed", "noise", share, *after)
    ]
    caption = say(f"release.levels.{plan.design.key}")
    return (pair_table(plan, expected) if is_paired else "") + table(say, caption, headings, rows)


def _kind(say: Catalogue, what: CuboidPlan) -> str:
    """Return what a cuboid without noise of its own is."""
    return say("release.levels.public" if isinstance(what, Public) else "release.levels.unmeasured")


def _share(say: Catalogue, row: Json, otherwise: str) -> str:
    return otherwise if row["share"] is None else say.percent(f"{100 * row['share']:.3g}")


def _error(say: Catalogue, value: float | None) -> str:
    return "–" if value is None else say.numeral(f"{value:,.4g}")


def pair_table(plan: Plan, expected: Sequence[Json]) -> str:
    """Return the levels of two axes as a matrix: of each pair the error, the counts, the share.

    A pair that the workload does not have is blank, or called a sum of a table where it is one.

    Args:
        plan: over two axes; no chain.
        expected: its forecast, row by row.
    """
    say = words_of(plan)
    tree = plan.tree
    said = plan.description
    cells = {}
    for row, (levels, what) in zip(expected, plan.by_levels.items(), strict=True):
        error = say("script.exact") if isinstance(what, Public) else _error(say, row["rmse"])
        many = say("release.levels.counts", n=plan.design.open_cells(levels))
        share = _share(say, row, _kind(say, what))
        cells[levels] = f"{error}<small>{many}</small><small>{share}</small>"
    a_sum = f"<small>{say('release.levels.sum')}</small>"
    down, across = (
        [say("script.total"), *(said.level_words(tree, axis, level) for level in axis.levels)]
        for axis in tree.axes
    )
    rows = [
        [
            shown(name),
            *(
                cells.get((i, j), a_sum if plan.table_of((i, j)) else "")
                for j in range(len(across))
            ),
        ]
        for i, name in enumerate(down)
    ]
    keys = (
        "pairs_facts" if plan.facts else "pairs",
        "and_share" if plan.price_of_a_share == 1 else "and_beside",
        *(() if plan.has_all_combinations else ("and_sums",)),
    )
    caption = "".join(say(f"release.levels.{key}") for key in keys)
    names = [shown(said.axis_label(axis)) for axis in tree.axes]
    return table(say, caption, [corner(*names), *map(shown, across)], rows)


def size_table(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """By number of digits of a count: its standard error, as a part of the count."""
    say = words_of(plan)
    listed = [(levels, f) for levels, f in zip(plan.levels, facts, strict=True) if f.total]
    if not listed:
        return f"<p>{say('release.sizes.none')}</p>"
    classes = [k for k in range(CLASSES) if any(f.number[k] for _, f in listed)]
    rows = [
        [shown(plan.label_of(levels)), *(_relative(plan, levels, f, k) for k in classes)]
        for levels, f in listed
    ]
    headings = [say.between(10**k, 10 ** (k + 1) - 1) for k in classes]
    return table(say, say("release.sizes.caption"), [say("release.levels.level"), *headings], rows)


def _relative(plan: Plan, levels: Levels, facts: CuboidFacts, size: int) -> str:
    number = int(facts.number[size])
    if not number:
        return "–"
    say = words_of(plan)
    mean = facts.relative[size] / number
    is_exact = plan.is_public(levels) or mean == 0
    words = say("script.exact") if is_exact else percent_of(say, 100 * mean)
    return f"{words}<small>{say.number(number)}</small>"


def percent_of(say: Catalogue, percent: float) -> str:
    """Return a percentage in two digits; below a hundredth only that it is."""
    if percent < LEAST_PERCENT:
        return f"&lt; {say.percent(str(LEAST_PERCENT))}"
    digits = float(f"{percent:.2g}")
    return say.percent(f"{digits:,.10g}")  # never as a power of ten


def contradicted_words(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return how many counts their own measurements contradict: HTML, nothing where none is."""
    number = sum(f.contradicted for f in facts)
    words = words_of(plan)("release.contradictions.some", number=number)
    return f"<p>{words}</p>" if number else ""


def consistent_words(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return what a contradiction is, and whether there are any: HTML."""
    say = words_of(plan)
    is_whole = len(plan.tree.axes) == 1 or plan.has_all_combinations
    keys = [
        *(() if any(f.contradicted for f in facts) else ("none",)),
        "meant",
        *(() if is_whole else ("across",)),
    ]
    return f"<p>{' '.join(say(f'release.contradictions.{key}') for key in keys)}</p>"


def keeps_budget(plan: Plan) -> bool:
    """Return whether the cost of the plan's noise, computed again, is within its budget.

    ε(δ) is rounded up by as much as 1e-9 of itself, which is allowed for.
    """
    profile = plan.guarantee
    budget = plan.budget
    if isinstance(budget, EpsilonDelta):
        return profile.epsilon(budget.delta) <= float(budget.epsilon) * (1 + 1e-8)
    cost = profile.rho if isinstance(budget, Rho) else profile.pure_epsilon
    return cost is not None and cost <= value_of(budget)


def checks(plan: Plan, facts: Sequence[CuboidFacts], carried: Sequence[Levels]) -> str:
    """Return what was recomputed from the files before this page was made, as a list."""
    say = words_of(plan)
    passed = [
        say("release.checks.whole"), say("release.checks.total", total=facts[0].total or 0),
    ]  # fmt: skip
    if len(carried) > 1:
        finest = shown(plan.label_of(carried[-1]))
        key = "tables" if len(plan.tables) > 1 else plan.design.key
        passed.append(say(f"release.checks.adds_up_{key}", finest=finest))
    if plan.public is not None:
        passed.append(say("release.checks.public", deepest=shown(plan.label_of(plan.public))))
    if keeps_budget(plan):
        passed.append(say("release.checks.budget"))
    unread = [
        shown(plan.label_of(levels))
        for levels, each in zip(plan.levels, facts, strict=True)
        if each.total is None
    ]
    left = f" {say('release.checks.unread', levels=', '.join(unread))}" if unread else ""
    return (
        f'<ul class="checks">{"".join(f"<li>{line}</li>" for line in passed)}</ul>\n'
        f"<p>{say('release.checks.needed')}{left} {say('release.checks.more')}</p>"
    )


def carried_words(carried: Sequence[Levels], plan: Plan) -> str:
    """Return which levels this page carries and which are in the files alone."""
    others = [levels for levels in plan.levels if levels not in carried]
    say = words_of(plan)
    finest = f"<code>{counts_file(plan.levels[-1])}</code>"
    numbers = {"carried": len(carried), "every": len(plan.levels), "last": len(carried) - 1}
    about = f"<p>{say('release.carried.files', file=finest)}</p>"
    if not others:
        return f"<p>{say(f'release.carried.all_{plan.workload.name}', **numbers)}</p>{about}"
    left = ", ".join(f"<code>{counts_file(levels)}</code>" for levels in others)
    here = say(
        f"release.carried.some_{plan.design.key}" if carried else "release.carried.none", **numbers
    )
    return f"<p>{here} {say('release.carried.others', files=left)}</p>{about}"
