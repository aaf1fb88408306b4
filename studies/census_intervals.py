"""How often the intervals of a state's redistricting file hold the true count.

Reads Rhode Island from ``../shared/data`` beside the repository (or the folder named as the first
argument), and writes ``docs/census_intervals.md``: both release files of the redistricting example,
ten seeded releases each, every level × query, every cell that public facts leave open, listed or
not. The table is public and all noise is seeded.
"""

from collections import defaultdict
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.intervals import interval
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.spine import SpineAnswers, keys_beside
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.jobs import tell_nobody
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.tables.tree import Tree
from studies.page import keep, markdown, with_data
from studies.redistricting import LEVELS, Table, write_files

SEEDS = range(10)
WIDE = 25
"""Variance, records²: from here on coverage before clipping is stated apart."""
ALL_AT_ONCE = hr.Confidence(USUAL.coverage, simultaneous=True)
QUERIES = [
    (), ("hhgq",), ("votingage",), ("hispanic",), ("cenrace",), ("votingage", "hispanic"),
    ("votingage", "cenrace"), ("hispanic", "cenrace"), ("votingage", "hispanic", "cenrace"),
    ("hhgq", "votingage", "hispanic", "cenrace"),
]  # fmt: skip
"""Columns of attributes, as the production's queries; and of the cube's own also the groups."""
FILES = {
    "cube": ("release.toml", [*QUERIES, ("group",)]),
    "production": ("production.toml", QUERIES),
}


def coverage(
    truth: Int64, estimate: Float64, variance: Float64, errors: CuboidErrors
) -> dict[str, float | None]:
    """Return what the intervals of one release hold of the cells of one level × query.

    Their number and mean variance (records²); the share whose interval holds the count, as released
    (cut at 0 and at the total) and before cutting, of those of a variance of `WIDE` or more apart;
    and 1 where a true count lies outside the intervals that hold for all cells at once.
    """
    low, high = errors.interval(estimate, variance, USUAL)
    away = 1 << 40  # from 0
    least, most = interval(estimate + away, errors.half_width(variance, USUAL), None)
    holds = (least <= truth + away) & (truth + away <= most)
    wide = holds[variance >= WIDE]
    first, last = errors.interval(estimate, variance, ALL_AT_ONCE)
    return {
        "cells": len(truth),
        "mean variance": variance.mean(),
        "held": ((low <= truth) & (truth <= high)).mean(),
        "before clipping": holds.mean(),
        f"variance ≥ {WIDE}": wide.mean() if len(wide) else None,
        "alarms": int(((truth < first) | (truth > last)).any()),
    }


def named(tree: Tree, columns: tuple[str, ...]) -> dict[str, str]:
    """Return attribute → its columns among these, joined; a column of a product axis alone."""
    found = defaultdict[str, list[str]](list)
    for column in columns:
        axis = next(axis for axis in tree.axes[1:] if column in axis.columns)
        is_tree = axis.product is None
        found[axis.name].append(column if is_tree else f"{axis.name}.{column}")
    return {name: " × ".join(words) for name, words in found.items()}


def measure(table: Table, queries: list[tuple[str, ...]]) -> pl.DataFrame:
    """Return the coverage of every level × query over the seeds."""
    plan, counts, tree = table.plan, table.counts, table.plan.tree
    answers, spine = cast("SpineAnswers", answers_of(plan)), table.spine.shape.axes[0]
    asked, known, rows = [], [], []
    for level, columns in product(range(len(LEVELS)), queries):
        above = tree.axes[0].levels[: spine.given.index(level)]
        along = dict(zip([tree.axes[0].name], above[-1:], strict=False))  # none: the total
        sums = Sums(plan, along | named(tree, columns))
        errors = CuboidErrors.of_sums(plan, sums.many, counts.total)
        beside = zip(tree.axes[1:], sums.levels[1:], strict=True)
        told = {
            column
            for axis, k in beside
            for column in (axis.levels[:k][-1:] if axis.product is None else axis.columns_of(k))
        }
        if sums.levels in plan.by_levels and told == {*columns}:
            errors = CuboidErrors.of(plan, sums.levels, counts.total)
        if errors.noise.mechanism is not None:
            node, cell = table.located(level, np.arange(len(table.truth[level])))
            keys = sums.keys[0][node] + keys_beside(table.spine, sums)[cell]
            numbers, place = np.unique(keys, return_inverse=True)
            truth = np.bincount(place, table.truth[level]).astype(np.int64)
            variance = answers.variances(sums, numbers, tell_nobody)
            name = LEVELS[level].replace("_", " "), " × ".join(columns) or "total"
            known.append((name, truth, variance, errors))
            asked.append((sums, numbers))
    for seed in SEEDS:
        estimates = answers.estimates(Drawn(counts, plan, seeded_bits(seed)), asked)
        for ((at, query), truth, variance, errors), estimate in zip(known, estimates, strict=True):
            held = coverage(truth, estimate, variance, errors)
            rows.append({"level": at, "query": query, **held})
    return (
        pl.DataFrame(rows)
        .group_by("level", "query", maintain_order=True)
        .agg(pl.exclude("alarms").mean(), pl.col("alarms").sum())
    )


def page(found: dict[str, pl.DataFrame]) -> str:
    """Return the page."""
    forms = " |  | ,.0f |  | .4f | .4f | .4f | "
    parts = [f"# {__doc__.splitlines()[0].removesuffix('.')}\n", INTRODUCTION]
    for name, frame in found.items():
        alarms = pl.format(f"{{}} of {len(SEEDS)}", "alarms")
        rows = [
            ["" if cell is None else cell for cell in row]
            for row in frame.with_columns(alarms.alias("alarms")).iter_rows()
        ]
        parts.append(f"## {TITLES[name]}\n\n{markdown(frame.columns, rows, forms)}\n")
    return "\n".join(parts)


TITLES = {
    "cube": "The cube (`release.toml` of the example)",
    "production": "The production's marginals and shares (`production.toml`)",
}
INTRODUCTION = f"""\
Rhode Island 2010 in the schema of the redistricting file, released by both files of
`hedgerow example redistricting`, {len(SEEDS)} seeds each, with intervals of 95 %. *Held*: the share
of all cells that public facts leave open, listed or not, whose interval holds the true count.
*Before clipping* at 0: intervals around the unbiased estimates; apart, where these have a variance
of {WIDE} or more. *Alarms*: releases in which any cell of the query lies outside the intervals that
hold for all cells at once; at most 5 % in the long run. Cells of few areas depend on one
another: a state or five counties say little over {len(SEEDS)} releases. Made by
`python -m studies.census_intervals`.
"""


def main(data: Path) -> None:
    """Write the page."""
    found = {}
    with TemporaryDirectory() as folder:
        write_files(Path(folder), data / "pl94_ri_2010")
        for name, (file, queries) in FILES.items():
            found[name] = measure(Table.read(Path(folder) / file), queries)
    keep("census_intervals", page(found))


if __name__ == "__main__":
    with_data(main)
