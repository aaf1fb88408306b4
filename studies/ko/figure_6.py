"""Ko, Figure 6: an amount shared among the blocks of one tract by log(p + 1), p and p²."""

from collections.abc import Sequence

import numpy as np

from studies.ko.downstream import KINDS, RULES, Misallocated, misallocated
from studies.ko.tables import wyoming_shaped
from studies.page import Row, Study, markdown
from studies.showing import OPTIMUM, OWN, UNIFORM, panels, save

BUDGETS = (0.5, 1.0, 2.0, 4.0)
RUNS, OWN_RUNS = 300, 100
SEED = 2026
COLOURS = dict(zip(KINDS, (UNIFORM, OPTIMUM, OWN), strict=True))
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
    case, rng = wyoming_shaped(), np.random.default_rng(SEED)
    tract = int(rng.integers(case.nodes[1]))
    leaves = case.truth[2][case.tract_start[tract] : case.tract_start[tract + 1]]
    found = [
        row
        for epsilon in BUDGETS
        for row in misallocated(case, tract, epsilon, rng, RUNS, OWN_RUNS)
    ]
    text = TEXT.format(
        blocks=len(leaves), people=int(leaves.sum()), runs=RUNS, largest=leaves.max() / leaves.sum()
    )
    text += table_of(found)
    return Study("Ko, Figure 6", "an amount shared within a tract", text, rows_of(found, ""),
                  (picture_of(found, "ko-figure_6"),))  # fmt: skip


def rows_of(found: Sequence[Misallocated], where: str) -> tuple[Row, ...]:
    """The paper's claims: which kind is better, by rule, over all ε."""
    by = {(row.kind, row.epsilon, row.rule): row for row in found}
    budgets = sorted({row.epsilon for row in found})
    rows = []
    for rule in RULES:
        pairs = [(by["uniform", e, rule.name], by["optimum", e, rule.name]) for e in budgets]
        wins = all(u.variance > b.variance for u, b in pairs)
        rows.append(
            Row(f"{where}{rule.name}: optimum has less variance at every ε (1: yes)", 1.0, wins)
        )
        one, other = pairs[0]
        rows.append(_ratio(f"{where}{rule.name}: variance, uniform / optimum, ε = 0.5",
                           one.variance, one.variance_error,
                           other.variance, other.variance_error))  # fmt: skip
        if min(p.bias2 / p.bias2_error for p in pairs[0]) > 4:
            rows.append(_ratio(f"{where}{rule.name}: bias², uniform / optimum, ε = 0.5",
                               one.bias2, one.bias2_error,
                               other.bias2, other.bias2_error))  # fmt: skip
        own = by["Hedgerow", 2.0, rule.name]
        best = by["optimum", 2.0, rule.name]
        rows.append(
            Row(f"{where}{rule.name}: ours: MSE of Hedgerow / the optimum, ε = 2", None,
                (own.bias2 + own.variance) / (best.bias2 + best.variance),
                error=(own.variance_error + own.bias2_error) / best.variance,
                reason="not in the paper")
        )  # fmt: skip
    return tuple(rows)


def _ratio(what: str, a: float, a_error: float, b: float, b_error: float) -> Row:
    error = a / b * float(np.hypot(a_error / a, b_error / b))
    return Row(what, None, a / b, error, reason="curve, no number printed: the optimum is below")


def table_of(found: Sequence[Misallocated]) -> str:
    """All figures."""
    heads = ["ε", "W", *(f"{kind}: {what}" for kind in KINDS for what in ("bias²", "variance"))]
    by = {(row.kind, row.epsilon, row.rule): row for row in found}
    lines = []
    for epsilon in sorted({row.epsilon for row in found}):
        for rule in RULES:
            line: list[object] = [f"{epsilon:g}", rule.name]
            for kind in KINDS:
                row = by[kind, epsilon, rule.name]
                line += [f"{row.bias2:.3g} ± {row.bias2_error:.1g}", row.variance]
            lines.append(line)
    return markdown(heads, lines)


def picture_of(found: Sequence[Misallocated], slug: str) -> str:
    """Bias² above, variance below, a panel a rule."""
    figure, axes = panels(3, 2)
    for k, rule in enumerate(RULES):
        for kind in KINDS:
            rows = [row for row in found if row.kind == kind and row.rule == rule.name]
            colour = COLOURS[kind]
            bounds = [max(row.bias2, 2 * row.bias2_error) for row in rows]
            x = [row.epsilon for row in rows]
            axes[k].plot(x, bounds, ":", color=colour, linewidth=1)
            for row, bound in zip(rows, bounds, strict=True):
                mark = "o" if row.bias2 >= bound else "v"
                axes[k].plot([row.epsilon], [bound], mark, color=colour,
                             fillstyle="full" if mark == "o" else "none")  # fmt: skip
            axes[3 + k].plot([r.epsilon for r in rows], [r.variance for r in rows], "o-",
                             color=colour, label=kind)  # fmt: skip
        axes[k].set(title=f"ours: {rule.name}", yscale="log", xlim=(0.3, 4.2))
        axes[3 + k].set(xlabel="ε", yscale="log", xlim=(0.3, 4.2))
    axes[0].set_ylabel("bias² (percent²)")
    axes[3].set_ylabel("variance (percent²)")
    axes[3].legend(fontsize=8, frameon=False)
    return save(figure, slug, dpi=85)
