"""The blocks of Washington 2010, which stand in for Pennsylvania's, and the error of noise on them.

The paper's counts are those of Pennsylvania in the IPUMS NHGIS demonstration data, which need an
account. These are the census' own counts of another state: total population and eight groups.
"""

from fractions import Fraction

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.forecast import simulated_releases
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.cell_error import DiscreteGaussianError
from hedgerow.noise.loss import precision_of
from hedgerow.plan.cuboids import Measure
from studies.page import read
from studies.releases import plan_of
from studies.su.census import LEVEL
from studies.tables import BLOCKS, census_of

LEVELS = ("state", "county", "tract", "block_group", "block")
QUERIES = {
    "pop": "Total",
    "pop_white": "White",
    "pop_hisp": "Hispanic",
    "pop_asian": "Asian",
    "pop_two": "Two or more races",
    "pop_black": "Black",
    "pop_aian": "AI/AN",
    "pop_nhpi": "NH/PI",
    "pop_other": "Other race",
}
"""Columns and names; every group but the Hispanic is of people who are not."""
NOISE = {
    "state": LEVEL["State"],
    "county": LEVEL["County"],
    "tract": LEVEL["Tract subset"],
    "block_group": LEVEL["Optimized block group"],
    "block": LEVEL["Block"],
}
"""Which level of the paper's Table 1 each level's noise is of."""


def counts_of(*columns: str) -> pl.DataFrame:
    """These counts of all blocks."""
    return read(BLOCKS, [*LEVELS, *columns])


def queries(level: str) -> Int64:
    """The counts of the nine queries at all areas of a level: (areas, 9)."""
    table = counts_of(*QUERIES)
    summed = table.group_by(level, maintain_order=True).agg(pl.col(list(QUERIES)).sum())
    return np.asarray(summed.select(list(QUERIES)).cast(pl.Int64).to_numpy())


def expected(noise: hr.DiscreteGaussian, counts: Int64) -> tuple[float, float]:
    """The mean over counts of E|e|² and E|e|, e = max(0, N + X) - N; exact.

    With X⁺ and X⁻ the parts of the symmetric noise, |e| = X⁺ + min(X⁻, N), e = X⁺ - min(X⁻, N):
    E|e| = 2 E X⁺ - E e = E|X| - bias.
    """
    values, times = np.unique(counts, return_counts=True)
    cell = DiscreteGaussianError()
    precision = float(precision_of(noise))
    real = values.astype(np.float64)
    squared, bias = (
        float(np.average(moment(precision, real), weights=times))
        for moment in (cell.mse, cell.bias)
    )
    return squared, absolute(noise) - bias


def absolute(noise: hr.DiscreteGaussian) -> float:
    """E|X|, in records."""
    x = np.arange(1, 40 * (int(noise.sigma2) + 1))
    weights = np.exp(-(x**2) / (2 * float(noise.sigma2)))
    return float(2 * (x * weights).sum() / (1 + 2 * weights.sum()))


def drawn(noise: hr.DiscreteGaussian, counts: Int64, seed: int) -> Float64:
    """The errors of one simulated run: X and max(0, N + X) - N of each count: (2, cells)."""
    found = np.empty(counts.size, dtype=np.int64)
    noise.draw(seeded_bits(seed).stream(), 0, found)
    clipped = np.maximum(counts.ravel() + found, 0) - counts.ravel()
    return np.array([found, clipped], dtype=np.float64)


def released(
    column: str,
    factor: Fraction,
    measure: Measure,
    estimator: Estimator,
    *,
    runs: int,
) -> pl.DataFrame:
    """The errors by depth of simulated releases of one query over all five levels.

    Each level is measured once, with ``factor`` of the variance of `NOISE`.
    """
    counts = census_of(counts_of(column), LEVELS[1:], column)
    costs = [1 / (2 * NOISE[name].sigma2 * factor) for name in LEVELS]
    shares = hr.Shares([cost / sum(costs) for cost in costs])
    plan = plan_of(counts.tree, hr.Rho(sum(costs)), measure, shares)
    return simulated_releases(plan, hr.Prior(counts, public=True), estimator, runs=runs, seed=6)[0]
