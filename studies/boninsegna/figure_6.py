"""Figure 6: the time of a release of the synthetic tables."""

from collections import defaultdict

import hedgerow as hr
from studies.boninsegna.releases import (
    AS_RUN,
    EPSILONS,
    SETTINGS,
    TDA_L2,
    THEIRS,
    Setting,
    gaussian_method,
    loose_rho,
    published,
    released_by,
    simulated,
    stability,
)
from studies.boninsegna.tables import synthetic_tables
from studies.page import Row, Study, markdown
from studies.showing import bars, panels, save

RUNS = 5
REASON = "compiled kernels over sparse slices on one core; theirs looks up data frames, 8-core Xeon"
HEDGEROW = Setting(hr.Sparse(penalty=0.5), everything=True)

TEXT = """Seconds of one release on one core of this machine, compiled before, fastest of {runs};
*paper* is the mean of the authors' published runs (Xeon W-2245), which the paper draws without
numbers.

**Reproduced.** Time grows with ε, because more nodes survive, and InfTDA is faster than TDA with a
generic solver. **Differs.** Chebyshev is not inherently faster: computed by one sort each, in O(b
log b), both take the same time. The difference was due to the solver.

Our milliseconds; *Hedgerow* measures every node, combines upward and then projects:

{table}
"""


def main() -> Study:
    """Time all tables, and write the page and the picture."""
    paper, tables, rows, lines = published(), synthetic_tables(), [], []
    seconds = defaultdict[str, list[float]](list)
    for table in tables:
        for epsilon in EPSILONS:
            timed = {}
            for method, setting in {**SETTINGS, "Hedgerow": HEDGEROW}.items():
                timed[method] = simulated(table.counts, setting, epsilon, RUNS).seconds
            gaussian = gaussian_method(table.counts, loose_rho(epsilon))
            for method, way in (("VanillaGauss", gaussian), ("SH", stability(epsilon))):
                timed[method] = released_by(table.counts, way, RUNS).seconds
            lines.append([table.name, epsilon, *(1e3 * each for each in timed.values())])
            for method in (AS_RUN, TDA_L2) if epsilon == "1" else ():
                printed = paper[table.name][THEIRS[method]][epsilon].seconds
                what = f"{table.name}, ε = 1, {THEIRS[method]}: seconds"
                rows.append(Row(what, printed, float(f"{timed[method]:.2g}"), reason=REASON))
                seconds[f"paper: {THEIRS[method]}"].append(printed)
                seconds[f"ours: {THEIRS[method]}"].append(timed[method])
    text = TEXT.format(runs=RUNS, table=markdown(["table", "ε", *timed], lines, ".1f"))
    figure, (axes,) = panels(size=(8, 3.6))
    colours = ({"color": colour} for colour in ("#0072b2", "#8cbfe0", "#e69f00", "#f5d491"))
    bars(axes, [table.name for table in tables], seconds, [*colours])
    axes.set(yscale="log", ylabel="seconds of a release, ε = 1")
    axes.legend(ncols=2, loc="upper left", bbox_to_anchor=(0, 1.22))
    picture = save(figure, "boninsegna-figure_6")
    return Study("Boninsegna, Figure 6", "time of a release", text, rows, [picture])
