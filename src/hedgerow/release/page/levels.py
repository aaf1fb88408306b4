"""Tables of a release by level: what was measured, what is listed, which error to expect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_ROWS_OF_A_PAGE
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import shown, table
from hedgerow.plan.cuboids import CuboidPlan, Public
from hedgerow.plan.forecast import forecast
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    Shape,
    counts_file,
)
from hedgerow.release.directory.parquet_file import opened, rows_of
from hedgerow.release.page.described import words_of
from hedgerow.release.page.promise import keeps_budget

# What the files of counts say of each cuboid, read piece by piece: sums, sizes, errors.


ROWS_A_PIECE = 1 << 18
CLASSES = 19
"""Sizes of counts by their number of digits."""

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
    """

    listed: int
    total: int | None
    number: Int64
    relative: Float64
    contradicted: int = 0


def cuboid_facts(folder: Path, plan: Plan) -> list[CuboidFacts]:
    """Return for each cuboid what its file says.

    Raises:
        ReleaseError: counts that are not above 0, intervals that are none, public counts that are
            not exact, or cuboids that do not sum to the same total.
    """
    every: list[CuboidFacts] = []
    whole: int | None = None
    for levels, what in plan.by_levels.items():
        errors, shape = CuboidErrors.of(plan, levels, whole), Shape.of(plan.tree, levels)
        every.append(_facts(folder, shape, errors, is_public=isinstance(what, Public)))
        whole = every[0].total
    for levels, facts in zip(plan.levels, every, strict=True):
        if facts.total is not None and facts.total != every[0].total:
            raise ReleaseError(f"the counts in {counts_file(levels)} do not sum to the total")
    return every


def _facts(folder: Path, shape: Shape, errors: CuboidErrors, *, is_public: bool) -> CuboidFacts:
    number, relative = np.zeros(CLASSES, dtype=np.int64), np.zeros(CLASSES)
    total, contradicted = 0, 0
    columns = [COUNT, ESTIMATE, STANDARD_ERROR, LOW, HIGH]
    name = counts_file(shape.levels)
    listed = rows_of(folder, name, shape.counts)
    if listed > MOST_ROWS_OF_A_PAGE:
        return CuboidFacts(listed, None, number, relative)
    for piece in _pieces(folder, name, shape, columns):
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
    return CuboidFacts(listed, total, number, relative, contradicted)


def _pieces(folder: Path, name: str, shape: Shape, columns: list[str]) -> Iterator[pl.DataFrame]:
    """Yield some columns of the files, a piece at a time."""
    with opened(folder, name, shape.counts) as files:
        for file in files:
            for batch in file.iter_batches(ROWS_A_PIECE, columns=columns):
                yield pl.DataFrame(batch)  # PyArrow's own to_numpy would import pandas


def level_table(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return for every cuboid its noise, share and expected error; of two axes also in pairs."""
    say, rows, expected = words_of(plan), [], forecast(plan).to_dicts()
    for row, listed, planned in zip(expected, facts, plan.by_levels.items(), strict=True):
        levels, what = planned
        noise = _kind(say, what) if row["noise"] is None else _noise(say, row["noise"])
        rows.append(
            [
                _numbered(plan, levels),
                say.number(plan.design.open_cells(levels)),
                say.number(listed.listed),
                noise,
                "–" if row["share"] is None else say.percent(f"{100 * row['share']:.3g}"),
                _error(say, row["noise_sd"]),
                _error(say, row["rmse"]),
                "–" if row["max_95"] is None else f"±{say.number(ceil(row['max_95']))}",
                "–" if listed.total is None else say.number(listed.contradicted),
            ]
        )
    is_paired = len(plan.tree.axes) == 2 and expected[0]["depth"] is None
    possible = "possible_facts" if plan.facts else "possible"
    share = "share" if plan.price_of_a_share == 1 else "share_beside"
    keys = ["level", possible, "listed", "noise", share, "noise_sd", "rmse", "max_95"]
    keys.append("contradicted")
    return (pair_table(plan, expected) if is_paired else "") + table(
        say,
        say(f"release.levels.{plan.design.key}"),
        [say(f"release.levels.{key}") for key in keys],
        rows,
    )


def _kind(say: Catalogue, what: CuboidPlan) -> str:
    """Return what a cuboid without noise of its own is."""
    return say("release.levels.public" if isinstance(what, Public) else "release.levels.unmeasured")


def pair_table(plan: Plan, expected: Sequence[dict[str, Any]]) -> str:
    """Return the levels of two axes as a matrix: of each pair the error, the counts, the share.

    A pair that the workload does not have is blank, or called a sum of a table where it is one.

    Args:
        plan: over two axes; no chain.
        expected: its forecast, row by row.
    """
    say, tree, cells = words_of(plan), plan.tree, {}
    for row, (levels, what) in zip(expected, plan.by_levels.items(), strict=True):
        part = None if row["share"] is None else say.percent(f"{100 * row['share']:.3g}")
        share = _kind(say, what) if part is None else part
        error = say("script.exact") if isinstance(what, Public) else _error(say, row["rmse"])
        many = say("release.levels.counts", n=plan.design.open_cells(levels))
        cells[levels] = f"{error}<small>{many}</small><small>{share}</small>"
    a_sum = f"<small>{say('release.levels.sum')}</small>"
    for levels in product(*(range(axis.depth + 1) for axis in tree.axes)):
        if levels not in cells:
            cells[levels] = "" if plan.table_of(levels) is None else a_sum
    words = plan.description
    names = [
        [say("script.total"), *(words.level_words(tree, axis, level) for level in axis.levels)]
        for axis in tree.axes
    ]
    down, across = (shown(words.axis_label(axis)) for axis in tree.axes)
    told = [
        say("release.levels.pairs_facts" if plan.facts else "release.levels.pairs"),
        say(
            "release.levels.and_share"
            if plan.price_of_a_share == 1
            else "release.levels.and_beside"
        ),
        say("release.levels.and_sums") if len(plan.levels) < len(cells) else "",
    ]
    return table(
        say,
        "".join(told),
        [
            f"{down} ↓<br>{across} →",
            *map(shown, names[1]),
        ],
        [
            [shown(name), *(cells[i, j] for j in range(len(names[1])))]
            for i, name in enumerate(names[0])
        ],
    )


def _numbered(plan: Plan, levels: Levels) -> str:
    """Return the name of a cuboid, on a chain behind the number of its depth."""
    name, depth = shown(plan.label_of(levels)), plan.design.depth_of(levels)
    return name if depth is None else f'<span class="depth">{depth}</span> {name}'


def size_table(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """By number of digits of a count: its standard error, as a part of the count."""
    say = words_of(plan)
    listed = [(levels, f) for levels, f in zip(plan.levels, facts, strict=True) if f.total]
    classes = [k for k in range(19) if any(f.number[k] for _, f in listed)]
    rows = []
    for levels, f in listed:
        cells = [_relative(say, f, k, public=plan.is_public(levels)) for k in classes]
        rows.append([shown(plan.label_of(levels)), *cells])
    if not rows:
        return f"<p>{say('release.sizes.none')}</p>"
    headings = [_class(say, k) for k in classes]
    return table(say, say("release.sizes.caption"), [say("release.levels.level"), *headings], rows)


def contradicted_words(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return how many counts their own measurements contradict, and what to do with them."""
    say, number = words_of(plan), sum(f.contradicted for f in facts)
    summary = say(
        "release.contradictions.some" if number else "release.contradictions.none", number=number
    )
    is_whole = len(plan.tree.axes) == 1 or plan.has_all_combinations
    across = "" if is_whole else f" {say('release.contradictions.across')}"
    return f"<p>{summary} {say('release.contradictions.meant')}{across}</p>"


def checks(plan: Plan, facts: Sequence[CuboidFacts], carried: Sequence[Levels]) -> str:
    """Return what was recomputed from the files before this page was made, as a list."""
    say = words_of(plan)
    passed = [
        say("release.checks.whole"),
        say("release.checks.total", total=facts[0].total or 0),
    ]
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
    numbers = {"carried": len(carried), "every": len(plan.levels), "last": len(carried) - 1}
    if not others:
        return f"<p>{say(f'release.carried.all_{plan.workload.name}', **numbers)}</p>"
    left = ", ".join(f"<code>{counts_file(levels)}</code>" for levels in others)
    here = say(
        f"release.carried.some_{plan.design.key}" if carried else "release.carried.none", **numbers
    )
    return f"<p>{here} {say('release.carried.others', files=left)}</p>"


def _relative(say: Catalogue, facts: CuboidFacts, size: int, *, public: bool) -> str:
    number = int(facts.number[size])
    if not number:
        return "–"
    mean = facts.relative[size] / number
    is_exact = public or mean == 0
    words = say("script.exact") if is_exact else percent_of(say, 100 * mean)
    return f"{words}<small>{say.number(number)}</small>"


def _noise(say: Catalogue, words: str) -> str:
    return f'<span class="together">{say.numeral(words)}</span>'


def percent_of(say: Catalogue, percent: float) -> str:
    """Return a percentage in two digits; below a hundredth only that it is."""
    if percent < LEAST_PERCENT:
        return f"&lt; {say.percent(str(LEAST_PERCENT))}"
    return f"±{say.percent(_digits(percent))}"


def _class(say: Catalogue, digits: int) -> str:
    return say("script.from_to", low=10**digits, high=10 ** (digits + 1) - 1)


def _error(say: Catalogue, value: float | None) -> str:
    return "–" if value is None else say.numeral(f"{value:,.4g}")


def _digits(value: float) -> str:
    """Return two significant digits, never as a power of ten."""
    return f"{float(f'{value:.2g}'):,.10g}"
