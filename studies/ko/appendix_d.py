"""Ko, Appendix D, Figures 8 to 11: the same for New Mexico and Delaware."""

import numpy as np
from matplotlib.axes import Axes

from studies.ko.downstream import misallocated
from studies.ko.figure_6 import picture_of, rows_of, table_of
from studies.ko.own import own_moments
from studies.ko.releasing import simulated
from studies.ko.tables import Case, block_groups, uniform, washington
from studies.page import Row, Study, markdown
from studies.showing import LEVEL_COLOURS, OPTIMUM, OWN, UNIFORM, panels, save

STATES = ("New Mexico", "Delaware")
BUDGETS = (0.5, 1.0, 2.0, 4.0)
TARGETS = np.geomspace(500, 200_000, 30)
RUNS, OWN_RUNS, SHARED_RUNS = 1000, 60, 300
TEXT = """The paper repeats its figures for the blocks of New Mexico and Delaware, which are not
available here. Their block groups are: 1,614 and 706 in 2020, planned with those of 2010. Wyoming's
457 block groups and all 195,574 blocks of Washington in 2010 are beside them. {runs:,} runs with
consistency; the rest are closed forms.

*Reproduced.* The optimum beats uniform shares in bias² and variance in both states and at every ε,
with and without consistency; ε rises from level to level; program (7) spends most of ε on the
leaves; an amount shared within a tract is misallocated less for every weight.

*What differs.* All ratios are smaller than for blocks: there are three block groups per tract
instead of a hundred or more blocks, so the optimum, 4 to 6 % / 39 % / 55 %, is nearer to uniform
shares, and the variance ratio is 2. Bias² is small altogether, and that of the few empty block
groups; in Wyoming, where none is empty, it is negligible under any shares, and its ratio is
meaningless.

Consistency reduces the variance, by a sixth for uniform shares, but not always bias²: for blocks
(Figure 3) it does, here it increases it. If a tract has 16, 0, 0 and 0 people, the excess of the
three empty block groups is all subtracted from the fourth, whose squared bias then dominates.

*Hedgerow.* With few and large leaves, combining the levels helps much, and Hedgerow's release has a
third of the error of the consistent optimum. Its bias² hardly falls with ε: it comes from rounding
to integers, which the paper's release does not do.

"""


def main() -> Study:
    """Draw the figures and write the page."""
    rng = np.random.default_rng(2026)
    cases = [block_groups(state) for state in STATES]
    figure, axes = panels(3, 2)
    lines: list[list[object]] = []
    rows: list[Row] = []
    for k, (state, case) in enumerate(zip(STATES, cases, strict=True)):
        more, found = _state(state, case, rng, axes[3 * k : 3 * k + 3])
        lines += more
        rows += found
    lines += [*_closed(block_groups("Wyoming")), *_closed(washington())]
    heads = ["table", "ε", "", "uniform: bias²", "variance", "optimum: bias²", "variance"]
    heads += ["bias² ×", "variance ×", "Hedgerow: MSE"]
    text = TEXT.format(runs=RUNS) + "## Figures 8 and 10\n\n" + markdown(heads, lines)
    pictures = [save(figure, "ko-appendix_d", dpi=80)]
    for state, case in zip(STATES, cases, strict=True):
        tract = int(np.diff(case.tract_start).argmax())
        shared = [row for e in BUDGETS
                  for row in misallocated(case, tract, e, rng, SHARED_RUNS, OWN_RUNS)]  # fmt: skip
        cells = int(np.diff(case.tract_start)[tract])
        text += f"\n\n## Figures 9 and 11: {state}, the tract with the most block groups ({cells})"
        text += "\n\nHollow triangles in the picture: below twice the Monte Carlo error shown."
        text += "\n\n" + table_of(shared)
        rows += rows_of(shared, f"{state}, ")
        pictures.append(picture_of(shared, f"ko-appendix_d_{state.lower().replace(' ', '_')}"))
    return Study("Ko, Appendix D", "New Mexico and Delaware", text, tuple(rows), tuple(pictures))


def _state(
    state: str, case: Case, rng: np.random.Generator, axes: list[Axes]
) -> tuple[list[list[object]], list[Row]]:
    """Lines, rows and three panels: bias², variance, program (7)."""
    lines, hier = _closed(case), []
    for epsilon in BUDGETS:
        pair = [simulated(case, b, rng, RUNS).total
                for b in (uniform(epsilon), case.optimum(epsilon))]  # fmt: skip
        own = own_moments(case, epsilon, OWN_RUNS).total
        hier.append((*pair, own))
        (ub, ue, uv), (bb, be, bv) = pair
        ratio: object = ub / bb if bb > 4 * be else "below Monte Carlo error"
        lines.append([case.name, f"{epsilon:g}", "w/ Hier.", f"{ub:.3g} ± {ue:.1g}", uv,
                      f"{bb:.3g} ± {be:.1g}", bv, ratio, uv / bv, own[0] + own[2]])  # fmt: skip
    x = list(BUDGETS)
    for i, (name, colour) in enumerate((("uniform", UNIFORM), ("optimum", OPTIMUM))):
        budgets = [uniform(e) if i == 0 else case.optimum(e) for e in BUDGETS]
        closed = [case.expected(b) for b in budgets]
        for panel, values in zip(axes, zip(*closed, strict=True), strict=False):
            panel.plot(x, values, "o-", color=colour, label=f"{name}, No Hier.")
        axes[1].plot(x, [h[i][2] for h in hier], "s--", markersize=4, color=colour,
                     label=f"{name}, w/ Hier.")  # fmt: skip
    axes[1].plot(x, [h[2][2] for h in hier], "^:", color=OWN, label="Hedgerow's own")
    spent = np.array([case.cheapest(float(target)) for target in TARGETS])
    axes[2].stackplot(TARGETS, *spent.T, labels=case.levels, colors=LEVEL_COLOURS, alpha=0.85)
    axes[0].set(yscale="log", xlabel="ε", ylabel="bias² (records²)", title=f"ours: {state}")
    axes[1].set(yscale="log", xlabel="ε", ylabel="variance (records²)", title=f"ours: {state}")
    axes[2].set(xscale="log", xlabel="τ (records²)", ylabel="ε", title="program (7)")
    for panel in axes[1:]:
        panel.legend(fontsize=7, frameon=False)
    wins = all(h[0][2] > h[1][2] for h in hier)
    closed_pair = case.expected(uniform(1.0)), case.expected(case.optimum(1.0))
    own_gain = (hier[2][2][0] + hier[2][2][2]) / (hier[2][1][0] + hier[2][1][2])
    curve = "curve, no number printed for this state; blocks there, block groups here"
    return lines, [
        Row(f"{state}: optimum has less variance at every ε, consistent (1: yes)", 1.0, wins),
        Row(f"{state}: bias², uniform / optimum, ε = 1", None,
            float(closed_pair[0][0] / closed_pair[1][0]), reason=curve),
        Row(f"{state}: variance, uniform / optimum, ε = 1", None,
            float(closed_pair[0][1] / closed_pair[1][1]), reason=curve),
        Row(f"{state}: bias² with consistency / without, uniform, ε = 0.5", None,
            hier[0][0][0] / case.expected(uniform(0.5))[0],
            error=hier[0][0][1] / case.expected(uniform(0.5))[0],
            reason="“slightly reduced” in Wyoming; empty siblings take from one here"),
        Row(f"{state}: ours: MSE of Hedgerow / the consistent optimum, ε = 2", None, own_gain,
            reason="not in the paper"),
    ]  # fmt: skip


def _closed(case: Case) -> list[list[object]]:
    """Closed forms without consistency."""
    lines: list[list[object]] = []
    for epsilon in BUDGETS:
        u, b = case.expected(uniform(epsilon)), case.expected(case.optimum(epsilon))
        figures = map(float, (*u, *b, *(u / b)))
        lines.append([case.name, f"{epsilon:g}", "No Hier.", *figures, ""])
    return lines
