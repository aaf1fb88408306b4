"""Zhu, the census figures in the text: Arizona and Texas, New Mexico, and all states."""

from typing import Any

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Float64
from hedgerow.noise.cell_error import LaplaceError
from studies.ko.releasing import projected
from studies.page import Row, Study, markdown, mean_of, read
from studies.showing import PAPER, panels, save
from studies.zhu.projection_error import (
    GeometricNorm,
    LaplaceNorm,
    bias_bound,
    projected_variance,
)
from studies.zhu.skewness import bias_of_clipping, least_bias_of_clipping

RUNS = 80_000
SCALE = 10.0
NM_COUNTIES, NM_LEAST, NM_SCALE = 33, 348, 5.0
PRINTED_TOTAL, NM_HOUSEHOLDS = 7_289_112, 791_395
PART = (2_371_715 / 2_380_990, 8_887_839 / 8_922_933)  # Arizona, Texas: paper / census of 2010
TEXT = """Laplace noise on each county of a state, projected onto the state's public total.

## Arizona and Texas, λ = 10

The variance of a county is 2λ²(1 - 1/n): exactly the paper's. Over 80,000 runs ours and the paper's
differ by Monte Carlo error, which is 0.8 % of a variance of this shape (kurtosis near 6). That the
counties of one state are 6.7 % less precise than those of another is the paper's point about
fairness: only the number of siblings differs.

## New Mexico, λ = 5

The text gives 33 counties, a least count of 348 and a total of 7,289,112, and a bound of 0.29. With
that total Theorem 11 gives {printed:.3f}. **The total looks like a typo, and the bound correct.**
The paper's tables fit households: Arizona's 2,371,715 and Texas' 8,887,839 are {part_a:.3%} and
{part_t:.3%} of those of the census of 2010 (2,380,990 and 8,922,933, published figures that are not
among our tables). The same part of New York's 7,317,755, the next state in the alphabet, is the
printed total to within 0.001 %; that of New Mexico's 791,395 gives {total:,.0f}, and with it the
bound is {bound:.4f}.

The empirical bias of 0.06 is then not a bias either, but the size to expect of the largest of 33
means over 80,000 runs (those of Arizona; the text gives no number for New Mexico) without any bias:
their standard error is 0.025. The bound without the factor C' is {sharper:.1e} of a household.

## All states

Counties of 2010, λ = 5; the ten states (by FIPS code) with the largest bounds, people and not
households. If the smallest county has many hundreds of people, projection has no bias. For Texas
(Loving County has 82) both bounds are vacuous, as the sum of 254 errors is above 82; the bias of
clipping each county at 0, which needs one large error and not a large sum, is 2 · 10⁻⁷ of a person.

"""


def main() -> Study:
    """Draw the picture and write the page."""
    total = NM_HOUSEHOLDS * float(np.mean(PART))
    norm = LaplaceNorm(NM_COUNTIES, NM_SCALE)
    printed, bound = (bias_bound(norm, NM_LEAST, t) for t in (PRINTED_TOTAL, total))
    rng = np.random.default_rng(2022)
    text = TEXT.format(printed=printed, part_a=PART[0], part_t=PART[1], total=total, bound=bound,
                       sharper=norm.mean_outside(NM_LEAST))  # fmt: skip
    families = _families()
    heads = "state | counties | least | Theorem 11 | without C' | clipping | equal counties"
    text += markdown(heads, _worst(families), " |  | ,.0f | .3g")
    rows = _variances(rng) + _new_mexico(rng, families["35"], printed, bound)
    picture = _picture(families)
    return Study("Zhu, census figures", "states and their counties", text, rows, [picture])


def _variances(rng: Generator) -> list[Row]:
    """Arizona and Texas: theory and runs."""
    rows = []
    seen = []
    for name, counties, theory, runs in (
        ("Arizona", 15, 186.67, 186.88),
        ("Texas", 254, 199.21, 199.32),
    ):
        variance, error = _seen(counties, rng)
        both = float(np.hypot(error, runs * error / variance))
        rows.append(Row(f"{name}, {counties} counties: variance", theory,
                        projected_variance(2 * SCALE**2, counties)))  # fmt: skip
        rows.append(Row(f"{name}: variance over 80,000 runs", runs, variance, both))
        seen.append(variance)
    theory = projected_variance(200.0, 254) / projected_variance(200.0, 15)
    rounded = "printed as roughly 6 %"
    rows.append(Row("Texas over Arizona, percent more", 6.0, 100 * (theory - 1), reason=rounded))
    rows.append(Row("the same over 80,000 runs", 6.0, 100 * (seen[1] / seen[0] - 1), 1.2))
    return rows


def _seen(counties: int, rng: Generator) -> tuple[float, float]:
    """The variance of one county's error over the paper's number of runs, and its error."""
    errors = []
    for _ in range(20):
        noise = rng.laplace(scale=SCALE, size=(RUNS // 20, counties))
        errors.append(noise[:, 0] - noise.mean(axis=1))
    return mean_of(np.concatenate(errors) ** 2)


def _new_mexico(rng: Generator, counts: Float64, printed: float, bound: float) -> list[Row]:
    """Bound and empirical bias; the projection is that of real counties, none of which is cut."""
    start = np.array([0, NM_COUNTIES])
    mean = np.zeros(NM_COUNTIES)
    for _ in range(RUNS):
        noisy = counts + rng.laplace(scale=NM_SCALE, size=NM_COUNTIES)
        mean += projected(noisy, start, np.array([counts.sum()])) - counts
    mean /= RUNS
    each = np.sqrt(projected_variance(2 * NM_SCALE**2, NM_COUNTIES) / RUNS)
    null = np.abs(rng.normal(size=(20_000, NM_COUNTIES))).max(axis=1) * each
    geometric = bias_bound(GeometricNorm(NM_COUNTIES, NM_SCALE), NM_LEAST, PRINTED_TOTAL)
    slip = "the printed total fits New York's households, not New Mexico's"
    return [
        Row("New Mexico: Theorem 11 with New Mexico's total", 0.29, bound,
            reason="0.2961, cut off to two digits in print"),
        Row("New Mexico: Theorem 11 with the printed total", 0.29, printed, reason=slip),
        Row("the same, double-sided geometric noise", 0.29, geometric, reason=slip),
        Row("New Mexico: greatest mean error over 80,000 runs", 0.06,
            np.abs(mean).max(), null.std() * np.sqrt(2)),
        Row("New Mexico: the same if there is no bias at all, expected", 0.06,
            null.mean(), null.std()),
    ]  # fmt: skip


def _families() -> dict[str, Float64]:
    """The counties of each state."""
    counts = read("census_us_block_group/bg_2010.parquet")
    counties = counts.group_by("state", "county").agg(pl.col("population").sum())
    counties = counties.sort("state", "county")
    return {
        str(state): family["population"].to_numpy().astype(np.float64)
        for (state,), family in counties.group_by("state", maintain_order=True)
    }


def _worst(families: dict[str, Float64]) -> list[tuple[Any, ...]]:
    """The states with the greatest bounds."""
    found = []
    for state, people in families.items():
        norm = LaplaceNorm(len(people), NM_SCALE)
        total = int(people.sum())
        bounds = bias_bound(norm, people.min(), total), norm.mean_outside(people.min())
        clipped = bias_of_clipping(LaplaceError(), 1 / NM_SCALE, people)
        even = least_bias_of_clipping(LaplaceError(), 1 / NM_SCALE, total, len(people))
        found.append((state, len(people), people.min(), *bounds, clipped, even))
    return sorted(found, key=lambda line: -line[3])[:10]


def _picture(families: dict[str, Float64]) -> str:
    """The variance of a county by the number of counties of its state."""
    figure, (axes,) = panels()
    sizes = np.array([len(people) for people in families.values() if len(people) > 1])
    axes.plot(sizes, [projected_variance(200.0, int(n)) for n in sizes], "o", color="#0072B2",
              markersize=4, label="every state (ours)")  # fmt: skip
    axes.plot([15, 254], [186.67, 199.21], label="paper: Arizona, Texas", **PAPER)
    axes.axhline(200, color="#999999", linestyle="--", linewidth=1)
    axes.set(xscale="log", xlabel="counties of the state", ylabel="variance of a county, λ = 10")
    return save(figure, "zhu-census")
