"""Quantiles by area: errors beside methods without a hierarchy, coverage and widths of intervals.

400 areas of 100 to 4,000 made-up incomes in 256 bins, ρ = 1, one record more or less; one release
measures all medians, quantiles and counts at once, by a chain that ends with the bins, by a cube of
all levels, or by running sums of each area's bins.

``python -m tests.acceptance.quantiles [releases]`` prints

1. the error of the median, beside a histogram of each area alone, cut at 0 or left as it is;
2. the error of k quantiles of each area, beside k exponential mechanisms an area at the same price,
   which choose among the edges of bins sixteen times as fine;
3. how often 95 % intervals hold the true quantiles, by size of area, and how wide they are beside
   those of who knows the density: ± 1.96 standard errors of the form that intervals rest on, at the
   true quantile, by the true density, and on to the next edges.

Monte Carlo errors are over releases.
"""

import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import norm

import hedgerow as hr
from hedgerow.evaluate.area_quantiles import HistogramsAlone, QuantilesAlone, cumulative, values_at
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.distribution.places import Distributions
from hedgerow.release.execution import in_memory
from tests.acceptance.coverage import share

AREAS, BINS, HIGH = 400, 256, 200_000
LEAST, MOST = 100, 4_000
FINE = 16
"""Parts of a bin, as fine as anything is known."""
BUDGET, NEIGHBOURS = hr.Rho(1), hr.AddRemove()
MEDIAN = hr.Quantiles(["1/2"])
SIZES = (LEAST, 250, 1_000, MOST)
RANKS = (0.1, 0.25, 0.5, 0.75, 0.9)
WORKLOADS = {
    "chain": ((4, 4, 4, 4), {"workload": hr.Chain(), "measure": hr.All()}),
    "cube": ((4, 4, 4, 4), {"workload": hr.Cube(), "measure": hr.All()}),
    "running sums": ((BINS,), {"workload": hr.Chain(), "measure": hr.RunningSums()}),
}
"""How bins are refined, and the parts of a plan."""
EXPONENTIAL = "exponential mechanism"


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

    def tree(self, factors):
        """Areas, and a tree of bins, all of them or some side by side."""
        names = pl.DataFrame({"tract": [f"{area:04d}" for area in range(len(self.sizes))]})
        place = hr.Axis.from_frame("place", names, levels=["tract"])
        ranges = hr.Ranges.equal_width("income", 0, HIGH, int(np.prod(factors)))
        return hr.Tree([place, hr.numeric_axis(ranges, factors)])

    def counts(self, tree):
        """The table over such a tree."""
        cells = self.cells.reshape(len(self.sizes), tree.axes[-1].leaves, -1).sum(axis=2)
        codes = tuple(code.ravel().astype(np.int32) for code in np.indices(cells.shape))
        return hr.Counts.from_leaves(tree, codes, cells.ravel())

    @property
    def edges(self):
        """Of the fine bins."""
        return np.linspace(0, HIGH, BINS * FINE + 1)

    def true(self, rank):
        """The true quantiles, straight within fine bins: float64 (areas)."""
        return values_at(cumulative(self.cells), self.edges, float(rank))

    def off(self, values, rank):
        """By how many records an area has too many or too few below its value."""
        each = zip(values, cumulative(self.cells), strict=True)
        below = [np.interp(value, self.edges, own) for value, own in each]
        return np.abs(below - float(rank) * self.sizes)

    def bin_of(self, rank):
        """Where the fine bin of the ⌈qn⌉-th smallest income begins and ends: two (areas)."""
        below = cumulative(self.cells)[:, 1:]
        at = (below < np.ceil(rank * self.sizes - 1e-9)[:, None]).sum(axis=1)
        return self.edges[at], self.edges[at + 1]

    def law(self, rank):
        """The quantile of each area's law."""
        return self.medians * np.exp(self.spreads * norm.ppf(float(rank)))

    def density(self, rank):
        """Records a unit of income at the quantile of each area's law."""
        z = norm.ppf(float(rank))
        return self.sizes * norm.pdf(z) / (self.spreads * self.law(rank))

    def groups(self):
        """By size which areas have it: bool (areas)."""
        found = {
            f"{first:,} to {last:,}": (first <= self.sizes) & (self.sizes <= last)
            for first, last in pairwise(SIZES)
        }
        return found | {"all": np.ones(len(self.sizes), dtype=bool)}


class Told:
    """What releases under seeds tell of incomes by area.

    Variances are public and the same for each release, so those of the first are kept for all:
    `test_acceptance` compares them with another one's.
    """

    def __init__(self, incomes, name, releases):
        factors, parts = WORKLOADS[name]
        tree, self.releases, self.known = incomes.tree(factors), releases, {}
        self.plan = hr.make_plan(tree, budget=BUDGET, neighbours=NEIGHBOURS, **parts)
        self.counts = incomes.counts(tree)

    def of(self, seed):
        """The distributions of one release."""
        usual, bits = self.plan.design.usual, seeded_bits(seed)
        content = in_memory(self.counts, self.plan, estimator=usual, bits=bits).content
        told = Distributions.of(content, "income", {"place": "tract"})
        vars(told).update(self.known)
        return told

    def __iter__(self):
        for seed in range(self.releases):
            told = self.of(seed)
            yield told
            self.known = {key: vars(told)[key] for key in ("_cuts",) if key in vars(told)}


# --- errors beside other methods ----------------------------------------------------------------


def hedgerow(incomes, name, quantiles, releases):
    """Values of each release: (releases, areas, ranks)."""
    ranks, sure = [float(rank) for rank in quantiles.ranks], hr.Confidence()
    values = [
        [told.cumulative.quantiles(rank, sure)[0] for rank in ranks]
        for told in Told(incomes, name, releases)
    ]
    return np.moveaxis(np.array(values), 1, 2)


def alone(incomes, method, releases, bins=BINS):
    """Values of a method without a hierarchy: (releases, areas, ranks)."""
    counts = incomes.counts(incomes.tree((bins,)))
    return np.stack([method.values(counts, seeded_bits(seed)) for seed in range(releases)])


class Errors(NamedTuple):
    """How far values are from the true ones: (releases, areas, ranks) each.

    Attributes:
        income: in units of income.
        records: how many records too many or too few lie below.
    """

    income: np.ndarray
    records: np.ndarray

    @classmethod
    def of(cls, incomes, quantiles, values):
        """Those of each release."""
        parts = [(values[..., k], rank) for k, rank in enumerate(quantiles.ranks)]
        income = [np.abs(own - incomes.true(rank)) for own, rank in parts]
        records = [[incomes.off(each, rank) for each in own] for own, rank in parts]
        return cls(*(np.moveaxis(np.array(each), 0, 2) for each in (income, records)))

    def medians(self, areas=slice(None)):
        """Median absolute errors over releases, some of the areas, and all ranks."""
        return tuple(float(np.nanmedian(each[:, areas])) for each in self)


def of_the_median(incomes, releases):
    """By method the errors of medians."""
    values = {name: hedgerow(incomes, name, MEDIAN, releases) for name in WORKLOADS}
    for words, clipped in {"cut at 0": True, "as it is": False}.items():
        histograms = HistogramsAlone(MEDIAN, BUDGET, NEIGHBOURS, clipped=clipped)
        values[f"histogram alone, {words}"] = alone(incomes, histograms, releases)
    return {name: Errors.of(incomes, MEDIAN, each) for name, each in values.items()}


def crossing(incomes, releases, many=(1, 3, 9, 19, 99)):
    """By number of quantiles the errors of exponential mechanisms, and of each workload."""
    found = {}
    for k in many:
        quantiles = hr.Quantiles([f"{i}/{k + 1}" for i in range(1, k + 1)])
        mechanism = QuantilesAlone(quantiles, BUDGET, NEIGHBOURS)
        values = {EXPONENTIAL: alone(incomes, mechanism, releases, BINS * FINE)}
        values |= {name: hedgerow(incomes, name, quantiles, releases) for name in WORKLOADS}
        found[k] = {name: Errors.of(incomes, quantiles, each) for name, each in values.items()}
    return found


# --- intervals ----------------------------------------------------------------------------------


class Held(NamedTuple):
    """Of 95 % intervals of one rank in areas of one size, over all releases.

    Attributes:
        coverage: how often they hold the true quantile, and the Monte Carlo error of that.
        width: their mean width, in units of income.
        oracle: that of who knows the density.
    """

    coverage: tuple[float, float]
    width: float
    oracle: float

    @property
    def ratio(self):
        """How many times as wide as the oracle's they are."""
        return self.width / self.oracle

    @property
    def is_low(self):
        """Whether they hold less often than they say, by more than three Monte Carlo errors."""
        return self.coverage[0] < 0.95 - 3 * self.coverage[1]


def intervals(incomes, name, releases, ranks=RANKS, confidence=None):
    """By rank and size of area what intervals hold."""
    sure, hits, widths = confidence or hr.Confidence(), [], []
    for told in Told(incomes, name, releases):
        each = [(*told.cumulative.quantiles(rank, sure)[1:], *incomes.bin_of(rank))
                for rank in ranks]  # fmt: skip
        hits.append([(low <= first) & (last <= high) for low, high, first, last in each])
        widths.append([high - low for low, high, *_ in each])
    hits, widths, found = np.array(hits), np.array(widths), {}
    for k, rank in enumerate(ranks):
        cumulative = told.cumulative
        known = oracle(incomes, rank, cumulative.error.excess(rank), cumulative.edges)
        for words, areas in incomes.groups().items():
            held = hits[:, k, areas].sum(axis=1), np.full(releases, areas.sum())
            wide = float(widths[:, k, areas].mean())
            found[rank, words] = Held(share(*held), wide, float(known[areas].mean()))
    return found


def oracle(incomes, rank, variance, edges):
    """Widths of ± 1.96 standard errors at the true quantile by the true density, to the next edges.

    Args:
        incomes: whose laws are known.
        rank: of the quantile, q.
        variance: (areas, edges): of ``y - q n`` at each edge.
        edges: of the bins.
    """
    value, step = np.minimum(incomes.law(rank), HIGH), edges[1] - edges[0]
    at = [np.interp(x, edges, own) for x, own in zip(value, variance, strict=True)]
    reach = norm.ppf(0.975) * np.sqrt(at) / incomes.density(rank)
    low, high = np.maximum(value - reach, 0), np.minimum(value + reach, HIGH)
    return step * (np.ceil(high / step) - np.floor(low / step))


def main(releases=200):
    """Print all tables; errors are those of twenty releases, of many quantiles of three."""
    incomes, write = Incomes.drawn(), sys.stdout.write
    groups = incomes.groups()

    def line(name, cells):
        write(f"| {name} | {' | '.join(cells)} |\n")
        sys.stdout.flush()

    def head(words, cells):
        line(words, cells)
        write(f"|---|{'---|' * len(cells)}\n")

    write("Median absolute error of the median: of income (of records below)\n\n")
    head("method", groups)
    for name, each in of_the_median(incomes, 20).items():
        line(name, ["{:,.0f} ({:.2f})".format(*each.medians(own)) for own in groups.values()])
    write("\nThe same of k quantiles of all areas\n\n")
    head("k", [EXPONENTIAL, *WORKLOADS])
    for k, by_name in crossing(incomes, 3).items():
        line(k, ["{:,.0f} ({:.2f})".format(*each.medians()) for each in by_name.values()])
    write(f"\n95 % intervals in {releases} releases: coverage in percent; width by the oracle's\n")
    low = 0
    for name in WORKLOADS:
        write("\n")
        head(f"{name}: rank", groups)
        found = intervals(incomes, name, int(releases))
        for rank in RANKS:
            own = [found[rank, words] for words in groups]
            told = [(*(100 * each for each in held.coverage), held.ratio) for held in own]
            line(rank, ["{:.2f} ± {:.2f}; {:.2f}".format(*each) for each in told])
        low += sum(held.is_low for held in found.values())
    write(f"\n{low} of them hold less often than they say.\n")
    return int(low > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
