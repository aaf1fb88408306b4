"""Ko, Figure 4: the optimal shares of program (6)."""

import numpy as np

from studies.ko.tables import Case, every_case
from studies.page import Row, Study, markdown
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
    rising = all(
        (np.diff(case.optimum(float(e))) >= 0).all() for case in every for e in (*BUDGETS, 20.0)
    )
    best = every[0].optimum(2.0)
    curve = "curve, no number printed: it rises from level to level, and so does ours"
    rows = (
        Row("ε of the levels rises in all tables (1: yes)", 1.0, float(rising)),
        *(
            Row(f"ε of the {level} level at ε = 2", None, float(b), reason=curve)
            for level, b in zip(every[0].levels, best, strict=True)
        ),
    )
    heads = ["table", "level", "nodes", "empty", *(f"share at ε = {e:g}" for e in BUDGETS), "n^⅓"]
    text = TEXT + markdown(heads, [line for case in every for line in _lines(case)])
    return Study("Ko, Figure 4", "optimal shares", text, rows, (_picture(every[0]),))


def _lines(case: Case) -> list[list[object]]:
    shares = [case.optimum(e) / e for e in BUDGETS]
    large = np.cbrt(case.nodes) / np.cbrt(case.nodes).sum()
    return [
        [
            case.name if k == 0 else "",
            level,
            f"{case.nodes[k]:,}",
            f"{(case.truth[k] == 0).mean():.1%}",
            *(f"{share[k]:.1%}" for share in shares),
            f"{large[k]:.1%}",
        ]
        for k, level in enumerate(case.levels)
    ]


def _picture(case: Case) -> str:
    figure, (axes,) = panels(1)
    budgets = np.array([case.optimum(float(e)) for e in SWEPT])
    for level, values, colour in zip(case.levels, budgets.T, LEVEL_COLOURS, strict=True):
        axes.plot(SWEPT, values, "o-", markersize=3, color=colour, label=f"{level} (ours)")
    axes.set(xlabel="ε in all", ylabel="ε of the level", title="128 tracts")
    axes.legend(fontsize=8, frameon=False)
    return save(figure, "ko-figure_4")
