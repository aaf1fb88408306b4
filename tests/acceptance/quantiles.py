"""Quantiles by area: errors beside methods without a hierarchy, coverage and widths of intervals.

400 areas of 100 to 4,000 made-up incomes in 256 bins, ρ = 1, one record more or less; one release
measures all medians, quantiles and counts at once, by a chain that ends with the bins, or by a cube
of all levels. ``python -m tests.acceptance.quantiles [releases]`` prints

1. the error of the median, beside a histogram of each area alone, cut at 0 or left as it is;
2. the error of k quantiles of each area, beside k exponential mechanisms an area at the same price,
   which may choose among the edges of bins sixteen times as fine;
3. how often 95 % intervals hold the true quantiles, by size of area;
4. how wide they are, beside who knows the density there: p n ± z standard errors of the form that
   intervals rest on, as wide as that is by the density, and on to the next edges.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import norm

import hedgerow as hr
from hedgerow.distribution.bins import coded_axis
from hedgerow.evaluate.area_quantiles import cumulative, values_at
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory

AREAS, BINS, HIGH = 400, 256, 200_000
LEAST, MOST = 100, 4_000
FINE = 16
"""Parts of a bin, as fine as anything is known."""
BUDGET, NEIGHBOURS = hr.Rho(1), hr.AddRemove()
MEDIAN = hr.Quantiles(["1/2"])
SIZES = (LEAST, 250, 1_000, MOST)


@dataclass(frozen=True)
class Incomes:
    """Made-up incomes: of each area log-normal, cut at the upper bound.

    Attributes:
        sizes: int64 (areas), records: evenly apart in proportion.
        medians, spreads: float64 (areas): of the laws.
        cells: int64 (areas, fine bins), records.
    """

    sizes: np.ndarray
    medians: np.ndarray
    spreads: np.ndarray
    cells: np.ndarray

    @classmethod
    def drawn(cls, areas=AREAS, seed=1):
        """Of a seed."""
        rng = np.random.default_rng(seed)
        sizes = np.rint(np.geomspace(LEAST, MOST, areas)).astype(np.int64)
        medians = np.exp(rng.normal(np.log(45_000), 0.35, areas))
        spreads = rng.uniform(0.5, 0.8, areas)
        fine = BINS * FINE
        cells = np.zeros((areas, fine), dtype=np.int64)
        for area, n in enumerate(sizes):
            values = rng.lognormal(np.log(medians[area]), spreads[area], n)
            bins = np.minimum(values / HIGH * fine, fine - 1).astype(np.int64)
            cells[area] = np.bincount(bins, minlength=fine)
        return cls(sizes, medians, spreads, cells)

    def counts(self, tree):
        """The table over a tree whose last axis has some of the bins or all."""
        bins = tree.axes[-1].leaves
        cells = self.cells.reshape(len(self.sizes), bins, -1).sum(axis=2)
        codes = tuple(code.ravel().astype(np.int32) for code in np.indices(cells.shape))
        return hr.Counts.from_leaves(tree, codes, cells.ravel())

    def tree(self, factors):
        """Areas, and a tree of bins."""
        names = pl.DataFrame({"tract": [f"{area:04d}" for area in range(len(self.sizes))]})
        place = hr.Axis.from_frame("place", names, levels=["tract"])
        ranges = hr.Ranges.equal_width("income", 0, HIGH, int(np.prod(factors)))
        return hr.Tree([place, coded_axis(ranges, factors)])

    def true(self, rank):
        """The true quantiles: float64 (areas)."""
        return values_at(cumulative(self.cells), self.edges, float(rank))

    def off(self, values, rank):
        """By how many records an area has more or fewer below some values than it should."""
        below = cumulative(self.cells)
        there = [np.interp(x, self.edges, own) for x, own in zip(values, below, strict=True)]
        return np.abs(there - float(rank) * self.sizes)

    def density(self, rank):
        """Records a unit of income at the quantile of each area's law."""
        z = norm.ppf(float(rank))
        value = self.medians * np.exp(self.spreads * z)
        return self.sizes * norm.pdf(z) / (self.spreads * value)

    @property
    def edges(self):
        """Of the fine bins."""
        return np.linspace(0, HIGH, BINS * FINE + 1)


def plans(incomes, factors=(2,) * 8):
    """A chain and a cube."""
    tree = incomes.tree(factors)
    return {
        name: hr.make_plan(tree, budget=BUDGET, neighbours=NEIGHBOURS, measure=hr.All(),
                           workload=workload)
        for name, workload in {"chain": hr.Chain(), "cube": hr.Cube()}.items()
    }  # fmt: skip


def released(incomes, plan, seed):
    """A release under a seed."""
    counts = incomes.counts(plan.tree)
    return in_memory(counts, plan, estimator=plan.design.usual, bits=seeded_bits(seed))
