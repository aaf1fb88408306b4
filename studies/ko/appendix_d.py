"""Ko, Appendix D, Figures 8 to 11: the same for New Mexico and Delaware."""

import numpy as np

from studies.ko.downstream import BUDGETS, misallocated
from studies.ko.figure_2 import draw_cheapest
from studies.ko.figure_3 import HEADS, draw_moments
from studies.ko.figure_6 import picture_of, rows_of, table_of
from studies.ko.own import Point
from studies.ko.tables import block_groups, washington
from studies.page import Row, Study, markdown, unprinted
from studies.showing import panels, save

STATES = ("New Mexico", "Delaware")
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
    cases = {state: block_groups(state) for state in STATES}
    figure, axes = panels(3, 2)
    lines = list[list[object]]()
    rows = list[Row]()
    for k, (state, case) in enumerate(cases.items()):
        points = [Point.of(case, epsilon, rng, RUNS, OWN_RUNS) for epsilon in BUDGETS]
        lines += ([case.name, e, "No Hier.", *case.clipped(e), ""] for e in BUDGETS)
        lines += ([case.name, p.epsilon, "w/ Hier.", *p.cells, p.hier[2].mse] for p in points)
        rows += _rows(state, points)
        left, right, last = axes[3 * k : 3 * k + 3]
        draw_moments((left, right), points)
        draw_cheapest(last, case, TARGETS)
        left.set_title(f"ours: {state}")
        right.set_title(f"ours: {state}")
        last.set_title("program (7)")
        for panel in (right, last):
            panel.legend(fontsize=7)
    for case in (block_groups("Wyoming"), washington()):
        lines += ([case.name, e, "No Hier.", *case.clipped(e), ""] for e in BUDGETS)
    heads = f"table | ε |  | {HEADS} | Hedgerow: MSE"
    forms = " | g |  | .3g ± .1g |  | .3g ± .1g | "
    text = TEXT.format(runs=RUNS) + "## Figures 8 and 10\n\n" + markdown(heads, lines, forms)
    pictures = [save(figure, "ko-appendix_d", dpi=80)]
    for state, case in cases.items():
        sizes = np.diff(case.tract_start)
        shared = misallocated(case, int(sizes.argmax()), rng, SHARED_RUNS, OWN_RUNS)
        text += f"\n\n## Figures 9 and 11: {state}, the tract with the most block groups "
        text += f"({sizes.max()})\n\nHollow triangles in the picture: below twice the Monte Carlo "
        text += f"error shown.\n\n{table_of(shared)}"
        rows += rows_of(shared, f"{state}, ")
        pictures.append(picture_of(shared, f"ko-appendix_d_{state.lower().replace(' ', '_')}"))
    return Study("Ko, Appendix D", "New Mexico and Delaware", text, rows, pictures)


def _rows(state: str, points: list[Point]) -> list[Row]:
    low, one, two, _ = points
    curve = "curve, no number printed for this state; blocks there, block groups here"
    wins = all(point.hier[0].variance > point.hier[1].variance for point in points)
    return [
        Row(f"{state}: optimum has less variance at every ε, consistent (1: yes)", 1.0, wins),
        unprinted(f"{state}: bias², uniform / optimum, ε = 1", one.clipped[4], curve),
        unprinted(f"{state}: variance, uniform / optimum, ε = 1", one.clipped[5], curve),
        unprinted(f"{state}: bias² with consistency / without, uniform, ε = 0.5", low.kept[0],
                  "“slightly reduced” in Wyoming; empty siblings take from one here", low.kept[1]),
        unprinted(f"{state}: ours: MSE of Hedgerow / the consistent optimum, ε = 2", two.gain,
                  "not in the paper"),
    ]  # fmt: skip
