"""Ko, Figure 6: an amount shared among the blocks of one tract by log(p + 1), p and p²."""

import numpy as np
import polars as pl

from studies.ko.downstream import KINDS, RULES, misallocated
from studies.ko.tables import wyoming_shaped
from studies.page import Row, Study, drawn, markdown, unprinted
from studies.showing import OPTIMUM, OWN, UNIFORM, panels, save

RUNS, OWN_RUNS = 300, 100
SEED = 2026
TEXT = """A state is released with consistency (program (8)), by uniform shares and by the optimum
of program (6), and an amount is shared among the blocks of one tract, drawn at random, by the
weight W of each block's part p of the tract. Misallocation is in percent of the amount, bias² and
variance summed over blocks. The paper uses a tract of Wyoming; here it is one of the 128 tracts of
Washington that replace it, with {blocks} populated blocks and {people:,} people; the block with the
most has {largest:.1%} of them. {runs} runs; bias² estimates are corrected for the variance of the
mean over runs, and the picture shows twice their Monte Carlo error (hollow triangles) where they
are below it.

*Reproduced.* The optimum beats uniform shares for every weight at every ε, in variance by 5 to 6.
At small ε squares have the largest variance and bias². *Not reproduced:* that a logarithm dampens
the noise and narrows the gap. log(1 + p) is nearly p if no block has a large part of its tract, so
it behaves like the proportion; its variance is even a little larger, which the paper too expects of
skewed tracts.

*Hedgerow.* Hedgerow's release at the same ε (noise on the integers, all nodes measured, shares for
the error after least squares, integer counts).

"""


def main() -> Study:
    """Draw the figure and write the page."""
    case = wyoming_shaped()
    rng = np.random.default_rng(SEED)
    tract = int(rng.integers(case.nodes[1]))
    leaves = case.truth[2][case.tract_start[tract] : case.tract_start[tract + 1]]
    found = misallocated(case, tract, rng, RUNS, OWN_RUNS)
    text = TEXT.format(
        blocks=len(leaves), people=int(leaves.sum()), runs=RUNS, largest=leaves.max() / leaves.sum()
    )
    text, pictures = text + table_of(found), [picture_of(found, "ko-figure_6")]
    title = "an amount shared within a tract"
    return Study("Ko, Figure 6", title, text, rows_of(found, ""), pictures)


def rows_of(found: pl.DataFrame, where: str) -> list[Row]:
    """The paper's claims: which kind is better, by rule, over all ε."""
    rows = []
    for rule in RULES:
        tables = [found.filter(kind=kind, rule=rule.name) for kind in KINDS]
        wins = (tables[0]["variance"] > tables[1]["variance"]).all()
        name = f"{where}{rule.name}"
        rows.append(Row(f"{name}: optimum has less variance at every ε (1: yes)", 1.0, wins))
        first = [table.row(0, named=True) for table in tables[:2]]
        for what, column in (("variance", "variance"), ("bias²", "bias2")):
            a, b = (row[column] for row in first)
            sure = [row[column] / row[f"{column}_error"] for row in first]
            if what == "variance" or min(sure) > 4:
                error = a / b * float(np.hypot(1 / sure[0], 1 / sure[1]))
                words = f"{name}: {what}, uniform / optimum, ε = 0.5"
                rows.append(drawn(words, a / b, "the optimum is below", error))
        best, own = (table.row(by_predicate=pl.col("epsilon") == 2, named=True)
                     for table in tables[1:])  # fmt: skip
        rows.append(
            unprinted(f"{name}: ours: MSE of Hedgerow / the optimum, ε = 2",
                      (own["bias2"] + own["variance"]) / (best["bias2"] + best["variance"]),
                      "not in the paper",
                      (own["variance_error"] + own["bias2_error"]) / best["variance"])
        )  # fmt: skip
    return rows


def table_of(found: pl.DataFrame) -> str:
    """All figures."""
    heads = ["ε", "W", *(f"{kind}: {what}" for kind in KINDS for what in ("bias²", "variance"))]
    lines = []
    for (epsilon, rule), kinds in found.group_by("epsilon", "rule", maintain_order=True):
        figures = kinds.select("bias2", "bias2_error", "variance").rows()
        each = (cell for bias2, error, variance in figures for cell in ((bias2, error), variance))
        lines.append((epsilon, rule, *each))
    return markdown(heads, lines, "g | " + len(KINDS) * " | .3g ± .1g | ")


def picture_of(found: pl.DataFrame, slug: str) -> str:
    """Bias² above, variance below, a panel a rule."""
    figure, axes = panels(3, 2)
    for k, rule in enumerate(RULES):
        for kind, colour in zip(KINDS, (UNIFORM, OPTIMUM, OWN), strict=True):
            rows = found.filter(kind=kind, rule=rule.name)
            columns = rows.select("epsilon", "bias2", "bias2_error", "variance")
            x, bias2, error, variance = columns.to_numpy().T
            seen = bias2 >= 2 * error
            bounds = np.maximum(bias2, 2 * error)
            axes[k].plot(x, bounds, ":", color=colour, linewidth=1)
            axes[k].plot(x[seen], bounds[seen], "o", color=colour)
            axes[k].plot(x[~seen], bounds[~seen], "v", color=colour, fillstyle="none")
            axes[3 + k].plot(x, variance, "o-", color=colour, label=kind)
        axes[k].set_title(f"ours: {rule.name}")
        axes[3 + k].set_xlabel("ε")
        for panel in (axes[k], axes[3 + k]):
            panel.set(yscale="log", xlim=(0.3, 4.2))
    axes[0].set_ylabel("bias² (percent²)")
    axes[3].set_ylabel("variance (percent²)")
    return save(figure, slug, dpi=85)
