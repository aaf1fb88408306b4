"""Ko, Figure 2: the least budget for a target error, program (7), and how it is spread."""

import numpy as np
from matplotlib.axes import Axes

from hedgerow.arrays import Float64
from hedgerow.plan.allocation.programs import LargeCounts, LevelCost, least_budgets, total_error
from studies.ko.tables import LARGEST, WYOMING_BLOCKS, WYOMING_TRACTS, Case, every_case
from studies.page import Row, Study, markdown, unprinted
from studies.showing import LEVEL_COLOURS, PAPER, panels, save

TARGET, PAPERS_EPSILON = 20_000.0, 2.0
TARGETS = (2_000.0, TARGET, 200_000.0)
SWEPT = np.geomspace(5_000, 200_000, 40)
TEXT = """Laplace noise on every count, clipped at 0; the least total ε at which the squared error
of all counts of all levels is at most τ. The paper plans with Wyoming's microdata of 2010 (1 state,
128 tracts, 20,975 blocks). Those are not available here; they are replaced by 128 tracts of
Washington with 21,031 populated blocks, and by real block groups of 2010 to plan 2020.

Reproduced: ε falls as τ grows, most of it goes to the blocks, and τ = 20,000 costs about 2. This
needs no counts of people: with all counts large the closed form ε ∝ n^(1/3) gives 1.95.

Planned with the census of 2010, the error of 2020's counts is 7 to 9 % above τ (the paper:
"closely align"), because there are more nodes than in 2010, and the plan took the additional ones
as empty.

"""


def main() -> Study:
    """Draw the figure and write the page."""
    every = every_case()
    shaped = every[0]
    found = shaped.cheapest(TARGET)
    large: list[LevelCost] = [
        LargeCounts(2.0 * n, 2, 1.0) for n in (1, WYOMING_TRACTS, WYOMING_BLOCKS)
    ]
    told = "printed as about 2"
    by_count = least_budgets(large, TARGET, LARGEST).sum()
    rows = [
        Row("ε at τ = 20,000", PAPERS_EPSILON, found.sum(), reason=f"{told}; other blocks"),
        Row("ε at τ = 20,000, counts large", PAPERS_EPSILON, by_count, reason=told),
        unprinted("share of the blocks", found[2] / found.sum(), "“the majority”"),
    ]
    text = TEXT + markdown(
        "table | τ | ε | to the leaves | error of the truth / τ | program (6) at that ε / τ",
        (_line(case, target) for case in every for target in TARGETS),
        " | ,.0f | .4f | .0% | .3f | .9f",
    )
    figure, (axes,) = panels()
    draw_cheapest(axes, shaped, SWEPT)
    axes.plot([TARGET], [PAPERS_EPSILON], label="paper: about 2", **PAPER)
    axes.set_ylim(0, None)
    return Study("Ko, Figure 2", "what an error costs", text, rows, [save(figure, "ko-figure_2")])


def _line(case: Case, target: float) -> tuple[object, ...]:
    budgets = case.cheapest(target)
    epsilon = budgets.sum()
    back = total_error(case.planned(), case.optimum(epsilon)) / target
    seen = case.by_level(budgets).sum() / target
    return case.name, target, epsilon, budgets[2] / epsilon, seen, back


def draw_cheapest(axes: Axes, case: Case, targets: Float64) -> None:
    """The budgets of program (7), level by level."""
    budgets = np.array([case.cheapest(target) for target in targets])
    axes.stackplot(targets, *budgets.T, labels=case.levels, colors=LEVEL_COLOURS, alpha=0.85)
    axes.set(xscale="log", xlabel="τ (records²)", ylabel="ε")
