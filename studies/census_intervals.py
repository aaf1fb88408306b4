"""How often the intervals of a state's redistricting file hold the true count.

Reads Rhode Island from ``../shared/data`` beside the repository (or the folder named as the first
argument), and writes ``docs/census_intervals.md``: both release files of the redistricting example,
ten seeded releases each, every level × query, every cell that public facts leave open, listed or
not. The table is public and all noise is seeded.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.intervals import interval
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.spine import SpineAnswers, keys_beside
from hedgerow.release.answers.sums import Sums
from hedgerow.release.answers.tables import Asked
from hedgerow.release.descent.jobs import tell_nobody
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.tables.tree import Tree
from studies.page import data_folder, keep, markdown
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


Query = tuple[int, tuple[str, ...]]
"""A level of the spine, and columns of attributes."""


@dataclass
class Coverage:
    """Of one level × query, over releases: the share of cells whose interval holds the count.

    Attributes:
        cells: how many of them.
        variance: their mean, records².
        held: of each release, as released: clipped at 0 and at the total.
        unclipped: of each release, before clipping.
        wide: the same of the cells of a variance of `WIDE` or more.
        alarms: releases with a true count outside the intervals that hold for all cells at once.
    """

    cells: int = 0
    variance: float = 0.0
    held: list[float] = field(default_factory=list)
    unclipped: list[float] = field(default_factory=list)
    wide: list[float] = field(default_factory=list)
    alarms: int = 0

    def add(self, truth: Int64, estimate: Float64, variance: Float64, errors: CuboidErrors) -> None:
        """Count what the intervals of one release hold."""
        self.cells, self.variance = len(truth), variance.mean()
        low, high = errors.interval(estimate, variance, USUAL)
        self.held.append(((low <= truth) & (truth <= high)).mean())
        half_width = errors.half_width(variance, USUAL)
        away = 1 << 40  # from 0
        low, high = interval(estimate + away, half_width, None)
        holds = (low <= truth + away) & (truth + away <= high)
        self.unclipped.append(holds.mean())
        if (wide := variance >= WIDE).any():
            self.wide.append(holds[wide].mean())
        low, high = errors.interval(estimate, variance, ALL_AT_ONCE)
        self.alarms += bool(((truth < low) | (truth > high)).any())


def named(tree: Tree, columns: tuple[str, ...]) -> dict[str, str]:
    """Return attribute → its columns among these, joined; a column of a product axis alone."""
    found = defaultdict[str, list[str]](list)
    for column in columns:
        axis = next(axis for axis in tree.axes[1:] if column in axis.columns)
        is_tree = axis.product is None
        found[axis.name].append(column if is_tree else f"{axis.name}.{column}")
    return {name: " × ".join(words) for name, words in found.items()}


def measure(table: Table, queries: list[tuple[str, ...]]) -> dict[Query, Coverage]:
    """Return the coverage of every level × query over the seeds."""
    plan, counts, tree = table.plan, table.counts, table.plan.tree
    answers, spine = cast("SpineAnswers", answers_of(plan)), table.spine.shape.axes[0]
    asked, known = list[Asked](), dict[Query, tuple[Int64, Float64, CuboidErrors]]()
    for level, columns in product(range(len(LEVELS)), queries):
        above = tree.axes[0].levels[: spine.given.index(level)]
        along = dict(zip([tree.axes[0].name], above[-1:], strict=False))  # none: the total
        sums = Sums(plan, along | named(tree, columns))
        errors = CuboidErrors.of_sums(plan, sums.many, counts.total)
        if sums.levels in plan.by_levels and sums.many == tree.cells(sums.levels):
            errors = CuboidErrors.of(plan, sums.levels, counts.total)
        if errors.noise.mechanism is not None:
            node, cell = table.located(level, np.arange(len(table.truth[level])))
            keys = sums.keys[0][node] + keys_beside(table.spine, sums)[cell]
            numbers, place = np.unique(keys, return_inverse=True)
            truth = np.bincount(place, table.truth[level]).astype(np.int64)
            variance = answers.variances(sums, numbers, tell_nobody)
            known[level, columns] = truth, variance, errors
            asked.append((sums, numbers))
    found = {query: Coverage() for query in known}
    for seed in SEEDS:
        estimates = answers.estimates(Drawn(counts, plan, seeded_bits(seed)), asked)
        for (query, (truth, variance, errors)), estimate in zip(
            known.items(), estimates, strict=True
        ):
            found[query].add(truth, estimate, variance, errors)
    return found


def page(found: dict[str, dict[Query, Coverage]]) -> str:
    """Return the page."""
    head = ["level", "query", "cells", "mean variance", "held", "before clipping",
            f"variance ≥ {WIDE}", "alarms"]  # fmt: skip
    forms = ["", "", ",", "", ".4f", ".4f", ".4f", ""]
    parts = [f"# {__doc__.splitlines()[0].removesuffix('.')}\n", INTRODUCTION]
    for name, coverages in found.items():
        rows = [
            (LEVELS[level].replace("_", " "), " × ".join(columns) or "total", each.cells,
             each.variance, np.mean(each.held), np.mean(each.unclipped),
             np.mean(each.wide) if each.wide else "", f"{each.alarms} of {len(SEEDS)}")
            for (level, columns), each in coverages.items()
        ]  # fmt: skip
        parts.append(f"## {TITLES[name]}\n\n{markdown(head, rows, forms)}\n")
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


def main() -> None:
    """Write the page."""
    found = {}
    with TemporaryDirectory() as folder:
        write_files(Path(folder), data_folder() / "pl94_ri_2010")
        for name, (file, queries) in FILES.items():
            found[name] = measure(Table.read(Path(folder) / file), queries)
    keep("census_intervals", page(found))


if __name__ == "__main__":
    main()
