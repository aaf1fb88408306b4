"""Zhu, Figures 1 and 4: the bias of projecting with non-negativity, and how it goes with size."""

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Float64
from hedgerow.estimate.families.sparse import Sparse
from studies.ko.releasing import projected
from studies.page import Row, Study, markdown, mean_of, read, unprinted
from studies.showing import OPTIMUM, UNIFORM, panels, save
from studies.tables import BLOCKS
from studies.zhu.projection_error import GeometricNorm, bias_bound

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
    table = read(BLOCKS).group_by("county").agg(pl.col(GROUP).sum()).sort(GROUP, "county")
    counts = table[GROUP].to_numpy().astype(np.float64)
    rng = np.random.default_rng(14)
    found = {shift: _residuals(counts + shift, rng) for shift in SHIFTS}
    norm = GeometricNorm(len(counts), SCALE)
    lines = []
    bounds = {}
    means = {}
    for shift, (before, after) in found.items():
        shifted = counts + shift
        least = shifted.min()
        bounds[shift] = bias_bound(norm, least, shifted.sum())
        bias = after.mean(axis=0)
        means[shift] = bias[0], (after.std(axis=0) / np.sqrt(RUNS))[0]
        lines.append((shift, least, before[:, 0].mean(), means[shift], bias[1], bias[-1],
                      bounds[shift], norm.mean_outside(least)))  # fmt: skip
    text = TEXT.format(cells=len(counts), total=int(counts.sum()), first=int(counts[0]),
                       second=int(counts[1]), runs=RUNS, bound=bounds[50],
                       after=bounds[150], norm=norm.mean_outside(0))  # fmt: skip
    heads = (
        "added | least | noise alone, least county | (P₊), least county | (P₊), next county | "
        "(P₊), greatest county | Theorem 11 | without C'"
    )  # fmt: skip
    forms = " | .0f | .3f | .4f ± .2g | .4f | .4f | .3g"
    text, rows = text + markdown(heads, lines, forms), _rows(counts, found, means)
    return Study("Zhu, Figures 1 and 4", "the bias of non-negativity", text, rows,
                 [_picture(found)])  # fmt: skip


def _rows(
    counts: Float64,
    found: dict[int, tuple[Float64, Float64]],
    means: dict[int, tuple[float, float]],
) -> list[Row]:
    before, after = found[0]
    shape = "histogram, no number printed, of a table that is not named; people of one origin here"
    falls = float(np.all(np.diff([means[shift][0] for shift in SHIFTS[:4]]) < 0))
    biased, error = means[0]
    return [
        Row("bias of the noise, least county", 0.0, *mean_of(before[:, 0])),
        unprinted("bias after (P₊), least county (people)", biased, shape, error),
        Row("the same with 50 people more in each county", 0.0, *means[50]),
        Row("bias falls as counties grow (1: yes)", 1.0, falls),
        Row("sum of all counties' errors", 0.0, round(after.sum(axis=1).mean(), 9)),
        unprinted("ours: bias of whole counts (Sparse, penalty 0.5), least county",
                  _of_sparse(counts), "not in the paper", error),
    ]  # fmt: skip


def _residuals(counts: Float64, rng: Generator) -> tuple[Float64, Float64]:
    """Errors of the noise and after (P₊): two float64 (runs, cells)."""
    noise = _geometric(rng, (RUNS, len(counts)))
    start = np.arange(RUNS + 1, dtype=np.int64) * len(counts)
    totals = np.full(RUNS, counts.sum())
    return noise, projected((counts + noise).ravel(), start, totals).reshape(noise.shape) - counts


def _of_sparse(counts: Float64) -> float:
    """The mean error of the least county under Hedgerow's sparse estimator."""
    noisy = (counts + _geometric(np.random.default_rng(15), (RUNS, len(counts)))).astype(np.int64)
    start = np.arange(RUNS + 1, dtype=np.int64) * len(counts)
    totals = np.full(RUNS, int(counts.sum()))
    variance = 1 / (2 * np.sinh(1 / SCALE / 2) ** 2)
    made = Sparse(penalty=0.5).project(noisy.ravel(), start, totals, variance)
    return float((made.reshape(noisy.shape)[:, 0] - counts[0]).mean())


def _geometric(rng: Generator, shape: tuple[int, int]) -> Float64:
    """Double-sided geometric noise: a difference of two geometric draws."""
    chance = -np.expm1(-1 / SCALE)
    draws: Float64 = (rng.geometric(chance, shape) - rng.geometric(chance, shape)).astype(float)
    return draws


def _picture(found: dict[int, tuple[Float64, Float64]]) -> str:
    figure, axes = panels(3, 2)
    bins = np.arange(-10.5, 11.5).tolist()
    shown = [(0, 0), (0, 1), (2, 0), (5, 0), (10, 0), (20, 0)]
    for panel, (shift, cell) in zip(axes, shown, strict=True):
        for errors, colour, label in zip(
            found[shift], (UNIFORM, OPTIMUM), ("noise (ours)", "after (P₊) (ours)"), strict=True
        ):
            panel.hist(errors[:, cell], bins, density=True, color=colour, alpha=0.5, label=label)
        panel.axvline(errors[:, cell].mean(), color="black", linestyle="--", linewidth=1)
        which = "least county" if cell == 0 else "next county"
        panel.set_title(f"Fig. 1: {which}" if shift == 0 else f"Fig. 4: {which} + {shift}")
    for panel in axes[3:]:
        panel.set_xlabel("error (people)")
    return save(figure, "zhu-figures_1_4")
