"""Tables of a release by level: what was measured, what is listed, which error to expect."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import ReleaseError
from hedgerow.plan.cost import possible_cells
from hedgerow.plan.cuboids import Public
from hedgerow.plan.forecast import forecast
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import Cube
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
from hedgerow.release.page.markup import shown, table
from hedgerow.release.page.promise import keeps_budget
from hedgerow.tables.tree import Levels

# What the files of counts say of each cuboid, read piece by piece: sums, sizes, errors.

MOST_ROWS = 5_000_000
"""Rows that are read of a cuboid; of larger ones the page says how many they are, no more."""

ROWS_A_PIECE = 1 << 18
CLASSES = 19
"""Sizes of counts by their number of digits."""


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
    if listed > MOST_ROWS:
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
    rows, expected = [], forecast(plan).to_dicts()
    for row, listed, planned in zip(expected, facts, plan.by_levels.items(), strict=True):
        levels, what = planned
        noise = what.kind if row["noise"] is None else row["noise"]
        rows.append(
            [
                _numbered(plan, levels),
                f"{possible_cells(plan, levels):,}",
                f"{listed.listed:,}",
                noise,
                "–" if row["share"] is None else f"{100 * row['share']:.3g} %",
                _error(row["noise_sd"]),
                _error(row["rmse"]),
                "–" if row["max_95"] is None else f"±{ceil(row['max_95']):,}",
                "–" if listed.total is None else f"{listed.contradicted:,}",
            ]
        )
    is_paired = not plan.is_chain and len(plan.tree.axes) == 2
    return (pair_table(plan, expected) if is_paired else "") + table(
        f"{'Depth by depth' if plan.is_chain else 'Level by level'}, from the whole to the finest "
        "counts",
        [
            "Level", _possible(plan), "Listed, above 0", "Noise",
            "Share of the budget" if plan.price_of_a_share == 1 else "Share beside other levels",
            "Noise: standard deviation", "Expected error (RMSE)", "95 %: no error beyond",
            "Contradicted ≠",
        ],
        rows,
    )  # fmt: skip


def pair_table(plan: Plan, expected: Sequence[dict[str, Any]]) -> str:
    """Return the levels of two axes as a matrix: of each pair the error, the counts, the share.

    A pair that the workload does not have is blank, or called a sum of a table where it is one.

    Args:
        plan: over two axes; no chain.
        expected: its forecast, row by row.
    """
    tree, cells = plan.tree, {}
    for row, (levels, what) in zip(expected, plan.by_levels.items(), strict=True):
        share = what.kind if row["share"] is None else f"{100 * row['share']:.3g} %"
        error = "exact" if isinstance(what, Public) else _error(row["rmse"])
        possible = possible_cells(plan, levels)
        many = f"{possible:,} count{'s' if possible > 1 else ''}"
        cells[levels] = f"{error}<small>{many}</small><small>{share}</small>"
    for levels in product(*(range(axis.depth + 1) for axis in tree.axes)):
        if levels not in cells:
            cells[levels] = "" if plan.table_of(levels) is None else "<small>a sum</small>"
    words = plan.description
    names = [
        ["total", *(words.level_words(tree, axis, level) for level in axis.levels)]
        for axis in tree.axes
    ]
    down, across = (shown(words.axis_label(axis)) for axis in tree.axes)
    share = "share of the budget" if plan.price_of_a_share == 1 else "share beside other levels"
    left = ""
    if len(plan.levels) < len(cells):
        left = "; a sum: not released as such, but a sum of released counts; blank: in no table"
    return table(
        f"Expected error (RMSE) of every pair of levels; below it how many counts are possible"
        f"{' under public facts, at most' if plan.facts else ''}, and the {share}{left}",
        [
            f"{down} ↓<br>{across} →",
            *map(shown, names[1]),
        ],
        [
            [shown(name), *(cells[i, j] for j in range(len(names[1])))]
            for i, name in enumerate(names[0])
        ],
    )


def _possible(plan: Plan) -> str:
    return "Possible counts under public facts, at most" if plan.facts else "Possible counts"


def _numbered(plan: Plan, levels: Levels) -> str:
    """Return the name of a cuboid, on a chain behind the number of its depth."""
    name = shown(plan.label_of(levels))
    return f'<span class="depth">{sum(levels)}</span> {name}' if plan.is_chain else name


def size_table(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """By number of digits of a count: its standard error, as a part of the count."""
    listed = [(levels, f) for levels, f in zip(plan.levels, facts, strict=True) if f.total]
    classes = [k for k in range(19) if any(f.number[k] for _, f in listed)]
    rows = []
    for levels, f in listed:
        cells = [_relative(f, k, public=plan.is_public(levels)) for k in classes]
        rows.append([shown(plan.label_of(levels)), *cells])
    if not rows:
        return "<p>No counts are listed.</p>"
    headings = [_class(k) for k in classes]
    caption = (
        "Standard error of released counts by their size, as a part of the count; "
        "below it, how many counts there are"
    )
    return table(caption, ["Level", *headings], rows)


def contradicted_words(plan: Plan, facts: Sequence[CuboidFacts]) -> str:
    """Return how many counts their own measurements contradict, and what to do with them."""
    number = sum(f.contradicted for f in facts)
    summary = (
        "No count that this page has read is contradicted by its own noisy counts."
        if not number
        else f"<strong>Contradicted by their own noisy counts: {number:,}.</strong> They are "
        "marked ≠ above: quote the unbiased estimate, which stands beside the count, in its place."
    )
    across = (
        ""
        if len(plan.tree.axes) == 1 or isinstance(plan.workload, Cube)
        else " Sums across levels, such as one group over all areas, can be so where no count of "
        "this page is: <code>hedgerow table DIR --by</code> says which."
    )
    return (
        f"<p>{summary} A 95 % interval misses one true count in twenty by chance, and a released "
        "count may lie outside its own. Contradicted is a count that lies outside even the "
        "intervals which hold for all counts of its level at once: it was moved by being kept from "
        f"falling below 0, and by having to add up.{across}</p>"
    )


def checks(plan: Plan, facts: Sequence[CuboidFacts], carried: Sequence[Levels]) -> str:
    """Return what was recomputed from the files before this page was made, as a list."""
    names = plan
    passed = [
        "Every listed count is a whole number above 0, and no interval reaches below 0.",
        f"The counts of each level sum to the same total, {facts[0].total or 0:,}.",
    ]
    if len(carried) > 1:
        finest = shown(names.label_of(carried[-1]))
        passed.append(
            f"Every family adds up to its parent’s count, down to {finest}."
            if plan.is_chain
            else "Every combination of levels that this page carries adds up to all coarser ones"
            + (", so the tables agree." if len(plan.tables) > 1 else ".")
        )
    if plan.public is not None:
        deepest = shown(names.label_of(plan.public))
        passed.append(f"Public counts are stated as exact: they carry no noise, down to {deepest}.")
    if keeps_budget(plan):
        passed.append("What all measurements cost together was computed again: it is in budget.")
    unread = [
        shown(names.label_of(levels))
        for levels, each in zip(plan.levels, facts, strict=True)
        if each.total is None
    ]
    left = "" if not unread else f" Too large to read for this page: {', '.join(unread)}."
    return (
        f'<ul class="checks">{"".join(f"<li>{line}</li>" for line in passed)}</ul>\n'
        f"<p>A page is not made where counts fail any of these.{left} "
        "<code>hedgerow check</code> on this directory verifies more: the digest of every file, "
        "every family of every level, and "
        "that the counts are what the estimator makes of the noisy counts.</p>"
    )


def carried_words(carried: Sequence[Levels], plan: Plan) -> str:
    """Return which levels this page carries and which are in the files alone."""
    others = [levels for levels in plan.levels if levels not in carried]
    if not others:
        which = "levels" if plan.is_chain else "combinations of levels"
        if not plan.is_chain and not isinstance(plan.workload, Cube):
            which = f"{len(carried)} combinations of levels that were released"
        return f"<p>This page carries the counts of all {which}.</p>"
    left = ", ".join(f"<code>{counts_file(levels)}</code>" for levels in others)
    here = (
        f"the counts of depths 0 to {len(carried) - 1}"
        if plan.is_chain
        else f"the counts of {len(carried)} of {len(plan.levels)} combinations of levels"
    )
    return (
        f"<p>This page carries {here if carried else 'no counts'}, to stay small. The others are "
        f"in the Parquet files beside it: {left}.</p>"
    )


def _relative(facts: CuboidFacts, size: int, *, public: bool) -> str:
    number = int(facts.number[size])
    if not number:
        return "–"
    mean = facts.relative[size] / number
    words = "exact" if public or mean == 0 else f"±{_digits(100 * mean)} %"
    return f"{words}<small>{number:,}</small>"


def _class(digits: int) -> str:
    return f"{10**digits if digits else 1:,} to {10 ** (digits + 1) - 1:,}"


def _error(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}"


def _digits(value: float) -> str:
    """Return two significant digits, never as a power of ten."""
    return f"{float(f'{value:.2g}'):,.10g}"
