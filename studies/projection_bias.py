"""What projection does to error: the figures of Zhu et al. (2022), and the same on real counties.

Prints the paper's figures and ours side by side. Reads ``../shared/data`` beside the repository (or
the folder named as the first argument); without it only the paper's own figures are printed.
"""

import sys
from pathlib import Path

import numpy as np
import polars as pl

from hedgerow.estimate.error import LaplaceError
from hedgerow.estimate.projection_error import (
    GeometricNorm,
    LaplaceNorm,
    LaplaceProjection,
    bias_bound,
    projected_variance,
    sharper_bias_bound,
)
from hedgerow.estimate.skewness import bias_of_clipping, least_bias_of_clipping

RUNS = 80_000
BLOCK_GROUPS = "census_us_block_group/bg_2010.parquet"
ROOT = Path(__file__).parents[1]


def simulated_variance(counties: int, scale: float) -> float:
    """The variance of one county's error over as many runs as in the paper; seed 2022."""
    rng = np.random.default_rng(2022)
    total = 0.0
    for _ in range(20):
        noise = rng.laplace(scale=scale, size=(RUNS // 20, counties))
        total += float(((noise[:, 0] - noise.mean(axis=1)) ** 2).sum())
    return total / RUNS


def paper() -> None:
    """Variances, distances and the bound of the paper's text."""
    print("variance of a county, lambda = 10      theory   paper   80,000 runs   paper")
    for name, counties, theory, runs in (
        ("Arizona", 15, 186.67, 186.88),
        ("Texas", 254, 199.21, 199.32),
    ):
        ours, seen = projected_variance(200.0, counties), simulated_variance(counties, 10.0)
        print(
            f"  {name:8} {counties:4} counties {ours:20.2f} {theory:8.2f} {seen:12.2f} {runs:8.2f}"
        )
    ratio = projected_variance(200.0, 254) / projected_variance(200.0, 15)
    print(f"  Texas to Arizona: {ratio - 1:.2%} (paper: roughly 6%)")
    print("\nWasserstein distance of the projected to the Laplace error, lambda = 1 (Figure 5)")
    for siblings in (2, 5, 15, 33, 67, 254):
        print(f"  n = {siblings:3}: {LaplaceProjection(siblings, 1.0).distance():.4f}")
    laplace, geometric = LaplaceNorm(33, 5.0), GeometricNorm(33, 5.0)
    print("\nbias bound, New Mexico: 33 counties, least 348, lambda = 5, total 7,289,112")
    print(
        f"  Theorem 11, Laplace    {bias_bound(laplace, 348, 7_289_112):.3f} (paper's text: 0.29)"
    )
    print(f"  Theorem 11, geometric  {bias_bound(geometric, 348, 7_289_112):.3f}")
    print(f"  without C', Laplace    {sharper_bias_bound(laplace, 348):.6f}")
    print(f"  without C', geometric  {sharper_bias_bound(geometric, 348):.6f}")


def real_states(data: Path) -> None:
    """Bound and clipping bias of each state's counties, 2010; ten states by their bound."""
    counts = pl.read_parquet(data / BLOCK_GROUPS)
    counties = (
        counts.group_by("state", "county").agg(pl.col("population").sum()).sort("state", "county")
    )
    print(
        "\nreal counties 2010, lambda = 5: Theorem 11, without C', clipping bias, at equal counts"
    )
    rows = []
    for (state,), family in counties.group_by("state", maintain_order=True):
        pop = family["population"].to_numpy().astype(np.float64)
        norm, total = LaplaceNorm(len(pop), 5.0), int(pop.sum())
        bounds = bias_bound(norm, pop.min(), total), sharper_bias_bound(norm, pop.min())
        clipped = bias_of_clipping(LaplaceError(), 0.2, pop)
        even = least_bias_of_clipping(LaplaceError(), 0.2, total, len(pop))
        rows.append((state, len(pop), int(pop.min()), *bounds, clipped, even))
    for state, n, least, bound, sharper, clipped, even in sorted(rows, key=lambda r: -r[3])[:10]:
        print(
            f"  {state:3} {n:4} counties, least {least:6,}: {bound:11.3g} {sharper:11.3g} "
            f"{clipped:11.3g} {even:9.2g}"
        )


def main() -> None:
    """All figures."""
    paper()
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "data"
    if (data / BLOCK_GROUPS).exists():
        real_states(data)


if __name__ == "__main__":
    main()
