"""Zhu, Figures 1 and 4: the bias of projecting with non-negativity, and how it goes with size."""

import numpy as np
import polars as pl

from hedgerow.arrays import Float64
from hedgerow.estimate.families.sparse import Sparse
from studies.ko.releasing import projected
from studies.page import DATA, Row, Study, markdown, read
from studies.showing import OPTIMUM, UNIFORM, panels, save
from studies.zhu.projection_error import GeometricNorm, bias_bound, sharper_bias_bound

TABLE = DATA / "census_us_block" / "wa_2010.parquet"
GROUP = "pop_nhpi"
SCALE = 2.0  # double-sided geometric noise, ε = 0.5
SHIFTS = (0, 2, 5, 10, 20, 50, 150)
RUNS = 20_000
TEXT = """Counties of one state get double-sided geometric noise (ε = 0.5) and are projected onto
the state's public total and onto counts that are not negative, program (P₊). The paper draws two
counties of an unnamed table over 100 runs; here they are the {cells} counties of Washington and
their people of Hawaiian and Pacific origin in 2010, {total:,} in all: {first} in the smallest
county, {second} in the next. Figure 4 repeats it with a number of people added to each county.
{runs:,} runs.

Reproduced: the noise has no bias, but (P₊) has: small counties come out too large, at the cost of
the others. It vanishes as the smallest count grows: with 10 people more it is below its Monte Carlo
error. The bound of Theorem 11 shows this late. It needs a smallest count above ‖η‖₁, the sum of all
{cells} errors, which is {norm:.0f} on average: with 50 added it is still {bound:.3g} people, with
150 it is {after:.2g}. Without the factor C' (our bound) it is smaller, by the ratio of the state's
total to its noise.

"""


def main() -> Study:
    """Draw the figure and write the page."""
    table = (
        read(TABLE, "the census table is not there")
        .group_by("county")
        .agg(pl.col(GROUP).sum())
        .sort(GROUP, "county")
    )
    counts = table[GROUP].to_numpy().astype(np.float64)
    rng = np.random.default_rng(14)
    found = {shift: _residuals(counts + shift, rng) for shift in SHIFTS}
    norm = GeometricNorm(len(counts), SCALE)
    lines, means = [], {}
    for shift, (before, after) in found.items():
        shifted = counts + shift
        least, total = float(shifted.min()), float(shifted.sum())
        bias, error = after.mean(axis=0), after.std(axis=0) / np.sqrt(RUNS)
        means[shift] = bias[0], error[0]
        lines.append([shift, f"{least:.0f}", f"{before[:, 0].mean():.3f}",
                      f"{bias[0]:.4f} ± {error[0]:.2g}", f"{bias[1]:.4f}", f"{bias[-1]:.4f}",
                      f"{bias_bound(norm, least, total):.3g}",
                      f"{sharper_bias_bound(norm, least):.3g}"])  # fmt: skip
    bound, last = (bias_bound(norm, float(counts.min()) + shift, float((counts + shift).sum()))
                   for shift in (50, 150))  # fmt: skip
    text = TEXT.format(cells=len(counts), total=int(counts.sum()), first=int(counts[0]),
                       second=int(counts[1]), runs=RUNS, bound=bound,
                       after=last, norm=norm.mean_outside(0))  # fmt: skip
    heads = ["added", "least", "noise alone, least county", "(P₊), least county",
             "(P₊), next county", "(P₊), greatest county", "Theorem 11", "without C'"]  # fmt: skip
    text += markdown(heads, lines)
    return Study("Zhu, Figures 1 and 4", "the bias of non-negativity", text,
                  _rows(counts, found, means), (_picture(found),))  # fmt: skip


def _rows(
    counts: Float64,
    found: dict[int, tuple[Float64, Float64]],
    means: dict[int, tuple[float, float]],
) -> tuple[Row, ...]:
    before, after = found[0]
    shape = "histogram, no number printed, of a table that is not named; people of one origin here"
    falls = float(np.all(np.diff([means[shift][0] for shift in SHIFTS[:4]]) < 0))
    biased, error = means[0]
    last, last_error = means[SHIFTS[-2]]
    total_error = float(after.sum(axis=1).mean())
    return (
        Row("bias of the noise, least county", 0.0, float(before[:, 0].mean()),
            float(before[:, 0].std() / np.sqrt(RUNS))),
        Row("bias after (P₊), least county (people)", None, biased, error, shape),
        Row("the same with 50 people more in each county", 0.0, last, last_error),
        Row("bias falls as counties grow (1: yes)", 1.0, falls),
        Row("sum of all counties' errors", 0.0, round(total_error, 9)),
        Row("ours: bias of whole counts (Sparse, penalty 0.5), least county", None,
            _of_sparse(counts), float(error), "not in the paper"),
    )  # fmt: skip


def _residuals(counts: Float64, rng: np.random.Generator) -> tuple[Float64, Float64]:
    """Errors of the noise and after (P₊): two float64 (runs, cells)."""
    noise = _geometric(rng, (RUNS, len(counts)))
    start = np.arange(RUNS + 1, dtype=np.int64) * len(counts)
    totals = np.full(RUNS, counts.sum())
    shown = projected((counts + noise).ravel(), start, totals).reshape(noise.shape)
    return noise, shown - counts


def _of_sparse(counts: Float64) -> float:
    """The mean error of the least county under Hedgerow's sparse estimator."""
    rng = np.random.default_rng(15)
    noisy = (counts + _geometric(rng, (RUNS, len(counts)))).astype(np.int64)
    start = np.arange(RUNS + 1, dtype=np.int64) * len(counts)
    totals = np.full(RUNS, int(counts.sum()))
    variance = 1 / (2 * np.sinh(1 / SCALE / 2) ** 2)
    made = Sparse(penalty=0.5).project(noisy.ravel(), start, totals, variance)
    return float((made.reshape(noisy.shape)[:, 0] - counts[0]).mean())


def _geometric(rng: np.random.Generator, shape: tuple[int, int]) -> Float64:
    """Double-sided geometric noise: a difference of two geometric draws."""
    chance = -np.expm1(-1 / SCALE)
    draws: Float64 = (rng.geometric(chance, shape) - rng.geometric(chance, shape)).astype(float)
    return draws


def _picture(found: dict[int, tuple[Float64, Float64]]) -> str:
    figure, axes = panels(3, 2)
    bins = np.arange(-10.5, 11.5).tolist()
    shown = [(0, 0), (0, 1), (2, 0), (5, 0), (10, 0), (20, 0)]
    for panel, (shift, cell) in zip(axes, shown, strict=True):
        before, after = found[shift]
        panel.hist(before[:, cell], bins, density=True, color=UNIFORM, alpha=0.5,
                   label="noise (ours)")  # fmt: skip
        panel.hist(after[:, cell], bins, density=True, color=OPTIMUM, alpha=0.5,
                   label="after (P₊) (ours)")  # fmt: skip
        panel.axvline(after[:, cell].mean(), color="black", linestyle="--", linewidth=1)
        which = "least county" if cell == 0 else "next county"
        panel.set_title(f"Fig. 1: {which}" if shift == 0 else f"Fig. 4: {which} + {shift}",
                        fontsize=10)  # fmt: skip
    axes[0].legend(fontsize=8, frameon=False)
    for panel in axes[3:]:
        panel.set_xlabel("error (people)")
    return save(figure, "zhu-figures_1_4")
