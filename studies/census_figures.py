"""Errors of a redistricting file by level and query, and what the Bureau's own studies look at."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binned_statistic

from hedgerow.arrays import Bool, Float64, Int64
from studies.redistricting import LEVELS, Table

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

    means: dict[tuple[int, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    bias: dict[int, list[Float64]] = field(default_factory=lambda: defaultdict(list))
    within: dict[int, list[tuple[Int64, Bool]]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = float("inf")

    def add(self, true: Table, counts: Mapping[int, Int64], seconds: float) -> None:
        """Add a run, once its counts are checked."""
        true.check(counts)
        self.seconds = min(self.seconds, seconds)
        for level, table in counts.items():
            off = table - true.truth[level]
            distance = true.sums(level, np.abs(off))["total"].mean()
            self.means[(level, "L1")].append(distance)
            errors = true.sums(level, off)
            for query, error in errors.items():
                self.means[(level, query)].append(np.abs(error).mean())
            groups = true.true_sums[level]["group"], errors["group"]
            self.bias[level].append(mean_by_size(*groups))
            if level in STEPS:
                self.within[level].append(largest_within(*groups))

    def figure(self, level: int, query: str) -> tuple[float, float]:
        """Mean absolute error, people, and its Monte Carlo standard error."""
        runs = self.means[level, query]
        return float(np.mean(runs)), float(np.std(runs, ddof=1) / len(runs) ** 0.5)

    def mean_bias(self, level: int) -> Float64:
        """By size of the true count: the mean error of a group, people; NaN where there is none."""
        return np.asarray(np.mean(self.bias[level], axis=0))

    def by_size(self, level: int) -> dict[int, float]:
        """By total, in steps: the share of areas within over all runs."""
        totals, good = (np.concatenate(each) for each in zip(*self.within[level], strict=True))
        step = totals // STEPS[level] * STEPS[level]
        return {int(low): good[step == low].mean() for low in np.unique(step)}

    def sure_from(self, level: int) -> int:
        """The least step from which up every step reaches 95 %, people."""
        steps = self.by_size(level).items()
        unsure = [low + STEPS[level] for low, share in steps if share < SURE]
        return max(unsure, default=0)


def mean_by_size(true: Int64, error: Int64) -> Float64:
    """The mean error of all counts whose true count is of each size; NaN where there is none."""
    found = binned_statistic(true.ravel(), error.ravel(), bins=[*SIZES, np.inf])
    return np.asarray(found.statistic)


def largest_within(true: Int64, error: Int64) -> tuple[Int64, Bool]:
    """The true totals of areas, and whether the share of the largest group is within 5 points."""
    kept = true.sum(axis=1) > 0
    true, shown = true[kept], (true + error)[kept]
    row, largest = np.arange(len(true)), true.argmax(axis=1)
    totals, given = true.sum(axis=1), shown.sum(axis=1)
    off = shown[row, largest] / np.maximum(given, 1) - true[row, largest] / totals
    return totals, np.abs(off) <= POINTS + 1e-12
