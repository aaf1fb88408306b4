"""Errors of a redistricting file by level and query, and what the Bureau's own studies look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.estimate.spine.support import Support
from studies.redistricting import ALONE, GROUPS, KINDS, LEVELS, Attributes, State, row_keys

QUERIES = {
    "total": "total",
    "voting age": "people of voting age",
    "hispanic": "people of Hispanic origin",
    "race": "a race (six alone, or two or more)",
    "group": "one of the eight groups",
    "kind": "a kind of quarters",
    "L1": "all 2,016 cells, summed",
}
SIZES = (0, 1, 5, 10, 50, 100, 500, 1000, 5000)
"""Bias is shown by the true count, from one of these to below the next."""
STEPS = {LEVELS.index("block_group"): 50, LEVELS.index("block"): 10}
"""By level: areas are taken together by their totals, in steps of so many people."""
POINTS, SURE = 0.05, 0.95
"""The largest group's share is within 5 points; in 95 % of the areas."""


@dataclass(frozen=True)
class Layout:
    """Where the detail cells of every level lie, in the order of one plan.

    Attributes:
        state: the state.
        attributes: the order of the detail.
    """

    state: State
    attributes: Attributes

    @cached_property
    def support(self) -> Support:
        """Who may live where."""
        return self.state.support(self.attributes)

    @cached_property
    def truth(self) -> dict[int, Int64]:
        """True counts."""
        return self.state.detail(self.support, self.attributes)

    @cached_property
    def true_sums(self) -> dict[int, dict[str, Int64]]:
        """What each query truly adds up to, by level."""
        return {level: self.sums(level, table) for level, table in self.truth.items()}

    def check(self, counts: Mapping[int, Int64]) -> None:
        """Raise unless counts add up to the public total and keep all that is public.

        Raises:
            ValueError: a negative count, a person where nobody may be, a bound or a sum not kept.
        """
        here = self.support
        if counts[0].sum() != self.state.total:
            raise ValueError("the total is not the public one")
        for level, table in counts.items():
            row = np.repeat(np.arange(len(here.group[level])), np.diff(here.cell[level]))
            within = np.arange(len(table)) - here.cell[level][row]
            cell = here.offset[here.group[level][row]] + within
            rows = np.add.reduceat(table, here.cell[level][:-1])
            if table.min() < 0 or (rows < here.low[level]).any() or (rows > here.high[level]).any():
                raise ValueError(f"a bound is not kept at level {level}")
            if table[~self.attributes.allowed[cell]].any():
                raise ValueError(f"there is somebody in a cell that is 0 by rule at level {level}")
            if level > 0:
                sums = np.zeros_like(counts[level - 1])
                np.add.at(sums, here.cell[level - 1][here.parent[level][row]] + within, table)
                if (sums != counts[level - 1]).any():
                    raise ValueError(f"counts of level {level} do not add up to those above")

    def located(self, level: int, table: Int64) -> tuple[Int64, Int64, Int64]:
        """The nodes, detail cells and values of a table where it is not 0."""
        at = np.flatnonzero(table)
        row = np.searchsorted(self.support.cell[level], at, side="right") - 1
        kind = self.support.group[level][row]
        cell = self.support.offset[kind] + at - self.support.cell[level][row]
        return row_keys(self.support, level)[row] // len(KINDS), cell, table[at]

    def sums(self, level: int, table: Int64) -> dict[str, Int64]:
        """What each query adds up to: (nodes where somebody may live, cells of the query)."""
        node, cell, values = self.located(level, table)
        here = self.attributes
        labels = {
            "total": (1, np.zeros_like(here.kind)),
            "voting age": (1, here.age - 1),
            "hispanic": (1, here.origin - 1),
            "race": (len(ALONE) + 1, np.minimum(here.race, len(ALONE))),
            "group": (len(GROUPS), here.group),
            "kind": (len(KINDS), here.kind),
        }
        there = np.diff(self.support.start[level]) > 0
        found = {}
        for query, (size, label) in labels.items():
            keep = label[cell] >= 0
            key = node[keep] * size + label[cell][keep]
            sums = np.bincount(key, values[keep], minlength=size * len(there))
            found[query] = np.rint(sums).astype(np.int64).reshape(-1, size)[there]
        return found

    def distance(self, level: int, table: Int64) -> Int64:
        """The sum of a table's absolute values by node where somebody may live."""
        node, _, values = self.located(level, table)
        there = np.diff(self.support.start[level]) > 0
        return np.bincount(node, np.abs(values), minlength=len(there))[there].astype(np.int64)


@dataclass(slots=True)
class Errors:
    """What was released less the truth, over all areas where somebody may live.

    Attributes:
        means: for each level and query one mean absolute error a run; of `L1` the mean distance.
        bias: for each level one row a run: the mean error of groups' counts by true size.
        within: for block groups and blocks, for each run the total of each area, and whether the
            share of its largest group is within 5 points.
        seconds: of one run, the fastest, noise apart.
    """

    means: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    bias: dict[int, list[Float64]] = field(default_factory=dict)
    within: dict[int, list[tuple[Int64, Bool]]] = field(default_factory=dict)
    seconds: float = float("inf")

    def add(self, layout: Layout, counts: Mapping[int, Int64], seconds: float) -> None:
        """Add a run, once its counts are checked."""
        layout.check(counts)
        self.seconds = min(self.seconds, seconds)
        for level, table in counts.items():
            off = table - layout.truth[level]
            distance = float(layout.distance(level, off).mean())
            self.means.setdefault((level, "L1"), []).append(distance)
            errors, sums = layout.sums(level, off), layout.true_sums[level]
            for query, error in errors.items():
                self.means.setdefault((level, query), []).append(float(np.abs(error).mean()))
            self.bias.setdefault(level, []).append(mean_by_size(sums["group"], errors["group"]))
            if level in STEPS:
                good = largest_within(sums["group"], errors["group"])
                self.within.setdefault(level, []).append(good)

    def mean(self, level: int, query: str) -> float:
        """Mean absolute error, people."""
        return float(np.mean(self.means[level, query]))

    def error(self, level: int, query: str) -> float:
        """Monte Carlo standard error of `mean`; 0 of a single run."""
        runs = self.means[level, query]
        return float(np.std(runs, ddof=1) / len(runs) ** 0.5) if len(runs) > 1 else 0.0

    def mean_bias(self, level: int) -> Float64:
        """By size of the true count: the mean error of a group, people; NaN where there is none."""
        mean: Float64 = np.mean(self.bias[level], axis=0)
        return mean

    def by_size(self, level: int) -> dict[int, tuple[int, float]]:
        """By total, in steps: how many areas there are over all runs, and the share within."""
        totals, good = (np.concatenate(each) for each in zip(*self.within[level], strict=True))
        step = totals // STEPS[level] * STEPS[level]
        return {
            int(low): (int((step == low).sum()), float(good[step == low].mean()))
            for low in np.unique(step)
        }

    def sure_from(self, level: int) -> int:
        """The least step from which up every step reaches 95 %, people."""
        steps = self.by_size(level).items()
        unsure = [low + STEPS[level] for low, (_, share) in steps if share < SURE]
        return max(unsure, default=0)


def mean_by_size(true: Int64, error: Int64) -> Float64:
    """The mean error of all counts whose true count is of each size; NaN where there is none."""
    size = np.searchsorted(SIZES, true.ravel(), side="right") - 1
    members = np.bincount(size, minlength=len(SIZES))
    sums = np.bincount(size, error.ravel(), minlength=len(SIZES))
    return np.where(members > 0, sums / np.maximum(members, 1), np.nan)


def largest_within(true: Int64, error: Int64) -> tuple[Int64, Bool]:
    """The true totals of areas, and whether the share of the largest group is within 5 points."""
    kept = true.sum(axis=1) > 0
    true, shown = true[kept], (true + error)[kept]
    row, largest = np.arange(len(true)), true.argmax(axis=1)
    totals, given = true.sum(axis=1), shown.sum(axis=1)
    off = shown[row, largest] / np.maximum(given, 1) - true[row, largest] / totals
    return totals, np.abs(off) <= POINTS + 1e-12
