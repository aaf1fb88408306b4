"""Ko, Figure 4: the optimal shares of program (6)."""

from collections.abc import Iterator

import numpy as np

from studies.ko.tables import Case, every_case
from studies.page import Row, Study, drawn, markdown
from studies.showing import LEVEL_COLOURS, panels, save

BUDGETS = (0.5, 1.0, 2.0, 4.0)
SWEPT = np.linspace(0.25, 4, 16)
TEXT = """Program (6): a total ε divided among state, tracts and blocks so as to minimise the
squared error of all counts. The paper draws Wyoming; 128 tracts of Washington with about as many
populated blocks replace it, and real block groups of three states (planned with 2010).

Reproduced: ε rises from the top to the bottom, as Theorem 3 says, in every table and at every ε.
Shares hardly depend on ε, as most counts are large compared with the noise; with all of them large
they are n^(1/3) / Σ n^(1/3), the last column.

"""


def main() -> Study:
    """Draw the figure and write the page."""
    every = every_case()
    rising = all((np.diff(case.optimum(e)) >= 0).all() for case in every for e in (*BUDGETS, 20.0))
    rises = "it rises from level to level, and so does ours"
    rows = [
        Row("ε of the levels rises in all tables (1: yes)", 1.0, float(rising)),
        *(
            drawn(f"ε of the {level} level at ε = 2", b, rises)
            for level, b in zip(every[0].levels, every[0].optimum(2.0), strict=True)
        ),
    ]
    heads = ["table", "level", "nodes", "empty", *(f"share at ε = {e:g}" for e in BUDGETS), "n^⅓"]
    lines = (line for case in every for line in _lines(case))
    text = TEXT + markdown(heads, lines, " |  | , | .1%")
    figure, (axes,) = panels(colours=LEVEL_COLOURS)
    names = [f"{level} (ours)" for level in every[0].levels]
    axes.plot(SWEPT, [every[0].optimum(e) for e in SWEPT], "o-", markersize=3, label=names)
    axes.set(xlabel="ε in all", ylabel="ε of the level", title="128 tracts")
    return Study("Ko, Figure 4", "optimal shares", text, rows, [save(figure, "ko-figure_4")])


def _lines(case: Case) -> Iterator[tuple[object, ...]]:
    shares = [case.optimum(e) / e for e in BUDGETS]
    shares.append(np.cbrt(case.nodes) / np.cbrt(case.nodes).sum())
    empty = ((truth == 0).mean() for truth in case.truth)
    return zip((case.name, "", ""), case.levels, case.nodes, empty, *shares, strict=True)
